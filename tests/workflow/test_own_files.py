"""One file is enough: a method, a component, an evaluator and a paper of one's own, and the
tests of the project."""

import pytest
from project import copy_of_project

pytestmark = pytest.mark.slow
MADE = {
    "method": "own_method",
    "component": "own_part",
    "evaluator": "own_score",
    "paper": "own_paper",
}
RUNS = {
    "own": [
        *(f"tests/conformance/test_{name}.py" for name in ("conformance", "evaluators")),
        "-k",
        "own_",
    ]
}
# that can see new files
QUICK = ["cli", "csv_tables", "docs", "plan", "rooms", "spec", "variants", "versions"]
RUNS["others"] = ["-m", "not slow", *(f"tests/unit/test_{name}.py" for name in QUICK)]
RUNS["others"] += ["tests/protocol/test_papers.py", "tests/workflow/test_golden.py"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with a new file of each kind; the paper has a row of each."""
    project = copy_of_project(tmp_path_factory.mktemp("own") / "csebench")
    for kind, name in MADE.items():
        done = project.csebench("new", kind, name)
        assert done.returncode == 0, done.stderr
    rows = (
        "    rows:\n      - {label: Ours, run: {method: own_method, components: {own_part: {}}}}\n"
    )
    project.edit("papers/own_paper.yaml", "    rows:\n", rows)
    columns = '    columns:\n      - {label: mine, task: "STS-B", evaluator: own_score}\n'
    project.edit("papers/own_paper.yaml", "    columns:\n", columns)
    return project


@pytest.mark.parametrize("words", RUNS.values(), ids=RUNS)
def test_their_own_rules_hold_and_no_other_test_fails(words, project):
    """The conformance suite, as docs/methods.md and docs/evaluators.md say, and the project's
    tests."""
    done = project.run("-q", "-p", "no:cacheprovider", *words, module="pytest")
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-3000:]


def test_their_page_is_made(project):
    project.make("results/own_paper/table1.md")
    page = project.read("own_paper/table1.md")
    assert "| Ours |" in page and "printed" not in page and "missing" not in page
