"""ConSERT, unsupervised: a view with features cut off against a view with shuffled tokens.

Idea: edits of the embedding layer make two views of a sentence at almost no cost. One view loses
the same fifth of the features at every token. The other view has its tokens in a random order.

    loss = λ · (InfoNCE from view 1 to view 2 + InfoNCE from view 2 to view 1),   both against the
    2N-2 vectors of other sentences

Source: official code: yym6472/ConSERT sentence_transformers/losses/AdvCLSoftmaxLoss.py:378-424,
429-452, 708-721, 786-794, transformers/modeling_bert.py:921-943, 971-1003,
scripts/unsup-consert-base.sh and unsup-consert-large.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = mean of the last layer, without a head.
Relations: mirror_bert's loss with other views. mirror_bert takes the mean over 2N anchors, which is
half of the sum here.
"""

import torch
from torch import Tensor

from csebench.model.encoder import Encoder
from csebench.model.pooling import Encoded, pool
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Method as Base
from csebench.train.method import Views
from methods.mirror_bert import nt_xent

DECLARATION = {
    "name": "consert",
    "version": 1,
    "title": "ConSERT (unsupervised)",
    "paper": "Yan et al. 2021 (ACL)",
    "citation": (
        """@inproceedings{yan2021consert, title={{ConSERT}: A Contrastive Framework for Self-Supervised Sentence
Representation Transfer}, author={Yan, Yuanmeng and Li, Rumei and Wang, Sirui and Zhang, Fuzheng and Wu, Wei and
Xu, Weiran}, booktitle={ACL}, year={2021}}"""
    ),
    "refuses": {
        "attention": (
            "its second view has the tokens in another order, so the attention maps of its views"
            " do not match"
        )
    },
    "colours": {"": "#9ACD32"},
    "params": {
        "steps": (
            9300,
            "unsup-consert-base.sh, README: 10 epochs of 89,192 sentences at batch 96",
        ),
        "batch_size": (96, "unsup-consert-base.sh"),
        "learning_rate": (5e-7, "unsup-consert-base.sh"),
        "warmup_steps": (930, "main.py:284: a tenth of the steps"),
        "weight_decay": (0.01, "SentenceTransformer.py:461, default of fit"),
        "max_length": (
            67,
            "unsup-consert-base.sh: 64 tokens, and 3 for special tokens (Transformer.py:88)",
        ),
        "dropout": (0.0, "unsup-consert-base.sh: --no_dropout"),
        "evaluate_every": (200, "unsup-consert-base.sh"),
        "pooler": (
            "avg_top2",
            "README, note 3; in training, the mean of the last layer alone (main.py:189-192)",
        ),
        "temperature": (0.1, "unsup-consert-base.sh"),
        "cutoff": (0.2, "unsup-consert-base.sh: share of the features that view 1 loses"),
        "loss_weight": (
            0.15,
            "unsup-consert-base.sh: --cl_rate, of the whole loss; it matters to clipping alone",
        ),
    },
    "keeps": ["dropout", "pooler"],  # views differ by edits alone; shuffled tokens need a mean
    "search": {"cutoff": (0.1, 0.2, 0.4)},
    "below": [("cutoff", 1)],
    "variants": {
        "default": (
            "as released",
            "unsup-consert-base.sh: feature cutoff against shuffled tokens, without dropout",
        ),
        # unsup-consert-large.sh: view 1 is not edited, and dropout is BERT's
        "large": {
            "cutoff": 0.0,
            "dropout": 0.1,
            "steps": 23250,
            "warmup_steps": 2323,
            "evaluate_every": 100,
        },
    },
    "deviations": [
        "the settings are the code's; the paper was not at hand",
        (
            "the printed rows were trained on the sentences of STS12 to STS16, STS-B and SICK-R,"
            " those of the test sets included; here on the scale's corpus"
        ),
        (
            "the printed rows average the last two layers at test only; here also where the best"
            " step is chosen, for which the code averages the last layer"
        ),
        "no early stop after 10 evaluations without a better one: the best step is kept anyway",
        "AdamW corrects its bias and has epsilon 1e-8; in the code, no correction and 1e-6",
        (
            "our choice: if the pooler reads the first position, [CLS] keeps its place; the code moves"
            " its position, too"
        ),
        (
            "the authors trained the README's large model again, with at most 43 tokens instead of"
            " 67; the printed row of the large model is from before that"
        ),
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.reads_first = self.p.pooler in ("cls", "cls_before_pooler")

    def reads(self) -> str:
        """Return the pooler in training: the last layer, if the last two are averaged at test."""
        if self.p.pooler == "avg_top2":
            return "avg"
        return self.p.pooler

    def pool(self, encoded: Encoded) -> Tensor:
        return pool(self.reads(), encoded)

    def views(self, sentences: list[str]) -> Views:
        batch = self.tokenize(sentences)
        kept = kept_features(len(sentences), self.encoder.embedding_size, self.p.cutoff)
        shuffled = shuffle_tokens(batch, keeps_first=self.reads_first)
        return Views(self.encode(batch, scale=kept), self.encode(shuffled))

    def loss(self, views: Views) -> Tensor:
        mean = nt_xent(views.z1, views.z2, self.p.temperature, views.queue)
        return self.p.loss_weight * 2 * mean  # each direction is a mean over N anchors


def kept_features(count: int, size: int, cutoff: float) -> Tensor:
    """Draw the features that each sentence keeps at all its tokens.

    The official code sets the others to 0 after LayerNorm and dropout of the embedding layer, and
    does not scale up what remains (modeling_bert.py:836-842, 987-1000).

    Args:
        count: number of sentences.
        size: number of features.
        cutoff: share of the features that are lost, rounded down.

    Returns:
        (count, 1, size): 1 for a feature that is kept, 0 for one that is lost.
    """
    lost = int(size * cutoff)
    order = torch.rand(count, size).argsort(dim=1)
    return (order >= lost).float().unsqueeze(1)


def shuffle_tokens(batch: dict[str, Tensor], keeps_first: bool = False) -> dict[str, Tensor]:
    """Put the real tokens of each row in a random order, [CLS] and [SEP] included.

    The official code permutes the position ids of the tokens instead (modeling_bert.py:921-943).
    For a mean over tokens, both are the same: a position has the same token, and attention does not
    depend on the order in which a row is stored.

    Args:
        batch: `input_ids` and `attention_mask`, (N, T) each. Padding stands after the tokens.
        keeps_first: leave the token at position 0 where it is.
    """
    order = torch.rand(batch["input_ids"].shape)
    order[batch["attention_mask"] == 0] = 2  # padding stays behind all tokens
    if keeps_first:
        order[:, 0] = -1
    shuffled = batch["input_ids"].gather(1, order.argsort(dim=1))
    return {**batch, "input_ids": shuffled}
