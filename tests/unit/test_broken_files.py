"""A broken paper, method or evaluator stops its own pages only, and is named with file, line and
key."""

import re
from itertools import chain

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
    """Copy the project, and damage some of its files."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        copy_project(folder, patch, "config", "evidence", "papers", "methods", "evaluators")
        for name, (old, new) in DAMAGE.items():
            path = folder / name
            path.write_text(path.read_text().replace(old, new, 1))
        patch.chdir(folder)
        caches.clear()
        yield
    caches.clear()


COMMANDS = [
    "plan all",
    "claims --scale smoke",
    "audit",
    "render index",
    "render evidence",
    "csv",
    "papers",
    "methods",
    "evaluators",
    "plan table2",
    "plan informin_cl/table4",
    "show micse",
    "compare micse/table2 --scale smoke",
    "render micse/table2",
]


MSSE = r"^csebench: left out: \S*papers/msse\.yaml: line \d+: tables\.1\.captoin: unknown key"
INFORMIN_CL = r"left out: \S*papers/informin_cl\.yaml: line \d+: tables\.2\.rows\.\d+: .* 'sdc'"


@pytest.mark.parametrize("command", COMMANDS)
def test_broken_files_stop_no_other(command, capsys):
    assert cli.main(command.split()) == 0

    out, err = capsys.readouterr()
    if command in ("plan all", "audit"):
        assert re.search(MSSE, err)
        assert re.search(INFORMIN_CL, err)
    broken = []
    if command == "methods":
        broken = ["esimcse", "rankcse", "rtd"]
    elif command == "evaluators":
        broken = ["transfer"]
    for name in broken:
        assert re.search(rf"^{name} +BROKEN +(methods|evaluators)/", out, re.M)


def rows_of(paper, table):
    """Return the planned cells of the rows of a table."""
    return grids.plan_grid(paper, table, "paper")


def test_a_cell_of_a_broken_file_has_its_message():
    (esimcse,) = [
        cells for cells in rows_of("micse", "table1") if cells[0].row.label.startswith("ESimCSE")
    ]
    for cell in esimcse:
        assert cell.missing.startswith("methods/esimcse.py: line ")

    scored = [cell for cell in chain(*rows_of("infocse", "table10")) if cell.row.run]
    assert scored
    for cell in scored:
        assert cell.missing.startswith("evaluators/transfer.py: line ")

    (whole,) = [cells for cells in rows_of("micse", "table2") if cells[0].row.label == "AMI+CT"]
    for cell in whole:
        assert cell.specs
