"""The verb `show`: describe everything that a name means.

A name may mean several things: `micse` is a method and a paper. Each function below describes one
kind of thing, for people and as JSON, and yields nothing for names of other kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csebench.base.errors import BadInput, problem_of, unknown
from csebench.base.project import snakemake
from csebench.base.terminal import NO_VALUE, counted, json_text, print_text, table_text
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
from csebench.plan.rows import short_label
from csebench.plan.schema.declarations import Declaration, EvaluatorDeclaration, Variant
from csebench.plan.schema.paper import Row, UnscoredTable

if TYPE_CHECKING:
    from csebench.report.numbers.cells import Cell, GridView


@dataclass(frozen=True)
class Description:
    """The description of one thing."""

    text: str  # for people
    content: dict  # as JSON
    depends_on_scale: bool = True  # whether a person has to know which scale it describes


def show_name(args):
    """Print everything that a name means, or what stands behind cells of a table."""
    catalog.scale(args.scale)
    name = args.name
    _, scale = targets.split_target(name, args.scale)
    if args.row or args.column:
        descriptions = list(cells(name, scale, args.row, args.column))
        if not descriptions:
            raise BadInput(
                f"show: {name} has no such cell; `csebench show {name}` lists its rows and columns."
            )
    else:
        descriptions = meanings(name, scale)
    if not descriptions:
        hint = "`csebench methods`, `csebench evaluators` and `csebench papers` list names."
        raise unknown("name", name, options.described_names(), hint=hint)
    if args.json:
        print(json_text([description.content for description in descriptions]))
        return
    scale = descriptions[0].content.get("scale", scale)  # a run may be of another scale
    text = "\n\n".join(description.text for description in descriptions)
    if any(description.depends_on_scale for description in descriptions):
        text = f"Scale {scale}.\n{text}"
    print_text(text)


def meanings(name: str, scale: str) -> list[Description]:
    """Describe everything that a name means. Several words are also searched in the claims."""
    descriptions = [
        *declarations(name, scale),
        *evaluators_with_parameter(name),
        *papers(name),
        *matching_pages(name, scale),
        *matching_runs(name, scale),
    ]
    if " " in name:
        descriptions += claims(name, scale)
    return descriptions


# ---------------------------------------------------------------- methods, components, evaluators


def declarations(name: str, scale: str) -> Iterator[Description]:
    """Describe the method (with its settings at a scale), component or evaluator of a name."""
    for folder in (METHODS, COMPONENTS, EVALUATORS):
        if name not in adapter_names(folder):
            continue
        declared = any_declaration(name, folder)
        content = {"what": folder.name.removesuffix("s"), **declared.model_dump(mode="json")}
        if folder == EVALUATORS:
            yield Description(evaluator_text(declared), content, depends_on_scale=False)
            continue
        columns: dict[str, dict] = {}
        if folder == METHODS:
            columns = settings_at_scale(name, scale)
        texts = [method_text(declared, columns), *origin_texts(name, folder, scale)]
        yield Description("\n\n".join(texts), content | columns)


def origin_texts(name: str, folder: Path, scale: str) -> list[str]:
    """Say how settings at a scale differ from declared ones, and where ours come from.

    Returns:
        a text with a sentence for the method, or for each method that has the component. Empty if
        there are no settings, or none can be taken from the searches of the scale.
    """
    from csebench.report.numbers.method_settings import (
        component_settings_in,
        hosts_of_component,
        method_settings,
    )
    from csebench.report.words.method_settings import settings_sentence

    if problem_of(tuning.tuned_settings, scale) is not None:
        return []
    if folder == METHODS:
        settings = method_settings(name, scale)
        return [settings_sentence(name, settings, scale)] if settings else []
    sentences = []
    for host in hosts_of_component(name, scale):
        settings = component_settings_in(name, host, scale)
        sentences.append(settings_sentence(host, settings, scale))
    return ["\n".join(sentences)] if sentences else []


def settings_at_scale(name: str, scale: str) -> dict[str, dict]:
    """Find the settings of a method at a scale, as a column of a table.

    Returns:
        The settings by the title of the column. Empty if the method cannot run at the scale.
    """
    side_by_side = (catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, scale)
    if targets.grid_defect(*side_by_side) is not None:
        return {}
    columns = {}
    for cell, *_ in grids.plan_grid(*side_by_side):  # the first cell of each row
        if cell.specs and cell.specs[0].method == name:
            columns[f"at scale {scale}"] = cell.specs[0].settings
    return columns


def method_text(declared: Declaration, columns: dict[str, dict]) -> str:
    """Describe a method or component.

    Args:
        columns: settings that are shown beside the declared ones, by title.
    """
    from csebench.report.numbers.row_settings import setting_text

    rows = []
    for key, value in dict(declared.hyperparameters()).items():
        if not declared.has_effect(key):
            continue
        values = [value, *(settings.get(key) for settings in columns.values())]
        texts = [NO_VALUE if value is None else setting_text(value) for value in values]
        rows.append([key, *texts, source_of_value(declared, key)])
    if declared.kind == "component":
        space = declared.search
    else:
        space = tuning.search_space(declared.name)
    tried = [f"{key}: {', '.join(map(str, values))}" for key, values in space.items()]
    searched = "; ".join(tried) or "nothing of its own"
    parts = [f"{title_line(declared)}\n{declared.paper}"]
    if rows:
        parts.append(table_text(["parameter", "value", *columns, "source"], rows))
    parts.append(f"csebench tune tries {searched}")
    return "\n\n".join([*parts, *variant_texts(declared)])


def evaluator_text(declared: EvaluatorDeclaration) -> str:
    """Describe an evaluator."""
    lines = [
        title_line(declared),
        f"protocol {declared.protocol}; tasks {', '.join(declared.tasks)}; {declared.source}",
    ]
    if declared.params:
        lines.append(f"settings: {declared.params}")
    return "\n\n".join(["\n".join(lines), *variant_texts(declared)])


def title_line(declared: Declaration | EvaluatorDeclaration) -> str:
    return f"{declared.name} (version {declared.version}): {declared.title}"


def variant_texts(declared: Declaration | EvaluatorDeclaration) -> list[str]:
    """Word each variant in a text, and all deviations from the paper in the last one."""
    texts = []
    for name, variant in declared.variants.items():
        text = f"variant {name}"
        params = variant
        if isinstance(variant, Variant):
            params = variant.params
            if variant.reading:
                text += f", {variant.reading}: {variant.difference}"
        texts.append(f"{text}: {params}")
    if declared.deviations:
        texts.append("\n".join(f"deviation: {text}" for text in declared.deviations))
    return texts


def source_of_value(declared: Declaration, param: str) -> str:
    """Say where the value of a hyper-parameter comes from.

    A hyper-parameter of the trainer is also explained.
    """
    if param in declared.params:
        _, source = declared.params[param]
        return source
    about = declared.hyperparameters.model_fields[param].description
    if not about:
        return "the trainer's default"
    return f"the trainer's default: {about}"


def evaluators_with_parameter(name: str) -> Iterator[Description]:
    """Describe an evaluator that is named with its parameter, as `beir:scifact`."""
    evaluator, colon, _ = name.partition(":")
    if not colon or evaluator not in adapter_names(EVALUATORS):
        return
    parsed = protocol(name)
    lines = [
        f"{name}: {parsed.declaration.title}",
        f"settings: {parsed.params}",
        f"tasks: {', '.join(parsed.tasks)}",
    ]
    content = {"what": "evaluator", "name": name}
    content |= {"settings": parsed.params, "tasks": parsed.tasks}
    yield Description("\n".join(lines), content, depends_on_scale=False)


# ---------------------------------------------------------------- papers, tables, cells


def papers(name: str) -> Iterator[Description]:
    """Describe a paper, with its tables and figures."""
    if name not in catalog.paper_files():
        return
    paper = catalog.paper(name)
    rows = []
    for key in targets.grid_names(name):
        grid = grids.find_grid(name, key)
        with_run = sum(getattr(row, "run", None) is not None for row in grid.rows)
        rows.append([f"{name}/{key}", grid.title, len(grid.rows), with_run])
    parts = [
        f"{paper.title}\n{paper.reference}  {paper.url or ''}",
        table_text(["target", "title", "rows", "with a run"], rows),
        f"{counted(len(paper.claims_by_quote()), 'claim')}: csebench claims {name}",
    ]
    content = {"what": "paper", **paper.model_dump()}
    yield Description("\n\n".join(parts), content, depends_on_scale=False)


def matching_pages(name: str, scale: str) -> Iterator[Description]:
    """Describe a table or figure, with its published values, in every paper that has it."""
    if not re.search(r"(^|/)(table|figure)\w+(\.\w+)?$", name):
        return
    for page in targets.parse_target(name, scale):
        for paper, key in page.grids():
            yield describe_grid(page, paper, key)


def describe_grid(page: targets.Page, paper: str, key: str) -> Description:
    """Describe a table or figure of a paper, with its published values."""
    grid = grids.find_grid(paper, key)
    labels = [column.label for column in grid.columns]
    if isinstance(grid, UnscoredTable):
        head = [targets.grid_label(key), *labels]
        rows = [[row.label, *row.values] for row in grid.rows]
        page_line = f"Page: {page.path}"
    else:
        head = [targets.grid_label(key), "method", *labels]
        rows = [published_row(row) for row in grid.rows]
        page_line = f"Our runs, at scale {page.scale}: {page.path}"
    lines = [
        f"{paper}/{key}: {grid.title}",
        grid.caption,
        "",
        f"As printed in the paper ({NO_VALUE}: no number):",
        table_text(head, rows),
        "",
        page_line,
        f"Make this page: {snakemake(page.path)}",
        f"Claims: csebench claims {paper}/{key}",
    ]
    content = {
        "what": key.rstrip("0123456789"),
        "paper": paper,
        "name": key,
        "page": str(page.path),
    }
    return Description("\n".join(lines), content | grid.model_dump(), depends_on_scale=False)


def published_row(row: Row) -> list:
    """Lay out a row: label, method and printed values. None stands for no value."""
    method = ""
    if row.run is not None:
        method = row.run.method
    texts = [value and value.text for value in row.values]
    return [row.label, method, *texts]


def cells(name: str, scale: str, row: str | None, column: str | None) -> Iterator[Description]:
    """Describe the values and runs behind the cells of a row, of a column, or of both.

    Args:
        row: label of a row, which may lack the citation. None means every row.
        column: label of a column. None means every column.
    """
    from csebench.report.csv_tables import cell_rows
    from csebench.report.numbers.cells import grid_view

    def is_meant(given: str | None, label: str) -> bool:
        return given in (None, label, short_label(label))

    views = []
    for page in targets.parse_target(name, scale):
        views += [grid_view(*grid, page.scale) for grid in page.grids()]
    for view in views:
        for content, cell in zip(cell_rows(view), view.cells, strict=True):
            if is_meant(row, cell.plan.row.label) and is_meant(column, cell.plan.column.label):
                yield describe_cell(view, cell, content)


def describe_cell(view: GridView, cell: Cell, content: dict) -> Description:
    """Describe a cell: values by seed with their runs, the printed value, and runs by others.

    Args:
        content: the row of cells.csv about the cell.
    """
    plan = cell.plan
    run_ids = {spec.seed: spec.run_id for spec in plan.specs}
    by_seed = [[seed, cell.number(value), run_ids.get(seed)] for seed, value in cell.values.items()]
    parts = [
        f"{view.paper}/{view.name}, row {plan.row.label}, column {plan.column.label}",
        table_text([], facts_of_cell(cell).items()),
        table_text(["seed", "value", "run"], by_seed),
    ]
    if cell.parts:
        parts.append(f"Computed from the runs {content['runs']}.")
    others = None
    if cell.others is not None:
        others = {
            "kind": cell.others.kind,
            "sources": cell.others.sources,
            "values": cell.others.values,
            **cell.others.summary._asdict(),
        }
    content = content | {
        "what": "cell",
        "values": cell.values,
        "source": source_of_row(plan.row),
        "others": others,
    }
    return Description("\n\n".join(parts), content)


def facts_of_cell(cell: Cell) -> dict[str, str]:
    """Word the facts about a cell: our value, printed value, runs by others, missing runs."""
    from csebench.report.pages.details import others_text
    from csebench.report.words.cells import elsewhere_text, reasons_of_cell

    facts = {"ours": f"{cell.text}, {counted(len(cell.values), 'seed')}"}
    if cell.published:
        seeds = counted(cell.published_seeds, "seed")
        facts["printed"] = f"{cell.published.text}, {seeds}, {source_of_row(cell.plan.row)}"
    if cell.others:
        sources = ", ".join(cell.others.sources)
        facts["others"] = f"{others_text(cell)}; {cell.others.kind}, {sources}"
    if cell.plan.missing:
        facts["missing"] = cell.plan.missing
    elif cell.absent:
        facts["missing"] = "; ".join([counted(cell.absent, "run"), *reasons_of_cell(cell)])
    elif cell.elsewhere:
        facts["not counted"] = elsewhere_text(cell)
    return facts


def source_of_row(row: Row) -> str:
    """Say how the authors obtained the printed values of a row: `copied from Gao et al. 2021`."""
    if row.source == "unknown":
        return "source not stated"
    if row.origin is not None:
        return f"{row.source} from {row.origin}"
    return row.source


# ---------------------------------------------------------------- claims, runs


def claims(words: str, scale: str) -> Iterator[Description]:
    """Describe the claims that contain some words, with the numbers that decide each verdict."""
    from csebench.report.csv_tables import claim_record
    from csebench.report.numbers.claims import judge_all
    from csebench.report.words.claims import here_text, on_print_text

    for judged in judge_all(scale, catalog.paper_names()):
        quote = judged.claims[0].quote
        if words not in quote:
            continue
        lines = [f"“{quote}”", f"{judged.paper}: {', '.join(judged.places)}"]
        for part in judged.rows:
            line = f"by printed numbers: {on_print_text(part)}"
            if scale != catalog.DEFAULT_SCALE:
                line += f"; by our runs ({scale}): {here_text(part)}"
            lines.append(line)
        yield Description("\n".join(lines), {"what": "claim", **claim_record(judged)})


def matching_runs(run_id: str, scale: str) -> Iterator[Description]:
    """Describe a run by its id: its state, the tables that show it, and its settings.

    Args:
        scale: preferred scale. If none of its pages needs the run, another scale is taken.
    """
    if not re.fullmatch(r"\w+-[0-9a-f]{10}", run_id):
        return
    scale = targets.scale_of_run(run_id, scale)
    spec = targets.run(run_id, scale)
    pages = [page for page in targets.pages(scale) if run_id in page.runs()]
    state, _ = read_state(run_id, run_id in targets.finished_runs(pages))
    evaluators = sorted(targets.evaluators(run_id, scale))
    tables = tables_of_runs(scale)[run_id]
    facts: dict[str, Any] = {
        "run": run_id,
        "scale": scale,
        "state": state,
        "folder": str(catalog.RUNS / run_id),
    }
    content = {"what": "run", **facts, "evaluators": evaluators, "shown in": tables}
    facts |= {"evaluators": ", ".join(evaluators), "shown in": ", ".join(tables)}
    settings = spec.model_dump(exclude={"params"}) | spec.params
    text = "\n\n".join(
        [table_text([], facts.items()), table_text(["setting", "value"], settings.items())]
    )
    yield Description(text, content | {"spec": spec.model_dump(mode="json")})
