"""Template: one line on what it adds to a method.

Idea: what the term pulls together or pushes apart, and why that should help.

    term = weight · the equation

Source: equation; official code: repository, file, lines. The declaration states the paper.
Inputs: z1, z2 (N, D), or what it asks of its method: a queue, attention or tokens of both views.
Relations: which component here it is close to, and what differs.
"""

from torch import Tensor

from csebench.train.method import Component as Base
from csebench.train.method import Method, Views

# A literal, because it is read without running the file: no calls and no names in it.
DECLARATION = {
    "name": "template",  # as the file
    "version": 1,  # bump it when a change of this file changes a number
    "title": "Template",
    "kind": "component",
    "paper": "Who, when (where), section",
    "citation": "BibTeX",
    "trains": "nothing",  # in addition to the encoder
    "params": {
        # name: (the paper's value, the place that states it)
        "weight": (0.1, "sec. 3"),
    },
    "search": {"weight": (0.01, 0.1, 1.0)},  # what `csebench tune` tries
    # "asks": ["attention"],  # what a method may lack: queue, attention, tokens. Optional.
    "deviations": [],  # from the paper, and choices that it leaves open
}


class Component(Base):
    """A term of the loss.

    A component that adds negatives defines `queue` instead (csebench/train/method.py).
    """

    def term(self, method: Method, views: Views) -> Tensor:
        """Compute the term: views.z1, views.z2 (N, D) -> scalar, weight included.

        self.p has the parameters.
        """
        return self.p.weight * (views.z1 - views.z2).square().mean()
