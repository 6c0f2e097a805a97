"""Seconds that training and scoring will take on a device, from measured steps; each with the range it may lie in.

What a set of runs costs and what fits into hours: csebench/plan/budget.py. The state of runs that have started:
csebench/report/status.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field, RootModel

from csebench.base.caches import cached
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.plan import catalog, targets
from csebench.plan.declarations import Strict
from csebench.plan.registry import declaration
from csebench.plan.spec import Spec

REFERENCE = "simcse"  # method that all others are timed against
DEV_SENTENCES = 3_000  # of STS-B dev, embedded in every evaluation during training
START_SECONDS = 4.0  # of a job, besides training and scoring (benchmarks/results/2026-11-22-overhead.txt)
DERIVED = 1.5  # widens the range of what was not measured on this device and encoder, but follows from others
MARGIN = 3  # the device of a cluster may be slower than the measured one
UNMEASURED_MINUTES = 60  # for loading of models, and for evaluators that were not measured
LONGEST_MINUTES = 24 * 60  # clusters rarely grant more; a run that is cut off resumes in the next attempt


class StepTimes(Strict):
    """Seconds per training step of methods, on one device and encoder (benchmarks/methods.py --save)."""

    device: str
    encoder: str  # as in config/
    batch_size: int
    max_length: int
    precision: str
    sentences_per_second: float | None = None  # embedded in an evaluation; None: those of training are in the steps
    source: str  # who measured it, when, how
    factor: float = Field(default=1.6, ge=1)  # a run takes between 1 / factor and factor of the forecast
    seconds: dict[str, float]  # by method, with components as `simcse+ami`


class EvaluatorTimes(Strict):
    """What scoring one model by an evaluator takes."""

    sentences: int  # embedded; longer texts count as several, by their words
    scoring_seconds: float  # on a CPU, after embedding
    factor: float = Field(ge=1)  # as of StepTimes
    source: str


class EncoderSize(Strict):
    """The shape of an encoder, by which its steps are forecast from another's."""

    layers: int
    hidden: int


@dataclass(frozen=True)
class Estimate:
    """Seconds, and between which they lie."""

    seconds: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def within(cls, seconds: float, factor: float) -> Estimate:
        return cls(seconds, seconds / factor, seconds * factor)

    def __add__(self, other: Estimate) -> Estimate:
        """The sum, as if all forecasts were too low together, or too high."""
        return Estimate(self.seconds + other.seconds, self.low + other.low, self.high + other.high)

    def __bool__(self) -> bool:
        return self.seconds > 0

    @property
    def hours(self) -> str:
        """`5.2 h (2.6 to 10)`."""
        if not self:
            return "0 h"
        return f"{_hours(self.seconds)} h ({_hours(self.low)} to {_hours(self.high)})"


def total(estimates: Iterable[Estimate]) -> Estimate:
    return sum(estimates, Estimate())


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 1 else f"{hours:.2f}"


# ---------------------------------------------------------------- what was measured


@cached
def step_times() -> list[StepTimes]:
    return read_yaml(ROOT / "data" / "step_times.yaml", RootModel[list[StepTimes]]).root


@cached
def evaluator_times() -> dict[str, EvaluatorTimes]:
    return read_yaml(ROOT / "data" / "evaluator_times.yaml", RootModel[dict[str, EvaluatorTimes]]).root


@cached
def encoder_sizes() -> dict[str, EncoderSize]:
    return read_yaml(ROOT / "data" / "encoders.yaml", RootModel[dict[str, EncoderSize]]).root


def device_name(gpu: str | None, processor: str, threads: int) -> str:
    """Name of a device in data/step_times.yaml."""
    return gpu or f"{processor}, {threads} threads"


def devices(encoder: str) -> list[StepTimes]:
    """Step times of an encoder by device, the fastest first."""
    names = dict.fromkeys(times.device for times in step_times())
    return sorted((times for name in names if (times := times_on(name, encoder)) is not None), key=_token_seconds)


def default_device(encoders: Iterable[str]) -> str | None:
    """The device of forecasts where none is given: the first of `devices` for the commonest encoder that has one."""
    for encoder, _ in Counter(encoders).most_common():
        if known := devices(encoder):
            return known[0].device
    return None


def times_on(device: str, encoder: str) -> StepTimes | None:
    """Step times of an encoder on a device: measured there, else those of an encoder of its shape. None without."""
    here = [times for times in step_times() if times.device == device]
    if (measured := next((times for times in here if times.encoder == encoder), None)) is not None:
        return measured
    if (alike := next((times for times in here if _shape(times.encoder) == _shape(encoder)), None)) is None:
        return None
    source = f"from {alike.encoder}: {alike.source}"
    return alike.model_copy(update={"encoder": encoder, "factor": alike.factor * DERIVED, "source": source})


def _shape(encoder: str) -> tuple | str:
    """Encoders of one shape take the same time; an encoder of unknown size is like itself only."""
    size = encoder_sizes().get(encoder)
    return (size.layers, size.hidden) if size else encoder


def _token_seconds(times: StepTimes) -> float:
    """Seconds of the reference method per token, or of any method where it is not known."""
    seconds = step_seconds(REFERENCE, times) or min(times.seconds.values())
    return seconds / (times.batch_size * times.max_length)


def sentences_per_second(times: StepTimes) -> tuple[float, bool] | None:
    """(sentences that are embedded per second, whether that was measured); else in proportion to another device's."""
    if times.sentences_per_second:
        return times.sentences_per_second, True
    for other in step_times():
        if other.sentences_per_second and _shape(other.encoder) == _shape(times.encoder):
            return other.sentences_per_second * _token_seconds(other) / _token_seconds(times), False
    return None


def step_name(spec: Spec) -> str:
    """`simcse+ami`: the method with its plug-ins; components that belong to the method are not named."""
    return "+".join([spec.method, *sorted(set(spec.components) - set(declaration(spec.method).components))])


def step_seconds(name: str, times: StepTimes) -> float | None:
    """Seconds per step of a method on a device; None where they cannot be derived.

    Measured there; else scaled from another device, by a method that was measured on both; else the step of the host
    plus what each component adds to the reference method.
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


def training(spec: Spec, times: StepTimes) -> Estimate | None:
    """Forecast of a run without its scores; None where its step cannot be derived."""
    kind, start = declaration(spec.method).kind, Estimate.within(START_SECONDS, times.factor)
    if kind == "fitted":
        embedded = embedding(int(spec.number("fit_sentences")), times)
        return None if embedded is None else start + embedded
    if kind != "trained":
        return start
    name = step_name(spec)
    if (step := step_seconds(name, times)) is None:
        return None
    size = spec.number("batch_size") * spec.number("max_length") / (times.batch_size * times.max_length)
    factor = times.factor * (1 if name in times.seconds else DERIVED)
    steps = Estimate.within(spec.number("steps") * step * size, factor)
    evaluations = math.ceil(spec.number("steps") / spec.number("evaluate_every"))
    rate = times.sentences_per_second
    on_dev = Estimate.within(evaluations * DEV_SENTENCES / rate, times.factor) if rate else Estimate()
    return start + steps + on_dev


def embedding(sentences: int, times: StepTimes) -> Estimate | None:
    """Forecast of embedding sentences; None where their rate is not known."""
    if (rate := sentences_per_second(times)) is None:
        return None
    return Estimate.within(sentences / rate[0], times.factor * (1 if rate[1] else DERIVED))


def scoring(evaluator: str, times: StepTimes) -> Estimate | None:
    """Forecast of scoring a model by an evaluator; None where that was not measured."""
    cost = evaluator_times().get(evaluator)
    if cost is None or (embedded := embedding(cost.sentences, times)) is None:
        return None
    return embedded + Estimate.within(cost.scoring_seconds, cost.factor)


# ---------------------------------------------------------------- jobs of a cluster


def fastest_seconds(spec: Spec, scale: str) -> float | None:
    """Forecast of a run, with the scores whose cost is known, on the fastest device that its step is known for; None
    without one."""
    scores = sorted(targets.evaluators(scale)[spec.run_id])
    for times in devices(base_encoder(spec, scale)):
        if (trained := training(spec, times)) is not None:
            known = (estimate for evaluator in scores if (estimate := scoring(evaluator, times)) is not None)
            return total([trained, *known]).seconds
    return None


def job_minutes(forecast: float | None, attempt: int) -> int:
    """Minutes to request from a cluster for a forecast in seconds: doubled in every further attempt.

    Without a forecast, the longest request.
    """
    if forecast is None:
        return LONGEST_MINUTES
    asked = UNMEASURED_MINUTES + math.ceil(MARGIN * forecast / 60)
    return min(LONGEST_MINUTES, asked * 2 ** (attempt - 1))


def base_encoder(spec: Spec, scale: str) -> str:
    """The encoder whose architecture a run has; a run that starts from another run's model has that run's encoder."""
    if not spec.encoder.name.startswith(f"{catalog.RUNS}/"):
        return spec.encoder.name
    return targets.runs(scale)[spec.encoder.revision].encoder.name
