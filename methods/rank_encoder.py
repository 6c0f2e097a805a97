"""RankEncoder: two sentences are alike if they rank the sentences of a corpus alike.

Idea: neighbours say what a sentence means. A trained SimCSE ranks a corpus by its similarity to
each sentence of the batch. The student's cosine of two sentences learns how well their rankings
agree, for pairs that agree between `low` and `high`. At test, the similarity of two sentences is a
weighted mean of their cosine and of how well the student's own rankings agree.

    loss = InfoNCE(z1, z2) + β · mean (cos(z1_i, z2_j) - t_ij)²   over all i, j with low ≤ t_ij ≤ high
    t_ij = Spearman's correlation of cos(h_i, g_c) and cos(h_j, g_c) over the sentences c
    at test: λ · cos(x, y) + (1-λ) · Spearman's correlation of cos(x, x_c) and cos(y, x_c)

Source: official code: yeonsw/RankEncoder code/SimCSE_RankEncoder/simcse_rank_encoder/models.py:85-106,
238-265, simcse_rank_encoder/trainers.py:482-511, simcse_rank_encoder_inference.py:70-76; scripts
run_simcse_rank_encoder.sh ("the script") and simcse_rank_encoder_inference.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; h (N, D'),
g (C, D') = [CLS] of a frozen encoder, without dropout and head, of the batch and of C sentences.
At test, x_c (C, D) are the student's vectors of the C sentences.
Relations: simcse + a term. distillcse learns a teacher's cosines, not its rankings of a corpus. Like
whitening, it has a fitted map that follows pooling. The map holds the x_c and λ.
"""

import numpy as np
import torch
from torch import Tensor

from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.encoder import Encoder
from csebench.model.metrics import unit
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import cos_sim
from csebench.train.method import Views
from csebench.train.teachers import load_teacher, teacher_cosines
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "rank_encoder",
    "version": 1,
    "extends": "simcse",
    "title": "RankEncoder",
    "paper": "Seonwoo et al. 2023 (ACL)",
    "citation": (
        """@inproceedings{seonwoo2023ranking, title={Ranking-Enhanced Unsupervised Sentence Representation
Learning}, author={Seonwoo, Yeon and Wang, Guoyin and Seo, Changmin and Choudhary, Sajal and Li, Jiwei and
Li, Xiang and Xu, Puyang and Park, Sunghyun and Oh, Alice}, booktitle={ACL}, year={2023}}"""
    ),
    "needs": "a trained teacher",
    "trains": "encoder, head",
    "colours": {"": "#3D5A80"},
    "params": {
        "steps": (15625, "1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "script"),
        "learning_rate": (3e-5, "script"),
        "max_length": (32, "script"),
        "evaluate_every": (125, "script"),
        "pooler": ("cls_before_pooler", "script: mlp_only_train"),
        "temperature": (0.05, "script: temp"),
        "negatives": ("batch", "models.py:220-227"),
        "distillation": (0.05, "script: baseE_lmb"),
        "low": (0.5, "script: baseE_sim_thresh_low"),
        "high": (0.9999, "script: baseE_sim_thresh_upp; the batch's diagonal is above it"),
        "cosine_share": (0.9, "simcse_rank_encoder_inference.sh: LMB"),
        "fit_sentences": (10000, "random_sampling_sentences.sh: sentences that are ranked"),
        "teacher": (
            "princeton-nlp/unsup-simcse-bert-base-uncased@0c1b4b17e8b6c285152fdc748feb50872f18f5ad",
            (
                "script: a SimCSE, baseE_model_name_or_path; name of a model; `self`: the run's own"
                " encoder as it was before training"
            ),
        ),
    },
    "search": {"distillation": (0.01, 0.05, 0.25)},
    "weights": ["distillation"],
    "below": [("low", "high"), ("cosine_share", 1), (1, "fit_sentences")],
    "choices": {"negatives": ["batch", "zeroed", "none"]},
    "variants": {
        "default": (
            "as released",
            "the scripts as they are: the corpus has 10,000 sentences",
        ),
        "paper": (
            "as printed",
            (
                "the corpus has 100,000 sentences, as the README says of the paper; a vector then"
                " takes 0.4 MB"
            ),
            {"fit_sentences": 100000},
        ),
    },
    "deviations": [
        (
            "the teacher is the public SimCSE; the script trains one. The code can also start from"
            " PromptBERT or SNCSE, which are not here"
        ),
        "the best step is the best on STS-B dev by cosine; the script takes the mean of STS-B and SICK-R dev",
        (
            "the ranked sentences are drawn by the run's seed from those that it trains on, a few-shot subset"
            " included; the code draws them from the whole corpus by a seed of their own"
        ),
        "a vector has a dimension for each ranked sentence: with BERT base and 10,000 sentences, it takes 43 KB",
        "equally similar sentences share their ranks at test, as in the code; in training, their order decides",
        "the settings are the scripts'; of the paper, only the abstract was at hand",
    ],
}


class Method(SimCSE):
    corpus: Tensor  # (C, D') the teacher's vectors of the sentences that are ranked

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.teacher = load_teacher(self.p.teacher, encoder, "rank_encoder.teacher")
        self.register_buffer("corpus", torch.empty(0), persistent=False)

    def read_corpus(self, sentences: list[str]) -> None:
        vectors = SentenceEncoder(self.teacher, "cls_before_pooler").embed(sentences)
        self.corpus = torch.from_numpy(vectors).to(self.teacher.device)

    def loss(self, views: Views) -> Tensor:
        cosines = teacher_cosines(self.teacher, views.view1.batch, self.corpus)  # (N, C)
        taught = rank_correlations(cosines)  # (N, N)
        student = cos_sim(views.z1, views.z2)  # (N, N)
        term = squared_error_within(student, taught, self.p.low, self.p.high)
        return super().loss(views) + self.p.distillation * term

    @staticmethod
    def fit(vectors: np.ndarray, params: Hyperparameters) -> CorpusRanks:
        """Fit the map that adds to a vector how it ranks the corpus, from its vectors (C, D)."""
        return CorpusRanks(unit(vectors).astype(np.float32), params.cosine_share)


# ---------------------------------------------------------------- the loss


def rank_correlations(values: Tensor) -> Tensor:
    """Compute Spearman's correlation of every two rows, (N, C) -> (N, N)."""
    ranks = values.argsort(dim=1).argsort(dim=1).to(values.dtype)  # (N, C)
    centred = ranks - ranks.mean(dim=1, keepdim=True)
    return cos_sim(centred, centred)


def squared_error_within(student: Tensor, taught: Tensor, low: float, high: float) -> Tensor:
    """Compute the mean squared error where the taught value is from `low` to `high`.

    Args:
        student, taught: (N, N).

    Returns:
        A scalar, 0 if no taught value is in the range.
    """
    is_taught = ((taught >= low) & (taught <= high)).to(student.dtype)  # (N, N)
    return ((student - taught).square() * is_taught).sum() / (is_taught.sum() + 1e-8)
