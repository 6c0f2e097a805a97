"""Drafts: code whose version does not identify it. An edit makes other runs and scores, a comment
does not."""

import json

import pytest
from score_files import write_scores

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.files import read_json, write_json
from csebench.base.project import ROOT
from csebench.cli.train_options import read_spec
from csebench.plan import code_versions, forecast, targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import protocol
from csebench.plan.recipe import conditions, make_spec
from csebench.plan.schema.paper import Recipe
from csebench.score import store
from csebench.score.score_file import settings
from csebench.score.scores_csv import score_rows
from csebench.study import attempt_notices, attempt_paper

METHOD = '''
"""A method of one's own."""

from methods._distances import distance
from methods.simcse import Method as SimCSE
{imports}
DECLARATION = {{
    "name": "mine",
    "version": 1,
    "title": "Mine",
    "paper": "ours",
    "citation": "none",
    "params": {{"margin": (0.1, "ours")}},
}}


class Method(SimCSE):
    """Its loss."""

    def loss(self, views):
        """Add a distance."""
        if self.p.margin < 0:
            raise ValueError("negative")
        return super().loss(views) + distance(views)
'''
HELPER = "SCALE = 2.0\n\n\ndef distance(views):\n    return SCALE * (views.z1 - views.z2).norm()\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Make a folder of one's own, with a method, what it imports, a component and an evaluator."""
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    imports = "from ._relative import LEFT\nimport mypackage.inner\nfrom methods import _named\n"
    component = (ROOT / "methods/components/ami.py").read_text().replace('"ami"', '"mine"')
    evaluator = (ROOT / "evaluators/stsb_dev.py").read_text().replace('"stsb_dev"', '"mine_dev"')
    texts = {
        "methods/mine.py": METHOD.format(imports=imports),
        "methods/_distances.py": HELPER,
        "methods/_relative.py": "from ._further import RIGHT as LEFT\n",
        "methods/_further.py": "RIGHT = 1\n",
        "methods/_named.py": "NAME = 1\n",
        "methods/_unused.py": "NAME = 1\n",
        "mypackage/__init__.py": "SIZE = 1\n",
        "mypackage/inner.py": "SIZE = 1\n",
        "methods/components/mine.py": component,
        "evaluators/mine_dev.py": evaluator,
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    caches.clear()
    yield tmp_path
    caches.clear()


def replace_once(file, old, new):
    """Replace the first occurrence of a text in a file, if there is one."""
    file.write_text(file.read_text().replace(old, new, 1))
    caches.clear()


def append(file, text):
    """Add a text to the end of a file."""
    file.write_text(file.read_text() + text)
    caches.clear()


def negate_the_loss(own):
    """Make an edit of the method that changes its runs."""
    replace_once(own / "methods/mine.py", "return super()", "return -super()")


def change_the_evaluator(own):
    """Make an edit of the evaluator that may change its scores."""
    append(own / "evaluators/mine_dev.py", "\nLIMIT = 3\n")


def spec_of(method="mine", components=()):
    """Make the spec of a run at scale smoke."""
    scale = catalog.scale("smoke")
    recipe = Recipe(method=method, components={name: {} for name in components})
    return make_spec(recipe, scale.encoders["bert-base"], 24, 48, conditions(scale), "test")


def attempt(own, scale="smoke", evaluator="sts"):
    """Open an attempt with the method, as `csebench try` does."""
    return attempt_paper.open_attempt(
        own / "methods/mine.py",
        against=("simcse",),
        scale=scale,
        evaluators=(evaluator,),
        seeds=1,
    )


def begin_the_run(own):
    """Leave the spec of the method's run in its folder, as its training does."""
    spec = spec_of()
    write_json(own / "runs" / spec.run_id / "spec.json", spec.model_dump())


EDITS = {  # file, what is there, what it becomes; each edit can change a number
    "the sign of the loss": ("methods/mine.py", "return super()", "return -super()"),
    "a condition": ("methods/mine.py", "margin < 0", "margin <= 0"),
    "a helper": ("methods/_distances.py", "2.0", "3.0"),
    "a helper of a helper, imported relatively": ("methods/_further.py", "1", "2"),
    "a helper imported from its package": ("methods/_named.py", "1", "2"),
    "a module of a package": ("mypackage/inner.py", "1", "2"),
    "the package itself": ("mypackage/__init__.py", "1", "2"),
}
SAME = {  # file, what is there, what it becomes; no edit can change a number
    "a comment": (
        "methods/mine.py",
        "        return super",
        "        # the loss\n        return super",
    ),
    "the layout": (
        "methods/mine.py",
        "super().loss(views) + distance(views)",
        "(super().loss(views)\n + distance(views))",
    ),
    "a docstring": ("methods/mine.py", "Add a distance.", "Subtract a distance."),
    "a message": ("methods/mine.py", '"negative"', '"below zero"'),
    "the title": ("methods/mine.py", '"Mine"', '"My own"'),
    "a type": ("methods/_distances.py", "(views)", "(views: object) -> float"),
    "a file that is not imported": ("methods/_unused.py", "1", "2"),
}


@pytest.mark.parametrize(("file", "old", "new"), EDITS.values(), ids=EDITS)
def test_an_edit_makes_other_runs_and_its_undoing_the_old_ones(own, file, old, new):
    before = spec_of()
    replace_once(own / file, old, new)
    edited = spec_of()
    assert edited.run_id != before.run_id
    assert edited.cell_id != before.cell_id

    replace_once(own / file, new, old)
    assert spec_of() == before


@pytest.mark.parametrize(("file", "old", "new"), SAME.values(), ids=SAME)
def test_what_changes_no_number_makes_no_other_runs(own, file, old, new):
    before = spec_of()
    text = (own / file).read_text()
    replace_once(own / file, old, new)
    assert (own / file).read_text() != text
    assert spec_of().run_id == before.run_id


def test_a_component_counts_in_the_runs_of_its_host_only(own):
    with_component = spec_of("simcse", ["mine"])
    without = spec_of("simcse")
    assert not without.code

    replace_once(own / "methods/components/mine.py", "return ", "return -")
    assert spec_of("simcse", ["mine"]).run_id != with_component.run_id
    assert spec_of("simcse") == without


def test_a_method_of_the_project_is_known_by_its_version_until_its_code_changes(
    tmp_path, monkeypatch
):
    """A lock with another hash stands for an edited file."""
    before = spec_of("simcse")
    lock = read_json(code_versions.LOCK)
    lock["methods/simcse"]["code"] = "0" * 16
    write_json(tmp_path / "lock.json", lock)
    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    caches.clear()
    edited = spec_of("simcse")
    assert list(edited.code) == ["methods/simcse"]
    assert edited.run_id != before.run_id

    monkeypatch.undo()
    caches.clear()
    assert spec_of("simcse") == before


def test_scores_of_an_edited_evaluator_are_outdated(own):
    evaluation = catalog.scale("smoke").evaluation
    spec = spec_of("simcse")
    write_scores(spec, "mine_dev", "smoke", [("STS-B", "spearman", 0.5)])
    caches.clear()
    _, is_outdated = store.stored_score(spec, "mine_dev", "smoke")
    assert is_outdated is False
    before = settings(protocol("mine_dev"), evaluation)

    change_the_evaluator(own)
    _, is_outdated = store.stored_score(spec, "mine_dev", "smoke")
    assert is_outdated is True
    assert settings(protocol("mine_dev"), evaluation) != before


def test_scores_that_other_code_of_a_draft_made_are_not_shown_for_it(own):
    write_scores(spec_of(), "sts", "smoke", [("Avg.", "spearman", 0.5)])
    negate_the_loss(own)
    assert store.stored_score(spec_of(), "sts", "smoke") == (None, False)


def test_a_spec_of_other_code_is_refused_and_one_without_code_takes_todays(own):
    spec = spec_of()
    with_code = json.loads(spec.model_dump_json())
    assert read_spec(json.dumps(with_code)) == spec
    without_code = {key: value for key, value in with_code.items() if key != "code"}
    assert read_spec(json.dumps(without_code)) == spec

    negate_the_loss(own)
    message = "code: methods/mine has other code than the spec was made with"
    with pytest.raises(BadInput, match=message):
        read_spec(json.dumps(with_code))


def kept_trials():
    """Return the trials of the search on `mine` that a repetition keeps."""
    made = tuning.made_search("mine", "mini")
    return tuning.kept_trials(made, tuning.plan_trials("mine", "mini", 1))


def test_what_a_search_with_other_code_chose_is_not_taken(own):
    with_search = '"search": {"margin": [0.1, 0.2]}, "params"'
    replace_once(own / "methods/mine.py", '"params"', with_search)
    (planned,) = tuning.plan_trials("mine", "mini", 1)
    runs = [tuning.TrialRun(run=spec.run_id, seed=spec.seed, dev=0.5) for spec in planned.specs]
    trial = tuning.Trial(settings=planned.settings, runs=runs)
    search = tuning.Search(
        name="mine", planned=1, spec=planned.specs[0], trials=[trial], chosen=planned.settings
    )
    tuning.write_search(search, "mini")
    caches.clear()
    assert kept_trials() == [trial]

    negate_the_loss(own)
    assert "mine" not in tuning.tuned_settings("mini")
    assert kept_trials() == []


def test_try_says_that_it_starts_anew_once_and_only_for_other_code(own):
    tried = attempt(own)
    attempt_paper.write_paper(tried)
    assert attempt_notices.restart_notices(tried) == []
    begin_the_run(own)
    append(own / "methods/mine.py", "# a comment\n")
    assert attempt_notices.restart_notices(tried) == []

    negate_the_loss(own)
    notice, *_ = attempt_notices.restart_notices(tried)
    assert notice.startswith("methods/mine.py: its code changed since its last runs")

    begin_the_run(own)
    assert attempt_notices.restart_notices(tried) == [], "the new runs are under way"
    assert "mine" in {spec.method for spec in targets.runs("smoke").values()}


def test_try_names_the_defaults_that_its_runs_do_not_have(own):
    with_temperature = '"params": {"temperature": (0.07, "ours"), '
    replace_once(own / "methods/mine.py", '"params": {', with_temperature)
    tried = attempt(own, scale="mini")
    note = (
        "temperature is 0.02, not 0.07 as in the file: set by the search on simcse at scale mini."
    )
    assert attempt_paper.replaced_defaults(tried) == [note]

    attempt_paper.write_paper(tried)
    assert catalog.paper("try_mine").tables["1"].notes == [f"Mine: {note}"]

    replace_once(own / "methods/mine.py", '"name"', '"keeps": ["temperature"], "name"')
    assert attempt_paper.replaced_defaults(tried) == []


def test_scores_of_todays_draft_are_in_scores_csv_and_those_of_its_older_code_are_not(own):
    write_scores(spec_of(), "sts", "smoke", [("Avg.", "spearman", 0.5)])
    caches.clear()
    assert runs_in_scores_csv("mine") == {spec_of().run_id}
    negate_the_loss(own)
    assert runs_in_scores_csv("mine") == set()


def runs_in_scores_csv(method):
    """Collect the runs of a method that scores.csv of scale smoke has."""
    return {row["run"] for row in score_rows("smoke") if row["method"] == method}


def edit_method_of_project(name, lock):
    """Write a lock in which a method of the project has other code than today."""
    write_json(code_versions.LOCK, {**lock, f"methods/{name}": {"version": 0, "code": ""}})
    caches.clear()


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """Return the content of the version lock, and let another file be the lock."""
    content = read_json(code_versions.LOCK)
    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    yield content
    monkeypatch.undo()
    caches.clear()


def test_an_edited_method_that_is_no_host_blocks_no_scale(lock):
    """The search for it counts as not made."""
    write_json(code_versions.LOCK, lock)
    caches.clear()
    searches = tuning.tuned_settings("mini").keys()
    edit_method_of_project("micse", lock)
    assert searches - tuning.tuned_settings("mini").keys() == {"micse"}


def test_a_search_for_an_edited_method_that_others_start_from_is_refused(lock):
    edit_method_of_project("simcse", lock)
    with pytest.raises(BadInput, match="made under other settings"):
        tuning.tuned_settings("mini")


def test_try_says_that_scores_of_an_edited_evaluator_are_made_anew(own):
    tried = attempt(own, evaluator="mine_dev")
    attempt_paper.write_paper(tried)
    write_scores(spec_of(), "mine_dev", "smoke", [("STS-B", "spearman", 0.5)])

    change_the_evaluator(own)
    (notice,) = attempt_notices.restart_notices(tried)
    assert notice == "mine_dev: its code changed, so its scores are made again."
    work = forecast.Work(tried.pages)
    assert (spec_of().run_id, "mine_dev") in work.missing
