"""The answers at the head of a page: the answer in bold, then a line for every other question.

An answer follows from the declared comparisons of a table or figure
(csebench/report/numbers/compare.py). Answers are worded in csebench/report/words/comparisons.py.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from csebench.plan.catalog.files import DEFAULT_SCALE, VARIANTS
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import protocol
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.numbers.printed_gains import find_gain
from csebench.report.numbers.refusals import Relation
from csebench.report.numbers.tuned_away import TunedAway
from csebench.report.numbers.verdict_words import PrintedWord, VerdictWord
from csebench.report.pages.questions import owner_text
from csebench.report.words import comparisons as words
from csebench.report.words.over_settings import settings_sentences
from csebench.report.words.printed_gains import support_text
from csebench.score.store import stored_score


def answer_lines(view: GridView, answered: list[Answer], folder: Path) -> list[str]:
    """Write the lines at the head of a page, the answer first and in bold.

    Args:
        answered: the declared questions of the table or figure, the primary one first.
        folder: folder of the page, from which links start.
    """
    if view.scale == DEFAULT_SCALE:
        return [f"**{words.SMOKE}**"]
    if not any(cell.plan.specs for cell in view.cells):
        return [nothing_run_line(view.cells)]
    lines = []
    if view.judged:
        lines.append(f"**{printed_values_text(view.cells)}**")
    lines += cannot_tell_lines(answered)
    lines += question_lines(view, answered, folder)
    scored_runs, planned_runs = view.progress
    if not lines and not scored_runs:
        reason = nothing_to_draw(view)
        if not reason:
            reason = f"Not tested: 0 of {planned_runs} runs are scored."
        lines.append(f"**{reason}**")
    return lines


def cannot_tell_lines(answered: list[Answer]) -> list[str]:
    """Say once why the scale does not judge comparisons of a page.

    Returns:
        one line, or no line if all comparisons are judged or the main question, which comes first,
        says it.
    """
    reasons = []
    for comparison in all_comparisons(answered):
        if comparison.relation == Relation.CANNOT_TELL:
            reasons.append(words.reason_text(comparison.reason))
    if not reasons:
        return []
    family, comparisons = answered[0]
    main_question_says_it = family.primary and comparisons[0].relation == Relation.CANNOT_TELL
    if main_question_says_it:
        return []
    return [f"**Cannot tell: {'; '.join(dict.fromkeys(reasons))}.**"]


def nothing_run_line(cells: list[Cell]) -> str:
    """Say why no row is run: the reason of the cells if they share one."""
    reasons = {cell.plan.missing for cell in cells if cell.plan.missing}
    why = "no row has a method and data here"
    if len(reasons) == 1:
        (why,) = reasons
    line = f"**Nothing is run here: {why}.**"
    if any(cell.published for cell in cells):
        line += " The printed values follow."
    return line


def printed_values_text(cells: list[Cell]) -> str:
    """Count the verdicts on printed values, with the smallest and largest distance of our means.

    `30 of 36 printed values agree with our runs; 4 differ, 2 inconclusive, 0 not tested. Our means
    lie -1.31 to +0.42 points from print.`
    """
    counts = printed_verdicts(cells)
    distances = []
    for cell in judged_cells(cells):
        if cell.distance is not None:
            distances.append(cell.distance / cell.point)
    text = (
        f"{counts[PrintedWord.AGREES]} of {counts.total()} printed values agree with our runs;"
        f" {counts[PrintedWord.DIFFERS]} differ,"
        f" {counts[PrintedWord.INCONCLUSIVE]} {PrintedWord.INCONCLUSIVE},"
        f" {counts[PrintedWord.NOT_TESTED]} {PrintedWord.NOT_TESTED}."
    )
    if distances:
        ends = dict.fromkeys(f"{end:+z.2f}" for end in (min(distances), max(distances)))
        text += f" Our means lie {' to '.join(ends)} points from print."
    return text


def printed_verdicts(cells: list[Cell]) -> Counter[PrintedWord]:
    """Count the verdicts of our runs on printed values."""
    return Counter(stats.printed_word(cell.verdict) for cell in judged_cells(cells))


def judged_cells(cells: list[Cell]) -> list[Cell]:
    """List the cells whose printed value is judged by our runs."""
    return [cell for cell in cells if cell.judged and cell.published and cell.plan.specs]


def question_lines(view: GridView, answered: list[Answer], folder: Path) -> list[str]:
    """Write a line per question: the question, its answer, and what is not matched or tuned away.

    A question that another page answers for the first page of the scale has a link to that page.
    """
    comparisons = all_comparisons(answered)
    differing_settings = {c.differs for c in comparisons if c.estimate}
    # One remark serves the whole page if all comparisons leave the same settings unmatched, or if
    # all rows have the papers' settings.
    is_one_remark = len(differing_settings) == 1 or not read_scale(view.scale).tuned
    lines = []
    for number, answer in enumerate(answered):
        is_main = answer.family.primary and len(answer.comparisons) == 1
        parts = []
        if view.paper != VARIANTS:
            parts.append(answer.family.question)

        sentence = words.family_sentence(answer)
        # if our runs judge printed values, those verdicts stand above in bold
        follows_verdicts = is_main and view.judged and answer.comparisons[0].is_judged
        leads_page = is_main or not answered[0].family.primary
        if leads_page and not follows_verdicts:
            sentence = f"**{sentence}**"
        parts.append(sentence)
        if is_main:
            parts.append(printed_difference_text(answer))
            parts.append(claimed_difference_text(view, answer))

        if not is_one_remark:
            parts.append(words.other_settings_text(answer.comparisons))
        elif number == 0:
            parts.append(words.other_settings_text(comparisons))
        parts.append(words.tuned_away(new_terms(answered, number)))
        for comparison in answer.comparisons:
            parts += settings_sentences(comparison)
        parts.append(owner_text(view, answer.family, folder))
        lines.append(" ".join(part for part in parts if part))
    return lines


def new_terms(answered: list[Answer], number: int) -> list[TunedAway]:
    """List the tuned-away terms of a question that no earlier question has."""
    earlier_terms = terms_of(all_comparisons(answered[:number]))
    return [term for term in terms_of(answered[number].comparisons) if term not in earlier_terms]


def terms_of(comparisons: Iterable[Comparison]) -> list[TunedAway]:
    """List the tuned-away terms of comparisons, each once."""
    terms = chain.from_iterable(comparison.tuned_away for comparison in comparisons)
    return list(dict.fromkeys(terms))


def printed_difference_text(answer: Answer) -> str:
    """Say which difference the paper prints for its main comparison; empty if it prints none."""
    (comparison,) = answer.comparisons
    if comparison.printed is None:
        return ""
    text = f"The paper prints {comparison.printed:+z.2f}"
    if len(comparison.pairs) > 1:
        text += " on average"
    return f"{text}."


def claimed_difference_text(view: GridView, answer: Answer) -> str:
    """Say whether the paper's numbers support the difference of its main comparison.

    Returns:
        the text. It is empty if no claim of the paper rests on this difference, or if its noise
        over seeds is not known.
    """
    (comparison,) = answer.comparisons
    if comparison.printed is None:
        return ""
    rows = (comparison.row, comparison.against)
    gain = find_gain(view.paper, view.name, *rows, comparison.columns)
    if gain is None:
        return ""
    return support_text(gain)


def picture_title(view: GridView, answered: list[Answer]) -> str:
    """Title a picture with the first question that is tested, or with its answer if it is primary.

    Returns:
        An empty text if no comparison is tested. A table then gets no forest plot.
    """
    if view.scale == DEFAULT_SCALE or view.paper == VARIANTS:
        return ""
    tested = [answer for answer in answered if has_tested(answer.comparisons)]
    if not tested:
        return ""
    family, (comparison, *_) = tested[0]
    if not family.primary:
        return family.question
    if comparison.relation.word in (VerdictWord.CANNOT_TELL, VerdictWord.NOT_TESTED):
        return family.question
    return words.verdict_sentence(comparison)  # the plot shows the numbers


def has_tested(comparisons: Iterable[Comparison]) -> bool:
    return any(comparison.p is not None for comparison in comparisons)


def all_comparisons(answered: list[Answer]) -> list[Comparison]:
    """List the comparisons of all questions."""
    return list(chain.from_iterable(answer.comparisons for answer in answered))


# ---------------------------------------------------------------- what figures can draw


def has_values(view: GridView) -> bool:
    """Whether a figure has anything to draw."""
    return any(cell.values or (cell.published and cell.judged) for cell in view.cells)


def nothing_to_draw(view: GridView) -> str:
    """Say why a figure has nothing to draw although its runs are scored; empty otherwise."""
    if has_values(view):
        return ""
    for plan in [cell.plan for cell in view.cells if cell.plan.specs]:
        content, _ = stored_score(plan.specs[0], plan.evaluator, view.scale)
        if content:
            needs = f"{plan.evaluator} needs {protocol(plan.evaluator).declaration.needs}"
            reason = f"the runs have no scores of the task {plan.task} ({needs})"
            return f"Nothing to draw here: {reason}."
    return ""
