"""The version lock: which code has which version.

Whoever changes code so that a result changes must increase the version of its unit. Whoever changes
code and no result must state so (`--bless`). `tests/version_lock.json` holds the version of every
unit of the project and a hash of its code. `python -m csebench.plan.code_versions` brings this file
up to date. The units are

- each method, component and evaluator, with what it imports from methods/ and evaluators/,
- the trainer: the rooms model/ and train/, with what they import from data/,
- back-translation and replicates.

Code that downloads data and models is in no unit, because files are checked by their hashes.

A method, component or evaluator is a *draft* if the lock does not have its code under its version.
Every file of a user's own folder is a draft, and so is every new or edited file of the project. The
hash of a draft's code belongs to the identity of its runs and scores (`draft_code`). An edit
therefore leads to new runs and scores, and those of the older code remain.
"""

import ast
import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from csebench.base.caches import cached
from csebench.base.errors import BadInput, unknown
from csebench.base.files import read_json, write_json
from csebench.base.project import PACKAGE, ROOT
from csebench.plan.catalog import registry
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    adapter_names,
    files,
    literal_of,
    parse_python,
    read_literal,
)
from csebench.plan.schema.declarations import without_text
from csebench.plan.schema.spec import TRAINER_VERSION, TRANSLATION_VERSION, Spec, digest

LOCK = ROOT / "tests" / "version_lock.json"
DECLARATION = "DECLARATION"
TRAINER = ("model", "train")  # rooms of csebench/
TRANSLATE = PACKAGE / "data" / "translate.py"
REPLICATES = PACKAGE / "score" / "replicates.py"


# ---------------------------------------------------------------- the hash of a unit


def code_hash(path: Path, *others: Path) -> str:
    """Hash the code of a unit: its file, and the other files that it imports."""
    imported = [normalised(other, imported=True) for other in others]
    return digest([normalised(path), *imported], 16)


def normalised(path: Path, imported: bool = False) -> list | str:
    """Return the code of a file without the parts that cannot change a number.

    Args:
        imported: whether the file is imported by a unit with a declaration of its own. The
            declaration of an imported file counts only if the code of the file reads it.
    """
    tree = parse_python(path)
    uses = set()  # how the code uses DECLARATION: it assigns it (ast.Store), reads it (ast.Load)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == DECLARATION:
            uses.add(type(node.ctx))
    declared = None
    if ast.Load in uses or (uses and not imported):
        literal, _ = literal_of(tree, path, DECLARATION)
        declared = without_text(literal)
    is_evaluator = path.parent.name == EVALUATORS.name
    return _plain(_Arithmetic(declared, draws=is_evaluator).visit(tree))


def _plain(node):
    """Turn a syntax tree into nested lists.

    Empty fields are left out, because later versions of Python have more of them.
    """
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    plain: list = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if value not in (None, []):
            plain.append([name, _plain(value)])
    return plain


class _Arithmetic(ast.NodeTransformer):
    """A pass over a syntax tree that drops the parts that cannot change a number.

    It drops docstrings, types of arguments, texts of errors, the figures of an evaluator, and the
    parts of a declaration that are for readers. A syntax tree has no comments and no layout anyway.
    """

    def __init__(self, declared: dict | None, draws: bool):
        self.declared = declared  # the part of DECLARATION that counts
        self.draws = draws  # whether functions named `draw_…` make figures

    def _without_docstring(self, node):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    visit_Module = visit_ClassDef = _without_docstring

    def visit_FunctionDef(self, node):
        if self.draws and node.name.startswith("draw_"):
            return None
        node.returns = None
        return self._without_docstring(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_Raise(self, node):
        if isinstance(node.exc, ast.Call):  # keep the class, without the text of the error
            return ast.Raise(exc=node.exc.func)
        return ast.Raise(exc=node.exc)

    def visit_Assign(self, node):
        if any(getattr(target, "id", None) == DECLARATION for target in node.targets):
            node.value = ast.Constant(repr(self.declared))
        return self.generic_visit(node)


# ---------------------------------------------------------------- units and their lock


@dataclass(frozen=True)
class Unit:
    """A unit as it is now: its version, and the files of its code, its own file first."""

    version: int
    files: list[Path]


def units() -> dict[str, Unit]:
    """Return every unit by its name.

    Methods, components and evaluators whose file is invalid are left out.
    """
    names = ["trainer", "translate", "replicates"]
    for folder in (METHODS, COMPONENTS, EVALUATORS):
        names += [f"{folder}/{name}" for name in adapter_names(folder)]
    found = {}
    for name in names:
        with contextlib.suppress(BadInput):  # an invalid file
            found[name] = read_unit(name)
    return found


@cached
def read_unit(name: str) -> Unit:
    """Return a unit.

    Raises:
        BadInput: no unit has this name, or its file is invalid.
    """
    if name == "trainer":
        return Unit(TRAINER_VERSION, files_of_trainer())
    if name == "translate":
        return Unit(TRANSLATION_VERSION, [TRANSLATE])
    if name == "replicates":
        version, _ = read_literal(REPLICATES, "VERSION")
        return Unit(version, [REPLICATES, REPLICATES.with_name("score_types.py")])
    folder, adapter = Path(name).parent, Path(name).name
    version = registry.any_declaration(adapter, folder).version
    return Unit(version, registry.with_imports(files(folder)[adapter]))


def files_of_trainer() -> list[Path]:
    """List the files of the rooms that train, with what they import from data/."""
    found: set[Path] = set()
    for room in TRAINER:
        for path in (PACKAGE / room).rglob("[!.]*.py"):
            found |= {*registry.with_imports(path, ("csebench.data.",))}
    return sorted(found)


def current() -> dict[str, dict]:
    """State the version of every unit and the hash of its code, as they are now."""
    state = {}
    for name, unit_now in units().items():
        state[name] = {"version": unit_now.version, "code": code_hash(*unit_now.files)}
    return state


def read_lock() -> dict[str, dict]:
    """Read the lock: the version of every unit and the hash of its code."""
    return read_json(LOCK, "Restore it: `git checkout` of this file.")


def changed_without_bump() -> list[str]:
    """List the units whose code changed and whose version did not, compared with the lock."""
    lock = read_lock()
    return [name for name in units() if is_unversioned(name, lock)]


def is_unversioned(name: str, lock: dict[str, dict]) -> bool:
    """Whether the code of a unit changed and its version did not. A unit without a lock is new."""
    if name not in lock:
        return False
    locked, now = lock[name], read_unit(name)
    return locked["version"] == now.version and locked["code"] != code_hash(*now.files)


# ---------------------------------------------------------------- drafts


@cached
def draft_code(name: str, folder: Path) -> str | None:
    """Return the hash of the code of a method, component or evaluator, if it is a draft.

    Returns:
        None if it is no draft, because the lock has this code under its version.
    """
    code = code_hash(*registry.with_imports(files(folder)[name]))
    version = registry.any_declaration(name, folder).version
    if read_lock().get(f"{folder}/{name}") == {"version": version, "code": code}:
        return None
    return code


def draft_codes(method: str, components: Iterable[str]) -> dict[str, str]:
    """Return the hashes of the drafts among a method and components, by unit."""
    codes = {f"{METHODS}/{method}": draft_code(method, METHODS)}
    for name in components:
        codes[f"{COMPONENTS}/{name}"] = draft_code(name, COMPONENTS)
    return {unit: code for unit, code in codes.items() if code is not None}


# ---------------------------------------------------------------- marks


@functools.cache
def imported_unversioned(unit: str) -> bool:
    """Whether the code of a unit had changed without a new version when this process first asked.

    The answer is never forgotten, unlike those of `cached`: later edits are not in the code that
    runs.
    """
    return is_unversioned(unit, read_lock())


def mark(names: Iterable[str]) -> dict[str, list[str]]:
    """Make the entry of a result's provenance about units that changed without a new version.

    Call it when the work begins, because an edit during the work is not in the code that runs.

    Returns:
        {"unversioned_code": [unit, …]}, or an empty dict if no unit changed.
    """
    changed = sorted(unit for unit in {*names} if imported_unversioned(unit))
    if not changed:
        return {}
    return {"unversioned_code": changed}


def units_of_run(spec: Spec) -> Iterator[str]:
    """Name the units that make the model of a run."""
    yield "trainer"
    yield f"{METHODS}/{spec.method}"
    for name in spec.components:
        yield f"{COMPONENTS}/{name}"
    if spec.back_translated:
        yield "translate"


def units_of_score(evaluator: str, method: str | None = None) -> Iterator[str]:
    """Name the units that score a model.

    Args:
        evaluator: its name, without settings.
        method: name of the method that computes a part of the model, its map, or None.
    """
    yield "trainer"
    yield "replicates"
    yield f"{EVALUATORS}/{evaluator}"
    if method is not None:
        yield f"{METHODS}/{method}"


def main(arguments: list[str]) -> None:
    """Bring the lock up to date.

    Args:
        arguments: of the command line; `--bless` and units state that their edits change no number.

    Raises:
        BadInput: the code of a unit changed and its version did not, unless `--bless` names it.
    """
    now = current()
    blessed = []
    if "--bless" in arguments:
        blessed = arguments[arguments.index("--bless") + 1 :]
    for unit in blessed:
        if unit not in now:
            raise unknown("unit", unit, now, "--bless")
    changed = []
    if LOCK.exists():
        changed = changed_without_bump()
    refused = [unit for unit in changed if unit not in blessed]
    if refused:
        raise BadInput(
            f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a"
            " number can change; if none can: python -m csebench.plan.code_versions --bless UNIT …"
        )
    write_json(LOCK, now)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(f"csebench.plan.code_versions: {error}", file=sys.stderr)
        sys.exit(2)
