"""Template: one line on what it does.

Idea: what is pulled together, what is pushed apart, and why that should help.

    loss = the equation

Source: equation; official code: repository, file, lines. The declaration states the paper.
Inputs: what a batch is, with shapes; z1, z2 (N, D).
Relations: which method here it extends, and by what.
"""

from torch import Tensor

from csebench.train.losses import info_nce
from csebench.train.method import ClsHeadMethod, Views

# A literal, because it is read without running the file: no calls and no names in it.
DECLARATION = {
    "name": "template",  # as the file
    "version": 1,  # bump it when a change of this file changes a number
    "title": "Template",
    "paper": "Who, when (where), section",
    "citation": "BibTeX",
    "params": {
        # name: (the paper's value, the place that states it); steps, batch_size, learning_rate …
        # may be given, too
        "temperature": (0.05, "sec. 3"),
    },
    # "extends": "simcse",  # the method whose class this one extends. Optional.
    # "kind": "supervised",  # or two_views, token_level; else as what it extends. Optional.
    # "search": {"weight": (0.1, 1.0)},  # values of its parameters that are tried. Optional.
    # "weights": ["weight"],  # parameters that weigh a term of the loss. Optional.
    # "below": [("neighbours", "buffer")],  # the first must be less than the second. Optional.
    "deviations": [],  # from the paper, and choices that it leaves open
}


class Method(ClsHeadMethod):
    """A method of two dropout views, made by the inherited `views`. Override it for others."""

    def loss(self, views: Views) -> Tensor:
        """Compute the loss: views.z1, views.z2 (N, D) -> scalar.

        self.p has the parameters. views.queue has further negatives, or is None.
        """
        return info_nce(views.z1, views.z2, self.p.temperature, views.queue)
