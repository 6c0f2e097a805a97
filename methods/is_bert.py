"""IS-BERT: a sentence vector shares information with the n-grams of its sentence.

Idea: n-gram features of the token states are local views of a sentence, and their mean is a global
view. A discriminator should tell an n-gram of the sentence from those of other sentences. Its dot
products estimate the mutual information between both views, by the Jensen-Shannon divergence.

    loss = mean over own n-grams of sp(-c_it·g_i) + mean over others of sp(c_it·g_j) - 2 log 2
    c_i = CNN(states of sentence i),  g_i = mean over t of c_it,  sp(x) = log(1 + exp x)

Source: official code: yanzhangnlp/IS-BERT sentence_transformers/losses/MutualInformationLoss.py:
56-90, 118-193, models/CNN.py:17-42, examples/training/nli/unsupervised_training_nli.py. The paper
was not at hand.
Inputs: a batch of N sentences; z1 (N, D) = g; z2 (N, max_length, D) = c, 0 behind a sentence. The
scored vector is g, too: the CNN is a feature layer of the encoder.
Relations: the loss is ct's, binary cross-entropy on dot products, between n-grams and sentences
instead of sentences of two encoders.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from csebench.model.layers import to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel
from csebench.train.losses import dot_score, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import View, Views

WIDTHS = (1, 3, 5)  # tokens of an n-gram (CNN.py:17)

DECLARATION = {
    "name": "is_bert",
    "version": 2,
    "title": "Info-Sentence BERT",
    "paper": "Zhang et al. 2020 (EMNLP)",
    "citation": (
        """@inproceedings{zhang2020unsupervised, title={An Unsupervised Sentence Embedding Method by Mutual
Information Maximization}, author={Zhang, Yan and He, Ruidan and Liu, Zuozhu and Lim, Kwan Hui and Bing, Lidong},
booktitle={EMNLP}, year={2020}}"""
    ),
    "refuses": {
        "queue": "its loss compares n-grams with sentences of the batch, and reads no others",
        "attention": "it encodes a sentence once, and attention is compared between two views",
        "tokens": "it encodes a sentence once, and has its own loss over tokens",
    },
    "trains": "encoder, CNN",
    "colours": {"": "#4E8F86"},
    "params": {
        "steps": (
            31250,
            (
                "unsupervised_training_nli.py:90: 1 epoch, here of 10^6 sentences at batch 32; how"
                " many NLI sentences the code trains on is not known here"
            ),
        ),
        "batch_size": (32, "unsupervised_training_nli.py:38"),
        "learning_rate": (2e-6, "SentenceTransformer.py:460, default of fit"),
        "warmup_steps": (3125, "unsupervised_training_nli.py:92: 10 % of the steps"),
        "weight_decay": (0.01, "SentenceTransformer.py:461, default of fit"),
        "max_length": (131, "Transformer.py:19, 74: 128 tokens, and 3 for special tokens"),
        "evaluate_every": (1000, "unsupervised_training_nli.py:101"),
        "pooler": ("avg", "unsupervised_training_nli.py:50-53, of the CNN's features"),
        "channels": (256, "CNN.py:17: features of each of the n-gram widths 1, 3 and 5"),
    },
    # dot products without temperature; the mean that the loss is about
    "keeps": ["learning_rate", "pooler"],
    "search": {"learning_rate": (2e-6, 1e-5, 5e-5)},
    "variants": {
        "default": (
            "released, repaired",
            (
                "the CNN reads 0 behind a sentence; in the code it reads the states of padding, so"
                " that a vector depends on the longest sentence of its batch"
            ),
        ),
    },
    "deviations": [
        (
            "the paper was not at hand: settings and loss are the code's, and the paper's equations"
            " are not compared with it. The code's CNN has no activation function"
        ),
        (
            "the code trains on sentences of NLI, without their labels; here on the scale's corpus,"
            " as every method"
        ),
        (
            "AdamW with correction of the bias and epsilon 1e-8; the code has no correction and"
            " epsilon 1e-7"
        ),
    ],
}


class NGrams(nn.Module):
    """The CNN: features of the n-grams around every token, (N, T, H), (N, T) -> (N, T, D).

    Args:
        size: H, the width of token states.
        channels: number of features of each width of an n-gram.
    """

    def __init__(self, size: int, channels: int):
        super().__init__()
        self.convolutions = nn.ModuleList()
        for width in WIDTHS:
            self.convolutions.append(nn.Conv1d(size, channels, width, padding=width // 2))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        return n_grams(states, mask, self.convolutions)


class Method(Base):
    @staticmethod
    def feature_layer(size: int, params: Hyperparameters) -> nn.Module:
        return NGrams(size, params.channels)

    def views(self, sentences: list[str]) -> Views:
        """Return the vectors of the sentences, and the features of their n-grams.

        The features are padded to `max_length`, so that several processes can share them.
        """
        batch = self.tokenize(sentences)
        encoded = self.encoder(batch, self.p.pooler)
        vectors = self.pool(encoded)  # (N, D)
        features = encoded.features  # (N, T, D)
        # negative if a GPU pads the batch to a multiple of 8: then only padding is cut off
        missing = self.p.max_length - features.shape[1]
        summary = View(vectors, vectors, batch)
        local = View(pad(features, (0, 0, 0, missing)), vectors, batch)
        return Views(summary, local)

    def loss(self, views: Views) -> Tensor:
        lengths = to_device(views.view1.mask.sum(1), views.z1.device)
        lengths = parallel.gather(lengths)  # (N,)
        positions = torch.arange(views.z2.shape[1], device=views.z1.device)
        return jensen_shannon(views.z2, views.z1, positions < lengths.unsqueeze(1))


def n_grams(states: Tensor, mask: Tensor, convolutions: Iterable[nn.Module]) -> Tensor:
    """Compute the features of the n-grams around every token (CNN.py:34-42).

    Args:
        states: (N, T, H).
        mask: (N, T), True at real tokens. The others are read as 0.
        convolutions: one for each width of an n-gram, from H to C channels.

    Returns:
        (N, T, D), D = C times the number of widths.
    """
    real_states = (states * mask.unsqueeze(-1)).transpose(1, 2)  # (N, H, T)
    by_width = [convolution(real_states) for convolution in convolutions]  # (N, C, T) each
    return upcast_fp32(torch.cat(by_width, dim=1).transpose(1, 2))


def jensen_shannon(local: Tensor, summary: Tensor, real: Tensor) -> Tensor:
    """Estimate the negative mutual information of n-grams and sentences, by Jensen-Shannon.

    MutualInformationLoss.py:69-90, 118-193, measure JSD. It is 0 if the discriminator, a dot
    product, tells nothing apart.

    Args:
        local: (N, T, D) features of n-grams.
        summary: (N, D) vectors of sentences.
        real: (N, T) bool, n-grams that count.
    """
    n = len(summary)
    scores = dot_score(local.flatten(0, 1), summary).unflatten(0, (n, -1))  # (N, T, N)
    own = torch.eye(n, dtype=torch.bool, device=scores.device).unsqueeze(1)  # (N, 1, N)
    counts = real.unsqueeze(-1)  # (N, T, 1)
    tokens = real.sum()
    own_term = (softplus(-scores) * (counts & own)).sum() / tokens
    others_term = (softplus(scores) * (counts & ~own)).sum() / (tokens * (n - 1))
    return own_term + others_term - 2 * math.log(2)
