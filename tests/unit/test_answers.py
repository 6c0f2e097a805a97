"""The first page of a study: its answers follow from the scores and say what is missing."""

import re
from math import sqrt

import pytest
import scipy.stats
from score_files import write_scores

from csebench.plan import grids
from csebench.plan.catalog import SIDE_BY_SIDE
from csebench.plan.registry import COMPONENTS, declaration
from csebench.report import answers
from csebench.report.cells import grid_view

SCALE = "mini"
METHODS = (SIDE_BY_SIDE, SIDE_BY_SIDE)
UNTRAINED, SIMCSE = "BERT, untrained", "SimCSE (unsupervised)"


@pytest.fixture(autouse=True)
def no_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(grid, row, *columns, values, stale=False):
    """The scores of a row, one per seed, in points."""
    for cells in grids.plan_grid(*grid, SCALE):
        for cell in cells:
            if cell.row.label == row and cell.column.label in columns:
                for spec, value in zip(cell.specs, values, strict=False):
                    made = spec.model_copy(update={"trainer_version": spec.trainer_version - stale})
                    write_scores(made, cell.evaluator, SCALE, [(cell.task, cell.metric, value / 100)])


def answer(beginning):
    (wanted,) = (a for a in answers.answers(SCALE) if a.question.startswith(beginning))
    return answers.answer_text(wanted)


@pytest.mark.parametrize(("gain", "word"), [(1.0, "better"), (-1.0, "worse")])
def test_a_gain_or_a_loss_has_its_number_and_the_interval_over_seeds(gain, word):
    write(METHODS, UNTRAINED, "Avg.", values=[50.0])
    write(METHODS, SIMCSE, "Avg.", values=[49.9 + gain, 50 + gain, 50.1 + gain])
    half = scipy.stats.t.ppf(0.975, 2) * 0.1 / sqrt(3)
    interval = f"95 % interval {gain - half:+.2f} to {gain + half:+.2f}"
    assert f"{word} ({gain:+.2f}, {interval}, over 3 seeds)" in answer("Does training")


def test_test_items_count_where_they_are_known(monkeypatch):
    monkeypatch.setattr(answers, "item_variances", lambda a, b, scale: (4.0, 4.0))
    write(METHODS, UNTRAINED, "Avg.", values=[50.0])
    write(METHODS, SIMCSE, "Avg.", values=[50.9, 51.0, 51.1])
    assert re.search(
        r"no difference shown \(\+1.00, 95 % interval -2.9\d to \+4.9\d, over 3 seeds and test items\)",
        answer("Does training"),
    )


def test_methods_that_beat_simcse_are_named_and_the_others_counted():
    write(METHODS, SIMCSE, "Avg.", values=[50.0, 50.1, 50.2])
    write(METHODS, "miCSE", "Avg.", values=[52.0, 52.101, 52.199])
    write(METHODS, "DiffCSE", "Avg.", values=[49.0, 49.101, 49.199])
    write(METHODS, "ESimCSE", "Avg.", values=[50.1, 50.0, 50.3])
    text = answer("Which methods")
    assert text.startswith("miCSE (+2.00,") and "ESimCSE" not in text
    assert "Of 3 methods 1 is better and 1 is worse; for 1 no difference is shown." in text


def test_holm_corrects_over_the_comparisons_of_an_answer():
    """p = 0.03 by itself is no difference among four."""
    write(METHODS, SIMCSE, "Avg.", values=[50.0, 50.0, 50.0])
    for name in ("miCSE", "DiffCSE", "ESimCSE", "InfoCSE"):
        write(METHODS, name, "Avg.", values=[50.7, 51.0, 51.3])
    assert answer("Which methods").startswith("No method is shown to. Of 4 methods none is better and none is worse")


def test_a_difference_that_only_the_correction_hides_is_worded_so():
    table = ("msse", "table4")
    write(table, "w/o L_DCM", "STS(Avg.)", values=[50.0, 50.0, 50.0])
    write(table, "MSSE", "STS(Avg.)", values=[50.7, 51.0, 51.3])
    for row in ("w/o L_ICM", "w/o L_DCM + L_ICM"):
        write(table, row, "STS(Avg.)", values=[50.0, 51.0, 52.0])
    assert "MSSE with it against without: no difference shown after Holm's correction (+1.00," in answer(
        "Does the dim"
    )


def test_settings_that_differ_or_hide_a_difference_are_named():
    (row,) = (cells for cells in grids.plan_grid("infocse", "table5", SCALE) if cells[0].row.label == "InfoCSE")
    infocse = row[0].specs[0]
    mlm = infocse.components["auxiliary_mlm"]
    weights = declaration("auxiliary_mlm", COMPONENTS).search["weight"]
    smallest, largest = (
        infocse.model_copy(update={"components": {"auxiliary_mlm": mlm.model_copy(update={"params": {"weight": w}})}})
        for w in (min(weights), max(weights))
    )
    without = infocse.model_copy(update={"components": {}, "params": infocse.params | {"learning_rate": 0.5}})
    rates = f"learning rate {infocse.params['learning_rate']} against 0.5"
    assert answers.settings_apart(largest, without) == rates
    hidden = f"weight of auxiliary_mlm {min(weights)}, the smallest that is tried"
    assert answers.settings_apart(smallest, without) == f"{rates}; {hidden}"
    assert answers.settings_apart(smallest, smallest) == ""


def test_ami_is_averaged_over_the_sizes_that_are_complete():
    figure = ("micse", "figure4")
    for size, gain in (("1%", 1.0), ("100%", 3.0)):
        write(figure, "SimCSE", size, values=[50.0, 51.0, 52.0])
        write(figure, "AMI+SimCSE", size, values=[50.0 + gain, 51.01 + gain, 51.99 + gain])
    write(figure, "SimCSE", "10%", values=[50.0, 51.0, 52.0])
    write(figure, "AMI+SimCSE", "10%", values=[80.0])
    text = answer("Does AMI")
    assert text.startswith("Alone (1% to 100%): better (+2.00,")
    assert "at most: no scores yet" in text
    assert "snakemake -j4 results/mini/micse/figure4.svg" in text


def test_without_scores_an_answer_says_what_is_missing():
    assert answer("Does the dimension").startswith("No scores yet.")
    assert "`snakemake -j4 results/mini/msse/table4.md`" in answer("Does the dimension")


def test_scores_of_older_code_are_marked():
    write(METHODS, UNTRAINED, "Avg.", values=[50.0])
    write(METHODS, SIMCSE, "Avg.", values=[50.9, 51.0, 51.1], stale=True)
    assert "(+1.00†," in answer("Does training")
    assert "0.10† points" in answer("How large")


def test_what_could_not_be_seen_is_the_difference_with_80_percent_power():
    write(METHODS, UNTRAINED, "Avg.", values=[50.0])
    write(METHODS, SIMCSE, "Avg.", values=[50.5, 51.0, 51.5])
    detected = float(re.search(r"true difference of ([\d.]+) points", answer("What could"))[1])
    shift = detected / (0.5 / sqrt(3))
    assert scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, 2), 2, shift) == pytest.approx(0.8, abs=0.01)


def test_every_comparison_is_of_rows_that_the_papers_have():
    for paper, name, row, versus, columns in (rows for leads in answers.ADDITIONS.values() for rows in leads.values()):
        view = grid_view(paper, name, SCALE)
        labels = answers.column_labels(view, columns)
        assert labels and answers.compare_rows(view, row, versus, labels).contrast is None
