"""What is left of targets, and what it costs on one device.

A score costs several steps: its run is trained, perhaps after another run or a back-translation, then scored. A step
is paid once, whatever needs it. Printed by csebench/cli/plan.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, NamedTuple

from csebench.base.errors import unknown
from csebench.base.runs import has_model
from csebench.plan import catalog, cost, recipe, targets
from csebench.plan.cost import Estimate
from csebench.plan.declarations import Scale
from csebench.plan.grids import CellPlan, find_grid, parts_of_cell, plan_grid
from csebench.plan.papers import SettingsTable
from csebench.plan.spec import Spec


class Step(NamedTuple):
    """A piece of work that is done once."""

    kind: Literal["translate", "train", "score"]
    run: str  # of `translate`, the key of the corpus
    evaluator: str = ""  # of `score`


class Score(NamedTuple):
    run: str
    evaluator: str


class Work:
    """What is left of pages of one scale.

    Args:
        device: of data/step_times.yaml; None: the fastest that the encoder of most runs was measured on.

    Raises:
        BadInput: no such device.
    """

    def __init__(self, pages: list[targets.Page], device: str | None = None):
        self.pages = pages
        self.scale: Scale = catalog.scale(pages[0].scale)
        self.grids = list(dict.fromkeys(grid for page in pages for grid in page.grids()))
        self.specs: dict[str, Spec] = {run: spec for page in pages for run, spec in page.runs().items()}
        self.encoders = {run: cost.base_encoder(spec, self.scale.scale) for run, spec in self.specs.items()}
        known = [times.device for times in cost.step_times()]
        if device is not None and device not in known:
            raise unknown("device of data/step_times.yaml", device, known)
        self.device = device or cost.default_device(self.encoders.values())
        encoders = set(self.encoders.values())
        known_times = {name: cost.times_on(self.device, name) for name in encoders} if self.device else {}
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
                    scores = scores_of_cell(parts_of_cell(grid, plans, row, column))
                    if scores and all(self.is_possible(score) for score in scores):
                        cells[paper, name, row, column] = scores
        return cells

    def is_possible(self, score: Score) -> bool:
        return self.is_made(score) or targets.unavailable(score.evaluator, self.scale.scale) is None

    def is_made(self, score: Score) -> bool:
        if score not in self._made:
            self._made[score] = targets.score_path(*score, self.scale.scale).exists()
        return self._made[score]

    # ------------------------------------------------------------ costs

    def steps(self, scores: Iterable[Score]) -> set[Step]:
        """What must be done for scores that are not there yet."""
        steps: set[Step] = set()
        for score in scores:
            if not self.is_made(score):
                steps |= {Step("score", *score), *self._training(score.run)}
        return steps

    def _training(self, run: str) -> set[Step]:
        if has_model(catalog.RUNS / run):
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
                self._prices[step] = cost.training(self.specs[step.run], times)
            else:
                self._prices[step] = cost.scoring(step.evaluator, times)
        return self._prices[step]

    def cost(self, steps: Iterable[Step]) -> tuple[Estimate, int]:
        """(forecast of steps, number of those that were not measured and are not in it)"""
        prices = [self.price(step) for step in steps]
        return cost.total(p for p in prices if p is not None), prices.count(None)

    @property
    def missing(self) -> set[Score]:
        """The scores that are not there yet, of all cells that can be finished."""
        return {score for scores in self.cells.values() for score in scores if not self.is_made(score)}


def scores_of_cell(parts: list[CellPlan]) -> frozenset[Score]:
    """The scores behind the parts of a cell; none where a part has no runs."""
    if not all(part.specs for part in parts):
        return frozenset()
    return frozenset(Score(spec.run_id, part.evaluator) for part in parts for spec in part.specs)
