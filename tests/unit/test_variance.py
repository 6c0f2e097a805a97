"""The study of where spread comes from: its runs, its shares of variance, its page."""

from collections import Counter

import numpy as np
import pytest

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.plan import catalog, targets, variance
from csebench.report import crossed, variance_page

SCALE = variance.study().scales[0]


def cells():
    """The cell of the best step, then that of the last, of every method."""
    from csebench.plan.grids import plan_grid

    return plan_grid(variance.NAME, variance.NAME, SCALE)


def seeds(spec):
    return spec.corpus.subset_seed, *(spec.seeds[source] for source in ("order", "dropout", "head"))


# ---------------------------------------------------------------- the design


def test_every_combination_of_two_seeds_is_run_once_per_block():
    for best, _ in cells():
        blocks = {}
        for spec in best.specs:
            blocks.setdefault(spec.seed, []).append(seeds(spec))
        assert len(blocks) == variance.study().blocks
        for first, runs in blocks.items():
            assert len(set(runs)) == 16
            assert {seed for run in runs for seed in run} == {first, first + 1}
        assert len({spec.run_id for spec in best.specs}) == 16 * len(blocks)


def test_the_last_step_is_that_of_runs_whose_best_step_is_scored():
    """But for the step that is kept; with every seed of every source as often as the others."""
    for best, last in cells():
        known = {seeds(spec): spec for spec in best.specs}
        for spec in last.specs:
            assert spec.params["selection"] == "last"
            assert spec.params | {"selection": None} == known[seeds(spec)].params | {"selection": None}
        for source in range(4):
            assert len(set(Counter(seeds(spec)[source] for spec in last.specs).values())) == 1


def test_a_method_that_is_not_trained_is_refused():
    untrained = next(spec for spec in targets.runs("smoke").values() if spec.corpus is None)
    with pytest.raises(BadInput, match=f"config/variance.yaml: methods: {untrained.method} is not trained"):
        variance.crossed(untrained, variance.BEST)


def test_no_other_page_has_a_run_of_the_study():
    assert not set(targets.page(variance.NAME, SCALE).runs()) & set(targets.runs(SCALE))
    assert set(targets.page(variance.NAME, SCALE).runs()) <= set(targets.all_runs(SCALE))


def test_the_study_is_no_scale():
    assert variance.NAME not in catalog.scale_names()
    with pytest.raises(BadInput, match=f"variance exists at scale {SCALE} only"):
        targets.parse_target("variance", "smoke")


# ---------------------------------------------------------------- shares


def simulated(rng, blocks, effects):
    """Scores (blocks, 2, 2, 2, 2) that are sums of random effects: {sources: variance}."""
    scores = np.zeros((blocks, 2, 2, 2, 2))
    for sources, of_effect in effects.items():
        shape = [2 if source in sources else 1 for source in range(4)]
        scores = scores + rng.normal(0, np.sqrt(of_effect), (blocks, *shape))
    return scores


@pytest.mark.parametrize(
    ("effects", "alone"),
    [
        ({(0,): 6.0, (1,): 3.0, (2,): 1.0}, (0.6, 0.3, 0.1, 0)),
        ({(0, 1, 2, 3): 4.0}, (1, 1, 1, 1)),
        ({(0,): 2.0, (0, 1): 1.0, (3,): 1.0}, (0.75, 0.25, 0, 0.25)),
    ],
    ids=["without interactions", "interactions alone", "some of both"],
)
def test_shares_of_a_large_design_are_the_true_ones(effects, alone):
    squares = crossed.mean_squares(simulated(np.random.default_rng(3), 3000, effects))
    assert crossed.total_deviation(squares).value == pytest.approx(sum(effects.values()) ** 0.5, rel=0.03)
    for source in range(4):
        assert crossed.share_alone(squares, source).value == pytest.approx(alone[source], abs=0.04)


def test_the_total_is_the_variance_of_scores_that_share_no_seed():
    """Without effects of the sources a block's scores are independent, and the total is their ordinary variance."""
    scores = simulated(np.random.default_rng(4), 50, {(0, 1, 2, 3): 1.0})
    squares = crossed.mean_squares(scores)
    assert crossed.total_deviation(squares).value == pytest.approx(scores.std(ddof=1), rel=0.01)


@pytest.mark.parametrize("effects", [{(0,): 3.0, (1,): 2.0, (3,): 1.0}, {(0,): 1.0, (0, 1, 2, 3): 1.0}])
def test_intervals_hold_the_true_share(effects):
    """In about 95 % of designs as small as the study's; 60 designs, so at least 50 of them."""
    rng, total = np.random.default_rng(5), sum(effects.values())
    true = sum(v for sources, v in effects.items() if 0 in sources) / total
    intervals = [crossed.share_alone(crossed.mean_squares(simulated(rng, 2, effects)), 0) for _ in range(60)]
    assert sum(interval.low <= true <= interval.high for interval in intervals) >= 50


def test_equal_scores_have_no_shares():
    squares = crossed.mean_squares(np.full((2, 2, 2, 2, 2), 0.5))
    assert crossed.total_deviation(squares).value == 0
    assert crossed.share_alone(squares, 0).value == 0


# ---------------------------------------------------------------- the page


def scored(spec, *_):
    """A score that the subset alone decides, with the last step half a point lower."""
    points = 60 + spec.corpus.subset_seed % 7 - 0.5 * (spec.params.get("selection") == "last")
    rows = [{"task": "Avg.", "subset": "printed", "metric": "spearman", "value": points / 100}]
    return {"run": spec.run_id, "scores": rows}, False


def test_page_names_the_only_source(monkeypatch):
    monkeypatch.setattr(variance_page, "score", scored)
    text = variance_page.page(SCALE)
    assert "| subset of the corpus |" in text
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    assert "1.00" in rows["subset of the corpus"]
    for label in ("order of batches", "dropout", "new weights"):
        assert "0.00 [0.00, 0.00]" in rows[label]
    assert "-0.50 ± 0.00" in text
    assert (
        "**Finding.** " in text.split("##")[0]
        and "largest source: subset of the corpus, which varied alone gives" in text.split("##")[0]
    )


def test_page_without_scores_says_how_many_are_missing(monkeypatch, tmp_path, request):
    request.addfinalizer(caches.clear)
    caches.clear()  # scores that another test read are those of another folder
    monkeypatch.chdir(tmp_path)
    assert f"0 of {16 * variance.study().blocks} runs are scored" in variance_page.page(SCALE)
