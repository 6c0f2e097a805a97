"""The verb show: everything about one name."""

from __future__ import annotations

from tabulate import tabulate

from csebench.base.errors import unknown
from csebench.plan import catalog, grids, targets
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, any_declaration, names


def show_name(args):
    """Print everything with a name: miCSE is a method and a paper."""
    folders = [folder for folder in (METHODS, COMPONENTS, EVALUATORS) if args.name in names(folder)]
    for folder in folders:
        _show_declaration(any_declaration(args.name, folder))
    if args.name in catalog.paper_names():
        _show_paper(catalog.paper(args.name))
    elif not folders:
        known = [n for folder in (METHODS, COMPONENTS, EVALUATORS) for n in names(folder)]
        raise unknown("name", args.name, known + catalog.paper_names())


def _show_paper(paper):
    by_name = {name: grids.find_grid(paper.name, name) for name in targets.grid_names(paper.name)}
    rows = [[name, grid.title, len(grid.rows), rows_with_run(grid)] for name, grid in by_name.items()]
    print(f"\n{paper.title}\n{paper.reference}  {paper.url or ''}\n")
    print(tabulate(rows, ["", "title", "rows", "with a run"]))


def rows_with_run(grid) -> int:
    return sum(getattr(row, "run", None) is not None for row in grid.rows)


def _show_declaration(d):
    print(f"{d.name} (version {d.version}): {d.title}")
    if hasattr(d, "hyperparameters"):
        print(f"{d.paper}\n")
        typed = dict(d.hyperparameters())
        rows = [[k, v, d.params[k][1] if k in d.params else "the trainer's default"] for k, v in typed.items()]
        print(tabulate(rows, ["parameter", "value", "source"]))
    else:
        print(f"protocol {d.protocol}; tasks {', '.join(d.tasks)}; {d.source}")
        if d.params:
            print(f"settings: {d.params}")
    for name, params in d.variants.items():
        print(f"\nvariant {name}: {params}")
    for name, (reading, text) in getattr(d, "differences", {}).items():
        print(f"\n{reading} ({name}): {text}")
    print("".join(f"\ndeviation: {text}" for text in d.deviations))
