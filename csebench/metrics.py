"""Figures of merit of sentence vectors: Spearman of cosine, alignment, uniformity."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr


def unit(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors.astype(np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(pairs, D), (pairs, D) -> (pairs,) in float64."""
    return (unit(left) * unit(right)).sum(1)


def spearman(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's rank correlation; NaN, which callers must refuse, where either side is constant."""
    return float(spearmanr(predicted, gold).statistic)


def alignment(left: np.ndarray, right: np.ndarray) -> float:
    """Mean squared distance of positive pairs, L2-normalised (Wang & Isola 2020; SimCSE sec. 2.3)."""
    return float(np.square(unit(left) - unit(right)).sum(1).mean())


def uniformity(vectors: np.ndarray) -> float:
    """log mean exp(-2 squared distance) over all distinct pairs, L2-normalised (Wang & Isola 2020)."""
    return float(np.log(np.exp(-2 * pdist(unit(vectors), "sqeuclidean")).mean()))


def averages(values: list[float]) -> tuple[float, float]:
    """Of tasks' scores: the mean, and the mean as SimCSE prints it, of values rounded to two decimals of a percent."""
    return float(np.mean(values)), float(np.mean([round(100 * value, 2) for value in values])) / 100
