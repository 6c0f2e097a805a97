"""Words for two rows that are compared over random settings which they share."""

from csebench.base.terminal import counted
from csebench.plan.rows import short_label
from csebench.report.numbers.compare import Comparison
from csebench.report.numbers.estimates import Estimate
from csebench.report.words.comparisons import numbers_text, outward_range


def settings_sentences(comparison: Comparison) -> list[str]:
    """Word a comparison over random settings: the mean, the best of several, and divergences.

    `Over 24 shared settings: miCSE − SimCSE +0.70 (95 % -0.30 to +1.70), higher in 15.`
    `If each keeps the best of 8 of these settings by STS-B dev: +0.40 (95 % -0.80 to +1.60).`

    Returns:
        No sentence if the comparison has no result over random settings.
    """
    over = comparison.over_settings
    if over is None or comparison.estimate is None:
        return []
    row = short_label(comparison.row)
    against = short_label(comparison.against)
    mean = numbers_text(comparison)
    sentences = [
        f"Over {len(over.draws)} shared settings: {row} − {against} {mean},"
        f" higher in {over.higher}."
    ]
    if over.best is not None:
        best = estimate_text(over.best.estimate)
        count = over.best.settings
        sentences.append(
            f"If each keeps the best of {count} of these settings by STS-B dev: {best}."
        )
    for label, number in zip((row, against), over.diverged, strict=True):
        if number:
            count = "counts" if number == 1 else "count"
            runs = counted(number, "run")
            sentences.append(f"{runs} of {label} diverged and {count} as the untrained encoder.")
    return sentences


def estimate_text(estimate: Estimate) -> str:
    """`+0.70 (95 % -0.30 to +1.70)`; the interval is of this difference alone."""
    low, high = estimate.interval()
    return f"{estimate.gain:+z.2f} (95 % {outward_range(low, high, '+')})"
