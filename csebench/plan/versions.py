"""The version lock: code that changes a number bumps a version, or it is stated that it changes none.

`tests/version_lock.json`, which `python -m csebench.plan.versions` brings up to date, holds the version of every unit
and a hash of its code. Units: each method, component and evaluator with what it imports from methods/ and evaluators/;
the trainer, which is rooms of csebench/ with what they import from data/; back-translation; replicates. What brings
data and models is in none, as files are checked by their hashes."""

import ast
import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from csebench.base.errors import BadInput, unknown
from csebench.base.files import parse_json, read_json, write_json
from csebench.base.project import PACKAGE, ROOT
from csebench.base.provenance import run_git
from csebench.plan import registry
from csebench.plan.declarations import without_text
from csebench.plan.recipe import back_translation_facts
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, files, names, parse_python, read_literal
from csebench.plan.spec import TRAINER_VERSION, Spec, digest

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
    units["translate"] = (back_translation_facts("", "")["version"], [TRANSLATE])
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
    """Every unit's version and hash in the lock; without drafts, which the lock of the last commit does not have."""
    if not LOCK.exists():
        return {}
    noted = read_json(LOCK, "Restore it: `git checkout` of this file.")
    committed = run_git("show", f"HEAD:./{LOCK.relative_to(ROOT)}") if LOCK.is_relative_to(ROOT) else None
    known = noted if committed is None else parse_json(committed, str(LOCK))
    return {unit: content for unit, content in noted.items() if unit in known}


def changed_without_bump() -> list[str]:
    """Units whose code is not what their version was locked with."""
    old, new = locked(), current()
    return [u for u in new if u in old and old[u]["version"] == new[u]["version"] and old[u] != new[u]]


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
    if refused := [unit for unit in changed_without_bump() if unit not in blessed]:
        why = f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a number can change"
        raise BadInput(f"{why}; if none can: python -m csebench.plan.versions --bless UNIT …")
    write_json(LOCK, now)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(f"csebench.plan.versions: {error}", file=sys.stderr)
        sys.exit(2)
