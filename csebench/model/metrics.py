"""Measures of sentence vectors: Spearman of cosine, alignment and uniformity.

Vectors are arrays or tensors. Tensors on a GPU stay there, and tensors of the host become arrays.
"""

import numpy as np

ROWS_PER_BLOCK = 1024  # rows of distances at a time


def unit(vectors):
    """Scale vectors to length 1, (N, D) -> (N, D) float64."""
    if getattr(vectors, "is_cpu", False):
        vectors = vectors.numpy()
    if isinstance(vectors, np.ndarray):
        vectors = vectors.astype(np.float64)
    else:
        vectors = vectors.double()
    return vectors / ((vectors * vectors).sum(1) ** 0.5).clip(1e-12)[:, None]


def cosine(left, right) -> np.ndarray:
    """Compute the cosines of pairs, (pairs, D), (pairs, D) -> (pairs,) float32.

    float32 is the precision of SentEval's cosine (senteval/utils.py). Rounding to float32 makes
    pairs of nearly equal vectors tie in a ranking. Pairs of equal vectors should tie with each
    other, too. So cosines are computed in float64 and rounded once, which gives exactly 1 for equal
    vectors. If norms were in float32, their rounding would give 1 or a number next to it. A vector
    of zeros has the cosine 0 with every vector.
    """
    cosines = (unit(left) * unit(right)).sum(1)
    if not isinstance(cosines, np.ndarray):
        cosines = cosines.cpu().numpy()
    return cosines.astype(np.float32)


def spearman(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Compute Spearman's rank correlation.

    Returns:
        The correlation, or NaN if one of the arrays is constant or has a NaN. Callers must check
        for NaN.
    """
    if not (np.ptp(predicted) > 0 and np.ptp(gold) > 0):  # not `<=`: a comparison with NaN is false
        return float("nan")
    columns = np.column_stack([ranks(predicted), ranks(gold)])
    return float(np.corrcoef(columns, rowvar=False)[1, 0])


def ranks(values: np.ndarray) -> np.ndarray:
    """Rank values from 1. Equal values all get the mean of their ranks.

    scipy.stats.rankdata gives the same, but importing scipy takes longer than a small evaluation.
    """
    # Equal values are a group. The last rank of a group is the sum of the sizes up to it.
    _, group_of_value, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group_of_value]


def alignment(left, right) -> float:
    """Compute the mean squared distance of positive pairs, L2-normalised.

    Wang & Isola 2020; SimCSE sec. 2.3.
    """
    return float(((unit(left) - unit(right)) ** 2).sum(1).mean())


def uniformity(vectors) -> float:
    """Compute log mean exp(-2 squared distance) over all distinct pairs, L2-normalised.

    Wang & Isola 2020. Training computes it at every evaluation, so a GPU is used if there is one.
    It is computed in float64.

    Returns:
        The value, or NaN for a single vector.
    """
    import torch  # here, because csebench/model/embedder.py imports this module without torch

    n = len(vectors)
    if n <= 1:
        return float("nan")
    x = torch.as_tensor(unit(vectors))  # (N, D)
    if torch.cuda.is_available():
        x = x.cuda()
    squares = x.square().sum(1)  # (N,)
    total = 0.0
    for start in range(0, n, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        distances = squares[rows, None] + squares - 2 * x[rows] @ x.T  # (ROWS_PER_BLOCK, N)
        total = total + distances.mul_(-2).exp_().sum()
    # each of the n vectors has added exp(0) = 1 for the distance to itself
    return float(np.log((float(total) - n) / (n * (n - 1))))


def mean_scores(values: list[float]) -> tuple[float, float]:
    """Average the scores of tasks.

    Returns:
        The mean, and the mean as SimCSE prints it. SimCSE first rounds each score to two decimals
        of a percent.
    """
    mean = float(np.mean(values))
    mean_of_rounded = float(np.mean([round(100 * value, 2) for value in values])) / 100
    return mean, mean_of_rounded
