"""SentEval's classifier: a logistic regression, trained in steps and stopped on a validation set.

Many fits are trained at once. SentEval starts every fit from the same seed: the first weights are
always the same, and fits on equally many rows draw the same batches. So these fits are one batched
problem: (fits, batch, D) rows, gathered once for all regularisers, times (fits, regularisers x
classes, D) weights. The results are those of separate fits, except that products are summed in
another order.

Official code: princeton-nlp/SimCSE SentEval/senteval/tools/classifier.py:44-103 (prepare_split,
fit, trainepoch), validation.py. Since torch 1.0 its `size_average = False` has no effect: the loss
is a mean over the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

SEED = 1111
MAX_EPOCHS = 200


@dataclass(frozen=True)
class Fold:
    """The rows of one fit."""

    train: np.ndarray  # row numbers
    dev: np.ndarray  # row numbers; the accuracy on them stops the fit
    # length of the permutation that SentEval draws before the first epoch, to split rows; 0: none
    drawn: int = 0


def held_out(rows: np.ndarray, share: float = 0.05) -> Fold:
    """Set a share of rows aside for validation, drawn with SentEval's seed."""
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
        x: (N, D) float32 features.
        y: (N,) class numbers, on the same device.
        decay: (folds, R) regularisers, as the optimiser's coupled weight decay.
        settings: optimizer, batch_size, tenacity, epoch_size (epochs between two looks at the
            validation set).

    Returns:
        (folds, R, classes, D + 1) weights, with the bias last, at the look with the best accuracy.
        If several looks are equally good, the first one counts. Then the accuracy at that look,
        (folds, R).
    """
    x = with_ones(x)
    decays = torch.as_tensor(decay, dtype=x.dtype, device=x.device)
    weights = x.new_empty(len(folds), decays.shape[1], classes, x.shape[1])
    accuracy = np.empty(decays.shape)
    for members in folds_with_equal_batches(folds):
        of_group = [folds[number] for number in members]
        fitted = fit_together(x, y, classes, of_group, decays[members], settings)
        weights[members], accuracy[members] = fitted
    return weights, accuracy


def folds_with_equal_batches(folds: list[Fold]) -> list[list[int]]:
    """Group the numbers of folds that draw the same batches from their rows."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, fold in enumerate(folds):
        groups.setdefault((len(fold.train), fold.drawn), []).append(number)
    return list(groups.values())


def with_ones(x: torch.Tensor) -> torch.Tensor:
    """Append a column of ones, whose weight is the bias."""
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def predict(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Classify: (C, D + 1) weights, (N, D) features -> (N,) class numbers."""
    return (with_ones(x) @ weights.T).argmax(1)


def fit_together(
    x: torch.Tensor,
    y: torch.Tensor,
    classes: int,
    folds: list[Fold],
    decay: torch.Tensor,
    settings: dict,
) -> tuple[torch.Tensor, np.ndarray]:
    """Train folds that draw the same batches. Arguments and results are those of `fit`, except:

    Args:
        x: (N, D + 1) features with a column of ones.
        decay: (fits, R).
    """
    fits, regularisers = decay.shape
    tenacity = settings["tenacity"]
    train = torch.from_numpy(np.stack([fold.train for fold in folds])).to(x.device)
    dev = [torch.from_numpy(fold.dev).to(x.device) for fold in folds]
    decay = decay.repeat_interleave(classes, dim=1).unsqueeze(2)  # (fits, R * classes, 1)
    w = first_weights(x, classes).repeat(fits, regularisers, 1)  # (fits, R * classes, D + 1)
    optimizer = make_optimizer(w, settings["optimizer"])
    draw = np.random.RandomState(SEED)
    if folds[0].drawn:
        draw.permutation(folds[0].drawn)

    best_w = w.clone()
    best = np.full((fits, regularisers), -1.0)  # accuracy
    misses = np.zeros_like(best)  # looks without a gain
    # A fit that has stopped is removed from w, train and decay. `active` has the numbers of the
    # fits that still run.
    active = np.arange(fits)
    epochs = 0
    while len(active) and epochs <= MAX_EPOCHS:
        # train until the next look
        for _ in range(settings["epoch_size"]):
            order = torch.from_numpy(draw.permutation(train.shape[1])).to(x.device)
            for rows in train[:, order].split(settings["batch_size"], dim=1):
                w.grad = gradient(w, x, y, rows, classes).addcmul_(decay, w)
                optimizer.step()
        epochs += settings["epoch_size"]

        # look at the validation sets
        for i, number in enumerate(active):
            rows = dev[number]
            predicted = (w[i] @ x[rows].T).unflatten(0, (regularisers, classes)).argmax(1)
            right = predicted == y[rows]  # (R, rows)
            reached = right.sum(1).cpu().numpy() / right.shape[1]
            is_running = misses[number] <= tenacity
            is_better = is_running & (reached > best[number])
            misses[number] += is_running & ~is_better
            best[number][is_better] = reached[is_better]
            for first in np.flatnonzero(is_better) * classes:
                best_w[number, first : first + classes] = w[i, first : first + classes]

        # drop the fits that have stopped for all their regularisers
        runs_on = (misses[active] <= tenacity).any(1)
        if not runs_on.all():
            kept = torch.from_numpy(np.flatnonzero(runs_on)).to(x.device)
            w, optimizer = keep(w, optimizer, kept, settings["optimizer"])
            active = active[runs_on]
            train = train[kept]
            decay = decay[kept]
    return best_w.unflatten(1, (regularisers, classes)), best


def first_weights(x: torch.Tensor, classes: int) -> torch.Tensor:
    """Draw the weights that every fit starts from: (classes, D + 1), the bias last."""
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        layer = torch.nn.Linear(x.shape[1] - 1, classes)
    return torch.cat([layer.weight, layer.bias.unsqueeze(1)], dim=1).detach().to(x)


def gradient(
    w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, classes: int
) -> torch.Tensor:
    """Compute the gradient of the mean cross-entropy over a batch.

    Args:
        w: (fits, R * classes, D + 1) weights.
        rows: (fits, batch) row numbers.
    """
    batch = x.index_select(0, rows.flatten()).view(*rows.shape, -1)  # thrice as fast as x[rows]
    logits = torch.bmm(w, batch.transpose(1, 2))  # (fits, R * classes, batch): the fast order
    class_numbers = torch.arange(classes, device=y.device).unsqueeze(1)
    targets = (y[rows].unsqueeze(1) == class_numbers).to(w)
    probabilities = logits.unflatten(1, (-1, classes)).softmax(2)
    error = probabilities.sub_(targets.unsqueeze(1)).flatten(1, 2)
    return torch.bmm(error.div_(rows.shape[1]), batch)


def make_optimizer(w: torch.Tensor, name: str) -> torch.optim.Optimizer:
    """Make an optimiser with torch's default learning rate."""
    match name:
        case "adam":
            return torch.optim.Adam([w], fused=True)  # 1e-3
        case "rmsprop":
            return torch.optim.RMSprop([w])  # 1e-2
    raise ValueError(f"no optimiser {name!r}")


def keep(
    w: torch.Tensor, optimizer: torch.optim.Optimizer, index: torch.Tensor, name: str
) -> tuple[torch.Tensor, torch.optim.Optimizer]:
    """Keep only the fits of an index: their weights, and the optimiser's state of them."""
    kept = w[index].clone()
    smaller = make_optimizer(kept, name)
    state = {}
    for key, value in optimizer.state[w].items():
        is_per_fit = value.shape == w.shape  # a count of steps is not
        state[key] = value[index].clone() if is_per_fit else value
    smaller.state[kept] = state
    return kept, smaller
