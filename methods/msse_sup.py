"""MSSE, supervised: the same three terms on triplets of natural language inference.

Idea: as msse, but positives and hard negatives are given, so that nothing has to be rewritten.

    loss = InfoNCE(h, h+, hard negatives) + μ · DCM(h, h+) + γ · ICM

Source: Table 3; official code: Hekang001/MSSE model.py:218-316.
Inputs: N triplets; h, h+, h- (N, D) = state at [MASK] of a prompt.
Relations: it is to msse what simcse_sup is to simcse.
"""

from csebench.train.method import Views
from methods.msse import Method as MSSE

DECLARATION = {
    "name": "msse_sup",
    "version": 2,
    "extends": "msse",
    "title": "MSSE (supervised)",
    "paper": "MSSE (ACL submission; ICASSP 2025), sec. 4.1 and Table 5",
    "citation": "see methods/msse.py",
    "needs": "triplets",
    "trains": "encoder, decoder",
    "kind": "supervised",
    "colours": {"": "#8A5A00"},
    "params": {
        "steps": (1617, "ours: 3 epochs of 275,601 triplets, SimCSE's; the paper does not say"),
        "batch_size": (512, "Table 5"),
        "learning_rate": (5e-5, "Table 5"),
        "warmup_steps": (
            0,
            "App. A: SimCSE's setup, which has none; its 500 are of the unsupervised scenario",
        ),
        "max_length": (32, "args.py; before the prompt"),
        "evaluate_every": (125, "sec. 4.1"),
        "pooler": ("mask", "Figure 7"),
        "temperature": (0.05, "Table 6"),
        "hard_negatives": (
            True,
            "sec. 4.1; False: model.py:299, which encodes them and leaves them out of the loss",
        ),
        "projector": ("none", "Eq. 6; linear: model.py:276"),
        "contrast": (1.0, "Eq. 10"),
        "dimensions": (0.8, "App. A: μ"),
        "form": (
            "paper",
            "paper: Eq. 4 over D; literal: Eq. 4, a sum over D²; code: model.py:88-104",
        ),
        "released_pairing": (False, "as in msse"),
        "layerwise": (0.0, "as in msse"),
    },
    "search": {"dimensions": (0.2, 0.8, 2.0)},
    "weights": ["dimensions"],
    "choices": {"form": ["paper", "literal", "code"], "projector": ["none", "linear"]},
    "components": {"compensation": {}},
    "variants": {
        "default": (
            "as printed",
            "sec. 4.1 with Eq. 4 divided by D, without which it drowns the other terms",
        ),
        "released": (
            "as released",
            (
                "as msse's, and hard negatives are encoded but never enter the loss; the line that"
                " ends in a TypeError is read as it was meant"
            ),
            {"like": "msse:code", "hard_negatives": False, "released_pairing": True},
        ),
        "code": (
            "released, repaired",
            "the same with hard negatives in the loss and each anchor paired with its positive",
            {"like": "msse:code"},
        ),
    },
    "deviations": ["see methods/msse.py"],
}


class Method(MSSE):
    def views(self, triplets: list[tuple[str, str, str]]) -> Views:
        anchors, positives, negatives = map(list, zip(*triplets, strict=True))
        hard = None
        if self.p.hard_negatives:
            hard = self.view(negatives)
        return Views(self.view(anchors), self.view(positives), hard)
