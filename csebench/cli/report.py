"""The verbs that compare scores and write pages and data: `compare`, `render`, `csv`, `html`, …

csebench/report/ decides what a page contains. It takes time to load, so functions import it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from csebench.base.errors import BadInput, RunFailed, did_you_mean, problem_of, unknown
from csebench.base.files import OWN_FOLDER_HINT, read_bytes, write_text
from csebench.base.outputs import check_output, is_taken, not_ours
from csebench.base.project import snakemake
from csebench.base.terminal import counted, json_text, print_table, print_text
from csebench.cli.options import parse_targets
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.page_records import recording
from csebench.plan.rows import TableRow, find_row, short_label
from csebench.plan.schema.paper import UnscoredTable
from csebench.study.attempt import SETTINGS

if TYPE_CHECKING:
    from csebench.report.numbers.cells import GridView
    from csebench.report.numbers.compare import Answer


# ---------------------------------------------------------------- compare


def compare_rows(args):
    """Print the declared comparisons of tables, or the comparison of two rows of a table."""
    from csebench.report.numbers.cells import grid_view

    pages = parse_targets(args.target, args.scale)
    count = sum(len(page.grids()) for page in pages)
    if args.rows and (len(args.rows) != 2 or count != 1):
        raise BadInput("compare: needs one table, and two of its rows or none.")
    if args.over == "settings":
        from csebench.study.table_over_settings import pages_over_settings

        pages = pages_over_settings(pages, args.settings or SETTINGS)
    elif args.settings is not None:
        raise BadInput("compare --settings: needs --over settings.")
    views = []
    for page in pages:
        views += [grid_view(*grid, page.scale) for grid in page.grids()]
    if not args.rows:
        return print_declared_comparisons(views, args.json)
    if isinstance(views[0].grid, UnscoredTable):
        table = f"{args.target[0]} is a table of {views[0].grid.kind}"
        raise BadInput(f"compare: {table}: it has no scores to compare.")
    return print_comparison(views[0], args.rows, args.json)


def print_comparison(view: GridView, names: list[str], as_json: bool) -> None:
    """Print the comparison of two rows of a table, in words and numbers."""
    from csebench.report.csv_tables import comparison_record
    from csebench.report.numbers.compare import compare, summary_columns
    from csebench.report.words import comparisons as words

    row, against = (index_of_row(view, name) for name in names)
    comparison = compare(view, row, against, summary_columns(view))
    if as_json:
        return print(json_text(comparison_record(comparison)))
    answer = words.sentence(comparison)
    if view.scale == catalog.DEFAULT_SCALE:
        answer = words.SMOKE
    print_text(f"Scale {view.scale}. {answer}")
    remarks = words.remarks([comparison])
    if remarks:
        print_text(remarks)
    # leave out the first two columns: they repeat the two rows that the user named
    return print_table(words.COMPARISON_HEAD[2:], [words.comparison_row(comparison)[2:]])


def index_of_row(view: GridView, name: str) -> int:
    """Find the only row of a table with a label, whole or shortened.

    Raises:
        BadInput: no row has the label, or several have it.
    """

    labels = [row.label for row in view.score_grid.rows]
    matching = []
    for index, label in enumerate(labels):
        if name in (label, short_label(label)):
            matching.append(index)
    if len(matching) != 1:
        count = f"{len(matching)} rows have the label {name!r}"
        raise BadInput(f"compare: {count}; rows: {', '.join(labels)}.")
    return matching[0]


def print_declared_comparisons(views: list[GridView], as_json: bool) -> None:
    """Print every declared comparison of tables, under the question that it answers."""
    from csebench.report.csv_tables import comparison_records
    from csebench.report.numbers.compare import answers
    from csebench.report.numbers.primary_answers import count_primary_answers
    from csebench.report.words import comparisons as words

    if as_json:
        records = []
        for view in views:
            records += comparison_records(view)
        return print(json_text(records))
    scale = views[0].scale
    is_smoke = scale == catalog.DEFAULT_SCALE
    if is_smoke:
        print(f"Scale {scale}. {words.SMOKE}")
    else:
        print(f"Scale {scale}.")
    for view in views:
        for reason in nothing_to_compare(view):
            print_text(f"\n{targets.target_name(view.paper, view.name)}: {reason}")
        if has_scores(view):
            for answer in answers(view):
                print_answer(answer, is_smoke)
    if len(views) > 1 and not is_smoke:
        print_text(f"\n{words.primary_answers_text(count_primary_answers(views))}")
    return None


def print_answer(answer: Answer, is_smoke: bool) -> None:
    """Print a question, its answer in words, and its comparisons as a table.

    Args:
        is_smoke: whether the scores are of the default scale, which answers nothing.
    """
    from csebench.report.words import comparisons as words
    from csebench.report.words.over_settings import settings_sentences

    print_text(f"\n{answer.family.question}")
    if not is_smoke:
        sentences = [words.family_sentence(answer), words.remarks(answer.comparisons)]
        print_text(" ".join(filter(None, sentences)))
    rows = []
    for comparison in answer.comparisons:
        row, against, *cells = words.comparison_row(comparison)
        # the whole labels have citations, which leave no room for whole words elsewhere
        rows.append([short_label(row), short_label(against), *cells])
    print_table(words.COMPARISON_HEAD, rows)
    if not is_smoke:
        for comparison in answer.comparisons:
            for sentence in settings_sentences(comparison):
                print_text(sentence)


def has_scores(view: GridView) -> bool:
    """Whether a run of a table or figure is scored."""
    return any(cell.values for cell in view.cells)


def nothing_to_compare(view: GridView) -> Iterator[str]:
    """Say why `compare` has nothing, or only empty rows, to show for a table or figure."""
    if isinstance(view.grid, UnscoredTable):
        yield f"a table of {view.grid.kind} has no scores to compare."
        return
    runs = set()
    for cell in view.cells:
        runs |= {spec.run_id for spec in cell.plan.specs}
    if not runs:
        yield "it has no runs; none of its rows has a recipe that this scale can run."
        return
    target = targets.target_name(view.paper, view.name)
    if not has_scores(view):
        command = snakemake(targets.grid_path(view.paper, view.name, view.scale, "md"))
        forecast = f"csebench plan {target} --scale {view.scale}"
        yield (
            f"none of its {counted(len(runs), 'run')} is scored yet; `{command}` makes them, and"
            f" `{forecast}` says how long that takes."
        )
    if not view.grid.compare:
        rows = " ".join(repr(row.label) for row in view.grid.rows[:2])
        yield f"it declares no comparisons; name two rows: csebench compare {target} {rows}"


# ---------------------------------------------------------------- render


def render(args):
    """Print a page, or write it to --out with its pictures beside it.

    A figure is always written to its place in results/. A row of a table is always CSV.
    """
    from csebench.report.pages import PAGES

    catalog.scale(args.scale)
    if args.target == "all":
        return render_all(args.scale, args.out, args.check)
    if args.check:
        raise BadInput("render --check: is for the target `all`.")
    names, scale = targets.split_target(args.target, args.scale)
    if len(names) == 1 and names[0] in PAGES:
        return render_over_all(names[0], scale, args.out, args.format)
    if len(names) == 1 and is_mistyped_page(names[0], scale):
        raise unknown("target", names[0], PAGES)
    row = find_row(args.target, args.scale)
    if row is not None:
        return render_row(row, args.out)
    pages = targets.parse_target(args.target, args.scale)
    if args.out is not None and len(pages) > 1:
        count = f"{args.target} has {len(pages)} pages, but --out is one file"
        raise BadInput(f"render: {count}; use snakemake for all.")
    asks_for_page = args.target.endswith(".md") or args.format != "markdown"
    for page in pages:
        if page.path.suffix == ".svg" and not asks_for_page:
            render_figure(page, args.target, args.out)
        else:
            render_page(page, args.out, args.format)
    return None


def render_all(scale: str, out: Path | None, is_check: bool) -> None:
    """Write all pages of a scale, or only compare its files with the scores."""
    from csebench.report.pages import write_all

    if out is not None:
        raise BadInput("render all: writes every page to its place; leave out --out.")
    if is_check:
        check_pages(scale)
    else:
        print(*write_all(scale), sep="\n")


def is_mistyped_page(name: str, scale: str) -> bool:
    """Whether an unknown target resembles the name of a page that is made from all pages."""
    from csebench.report.pages import PAGES

    resembles_page = did_you_mean(name, PAGES) != ""
    return resembles_page and problem_of(targets.parse_target, name, scale) is not None


def check_pages(scale: str) -> None:
    """Compare the files of a scale with what their scores give.

    Raises:
        RunFailed: some files differ.
    """
    from csebench.report.pages import stale_files

    stale = ", ".join(map(str, stale_files(scale)))
    if stale:
        raise RunFailed(
            f"render --check: files differ from what the scores give: {stale}; `csebench render"
            " all` writes them."
        )


def render_over_all(name: str, scale: str, out: Path | None, form: str) -> None:
    """Print or write a page that is made from all pages of a scale, or the page of evidence."""
    from csebench.report.figures.evidence import draw_runs
    from csebench.report.figures.printed_gains import draw_gains
    from csebench.report.pages import PAGES, page_path

    path = page_path(name, scale)
    if out is None:
        return print(PAGES[name](scale).write(form))
    with recording(path, out):
        write_page(out, PAGES[name](scale).write(form), form)
        if name == "evidence" and out == path:
            draw_runs(path.parent)
            draw_gains(path.parent)  # of no scale, too
    return None


def render_figure(page: targets.Page, target: str, out: Path | None) -> None:
    """Draw a figure into its place in results/, and print the names of its files.

    Args:
        target: the name that the user gave, for messages.
        out: the place of the figure, as the workflow gives it, or None. The workflow calls this
            also for a figure without values. So only without `out` is that an error.
    """
    from csebench.report.numbers.cells import grid_view
    from csebench.report.pages import draw_page
    from csebench.report.pages.answer_text import has_values, nothing_to_draw

    if out not in (None, page.path):
        folder = page.path.parent
        raise BadInput(f"render: {target} is a figure, drawn into {folder}/; leave out --out.")
    view = grid_view(*page.grids()[0], page.scale)
    if out is None and not has_values(view):
        reason = nothing_to_draw(view) or "nothing to draw: no scores."
        raise BadInput(f"render: {target}: {reason}")
    check_output(page.path, remedy=OWN_FOLDER_HINT)
    with recording(page.path, page.path):
        print(*draw_page(page), sep="\n")


def render_page(page: targets.Page, out: Path | None, form: str) -> None:
    """Print a page of tables, or write it with its pictures."""
    from csebench.report.pages import draw_page
    from csebench.report.pages.table import table_page

    if out is None:
        return print(table_page(page).write(form))
    with recording(page.path.with_suffix(".md"), out):
        write_page(out, table_page(page).write(form), form)
        if out == page.path:
            draw_page(page)
    return None


def render_row(row: TableRow, out: Path | None) -> None:
    """Print the scores of one row of a table as CSV, or write them."""
    from csebench.report.csv_tables import row_csv

    row.available()  # refuses a row that cannot be run
    if out is None:
        return print(row_csv(row), end="")
    with recording(row.path, out):
        write_page(out, row_csv(row), "csv")
    return None


def write_page(out: Path, text: str, form: str) -> None:
    """Write a page. In results/, where all files are pages, it may replace any file.

    Raises:
        BadInput: the file is outside results/, exists, and is no page of the same form.
    """
    in_results = Path(os.path.relpath(out)).is_relative_to(catalog.RESULTS)
    if is_taken(out) and not in_results:
        old_text = read_bytes(out).decode("utf-8", "replace")
        if not is_page(old_text, form, text):
            raise not_ours(out, f"a page in {form} that `csebench render` wrote")
    write_text(out, text)


def is_page(text: str, form: str, new: str) -> bool:
    """Whether a text begins like a page of a form.

    Args:
        new: the page to write, with which CSV must share its columns.
    """
    match form:
        case "markdown":  # the second paragraph is emphasised
            return re.match(r"# .+\n\n\*", text) is not None
        case "latex":
            return text.startswith("% csebench ")
        case "json":
            return text.startswith('{\n  "title": ')
        case _:  # CSV
            return text.partition("\n")[0] == new.partition("\n")[0]


# ---------------------------------------------------------------- csv, html


def write_csv(args):
    """Write the CSV files of a scale, and print their names."""
    from csebench.report import csv_tables

    catalog.scale(args.scale)
    path = catalog.results_folder(args.scale) / "scores.csv"
    check_output(path, remedy=OWN_FOLDER_HINT)
    with recording(path, path):
        for file, text in csv_tables.csv_files(args.scale).items():
            write_text(file, text)
            print(file)


def write_html(args):
    """Write the pages of a scale as HTML, and print the name of the first."""
    from csebench.report.site import write_site

    catalog.scale(args.scale)
    path = catalog.results_folder(args.scale) / "html"
    check_output(path.parent, is_folder=True, remedy=OWN_FOLDER_HINT)
    with recording(path, path):
        print(write_site(args.scale))
