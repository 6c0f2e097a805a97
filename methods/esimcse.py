"""ESimCSE: repeated words hide the length of a sentence, and a queue adds negatives.

Idea: two dropout views always have the same length, which a model can learn instead of meaning. So
some tokens of the second view are doubled. The queue of a momentum encoder adds negatives.

    loss = InfoNCE(z1, z2 of repeat(sentence), queue)

Source: official code: caskcsg/sentemb ESimCSE/esimcse/models.py:123-250, train.py:498-530, run.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]).
Relations: simcse with another second view + components/moco.
"""

from functools import partial

from csebench.train.augment import double
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "esimcse",
    "version": 1,
    "extends": "simcse",
    "title": "ESimCSE",
    "paper": "Wu et al. 2022 (COLING), sec. 3 and 4",
    "citation": (
        """@inproceedings{wu2022esimcse, title={{ESimCSE}: Enhanced Sample Building Method for Contrastive
Learning of Unsupervised Sentence Embedding}, author={Wu, Xing and Gao, Chaochen and Zang, Liangjun and Han, Jizhong
and Wang, Zhongyuan and Hu, Songlin}, booktitle={COLING}, year={2022}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#999999"},
    "params": {
        "steps": (15625, "1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "run.sh"),
        "learning_rate": (3e-5, "run.sh, BERT base"),
        "max_length": (32, "run.sh; before repetition"),
        "evaluate_every": (125, "run.sh"),
        "pooler": ("cls_before_pooler", "run.sh: mlp_only_train"),
        "temperature": (0.05, "run.sh"),
        "negatives": ("batch", "sec. 3"),
        "repetition": (0.32, "run.sh: dup_rate; 0.30 and 0.28 for RoBERTa"),
        "form": (
            "paper",
            (
                "paper: at most max(2, rate·N) tokens; code: fewer than min(10, rate·N)"
                " (train.py:498-530)"
            ),
        ),
    },
    "search": {"repetition": (0.2, 0.32, 0.4)},
    "choices": {"negatives": ["batch", "zeroed", "none"], "form": ["paper", "code"]},
    "components": {"moco": {"queue": 160, "momentum": 0.995, "dropout": 0.0}},
    "variants": {
        "default": (
            "as printed",
            "at most max(2, 0.32·N) tokens of a sentence are repeated",
        ),
        "code": (
            "released, repaired",
            (
                "fewer than min(10, 0.32·N) tokens are repeated; the momentum encoder starts from"
                " the pre-trained weights, where the released one starts, by accident, at random"
            ),
            {"form": "code"},
        ),
    },
    "deviations": [
        "tokens are repeated anew in every step; the official code repeats once, before training",
        (
            "the momentum encoder starts from the pre-trained weights; the official one starts, by"
            " accident, at random"
        ),
        "the moving average follows the optimiser's step; the official one precedes it",
        (
            "the largest number of repeated tokens is taken from re-implementations of the paper;"
            " the length of a sentence counts [CLS] and [SEP], as in the code"
        ),
    ],
}


class Method(SimCSE):
    def views(self, sentences: list[str]) -> Views:
        repeated = partial(double, rate=self.p.repetition, form=self.p.form)
        return Views(self.view(sentences), self.encode(self.tokenize_edited(sentences, [repeated])))
