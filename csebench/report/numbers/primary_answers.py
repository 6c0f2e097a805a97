"""The primary answers of a scale as one family of tests.

Every table declares at most one primary question. It is a single comparison, so its p is not
corrected within the table. A reader who looks through all tables reads all of these answers, and by
chance some are significant. So the first page of a
scale says how many are significant after a correction over all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from csebench.report.numbers import stats
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import answer
from csebench.report.numbers.refusals import Relation


@dataclass(frozen=True)
class PrimaryAnswers:
    """Which primary questions of a scale are tested, and how many answers are significant."""

    tested: tuple[tuple[str, str], ...]  # paper, and name of the table or figure
    significant: int  # each by itself
    after_holm: int  # after Holm's correction over all that are tested


def count_primary_answers(views: Iterable[GridView]) -> PrimaryAnswers:
    """Count the primary answers of tables and figures that have a test and are significant.

    Answers that the scale cannot tell, or that a search tuned away, are left out. A difference that
    counts as none, because it is shown to be next to nothing, is tested and not significant.
    """
    tested: list[tuple[str, str]] = []
    p_values: list[float] = []
    for view in views:
        for family in view.grid.compare:
            if not family.primary:
                continue
            for comparison in answer(view, family).comparisons:
                not_tested = comparison.relation in (Relation.CANNOT_TELL, Relation.TUNED_AWAY)
                if comparison.p_family is None or not_tested:
                    continue
                counts_as_none = comparison.relation == Relation.INACTIVE
                tested.append((view.paper, view.name))
                p_values.append(1.0 if counts_as_none else comparison.p_family)
    corrected = stats.holm(p_values)
    return PrimaryAnswers(
        tested=tuple(tested),
        significant=count_significant(p_values),
        after_holm=count_significant(corrected),
    )


def count_significant(p_values: Iterable[float]) -> int:
    """Count the p-values below the level of tests."""
    return len([p for p in p_values if p < stats.LEVEL])
