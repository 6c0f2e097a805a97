"""TNCSE: two encoders learn from each other, and their vectors of a sentence may not be far apart.

Idea: cosines compare the directions of vectors alone. A further term makes the distance of two
vectors small, compared with their norms. The two vectors are what two encoders give to a sentence.
At test, the vector of a sentence is the sum of both.

    loss = C(z1, z1) + C(z2, z2) + C(z1, z2) + T(z1, z2) + T(z2, z1)
    C(a, b) = -log exp(cos(a_i, b_i')/τ) / Σ_{j≠i} exp(cos(a_i, b_j)/τ),   mean over the 2N rows i
    T(a, b) = -log cos(a_i, b_i') · ‖p(a_i) - p(b_i')‖ / (2 (‖p(a_i)‖ + ‖p(b_i')‖)),
              mean over the N rows i of the first view; a cosine below 0 counts as 0.0001
    i' = the row that shows the sentence of row i in the other view
    p = the pooler layer of the encoder that gave the vector

Source: official code: tianyuzong/TNCSE at 8051805 model_dual.py ("the model"), train_dual.py ("the
script"), README.md, and the supplement that lies beside them.
Inputs: a batch of N sentences in two dropout views; z1, z2 (2N, D) = [CLS] of encoder 1 and of
encoder 2. Both read the same token ids.
Relations: C(z, z) is mirror_bert's loss. pcl also has two encoders that learn from each other, and
keeps one of them.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder, check_summable, has_bert_pooler
from csebench.plan.schema.declarations import EncoderRef, Hyperparameters
from csebench.train.losses import cos_sim, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import Views

LEAST_COSINE = 1e-4  # model_dual.py: `sim_temp`, in place of a negative cosine

DECLARATION = {
    "name": "tncse",
    "version": 1,
    "title": "TNCSE",
    "paper": "Zong et al. 2025 (AAAI)",
    "citation": (
        """@inproceedings{zong2025tncse, title={{TNCSE}: Tensor Norm Constraints for Unsupervised
Contrastive Learning of Sentence Embeddings}, author={Zong, Tianyu and Shi, Bingkang and Yi, Hongzhu
and Xu, Jungang}, booktitle={AAAI}, year={2025}}"""
    ),
    "needs": "a run of simcse",
    "refuses": {
        "queue": "it contrasts two encoders, and a queue has vectors of one",
        "attention": "its two views are of two encoders, and the second one's maps are not kept",
    },
    "trains": "two encoders, their pooler layers",
    "colours": {"": "#7A4E2D"},
    "params": {
        "steps": (15625, "script: 1 epoch at batch 64, here of 10^6 sentences"),
        "batch_size": (64, "script"),
        "learning_rate": (1e-6, "script; constant"),
        "weight_decay": (0.01, "script: the default of torch's AdamW, of every weight"),
        "clip": (1e9, "script clips nothing"),
        "dropout": (0.00025, "model, TNCSE_BERT; 0.0175 for RoBERTa"),
        "max_length": (64, "script: max_len"),
        "evaluate_every": (100, "script: eval_step"),
        "pooler": ("cls_before_pooler", "model: last_hidden_state[:, 0]; supplement, Table II-1"),
        "temperature": (0.05, "model"),
        "pretraining": (
            "simcse",
            (
                "the run that encoder 1 starts from; README: unsupervised SimCSE on round-trip"
                " translations; none: the encoder as it is"
            ),
        ),
        "second": (
            "self",
            (
                "ours: the model that encoder 2 starts from; `self`: the same model as"
                " encoder 1. README:"
                " another SimCSE, on other translations"
            ),
        ),
    },
    "keeps": ["learning_rate", "weight_decay", "clip", "dropout", "pooler"],
    "search": {"learning_rate": (1e-6, 3e-6, 1e-5, 3e-5)},
    "choices": {"pretraining": ["simcse", "none"]},
    "variants": {
        "default": (
            "as released",
            "the script's settings for BERT; both encoders start from one SimCSE",
        ),
        "roberta": (
            "as released",
            "README's command: batch 256; model_dual.py, TNCSE_RoBERTa: dropout 0.0175",
            {"dropout": 0.0175, "batch_size": 256, "steps": 3907},
        ),
    },
    "deviations": [
        (
            "the paper was not at hand; loss and settings are the code's, data and values its"
            " README's and supplement's"
        ),
        (
            "the official encoders start from two SimCSE models, each trained on round-trip"
            " translations through another language (supplement, Table I-1). They are published"
            " at huggingface.co/UCASzty, whose revisions were not at hand. Here encoder 1 starts"
            " from a run of simcse without translations, and encoder 2 from the model `second`"
        ),
        (
            "if `second` is `self`, only dropout and the new pooler layers tell the encoders apart"
            " at the start, and dropout is small; table 2 of papers/tncse.yaml has another start"
        ),
        (
            "trained on the scale's corpus; the official file also has the unlabelled sentences of"
            " SICK-R (supplement)"
        ),
        (
            "the variant roberta has the batch of README's command; the supplement has 64. README's"
            " command runs the script's branch for BERT, because `Roberta-base` contains `bert`."
            " This variant follows the branch for RoBERTa. That branch reads `ioln_hidden`, which"
            " transformers does not have; the last hidden state is read instead"
        ),
        (
            "as in the code, p starts from the pooler layer of the checkpoint. A checkpoint without"
            " one, such as a run of simcse, gets a new one. p is not exported, because no vector"
            " needs it"
        ),
    ],
}


class Method(Base):
    decays_all = True

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        if self.p.pooler == "cls":
            raise BadInput(
                "tncse.pooler: cls: the loss applies the pooler layer itself; use"
                " cls_before_pooler."
            )
        self.second = load_second(self.p.second, encoder, self.p.dropout)
        self.pooler1 = pooler_layer(encoder)
        self.pooler2 = pooler_layer(self.second)

    def added_encoders(self) -> list[Encoder]:
        return [self.second]

    def views(self, sentences: list[str]) -> Views:
        """Encode two dropout views of the sentences by each encoder, (2N, D) vectors each."""
        batch = self.tokenize([*sentences, *sentences])
        views = Views(self.encode(batch), self.encode(batch, self.second))
        views.view1.blocks = views.view2.blocks = 2
        return views

    def loss(self, views: Views) -> Tensor:
        p1 = self.pooler1(views.z1[:, None])  # the layer reads the first of the states (2N, 1, D)
        p2 = self.pooler2(views.z2[:, None])
        return tncse_loss(views.z1, views.z2, p1, p2, self.p.temperature)

    def learning_rate_factor(self, step: int) -> float:
        return 1.0


def load_second(name: str, encoder: Encoder, dropout: float) -> Encoder:
    """Load the encoder whose vectors are added.

    Args:
        name: a model of the hub at a pinned revision, or `self` for a copy of `encoder`.

    Raises:
        BadInput: the revision is not pinned, the model cannot be read, or its vectors cannot be
            added to those of `encoder`.
    """
    if name == "self":
        return encoder.copy()
    where = f"tncse.second: {name}"
    ref = EncoderRef.parse(name)
    ref.refuse_unpinned(where)
    second = Encoder.load(ref, dropout)
    check_summable(encoder, second, where)
    return second


def pooler_layer(encoder: Encoder) -> nn.Module:
    """Load the pooler layer of the checkpoint that an encoder comes from, or make a new one.

    Raises:
        BadInput: the architecture has no such layer, or its encoder cannot be trained.
    """
    where = f"tncse: encoder {encoder.source}"
    checkpoint = EncoderRef(name=str(encoder.source), revision="local")
    whole = Encoder.load(checkpoint, with_pooler=True, new_pooler=True)
    whole.check_trainable("cls_before_pooler", where)
    if not has_bert_pooler(whole.model):
        kind = whole.model.config.model_type
        raise BadInput(
            f"{where}: {kind} has no pooler layer like BERT's, which the loss needs whatever"
            " `pooler` is; use an encoder that has one, such as a BERT, RoBERTa or XLM-R."
        )
    return whole.model.pooler


# ---------------------------------------------------------------- the loss
# Shapes: row i of (2N, D) shows sentence i in the first view, and row N + i in the second.


def tncse_loss(z1: Tensor, z2: Tensor, p1: Tensor, p2: Tensor, temperature: float) -> Tensor:
    """Compute the loss of two encoders (train_dual.py:57-62).

    Args:
        z1, z2: (2N, D) vectors of encoder 1 and of encoder 2.
        p1, p2: (2N, D) outputs of their pooler layers.
    """
    within = contrast(z1, z1, temperature) + contrast(z2, z2, temperature)
    between = contrast(z1, z2, temperature)
    norms = norm_constraint(z1, z2, p1, p2) + norm_constraint(z2, z1, p2, p1)
    return within + between + norms


def contrast(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """Compute InfoNCE of every row of a with its other view in b (model_dual.py:72-99).

    A row has the other rows of b as negatives, but not its own.

    Args:
        a, b: (2N, D).
    """
    rows = torch.arange(len(a), device=a.device)  # (2N,)
    is_own = rows[:, None] == rows
    logits = (cos_sim(a, b) / temperature).masked_fill(is_own, -torch.inf)  # (2N, 2N)
    return cross_entropy(logits, rows.roll(len(a) // 2))


def norm_constraint(a: Tensor, b: Tensor, pooled_a: Tensor, pooled_b: Tensor) -> Tensor:
    """Compute the constraint on the norms, of the first view in a and the second in b.

    model_dual.py:102-118.

    Args:
        a, b: (2N, D) vectors of two encoders.
        pooled_a, pooled_b: (2N, D) outputs of their pooler layers.
    """
    first, _ = upcast_fp32(a).chunk(2)  # (N, D)
    _, second = upcast_fp32(b).chunk(2)
    cosines = cosine_similarity(first, second)  # (N,)
    cosines = cosines.masked_fill(cosines < 0, LEAST_COSINE)

    pooled_first, _ = upcast_fp32(pooled_a).chunk(2)
    _, pooled_second = upcast_fp32(pooled_b).chunk(2)
    distances = (pooled_first - pooled_second).norm(dim=1)  # (N,)
    lengths = pooled_first.norm(dim=1) + pooled_second.norm(dim=1)
    return (-cosines.log() * distances / lengths / 2).mean()
