"""Explain PyTorch's error about a tensor that is changed in place (`x += 1`).

A gradient may need the old values of such a tensor. PyTorch only notices in the backward pass that
they are gone. So a second forward pass finds the line of the method that needed them.
"""

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from csebench.base.errors import RunFailed
from csebench.base.project import folders, name_of
from csebench.plan.catalog.registry import METHODS

# PyTorch's message has this text before the description of the tensor
SIGN = "modified by an inplace operation: "


def is_changed_in_place(error: RuntimeError) -> bool:
    """Whether an error of a backward pass is about a tensor that is changed in place."""
    return SIGN in str(error)


def explained(error: RuntimeError, loss: Callable[[], torch.Tensor]) -> RunFailed:
    """Return an error that names the line of the method, if it can be found.

    The line is the one whose gradient needs the changed tensor. PyTorch's hint is left out.

    Args:
        loss: computes the loss of the same batch again. It may change the state of the run, because
            the run has failed.
    """
    tensor = str(error).partition(SIGN)[2].partition(" Hint:")[0].rstrip(".")
    line = line_of_forward(loss)
    if line is None:
        subject = "a gradient"
    else:
        subject = f"{line}: the gradient of this line"
    return RunFailed(
        f"{subject} needs a tensor that is changed in place later: {tensor}. Write `x = x + 1`"
        " instead of `x += 1`."
    )


def line_of_forward(loss: Callable[[], torch.Tensor]) -> str | None:
    """Find the line of a method that called the operation whose gradient is lost.

    In its anomaly mode, PyTorch warns with the traceback of that operation.

    Returns:
        The last line of methods/ in the traceback, or None if there is none.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(check_nan=False):
            try:
                loss().backward()
            except RuntimeError as error:
                if not is_changed_in_place(error):
                    return None

    method_folders = [folder / METHODS for folder in folders()]
    last_line = None
    for warning in caught:
        for name, number in re.findall(r'File "(.+)", line (\d+)', str(warning.message)):
            path = Path(name)
            if any(path.is_relative_to(folder) for folder in method_folders):
                last_line = f"{name_of(path)}: line {number}"
    return last_line
