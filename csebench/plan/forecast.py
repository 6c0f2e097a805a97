"""What targets cost before they are started: distinct runs, how many tables share each, hours from measured steps."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from pydantic import RootModel
from tabulate import tabulate

from csebench import ROOT
from csebench.base.caches import cached
from csebench.base.files import read_yaml
from csebench.plan import catalog, targets
from csebench.plan.registry import declaration
from csebench.plan.schema import Strict
from csebench.plan.spec import Spec

REFERENCE = "simcse"  # method that others are measured against
DEV_SENTENCES = 3_000  # of STS-B dev, embedded at every evaluation in training
TEST_SENTENCES = 26_300  # distinct ones of the seven STS test sets
MARGIN = 3  # a cluster's device may be slower than the one that was measured
UNMEASURED_MINUTES = 60  # loading of models, and evaluators other than STS
LONGEST_MINUTES = 24 * 60  # clusters seldom grant more; a run that it cuts off goes on in the next attempt


class StepTimes(Strict):
    """Seconds of a training step of methods, on one device and encoder (benchmarks/methods.py --save)."""

    device: str
    encoder: str  # as in config/
    batch_size: int
    max_length: int
    precision: str
    sentences_per_second: float | None = None  # embedded in an evaluation; None: it is in the steps
    source: str  # who measured it, when, how
    seconds: dict[str, float]  # of methods, with components as `simcse+ami`


@cached
def step_times() -> list[StepTimes]:
    return read_yaml(ROOT / "data" / "step_times.yaml", RootModel[list[StepTimes]]).root


@dataclass(frozen=True)
class Run:
    spec: Spec
    tables: tuple[str, ...]  # that show it, of all papers
    seconds: float | None  # of a finished run


def needed(pages: list[targets.Page]) -> list[Run]:
    """The distinct runs of pages, with every table and figure of the scale that shows them."""
    tables: dict[str, list[str]] = {}
    for grid in dict.fromkeys(grid for page in targets.pages(pages[0].scale) for grid in page.grids()):
        for run in targets.page(grid[1], pages[0].scale, grid[0]).runs():
            tables.setdefault(run, []).append(called(*grid))
    specs = {run: spec for page in pages for run, spec in page.runs().items()}
    return [Run(spec, tuple(tables[run]), finished(run)) for run, spec in sorted(specs.items())]


def called(paper: str, name: str) -> str:
    return name if paper == name else f"{paper}/{name}"


def finished(run: str) -> float | None:
    report = catalog.RUNS / run / "train.json"
    return json.loads(report.read_text())["provenance"]["seconds"] if report.exists() else None


def device(gpu: str | None, processor: str, threads: int) -> str:
    """A device as step times name it."""
    return gpu or f"{processor}, {threads} threads"


def seconds(spec: Spec, times: StepTimes) -> float | None:
    """Forecast of a run on a device, training and STS evaluation; None where its encoder was not measured there."""
    rate = times.sentences_per_second
    test = TEST_SENTENCES / rate if rate else 0.0
    if declaration(spec.method).kind != "trained":
        return test + (spec.params.get("fit_sentences", 0) / rate if rate else 0.0)
    if (step := step_seconds(step_name(spec), times)) is None:
        return None
    size = spec.params["batch_size"] * spec.params["max_length"] / (times.batch_size * times.max_length)
    evaluations = spec.params["steps"] // spec.params["evaluate_every"]
    return spec.params["steps"] * step * size + (evaluations * DEV_SENTENCES / rate if rate else 0.0) + test


def step_name(spec: Spec) -> str:
    """`simcse+ami`: the method with what was plugged in, its own components apart."""
    return "+".join([spec.method, *sorted(set(spec.components) - set(declaration(spec.method).components))])


def step_seconds(name: str, times: StepTimes) -> float | None:
    """Of a method on a device: as measured there, else in the ratio that it has elsewhere to one that was."""
    if name in times.seconds:
        return times.seconds[name]
    for known, own in times.seconds.items():
        for other in step_times():
            if {name, known} <= set(other.seconds):
                return own * other.seconds[name] / other.seconds[known]
    host, *components = name.split("+")
    if not components or (host == REFERENCE and len(components) == 1):
        return None
    parts = [step_seconds(part, times) for part in (host, REFERENCE, *(f"{REFERENCE}+{c}" for c in components))]
    if None in parts:
        return None
    own, simcse, *plugged = parts
    return own + sum(plugin - simcse for plugin in plugged)


def fastest(spec: Spec, scale: str) -> float | None:
    """Forecast of a run in seconds, on the fastest device that its encoder was measured on; None without one."""
    measured = [times for times in step_times() if times.encoder == encoder_of(spec, scale)]
    return min((s for times in measured if (s := seconds(spec, times)) is not None), default=None)


def minutes(forecast: float | None, attempt: int) -> int:
    """What to ask a cluster for, from a forecast in seconds: twice that in a further attempt, the most without one."""
    if forecast is None:
        return LONGEST_MINUTES
    asked = UNMEASURED_MINUTES + math.ceil(MARGIN * forecast / 60)
    return min(LONGEST_MINUTES, asked * 2 ** (attempt - 1))


def encoder_of(spec: Spec, scale: str) -> str:
    """The encoder that a run's weights have the shape of, though it may start from another run's model."""
    if not spec.encoder.name.startswith(f"{catalog.RUNS}/"):
        return spec.encoder.name
    return targets.runs(scale)[spec.encoder.revision].encoder.name


def show(pages: list[targets.Page]) -> str:
    """The runs of pages as a table, what they share, and hours on every device that was measured."""
    scale, runs = pages[0].scale, needed(pages)
    shown = {called(*grid) for page in pages for grid in page.grids()}
    rows = []
    for run in runs:
        others = [t for t in run.tables if {t} != shown]
        state = "missing" if run.seconds is None else "done"
        size = run.spec.corpus.size if run.spec.corpus else "-"
        rows.append([run.spec.run_id, size, run.spec.seed, state, run.seconds, len(run.tables), " ".join(others)])
    head = ["run", "sentences", "seed", "state", "seconds", "shown in", "tables"]
    done = sum(run.seconds is not None for run in runs)
    uses = sum(len([t for t in run.tables if t in shown]) for run in runs)
    lines = [
        tabulate(rows, head, floatfmt=".1f"),
        f"\n{len(runs)} runs at scale {scale}, {done} done, {len(runs) - done} missing;"
        f" {sum(len(run.tables) > 1 for run in runs)} serve more than one table or figure, {uses} without sharing.",
        "",
        hours(runs, shown, scale),
    ]
    return "\n".join(lines)


def hours(runs: list[Run], shown: set[str], scale: str) -> str:
    """Hours one run after the other: of all, of those missing, and as if no table shared a run with another."""
    rows, unknown, unmeasured = [], {}, set()
    for times in step_times():
        on = [run for run in runs if encoder_of(run.spec, scale) == times.encoder]
        known = [(run, s / 3600) for run in on if (s := seconds(run.spec, times)) is not None]
        unmeasured |= {step_name(run.spec) for run in on} - {step_name(run.spec) for run, _ in known}
        if known:
            missing = sum(s for run, s in known if run.seconds is None)
            apart = sum(s * len([t for t in run.tables if t in shown]) for run, s in known)
            row = [times.device, times.encoder, f"{len(known)} of {len(on)}", sum(s for _, s in known), missing, apart]
            rows.append([*row, times.source])
    for run in runs:
        name = encoder_of(run.spec, scale)
        if name not in {times.encoder for times in step_times()}:
            unknown[name] = unknown.get(name, 0) + 1
    head = ["device", "encoder", "runs", "hours", "of them missing", "without sharing", "source"]
    parts = ["Forecast of training and STS evaluation, one run after the other:", tabulate(rows, head, floatfmt=".1f")]
    parts += [f"No step time: {', '.join(sorted(unmeasured))}."] if unmeasured else []
    parts += [f"{name}: {count} runs, measured on no device." for name, count in sorted(unknown.items())]
    return "\n".join([*parts, "`python benchmarks/methods.py --save` adds a device to data/step_times.yaml."])
