"""What is left of targets, what it costs on one device, and which part of it gives the most within some hours.

A score costs several steps: its run is trained, perhaps after another run or a back-translation, then scored. A step
is paid once, whatever needs it. Printed by csebench/plan/plan_report.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Literal, NamedTuple

from csebench.base.errors import unknown
from csebench.base.run_dir import DONE
from csebench.plan import catalog, forecast, recipe, targets
from csebench.plan.forecast import Estimate
from csebench.plan.grids import CellPlan, find_grid, parts_of_cell, plan_grid
from csebench.plan.papers import SettingsTable
from csebench.plan.schema import Scale
from csebench.plan.spec import Spec


class Step(NamedTuple):
    """A piece of work that is done once."""

    kind: Literal["translate", "train", "score"]
    run: str  # of `translate`, the key of the corpus
    evaluator: str = ""  # of `score`


class Score(NamedTuple):
    run: str
    evaluator: str


@dataclass(frozen=True)
class Bundle:
    """The cells that need the same scores: with these, all of them are finished."""

    scores: frozenset[Score]
    cells: tuple[tuple[str, str, int, int], ...]  # paper, name, row, column


@dataclass(frozen=True)
class Goal:
    """What time is spent on: a bundle."""

    bundles: tuple[int, ...]
    steps: frozenset[Step]


@dataclass
class Choice:
    """Scores to be made, in order, and what they finish."""

    scores: list[Score] = field(default_factory=list)
    steps: set[Step] = field(default_factory=set)
    bundles: set[int] = field(default_factory=set)


class Work:
    """What is left of pages of one scale.

    Args:
        seeds: that count: the first so many of a cell; None: all.
        device: of data/step_times.yaml; None: the fastest that the encoder of most runs was measured on.

    Raises:
        BadInput: no such device.
    """

    def __init__(self, pages: list[targets.Page], seeds: int | None = None, device: str | None = None):
        self.pages, self.seeds = pages, seeds
        self.scale: Scale = catalog.scale(pages[0].scale)
        self.grids = list(dict.fromkeys(grid for page in pages for grid in page.grids()))
        self.specs: dict[str, Spec] = {run: spec for page in pages for run, spec in page.runs().items()}
        self.encoders = {run: forecast.base_encoder(spec, self.scale.scale) for run, spec in self.specs.items()}
        known = [times.device for times in forecast.step_times()]
        if device is not None and device not in known:
            raise unknown("device of data/step_times.yaml", device, known)
        self.device = device or forecast.default_device(self.encoders.values())
        encoders = set(self.encoders.values())
        known_times = {name: forecast.times_on(self.device, name) for name in encoders} if self.device else {}
        self.times = {name: times for name, times in known_times.items() if times is not None}
        self._prices: dict[Step, Estimate | None] = {}
        self._made: dict[Score, bool] = {}

    # ------------------------------------------------------------ cells

    @cached_property
    def cells(self) -> dict[tuple[str, str, int, int], frozenset[Score]]:
        """Scores behind every cell that can be finished."""
        cells = {}
        for paper, name in self.grids:
            grid, plans = find_grid(paper, name), plan_grid(paper, name, self.scale.scale)
            if isinstance(grid, SettingsTable):
                continue
            for row in range(len(plans)):
                for column in range(len(grid.columns)):
                    scores = self._scores(parts_of_cell(grid, plans, row, column))
                    if scores and all(self.is_possible(score) for score in scores):
                        cells[paper, name, row, column] = scores
        return cells

    def _scores(self, parts: list[CellPlan]) -> frozenset[Score]:
        """The scores of the seeds that count; none where a part has no runs."""
        if not all(part.specs for part in parts):
            return frozenset()
        return frozenset(Score(s.run_id, part.evaluator) for part in parts for s in part.specs[: self.seeds])

    def is_possible(self, score: Score) -> bool:
        return self.is_made(score) or targets.unavailable(score.evaluator, self.scale.scale) is None

    def is_made(self, score: Score) -> bool:
        if score not in self._made:
            self._made[score] = targets.score_path(*score, self.scale.scale).exists()
        return self._made[score]

    @cached_property
    def bundles(self) -> list[Bundle]:
        cells: dict[frozenset[Score], list] = {}
        for cell, scores in self.cells.items():
            cells.setdefault(scores, []).append(cell)
        return [Bundle(scores, tuple(of)) for scores, of in cells.items()]

    # ------------------------------------------------------------ costs

    def steps(self, scores: Iterable[Score]) -> set[Step]:
        """What must be done for scores that are not there yet."""
        steps: set[Step] = set()
        for score in scores:
            if not self.is_made(score):
                steps |= {Step("score", *score), *self._training(score.run)}
        return steps

    def _training(self, run: str) -> set[Step]:
        if (catalog.RUNS / run / DONE).exists():
            return set()
        spec, steps = self.specs[run], {Step("train", run)}
        if spec.encoder.revision in self.specs:
            steps |= self._training(spec.encoder.revision)
        if (positives := recipe.positives_path(spec)) is not None and not positives.exists():
            steps.add(Step("translate", positives.stem))
        return steps

    def price(self, step: Step) -> Estimate | None:
        """Forecast of a step; None where nothing was measured."""
        if step not in self._prices:
            times = None if step.kind == "translate" else self.times.get(self.encoders[step.run])
            if times is None:
                self._prices[step] = None
            elif step.kind == "train":
                self._prices[step] = forecast.training(self.specs[step.run], times)
            else:
                self._prices[step] = forecast.scoring(step.evaluator, times)
        return self._prices[step]

    def cost(self, steps: Iterable[Step]) -> tuple[Estimate, int]:
        """(forecast of steps, number of those that were not measured and are not in it)"""
        prices = [self.price(step) for step in steps]
        return forecast.total(p for p in prices if p is not None), prices.count(None)

    @property
    def missing(self) -> set[Score]:
        """The scores that are not there yet, of all cells that can be finished."""
        return {score for bundle in self.bundles for score in bundle.scores if not self.is_made(score)}

    # ------------------------------------------------------------ choice

    def choose(self, hours: float = inf) -> Choice:
        """The work in the order of the cells that it finishes per hour.

        Greedy: the next goal is that with the most per hour of what is not paid yet, among those that still fit. Goals
        that need something that was not measured come last, and not at all where hours are limited.
        """
        needs = [frozenset(self.steps(bundle.scores)) for bundle in self.bundles]
        values = [len(bundle.cells) for bundle in self.bundles]
        goals = [Goal((index,), steps) for index, steps in enumerate(needs)]
        users: dict[Step, list[int]] = {}
        for index, goal in enumerate(goals):
            for step in goal.steps:
                users.setdefault(step, []).append(index)
        choice, left = Choice(), 3600 * hours

        def rate(goal: Goal) -> tuple[float, float]:
            """(what a goal finishes per second, its seconds), of what is left of it"""
            seconds = self.cost(goal.steps - choice.steps)[0].seconds
            value = sum(values[i] for i in goal.bundles if i not in choice.bundles)
            return value / seconds if seconds else inf, seconds

        def take(goal: Goal) -> None:
            rest = goal.steps - choice.steps
            choice.scores += [Score(step.run, step.evaluator) for step in sorted(rest) if step.kind == "score"]
            choice.steps |= rest
            choice.bundles |= set(goal.bundles)

        measured = {step: self.price(step) is not None for step in users}
        rates = {i: rate(goal) for i, goal in enumerate(goals) if all(measured[step] for step in goal.steps)}
        while fitting := [index for index, (_, seconds) in rates.items() if seconds <= left]:
            best = max(fitting, key=lambda index: (rates[index][0], -index))
            left -= rates.pop(best)[1]
            changed = {index for step in goals[best].steps - choice.steps for index in users[step] if index in rates}
            take(goals[best])
            rates |= {index: rate(goals[index]) for index in changed}
        if hours == inf:
            for goal in goals:
                if not all(measured[step] for step in goal.steps):
                    take(goal)
        return choice

    def tally(self, bundles: Iterable[int]) -> int:
        """Cells of bundles."""
        return sum(len(self.bundles[index].cells) for index in bundles)
