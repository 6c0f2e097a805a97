"""STS against SentEval's protocol, written here from its definition: batches, poolers, cosine in
float32, ranks."""

import os
from pathlib import Path

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
LAYERS = {
    "avg": (-1, -1),
    "avg_top2": (-1, -2),
    "avg_first_last_2022": (-1, 1),
    "avg_first_last_2021": (-1, 0),
}
POOLERS = ("cls_before_pooler", *LAYERS)
SETS = {task: "test" for task in sts.DECLARATION["tasks"]}


def senteval_cosine(u, v):
    """u·v / (|u| |v|) of one pair, every step in float32."""
    u, v = u.astype(np.float32), v.astype(np.float32)
    norms = np.sqrt(np.dot(u, u)) * np.sqrt(np.dot(v, v))
    return np.nan_to_num(np.dot(u, v) / norms)


def senteval_vectors(model, tokenizer, sentences):
    """{pooler: (N, D)} of one batch, padded to its longest sentence."""
    batch = tokenizer(sentences, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = model(**batch, output_hidden_states=True).hidden_states
    mask = batch["attention_mask"].unsqueeze(-1)
    means = {
        pooler: ((states[i] + states[j]) / 2 * mask).sum(1) / mask.sum(1)
        for pooler, (i, j) in LAYERS.items()
    }
    return {
        pooler: x.numpy() for pooler, x in {"cls_before_pooler": states[-1][:, 0], **means}.items()
    }


def senteval_pairs(folder, data_root, task, split, batch_size=128):
    """Cosines of every pooler, gold scores, and which pairs are of identical sentences: left and
    right in batches of their own, the subsets one behind the other, those of STS12 to STS16
    sorted by length."""
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    cosines, gold, equal = {}, [], []
    for pairs in read_sts(data_root, task, split):
        rows = [
            (a.split(), b.split(), g)
            for a, b, g in zip(pairs.left, pairs.right, pairs.gold, strict=True)
        ]
        if task[-1].isdigit():
            rows.sort(key=lambda row: (len(row[0]), len(row[1]), row[2]))
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            left, right = (
                senteval_vectors(model, tokenizer, [" ".join(row[i]) for row in batch])
                for i in (0, 1)
            )
            for pooler in left:
                values = [
                    senteval_cosine(u, v) for u, v in zip(left[pooler], right[pooler], strict=True)
                ]
                cosines.setdefault(pooler, []).extend(values)
        gold += [row[2] for row in rows]
        equal += [row[0] == row[1] for row in rows]
    return (
        {pooler: np.array(values) for pooler, values in cosines.items()},
        np.array(gold),
        np.array(equal),
    )


def check(folder, data_root, evaluator, sets):
    """Within 1e-5 of SentEval where its pairs of identical sentences tie, and within 5e-5 of what
    its rounding makes of them: as far as SentEval goes from itself with another batch size. Items
    give the score to the bit.
    """
    rule = ItemScore.model_validate(evaluator.DECLARATION["items"])
    official = {
        task: senteval_pairs(folder, data_root, task, split) for task, split in sets.items()
    }
    for pooler in POOLERS:
        rows, items = evaluator.evaluate(open_model(str(folder), pooler), data_root)
        scores = {row.task: row.value for row in rows if row.subset == "all"}
        for task, (cosines, gold, equal) in official.items():
            own, tied = (
                sample(items, rule, task, "spearman"),
                np.where(equal, np.float32(1), cosines[pooler]),
            )
            assert scores[task] == spearman(own.values, own.gold)
            assert scores[task] == pytest.approx(spearmanr(tied, gold).statistic, abs=1e-5), (
                task,
                pooler,
            )
            assert scores[task] == pytest.approx(
                spearmanr(cosines[pooler], gold).statistic, abs=5e-5
            ), (task, pooler)


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


def test_pairs_of_equal_and_nearly_equal_vectors_tie_and_zeros_have_the_cosine_0():
    """Exactly; in SentEval's arithmetic they take one of a few values. Nearly: by as much as the
    length of a batch changes a vector. Zeros: as SentEval, which turns what is not a number into
    0."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((500, 768)).astype(np.float32) * 3
    moved, zeros = (
        vectors + 1e-6 * rng.standard_normal(vectors.shape).astype(np.float32),
        np.zeros_like(vectors),
    )
    assert set(cosine(vectors, vectors)) == set(cosine(vectors, moved)) == {1.0}
    assert len({float(senteval_cosine(v, v)) for v in vectors}) > 1 and (vectors != moved).any()
    with np.errstate(invalid="ignore"):
        assert cosine(zeros, vectors)[0] == senteval_cosine(zeros[0], vectors[0]) == 0
