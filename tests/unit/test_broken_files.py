"""A broken paper, method or evaluator stops its own pages only, and is named with file, line and key."""

import json
import re

import pytest
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.base.project import ROOT
from csebench.plan import grids, registry, targets


@pytest.fixture(autouse=True)
def fresh():
    caches.clear()
    yield
    caches.clear()


@pytest.fixture
def papers(tmp_path, monkeypatch):
    """A copy of the project's YAML files; one paper's file does not fit, a table of another names no method."""
    copy_project(tmp_path, monkeypatch, "config", "evidence", "papers")
    for name, old, new in (("msse", "    caption:", "    captoin:"), ("informin_cl", "method: scd", "method: sdc")):
        path = tmp_path / "papers" / f"{name}.yaml"
        path.write_text(path.read_text().replace(old, new, 1))
    caches.clear()
    return tmp_path / "papers"


@pytest.fixture
def declarations(monkeypatch):
    """The declarations of a method, a component and an evaluator do not fit."""
    literal = registry.literal_with_lines

    def damaged(path, variable):
        content, lines = literal(path, variable)
        return content | ({"version": "one"} if path.stem in ("esimcse", "rtd", "transfer") else {}), lines

    monkeypatch.setattr(registry, "literal_with_lines", damaged)


OVER_ALL = ("plan all", "claims --scale smoke", "audit", "power claims", "render index", "render evidence")
OTHERS = ("plan table2", "show micse", "compare micse/table2 --scale smoke", "render micse/table2")


@pytest.mark.parametrize("command", [*OVER_ALL, *OTHERS, "papers", "methods"])
def test_broken_papers_stop_no_other(command, papers, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 0
    out, err = capsys.readouterr()
    assert out
    if "all" in command or command == "audit":
        assert re.search(r"^csebench: left out: \S*papers/msse\.yaml: line \d+: tables\.1\.captoin: unknown key", err)
        assert re.search(r"left out: \S*papers/informin_cl\.yaml: line \d+: tables\.2\.rows\.\d+: .* 'sdc'", err)


@pytest.mark.parametrize("target", ["msse", "msse/table2", "informin_cl", "informin_cl/table2"])
def test_a_broken_page_is_refused_by_name(target, papers, capsys):
    assert cli.main(["plan", target]) == 2
    assert re.match(r"csebench: \S*papers/\w+\.yaml: line \d+: tables\.", capsys.readouterr().err)


def test_other_tables_of_a_paper_stay(papers):
    names = [name for paper, name in targets.planned_grids("smoke") if paper == "informin_cl"]
    assert "table4" in names and "table2" not in names
    assert targets.page("table2", "smoke").papers == ("infocse", "micse")


@pytest.mark.parametrize("command", [*OVER_ALL, *OTHERS, "methods", "evaluators", "csv"])
def test_broken_declarations_stop_no_other(command, declarations, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 0
    out = capsys.readouterr().out
    broken = {"methods": ("esimcse", "rtd"), "evaluators": ("transfer",)}.get(command, ())
    assert all(re.search(rf"^{name} +BROKEN +(methods|evaluators)/", out, re.M) for name in broken)


def test_a_cell_of_a_broken_file_has_its_message(declarations):
    names = ("micse/table1", "micse/table2", "infocse/table10")
    cells = {name: grids.plan_grid(*name.split("/"), "paper") for name in names}
    row = grids.find_grid("micse", "table1").row("ESimCSE (Wu et al., 2021)")
    assert all(cell.missing.startswith("methods/esimcse.py: line ") for cell in cells["micse/table1"][row])
    scored = [cell for row in cells["infocse/table10"] for cell in row if cell.row.run]
    assert scored and all(cell.missing.startswith("evaluators/transfer.py: line ") for cell in scored)
    assert all(cell.specs for cell in cells["micse/table2"][grids.find_grid("micse", "table2").row("AMI+CT")])


def test_a_message_has_the_keys_of_the_file(papers, capsys):
    """Of one line, without what the schema adds, such as the kind of a table."""
    (papers / "msse.yaml").write_text((ROOT / "papers" / "msse.yaml").read_text().replace('"80.15"', '"80,15"', 1))
    caches.clear()
    assert cli.main(["papers", "--json"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "msse"]
    place = r"\S*papers/msse\.yaml: line \d+: tables\.\d\.rows\.\d+\.values\.\d"
    assert re.fullmatch(rf"BROKEN: {place}: .*'80,15'\)\.", row["paper"])
