"""Code whose version says nothing about it: an edit makes other runs and scores, a comment does
not."""

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
    """A folder of one's own, with a method, what it imports, a component and an evaluator."""
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    imports = "from ._relative import LEFT\nimport mypackage.inner\nfrom methods import _named\n"
    component = (ROOT / "methods/components/ami.py").read_text().replace('"ami"', '"mine"')
    evaluator = (ROOT / "evaluators/stsb_dev.py").read_text().replace('"stsb_dev"', '"mine_dev"')
    for name, text in {
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
    }.items():
        edit(tmp_path / name, lambda _, text=text: text)
    yield tmp_path
    caches.clear()


def edit(file, change):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(change(file.read_text() if file.exists() else ""))
    caches.clear()


def spec_of(method="mine", components=()):
    scale = catalog.scale("smoke")
    recipe = Recipe(method=method, components={name: {} for name in components})
    return make_spec(recipe, scale.encoders["bert-base"], 24, 48, conditions(scale), "test")


EDITS = {
    "the sign of the loss": ("methods/mine.py", "return super()", "return -super()"),
    "a condition": ("methods/mine.py", "margin < 0", "margin <= 0"),
    "a helper": ("methods/_distances.py", "2.0", "3.0"),
    "a helper of a helper, imported relatively": ("methods/_further.py", "1", "2"),
    "a helper imported from its package": ("methods/_named.py", "1", "2"),
    "a module of a package": ("mypackage/inner.py", "1", "2"),
    "the package itself": ("mypackage/__init__.py", "1", "2"),
}
SAME = {
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


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_makes_other_runs_and_its_undoing_the_old_ones(own, name):
    file, old, new = EDITS[name]
    before = spec_of()
    edit(own / file, lambda text: text.replace(old, new, 1))
    assert spec_of().run_id != before.run_id and spec_of().cell_id != before.cell_id
    edit(own / file, lambda text: text.replace(new, old, 1))
    assert spec_of() == before


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_number_makes_no_other_runs(own, name):
    file, old, new = SAME[name]
    before = spec_of().run_id
    text = (own / file).read_text()
    edit(own / file, lambda text: text.replace(old, new, 1))
    assert (own / file).read_text() != text and spec_of().run_id == before


def test_a_component_counts_in_the_runs_of_its_host_only(own):
    with_it, without = spec_of("simcse", ["mine"]), spec_of("simcse")
    edit(own / "methods/components/mine.py", lambda text: text.replace("return ", "return -", 1))
    assert spec_of("simcse", ["mine"]).run_id != with_it.run_id
    assert spec_of("simcse") == without and not without.code


def test_a_method_of_the_project_is_known_by_its_version_until_its_code_changes(
    tmp_path, monkeypatch
):
    """The lock with another hash stands for an edited file."""
    before = spec_of("simcse")
    lock = read_json(code_versions.LOCK)
    lock["methods/simcse"]["code"] = "0" * 16
    write_json(tmp_path / "lock.json", lock)
    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    caches.clear()
    edited = spec_of("simcse")
    assert [*edited.code] == ["methods/simcse"] and edited.run_id != before.run_id
    monkeypatch.undo()
    caches.clear()
    assert spec_of("simcse") == before


def test_scores_of_an_edited_evaluator_are_outdated(own):
    spec = spec_of("simcse")
    write_scores(spec, "mine_dev", "smoke", [("STS-B", "spearman", 0.5)])
    caches.clear()
    assert store.stored_score(spec, "mine_dev", "smoke")[1] is False
    before = settings(protocol("mine_dev"), catalog.scale("smoke").evaluation)
    edit(own / "evaluators/mine_dev.py", lambda text: f"{text}\nLIMIT = 3\n")
    assert store.stored_score(spec, "mine_dev", "smoke")[1] is True
    assert settings(protocol("mine_dev"), catalog.scale("smoke").evaluation) != before


def test_scores_that_other_code_of_a_draft_made_are_not_shown_for_it(own):
    write_scores(spec_of(), "sts", "smoke", [("Avg.", "spearman", 0.5)])
    edit(own / "methods/mine.py", lambda text: text.replace("return super()", "return -super()"))
    assert store.stored_score(spec_of(), "sts", "smoke") == (None, False)


def test_a_spec_of_other_code_is_refused_and_one_without_code_takes_todays(own):
    spec = spec_of()
    content = json.loads(spec.model_dump_json())
    assert read_spec(json.dumps(content)) == spec
    assert (
        read_spec(json.dumps({key: value for key, value in content.items() if key != "code"}))
        == spec
    )
    edit(own / "methods/mine.py", lambda text: text.replace("return super()", "return -super()"))
    with pytest.raises(
        BadInput, match=r"code: methods/mine has other code than the spec was made with"
    ):
        read_spec(json.dumps(content))


def kept_trials():
    """Return the trials of the search on `mine` that a repetition keeps."""
    made = tuning.made_search("mine", "mini")
    return tuning.kept_trials(made, tuning.plan_trials("mine", "mini", 1))


def test_what_a_search_with_other_code_chose_is_not_taken(own):
    edit(
        own / "methods/mine.py",
        lambda text: text.replace('"params"', '"search": {"margin": [0.1, 0.2]}, "params"'),
    )
    (planned,) = tuning.plan_trials("mine", "mini", 1)
    runs = [tuning.TrialRun(run=spec.run_id, seed=spec.seed, dev=0.5) for spec in planned.specs]
    trial = tuning.Trial(settings=planned.settings, runs=runs)
    search = tuning.Search(
        name="mine", planned=1, spec=planned.specs[0], trials=[trial], chosen=planned.settings
    )
    tuning.write_search(search, "mini")
    caches.clear()
    assert kept_trials() == [trial]
    edit(own / "methods/mine.py", lambda text: text.replace("return super()", "return -super()"))
    assert "mine" not in tuning.tuned_settings("mini")
    assert kept_trials() == []


def test_try_says_that_it_starts_anew_once_and_only_for_other_code(own):
    tried = attempt_paper.open_attempt(
        own / "methods/mine.py", against=("simcse",), scale="smoke", evaluators=("sts",), seeds=1
    )
    attempt_paper.write_paper(tried)
    assert attempt_notices.restart_notices(tried) == []
    write_json(own / "runs" / spec_of().run_id / "spec.json", spec_of().model_dump())
    edit(own / "methods/mine.py", lambda text: f"{text}# a comment\n")
    assert attempt_notices.restart_notices(tried) == []
    edit(own / "methods/mine.py", lambda text: text.replace("return super()", "return -super()"))
    assert attempt_notices.restart_notices(tried)[0].startswith(
        "methods/mine.py: its code changed since its last runs"
    )
    write_json(own / "runs" / spec_of().run_id / "spec.json", spec_of().model_dump())
    assert attempt_notices.restart_notices(tried) == []  # they are under way
    assert {spec.method for spec in targets.runs("smoke").values()} >= {"mine"}


def test_try_names_the_defaults_that_its_runs_do_not_have(own):
    edit(
        own / "methods/mine.py",
        lambda text: text.replace('"params": {', '"params": {"temperature": (0.07, "ours"), '),
    )
    tried = attempt_paper.open_attempt(
        own / "methods/mine.py", against=("simcse",), scale="mini", evaluators=("sts",), seeds=1
    )
    (note,) = attempt_paper.replaced_defaults(tried)
    assert (
        note == "temperature is 0.02, not 0.07 as in the file: set by the search on simcse at scale"
        " mini."
    )
    attempt_paper.write_paper(tried)
    assert catalog.paper("try_mine").tables["1"].notes == [f"Mine: {note}"]
    edit(
        own / "methods/mine.py",
        lambda text: text.replace('"name"', '"keeps": ["temperature"], "name"'),
    )
    assert attempt_paper.replaced_defaults(tried) == []


def test_scores_of_todays_draft_are_in_scores_csv_and_those_of_its_older_code_are_not(own):
    write_scores(spec_of(), "sts", "smoke", [("Avg.", "spearman", 0.5)])
    caches.clear()
    rows = [row for row in score_rows("smoke") if row["method"] == "mine"]
    assert {row["run"] for row in rows} == {spec_of().run_id}
    edit(own / "methods/mine.py", lambda text: text.replace("return super()", "return -super()"))
    assert not [row for row in score_rows("smoke") if row["method"] == "mine"]


def test_an_edited_method_that_is_no_host_blocks_no_scale(tmp_path, monkeypatch):
    """The search for it counts as not made; one that other methods start from is refused."""
    searches = tuning.tuned_settings("mini").keys()
    lock = read_json(code_versions.LOCK)
    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    for name, message in (("micse", None), ("simcse", "made under other settings")):
        edited = {**lock, f"methods/{name}": {"version": 0, "code": ""}}
        write_json(code_versions.LOCK, edited)
        caches.clear()
        if message is None:
            assert searches - tuning.tuned_settings("mini").keys() == {name}
        else:
            with pytest.raises(BadInput, match=message):
                tuning.tuned_settings("mini")
    monkeypatch.undo()
    caches.clear()


def test_try_says_that_scores_of_an_edited_evaluator_are_made_anew(own):
    tried = attempt_paper.open_attempt(
        own / "methods/mine.py",
        against=("simcse",),
        scale="smoke",
        evaluators=("mine_dev",),
        seeds=1,
    )
    attempt_paper.write_paper(tried)
    write_scores(spec_of(), "mine_dev", "smoke", [("STS-B", "spearman", 0.5)])
    edit(own / "evaluators/mine_dev.py", lambda text: f"{text}\nLIMIT = 3\n")
    (notice,) = attempt_notices.restart_notices(tried)
    assert notice == "mine_dev: its code changed, so its scores are made again."
    work = forecast.Work(tried.pages)
    assert (spec_of().run_id, "mine_dev") in work.missing
