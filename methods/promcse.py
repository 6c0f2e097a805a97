"""PromCSE: SimCSE that trains a prefix in every layer, and leaves the encoder as it is.

Idea: an encoder with millions of trained weights adapts too much to the domain of its training
sentences. So its weights stay fixed. Every layer gets P more keys and values, which the tokens of a
sentence attend to. They are trained, with the head of SimCSE.

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j exp(cos(z1_i, z2_j)/τ),   mean over i
    attention of layer l = softmax(Q [K'_l; K]ᵀ / √d) [V'_l; V],       K'_l, V'_l (P, D) trained

Source: official code: YJiangcm/PromCSE promcse/models.py:21-45, 134-286, 350-400, train.py,
run_unsup_example.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views. Entries of the
prefix are dropped like those of hidden states.
Relations: simcse with other trained weights. promcse_sup is the same on triplets, with a hinge.
"""

from torch import Tensor

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce
from csebench.train.method import ClsHeadMethod, Views

DECLARATION = {
    "name": "promcse",
    "version": 1,
    "title": "PromCSE (unsupervised)",
    "paper": "Jiang et al. 2022 (Findings of EMNLP)",
    "citation": (
        """@inproceedings{jiang2022improved, title={Improved Universal Sentence Embeddings with Prompt-based
Contrastive Learning and Energy-based Learning}, author={Jiang, Yuxin and Zhang, Linhan and Wang, Wei},
booktitle={Findings of EMNLP}, year={2022}}"""
    ),
    "needs": "an encoder laid out like BERT",
    "refuses": {
        "attention": "its tokens also attend to a prefix, so attention maps are not over tokens alone"
    },
    "trains": "prefix, head",
    "colours": {"": "#5C7A29"},
    "params": {
        "steps": (3907, "README table: 1 epoch of 10^6 sentences at batch 256"),
        "batch_size": (256, "README table, BERT base"),
        "learning_rate": (3e-2, "README table, BERT base"),
        "max_length": (32, "run_unsup_example.sh"),
        "evaluate_every": (125, "run_unsup_example.sh"),
        "pooler": ("cls_before_pooler", "[CLS]; its MLP is used in training only (mlp_only_train)"),
        "temperature": (0.05, "run_unsup_example.sh"),
        "prefix": (16, "README table, BERT base: prompt length, P"),
    },
    "keeps": ["learning_rate"],  # a prefix needs a rate a thousand times an encoder's
    "search": {"learning_rate": (1e-2, 3e-2, 1e-1), "prefix": (8, 16, 32)},
    "below": [(0, "prefix")],
    "deviations": [
        "the paper was not at hand: settings and loss are those of the public code and its README",
        (
            "precision as the scale says, fp32 or bf16, where the official script trains in fp16;"
            " cosines are in fp32 in all three"
        ),
    ],
}


class Method(ClsHeadMethod):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        encoder.requires_grad_(False)
        encoder.add_prefix(self.p.prefix)
        if self.p.pooler == "cls":  # its pooler layer is the head, which is new and trained
            encoder.model.pooler.requires_grad_(True)

    def loss(self, views: Views) -> Tensor:
        return info_nce(views.z1, views.z2, self.p.temperature, views.queue)
