"""A broken paper, method or evaluator stops its own pages only, and is named with file, line and
key."""

import re

import pytest
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.plan import grids

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
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        copy_project(folder, patch, "config", "evidence", "papers", "methods", "evaluators")
        for name, (old, new) in DAMAGE.items():
            (folder / name).write_text((folder / name).read_text().replace(old, new, 1))
        patch.chdir(folder)
        caches.clear()
        yield
    caches.clear()


COMMANDS = """plan all; claims --scale smoke; audit; render index; render evidence; csv; papers; methods; evaluators
plan table2; plan informin_cl/table4; show micse; compare micse/table2 --scale smoke; render micse/table2"""  # noqa: E501


@pytest.mark.parametrize("command", [*map(str.strip, COMMANDS.replace("\n", ";").split(";"))])
def test_broken_files_stop_no_other(command, capsys):
    assert cli.main(command.split()) == 0
    out, err = capsys.readouterr()
    if "all" in command or command == "audit":
        assert re.search(
            r"^csebench: left out: \S*papers/msse\.yaml: line \d+: tables\.1\.captoin: unknown key",
            err,
        )
        assert re.search(
            r"left out: \S*papers/informin_cl\.yaml: line \d+: tables\.2\.rows\.\d+: .* 'sdc'", err
        )
    broken = {"methods": ("esimcse", "rankcse", "rtd"), "evaluators": ("transfer",)}.get(
        command, ()
    )
    assert all(re.search(rf"^{name} +BROKEN +(methods|evaluators)/", out, re.M) for name in broken)


def test_a_cell_of_a_broken_file_has_its_message():
    (esimcse,) = [
        row
        for row in grids.plan_grid("micse", "table1", "paper")
        if row[0].row.label.startswith("ESimCSE")
    ]
    assert all(cell.missing.startswith("methods/esimcse.py: line ") for cell in esimcse)
    scored = [
        cell
        for row in grids.plan_grid("infocse", "table10", "paper")
        for cell in row
        if cell.row.run
    ]
    assert scored and all(
        cell.missing.startswith("evaluators/transfer.py: line ") for cell in scored
    )
    (whole,) = [
        row for row in grids.plan_grid("micse", "table2", "paper") if row[0].row.label == "AMI+CT"
    ]
    assert all(cell.specs for cell in whole)
