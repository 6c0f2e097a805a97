"""Two rows over random settings: what each setting gave, and the best of several settings.

In a table that states `random_settings` (csebench/plan/random_settings.py), a seed decides the
settings of a run. estimates.py pairs the runs of two rows by seed, so its deviation over seeds is
one over settings. This module adds two things: the points of the picture, and the difference if
STS-B dev chooses the settings of each row from several random ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from csebench.plan.catalog.registry import declaration
from csebench.plan.recipe import shared_settings
from csebench.plan.schema.declarations import Value
from csebench.plan.schema.spec import Spec
from csebench.report.numbers.cells import Cell, combine_by_seed, shared_seeds
from csebench.report.numbers.estimates import (
    CellPair,
    Estimate,
    WeightedCell,
    error_over_items,
    weighted,
)
from csebench.report.numbers.selection import chances_of_best, expected_of_best
from csebench.score.store import stored_score

MOST_PICKED_FROM = 8  # settings that `BestOf` chooses from, if there are three times as many


@dataclass(frozen=True)
class SettingRun:
    """What the run of a row gave at one setting."""

    value: float  # in printed units; the mean if several columns are compared
    dev: float | None  # Spearman on STS-B dev; None for a row that is not trained
    diverged: bool  # the model is the untrained encoder


@dataclass(frozen=True)
class SharedDraw:
    """One random setting, with the runs of both rows."""

    seed: int
    settings: dict[str, Value]  # those that both rows have
    row: SettingRun
    against: SettingRun


@dataclass(frozen=True)
class BestOf:
    """The difference between two rows, each with the best of several settings by STS-B dev."""

    settings: int  # that dev chooses from
    estimate: Estimate


@dataclass(frozen=True)
class OverSettings:
    """Two rows over the random settings that they share."""

    draws: tuple[SharedDraw, ...]
    higher: int  # settings in which the row is better
    best: BestOf | None  # None: too few settings, or a row is not trained

    @property
    def diverged(self) -> tuple[int, int]:
        """How many runs of each row diverged."""
        of_row = sum(draw.row.diverged for draw in self.draws)
        of_against = sum(draw.against.diverged for draw in self.draws)
        return of_row, of_against


def over_settings(pairs: Sequence[CellPair], scale: str) -> OverSettings | None:
    """Collect what two complete rows gave over random settings.

    Returns:
        None if the table has no random settings.
    """
    own_cells = [cell for cell, _ in pairs]
    other_cells = [base for _, base in pairs]
    cells = [*own_cells, *other_cells]
    plans = [leaf.plan for cell in cells for leaf in cell.leaves]
    if not all(plan.has_random_settings for plan in plans):
        return None
    seeds = shared_seeds(cells)
    row_runs = runs_by_seed(own_cells, seeds, scale)
    against_runs = runs_by_seed(other_cells, seeds, scale)
    settings = settings_in_common(own_cells, other_cells)
    draws = []
    for seed in seeds:
        draws.append(SharedDraw(seed, settings.get(seed, {}), row_runs[seed], against_runs[seed]))
    sign = own_cells[0].sign
    higher = sum(sign * (draw.row.value - draw.against.value) > 0 for draw in draws)
    return OverSettings(tuple(draws), higher, best_of_several(pairs, draws, scale))


def runs_by_seed(cells: Sequence[Cell], seeds: Sequence[int], scale: str) -> dict[int, SettingRun]:
    """Read what the runs of a row gave, by seed.

    If several columns are compared, their mean counts. An untrained row has one run for all seeds.
    """
    values = combine_by_seed(lambda *parts: sum(parts) / len(parts), *cells)
    reports = [training_reports(cell, scale) for cell in cells]
    runs = {}
    for seed in seeds:
        of_seed = [by_seed.get(seed, {}) for by_seed in reports]
        devs = [report.get("best_dev") for report in of_seed]
        dev = None
        if None not in devs:
            dev = float(np.mean(np.array(devs, dtype=float)))
        diverged = any("diverged" in report for report in of_seed)
        value = values[seed] if seed in values else values[0]  # an untrained row
        runs[seed] = SettingRun(value, dev, diverged)
    return runs


def training_reports(cell: Cell, scale: str) -> dict[int, dict]:
    """Read the training report of each run of a cell from its score file, by seed."""
    plan = cell.leaves[0].plan
    reports = {}
    for spec in plan.specs:
        content, _ = stored_score(spec, plan.evaluator, scale)
        if content is not None:
            reports[spec.seed] = content["training"]
    return reports


def settings_in_common(
    own_cells: Sequence[Cell], other_cells: Sequence[Cell]
) -> dict[int, dict[str, Value]]:
    """State the drawn settings that the runs of two rows have in common, by seed.

    An untrained row leaves the settings of the other row.
    """
    own = settings_by_seed(own_cells)
    other = settings_by_seed(other_cells)
    if not own or not other:
        return own or other
    common: dict[int, dict[str, Value]] = {}
    for seed in own.keys() & other.keys():
        # in the order of the row's settings, in which a CSV file lists them
        common[seed] = {
            key: value for key, value in own[seed].items() if other[seed].get(key) == value
        }
    return common


def settings_by_seed(cells: Sequence[Cell]) -> dict[int, dict[str, Value]]:
    """State the drawn settings of each run of a row, by seed; none for an untrained row.

    Settings of a single method or component are left out.
    """
    settings = {}
    for spec in cells[0].leaves[0].plan.specs:
        method = declaration(spec.method)
        if method.is_trained:
            shared = shared_settings(method)
            settings[spec.seed] = {key: spec.params[key] for key in shared}
    return settings


# ---------------------------------------------------------------- the best of several settings


def best_of_several(
    pairs: Sequence[CellPair], draws: Sequence[SharedDraw], scale: str
) -> BestOf | None:
    """Estimate the difference if STS-B dev chooses each row's settings from several random ones.

    Returns:
        None if a row is not trained, or if there are too few settings for an error.
    """
    count = min(MOST_PICKED_FROM, len(draws) // 3)
    cell, _ = pairs[0]
    points = cell.sign * 100 / cell.factor  # of one printed unit
    own = candidates_of([draw.row for draw in draws], points)
    other = candidates_of([draw.against for draw in draws], points)
    if count < 2 or own is None or other is None:
        return None
    seeds = [draw.seed for draw in draws]
    terms = weighted_runs(pairs, seeds, own.chances(count), other.chances(count))
    item_se = error_over_items(terms, scale)
    return BestOf(count, estimate_of_best(count, own, other, item_se))


@dataclass(frozen=True)
class Candidates:
    """The runs of a row that STS-B dev chooses from."""

    dev: np.ndarray  # (settings,)
    values: np.ndarray  # (settings,) what the chosen run is reported with, in points

    def chances(self, count: int) -> np.ndarray:
        """Compute how likely dev chooses each run from a random subset of `count` runs."""
        return chances_of_best(count, self.dev)

    def expected(self, count: int) -> float:
        """Compute the mean value of the chosen run, over all subsets of `count` runs."""
        return expected_of_best(count, self.dev, self.values)

    def without(self, index: int) -> "Candidates":
        """Leave out one setting."""
        return Candidates(np.delete(self.dev, index), np.delete(self.values, index))


def candidates_of(runs: Sequence[SettingRun], points: float) -> Candidates | None:
    """Collect the runs of a row; None for a row that is not trained, which dev cannot choose from.

    Args:
        points: points of one printed unit; negative if less is better.
    """
    devs = [run.dev for run in runs]
    if None in devs:
        return None
    values = points * np.array([run.value for run in runs])
    return Candidates(np.array(devs, dtype=float), values)


def estimate_of_best(
    count: int, own: Candidates, other: Candidates, item_se: float | None = None
) -> Estimate:
    """Estimate the difference of two rows, each with the best of `count` settings by dev.

    The error over settings is a jackknife: each setting is left out once. It has half as
    many degrees of freedom as there are settings (benchmarks/over_settings.py simulates how often
    the test then errs).
    """
    settings = len(own.dev)
    gains = []
    for index in range(settings):
        gains.append(own.without(index).expected(count) - other.without(index).expected(count))
    spread = np.sum((np.array(gains) - np.mean(gains)) ** 2)
    error = sqrt(spread * (settings - 1) / settings)
    freedom = settings // 2
    return Estimate(
        gain=own.expected(count) - other.expected(count),
        seeds=freedom + 1,
        # the deviation of single runs whose mean has this error
        seed_sd=error * sqrt(freedom + 1),
        item_se=item_se,
    )


def weighted_runs(
    pairs: Sequence[CellPair],
    seeds: Sequence[int],
    own_weights: np.ndarray,
    other_weights: np.ndarray,
) -> list[WeightedCell]:
    """Write the difference of weighted runs as a weighted sum of cells with one run each.

    Args:
        seeds: of the runs of both rows.
        own_weights, other_weights: (seeds,) weights of each row's runs.
    """
    own_by_seed = dict(zip(seeds, own_weights, strict=True))
    other_by_seed = dict(zip(seeds, other_weights, strict=True))
    terms = []
    for pair in pairs:
        own_term, other_term = weighted([pair])
        terms += single_runs(own_term, own_by_seed)
        terms += single_runs(other_term, other_by_seed)
    return [(weight / len(pairs), cell) for weight, cell in terms]


def single_runs(term: WeightedCell, weight_by_seed: dict[int, float]) -> list[WeightedCell]:
    """Split a cell into cells with one run each, and weight the runs."""
    weight, cell = term
    terms = []
    for leaf_weight, leaf in cell.weighted_leaves(weight):
        for spec in leaf.plan.specs:
            terms.append((leaf_weight * weight_by_seed[spec.seed], with_one_run(leaf, spec)))
    return terms


def with_one_run(cell: Cell, spec: Spec) -> Cell:
    """Keep one run of a cell."""
    plan = replace(cell.plan, specs=(spec,))
    return replace(cell, plan=plan, values={spec.seed: cell.values[spec.seed]})
