"""SimCSE, supervised: entailed sentences are positives, contradicting ones hard negatives.

Idea: data of natural language inference says which sentences mean the same. It also has a sentence
for each that looks similar and means the opposite.

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j (exp(cos(z1_i, z2_j)/τ) + α_ij exp(cos(z1_i, z3_j)/τ)),
    mean over i

Source: Eq. 5; official code: princeton-nlp/SimCSE simcse/models.py:194-212, run_sup_example.sh.
Inputs: N triplets; z1, z2, z3 (N, D) = pooler of anchor, positive and hard negative in one pass.
Relations: simcse with given positives and, as further columns, hard negatives. The head is kept at
test.
"""

from torch import Tensor

from csebench.train.losses import info_nce
from csebench.train.method import ClsHeadMethod, Views

DECLARATION = {
    "name": "simcse_sup",
    "version": 1,
    "title": "SimCSE (supervised)",
    "paper": "Gao et al. 2021 (EMNLP), sec. 4",
    "citation": "see methods/simcse.py",
    "needs": "triplets",
    "trains": "encoder with its pooler",
    "kind": "supervised",
    "colours": {"": "#4F81BD"},
    "params": {
        "steps": (1617, "run_sup_example.sh: 3 epochs of 275,601 triplets at batch 512"),
        "batch_size": (512, "run_sup_example.sh: 4 GPUs of 128"),
        "learning_rate": (5e-5, "run_sup_example.sh, BERT base"),
        "max_length": (32, "run_sup_example.sh"),
        "evaluate_every": (125, "run_sup_example.sh"),
        "pooler": ("cls", "run_sup_example.sh: the MLP is kept at test"),
        "temperature": (0.05, "run_sup_example.sh"),
        "hard_weight": (
            0.0,
            "run_sup_example.sh: hard_negative_weight, the logarithm of the paper's α",
        ),
    },
    "search": {
        "learning_rate": (1e-5, 3e-5, 5e-5, 1e-4),
        "temperature": (0.02, 0.05, 0.1),
        "pooler": ("cls", "avg", "avg_first_last_2021"),
    },
    "variants": {
        "default": (
            "as released",
            "evaluation on STS-B dev every 125 steps (run_sup_example.sh)",
        ),
        "paper": (
            "as printed",
            "evaluation every 250 steps (App. A); batch and learning rate are the same in both",
            {"evaluate_every": 250},
        ),
    },
    "deviations": [
        (
            "one device: all negatives of the batch of 512, as gathered over 4 GPUs in the official"
            " run, but with gradient through all of them; there it flows through a GPU's own"
        ),
        "the MLP is the encoder's pooler, newly initialised, so that it is exported with it",
    ],
}


class Method(ClsHeadMethod):
    def views(self, triplets: list[tuple[str, str, str]]) -> Views:
        return self.triplet_views(triplets)

    def loss(self, views: Views) -> Tensor:
        assert views.hard is not None
        return info_nce(
            views.z1,
            views.z2,
            self.p.temperature,
            views.queue,
            hard=views.hard.z,
            hard_weight=self.p.hard_weight,
        )
