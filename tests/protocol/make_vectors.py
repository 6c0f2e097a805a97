"""Makes tests/protocol/vectors.npz: losses by plain loops over the papers' formulas, gradients by differences.

Written from the papers, not from csebench/train/losses.py, and without torch, so that the two check each other.
Run `python tests/protocol/make_vectors.py` to make the file again; it comes out the same.
"""

from pathlib import Path

import numpy as np

STEP = 1e-6  # of the central differences
EPSILON = 1e-6  # miCSE's code: added to the factor on its mutual information


def cos(a, b):
    return float(a @ b) / (float(a @ a) ** 0.5 * float(b @ b) ** 0.5)


def info_nce(z1, z2, temperature, queue=(), in_batch_negatives=True):
    """miCSE Eq. 2: -log exp(s_ii) / (sum_j exp(s_ij) + sum_q exp(s_iq)), mean over i."""
    total = 0.0
    for i in range(len(z1)):
        bottom = 0.0
        for j in range(len(z2)):
            scored = in_batch_negatives or i == j
            bottom += np.exp(cos(z1[i], z2[j]) / temperature if scored else 0.0)
        for q in queue:
            bottom += np.exp(cos(z1[i], q) / temperature)
        total -= np.log(np.exp(cos(z1[i], z2[i]) / temperature) / bottom)
    return total / len(z1)


def nt_xent(z1, z2, temperature):
    """Mirror-BERT Eq. 1 in both directions: an anchor's own row is in no sum."""
    rows = [*z1, *z2]
    n, total = len(z1), 0.0
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        bottom = sum(np.exp(cos(rows[i], rows[j]) / temperature) for j in range(2 * n) if j != i)
        total -= np.log(np.exp(cos(rows[i], rows[partner]) / temperature) / bottom)
    return total / (2 * n)


def contrastive_tension(e1, e2, labels, reduction):
    """CT sec. 3: binary cross-entropy of sigmoid(e1·e2)."""
    terms = []
    for a, b, label in zip(e1, e2, labels, strict=True):
        probability = 1 / (1 + np.exp(-float(a @ b)))
        terms.append(-np.log(probability if label else 1 - probability))
    return sum(terms) / (len(terms) if reduction == "mean" else 1)


def mutual_information(x, y):
    """miCSE Eq. 4 and 6: -1/2 log(1 - rho²), rho the correlation of the logarithms."""
    rho = np.corrcoef(np.log(x), np.log(y))[0, 1]
    return -0.5 * np.log(1 - rho**2)


def ami_paper(attention1, attention2, lengths):
    """miCSE sec. 3.1, every entry once: a slice is two neighbouring heads of a layer, its entries those between
    real tokens that dropout left alone in both views. attention: (layers, N, H, T, T)."""
    layers, n, heads = attention1.shape[:3]
    values = []
    for sentence in range(n):
        for layer in range(layers):
            for first in range(0, heads - 1, 2):
                x, y = [], []
                for head in (first, first + 1):
                    for query in range(lengths[sentence]):
                        for key in range(lengths[sentence]):
                            a = attention1[layer, sentence, head, query, key]
                            b = attention2[layer, sentence, head, query, key]
                            if a > 0 and b > 0:
                                x.append(a)
                                y.append(b)
                values.append(mutual_information(x, y))
    return float(np.mean(values))


def slices_code(attention):
    """model/models.py:171-172: a slice is one head over every other layer; its entries in layer, query, key order.

    Slice number: (sentence * heads + head) * 2 + parity.
    """
    layers, n, heads = attention.shape[:3]
    return [
        np.concatenate([attention[layer, sentence, head].ravel() for layer in range(parity, layers, 2)])
        for sentence in range(n)
        for head in range(heads)
        for parity in (0, 1)
    ]


def kept_by_code(attention1, attention2, samples):
    """Slices with at least `samples` entries that are positive in both views."""
    pairs = zip(slices_code(attention1), slices_code(attention2), strict=True)
    return [(x, y) for x, y in pairs if np.sum((x > 0) & (y > 0)) >= samples]


def ami_code(attention1, attention2, positions):
    """Mean over the kept slices at the given positions, times (share of valid entries)² + 1e-6.

    positions: (kept slices, samples).
    """
    kept = kept_by_code(attention1, attention2, positions.shape[1])
    values = [mutual_information(x[at], y[at]) for (x, y), at in zip(kept, positions, strict=True)]
    valid = np.mean([np.mean((x > 0) & (y > 0)) for x, y in kept])
    return float(np.mean(values)) * (valid**2 + EPSILON)


def gradient(function, x):
    """Central differences at every entry that is not zero (a dropped attention entry stays dropped)."""
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        if x[index] == 0:
            continue
        up, down = x.copy(), x.copy()
        up[index] += STEP
        down[index] -= STEP
        found[index] = (function(up) - function(down)) / (2 * STEP)
    return found


def attention(rng, layers, n, heads, t, lengths, dropped):
    """Softmax rows over the real keys; padded queries attend too, as in BERT; some entries dropped."""
    scores = np.exp(rng.normal(size=(layers, n, heads, t, t)))
    for sentence, length in enumerate(lengths):
        scores[:, sentence, :, :, length:] = 0
    maps = scores / scores.sum(-1, keepdims=True)
    return maps * (rng.random(maps.shape) >= dropped) / (1 - dropped)


def main():
    rng = np.random.default_rng(20231)
    z1, z2, queue = rng.normal(size=(5, 6)), rng.normal(size=(5, 6)), rng.normal(size=(7, 6))
    z2 = z1 + 0.5 * z2
    e1, e2 = rng.normal(size=(8, 5)), rng.normal(size=(8, 5))
    labels = np.array([1, 0, 0, 0, 0, 1, 0, 0])
    lengths = np.array([4, 3])
    noise = rng.random((4, 2, 5, 4, 4))
    a1 = attention(rng, 4, 2, 5, 4, lengths, 0.1)  # 5 heads: the last has no partner in form paper
    a2 = a1 * np.exp(noise) * (rng.random(a1.shape) >= 0.1)
    samples = 18  # some slices have fewer valid entries and are dropped
    kept = kept_by_code(a1, a2, samples)
    assert 0 < len(kept) < len(slices_code(a1))
    positions = np.stack([rng.permutation(np.flatnonzero((x > 0) & (y > 0)))[:samples] for x, y in kept])

    arrays = {"z1": z1, "z2": z2, "queue": queue, "e1": e1, "e2": e2, "labels": labels, "lengths": lengths}
    arrays |= {"attention1": a1, "attention2": a2, "positions": positions}
    cases = {
        "info_nce": (z1, lambda x: info_nce(x, z2, 0.05)),
        "info_nce_queue": (z1, lambda x: info_nce(x, z2, 0.05, queue)),
        "info_nce_queue_only": (z1, lambda x: info_nce(x, z2, 0.05, queue, in_batch_negatives=False)),
        "info_nce_diagonal": (z1, lambda x: info_nce(x, z2, 0.5, in_batch_negatives=False)),
        "nt_xent": (z2, lambda x: nt_xent(z1, x, 0.04)),
        "ct_mean": (e1, lambda x: contrastive_tension(x, e2, labels, "mean")),
        "ct_sum": (e2, lambda x: contrastive_tension(e1, x, labels, "sum")),
        "ami_paper": (a1, lambda x: ami_paper(x, a2, lengths)),
        "ami_code": (a2, lambda x: ami_code(a1, x, positions)),
    }
    for name, (at, function) in cases.items():
        arrays[f"{name}_loss"] = np.array(function(at))
        arrays[f"{name}_gradient"] = gradient(function, at)
    np.savez_compressed(Path(__file__).parent / "vectors.npz", **arrays)


if __name__ == "__main__":
    main()
