"""miCSE: SimCSE with momentum negatives and attention-level mutual information.

Idea: two views of a sentence should not only be close as vectors, their attention should also have
the same structure. So the loss maximises the mutual information of the two attention tensors in
addition to InfoNCE.

    loss = InfoNCE(z1, z2, queue) - λ · mean MI(attention1, attention2)

Source: Eq. 1-7; official code: SAP-samples/acl2023-micse, which holds AMI + SimCSE only: no
momentum encoder, no queue.
Inputs: a batch of N sentences; z1, z2 (N, D); attention of the upper third of the layers.
Relations: simcse + components/ami + components/moco, and nothing else. simcse + ami is the paper's
AMI+SimCSE.
"""

from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "micse",
    "version": 2,
    "extends": "simcse",
    "title": "miCSE",
    "paper": "Klein & Nabi 2023 (ACL), sec. 2 and 3.1",
    "citation": (
        """@inproceedings{klein2023micse, title={{miCSE}: Mutual Information Contrastive Learning for Low-shot
Sentence Embeddings}, author={Klein, Tassilo and Nabi, Moin}, booktitle={ACL}, year={2023}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#D55E00"},
    "params": {
        "steps": (
            20000,
            "sec. 3.1: 1/10/100/1000 epochs of 10^6/10^5/10^4/10^3 sentences at batch 50",
        ),
        "batch_size": (50, "sec. 3.1"),
        "learning_rate": (3e-5, "sec. 3.1"),
        "warmup_steps": (250, "sec. 3.1"),
        "max_length": (32, "sec. 3.1"),
        "evaluate_every": (125, "ours: not given; SimCSE's"),
        "pooler": ("cls_before_pooler", "sec. 3.1: [CLS]"),
        "temperature": (0.05, "sec. 3.1"),
        "negatives": ("batch", "Eq. 2"),
    },
    "choices": {"negatives": ["batch", "zeroed", "none"]},
    "components": {"ami": {}, "moco": {}},
    "variants": {
        "default": (
            "as printed",
            "Eq. 1-7 and sec. 3.1: AMI of adjacent heads in the last four layers, and MoCo",
        ),
        "released": (
            "as released",
            (
                "AMI + SimCSE without MoCo, of which the code has nothing: one head in two layers,"
                " scaled by the share of valid entries, with the README's settings; two undefined"
                " arguments, which stop it at start-up and which nothing else reads, are left out"
            ),
            {
                "steps": 7850,
                "batch_size": 64,
                "learning_rate": 1e-5,
                "warmup_steps": 0,
                "evaluate_every": 500,
                "components": {"ami": {"form": "code", "weight": 1e-4}, "moco": None},
            },
        ),
        "code": (
            "released, repaired",
            "the same with the paper's MoCo, which the paper ran and the code lacks",
            {
                "steps": 7850,
                "batch_size": 64,
                "learning_rate": 1e-5,
                "warmup_steps": 0,
                "evaluate_every": 500,
                "components": {"ami": {"form": "code", "weight": 1e-4}},
            },
        ),
    },
    "deviations": [
        (
            "few-shot subsets are drawn from the corpus by the subset seed; the authors trained on"
            " fixed files, five per size (sap-ai-research/datasets-for-micse, seeds 48 to 52)"
        ),
        (
            "Eq. 2 prints the positive outside the denominator and a sum over the batch; as in the"
            " code, it is inside and the loss is a mean"
        ),
        (
            "the variants `released` and `code` have the README's settings for 1 % of the data: λ"
            " 1e-4, 500 epochs, 7,850 steps; the README has others for 10, 0.1 and 0.01 %: λ 5e-4,"
            " 1e-3 and 1e-3, and 15,630, 8,000 and 5,000 steps"
        ),
        (
            "the released commands choose among checkpoints of every 500 steps, as the variants"
            " `released` and `code` do"
        ),
    ],
}


class Method(SimCSE):
    pass
