"""The losses that methods share, as small pure functions; what only one method has is in its file,
but for MSSE's.

Shapes: N sentences of a batch, D dimensions, Q queue entries, R attention slices, P positions in a
slice.
"""

import torch
import torch.nn.functional as F


def upcast_fp32(x):
    """At least fp32: half precision, which autocast leaves, is widened before a comparison."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dot_score(a, b):
    """(N, D), (M, D) -> (N, M) dot products, in fp32 under autocast, too: a temperature
    magnifies their rounding."""
    with torch.autocast(a.device.type, enabled=False):
        return upcast_fp32(a) @ upcast_fp32(b).T


def cos_sim(a, b):
    """(N, D), (M, D) -> (N, M) cosine similarities, in fp32 under autocast, too."""
    return dot_score(F.normalize(upcast_fp32(a), dim=-1), F.normalize(upcast_fp32(b), dim=-1))


def info_nce(z1, z2, temperature, queue=None, in_batch_negatives=True, hard=None, hard_weight=0.0):
    """Cross-entropy with target i over cos(z1_i, z2_j)/temperature, one direction, mean over the
    batch.

    SimCSE Eq. 1, with hard negatives Eq. 5 (simcse/models.py:194-212); miCSE Eq. 2.

    Args:
        z1, z2: (N, D) embeddings of the two views.
        queue: (Q, D) further negatives, appended to the columns without gradient (ESimCSE
            models.py:244-248).
        in_batch_negatives: False sets the off-diagonal logits to 0, as miCSE's `diag_only` does
            (models.py:320-321): they are not removed.
        hard: (N, D) hard negatives: columns of every row.
        hard_weight: added to the logit of a row's own hard negative (the paper's log α).
    """
    logits = cos_sim(z1, z2) / temperature
    if not in_batch_negatives:
        logits = torch.diag_embed(logits.diagonal())
    if hard is not None:
        weight = hard_weight * torch.eye(len(z1), device=z1.device)
        logits = torch.cat([logits, cos_sim(z1, hard) / temperature + weight], dim=1)
    if queue is not None:
        logits = torch.cat([logits, cos_sim(z1, queue.detach()) / temperature], dim=1)
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


def off_diagonal(square):
    """(N, N) -> (N, N-1): the rows without their own column."""
    n = len(square)
    return square.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)


# ---------------------------------------------------------------- correlations between dimensions


def cross_correlation(a, b, eps, unbiased=False):
    """(N, D), (N, D) -> (D, D): mean over the batch of products of columns standardised over it."""
    a, b = upcast_fp32(a), upcast_fp32(b)
    with torch.autocast(a.device.type, enabled=False):
        if unbiased:
            a, b = ((x - x.mean(0)) / (x.std(0) + eps) for x in (a, b))
        else:
            a, b = ((x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt() for x in (a, b))
        return a.T @ b / len(a)


def dimension_contrast(a, b, form="paper"):
    """MSSE's dimension-level term (DCM): each dimension should agree with itself in the other view,
    and with no other.

    Args:
        a, b: (N, D).
        form: `paper`: sum over D² of (C - I)², C the cosines of columns, not centred (Eq. 3-4);
            `code`: 2 mean (C_ii - 1)² + 0.05 mean C_ij² of standardised columns (model.py:88-104),
            where a perfect match has C_ii = (N-1)/N, for the deviation is the unbiased one.
    """
    if form == "code":
        c = cross_correlation(a, b, eps=1e-6, unbiased=True)
        return 2 * (c.diagonal() - 1).square().mean() + 0.05 * off_diagonal(c).square().mean()
    c = cos_sim(a.T, b.T)
    return (c - torch.eye(len(c), device=c.device)).square().sum()


def layerwise_repulsion(states, noise):
    """A term of MSSE's code that its paper has not (model.py:51-85, 270-273), large where sentences
    are far apart.

    For each third of the layers, μ the mean of its [CLS] states: -mean_i logsumexp_j -‖μ_i +
    noise_i - μ_j‖²/20; the thirds weigh 0.25, 0.5 and 1.

    Args:
        states: list of (N, D), the embedding output and every layer's, at position 0.
        noise: (3, N, D).
    """
    stack, total = torch.stack([upcast_fp32(s) for s in states]), 0.0
    for weight, part, drawn in zip((0.25, 0.5, 1.0), thirds(len(states)), noise, strict=True):
        mean = stack[part].mean(0)
        distance = (mean + drawn).unsqueeze(1).sub(mean).square().sum(-1)
        total = total - weight * torch.logsumexp(-distance / 20, dim=1).mean()
    return total


def thirds(count):
    """Slices of `count` hidden states, the embedding output among them: 0-3, 4-7, 8-12 of 13 in
    the code."""
    first, second = round(count * 4 / 13), round(count * 8 / 13)
    return slice(0, first), slice(first, second), slice(second, count)


# ---------------- attention-level mutual information (miCSE)

RHO2_MAX = 1 - 1e-6  # ours: views that agree exactly would give an infinite mutual information


def ami_layers(form: str, depth: int) -> range:
    """Zero-based layers that AMI reads: the last third, or the code's 7:11 of 12 scaled to
    `depth` (an even count)."""
    if form == "paper":
        return range(depth - max(1, round(depth / 3)), depth)
    count = max(2, round(depth / 3) // 2 * 2)
    first = max(0, min(round(7 * depth / 12), depth - count))
    return range(first, first + count)


def slices_paper(attention):
    """Adjacent head pairs within a layer (miCSE sec. 3.1): layers x heads/2 slices of two heads'
    maps.

    Args:
        attention: list of (N, H, T, T), one a layer. An odd last head is left out.

    Returns:
        (N, R, 2*T*T), R = layers * H//2.
    """
    maps = torch.stack(list(attention), dim=1)  # (N, layers, H, T, T)
    n, layers, heads, t, _ = maps.shape
    return maps[:, :, : heads // 2 * 2].reshape(n, layers * (heads // 2), 2 * t * t)


def sample_positions(valid, samples, replacement):
    """Positions drawn uniformly among the valid ones: the same for both views (miCSE Eq. 3).

    Args:
        valid: (..., P) bool; a row without any valid entry draws from everywhere (the caller drops
        it).

    Returns:
        (..., samples) int64.
    """
    weights = (valid | ~valid.any(-1, keepdim=True)).float()
    flat = torch.multinomial(weights.reshape(-1, valid.shape[-1]), samples, replacement=replacement)
    return flat.reshape(*valid.shape[:-1], samples)


def gaussian_mi(x, y, weights=None):
    """Mutual information -1/2 log(1 - rho^2) of the logarithms of paired attention values (miCSE
    Eq. 4).

    Algorithm 1, Eq. 9 and Eq. 11 print it without the logarithm, which Eq. 4 and the code have.

    Args:
        x, y: (..., S) positive values at the same positions of both views.
        weights: (..., S) bool, entries that count; all where None.

    Returns:
        (...) mutual information in nats.
    """
    weights = torch.ones_like(x) if weights is None else weights.to(x.dtype)
    x, y = (torch.where(weights > 0, v, 1.0).log() for v in (x, y))
    total = weights.sum(-1, keepdim=True).clamp(min=1)
    x, y = (weights * (v - (weights * v).sum(-1, keepdim=True) / total) for v in (x, y))
    norm = (x.square().sum(-1) * y.square().sum(-1)).clamp(min=1e-12).sqrt()
    rho2 = ((x * y).sum(-1) / norm).square()
    return -0.5 * torch.log1p(-rho2.clamp(max=RHO2_MAX))


def ami_paper(attention1, attention2, real, samples: int | None):
    """Mean mutual information over slices and sentences, as the paper states it (sec. 2.2, 3.1).

    Entries: query and key both real tokens. Ours, where the paper is silent: entries that attention
    dropout zeroed in either view are not drawn (their logarithm does not exist).

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used.
        real: (N, T) bool, tokens that count.
        samples: draws per slice, with replacement (Eq. 3); None takes every entry once.
    """
    a, b = slices_paper(attention1), slices_paper(attention2)
    # (N, 1, 2*T*T)
    entries = (real[:, :, None] & real[:, None, :]).flatten(1).repeat(1, 2)[:, None]
    valid = entries & (a > 0) & (b > 0)
    if samples is None:
        return gaussian_mi(a, b, valid).mean()
    positions = sample_positions(valid, samples, replacement=True)
    drawn = valid.gather(-1, positions)
    return gaussian_mi(a.gather(-1, positions), b.gather(-1, positions), drawn).mean()
