"""The verb show: everything about what a name means, which may be several things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from csebench.base.errors import unknown
from csebench.base.terminal import counted, json_text, print_text, table_text
from csebench.cli import options
from csebench.cli.status import read_state
from csebench.plan import catalog, grids, targets, tuning
from csebench.plan.declarations import Declaration, Variant
from csebench.plan.papers import SettingsTable
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, any_declaration, names, protocol

Shown = tuple[str, dict]  # for people, and as JSON


def show_name(args):
    """Print everything that a name means: micse is a method and a paper."""
    catalog.scale(args.scale)
    name, scale = args.name, args.scale
    if args.row or args.column:
        shown = [*cells(name, scale, args.row, args.column)]
    else:
        shown = [*declarations(name), *papers(name), *pages(name, scale), *runs(name, scale)]
    if not shown:
        hint = "`csebench methods`, `csebench evaluators` and `csebench papers` list names."
        raise unknown("name", name, options.described_names(), hint=hint)
    if args.json:
        print(json_text([content for _, content in shown]))
    else:
        print_text("\n\n".join([f"Scale {scale}.", *(text for text, _ in shown)]))


def declarations(name: str) -> Iterator[Shown]:
    """A method, component or evaluator; an evaluator also with its settings, as in `beir:scifact`."""
    for folder, kind in ((METHODS, "method"), (COMPONENTS, "component"), (EVALUATORS, "evaluator")):
        if name in names(folder):
            declared = any_declaration(name, folder)
            yield declaration_text(declared), {"what": kind, **declared.model_dump(mode="json")}
    taker, colon, _ = name.partition(":")
    if colon and taker in names(EVALUATORS):
        wanted = protocol(name)
        text = f"{name}: {wanted.declaration.title}\nsettings: {wanted.params}\ntasks: {', '.join(wanted.tasks)}"
        yield text, {"what": "evaluator", "name": name, "settings": wanted.params, "tasks": wanted.tasks}


def declaration_text(d) -> str:
    parts = [f"{d.name} (version {d.version}): {d.title}"]
    if hasattr(d, "hyperparameters"):
        rows = [[key, value, source(d, key)] for key, value in dict(d.hyperparameters()).items()]
        space = tuning.search_space(d.name) if d.kind != "component" and d.search else d.search
        values = "; ".join(f"{key}: {', '.join(map(str, tried))}" for key, tried in space.items())
        parts[0] += f"\n{d.paper}"
        parts.append(table_text(["parameter", "value", "source"], rows))
        parts.append(f"csebench tune tries {values or 'nothing: no `search` is declared'}")
    else:
        parts[0] += f"\nprotocol {d.protocol}; tasks {', '.join(d.tasks)}; {d.source}"
        parts[0] += f"\nsettings: {d.params}" if d.params else ""
    for name, variant in d.variants.items():
        reading, difference, params = variant if isinstance(variant, Variant) else (None, "", variant)
        parts.append(f"variant {name}{f', {reading}: {difference}' if reading else ''}: {params}")
    parts += ["\n".join(f"deviation: {text}" for text in d.deviations)] if d.deviations else []
    return "\n\n".join(parts)


def source(declared: Declaration, param: str) -> str:
    """Where the value of a hyper-parameter comes from; of the trainer's own, also what it is."""
    if param in declared.params:
        return declared.params[param][1]
    about = declared.hyperparameters.model_fields[param].description
    return f"the trainer's default{f': {about}' if about else ''}"


def papers(name: str) -> Iterator[Shown]:
    if name not in catalog.paper_names():
        return
    paper, rows = catalog.paper(name), []
    for key in targets.grid_names(name):
        grid = grids.find_grid(name, key)
        with_run = sum(getattr(row, "run", None) is not None for row in grid.rows)
        rows.append([f"{name}/{key}", grid.title, len(grid.rows), with_run])
    head = f"{paper.title}\n{paper.reference}  {paper.url or ''}"
    table = table_text(["target", "title", "rows", "with a run"], rows)
    count = f"{counted(len(paper.claims_by_quote()), 'claim')}: csebench claims {name}"
    yield f"{head}\n\n{table}\n\n{count}", {"what": "paper", **paper.model_dump()}


def pages(name: str, scale: str) -> Iterator[Shown]:
    """A table or figure with its published values, of every paper that has one of that name."""
    if not re.search(r"(^|/)(table|figure)\w+(\.\w+)?$", name):
        return
    for page in targets.parse_target(name, scale):
        for paper, key in page.grids():
            grid = grids.find_grid(paper, key)
            head = [targets.grid_label(key), *(column.label for column in grid.columns)]
            if isinstance(grid, SettingsTable):
                rows = [[row.label, *row.values] for row in grid.rows]
            else:
                head.insert(1, "method")
                rows = []
                for row in grid.rows:
                    method = row.run.method if row.run else ""
                    rows.append([row.label, method, *(value and value.text for value in row.values)])
            lines = [f"{paper}/{key}: {grid.title}", grid.caption, "", table_text(head, rows)]
            lines += ["", f"Page: {page.path} (snakemake -j4 {page.path}). Claims: csebench claims {paper}/{key}"]
            about = {"what": key.rstrip("0123456789"), "paper": paper, "name": key, "page": str(page.path)}
            yield "\n".join(lines), about | grid.model_dump()


def cells(name: str, scale: str, row: str | None, column: str | None) -> Iterator[Shown]:
    """What is behind the cells of a table or figure in a row, in a column, or in both: our values by seed and their
    runs, the printed value with its source, and others' runs. Rows may be named without their citation."""
    from csebench.report.cells import grid_view
    from csebench.report.csv_tables import cell_row, run_ids
    from csebench.report.pages.table import others_source
    from csebench.report.words import short_label

    views = [grid_view(*grid, page.scale) for page in targets.parse_target(name, scale) for grid in page.grids()]
    found = [(view, number, cell) for view in views for number, of in enumerate(view.rows, 1) for cell in of]
    for kind, label in (("row", row), ("column", column)):
        labels = [getattr(cell.plan, kind).label for _, _, cell in found]
        if label is not None and label not in labels:
            labels = [short_label(known) for known in labels]
        if label is not None and label not in labels:
            raise unknown(f"{kind} of {name}", label, labels)
        found = [cell for cell, known in zip(found, labels, strict=True) if label in (None, known)]
    for view, number, cell in found:
        known, others = cell_row(view, number, cell), cell.others
        source = " from ".join(filter(None, [cell.plan.row.source, cell.plan.row.origin]))
        about = {"ours": f"{cell.text}, {counted(len(cell.values), 'seed')}"}
        if cell.published:
            about["printed"] = f"{cell.published.text}, {counted(cell.published_seeds, 'seed')}, {source}"
        if cell.absent or cell.plan.missing:
            about["missing"] = cell.plan.missing or "; ".join([counted(cell.absent, "run"), *cell.reasons])
        theirs = {}
        if others:
            summary = {"n": others.summary.n, "mean": others.summary.mean, "std": others.summary.std}
            theirs = {"kind": others.kind, **summary, "sources": others.sources, "differs": others.differs}
            std = "" if others.summary.std is None else f" ± {cell.number(others.summary.std)}"
            about["others"] = f"{cell.number(others.summary.mean)}{std}, {others_source(others)}"
        by_seed = {spec.seed: spec.run_id for spec in cell.plan.specs}
        rows = [[seed, cell.number(value), by_seed.get(seed)] for seed, value in cell.values.items()]
        head = f"{view.paper}/{view.name}, row {known['row']}, column {known['column']}"
        parts = [head, table_text([], about.items()), table_text(["seed", "value", "run"], rows) if rows else ""]
        if cell.parts:
            parts.append(f"Made from the runs {', '.join(run_ids(cell, scale))}.")
        content = {"what": "cell", **known, "values": cell.values, "source": source, "others": theirs or None}
        yield "\n\n".join(filter(None, parts)), content


def runs(run_id: str, scale: str) -> Iterator[Shown]:
    """A run by its id: its state, what it is made from, and what shows it."""
    if not re.fullmatch(r"\w+-[0-9a-f]{10}", run_id):
        return
    scale = targets.scale_of_run(run_id, scale)
    spec = targets.run(run_id, scale)
    shown_in = [page for page in targets.pages(scale) if run_id in page.runs()]
    state, _ = read_state(run_id, run_id in targets.finished_runs(shown_in))
    grids_of_papers = [grid for page in shown_in if len(page.papers) == 1 for grid in page.grids()]
    about: dict[str, Any] = {"run": run_id, "scale": scale, "state": state, "folder": str(catalog.RUNS / run_id)}
    about["evaluators"] = sorted(targets.evaluators(scale)[run_id])
    about["shown in"] = list(dict.fromkeys(targets.target_name(*grid) for grid in grids_of_papers))
    rows = [[key, ", ".join(value) if isinstance(value, list) else value] for key, value in about.items()]
    settings = spec.model_dump(exclude={"params"}) | spec.params
    text = f"{table_text([], rows)}\n\n{table_text(['setting', 'value'], settings.items())}"
    yield text, {"what": "run", **about, "spec": spec.model_dump(mode="json")}
