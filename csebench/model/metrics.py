"""Figures of merit of sentence vectors: Spearman of cosine, alignment, uniformity; of arrays, or
of tensors where they are, those of the host as arrays."""

import numpy as np

ROWS_PER_BLOCK = 1024  # rows of distances at a time


def unit(vectors):
    """(N, D) -> (N, D) float64 of length 1."""
    if getattr(vectors, "is_cpu", False):
        vectors = vectors.numpy()
    vectors = vectors.astype(np.float64) if isinstance(vectors, np.ndarray) else vectors.double()
    return vectors / ((vectors * vectors).sum(1) ** 0.5).clip(1e-12)[:, None]


def cosine(left, right) -> np.ndarray:
    """(pairs, D), (pairs, D) -> (pairs,) float32, the precision of SentEval's cosine
    (senteval/utils.py).

    Its rounding makes pairs of nearly equal vectors tie in a ranking. Computed in float64 and
    rounded once, so that pairs of equal vectors have exactly 1 and tie, too: in float32 throughout,
    their norms leave 1 or one of its neighbours. A vector of zeros has the cosine 0 with every
    other.
    """
    cosines = (unit(left) * unit(right)).sum(1)
    return (cosines if isinstance(cosines, np.ndarray) else cosines.cpu().numpy()).astype(
        np.float32
    )


def spearman(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's rank correlation; NaN, which callers must refuse, where either side is constant
    or has one."""
    if not (np.ptp(predicted) > 0 and np.ptp(gold) > 0):
        return float("nan")
    return float(np.corrcoef(np.column_stack([ranks(predicted), ranks(gold)]), rowvar=False)[1, 0])


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1, ties by their middle. As scipy.stats.rankdata: importing that takes longer than a
    small evaluation."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[group]


def alignment(left, right) -> float:
    """Mean squared distance of positive pairs, L2-normalised (Wang & Isola 2020; SimCSE sec.
    2.3)."""
    return float(((unit(left) - unit(right)) ** 2).sum(1).mean())


def uniformity(vectors) -> float:
    """log mean exp(-2 squared distance) over all distinct pairs, L2-normalised (Wang & Isola 2020).

    In float64, on the GPU if there is one: training asks for it at every evaluation. NaN of one
    vector.
    """
    import torch

    x, total = torch.as_tensor(unit(vectors)), 0.0
    x = x.cuda() if torch.cuda.is_available() else x
    squares, n = x.square().sum(1), len(vectors)
    for start in range(0, n, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        distances = squares[rows, None] + squares - 2 * x[rows] @ x.T
        total = total + distances.mul_(-2).exp_().sum()
    return float(np.log((float(total) - n) / (n * (n - 1)))) if n > 1 else float("nan")


def mean_scores(values: list[float]) -> tuple[float, float]:
    """Of tasks' scores: the mean, and the mean as SimCSE prints it, of values rounded to two
    decimals of a percent."""
    return float(np.mean(values)), float(np.mean([round(100 * value, 2) for value in values])) / 100
