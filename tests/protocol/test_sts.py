"""STS against SentEval's protocol, written here from its definition: batches, poolers, cosine in float32, ranks."""

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
from csebench.score.models import open_model
from evaluators import sts, stsb_dev

REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
MINI = ROOT / "encoders" / "bert-mini-wiki"
POOLERS = ("cls_before_pooler", "avg", "avg_top2", "avg_first_last_2022", "avg_first_last_2021")
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
    averaged = {
        "avg": states[-1],
        "avg_top2": (states[-1] + states[-2]) / 2.0,
        "avg_first_last_2022": (states[-1] + states[1]) / 2.0,
        "avg_first_last_2021": (states[-1] + states[0]) / 2.0,
    }
    means = {pooler: ((x * mask).sum(1) / mask.sum(1)).numpy() for pooler, x in averaged.items()}
    return {"cls_before_pooler": states[-1][:, 0].numpy(), **means}


def senteval_pairs(folder, data_root, task, split, batch_size=128):
    """Cosines of every pooler, gold scores, and which pairs are of identical sentences: left and right in batches of
    their own, the subsets one behind the other, those of STS12 to STS16 sorted by length."""
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    cosines, gold, equal = {}, [], []
    for pairs in read_sts(data_root, task, split):
        rows = [(a.split(), b.split(), g) for a, b, g in zip(pairs.left, pairs.right, pairs.gold, strict=True)]
        if task[-1].isdigit():
            rows.sort(key=lambda row: (len(row[0]), len(row[1]), row[2]))
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            left, right = (senteval_vectors(model, tokenizer, [" ".join(row[i]) for row in batch]) for i in (0, 1))
            for pooler in left:
                values = [senteval_cosine(u, v) for u, v in zip(left[pooler], right[pooler], strict=True)]
                cosines.setdefault(pooler, []).extend(values)
        gold += [row[2] for row in rows]
        equal += [row[0] == row[1] for row in rows]
    return {pooler: np.array(values) for pooler, values in cosines.items()}, np.array(gold), np.array(equal)


def check(folder, data_root, evaluator, sets):
    """Within 1e-5 of SentEval, whose pairs of identical sentences tie, and within 5e-5 of what its rounding makes of
    them. The former is the bound; the latter is as far as SentEval goes from itself with another batch size."""
    scores = {}
    for pooler in POOLERS:
        rows, _ = evaluator.evaluate(open_model(str(folder), pooler), data_root)
        scores |= {(row.task, pooler): row.value for row in rows if row.subset == "all"}
    for task, split in sets.items():
        cosines, gold, equal = senteval_pairs(folder, data_root, task, split)
        for pooler in POOLERS:
            tied = np.where(equal, np.float32(1), cosines[pooler])
            score = scores[task, pooler]
            assert score == pytest.approx(spearmanr(tied, gold).statistic, abs=1e-5), (task, pooler)
            assert score == pytest.approx(spearmanr(cosines[pooler], gold).statistic, abs=5e-5), (task, pooler)


@pytest.mark.parametrize(("evaluator", "sets"), [(sts, SETS), (stsb_dev, {"STS-B": "dev"})], ids=["sts", "stsb_dev"])
def test_scores_are_sentevals(evaluator, sets, tiny_bert, smoke_data):
    check(tiny_bert, smoke_data, evaluator, sets)


@pytest.mark.slow
@pytest.mark.skipif(not (REAL / "downstream/STS").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)")
def test_sts_is_sentevals_on_the_whole_sets():
    check(MINI, REAL, sts, SETS)


@pytest.mark.parametrize("size", [3, 64, 768])
def test_pairs_of_equal_and_nearly_equal_vectors_tie(size):
    """Exactly, whatever their vector and its length; in SentEval's arithmetic they take one of a few values. Nearly:
    their difference is what the length of a batch changes in a vector; the precision is float32, as SentEval's."""
    rng = np.random.default_rng(size)
    vectors = rng.standard_normal((500, size)).astype(np.float32) * 3
    moved = vectors + 1e-6 * rng.standard_normal(vectors.shape).astype(np.float32)
    assert np.unique(cosine(vectors, vectors)).tolist() == np.unique(cosine(vectors, moved)).tolist() == [1.0]
    assert len({float(senteval_cosine(v, v)) for v in vectors}) > 1 and len(np.unique(vectors == moved)) == 2


def test_a_vector_of_zeros_has_the_cosine_0():
    """As SentEval, which turns what is not a number into 0."""
    u, v = np.zeros((1, 4), dtype=np.float32), np.ones((1, 4), dtype=np.float32)
    with np.errstate(invalid="ignore"):
        assert cosine(u, v)[0] == senteval_cosine(u[0], v[0]) == 0


def test_identical_sentences_tie_in_the_score(data):
    """Their items are equal, and the rank correlation of the items is the score to the bit."""
    file = data / "downstream/STS/STS12-en-test/STS.input.MSRvid.txt"
    texts = [line.split("\t")[0] for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(f"{text}\t{text}\n" for text in texts), encoding="utf-8")
    rows, items = sts.evaluate(open_model(str(MINI), "avg"), data)
    assert len(set(texts)) > 2
    assert set(items["STS12/MSRvid"]) == {1.0}
    subsets = [pairs.subset for pairs in read_sts(data, "STS12")]
    cosines, gold = (np.concatenate([items[f"{kind}STS12/{s}"] for s in subsets]) for kind in ("", "gold/"))
    (score,) = [row.value for row in rows if (row.task, row.subset) == ("STS12", "all")]
    assert spearman(cosines, gold) == score
