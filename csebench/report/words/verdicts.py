"""Words for verdicts on published values."""

from csebench.base.terminal import counted
from csebench.plan.schema.paper import SEEDS_NEEDED
from csebench.report.numbers import stats
from csebench.report.numbers.verdict_words import PrintedWord


def printed_verdict_text(
    verdict: stats.Verdict, runs: int, digits: int = 2, mean: str = "an average run"
) -> str:
    """Word the verdict on a published value, and how far the value is from the mean of runs.

    `inconclusive: 1.14 above an average run`; `not tested: 2 seeds, at least 3 are needed; …`

    Args:
        runs: number of runs that it is judged by.
        digits: decimals of the distance.
        mean: name of the mean of several runs.
    """
    distance = distance_text(verdict, runs, digits, mean)
    word = stats.printed_word(verdict.name)
    if word == PrintedWord.NOT_TESTED:
        return f"{word}: {why_value_not_tested(verdict, runs)}; {distance}"
    return f"{word}: {distance}"


def distance_text(
    verdict: stats.Verdict, runs: int, digits: int = 2, mean: str = "an average run"
) -> str:
    """Say how far a published value is from the mean of runs: `1.14 above an average run`.

    Takes the arguments of `printed_verdict_text`.
    """
    # the distance is the mean minus the published value; the side is of the published value
    side = "above" if verdict.distance <= 0 else "below"
    whom = "this run" if runs == 1 else mean
    if equals_mean(verdict, digits):
        return f"equal to {whom}"
    return f"{abs(verdict.distance):.{digits}f} {side} {whom}"


def equals_mean(verdict: stats.Verdict, digits: int = 2) -> bool:
    """Whether a published value shows no distance from the mean of runs in so many decimals."""
    return round(verdict.distance, digits) == 0


def why_value_not_tested(verdict: stats.Verdict, seeds: int) -> str:
    """Word why runs with this number of seeds do not test a published value."""
    if verdict.name == stats.TOO_FEW:
        return f"{counted(seeds, 'seed')}, at least {SEEDS_NEEDED} are needed"
    return "no deviation is stated"
