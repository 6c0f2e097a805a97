"""Methods, components and evaluators, found by file name and read without importing them."""

from __future__ import annotations

import ast
import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from csebench import ROOT
from csebench.base.caches import cached
from csebench.base.errors import BadInput, explain, field_names, unknown
from csebench.base.files import read_text
from csebench.plan.schema import Declaration, EvaluatorDeclaration, Panel, Value

METHODS = ROOT / "methods"
COMPONENTS = METHODS / "components"
EVALUATORS = ROOT / "evaluators"


def names(folder: Path) -> list[str]:
    return sorted(files(folder))


def files(folder: Path) -> dict[str, Path]:
    """Every `name.py` in a folder; `_template.py` and `__init__.py` are not methods.

    An evaluator goes by the name that it declares: retrieval.py is `beir`.
    """
    there = (e for e in os.scandir(folder) if e.name.endswith(".py") and not e.name.startswith("_"))
    return _files(folder, tuple(sorted((e.name, e.stat().st_mtime_ns) for e in there)))


@cached
def _files(folder: Path, listed: tuple[tuple[str, int], ...]) -> dict[str, Path]:
    paths = {}
    for file, modified in listed:
        path = folder / file
        name = _declared_name(path, modified) if folder == EVALUATORS else path.stem
        if name in paths:
            raise BadInput(f"{paths[name]} and {path.name}: both declare the name {name!r}; give one another.")
        paths[name] = path
    return paths


@cached
def _declared_name(path: Path, _modified: int) -> str:
    try:
        return read_literal(path, "DECLARATION")["name"]
    except (BadInput, LookupError, TypeError):
        return path.stem


def read_literal(path: Path, variable: str):
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


@cached
def with_imports(path: Path) -> list[Path]:
    """A file, and the files of methods/ and evaluators/ that it imports from, directly or through one another."""
    files, waiting = [], [path]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.append(file)
            waiting += sorted(_imported(file))
    return files


def _imported(path: Path) -> set[Path]:
    found = set()
    for node in ast.walk(ast.parse(read_text(path))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{name}" for name in names)]
        folders = tuple(f"{folder.name}." for folder in (METHODS, EVALUATORS))
        candidates = (ROOT / (name.replace(".", "/") + ".py") for name in names if name.startswith(folders))
        found |= {candidate for candidate in candidates if candidate.is_file()}
    return found


def schema(folder: Path) -> type[Declaration] | type[EvaluatorDeclaration]:
    """What the declarations in a folder must fit."""
    return EvaluatorDeclaration if folder.name == EVALUATORS.name else Declaration


def check_name(name: str, folder: Path, where: str = "") -> None:
    """Raises BadInput, with `where` in its message, if there is no such method, component or evaluator."""
    if name not in names(folder):
        raise unknown(
            {METHODS: "method", COMPONENTS: "component", EVALUATORS: "evaluator"}[folder], name, names(folder), where
        )


@cached
def declaration(name: str, folder: Path = METHODS) -> Declaration | EvaluatorDeclaration:
    """The checked declaration of a method, a component or an evaluator, by the folder it is in."""
    check_name(name, folder)
    model = schema(folder)
    path = files(folder)[name]
    where = str(path.relative_to(ROOT))
    try:
        declared = model.model_validate(read_literal(path, "DECLARATION"))
        if model is Declaration:
            declared.hyperparameters()
    except ValidationError as e:
        raise explain(e, where, field_names(model)) from None
    if declared.name != name:
        raise BadInput(f"{where}: name: is {declared.name!r} but the file is {name}.py; make them agree.")
    return declared


def load(name: str, folder: Path = METHODS):
    """The class (of an evaluator, the function) behind a declaration: imports torch, so only workers call it."""
    return getattr(module(name, folder), {METHODS: "Method", COMPONENTS: "Component", EVALUATORS: "evaluate"}[folder])


def module(name: str, folder: Path) -> ModuleType:
    """The file behind a declaration, imported."""
    declaration(name, folder)
    path = files(folder)[name].relative_to(ROOT).with_suffix("")
    return importlib.import_module(".".join(path.parts))


@cached
def panels() -> dict[str, tuple[str, Panel]]:
    """What evaluators draw, by kind: the evaluator's name and the panel.

    Raises:
        BadInput: two evaluators declare one kind.
    """
    by_kind = {}
    for name in names(EVALUATORS):
        for kind, panel in declaration(name, EVALUATORS).panels.items():
            if kind in by_kind:
                raise BadInput(f"evaluators {by_kind[kind][0]} and {name}: panels: both declare the kind {kind!r}.")
            by_kind[kind] = name, panel
    return by_kind


def load_drawing(kind: str) -> Callable[[Any, dict, Any], list[list]]:
    """The function `draw_KIND(figure, items, source)` of the evaluator that declares a panel."""
    name, _ = panels()[kind]
    return getattr(module(name, EVALUATORS), f"draw_{kind}")


@dataclass(frozen=True)
class Protocol:
    """An evaluator with its settings, as people write it: `sts`, `transfer:fasttest`, `beir:scifact:dot`."""

    text: str
    declaration: EvaluatorDeclaration
    params: dict[str, Value]

    @property
    def files(self) -> list[str]:
        """Patterns below the data root of what it reads."""
        patterns = self.declaration.files
        if isinstance(patterns, dict):
            patterns = patterns.get(self.params[self.declaration.takes], [])
        return [pattern.format(**self.params) for pattern in patterns]

    @property
    def fetched(self) -> str | None:
        """The file below the data root that is there once `csebench fetch` has the data."""
        pattern = self.declaration.fetched
        return pattern.format(**self.params) if pattern else None

    @property
    def file(self) -> str:
        """The evaluator's source file, below the project."""
        return str(files(EVALUATORS)[self.declaration.name].relative_to(ROOT))

    @property
    def tasks(self) -> list[str]:
        """What a column can show: `Avg.` of several tasks, or the one that the text names."""
        takes = self.declaration.takes
        return [self.params[takes]] if takes else self.declaration.tasks + ["Avg."] * self.declaration.average

    @property
    def metric(self) -> str:
        """What its cells show."""
        return self.declaration.metric or next(iter(self.declaration.best), "value")

    @property
    def key(self) -> str:
        """The text as part of a file's name."""
        return self.text.replace(":", ".")


@cached
def protocol(text: str, where: str = "") -> Protocol:
    """What stands behind the evaluator's name: first what it takes, then its variants.

    Raises:
        BadInput: no such evaluator or variant, or what it takes is not given.
    """
    name, *rest = text.split(":")
    check_name(name, EVALUATORS, where)
    declared = declaration(name, EVALUATORS)
    params, takes = dict(declared.params), declared.takes
    if takes is not None:
        if not rest or not rest[0]:
            raise BadInput(f"{where + ': ' if where else ''}{name}: needs a {takes}: {name}:NAME.")
        params[takes] = rest.pop(0)
        if not re.fullmatch(r"[\w-]+", params[takes]):
            raise BadInput(f"{text}: a {takes} is written with letters, digits, - and _ only.")
        if isinstance(declared.files, dict) and params[takes] not in declared.tasks:
            raise unknown(f"{takes} of {name}", params[takes], declared.tasks, where)
    for variant in rest:
        if variant not in declared.variants:
            raise unknown(f"variant of {name}", variant, declared.variants, where)
        params |= declared.variants[variant]
    return Protocol(text, declared, params)


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
