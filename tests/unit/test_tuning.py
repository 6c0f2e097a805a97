"""Tuning on STS-B dev: which trials there are, what a search keeps, what a scale takes from it, and the page."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from csebench import cli, run
from csebench.base import caches
from csebench.base.errors import BadInput, RunFailed, Stopped, Untrainable
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, recipe, registry, targets, tuning
from csebench.plan.declarations import without_text
from csebench.plan.papers import Recipe
from csebench.report import answers, html, markdown, tuning_page
from csebench.score.drawing import method_colour

SCALE = "tuned"
FAST = {"learning_rate": 1e-4, "temperature": 0.1}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's papers and scales, and a scale that takes what searches chose; with the current folder for runs
    and results."""
    for folder in ("config", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", tmp_path / "data")
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    write_scale(tuned=True)
    yield tmp_path
    caches.clear()


def write_scale(**changes):
    """config/tuned.yaml: scale smoke with some settings changed."""
    content = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    content |= {"scale": SCALE, "data_root": str(ROOT / "data" / "smoke")} | changes
    (catalog.ROOT / "config" / f"{SCALE}.yaml").write_text(yaml.safe_dump(content))
    caches.clear()


def write_search(name, chosen, planned=2, made=None):
    """A search of two or more trials, of which the second is the best and has the chosen settings."""
    (first, spec), *others = tuning.plan_trials(name, SCALE, 6)
    tried = [first, chosen, *(settings for settings, _ in others if settings != chosen)][: made or planned]
    runs = [spec.with_settings(settings).run_id for settings in tried]
    scored = zip(tried, runs, [0.60, 0.65, 0.50, 0.50], strict=False)
    trials = [tuning.Trial(settings=settings, run=run, dev=dev) for settings, run, dev in scored]
    chosen = tuning.chosen_settings(trials)
    tuning.write_search(tuning.Search(name=name, planned=planned, spec=spec, trials=trials, chosen=chosen), SCALE)
    caches.clear()


def specs(paper, table, label, scale=SCALE):
    """The runs of a row's first cell."""
    return grids.plan_grid(paper, table, scale)[grids.find_grid(paper, table).row(label)][0].specs


# ---------------------------------------------------------------- trials


@pytest.mark.parametrize("name", tuning.tunable())
def test_trials_differ_in_declared_values_alone_and_no_table_has_them(name):
    """At a scale with a study: six trials, the first as the scale trains the method."""
    (first, untuned), *others = tuning.plan_trials(name, "mini", 6)
    space = tuning.search_space(name)
    assert first == {key: untuned.settings[key] for key in space}
    assert len({spec.run_id for _, spec in [(first, untuned), *others]}) == 6
    for settings, spec in others:
        assert all(settings[key] in values for key, values in space.items())
        assert {*tuning.differences(spec, untuned)} <= {*space}
    assert untuned.run_id not in targets.runs("mini")
    assert untuned.corpus.subset_seed == untuned.seed
    assert untuned.seed not in {spec.corpus.subset_seed for spec in targets.runs("mini").values() if spec.corpus}


def test_more_trials_add_to_the_fewer():
    three, five = (tuning.plan_trials("micse", "smoke", number) for number in (3, 5))
    assert five[:3] == three


def test_no_seed_of_a_table_is_taken(project):
    write_scale(seeds=[47, 48], seeds_by_size={"1%": [49]}, seeds_by_table={"micse/table2": [50]})
    assert tuning.trial_seed(catalog.scale(SCALE)) == 51


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whitening", "--trials", "2"], "whitening has no search space.*Methods that have one: ct"),
        (["ct", "--trials", "8"], "--trials 7 at most"),
        (["simce", "--trials", "2"], "Did you mean 'simcse'"),
        (["simcse+moca", "--trials", "2"], "Did you mean 'moco'"),
        (["micse+ami", "--trials", "2"], "write micse"),
        (["infocse+moco", "simcse", "--trials", "100"], "different trials"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tune", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_show_lists_what_is_tried(capsys):
    cli.main(["show", "micse"])
    assert "csebench tune tries learning_rate: 1e-05, 3e-05, 0.0001; temperature" in capsys.readouterr().out


# ---------------------------------------------------------------- a search


@pytest.fixture
def trained(project, monkeypatch):
    """Ids of the runs that were trained; a trial's score is the fifth digit of its id."""
    ids = []

    def train_and_score(job):
        spec = job.spec
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


def test_a_search_takes_the_best_trial(trained):
    result, lines = search(6)
    scores = {trial.run: trial.dev for trial in result.trials if trial.dev is not None}
    assert scores == {run: score(run) for run in scores}
    assert result.chosen == next(t.settings for t in result.trials if t.dev == max(scores.values()))
    assert len(lines) == 7


def test_a_finished_trial_is_not_repeated(trained, monkeypatch):
    """Nor after its model is deleted, as where a scale keeps scores alone."""
    first = search(3)[0]
    for trial in first.trials:
        if trial.dev is not None:
            run.delete_model(catalog.RUNS / trial.run)
    before = len(trained)
    assert search(4)[0].trials[:3] == first.trials
    again = [run for run in trained[before:] if run in {t.run for t in first.trials if t.dev is not None}]
    assert not again


def test_a_failed_run_is_a_trial_without_a_score(trained):
    result, _ = search(6)
    failed = [trial for trial in result.trials if trial.dev is None]
    assert failed and all("not finite" in trial.failure for trial in failed)
    assert result.chosen["learning_rate"] != 1e-4


FAULTS = [
    Stopped("stopped"),
    RunFailed("encoder: the hub cannot be reached (503)."),
    OSError(28, "No space left on device"),
    RuntimeError("CUDA out of memory"),
    MemoryError(),
    BadInput("the corpus has changed"),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_stops_a_search_and_a_repeat_makes_what_is_missing(fault, trained, monkeypatch):
    with monkeypatch.context() as patched:
        train = run.train_and_score

        def stopped(*args, **kwargs):
            if len(trained) == 2:
                raise fault
            train(*args, **kwargs)

        patched.setattr(run, "train_and_score", stopped)
        with pytest.raises(type(fault)):
            search(4)
    result = tuning.read_search(tuning.search_path("simcse", "smoke"))
    assert (len(result.trials), result.planned) == (2, 4)
    assert len(search(4)[0].trials) == 4 and len(trained) == 4


@pytest.mark.parametrize("name", ["simcse", "infocse"])
def test_a_fresh_clone_repeats_no_trial(name, trained):
    """Nor the pre-training that trials start from; a further trial needs it."""
    search(3, name)
    file, before = tuning.search_path(name, "smoke"), len(trained)
    content = file.read_bytes()
    shutil.rmtree(catalog.RUNS)
    search(3, name)
    assert len(trained) == before and file.read_bytes() == content
    search(4, name)
    assert len(trained) == before + (2 if name == "infocse" else 1)


def test_a_damaged_file_is_refused_before_any_search(trained):
    path = tuning.search_path("simcse", "smoke")
    write_json(path, {"trials": []})
    with pytest.raises(BadInput, match=str(path)):
        run.tune(["ct", "simcse"], "smoke", 2, print)
    assert not trained


def test_fewer_trials_leave_the_others_in_the_file(trained):
    assert search(2)[0].trials == search(4)[0].trials[:2]
    assert len(search(3)[0].trials) == 4


def test_trials_of_an_older_method_are_made_again(trained):
    old = search(3)[0]
    spec = old.spec.model_copy(update={"method_version": 0})
    trials = [t.model_copy(update={"run": spec.with_settings(t.settings).run_id}) for t in old.trials]
    tuning.write_search(old.model_copy(update={"spec": spec, "trials": trials}), "smoke")
    assert search(2)[0].trials == old.trials[:2]


def test_a_pre_training_comes_before_the_trials(trained):
    search(2, "infocse")
    assert trained[0].startswith("condenser-")


# ---------------------------------------------------------------- what a scale takes


def test_rows_train_with_what_their_search_chose(project):
    write_search("simcse", FAST)
    write_search("ct", {"learning_rate": 1e-4})
    write_search("ct+ami", {"learning_rate": 1e-6, "ami.weight": 0.025})
    moco = specs("micse", "table3", "MoCo+SimCSE")[0].params
    assert (moco["learning_rate"], moco["temperature"]) == (1e-4, 0.1)
    assert specs("micse", "table2", "CT (Carlsson et al., 2021)")[0].params["learning_rate"] == 1e-4
    with_ami = specs("micse", "table2", "AMI+CT")[0]
    assert (with_ami.params["learning_rate"], with_ami.components["ami"].params["weight"]) == (1e-6, 0.025)


def test_the_chosen_trial_and_the_row_differ_in_seed_and_subset_alone(project):
    write_search("simcse", FAST)
    trial = tuning.plan_trial("simcse", FAST, SCALE)
    (run,) = {spec.cell_id for spec in specs("methods", "methods", "SimCSE (unsupervised)")}
    assert run == trial.cell_id


def test_a_scale_that_does_not_ask_takes_nothing(project):
    """Nor does one that asks for other methods."""
    write_scale()
    before = specs("methods", "methods", "SimCSE (unsupervised)")
    write_search("simcse", FAST)
    assert specs("methods", "methods", "SimCSE (unsupervised)") == before
    write_scale(tuned=["ct"])
    write_search("ct", {"learning_rate": 1e-4})
    assert specs("methods", "methods", "SimCSE (unsupervised)") == before


@pytest.mark.parametrize(
    ("how", "key", "value"),
    [
        ({"params": {"learning_rate": 5e-5}}, "learning_rate", 5e-5),
        ({"variant": "code"}, "learning_rate", 1e-5),
        ({"sweep": {"temperature": 0.5}}, "temperature", 0.5),
        ({"components": {"ami": {"weight": 0.125}}}, "ami.weight", 0.125),
        ({"variant": "code"}, "ami.weight", 1e-4),
        ({"variant": "code"}, "temperature", 0.1),
        ({}, "ami.weight", 0.5),
    ],
)
def test_what_a_row_sets_wins_over_what_a_search_chose(how, key, value):
    scale = catalog.scale("smoke")
    given = replace(recipe.conditions(scale), tuned={"micse": {**FAST, "ami.weight": 0.5}})
    spec = recipe.make_spec(Recipe(method="micse", **how), scale.encoders["bert-base"], 24, 1, given, "tests")
    assert spec.settings[key] == value


def test_rows_on_another_encoder_are_not_tuned(project):
    encoder = {"name": "encoders/bert-mini-wiki", "revision": "0" * 64}
    smoke = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    write_scale(tuned=True, encoders={**smoke["encoders"], "roberta-base": encoder})
    write_search("informin_cl", {**FAST, "reconstruction": 4.0})
    spec = specs("informin_cl", "table2", "InforMin-CL-RoBERTa_base")[0]
    assert spec.params["temperature"] == 0.05


def edit_search(**changes):
    """An edit with a digest that fits."""
    path = tuning.search_path("simcse", SCALE)
    write_json(path, with_digest(json.loads(path.read_text()) | changes))
    caches.clear()


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (
            lambda: write_scale(tuned=True, override={"steps": 7, "batch_size": 8}),
            ["made under other settings (", "steps"],
        ),
        (lambda: write_scale(tuned=True, precision="bf16"), ["simcse.json: made under other settings (precision)"]),
        (lambda: write_search("simcse", FAST, planned=3, made=2), ["simcse.json: 2 of 3 trials are made"]),
        (
            lambda: write_search("ct", {"learning_rate": 1e-4}, planned=3),
            ["numbers of trials (ct 3, simcse 2)"],
        ),
        (lambda: write_scale(tuned=["simcse", "ct"]), ["config/tuned.yaml: tuned: ", "ct.json: no such file"]),
        (lambda: shutil.rmtree("results"), ["config/tuned.yaml: tuned: no search in results/tuned/tuning/"]),
        (lambda: edit_search(chosen={"learning_rate": 1.0}), ["simcse.json", "not what the best trial has"]),
        (lambda: edit_search(name="ct"), ["simcse.json: name: is 'ct'"]),
        (lambda: edit_search(trials=[]), ["simcse.json: trials"]),
    ],
)
def test_a_search_that_does_not_fit_is_refused(damage, messages, project):
    """With the file and, where a search makes it good, the command."""
    write_search("simcse", FAST)
    damage()
    caches.clear()
    with pytest.raises(BadInput) as error:
        targets.runs(SCALE)
    for message in messages:
        assert message in str(error.value)
    assert "csebench tune" in str(error.value) or "delete it and search again" in str(error.value)


EDITS = {  # of a search of three trials: a key that the message names
    "no digest": (lambda c: c.pop("sha256"), "sha256: Field required"),
    "another digest": (lambda c: c.update(sha256="0" * 64), "edited since it was written"),
    "a score above 1": (lambda c: c["trials"][1].update(dev=7.0), "trials.1.dev"),
    "a score below -1": (lambda c: c["trials"][1].update(dev=-1.5), "trials.1.dev"),
    "a text for a score": (lambda c: c["trials"][2].update(dev="NaN"), "trials.2.dev"),
    "neither score nor reason": (lambda c: c["trials"][2].pop("dev"), "trials.2"),
    "score and reason": (lambda c: c["trials"][2].update(failure="503"), "trials.2"),
    "another run": (lambda c: c["trials"][1].update(run="simcse-0123456789"), "trials.1.run"),
    "swapped runs": (lambda c: swap(c["trials"], "run"), "trials.1.run"),
    "swapped settings": (lambda c: swap(c["trials"], "settings"), "trials.1.run"),
    "another setting": (lambda c: c["trials"][2]["settings"].update(temperature=0.5), "trials.2.run"),
    "an unknown setting": (lambda c: [t["settings"].update(x=1) for t in c["trials"]], "`spec` has no x"),
    "an unknown component": (lambda c: [t["settings"].update({"a.b": 1}) for t in c["trials"]], "`spec` has no a.b"),
    "a setting less": (lambda c: c["trials"][2]["settings"].popitem(), "trials.2.settings"),
    "a trial twice": (lambda c: c["trials"].append(c["trials"][2]), "trials: 4 of 4 planned, 3"),
    "more trials than planned": (lambda c: c.update(planned=2), "trials: 3 of 2 planned"),
    "another order": (lambda c: c["trials"].reverse(), "trials.0"),
    "another spec": (lambda c: c["spec"].update(seed=7), "trials.0.run"),
    "a spec of another method": (lambda c: c["spec"].update(method="ct"), "trials.0.run"),
    "a key that is not known": (lambda c: c.update(best=0.9), "best: unknown key"),
    "another choice": (lambda c: c.update(chosen=c["trials"][0]["settings"]), "`chosen`"),
    "a better score of another": (lambda c: c["trials"][2].update(dev=0.9), "`chosen`"),
}


def swap(trials, key):
    trials[1][key], trials[2][key] = trials[2][key], trials[1][key]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_search_is_refused(edit, project):
    """Though its digest fits; by file and key."""
    change, message = EDITS[edit]
    write_search("simcse", FAST, planned=4, made=3)
    path = tuning.search_path("simcse", SCALE)
    content = json.loads(path.read_text())
    change(content)
    write_json(path, content if "digest" in edit else with_digest(content))
    with pytest.raises(BadInput, match=rf"{path}: .*{re.escape(message)}"):
        tuning.read_search(path)


def test_values_that_no_search_tries_are_not_taken(project):
    write_search("simcse", FAST | {"temperature": 9.0})
    with pytest.raises(BadInput, match=r"simcse\.json: temperature 9.0 is no value that `csebench tune` tries"):
        targets.runs(SCALE)


def test_a_page_states_what_was_chosen(project):
    write_search("ct", {"learning_rate": 1e-4})
    rows = dict(markdown.page_conditions(targets.page("methods", SCALE)))
    assert rows["Chosen on STS-B dev"].startswith("ct: learning_rate 0.0001")


# ---------------------------------------------------------------- the page


def test_the_page_shows_the_gain_and_the_best_of_k(project, capsys):
    """After 60, the other scores are 65, 50 and 50 in random order: one more trial gives 65 in a third of cases."""
    write_search("simcse", FAST, planned=4)
    assert cli.main(["render", "tuning", "--scale", SCALE, "--out", "results/tuned/tuning.md"]) == 0
    lines = (catalog.RESULTS / SCALE / "tuning.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith("| SimCSE"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] + cells[4:] == [
        "SimCSE (unsupervised)",
        "4",
        "60.00",
        "65.00",
        "+5.00",
        "61.67",
        "65.00",
    ]
    drawn = (catalog.RESULTS / SCALE / "tuning.csv").read_text().splitlines()
    assert drawn[2] == "simcse,2,61.6667,60"
    assert (catalog.RESULTS / SCALE / "tuning.svg").exists()
    assert (
        "Tuning gained +5.00 points on STS-B dev in the median of 1 methods, at most +5.00 (SimCSE (unsupervised))"
        in "\n".join(lines)
    )


def test_what_was_tuned_has_a_colour_and_a_title_of_its_own():
    searches = tuning_page.read_searches("mini")
    assert all(method_colour(search.name) for search in searches)
    titles = {search.name: tuning_page.label(search) for search in searches}
    assert titles["ct+ami"] == "Contrastive Tension + Attention-level mutual information"
    assert len({*titles.values()}) == len(titles)


def test_the_page_names_searches_that_do_not_fit(project):
    write_search("simcse", FAST, planned=3, made=2)
    write_search("ct", {"learning_rate": 1e-4})
    write_scale(tuned=["simcse"], precision="bf16")
    text = tuning_page.page(SCALE)
    assert "- ct: made under other settings (precision)" in text
    assert "Not the same number of trials for each" in text


def test_the_page_without_a_search_says_how_to_make_one(project):
    assert "csebench tune METHOD … --scale tuned --trials N" in tuning_page.page(SCALE)


def test_the_workflow_makes_the_page_where_there_is_a_search(project):
    from csebench import workflow

    page = Path("results/tuned/tuning.md")
    write_scale()
    assert page not in workflow.inputs_of_all(SCALE)
    write_search("simcse", FAST)
    write_scale(tuned=True)
    assert page in workflow.inputs_of_all(SCALE)


def test_the_first_page_says_who_was_tuned(project):
    write_scale()
    assert (
        answers.tuning_text(SCALE, ["simcse", "ct"])
        == "Settings: `config/tuned.yaml`; the methods are not tuned alike."
    )
    write_search("simcse", FAST, planned=4)
    write_scale(tuned=True)
    text = "Tuned alike on STS-B dev, 4 trials each ([what that bought](tuning.md))"
    assert answers.tuning_text(SCALE, ["simcse"]) == f"{text}."
    assert answers.tuning_text(SCALE, ["simcse", "ct"]) == f"{text}; not tuned: Contrastive Tension."


def test_the_page_is_in_the_folder_of_html_where_there_is_a_search(project):
    assert not html.has_tuning(SCALE)
    write_search("simcse", FAST)
    assert html.has_tuning(SCALE)


def test_no_paper_or_scale_is_named_tuning():
    assert tuning_page.NAME in catalog.RESERVED


def test_values_to_try_are_no_part_of_a_version():
    declared = registry.read_literal(ROOT / "methods" / "simcse.py", "DECLARATION")
    assert "search" in declared
    assert "search" not in without_text(declared)
