"""SentEval's classifier: a logistic regression trained by steps, stopped on a validation set. Many
at once.

SentEval makes every fit anew from one seed: the first weights are always the same, and fits on
equally many rows draw the same batches. So those fits are one batched problem: (fits, batch, D)
rows, gathered once for all regularisers, times (fits, regularisers x classes, D) weights. The
numbers are those of one fit after the other, up to the order in which a product sums.

Official code: princeton-nlp/SimCSE SentEval/senteval/tools/classifier.py:44-103 (prepare_split,
fit, trainepoch), validation.py. Its `size_average = False` has had no effect since torch 1.0: the
loss is a mean over the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

SEED = 1111
MAX_EPOCHS = 200
# torch's defaults: 1e-3 and 1e-2
OPTIMIZERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


@dataclass(frozen=True)
class Fold:
    """Row numbers that one fit trains on, and those whose accuracy stops it."""

    train: np.ndarray
    dev: np.ndarray
    drawn: int = 0  # length of a permutation that was drawn before the first epoch; 0: none


def held_out(rows: np.ndarray, share: float = 0.05) -> Fold:
    """Rows of which SentEval takes a share, drawn with its seed, for validation."""
    order = np.random.RandomState(SEED).permutation(len(rows))
    cut = int(share * len(rows))
    return Fold(rows[order[cut:]], rows[order[:cut]], drawn=len(rows))


def fit(
    x: torch.Tensor,
    y: torch.Tensor,
    classes: int,
    folds: list[Fold],
    decay: Sequence[Sequence[float]],
    settings: dict,
) -> tuple[torch.Tensor, np.ndarray]:
    """Train every fold with each of its regularisers.

    Args:
        x: (N, D) float32 features; y: (N,) class numbers; both on one device.
        decay: (folds, R) regularisers, as the optimiser's coupled weight decay.
        settings: optimizer, batch_size, tenacity, epoch_size (epochs between two looks at the
            validation set).

    Returns:
        weights (folds, R, classes, D + 1), the bias last, at the best look (the first of equals),
            and the accuracy there (folds, R).
    """
    x = with_ones(x)
    decays = torch.as_tensor(decay, dtype=x.dtype, device=x.device)
    weights, accuracy = (
        x.new_empty(len(folds), decays.shape[1], classes, x.shape[1]),
        np.empty(decays.shape),
    )
    groups = {}
    for number, fold in enumerate(folds):
        groups.setdefault((len(fold.train), fold.drawn), []).append(number)
    for members in groups.values():
        fitted = _fit_equal(x, y, classes, [folds[m] for m in members], decays[members], settings)
        weights[members], accuracy[members] = fitted
    return weights, accuracy


def with_ones(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def predict(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """(C, D + 1), (N, D) -> (N,) class numbers."""
    return (with_ones(x) @ weights.T).argmax(1)


def _fit_equal(
    x: torch.Tensor,
    y: torch.Tensor,
    classes: int,
    folds: list[Fold],
    decay: torch.Tensor,
    settings: dict,
) -> tuple[torch.Tensor, np.ndarray]:
    """`fit` for folds that draw the same batches."""
    fits, regularisers = decay.shape
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        first = torch.nn.Linear(x.shape[1] - 1, classes)
    w = torch.cat([first.weight, first.bias.unsqueeze(1)], dim=1).detach().to(x)
    w = w.repeat(fits, regularisers, 1)  # (fits, R * classes, D + 1)
    best_w, best = w.clone(), np.full((fits, regularisers), -1.0)
    misses, active = np.zeros_like(best), np.arange(fits)
    train = torch.from_numpy(np.stack([f.train for f in folds])).to(x.device)
    dev = [torch.from_numpy(f.dev).to(x.device) for f in folds]
    decay = decay.repeat_interleave(classes, dim=1).unsqueeze(2)  # (fits, R * classes, 1)
    optimizer = make_optimizer(w, settings["optimizer"])
    draw, epochs, size = np.random.RandomState(SEED), 0, train.shape[1]
    if folds[0].drawn:
        draw.permutation(folds[0].drawn)
    while len(active) and epochs <= MAX_EPOCHS:
        for _ in range(settings["epoch_size"]):
            shuffled = train[:, torch.from_numpy(draw.permutation(size)).to(x.device)]
            for rows in shuffled.split(settings["batch_size"], dim=1):
                w.grad = gradient(w, x, y, rows, classes).addcmul_(decay, w)
                optimizer.step()
        epochs += settings["epoch_size"]
        for i, a in enumerate(active):
            right = (w[i] @ x[dev[a]].T).unflatten(0, (regularisers, classes)).argmax(1) == y[
                dev[a]
            ]
            reached = right.sum(1).cpu().numpy() / right.shape[1]
            running = misses[a] <= settings["tenacity"]
            better = running & (reached > best[a])
            misses[a] += running & ~better
            best[a][better] = reached[better]
            for r in np.flatnonzero(better) * classes:
                best_w[a, r : r + classes] = w[i, r : r + classes]
        still = (misses[active] <= settings["tenacity"]).any(1)
        if not still.all():
            kept = torch.from_numpy(np.flatnonzero(still)).to(x.device)
            w, optimizer = keep(w, optimizer, kept, settings["optimizer"])
            active, train, decay = active[still], train[kept], decay[kept]
    return best_w.unflatten(1, (regularisers, classes)), best


def gradient(
    w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, classes: int
) -> torch.Tensor:
    """Of the mean cross-entropy over batches of row numbers (fits, batch), for weights (fits, R
    * classes, D + 1)."""
    batch = x.index_select(0, rows.flatten()).view(*rows.shape, -1)  # thrice as fast as x[rows]
    logits = torch.bmm(w, batch.transpose(1, 2))  # (fits, R * classes, batch): the fast order
    targets = (y[rows].unsqueeze(1) == torch.arange(classes, device=y.device).unsqueeze(1)).to(w)
    error = logits.unflatten(1, (-1, classes)).softmax(2).sub_(targets.unsqueeze(1)).flatten(1, 2)
    return torch.bmm(error.div_(rows.shape[1]), batch)


def make_optimizer(w: torch.Tensor, name: str) -> torch.optim.Optimizer:
    return OPTIMIZERS[name]([w], **({"fused": True} if name == "adam" else {}))


def keep(
    w: torch.Tensor, optimizer: torch.optim.Optimizer, index: torch.Tensor, name: str
) -> tuple[torch.Tensor, torch.optim.Optimizer]:
    """The fits of an index only, with the optimiser's state of them."""
    kept = w[index].clone()
    smaller = make_optimizer(kept, name)
    state = optimizer.state[w].items()
    smaller.state[kept] = {k: v[index].clone() if v.shape == w.shape else v for k, v in state}
    return kept, smaller
