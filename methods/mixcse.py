"""MixCSE: mixtures of a sentence with the next one of its batch are further negatives.

Idea: random sentences of a batch soon are easy negatives, and then give little gradient. A mixture
of a positive with another sentence stays hard. Mixtures of a positive with the next sentence are
further negatives, for all anchors. So are mixtures of an anchor with the next one, for all
positives. They have no gradient, so the loss moves the anchors and positives away from them.

    mix(z)_i = λ z_i + (1-λ) z_(i+1),   without gradient,   λ = `mixing`
    loss = cross-entropy with target i over the columns
           cos(z1_i, z2_j)/τ,   cos(z1_i, mix(z2)_j)/τ,   cos(mix(z1)_i, z2_j)/τ

Two logits of a row compare a positive pair in part:

- `cos(z1_i, mix(z2)_(i-1))`: this mixture contains (1-λ) z2_i, the positive.
- `cos(mix(z1)_i, z2_(i+1))`: this mixture contains (1-λ) z1_(i+1), the anchor of z2_(i+1).

The released code sets both to 0 instead of removing them.

Source: official code: BDBC-KG-NLP/MixCSE_AAAI2022 mixcse/models_mix.py:166-275,
run_unsup_example.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views.
Relations: simcse with further negatives, which are made of its own vectors.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from csebench.train.losses import cos_sim, upcast_fp32
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "mixcse",
    "version": 1,
    "extends": "simcse",
    "title": "MixCSE",
    "paper": "Zhang et al. 2022 (AAAI)",
    "citation": (
        """@inproceedings{zhang2022mixcse, title={Unsupervised Sentence Representation via Contrastive Learning
with Mixing Negatives}, author={Zhang, Yanzhao and Zhang, Richong and Mensah, Samuel and Liu, Xudong and
Mao, Yongyi}, booktitle={AAAI}, year={2022}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#1B5E20"},
    "params": {
        "steps": (15625, "run_unsup_example.sh: 1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "run_unsup_example.sh"),
        "learning_rate": (3e-5, "run_unsup_example.sh, BERT base"),
        "max_length": (32, "run_unsup_example.sh"),
        "evaluate_every": (125, "run_unsup_example.sh"),
        "pooler": (
            "cls_before_pooler",
            "run_unsup_example.sh:28 evaluates without the MLP; the README with it",
        ),
        "temperature": (0.05, "run_unsup_example.sh"),
        "mixing": (
            0.2,
            (
                "run_unsup_example.sh: lambdas, the share of the positive; it had 0.6 until commit"
                " 8a8add3 (2022-06-14)"
            ),
        ),
        "form": (
            "code",
            "code: models_mix.py:220-271; removed: without its logits of 0",
        ),
    },
    "search": {"mixing": (0.1, 0.2, 0.4)},
    "below": [("mixing", 1)],
    "choices": {"form": ["code", "removed"]},
    "variants": {
        "default": (
            "as released",
            (
                "every sentence has 2N further logits as negatives: its vector against N mixed"
                " positives, and its own mixture against N positives; the two that compare a positive"
                " pair in part are 0"
            ),
        ),
        "removed": (
            "released, repaired",
            "the logits that the code sets to 0 are left out of the softmax",
            {"form": "removed"},
        ),
    },
    "deviations": [
        "the paper was not at hand; the loss and the settings are the code's",
        (
            "the script has no mlp_only_train, so its best step on STS-B dev is chosen with the MLP;"
            " here it is chosen without, as at test"
        ),
        "precision as the scale says, fp32 or bf16; the script trains in fp32",
        (
            "hard_negative_weight is left out: the code adds it to the logits of a sentence's own"
            " two mixtures (models_mix.py:239-243, 267-271), and it is 0 by default"
        ),
        "our choice: with the component moco, the queue adds further negatives of the unmixed anchors",
    ],
}


class Method(SimCSE):
    def loss(self, views: Views) -> Tensor:
        return mixed_info_nce(
            views.z1, views.z2, self.p.temperature, self.p.mixing, self.p.form, views.queue
        )


def mix(z: Tensor, mixing: float) -> Tensor:
    """Mix each vector with the next one of the batch, (N, D) -> (N, D), without gradient.

    The last vector mixes with the first.

    Args:
        mixing: share of the vector itself. The rest is the next vector's.
    """
    mixed = mixing * z + (1 - mixing) * z.roll(-1, dims=0)
    return mixed.detach()


def mixed_info_nce(
    z1: Tensor,
    z2: Tensor,
    temperature: float,
    mixing: float,
    form: str = "code",
    queue: Tensor | None = None,
) -> Tensor:
    """Compute InfoNCE with mixtures as further negatives (models_mix.py:198-275).

    Args:
        z1, z2: (N, D).
        mixing: share of the positive in its mixture, and of the anchor in its own.
        form: what becomes of the two logits of a row that compare a positive pair in part. `code`
            sets them to 0, `removed` leaves them out.
        queue: (Q, D) further negatives, without gradient.
    """
    z1 = upcast_fp32(z1)
    z2 = upcast_fp32(z2)
    mixed_positives = cos_sim(z1, mix(z2, mixing)) / temperature  # (N, N)
    mixed_anchors = cos_sim(mix(z1, mixing), z2) / temperature  # (N, N)

    own = torch.eye(len(z1), dtype=torch.bool, device=z1.device)
    previous = own.roll(1, dims=0)  # True at (i, i-1)
    following = own.roll(1, dims=1)  # True at (i, i+1)
    fill = 0.0 if form == "code" else float("-inf")
    # mixture i-1 contains a part of positive i
    mixed_positives = mixed_positives.masked_fill(previous, fill)
    # mixed anchor i contains a part of anchor i+1
    mixed_anchors = mixed_anchors.masked_fill(following, fill)

    columns = [cos_sim(z1, z2) / temperature, mixed_positives, mixed_anchors]
    if queue is not None:
        columns.append(cos_sim(z1, queue.detach()) / temperature)
    logits = torch.cat(columns, dim=1)
    return cross_entropy(logits, torch.arange(len(z1), device=z1.device))
