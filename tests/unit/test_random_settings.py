"""Tables over random settings: how settings are drawn, what diverges, and what two rows show."""

import math

import numpy as np
import pytest
from made_up import made_up, unprinted_table
from score_files import edit_score_file, write_scores

from csebench.base import caches
from csebench.base.errors import BadInput, Diverged
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.plan.grids import plan_grid
from csebench.plan.random_settings import draw_settings
from csebench.report.figures.over_settings import draw_over_settings
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.compare import answers
from csebench.report.numbers.over_settings import Candidates, estimate_of_best
from csebench.report.numbers.selection import chances_of_best
from csebench.report.pages import draw_page
from csebench.report.pages.table import table_page
from csebench.report.words.over_settings import settings_sentences
from methods.simcse import Method

SCALE = "study"  # scale smoke gives no answers
PRIOR = {
    "learning_rate": {"low": 1e-5, "high": 1e-3},
    "temperature": {"low": 0.01, "high": 0.1},
    "pooler": ["avg", "cls_before_pooler"],
}
AVERAGE = [{"label": "Avg.", "task": "Avg.", "size": "1%"}]
METHODS = {"A": "simcse", "B": "informin_cl", "untrained": "bert"}
QUESTION = [{"question": "Does B score higher?", "rows": [["B", "A"]], "primary": True}]


# ---------------------------------------------------------------- draws


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Plan a made-up table over random settings, and return the runs of each row."""

    def make(number, prior=PRIOR, question=QUESTION, **more):
        grid = unprinted_table(METHODS, AVERAGE, random_settings=number, compare=question, **more)
        paper = {"name": "m", "tables": {"1": grid}}
        made_up(tmp_path, monkeypatch, paper, name=SCALE, prior=prior)
        rows = plan_grid("m", "table1", SCALE)
        return {cell.row.label: cell for (cell,) in rows}

    yield make
    monkeypatch.undo()
    caches.clear()


def test_rows_share_the_settings_that_methods_share_and_draw_their_own(plan):
    cells = plan(6)
    for own, other in zip(cells["A"].specs, cells["B"].specs, strict=True):
        assert own.seed == other.seed
        assert own.corpus == other.corpus
        for key in PRIOR:
            assert own.params[key] == other.params[key]
    tried = declaration("informin_cl").search["reconstruction"]
    drawn = {spec.params["reconstruction"] for spec in cells["B"].specs}
    assert len(drawn) > 1
    assert drawn <= {*tried}


def test_draws_lie_within_the_prior_and_differ_between_settings(plan):
    specs = plan(40)["A"].specs
    rates = [spec.params["learning_rate"] for spec in specs]
    assert len({*rates}) > 30
    assert all(1e-5 <= rate <= 1e-3 for rate in rates)
    below_middle = sum(rate < 1e-4 for rate in rates)  # the middle of the span's logarithm
    assert 10 < below_middle < 30
    assert {spec.params["pooler"] for spec in specs} == {"avg", "cls_before_pooler"}


def test_more_settings_begin_with_those_of_fewer(plan):
    few = [spec.run_id for spec in plan(3)["B"].specs]
    more = [spec.run_id for spec in plan(6)["B"].specs]
    assert more[:3] == few


def test_two_rows_with_a_component_draw_its_settings_together():
    scale = catalog.scale("mini")
    for seed in range(5):
        weights = []
        for method in ("simcse", "micse"):
            drawn = draw_settings(declaration(method), ["ami"], scale, seed)
            weights.append(drawn["ami.weight"])
        assert weights[0] == weights[1]
        assert weights[0] in declaration("ami", COMPONENTS).search["weight"]


def test_an_untrained_row_has_one_run_for_all_settings(plan):
    (spec,) = plan(4)["untrained"].specs
    assert spec.if_diverged == "fail"


def test_a_scale_without_a_prior_runs_no_random_settings(plan):
    cells = plan(4, prior={})
    assert cells["A"].missing == f"no prior of settings at scale {SCALE}"
    assert not cells["A"].specs


def test_a_table_cannot_state_both_seeds_and_random_settings(plan):
    with pytest.raises(BadInput, match="run_seeds and random_settings both"):
        plan(4, run_seeds=3)


def test_a_span_that_is_upside_down_is_refused(plan):
    with pytest.raises(BadInput, match=r"low \(0.1\) must be below high \(0.01\)"):
        plan(4, prior={"temperature": {"low": 0.1, "high": 0.01}})


# ---------------------------------------------------------------- divergence


@pytest.fixture
def diverge(monkeypatch):
    """Let every loss be infinite."""
    monkeypatch.setattr(Method, "loss", lambda self, views: (views.z1**2).sum() * math.inf)


def test_a_run_that_diverges_ends_as_the_untrained_encoder_if_its_spec_says_so(
    make_spec, train, tmp_path, diverge
):
    spec = make_spec("simcse", params={"pooler": "avg"})
    untrained = train(make_spec("bert"), tmp_path / "untrained")

    report = train(spec.model_copy(update={"if_diverged": "untrained"}), tmp_path / "run")

    assert "loss is inf at step 1" in report["diverged"]
    weights = [
        (tmp_path / run / "model" / "model.safetensors").read_bytes()
        for run in ("untrained", "run")
    ]
    assert weights[0] == weights[1]
    assert -1 <= report["best_dev"] <= 1
    assert "diverged" not in untrained


def test_any_other_run_that_diverges_fails(make_spec, train, tmp_path, diverge):
    with pytest.raises(Diverged):
        train(make_spec("simcse"), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


def test_what_becomes_of_a_divergence_is_part_of_a_runs_identity(make_spec):
    spec = make_spec("simcse")
    other = spec.model_copy(update={"if_diverged": "untrained"})
    assert spec.run_id != other.run_id
    assert "if_diverged" not in spec.model_dump()


# ---------------------------------------------------------------- what two rows show


@pytest.fixture
def compared(plan):
    """Compare B with A over random settings with made-up averages, and return the comparison.

    Args of the function:
        own, other: averages of B and A, by setting.
        dev: scores of both rows on STS-B dev, by setting.
        diverged: numbers of the settings at which B diverged.
    """

    def compare(own, other, dev=None, diverged=()):
        cells = plan(len(own))
        for label, averages in (("B", own), ("A", other)):
            for number, spec in enumerate(cells[label].specs):

                def add_training(content, number=number, label=label):
                    if dev is not None:
                        content["training"]["best_dev"] = dev[number]
                    if label == "B" and number in diverged:
                        content["training"]["diverged"] = "the loss is nan"

                write_scores(spec, "sts", SCALE, [("Avg.", "spearman", averages[number])])
                edit_score_file(targets.score_path(spec.run_id, "sts", SCALE), add_training)
        caches.clear()
        (answer,) = answers(grid_view("m", "table1", SCALE))
        (comparison,) = answer.comparisons
        return comparison

    return compare


LEVELS = np.array([0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75])


def test_a_row_that_is_higher_at_every_setting_is_higher(compared):
    comparison = compared(LEVELS + [0.02, 0.03] * 4, LEVELS)
    assert comparison.relation == "better"
    assert comparison.estimate.gain == pytest.approx(2.5)
    assert comparison.over_settings.higher == 8
    assert settings_sentences(comparison)[0].startswith("Over 8 shared settings: B − A +2.50 (95 %")


def test_a_row_that_wins_at_one_setting_only_is_not_higher(compared):
    gains = np.array([0.08, -0.001, 0.001, -0.001, 0.001, -0.001, 0.001, -0.001])
    comparison = compared(LEVELS + gains, LEVELS)
    assert comparison.relation == "not shown"
    assert comparison.over_settings.higher == 4


def test_the_best_of_several_settings_is_chosen_by_dev(compared):
    """Dev prefers later settings, at which only B gains."""
    gains = np.array([0, 0, 0, 0, 0, 0, 0, 0.08])
    comparison = compared(LEVELS + gains, LEVELS, dev=[*np.linspace(0.1, 0.8, 8)])
    best = comparison.over_settings.best
    assert best.settings == 2
    # the last setting is in 7 of the 28 pairs, and is chosen from each
    assert best.estimate.gain == pytest.approx(8 * 7 / 28)
    assert (
        "If each keeps the best of 2 of these settings by STS-B dev: +2.00"
        in settings_sentences(comparison)[1]
    )


def test_without_scores_on_dev_there_is_no_best_of_several(compared):
    comparison = compared(LEVELS + 0.02, LEVELS)
    assert comparison.over_settings.best is None


def test_a_row_is_compared_with_the_untrained_encoder_at_every_setting(compared, plan):
    compared(LEVELS + 0.02, LEVELS)
    cells = plan(8, question=[{"question": "?", "rows": [["B", "untrained"]], "primary": True}])
    (spec,) = cells["untrained"].specs
    write_scores(spec, "sts", SCALE, [("Avg.", "spearman", 0.41)])
    caches.clear()

    view = grid_view("m", "table1", SCALE)
    (answer,) = answers(view)
    over = answer.comparisons[0].over_settings

    assert len(over.draws) == 8
    assert {draw.against.value for draw in over.draws} == {41.0}
    assert {*over.draws[0].settings} == {*PRIOR}
    assert over.higher == 8
    assert over.best is None
    assert draw_over_settings(view, [answer.comparisons[0]])


def test_divergences_are_counted_and_said(compared):
    comparison = compared(LEVELS + [0.02, 0.03] * 4, LEVELS, diverged=(0, 3))
    assert comparison.over_settings.diverged == (2, 0)
    sentences = settings_sentences(comparison)
    assert sentences[-1] == "2 runs of B diverged and count as the untrained encoder."


def test_the_page_shows_both_sentences_and_a_point_for_each_setting(compared):
    compared(LEVELS + [0.02, 0.03] * 4, LEVELS, dev=[*np.linspace(0.1, 0.8, 8)])
    (page,) = targets.parse_target("m/table1", SCALE)

    text = table_page(page).write("markdown")
    picture, points = draw_page(page)

    assert "Over 8 shared settings: B − A +2.50" in text
    assert "If each keeps the best of 2 of these settings by STS-B dev" in text
    assert "table1.svg" in text
    assert picture.name == "table1.svg"
    assert len(points.read_text().splitlines()) == 1 + 8


# ---------------------------------------------------------------- statistics


def test_the_best_of_one_has_the_error_of_a_mean_of_differences():
    rng = np.random.default_rng(0)
    own = Candidates(rng.normal(size=9), rng.normal(size=9))
    other = Candidates(rng.normal(size=9), rng.normal(size=9))

    error, _ = estimate_of_best(1, own, other).error()

    differences = own.values - other.values
    assert error == pytest.approx(np.std(differences, ddof=1) / 3)


def test_choosing_from_several_settings_costs_degrees_of_freedom():
    rng = np.random.default_rng(0)
    own = Candidates(rng.normal(size=24), rng.normal(size=24))
    other = Candidates(rng.normal(size=24), rng.normal(size=24))
    _, df = estimate_of_best(8, own, other).error()
    assert df == 12


def test_chances_of_being_the_best_add_up_and_tied_runs_share_theirs():
    chances = chances_of_best(3, np.array([0.1, 0.5, 0.5, 0.9, 0.2]))
    assert chances.sum() == pytest.approx(1)
    assert chances[1] == chances[2]
    assert chances[3] == pytest.approx(6 / 10)
