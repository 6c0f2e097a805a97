"""Forecast how long work takes, from measured times.

This module forecasts a run (`training_estimate`), a score (`scoring`), the work that is left for
pages (`Work`), and the minutes to request from a cluster (`job_minutes`). The measured times are in
data/step_times.yaml and data/evaluator_times.yaml.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import Field, RootModel

from csebench.base.caches import cached
from csebench.base.errors import unknown
from csebench.base.project import ROOT
from csebench.base.runs import has_model
from csebench.base.yaml_lines import read_yaml
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import declaration
from csebench.plan.grids import CellPlan, find_grid, parts_of_cell, plan_grid
from csebench.plan.recipe import positives_path, recipe_name
from csebench.plan.schema.declarations import Strict
from csebench.plan.schema.paper import UnscoredTable
from csebench.plan.schema.spec import Spec

REFERENCE = "simcse"  # method that all others are timed against
DEV_SENTENCES = 3_000  # of STS-B dev, embedded in every evaluation during training
# start of a job, before it trains or scores (benchmarks/results/2026-11-22-overhead.txt)
START_SECONDS = 4.0
DERIVED = 1.5  # widens the range of an estimate that follows from measurements on other devices
MARGIN = 3  # the device of a cluster may be slower than the measured one
UNMEASURED_MINUTES = 60  # for loading models, and for evaluators that were not measured
# clusters rarely grant more; a run that is cut off resumes in the next attempt
LONGEST_MINUTES = 24 * 60


class StepTimes(Strict):
    """Seconds per training step of methods, on one device and one shape of encoders.

    `benchmarks/methods.py --save` writes them.
    """

    device: str  # name of the GPU, or of the processor with `, 2 threads`
    encoders: list[str]  # names in config/, all of one shape
    batch_size: int  # sentences of a measured step
    max_length: int  # tokens of a sentence of a measured step
    precision: str
    # speed of evaluations during training; None: the steps contain the time of evaluations
    sentences_per_second: float | None = None
    source: str  # who measured it, when, how
    # a run takes between 1 / factor and factor of the forecast
    factor: float = Field(default=1.6, ge=1)
    seconds: dict[str, float]  # method, or method with components (`simcse+ami`) -> step


class EvaluatorTimes(Strict):
    """The cost of scoring one model by an evaluator."""

    sentences: int  # number to embed; a longer text counts as several, by its words
    scoring_seconds: float  # on a CPU, after embedding
    factor: float = Field(ge=1)  # scoring takes between 1 / factor and factor of the forecast
    source: str


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds, and the range in which they lie."""

    seconds: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def within(cls, seconds: float, factor: float) -> "TimeEstimate":
        """Make an estimate that may be wrong by a factor, in either direction."""
        return cls(seconds, seconds / factor, seconds * factor)

    def __add__(self, other: "TimeEstimate") -> "TimeEstimate":
        """Add estimates. The ranges add up, too, as if all errors had the same sign."""
        return TimeEstimate(
            self.seconds + other.seconds, self.low + other.low, self.high + other.high
        )

    @property
    def hours(self) -> str:
        """The estimate as a text: `5.2 h (2.6 to 10.4)`."""
        if not self.seconds:
            return "0 h"
        return f"{_hours(self.seconds)} h ({_hours(self.low)} to {_hours(self.high)})"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 100:
        return f"{hours:,.0f}"
    if hours >= 1:
        return f"{hours:.1f}"
    return f"{hours:.2f}"


# ---------------------------------------------------------------- what was measured


@cached
def step_times() -> list[StepTimes]:
    return read_yaml(ROOT / "data" / "step_times.yaml", RootModel[list[StepTimes]]).root


@cached
def evaluator_times() -> dict[str, EvaluatorTimes]:
    path = ROOT / "data" / "evaluator_times.yaml"
    return read_yaml(path, RootModel[dict[str, EvaluatorTimes]]).root


def devices(encoder: str) -> list[StepTimes]:
    """List the step times that were measured for an encoder, the fastest device first."""
    measured = [times for times in step_times() if encoder in times.encoders]
    return sorted(measured, key=_token_seconds)


def _token_seconds(times: StepTimes) -> float:
    """Return the seconds per token of a device.

    They are those of the reference method, or of the fastest method if the reference is not known.
    """
    seconds = step_seconds(REFERENCE, times) or min(times.seconds.values())
    return seconds / (times.batch_size * times.max_length)


def step_seconds(name: str, times: StepTimes) -> float | None:
    """Return the seconds per step of a method on a device.

    The first way that is possible is used:

    1. The step was measured on the device.
    2. The step was measured on another device. It is scaled by a method that was measured on both.
    3. The method has added components. Each adds the same seconds to a step as it adds to a step of
       the reference method.

    Returns:
        None if no way is possible.
    """
    if name in times.seconds:
        return times.seconds[name]
    scaled = scaled_step_seconds(name, times)
    if scaled is not None:
        return scaled

    method, *components = name.split("+")
    if not components or (method == REFERENCE and len(components) == 1):
        return None
    method_seconds = step_seconds(method, times)
    reference_seconds = step_seconds(REFERENCE, times)
    if method_seconds is None or reference_seconds is None:
        return None
    added_seconds = 0.0
    for component in components:
        with_component = step_seconds(f"{REFERENCE}+{component}", times)
        if with_component is None:
            return None
        added_seconds += with_component - reference_seconds
    return method_seconds + added_seconds


def scaled_step_seconds(name: str, times: StepTimes) -> float | None:
    """Scale the step of a method on another device to this one.

    Returns:
        None if no method was measured on both devices.
    """
    for common, common_seconds in times.seconds.items():
        for other in step_times():
            if name in other.seconds and common in other.seconds:
                return common_seconds * other.seconds[name] / other.seconds[common]
    return None


# ---------------------------------------------------------------- one run, one score


def training_estimate(spec: Spec, times: StepTimes) -> TimeEstimate | None:
    """Forecast a run without its scores. The fit of a map is not counted.

    Returns:
        None if the seconds per step are not known.
    """
    method = declaration(spec.method)
    start = TimeEstimate.within(START_SECONDS, times.factor)
    if method.kind == "fitted":
        embedded = embedding(int(spec.number("fit_sentences")), times)
        return None if embedded is None else start + embedded
    if not method.is_trained:
        return start

    # the steps, in proportion to the tokens of a measured step
    name = recipe_name(method, spec.components)
    measured_step = step_seconds(name, times)
    if measured_step is None:
        return None
    tokens = spec.number("batch_size") * spec.number("max_length")
    relative_size = tokens / (times.batch_size * times.max_length)
    factor = times.factor
    if name not in times.seconds:
        factor *= DERIVED
    steps = spec.number("steps")
    estimate = start + TimeEstimate.within(steps * measured_step * relative_size, factor)

    # the evaluations on STS-B dev
    rate = times.sentences_per_second
    if rate:
        evaluations = math.ceil(steps / spec.number("evaluate_every"))
        estimate += TimeEstimate.within(evaluations * DEV_SENTENCES / rate, times.factor)
    return estimate


def embedding(sentences: int, times: StepTimes) -> TimeEstimate | None:
    """Forecast the embedding of sentences on a device.

    If embedding was not measured on this device, the time of another device is used, in proportion
    to the steps of both.

    Returns:
        None if embedding with these encoders was measured on no device.
    """
    if times.sentences_per_second:
        return TimeEstimate.within(sentences / times.sentences_per_second, times.factor)
    for other in step_times():
        if other.sentences_per_second and other.encoders == times.encoders:
            rate = other.sentences_per_second * _token_seconds(other) / _token_seconds(times)
            return TimeEstimate.within(sentences / rate, times.factor * DERIVED)
    return None


def scoring(evaluator: str, times: StepTimes) -> TimeEstimate | None:
    """Forecast the scoring of a model by an evaluator. Return None if it was not measured."""
    cost = evaluator_times().get(evaluator)
    if cost is None:
        return None
    embedded = embedding(cost.sentences, times)
    if embedded is None:
        return None
    return embedded + TimeEstimate.within(cost.scoring_seconds, cost.factor)


# ---------------------------------------------------------------- what is left of pages


class Step(NamedTuple):
    """A piece of work that is done once."""

    kind: Literal["translate", "train", "score"]
    run: str  # id of the run; for `translate`, the key of the corpus
    evaluator: str = ""  # for `score`


ScoreKey = tuple[str, str]  # id of the run, evaluator
CellKey = tuple[str, str, int, int]  # paper, table or figure, row, column


class Work:
    """The work that is left for pages of one scale.

    A score needs several steps. Its run is trained, perhaps after another run or a
    back-translation. Then the model is scored. A step that several scores need is counted once.
    """

    def __init__(self, pages: list[targets.Page], device: str | None = None):
        """Find out what is left.

        Args:
            device: a name in data/step_times.yaml. None: the fastest device that was measured for
                the commonest encoder of the pages, or for the next encoder if none was measured.

        Raises:
            BadInput: there is no such device.
        """
        self.pages = pages
        self.scale = catalog.scale(pages[0].scale)
        self.grids: list[tuple[str, str]] = []  # (paper, table or figure), each once
        self.specs: dict[str, Spec] = {}  # by the id of the run
        possible: set[ScoreKey] = set()  # scores that exist or can be made
        for page in pages:
            self.grids += [grid for grid in page.grids() if grid not in self.grids]
            self.specs |= page.runs()
            possible |= {*page.available()}
        self.encoders: dict[str, str] = {}  # by the id of the run
        for run_id, spec in self.specs.items():
            self.encoders[run_id] = targets.base_encoder(spec, self.scale.scale)

        self.scored = {score for score in possible if targets.is_scored(*score, self.scale.scale)}
        self.cells = self._cells(possible)
        self.missing = set().union(*self.cells.values()) - self.scored

        self.device = self._fastest_device() if device is None else checked_device(device)
        self.times: dict[str, StepTimes] = {}  # on this device, by encoder
        for encoder in dict.fromkeys(self.encoders.values()):
            for times in devices(encoder):
                if times.device == self.device:
                    self.times[encoder] = times

    def _cells(self, possible: set[ScoreKey]) -> dict[CellKey, frozenset[ScoreKey]]:
        """List the scores that each cell needs, for every cell that can be finished."""
        cells = {}
        for paper, name in self.grids:
            grid = find_grid(paper, name)
            if isinstance(grid, UnscoredTable):
                continue
            rows = plan_grid(paper, name, self.scale.scale)
            for row in range(len(rows)):
                for column in range(len(grid.columns)):
                    parts = parts_of_cell(grid, rows, row, column)
                    scores = scores_of_parts(parts)
                    if scores and scores <= possible:
                        cells[paper, name, row, column] = scores
        return cells

    def _fastest_device(self) -> str | None:
        """Name the fastest device for the commonest of the measured encoders.

        Returns:
            None if no encoder of the pages was measured.
        """
        for encoder, _ in Counter(self.encoders.values()).most_common():
            measured = devices(encoder)
            if measured:
                return measured[0].device
        return None

    def steps(self, scores: Iterable[ScoreKey]) -> set[Step]:
        """Collect the steps that must be done for scores. Scores that exist need no steps."""
        steps: set[Step] = set()
        for run_id, evaluator in set(scores) - self.scored:
            steps.add(Step("score", run_id, evaluator))
            steps |= self._training(run_id)
        return steps

    def is_complete(self, scores: Iterable[ScoreKey]) -> bool:
        """Whether all scores exist."""
        return self.scored.issuperset(scores)

    @cached
    def _training(self, run_id: str) -> frozenset[Step]:
        """Collect the steps that must be done for the model of a run."""
        if has_model(catalog.RUNS / run_id):
            return frozenset()
        spec = self.specs[run_id]
        steps = {Step("train", run_id)}
        if spec.run_before is not None:
            steps |= self._training(spec.run_before)
        positives = positives_path(spec)
        if positives is not None and not positives.exists():
            steps.add(Step("translate", positives.stem))
        return frozenset(steps)

    @cached
    def price(self, step: Step) -> TimeEstimate | None:
        """Forecast a step; None if nothing was measured."""
        if step.kind == "translate":
            return None
        times = self.times.get(self.encoders[step.run])
        if times is None:
            return None
        if step.kind == "train":
            return training_estimate(self.specs[step.run], times)
        return scoring(step.evaluator, times)

    def cost(self, steps: Iterable[Step]) -> tuple[TimeEstimate, int]:
        """Forecast steps together.

        Returns:
            the forecast, and the number of steps that were not measured and are not part of it.
        """
        total = TimeEstimate()
        unmeasured = 0
        for step in steps:
            price = self.price(step)
            if price is None:
                unmeasured += 1
            else:
                total += price
        return total, unmeasured


def scores_of_parts(parts: list[CellPlan]) -> frozenset[ScoreKey]:
    """Collect the scores of a cell's parts. Return nothing if a part has no runs."""
    scores: set[ScoreKey] = set()
    for part in parts:
        if not part.specs:
            return frozenset()
        scores |= {(spec.run_id, part.evaluator) for spec in part.specs}
    return frozenset(scores)


def checked_device(name: str) -> str:
    """Check that data/step_times.yaml has a device, and return its name. Raise BadInput if not."""
    known = [times.device for times in step_times()]
    if name not in known:
        raise unknown("device of data/step_times.yaml", name, known)
    return name


# ---------------------------------------------------------------- jobs of a cluster


def fastest_seconds(spec: Spec, scale: str) -> float | None:
    """Forecast a run with its scores, on the fastest device for which the run can be forecast.

    Scores that cannot be forecast are left out.

    Returns:
        seconds; None if the run cannot be forecast for any device.
    """
    evaluators = sorted(targets.evaluators(spec.run_id, scale))
    for times in devices(targets.base_encoder(spec, scale)):
        total = training_estimate(spec, times)
        if total is None:
            continue
        for evaluator in evaluators:
            total += scoring(evaluator, times) or TimeEstimate()
        return total.seconds
    return None


def job_minutes(forecast: float | None, attempt: int) -> int:
    """Return the minutes to request from a cluster, doubled in every attempt.

    Args:
        forecast: seconds of the job on the fastest device; None: not known.
    """
    if forecast is None:
        return LONGEST_MINUTES
    first_attempt = UNMEASURED_MINUTES + math.ceil(MARGIN * forecast / 60)
    return min(LONGEST_MINUTES, first_attempt * 2 ** (attempt - 1))
