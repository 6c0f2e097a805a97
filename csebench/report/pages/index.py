"""The first page of a scale: controls, questions with their answers, and the list of tables.

The list says how many runs of every table and figure have scores.
"""

import os
from collections import Counter

from csebench.base.errors import by_number
from csebench.base.terminal import counted
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    SIDE_BY_SIDE,
    VARIANTS,
    paper,
    paper_names,
    results_folder,
)
from csebench.plan.schema.paper import SettingsTable, TextsTable
from csebench.plan.targets import grid_label, left_out, page, planned_grids
from csebench.report.numbers.cells import (
    ON_OTHER_DATA,
    PAPER_SCALE,
    GridView,
    grid_view,
)
from csebench.report.numbers.compare import Answer, answer, answers
from csebench.report.numbers.controls import control_results
from csebench.report.numbers.primary_answers import count_primary_answers
from csebench.report.numbers.rank_agreement import rank_agreement
from csebench.report.numbers.refusals import Relation
from csebench.report.pages.answer_text import nothing_to_draw
from csebench.report.pages.page import PageContent, Part, Picture, TextTable
from csebench.report.pages.score_table import STALE
from csebench.report.provenance import scale_line
from csebench.report.words.cells import scored_text
from csebench.report.words.comparisons import family_sentence, primary_answers_text, remarks
from csebench.report.words.controls import (
    CONTROL_HEAD,
    agreement_text,
    consequence_text,
    control_row,
)
from csebench.report.words.evidence import reach_text

OTHER_PAGES = (
    f"[All methods]({SIDE_BY_SIDE}.md) · [their settings, in the papers and here](settings.md) ·"
    f" [papers and released code]({VARIANTS}.md) ·"
    " [claims](claims.md) · [inconsistencies in the published tables](audit.md) · [every"
    " score](scores.csv) · [every cell](cells.csv) · [every comparison](comparisons.csv) · [every"
    " claim](claims.csv)"
)

MEANINGS = {  # of the states of tables without runs
    "cited only": "every value comes from another paper, so nothing is run",
    "settings": "a table of hyper-parameters, which are compared with ours",
    "texts": "a table of texts, such as examples",
}


def index_page(scale: str) -> PageContent:
    views = [grid_view(paper_name, name, scale) for paper_name, name in planned_grids(scale)]
    parts: list[Part] = [reproduction_text(scale)]
    if scale != DEFAULT_SCALE:  # its numbers say nothing, so it answers no questions
        controls = control_parts(scale, views)
        if controls:  # without controls, the page begins with the questions and needs no headings
            parts += ["## Controls", *controls, "## Questions"]
        methods_view = grid_view(SIDE_BY_SIDE, SIDE_BY_SIDE, scale)
        parts.append(questions([methods_view, *views]))
        parts += study_text(views)
        if not all(is_without_verdict(answered) for answered in answers(methods_view)):
            alt = "Every method against the untrained encoder and against SimCSE"
            parts.append(Picture(f"{SIDE_BY_SIDE}.svg", alt))
    parts.append("## Tables and figures")
    parts.append(coverage(views))
    parts += [f"Left out: {defect}" for defect in left_out(scale)]
    parts.append(coverage_legend(views))
    parts.append(OTHER_PAGES)
    return PageContent(f"Results at scale {scale}", scale_line(page(SIDE_BY_SIDE, scale)), parts)


# ---------------------------------------------------------------- controls


def control_parts(scale: str, views: list[GridView]) -> list[Part]:
    """Tabulate the controls of a scale, and say which methods it judges.

    Returns:
        an empty list if the scale has no controls.
    """
    results = control_results(scale)
    if not results:
        return []
    table = TextTable(CONTROL_HEAD, [control_row(result) for result in results])
    text = consequence_text(scale)
    agreement = rank_agreement(views, "unlabelled")
    if agreement is not None:
        text += f" {agreement_text(agreement)}"
    return [table, text]


# ---------------------------------------------------------------- questions


def reproduction_text(scale: str) -> str:
    """Say whether printed numbers reproduce in runs of others, with a link to the evidence."""
    sentences = ["Do the printed numbers reproduce?"]
    if scale != PAPER_SCALE:
        sentences.append(f"Not asked at scale {scale}, whose encoder is not the papers'.")
    sentences.append(f"Runs of others on the papers' encoders: {reach_text()}")
    path = os.path.relpath(results_folder(DEFAULT_SCALE) / "evidence.md", results_folder(scale))
    sentences.append(f"[Evidence]({path})")
    return " ".join(sentences)


def questions(views: list[GridView]) -> str:
    """List the questions that tables declare for the first page, each with all its answers."""
    answers_to: dict[str, list[str]] = {}  # by question
    for view in views:
        for family in view.grid.compare:
            if family.first_page:
                text = first_page_answer(view, answer(view, family))
                answers_to.setdefault(family.first_page, []).append(text)
    lines = []
    for number, (question, texts) in enumerate(answers_to.items(), 1):
        lines.append(f"{number}. {question} {' '.join(texts)}")
    return "\n".join(lines)


def first_page_answer(view: GridView, table_answer: Answer) -> str:
    """Word the answer of a table, what is not matched or tuned away, and a link to the table."""
    label = f"{paper(view.paper).label} {grid_label(view.name)}"
    path = f"{view.paper}/{view.name}.md"
    if view.paper == SIDE_BY_SIDE:
        label = "all methods, on 1 % of the corpus"
        path = f"{SIDE_BY_SIDE}.md"
    if is_without_verdict(table_answer):
        # the controls, which come first, say why
        return f"**Cannot tell.** ([{label}]({path}))"
    sentences = [f"**{family_sentence(table_answer)}**"]
    remarks_on_it = remarks(table_answer.comparisons)
    if remarks_on_it:
        sentences.append(remarks_on_it)
    sentences.append(f"([{label}]({path}))")
    return " ".join(sentences)


def is_without_verdict(table_answer: Answer) -> bool:
    """Whether a scale cannot tell any of the compared rows apart, because controls fail."""
    comparisons = table_answer.comparisons
    return all(comparison.relation == Relation.CANNOT_TELL for comparison in comparisons)


def study_text(views: list[GridView]) -> list[str]:
    """Say how many primary answers stand if the study is one family of tests, if any is tested."""
    text = primary_answers_text(count_primary_answers(views))
    return [text] if text else []


# ---------------------------------------------------------------- tables and figures


def coverage(views: list[GridView]) -> TextTable:
    """Tabulate the state of every table and figure: a row per number, a column per paper."""
    links: dict[str, dict[str, str]] = {}  # by table or figure, then by paper
    for view in views:
        link = f"[{coverage_label(view)}]({view.paper}/{view.name}.md)"
        links.setdefault(view.name, {})[view.paper] = link

    def tables_before_figures(name: str):
        return name.startswith("figure"), by_number(name)

    rows = []
    for name in sorted(links, key=tables_before_figures):
        label = grid_label(name)
        if not name.startswith("figure"):  # link to the page with this table of every paper
            label = f"[{label}]({name}.md)"
        rows.append([label, *(links[name].get(paper_name, "") for paper_name in paper_names())])
    return TextTable(["", *(paper(name).label for name in paper_names())], rows)


def coverage_label(view: GridView) -> str:
    """`13 runs`, `partial: 8 of 13 runs scored`, or the state of a table without runs."""
    name = state(view)
    if name not in ("complete", "partial", "missing"):
        return name
    scored_runs, planned_runs = view.progress
    if scored_runs == planned_runs and not view.outdated and not view.elsewhere:
        return f"{planned_runs} runs"
    counts = scored_text(scored_runs, planned_runs, view.outdated, view.elsewhere)
    return f"{name}: {counts}"


def state(view: GridView) -> str:
    """Name the state of a table or figure.

    Returns:
        `complete`, `partial`, `missing` or `nothing to draw`, depending on its scored runs. A table
        without planned runs is `cited only`, `settings` or `texts`.
    """
    if isinstance(view.grid, SettingsTable):
        return "settings"
    if isinstance(view.grid, TextsTable):
        return "texts"
    scored_runs, planned_runs = view.progress
    if not planned_runs:
        return "cited only"
    if scored_runs == planned_runs:
        return "complete"
    if scored_runs:
        return "partial"
    return "nothing to draw" if nothing_to_draw(view) else "missing"


def coverage_legend(views: list[GridView]) -> str:
    """Explain the cells of `coverage`, and count tables and figures by their state."""
    states = Counter(state(view) for view in views)
    marks = f"{STALE}: with an older code version or other settings"
    if any(view.elsewhere for view in views):
        data = "on other test data than the rest of the table"
        marks += f"; {ON_OTHER_DATA}: {data}, so that they do not count"
    meanings = [f"*{name}*: {MEANINGS[name]}" for name in sorted(states) if name in MEANINGS]
    counts = "; ".join(state_count(name, count) for name, count in sorted(states.items()))
    sentences = [f"A cell counts the runs of a table or figure. {'; '.join([marks, *meanings])}."]
    sentences.append(f"In all: {counts}.")
    return " ".join(sentences)


def state_count(name: str, count: int) -> str:
    """Count the tables in a state: `2 complete`, `1 table of texts`."""
    if name in ("settings", "texts"):
        return f"{counted(count, 'table')} of {name}"
    return f"{count} {name}"
