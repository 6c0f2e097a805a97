"""What is checked in the first step of a process: that a method's loss and its components' terms train the encoder.

Later steps are not checked: whether a loss is finite, csebench/train/loop.py sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from csebench.base.errors import BadInput, Untrainable
from csebench.train.method import Component, Method


@dataclass(frozen=True)
class FirstStep:
    """The checks of one step, in the order of csebench/train/trainer.py: optimise. Each raises BadInput, of
    zeros alone Untrainable, which names the file of the method or component.

    Attributes:
        resumed: whether the run goes on from a checkpoint: a gradient of zeros is then no mistake of the code.
    """

    method: Method
    resumed: bool = False

    def check_loss(self, loss) -> None:
        """A scalar that depends on weights."""
        require_scalar(loss, f"{file_of(self.method)}: loss(views)")
        if not loss.requires_grad:
            raise BadInput(
                f"{file_of(self.method)}: loss(views) is a constant: it depends on no weight that is trained."
                " Compute it from views.z1 and views.z2, without detach() or no_grad()."
            )

    def check_term(self, component: Component, term) -> None:
        """A scalar that depends on weights, or zero: of a component without a term, or with nothing to compare yet."""
        name = f"{file_of(component)}: term(method, views)"
        if not isinstance(term, int | float):
            require_scalar(term, name)
        if not (isinstance(term, torch.Tensor) and term.requires_grad) and float(term) != 0:
            raise BadInput(
                f"{name} is a constant ({float(term):g}): it depends on no weight that is trained. Compute it from the"
                " views, without detach() or no_grad(); without anything to add, return 0.0."
            )

    def check_gradient(self, loss: torch.Tensor) -> None:
        """Of loss and terms together, in the weights of the encoders that are trained. A loss of 0 may have a gradient
        of zeros: InfoNCE without negatives at a low temperature has nothing left to learn."""
        weights = [w for encoder in self.method.encoders() for w in encoder.parameters() if w.requires_grad]
        gradients = [w.grad for w in weights if w.grad is not None]
        if weights and not (gradients if self.resumed or loss == 0 else any(bool(g.any()) for g in gradients)):
            raise Untrainable(
                f"{file_of(self.method)}: the gradient of loss(views) is zero in all weights of the encoder: training"
                " would change nothing. Compute the loss from views.z1 and views.z2, without detach() or no_grad()."
            )


def require_scalar(value, name: str) -> None:
    """Raises BadInput where a value is no tensor of floating-point type and shape ()."""
    if not isinstance(value, torch.Tensor) or value.ndim or not value.is_floating_point():
        raise BadInput(f"{name} returns {kind_of(value)}, expected a scalar: a floating-point tensor of shape ().")


def kind_of(value) -> str:
    """`a tensor of shape (8, 32) and type int64`, `a value of type float`"""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
    return f"a value of type {type(value).__name__}"


def file_of(module: nn.Module) -> str:
    """`methods/simcse.py`"""
    return f"{type(module).__module__.replace('.', '/')}.py"
