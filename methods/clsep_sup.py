"""CLSEP, supervised (SuCLSE): triplets whose word vectors are changed at random before encoding.

Idea: dropout of the embedding layer treats all words alike. Partial word vector augmentation (PWVA)
changes the vectors of some words only, each in one of four ways, so that a sentence keeps more of
what it says.

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j (exp(cos(z1_i, z2_j)/τ) + exp(cos(z1_i, z3_j)/τ)),
    mean over i
    z = head(mean over tokens of s_L/2 + s_0/2 + s_{L-1}/3),   s_l = states of layer l

Source: official code: qianandfei/CLSEP-Contrastive-Learning-of-Sentence-Embedding-with-Prompt
(folder of the supervised method) text_aug.py, modeling_bert_cl_mlm.py:64-92, 170-256,
Trainer.py:72-78, Config.py.
Inputs: N triplets; z1, z2, z3 (N, 4096) of anchor, positive and hard negative.
Relations: simcse_sup's loss. Word vectors are changed before encoding, and a sentence vector
averages three layers. It has no prompt: only the unsupervised CLSEP has one.
"""

import math

import torch
from torch import Tensor, nn

from csebench.model.encoder import Encoder
from csebench.model.pooling import Encoded, mean_pool
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce
from csebench.train.method import Method as Base
from csebench.train.method import Views

DECLARATION = {
    "name": "clsep_sup",
    "version": 1,
    "title": "CLSEP (supervised)",
    "paper": "Wang et al. 2023 (Knowledge-Based Systems 266)",
    "citation": (
        """@article{wang2023clsep, title={{CLSEP}: Contrastive learning of sentence embedding with prompt},
author={Wang, Qian and Zhang, Weiqi and Lei, Tianyi and Cao, Yu and Peng, Dezhong and Wang, Xu},
journal={Knowledge-Based Systems}, volume={266}, pages={110381}, year={2023}}"""
    ),
    "needs": "triplets; an encoder laid out like BERT",
    "refuses": {
        "queue": "its vectors come from three layers, those of a queue from the pooler's alone",
        "tokens": "its sentence vectors have 4,096 dimensions, and those of tokens have fewer",
    },
    "trains": "encoder, head",
    "kind": "supervised",
    "colours": {"": "#B5838D"},
    "params": {
        "steps": (1617, "Config.py: 3 epochs of 275,601 triplets at batch 512"),
        "batch_size": (512, "Config.py"),
        "learning_rate": (5e-5, "Config.py: lr_begin; falls as a cosine (train.py:61)"),
        "weight_decay": (0.01, "Config.py"),
        "clip": (1e9, "Trainer.py clips nothing"),
        "max_length": (42, "Config.py: enc_maxlen"),
        "evaluate_every": (100, "Config.py: val_step"),
        "pooler": ("avg", "modeling_bert_cl_mlm.py:235-237: at test; three layers in training"),
        "temperature": (0.05, "Trainer.py:77: cosines times 20"),
        "augmented": (0.6, "text_aug.py:32-41: share of the words whose vectors are changed"),
        "projector": (4096, "modeling_bert_cl_mlm.py:208: width of the head's three layers"),
    },
    "keeps": ["pooler"],  # the layers that training averages
    "search": {"augmented": (0.3, 0.6, 0.9)},
    "below": [("augmented", 1)],
    "variants": {
        "default": (
            "released, repaired",
            "the code ends in an error, because it reads `is_cnn`, which Config.py lacks: here False",
        ),
    },
    "deviations": [
        "the settings and the loss are the code's, set for BERT large; the paper was not at hand",
        (
            "the head is used in training only, as SimCSE's. The code's vector at test is the head's"
            " output (train_test_eval.py:82), but a model is exported here as an encoder and a"
            " pooler, without a head"
        ),
        (
            "a batch is padded to its longest sentence, the code's to 42 tokens: the mean that the"
            " second change of a word subtracts is over fewer vectors of padding, and the last"
            " position may be changed, too. In the code, it is the mean of a GPU's share of a batch"
        ),
        "AdamW has epsilon 1e-8; in the code 1e-6",
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        encoder.check_layers()
        encoder.model.embeddings.dropout = nn.Identity()  # changed words take its place
        width = self.p.projector
        self.head = nn.Sequential(
            nn.Linear(encoder.size, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
        )

    def views(self, triplets: list[tuple[str, str, str]]) -> Views:
        anchors, positives, negatives = map(list, zip(*triplets, strict=True))
        return Views(self.view(anchors), self.view(positives), self.view(negatives))

    def words(self, batch: dict[str, Tensor]) -> Tensor:
        return augment(self.encoder.word_vectors(batch), self.p.augmented)

    def reads(self) -> None:
        """Return None: the loss reads three layers."""

    def pool(self, encoded: Encoded) -> Tensor:
        states = encoded.output.hidden_states
        weighted = states[-1] / 2 + states[0] / 2 + states[-2] / 3  # (N, T, D)
        return mean_pool(weighted, encoded.mask)

    def loss(self, views: Views) -> Tensor:
        assert views.hard is not None
        return info_nce(views.z1, views.z2, self.p.temperature, hard=views.hard.z)

    def learning_rate_factor(self, step: int) -> float:
        """Return the factor on the learning rate: it falls to 0 as half a cosine wave."""
        return (1 + math.cos(math.pi * step / self.p.steps)) / 2


# ---------------------------------------------------------------- changed words


def augment(words: Tensor, share: float) -> Tensor:
    """Change the vectors of a random share of words, (N, T, D) -> (N, T, D). [CLS] keeps its own.

    The draws are in the order of the official code.
    """
    changed = change(words)
    kept = torch.rand(words.shape[:2], device=words.device) <= 1 - share  # (N, T)
    kept[:, 0] = True
    return torch.where(kept.unsqueeze(-1), words, changed)


def change(words: Tensor) -> Tensor:
    """Change every word vector in one of four ways, (N, T, D) -> (N, T, D).

    A fifth of the words get Gaussian noise. From another fifth, the mean of all entries is
    subtracted. Three tenths get uniform noise, and three tenths get dropout of 0.3.
    """
    noisy = add_gaussian_noise(words)
    centred = words - words.mean()  # the code's Fourier transform and its inverse cancel out
    shifted = add_uniform_noise(words)
    thinned = torch.dropout(words, 0.3, True)
    way = torch.rand(words.shape[:2], device=words.device).unsqueeze(-1)  # (N, T, 1)
    changed = torch.where(way < 0.2, noisy, centred)
    changed = torch.where(way < 0.4, changed, shifted)
    return torch.where(way < 0.7, changed, thinned)


def add_gaussian_noise(words: Tensor) -> Tensor:
    """Add noise that is 6 to 11 dB below each word vector, (N, T, D) -> (N, T, D)."""
    decibels = torch.randint(6, 12, words.shape[:2], device=words.device).unsqueeze(-1)  # (N, T, 1)
    size = words.norm(dim=-1, keepdim=True) / math.sqrt(words.shape[-1])  # root of the mean square
    return words + torch.randn_like(words) * size * 10 ** (-decibels.to(words.dtype) / 20)


def add_uniform_noise(words: Tensor) -> Tensor:
    """Add small noise to each word vector, (N, T, D) -> (N, T, D).

    The noise is uniform from the smallest entry to 0.8 times the largest. It is multiplied by a
    number up to 0.01 that is drawn once for the batch.
    """
    lowest = words.min(dim=-1, keepdim=True).values
    highest = 0.8 * words.max(dim=-1, keepdim=True).values
    noise = torch.rand_like(words) * (highest - lowest) + lowest
    return words + noise * 0.01 * torch.rand(1, device=words.device)
