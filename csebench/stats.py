"""Statistics over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    mean: float
    std: float | None  # of the sample (ddof = 1); None for a single value
    n: int


def summarise(values) -> Summary:
    values = np.asarray(list(values), dtype=float)
    return Summary(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None, len(values))
