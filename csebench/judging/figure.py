"""The forest plot of judged systems, drawn like those of the tables."""

from pathlib import Path

from csebench.judging.comparison import JudgedComparisons, ranked
from csebench.judging.words import as_seen_from, judgement_in_words
from csebench.report.figures.forest import QuestionGroup, draw_question_groups
from csebench.report.numbers.compare import Comparison


def draw_judgement(judged: JudgedComparisons, path: Path) -> bool:
    """Draw the differences of two systems in all tasks, or of the highest system to the others.

    Args:
        path: an SVG file.

    Returns:
        Whether it was drawn; False if none of these differences is tested.
    """
    tested = [comparison for comparison in drawn_comparisons(judged) if comparison.p is not None]
    if not tested:
        return False
    title = judgement_in_words(judged).sentence
    draw_question_groups([QuestionGroup(title, tested)], title, path)
    return True


def drawn_comparisons(judged: JudgedComparisons) -> list[Comparison]:
    """List the comparisons that have a line in the picture."""
    if len(judged.pairs) == 1:
        (pair,) = judged.pairs
        if len(pair.tasks) == 1:
            return [pair.overall]
        return [pair.overall, *pair.tasks]
    best, *others = ranked(judged.compared)
    return [as_seen_from(best.name, judged.pair(best.name, other.name)) for other in others]
