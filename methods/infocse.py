"""InfoCSE: an auxiliary masked language model restores a sentence from what its vector says.

Idea: contrastive learning drops information that does not tell sentences apart. A masked language
model that is fed with the sentence vector makes the vector keep this information, without touching
the encoder's own token states.

    loss = InfoNCE(z1, z2) + λ · MLM(auxiliary network(masked sentence, h))

Source: official code: caskcsg/sentemb InfoCSE/infocse/models_cls_mlm.py, Infocse-bert-base.sh,
InfoCSE-bert-large.sh ("the scripts").
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; h (2N, D) =
[CLS].
Relations: simcse + components/auxiliary_mlm. Together with components/rtd, diffcse's term, it is
RTD + MLM of Table 12.
"""

from torch import Tensor

from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "infocse",
    "version": 1,
    "extends": "simcse",
    "title": "InfoCSE",
    "paper": "Wu et al. 2022 (Findings of EMNLP), sec. 3 and 4.2",
    "citation": (
        """@inproceedings{wu2022infocse, title={{InfoCSE}: Information-aggregated Contrastive Learning of
Sentence Embeddings}, author={Wu, Xing and Gao, Chaochen and Lin, Zijia and Han, Jizhong and
Wang, Zhongyuan and Hu, Songlin},
booktitle={Findings of EMNLP}, year={2022}}"""
    ),
    "needs": "a model that condenser trained",
    "trains": "encoder, head, auxiliary layers",
    "colours": {"": "#009E73"},
    "params": {
        "steps": (15625, "sec. 4.2: 1 epoch of 10^6 sentences at batch 64; 2 in the scripts"),
        "batch_size": (64, "sec. 4.2"),
        "learning_rate": (3e-5, "sec. 4.2; 7e-6 in the scripts"),
        "max_length": (32, "scripts"),
        "evaluate_every": (125, "sec. 4.2"),
        "pooler": ("cls_before_pooler", "Table 9; mlp_only_train"),
        "temperature": (0.05, "scripts"),
        "negatives": ("batch", "Eq. 2"),
        "pretraining": (
            "condenser",
            "sec. 3.1: the run it starts from; none: Table 4's `w/o pre-training`",
        ),
        "projector": (
            "mlp",
            "the paper names none, so SimCSE's; batchnorm: --batchnorm of both scripts",
        ),
        "contrast": (1.0, "weight of InfoNCE; 0 is Table 5's `w/o contrastive loss`"),
    },
    "choices": {
        "negatives": ["batch", "zeroed", "none"],
        "pretraining": ["condenser", "none"],
        "projector": ["batchnorm", "mlp", "none"],
    },
    "components": {"auxiliary_mlm": {}},
    "variants": {
        "default": (
            "as printed",
            "sec. 4.2 with λ 1e-5, the best of Table 8, and SimCSE's head",
        ),
        "lambda_of_the_text": (
            "as printed",
            "the same with λ 0.005, as sec. 4.2 says and Table 8 contradicts",
            {"components": {"auxiliary_mlm": {"weight": 5e-3}}},
        ),
        "script_new_layers": (
            "as released",
            (
                "2 epochs at 7e-6, DiffCSE's projector with batch normalisation, and two new upper"
                " layers, because the hub id of the script has none; the encoder is not pre-trained"
                " here, the script's is Condenser's"
            ),
            {
                "steps": 31250,
                "learning_rate": 7e-6,
                "projector": "batchnorm",
                "pretraining": "none",
                "components": {"auxiliary_mlm": {"upper": "new"}},
            },
        ),
        "script": (
            "released, repaired",
            "the same from our Condenser with its upper layers, as the paper describes it",
            {"steps": 31250, "learning_rate": 7e-6, "projector": "batchnorm"},
        ),
    },
    "deviations": [
        "`w/o MLM loss` (Table 5) is run with the weight of the auxiliary loss set to 0",
    ],
}


class Method(SimCSE):
    def loss(self, views: Views) -> Tensor:
        return self.p.contrast * super().loss(views)
