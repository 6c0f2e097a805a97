"""Methods, components and evaluators, found by file name and read without importing them."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from csebench import ROOT
from csebench.errors import BadInput, explain, field_names, read_text, unknown
from csebench.schema import Declaration, EvaluatorDeclaration

METHODS = ROOT / "methods"
COMPONENTS = METHODS / "components"
EVALUATORS = ROOT / "evaluators"


def names(folder: Path) -> list[str]:
    """Every `name.py` in a folder; `_template.py` and `__init__.py` are not methods."""
    return sorted(p.stem for p in folder.glob("*.py") if not p.name.startswith("_"))


def literal(path: Path, variable: str):
    """The value of a module-level literal, read without running the file."""
    try:
        tree = ast.parse(read_text(path))
    except SyntaxError as e:
        raise BadInput(f"{path}: line {e.lineno}: not valid Python: {e.msg}.") from None
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", None) == variable for t in node.targets):
            try:
                return ast.literal_eval(node.value)
            except ValueError:
                raise BadInput(
                    f"{path}: line {node.lineno}: {variable} must be a literal (no calls or names)."
                ) from None
    raise BadInput(f"{path}: no {variable} = {{...}} at the top of the file; copy methods/_template.py.")


def check_name(name: str, folder: Path, where: str = "") -> None:
    """Raises BadInput, with `where` in its message, if there is no such method, component or evaluator."""
    if name not in names(folder):
        raise unknown(
            {METHODS: "method", COMPONENTS: "component", EVALUATORS: "evaluator"}[folder], name, names(folder), where
        )


@cache
def declaration(name: str, folder: Path = METHODS) -> Declaration | EvaluatorDeclaration:
    """The checked declaration of a method, a component or an evaluator, by the folder it is in."""
    check_name(name, folder)
    model = EvaluatorDeclaration if folder == EVALUATORS else Declaration
    path = folder / f"{name}.py"
    where = str(path.relative_to(ROOT))
    try:
        found = model.model_validate(literal(path, "DECLARATION"))
        if model is Declaration:
            found.hyperparameters()
    except ValidationError as e:
        raise explain(e, where, field_names(model)) from None
    if found.name != name:
        raise BadInput(f"{where}: name: is {found.name!r} but the file is {name}.py; make them agree.")
    return found


def load(name: str, folder: Path = METHODS):
    """The class (of an evaluator, the function) behind a declaration: imports torch, so only workers call it."""
    declaration(name, folder)
    module = importlib.import_module(".".join((folder / name).relative_to(ROOT).parts))
    return getattr(module, {METHODS: "Method", COMPONENTS: "Component", EVALUATORS: "evaluate"}[folder])


def fill(found: Declaration, values: dict, where: str) -> dict:
    """Hyper-parameters typed, checked and completed from the declaration.

    Raises:
        BadInput: an unknown parameter or a value of the wrong type, with the nearest valid name.
    """
    model = found.hyperparameters
    try:
        return model.model_validate(values).model_dump()
    except ValidationError as e:
        raise explain(e, where, model.model_fields) from None
