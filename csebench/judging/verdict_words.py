"""The words for verdicts on systems. Their sentences are in words.py."""

from enum import StrEnum


class VerdictWord(StrEnum):
    """What is shown of the first of two systems."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"
    UNCLEAR = "unclear"
    NOT_TESTED = "not tested"
    CANNOT_TELL = "cannot tell"
