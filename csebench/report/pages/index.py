"""The first page of a scale: controls, questions with their answers, and the list of tables.

The list has the answers of every table and figure as signs, and says how many runs have scores.
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
    scale_names,
)
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.schema.paper import SettingsTable, TextsTable
from csebench.plan.targets import grid_label, left_out, page, planned_grids
from csebench.report.numbers.cells import (
    ON_OTHER_DATA,
    PAPER_SCALE,
    GridView,
    grid_view,
)
from csebench.report.numbers.claims import judge_all
from csebench.report.numbers.compare import Answer, answer, answers
from csebench.report.numbers.controls import control_results
from csebench.report.numbers.others import pooled_methods
from csebench.report.numbers.primary_answers import count_primary_answers
from csebench.report.numbers.rank_agreement import rank_agreement
from csebench.report.numbers.verdict_words import PrintedWord, VerdictWord
from csebench.report.pages.answer_text import nothing_to_draw, printed_verdicts
from csebench.report.pages.page import PageContent, Part, Picture, TextTable, without_empty_columns
from csebench.report.pages.questions import first_page_questions
from csebench.report.pages.score_table import OUTDATED
from csebench.report.provenance import scale_line
from csebench.report.words.cells import scored_text
from csebench.report.words.claim_counts import verdict_counts
from csebench.report.words.comparisons import family_sentence, primary_answers_text, remarks
from csebench.report.words.controls import (
    CONTROL_HEAD,
    agreement_text,
    consequence_text,
    control_row,
)
from csebench.report.words.evidence import pooled_sentence, reach_text

OTHER_PAGES = (
    f"[All methods]({SIDE_BY_SIDE}.md) · [their settings, in the papers and here](settings.md) ·"
    f" [papers and released code]({VARIANTS}.md) ·"
    " [claims](claims.md) · [inconsistencies in the papers](audit.md) · [every"
    " score](scores.csv) · [every cell](cells.csv) · [every comparison](comparisons.csv) · [every"
    " claim](claims.csv)"
)

MEANINGS = {  # of the states of tables without runs
    "cited only": "no row has a method here, so nothing is run",
    "not run here": "this scale lacks what the rows need, such as their encoder",
    "settings": "a table of hyper-parameters, which are compared with ours",
    "texts": "a table of texts, such as examples",
}


BLOCKED = (
    "Where a control fails, the answer is *cannot tell*, even if a difference is significant. It is"
    " *not tested* if the question presumes something that does not hold here."
)
ANSWERS_HEAD = ["", "title", "answers here", "claims, by printed numbers", "state"]
COMPARISON_SIGNS = {  # of a row against another, in the order in which they are written
    VerdictWord.HIGHER: "↑",
    VerdictWord.SAME: "=",
    VerdictWord.LOWER: "↓",
    VerdictWord.UNCLEAR: "?",
    VerdictWord.CANNOT_TELL: "×",
    VerdictWord.NOT_TESTED: "–",
}
SIGN_REASONS = {
    VerdictWord.UNCLEAR: "not significant",
    VerdictWord.CANNOT_TELL: "a control fails",
}


def index_page(scale: str) -> PageContent:
    views = [grid_view(paper_name, name, scale) for paper_name, name in planned_grids(scale)]
    parts: list[Part] = [reproduction_text(scale)]
    if scale != DEFAULT_SCALE:  # its numbers say nothing, so it answers no questions
        controls = control_parts(scale, views)
        if controls:  # without controls, the page begins with the questions and needs no headings
            parts += ["## Controls", *controls, "## Questions"]
        methods_view = grid_view(SIDE_BY_SIDE, SIDE_BY_SIDE, scale)
        parts += questions([methods_view, *views])
        parts += study_text(views)
        if any(not is_blocked_by_controls(answered) for answered in answers(methods_view)):
            alt = "Every method against the untrained encoder and against SimCSE"
            parts.append(Picture(f"{SIDE_BY_SIDE}.svg", alt))
    parts.append("## Tables and figures")
    parts.append(tables_of_all_papers(views))
    parts += signs_legend(scale)
    parts += answers_by_paper(views)
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
        sentences.append(f"Scale {scale} cannot say, because {difference_from_papers(scale)}.")
    sentences.append("Runs of others on the papers' encoders:")
    sentences += [pooled_sentence(pooled) for pooled in pooled_methods()]
    sentences.append(reach_text())
    path = os.path.relpath(results_folder(DEFAULT_SCALE) / "evidence.md", results_folder(scale))
    sentences.append(f"[Evidence]({path})")
    return " ".join(sentences)


def difference_from_papers(scale: str) -> str:
    """Say why runs of a scale are not those of the papers: other encoders, or other settings."""
    printed_encoders = {}
    if PAPER_SCALE in scale_names():
        printed_encoders = read_scale(PAPER_SCALE).encoders
    if all(printed_encoders.get(role) == own for role, own in read_scale(scale).encoders.items()):
        return "its settings, such as the number of steps, are not those of the papers"
    return "its encoders are not those of the papers"


def questions(views: list[GridView]) -> list[str]:
    """List the questions that tables declare for the first page, each with all its answers.

    If failing controls decide some answers, a sentence before the list says so.
    """
    answers_to: dict[str, list[str]] = {}  # by question
    is_any_blocked = False
    for view in views:
        for family in first_page_questions(view.grid):
            table_answer = answer(view, family)
            is_any_blocked = is_any_blocked or is_blocked_by_controls(table_answer)
            text = first_page_answer(view, table_answer)
            answers_to.setdefault(family.first_page or "", []).append(text)
    lines = []
    for number, (question, texts) in enumerate(answers_to.items(), 1):
        lines.append(f"{number}. {question} {' '.join(texts)}")
    questions_list = "\n".join(lines)
    if is_any_blocked:
        return [BLOCKED, questions_list]
    return [questions_list]


def first_page_answer(view: GridView, table_answer: Answer) -> str:
    """Word the answer of a table, what is not matched or tuned away, and a link to the table."""
    label = f"{paper(view.paper).label} {grid_label(view.name)}"
    path = f"{view.paper}/{view.name}.md"
    if view.paper == SIDE_BY_SIDE:
        label = "all methods, on 1 % of the corpus"
        path = f"{SIDE_BY_SIDE}.md"
    if is_blocked_by_controls(table_answer):
        # the controls, which come first, say why
        return f"**Cannot tell.** ([{label}]({path}))"
    sentences = [f"**{family_sentence(table_answer)}**"]
    remarks_on_it = remarks(table_answer.comparisons)
    if remarks_on_it:
        sentences.append(remarks_on_it)
    sentences.append(f"([{label}]({path}))")
    return " ".join(sentences)


def is_blocked_by_controls(table_answer: Answer) -> bool:
    """Whether no comparison has a verdict, and failing controls are a reason."""
    words = {comparison.relation.word for comparison in table_answer.comparisons}
    without_verdict = {VerdictWord.CANNOT_TELL, VerdictWord.NOT_TESTED}
    return VerdictWord.CANNOT_TELL in words and words <= without_verdict


def study_text(views: list[GridView]) -> list[str]:
    """Say how many primary answers stand if the study is one family of tests, if any is tested."""
    text = primary_answers_text(count_primary_answers(views))
    return [text] if text else []


# ---------------------------------------------------------------- tables and figures


def tables_of_all_papers(views: list[GridView]) -> str:
    """Link to the pages that collect the tables of the same number from all papers."""
    names = {view.name for view in views if view.name.startswith("table")}
    links = [f"[{grid_label(name)}]({name}.md)" for name in sorted(names, key=by_number)]
    return f"The tables of all papers that have the same number, on one page: {' · '.join(links)}."


def answers_by_paper(views: list[GridView]) -> list[Part]:
    """List the tables and figures of every paper with answers, verdicts on claims, and state."""
    rows_of: dict[str, list[list[str]]] = {}  # by paper
    for view in views:
        link = f"[{grid_label(view.name)}]({view.paper}/{view.name}.md)"
        row = [link, view.grid.title, answer_signs(view), claims_text(view), coverage_label(view)]
        rows_of.setdefault(view.paper, []).append(row)
    parts: list[Part] = []
    for paper_name in paper_names():
        if paper_name in rows_of:
            label = paper(paper_name).label or paper_name
            table = TextTable(ANSWERS_HEAD, rows_of[paper_name], label)
            parts.append(without_empty_columns(table))
    return parts


def answer_signs(view: GridView) -> str:
    """Write a sign per question of a table, the main question first: `↑ =? –`.

    A question has several signs if its comparisons have several verdicts. At the scale of the
    papers, the number of printed values that agree follows.
    """
    if view.scale == DEFAULT_SCALE or isinstance(view.grid, SettingsTable | TextsTable):
        return ""
    texts = []
    for answered in answers(view):
        words = {comparison.relation.word for comparison in answered.comparisons}
        signs = [sign for word, sign in COMPARISON_SIGNS.items() if word in words]
        texts.append("".join(dict.fromkeys(signs)))
    if view.judged:
        counts = printed_verdicts(view.cells)
        texts.append(f"({counts[PrintedWord.AGREES]} of {counts.total()} printed values agree)")
    return " ".join(texts)


def coverage_label(view: GridView) -> str:
    """`complete`, `partial: 8 of 13 runs scored`, or the state of a table without runs."""
    name = state(view)
    if name not in ("complete", "partial", "missing"):
        return name
    scored_runs, planned_runs = view.progress
    if scored_runs == planned_runs and not view.outdated_count and not view.elsewhere_count:
        return name
    counts = scored_text(scored_runs, planned_runs, view.outdated_count, view.elsewhere_count)
    return f"{name}: {counts}"


def state(view: GridView) -> str:
    """Name the state of a table or figure.

    Returns:
        `complete`, `partial`, `missing` or `nothing to draw`, depending on its scored runs. A table
        without planned runs is `cited only`, `not run here`, `settings` or `texts`.
    """
    if isinstance(view.grid, SettingsTable):
        return "settings"
    if isinstance(view.grid, TextsTable):
        return "texts"
    scored_runs, planned_runs = view.progress
    if not planned_runs:
        has_recipe = any(row.run is not None for row in view.grid.rows)
        return "not run here" if has_recipe else "cited only"
    if scored_runs == planned_runs:
        return "complete"
    if scored_runs:
        return "partial"
    return "nothing to draw" if nothing_to_draw(view) else "missing"


def claims_text(view: GridView) -> str:
    """Count what the paper says about a table by its verdict on printed numbers."""
    if view.scale == DEFAULT_SCALE:
        return ""
    return verdict_counts(judge_all(view.scale, [view.paper], view.name))


def signs_legend(scale: str) -> list[str]:
    """Explain the signs of answers. Scale smoke has none."""
    if scale == DEFAULT_SCALE:
        return []
    meanings = []
    for word, sign in COMPARISON_SIGNS.items():
        meaning = f"{sign} {word}"
        if word in SIGN_REASONS:
            meaning += f" ({SIGN_REASONS[word]})"
        meanings.append(meaning)
    return [
        "*Answers here*: one group of signs per question, the main question first. A group has"
        " several signs if its comparisons have different verdicts. A sign says how a row compares"
        f" with another one: {'; '.join(meanings)}. A table without signs has no question of ours;"
        " its claims may still compare rows.",
        "*Claims*: “0 to 1” is the range over three assumed deviations of scores over seeds; a"
        " single number holds for all three ([verdicts on claims](claims.md)). A claim about"
        " several tables is counted at each. *Cannot tell* in this column: print lacks numbers, or"
        " nobody has published how such scores vary over seeds.",
    ]


def coverage_legend(views: list[GridView]) -> str:
    """Explain how states are written, and count tables and figures by their state."""
    states = Counter(state(view) for view in views)
    meanings = []
    if any(view.outdated_count for view in views):
        meanings.append(f"{OUTDATED}: with an older code version or other settings")
    if any(view.elsewhere_count for view in views):
        data = "on other test data than the rest of the table"
        meanings.append(f"{ON_OTHER_DATA}: {data}, so that they do not count")
    meanings += [f"*{name}*: {MEANINGS[name]}" for name in sorted(states) if name in MEANINGS]
    counts = "; ".join(state_count(name, count) for name, count in sorted(states.items()))
    sentences = []
    if meanings:
        sentences.append(f"{'; '.join(meanings)}.")
    sentences.append(f"In all: {counts}.")
    return " ".join(sentences)


def state_count(name: str, count: int) -> str:
    """Count the tables in a state: `2 complete`, `1 table of texts`."""
    if name in ("settings", "texts"):
        return f"{counted(count, 'table')} of {name}"
    return f"{count} {name}"
