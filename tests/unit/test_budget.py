"""What `csebench plan` counts as done, and what it forecasts for what is left."""

import pytest
from score_files import scored_by, write_score_file

from csebench import cli
from csebench.base.files import write_json
from csebench.base.runs import DONE, PRUNED
from csebench.plan import catalog, cost, recipe, targets
from csebench.plan.cost import Step, Work
from csebench.plan.grids import CellPlan, find_grid, parts_of_cell
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


def publish(scores, scale="paper", **changes):
    """Write score files, of runs with some settings changed."""
    for run, evaluator in scores:
        spec, by = targets.run(run, scale).model_copy(update=changes), scored_by(evaluator)
        row = {"evaluator": by["evaluator"], "task": "x", "subset": "all", "metric": "x", "value": 0.5}
        content = {"run": spec.run_id, "spec": spec.model_dump(), "scores": [row], "evaluations": [by]}
        write_score_file(targets.score_path(spec.run_id, evaluator, scale), content)


def test_a_run_is_finished_with_its_model_or_all_its_scores(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    pages = targets.parse_target("all", "smoke")
    scores = {score for page in pages for score in page.available()}
    run = next(run for run, evaluators in targets.evaluators("smoke").items() if len(evaluators) > 1)
    other, pruned, *_ = sorted({other for other, _ in scores if other.startswith("simcse-")} - {run})
    of_run = [score for score in scores if score[0] == run]
    publish(of_run[:1], "smoke")
    write_json(catalog.RUNS / other / DONE, {"provenance": {"seconds": 12.5}})
    write_json(catalog.RUNS / pruned / PRUNED, {})
    assert targets.finished_runs(pages) == {other}
    publish(of_run, "smoke")
    assert targets.finished_runs(pages) == {run, other}
    assert cli.main(["plan", "all", "--runs"]) == 0
    states = {words[0]: words[3:5] for line in capsys.readouterr().out.splitlines() if len(words := line.split()) > 4}
    assert (states[run][0], states[other], states[pruned][0]) == ("done", ["done", "12.5"], "waiting")


def test_a_run_that_others_start_from_is_finished_with_them():
    table = work("infocse/table4", scale="smoke")
    (before,) = {run for run in table.specs if run.startswith("condenser")}
    last = next(score for score in table.missing if table.specs[score[0]].run_before == before)
    publish(table.missing - {last}, "smoke")
    assert targets.finished_runs(table.pages) == set(table.specs) - {last[0], before}
    publish([last], "smoke")
    assert targets.finished_runs(table.pages) == set(table.specs)


@pytest.mark.parametrize("verb", ["plan", "status"])
def test_published_scores_are_done_in_a_fresh_clone(verb, capsys):
    """Those of older code are not, and are counted."""
    table = work("micse/table3", scale="smoke")
    runs, missing = len(table.specs), len(table.missing)
    publish(table.missing, "smoke", method_version=0)
    assert cli.main([verb, "micse/table3"]) == 0
    shown = capsys.readouterr().out
    assert " 0 done" in shown and f"{missing} of those missing have scores of an older code version" in shown
    publish(table.missing, "smoke")
    assert cli.main([verb, "micse/table3"]) == 0
    shown = capsys.readouterr().out
    assert f" {runs} done" in shown and f"{runs} done by scores stored in results/" in shown


def test_a_score_needs_its_run_and_the_run_that_it_starts_from():
    table = work("infocse/table4")
    (before,) = {run for run in table.specs if run.startswith("condenser")}
    run, evaluator = score = min(score for score in table.missing if table.specs[score[0]].run_before == before)
    assert table.steps([score]) == {Step("train", before), Step("train", run), Step("score", run, evaluator)}
    write_json(catalog.RUNS / run / DONE, {})
    assert work("infocse/table4").steps([score]) == {Step("score", run, evaluator)}
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
    works = [work(*given) for given in (["micse/table3", "micse/table2"], ["micse/table3"], ["micse/table2"])]
    both, one, other = (w.cost(w.steps(w.missing))[0].seconds for w in works)
    assert max(one, other) < both < one + other


def test_what_was_not_measured_is_counted_and_not_estimated(monkeypatch):
    monkeypatch.setattr(cost, "evaluator_times", dict)
    table = work("infocse/table4")
    estimate, unknown = table.cost(table.steps(table.missing))
    assert unknown == len(table.missing) > 0
    assert estimate == table.cost(step for step in table.steps(table.missing) if step.kind == "train")[0]


def test_a_derived_cell_needs_the_cells_that_it_is_computed_from(monkeypatch):
    table = work("msse/table4")
    ((paper, name),), cells = table.grids, table.cells
    grid = find_grid(paper, name)
    (delta,) = [index for index, column in enumerate(grid.columns) if column.delta is not None]
    shown = grid.column(grid.columns[delta].delta)
    row = next(cell[2] for cell in cells if cell[3] == delta)
    one, baseline = ((paper, name, r, shown) for r in (row, grid.baseline_row))
    assert cells[paper, name, row, delta] == cells[one] | cells[baseline]
    assert (paper, name, grid.baseline_row, delta) not in cells
    lost = CellPlan(grid.rows[row], grid.columns[shown], missing="cited only")
    monkeypatch.setattr(cost, "parts_of_cell", lambda *place: [*parts_of_cell(*place), lost])
    assert not work("msse/table4").cells
