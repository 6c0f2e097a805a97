"""The error for a tensor that a method changes in place (`x += 1`) although a gradient needs its
old values."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from csebench.base.errors import RunFailed
from csebench.base.project import folders, name_of
from csebench.plan.catalog.registry import METHODS

# in PyTorch's message, before the tensor and its versions
SIGN = "modified by an inplace operation: "


def is_changed_in_place(error: RuntimeError) -> bool:
    return SIGN in str(error)


def explained(error: RuntimeError, loss: Callable[[], torch.Tensor]) -> RunFailed:
    """The error with the line of the method whose result is changed, and without PyTorch's hint.

    Args:
        loss: computes the loss of the same batch again. The run has failed, so its state may
        change.
    """
    tensor = str(error).partition(SIGN)[2].partition(" Hint:")[0].rstrip(".")
    what = "needs a tensor that is changed in place later"
    line = line_of_forward(loss)
    if line is None:
        what = f"a gradient {what}"
    else:
        what = f"{line}: the gradient of this line {what}"
    return RunFailed(f"{what}: {tensor}. Write `x = x + 1` in place of `x += 1`.")


def line_of_forward(loss: Callable[[], torch.Tensor]) -> str | None:
    """The last line of methods/ on the way to the operation without a gradient; None if there is
    none.

    PyTorch warns with the traceback of this operation where it looks for anomalies.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(check_nan=False):
            try:
                loss().backward()
            except RuntimeError as error:
                if not is_changed_in_place(error):
                    return None
    places = [folder / METHODS for folder in folders()]
    lines = []
    for warning in caught:
        for name, number in re.findall(r'File "(.+)", line (\d+)', str(warning.message)):
            path = Path(name)
            if any(path.is_relative_to(place) for place in places):
                lines.append(f"{name_of(path)}: line {number}")
    return lines[-1] if lines else None
