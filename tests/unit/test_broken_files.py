"""A broken paper, method or evaluator stops its own pages only, and is named with file, line and key."""

import re

import pytest
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.plan import grids, targets

DAMAGE = {
    "papers/msse.yaml": ("    caption:", "    captoin:"),
    "papers/informin_cl.yaml": ("method: scd", "method: sdc"),
    "methods/esimcse.py": ('"version": ', '"versoin": '),
    "methods/rankcse.py": ('"version": ', '"components": {"amii": {}}, "version": '),
    "methods/components/rtd.py": ('"version": ', '"versoin": '),
    "evaluators/transfer.py": ('"version": ', '"versoin": '),
}


@pytest.fixture(autouse=True, scope="module")
def damaged(tmp_path_factory):
    """A copy of the project in which two papers, a method, a component and an evaluator do not fit."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        copy_project(folder, patch, "config", "evidence", "papers", "methods", "evaluators")
        for name, (old, new) in DAMAGE.items():
            (folder / name).write_text((folder / name).read_text().replace(old, new, 1))
        patch.chdir(folder)
        caches.clear()
        yield
    caches.clear()


OVER_ALL = ("plan all", "claims --scale smoke", "audit", "render index", "render evidence", "csv")
OTHERS = ("plan table2", "show micse", "compare micse/table2 --scale smoke", "render micse/table2")
LISTS = ("papers", "methods", "evaluators")


@pytest.mark.parametrize("command", [*OVER_ALL, *OTHERS, *LISTS])
def test_broken_files_stop_no_other(command, capsys):
    assert cli.main(command.split()) == 0
    out, err = capsys.readouterr()
    if "all" in command or command == "audit":
        assert re.search(r"^csebench: left out: \S*papers/msse\.yaml: line \d+: tables\.1\.captoin: unknown key", err)
        assert re.search(r"left out: \S*papers/informin_cl\.yaml: line \d+: tables\.2\.rows\.\d+: .* 'sdc'", err)
    broken = {"methods": ("esimcse", "rankcse", "rtd"), "evaluators": ("transfer",)}.get(command, ())
    assert all(re.search(rf"^{name} +BROKEN +(methods|evaluators)/", out, re.M) for name in broken)


@pytest.mark.parametrize("target", ["msse", "msse/table2", "informin_cl", "informin_cl/table2"])
def test_a_broken_page_is_refused_by_name(target, capsys):
    assert cli.main(["plan", target]) == 2
    assert re.match(r"csebench: \S*papers/\w+\.yaml: line \d+: tables\.", capsys.readouterr().err)


def test_other_tables_of_a_paper_stay():
    names = [name for paper, name in targets.planned_grids("smoke") if paper == "informin_cl"]
    assert "table4" in names and "table2" not in names
    assert targets.page("table2", "smoke").papers == ("infocse", "micse")


def test_a_cell_of_a_broken_file_has_its_message():
    names = ("micse/table1", "micse/table2", "infocse/table10")
    cells = {name: grids.plan_grid(*name.split("/"), "paper") for name in names}
    row = grids.find_grid("micse", "table1").row("ESimCSE (Wu et al., 2021)")
    assert all(cell.missing.startswith("methods/esimcse.py: line ") for cell in cells["micse/table1"][row])
    scored = [cell for row in cells["infocse/table10"] for cell in row if cell.row.run]
    assert scored and all(cell.missing.startswith("evaluators/transfer.py: line ") for cell in scored)
    assert all(cell.specs for cell in cells["micse/table2"][grids.find_grid("micse", "table2").row("AMI+CT")])
