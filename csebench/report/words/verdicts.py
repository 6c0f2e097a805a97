"""Words for verdicts on published values."""

from csebench.plan.schema.paper import SEEDS_NEEDED
from csebench.report.numbers import stats


def not_tested_text(verdict: stats.Verdict, seeds: int) -> str:
    """Word why runs with this number of seeds do not test a published value."""
    if verdict.name == stats.TOO_FEW:
        return f"not tested: {seeds} of at least {SEEDS_NEEDED} seeds"
    return "not tested: no deviation is stated"
