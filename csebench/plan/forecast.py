"""Forecasts from measured steps: seconds, and their range, of a run, of a score, and of what
pages lack (`Work`)."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
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
from csebench.plan.grids import find_grid, parts_of_cell, plan_grid
from csebench.plan.recipe import positives_path, recipe_name
from csebench.plan.schema.declarations import Scale, Strict
from csebench.plan.schema.paper import SettingsTable
from csebench.plan.schema.spec import Spec

REFERENCE = "simcse"  # method that all others are timed against
DEV_SENTENCES = 3_000  # of STS-B dev, embedded in every evaluation during training
# of a job, besides training and scoring (benchmarks/results/2026-11-22-overhead.txt)
START_SECONDS = 4.0
DERIVED = 1.5  # widens the range of what was not measured on this device, but follows from others
MARGIN = 3  # the device of a cluster may be slower than the measured one
UNMEASURED_MINUTES = 60  # for loading of models, and for evaluators that were not measured
# clusters rarely grant more; a run that is cut off resumes in the next attempt
LONGEST_MINUTES = 24 * 60


class StepTimes(Strict):
    """Seconds per training step of methods, on one device and shape of encoders
    (benchmarks/methods.py --save)."""

    device: str  # name of the GPU, or of the processor with `, 2 threads`
    encoders: list[str]  # of one shape, as in config/
    batch_size: int
    max_length: int
    precision: str
    # embedded in an evaluation; None: those of training are in the steps
    sentences_per_second: float | None = None
    source: str  # who measured it, when, how
    # a run takes between 1 / factor and factor of the forecast
    factor: float = Field(default=1.6, ge=1)
    seconds: dict[str, float]  # by method, with components as `simcse+ami`


class EvaluatorTimes(Strict):
    """What scoring one model by an evaluator takes."""

    sentences: int  # embedded; longer texts count as several, by their words
    scoring_seconds: float  # on a CPU, after embedding
    factor: float = Field(ge=1)  # as of StepTimes
    source: str


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds, and between which they lie."""

    seconds: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def within(cls, seconds: float, factor: float) -> "TimeEstimate":
        return cls(seconds, seconds / factor, seconds * factor)

    def __add__(self, other: "TimeEstimate") -> "TimeEstimate":
        """The sum, as if all forecasts were too low together, or too high."""
        return TimeEstimate(
            self.seconds + other.seconds, self.low + other.low, self.high + other.high
        )

    @property
    def hours(self) -> str:
        """`5.2 h (2.6 to 10)`."""
        return (
            f"{_hours(self.seconds)} h ({_hours(self.low)} to {_hours(self.high)})"
            if self.seconds
            else "0 h"
        )


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 1 else f"{hours:.2f}"


# ---------------------------------------------------------------- what was measured


@cached
def step_times() -> list[StepTimes]:
    return read_yaml(ROOT / "data" / "step_times.yaml", RootModel[list[StepTimes]]).root


@cached
def evaluator_times() -> dict[str, EvaluatorTimes]:
    return read_yaml(
        ROOT / "data" / "evaluator_times.yaml", RootModel[dict[str, EvaluatorTimes]]
    ).root


def devices(encoder: str) -> list[StepTimes]:
    """Step times of an encoder, the fastest device first."""
    return sorted(
        (times for times in step_times() if encoder in times.encoders), key=_token_seconds
    )


def _token_seconds(times: StepTimes) -> float:
    """Seconds of the reference method per token, or of any method where it is not known."""
    return (step_seconds(REFERENCE, times) or min(times.seconds.values())) / (
        times.batch_size * times.max_length
    )


def step_seconds(name: str, times: StepTimes) -> float | None:
    """Seconds per step of a method on a device: measured there; else scaled from another device, by
    a method that was measured on both; else the step of the host plus what each component adds to
    the reference method; else None.
    """
    if name in times.seconds:
        return times.seconds[name]
    for known, known_seconds in times.seconds.items():
        for other in step_times():
            if {name, known} <= set(other.seconds):
                return known_seconds * other.seconds[name] / other.seconds[known]
    host, *components = name.split("+")
    if not components or (host == REFERENCE and len(components) == 1):
        return None
    names = (host, REFERENCE, *(f"{REFERENCE}+{c}" for c in components))
    parts = [seconds for name in names if (seconds := step_seconds(name, times)) is not None]
    if len(parts) < len(names):
        return None
    host_seconds, reference, *with_component = parts
    return host_seconds + sum(seconds - reference for seconds in with_component)


# ---------------------------------------------------------------- one run, one score


def training_estimate(spec: Spec, times: StepTimes) -> TimeEstimate | None:
    """Forecast of a run without its scores; None where its step cannot be derived."""
    method, start = declaration(spec.method), TimeEstimate.within(START_SECONDS, times.factor)
    if method.kind == "fitted":
        embedded = embedding(int(spec.number("fit_sentences")), times)
        return None if embedded is None else start + embedded
    if not method.is_trained:
        return start
    name = recipe_name(method, spec.components)
    if (step := step_seconds(name, times)) is None:
        return None
    size = (
        spec.number("batch_size")
        * spec.number("max_length")
        / (times.batch_size * times.max_length)
    )
    factor = times.factor * (1 if name in times.seconds else DERIVED)
    start += TimeEstimate.within(spec.number("steps") * step * size, factor)
    evaluations = math.ceil(spec.number("steps") / spec.number("evaluate_every"))
    rate = times.sentences_per_second
    return start + (
        TimeEstimate.within(evaluations * DEV_SENTENCES / rate, times.factor)
        if rate
        else TimeEstimate()
    )


def embedding(sentences: int, times: StepTimes) -> TimeEstimate | None:
    """Forecast of embedding sentences; where that was not measured, in proportion to another
    device's, or None."""
    if times.sentences_per_second:
        return TimeEstimate.within(sentences / times.sentences_per_second, times.factor)
    for other in step_times():
        if other.sentences_per_second and other.encoders == times.encoders:
            rate = other.sentences_per_second * _token_seconds(other) / _token_seconds(times)
            return TimeEstimate.within(sentences / rate, times.factor * DERIVED)
    return None


def scoring(evaluator: str, times: StepTimes) -> TimeEstimate | None:
    """Forecast of scoring a model by an evaluator; None where that was not measured."""
    cost = evaluator_times().get(evaluator)
    if cost is None or (embedded := embedding(cost.sentences, times)) is None:
        return None
    return embedded + TimeEstimate.within(cost.scoring_seconds, cost.factor)


# ---------------------------------------------------------------- what is left of pages


class Step(NamedTuple):
    """A piece of work that is done once."""

    kind: Literal["translate", "train", "score"]
    run: str  # of `translate`, the key of the corpus
    evaluator: str = ""  # of `score`


ScoreKey = tuple[str, str]  # id of the run, evaluator


class Work:
    """What is left of pages of one scale. A score costs several steps: its run is trained, perhaps
    after another run or a back-translation, then scored; a step is paid once, whatever needs it.
    `device` is of data/step_times.yaml;
    None: the fastest for the commonest encoder that was measured on any."""

    def __init__(self, pages: list[targets.Page], device: str | None = None):
        self.pages = pages
        self.scale = catalog.scale(pages[0].scale)
        self.grids = list(dict.fromkeys(grid for page in pages for grid in page.grids()))
        self.specs = {run: spec for page in pages for run, spec in page.runs().items()}
        self.encoders = {
            run: targets.base_encoder(spec, self.scale.scale) for run, spec in self.specs.items()
        }
        possible = {score for page in pages for score in page.available()}
        self.made = {score for score in possible if targets.is_scored(*score, self.scale.scale)}
        self.cells = self._cells(possible)
        self.missing = set().union(*self.cells.values()) - self.made
        known = [times.device for times in step_times()]
        if device is not None and device not in known:
            raise unknown("device of data/step_times.yaml", device, known)
        measured = {
            name: devices(name) for name, _ in Counter(self.encoders.values()).most_common()
        }
        self.device = device or next(
            (times[0].device for times in measured.values() if times), None
        )
        self.times = {
            name: t for name, times in measured.items() for t in times if t.device == self.device
        }

    def _cells(
        self, possible: set[ScoreKey]
    ) -> dict[tuple[str, str, int, int], frozenset[ScoreKey]]:
        """Scores behind every cell that can be finished, by paper, table, row and column."""
        cells = {}
        for paper, name in self.grids:
            grid, rows = find_grid(paper, name), plan_grid(paper, name, self.scale.scale)
            if isinstance(grid, SettingsTable):
                continue
            for row, column in product(range(len(rows)), range(len(grid.columns))):
                parts = parts_of_cell(grid, rows, row, column)
                scores = frozenset(
                    (spec.run_id, part.evaluator) for part in parts for spec in part.specs
                )
                if scores and all(part.specs for part in parts) and scores <= possible:
                    cells[paper, name, row, column] = scores
        return cells

    def steps(self, scores: Iterable[ScoreKey]) -> set[Step]:
        """What must be done for scores that are not there yet."""
        steps: set[Step] = set()
        for run, evaluator in set(scores) - self.made:
            steps |= {Step("score", run, evaluator), *self._training(run)}
        return steps

    def _training(self, run: str) -> set[Step]:
        if has_model(catalog.RUNS / run):
            return set()
        spec, steps = self.specs[run], {Step("train", run)}
        if spec.run_before is not None:
            steps |= self._training(spec.run_before)
        if (positives := positives_path(spec)) is not None and not positives.exists():
            steps.add(Step("translate", positives.stem))
        return steps

    @cached
    def price(self, step: Step) -> TimeEstimate | None:
        """Forecast of a step; None where nothing was measured."""
        times = None if step.kind == "translate" else self.times.get(self.encoders[step.run])
        if times is None:
            return None
        return (
            training_estimate(self.specs[step.run], times)
            if step.kind == "train"
            else scoring(step.evaluator, times)
        )

    def cost(self, steps: Iterable[Step]) -> tuple[TimeEstimate, int]:
        """(forecast of steps, number of those that were not measured and are not in it)"""
        prices = [self.price(step) for step in steps]
        return sum((price for price in prices if price is not None), TimeEstimate()), prices.count(
            None
        )


# ---------------------------------------------------------------- jobs of a cluster


def fastest_seconds(spec: Spec, scale: str) -> float | None:
    """Forecast of a run and of its scores of known cost, on the fastest device that its step is
    known for, or None."""
    scores = sorted(targets.evaluators(scale)[spec.run_id])
    for times in devices(targets.base_encoder(spec, scale)):
        if (trained := training_estimate(spec, times)) is not None:
            known = (
                estimate
                for evaluator in scores
                if (estimate := scoring(evaluator, times)) is not None
            )
            return sum(known, trained).seconds
    return None


def job_minutes(forecast: float | None, attempt: int) -> int:
    """Minutes to request from a cluster for a forecast in seconds, or without one; doubled in
    every attempt."""
    if forecast is None:
        return LONGEST_MINUTES
    return min(
        LONGEST_MINUTES,
        (UNMEASURED_MINUTES + math.ceil(MARGIN * forecast / 60)) * 2 ** (attempt - 1),
    )


# ---------------------------------------------------------------- bf16 on this CPU

CPU_INFO = Path("/proc/cpuinfo")
# instructions of x86 and of ARM, as Linux names them
BF16 = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}


def bf16_note(scale: Scale, device: str | None) -> str | None:
    """Say that a forecast for a CPU in bf16 is too low here; None where it is not, or where that
    is unknown."""
    in_bf16 = "bf16" in (scale.precision, scale.evaluation.precision)
    # `NVIDIA V100`; `AMD EPYC, 2 threads`
    if not in_bf16 or device is None or "thread" not in device:
        return None
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    known = re.findall(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    if not known or BF16 & {*known[0].split()}:
        return None
    names = "avx512_bf16, amx_bf16"
    return (
        f"This CPU has no bf16 instructions ({names}): scale {scale.scale}, which is in bf16, takes"
        " longer here."
    )
