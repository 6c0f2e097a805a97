"""The verbs that write pages, figures and files from scores."""

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
from csebench.plan.schema.paper import SettingsTable

if TYPE_CHECKING:
    from csebench.report.numbers.cells import GridView


def compare_rows(args):
    """Print the declared comparisons of a table, or that of two given rows."""
    from csebench.report.numbers.cells import grid_view

    views = [grid_view(*grid, page.scale) for page in parse_targets(args) for grid in page.grids()]
    if not args.rows:
        return print_declared_comparisons(views, args.json)
    if len(args.rows) != 2 or len(views) != 1:
        raise BadInput("compare: needs one table, and two of its rows or none.")
    if isinstance(views[0].grid, SettingsTable):
        settings = f"{args.target[0]} is a table of settings"
        raise BadInput(f"compare: {settings}, which has no scores to compare.")
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
    if unmatched := words.not_matched([comparison]):
        print_text(unmatched)
    return print_table(words.COMPARISON_HEAD[2:], [words.comparison_row(comparison)[2:]])


def index_of_row(view: GridView, name: str) -> int:
    """Find the only row of a table with a label, whole or shortened. Raises BadInput."""
    from csebench.report.words.comparisons import short_label

    labels = [row.label for row in view.score_grid.rows]
    meant = [i for i, label in enumerate(labels) if name in (label, short_label(label))]
    if len(meant) != 1:
        count = f"{len(meant)} rows have the label {name!r}"
        raise BadInput(f"compare: {count}; rows: {', '.join(labels)}.")
    return meant[0]


def print_declared_comparisons(views: list[GridView], as_json: bool) -> None:
    """Print every declared comparison of tables, by the question that it answers."""
    from csebench.report.csv_tables import comparison_records
    from csebench.report.numbers.compare import answers
    from csebench.report.words import comparisons as words

    if as_json:
        records = [record for view in views for record in comparison_records(view)]
        return print(json_text(records))
    scale = views[0].scale
    is_smoke = scale == catalog.DEFAULT_SCALE
    print(f"Scale {scale}. {words.SMOKE}" if is_smoke else f"Scale {scale}.")
    for view in views:
        for text in nothing_to_compare(view):
            print_text(f"\n{targets.target_name(view.paper, view.name)}: {text}")
        for answer in answers(view):
            print_text(f"\n{answer.family.question}")
            if not is_smoke:
                said = [words.family_sentence(answer), words.not_matched(answer.comparisons)]
                print_text(" ".join(filter(None, said)))
            print_table(words.COMPARISON_HEAD, map(words.comparison_row, answer.comparisons))
    return None


def nothing_to_compare(view: GridView) -> Iterator[str]:
    """Why `compare` has nothing, or only empty rows, to show of a table or figure."""
    if isinstance(view.grid, SettingsTable):
        yield "a table of settings has no scores to compare."
        return
    planned = {spec.run_id for cell in view.cells for spec in cell.plan.specs}
    if not planned:
        yield "it has no runs; none of its rows has a recipe that this scale can run."
        return
    if not any(cell.values for cell in view.cells):
        path = targets.grid_path(view.paper, view.name, view.scale, "md")
        yield (
            f"none of its {counted(len(planned), 'run')} is scored yet; `{snakemake(path)}` makes"
            " them."
        )
    if not view.grid.compare:
        target = targets.target_name(view.paper, view.name)
        rows = " ".join(repr(row.label) for row in view.grid.rows[:2])
        yield f"it declares no comparisons; name two rows: csebench compare {target} {rows}"


def render(args):
    """Print a page, or write it to --out with its pictures beside it.

    A figure is drawn into its place in results/. `all` writes a whole scale, or with --check
    compares it with what is there.
    """
    from csebench.report.pages import PAGES, write_all

    catalog.scale(args.scale)
    if args.target == "all" and args.check:
        return check_pages(args.scale)
    if args.target == "all":
        return print(*write_all(args.scale), sep="\n")
    names, scale = targets.split_target(args.target, args.scale)
    if len(names) == 1 and names[0] in PAGES:
        return render_over_all(names[0], scale, args)
    if len(names) == 1 and is_mistyped_page(names[0], scale):
        raise unknown("target", names[0], PAGES)
    pages = targets.parse_target(args.target, args.scale)
    if args.out is not None and len(pages) > 1:
        count = f"{args.target} has {len(pages)} pages, but --out is one file"
        raise BadInput(f"render: {count}; use snakemake for all.")
    asks_for_page = args.target.endswith(".md") or args.format != "markdown"
    for page in pages:
        if page.path.suffix == ".svg" and not asks_for_page:
            render_figure(page, args)
        else:
            render_page(page, args)
    return None


def is_mistyped_page(name: str, scale: str) -> bool:
    """Whether a name is like that of a page that is made from all pages, and is no other target."""
    from csebench.report.pages import PAGES

    is_like_one = did_you_mean(name, PAGES) != ""
    return is_like_one and problem_of(targets.parse_target, name, scale) is not None


def check_pages(scale: str) -> None:
    """Raises RunFailed where pages of a scale are other than their scores give."""
    from csebench.report.pages import stale_files

    if stale := ", ".join(map(str, stale_files(scale))):
        remedy = "`csebench render all` writes them."
        raise RunFailed(f"render --check: other than the scores give: {stale}; {remedy}")


def render_over_all(name: str, scale: str, args) -> None:
    """Print or write a page that is made from all pages of a scale, or the page of evidence."""
    from csebench.report.pages import PAGES, draw_runs, page_path

    path = page_path(name, scale)
    if args.out is None:
        return print(PAGES[name](scale).write(args.format))
    with recording(path, args.out):
        write_page(args.out, PAGES[name](scale).write(args.format), args.format)
        if name == "evidence" and args.out == path:
            draw_runs(path.parent)
    return None


def render_figure(page: targets.Page, args) -> None:
    """Draw a figure into its place in results/, and print the names of its files."""
    from csebench.report.numbers.cells import grid_view
    from csebench.report.pages import draw_page
    from csebench.report.pages.answer_text import has_values, nothing_to_draw

    if args.out not in (None, page.path):
        place = f"{args.target} is a figure, drawn into {page.path.parent}/"
        raise BadInput(f"render: {place}; leave out --out.")
    view = grid_view(*page.grids()[0], page.scale)
    # the rule gives --out, as it promises a file
    if args.out is None and not has_values(view):
        reason = nothing_to_draw(view) or "nothing to draw: no scores."
        raise BadInput(f"render: {args.target}: {reason}")
    check_output(page.path, remedy=OWN_FOLDER_HINT)
    with recording(page.path, page.path):
        print(*draw_page(page), sep="\n")


def render_page(page: targets.Page, args) -> None:
    """Print a page of tables, or write it with its pictures."""
    from csebench.report.pages import draw_page
    from csebench.report.pages.table import table_page

    if args.out is None:
        return print(table_page(page).write(args.format))
    with recording(page.path.with_suffix(".md"), args.out):
        write_page(args.out, table_page(page).write(args.format), args.format)
        if args.out == page.path:
            draw_page(page)
    return None


def write_page(out: Path, text: str, form: str) -> None:
    """Write a page. Raises BadInput where it would take the place of something else; in results/
    are pages only."""
    in_results = Path(os.path.relpath(out)).is_relative_to(catalog.RESULTS)
    if (
        is_taken(out)
        and not in_results
        and not is_page(read_bytes(out).decode("utf-8", "replace"), form, text)
    ):
        raise not_ours(out, f"a page in {form} that `csebench render` wrote")
    write_text(out, text)


def is_page(text: str, form: str, new: str) -> bool:
    """Whether a text begins as pages of a form do. The second paragraph of a page in Markdown is
    emphasised."""
    match form:
        case "markdown":
            return re.match(r"# .+\n\n\*", text) is not None
        case "latex":
            return text.startswith("\\begin{tabular}")
        case "json":
            return text.startswith('{\n  "title": ')
    return text.partition("\n")[0] == new.partition("\n")[0]  # the same columns


def write_csv(args):
    from csebench.report import csv_tables

    catalog.scale(args.scale)
    path = catalog.results_folder(args.scale) / "scores.csv"
    check_output(path, remedy=OWN_FOLDER_HINT)
    with recording(path, path):
        for file, text in csv_tables.csv_files(args.scale).items():
            write_text(file, text)
            print(file)


def write_html(args):
    from csebench.report.site import write_site

    catalog.scale(args.scale)
    path = catalog.results_folder(args.scale) / "html"
    check_output(path.parent, is_folder=True, remedy=OWN_FOLDER_HINT)
    with recording(path, path):
        print(write_site(args.scale))
