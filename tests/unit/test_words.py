"""Names are the thing that they hold, or a verb phrase; words that name nothing are refused as names."""

import ast

from csebench.base.project import ROOT

BETTER = {
    "found": "what was found: `rows`, `paths`, `declared` …",
    "own": "whose it is: `row_values`, `paper_claims` …",
    "at": "what it counts: `scale`, `step`, `index`, `positions` …",
}
FIELDS = dict(Name="id", arg="arg", Attribute="attr", alias="asname", FunctionDef="name", ClassDef="name")
FOLDERS = ("csebench", "methods", "evaluators", "benchmarks")
FILES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts]


def test_names_say_what_they_hold():
    vague = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, FIELDS.get(type(node).__name__, ""), None)
            if name in BETTER:
                vague.append(f"{path.relative_to(ROOT)}:{node.lineno}: `{name}`: name {BETTER[name]}")
    assert len(FILES) > 100 and not vague, "\n".join(vague)
