"""Tuning on STS-B dev: which trials there are, what a search keeps, what a scale takes from it,
and the page."""

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
    """The project's papers and scales, and a scale that takes what searches chose, as the
    current folder."""
    copy_project(tmp_path, monkeypatch, "config", "papers")
    monkeypatch.chdir(tmp_path)
    write_scale(tuned=True)
    yield tmp_path
    caches.clear()


def write_scale(**changes):
    """config/tuned.yaml: scale smoke with a RoBERTa, and some settings changed."""
    content = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    content |= {
        "scale": SCALE,
        "data_root": str(ROOT / "data" / "smoke"),
        "encoders": content["encoders"] | ROBERTA,
    }
    (Path("config") / f"{SCALE}.yaml").write_text(yaml.safe_dump(content | changes))
    caches.clear()


def write_search(name, chosen, planned=2, made=None):
    """A search of two or more trials, of which the second is the best and has the chosen
    settings."""
    first, *others = tuning.plan_trials(name, SCALE, 6)
    spec, chosen = first.specs[0], {**first.settings, **chosen}
    further = [other.settings for other in others if other.settings != chosen]
    tried = [first.settings, chosen, *further][: made or planned]
    trials = [
        trial(spec, settings, dev)
        for settings, dev in zip(tried, [0.60, 0.65, 0.50, 0.50], strict=False)
    ]
    write_trials(name, spec, trials, planned)


def write_trials(name, spec, trials, planned, scale=SCALE):
    best = tuning.best_trial(trials)
    chosen = best and best.settings
    tuning.write_search(
        tuning.Search(name=name, planned=planned, spec=spec, trials=trials, chosen=chosen), scale
    )
    caches.clear()


def with_settings(spec, settings):
    content = spec.model_dump()
    for key, value in settings.items():
        component, _, param = key.rpartition(".")
        (content["components"][component] if component else content)["params"][param] = value
    return Spec(**content)


def trial(spec, settings, *scores):
    """A trial with a run for each score; None: it failed."""
    specs = [
        with_settings(spec, settings).with_seed(spec.seed + seed) for seed in range(len(scores))
    ]
    runs = [
        tuning.TrialRun(run=s.run_id, seed=s.seed, dev=dev)
        for s, dev in zip(specs, scores, strict=True)
    ]
    return tuning.Trial(settings=settings, runs=runs)


def first_spec(paper, table, label):
    """The first run of a row's first cell."""
    return grids.plan_grid(paper, table, SCALE)[grids.find_grid(paper, table).row(label)][0].specs[
        0
    ]


@pytest.mark.parametrize("name", tuning.tunable())
def test_trials_differ_in_declared_values_alone_and_no_table_has_them(name):
    """The first is the method without its search; fewer are the first of all. Each seed has a
    subset of its own."""
    trials, space, used = (
        tuning.plan_trials(name, "mini"),
        tuning.search_space(name),
        targets.runs("mini"),
    )
    first, *others = trials
    untuned, runs = first.specs[0], [spec for planned in trials for spec in planned.specs]
    assert first.settings == {key: untuned.settings[key] for key in space}
    assert len(trials) >= math.prod(map(len, space.values())) and trials[:3] == tuning.plan_trials(
        name, "mini", 3
    )
    assert len({spec.run_id for spec in runs}) == len(runs) == 2 * len(trials)
    for planned in others:
        assert all(planned.settings[key] in values for key, values in space.items())
        assert {*tuning.spec_differences(planned.specs[0], untuned)} <= {*space}
    assert all(spec.corpus.subset_seed == spec.seed for spec in runs)
    assert not {spec.seed for spec in runs} & {spec.seed for spec in used.values() if spec.corpus}


def test_no_seed_of_a_table_is_taken(project):
    write_scale(seeds=[47, 48], seeds_by_size={"1%": [49]}, seeds_by_table={"micse/table2": [50]})
    assert tuning.trial_seeds(catalog.scale(SCALE)) == [51, 52]


REFUSED = {
    "pcl": "pcl has nothing to try but what it takes from simcse. Methods that have: ct",
    "simcse+moca": "Did you mean 'moco'",
    "micse+ami": "write micse",
}


@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_a_search_that_cannot_be_made_is_refused(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tune", name, "--trials", "2"]) == 2
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.fixture
def trained(project, monkeypatch):
    """Ids of the runs that were trained; a trial's score is the fifth digit of its id."""
    ids = []

    def train_and_score(spec, scale, progress):
        ids.append(spec.run_id)
        if spec.method == "simcse" and spec.params["learning_rate"] == 1e-4:
            raise Untrainable(f"{spec.run_id}: the loss is not finite.")
        folder = catalog.RUNS / spec.run_id
        (folder / "model").mkdir(parents=True)
        (folder / "train.json").write_text(
            json.dumps({"best_dev": score(spec.run_id), "model_sha256": "0" * 64})
        )

    monkeypatch.setattr(trials_of_searches, "train_and_score", train_and_score)
    return ids


def score(run_id):
    return 0.6 + int(run_id[-5:], 16) / 16**6


def search(number, name="simcse"):
    lines = []
    trials_of_searches.tune([name], "smoke", number, lines.append)
    return tuning.read_search(tuning.search_path(name, "smoke")), lines


def runs_of(search):
    return [run for trial in search.trials for run in trial.runs]


def test_a_search_takes_the_best_trial(trained):
    """Of those that did not fail: trials at one learning rate end by their own loss."""
    result, lines = search(6)
    scores = {run.run: run.dev for run in runs_of(result) if run.dev is not None}
    failed = [trial for trial in result.trials if trial.dev is None]
    assert scores == {run: score(run) for run in scores} and len(lines) == len(result.trials) + 1
    assert result.chosen == tuning.best_trial(result.trials).settings
    assert failed and all("not finite" in trial.failure for trial in failed)


def test_a_setting_changes_only_for_more_than_the_deviation_between_seeds(project):
    """Of the trials that near the best, the one that changes the fewest settings of the first."""
    planned = tuning.plan_trials("simcse", SCALE)[0]
    first, spec = planned.settings, planned.specs[0]
    near, best = first | {"temperature": 0.1}, first | {"temperature": 0.1, "pooler": "avg"}
    trials = [trial(spec, first, 0.59, 0.61), trial(spec, best, 0.63, 0.65)]
    assert tuning.seed_deviation(trials) == pytest.approx(0.01414, abs=1e-5)
    assert tuning.best_trial(trials).settings == best
    assert tuning.best_trial([*trials, trial(spec, near, 0.62, 0.64)]).settings == near
    assert tuning.best_trial([*trials, trial(spec, near, 0.60, 0.62)]).settings == best
    assert (
        tuning.best_trial([trial(spec, first, 0.58, 0.68), trial(spec, best, 0.63, 0.65)]).settings
        == first
    )


@pytest.mark.parametrize(("value", "outward"), [(0.1, 0.2), (0.02, 0.008), (0.05, None)])
def test_a_choice_at_an_end_of_its_values_is_followed_outward(value, outward, project):
    """And a scale takes what such a trial chose."""
    spec = tuning.plan_trial("simcse", {}, SCALE)
    points = {0.05: 0.60, 0.02: 0.60, 0.1: 0.60, value: 0.70}  # the first is SimCSE's
    trials = [trial(spec, {"temperature": t}, dev) for t, dev in points.items()]
    further = tuning.plan_outward("simcse", SCALE, trials)
    assert [planned.settings["temperature"] for planned in further] == (
        [] if outward is None else [outward]
    )
    for planned in further:
        assert {run.params["temperature"] for run in planned.specs} == {outward}
    trials += [trial(spec, planned.settings, 0.75) for planned in further]
    write_trials("simcse", spec, trials, 3)
    assert first_spec("methods", "methods", "SimCSE (unsupervised)").params["temperature"] == (
        outward or value
    )


def test_trials_outward_leave_the_number_that_was_planned(trained, monkeypatch):
    """Else a search with one and a search without one would be of different numbers of trials."""
    outward = [tuning.plan_trials("simcse", "smoke")[5:6]]
    monkeypatch.setattr(tuning, "plan_outward", lambda *_: outward.pop() if outward else [])
    result, lines = search(3)
    assert (len(result.trials), result.planned) == (4, 3) and "trial 4 of 4" in lines[3]


def test_a_finished_run_is_not_repeated(trained):
    """Nor after its model is deleted, as where a scale keeps scores alone."""
    first = search(3)[0]
    scored = {run.run for run in runs_of(first) if run.dev is not None}
    for run_id in scored:
        trials_of_searches.delete_model(catalog.RUNS / run_id)
    before, count = len(trained), len(first.trials)
    assert search(5)[0].trials[:count] == first.trials
    assert not {*trained[before:]} & scored
    assert len(search(2)[0].trials) > 2  # fewer leave the others in the file


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
    assert (len(result.trials), result.planned) == (1, 4)
    repeated = runs_of(search(4)[0])
    assert len({*trained}) == len(trained) == len(repeated)


def test_a_fresh_clone_repeats_no_trial(trained):
    """Nor the pre-training that trials start from, which comes first; a further trial needs it."""
    search(3)
    before = len(trained)
    made = search(2, "infocse")[0]
    assert trained[before:] == [trained[before], *(run.run for run in runs_of(made))]
    assert trained[before].startswith("condenser-")
    file, before = tuning.search_path("infocse", "smoke"), len(trained)
    content = file.read_bytes()
    shutil.rmtree(catalog.RUNS)
    search(2, "infocse")
    assert len(trained) == before and file.read_bytes() == content
    search(4, "infocse")
    assert trained[before].startswith("condenser-")


def test_the_host_is_searched_first_and_once(trained):
    """A method with nothing to try but its term gets as many trials as that has values."""
    result, lines = search(6, "micse")
    host = tuning.read_search(tuning.search_path("simcse", "smoke"))
    assert (
        len(host.trials) >= 6
        and len(result.trials) >= 4
        and lines[0].startswith("simcse: trial 1 of 6")
    )
    assert all(result.spec.settings[key] == value for key, value in host.chosen.items())
    before = len(trained)
    search(6, "rankcse")
    assert not [run for run in trained[before:] if run.startswith("simcse-")]


def test_a_damaged_file_is_refused_before_any_search(trained):
    path = tuning.search_path("simcse", "smoke")
    write_json(path, {"trials": []})
    with pytest.raises(BadInput, match=str(path)):
        trials_of_searches.tune(["ct", "simcse"], "smoke", 2, print)
    assert not trained


def test_trials_of_an_older_method_are_made_again(trained):
    old = search(3)[0]
    spec = old.spec.model_copy(update={"method_version": 0})
    write_trials(
        "simcse", spec, [trial(spec, t.settings, 0.5) for t in old.trials], old.planned, "smoke"
    )
    assert search(2)[0].trials[:2] == old.trials[:2]


def test_rows_train_with_what_their_search_chose(project):
    """Not those on another encoder, nor those of a scale that does not ask."""
    write_search("simcse", FAST)
    write_search("ct", {"learning_rate": 1e-4})
    write_search("ct+ami", {"ami.weight": 0.025})
    write_search("informin_cl", {"reconstruction": 4.0})
    moco = first_spec("micse", "table3", "MoCo+SimCSE").params
    assert (moco["learning_rate"], moco["temperature"]) == (1e-4, 0.1)
    assert (
        first_spec("micse", "table2", "CT (Carlsson et al., 2021)").params["learning_rate"] == 1e-4
    )
    with_ami = first_spec("micse", "table2", "AMI+CT")
    assert (with_ami.params["learning_rate"], with_ami.components["ami"].params["weight"]) == (
        1e-4,
        0.025,
    )
    simcse = first_spec("methods", "methods", "SimCSE (unsupervised)")
    # which differs in seed and subset alone
    assert simcse.cell_id == tuning.plan_trial("simcse", FAST, SCALE).cell_id
    assert (
        first_spec("informin_cl", "table2", "InforMin-CL-RoBERTa_base").params["temperature"]
        == 0.05
    )
    write_scale()
    assert first_spec("methods", "methods", "SimCSE (unsupervised)").params["temperature"] == 0.05


def test_shared_settings_are_those_of_the_host_and_a_method_chooses_its_own(project):
    """So a method, and a component on a host, differ from SimCSE in what is theirs: here in a
    term that may be 0."""
    write_search("simcse", FAST | {"pooler": "avg"})
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse+ami", {"ami.weight": 0.025})
    shared, names = {**FAST, "pooler": "avg"}, ("simcse+ami", "micse", "pcl", "mirror_bert")
    rows = {name: tuning.plan_trial(name, {}, SCALE).settings for name in names}
    assert all(
        rows["simcse+ami"][key] == rows["micse"][key] == rows["pcl"][key] == shared[key]
        for key in shared
    )
    # it keeps its pooler
    assert [rows["mirror_bert"][key] for key in shared] == [*FAST.values(), "avg"]
    micse = first_spec("micse", "table3", "miCSE").settings
    assert {key: micse[key] for key in [*shared, "ami.weight"]} == {**shared, "ami.weight": 0.0}
    ct = first_spec("methods", "methods", "Contrastive Tension")
    assert ct.params["learning_rate"] == 1e-5  # it keeps that, too


def let_the_host_choose_otherwise():
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse", {"learning_rate": 1e-5})


def fail_all():
    (planned,) = tuning.plan_trials("simcse", SCALE, 1)
    spec = planned.specs[0]
    write_trials("simcse", spec, [trial(spec, planned.settings, None)], 1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda: write_scale(tuned=True, precision="bf16"),
            "simcse.json: made under other settings (precision)",
        ),
        (
            let_the_host_choose_otherwise,
            "micse.json: made under other settings (learning_rate, temperature)",
        ),
        (
            lambda: write_search("simcse", FAST, planned=3, made=2),
            "simcse.json: 2 of 3 trials are made",
        ),
        (
            lambda: write_search("simcse", FAST | {"temperature": 9.0}),
            "simcse.json: temperature 9.0 is no value",
        ),
        (fail_all, "simcse.json: every trial failed"),
        (lambda: write_search("ct", {"learning_rate": 1e-4}, planned=3), "(ct 3, simcse 2)"),
        (
            lambda: shutil.rmtree("results"),
            "config/tuned.yaml: tuned: no search in results/tuned/tuning/",
        ),
    ],
)
def test_a_search_that_does_not_fit_is_refused(damage, message, project):
    """With the file, and the command that makes it good."""
    write_search("simcse", FAST)
    damage()
    caches.clear()
    with pytest.raises(BadInput) as error:
        targets.runs(SCALE)
    assert message in str(error.value) and "csebench tune" in str(error.value)


def test_an_edited_search_and_that_of_another_name_are_refused(project):
    write_search("simcse", FAST)
    path, other = (tuning.search_path(name, SCALE) for name in ("simcse", "ct"))
    shutil.copy(path, other)
    path.write_text(path.read_text().replace("0.65", "0.75"))
    for file, message in ((path, "edited since it was written"), (other, "name: is 'simcse'")):
        with pytest.raises(BadInput, match=f"{file}: {message}"):
            tuning.read_search(file)


def test_the_page_of_methods_has_what_a_search_gained(project):
    assert tuning_parts(SCALE) == []
    write_search("simcse", FAST, planned=3, made=2)
    text = PageContent("", "", tuning_parts(SCALE)).write("markdown")
    assert "| SimCSE (unsupervised) | 2 of 3 | 60.00 |" in text and "| 65.00 | +5.00 |" in text
