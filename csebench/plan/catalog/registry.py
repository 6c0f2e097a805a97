"""Methods, components and evaluators by file name; their declarations are read without importing
the files."""

import ast
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csebench.base.caches import cached
from csebench.base.errors import (
    BadInput,
    first_line,
    look_up,
    place,
    problem_of,
    unknown,
    validated,
)
from csebench.base.files import project_files, read_text, unprintable
from csebench.base.project import PACKAGE, find, folders, name_of
from csebench.base.yaml_lines import Lines
from csebench.plan.schema.declarations import Declaration, EvaluatorDeclaration, Panel, Value

METHODS = Path("methods")  # of the project, and of every folder that joins it
COMPONENTS = METHODS / "components"
EVALUATORS = Path("evaluators")


def files(folder: Path) -> dict[str, Path]:
    """The `.py` files of a folder by name, without those that begin with `_`."""
    return project_files(folder, "[!_]*.py")


def adapter_names(folder: Path) -> list[str]:
    """Names of the methods, components or evaluators in a folder."""
    return [*files(folder)]


def read_literal(path: Path, variable: str) -> tuple[Any, Lines]:
    """The value of a module-level literal, and where its keys are, read without running the file.
    Raises BadInput where it is none, is given twice, or has a key twice: Python would keep the last
    and say nothing.
    """
    statements = [node for node in parse_python(path).body if variable in changed_names(node)]
    if not statements or not isinstance(statements[0], ast.Assign):
        raise BadInput(
            f"{path}: no {variable} = {{...}} at the top of the file; `csebench new` writes one."
        )
    given = statements[0]
    if len(statements) > 1:
        line = statements[1].lineno
        raise BadInput(
            f"{path}: line {line}: {variable} is given in line {given.lineno}; change it there."
        )
    literal = given.value
    for part in ast.walk(literal):
        if (
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and (why := unprintable(part.value))
        ):
            raise BadInput(f"{path}: line {part.lineno}: {why}")
        if isinstance(part, ast.Dict):
            refuse_repeated_keys(part, path)
    lines = Lines(name_of(path))
    note_lines(literal, (), lines.numbers)
    try:
        return ast.literal_eval(literal), lines
    except (ValueError, TypeError, RecursionError):  # TypeError: a key that is a list
        raise BadInput(
            f"{path}: line {given.lineno}: {variable} must be a literal, without names."
        ) from None


def changed_names(node: ast.stmt) -> list[str]:
    """The names that a statement assigns, as a whole or in a part: `x = 1`, `x: int = 1`, `x |=
    y`, `x["key"] = 1`."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    else:
        return []
    return [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]


def refuse_repeated_keys(node: ast.Dict, path: Path) -> None:
    """Raises BadInput, with the lines of both, where a dict has equal keys."""
    line_of: dict[Any, int] = {}
    for key in node.keys:
        if not isinstance(key, ast.Constant):  # no literal, or a tuple
            continue
        if key.value in line_of:
            raise BadInput(
                f"{path}: line {key.lineno}: key {key.value!r} occurs twice, first in line"
                f" {line_of[key.value]}; keep one."
            )
        line_of[key.value] = key.lineno


def note_lines(node: ast.expr, place: tuple, numbers: dict[tuple, int]) -> None:
    """Note the lines of a literal, and of all that is in it, by the path of keys that leads
    there."""
    numbers[place], parts = node.lineno, []
    if isinstance(node, ast.Dict):
        parts = [
            (k.value, v)
            for k, v in zip(node.keys, node.values, strict=True)
            if isinstance(k, ast.Constant)
        ]
    elif isinstance(node, ast.List | ast.Tuple):
        parts = enumerate(node.elts)
    for key, part in parts:
        note_lines(part, (*place, key), numbers)


def parse_python(path: Path) -> ast.Module:
    """The syntax tree of a file. Raises BadInput where it is not valid Python."""
    try:
        return ast.parse(read_text(path))
    except SyntaxError as e:
        raise BadInput(f"{path}: line {e.lineno or 1}: not valid Python: {e.msg}.") from None
    except (RecursionError, MemoryError):  # with which Python's parser gives up
        raise BadInput(f"{path}: not valid Python: nested too deeply.") from None


@cached
def with_imports(path: Path, packages: tuple[str, ...] = ("methods.", "evaluators.")) -> list[Path]:
    """List a file and the files that it imports, directly or through one another.

    Followed are import statements of some packages of the project, and of any module in a folder
    that joins the project.
    """
    files, waiting = [], [path]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.append(file)
            waiting += imported_files(file, packages)
    return files


def imported_files(file: Path, packages: tuple[str, ...]) -> list[Path]:
    """List the files behind the import statements of a file, as `with_imports` follows them."""
    candidates: set[Path] = set()
    for name in imported_names(file):
        module = name.replace(".", "/")
        if name.startswith(packages):
            candidates |= {find(f"{module}.py"), PACKAGE.parent / f"{module}.py"}
        elif not name.startswith("csebench"):
            for folder in folders()[1:]:
                candidates |= {folder / f"{module}.py", folder / module / "__init__.py"}
    files = {}  # by where they really are: a linked file is one
    for candidate in sorted(candidates):
        if candidate.is_file():
            files.setdefault(candidate.resolve(), candidate)
    return [*files.values()]


def imported_names(file: Path) -> set[str]:
    """Collect the dotted names that a file imports, each with the packages above it."""
    names = set()
    for node in ast.walk(parse_python(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            if node.level:  # `from ._shared import x`: relative to the folder of the file
                above = Path(name_of(file)).parts[: -node.level]
                package = ".".join([*above, *filter(None, [node.module])])
            names |= {package, *(f"{package}.{alias.name}" for alias in node.names)}
    for name in [*names]:
        parts = name.split(".")
        names |= {".".join(parts[:end]) for end in range(1, len(parts))}
    return names


def base_method(path: Path) -> str | None:
    """The method whose class that of a method's file extends; None where that is the engine's."""
    bases = ["Method"]  # a class that is imported is its own base
    meant = {}  # what a name is, as `methods.simcse.Method`
    for node in parse_python(path).body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            meant |= {alias.asname or alias.name: prefix + alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef) and node.name == "Method":
            bases = [ast.unparse(base) for base in node.bases]
    for base in bases:
        first, dot, rest = base.partition(".")
        folder, _, name = (meant.get(first, first) + dot + rest).rpartition(".")[0].rpartition(".")
        if folder == METHODS.name and name != path.stem and name in adapter_names(METHODS):
            return name
    return None


def check_name(name: str, folder: Path, where: str = "") -> None:
    """Raises BadInput for an unknown method, component or evaluator; `where` (file: key) begins
    the message."""
    if name not in adapter_names(folder):
        kind = {METHODS: "method", COMPONENTS: "component", EVALUATORS: "evaluator"}[folder]
        verb = "evaluators" if folder == EVALUATORS else "methods"
        raise unknown(kind, name, adapter_names(folder), where, f"`csebench {verb}` lists all.")


def adapter_defect(text: str, folder: Path, where: str = "") -> str | None:
    """What is wrong with the file of a method, component or evaluator (as `beir:scifact`, too),
    or None."""
    name = text.partition(":")[0]
    check_name(name, folder, where)
    return problem_of(any_declaration, name, folder)


def declaration(name: str, folder: Path = METHODS) -> Declaration:
    """The checked declaration of a method or component."""
    return any_declaration(name, folder)


@cached
def valid_declarations(folder: Path) -> dict[str, Declaration]:
    """The declarations of methods or components by name, without those of invalid files."""
    return {
        name: declaration(name, folder)
        for name in adapter_names(folder)
        if adapter_defect(name, folder) is None
    }


@cached
def valid_evaluators() -> dict[str, EvaluatorDeclaration]:
    """The declarations of evaluators by name, without those of invalid files."""
    return {
        name: evaluator_declaration(name)
        for name in adapter_names(EVALUATORS)
        if adapter_defect(name, EVALUATORS) is None
    }


def evaluator_declaration(name: str) -> EvaluatorDeclaration:
    """The checked declaration of an evaluator."""
    return any_declaration(name, EVALUATORS)


@cached
def any_declaration(name: str, folder: Path) -> Any:
    """The checked declaration of a method or component (Declaration) or an evaluator
    (EvaluatorDeclaration)."""
    check_name(name, folder)
    model = EvaluatorDeclaration if folder.name == EVALUATORS.name else Declaration
    path = files(folder)[name]
    literal, lines = read_literal(path, "DECLARATION")
    if folder == METHODS and isinstance(literal, dict) and (base := base_method(path)):
        literal = {"kind": declaration(base).kind} | literal
    declared = validated(model, literal, lines.file, lines.locate, context=declaration)
    if isinstance(declared, Declaration):  # its own values must fit, too
        validated(
            declared.hyperparameters, {}, lines.file, lambda place: lines.locate(("params", *place))
        )
    if declared.name != name:
        where, _ = lines.locate(("name",))
        raise BadInput(
            f"{where}: name: is {declared.name!r} but the file is {name}.py; make them agree."
        )
    return declared


def load(name: str, folder: Path = METHODS, attribute: str = ""):
    """A method's or component's class, an evaluator's function, or another attribute of the
    file; imports torch."""
    any_declaration(name, folder)
    # what files share: two of one name are refused
    project_files(folder, "_[!_]*.py", ["_template"])
    package: Any = importlib.import_module(".".join(folder.parts))
    package.__path__.extend(
        str(base / folder) for base in folders()[1:] if str(base / folder) not in package.__path__
    )
    wanted = (
        attribute or {METHODS: "Method", COMPONENTS: "Component", EVALUATORS: "evaluate"}[folder]
    )
    try:
        module = importlib.import_module(f"{package.__name__}.{name}")
    except Exception as error:
        raise BadInput(f"{place(error)}: {type(error).__name__}: {first_line(error)}.") from error
    if not hasattr(module, wanted):
        raise BadInput(f"{name_of(files(folder)[name])}: defines no {wanted!r}.")
    return getattr(module, wanted)


def tasks_of(text: str) -> list[str]:
    """The tasks that the average of an evaluator is over; none where its file is broken."""
    declared = valid_evaluators().get(text.partition(":")[0])
    return declared.tasks if declared else []


@cached
def panels() -> dict[str, list[str]]:
    """The evaluators that draw a kind of figure, by the kind; of valid files."""
    by_kind: dict[str, list[str]] = {}
    for name, declared in valid_evaluators().items():
        for kind in declared.panels:
            by_kind.setdefault(kind, []).append(name)
    return by_kind


def load_drawing(kind: str) -> tuple[Panel, Callable[[Any, dict, Any], list[list]]]:
    """A panel, and the function `draw_KIND(figure, items, source)` of the evaluator that
    declares it."""
    name = panels()[kind][0]
    return evaluator_declaration(name).panels[kind], load(name, EVALUATORS, f"draw_{kind}")


@dataclass(frozen=True)
class Protocol:
    """An evaluator with its settings, written as `sts`, `transfer:fasttest`, `beir:scifact:dot`."""

    text: str
    declaration: EvaluatorDeclaration
    params: dict[str, Value]

    @property
    def files(self) -> list[str]:
        """Patterns of the files that it reads, below the data root."""
        patterns = self.declaration.files
        if isinstance(patterns, dict):
            patterns = patterns.get(self.taken, [])
        return [pattern.format(**self.params) for pattern in patterns]

    @property
    def tasks(self) -> list[str]:
        """Tasks that a column can show, with `Avg.`; with a parameter in the text, the one task
        that it names."""
        if self.declaration.takes:
            return [self.taken]
        return self.declaration.tasks + ["Avg."] * self.declaration.average

    @property
    def taken(self) -> str:
        """The value of the parameter that the text names; empty for an evaluator that takes
        none."""
        return str(self.params.get(self.declaration.takes or "", ""))

    @property
    def metric(self) -> str:
        """The main metric, which cells show."""
        return self.declaration.metric or next(iter(self.declaration.best), "value")

    @property
    def key(self) -> str:
        """The text as part of a file name."""
        return self.text.replace(":", ".")


@cached
def protocol(text: str, where: str = "") -> Protocol:
    """Parse `NAME`, `NAME:PARAMETER` or `NAME:PARAMETER:VARIANT`."""
    name, *rest = text.split(":")
    check_name(name, EVALUATORS, where)
    declared = evaluator_declaration(name)
    params, takes = dict(declared.params), declared.takes
    if takes is not None:
        if not rest or not rest[0]:
            raise BadInput(f"{where + ': ' if where else ''}{name}: needs a {takes}: {name}:NAME.")
        params[takes] = taken = rest.pop(0)
        if not re.fullmatch(r"[\w-]+", taken):
            raise BadInput(f"{text}: the name of a {takes} may have letters, digits, - and _ only.")
        if isinstance(declared.files, dict) and taken not in declared.tasks:
            raise unknown(f"{takes} of {name}", taken, declared.tasks, where)
    for variant in rest:
        params |= look_up(f"variant of {name}", variant, declared.variants, where)
    return Protocol(text, declared, params)


def fill(declared: Declaration, values: dict, where: str) -> dict[str, Any]:
    """Hyper-parameters of a method or component, typed, checked and completed with the defaults of
    the declaration; without those that have no effect, and those at the value that runs do not
    state (`Unstated`).
    """
    filled = validated(declared.hyperparameters, values, where).model_dump()
    if not declared.is_trained and declared.kind != "component":
        filled = {
            key: value for key, value in filled.items() if key in declared.params or key == "pooler"
        }
    return {key: value for key, value in filled.items() if declared.unstated.get(key, ...) != value}
