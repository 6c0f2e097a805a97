"""Bytes that runs take on disk, from the sizes of their encoders."""

from __future__ import annotations

from collections.abc import Iterable

from csebench.plan import forecast

CHECKPOINTS = 4  # weights that a checkpoint holds: the model's, the best, two moments
SCORE_BYTES = 50_000  # a score JSON with its per-item values; of the large corpora of BEIR more


def weight_bytes(encoder: str) -> int | None:
    """Bytes of an encoder's weights in fp32; None for an encoder that data/encoders.yaml does not list."""
    size = forecast.encoder_sizes().get(encoder)
    return size and 4 * size.parameters


def run_bytes(models: Iterable[int], kept: Iterable[int], scores: int = 0) -> tuple[int, int]:
    """(bytes that stay, bytes more while a run is trained).

    Args:
        models: bytes of the weights of every run that is trained.
        kept: those of the runs whose models are not deleted.
        scores: number of scores that are made.
    """
    largest = max(models, default=0)
    return sum(kept) + SCORE_BYTES * scores, (1 + CHECKPOINTS) * largest
