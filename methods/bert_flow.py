"""BERT-flow: an invertible network after pooling makes the embeddings standard normal.

Idea: the embeddings of a frozen encoder fill a narrow cone, so cosines are hard to compare. A flow f
maps them one to one to a Gaussian, whose directions are all alike. It is fitted by maximum likelihood
on embeddings of sentences, without labels.

    log p(x) = log N(f(x); 0, I) + log |det ∂f/∂x|
    loss = -log p(x) / (D log 2), the bits per dimension
    f: at each of 3 levels 3 steps; between levels, one half of the dimensions is output
    step: y = (x + b) exp(3 s);  y is reversed;  (y1, y2) -> (y1, y2 + nn(y1))

Source: official code: bohanli/BERT-flow@7fa8f6d flow/glow_1x1.py:42-85, flow/glow_ops_1x1.py (TensorFlow
1). The paper was not at hand.
Inputs: embeddings (S, D) of the sentences that the flow is fitted on; D is a multiple of 2^levels.
Relations: bert plus a fitted map, as whitening, whose map is linear. The encoder is not trained.
"""

from collections.abc import Iterable
from math import log, pi

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from csebench.base.errors import BadInput
from csebench.plan.schema.declarations import Hyperparameters

DECLARATION = {
    "name": "bert_flow",
    "version": 1,
    "title": "BERT-flow",
    "kind": "fitted",
    "paper": "Li et al. 2020 (arXiv 2011.05864)",
    "citation": (
        """@inproceedings{li2020emnlp, title={On the Sentence Embeddings from Pre-trained Language Models},
author={Li, Bohan and Zhou, Hao and He, Junxian and Wang, Mingxuan and Yang, Yiming and Li, Lei}, booktitle={EMNLP},
year={2020}}"""
    ),
    "trains": "the flow; the encoder is frozen",
    "colours": {"": "#3D6B99"},
    "params": {
        "pooler": (
            "avg_first_last_2022",
            "README: avg-last-2, which is the first and the last layer (run_siamese.py:172-173)",
        ),
        "fit_sentences": (100000, "ours: sentences of the corpus it is fitted on, as whitening"),
        "epochs": (1, "README"),
        "fit_batch": (
            64,
            "run_siamese.py:97: 32 pairs of sentences; all sentences if there are fewer",
        ),
        "learning_rate": (1e-3, "README; constant (optimization_bert_flow.py:81)"),
        "weight_decay": (0.01, "optimization_bert_flow.py:82, of every weight"),
        "clip": (1.0, "optimization_bert_flow.py:92"),
        "levels": (3, "run_siamese.py:127: config_l3_d3_w32"),
        "depth": (3, "config_l3_d3_w32: steps of a level"),
        "width": (32, "config_l3_d3_w32: of the network in a coupling"),
        "initial": (
            "random",
            (
                "actnorm's, as TensorFlow's default; `data` is Glow's: a batch gets mean 0 and"
                " variance 1"
            ),
        ),
    },
    # the encoder's training has other settings of the same names
    "keeps": ["pooler", "learning_rate", "weight_decay", "clip"],
    "choices": {"initial": ["random", "data"]},
    "below": [(0, "epochs"), (0, "fit_batch"), (0, "levels"), (0, "depth"), (0, "width")],
    "variants": {
        "default": (
            "as released",
            "averages the first and the last layer; actnorm starts from random values",
        ),
        "last_two": (
            "released, repaired",
            (
                "averages the last two layers, as the setting avg-last-2 is called; the code takes"
                " layer -0 for one of them"
            ),
            {"pooler": "avg_top2"},
        ),
        "data": (
            "released, repaired",
            (
                "actnorm starts from the statistics of a batch; the code has this start, but never"
                " registers the hook that runs it (glow_init_hook.py)"
            ),
            {"initial": "data"},
        ),
    },
    "deviations": [
        (
            "the printed rows were fitted on the sentences of the STS sets, test sentences included,"
            " or on NLI (README, `use_full_for_training`); here on the scale's corpus"
        ),
        (
            "the code fits to embeddings with BERT's dropout, and embeds without; here both are"
            " without"
        ),
        (
            "the code cuts sentences to 64 tokens; here they are fitted and embedded at the"
            " encoder's length"
        ),
        "a batch is 64 sentences of the corpus, where the code has both sides of 32 pairs",
    ],
}

LOGSCALE = 3.0  # factor of learned logarithms of scales (glow_ops_1x1.py:92)


def bits_per_dimension(z: Tensor, log_det: Tensor) -> Tensor:
    """Compute -log p(x) / (D log 2) of latent vectors, (N, D) -> (N,).

    Args:
        z: f(x).
        log_det: log |det ∂f/∂x|, which is the same for every x, because only actnorm scales.
    """
    size = z.shape[1]
    log_normal = -(z.square().sum(1) + size * log(2 * pi)) / 2  # (N,)
    return -(log_normal + log_det) / (size * log(2))


class ActNorm(nn.Module):
    """A shift and a scale of each dimension: (x + b) exp(3 s)."""

    def __init__(self, size: int):
        super().__init__()
        self.center = nn.Parameter(torch.empty(1, size))
        self.log_scale = nn.Parameter(torch.empty(1, size))

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.center) * (LOGSCALE * self.log_scale).exp()

    def log_det(self) -> Tensor:
        return LOGSCALE * self.log_scale.sum()

    def initialise(self) -> None:
        nn.init.xavier_uniform_(self.center)
        nn.init.xavier_uniform_(self.log_scale)

    @torch.no_grad()
    def standardise(self, x: Tensor) -> None:
        """Give the outputs of a batch mean 0 and variance 1 in each dimension."""
        self.center.copy_(-x.mean(0, keepdim=True))
        deviation = (x + self.center).square().mean(0, keepdim=True).sqrt()
        self.log_scale.copy_(-(deviation + 1e-6).log() / LOGSCALE)


class Coupling(nn.Module):
    """Additive coupling: (y1, y2) -> (y1, y2 + nn(y1)). Its determinant is 1."""

    def __init__(self, size: int, width: int):
        super().__init__()
        half = size // 2
        self.first = nn.Parameter(torch.empty(half, width))
        self.first_norm = ActNorm(width)
        self.second = nn.Parameter(torch.empty(width, width))
        self.second_norm = ActNorm(width)
        self.last = nn.Parameter(torch.empty(width, half))
        self.last_bias = nn.Parameter(torch.empty(half))
        self.last_log_scale = nn.Parameter(torch.empty(half))

    def forward(self, y: Tensor) -> Tensor:
        y1, y2 = y.chunk(2, dim=1)
        hidden = self.first_norm(y1 @ self.first).relu()
        hidden = self.second_norm(hidden @ self.second).relu()
        shift = (hidden @ self.last + self.last_bias) * (LOGSCALE * self.last_log_scale).exp()
        return torch.cat([y1, y2 + shift], dim=1)

    def initialise(self) -> None:
        """Draw the first two layers; the last one starts with the shift 0."""
        nn.init.normal_(self.first, std=0.05)
        nn.init.normal_(self.second, std=0.05)
        for weight in (self.last, self.last_bias, self.last_log_scale):
            nn.init.zeros_(weight)


class Step(nn.Module):
    """A step of the flow: actnorm, reversed order of the dimensions, coupling."""

    def __init__(self, size: int, width: int):
        super().__init__()
        self.actnorm = ActNorm(size)
        self.coupling = Coupling(size, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output (N, D) and the log-determinant. Only actnorm changes volumes."""
        return self.coupling(self.actnorm(x).flip(1)), self.actnorm.log_det()


class Glow(nn.Module):
    """The flow f. A level has half as many dimensions as the level before it.

    Its weights are not initialised: they are drawn by `initialise`, or loaded.
    """

    def __init__(self, size: int, levels: int, depth: int, width: int):
        super().__init__()
        self.levels = nn.ModuleList()
        for level in range(levels):
            steps = [Step(size // 2**level, width) for _ in range(depth)]
            self.levels.append(nn.ModuleList(steps))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map embeddings to latent vectors: (N, D) -> (N, D) and log |det ∂f/∂x|, a scalar."""
        outputs = []
        log_det = x.new_zeros(())
        for level, steps in enumerate(self.levels):
            if level > 0:
                x, output = x.chunk(2, dim=1)
                outputs.append(output)
            for step in steps.children():
                x, step_log_det = step(x)
                log_det = log_det + step_log_det
        return torch.cat([*outputs, x], dim=1), log_det

    def initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, ActNorm | Coupling):
                module.initialise()

    def start_from_data(self, x: Tensor) -> None:
        """Let every actnorm give outputs of mean 0 and variance 1 for a batch (N, D)."""

        def standardise(norm: ActNorm, inputs: tuple[Tensor]) -> None:
            norm.standardise(*inputs)

        norms = [module for module in self.modules() if isinstance(module, ActNorm)]
        hooks = [norm.register_forward_pre_hook(standardise) for norm in norms]
        with torch.no_grad():
            self(x)
        for hook in hooks:
            hook.remove()


class BertAdam:
    """BERT's Adam: its moments are not corrected for their start at 0, and weights decay apart.

    See optimization_bert_flow.py:107-177.
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float, weight_decay: float):
        self.weights = [*weights]
        self.means = [torch.zeros_like(weight) for weight in self.weights]
        self.squares = [torch.zeros_like(weight) for weight in self.weights]
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights by their gradients."""
        for weight, mean, square in zip(self.weights, self.means, self.squares, strict=True):
            assert weight.grad is not None
            mean.mul_(0.9).add_(0.1 * weight.grad)
            square.mul_(0.999).add_(0.001 * weight.grad.square())
            update = mean / (square.sqrt() + 1e-6) + self.weight_decay * weight
            weight.sub_(self.learning_rate * update)
            weight.grad = None


def maximise_likelihood(flow: Glow, batches: Iterable[Tensor], params: Hyperparameters) -> None:
    """Train a flow, with a step for each batch (N, D)."""
    optimizer = BertAdam(flow.parameters(), params.learning_rate, params.weight_decay)
    for batch in batches:
        loss = (
            2 * bits_per_dimension(*flow(batch)).mean()
        )  # the code adds the losses of the two sides of its pairs
        loss.backward()
        clip_grad_norm_(flow.parameters(), params.clip)
        optimizer.step()


class Method:
    @staticmethod
    def fit(vectors: np.ndarray, params: Hyperparameters) -> dict[str, np.ndarray]:
        """Fit the flow to embeddings (S, D), and return its weights by name.

        An epoch leaves out the sentences that do not fill a batch.

        Raises:
            BadInput: D cannot be halved once for each level.
        """
        count, size = vectors.shape
        if size % 2**params.levels:
            raise BadInput(
                f"bert_flow.levels: {size} dimensions cannot be halved {params.levels} times; use"
                " fewer levels."
            )
        x = torch.from_numpy(vectors)
        batch_size = min(params.fit_batch, count)
        batches = []
        for _ in range(params.epochs):
            order = torch.randperm(count)
            batches += [rows for rows in order.split(batch_size) if len(rows) == batch_size]

        flow = Glow(size, params.levels, params.depth, params.width)
        flow.initialise()
        if params.initial == "data":
            flow.start_from_data(x[batches[0]])
        maximise_likelihood(flow, (x[rows] for rows in batches), params)
        return {name: weight.numpy() for name, weight in flow.state_dict().items()}

    @staticmethod
    def apply(vectors: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Map embeddings to latent vectors, (N, D) -> (N, D).

        Args:
            arrays: the weights that `fit` returned, which also tell the size of the flow.
        """
        positions = [name.split(".") for name in arrays]  # levels, LEVEL, STEP, …
        flow = Glow(
            size=vectors.shape[1],
            levels=1 + max(int(position[1]) for position in positions),
            depth=1 + max(int(position[2]) for position in positions),
            width=len(arrays["levels.0.0.coupling.second"]),
        )
        flow.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        with torch.inference_mode():
            z, _ = flow(torch.from_numpy(vectors))
        return z.numpy()
