"""Inputs, values and gradients that official implementations give for their losses.

`vectors/values.npz.xz` and `vectors/cases.json` have the four papers and what they build on. Every
other method has two files of its own: `vectors/METHOD.npz.xz` and `vectors/METHOD.json`.
"""

import io
import json
import lzma
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from csebench.model.pooling import Encoded

FOLDER = Path(__file__).parent / "vectors"
WEIGHTS = "weights.npz.xz"  # of the tiny networks of the cases


def read_facts():
    """Read what every case is about: `vectors/*.json`."""
    facts = {}
    for file in sorted(FOLDER.glob("*.json")):
        facts |= json.loads(file.read_text(encoding="utf-8"))
    return facts


FACTS = read_facts()


class Precision(NamedTuple):
    """A precision to compute in."""

    name: str
    dtype: torch.dtype
    tolerance: float  # as a share of the largest entry; the official code differs by up to 8e-6


PRECISIONS = [Precision("f64", torch.float64, 1e-9), Precision("f32", torch.float32, 1e-4)]


@cache
def arrays(file):
    """Read the arrays of a file, by `case/name` or by `network/name of a weight`."""
    return dict(np.load(io.BytesIO(lzma.decompress((FOLDER / file).read_bytes()))))


@cache
def arrays_of_cases():
    """Read the arrays of all cases, by `case/name`."""
    found = {}
    for file in sorted(FOLDER.glob("*.npz.xz")):
        if file.name != WEIGHTS:
            found |= arrays(file.name)
    return found


class Case:
    """The arrays of one case in one precision, and the comparison with what is expected."""

    def __init__(self, name: str, precision: Precision):
        self.name = name
        self.dtype = precision.dtype
        self.tolerance = precision.tolerance
        self.settings = FACTS[name]["hyper_parameters"]

    def tensor(self, name, grad=False):
        """Read an array, as integers or in the precision of the case."""
        tensor = torch.from_numpy(arrays_of_cases()[f"{self.name}/{name}"])
        if not tensor.is_floating_point():
            return tensor.long()
        return tensor.to(self.dtype).requires_grad_(grad)

    def check(self, name, value):
        """Compare a value with the array of this name."""
        expected = self.tensor(name).to(value.dtype)
        gap = (value.detach() - expected).abs().max() / expected.abs().max()
        assert gap <= self.tolerance, f"{name}: relative gap {gap:.2e}"

    def check_gradients(self, loss, **inputs):
        """Compute the gradients of a loss, and compare that at each input with `grad_NAME`."""
        loss.backward()
        for name, tensor in inputs.items():
            self.check(f"grad_{name}", tensor.grad)


def kind(name):
    """Return what a case is about: its name without its number."""
    return name.rpartition("_")[0]


def cases(*kinds):
    """Parametrise a test with `name` and `precision` of all cases of some kinds."""
    params = []
    for name in FACTS:
        if kind(name) not in kinds:
            continue
        for precision in PRECISIONS:
            params.append(pytest.param(name, precision, id=f"{name}-{precision.name}"))
    return pytest.mark.parametrize(("name", "precision"), params)


class GivenStates(nn.Module):
    """A frozen encoder whose [CLS] states, (N, D), are given."""

    def __init__(self, states):
        super().__init__()
        self.states = states

    def forward(self, batch, pooler):
        output = SimpleNamespace(last_hidden_state=self.states.unsqueeze(1))
        return Encoded(output, batch["input_ids"], batch["input_ids"].bool(), mask_id=0)


def set_weights(head, weight, bias):
    """Replace the weights of an MLP head by tensors that get gradients themselves."""
    del head.dense.weight, head.dense.bias
    head.dense.weight = weight
    head.dense.bias = bias
