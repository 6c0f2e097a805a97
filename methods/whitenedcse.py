"""WhitenedCSE: whiten the vectors of a batch in random groups of dimensions, and contrast three
views of each sentence.

Idea: whitening spreads a batch over the space in another way than negatives do. A random division
of the dimensions into groups distorts the vectors, so it gives further positives.

    w_k  = MLP(whiten(h_k)),   k = 1, 2, 3
    loss = InfoNCE(w_1, w_2) + InfoNCE(w_1, w_3)
    whiten: within each of G groups of dimensions, (h - mean) · covariance^(-1/2)

Source: official code: SupstarZh/WhitenedCSE whitenedcse/shuffled_group_whitening.py:24-77, 107-124,
whitenedcse/models.py:44-64, 185-238.
Inputs: N sentences in three dropout views; h (3, N, D) = [CLS].
Relations: simcse with a third view, and with whitening in front of the head. The method whitening
is fitted after training instead, over all dimensions.
"""

import torch
from torch import Tensor

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.model.layers import Head, to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import Views

VIEWS = 3  # of each sentence (run_unsup_example.sh: num_pos)
FLOOR = 1e-5  # smallest variance of a direction that is whitened

DECLARATION = {
    "name": "whitenedcse",
    "version": 1,
    "title": "WhitenedCSE",
    "paper": "Zhuo et al. 2023 (ACL)",
    "citation": (
        """@inproceedings{zhuo2023whitenedcse, title={{WhitenedCSE}: Whitening-based Contrastive Learning of
Sentence Embeddings}, author={Zhuo, Wenjie and Sun, Yifan and Wang, Xiaohan and Zhu, Linchao and
Yang, Yi}, booktitle={ACL}, year={2023}}"""
    ),
    "refuses": {
        "queue": "its vectors are whitened within their batch, which a queue outlives",
        "attention": "its second view has two rows for each sentence, so maps have no pairs",
    },
    "trains": "encoder, head",
    "colours": {"": "#C0392B"},
    "params": {
        "steps": (7813, "1 epoch of 10^6 sentences at batch 128"),
        "batch_size": (128, "run_unsup_example.sh"),
        "learning_rate": (1e-5, "run_unsup_example.sh, BERT base"),
        "max_length": (32, "run_unsup_example.sh"),
        "evaluate_every": (125, "run_unsup_example.sh"),
        "pooler": ("cls_before_pooler", "run_unsup_example.sh: mlp_only_train"),
        "temperature": (0.05, "run_unsup_example.sh"),
        "groups": (128, "models.py:52: of 6 dimensions in BERT base, of 8 in BERT large"),
        "form": (
            "thirds",
            (
                "what is whitened by itself. thirds: a third of the batch's sentences, all views"
                " (shuffled_group_whitening.py:28-31); views: one view of all sentences"
            ),
        ),
    },
    "search": {"groups": (32, 64, 128)},
    "below": [(0, "groups")],
    "choices": {"form": ["thirds", "views"]},
    "variants": {
        "default": (
            "released, repaired",
            (
                "a third of the batch's sentences, with all their views, has one division into"
                " groups; repaired are a SyntaxError, imports of missing files, unknown arguments of"
                " the script, and a second view where three are needed"
            ),
        ),
        "views": (
            "as printed",
            (
                "each view of a sentence has its own division into groups, as the abstract says:"
                " shuffled divisions make distortions of a single sample"
            ),
            {"form": "views"},
        ),
    },
    "deviations": [
        "of the paper only the abstract was at hand; the loss and the settings are the code's",
        (
            "the whitening matrix has no gradient, because the code copies the covariance"
            " (shuffled_group_whitening.py:113)"
        ),
        (
            "variances below 1e-5 count as 1e-5, so that few sentences give finite vectors; the code"
            " has no such floor"
        ),
        (
            "the script shows two GPUs to a trainer that gives each of them 128 sentences and a"
            " softmax of its own; here a step has 128 sentences"
        ),
        (
            "the README evaluates with the pooler `cls`, a layer that the trained model does not"
            " have; here the [CLS] state is evaluated, as the script chooses the best step"
        ),
        (
            "our choice: if several processes share a run, each draws its own divisions into groups, so"
            " their losses differ"
        ),
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        if encoder.size % self.p.groups:
            raise BadInput(
                f"whitenedcse.groups: {encoder.size} dimensions cannot be divided into"
                f" {self.p.groups} groups of one size; use a divisor of {encoder.size}."
            )
        self.mlp = Head(encoder.size)  # not `head`, because whitening comes before it

    def views(self, sentences: list[str]) -> Views:
        """Encode three dropout views: N rows in `view1`, and two blocks of N rows in `view2`."""
        view = self.view(sentences * VIEWS)
        first = view.rows(slice(len(sentences)))
        others = view.rows(slice(len(sentences), None))
        others.blocks = VIEWS - 1
        return Views(first, others)

    def loss(self, views: Views) -> Tensor:
        z = torch.cat([views.z1, views.z2]).unflatten(0, (VIEWS, -1))  # (3, N, D)
        anchor, second, third = self.mlp(self.whiten(upcast_fp32(z)))
        to_second = info_nce(anchor, second, self.p.temperature)
        to_third = info_nce(anchor, third, self.p.temperature)
        return to_second + to_third

    def whiten(self, z: Tensor) -> Tensor:
        """Whiten three views of a batch, (3, N, D) -> (3, N, D)."""
        orders = draw_orders(z.shape[-1])
        if self.p.form == "views":
            return whiten_parts(z, self.p.groups, orders)
        return whiten_thirds(z, self.p.groups, orders)


def draw_orders(size: int) -> list[Tensor]:
    """Draw a random order of the dimensions for each part that is whitened by itself."""
    return [torch.randperm(size) for _ in range(VIEWS)]


def whiten_parts(parts: Tensor, groups: int, orders: list[Tensor]) -> Tensor:
    """Whiten each part by itself, with its own order of the dimensions, (3, N, D) -> (3, N, D)."""
    whitened = []
    for part, order in zip(parts, orders, strict=True):
        whitened.append(whiten_groups(part, groups, order))
    return torch.stack(whitened)


def whiten_thirds(z: Tensor, groups: int, orders: list[Tensor]) -> Tensor:
    """Whiten each third of the rows by itself, (3, N, D) -> (3, N, D).

    The views of a sentence are neighbours, as in the official batch. So a third has all views of a
    third of the sentences. The code takes a third for a view (shuffled_group_whitening.py:28-31).
    """
    rows = z.transpose(0, 1).flatten(0, 1)  # (3N, D)
    thirds = rows.unflatten(0, (VIEWS, -1))  # (3, N, D)
    whitened = whiten_parts(thirds, groups, orders).flatten(0, 1)  # (3N, D)
    return whitened.unflatten(0, (-1, VIEWS)).transpose(0, 1)


def whiten_groups(x: Tensor, groups: int, order: Tensor) -> Tensor:
    """Whiten vectors over their rows, within groups of dimensions, (N, D) -> (N, D).

    Args:
        order: (D,) permutation. The first D/groups dimensions in this order are the first group.
    """
    back = to_device(order.argsort(), x.device)
    order = to_device(order, x.device)
    by_group = x[:, order].unflatten(1, (groups, -1)).transpose(0, 1)  # (G, N, D/G)
    centred = by_group - by_group.mean(1, keepdim=True)
    with torch.autocast(x.device.type, enabled=False):
        whitened = centred @ inverse_root(centred)
    return whitened.transpose(0, 1).flatten(1)[:, back]


@torch.no_grad()
def inverse_root(centred: Tensor) -> Tensor:
    """Compute covariance^(-1/2), (G, N, W) -> (G, W, W), without gradient."""
    covariance = centred.mT @ centred / centred.shape[1]
    variances, directions = torch.linalg.eigh(covariance)
    scale = variances.clamp(min=FLOOR).rsqrt()[:, None, :]  # (G, 1, W)
    return (directions * scale) @ directions.mT
