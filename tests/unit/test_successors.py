"""The folder successors/ holds whole works: while it has joined, they are planned, and their claims
are judged. Else nothing of it appears."""

import pytest
import yaml

from csebench import cli
from csebench.base.project import ROOT
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog import registry

FOLDER = ROOT / "successors"
PAPERS = sorted(file.stem for file in (FOLDER / "papers").glob("*.yaml"))
METHODS = sorted(file.stem for file in (FOLDER / "methods").glob("*.py"))


def read_paper(name):
    return yaml.safe_load((FOLDER / "papers" / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_of_the_folder_is_planned(paper, successors, capsys):
    assert cli.main(["plan", f"results/{paper}/table1.md", "--scale", "paper"]) == 0

    assert f"{paper}/table1" in capsys.readouterr().out


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_of_a_paper_of_the_folder_are_listed(paper, successors, capsys):
    quotes = {claim["quote"] for claim in read_paper(paper)["claims"]}

    assert cli.main(["claims", paper]) == 0

    noun = "claim" if len(quotes) == 1 else "claims"
    assert f"{len(quotes)} {noun}." in capsys.readouterr().out


@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_the_folder_is_in_a_table_of_it(method):
    rows = []
    for paper in PAPERS:
        for table in read_paper(paper)["tables"].values():
            rows += table["rows"]

    assert method in {row["run"]["method"] for row in rows if "run" in row}


def test_without_the_folder_nothing_of_it_appears():
    assert not {*METHODS} & {*registry.adapter_names(registry.METHODS)}
    assert not {*PAPERS} & {*catalog.paper_names()}


def test_its_colours_are_not_those_of_other_methods(successors):
    methods_by_colour = {}
    for method in registry.adapter_names(registry.METHODS):
        for colour in registry.declaration(method).colours.values():
            methods_by_colour.setdefault(colour, set()).add(method)

    for method in METHODS:
        for colour in registry.declaration(method).colours.values():
            assert methods_by_colour[colour] == {method}
