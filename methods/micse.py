"""miCSE: SimCSE with momentum negatives and attention-level mutual information.

Idea: two views of a sentence should not only be close as vectors, their attention should also have the same
structure; so the mutual information of the two attention tensors is maximised beside InfoNCE.

    loss = InfoNCE(z1, z2, queue) - λ · mean MI(attention1, attention2)

Paper: Klein & Nabi 2023 (ACL), sec. 2 (Eq. 1-7), settings sec. 3.1.
Official code: SAP-samples/acl2023-micse, which holds AMI + SimCSE only: no momentum encoder, no queue.
Inputs: a batch of N sentences; z1, z2 (N, D); attention of the upper third of the layers.
Relations: simcse + components/ami + components/moco, nothing else; simcse + ami is the paper's AMI+SimCSE.
Deviations: see the two components, where the choices are made.
"""

from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "micse",
    "version": 2,
    "title": "miCSE",
    "paper": "Klein & Nabi 2023 (ACL), sec. 2 and 3.1",
    "citation": """@inproceedings{klein2023micse, title={{miCSE}: Mutual Information Contrastive Learning for Low-shot
Sentence Embeddings}, author={Klein, Tassilo and Nabi, Moin}, booktitle={ACL}, year={2023}}""",
    "trains": "encoder, head",
    "params": {
        "steps": (20000, "sec. 3.1: 1/10/100/1000 epochs of 10^6/10^5/10^4/10^3 sentences at batch 50"),
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
        "code": {
            "steps": 15630,
            "batch_size": 64,
            "learning_rate": 1e-5,
            "warmup_steps": 0,
            "evaluate_every": 500,
            "components": {"ami": {"form": "code", "weight": 5e-4}},
        },
    },
    "deviations": [
        "few-shot subsets are drawn from the corpus by the subset seed; the authors trained on fixed files, five per"
        " size (sap-ai-research/datasets-for-micse, seeds 48 to 52)",
        "variant code takes the README's settings for 10 % of the data, and keeps MoCo, which the released code lacks:"
        " for the released path exactly, run simcse with component ami in form code",
    ],
}


class Method(SimCSE):
    pass
