"""The rooms of csebench/: who may import whom, derived from the source. A room imports only from rooms before it."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from csebench.base.project import ROOT
from csebench.plan import made_from

ROOMS = ("base", "plan", "data", "model", "train", "score", "report")
TOP = ("run", "workflow", "versions", "api", "cli", "__main__")  # modules that stand above all rooms
ORDER = [*ROOMS, *TOP]
HEAVY = ("torch", "transformers", "mteb", "beir")
LIGHT_ROOMS = ("plan", "report")  # that never import them
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted((ROOT / "csebench").rglob("*.py"))
}


def imports(path):
    """Dotted names that a file imports anywhere, `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(name):
    """The module of csebench/ that a dotted name means: itself, or the one that defines it."""
    return next((m for m in (name, name.rpartition(".")[0]) if m in MODULES), None)


GRAPH = {module: {m for name in imports(path) if (m := module_of(name))} for module, path in MODULES.items()}


def room(module):
    return module.split(".")[1]


def test_every_module_is_in_a_room():
    strays = {m for m in MODULES if m != "csebench.__init__" and room(m) not in ORDER}
    assert not strays, f"{strays}: put each into one of the rooms {ROOMS}, or name it in TOP with its reason"


def test_no_room_imports_from_a_later_one():
    upward = [(m, t) for m, targets in GRAPH.items() for t in targets if ORDER.index(room(t)) > ORDER.index(room(m))]
    assert not upward


def test_no_cycle():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


# Lines of Python of each room, docstrings included; arrows between rooms, and floors, of the whole project. They may
# only fall: who makes a room smaller lowers its number here.
CEILINGS = {"base": 1532, "plan": 3459, "data": 677, "model": 1036, "train": 1431}
CEILINGS |= {"score": 1029, "report": 4684, "run": 206, "workflow": 255, "api": 156, "cli": 1800}
MOST_ARROWS = 55
MOST_FLOORS = 7


@pytest.mark.parametrize("name", CEILINGS)
def test_a_room_does_not_grow(name):
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for m, path in MODULES.items() if room(m) == name)
    assert lines <= CEILINGS[name]


def test_the_house_has_few_floors_and_arrows():
    """Of the project: rooms, modules at the top, and the folders that use them."""
    graph = {}
    for folder in ("csebench", "methods", "evaluators", "benchmarks", "encoders"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            user = parts[1] if folder == "csebench" else folder
            for name in imports(path):
                words = name.split(".")
                target = words[1] if words[0] == "csebench" and len(words) > 1 else words[0]
                known = {*ROOMS, *TOP} if words[0] == "csebench" else {"methods", "evaluators", "encoders"}
                if target in known and target != user:
                    graph.setdefault(user, set()).add(target)
    floors = {}
    for name in TopologicalSorter(graph).static_order():
        floors[name] = 1 + max((floors[target] for target in graph.get(name, ())), default=0)
    assert sum(map(len, graph.values())) <= MOST_ARROWS and max(floors.values()) <= MOST_FLOORS, floors


@pytest.mark.parametrize("light", LIGHT_ROOMS)
def test_no_heavy_import_in(light):
    """Written anywhere in the room, also inside of a function."""
    heavy = [
        (m, n) for m, path in MODULES.items() if room(m) == light for n in imports(path) if n.split(".")[0] in HEAVY
    ]
    assert not heavy


def test_planning_and_reporting_load_nothing_heavy():
    """Nor by way of what they import from other rooms."""
    names = [m.removesuffix(".__init__") for m in MODULES if room(m) in (*LIGHT_ROOMS, "workflow", "cli")]
    code = f"import sys; [__import__(n) for n in {names}]; print(*({{*{HEAVY}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_pages_are_rebuilt_for_every_room_that_writes_them():
    """csebench/plan/made_from.py: CODE names what csebench/report/ loads."""
    names = [m for m in MODULES if room(m) == "report"]
    code = f"import sys; [__import__(n.removesuffix('.__init__')) for n in {names}]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rooms = {name.split(".")[1] for name in loaded.split() if name.startswith("csebench.")}
    assert rooms == set(made_from.CODE)


@pytest.mark.parametrize("folder", ["methods", "evaluators"])
def test_adapters_import_the_engine_and_not_the_other_way(folder):
    assert not [(m, n) for m, path in MODULES.items() for n in imports(path) if n.split(".")[0] == folder]
