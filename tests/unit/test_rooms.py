"""The rooms of csebench/: a room imports only from rooms before it. The imports are read from the
source."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

from csebench.base.project import ROOT
from csebench.plan import page_records
from csebench.plan.catalog.registry import panels

ROOMS = ("base", "plan", "data", "model", "train", "score", "report")
# These modules stand above all rooms.
TOP = ("judging", "sharing", "study", "api", "cli", "__main__")
ORDER = ["__init__", *ROOMS, *TOP]
ADAPTERS = ("methods", "evaluators")
HEAVY = ("torch", "transformers", "mteb", "beir")
LIGHT_ROOMS = ("plan", "report")  # never import what is heavy


def name_of(path):
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path):
    """List the dotted names that a file imports anywhere, `from a import b` as `a.b`."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def room(name):
    """Return the room of a module in csebench/. For another module, return its first part."""
    return name.removeprefix("csebench.").split(".")[0]


MODULES = {name_of(path): path for path in sorted((ROOT / "csebench").rglob("*.py"))}
IMPORTED = {module: imports(path) for module, path in MODULES.items()}


def modules_of(*rooms):
    """List the modules of some rooms."""
    return [module for module in MODULES if room(module) in rooms]


def imported_modules(module):
    """List the modules of csebench/ that a module imports, itself or a name from them."""
    found = set()
    for name in IMPORTED[module]:
        for candidate in (name, name.rpartition(".")[0]):
            if candidate in MODULES:
                found.add(candidate)
    return found


def test_every_module_is_in_a_room():
    rooms = {room(module) for module in MODULES}
    assert rooms <= set(ORDER), "put each module into one of ROOMS, or name it in TOP"


def test_no_module_imports_from_a_later_room():
    for module in MODULES:
        for imported in imported_modules(module):
            in_order = ORDER.index(room(imported)) <= ORDER.index(room(module))
            assert in_order, f"{module} imports {imported}"


def test_no_modules_import_in_a_circle():
    graph = {module: imported_modules(module) for module in MODULES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_room_imports_adapters():
    assert_none_imports(MODULES, ADAPTERS)


def test_no_light_room_imports_what_is_heavy():
    assert_none_imports(modules_of(*LIGHT_ROOMS), HEAVY)


def assert_none_imports(modules, packages):
    """Check that no module imports from these packages anywhere, also inside of a function."""
    for module in modules:
        for name in IMPORTED[module]:
            assert name.split(".")[0] not in packages, f"{module} imports {name}"


def test_numbers_of_the_report_import_no_words():
    """Values come first, and csebench/report/words/ makes sentences of them."""
    numbers = [module for module in MODULES if module.startswith("csebench.report.numbers.")]
    assert numbers
    for module in numbers:
        for name in IMPORTED[module]:
            assert not name.startswith("csebench.report.words"), f"{module} imports {name}"


def loaded_by(modules):
    """List all modules that a new process has loaded once it has imported these."""
    names = [module.removesuffix(".__init__") for module in modules]
    code = f"import sys; [__import__(name) for name in {names}]; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.split()


def test_planning_reporting_and_drawing_load_nothing_heavy():
    """Nor do the modules that they import from other rooms. Pages and figures are made where torch
    is not installed."""
    light = modules_of(*LIGHT_ROOMS, "judging", "sharing", "study", "cli")
    drawing = [f"evaluators.{name}" for (name,) in panels().values()]
    assert not set(HEAVY) & set(loaded_by(light + drawing))


def test_pages_are_rebuilt_for_every_room_that_writes_them():
    """PAGE_ROOMS in csebench/plan/page_records.py names what csebench/report/ loads."""
    rooms = set()
    for module in loaded_by(modules_of("report")):
        if module.startswith("csebench."):
            rooms.add(room(module))
    assert rooms == set(page_records.PAGE_ROOMS)


VERBS = {  # modules whose functions are named as the commands that people type
    "csebench.api",
    "csebench.cli.export",
    "csebench.cli.inspect",
    "csebench.cli.new",
    "csebench.cli.plan",
    "csebench.cli.report",
    "csebench.cli.run",
    "csebench.cli.show",
    "csebench.cli.status",
}


def names_defined_by(node):
    """List the names that a statement of a module defines. A type variable means nothing of its
    own."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign() if "TypeVar" not in ast.dump(node.value):
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign():
            return [node.target.id]
    return []


def public_names(path):
    """List the names that a module defines for others."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for name in names_defined_by(node):
            if not name.startswith("_") and name != "main":
                names.append(name)
    return names


def test_a_public_name_means_one_thing():
    """A verb is an exception: it does what a function of the same name computes."""
    modules_by_name = {}
    for module, path in MODULES.items():
        if module not in VERBS:
            for name in public_names(path):
                modules_by_name.setdefault(name, []).append(module)
    for name, modules in modules_by_name.items():
        assert len(modules) == 1, f"{name} is defined by {modules}"
