"""What `csebench plan` counts as done, what it chooses for some hours, and the file that the workflow takes."""

import json
import re
from types import SimpleNamespace

import pytest
import yaml
from score_files import scored_by

from csebench import cli
from csebench.base.files import write_json
from csebench.base.run_dir import DONE, PRUNED
from csebench.data import needs
from csebench.plan import catalog, disk, forecast, recipe, targets
from csebench.plan.budget import Score, Step, Work
from csebench.plan.registry import METHODS, names

BASE = "google-bert/bert-base-uncased"
COST = forecast.EvaluatorTimes(sentences=10_000, scoring_seconds=1, factor=2, source="made up")
TIMES = forecast.StepTimes(
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
    monkeypatch.setattr(forecast, "step_times", lambda: [TIMES])
    monkeypatch.setattr(forecast, "evaluator_times", lambda: {"sts": COST, "stsb_dev": COST})
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
    write_json(targets.score_path(spec.run_id, evaluator, scale), content)


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
    monkeypatch.setattr(forecast, "evaluator_times", dict)
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


def test_only_claims_whose_cells_all_have_runs_can_be_tested():
    table = work("infocse/table2")
    quoted = [claim for claim in catalog.paper("infocse").claims if claim.place == "table2"]
    assert 0 < len(table.claims) < len(quoted)  # BERT-flow is cited only


# ---------------------------------------------------------------- the choice


@pytest.mark.parametrize("hours", [1, 24, 100])
def test_a_choice_fits_and_is_complete(hours):
    everything = work("all")
    choice = everything.choose(hours)
    assert 0 < seconds(everything, choice.steps) <= 3600 * hours
    finished = {i for i, bundle in enumerate(everything.bundles) if everything.steps(bundle.scores) <= choice.steps}
    assert choice.bundles == finished
    assert choice.claims == sum(finished.issuperset(claim) for claim in everything.claims)
    assert everything.steps(choice.scores) == choice.steps
    assert len(choice.scores) == len(set(choice.scores))


def test_more_hours_complete_more():
    everything = work("all")
    cells = [everything.tally(everything.choose(hours).bundles)[0] for hours in (1, 10, 100, 1000)]
    assert cells == sorted(set(cells))


def test_the_best_per_hour_comes_first():
    """Of Table 2 of miCSE, where all rows of a column take as long, Mirror-BERT's few steps."""
    table = work("micse/table2")
    assert {score.run.partition("-")[0] for score in table.choose(0.5).scores} == {"mirror_bert"}


def test_without_hours_all_of_it_is_chosen_and_the_unmeasured_last():
    table = work("infocse/table2", "infocse/table3")
    choice = table.choose()
    assert set(choice.scores) == table.missing and len(choice.bundles) == len(table.bundles)
    assert choice.claims == len(table.claims)
    measured = [score.evaluator == "sts" for score in choice.scores]
    assert measured == sorted(measured, reverse=True)
    assert not [score for score in table.choose(10_000).scores if score.evaluator != "sts"]


def test_one_seed_has_one_run_per_cell_and_no_verdict():
    table = work("micse/table2", seeds=1)
    assert {len(scores) for scores in table.cells.values()} == {1}
    cells, verdicts = table.tally(range(len(table.bundles)))
    assert (cells, verdicts) == (36, 0)
    three = work("micse/table2", seeds=3)
    assert three.tally(range(len(three.bundles)))[1] == 36
    assert table.missing < three.missing < work("micse/table2").missing


def test_verdicts_are_counted_at_scale_paper_only():
    table = work("micse/table2", scale="short")
    assert table.tally(range(len(table.bundles))) == (36, 0)


def test_what_is_done_costs_nothing():
    before = work("micse/table2").choose(5)
    publish(before.scores)
    after = work("micse/table2")
    choice = after.choose(5)
    assert not set(choice.scores) & set(before.scores) and choice.scores
    assert choice.bundles > {i for i, bundle in enumerate(after.bundles) if not after.steps(bundle.scores)}


# ---------------------------------------------------------------- disk


def test_models_stay_where_the_scale_keeps_them_or_another_score_is_missing(monkeypatch):
    table = work("infocse/table4")
    sizes = [4 * forecast.encoder_sizes()[table.encoders[run]].parameters for run in table.specs]
    scores = table.missing
    stay, more, unknown = table.disk(scores)
    publish({Score(run, name) for run in table.specs for name in targets.evaluators("paper")[run]} - scores)
    assert (more, unknown) == ((1 + disk.CHECKPOINTS) * max(sizes), 0)
    only = work("infocse/table4").disk(scores)[0]
    assert disk.SCORE_BYTES * len(scores) + min(sizes) == only < stay  # that which the others start from
    monkeypatch.setattr(table, "scale", table.scale.model_copy(update={"keep": "model"}))
    assert table.disk(scores)[0] == disk.SCORE_BYTES * len(scores) + sum(sizes)


# ---------------------------------------------------------------- the command


def test_the_command_prints_a_summary_and_writes_the_choice(capsys, tmp_path):
    assert cli.main(["plan", "infocse/table4", "infocse/table2", "--scale", "paper", "--hours", "50"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"^simcse-[0-9a-f]{10}", shown, re.M)
    assert re.search(r"In 50 hours: \d+ runs and \d+ scores, \d+\.\d h \(\d+\.\d to \d+\.\d\)\.", shown)
    chosen = yaml.safe_load((tmp_path / "chosen.yaml").read_text())
    assert chosen["scale"] == "paper" and "results/partial/paper/infocse/table4.md" in chosen["pages"]
    order = list(chosen["runs"])
    specs = targets.runs("paper")
    started = [run for run in order if specs[run].encoder.revision in specs]
    assert started and all(order.index(specs[run].encoder.revision) < order.index(run) for run in started)


def test_more_seeds_later_leave_out_what_is_done(tmp_path):
    def chosen(*more):
        assert cli.main(["plan", "micse/table3", "--scale", "paper", *more]) == 0
        return yaml.safe_load((tmp_path / "chosen.yaml").read_text())["runs"]

    first = chosen("--seeds", "1")
    publish(Score(run, name) for run, evaluators in first.items() for name in evaluators)
    second = chosen("--seeds", "2")
    assert len(second) == len(first) and not first.keys() & second.keys()


@pytest.mark.parametrize("wrong", [("--hours", "0"), ("--hours", "nan"), ("--seeds", "0"), ("--device", "a crad")])
def test_wrong_options_are_refused(wrong, capsys, tmp_path):
    assert cli.main(["plan", "micse/table3", *wrong]) == 2
    assert wrong[1] in capsys.readouterr().err
    assert not (tmp_path / "chosen.yaml").exists()


def test_no_device_is_said(monkeypatch, capsys):
    monkeypatch.setattr(forecast, "step_times", lambda: [])
    assert cli.main(["plan", "micse/table3", "--hours", "1"]) == 0
    shown = capsys.readouterr().out
    assert "measured on no device" in shown and "Left out, as their hours were not measured: 28 cells" in shown


@pytest.mark.parametrize(
    ("config", "known"),
    [
        ({"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 6}, True),
        ({"dim": 768, "n_heads": 12, "n_layers": 6}, True),  # DistilBERT
        ({"d_model": 768, "num_heads": 12, "num_layers": 6}, False),  # T5
    ],
    ids=["BERT", "DistilBERT", "T5"],
)
def test_the_largest_step_is_estimated_where_the_shape_of_the_encoder_is_known(config, known, make_spec, tmp_path):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = make_spec("simcse", encoder=tmp_path)
    page = SimpleNamespace(available_runs=lambda: {spec.run_id: spec})
    step = needs.largest_step([page], [])
    assert (step is not None) == known
    if known:
        length, count = spec.params["max_length"], 2 * spec.params["batch_size"]
        assert step[0] == round(length * count * 768 * (34 + 5 * 12 * length / 768) * 6) * 2
