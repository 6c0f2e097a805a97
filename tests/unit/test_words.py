"""Names are the thing that they hold, or a verb phrase; words that name nothing are refused as names."""

import ast

import pytest

from csebench.base.project import ROOT

BETTER = {
    "found": "what was found: `rows`, `paths`, `declared` …",
    "own": "whose it is: `row_values`, `paper_claims` …",
    "at": "what it counts: `scale`, `step`, `index`, `positions` …",
}
PLAIN = ("csebench", "methods", "evaluators", "benchmarks")
FILES = sorted(path for name in PLAIN for path in (ROOT / name).rglob("*.py") if "__pycache__" not in path.parts)


def names(tree):
    """(name, line) of every variable, argument, attribute, function and class that a module defines or uses."""
    fields = {
        ast.Name: "id",
        ast.arg: "arg",
        ast.Attribute: "attr",
        ast.FunctionDef: "name",
        ast.ClassDef: "name",
        ast.alias: "asname",
    }
    for node in ast.walk(tree):
        if type(node) in fields:
            yield getattr(node, fields[type(node)]), node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_hold(path):
    vague = [
        f"{path.relative_to(ROOT)}:{line}: `{name}`: name {BETTER[name]}"
        for name, line in names(ast.parse(path.read_text(encoding="utf-8")))
        if name in BETTER
    ]
    assert not vague, "\n".join(vague)


def test_a_vague_name_is_noticed_wherever_it_stands():
    code = "def f(at):\n    own = g.found\nimport x as own\n"
    assert sorted(name for name, _ in names(ast.parse(code)) if name in BETTER) == ["at", "found", "own", "own"]
