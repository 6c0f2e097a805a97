"""The losses as small pure functions; a method reads as its equation over these.

Shapes: N sentences of a batch, D dimensions, Q queue entries, R attention slices, P positions in a slice.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def full(x):
    """At least fp32: what autocast left in half precision is widened before it is compared."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dots(a, b):
    """(N, D), (M, D) -> (N, M) dot products, in fp32 under autocast, too: a temperature magnifies their rounding."""
    with torch.autocast(a.device.type, enabled=False):
        return full(a) @ full(b).T


def cosines(a, b):
    """(N, D), (M, D) -> (N, M) cosine similarities, in fp32 under autocast, too."""
    return dots(F.normalize(full(a), dim=-1), F.normalize(full(b), dim=-1))


def info_nce(z1, z2, temperature, queue=None, in_batch_negatives=True):
    """Cross-entropy with target i over cos(z1_i, z2_j)/temperature, one direction, mean over the batch.

    SimCSE Eq. 1 (simcse/models.py:194-212); miCSE Eq. 2.

    Args:
        z1, z2: (N, D) embeddings of the two views.
        queue: (Q, D) further negatives, appended to the columns without gradient (ESimCSE models.py:244-248).
        in_batch_negatives: False sets the off-diagonal logits to 0, as miCSE's `diag_only` does
            (models.py:320-321): they are not removed.
    """
    logits = cosines(z1, z2) / temperature
    if not in_batch_negatives:
        logits = torch.diag_embed(logits.diagonal())
    if queue is not None:
        logits = torch.cat([logits, cosines(z1, queue.detach()) / temperature], dim=1)
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


def nt_xent(z1, z2, temperature, queue=None):
    """Both directions: every one of the 2N rows is an anchor against the 2N-2 rows of other sentences.

    Mirror-BERT Eq. 1 as coded with pytorch-metric-learning's NTXent (contrastive_learning.py:31, 57-63).
    """
    z, n = torch.cat([z1, z2]), len(z1)
    logits = cosines(z, z) / temperature
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z.device), float("-inf"))
    if queue is not None:
        logits = torch.cat([logits, cosines(z, queue.detach()) / temperature], dim=1)
    return F.cross_entropy(logits, torch.arange(2 * n, device=z.device).roll(n))


def contrastive_tension(e1, e2, labels, reduction="mean"):
    """Binary cross-entropy on dot products (CT sec. 3; Model.py:41-56): no temperature, no normalisation.

    Args:
        e1, e2: (B, D) pooled vectors of encoder 1 and encoder 2.
        labels: (B,) 1 where both encoded the same sentence, else 0.
        reduction: `mean` as the official code, `sum` as sentence-transformers.
    """
    logits = (full(e1) * full(e2)).sum(-1)
    return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction=reduction)


# ---------------------------------------------------------------- attention-level mutual information (miCSE)

AMI_SAMPLES = 150  # joint-attention pairs a slice (miCSE sec. 3.1)
RHO2_MAX = 1 - 1e-6  # ours: views that agree exactly would give an infinite mutual information


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


def ami_paper(attention1, attention2, real, samples=AMI_SAMPLES, sampler=None):
    """Mean mutual information over slices and sentences, as the paper states it (sec. 2.2, 3.1).

    Entries: query and key both real tokens. Ours, where the paper is silent: entries that attention dropout
    zeroed in either view are not drawn (their logarithm does not exist).

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used.
        real: (N, T) bool, tokens that count.
        samples: draws a slice with replacement (Eq. 3); None takes every entry once.
        sampler: stands in for the random draw in tests: (valid (N, R, P), samples) -> positions (N, R, samples).
    """
    a, b = slices_paper(attention1), slices_paper(attention2)
    entries = (real[:, :, None] & real[:, None, :]).flatten(1).repeat(1, 2)[:, None]  # (N, 1, 2*T*T)
    valid = entries & (a > 0) & (b > 0)
    if samples is None:
        return gaussian_mi(a, b, valid).mean()
    draw = sampler or (lambda v, s: sample_positions(v, s, replacement=True))
    at = draw(valid, samples)
    drawn = valid.gather(-1, at)
    return gaussian_mi(a.gather(-1, at), b.gather(-1, at), drawn).mean()


def ami_code(attention1, attention2, samples=AMI_SAMPLES, sampler=None):
    """The term of the released code (model/models.py:169-313): mean mutual information times a scale.

    Valid entries are those > 0 in both views, which keeps padded query rows. Slices with fewer than `samples`
    valid entries are dropped (if all have fewer, the smallest count is drawn instead), and the undocumented
    factor is (valid share of the kept slices)^2 + 1e-6.

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used, an even number.
        sampler: stands in for the random draw in tests: (valid (K, P), samples) -> positions (K, samples).
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
    draw = sampler or (lambda v, s: sample_positions(v, s, replacement=False))
    at = draw(valid, samples)
    scale = valid.to(a.dtype).mean().square() + 1e-6
    return gaussian_mi(a.gather(-1, at), b.gather(-1, at)).mean() * scale
