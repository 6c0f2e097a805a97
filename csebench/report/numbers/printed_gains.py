"""Compare the gains that papers' claims rest on with their noise over seeds.

The figure of all printed gains shows them. A gain is the difference of two printed numbers that a
claim compares. Its noise over seeds, or noise in short, is its standard error over seeds
(printed_spread.py), at the deviation that others published and at each assumed one. Claims that two
rows are comparable state no gain and are left out. No score of this project is read, and no scale
matters.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from csebench.base.caches import cached
from csebench.plan.catalog.evidence import AVERAGE
from csebench.plan.catalog.files import DEFAULT_SCALE, paper_names
from csebench.plan.schema.paper import Claim
from csebench.report.numbers import stats
from csebench.report.numbers.claims import judge_printed, stated_quotes
from csebench.report.numbers.contrasts import Contrast
from csebench.report.numbers.others import spread
from csebench.report.numbers.printed_spread import ASSUMED_DEVIATIONS, REFERENCE_ENCODER


class NoiseVerdict(StrEnum):
    """How a printed gain stands to its noise over seeds, at all deviations that are tried."""

    CLEAR = "significant"  # at every deviation
    DEPENDS = "depends on the deviation"
    WITHIN = "not significant"  # at no deviation
    REVERSED = "goes the other way"  # significantly or not


@dataclass
class PrintedGain:
    """A comparison of two rows, which one or several sentences of a paper rest on."""

    paper: str
    row: str  # label of the row that a claim is about
    versus: str  # label of the other row
    column: str
    gain: float  # in printed units; negative if it goes against the claim
    digits: int  # of the printed numbers
    lower: bool  # whether the claim says that the row is below the other one
    is_of_gains: bool  # whether the claim compares what two rows gain
    ratios: tuple[float, ...]  # gain divided by its noise, for each of `deviations`
    p_values: tuple[float, ...]  # two-sided, for each of `deviations`
    quotes: set[str] = field(default_factory=set)  # sentences that rest on it
    states_size: bool = False  # whether one of these sentences states its size

    @property
    def verdict(self) -> NoiseVerdict:
        """Say how the gain stands to its noise over seeds."""
        if self.gain < 0:
            return NoiseVerdict.REVERSED
        significant = [p < stats.LEVEL for p in self.p_values]
        if all(significant):
            return NoiseVerdict.CLEAR
        if any(significant):
            return NoiseVerdict.DEPENDS
        return NoiseVerdict.WITHIN


@dataclass(frozen=True)
class PrintedGains:
    """All gains that claims rest on."""

    gains: list[PrintedGain]
    without_error: int  # comparisons whose noise over seeds is not known, or is 0

    def of_paper(self, name: str) -> list[PrintedGain]:
        """List the gains of a paper, the smallest in units of its noise first."""
        gains = [gain for gain in self.gains if gain.paper == name]
        return sorted(gains, key=lambda gain: gain.ratios[0])

    def count_significant(self, index: int) -> int:
        """Count the gains that are significant at a deviation of `deviations`."""
        significant = [
            gain for gain in self.gains if gain.gain > 0 and gain.p_values[index] < stats.LEVEL
        ]
        return len(significant)


def deviations() -> tuple[float, ...]:
    """List the deviations of the STS average over seeds, in points.

    The first is the one that others published, if any did. The assumed ones follow, the largest
    first.
    """
    published = published_deviation()
    if published is None:
        return ASSUMED_DEVIATIONS
    return (published, *ASSUMED_DEVIATIONS)


def published_deviation() -> float | None:
    """Give the deviation of the STS average over seeds that others published, in points, if any."""
    borrowed = spread(REFERENCE_ENCODER, AVERAGE)
    if borrowed is None:
        return None
    return borrowed.std


@cached
def printed_gains() -> PrintedGains:
    """Collect the gains that all claims rest on."""
    return collect_gains(stated_quotes(DEFAULT_SCALE, paper_names()))


def collect_gains(sentences: Iterable[tuple[str, list[Claim]]]) -> PrintedGains:
    """Collect the gains that sentences rest on, each once.

    Two tables of a paper may print the same comparison. It counts once if all its numbers are the
    same.

    Args:
        sentences: pairs of a paper and the claims of a sentence.
    """
    gains: dict[tuple, PrintedGain] = {}
    without_error = set()
    for name, claims in sentences:
        for claim in claims:
            if claim.relation == "comparable":
                continue
            for at_deviations, digits in contrasts_of(name, claim):
                contrast = at_deviations[0]
                rows = (claim.row, contrast.versus)
                comparison = (name, *rows, contrast.column, contrast.difference)
                if any(not at.error or at.p is None for at in at_deviations):
                    without_error.add(comparison)
                    continue
                key = (*comparison, *(at.error for at in at_deviations))
                if key not in gains:
                    gains[key] = gain_of(name, claim, at_deviations, digits)
                gains[key].quotes.add(claim.quote)
                if claim.by is not None or claim.up_to is not None:
                    gains[key].states_size = True
    return PrintedGains(list(gains.values()), len(without_error))


def find_gain(
    paper_name: str, place: str, row: str, versus: str, column: str
) -> PrintedGain | None:
    """Find the gain of a row over another one in a column, if a claim of the paper rests on it.

    Only the claims about this row are judged: a page needs one gain, and to judge all claims is
    slow.

    Args:
        place: the table or figure that prints it, such as `table2`.
    """
    sentences = []
    for name, claims in stated_quotes(DEFAULT_SCALE, [paper_name], place):
        about_row = [claim for claim in claims if claim.row == row and claim.places == [place]]
        sentences.append((name, about_row))
    for gain in collect_gains(sentences).gains:
        if (gain.versus, gain.column) == (versus, column):
            return gain
    return None


def contrasts_of(paper_name: str, claim: Claim) -> Iterator[tuple[tuple[Contrast, ...], int]]:
    """Give each contrast of a claim at every deviation, with the digits of its numbers."""
    judgements = []
    for deviation in deviations():
        judgements.append(judge_printed(paper_name, claim, DEFAULT_SCALE, deviation))
    by_deviation = [judgement.contrasts for judgement in judgements]
    for at_deviations in zip(*by_deviation, strict=True):
        yield at_deviations, judgements[0].digits


def gain_of(
    paper_name: str, claim: Claim, at_deviations: tuple[Contrast, ...], digits: int
) -> PrintedGain:
    """Make a gain of one contrast, which has an error at every deviation."""
    contrast = at_deviations[0]
    ratios = [at.difference / at.error for at in at_deviations if at.error]
    p_values = [at.p for at in at_deviations if at.p is not None]
    return PrintedGain(
        paper_name,
        claim.row,
        contrast.versus,
        contrast.column,
        contrast.difference,
        digits,
        claim.lower,
        bool(claim.gains_over),
        tuple(ratios),
        tuple(p_values),
    )
