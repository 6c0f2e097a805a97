"""InforMin-CL: the two views should not only find each other, they should be the same.

Idea: information that only one of the views has is redundant. Reconstructing one view from the
other minimises it.

    loss = InfoNCE(z1, z2) + λ · mean ‖z1/‖z1‖ - z2/‖z2‖‖²

Source: Eq. 4-9; official code: Bin199/InforMin-CL informin-cl/models.py:20-22, 227-230,
run_unsup_example.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views.
Relations: simcse + a term. With the component mlm it is the paper's "w/ MLM".
"""

from torch import Tensor
from torch.nn.functional import normalize

from csebench.train.losses import upcast_fp32
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "informin_cl",
    "version": 1,
    "extends": "simcse",
    "title": "InforMin-CL",
    "paper": "Chen et al. 2022 (COLING), sec. 3 and Table 3",
    "citation": (
        """@inproceedings{chen2022informin, title={An Information Minimization Based Contrastive Learning Model
for Unsupervised Sentence Embeddings Learning}, author={Chen, Shaobin and Zhou, Jie and Sun, Yuling and He, Liang},
booktitle={COLING}, year={2022}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#CC79A7"},
    "params": {
        "steps": (7813, "sec. 4.1: 1 epoch of 10^6 sentences at batch 128"),
        "batch_size": (128, "Table 3"),
        "learning_rate": (3e-5, "Table 3, BERT base"),
        "max_length": (32, "run_unsup_example.sh"),
        "evaluate_every": (125, "run_unsup_example.sh"),
        "pooler": ("cls_before_pooler", "sec. 4.1: [CLS], with the MLP in training only"),
        "temperature": (0.05, "run_unsup_example.sh"),
        "negatives": ("batch", "Eq. 4"),
        "reconstruction": (0.4, "Table 3: λ of BERT base; 4 for RoBERTa"),
        "projector": (
            "mlp",
            "sec. 4.1: in training only; none: the script, whose pooler is cls_before_pooler",
        ),
        "form": (
            "paper",
            (
                "paper: Eq. 8 of unit vectors; raw: not normalised; code: 2/D of it"
                " (models.py:227-230)"
            ),
        ),
    },
    "search": {"reconstruction": (0.1, 0.4, 1.0, 4.0)},
    "weights": ["reconstruction"],
    "choices": {
        "negatives": ["batch", "zeroed", "none"],
        "projector": ["mlp", "none"],
        "form": ["paper", "raw", "code"],
    },
    "variants": {
        "default": (
            "as printed",
            "Eq. 8 of unit vectors, a sum over D, with λ 0.4, and no MLM",
        ),
        "script": (
            "as released",
            (
                "the script: the term is 2/D of Eq. 8, λ 1, learning rate 5e-5, no MLP in training;"
                " MLM, on by default, writes its masks into the views; files of SimCSE that"
                " train.py imports by a wrong name are supplied"
            ),
            {
                "form": "code",
                "reconstruction": 1.0,
                "learning_rate": 5e-5,
                "projector": "none",
                "components": {"mlm": {"form": "in_place"}},
            },
        ),
        "first_release": (
            "as released",
            (
                "the same until 2023-07-16, with the reconstruction term commented out: SimCSE with"
                " MLM in place"
            ),
            {
                "reconstruction": 0.0,
                "learning_rate": 5e-5,
                "projector": "none",
                "components": {"mlm": {"form": "in_place"}},
            },
        ),
        "script_clean": (
            "released, repaired",
            "the script with its masks on copies, so that the views are not masked",
            {
                "form": "code",
                "reconstruction": 1.0,
                "learning_rate": 5e-5,
                "projector": "none",
                "components": {"mlm": {}},
            },
        ),
        "code": (
            "released, repaired",
            "the paper's settings without MLM, the term on the code's scale (2/D of Eq. 8)",
            {"form": "code"},
        ),
    },
    "deviations": [
        "Eq. 4 prints 1/τ outside the exponent; as in the code, here it is inside",
        "the sign is the code's (the distance is minimised); the paper's signs are inconsistent",
        (
            "ours: Eq. 8 on unit vectors, as the cosine of the loss and the code have them; `raw`"
            " is the literal reading"
        ),
    ],
}


class Method(SimCSE):
    def loss(self, views: Views) -> Tensor:
        contrast = super().loss(views)
        distance = reconstruction(views.z1, views.z2, self.p.form)
        return contrast + self.p.reconstruction * distance


def reconstruction(z1: Tensor, z2: Tensor, form: str = "paper") -> Tensor:
    """Compute the squared distance of the two views on the unit sphere (Eq. 8).

    InforMin-CL adds it to the loss, so it is minimised. The sign is the code's: taken literally,
    the paper's signs would push the views apart.

    Args:
        z1, z2: (N, D).
        form: `paper` is the squared distance, a mean over sentences. `code` is 2/D of it (a mean
            over D of a term counted twice, informin-cl/models.py:20-22, 227-230). `raw` is `paper`
            without normalisation.
    """
    if form != "raw":
        z1 = normalize(upcast_fp32(z1), dim=-1)
        z2 = normalize(upcast_fp32(z2), dim=-1)
    distance = (upcast_fp32(z1) - upcast_fp32(z2)).square().sum(-1).mean()
    if form == "code":
        return distance * 2 / z1.shape[-1]
    return distance
