"""DCLR (debiased contrastive learning): negatives from noise, and no false negatives.

Idea: two biases of negatives from the batch are repaired. Some of them say the same as the sentence:
a frozen SimCSE finds these false negatives, which then do not count. And all lie in the narrow cone
of the encoder's vectors. So random vectors are further negatives, each moved a little to where the
contrastive loss is larger.

    form weighted:  -s_ii/τ + log (Σ_{j≠i} α_ij exp s_ij/τ + Σ_m exp cos(z1_i, n_m)/τ),   mean over i
    form binary:    cross-entropy of p_ij with [j = i], mean over the N (N + M) entries,
                    p_i = softmax (α_ij s_ij/τ for all j, cos(z1_i, n_m)/τ for all m),   α_ii = 1
    s_ij = cos(z1_i, z2_j),   α_ij = 0 if cos(h_i, h_j) > φ, else 1
    n ← n + β g/|g|, t times, from n ~ N(0, I),   g = gradient of a contrastive loss by n

Source: official code: RUCAIBox/DCLR simcse/models.py:642-710, train.py, run.sh (form binary).
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; h (N, D') =
[CLS] of the frozen encoder, without dropout and head; n (M, D) noise.
Relations: simcse without false negatives, and with other negatives. distillcse also has a frozen
SimCSE, whose similarities it learns.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, cross_entropy, normalize, pad

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel
from csebench.train.losses import cos_sim, upcast_fp32
from csebench.train.method import ClsHeadMethod, Views
from csebench.train.teachers import load_teacher, teacher_similarities

DECLARATION = {
    "name": "dclr",
    "version": 1,
    "title": "DCLR",
    "paper": "Zhou et al. 2022 (ACL), sec. 4",
    "citation": (
        """@inproceedings{zhou2022debiased, title={Debiased Contrastive Learning of Unsupervised Sentence
Representations}, author={Zhou, Kun and Zhang, Beichen and Zhao, Xin and Wen, Ji-Rong}, booktitle={ACL}, year={2022}}"""
    ),
    "needs": "a trained encoder",
    "refuses": {
        "queue": (
            "its loss decides which negatives of the batch count, and has no such decision for a queue"
        )
    },
    "trains": "encoder, head",
    "colours": {"": "#0B7A75"},
    "params": {
        "steps": (23439, "run.sh: 3 epochs of 10^6 sentences at batch 128"),
        "batch_size": (128, "run.sh"),
        "learning_rate": (3e-5, "run.sh"),
        "max_length": (32, "run.sh"),
        "evaluate_every": (125, "run.sh"),
        "pooler": ("cls_before_pooler", "run.sh: evaluation.py --pooler"),
        "temperature": (0.05, "run.sh: temp"),
        "form": ("binary", "models.py:704-710; weighted: the paper's loss (sec. 4.2)"),
        "threshold": (0.9, "run.sh: phi; 0.85 for RoBERTa"),
        "noise": (
            1.0,
            (
                "run.sh: noise_times, noise vectors for each sentence of the batch; 2.5 for RoBERTa,"
                " 3 and 5 for the large models"
            ),
        ),
        "noise_steps": (4, "train.py:145-150: pgd"),
        "noise_step_size": (1e-3, "models.py:694"),
        "mask_padding": (True, "False: as the code, which passes no attention mask in training"),
        "teacher": (
            "princeton-nlp/unsup-simcse-bert-base-uncased@0c1b4b17e8b6c285152fdc748feb50872f18f5ad",
            (
                "run.sh: c_model_name_or_path, the encoder that finds false negatives; `self`: the"
                " run's own encoder as it was before training"
            ),
        ),
    },
    "search": {"threshold": (0.85, 0.9, 0.99)},
    "choices": {"form": ["binary", "weighted"]},
    "below": [("threshold", 1)],
    "variants": {
        "default": (
            "released, repaired",
            "the code's loss, but its encoders do not attend to padding in training",
        ),
        "code": (
            "as released",
            "no attention mask in training, so that every token also attends to padding",
            {"mask_padding": False},
        ),
        "paper": (
            "as printed",
            (
                "the contrastive loss of sec. 4.2 in place of a binary cross-entropy: false"
                " negatives are left out of its denominator, not set to a logit of 0"
            ),
            {"form": "weighted"},
        ),
    },
    "deviations": [
        (
            "the settings are the script's. The paper was read in notes that describe its equations"
            " (sec. 4.1 and 4.2) without showing them: by these, both denominators have negatives"
            " alone, and the loss that moves noise has no negatives of the batch"
        ),
        (
            "as in the code, all sentences of a batch share its noise; the paper says k vectors for"
            " each sentence"
        ),
        (
            "as in the code, noise moves by four steps of 0.001, and is about 28 long: it turns by"
            " 0.00015 radians at most"
        ),
        (
            "the head is SimCSE's; the code's is the pooler layer of BERT, as pre-trained, and"
            " SimCSE's after it; for large models it is the pooler layer alone"
        ),
        (
            "the frozen encoder is read at [CLS], without dropout; the code reads its pooler layer,"
            " with dropout"
        ),
        "the code's threshold is right for τ = 0.05 alone (20 φ); here φ is a cosine at every τ",
        (
            "the best step is chosen on STS-B dev; the code chooses it on the mean with SICK-R dev,"
            " with its pooler layer and without an attention mask"
        ),
    ],
}


class Method(ClsHeadMethod):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.teacher = load_teacher(self.p.teacher, encoder, "dclr.teacher")

    def tokenize(self, sentences: list[str]) -> dict[str, Tensor]:
        batch = super().tokenize(sentences)
        if not self.p.mask_padding:
            batch["attention_mask"] = torch.ones_like(batch["attention_mask"])
        return batch

    def loss(self, views: Views) -> Tensor:
        (similarities,) = teacher_similarities([self.teacher], views.view1.batch)  # (N, N)
        noise = draw_noise(int(len(views.z1) * self.p.noise), views.z1)
        noise = self.move(noise, views.z1.detach(), views.z2.detach())
        logits = contrast(views.z1, views.z2, noise, self.p.temperature)
        alike = similarities > self.p.threshold
        if self.p.form == "weighted":
            return weighted_contrast(logits, alike)
        return binary_contrast(logits, alike)

    def move(self, noise: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
        """Move noise, (M, D) -> (M, D), in steps of gradient ascent that all have the same length."""
        for _ in range(self.p.noise_steps):
            noise = noise.detach().requires_grad_()
            logits = contrast(z1, z2, noise, self.p.temperature)
            if self.p.form == "weighted":
                loss = non_uniformity(logits)
            else:
                loss = cross_entropy(logits, torch.arange(len(z1), device=z1.device))
            (gradient,) = torch.autograd.grad(loss, noise)
            noise = noise + self.p.noise_step_size * normalize(gradient, dim=-1)
        return noise.detach()


# ---------------------------------------------------------------- the losses
# Shapes: N sentences, M noise vectors. Columns of logits are the N second views, then the noise.


def contrast(z1: Tensor, z2: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """Compute the logits of the first views, (N, N + M).

    Args:
        z1, z2: (N, D).
        noise: (M, D).
    """
    return torch.cat([cos_sim(z1, z2), cos_sim(z1, noise)], dim=1) / temperature


def binary_contrast(logits: Tensor, alike: Tensor) -> Tensor:
    """Compute the binary cross-entropy of each softmax probability, mean over all entries.

    A false negative has a logit of 0. So it still has a column, but no gradient of its own.

    Args:
        logits: (N, N + M).
        alike: (N, N) bool, True where the frozen encoder finds two sentences alike.
    """
    positive, false_negative = positives_and_false_negatives(logits, alike)
    probabilities = logits.masked_fill(false_negative, 0.0).softmax(-1)
    with torch.autocast(logits.device.type, enabled=False):
        return binary_cross_entropy(probabilities, positive.to(probabilities.dtype))


def weighted_contrast(logits: Tensor, alike: Tensor) -> Tensor:
    """Compute the contrastive loss without false negatives, mean over rows.

    The positive is not in the denominator. See `binary_contrast` for the arguments.
    """
    positive, false_negative = positives_and_false_negatives(logits, alike)
    negatives = logits.masked_fill(positive | false_negative, float("-inf"))
    return (negatives.logsumexp(-1) - logits.diagonal()).mean()


def non_uniformity(logits: Tensor) -> Tensor:
    """Compute the contrastive loss against noise alone, which noise is moved to enlarge."""
    noise = logits[:, len(logits) :]  # (N, M)
    return (noise.logsumexp(-1) - logits.diagonal()).mean()


def positives_and_false_negatives(logits: Tensor, alike: Tensor) -> tuple[Tensor, Tensor]:
    """Mark the positives and the false negatives among logits, both (N, N + M) bool."""
    positive = torch.eye(*logits.shape, dtype=torch.bool, device=logits.device)
    noise_columns = logits.shape[1] - len(logits)
    false_negative = pad(alike, (0, noise_columns)) & ~positive  # noise is never a false negative
    return positive, false_negative


def draw_noise(count: int, like: Tensor) -> Tensor:
    """Draw standard normal vectors, (count, D), the same in all processes.

    Args:
        like: (N, D) vectors that have the device.
    """
    share = math.ceil(count / parallel.world_size())
    dtype = upcast_fp32(like).dtype
    drawn = torch.randn(share, like.shape[1], dtype=dtype, device=like.device)
    return parallel.gather(drawn)[:count]
