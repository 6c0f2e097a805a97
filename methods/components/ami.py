"""Attention-level mutual information (AMI), a term of miCSE that any two-view method can take.

Idea: cut the attention tensors of both views into slices, draw the same entries from both, and
maximise the mutual information of these entries under a Gaussian model of their logarithms.

    term = -λ · mean over sentences and slices of -½ log(1 - ρ²)

Source: Eq. 3-6; official code: SAP-samples/acl2023-micse model/models.py:158-344.
Inputs: attention (N, H, T, T) of the layers read, after attention dropout, of both views.
Relations: micse = simcse + ami + moco. The rows ct + ami and mirror_bert + ami are in the paper's
Table 2.
"""

import torch
from torch import Tensor

from csebench.model.layers import to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import ami_layers, ami_paper, gaussian_mi, sample_positions
from csebench.train.method import Component as Base
from csebench.train.method import Method, View, Views

DECLARATION = {
    "name": "ami",
    "version": 2,
    "title": "Attention-level mutual information",
    "kind": "component",
    "asks": ["attention"],
    "paper": "Klein & Nabi 2023 (ACL), sec. 2.2",
    "citation": "see methods/micse.py",
    "trains": "nothing",
    "params": {
        "weight": (2.5e-3, "sec. 3.1, λ at 100 % of the data; others are not stated"),
        "form": ("paper", "paper: sec. 2.2 and 3.1; code: model/models.py"),
        "samples": (150, "sec. 3.1"),
    },
    "search": {"weight": (2.5e-4, 2.5e-3, 2.5e-2)},
    "choices": {"form": ["paper", "code"]},
    "deviations": [
        (
            "the logarithm of Eq. 4 is kept; Algorithm 1, Eq. 9 and Eq. 11 print the estimate"
            " without it"
        ),
        (
            "layers: with `form: paper` the last third of the stack, which is 9 to 12 of 12 (the"
            " paper says 8-12); with `form: code` the code's 7:11 of 12; both scale with the"
            " encoder's depth"
        ),
        (
            "entries that attention dropout zeroed in either view are left out (the paper is"
            " silent; the code does so)"
        ),
        (
            "our choice: rho² is cut at 1 - 1e-6, so that equal views (CT's first step: two equal"
            " encoders, no dropout) give a finite value without gradient; the code returns the"
            " constant 100 when it meets NaN"
        ),
        (
            "our choice: with `form: paper`, only tokens before the first difference of the two views count"
            " (Mirror-BERT's span mask shifts the tokens behind it); for dropout views these are"
            " all tokens. With `form: code`, tokens are compared by position"
        ),
        "our choice: pairs of different sentences (CT's negatives) do not count",
        (
            "the same weight for every corpus size and, if no search chooses another, for every host"
            " method: the paper does not say which it used"
        ),
    ],
}


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        self.layers = ami_layers(self.p.form, method.encoder.num_layers)
        for encoder in method.encoders():
            encoder.attention_layers.update(self.layers)

    def term(self, method: Method, views: Views) -> Tensor:
        attention1, attention2, real = aligned(views.view1, views.view2, self.layers)
        if self.p.form == "code":
            return -self.p.weight * ami_code(attention1, attention2, self.p.samples)
        return -self.p.weight * ami_paper(attention1, attention2, real, self.p.samples)


def aligned(view1: View, view2: View, layers: range) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Select the attention maps of rows that show the same sentence twice.

    Returns:
        The maps of view 1 and of view 2, a tensor for each layer. Then (N, T) bool, True at tokens
        before the first difference of the two views.
    """
    device = view1.attention[layers[0]].device
    token_rows: slice | Tensor = slice(None)  # rows of token ids, which are on the host
    map_rows: slice | Tensor = slice(None)  # the same rows of maps, which are on the device
    if view1.same is not None:
        token_rows = view1.same.nonzero()[:, 0]
        map_rows = to_device(token_rows, device)
    mask1 = view1.mask[token_rows]
    mask2 = view2.mask[token_rows]
    length = int(torch.minimum(mask1.sum(1), mask2.sum(1)).max())
    in_both = mask1[:, :length] & mask2[:, :length]
    equal = view1.ids[token_rows][:, :length] == view2.ids[token_rows][:, :length]
    before_difference = (equal & in_both).long().cumprod(1).bool()

    def maps(view: View) -> list[Tensor]:
        return [view.attention[i][map_rows][:, :, :length, :length].float() for i in layers]

    return maps(view1), maps(view2), to_device(before_difference, device)


def ami_code(attention1: list[Tensor], attention2: list[Tensor], samples: int) -> Tensor:
    """Compute the term of the released code (model/models.py:169-313).

    It is the mean mutual information times an undocumented factor, (valid share of the kept
    slices)² + 1e-6. Valid entries are those > 0 in both views, which keeps padded query rows.
    Slices with fewer than `samples` valid entries are dropped. If all have fewer, as many entries
    are drawn as the emptiest slice has.

    Args:
        attention1, attention2: lists of (N, H, T, T), the layers used, an even number.
    """
    a = slices_code(attention1).flatten(0, 1)
    b = slices_code(attention2).flatten(0, 1)
    valid = (a > 0) & (b > 0)
    count = valid.sum(-1)
    keep = count >= samples
    if not keep.any():
        keep = torch.ones_like(keep)
        samples = int(count.min())
        if samples == 0:
            return (a * 0.0).sum()  # 0 that can still be differentiated
    a, b, valid = a[keep], b[keep], valid[keep]
    positions = sample_positions(valid, samples, replacement=False)
    scale = valid.to(a.dtype).mean().square() + 1e-6
    return gaussian_mi(a.gather(-1, positions), b.gather(-1, positions)).mean() * scale


def slices_code(attention: list[Tensor]) -> Tensor:
    """Cut attention into slices of one head over every second layer (models.py:171-172).

    Args:
        attention: list of (N, H, T, T), an even number of layers.

    Returns:
        (N, R, layers/2*T*T), R = H * 2, slice `head * 2 + parity`.
    """
    maps = torch.stack(list(attention), dim=1)
    n, layers, heads, t, _ = maps.shape
    maps = maps.reshape(n, layers // 2, 2, heads, t, t).permute(0, 3, 2, 1, 4, 5)
    return maps.reshape(n, heads * 2, layers // 2 * t * t)
