"""The verb show: everything about what a name means, which may be several things."""

import re
from collections.abc import Iterator
from typing import Any

from csebench.base.errors import BadInput, unknown
from csebench.base.project import snakemake
from csebench.base.terminal import counted, json_text, print_text, table_text
from csebench.cli import options
from csebench.cli.plan import tables_of_runs
from csebench.cli.status import read_state
from csebench.plan import grids, targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    adapter_names,
    any_declaration,
    protocol,
)
from csebench.plan.schema.declarations import Declaration, Variant
from csebench.plan.schema.paper import Row, SettingsTable

Shown = tuple[str, dict]  # for people, and as JSON


def show_name(args):
    """Print everything that a name means: micse is a method and a paper."""
    catalog.scale(args.scale)
    name, scale = args.name, targets.split_target(args.name, args.scale)[1]
    if args.row or args.column:
        if not (shown := [*cells(name, scale, args.row, args.column)]):
            raise BadInput(
                f"show: {name} has no such cell; `csebench show {name}` lists its rows and columns."
            )
    else:
        shown = [
            *declarations(name, scale),
            *papers(name),
            *matching_pages(name, scale),
            *matching_runs(name, scale),
        ]
        shown += claims(name, scale) if " " in name else []
    if not shown:
        hint = "`csebench methods`, `csebench evaluators` and `csebench papers` list names."
        raise unknown("name", name, options.described_names(), hint=hint)
    if args.json:
        print(json_text([content for _, content in shown]))
    else:
        scale = shown[0][1].get("scale", scale)  # that of a run
        print_text(f"Scale {scale}.\n" + "\n\n".join(text for text, _ in shown))


def declarations(name: str, scale: str) -> Iterator[Shown]:
    """A method, with its settings at a scale, a component, or an evaluator, also with settings,
    as `beir:scifact`."""
    for folder, kind in ((METHODS, "method"), (COMPONENTS, "component"), (EVALUATORS, "evaluator")):
        if name in adapter_names(folder):
            declared, here = any_declaration(name, folder), {}
            page = catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, scale
            if folder == METHODS and targets.grid_defect(*page) is None:
                specs = [
                    spec
                    for cell, *_ in grids.plan_grid(*page)
                    for spec in cell.specs[:1]
                    if spec.method == name
                ]
                here = {f"at scale {scale}": spec.settings for spec in specs}
            yield (
                declaration_text(declared, here),
                {"what": kind, **declared.model_dump(mode="json"), **here},
            )
    taker, colon, _ = name.partition(":")
    if colon and taker in adapter_names(EVALUATORS):
        wanted = protocol(name)
        text = (
            f"{name}: {wanted.declaration.title}\nsettings: {wanted.params}\ntasks:"
            f" {', '.join(wanted.tasks)}"
        )
        yield (
            text,
            {"what": "evaluator", "name": name, "settings": wanted.params, "tasks": wanted.tasks},
        )


def declaration_text(d, here: dict[str, dict]) -> str:
    parts = [f"{d.name} (version {d.version}): {d.title}"]
    if hasattr(d, "hyperparameters"):
        declared = dict(d.hyperparameters()).items()
        rows = [
            [key, value, *(of.get(key) for of in here.values()), source(d, key)]
            for key, value in declared
        ]
        space = tuning.search_space(d.name) if d.kind != "component" else d.search
        values = "; ".join(f"{key}: {', '.join(map(str, tried))}" for key, tried in space.items())
        parts[0] += f"\n{d.paper}"
        parts.append(table_text(["parameter", "value", *here, "source"], rows))
        parts.append(f"csebench tune tries {values or 'nothing of its own'}")
    else:
        parts[0] += f"\nprotocol {d.protocol}; tasks {', '.join(d.tasks)}; {d.source}"
        parts[0] += f"\nsettings: {d.params}" if d.params else ""
    for name, variant in d.variants.items():
        reading, difference, params = (
            variant if isinstance(variant, Variant) else (None, "", variant)
        )
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
    if name not in catalog.paper_files():
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


def matching_pages(name: str, scale: str) -> Iterator[Shown]:
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
                    rows.append(
                        [row.label, method, *(value and value.text for value in row.values)]
                    )
            lines = [f"{paper}/{key}: {grid.title}", grid.caption, "", table_text(head, rows)]
            lines += [
                "",
                (
                    f"Page: {page.path} ({snakemake(page.path)}). Claims: csebench claims"
                    f" {paper}/{key}"
                ),
            ]
            about = {
                "what": key.rstrip("0123456789"),
                "paper": paper,
                "name": key,
                "page": str(page.path),
            }
            yield "\n".join(lines), about | grid.model_dump()


def cells(name: str, scale: str, row: str | None, column: str | None) -> Iterator[Shown]:
    """What is behind the cells of a row, a column or both: values by seed and their runs, the
    printed value with its source, and others' runs. Rows may be named without their citation."""
    from csebench.report.csv_tables import cell_rows
    from csebench.report.numbers.cells import grid_view
    from csebench.report.pages.table import others_text
    from csebench.report.words.cells import elsewhere_text, reasons_of_cell
    from csebench.report.words.comparisons import short_label

    def is_meant(label: str | None, of: str) -> bool:
        return label in (None, of, short_label(of))

    for view in [
        grid_view(*grid, page.scale)
        for page in targets.parse_target(name, scale)
        for grid in page.grids()
    ]:
        for content, cell in zip(cell_rows(view), view.cells, strict=True):
            plan, others, theirs = cell.plan, cell.others, None
            if not (is_meant(row, plan.row.label) and is_meant(column, plan.column.label)):
                continue
            source = source_of_row(plan.row)
            known = {"ours": f"{cell.text}, {counted(len(cell.values), 'seed')}"}
            if cell.published:
                known["printed"] = (
                    f"{cell.published.text}, {counted(cell.published_seeds, 'seed')}, {source}"
                )
            if others:
                theirs = {"kind": others.kind, "sources": others.sources, "values": others.values}
                theirs |= others.summary._asdict()
                known["others"] = f"{others_text(cell)}; {others.kind}, {', '.join(others.sources)}"
            if cell.absent or plan.missing:
                known["missing"] = plan.missing or "; ".join(
                    [counted(cell.absent, "run"), *reasons_of_cell(cell)]
                )
            elif cell.elsewhere:
                known["not counted"] = elsewhere_text(cell)
            runs = {spec.seed: spec.run_id for spec in plan.specs}
            by_seed = [
                [seed, cell.number(value), runs.get(seed)] for seed, value in cell.values.items()
            ]
            parts = [f"{view.paper}/{view.name}, row {plan.row.label}, column {plan.column.label}"]
            parts += [table_text([], known.items()), table_text(["seed", "value", "run"], by_seed)]
            parts += [f"Computed from the runs {content['runs']}."] if cell.parts else []
            content |= {"what": "cell", "values": cell.values, "source": source, "others": theirs}
            yield "\n\n".join(parts), content


def source_of_row(row: Row) -> str:
    """How the authors obtained the printed values of a row: `copied from Gao et al. 2021`."""
    if row.source == "unknown":
        return "source not stated"
    if row.origin is not None:
        return f"{row.source} from {row.origin}"
    return row.source


def claims(words: str, scale: str) -> Iterator[Shown]:
    """The sentences of papers that hold some words, with the numbers behind their verdicts."""
    from csebench.report.csv_tables import claim_record
    from csebench.report.numbers.claims import judge_all

    for judged in judge_all(scale, catalog.paper_names()):
        if words not in judged.claims[0].quote:
            continue
        lines = [f"“{judged.claims[0].quote}”", f"{judged.paper}: {', '.join(judged.places)}"]
        for part in judged.rows:
            ours = "" if scale == catalog.DEFAULT_SCALE else f"; scale {scale}: {part.here}"
            lines.append(f"printed: {part.published.text}{ours}")
        yield "\n".join(lines), {"what": "claim", **claim_record(judged)}


def matching_runs(run_id: str, scale: str) -> Iterator[Shown]:
    """A run by its id: its state, what it is made from, and what shows it."""
    if not re.fullmatch(r"\w+-[0-9a-f]{10}", run_id):
        return
    scale = targets.scale_of_run(run_id, scale)
    spec = targets.run(run_id, scale)
    shown_in = [page for page in targets.pages(scale) if run_id in page.runs()]
    state, _ = read_state(run_id, run_id in targets.finished_runs(shown_in))
    about: dict[str, Any] = {
        "run": run_id,
        "scale": scale,
        "state": state,
        "folder": str(catalog.RUNS / run_id),
    }
    about["evaluators"] = sorted(targets.evaluators(scale)[run_id])
    about["shown in"] = tables_of_runs(scale)[run_id]
    rows = [
        [key, ", ".join(value) if isinstance(value, list) else value]
        for key, value in about.items()
    ]
    settings = spec.model_dump(exclude={"params"}) | spec.params
    text = f"{table_text([], rows)}\n\n{table_text(['setting', 'value'], settings.items())}"
    yield text, {"what": "run", **about, "spec": spec.model_dump(mode="json")}
