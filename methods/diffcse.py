"""DiffCSE: a sentence vector should be insensitive to dropout, but sensitive to edits of the
sentence.

Idea: a discriminator sees an edited sentence together with the vector of the original one and has
to find the edited tokens. The gradient reaches the encoder through that vector.

    loss = InfoNCE(z1, z2) + λ · RTD(discriminator(edited sentence, z))

Source: official code: voidism/DiffCSE diffcse/models.py:118-274, run_diffcse.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = projector([CLS]) of the two dropout views.
Relations: simcse with batch normalisation in its projector + components/rtd. infocse is the same
with components/auxiliary_mlm. Both components together are RTD + MLM of InfoCSE's Table 12.
"""

from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "diffcse",
    "version": 1,
    "extends": "simcse",
    "title": "DiffCSE",
    "paper": "Chuang et al. 2022 (NAACL), sec. 3 and 4.1",
    "citation": (
        """@inproceedings{chuang2022diffcse, title={{DiffCSE}: Difference-based Contrastive Learning for
Sentence Embeddings}, author={Chuang, Yung-Sung and Dangovski, Rumen and Luo, Hongyin and Zhang, Yang and
Chang, Shiyu and Solja{\\v{c}}i{\\'c}, Marin and Li, Shang-Wen and Yih, Wen-tau and Kim, Yoon and Glass, James},
booktitle={NAACL}, year={2022}}"""
    ),
    "needs": "a generator",
    "trains": "encoder, projector, discriminator",
    "colours": {"": "#56B4E9"},
    "params": {
        "steps": (31250, "run_diffcse.sh: 2 epochs of 10^6 sentences at batch 64"),
        "batch_size": (64, "run_diffcse.sh"),
        "learning_rate": (7e-6, "run_diffcse.sh"),
        "max_length": (32, "run_diffcse.sh"),
        "evaluate_every": (125, "run_diffcse.sh"),
        "pooler": ("cls_before_pooler", "run_diffcse.sh: mlp_only_train"),
        "temperature": (0.05, "run_diffcse.sh"),
        "negatives": ("batch", "Eq. 1"),
        "projector": ("batchnorm", "run_diffcse.sh: --batchnorm; mlp: SimCSE's head"),
    },
    "choices": {
        "negatives": ["batch", "zeroed", "none"],
        "projector": ["batchnorm", "mlp", "none"],
    },
    "components": {"rtd": {}},
    "deviations": ["an averaging pooler keeps the projector, where SimCSE's head is left out"],
}


class Method(SimCSE):
    pass
