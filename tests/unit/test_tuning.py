"""Tuning on STS-B dev: trials are planned, searches are kept, scales use them, and a page shows
them."""

import json
import math
import shutil
from pathlib import Path

import pytest
import yaml
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput, Stopped, Untrainable
from csebench.base.files import write_json
from csebench.base.project import ROOT
from csebench.plan import grids, targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.spec import Spec
from csebench.report.pages.methods import tuning_parts
from csebench.report.pages.page import PageContent
from csebench.study import search as trials_of_searches

SCALE = "tuned"
FAST = {"learning_rate": 1e-4, "temperature": 0.1}
ROBERTA = {"roberta-base": {"name": "encoders/bert-mini-wiki", "revision": "0" * 64}}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Copy the project's papers and scales to the current folder, and add a scale that takes what
    searches chose."""
    copy_project(tmp_path, monkeypatch, "config", "papers")
    monkeypatch.chdir(tmp_path)
    write_scale(tuned=True)
    yield tmp_path
    caches.clear()


def write_scale(**changes):
    """Write config/tuned.yaml: scale smoke with a RoBERTa, and some settings changed."""
    content = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    content["scale"] = SCALE
    content["data_root"] = str(ROOT / "data" / "smoke")
    content["encoders"] |= ROBERTA
    content |= changes
    (Path("config") / f"{SCALE}.yaml").write_text(yaml.safe_dump(content))
    caches.clear()


def write_search(name, chosen, planned=2, made=None):
    """Write a search whose second trial is the best.

    Args:
        chosen: settings in which the best trial differs from the first.
        planned: number of trials that the search is to have.
        made: number of trials that it has already; all by default.
    """
    first, *others = tuning.plan_trials(name, SCALE, 6)
    spec = first.specs[0]
    best_settings = {**first.settings, **chosen}
    settings = [first.settings, best_settings]
    settings += [other.settings for other in others if other.settings != best_settings]
    count = made or planned
    scores = [0.60, 0.65, 0.50, 0.50]
    pairs = zip(settings[:count], scores, strict=False)
    trials = [trial(spec, tried, dev) for tried, dev in pairs]
    write_trials(name, spec, trials, planned)


def write_trials(name, spec, trials, planned, scale=SCALE):
    """Write a search with these trials, which chose the best of them."""
    best = tuning.best_trial(trials)
    chosen = best and best.settings
    search = tuning.Search(name=name, planned=planned, spec=spec, trials=trials, chosen=chosen)
    tuning.write_search(search, scale)
    caches.clear()


def with_settings(spec, settings):
    """Change settings of a spec; `ami.weight` is one of component `ami`."""
    content = spec.model_dump()
    for key, value in settings.items():
        component, _, param = key.rpartition(".")
        part = content["components"][component] if component else content
        part["params"][param] = value
    return Spec(**content)


def trial(spec, settings, *scores):
    """Make a trial with a run for each score; None means that the run failed."""
    changed = with_settings(spec, settings)
    runs = []
    for number, dev in enumerate(scores):
        planned = changed.with_seed(spec.seed + number)
        runs.append(tuning.TrialRun(run=planned.run_id, seed=planned.seed, dev=dev))
    return tuning.Trial(settings=settings, runs=runs)


def first_spec(paper, table, label):
    """Return the first run of a row's first cell."""
    row = grids.find_grid(paper, table).row(label)
    cell = grids.plan_grid(paper, table, SCALE)[row][0]
    return cell.specs[0]


@pytest.mark.parametrize("name", tuning.tunable())
def test_trials_differ_in_declared_values_alone_and_no_table_has_them(name):
    """The first trial is the method without its search. Fewer trials are the first of all. Each
    seed has a subset of its own."""
    space = tuning.search_space(name)
    trials = tuning.plan_trials(name, "mini")
    assert len(trials) >= math.prod(map(len, space.values()))
    assert trials[:3] == tuning.plan_trials(name, "mini", 3)

    first, *others = trials
    untuned = first.specs[0]
    assert first.settings == {key: untuned.settings[key] for key in space}
    for planned in others:
        differences = tuning.spec_differences(planned.specs[0], untuned)
        assert set(differences) <= set(space)
        for key, values in space.items():
            assert planned.settings[key] in values

    runs = []
    for planned in trials:
        runs += planned.specs
    run_ids = {spec.run_id for spec in runs}
    assert len(run_ids) == len(runs) == 2 * len(trials)
    assert all(spec.corpus.subset_seed == spec.seed for spec in runs)
    seeds_of_tables = {spec.seed for spec in targets.runs("mini").values() if spec.corpus}
    assert seeds_of_tables.isdisjoint(spec.seed for spec in runs)


def test_no_seed_of_a_table_is_taken(project):
    write_scale(seeds=[47, 48], seeds_by_size={"1%": [49]}, seeds_by_table={"micse/table2": [50]})
    assert tuning.trial_seeds(catalog.scale(SCALE)) == [51, 52]


REFUSED = {
    "pcl": "pcl has nothing to try but what it takes from simcse. Methods that have: clsep_sup",
    "simcse+moca": "Did you mean 'moco'",
    "micse+ami": "write micse",
}


@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_a_search_that_cannot_be_made_is_refused(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert cli.main(["tune", name, "--trials", "2"]) == 2

    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.fixture
def trained(project, monkeypatch):
    """List the ids of the runs that searches train; training itself is replaced.

    A run gets the score that `score` derives from its id. SimCSE fails at learning rate 1e-4.
    """
    ids = []

    def train_and_score(spec, scale, progress):
        ids.append(spec.run_id)
        if spec.method == "simcse" and spec.params["learning_rate"] == 1e-4:
            raise Untrainable(f"{spec.run_id}: the loss is not finite.")
        folder = catalog.RUNS / spec.run_id
        (folder / "model").mkdir(parents=True)
        report = {"best_dev": score(spec.run_id), "model_sha256": "0" * 64}
        (folder / "train.json").write_text(json.dumps(report))

    monkeypatch.setattr(trials_of_searches, "train_and_score", train_and_score)
    return ids


def score(run_id):
    """Return a number from 0.6 to 0.6625, by the last five digits of a run's id."""
    return 0.6 + int(run_id[-5:], 16) / 16**6


def search(number, name="simcse"):
    """Search with some number of trials, and read the file that the search wrote.

    Returns:
        The search, and the lines that it printed.
    """
    lines = []
    trials_of_searches.tune([name], "smoke", number, lines.append)
    return tuning.read_search(tuning.search_path(name, "smoke")), lines


def runs_of(search):
    """List the runs of all trials."""
    runs = []
    for made in search.trials:
        runs += made.runs
    return runs


def scored_runs(search):
    """List the runs that did not fail."""
    return [run for run in runs_of(search) if run.dev is not None]


def test_a_search_takes_the_best_trial(trained):
    """It takes the best of those that did not fail: trials at one learning rate end by their own
    loss."""
    result, lines = search(6)

    assert len(lines) == len(result.trials) + 1
    for run in scored_runs(result):
        assert run.dev == score(run.run)
    assert result.chosen == tuning.best_trial(result.trials).settings
    failed = [made for made in result.trials if made.dev is None]
    assert failed
    assert all("not finite" in made.failure for made in failed)


def test_a_setting_changes_only_for_more_than_the_deviation_between_seeds(project):
    """Among the trials near the best, the one that changes the fewest settings of the first is
    chosen."""
    planned = tuning.plan_trials("simcse", SCALE)[0]
    spec = planned.specs[0]
    first = planned.settings
    one_change = first | {"temperature": 0.1}
    two_changes = one_change | {"pooler": "avg"}

    trials = [trial(spec, first, 0.59, 0.61), trial(spec, two_changes, 0.63, 0.65)]
    assert tuning.seed_deviation(trials) == pytest.approx(0.01414, abs=1e-5)
    assert tuning.best_trial(trials).settings == two_changes

    near = trial(spec, one_change, 0.62, 0.64)
    assert tuning.best_trial([*trials, near]).settings == one_change
    far = trial(spec, one_change, 0.60, 0.62)
    assert tuning.best_trial([*trials, far]).settings == two_changes

    seeds_differ_more = [trial(spec, first, 0.58, 0.68), trial(spec, two_changes, 0.63, 0.65)]
    assert tuning.best_trial(seeds_differ_more).settings == first


@pytest.mark.parametrize("numbers", [(1.0, 0.0, -1.0), (2.0, -1.0, -2.0)])
def test_a_choice_beside_0_or_beyond_it_is_not_followed_outward(numbers, project):
    spec = tuning.plan_trial("simcse", {}, SCALE)
    best, *others = [{"temperature": number} for number in numbers]
    trials = [trial(spec, best, 0.7)]
    trials += [trial(spec, settings, 0.6) for settings in others]
    assert tuning.outward_settings(trials) == []


def test_a_search_starts_from_no_search_with_other_code(project, monkeypatch):
    spec = tuning.plan_trial("ct", {}, SCALE)
    write_trials("ct", spec, [trial(spec, {"learning_rate": 5e-5}, 0.7)], 1)
    assert tuning.plan_trial("ct+ami", {}, SCALE).params["learning_rate"] == 5e-5

    monkeypatch.setattr(tuning, "draft_codes", lambda *_: {"methods/ct": "0" * 16})
    assert tuning.plan_trial("ct+ami", {}, SCALE).params["learning_rate"] == 1e-5


@pytest.mark.parametrize(
    ("value", "outward", "chosen"), [(0.1, [0.2], 0.2), (0.02, [0.008], 0.008), (0.05, [], 0.05)]
)
def test_a_choice_at_an_end_of_its_values_is_followed_outward(value, outward, chosen, project):
    """A scale takes what such a trial chose."""
    spec = tuning.plan_trial("simcse", {}, SCALE)
    scores = {0.05: 0.60, 0.02: 0.60, 0.1: 0.60}  # by temperature; the first is SimCSE's
    scores[value] = 0.70
    trials = [trial(spec, {"temperature": tried}, dev) for tried, dev in scores.items()]

    further = tuning.plan_outward("simcse", SCALE, trials)

    assert [planned.settings["temperature"] for planned in further] == outward
    for planned in further:
        assert {run.params["temperature"] for run in planned.specs} == set(outward)
        trials.append(trial(spec, planned.settings, 0.75))
    write_trials("simcse", spec, trials, 3)
    row = first_spec("methods", "methods", "SimCSE (unsupervised)")
    assert row.params["temperature"] == chosen


def test_trials_outward_leave_the_number_that_was_planned(trained, monkeypatch):
    """Otherwise two searches, one of them with trials outward, would count as searches of different
    sizes."""
    one_trial = tuning.plan_trials("simcse", "smoke")[5:6]
    plans = iter([one_trial])
    monkeypatch.setattr(tuning, "plan_outward", lambda *_: next(plans, []))

    result, lines = search(3)

    assert len(result.trials) == 4
    assert result.planned == 3
    assert "trial 4 of 4" in lines[3]


def test_a_finished_run_is_not_repeated(trained):
    """It is not repeated after its model is deleted either. A scale that keeps only scores deletes
    models."""
    first, _ = search(3)
    scored = {run.run for run in scored_runs(first)}
    for run_id in scored:
        trials_of_searches.delete_model(catalog.RUNS / run_id)
    trained.clear()

    larger, _ = search(5)
    assert larger.trials[: len(first.trials)] == first.trials
    assert scored.isdisjoint(trained)

    smaller, _ = search(2)
    assert len(smaller.trials) > 2  # fewer leave the others in the file


@pytest.mark.parametrize("fault", [Stopped("stopped"), OSError(28, "No space left on device")])
def test_a_fault_stops_a_search_and_a_repeat_makes_what_is_missing(fault, trained, monkeypatch):
    train = trials_of_searches.train_and_score

    def stopped(*args, **kwargs):
        if len(trained) == 2:
            raise fault
        train(*args, **kwargs)

    with monkeypatch.context() as patched, pytest.raises(type(fault)):
        patched.setattr(trials_of_searches, "train_and_score", stopped)
        search(4)
    result = tuning.read_search(tuning.search_path("simcse", "smoke"))
    assert len(result.trials) == 1
    assert result.planned == 4

    repeated, _ = search(4)
    assert len(set(trained)) == len(trained) == len(runs_of(repeated))


def test_a_fresh_clone_repeats_no_trial(trained):
    """It does not repeat the pre-training either, which comes first. A further trial needs it."""
    search(3)
    trained.clear()
    made, _ = search(2, "infocse")
    pretraining, *of_trials = trained
    assert pretraining.startswith("condenser-")
    assert of_trials == [run.run for run in runs_of(made)]

    file = tuning.search_path("infocse", "smoke")
    content = file.read_bytes()
    shutil.rmtree(catalog.RUNS)
    trained.clear()
    search(2, "infocse")
    assert not trained
    assert file.read_bytes() == content

    search(4, "infocse")
    assert trained[0].startswith("condenser-")


def test_the_host_is_searched_first_and_once(trained):
    """A method with nothing to try but its term gets as many trials as that has values."""
    result, lines = search(6, "micse")
    host = tuning.read_search(tuning.search_path("simcse", "smoke"))
    assert len(host.trials) >= 6
    assert len(result.trials) >= 4
    assert lines[0].startswith("simcse: trial 1 of 6")
    for key, value in host.chosen.items():
        assert result.spec.settings[key] == value

    trained.clear()
    search(6, "rankcse")
    assert not [run for run in trained if run.startswith("simcse-")]


def test_a_damaged_file_is_refused_before_any_search(trained):
    path = tuning.search_path("simcse", "smoke")
    write_json(path, {"trials": []})
    with pytest.raises(BadInput, match=str(path)):
        trials_of_searches.tune(["ct", "simcse"], "smoke", 2, print)
    assert not trained


def test_trials_of_an_older_method_are_made_again(trained):
    old, _ = search(3)
    spec = old.spec.model_copy(update={"method_version": 0})
    outdated = [trial(spec, made.settings, 0.5) for made in old.trials]
    write_trials("simcse", spec, outdated, old.planned, "smoke")

    repeated, _ = search(2)

    assert repeated.trials[:2] == old.trials[:2]


def test_rows_train_with_what_their_search_chose(project):
    """Rows on another encoder do not, nor does a scale that does not ask for it."""
    write_search("simcse", FAST)
    write_search("ct", {"learning_rate": 1e-4})
    write_search("ct+ami", {"ami.weight": 0.025})
    write_search("informin_cl", {"reconstruction": 4.0})

    moco = first_spec("micse", "table3", "MoCo+SimCSE")
    assert moco.params["learning_rate"] == 1e-4
    assert moco.params["temperature"] == 0.1
    ct = first_spec("micse", "table2", "CT (Carlsson et al., 2021)")
    assert ct.params["learning_rate"] == 1e-4
    with_ami = first_spec("micse", "table2", "AMI+CT")
    assert with_ami.params["learning_rate"] == 1e-4
    assert with_ami.components["ami"].params["weight"] == 0.025

    simcse = first_spec("methods", "methods", "SimCSE (unsupervised)")
    # The trial differs from the row in its seed and subset alone.
    assert simcse.cell_id == tuning.plan_trial("simcse", FAST, SCALE).cell_id

    other_encoder = first_spec("informin_cl", "table2", "InforMin-CL-RoBERTa_base")
    assert other_encoder.params["temperature"] == 0.05
    write_scale()  # which does not ask
    simcse = first_spec("methods", "methods", "SimCSE (unsupervised)")
    assert simcse.params["temperature"] == 0.05


def test_shared_settings_are_those_of_the_host_and_a_method_chooses_its_own(project):
    """So a method, or a component on a host, differs from SimCSE only in its own settings. Here
    that is a term that may be 0."""
    shared = FAST | {"pooler": "avg"}
    write_search("simcse", shared)
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse+ami", {"ami.weight": 0.025})

    for name in ("simcse+ami", "micse", "pcl"):
        settings = tuning.plan_trial(name, {}, SCALE).settings
        assert {key: settings[key] for key in shared} == shared
    mirror_bert = tuning.plan_trial("mirror_bert", {}, SCALE).settings
    # Mirror-BERT keeps its own pooler, which is the same.
    assert {key: mirror_bert[key] for key in shared} == shared

    micse = first_spec("micse", "table3", "miCSE").settings
    expected = shared | {"ami.weight": 0.0}
    assert {key: micse[key] for key in expected} == expected
    ct = first_spec("methods", "methods", "Contrastive Tension")
    assert ct.params["learning_rate"] == 1e-5  # it keeps that, too


def let_the_host_choose_otherwise():
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse", {"learning_rate": 1e-5})


def fail_all():
    (planned,) = tuning.plan_trials("simcse", SCALE, 1)
    spec = planned.specs[0]
    write_trials("simcse", spec, [trial(spec, planned.settings, None)], 1)


def leave_one_trial_out():
    write_search("simcse", FAST, planned=3, made=2)


def choose_another_value():
    write_search("simcse", FAST | {"temperature": 9.0})


def plan_more_for_another_method():
    write_search("ct", {"learning_rate": 1e-4}, planned=3)


def delete_all():
    shutil.rmtree("results")


def use_bf16():
    write_scale(tuned=True, precision="bf16")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (use_bf16, "simcse.json: made under other settings (precision)"),
        (
            let_the_host_choose_otherwise,
            "micse.json: made under other settings (learning_rate, temperature)",
        ),
        (leave_one_trial_out, "simcse.json: 2 of 3 trials are made"),
        (choose_another_value, "simcse.json: temperature 9.0 is no value"),
        (fail_all, "simcse.json: every trial failed"),
        (plan_more_for_another_method, "(ct 3, simcse 2)"),
        (delete_all, "config/tuned.yaml: tuned: no search in results/tuned/tuning/"),
    ],
)
def test_a_search_that_does_not_fit_is_refused(damage, message, project):
    """The message has the file, and the command that mends it."""
    write_search("simcse", FAST)
    damage()
    caches.clear()

    with pytest.raises(BadInput) as error:
        targets.runs(SCALE)

    assert message in str(error.value)
    assert "csebench tune" in str(error.value)


def test_an_edited_search_and_that_of_another_name_are_refused(project):
    write_search("simcse", FAST)
    edited = tuning.search_path("simcse", SCALE)
    copied = tuning.search_path("ct", SCALE)
    shutil.copy(edited, copied)
    edited.write_text(edited.read_text().replace("0.65", "0.75"))

    with pytest.raises(BadInput, match=f"{edited}: edited since it was written"):
        tuning.read_search(edited)
    with pytest.raises(BadInput, match=f"{copied}: name: is 'simcse'"):
        tuning.read_search(copied)


def test_the_page_of_methods_has_what_a_search_gained(project):
    assert tuning_parts(SCALE) == []
    write_search("simcse", FAST, planned=3, made=2)

    text = PageContent("", "", tuning_parts(SCALE)).write("markdown")

    assert "| SimCSE (unsupervised) | 2 of 3 | 60.00 |" in text
    assert "| 65.00 | +5.00 |" in text
