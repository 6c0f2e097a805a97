"""The version lock: which code the version of a unit stands for.

Code that changes a number bumps a version, or it is stated that it changes none. The file
`tests/version_lock.json` holds the version of every unit of the project and a hash of its code;
`python -m csebench.plan.code_versions` brings it up to date. The units are

- each method, component and evaluator, with what it imports from methods/ and evaluators/,
- the trainer: the rooms model/ and train/, with what they import from data/,
- back-translation and replicates.

Code that brings data and models is in no unit, because files are checked by their hashes.

A method, component or evaluator whose code the lock does not have under its version is a *draft*:
every file of a folder of one's own, a new file of the project, an edited one. A hash of its code
is then part of the identity of its runs and scores (`draft_code`). An edit makes new ones, and
what older code made stays what it is.
"""

import ast
import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
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
    parse_python,
    read_literal,
)
from csebench.plan.schema.declarations import without_text
from csebench.plan.schema.spec import TRAINER_VERSION, TRANSLATION_VERSION, Spec, digest

LOCK = ROOT / "tests" / "version_lock.json"
DECLARATION = "DECLARATION"
TRAINER = ("model", "train")  # rooms of csebench/
TRANSLATE = PACKAGE / "data" / "translate.py"  # has a version of its own, as replicates do
REPLICATES = PACKAGE / "score" / "replicates.py"


class _Arithmetic(ast.NodeTransformer):
    """Drop what cannot change a number from a syntax tree, which has no comments and no layout.

    These are docstrings, types of arguments, the text of an error, the figures of an evaluator, and
    the parts of a declaration that are for readers.
    """

    def __init__(self, declared: dict | None, draws: bool):
        self.declared = declared  # what counts of DECLARATION
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
        return ast.Raise(exc=node.exc.func if isinstance(node.exc, ast.Call) else node.exc)

    def visit_Assign(self, node):
        if any(getattr(target, "id", None) == DECLARATION for target in node.targets):
            node.value = ast.Constant(repr(self.declared))
        return self.generic_visit(node)


def normalised(path: Path, imported: bool = False) -> list | str:
    """Return the code of a file without what cannot change a number.

    Args:
        imported: whether a unit with a declaration of its own imports the file. The file's
            declaration then counts only if its code reads it.
    """
    tree, uses = parse_python(path), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == DECLARATION:
            uses.add(type(node.ctx))
    declared = None
    if ast.Load in uses or (uses and not imported):
        declared = without_text(read_literal(path, DECLARATION)[0])
    is_evaluator = path.parent.name == EVALUATORS.name
    return _plain(_Arithmetic(declared, draws=is_evaluator).visit(tree))


def _plain(node):
    """Turn a syntax tree into nested lists, without what is empty: later Pythons have more of
    that."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return [type(node).__name__, *([name, _plain(value)] for name, value in fields)]


def code_hash(path: Path, *others: Path) -> str:
    """Hash the code of a unit: its file, and the others that it imports."""
    imported = [normalised(other, imported=True) for other in others]
    return digest([normalised(path), *imported], 16)


def units() -> dict[str, tuple[int, list[Path]]]:
    """List the version and the files of every unit.

    Methods, components and evaluators whose file is invalid are left out.
    """
    trainer = set()
    for room in TRAINER:
        for path in (PACKAGE / room).rglob("[!.]*.py"):
            trainer |= {*registry.with_imports(path, ("csebench.data.",))}
    units = {"trainer": (TRAINER_VERSION, sorted(trainer))}
    units["translate"] = (TRANSLATION_VERSION, [TRANSLATE])
    version, _ = read_literal(REPLICATES, "VERSION")
    units["replicates"] = (version, [REPLICATES, REPLICATES.with_name("score_types.py")])
    for folder in (METHODS, COMPONENTS, EVALUATORS):
        for name in adapter_names(folder):
            with contextlib.suppress(BadInput):
                version = registry.any_declaration(name, folder).version
                units[f"{folder}/{name}"] = (version, registry.with_imports(files(folder)[name]))
    return units


def current() -> dict[str, dict]:
    """State the version of every unit and the hash of its code, as they are now."""
    return {
        unit: {"version": version, "code": code_hash(*paths)}
        for unit, (version, paths) in units().items()
    }


def read_lock() -> dict[str, dict]:
    """Read the lock: the version of every unit and the hash of its code."""
    return read_json(LOCK, "Restore it: `git checkout` of this file.")


def changed_without_bump() -> list[str]:
    """List the units whose code is not what the lock has under their version."""
    noted, changed = read_lock(), []
    for unit, now in current().items():
        before = noted.get(unit)
        if before and before["version"] == now["version"] and before["code"] != now["code"]:
            changed.append(unit)
    return changed


# ---------------------------------------------------------------- drafts


@cached
def draft_code(name: str, folder: Path) -> str | None:
    """Return the hash of the code of a method, component or evaluator that is a draft.

    Returns:
        None where the version stands for the code, because the lock has this code under it.
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


# not `cached`: a process imports its code once, and later edits are not what it runs
unversioned_code = functools.cache(changed_without_bump)


def mark(units: Iterable[str]) -> dict[str, list[str]]:
    """State which units of a result have code that changed without a new version, for its
    provenance.

    Returns:
        nothing where there are none.
    """
    changed = sorted({*units} & {*unversioned_code()})
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


def units_of_score(evaluator: str) -> Iterator[str]:
    """Name the units that score a model by an evaluator, given without its settings."""
    yield "trainer"
    yield "replicates"
    yield f"{EVALUATORS}/{evaluator}"


def main(arguments: list[str]) -> None:
    """Bring the lock up to date.

    Raises:
        BadInput: the code of a unit changed and its version did not, unless `--bless` names it.
    """
    now, blessed = current(), []
    if "--bless" in arguments:
        blessed = arguments[arguments.index("--bless") + 1 :]
    for unit in blessed:
        if unit not in now:
            raise unknown("unit", unit, now, "--bless")
    changed = changed_without_bump() if LOCK.exists() else []
    if refused := [unit for unit in changed if unit not in blessed]:
        why = (
            f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a"
            " number can change"
        )
        raise BadInput(f"{why}; if none can: python -m csebench.plan.code_versions --bless UNIT …")
    write_json(LOCK, now)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(f"csebench.plan.code_versions: {error}", file=sys.stderr)
        sys.exit(2)
