"""PCL: peers with diverse augmentations. Two networks learn from the same edited sentences and from
each other.

Idea: many kinds of positives keep a model from the shortcut of one augmentation. A second network,
the peer, sees the same sentences under other dropout and must judge them in the same way.

    loss = Σ over both networks (InfoNCE + BCE) + KL(rows within the networks)
           + KL(rows across the networks)
    row_i = softmax over cos(z0_i, zk_i)/τ for the positives k
            and cos(z0_i, z0_j)/τ for the other sentences j

Source: official code: qiyuw/PeerCL pcl/models.py:110-190, 214-260, 332-346, train.py:494-628.
Inputs: N sentences in K views each (the sentence, its copy, eight edits); z (K, N, D) of each
network.
Relations: simcse's loss + three terms. ct also has a second network, but here both networks see the
same rows.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity, kl_div

from csebench.base.errors import unknown
from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import augment
from csebench.train.losses import cos_sim, info_nce, off_diagonal, upcast_fp32
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "pcl",
    "version": 2,
    "extends": "simcse",
    "title": "Peer-contrastive learning",
    "paper": "Wu et al. 2022 (EMNLP), sec. 3",
    "citation": (
        """@inproceedings{wu2022pcl, title={{PCL}: Peer-Contrastive Learning with Diverse Augmentations for
Unsupervised Sentence Embeddings}, author={Wu, Qiyu and Tao, Chongyang and Shen, Tao and Xu, Can and Geng, Xiubo and
Jiang, Daxin}, booktitle={EMNLP}, year={2022}}"""
    ),
    "refuses": {
        "queue": (
            "its loss ranks the sentences of a batch, each through all its edits, and reads no"
            " others"
        )
    },
    "trains": "two encoders, head",
    "colours": {"": "#E377C2"},
    "params": {
        "steps": (15625, "README: 1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "README; 256 in run_unsup_pcl.sh"),
        "learning_rate": (3e-5, "README"),
        "max_length": (32, "README; also after an edit (train.py:602)"),
        "evaluate_every": (125, "README"),
        "pooler": ("cls_before_pooler", "README: mlp_only_train"),
        "temperature": (0.05, "README"),
        "edits": (
            "shuffle reverse delete insert_copies shuffle reverse delete insert_copies",
            "train.py:127",
        ),
    },
    "variants": {
        "default": (
            "as printed",
            "batches of 64 sentences, as the README says",
        ),
        "script": (
            "as released",
            "batches of 256 sentences in run_unsup_pcl.sh, so a quarter of the steps",
            {"batch_size": 256, "steps": 3907},
        ),
    },
    "deviations": [
        "the better of the two networks on STS-B dev is kept; the official code keeps the main one",
        (
            "the peer's [CLS] goes straight into the shared head; in the code it passes the"
            " checkpoint's pooler first, and the peer attends to padding"
        ),
        (
            "as in the code: BCE of the softmax of a row taken as logits, KL in one direction and"
            " as a mean over entries"
        ),
        "an edit deletes random positions; the code removes the first token equal to a random one",
    ],
}


class Method(SimCSE):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.peer = encoder.copy()

    def encoders(self) -> list[Encoder]:
        return [self.encoder, self.peer]

    def views(self, sentences: list[str]) -> Views:
        """Encode the rows of all K views by each of the two networks: (K·N, D) vectors each."""
        # the sentence, its copy, and the edits
        edits = [augment.copy, augment.copy, *map(self.edit, self.p.edits.split())]
        batch = self.tokenize_edited(sentences, edits)
        views = Views(self.encode(batch), self.encode(batch, self.peer))
        views.view1.blocks = len(edits)
        views.view2.blocks = len(edits)
        return views

    def edit(self, name: str) -> Callable[[Tensor], Tensor]:
        """Look up an edit by its name.

        Copies are inserted up to `max_length` tokens, which include [CLS] and [SEP].
        """
        if name not in augment.EDITS:
            raise unknown("edit", name, augment.EDITS)
        edit = augment.EDITS[name]
        if edit is augment.insert_copies:
            return partial(edit, most=self.p.max_length - 2)
        return edit

    def rows(self, anchors: Tensor, others: Tensor) -> Tensor:
        """Compute scaled cosines of view 0: (K, N, D), (K, N, D) -> (N, K-1 + N-1).

        First come the cosines with the positives, then those with other sentences.
        """
        positives = cosine_similarity(anchors[:1], others[1:], dim=-1).T
        negatives = off_diagonal(cos_sim(anchors[0], others[0]))
        return torch.cat([positives, negatives], dim=1) / self.p.temperature

    def loss(self, views: Views) -> Tensor:
        blocks = views.view1.blocks
        main = upcast_fp32(views.z1).unflatten(0, (blocks, -1))  # (K, N, D)
        peer = upcast_fp32(views.z2).unflatten(0, (blocks, -1))  # (K, N, D)
        main_rows = self.rows(main, main)  # (N, K-1 + N-1)
        peer_rows = self.rows(peer, peer)
        within = divergence(main_rows, peer_rows)
        across = divergence(self.rows(main, peer), self.rows(peer, main))
        loss = within + across
        for z, rows in ((main, main_rows), (peer, peer_rows)):
            labels = torch.zeros_like(rows)
            labels[:, : blocks - 1] = 1  # the columns of positives
            loss = loss + info_nce(z[0], z[1], self.p.temperature)
            loss = loss + binary_cross_entropy_with_logits(rows.softmax(dim=1), labels)
        return loss


def divergence(main: Tensor, peer: Tensor) -> Tensor:
    """Compute KL(peer ‖ main) of the softmax of two (N, M) rows, as a mean over entries."""
    log_main = main.log_softmax(dim=1)
    log_peer = peer.log_softmax(dim=1)
    return kl_div(log_main, log_peer, reduction="none", log_target=True).mean()
