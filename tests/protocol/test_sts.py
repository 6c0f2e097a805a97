"""STS compared with SentEval's protocol.

The protocol is written here from its definition: batches, poolers, cosine in float32, ranks.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from transformers import AutoModel, AutoTokenizer

from csebench.base.project import ROOT
from csebench.data.sts import read_sts
from csebench.model.metrics import cosine, spearman
from csebench.plan.schema.declarations import ItemScore
from csebench.score.models import open_model
from csebench.score.score_types import sample
from evaluators import sts, stsb_dev

REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
LAYERS = {  # the two hidden states whose mean a pooler takes
    "avg": (-1, -1),
    "avg_top2": (-1, -2),
    "avg_first_last_2022": (-1, 1),
    "avg_first_last_2021": (-1, 0),
}
POOLERS = ("cls_before_pooler", *LAYERS)
SETS = {task: "test" for task in sts.DECLARATION["tasks"]}


def senteval_cosine(u, v):
    """Compute u·v / (|u| |v|) of one pair, with every step in float32."""
    u = u.astype(np.float32)
    v = v.astype(np.float32)
    norms = np.sqrt(np.dot(u, u)) * np.sqrt(np.dot(v, v))
    return np.nan_to_num(np.dot(u, v) / norms)


def senteval_vectors(model, tokenizer, sentences):
    """Return {pooler: (N, D)} of one batch, padded to its longest sentence."""
    batch = tokenizer(sentences, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = model(**batch, output_hidden_states=True).hidden_states
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = {"cls_before_pooler": states[-1][:, 0].numpy()}
    for pooler, (first, second) in LAYERS.items():
        mean_of_layers = (states[first] + states[second]) / 2
        vectors[pooler] = ((mean_of_layers * mask).sum(1) / mask.sum(1)).numpy()
    return vectors


class Row(NamedTuple):
    """A pair of sentences as SentEval reads it."""

    left: list[str]  # words
    right: list[str]
    gold: float


def lengths_and_gold(row):
    return len(row.left), len(row.right), row.gold


def read_rows(pairs, task):
    """Split the sentences of a subset into words. Those of STS12 to STS16 are sorted by length."""
    rows = []
    for left, right, gold in zip(pairs.left, pairs.right, pairs.gold, strict=True):
        rows.append(Row(left.split(), right.split(), gold))
    if task[-1].isdigit():
        rows.sort(key=lengths_and_gold)
    return rows


@dataclass
class SentEvalScores:
    """The values that SentEval computes of the pairs of a task, in its order."""

    cosines: dict[str, list[float]] = field(default_factory=dict)  # by pooler
    gold: list[float] = field(default_factory=list)
    equal: list[bool] = field(default_factory=list)  # pairs of identical sentences

    def spearman(self, pooler):
        return spearmanr(self.cosines[pooler], self.gold).statistic

    def spearman_with_ties(self, pooler):
        """Correlate as if pairs of identical sentences had the cosine 1."""
        cosines = np.array(self.cosines[pooler])
        cosines[self.equal] = 1
        return spearmanr(cosines, self.gold).statistic


def senteval_scores(folder, data_root, task, split, batch_size=128):
    """Compute a task as SentEval does.

    Left and right sentences are in batches of their own. The subsets follow one another.
    """
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    scores = SentEvalScores(cosines={pooler: [] for pooler in POOLERS})
    for pairs in read_sts(data_root, task, split):
        rows = read_rows(pairs, task)
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            left = senteval_vectors(model, tokenizer, [" ".join(row.left) for row in batch])
            right = senteval_vectors(model, tokenizer, [" ".join(row.right) for row in batch])
            for pooler in POOLERS:
                for u, v in zip(left[pooler], right[pooler], strict=True):
                    scores.cosines[pooler].append(senteval_cosine(u, v))
        for row in rows:
            scores.gold.append(row.gold)
            scores.equal.append(row.left == row.right)
    return scores


def check(folder, data_root, evaluator, sets):
    """Compare an evaluator with SentEval, for every task and pooler.

    The scores are within 1e-5 of SentEval if its pairs of identical sentences tie. They are within
    5e-5 of what its rounding makes of them, which is as far as SentEval with one batch size is from
    SentEval with another. The items give the score to the bit.
    """
    rule = ItemScore.model_validate(evaluator.DECLARATION["items"])
    official = {}
    for task, split in sets.items():
        official[task] = senteval_scores(folder, data_root, task, split)

    for pooler in POOLERS:
        rows, items = evaluator.evaluate(open_model(str(folder), pooler), data_root)
        values = {row.task: row.value for row in rows if row.subset == "all"}
        for task, senteval in official.items():
            value = values[task]
            own = sample(items, rule, task, "spearman")
            tied = senteval.spearman_with_ties(pooler)
            assert value == spearman(own.values, own.gold)
            assert value == pytest.approx(tied, abs=1e-5), (task, pooler)
            assert value == pytest.approx(senteval.spearman(pooler), abs=5e-5), (task, pooler)


@pytest.mark.parametrize(
    ("evaluator", "sets"), [(sts, SETS), (stsb_dev, {"STS-B": "dev"})], ids=["sts", "stsb_dev"]
)
def test_scores_are_sentevals(evaluator, sets, tiny_bert, smoke_data):
    check(tiny_bert, smoke_data, evaluator, sets)


@pytest.mark.slow
@pytest.mark.skipif(
    not (REAL / "downstream/STS").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)"
)
def test_sts_is_sentevals_on_the_whole_sets():
    check(ROOT / "encoders" / "bert-mini-wiki", REAL, sts, SETS)


def test_pairs_of_equal_and_nearly_equal_vectors_tie():
    """Their cosine is exactly 1. In SentEval's arithmetic it takes one of a few values. Nearly
    equal vectors differ by as much as the length of a batch changes a vector."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((500, 768)).astype(np.float32) * 3
    nearly_equal = vectors + 1e-6 * rng.standard_normal(vectors.shape).astype(np.float32)
    assert (vectors != nearly_equal).any()

    assert set(cosine(vectors, vectors)) == {1.0}
    assert set(cosine(vectors, nearly_equal)) == {1.0}
    assert len({float(senteval_cosine(vector, vector)) for vector in vectors}) > 1


def test_zeros_have_the_cosine_0():
    """SentEval turns a value that is not a number into 0."""
    zeros = np.zeros((1, 768), dtype=np.float32)
    vectors = np.random.default_rng(0).standard_normal((1, 768)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        assert cosine(zeros, vectors)[0] == 0
        assert senteval_cosine(zeros[0], vectors[0]) == 0
