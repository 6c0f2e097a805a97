"""The rooms of csebench/: who may import whom, derived from the source. A room imports only from
rooms before it."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

from csebench.base.project import ROOT
from csebench.plan import page_records
from csebench.plan.catalog.registry import panels

ROOMS = ("base", "plan", "data", "model", "train", "score", "report")
# modules that stand above all rooms
TOP = ("study", "api", "cli", "__main__")
ORDER = ["__init__", *ROOMS, *TOP]
ADAPTERS = ("methods", "evaluators")
HEAVY = ("torch", "transformers", "mteb", "beir")
LIGHT_ROOMS = ("plan", "report")  # that never import them


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path):
    """Dotted names that a file imports anywhere, `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(name):
    """Of a dotted name in csebench/; of another one its first part."""
    return name.removeprefix("csebench.").split(".")[0]


MODULES = {name_of(path): path for path in sorted((ROOT / "csebench").rglob("*.py"))}
IMPORTED = {module: [*imports(path)] for module, path in MODULES.items()}
GRAPH = {
    m: {t for n in names for t in (n, n.rpartition(".")[0]) if t in MODULES}
    for m, names in IMPORTED.items()
}


def test_every_module_is_in_a_room_and_imports_from_no_later_one_nor_in_a_circle():
    assert {room(m) for m in MODULES} <= {*ORDER}, (
        "put each module into one of ROOMS, or name it in TOP"
    )
    assert not [
        (m, t) for m in GRAPH for t in GRAPH[m] if ORDER.index(room(t)) > ORDER.index(room(m))
    ]
    TopologicalSorter(GRAPH).prepare()  # raises CycleError, which names the modules


def test_no_room_imports_adapters_and_no_light_one_what_is_heavy():
    """Written anywhere in the room, also inside of a function."""
    forbidden = {m: (*ADAPTERS, *(HEAVY if room(m) in LIGHT_ROOMS else ())) for m in MODULES}
    assert not [
        (m, n) for m, names in IMPORTED.items() for n in names if n.split(".")[0] in forbidden[m]
    ]


def test_numbers_of_the_report_import_no_words():
    """Values first; csebench/report/words/ makes sentences of them."""
    numbers = [m for m in MODULES if m.startswith("csebench.report.numbers.")]
    assert numbers
    assert not [
        (m, n) for m in numbers for n in IMPORTED[m] if n.startswith("csebench.report.words")
    ]


def loaded_by(modules):
    """Names of all modules that a new process has once it has imported these."""
    code = (
        f"import sys; [__import__(m.removesuffix('.__init__')) for m in {modules}];"
        " print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.split()


def test_planning_reporting_and_drawing_load_nothing_heavy():
    """Nor by way of what they import from other rooms: pages and figures are made where torch is
    not installed."""
    light = [m for m in MODULES if room(m) in (*LIGHT_ROOMS, "study", "cli")]
    assert not {*HEAVY} & {
        *loaded_by([*light, *(f"evaluators.{name}" for (name,) in panels().values())])
    }


def test_pages_are_rebuilt_for_every_room_that_writes_them():
    """csebench/plan/page_records.py: PAGE_ROOMS names what csebench/report/ loads."""
    loaded = loaded_by([m for m in MODULES if room(m) == "report"])
    assert {room(m) for m in loaded if m.startswith("csebench.")} == {*page_records.PAGE_ROOMS}


VERBS = {  # modules whose functions are named as the commands that people type
    "csebench.api",
    "csebench.cli.inspect",
    "csebench.cli.new",
    "csebench.cli.plan",
    "csebench.cli.report",
    "csebench.cli.run",
    "csebench.cli.show",
    "csebench.cli.status",
}


def public_names(path):
    """Names that a module defines for others; a type variable is nothing of its own."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign) and "TypeVar" not in ast.dump(node.value):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            names = [node.target.id]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_") and name != "main")


def test_a_public_name_means_one_thing():
    """But for verbs, which do what a function of the same name computes."""
    defined = {}
    for module, path in MODULES.items():
        if module not in VERBS:
            for name in public_names(path):
                defined.setdefault(name, []).append(module)
    assert not {name: modules for name, modules in defined.items() if len(modules) > 1}
