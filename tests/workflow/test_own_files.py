"""One file is enough to add a method, a component, an evaluator or a paper, and the tests of the
project hold with it."""

import pytest
from project import copy_of_project

pytestmark = pytest.mark.slow

OWN_TESTS = [
    "tests/conformance/test_conformance.py",
    "tests/conformance/test_evaluators.py",
    "-k",
    "own_",
]
# tests that can see new files, and are quick
OTHER_TESTS = [
    "-m",
    "not slow",
    "tests/unit/test_cli.py",
    "tests/unit/test_csv_tables.py",
    "tests/unit/test_docs.py",
    "tests/unit/test_plan.py",
    "tests/unit/test_rooms.py",
    "tests/unit/test_spec.py",
    "tests/unit/test_variants.py",
    "tests/unit/test_versions.py",
    "tests/protocol/test_papers.py",
    "tests/workflow/test_golden.py",
]
ROWS = """\
    rows:
      - {label: Ours, run: {method: own_method, components: {own_part: {}}}}
"""
COLUMNS = """\
    columns:
      - {label: mine, task: "STS-B", evaluator: own_score}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with a new file of each kind. The paper has a row that uses them."""
    project = copy_of_project(tmp_path_factory.mktemp("own") / "csebench")
    new_file(project, "method", "own_method")
    new_file(project, "component", "own_part")
    new_file(project, "evaluator", "own_score")
    new_file(project, "paper", "own_paper")
    project.edit("papers/own_paper.yaml", "    rows:\n", ROWS)
    project.edit("papers/own_paper.yaml", "    columns:\n", COLUMNS)
    return project


def new_file(project, kind, name):
    done = project.csebench("new", kind, name)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [OWN_TESTS, OTHER_TESTS], ids=["own", "others"])
def test_their_own_rules_hold_and_no_other_test_fails(arguments, project):
    """The conformance suite, as docs/methods.md and docs/evaluators.md say, and the project's
    tests pass."""
    done = project.run("-q", "-p", "no:cacheprovider", *arguments, module="pytest")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout, done.stdout[-3000:]


def test_their_page_is_made(project):
    project.make("results/own_paper/table1.md")
    page = project.read("own_paper/table1.md")
    assert "| Ours |" in page
    assert "printed" not in page
    assert "missing" not in page
