"""Tuning on STS-B dev: which trials there are, what a search keeps, what a scale takes from it, and the page."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import yaml
from made_up import copy_project

from csebench import cli, run
from csebench.base import caches
from csebench.base.errors import BadInput, Stopped, Untrainable
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, registry, targets, tuning
from csebench.plan.declarations import without_text
from csebench.plan.spec import Spec
from csebench.report.pages import methods
from csebench.report.pages.page import Page
from csebench.score.drawing import method_colour

SCALE = "tuned"
FAST = {"learning_rate": 1e-4, "temperature": 0.1}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's papers and scales, and a scale that takes what searches chose; with the current folder for runs
    and results."""
    copy_project(tmp_path, monkeypatch, "config", "papers")
    monkeypatch.chdir(tmp_path)
    write_scale(tuned=True)
    yield tmp_path
    caches.clear()


def write_scale(**changes):
    """config/tuned.yaml: scale smoke with some settings changed."""
    content = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    content |= {"scale": SCALE, "data_root": str(ROOT / "data" / "smoke")} | changes
    (Path("config") / f"{SCALE}.yaml").write_text(yaml.safe_dump(content))
    caches.clear()


def write_search(name, chosen, planned=2, made=None):
    """A search of two or more trials, of which the second is the best and has the chosen settings."""
    (first, [spec, *_]), *others = tuning.plan_trials(name, SCALE, 6)
    chosen = {**first, **chosen}
    tried = [first, chosen, *(settings for settings, _ in others if settings != chosen)][: made or planned]
    trials = [trial(spec, settings, dev) for settings, dev in zip(tried, [0.60, 0.65, 0.50, 0.50], strict=False)]
    chosen = tuning.chosen_settings(trials)
    tuning.write_search(tuning.Search(name=name, planned=planned, spec=spec, trials=trials, chosen=chosen), SCALE)
    caches.clear()


def with_settings(spec, settings):
    content = spec.model_dump()
    for key, value in settings.items():
        component, _, param = key.rpartition(".")
        (content["components"][component] if component else content)["params"][param] = value
    return Spec(**content)


def trial(spec, settings, *scores):
    """A trial with a run for each score."""
    specs = [with_settings(spec, settings).with_seed(spec.seed + seed) for seed in range(len(scores))]
    runs = [tuning.TrialRun(run=s.run_id, seed=s.seed, dev=dev) for s, dev in zip(specs, scores, strict=True)]
    return tuning.Trial(settings=settings, runs=runs)


def specs(paper, table, label, scale=SCALE):
    """The runs of a row's first cell."""
    return grids.plan_grid(paper, table, scale)[grids.find_grid(paper, table).row(label)][0].specs


# ---------------------------------------------------------------- trials


@pytest.mark.parametrize("name", tuning.tunable())
def test_trials_differ_in_declared_values_alone_and_no_table_has_them(name):
    """At a scale with a study: all of the grid; the first is the method without its search; fewer are the first of
    these. Each has two seeds, and each seed a subset."""
    trials, space, used = tuning.plan_trials(name, "mini"), tuning.search_space(name), targets.runs("mini")
    (first, [untuned, _]), *others = trials
    runs = [spec for _, specs in trials for spec in specs]
    assert first == {key: untuned.settings[key] for key in space}
    assert len(trials) >= math.prod(map(len, space.values())) and trials[:3] == tuning.plan_trials(name, "mini", 3)
    assert len({spec.run_id for spec in runs}) == len(runs) == 2 * len(trials)
    for settings, (spec, _) in others:
        assert all(settings[key] in values for key, values in space.items())
        assert {*tuning.differences(spec, untuned)} <= {*space}
    assert all(spec.corpus.subset_seed == spec.seed for spec in runs)
    assert not {spec.seed for spec in runs} & {spec.seed for spec in used.values() if spec.corpus}


def test_no_seed_of_a_table_is_taken(project):
    write_scale(seeds=[47, 48], seeds_by_size={"1%": [49]}, seeds_by_table={"micse/table2": [50]})
    assert tuning.trial_seeds(catalog.scale(SCALE)) == [51, 52]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whitening", "--trials", "2"], "whitening has nothing to try. Methods that have: ct"),
        (["pcl", "--trials", "2"], "pcl has nothing to try but what it takes from simcse"),
        (["simce", "--trials", "2"], "Did you mean 'simcse'"),
        (["simcse+moca", "--trials", "2"], "Did you mean 'moco'"),
        (["micse+ami", "--trials", "2"], "write micse"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tune", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- a search


@pytest.fixture
def trained(project, monkeypatch):
    """Ids of the runs that were trained; a trial's score is the fifth digit of its id."""
    ids = []

    def train_and_score(spec, scale):
        ids.append(spec.run_id)
        if spec.method == "simcse" and spec.params["learning_rate"] == 1e-4:
            raise Untrainable(f"{spec.run_id}: the loss is not finite.")
        folder = catalog.RUNS / spec.run_id
        (folder / "model").mkdir(parents=True)
        (folder / "train.json").write_text(json.dumps({"best_dev": score(spec.run_id), "model_sha256": "0" * 64}))

    monkeypatch.setattr(run, "train_and_score", train_and_score)
    return ids


def score(run_id):
    return 0.6 + int(run_id[-5:], 16) / 16**6


def search(number, name="simcse"):
    lines = []
    run.tune([name], "smoke", number, lines.append)
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
    (first, [spec, _]), *_ = tuning.plan_trials("simcse", SCALE)
    near, best = first | {"temperature": 0.1}, first | {"temperature": 0.1, "pooler": "avg"}
    trials = [trial(spec, first, 0.59, 0.61), trial(spec, best, 0.63, 0.65)]
    assert tuning.seed_deviation(trials) == pytest.approx(0.01414, abs=1e-5)
    assert tuning.chosen_settings(trials) == best
    assert tuning.chosen_settings([*trials, trial(spec, near, 0.62, 0.64)]) == near
    assert tuning.chosen_settings([*trials, trial(spec, near, 0.60, 0.62)]) == best
    assert tuning.chosen_settings([trial(spec, first, 0.58, 0.68), trial(spec, best, 0.63, 0.65)]) == first


@pytest.mark.parametrize(
    ("value", "outward"), [(0.1, 0.2), (0.02, 0.008), (0.05, None)], ids=["largest", "smallest", "between"]
)
def test_a_choice_at_an_end_of_its_values_is_followed_outward(value, outward, project):
    (first, [spec, _]), *_ = tuning.plan_trials("simcse", SCALE)
    points = {0.02: 0.60, 0.05: 0.60, 0.1: 0.60, value: 0.70}
    trials = [trial(spec, first | {"temperature": t}, dev) for t, dev in points.items()]
    trials = [t.model_copy(update={"settings": {"temperature": t.settings["temperature"]}}) for t in trials]
    further = tuning.plan_outward("simcse", SCALE, trials)
    assert [settings["temperature"] for settings, _ in further] == ([] if outward is None else [outward])
    assert all({run.params["temperature"] for run in runs} == {outward} for _, runs in further)


def test_a_scale_takes_a_choice_that_was_followed_outward(project):
    (first, [spec, _]), *_ = tuning.plan_trials("simcse", SCALE)
    tried = [{"temperature": value} for value in (first["temperature"], 0.02, 0.1, 0.2)]
    trials = [trial(spec, first | s, dev) for s, dev in zip(tried, (0.60, 0.61, 0.70, 0.75), strict=True)]
    made = tuning.Search(name="simcse", planned=4, spec=spec, trials=trials, chosen=trials[-1].settings)
    tuning.write_search(made, SCALE)
    caches.clear()
    assert specs("methods", "methods", "SimCSE (unsupervised)")[0].params["temperature"] == 0.2


def test_a_finished_run_is_not_repeated(trained):
    """Nor after its model is deleted, as where a scale keeps scores alone."""
    first = search(3)[0]
    scored = {run.run for run in runs_of(first) if run.dev is not None}
    for run_id in scored:
        run.delete_model(catalog.RUNS / run_id)
    before, count = len(trained), len(first.trials)
    assert search(5)[0].trials[:count] == first.trials
    assert not {*trained[before:]} & scored
    assert len(search(2)[0].trials) > 2  # fewer leave the others in the file


@pytest.mark.parametrize("fault", [Stopped("stopped"), OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_fault_stops_a_search_and_a_repeat_makes_what_is_missing(fault, trained, monkeypatch):
    train = run.train_and_score

    def stopped(*args, **kwargs):
        if len(trained) == 2:
            raise fault
        train(*args, **kwargs)

    with monkeypatch.context() as patched, pytest.raises(type(fault)):
        patched.setattr(run, "train_and_score", stopped)
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
    assert len(host.trials) >= 6 and len(result.trials) >= 4 and lines[0].startswith("simcse: trial 1 of 6")
    assert all(result.spec.settings[key] == value for key, value in host.chosen.items())
    before = len(trained)
    search(6, "rankcse")
    assert not [run for run in trained[before:] if run.startswith("simcse-")]


def test_a_damaged_file_is_refused_before_any_search(trained):
    path = tuning.search_path("simcse", "smoke")
    write_json(path, {"trials": []})
    with pytest.raises(BadInput, match=str(path)):
        run.tune(["ct", "simcse"], "smoke", 2, print)
    assert not trained


def test_trials_of_an_older_method_are_made_again(trained):
    old = search(3)[0]
    spec = old.spec.model_copy(update={"method_version": 0})
    trials = [trial(spec, t.settings, 0.5) for t in old.trials]
    chosen = tuning.chosen_settings(trials)
    older = tuning.Search(name="simcse", planned=old.planned, spec=spec, trials=trials, chosen=chosen)
    tuning.write_search(older, "smoke")
    assert search(2)[0].trials[:2] == old.trials[:2]


# ---------------------------------------------------------------- what a scale takes


def test_rows_train_with_what_their_search_chose(project):
    write_search("simcse", FAST)
    write_search("ct", {"learning_rate": 1e-4})
    write_search("ct+ami", {"ami.weight": 0.025})
    moco = specs("micse", "table3", "MoCo+SimCSE")[0].params
    assert (moco["learning_rate"], moco["temperature"]) == (1e-4, 0.1)
    assert specs("micse", "table2", "CT (Carlsson et al., 2021)")[0].params["learning_rate"] == 1e-4
    with_ami = specs("micse", "table2", "AMI+CT")[0]
    assert (with_ami.params["learning_rate"], with_ami.components["ami"].params["weight"]) == (1e-4, 0.025)
    (run,) = {spec.cell_id for spec in specs("methods", "methods", "SimCSE (unsupervised)")}
    assert run == tuning.plan_trial("simcse", FAST, SCALE).cell_id  # which differs in seed and subset alone


def test_shared_settings_are_those_of_the_host_and_a_method_chooses_its_own(project):
    """So a method, and a component on a host, differ from SimCSE in what is theirs: here in a term that may be 0."""
    write_search("simcse", FAST | {"pooler": "avg"})
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse+ami", {"ami.weight": 0.025})
    shared = {**FAST, "pooler": "avg"}
    rows = {
        name: tuning.plan_trial(name, {}, SCALE).settings for name in ("simcse+ami", "micse", "pcl", "mirror_bert")
    }
    assert all(rows["simcse+ami"][key] == rows["micse"][key] == rows["pcl"][key] == shared[key] for key in shared)
    assert [rows["mirror_bert"][key] for key in shared] == [*FAST.values(), "avg"]  # it keeps its pooler
    miCSE = specs("micse", "table3", "miCSE")[0].settings
    assert {key: miCSE[key] for key in [*shared, "ami.weight"]} == {**shared, "ami.weight": 0.0}
    assert specs("methods", "methods", "Contrastive Tension")[0].params["learning_rate"] == 1e-5  # it keeps that, too


def test_a_search_that_covers_shared_settings_stays_what_it_is(project):
    """One that was made before these were searched on the host: its choices win, and no value is refused."""
    write_search("simcse", FAST)
    untuned = tuning.plan_trial("micse", {}, SCALE)
    tried = [{"ami.weight": 0.0025, "learning_rate": rate, "temperature": 0.05} for rate in (3e-5, 1e-5)]
    trials = [trial(untuned, settings, dev) for settings, dev in zip(tried, (0.6, 0.7), strict=True)]
    spec = with_settings(untuned, tried[0])
    made = tuning.Search(name="micse", planned=2, spec=spec, trials=trials, chosen=tried[1])
    tuning.write_search(made, SCALE)
    caches.clear()
    assert specs("micse", "table3", "miCSE")[0].params["learning_rate"] == 1e-5


def test_a_search_is_outdated_where_the_host_chooses_otherwise(project):
    write_search("simcse", FAST)
    write_search("micse", {"ami.weight": 0.0})
    write_search("simcse", {"learning_rate": 1e-5})
    with pytest.raises(BadInput, match=r"micse.json: made under other settings \(learning_rate, temperature\)"):
        targets.runs(SCALE)


def test_a_scale_that_does_not_ask_takes_nothing(project):
    write_scale()
    before = specs("methods", "methods", "SimCSE (unsupervised)")
    write_search("simcse", FAST)
    assert specs("methods", "methods", "SimCSE (unsupervised)") == before


def test_rows_on_another_encoder_are_not_tuned(project):
    encoder = {"name": "encoders/bert-mini-wiki", "revision": "0" * 64}
    smoke = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    write_scale(tuned=True, encoders={**smoke["encoders"], "roberta-base": encoder})
    write_search("simcse", FAST)
    write_search("informin_cl", {"reconstruction": 4.0})
    spec = specs("informin_cl", "table2", "InforMin-CL-RoBERTa_base")[0]
    assert spec.params["temperature"] == 0.05


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (lambda: write_scale(tuned=True, precision="bf16"), ["simcse.json: made under other settings (precision)"]),
        (lambda: write_search("simcse", FAST, planned=3, made=2), ["simcse.json: 2 of 3 trials are made"]),
        (lambda: write_search("simcse", FAST | {"temperature": 9.0}), ["simcse.json: temperature 9.0 is no value"]),
        (lambda: fail_all("simcse"), ["simcse.json: every trial failed"]),
        (lambda: write_search("ct", {"learning_rate": 1e-4}, planned=3), ["(ct 3, simcse 2)"]),
        (lambda: shutil.rmtree("results"), ["config/tuned.yaml: tuned: no search in results/tuned/tuning/"]),
    ],
)
def test_a_search_that_does_not_fit_is_refused(damage, messages, project):
    """With the file, and the command that makes it good."""
    write_search("simcse", FAST)
    damage()
    caches.clear()
    with pytest.raises(BadInput) as error:
        targets.runs(SCALE)
    for message in [*messages, "csebench tune"]:
        assert message in str(error.value)


def fail_all(name):
    search = tuning.read_search(tuning.search_path(name, SCALE))
    content = search.model_dump(exclude={"sha256"})
    for of_trial in content["trials"]:
        for made in of_trial["runs"]:
            made |= {"dev": None, "failure": "NaN"}
    failed = tuning.Search(**content | {"chosen": None}).trials
    tuning.write_search(search.model_copy(update={"trials": failed, "chosen": None}), SCALE)


EDITS = {  # of a search of three trials: a key that the message names
    "no digest": (lambda c: c.pop("sha256"), "sha256: Field required"),
    "another digest": (lambda c: c.update(sha256="0" * 64), "edited since it was written"),
    "a score above 1": (lambda c: run_of(c, 1).update(dev=7.0), "trials.1.runs.0.dev"),
    "another name": (lambda c: c.update(name="ct"), "name: is 'ct'"),
}


def run_of(content, number):
    return content["trials"][number]["runs"][0]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_search_is_refused(edit, project):
    """By file and key."""
    change, message = EDITS[edit]
    write_search("simcse", FAST, planned=4, made=3)
    path = tuning.search_path("simcse", SCALE)
    content = json.loads(path.read_text())
    change(content)
    write_json(path, content if "digest" in edit else with_digest(content))
    with pytest.raises(BadInput, match=rf"{path}: .*{re.escape(message)}"):
        tuning.read_search(path)


# ---------------------------------------------------------------- the page


def test_what_was_tuned_has_a_colour_and_a_title_of_its_own():
    searches = [tuning.read_search(path) for path in tuning.search_files("mini")]
    assert all(method_colour(search.name) for search in searches)
    titles = {search.name: methods.label(search) for search in searches}
    assert titles["ct+ami"] == "Contrastive Tension + Attention-level mutual information"
    assert len({*titles.values()}) == len(titles)


def test_the_page_of_methods_names_searches_that_do_not_fit(project):
    assert methods.tuning_parts(SCALE) == []
    write_search("simcse", FAST, planned=3, made=2)
    write_search("ct", {"learning_rate": 1e-4})
    write_scale(precision="bf16")
    text = Page("", "", methods.tuning_parts(SCALE)).write("markdown")
    assert "- ct: made under other settings (precision)" in text
    assert "Not the same number of trials for each" in text


def test_values_to_try_are_no_part_of_a_version():
    declared = registry.read_literal(ROOT / "methods" / "simcse.py", "DECLARATION")
    assert "search" in declared and "search" not in without_text(declared)
