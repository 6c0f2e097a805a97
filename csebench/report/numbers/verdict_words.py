"""The words for verdicts, which pages, verbs, CSV files, JSON and figures share.

A comparison of two rows has a VerdictWord, a printed value a PrintedWord, and a claim of a paper a
ClaimVerdict (claims.py). Finer classes map onto them: Relation (refusals.py), the names of
stats.Verdict, and ClaimOutcome (claims.py).
"""

from enum import StrEnum


class VerdictWord(StrEnum):
    """The verdict on a row against another. Where less is better, the better row is higher."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"  # shown to be within a limit
    UNCLEAR = "unclear"  # tested, but not significant
    NOT_TESTED = "not tested"
    CANNOT_TELL = "cannot tell"  # controls of the scale fail, so that nothing is judged


class PrintedWord(StrEnum):
    """The verdict on a printed value, by our runs or by those of others."""

    AGREES = "agrees"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"  # the runs vary too much to rule out much
    NOT_TESTED = "not tested"
