"""RankEncoder against the values and gradients of its official code, and against SciPy.

vector_cases.py says which files have them.
"""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from vector_cases import Case, GivenStates, cases

from csebench.base.errors import RunFailed
from csebench.model import corpus_ranks
from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.encoder import Encoder
from csebench.model.metrics import unit
from csebench.plan.catalog.registry import load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.method import View, Views
from csebench.train.teachers import teacher_cosines
from methods.rank_encoder import rank_correlations, squared_error_within


@cases("rank_encoder")
def test_rank_encoder_has_the_official_loss(name, precision, make_spec, tiny_bert):
    case = Case(name, precision)
    settings = {
        "temperature": case.settings["temp"],
        "distillation": case.settings["baseE_lmb"],
        "low": case.settings["baseE_sim_thresh_low"],
        "high": case.settings["baseE_sim_thresh_upp"],
        "teacher": "self",
    }
    spec = make_spec("rank_encoder", params=settings)
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    method = load("rank_encoder")(encoder, typed_params("rank_encoder", spec.params))
    method.teacher = GivenStates(case.tensor("in_teacher"))
    method.corpus = case.tensor("in_corpus")
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)
    batch = {"input_ids": torch.zeros(len(z1), 1, dtype=torch.long)}

    loss = method.loss(Views(View(z1, z1, batch), View(z2, z2, batch)))

    case.check(
        "out_taught", rank_correlations(teacher_cosines(method.teacher, batch, method.corpus))
    )
    case.check("out_loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2)


def test_no_pair_in_the_range_gives_no_error():
    similarities = torch.rand(4, 4, dtype=torch.float64)
    assert squared_error_within(similarities, similarities - 2, 0.5, 0.9) == 0


def test_both_ends_of_the_range_are_in_it():
    """0.5 and 0.75 are: their squares have the mean 0.40625."""
    taught = torch.tensor([[0.5, 0.75], [0.25, 1.0]])
    error = squared_error_within(torch.zeros(2, 2), taught, low=0.5, high=0.75)
    assert error.item() == pytest.approx(0.40625)


# ---------------------------------------------------------------- at test


@pytest.fixture
def ranked():
    return unit(np.random.default_rng(0).standard_normal((50, 6)))


@pytest.fixture
def vectors():
    return np.random.default_rng(1).standard_normal((300, 6)).astype(np.float32)


def test_the_cosine_of_mapped_vectors_mixes_cosine_and_spearman(ranked, vectors):
    mapped = CorpusRanks(ranked, cosine_share=0.7)(vectors)

    directions = unit(vectors)
    cosines = directions @ directions.T
    correlations = spearmanr(directions @ ranked.T, axis=1).statistic
    expected = 0.7 * cosines + 0.3 * correlations
    np.testing.assert_allclose(mapped @ mapped.T, expected, atol=1e-5)


def test_equal_sentences_of_the_corpus_share_their_ranks(vectors):
    corpus = np.repeat(unit(np.eye(3, 6)), 2, axis=0)
    ranks = CorpusRanks(corpus, cosine_share=0.5)(vectors)[:, 6:]
    np.testing.assert_array_equal(ranks[:, 0::2], ranks[:, 1::2])


def test_too_many_ranks_for_the_memory_are_refused_before_they_are_computed(
    ranked, vectors, monkeypatch
):
    monkeypatch.setattr(corpus_ranks, "memory_of_machine", lambda: 100_000)
    message = "300 vectors of 56 dimensions need .* smaller `fit_sentences`"
    with pytest.raises(RunFailed, match=message):
        CorpusRanks(ranked, cosine_share=0.5)(vectors)
