"""Figures of merit of sentence vectors: Spearman of cosine, alignment, uniformity."""

from __future__ import annotations

import numpy as np

BLOCK = 1024  # rows of distances at a time


def unit(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors.astype(np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(pairs, D), (pairs, D) -> (pairs,) float32, the precision of SentEval's cosine (senteval/utils.py).

    Its rounding makes pairs of nearly equal vectors tie in a ranking. Computed in float64 and rounded once, so that
    pairs of equal vectors have exactly 1 and tie, too: in float32 throughout, their norms leave 1 or one of its
    neighbours. A vector of zeros has the cosine 0 with every other.
    """
    return (unit(left) * unit(right)).sum(1).astype(np.float32)


def spearman(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's rank correlation; NaN, which callers must refuse, where either side is constant or has one."""
    if not (np.ptp(predicted) > 0 and np.ptp(gold) > 0):
        return float("nan")
    return float(np.corrcoef(np.column_stack([ranks(predicted), ranks(gold)]), rowvar=False)[1, 0])


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1, ties by their middle. As scipy.stats.rankdata: importing that takes longer than a small evaluation."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[group]


def alignment(left: np.ndarray, right: np.ndarray) -> float:
    """Mean squared distance of positive pairs, L2-normalised (Wang & Isola 2020; SimCSE sec. 2.3)."""
    return float(np.square(unit(left) - unit(right)).sum(1).mean())


def uniformity(vectors: np.ndarray) -> float:
    """log mean exp(-2 squared distance) over all distinct pairs, L2-normalised (Wang & Isola 2020).

    In float64, on the GPU if there is one: training asks for it at every evaluation.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, total = torch.from_numpy(unit(vectors)).to(device), 0.0
    squares, n = x.square().sum(1), len(vectors)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        distances = squares[rows, None] + squares - 2 * x[rows] @ x.T
        total += float(distances.mul_(-2).exp_().sum())
    return float(np.log((total - n) / (n * (n - 1))))


def averages(values: list[float]) -> tuple[float, float]:
    """Of tasks' scores: the mean, and the mean as SimCSE prints it, of values rounded to two decimals of a percent."""
    return float(np.mean(values)), float(np.mean([round(100 * value, 2) for value in values])) / 100
