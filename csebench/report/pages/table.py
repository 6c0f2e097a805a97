"""The page of a table or figure: its answer, a picture, our scores and, folded, the details.

This module puts the parts of a page in order, and writes how many runs are scored. The other parts
come from the other modules of this folder: answer_text.py, score_table.py, details.py,
retrieved.py, missing.py, settings.py and methods.py.
"""

from pathlib import Path

from csebench.base.project import REPOSITORY
from csebench.base.terminal import counted
from csebench.plan import targets
from csebench.plan.catalog.files import GENERATED, SIDE_BY_SIDE, VARIANTS, paper
from csebench.plan.schema.paper import Figure, SettingsTable, TextsTable
from csebench.report.numbers.cells import ON_OTHER_DATA, GridView, grid_view
from csebench.report.numbers.compare import Answer, answers
from csebench.report.pages.answer_text import answer_lines, has_values, picture_title
from csebench.report.pages.details import (
    claims_fold,
    comparisons_fold,
    losses_fold,
    others_fold,
    printed_fold,
    printed_parts,
)
from csebench.report.pages.methods import tuning_parts
from csebench.report.pages.missing import notes_fold
from csebench.report.pages.page import (
    Fold,
    PageContent,
    PageSection,
    Part,
    Picture,
    as_list,
    merge_labels,
    relative_path,
)
from csebench.report.pages.retrieved import texts_fold
from csebench.report.pages.row_by_row import row_by_row_legend, row_by_row_table
from csebench.report.pages.score_table import (
    OUTDATED,
    best_by_column,
    has_runs,
    is_shown_row_by_row,
    score_parts,
)
from csebench.report.pages.settings import settings_section
from csebench.report.pages.texts import texts_section
from csebench.report.provenance import (
    deviation_lines,
    page_conditions,
    provenance_lines,
    scale_line,
)
from csebench.score.data_of_scores import SHOWN_DIGITS

HOW_VARIANTS = (
    "Where a method's public code differs from its paper, it has a table: *as printed* is the"
    " paper, *as released* the code with what it does by mistake, *released, repaired* the code"
    " where it would not run, or is not what the paper ran. Below: whether they score otherwise"
    " than *as printed*."
)


def table_page(page: targets.Page) -> PageContent:
    """Make the page of one table or figure, of one number in all papers, or of all variants."""
    views = [grid_view(paper_name, name, page.scale) for paper_name, name in page.grids()]
    if len(views) == 1:
        return page_of_one(page, views[0])
    return page_of_several(page, views)


def page_of_one(page: targets.Page, view: GridView) -> PageContent:
    """Open with the answers of a table or figure, and end with its folded details."""
    section = grid_section(view, page.path.parent)
    parts: list[Part] = [*status_lines(view), *section.answers, *section.visible, *section.folded]
    if view.paper == SIDE_BY_SIDE:
        parts += tuning_parts(page.scale)
    parts += provenance_folds(page)
    return PageContent(heading(view), scale_line(page), parts, run_lines(view))


def page_of_several(page: targets.Page, views: list[GridView]) -> PageContent:
    """List the main answer of every table, then give each table a section."""
    folder = page.path.parent
    is_variants = page.papers == (VARIANTS,)
    main_answers: list[tuple[str, str]] = []  # the heading of a table, and its answer
    sections: list[Part] = []
    runs: list[str] = []
    for view in views:
        section = grid_section(view, folder)
        label = heading(view)
        if not is_variants:  # tables of variants have no pages of their own
            path = relative_path(view.paper, view.name, view.scale, "md", folder)
            label = f"[{label}]({path})"
        if section.answers:
            main_answers.append((label, section.answers[0]))
        sections.append(f"## {heading(view)}")
        runs += [heading(view), *run_lines(view)]
        sections += [*status_lines(view), *section.answers[1:], *section.visible]
        if section.folded:
            sections.append(Fold("Details", section.folded))

    overview = as_list(merge_labels(main_answers))
    parts: list[Part] = [overview, *sections, *provenance_folds(page)]
    if is_variants:
        return PageContent(paper(VARIANTS).title, scale_line(page), [HOW_VARIANTS, *parts], runs)
    title = f"{targets.grid_label(page.name)} of all papers"
    return PageContent(title, scale_line(page), parts, runs)


def heading(view: GridView) -> str:
    """`miCSE · Table 2 · Few-shot: AMI as a plug-in`"""
    if view.paper in GENERATED:
        return view.grid.title
    source = paper(view.paper)
    label = source.label or source.reference
    return f"{label} · {targets.grid_label(view.name)} · {view.grid.title}"


def run_lines(view: GridView) -> list[str]:
    """Name the runs of each row: `SimCSE: simcse-0123456789, simcse-9876543210`."""
    lines = []
    for number, cells in enumerate(view.rows):
        run_ids: set[str] = set()
        for cell in cells:
            run_ids.update(spec.run_id for spec in cell.plan.specs)
        if run_ids:
            label = view.grid.rows[number].label
            lines.append(f"{label}: {', '.join(sorted(run_ids))}")
    return lines


def grid_section(view: GridView, folder: Path) -> PageSection:
    """Collect everything that a page says about one table or figure.

    Args:
        folder: folder of the page, from which links start.
    """
    if isinstance(view.grid, SettingsTable):
        return settings_section(view, view.grid)
    if isinstance(view.grid, TextsTable):
        return texts_section(view.grid)
    answered = answers(view)
    is_run = has_runs(view.cells)
    is_figure = isinstance(view.grid, Figure)
    is_table = is_shown_row_by_row(view)

    visible: list[Part] = []
    visible += pictures(view, answered, folder)
    if not is_run:
        visible += printed_parts(view)
    elif has_values(view) or not is_figure:
        best = best_by_column(view)
        if is_table:
            table = row_by_row_table(view, best)
            visible.append(table)
            legend = row_by_row_legend(table, view.scale)
            if legend:
                visible.append(legend)
        visible += score_parts(view, best)

    folded: list[Part] = []
    if is_run:
        folded += printed_fold(view)
    folded += others_fold(view)
    folded += losses_fold(view)
    folded += comparisons_fold(view, answered)
    folded += claims_fold(view, folder)
    folded += texts_fold(view)
    folded += notes_fold(view)
    return PageSection(answer_lines(view, answered, folder), visible, folded)


def pictures(view: GridView, answered: list[Answer], folder: Path) -> list[Picture]:
    """Show a figure, or the forest plot of a table's comparisons, if it can be drawn."""
    if not isinstance(view.grid, Figure):
        title = picture_title(view, answered)
    elif has_values(view):
        title = view.grid.title
    else:
        title = ""
    if not title:
        return []
    return [Picture(relative_path(view.paper, view.name, view.scale, "svg", folder), title)]


# ---------------------------------------------------------------- how far the runs are


def status_lines(view: GridView) -> list[str]:
    """Say how many runs are scored, and how many of the scores are old or on other test data.

    Returns:
        No line if all runs are scored with today's code on the standard test data.
    """
    scored_runs, planned_runs = view.progress
    parts = []
    if 0 < scored_runs < planned_runs:
        parts.append(f"{scored_runs} of {planned_runs} runs are scored")
    if view.outdated_count:
        code = "with an older code version or other settings"
        parts.append(f"{OUTDATED}: {view.outdated_count} of them {code}")
    if view.elsewhere_count:
        data = "on other test data than the rest of the table"
        consequence = "which count in no mean and are compared with nothing"
        parts.append(
            f"{ON_OTHER_DATA}: {counted(view.elsewhere_count, 'run')} {data}, {consequence}"
        )
    lines = []
    if parts:
        lines.append(f"{'; '.join(parts)}.")
    if view.not_standard:
        lines.append(not_standard_text(view))
    return lines


def not_standard_text(view: GridView) -> str:
    """Name the test data that are not known to be those of papers, so that nothing is judged."""
    names = []
    for evaluator in view.not_standard:
        data_hash = view.data[evaluator].files[:SHOWN_DIGITS] or "of unknown hash"
        names.append(f"{evaluator} (data {data_hash})")
    guide = f"{REPOSITORY}/blob/main/docs/data.md#standard-test-sets"
    return (
        f"**Not known to be the standard test data: {', '.join(names)}.** Papers print scores on"
        f" that, so these cells are not judged by printed values ([which data is]({guide}))."
    )


# ---------------------------------------------------------------- how the scores were made


def provenance_folds(page: targets.Page) -> list[Part]:
    """Fold settings, commits and hardware, and the deviations of methods from their papers."""
    settings = "\n".join(f"- **{label}**: {text}" for label, text in page_conditions(page))
    parts: list[Part] = [Fold("How it was made", [provenance_lines(page), settings])]
    choices = deviation_lines(page)
    if choices:
        summary = (
            "How our methods deviate from the papers, and what we chose where a paper is silent"
        )
        parts.append(Fold(summary, ["\n".join(choices)]))
    return parts
