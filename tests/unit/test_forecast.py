"""What `csebench plan` forecasts: hours by hand from made-up step times, what is shared, what is left unsaid."""

import re
import subprocess
import sys

import pytest

from csebench import ROOT
from csebench.plan import catalog, forecast, targets
from csebench.plan.papers import Recipe
from csebench.plan.recipe import conditions, make_spec

BASE, MINI = "google-bert/bert-base-uncased", "encoders/bert-mini-wiki"
COMMON = {"batch_size": 32, "max_length": 32, "precision": "bf16", "source": "made up"}
FAST = {"simcse": 0.1, "ct": 0.2, "infocse": 0.3, "condenser": 0.5}
SLOW = {"simcse": 1.0, "pcl": 8.0, "simcse+ami": 1.3, "simcse+moco": 1.2}
TIMES = [
    forecast.StepTimes(device="fast", encoder=BASE, sentences_per_second=1000, seconds=FAST, **COMMON),
    forecast.StepTimes(device="slow", encoder=MINI, seconds=SLOW, **COMMON),
]
fast, slow = TIMES
HEAVY = ("torch", "transformers", "tokenizers", "mteb", "beir", "sentence_transformers", "scipy", "sklearn")


@pytest.fixture(autouse=True)
def measured(monkeypatch, tmp_path):
    """Those devices, and no run that is finished."""
    monkeypatch.setattr(forecast, "step_times", lambda: TIMES)
    monkeypatch.chdir(tmp_path)


def spec(method, **recipe):
    scale = catalog.scale("paper")
    return make_spec(
        Recipe(method=method, **recipe), scale.encoders["bert-base"], 10**6, 48, conditions(scale), "tests"
    )


def hours(pages):
    """Of what is shown, by device: runs with a forecast, runs on its encoder, hours, hours missing, hours apart."""
    found = {}
    for line in forecast.plan_report(pages).splitlines():
        if re.match("fast|slow", line):
            device, _, runs, *numbers, _ = re.split(r"\s{2,}", line)
            found[device] = (*map(int, runs.split(" of ")), *map(float, numbers))
    return found


# ---------------------------------------------------------------- one run


def test_seconds_of_a_run_by_hand():
    """15,625 steps of twice the measured tokens, 125 evaluations on STS-B dev, one on the test sets."""
    training = 15_625 * 0.1 * (64 * 32) / (32 * 32)
    assert forecast.run_seconds(spec("simcse"), fast) == pytest.approx(training + 125 * 3_000 / 1000 + 26_300 / 1000)
    assert forecast.run_seconds(spec("simcse"), slow) == pytest.approx(10 * training)  # evaluations are in the steps
    longer = forecast.run_seconds(
        spec("ct", params={"max_length": 64, "batch_size": 32, "evaluate_every": 5000}), fast
    )
    assert longer == pytest.approx(5_000 * 0.2 * 2 + 3 + 26.3)


def test_what_is_not_trained_is_evaluated_only():
    assert forecast.run_seconds(spec("bert"), fast) == pytest.approx(26.3)
    assert forecast.run_seconds(spec("bert"), slow) == 0


def test_what_is_fitted_embeds_what_it_is_fitted_on():
    assert spec("whitening").params["fit_sentences"] == 100_000
    assert forecast.run_seconds(spec("whitening"), fast) == pytest.approx((100_000 + 26_300) / 1000)


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
    assert forecast.step_seconds(name, fast) == (seconds and pytest.approx(seconds))


def test_components_of_the_recipe_are_added_not_those_of_the_method():
    with_ami = forecast.run_seconds(spec("simcse", components={"ami": {}}), fast)
    assert with_ami - forecast.run_seconds(spec("simcse"), fast) == pytest.approx(15_625 * 0.03 * 2)
    assert forecast.run_seconds(spec("micse"), fast) is None  # not SimCSE's with AMI and MoCo


def test_a_run_that_starts_from_another_is_of_its_encoder():
    started = spec("infocse")
    assert started.encoder.name.startswith("runs/") and forecast.base_encoder(started, "paper") == BASE


def test_minutes_asked_of_a_cluster():
    """Three times the forecast and an hour, doubled by attempt; a day at most, or where nothing is known."""
    assert [forecast.job_minutes(601, attempt) for attempt in (1, 2, 3)] == [91, 182, 364]
    assert forecast.job_minutes(0, 1) == 60
    assert (
        forecast.job_minutes(20 * 3600, 1) == forecast.job_minutes(600, 9) == forecast.job_minutes(None, 1) == 24 * 60
    )


def test_the_fastest_device_that_has_the_encoder(monkeypatch):
    slower = fast.model_copy(update={"device": "slower", "seconds": {"simcse": 0.5}})
    monkeypatch.setattr(forecast, "step_times", lambda: [slower, *TIMES])
    assert forecast.fastest_seconds(spec("simcse"), "paper") == forecast.run_seconds(spec("simcse"), fast)
    assert forecast.fastest_seconds(spec("simcse", components={"rtd": {}}), "paper") is None


# ---------------------------------------------------------------- many runs


def test_hours_are_the_sum_over_runs():
    pages = [targets.page("table9", "paper", "infocse")]
    runs = pages[0].runs().values()
    known = [s for s in (forecast.run_seconds(run, fast) for run in runs) if s is not None]
    assert 0 < len(known) < len(runs)  # DiffCSE was measured nowhere
    assert hours(pages)["fast"][:3] == (len(known), len(runs), pytest.approx(sum(known) / 3600, abs=0.05))


@pytest.mark.parametrize("target", ["all", "micse/table3", "table2", "methods"])
def test_without_sharing_nothing_is_cheaper(target):
    found = hours(targets.parse_target(target, "paper"))
    assert list(found) == ["fast"]  # nothing runs on the other encoder at this scale
    known, every, total, missing, apart = found["fast"]
    assert 0 < known <= every and 0 < total == missing <= apart
    assert target != "all" or total < apart


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_a_table_counts_once(scale):
    for run in forecast.planned_runs(list(targets.pages(scale))):
        assert len(set(run.tables)) == len(run.tables), run.spec.run_id


def test_encoders_that_nothing_was_measured_on_are_listed():
    shown = forecast.plan_report(list(targets.pages("paper")))
    large = [
        run
        for run in forecast.planned_runs(list(targets.pages("paper")))
        if "large" in forecast.base_encoder(run.spec, "paper")
    ]
    assert large and all(forecast.base_encoder(run.spec, "paper") not in (BASE, MINI) for run in large)
    counts = {
        name: int(n) for name, n in re.findall(r"^(\S+): (\d+) runs, measured on no device\.$", shown, flags=re.M)
    }
    assert sum(n for name, n in counts.items() if "large" in name) == len(large)
    assert not {BASE, MINI} & set(counts)


def test_finished_runs_are_not_missing(tmp_path):
    pages = [targets.page("table3", "paper", "micse")]
    before, done = hours(pages)["fast"], next(run for run, s in pages[0].runs().items() if s.method == "simcse")
    report = tmp_path / "runs" / done / "train.json"
    report.parent.mkdir(parents=True)
    report.write_text('{"provenance": {"seconds": 1234.5}}')
    after = hours(pages)["fast"]
    assert after[2] == before[2] == before[3] > after[3]
    assert re.search(rf"^{done} .* done +1234\.5 ", forecast.plan_report(pages), flags=re.M)


def test_the_command_lists_every_run_once_without_torch():
    code = (
        "import sys\nfrom csebench.cli import main\nmain(['plan', 'all', '--scale', 'paper'])\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    listed = re.findall(r"^([a-z_]+-[0-9a-f]{10}) ", done.stdout, flags=re.M)
    assert sorted(listed) == sorted(targets.runs("paper"))
