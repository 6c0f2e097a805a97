"""Differences between rows that a claim of a paper is about, with their errors.

A claim compares one row with others, in one or several columns. `pair_cells` finds the cells.
`contrast_printed` takes their difference in the printed numbers, `contrast_runs` in our runs. What
the differences say of the claim is decided in claims.py.

Every p is two-sided and of one contrast by itself. It is not corrected for their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from math import inf, sqrt

import numpy as np

from csebench.plan.schema.paper import Claim, Published
from csebench.plan.schema.spec import Spec
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView, gain_cell
from csebench.report.numbers.compare import INACTIVE
from csebench.report.numbers.controls import why_scale_cannot_tell
from csebench.report.numbers.estimates import estimate_of, is_over_seeds_only
from csebench.report.numbers.printed_spread import add, row_variance
from csebench.report.numbers.refusals import Refusal, Relation, why_not
from csebench.report.numbers.row_settings import Setting, setting_differences
from csebench.report.numbers.stats import SLACK, Summary
from csebench.report.numbers.tuned_away import TunedAway, terms_tuned_away

CellPairs = list[tuple[Cell, Cell]]  # of the claim's row, and of the row that it is compared with


@dataclass(frozen=True)
class Pairing:
    """The cells that one contrast compares."""

    versus: str  # label of the other row
    column: str  # its label, or `average`
    pairs: CellPairs  # one, or one per column if the claim is about an average

    @property
    def less_is_better(self) -> bool:
        """Whether a lower score is better in the column."""
        return self.pairs[0][0].plan.column.lower


@dataclass(frozen=True)
class Contrast:
    """One difference that a claim is about, in printed units."""

    versus: str  # label of the other row
    column: str
    difference: float  # positive if it agrees with a claim that the row is above
    error: float | None = None  # its standard error with `df` degrees of freedom, if known
    df: float = inf
    p: float | None = None  # two-sided
    unit: float = 0.0  # of the last printed digit; 0 for our runs
    differs: tuple[Setting, ...] = ()  # shared settings that our rows do not have in common
    # for our runs: the evaluator declares test items, but the scores have no replicates over them
    over_seeds_only: bool = False
    # for our runs: the difference is shown to be within INACTIVE; `p` is then 1
    is_inactive: bool = False
    tuned_away: tuple[TunedAway, ...] = ()  # terms that only one row has, without effect
    has_zero_deviation: bool = False  # a compared deviation is 0, so that no F test is possible
    less_is_better: bool = False  # in the column

    @property
    def is_printed(self) -> bool:
        """Whether it is a difference of printed numbers."""
        return self.unit > 0

    def half(self, times: int) -> float:
        """Give half the width of the 95 % interval that holds for this many contrasts at once."""
        if self.error is None:
            return inf
        return self.error * stats.quantile(1 - stats.LEVEL / times, self.df)


class Obstacle(StrEnum):
    """A reason why two rows give no contrast."""

    NO_NUMBERS = "no numbers"
    SAME_RUNS = "same runs"
    NOT_COMPARABLE = "not comparable"
    CONTROL = "control"
    NOT_STANDARD = "not standard"
    SAME_SENTENCES = "same sentences"  # two sizes of the corpus, but no run reaches its end
    ONE_SEED = "one seed"
    EQUAL_SCORES = "equal scores"
    CANNOT_TELL = "cannot tell"  # controls of the scale fail


@dataclass(frozen=True)
class NoContrast:
    """Two rows that give no contrast, with the reason."""

    obstacle: Obstacle
    row: str = ""  # for NOT_STANDARD: label of the row
    refusal: Refusal | None = None  # for NOT_COMPARABLE


NO_NUMBERS = NoContrast(Obstacle.NO_NUMBERS)


def pair_cells(claim: Claim, here: GridView, there: GridView) -> list[Pairing]:
    """Pair the cells of a claim's row with the cells of every row that it is compared with.

    Args:
        here: the table or figure of the claim's row.
        there: the table or figure of the other rows, which may be the same.

    Returns:
        A pairing per row and column, or per row if the claim is about an average.
    """
    own_cells = compared_cells(claim, here, here.score_grid.row(claim.row))
    is_same_place = claim.places[0] == claim.places[-1]
    pairings = []
    for index in claim.versus_rows(there.score_grid, is_same_place):
        other_cells = compared_cells(claim, there, index)
        versus = there.score_grid.rows[index].label
        if claim.versus_column:
            versus += f" ({claim.versus_column})"
        pairs = []
        for column in claim.columns:
            own = own_cells[here.score_grid.column(column)]
            other = other_cells[there.score_grid.column(claim.versus_column or column)]
            pairs.append((own, other))
        if claim.on_average:
            pairings.append(Pairing(versus, "average", pairs))
        else:
            for column, pair in zip(claim.columns, pairs, strict=True):
                pairings.append(Pairing(versus, column, [pair]))
    return pairings


def compared_cells(claim: Claim, view: GridView, index: int) -> list[Cell]:
    """List the cells of a row, or of its gain over another row if the claim is about gains."""
    cells = view.rows[index]
    base = claim.gains_over.get(view.score_grid.rows[index].label)
    if base is None:
        return cells
    base_cells = view.rows[view.score_grid.row(base)]
    return [gain_cell(cell, other) for cell, other in zip(cells, base_cells, strict=True)]


# ---------------------------------------------------------------- printed numbers


def contrast_printed(
    claim: Claim, pairing: Pairing, deviation: float | None = None
) -> Contrast | NoContrast:
    """Take the difference of printed numbers, with the error that seeds give it.

    Args:
        deviation: assumed deviation over seeds of numbers that are printed without one
            (`printed_spread.single_run_variance`). None takes the deviation that others published.
    """
    own: list[Published] = []
    others: list[Published] = []
    for own_cell, other_cell in pairing.pairs:
        if own_cell.published is None or other_cell.published is None:
            return NO_NUMBERS
        own.append(own_cell.published)
        others.append(other_cell.published)

    sign = sign_of(claim)
    unit = max(value.unit for value in (*own, *others))
    if claim.statistic == "std":  # such a claim is about a single pair of cells
        sides = []
        for value, cell in zip((*own, *others), pairing.pairs[0], strict=True):
            sides.append(Summary(value.value, value.std, cell.published_seeds))
        return contrast_deviations(pairing, sign, sides, unit) or NO_NUMBERS

    gains = [mine.value - theirs.value for mine, theirs in zip(own, others, strict=True)]
    difference = sign * float(np.mean(gains))
    varying_pairs = [varying_cells(*pair) for pair in pairing.pairs]
    own_varying, other_varying = zip(*varying_pairs, strict=True)
    sides_varying = (own_varying, other_varying)
    variance = add([row_variance(cells, deviation=deviation) for cells in sides_varying])
    contrast = Contrast(
        pairing.versus,
        pairing.column,
        difference,
        unit=unit,
        less_is_better=pairing.less_is_better,
    )
    if variance is None:
        return contrast
    squared_error, df = variance
    p = stats.two_sided(difference, variance)
    return replace(contrast, error=sqrt(squared_error), df=df, p=p)


def varying_cells(own: Cell, other: Cell) -> tuple[Cell, Cell]:
    """Give the cells whose errors make the error of a difference between two cells.

    If both cells are differences to one baseline, the baseline cancels. The error then comes only
    from the two cells that the baseline is subtracted from.
    """
    are_deltas = own.plan.column.delta and other.plan.column.delta
    if not are_deltas or not own.parts or not other.parts:
        return own, other
    own_minuend, own_baseline = own.parts
    other_minuend, other_baseline = other.parts
    if own_baseline is not other_baseline:
        return own, other
    return own_minuend, other_minuend


# ---------------------------------------------------------------- our runs


def contrast_runs(
    claim: Claim, pairing: Pairing, scale: str, count: int = 1
) -> Contrast | NoContrast:
    """Take the difference of our runs, paired by seed, with its error over seeds and test items.

    A difference counts as none if it is shown to be within INACTIVE. Its p is then 1.

    Args:
        count: number of contrasts of the claim. They are one family of tests.
    """
    pairs = pairing.pairs
    obstacle = obstacle_to_runs(pairs)
    if obstacle is not None:
        return obstacle
    if why_scale_cannot_tell(pairs, scale) is not None:
        return NoContrast(Obstacle.CANNOT_TELL)

    sign = sign_of(claim)
    if claim.statistic == "std":
        sides = [cell.ours for cell in pairs[0] if cell.ours is not None]
        contrast = contrast_deviations(pairing, sign, sides, unit=0.0)
        return contrast or NoContrast(Obstacle.ONE_SEED)

    weight = sign / len(pairs)
    terms: list[tuple[float, Cell]] = []
    for own, other in pairs:
        terms += [(weight, own), (-weight, other)]
    estimate = estimate_of(terms, scale)
    if estimate.is_within(SLACK):
        return NoContrast(Obstacle.EQUAL_SCORES)
    is_inactive = estimate.is_within(INACTIVE * pairs[0][0].factor / 100, count)

    differs = compared_settings(claim, pairs)
    if claim.versus_column:  # the claim itself compares sizes of the training set
        differs = tuple(setting for setting in differs if setting.name != "sentences")
    error, df = estimate.error()
    p = estimate.p()
    return Contrast(
        pairing.versus,
        pairing.column,
        estimate.gain,
        None if p is None else error,
        df,
        1.0 if is_inactive else p,
        differs=differs,
        over_seeds_only=is_over_seeds_only(estimate, pairs),
        is_inactive=is_inactive,
        tuned_away=terms_tuned_away(pairs, scale),
        less_is_better=pairing.less_is_better,
    )


def compared_settings(claim: Claim, pairs: CellPairs) -> tuple[Setting, ...]:
    """List shared settings in which the rows of a claim differ.

    If the claim is about gains, every row is matched with the row that is subtracted from it.
    """
    if not claim.gains_over:
        return setting_differences(pairs)
    settings: list[Setting] = []
    for gain in chain.from_iterable(pairs):
        row, subtracted = gain.parts
        settings += setting_differences([(row, subtracted)])
    return tuple(dict.fromkeys(settings))


def obstacle_to_runs(pairs: CellPairs) -> NoContrast | None:
    """Say why our runs give no contrast. None if they give one, as far as cells can tell."""
    refusal = why_not(pairs)
    if refusal is not None:
        if refusal.relation == Relation.SAME_RUNS:
            return NoContrast(Obstacle.SAME_RUNS)
        return NoContrast(Obstacle.NOT_COMPARABLE, refusal=refusal)
    cells = list(chain.from_iterable(pairs))
    if any(cell.is_control for cell in cells):
        return NoContrast(Obstacle.CONTROL)
    for cell in cells:
        if not cell.is_standard:
            return NoContrast(Obstacle.NOT_STANDARD, row=cell.plan.row.label)
    if any(differ_in_size_unseen(*pair) for pair in pairs):
        return NoContrast(Obstacle.SAME_SENTENCES)
    return None


def differ_in_size_unseen(own: Cell, other: Cell) -> bool:
    """Whether two cells train on corpora of different sizes, but no run reaches the end of one.

    The size of the corpus then makes no difference to what runs see.
    """
    own_specs = specs_of(own)
    other_specs = specs_of(other)
    own_sizes = {spec.corpus.size for spec in own_specs if spec.corpus}
    other_sizes = {spec.corpus.size for spec in other_specs if spec.corpus}
    if not own_sizes or not other_sizes or own_sizes == other_sizes:
        return False
    sentences_seen = []
    for spec in (*own_specs, *other_specs):
        steps = float(spec.params.get("steps", inf))
        sentences_seen.append(steps * float(spec.params.get("batch_size", 1)))
    return max(sentences_seen) <= min(own_sizes | other_sizes)


def specs_of(cell: Cell) -> list[Spec]:
    """List the runs that a cell is computed from."""
    specs = []
    for leaf in cell.leaves:
        specs += leaf.plan.specs
    return specs


# ---------------------------------------------------------------- both


def sign_of(claim: Claim) -> int:
    """Give -1 if a smaller value counts as above, else 1."""
    return -1 if claim.lower else 1


def contrast_deviations(
    pairing: Pairing, sign: int, sides: Sequence[Summary], unit: float
) -> Contrast | None:
    """Take the difference of two standard deviations, with the p of a two-sided F test.

    Returns:
        None if one of the deviations is not known.
    """
    from scipy.special import fdtrc

    own, other = sides
    if own.std is None or other.std is None:
        return None
    p = None
    has_zero_deviation = 0 in (own.std, other.std)
    if not has_zero_deviation and min(own.n, other.n) > 1:
        upper = float(fdtrc(own.n - 1, other.n - 1, (own.std / other.std) ** 2))
        p = 2 * min(upper, 1 - upper)
    return Contrast(
        pairing.versus,
        pairing.column,
        sign * (own.std - other.std),
        p=p,
        unit=unit,
        has_zero_deviation=has_zero_deviation,
    )
