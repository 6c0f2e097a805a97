"""The version lock: code that changes a number bumps a version, or says that it changes none.

`tests/version_lock.json` holds, for every method, component, evaluator and for the trainer, its version and a
hash of its syntax tree, so that comments and layout do not count. `python -m csebench.versions` brings it up to
date; it refuses a unit whose code changed under an unchanged version, unless called with `--bless UNIT`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from pathlib import Path

from csebench import ROOT
from csebench.base.errors import BadInput
from csebench.plan.recipe import back_translation_facts
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, declaration, files, names
from csebench.plan.spec import TRAINER_VERSION

LOCK = ROOT / "tests" / "version_lock.json"
TRAINER = ["trainer", "method", "encoder", "embed", "losses", "data", "metrics", "mlm", "augment"]


def syntax_sha256(*paths: Path) -> str:
    """Hash of the code without comments, layout and docstrings."""
    digest = hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
                node.body = node.body[1:] or [ast.Pass()]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:16]


def with_parents(path: Path) -> list[Path]:
    """A file and the files of methods/ or evaluators/ that it imports from: what they change, it changes."""
    found = [path]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("methods.", "evaluators.")):
            found += with_parents(ROOT / (node.module.replace(".", "/") + ".py"))
    return found


def current() -> dict[str, dict]:
    """Every unit with its version and its code as they are now."""
    found = {"trainer": (TRAINER_VERSION, [ROOT / "csebench" / f"{f}.py" for f in TRAINER])}
    found["translate"] = (back_translation_facts("", "")["version"], [ROOT / "csebench" / "translate.py"])
    for folder in (METHODS, COMPONENTS, EVALUATORS):
        for name in names(folder):
            unit = f"{folder.relative_to(ROOT)}/{name}"
            found[unit] = (declaration(name, folder).version, with_parents(files(folder)[name]))
    return {unit: {"version": v, "syntax": syntax_sha256(*paths)} for unit, (v, paths) in found.items()}


def locked() -> dict[str, dict]:
    return json.loads(LOCK.read_text()) if LOCK.exists() else {}


def changed_without_bump() -> list[str]:
    """Units whose code is not what their version was locked with."""
    old, new = locked(), current()
    return [u for u in new if u in old and old[u]["version"] == new[u]["version"] and old[u] != new[u]]


def main(arguments: list[str]) -> None:
    blessed = set(arguments[arguments.index("--bless") + 1 :]) if "--bless" in arguments else set()
    refused = [u for u in changed_without_bump() if u not in blessed]
    if refused:
        raise BadInput(
            f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a number can change;"
            " if none can: python -m csebench.versions --bless UNIT …"
        )
    LOCK.write_text(json.dumps(current(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as e:
        sys.exit(str(e))
