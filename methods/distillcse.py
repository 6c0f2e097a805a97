"""DistillCSE: a student learns the similarities that its teachers see between sentences.

Idea: a trained SimCSE knows more about a batch than which two vectors are views of one sentence.
The student has SimCSE's loss, and also learns how similar frozen teachers find the sentences of the
batch. A teacher's similarities vary a lot from one training to the next. So they are averaged over
several teachers, and shuffled among sentences with nearly the same similarity (group-p shuffling).

    loss = InfoNCE(z1, z2) + λ · CE(softmax t_i/τ_t, softmax s_i/τ_s),   mean over i
    s_ij = cos(z1_i, z1_j),   t_ij = mean over teachers of cos(h_i, h_j), shuffled,   for all j ≠ i

Source: official code: Jiahao004/DistillCSE distillcse/models_distill_calibrate.py:197-311,
distillcse/trainers_distill_calibrate.py:511-533, run_cl_distill_shuffle_in_group.sh ("the script").
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; h (N, D') =
[CLS] of a teacher, without dropout and head.
Relations: simcse + a term. rankcse_teachers also learns teachers' similarities, in another term.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel
from csebench.train.losses import cos_sim, off_diagonal
from csebench.train.method import Views
from csebench.train.teachers import load_teachers, teacher_similarities
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "distillcse",
    "version": 1,
    "extends": "simcse",
    "title": "DistillCSE",
    "paper": "Xu et al. 2023 (Findings of EMNLP)",
    "citation": (
        """@inproceedings{xu2023distillcse, title={{DistillCSE}: Distilled Contrastive Learning for Sentence
Embeddings}, author={Xu, Jiahao and Shao, Wei and Chen, Lihui and Liu, Lemao}, booktitle={Findings of EMNLP},
year={2023}}"""
    ),
    "needs": "trained teachers",
    "trains": "encoder, head",
    "colours": {"": "#2F4B7C"},
    "params": {
        "steps": (5000, "script: max_steps, less than its 1 epoch of 10^6 sentences"),
        "batch_size": (64, "script"),
        "learning_rate": (3e-5, "script"),
        "max_length": (32, "script"),
        "evaluate_every": (125, "script"),
        "pooler": ("cls_before_pooler", "script: mlp_only_train"),
        "temperature": (0.05, "script: temp"),
        "negatives": ("batch", "models_distill_calibrate.py:198-204"),
        "distillation": (1.0, "script: distill_weight"),
        "student_temperature": (0.025, "script: distill_temp1"),
        "teacher_temperature": (0.0125, "script: distill_temp2"),
        "group_share": (0.1, "script: group_size_by_prob; 0: nothing is shuffled"),
        "teachers": (
            "princeton-nlp/unsup-simcse-bert-base-uncased@0c1b4b17e8b6c285152fdc748feb50872f18f5ad",
            (
                "script: distill_teacher; names of models, with spaces between; `self`: the run's"
                " own encoder as it was before training"
            ),
        ),
    },
    "search": {"distillation": (0.3, 1.0, 3.0)},
    "weights": ["distillation"],
    "below": [("group_share", 1), (0, "student_temperature"), (0, "teacher_temperature")],
    "choices": {"negatives": ["batch", "zeroed", "none"]},
    "variants": {
        "default": (
            "as released",
            "the script as it is: group-p shuffling, and one teacher",
        ),
        "vanilla": {"group_share": 0.0},
    },
    "deviations": [
        (
            "one teacher, the public SimCSE, as the script has it; its other list, commented out, has"
            " 15 more SimCSE of the authors, which are not public"
        ),
        (
            "as in the code, groups have equal shares of the softmax of the cosines themselves; the"
            " help of its option says `with temperature`"
        ),
        "as in the code, the cross-entropy is the only divergence: its option `distill_func` is not read",
        (
            "all teachers count the same; the code weighs those of two sizes by `distill_alpha`, and"
            " mixes the last of an odd number in once more"
        ),
        "the settings are the script's; the paper was not at hand",
    ],
}


class Method(SimCSE):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.teachers = load_teachers(self.p.teachers, encoder, "distillcse.teachers")

    def loss(self, views: Views) -> Tensor:
        batch = views.view1.batch
        taught = off_diagonal(teacher_similarities(self.teachers, batch).mean(0))  # (N, N-1)
        if self.p.group_share > 0:
            noise = torch.rand(len(batch["input_ids"]), taught.shape[1], device=taught.device)
            taught = shuffle_in_groups(taught, self.p.group_share, parallel.gather(noise))
        student = off_diagonal(cos_sim(views.z1, views.z1))  # (N, N-1)
        term = distil(student / self.p.student_temperature, taught / self.p.teacher_temperature)
        return super().loss(views) + self.p.distillation * term


# ---------------------------------------------------------------- the loss


def distil(student: Tensor, taught: Tensor) -> Tensor:
    """Compute the cross-entropy of the student's softmax under the teachers', mean over rows.

    Args:
        student, taught: (N, M) logits of the same sentences, without the row's own.
    """
    return cross_entropy(student, taught.softmax(-1))


def shuffle_in_groups(similarities: Tensor, share: float, noise: Tensor) -> Tensor:
    """Shuffle each row among the sentences of a group (group-p shuffling).

    A row is sorted from its largest to its smallest similarity, and cut where the sum of its
    softmax reaches another `share`. The similarities between two cuts are a group.

    Args:
        similarities: (N, M).
        share: of the probability of a row in each group, between 0 and 1.
        noise: (N, M) random numbers from [0, 1). Their order is the order after shuffling.

    Returns:
        (N, M) the similarities, each at the place of a sentence of the same group.
    """
    values, order = similarities.sort(descending=True)  # both (N, M)
    sums = values.softmax(-1).cumsum(-1)  # (N, M)
    cuts = share * torch.arange(1, math.ceil(1 / share), dtype=sums.dtype, device=sums.device)
    group = torch.bucketize(sums, cuts, right=True)  # (N, M), counted from 0
    shuffled = (group + noise).argsort(-1)  # noise is below 1, so groups stay in order
    return torch.zeros_like(values).scatter(-1, order.gather(-1, shuffled), values)
