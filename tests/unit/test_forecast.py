"""Forecasts of runs and scores: seconds by hand from made-up step times, their ranges, what follows from others."""

import pytest

from csebench.plan import catalog, cost, targets
from csebench.plan.papers import Recipe
from csebench.plan.recipe import conditions, make_spec

BASE, MINI = "google-bert/bert-base-uncased", "encoders/bert-mini-wiki"
LARGE = "google-bert/bert-large-uncased"
COMMON = {"batch_size": 32, "max_length": 32, "precision": "bf16", "factor": 2, "source": "made up"}
FAST = {"simcse": 0.1, "ct": 0.2, "infocse": 0.3, "condenser": 0.5}
SLOW = {"simcse": 1.0, "pcl": 8.0, "simcse+ami": 1.3, "simcse+moco": 1.2}
TIMES = [
    cost.StepTimes(device="fast", encoder=BASE, sentences_per_second=1000, seconds=FAST, **COMMON),
    cost.StepTimes(device="slow", encoder=MINI, seconds=SLOW, **COMMON),
]
fast, slow = TIMES


@pytest.fixture(autouse=True)
def measured(monkeypatch, tmp_path):
    """Those devices, and no run that is finished."""
    monkeypatch.setattr(cost, "step_times", lambda: TIMES)
    monkeypatch.chdir(tmp_path)


def spec(method, **recipe):
    scale = catalog.scale("paper")
    return make_spec(
        Recipe(method=method, **recipe), scale.encoders["bert-base"], 10**6, 48, conditions(scale), "tests"
    )


def test_seconds_of_a_run_by_hand():
    """The start of the job, 15,625 steps of twice the measured tokens, 125 evaluations on STS-B dev."""
    steps, start = 15_625 * 0.1 * (64 * 32) / (32 * 32), cost.START_SECONDS
    assert cost.training(spec("simcse"), fast).seconds == pytest.approx(start + steps + 125 * 3_000 / 1000)
    assert cost.training(spec("simcse"), slow).seconds == pytest.approx(start + 10 * steps)  # dev is in the steps
    longer = spec("ct", params={"max_length": 64, "batch_size": 32, "evaluate_every": 5000})
    assert cost.training(longer, fast).seconds == pytest.approx(start + 5_000 * 0.2 * 2 + 3)


def test_what_is_not_trained_starts_and_embeds_what_it_is_fitted_on():
    assert cost.training(spec("bert"), fast).seconds == cost.START_SECONDS
    assert cost.training(spec("whitening"), fast).seconds == pytest.approx(cost.START_SECONDS + 100)  # 100,000
    assert cost.training(spec("whitening"), slow) is None  # nothing tells how fast it embeds
    slower = fast.model_copy(update={"device": "slower", "sentences_per_second": None, "seconds": {"simcse": 0.2}})
    estimate = cost.embedding(1000, slower)  # at the speed that follows from its steps
    assert (estimate.seconds, estimate.high) == (pytest.approx(2), pytest.approx(2 * 2 * 1.5))


def test_a_score_is_embedding_and_the_rest(monkeypatch):
    times = cost.EvaluatorTimes(sentences=20_000, scoring_seconds=8, factor=4, source="made up")
    monkeypatch.setattr(cost, "evaluator_times", lambda: {"sts": times})
    assert cost.scoring("sts", fast) == cost.Estimate(28, 20 / 2 + 8 / 4, 20 * 2 + 8 * 4)
    assert cost.scoring("beir:nq", fast) is None


def test_what_was_not_measured_has_the_wider_range():
    """A factor of 2 is stated for the device; a step that follows from another device's has 1.5 times that."""
    measured, derived = cost.training(spec("simcse"), fast), cost.training(spec("pcl"), fast)
    assert (measured.high / measured.seconds, measured.seconds / measured.low) == (pytest.approx(2), pytest.approx(2))
    assert 2.9 < derived.high / derived.seconds < 3 and 2.9 < derived.seconds / derived.low < 3


def test_hours_are_printed_with_their_range():
    """A sum is as uncertain as its parts."""
    assert cost.Estimate.within(10, 2) + cost.Estimate.within(30, 1) == cost.Estimate(40, 35, 50)
    assert cost.Estimate.within(36_000, 2).hours == "10.0 h (5.0 to 20.0)"
    assert cost.Estimate.within(3_600_000, 4).hours == "1,000 h (250 to 4,000)"
    assert cost.Estimate().hours == "0 h"


def test_an_encoder_takes_the_time_of_one_of_the_same_shape():
    (times,) = cost.devices("FacebookAI/roberta-base")
    assert times.seconds == fast.seconds and times.factor == 1.5 * fast.factor
    assert cost.devices(BASE) == [fast] and cost.devices(LARGE) == cost.devices("somebody/bert") == []


def test_runs_of_scale_paper_have_a_forecast_on_the_device_that_a_paper_states(monkeypatch):
    monkeypatch.undo()
    runs = [(run, targets.base_encoder(run, "paper")) for run in targets.runs("paper").values()]
    known = [cost.training(run, t) for run, e in runs for t in cost.devices(e) if t.device == "NVIDIA V100"]
    assert len(known) - known.count(None) == 960 < len(runs)


def test_the_device_of_a_forecast_is_the_fastest_that_was_measured(monkeypatch):
    faster = fast.model_copy(update={"device": "faster", "seconds": {"simcse": 0.001}})
    monkeypatch.setattr(cost, "step_times", lambda: [*TIMES, faster])
    assert [times.device for times in cost.devices(BASE)] == ["faster", "fast"]
    devices = {scale: cost.Work(targets.parse_target("micse/table3", scale)).device for scale in ("mini", "paper")}
    assert devices == {"mini": "slow", "paper": "faster"}
    monkeypatch.setattr(cost, "step_times", lambda: [fast])
    assert cost.Work(targets.parse_target("micse/table3", "mini")).device is None


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ct", 0.2),
        ("pcl", 0.1 * 8.0),  # eight times SimCSE's, where both were measured
        ("simcse+ami", 0.1 * 1.3),
        ("ct+ami", 0.2 + 0.03),
        ("ct+ami+moco", 0.2 + 0.03 + 0.02),
        ("simcse+ami+moco", 0.1 + 0.03 + 0.02),
        ("pcl+ami", 0.8 + 0.03),
        ("scd", None),
        ("simcse+rtd", None),
        ("ct+rtd", None),
        ("scd+ami", None),
    ],
)
def test_step_of_a_method_that_was_measured_elsewhere(name, seconds):
    assert cost.step_seconds(name, fast) == (seconds and pytest.approx(seconds))


def test_components_of_the_recipe_are_added_not_those_of_the_method():
    with_ami = cost.training(spec("simcse", components={"ami": {}}), fast).seconds
    assert with_ami - cost.training(spec("simcse"), fast).seconds == pytest.approx(15_625 * 0.03 * 2)
    assert cost.training(spec("micse"), fast) is None  # not SimCSE's with AMI and MoCo


def test_minutes_asked_of_a_cluster():
    """Three times the forecast and an hour, doubled by attempt; a day at most, or where nothing is known."""
    assert [cost.job_minutes(601, attempt) for attempt in (1, 2, 3)] == [91, 182, 364]
    assert cost.job_minutes(0, 1) == 60
    assert cost.job_minutes(20 * 3600, 1) == cost.job_minutes(600, 9) == cost.job_minutes(None, 1) == 24 * 60


def test_a_cluster_is_asked_for_the_fastest_device_with_all_that_is_known(monkeypatch):
    slower = fast.model_copy(update={"device": "slower", "seconds": {"simcse": 0.5}})
    monkeypatch.setattr(cost, "step_times", lambda: [slower, *TIMES])
    every = targets.runs("paper").values()
    planned = next(run for run in every if run.method == "simcse" and run.encoder.name == fast.encoder)
    evaluators = targets.evaluators("paper")[planned.run_id]
    times = cost.devices(targets.base_encoder(planned, "paper"))[0]
    scores = [score for e in evaluators if (score := cost.scoring(e, times)) is not None]
    assert scores
    known = sum(scores, cost.training(planned, times)).seconds
    assert cost.fastest_seconds(planned, "paper") == pytest.approx(known)
