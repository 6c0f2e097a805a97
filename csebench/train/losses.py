"""The losses as small pure functions; a method reads as its equation over these.

Shapes: N sentences of a batch, D dimensions, Q queue entries, R attention slices, P positions in a slice.
"""

import math

import torch
import torch.nn.functional as F


def upcast_fp32(x):
    """At least fp32: half precision, which autocast leaves, is widened before a comparison."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dot_score(a, b):
    """(N, D), (M, D) -> (N, M) dot products, in fp32 under autocast, too: a temperature magnifies their rounding."""
    with torch.autocast(a.device.type, enabled=False):
        return upcast_fp32(a) @ upcast_fp32(b).T


def cos_sim(a, b):
    """(N, D), (M, D) -> (N, M) cosine similarities, in fp32 under autocast, too."""
    return dot_score(F.normalize(upcast_fp32(a), dim=-1), F.normalize(upcast_fp32(b), dim=-1))


def info_nce(z1, z2, temperature, queue=None, in_batch_negatives=True, hard=None, hard_weight=0.0):
    """Cross-entropy with target i over cos(z1_i, z2_j)/temperature, one direction, mean over the batch.

    SimCSE Eq. 1, with hard negatives Eq. 5 (simcse/models.py:194-212); miCSE Eq. 2.

    Args:
        z1, z2: (N, D) embeddings of the two views.
        queue: (Q, D) further negatives, appended to the columns without gradient (ESimCSE models.py:244-248).
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


def nt_xent(z1, z2, temperature, queue=None):
    """Both directions: every one of the 2N rows is an anchor against the 2N-2 rows of other sentences.

    Mirror-BERT Eq. 1 as coded with pytorch-metric-learning's NTXent (contrastive_learning.py:31, 57-63).
    """
    z, n = torch.cat([z1, z2]), len(z1)
    logits = cos_sim(z, z) / temperature
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z.device), float("-inf"))
    if queue is not None:
        logits = torch.cat([logits, cos_sim(z, queue.detach()) / temperature], dim=1)
    return F.cross_entropy(logits, torch.arange(2 * n, device=z.device).roll(n))


def contrastive_tension(e1, e2, labels, reduction="mean"):
    """Binary cross-entropy on dot products (CT sec. 3; Model.py:41-56): no temperature, no normalisation.

    Args:
        e1, e2: (B, D) pooled vectors of encoder 1 and encoder 2.
        labels: (B,) 1 where both encoded the same sentence, else 0.
        reduction: `mean` as the official code, `sum` as sentence-transformers.
    """
    logits = (upcast_fp32(e1) * upcast_fp32(e2)).sum(-1)
    return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction=reduction)


def reconstruction(z1, z2, form="paper"):
    """Squared distance of the two views on the unit sphere, which InforMin-CL adds to minimise it (Eq. 8).

    The sign is the code's: taken literally the paper's signs would push the views apart.

    Args:
        z1, z2: (N, D).
        form: `paper`: the distance, mean over sentences; `code`: 2/D of it (a mean over D of a term counted
            twice, informin-cl/models.py:20-22, 227-230); `raw`: the paper's without normalisation.
    """
    if form != "raw":
        z1, z2 = F.normalize(upcast_fp32(z1), dim=-1), F.normalize(upcast_fp32(z2), dim=-1)
    distance = (upcast_fp32(z1) - upcast_fp32(z2)).square().sum(-1).mean()
    return distance * 2 / z1.shape[-1] if form == "code" else distance


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


def barlow_twins(a, b, off_diagonal):
    """Sum of (C_ii - 1)² plus `off_diagonal` times the sum of C_ij² (Zbontar et al. 2021, Eq. 1; main.py:204-221).

    Standardised as by a batch normalisation without affine map.
    """
    c = cross_correlation(a, b, eps=1e-5)
    return (c.diagonal() - 1).square().sum() + off_diagonal * (c - torch.diag(c.diagonal())).square().sum()


def dimension_contrast(a, b, form="paper"):
    """MSSE's dimension-level term (DCM): each dimension should agree with itself in the other view, and with no other.

    Args:
        a, b: (N, D).
        form: `paper`: sum over D² of (C - I)², C the cosines of columns, not centred (Eq. 3-4); `code`:
            2 mean (C_ii - 1)² + 0.05 mean C_ij² of standardised columns (model.py:88-104), where a perfect match
            has C_ii = (N-1)/N, for the deviation is the unbiased one.
    """
    if form == "code":
        c = cross_correlation(a, b, eps=1e-6, unbiased=True)
        return 2 * (c.diagonal() - 1).square().mean() + 0.05 * off_diagonal(c).square().mean()
    c = cos_sim(a.T, b.T)
    return (c - torch.eye(len(c), device=c.device)).square().sum()


def layerwise_repulsion(states, noise):
    """A term of MSSE's code that its paper has not (model.py:51-85, 270-273), large where sentences are far apart.

    For each third of the layers, μ the mean of its [CLS] states: -mean_i logsumexp_j -‖μ_i + noise_i - μ_j‖²/20; the
    thirds weigh 0.25, 0.5 and 1.

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
    """Slices of `count` hidden states, the embedding output among them: 0-3, 4-7, 8-12 of 13 in the code."""
    first, second = round(count * 4 / 13), round(count * 8 / 13)
    return slice(0, first), slice(first, second), slice(second, count)


def ranking_consistency(z1, z2, temperature, form="js"):
    """RankCSE's agreement of the two rankings a batch gives: softmax of cos(z1_i, z2_j) and of cos(z2_i, z1_j).

    Args:
        z1, z2: (N, D).
        form: `js`: Jensen-Shannon divergence, mean over rows (sec. 3.2); `entropy`: what the public code
            computes, -½(H(p) + H(q)), for the logarithm of the mean is clamped at a positive number
            (perceptiveshawty/RankCSE models.py:60).
    """
    p, q = (F.log_softmax(cos_sim(a, b) / temperature, dim=-1) for a, b in ((z1, z2), (z2, z1)))
    if form == "entropy":
        return 0.5 * sum((x.exp() * x).sum(-1).mean() for x in (p, q))
    mean = torch.logsumexp(torch.stack([p, q]), dim=0) - math.log(2)
    return 0.5 * sum((x.exp() * (x - mean)).sum(-1).mean() for x in (p, q))


# ---------------------------------------------------------------- attention-level mutual information (miCSE)

RHO2_MAX = 1 - 1e-6  # ours: views that agree exactly would give an infinite mutual information


def ami_layers(form: str, depth: int) -> range:
    """Zero-based layers that AMI reads: the last third, or the code's 7:11 of 12 scaled to `depth` (an even count)."""
    if form == "paper":
        return range(depth - max(1, round(depth / 3)), depth)
    count = max(2, round(depth / 3) // 2 * 2)
    first = max(0, min(round(7 * depth / 12), depth - count))
    return range(first, first + count)


def slices_paper(attention):
    """Adjacent head pairs within a layer (miCSE sec. 3.1): layers x heads/2 slices of two heads' maps.

    Args:
        attention: list of (N, H, T, T), one a layer. An odd last head is left out.

    Returns:
        (N, R, 2*T*T), R = layers * H//2.
    """
    maps = torch.stack(list(attention), dim=1)  # (N, layers, H, T, T)
    n, layers, heads, t, _ = maps.shape
    return maps[:, :, : heads // 2 * 2].reshape(n, layers * (heads // 2), 2 * t * t)


def slices_code(attention):
    """One head over the layers of one parity (model/models.py:171-172).

    Args:
        attention: list of (N, H, T, T), an even number of layers.

    Returns:
        (N, R, layers/2*T*T), R = H * 2, slice `head * 2 + parity`.
    """
    maps = torch.stack(list(attention), dim=1)
    n, layers, heads, t, _ = maps.shape
    maps = maps.reshape(n, layers // 2, 2, heads, t, t).permute(0, 3, 2, 1, 4, 5)
    return maps.reshape(n, heads * 2, layers // 2 * t * t)


def sample_positions(valid, samples, replacement):
    """Positions drawn uniformly among the valid ones: the same for both views (miCSE Eq. 3).

    Args:
        valid: (..., P) bool; a row without any valid entry draws from everywhere (the caller drops it).

    Returns:
        (..., samples) int64.
    """
    weights = (valid | ~valid.any(-1, keepdim=True)).float()
    flat = torch.multinomial(weights.reshape(-1, valid.shape[-1]), samples, replacement=replacement)
    return flat.reshape(*valid.shape[:-1], samples)


def gaussian_mi(x, y, weights=None):
    """Mutual information -1/2 log(1 - rho^2) of the logarithms of paired attention values (miCSE Eq. 4).

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

    Entries: query and key both real tokens. Ours, where the paper is silent: entries that attention dropout
    zeroed in either view are not drawn (their logarithm does not exist).

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used.
        real: (N, T) bool, tokens that count.
        samples: draws per slice, with replacement (Eq. 3); None takes every entry once.
    """
    a, b = slices_paper(attention1), slices_paper(attention2)
    entries = (real[:, :, None] & real[:, None, :]).flatten(1).repeat(1, 2)[:, None]  # (N, 1, 2*T*T)
    valid = entries & (a > 0) & (b > 0)
    if samples is None:
        return gaussian_mi(a, b, valid).mean()
    positions = sample_positions(valid, samples, replacement=True)
    drawn = valid.gather(-1, positions)
    return gaussian_mi(a.gather(-1, positions), b.gather(-1, positions), drawn).mean()


def ami_code(attention1, attention2, samples):
    """The term of the released code (model/models.py:169-313): mean mutual information times a scale.

    Valid entries are those > 0 in both views, which keeps padded query rows. Slices with fewer than `samples`
    valid entries are dropped (if all have fewer, the smallest count is drawn instead), and the undocumented
    factor is (valid share of the kept slices)^2 + 1e-6.

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used, an even number.
    """
    a, b = slices_code(attention1).flatten(0, 1), slices_code(attention2).flatten(0, 1)
    valid = (a > 0) & (b > 0)
    count = valid.sum(-1)
    keep = count >= samples
    if not keep.any():
        keep, samples = torch.ones_like(keep), int(count.min())
        if samples == 0:
            return (a * 0.0).sum()
    a, b, valid = a[keep], b[keep], valid[keep]
    positions = sample_positions(valid, samples, replacement=False)
    scale = valid.to(a.dtype).mean().square() + 1e-6
    return gaussian_mi(a.gather(-1, positions), b.gather(-1, positions)).mean() * scale
