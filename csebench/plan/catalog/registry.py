"""Methods, components and evaluators, by the name of their file.

Their declarations are read from the syntax tree, so planning runs none of these files. `load`
alone imports a file, and torch with it. The schemas of declarations are in
csebench/plan/schema/declarations.py.
"""

import ast
import importlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping
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
from csebench.plan.schema.declarations import (
    Declaration,
    EvaluatorDeclaration,
    Hyperparameters,
    Panel,
    Value,
)

METHODS = Path("methods")  # of the project, and of every folder that joins it
COMPONENTS = METHODS / "components"
EVALUATORS = Path("evaluators")
# Python 3.11 counts the depth of trees in one place for all threads, and fails if two parse at once
_parsing = threading.Lock()


# ---------------------------------------------------------------- names


@cached
def files(folder: Path) -> dict[str, Path]:
    """Find the `.py` files of a folder by name, without those that begin with `_`."""
    return project_files(folder, "[!_]*.py")


def adapter_names(folder: Path) -> list[str]:
    """List the names of the methods, components or evaluators in a folder."""
    return [*files(folder)]


def distinct_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """List names, each once: of methods or evaluators, as a list or separated by commas."""
    names = given
    if isinstance(given, str):
        names = given.split(",")
    return tuple(dict.fromkeys(names))


def check_name(name: str, folder: Path, where: str = "") -> None:
    """Raise BadInput if there is no method, component or evaluator of a name.

    Args:
        where: file and key, with which the message begins.
    """
    if name in adapter_names(folder):
        return
    if folder == METHODS:
        kind, verb = "method", "methods"
    elif folder == COMPONENTS:
        kind, verb = "component", "methods"
    else:
        kind, verb = "evaluator", "evaluators"
    raise unknown(kind, name, adapter_names(folder), where, f"`csebench {verb}` lists all.")


# ---------------------------------------------------------------- declarations


def declaration(name: str, folder: Path = METHODS) -> Declaration:
    """Read and check the declaration of a method or component."""
    return any_declaration(name, folder)


def evaluator_declaration(name: str) -> EvaluatorDeclaration:
    """Read and check the declaration of an evaluator."""
    return any_declaration(name, EVALUATORS)


@cached
def any_declaration(name: str, folder: Path) -> Any:
    """Read and check a declaration.

    Returns:
        a Declaration for a method or component, an EvaluatorDeclaration for an evaluator.

    Raises:
        BadInput: there is no such file, or its declaration is not valid.
    """
    check_name(name, folder)
    path = files(folder)[name]
    literal, lines = read_literal(path, "DECLARATION")
    if folder == METHODS and isinstance(literal, dict) and "extends" in literal:
        where, _ = lines.locate(("extends",))
        base = base_method(name, literal["extends"], f"{where}: extends")
        literal = {"kind": base.kind} | literal

    model = EvaluatorDeclaration if folder.name == EVALUATORS.name else Declaration
    declared = validated(model, literal, lines.file, lines.locate, context=declaration)
    if isinstance(declared, Declaration):
        check_own_values(declared, lines)
    if declared.name != name:
        where, _ = lines.locate(("name",))
        raise BadInput(
            f"{where}: name: is {declared.name!r} but the file is {name}.py; make them agree."
        )
    return declared


def check_own_values(declared: Declaration, lines: Lines) -> None:
    """Raise BadInput if a declared default is not allowed for its parameter."""

    def locate(keys: tuple) -> tuple[str, tuple]:
        return lines.locate(("params", *keys))

    validated(declared.hyperparameters, {}, lines.file, locate)


@cached
def valid_declarations(folder: Path) -> dict[str, Declaration]:
    """Read the declarations of methods or components, by name. Invalid files are left out."""
    valid = [name for name in adapter_names(folder) if adapter_defect(name, folder) is None]
    return {name: declaration(name, folder) for name in valid}


@cached
def valid_evaluators() -> dict[str, EvaluatorDeclaration]:
    """Read the declarations of evaluators, by name. Invalid files are left out."""
    names = adapter_names(EVALUATORS)
    valid = [name for name in names if adapter_defect(name, EVALUATORS) is None]
    return {name: evaluator_declaration(name) for name in valid}


def adapter_defect(text: str, folder: Path, where: str = "") -> str | None:
    """Say what is wrong with the file of a method, component or evaluator. Return None if nothing.

    Args:
        text: its name; an evaluator may have settings, as in `beir:scifact`.
        where: file and key that name it, for messages.

    Raises:
        BadInput: there is no such file.
    """
    name = text.partition(":")[0]
    check_name(name, folder, where)
    return problem_of(any_declaration, name, folder)


def base_method(name: str, extends: Any, where: str) -> Declaration:
    """Read the declaration of the method that a method extends.

    Args:
        name: the method that extends.
        extends: the method that it names; any literal, because nothing is checked yet.

    Raises:
        BadInput: there is no such method, or it extends `name`, directly or through others.
    """
    # Refuse a circle before `declaration` reads the whole chain: it would never end.
    ancestor = extends
    while ancestor is not None:
        if ancestor == name:
            raise BadInput(f"{where}: {extends!r} is, or extends, {name} itself.")
        check_name(str(ancestor), METHODS, where)
        literal, _ = read_literal(files(METHODS)[ancestor], "DECLARATION")
        ancestor = literal.get("extends") if isinstance(literal, dict) else None
    return declaration(extends)


def fill(declared: Declaration, values: dict, where: str) -> dict[str, Any]:
    """Check hyper-parameters, and complete them with the defaults of a method or component.

    Hyper-parameters without an effect are left out. So are hyper-parameters at the value that runs
    do not state (see `Unstated`).

    Raises:
        BadInput: a parameter is unknown, or its value is not allowed.
    """
    filled = validated(declared.hyperparameters, values, where).model_dump()
    stated = {}
    for key, value in filled.items():
        is_unstated = key in declared.unstated and declared.unstated[key] == value
        if declared.has_effect(key) and not is_unstated:
            stated[key] = value
    return stated


def typed_params(name: str, params: Mapping[str, Value], folder: Path = METHODS) -> Hyperparameters:
    """Return the hyper-parameters of a method or component as one typed object.

    Args:
        params: as a spec states them. Others have their defaults in the object.
    """
    declared = declaration(name, folder)
    # A spec leaves out a parameter at the value of its mark `Unstated`, not at its default.
    return declared.hyperparameters.model_validate({**declared.unstated, **params})


# ---------------------------------------------------------------- evaluators with their settings


@dataclass(frozen=True)
class Protocol:
    """An evaluator with its settings, written as `sts`, `transfer:fasttest`, `beir:scifact:dot`."""

    text: str
    declaration: EvaluatorDeclaration
    params: dict[str, Value]

    @property
    def files(self) -> list[str]:
        """Patterns of the files below the data root that the evaluator reads."""
        patterns = self.declaration.files
        if isinstance(patterns, dict):
            patterns = patterns.get(self.taken, [])
        return [pattern.format(**self.params) for pattern in patterns]

    @property
    def tasks(self) -> list[str]:
        """Tasks that a column can show, including `Avg.` if the evaluator averages.

        An evaluator that takes a parameter has one task, with the name of the parameter's value.
        """
        if self.declaration.takes:
            return [self.taken]
        if self.declaration.average:
            return [*self.declaration.tasks, "Avg."]
        return [*self.declaration.tasks]

    @property
    def taken(self) -> str:
        """Value of the parameter that the text names; empty if the evaluator takes none."""
        return str(self.params.get(self.declaration.takes or "", ""))

    @property
    def metric(self) -> str:
        """The main metric, which cells show."""
        return self.declaration.metric or next(iter(self.declaration.best), "value")

    @property
    def key(self) -> str:
        """The text in a form that a file name can contain."""
        return self.text.replace(":", ".")


@cached
def protocol(text: str, where: str = "") -> Protocol:
    """Parse `NAME`, `NAME:PARAMETER` or `NAME:PARAMETER:VARIANT`.

    Args:
        where: file and key that name the evaluator, for messages.

    Raises:
        BadInput: the evaluator, its parameter or its variant does not exist.
    """
    name, *settings = text.split(":")
    check_name(name, EVALUATORS, where)
    declared = evaluator_declaration(name)
    params = dict(declared.params)
    variants = settings
    if declared.takes is not None:
        params[declared.takes] = checked_parameter(declared, text, where)
        variants = settings[1:]
    for variant in variants:
        params |= look_up(f"variant of {name}", variant, declared.variants, where)
    return Protocol(text, declared, params)


def checked_parameter(declared: EvaluatorDeclaration, text: str, where: str) -> str:
    """Read the parameter in the text of an evaluator that takes one, or raise BadInput."""
    name, takes = declared.name, declared.takes
    _, *settings = text.split(":")
    if not settings or not settings[0]:
        prefix = f"{where}: " if where else ""
        raise BadInput(f"{prefix}{name}: needs a {takes}: {name}:NAME.")
    taken = settings[0]
    if not re.fullmatch(r"[\w-]+", taken):
        raise BadInput(f"{text}: the name of a {takes} may have letters, digits, - and _ only.")
    if isinstance(declared.files, dict) and taken not in declared.tasks:
        raise unknown(f"{takes} of {name}", taken, declared.tasks, where)
    return taken


def tasks_of(text: str) -> list[str]:
    """List the tasks that an evaluator averages; none if its file is invalid."""
    name = text.partition(":")[0]
    declared = valid_evaluators().get(name)
    if declared is None:
        return []
    return declared.tasks


@cached
def panels() -> dict[str, list[str]]:
    """List the evaluators that draw a kind of figure, by the kind. Invalid files are left out."""
    by_kind: dict[str, list[str]] = {}
    for name, declared in valid_evaluators().items():
        for kind in declared.panels:
            by_kind.setdefault(kind, []).append(name)
    return by_kind


# ---------------------------------------------------------------- importing a file


def load(name: str, folder: Path = METHODS, attribute: str = ""):
    """Import the file of a method, component or evaluator, and return what it defines.

    Args:
        attribute: what to return; empty: the class of a method or component, or the function of an
            evaluator.

    Raises:
        BadInput: the file cannot be imported, or does not define it.
    """
    any_declaration(name, folder)
    # refuse two shared files (`_name.py`) with the same name
    project_files(folder, "_[!_]*.py", ["_template"])
    if not attribute:
        attribute = main_attribute(folder)

    package: Any = importlib.import_module(".".join(folder.parts))
    for joined_folder in folders()[1:]:
        path = str(joined_folder / folder)
        if path not in package.__path__:
            package.__path__.append(path)
    try:
        module = importlib.import_module(f"{package.__name__}.{name}")
    except Exception as error:
        raise BadInput(f"{place(error)}: {type(error).__name__}: {first_line(error)}.") from error
    file = name_of(files(folder)[name])
    if not hasattr(module, attribute):
        raise BadInput(f"{file}: defines no {attribute!r}.")
    loaded = getattr(module, attribute)
    if folder == METHODS:
        check_extends(loaded, declaration(name), file)
    return loaded


def check_extends(method_class: type, declared: Declaration, file: str) -> None:
    """Raise BadInput if a method's class extends other methods than its declaration says.

    The class must extend the class of the method that `extends` names. A class that extends methods
    of another kind than its own must declare `extends` or `kind`: otherwise it would silently have
    the default kind.
    """
    ancestors = set()  # names of the methods whose classes it extends
    for ancestor in method_class.__mro__:
        package, _, name = ancestor.__module__.rpartition(".")
        if package == METHODS.name and name != declared.name:
            ancestors.add(name)
    if declared.extends is not None and declared.extends not in ancestors:
        raise BadInput(f"{file}: extends: its class does not extend that of {declared.extends}.")
    if "kind" in declared.model_fields_set:  # stated, or taken from the method in `extends`
        return
    for name in sorted(ancestors):
        kind = declaration(name).kind
        if kind != declared.kind:
            raise BadInput(
                f"{file}: its class extends that of {name}, whose kind is {kind}; declare"
                f' "extends": "{name}".'
            )


def main_attribute(folder: Path) -> str:
    """Name what every file of a folder has to define."""
    if folder == METHODS:
        return "Method"
    if folder == COMPONENTS:
        return "Component"
    return "evaluate"


@dataclass(frozen=True)
class Drawing:
    """How an evaluator draws a kind of figure."""

    panel: Panel
    columns: Callable[[dict], dict]  # items: what the figure shows, arrays by name
    draw: Callable[[Any, dict, Any], None]  # figure, these columns, source


def load_drawing(kind: str) -> Drawing:
    """Import the functions `draw_KIND_columns` and `draw_KIND` of the evaluator that has them."""
    name = panels()[kind][0]
    panel = evaluator_declaration(name).panels[kind]
    columns = load(name, EVALUATORS, f"draw_{kind}_columns")
    return Drawing(panel, columns, load(name, EVALUATORS, f"draw_{kind}"))


# ---------------------------------------------------------------- reading a file without running it


@cached
def read_literal(path: Path, variable: str) -> tuple[Any, Lines]:
    """Read a literal that a file assigns to a variable at its top, without running the file.

    Returns:
        the value, and the lines of its keys. Several callers share both, so none may change them.

    Raises:
        BadInput: see `literal_of`, or the file is not valid Python.
    """
    return literal_of(parse_python(path), path, variable)


def literal_of(tree: ast.Module, path: Path, variable: str) -> tuple[Any, Lines]:
    """Find a literal that a parsed file assigns to a variable at its top.

    Args:
        path: of the file, for messages.

    Returns:
        the value, and the lines of its keys.

    Raises:
        BadInput: the file has no such literal, changes the variable a second time, or has a key
            twice. Python would keep the last one, and say nothing.
    """
    statements = [node for node in tree.body if variable in changed_names(node)]
    if not statements or not isinstance(statements[0], ast.Assign):
        raise BadInput(
            f"{path}: no {variable} = {{...}} at the top of the file; `csebench new` writes one."
        )
    assignment = statements[0]
    if len(statements) > 1:
        line = statements[1].lineno
        raise BadInput(
            f"{path}: line {line}: {variable} is given in line {assignment.lineno}; change it"
            " there."
        )
    check_literal(assignment.value, path)

    lines = Lines(name_of(path))
    note_lines(assignment.value, (), lines.numbers)
    try:
        return ast.literal_eval(assignment.value), lines
    except (ValueError, TypeError, RecursionError):  # TypeError: a key that is a list
        raise BadInput(
            f"{path}: line {assignment.lineno}: {variable} must be a literal, without names."
        ) from None


def changed_names(node: ast.stmt) -> list[str]:
    """List the variables that a statement changes, as a whole or in a part.

    Such statements are `x = 1`, `x: int = 1`, `x |= y` and `x["key"] = 1`.
    """
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    else:
        return []
    names = []
    for target in targets:
        names += [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
    return names


def check_literal(literal: ast.expr, path: Path) -> None:
    """Raise BadInput if a literal has a text that no page can print, or a key twice."""
    for part in ast.walk(literal):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            problem = unprintable(part.value)
            if problem is not None:
                raise BadInput(f"{path}: line {part.lineno}: {problem}")
        elif isinstance(part, ast.Dict):
            refuse_repeated_keys(part, path)


def refuse_repeated_keys(node: ast.Dict, path: Path) -> None:
    """Raise BadInput, with the lines of both, if a dict has two equal keys."""
    line_of: dict[Any, int] = {}
    for key in node.keys:
        if not isinstance(key, ast.Constant):  # a name, which literal_eval refuses, or a tuple
            continue
        if key.value in line_of:
            raise BadInput(
                f"{path}: line {key.lineno}: key {key.value!r} occurs twice, first in line"
                f" {line_of[key.value]}; keep one."
            )
        line_of[key.value] = key.lineno


def note_lines(node: ast.expr, keys: tuple, numbers: dict[tuple, int]) -> None:
    """Note the lines of a literal and of everything in it.

    Args:
        keys: the keys that lead to the literal.
        numbers: the line of each path of keys; filled here.
    """
    numbers[keys] = node.lineno
    if isinstance(node, ast.Dict):
        for key, part in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                note_lines(part, (*keys, key.value), numbers)
    elif isinstance(node, ast.List | ast.Tuple):
        for index, part in enumerate(node.elts):
            note_lines(part, (*keys, index), numbers)


def parse_python(path: Path) -> ast.Module:
    """Parse a file. Raise BadInput if it is not valid Python."""
    text = read_text(path)
    try:
        with _parsing:
            return ast.parse(text)
    except SyntaxError as e:
        raise BadInput(f"{path}: line {e.lineno or 1}: not valid Python: {e.msg}.") from None
    except (RecursionError, MemoryError):  # Python's parser raises both for deep nesting
        raise BadInput(f"{path}: not valid Python: nested too deeply.") from None


# ---------------------------------------------------------------- files that a file imports


@cached
def with_imports(path: Path, packages: tuple[str, ...] = ("methods.", "evaluators.")) -> list[Path]:
    """List a file and the files that it imports, directly or through one another.

    Imports of modules in a folder that joins the project are followed, too.

    Args:
        packages: the packages of the project into which imports are followed.
    """
    found: list[Path] = []
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.append(file)
            waiting += imported_files(file, packages)
    return found


def imported_files(file: Path, packages: tuple[str, ...]) -> list[Path]:
    """List the files that a file imports directly. See `with_imports`."""
    candidates: set[Path] = set()
    for name in imported_names(file):
        module = name.replace(".", "/")
        if name.startswith(packages):
            candidates |= {find(f"{module}.py"), PACKAGE.parent / f"{module}.py"}
        elif not name.startswith("csebench"):
            for folder in folders()[1:]:
                candidates |= {folder / f"{module}.py", folder / module / "__init__.py"}

    # by their real path, so that a file and a symbolic link to it count once
    real_files: dict[Path, Path] = {}
    for candidate in sorted(candidates):
        if candidate.is_file():
            real_files.setdefault(candidate.resolve(), candidate)
    return [*real_files.values()]


def imported_names(file: Path) -> set[str]:
    """Collect the dotted names that a file imports, each with the packages above it."""
    names: set[str] = set()
    for node in ast.walk(parse_python(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = imported_module(node, file)
            names.add(source)
            names |= {f"{source}.{alias.name}" for alias in node.names}

    with_packages = {*names}
    for name in names:
        parts = name.split(".")
        with_packages |= {".".join(parts[:end]) for end in range(1, len(parts))}
    return with_packages


def imported_module(node: ast.ImportFrom, file: Path) -> str:
    """Name the module or package that a statement `from … import …` in a file imports from."""
    if not node.level:
        return node.module or ""
    # `from ._shared import x` is relative to the folder of the file
    parts = [*Path(name_of(file)).parts[: -node.level]]
    if node.module:
        parts.append(node.module)
    return ".".join(parts)
