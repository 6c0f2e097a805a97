"""A forecast says what is left of pages and what it costs. Seconds are computed here by hand from
made-up step times."""

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

BASE = "google-bert/bert-base-uncased"
MINI = "encoders/bert-mini-wiki"
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
    """Let STS and STS-B dev be measured on two made-up devices, in a folder without runs and
    scores."""
    monkeypatch.setattr(forecast, "step_times", lambda: [fast, slow])
    monkeypatch.setattr(forecast, "evaluator_times", lambda: {"sts": SCORED, "stsb_dev": SCORED})
    monkeypatch.chdir(tmp_path)


def spec(method, **changes):
    """Make a run at scale paper; `changes` are of its recipe."""
    scale = catalog.scale("paper")
    row = Recipe(method=method, **changes)
    conditions = recipe.conditions(scale)
    return recipe.make_spec(row, scale.encoders["bert-base"], 10**6, 48, conditions, "tests")


def training_seconds(spec, times):
    """Return the seconds that a training is expected to take."""
    return forecast.training_estimate(spec, times).seconds


def test_seconds_of_a_run_by_hand():
    """They are the start of the job, 15,625 steps of twice the measured tokens, and 125 evaluations
    on STS-B dev."""
    start = forecast.START_SECONDS
    steps = 15_625 * 0.1 * (64 * 32) / (32 * 32)

    expected = start + steps + 125 * 3_000 / 1000
    assert training_seconds(spec("simcse"), fast) == pytest.approx(expected)

    expected = start + 10 * steps  # with the evaluations in the time of a step
    assert training_seconds(spec("simcse"), slow) == pytest.approx(expected)

    longer = spec("ct", params={"max_length": 64, "batch_size": 32, "evaluate_every": 5000})
    expected = start + 5_000 * 0.2 * 2 + 3
    assert training_seconds(longer, fast) == pytest.approx(expected)


def test_what_is_not_trained_starts_and_embeds_what_it_is_fitted_on():
    assert training_seconds(spec("bert"), fast) == forecast.START_SECONDS

    expected = forecast.START_SECONDS + 100  # for 100,000 sentences
    assert training_seconds(spec("whitening"), fast) == pytest.approx(expected)
    # Nothing tells how fast the other device embeds.
    assert forecast.training_estimate(spec("whitening"), slow) is None

    changes = {"device": "slower", "sentences_per_second": None, "seconds": {"simcse": 0.2}}
    slower = fast.model_copy(update=changes)
    estimate = forecast.embedding(1000, slower)  # at the speed that follows from its steps
    assert estimate.seconds == pytest.approx(2)
    assert estimate.high == pytest.approx(2 * 2 * 1.5)


def test_a_score_is_embedding_and_the_rest():
    expected = forecast.TimeEstimate(28, 20 / 2 + 8 / 4, 20 * 2 + 8 * 4)
    assert forecast.scoring("sts", fast) == expected
    assert forecast.scoring("beir:nq", fast) is None


def test_what_was_not_measured_has_the_wider_range():
    """The device states a factor of 2. A step that follows from another device's has 1.5 times
    that."""
    measured = forecast.training_estimate(spec("simcse"), fast)
    assert measured.high / measured.seconds == pytest.approx(2)
    assert measured.seconds / measured.low == pytest.approx(2)

    derived = forecast.training_estimate(spec("pcl"), fast)
    assert 2.9 < derived.high / derived.seconds < 3
    assert 2.9 < derived.seconds / derived.low < 3


def test_an_encoder_takes_the_time_of_one_of_the_same_shape():
    assert forecast.devices(BASE) == [fast]
    assert forecast.devices("FacebookAI/roberta-base") == [fast]
    assert forecast.devices("google-bert/bert-large-uncased") == []
    assert forecast.devices("somebody/bert") == []


def test_the_device_of_a_forecast_is_the_fastest_that_was_measured(monkeypatch):
    faster = fast.model_copy(update={"device": "faster", "seconds": {"simcse": 0.001}})
    monkeypatch.setattr(forecast, "step_times", lambda: [fast, slow, faster])
    assert [times.device for times in forecast.devices(BASE)] == ["faster", "fast"]
    assert work("micse/table3", scale="mini").device == "slow"
    assert work("micse/table3", scale="paper").device == "faster"

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
    ],
)
def test_step_of_a_method_that_was_measured_elsewhere(name, seconds):
    assert forecast.step_seconds(name, fast) == pytest.approx(seconds)


@pytest.mark.parametrize("name", ["scd", "simcse+rtd", "ct+rtd"])
def test_step_of_a_method_that_was_measured_nowhere(name):
    assert forecast.step_seconds(name, fast) is None


def test_components_of_the_recipe_are_added_not_those_of_the_method():
    without = training_seconds(spec("simcse"), fast)
    with_ami = training_seconds(spec("simcse", components={"ami": {}}), fast)
    assert with_ami - without == pytest.approx(15_625 * 0.03 * 2)
    assert forecast.training_estimate(spec("micse"), fast) is None  # not SimCSE's with AMI and MoCo


def test_minutes_asked_of_a_cluster():
    """They are three times the forecast and an hour, doubled by attempt, and a day at most. If
    nothing is known, they are a day."""
    assert forecast.job_minutes(601, 1) == 91
    assert forecast.job_minutes(601, 2) == 182
    assert forecast.job_minutes(601, 3) == 364
    assert forecast.job_minutes(0, 1) == 60
    a_day = 24 * 60
    assert forecast.job_minutes(20 * 3600, 1) == a_day
    assert forecast.job_minutes(600, 9) == a_day
    assert forecast.job_minutes(None, 1) == a_day


def first_simcse_run():
    """Return the first run of SimCSE with BERT-base at scale paper."""
    for planned in targets.runs("paper").values():
        if planned.method == "simcse" and planned.encoder.name == BASE:
            return planned
    raise AssertionError("no run of SimCSE")


def test_a_cluster_is_asked_for_the_fastest_device_with_all_that_is_known(monkeypatch):
    slower = fast.model_copy(update={"device": "slower", "seconds": {"simcse": 0.5}})
    monkeypatch.setattr(forecast, "step_times", lambda: [slower, fast, slow])
    planned = first_simcse_run()

    evaluators = targets.evaluators(planned.run_id, "paper")
    scores = [forecast.scoring(evaluator, fast) for evaluator in evaluators]
    known_scores = [estimate for estimate in scores if estimate is not None]
    expected = sum(known_scores, forecast.training_estimate(planned, fast))

    assert known_scores
    seconds = forecast.fastest_seconds(planned, "paper")
    assert seconds == pytest.approx(expected.seconds)


def work(*names, scale="paper"):
    """Return the work of the pages of some targets."""
    pages = []
    for target in names:
        pages += targets.parse_target(target, scale)
    return Work(pages)


def publish(scores, scale="paper", **changes):
    """Write score files of runs that have some settings changed."""
    for run, evaluator in scores:
        spec = targets.run(run, scale).model_copy(update=changes)
        evaluation = scored_by(evaluator)
        row = {
            "evaluator": evaluation["evaluator"],
            "task": "x",
            "subset": "all",
            "metric": "x",
            "value": 0.5,
        }
        content = {
            "run": spec.run_id,
            "spec": spec.model_dump(),
            "scores": [row],
            "evaluations": [evaluation],
            "training": {"provenance": PROVENANCE},
            "provenance": PROVENANCE,
        }
        write_score_file(targets.score_path(spec.run_id, evaluator, scale), content)


def first_run_with_two_evaluators():
    """Return the id of the first run that two evaluators score."""
    for run_id in targets.runs("smoke"):
        if len(targets.evaluators(run_id, "smoke")) > 1:
            return run_id
    raise AssertionError("no run has two evaluators")


def test_a_run_is_finished_with_its_model_or_all_its_scores():
    pages = targets.parse_target("all", "smoke")
    scores = set()
    for page in pages:
        scores.update(page.available())
    run = first_run_with_two_evaluators()
    of_run = [score for score in scores if score[0] == run]
    others = {other for other, _ in scores if other.startswith("simcse-") and other != run}
    with_model, pruned = sorted(others)[:2]

    publish(of_run[:1], "smoke")
    write_json(catalog.RUNS / with_model / DONE, {})
    write_json(catalog.RUNS / pruned / DONE, {})
    write_json(catalog.RUNS / pruned / PRUNED, {})
    assert targets.finished_runs(pages) == {with_model}

    publish(of_run, "smoke")
    assert targets.finished_runs(pages) == {run, with_model}


def pretraining_of(table):
    """Return the one run of a table that is a pre-training."""
    (run,) = {run for run in table.specs if run.startswith("condenser")}
    return run


def scores_after(run, table):
    """List the missing scores of runs that start from this one."""
    return [score for score in table.missing if table.specs[score[0]].run_before == run]


def test_a_run_that_others_start_from_is_finished_with_them():
    table = work("infocse/table4", scale="smoke")
    before = pretraining_of(table)
    last = scores_after(before, table)[0]
    all_runs = set(table.specs)

    publish(table.missing - {last}, "smoke")
    assert targets.finished_runs(table.pages) == all_runs - {last[0], before}

    publish([last], "smoke")
    assert targets.finished_runs(table.pages) == all_runs


@pytest.mark.parametrize("verb", ["plan", "status"])
def test_published_scores_are_done_in_a_fresh_clone(verb, capsys):
    """Scores of older code are not done. They are counted."""
    table = work("micse/table3", scale="smoke")

    publish(table.missing, "smoke", method_version=0)
    assert cli.main([verb, "micse/table3"]) == 0
    printed = capsys.readouterr().out
    assert " 0 done" in printed
    missing = len(table.missing)
    assert f"{missing} of the missing have a score of older code" in printed

    publish(table.missing, "smoke")
    assert cli.main([verb, "micse/table3"]) == 0
    printed = capsys.readouterr().out
    runs = len(table.specs)
    assert f" {runs} done" in printed
    assert f"{runs} done by scores stored in results/" in printed


def test_a_score_needs_its_run_and_the_run_that_it_starts_from():
    table = work("infocse/table4")
    before = pretraining_of(table)
    score = min(scores_after(before, table))
    run, evaluator = score
    train_before = Step("train", before)
    train = Step("train", run)
    evaluate = Step("score", run, evaluator)
    assert table.steps([score]) == {train_before, train, evaluate}

    write_json(catalog.RUNS / run / DONE, {})
    assert work("infocse/table4").steps([score]) == {evaluate}

    publish([score])
    assert work("infocse/table4").steps([score]) == set()


def test_a_back_translation_is_a_step_that_all_its_runs_share():
    table = work("msse/table4")
    (translation,) = {step for step in table.steps(table.missing) if step.kind == "translate"}
    assert table.price(translation) is None

    paths = [recipe.positives_path(spec) for spec in table.specs.values()]
    positives = next(path for path in paths if path is not None)
    positives.parent.mkdir(parents=True)
    positives.touch()
    assert translation not in work("msse/table4").steps(table.missing)


def seconds_of(*names):
    """Return the forecast for all that is missing for some targets."""
    planned = work(*names)
    estimate, _ = planned.cost(planned.steps(planned.missing))
    return estimate.seconds


def test_shared_runs_are_paid_once():
    table3 = seconds_of("micse/table3")
    table2 = seconds_of("micse/table2")
    both = seconds_of("micse/table3", "micse/table2")
    assert max(table3, table2) < both < table3 + table2


def test_what_was_not_measured_is_counted_and_not_estimated(monkeypatch):
    monkeypatch.setattr(forecast, "evaluator_times", dict)
    table = work("infocse/table4")
    steps = table.steps(table.missing)

    estimate, unknown = table.cost(steps)

    assert unknown == len(table.missing) > 0
    training, _ = table.cost(step for step in steps if step.kind == "train")
    assert estimate == training


def test_a_derived_cell_needs_the_cells_that_it_is_computed_from(monkeypatch):
    cells = work("msse/table4").cells
    grid = find_grid("msse", "table4")
    row = grid.row("w/o L_DCM")
    baseline = grid.baseline_row
    score_column = 0
    delta_column = 1

    def cell(row, column):
        return ("msse", "table4", row, column)

    needed = cells[cell(row, score_column)] | cells[cell(baseline, score_column)]
    assert cells[cell(row, delta_column)] == needed
    assert cell(baseline, delta_column) not in cells

    lost = CellPlan(grid.rows[row], grid.columns[score_column], missing="cited only")
    monkeypatch.setattr(forecast, "parts_of_cell", lambda *where: [*parts_of_cell(*where), lost])
    assert not work("msse/table4").cells
