"""Losses that methods share, as small pure functions.

A loss of only one method is in the file of that method. MSSE's two terms are the exception.

Shapes: N sentences of a batch, D dimensions, Q queue entries, R attention slices, P positions in a
slice, S sampled positions.
"""

import torch
import torch.nn.functional as F


def upcast_fp32(x):
    """Convert half precision, the result of autocast, to fp32. Keep wider types as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dot_score(a, b):
    """Compute dot products, (N, D), (M, D) -> (N, M).

    They are in fp32 even under autocast, because dividing by a temperature magnifies rounding.
    """
    with torch.autocast(a.device.type, enabled=False):
        return upcast_fp32(a) @ upcast_fp32(b).T


def cos_sim(a, b):
    """Compute cosine similarities, (N, D), (M, D) -> (N, M), in fp32 even under autocast."""
    a = F.normalize(upcast_fp32(a), dim=-1)
    b = F.normalize(upcast_fp32(b), dim=-1)
    return dot_score(a, b)


def info_nce(z1, z2, temperature, queue=None, in_batch_negatives=True, hard=None, hard_weight=0.0):
    """Compute the cross-entropy with target i over cos(z1_i, z2_j)/temperature.

    The loss has one direction, from z1 to z2, and is a mean over the batch. It is Eq. 1 of SimCSE,
    with hard negatives Eq. 5 (simcse/models.py:194-212), and Eq. 2 of miCSE.

    Args:
        z1, z2: (N, D) embeddings of the two views.
        queue: (Q, D) further negatives, appended to the columns without gradient (ESimCSE
            models.py:244-248).
        in_batch_negatives: False sets the off-diagonal logits to 0, as miCSE's `diag_only` does
            (models.py:320-321). They still count in the denominator.
        hard: (N, D) hard negatives. Each of them is a negative of every row.
        hard_weight: added to the logit of a row's own hard negative (the paper's log α).
    """
    logits = cos_sim(z1, z2) / temperature  # (N, N)
    if not in_batch_negatives:
        logits = torch.diag_embed(logits.diagonal())
    if hard is not None:
        weight = hard_weight * torch.eye(len(z1), device=z1.device)  # (N, N)
        logits = torch.cat([logits, cos_sim(z1, hard) / temperature + weight], dim=1)  # (N, 2N)
    if queue is not None:
        queue_logits = cos_sim(z1, queue.detach()) / temperature  # (N, Q)
        logits = torch.cat([logits, queue_logits], dim=1)  # (N, N + Q), with `hard` (N, 2N + Q)
    targets = torch.arange(len(z1), device=z1.device)  # (N,)
    return F.cross_entropy(logits, targets)


def off_diagonal(square):
    """Drop the diagonal, (N, N) -> (N, N-1): each row loses its own column."""
    n = len(square)
    # In the flat square, diagonal entries are N+1 apart. So in rows of N+1 that start after the
    # first one, they are the last column.
    return square.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)


# ---------------------------------------------------------------- correlations between dimensions


def cross_correlation(a, b, eps, unbiased=False):
    """Correlate the dimensions of two views over the batch, (N, D), (N, D) -> (D, D).

    Args:
        eps: added to the variance, or if `unbiased` to the deviation.
        unbiased: standardise by the deviation with N - 1 instead of N.
    """
    a = upcast_fp32(a)
    b = upcast_fp32(b)
    with torch.autocast(a.device.type, enabled=False):
        a = _standardise_columns(a, eps, unbiased)
        b = _standardise_columns(b, eps, unbiased)
        return a.T @ b / len(a)


def _standardise_columns(x, eps, unbiased):
    """Give each column mean 0 and deviation 1, (N, D) -> (N, D). See `cross_correlation`."""
    if unbiased:
        return (x - x.mean(0)) / (x.std(0) + eps)
    return (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt()


def dimension_contrast(a, b, form="paper"):
    """Compute MSSE's dimension-level term (DCM).

    Each dimension should agree with itself in the other view, and with no other dimension.

    Args:
        a, b: (N, D).
        form: `paper` sums (C - I)² over D² entries. C has the cosines of columns, which are not
            centred (Eq. 3-4). `code` is 2 mean (C_ii - 1)² + 0.05 mean C_ij² of standardised
            columns (model.py:88-104). With `code`, a perfect match has C_ii = (N-1)/N, because the
            deviation is the unbiased one.
    """
    if form == "code":
        c = cross_correlation(a, b, eps=1e-6, unbiased=True)  # (D, D)
        agreement = 2 * (c.diagonal() - 1).square().mean()
        redundancy = 0.05 * off_diagonal(c).square().mean()
        return agreement + redundancy
    c = cos_sim(a.T, b.T)  # (D, D)
    return (c - torch.eye(len(c), device=c.device)).square().sum()


def layerwise_repulsion(states, noise):
    """Compute a term of MSSE's code that its paper does not have (model.py:51-85, 270-273).

    Each third of the layers has the term -mean_i log Σ_j exp(-‖μ_i + noise_i - μ_j‖²/20), where μ
    is the mean of its [CLS] states. The terms are summed with the weights 0.25, 0.5 and 1. The sum
    is large if sentences are far apart.

    Args:
        states: list of (N, D): the embedding output and the output of every layer, at position 0.
        noise: (3, N, D).
    """
    stack = torch.stack([upcast_fp32(state) for state in states])  # (layers + 1, N, D)
    total = 0.0
    for weight, third, drawn in zip((0.25, 0.5, 1.0), thirds(len(states)), noise, strict=True):
        mean = stack[third].mean(0)  # (N, D)
        distance = (mean + drawn).unsqueeze(1).sub(mean).square().sum(-1)  # (N, N)
        total = total - weight * torch.logsumexp(-distance / 20, dim=1).mean()
    return total


def thirds(count):
    """Divide `count` hidden states into three slices. The first state is the embedding output.

    13 states become 0-3, 4-7 and 8-12, as in MSSE's code.
    """
    first_end = round(count * 4 / 13)
    second_end = round(count * 8 / 13)
    return slice(0, first_end), slice(first_end, second_end), slice(second_end, count)


# ---------------- attention-level mutual information (miCSE)

RHO2_MAX = 1 - 1e-6  # ours: views that agree exactly would give an infinite mutual information


def ami_layers(form: str, depth: int) -> range:
    """Return the layers that AMI reads, counted from 0.

    Args:
        form: `paper` is the last third. `code` is layers 7 to 10 of 12, scaled to `depth` and to
            an even count.
    """
    if form == "paper":
        return range(depth - max(1, round(depth / 3)), depth)
    count = max(2, round(depth / 3) // 2 * 2)
    first = max(0, min(round(7 * depth / 12), depth - count))
    return range(first, first + count)


def slices_paper(attention):
    """Make a slice of each pair of adjacent heads in a layer (miCSE sec. 3.1).

    Args:
        attention: list of (N, H, T, T), one a layer. An odd last head is left out.

    Returns:
        (N, R, 2*T*T), R = layers * (H // 2).
    """
    maps = torch.stack(list(attention), dim=1)  # (N, layers, H, T, T)
    n, layers, heads, t, _ = maps.shape
    pairs = heads // 2
    return maps[:, :, : pairs * 2].reshape(n, layers * pairs, 2 * t * t)


def sample_positions(valid, samples, replacement):
    """Draw positions uniformly among the valid ones, to be read in both views (miCSE Eq. 3).

    Args:
        valid: (..., P) bool. A row without any valid entry draws from all positions. The caller
            must ignore these draws.

    Returns:
        (..., samples) int64.
    """
    weights = (valid | ~valid.any(-1, keepdim=True)).float()  # (..., P)
    flat = torch.multinomial(weights.reshape(-1, valid.shape[-1]), samples, replacement=replacement)
    return flat.reshape(*valid.shape[:-1], samples)


def gaussian_mi(x, y, weights=None):
    """Compute the mutual information -1/2 log(1 - ρ²) of the logarithms of paired attention values.

    miCSE Eq. 4. Algorithm 1, Eq. 9 and Eq. 11 print it without the logarithm, which Eq. 4 and the
    code have.

    Args:
        x, y: (..., S) positive values at the same positions of both views.
        weights: (..., S) bool, entries that count. None: all.

    Returns:
        (...) mutual information in nats.
    """
    if weights is None:
        weights = torch.ones_like(x)
    else:
        weights = weights.to(x.dtype)
    x = torch.where(weights > 0, x, 1.0).log()  # (..., S)
    y = torch.where(weights > 0, y, 1.0).log()  # (..., S)
    total = weights.sum(-1, keepdim=True).clamp(min=1)  # (..., 1)
    mean_x = (weights * x).sum(-1, keepdim=True) / total  # (..., 1)
    mean_y = (weights * y).sum(-1, keepdim=True) / total  # (..., 1)
    x = weights * (x - mean_x)  # (..., S)
    y = weights * (y - mean_y)  # (..., S)
    norm = (x.square().sum(-1) * y.square().sum(-1)).clamp(min=1e-12).sqrt()  # (...)
    rho2 = ((x * y).sum(-1) / norm).square()  # (...)
    return -0.5 * torch.log1p(-rho2.clamp(max=RHO2_MAX))


def ami_paper(attention1, attention2, real, samples: int | None):
    """Compute the mean mutual information over slices and sentences, as the paper states it.

    miCSE sec. 2.2 and 3.1. An entry counts if query and key are both real tokens. Attention
    dropout sets entries to 0, and the paper does not say what becomes of these. Here, an entry that
    is 0 in one of the views is not drawn, because 0 has no logarithm.

    Args:
        attention1, attention2: lists of (N, H, T, T), one entry for each layer that is read.
        real: (N, T) bool, tokens that count.
        samples: draws per slice, with replacement (Eq. 3). None takes every entry once.
    """
    a = slices_paper(attention1)  # (N, R, P), P = 2*T*T
    b = slices_paper(attention2)  # (N, R, P)
    real_pairs = real[:, :, None] & real[:, None, :]  # (N, T, T)
    entries = real_pairs.flatten(1).repeat(1, 2)[:, None]  # (N, 1, P): the same for both heads
    valid = entries & (a > 0) & (b > 0)  # (N, R, P)
    if samples is None:
        return gaussian_mi(a, b, valid).mean()
    positions = sample_positions(valid, samples, replacement=True)  # (N, R, S)
    drawn = valid.gather(-1, positions)  # (N, R, S)
    return gaussian_mi(a.gather(-1, positions), b.gather(-1, positions), drawn).mean()
