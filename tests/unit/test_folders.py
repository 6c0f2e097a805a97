"""A folder of one's own that joins the project: what is found in it, refused, and written to it."""

import shutil

import pytest
import yaml
from made_up import table

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT, folders, name_of
from csebench.plan import catalog, evidence, registry

COLUMNS = [{"label": "1%", "size": "1%", "task": "Avg."}]
ROWS = {"SimCSE": ("simcse", [None]), "Mine": ("mine", [None])}
PAPER = {"name": "own", "title": "My paper", "reference": "Me", "tables": {"2": table(ROWS, COLUMNS)}}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder that joins the project, with a method, a paper, a scale and a dataset; not the current one."""
    folder = tmp_path / "own"
    for name in ("methods", "papers", "config", "data"):
        (folder / name).mkdir(parents=True)
    code = (ROOT / "methods" / "simcse.py").read_text()
    (folder / "methods" / "mine.py").write_text(code.replace('"name": "simcse"', '"name": "mine"'))
    (folder / "papers" / "own.yaml").write_text(yaml.safe_dump(PAPER, sort_keys=False))
    mini = yaml.safe_load((ROOT / "config" / "mini.yaml").read_text())
    small = {key: mini[key] for key in mini if key not in ("tuned", "seeds_by_table")} | {"scale": "own_scale"}
    (folder / "config" / "own_scale.yaml").write_text(yaml.safe_dump(small | {"corpus": "own"}))
    known = yaml.safe_load((ROOT / "data" / "registry.yaml").read_text())
    (folder / "data" / "registry.yaml").write_text(yaml.safe_dump({"own": known["wiki1m-github"]}))
    monkeypatch.setenv("CSEBENCH_PROJECT", str(folder))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield folder
    caches.clear()


def test_what_is_in_it_is_the_projects(own):
    assert folders() == [ROOT, own]
    assert registry.load("mine").__module__ == "methods.mine" and "simcse" in registry.names(registry.METHODS)
    assert {"micse", "own"} <= {*catalog.paper_names()} and catalog.scale("own_scale").corpus == "own"
    assert name_of(registry.files(registry.METHODS)["mine"]) == "methods/mine.py"
    (own / "evidence").mkdir()
    shutil.copy(ROOT / "evidence" / "Echo.yaml", own / "evidence" / "more.yaml")
    caches.clear()
    assert {"Echo", "more"} <= evidence.sources().keys()


REFUSED = {  # file of the project -> what finds it
    "methods/simcse.py": lambda: registry.names(registry.METHODS),
    "papers/micse.yaml": catalog.paper_names,
    "config/mini.yaml": catalog.scale_names,
    "evidence/Echo.yaml": evidence.sources,
    "evidence/methods.yaml": evidence.names,
    "data/registry.yaml": catalog.datasets,
    "evaluators/_probe.py": lambda: registry.load("transfer", registry.EVALUATORS),
}


@pytest.mark.parametrize(("name", "find"), REFUSED.items())
def test_a_name_that_the_project_has_is_refused_with_both_places(name, find, own):
    (own / name).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / name, own / name)
    caches.clear()
    with pytest.raises(BadInput) as refused:
        find()
    assert str(own / name) in str(refused.value) and str(ROOT / name) in str(refused.value)


def test_results_are_written_to_it_and_paths_are_of_the_current_folder(own, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CSEBENCH_PROJECT", "")  # which the option sets
    assert cli.main(["render", "own/table2", "--project", "own", "--scale", "mini", "--out", "page.md"]) == 0
    assert (tmp_path / "page.md").exists()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["csv", "--project", "own", "--scale", "own_scale"]) == 0
    assert (own / "results" / "own_scale" / "cells.csv").exists() and not (tmp_path / "results").exists()


def test_a_folder_that_is_made_joins_while_the_current_one_is_in_it(tmp_path, monkeypatch):
    assert cli.main(["init", str(tmp_path / "work")]) == 0
    assert folders() == [ROOT]
    (tmp_path / "work" / "papers" / "drafts").mkdir(parents=True)
    for here in ("work", "work/papers/drafts"):
        monkeypatch.chdir(tmp_path / here)
        assert folders() == [ROOT, tmp_path / "work"]
        assert cli.main(["papers", "--json"]) == 0


def test_a_folder_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan", "table2", "--project", "nowhere"]) == 2
    assert "--project: nowhere: no such folder" in capsys.readouterr().err
    monkeypatch.setenv("CSEBENCH_PROJECT", "nowhere")
    assert cli.main(["methods"]) == 2
    assert "CSEBENCH_PROJECT: nowhere: no such folder" in capsys.readouterr().err
