"""The version lock: which code the version of a unit stands for.

Code that changes a number bumps a version, or it is stated that it changes none. The file
`tests/version_lock.json` holds the version of every unit of the project and a hash of its code;
`python -m csebench.plan.versions` brings it up to date. The units are

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
from csebench.plan import registry
from csebench.plan.declarations import without_text
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, files, names, parse_python, read_literal
from csebench.plan.spec import TRAINER_VERSION, TRANSLATION_VERSION, Spec, digest

LOCK = ROOT / "tests" / "version_lock.json"
DECLARATION = "DECLARATION"
TRAINER = ("model", "train")  # rooms of csebench/
TRANSLATE = PACKAGE / "data" / "translate.py"  # has a version of its own, as replicates do
REPLICATES = PACKAGE / "score" / "replicates.py"


class _Arithmetic(ast.NodeTransformer):
    """Drops what cannot change a number: docstrings, types of arguments, what an error says, an evaluator's figures,
    and of the declaration what is for readers. Comments and layout are in no tree."""

    def __init__(self, declared: dict | None, draws: bool):
        self.declared, self.draws = declared, draws  # what counts of `DECLARATION`; whether `draw_…` make figures

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
    """The code of a file without what cannot change a number. The declaration of one that another unit, which has its
    own, imports counts only if its code reads it."""
    tree = parse_python(path)
    named = {type(node.ctx) for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == DECLARATION}
    counts = named and (not imported or ast.Load in named)
    declared = without_text(read_literal(path, DECLARATION)[0]) if counts else None
    return _plain(_Arithmetic(declared, draws=path.parent.name == EVALUATORS.name).visit(tree))


def _plain(node):
    """A syntax tree as nested lists. `ast.dump` also shows what is empty, of which later Pythons have more."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return [type(node).__name__, *([name, _plain(value)] for name, value in fields)]


def code_hash(path: Path, *others: Path) -> str:
    """Of a unit's file, and of those that it consists of besides."""
    return digest([normalised(path), *(normalised(other, imported=True) for other in others)], 16)


def units() -> dict[str, tuple[int, list[Path]]]:
    """Version and files of every unit, without methods, components and evaluators whose file is invalid."""
    rooms = [path for room in TRAINER for path in sorted((PACKAGE / room).rglob("[!.]*.py"))]
    trainer = {file for path in rooms for file in registry.with_imports(path, ("csebench.data.",))}
    units = {"trainer": (TRAINER_VERSION, sorted(trainer))}
    units["translate"] = (TRANSLATION_VERSION, [TRANSLATE])
    version, _ = read_literal(REPLICATES, "VERSION")
    units["replicates"] = (version, [REPLICATES, REPLICATES.with_name("score_types.py")])
    for folder in (METHODS, COMPONENTS, EVALUATORS):
        for name in names(folder):
            with contextlib.suppress(BadInput):
                version = registry.any_declaration(name, folder).version
                units[f"{folder}/{name}"] = (version, registry.with_imports(files(folder)[name]))
    return units


def current() -> dict[str, dict]:
    """Every unit's version and the hash of its code as they are now."""
    return {unit: {"version": version, "code": code_hash(*paths)} for unit, (version, paths) in units().items()}


def locked() -> dict[str, dict]:
    """Read the lock: the version of every unit and the hash of its code."""
    return read_json(LOCK, "Restore it: `git checkout` of this file.")


def changed_without_bump() -> list[str]:
    """List the units whose code is not what the lock has under their version."""
    old, new = locked(), current()
    return [u for u in new if u in old and old[u]["version"] == new[u]["version"] and old[u] != new[u]]


# ---------------------------------------------------------------- drafts


@cached
def draft_code(name: str, folder: Path) -> str | None:
    """Return the hash of the code of a method, component or evaluator that is a draft.

    Returns:
        None where the version stands for the code, because the lock has this code under it.
    """
    code = code_hash(*registry.with_imports(files(folder)[name]))
    version = registry.any_declaration(name, folder).version
    if locked().get(f"{folder}/{name}") == {"version": version, "code": code}:
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
    """What the provenance of a result states of its units: those whose code changed without a new version, if any."""
    changed = sorted({*units} & {*unversioned_code()})
    return {"unversioned_code": changed} if changed else {}


def units_of_run(spec: Spec) -> Iterator[str]:
    """The units that make the model of a run."""
    yield from ("trainer", f"{METHODS}/{spec.method}")
    yield from (f"{COMPONENTS}/{name}" for name in spec.components)
    if spec.back_translated:
        yield "translate"


def units_of_score(evaluator: str) -> Iterator[str]:
    """The units that score a model by an evaluator, named without its settings."""
    yield from ("trainer", "replicates", f"{EVALUATORS}/{evaluator}")


def main(arguments: list[str]) -> None:
    """Bring the lock up to date. Refuses a unit whose code changed and whose version did not, unless it is blessed."""
    blessed, now = arguments[arguments.index("--bless") + 1 :] if "--bless" in arguments else [], current()
    if strange := [unit for unit in blessed if unit not in now]:
        raise unknown("unit", strange[0], now, "--bless")
    changed = changed_without_bump() if LOCK.exists() else []
    if refused := [unit for unit in changed if unit not in blessed]:
        why = f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a number can change"
        raise BadInput(f"{why}; if none can: python -m csebench.plan.versions --bless UNIT …")
    write_json(LOCK, now)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(f"csebench.plan.versions: {error}", file=sys.stderr)
        sys.exit(2)
