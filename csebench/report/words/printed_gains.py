"""Sentences about printed gains and their tests over seeds; title and labels of their figure."""

from csebench.base.terminal import and_list
from csebench.plan.rows import short_label
from csebench.report.numbers.printed_gains import (
    NoiseVerdict,
    PrintedGain,
    PrintedGains,
    deviations,
    published_deviation,
)
from csebench.report.numbers.printed_spread import REFERENCE_TITLE
from csebench.report.numbers.stats import LEVEL
from csebench.report.words.audit import paper_label
from csebench.report.words.claims import p_text


def gains_finding(gains: PrintedGains) -> str:
    """Say how many gains are significant over seeds, as a range over the deviations.

    `189 to 277 of 388 printed gains are significant over seeds (t test, 5 %)`
    """
    counts = [gains.count_significant(index) for index in range(len(deviations()))]
    fewest = min(counts)
    most = max(counts)
    count = str(fewest)
    if most > fewest:
        count += f" to {most}"
    test = f"t test, {100 * LEVEL:g} %"
    return f"{count} of {len(gains.gains)} printed gains are significant over seeds ({test})"


def gains_unit(gains: PrintedGains) -> str:
    """Say what the figure shows: unit, number and deviations."""
    first, *_, last = deviations()
    tried = and_list([f"{deviation:.2g}" for deviation in deviations()])
    origin = ""
    if published_deviation() is not None:
        origin = " (others' runs)"
    sentences = [
        (
            "A line for each gain that a claim rests on: the gain divided by its standard error"
            f" over seeds; in each paper, the largest ratio on top. n = {len(gains.gains)}; for"
            f" {gains.without_error} more, the standard error is not known."
        ),
        (
            f"Dot: the ratio if seeds deviate by {first:.2f} points of the STS average on"
            f" {REFERENCE_TITLE}{origin}."
        ),
        (
            f"The line ends at the ratio for {last:g} points (the median deviation that papers"
            " print for stronger methods at 10 % of the corpus)."
        ),
        (
            f"Band (±1.96): without a true difference, {100 - 100 * LEVEL:g} % of ratios lie in it"
            " if the deviation is known well. If it comes from few seeds, a gain needs a larger"
            f" ratio. Colour: whether it is significant at deviations of {tried}, or goes the other"
            " way, significantly or not."
        ),
    ]
    return " ".join(sentences)


def gain_label(gain: PrintedGain) -> str:
    """Name a gain: `+2.60 over SimCSE-BERTbase in Avg.`

    The row is named if its name is not that of the paper's method: `AMI+SimCSE: +0.73 over …`.
    """
    difference = -gain.gain if gain.lower else gain.gain
    size = f"{abs(difference):.{gain.digits}f}"
    noun = "gain" if gain.is_of_gains else ""
    text = side_text(difference, size, noun)
    text += f" {short_label(gain.versus)} in {gain.column}"
    if gain.row.startswith(paper_label(gain.paper)):
        return text
    return f"{short_label(gain.row)}: {text}"


def side_text(difference: float, size: str, noun: str = "") -> str:
    """Word on which side of another row a row is: `+0.40 over`, `gain larger by 0.40 than that of`.

    Args:
        size: of the difference, without its sign.
        noun: what differs, if it is not the score itself.
    """
    if noun:
        compared = "smaller" if difference < 0 else "larger"
        return f"{noun} {compared} by {size} than that of"
    if difference < 0:
        return f"{size} below"
    return f"+{size} over"


def support_text(gain: PrintedGain) -> str:
    """Say whether the paper's numbers support a gain, at all deviations over seeds that are tried.

    `The paper's numbers leave this open (p = 0.2 if the STS average of BERT-base deviates by 0.84
    points over seeds), and support it if it deviates by 0.5 or less.`
    """
    if gain.verdict == NoiseVerdict.REVERSED:
        return "The paper claims the opposite."
    first, *others = deviations()
    p = p_text(gain.p_values[0], tests=1)
    if len(set(gain.p_values)) > 1:  # otherwise the paper prints the deviations of both rows
        p += f" if the STS average of {REFERENCE_TITLE} deviates by {first:.2g} points over seeds"
    if gain.p_values[0] < LEVEL:
        return f"The paper's numbers support this ({p})."
    text = f"The paper's numbers leave this open ({p})"
    for deviation, smaller_p in zip(others, gain.p_values[1:], strict=True):
        if smaller_p < LEVEL:
            return f"{text}, and support it if it deviates by {deviation:g} or less."
    return f"{text}."
