"""What is left of pages and what it costs: seconds by hand from made-up step times, their
ranges, what follows from others, and what counts as done."""

import pytest
from score_files import PROVENANCE, scored_by, write_score_file

from csebench import cli
from csebench.base.files import write_json
from csebench.base.runs import DONE, PRUNED
from csebench.plan import forecast, recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.forecast import Step, Work
from csebench.plan.grids import CellPlan, find_grid, parts_of_cell
from csebench.plan.schema.paper import Recipe

BASE, MINI = "google-bert/bert-base-uncased", "encoders/bert-mini-wiki"
SAME = [BASE, "FacebookAI/roberta-base"]  # of one shape
COMMON = {"batch_size": 32, "max_length": 32, "precision": "bf16", "factor": 2, "source": "made up"}
FAST = {"simcse": 0.1, "ct": 0.2, "infocse": 0.3, "condenser": 0.5}
SLOW = {"simcse": 1.0, "pcl": 8.0, "simcse+ami": 1.3, "simcse+moco": 1.2}
fast = forecast.StepTimes(
    device="fast", encoders=SAME, sentences_per_second=1000, seconds=FAST, **COMMON
)
slow = forecast.StepTimes(device="slow", encoders=[MINI], seconds=SLOW, **COMMON)
SCORED = forecast.EvaluatorTimes(sentences=20_000, scoring_seconds=8, factor=4, source="made up")


@pytest.fixture(autouse=True)
def measured(monkeypatch, tmp_path):
    """Those devices, on which STS and STS-B dev were measured, too, and no run or score that is
    there."""
    monkeypatch.setattr(forecast, "step_times", lambda: [fast, slow])
    monkeypatch.setattr(forecast, "evaluator_times", lambda: {"sts": SCORED, "stsb_dev": SCORED})
    monkeypatch.chdir(tmp_path)


def spec(method, **changes):
    scale, row = catalog.scale("paper"), Recipe(method=method, **changes)
    return recipe.make_spec(
        row, scale.encoders["bert-base"], 10**6, 48, recipe.conditions(scale), "tests"
    )


def test_seconds_of_a_run_by_hand():
    """The start of the job, 15,625 steps of twice the measured tokens, 125 evaluations on STS-B
    dev."""
    steps, start = 15_625 * 0.1 * (64 * 32) / (32 * 32), forecast.START_SECONDS
    assert forecast.training_estimate(spec("simcse"), fast).seconds == pytest.approx(
        start + steps + 125 * 3_000 / 1000
    )
    # dev is in the steps
    assert forecast.training_estimate(spec("simcse"), slow).seconds == pytest.approx(
        start + 10 * steps
    )
    longer = spec("ct", params={"max_length": 64, "batch_size": 32, "evaluate_every": 5000})
    assert forecast.training_estimate(longer, fast).seconds == pytest.approx(
        start + 5_000 * 0.2 * 2 + 3
    )


def test_what_is_not_trained_starts_and_embeds_what_it_is_fitted_on():
    assert forecast.training_estimate(spec("bert"), fast).seconds == forecast.START_SECONDS
    # 100,000
    assert forecast.training_estimate(spec("whitening"), fast).seconds == pytest.approx(
        forecast.START_SECONDS + 100
    )
    assert (
        forecast.training_estimate(spec("whitening"), slow) is None
    )  # nothing tells how fast it embeds
    slower = fast.model_copy(
        update={"device": "slower", "sentences_per_second": None, "seconds": {"simcse": 0.2}}
    )
    estimate = forecast.embedding(1000, slower)  # at the speed that follows from its steps
    assert (estimate.seconds, estimate.high) == (pytest.approx(2), pytest.approx(2 * 2 * 1.5))


def test_a_score_is_embedding_and_the_rest():
    assert forecast.scoring("sts", fast) == forecast.TimeEstimate(
        28, 20 / 2 + 8 / 4, 20 * 2 + 8 * 4
    )
    assert forecast.scoring("beir:nq", fast) is None


def test_what_was_not_measured_has_the_wider_range():
    """A factor of 2 is stated for the device; a step that follows from another device's has 1.5
    times that."""
    measured, derived = (
        forecast.training_estimate(spec("simcse"), fast),
        forecast.training_estimate(spec("pcl"), fast),
    )
    assert (measured.high / measured.seconds, measured.seconds / measured.low) == (
        pytest.approx(2),
        pytest.approx(2),
    )
    assert 2.9 < derived.high / derived.seconds < 3 and 2.9 < derived.seconds / derived.low < 3


def test_an_encoder_takes_the_time_of_one_of_the_same_shape():
    assert forecast.devices("FacebookAI/roberta-base") == forecast.devices(BASE) == [fast]
    assert (
        forecast.devices("google-bert/bert-large-uncased")
        == forecast.devices("somebody/bert")
        == []
    )


def test_the_device_of_a_forecast_is_the_fastest_that_was_measured(monkeypatch):
    faster = fast.model_copy(update={"device": "faster", "seconds": {"simcse": 0.001}})
    monkeypatch.setattr(forecast, "step_times", lambda: [fast, slow, faster])
    assert [times.device for times in forecast.devices(BASE)] == ["faster", "fast"]
    assert [work("micse/table3", scale=scale).device for scale in ("mini", "paper")] == [
        "slow",
        "faster",
    ]
    monkeypatch.setattr(forecast, "step_times", lambda: [fast])
    assert work("micse/table3", scale="mini").device is None


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ct", 0.2),
        ("pcl", 0.1 * 8.0),  # eight times SimCSE's, where both were measured
        ("simcse+ami", 0.1 * 1.3),
        ("ct+ami", 0.2 + 0.03),
        ("simcse+ami+moco", 0.1 + 0.03 + 0.02),
        ("pcl+ami", 0.8 + 0.03),
        ("scd", None),
        ("simcse+rtd", None),
        ("ct+rtd", None),
    ],
)
def test_step_of_a_method_that_was_measured_elsewhere(name, seconds):
    assert forecast.step_seconds(name, fast) == (seconds and pytest.approx(seconds))


def test_components_of_the_recipe_are_added_not_those_of_the_method():
    with_ami = forecast.training_estimate(spec("simcse", components={"ami": {}}), fast).seconds
    assert with_ami - forecast.training_estimate(spec("simcse"), fast).seconds == pytest.approx(
        15_625 * 0.03 * 2
    )
    assert forecast.training_estimate(spec("micse"), fast) is None  # not SimCSE's with AMI and MoCo


def test_minutes_asked_of_a_cluster():
    """Three times the forecast and an hour, doubled by attempt; a day at most, or where nothing
    is known."""
    assert [forecast.job_minutes(601, attempt) for attempt in (1, 2, 3)] == [91, 182, 364]
    assert forecast.job_minutes(0, 1) == 60
    assert (
        forecast.job_minutes(20 * 3600, 1)
        == forecast.job_minutes(600, 9)
        == forecast.job_minutes(None, 1)
        == 24 * 60
    )


def test_a_cluster_is_asked_for_the_fastest_device_with_all_that_is_known(monkeypatch):
    slower = fast.model_copy(update={"device": "slower", "seconds": {"simcse": 0.5}})
    monkeypatch.setattr(forecast, "step_times", lambda: [slower, fast, slow])
    every = targets.runs("paper").values()
    planned = next(run for run in every if run.method == "simcse" and run.encoder.name == BASE)
    scores = [
        forecast.scoring(evaluator, fast)
        for evaluator in targets.evaluators("paper")[planned.run_id]
    ]
    known = sum(filter(None, scores), forecast.training_estimate(planned, fast))
    assert any(scores) and forecast.fastest_seconds(planned, "paper") == pytest.approx(
        known.seconds
    )


def work(*given, scale="paper"):
    return Work([page for target in given for page in targets.parse_target(target, scale)])


def publish(scores, scale="paper", **changes):
    """Write score files, of runs with some settings changed."""
    for run, evaluator in scores:
        spec, by = targets.run(run, scale).model_copy(update=changes), scored_by(evaluator)
        row = {
            "evaluator": by["evaluator"],
            "task": "x",
            "subset": "all",
            "metric": "x",
            "value": 0.5,
        }
        content = {
            "run": spec.run_id,
            "spec": spec.model_dump(),
            "scores": [row],
            "evaluations": [by],
        }
        content |= {"training": {"provenance": PROVENANCE}, "provenance": PROVENANCE}
        write_score_file(targets.score_path(spec.run_id, evaluator, scale), content)


def test_a_run_is_finished_with_its_model_or_all_its_scores():
    pages = targets.parse_target("all", "smoke")
    scores = {score for page in pages for score in page.available()}
    run = next(
        run for run, evaluators in targets.evaluators("smoke").items() if len(evaluators) > 1
    )
    other, pruned, *_ = sorted(
        {other for other, _ in scores if other.startswith("simcse-")} - {run}
    )
    of_run = [score for score in scores if score[0] == run]
    publish(of_run[:1], "smoke")
    for finished in (other, pruned):
        write_json(catalog.RUNS / finished / DONE, {})
    write_json(catalog.RUNS / pruned / PRUNED, {})
    assert targets.finished_runs(pages) == {other}
    publish(of_run, "smoke")
    assert targets.finished_runs(pages) == {run, other}


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
    old, published = (
        "of those missing with scores of an older code version",
        "done by scores stored in results/",
    )
    for version, done, reason in (
        ({"method_version": 0}, 0, f"{missing} {old}"),
        ({}, runs, f"{runs} {published}"),
    ):
        publish(table.missing, "smoke", **version)
        assert cli.main([verb, "micse/table3"]) == 0
        shown = capsys.readouterr().out
        assert f" {done} done" in shown and reason in shown


def test_a_score_needs_its_run_and_the_run_that_it_starts_from():
    table = work("infocse/table4")
    (before,) = {run for run in table.specs if run.startswith("condenser")}
    run, evaluator = score = min(
        score for score in table.missing if table.specs[score[0]].run_before == before
    )
    assert table.steps([score]) == {
        Step("train", before),
        Step("train", run),
        Step("score", run, evaluator),
    }
    write_json(catalog.RUNS / run / DONE, {})
    assert work("infocse/table4").steps([score]) == {Step("score", run, evaluator)}
    publish([score])
    assert work("infocse/table4").steps([score]) == set()


def test_a_back_translation_is_a_step_that_all_its_runs_share():
    table = work("msse/table4")
    (translation,) = {step for step in table.steps(table.missing) if step.kind == "translate"}
    assert table.price(translation) is None
    positives = next(p for s in table.specs.values() if (p := recipe.positives_path(s)) is not None)
    positives.parent.mkdir(parents=True)
    positives.touch()
    assert translation not in work("msse/table4").steps(table.missing)


def test_shared_runs_are_paid_once():
    works = [
        work(*given)
        for given in (["micse/table3", "micse/table2"], ["micse/table3"], ["micse/table2"])
    ]
    both, one, other = (w.cost(w.steps(w.missing))[0].seconds for w in works)
    assert max(one, other) < both < one + other


def test_what_was_not_measured_is_counted_and_not_estimated(monkeypatch):
    monkeypatch.setattr(forecast, "evaluator_times", dict)
    table = work("infocse/table4")
    estimate, unknown = table.cost(table.steps(table.missing))
    assert unknown == len(table.missing) > 0
    assert (
        estimate
        == table.cost(step for step in table.steps(table.missing) if step.kind == "train")[0]
    )


def test_a_derived_cell_needs_the_cells_that_it_is_computed_from(monkeypatch):
    cells, grid = work("msse/table4").cells, find_grid("msse", "table4")
    place, row, shown, delta = ("msse", "table4"), grid.row("w/o L_DCM"), 0, 1
    assert (
        cells[*place, row, delta]
        == cells[*place, row, shown] | cells[*place, grid.baseline_row, shown]
    )
    assert (*place, grid.baseline_row, delta) not in cells
    lost = CellPlan(grid.rows[row], grid.columns[shown], missing="cited only")
    monkeypatch.setattr(forecast, "parts_of_cell", lambda *place: [*parts_of_cell(*place), lost])
    assert not work("msse/table4").cells


X86 = "processor\t: 0\nflags\t\t: fpu avx2 avx512f {}\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("scale", "device", "cpu", "is_said"),
    [
        ("mini", "AMD EPYC, 2 threads", X86.format("avx512vl"), True),
        ("mini", "AMD EPYC, 2 threads", X86.format("avx512_bf16"), False),
        ("paper", "AMD EPYC, 2 threads", X86.format("amx_bf16"), False),
        ("mini", "Neoverse, 2 threads", "Features\t: fp asimd bf16\n", False),
        ("mini", "Neoverse, 2 threads", "Features\t: fp asimd\n", True),
        ("mini", "NVIDIA V100", X86.format(""), False),  # a forecast for a GPU
        ("smoke", "AMD EPYC, 2 threads", X86.format(""), False),  # in fp32
        ("mini", "AMD EPYC, 2 threads", "", False),  # unknown
        ("mini", "AMD EPYC, 2 threads", None, False),
        ("mini", None, X86.format(""), False),
    ],
)
def test_a_cpu_without_bf16_instructions_is_said(
    scale, device, cpu, is_said, tmp_path, monkeypatch
):
    monkeypatch.setattr(forecast, "CPU_INFO", tmp_path / "cpuinfo")
    if cpu is not None:
        forecast.CPU_INFO.write_text(cpu)
    note = forecast.bf16_note(catalog.scale(scale), device)
    assert (note is not None) == is_said and (note is None or "no bf16 instructions" in note)


def test_the_plan_says_that_this_cpu_lacks_bf16(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        forecast, "bf16_note", lambda scale, device: f"{scale.scale} on {device} takes longer"
    )
    assert cli.main(["plan", "micse/table3", "--scale", "mini"]) == 0
    assert "mini on slow takes longer" in " ".join(capsys.readouterr().out.split())
