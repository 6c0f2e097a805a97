"""What `csebench plan` counts as done, and what it forecasts for what is left."""

import pytest
from score_files import scored_by, write_score_file

from csebench import cli
from csebench.base.files import write_json
from csebench.base.runs import DONE, PRUNED
from csebench.plan import catalog, cost, recipe, targets
from csebench.plan.cost import Step, Work
from csebench.plan.registry import METHODS, names

BASE = "google-bert/bert-base-uncased"
COST = cost.EvaluatorTimes(sentences=10_000, scoring_seconds=1, factor=2, source="made up")
TIMES = cost.StepTimes(
    device="a card",
    encoder=BASE,
    batch_size=64,
    max_length=32,
    precision="bf16",
    sentences_per_second=1000,
    source="made up",
    factor=2,
    seconds={name: 0.1 for name in names(METHODS)} | {f"simcse+{name}": 0.11 for name in ("ami", "moco", "mlm")},
)


@pytest.fixture(autouse=True)
def measured(monkeypatch, tmp_path):
    """One device, on which every method, STS and STS-B dev were measured, and no run or score that is there."""
    monkeypatch.setattr(cost, "step_times", lambda: [TIMES])
    monkeypatch.setattr(cost, "evaluator_times", lambda: {"sts": COST, "stsb_dev": COST})
    monkeypatch.chdir(tmp_path)


def work(*given, scale="paper", **more):
    pages = [page for target in given for page in targets.parse_target(target, scale)]
    return Work(list({str(page.path): page for page in pages}.values()), **more)


def publish(scores, scale="paper"):
    for run, evaluator in scores:
        write_scores(targets.run(run, scale), evaluator, scale)


def write_scores(spec, evaluator, scale):
    by = scored_by(evaluator)
    row = {"evaluator": by["evaluator"], "task": "x", "subset": "all", "metric": "x", "value": 0.5}
    content = {"run": spec.run_id, "spec": spec.model_dump(), "scores": [row], "evaluations": [by]}
    write_score_file(targets.score_path(spec.run_id, evaluator, scale), content)


def seconds(some, steps):
    return some.cost(steps)[0].seconds


# ---------------------------------------------------------------- what is done


def test_a_run_is_finished_when_all_that_is_shown_of_it_is_published():
    table = work("micse/table2")
    (run, *_) = sorted({score.run for score in table.missing})
    assert targets.finished_runs(table.pages) == set()
    publish(score for score in table.missing if score.run == run)
    assert targets.finished_runs(table.pages) == {run}


def test_a_run_with_a_score_missing_is_finished_while_its_model_is_there():
    table = work("micse/table2")
    run, other = sorted({score.run for score in table.missing})[:2]
    write_json(catalog.RUNS / run / DONE, {})
    write_json(catalog.RUNS / other / PRUNED, {})
    assert targets.finished_runs(table.pages) == {run}


def test_a_run_that_others_start_from_is_finished_with_them():
    table = work("infocse/table4")
    (before,) = {run for run in table.specs if run.startswith("condenser")}
    scores = table.missing
    last = next(score for score in scores if table.specs[score.run].encoder.revision == before)
    publish(scores - {last})
    assert targets.finished_runs(table.pages) == set(table.specs) - {last.run, before}
    publish([last])
    assert targets.finished_runs(table.pages) == set(table.specs)


@pytest.mark.parametrize("verb", ["plan", "status"])
def test_published_scores_are_done_in_a_fresh_clone(verb, capsys):
    table = work("micse/table2", scale="mini")
    publish(table.missing, "mini")
    assert cli.main([verb, "micse/table2", "--scale", "mini"]) == 0
    shown, runs = capsys.readouterr().out, len(table.specs)
    assert f" {runs} done" in shown and f"{runs} of those done were not trained here" in shown


@pytest.mark.parametrize(("verb", "of_what"), [("plan", "of those missing"), ("status", "not yet done")])
def test_scores_of_older_code_are_not_done_and_are_counted(verb, of_what, capsys):
    missing = work("micse/table3", scale="mini").missing
    for run, evaluator in missing:
        spec = targets.run(run, "mini")
        write_scores(spec.model_copy(update={"method_version": 0}), evaluator, "mini")
    assert cli.main([verb, "micse/table3", "--scale", "mini"]) == 0
    shown = capsys.readouterr().out
    assert " 0 done" in shown and f"{len(missing)} {of_what} have scores of an older code version" in shown


# ---------------------------------------------------------------- what is to be paid


def test_a_score_needs_its_run_and_the_run_that_it_starts_from():
    table = work("infocse/table4")
    (before,) = {run for run in table.specs if run.startswith("condenser")}
    score = min(score for score in table.missing if table.specs[score.run].encoder.revision == before)
    assert table.steps([score]) == {Step("train", before), Step("train", score.run), Step("score", *score)}
    write_json(catalog.RUNS / score.run / DONE, {})
    assert work("infocse/table4").steps([score]) == {Step("score", *score)}
    publish([score])
    assert work("infocse/table4").steps([score]) == set()


def test_a_back_translation_is_a_step_that_all_its_runs_share():
    table = work("msse/table4")
    steps = table.steps(table.missing)
    (translation,) = {step for step in steps if step.kind == "translate"}
    assert table.price(translation) is None
    positives = next(p for s in table.specs.values() if (p := recipe.positives_path(s)) is not None)
    positives.parent.mkdir(parents=True)
    positives.touch()
    assert translation not in work("msse/table4").steps(table.missing)


def test_shared_runs_are_paid_once():
    both, one, other = work("micse/table3", "micse/table2"), work("micse/table3"), work("micse/table2")
    alone = sum(seconds(w, w.steps(w.missing)) for w in (one, other))
    assert max(seconds(one, one.steps(one.missing)), alone / 2) < seconds(both, both.steps(both.missing)) < alone


def test_what_was_not_measured_is_counted_and_not_estimated(monkeypatch):
    monkeypatch.setattr(cost, "evaluator_times", dict)
    table = work("infocse/table4")
    estimate, unknown = table.cost(table.steps(table.missing))
    assert unknown == len(table.missing) > 0
    assert estimate == table.cost(step for step in table.steps(table.missing) if step.kind == "train")[0]


def test_a_derived_cell_needs_the_cells_that_it_is_computed_from():
    table = work("msse/table4")
    (paper, name), cells = table.grids[0], table.cells
    grid = catalog.paper(paper).tables[name.removeprefix("table")]
    (delta,) = [index for index, column in enumerate(grid.columns) if column.delta is not None]
    shown = grid.column(grid.columns[delta].delta)
    row = next(cell[2] for cell in cells if cell[3] == delta)
    assert (
        cells[paper, name, row, delta] == cells[paper, name, row, shown] | cells[paper, name, grid.baseline_row, shown]
    )
    assert (paper, name, grid.baseline_row, delta) not in cells


# ---------------------------------------------------------------- the command


def test_an_unknown_device_is_refused(capsys):
    assert cli.main(["plan", "micse/table3", "--device", "a crad"]) == 2
    assert "a crad" in capsys.readouterr().err


def test_no_device_is_said(monkeypatch, capsys):
    monkeypatch.setattr(cost, "step_times", lambda: [])
    assert cli.main(["plan", "micse/table3"]) == 0
    assert "measured on no device" in capsys.readouterr().out
