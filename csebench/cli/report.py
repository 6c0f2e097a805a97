"""The verbs that write pages, figures and files from scores."""

from __future__ import annotations

from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import write_text
from csebench.base.terminal import bar, json_text, print_table
from csebench.cli.options import parse_targets
from csebench.plan import catalog, targets
from csebench.plan.made_from import recording


def compare_rows(args):
    from csebench.report.compare import compare, letter_rows, pair_rows, path_of

    pages = parse_targets(args)
    grids = [grid for page in pages for grid in page.grids()]
    scale, pairs = pages[0].scale, []
    for paper, name in bar(dict.fromkeys(grids), "comparing", "table"):
        with recording(path := path_of(paper, name, scale), path):
            compare(paper, name, scale)
        if args.json:
            pairs += pair_rows(paper, name, scale)
            continue
        if rows := letter_rows(paper, name, scale):
            print_table(["column", "row, best first", "letters (a common one: not significantly different)"], rows)
        print(path)
    if args.json:
        print(json_text(pairs))


def render(args):
    """Print a page or write it to --out, with its figures next to it; a figure of a paper goes to its place in
    results/."""
    from csebench.report.markdown import render_page
    from csebench.report.pages import REPORTS

    catalog.scale(args.scale)
    names, scale = targets.split_target(args.target, args.scale)
    if len(names) == 1 and names[0] in REPORTS:
        report = REPORTS[names[0]]
        folder = catalog.RESULTS if names[0] == "evidence" else catalog.results_folder(scale)
        with recording(folder / f"{names[0]}.md", args.out):
            show_or_write(report.text(scale), args.out)
            if report.draw is not None and args.out is not None:
                report.draw(args.out.parent, scale)
        return
    pages = targets.parse_target(args.target, args.scale)
    if args.out is not None and len(pages) > 1:
        raise BadInput(
            f"render: {args.target} means {len(pages)} pages, but --out is one file; use snakemake for all."
        )
    for page in pages:
        if page.path.suffix == ".svg":
            if args.out not in (None, page.path):
                raise BadInput(f"render: {args.target} is a figure, drawn into {page.path.parent}/; leave out --out.")
            from csebench.report.figures import draw

            with recording(page.path, page.path):
                print(*draw(*page.grids()[0], page.scale), sep="\n")
        else:
            with recording(page.path, args.out):
                show_or_write(render_page(page), args.out)


def show_or_write(text: str, out: Path | None):
    """Print a page, or write it to a file; in neither is HTML that it did not write itself."""
    from csebench.report.markdown import escape_html

    text = escape_html(text)
    if out is None:
        print(text)
    else:
        write_text(out, text)


def plot_scores(args):
    from csebench.report.panels import plot

    for path in plot(args.scores, args.out):
        print(path)


def write_csv(args):
    from csebench.report import csv_tables

    catalog.scale(args.scale)
    with recording(path := catalog.results_folder(args.scale) / "scores.csv", path):
        print(csv_tables.write_scores(args.scale))
        print(csv_tables.write_cells(args.scale))


def write_html(args):
    from csebench.report.html import write_site

    catalog.scale(args.scale)
    with recording(path := catalog.results_folder(args.scale) / "html", path):
        print(write_site(args.scale))
