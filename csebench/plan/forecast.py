"""Cost of targets before they start: their distinct runs, the tables that share each, and hours from measured steps.

The state of runs that have started: csebench/report/status.py.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

from pydantic import RootModel
from tabulate import tabulate

from csebench import ROOT
from csebench.base.caches import cached
from csebench.base.files import read_yaml
from csebench.base.run_dir import training_report
from csebench.plan import catalog, targets
from csebench.plan.registry import declaration
from csebench.plan.schema import Strict
from csebench.plan.spec import Spec

REFERENCE = "simcse"  # method that all others are timed against
DEV_SENTENCES = 3_000  # of STS-B dev, embedded in every evaluation during training
TEST_SENTENCES = 26_300  # distinct sentences of the seven STS test sets
MARGIN = 3  # the device of a cluster may be slower than the measured one
UNMEASURED_MINUTES = 60  # for loading of models, and for evaluators other than STS
LONGEST_MINUTES = 24 * 60  # clusters rarely grant more; a run that is cut off resumes in the next attempt


class StepTimes(Strict):
    """Seconds per training step of methods, on one device and encoder (benchmarks/methods.py --save)."""

    device: str
    encoder: str  # as in config/
    batch_size: int
    max_length: int
    precision: str
    sentences_per_second: float | None = None  # embedded in an evaluation; None: included in the steps
    source: str  # who measured it, when, how
    seconds: dict[str, float]  # by method, with components as `simcse+ami`


@cached
def step_times() -> list[StepTimes]:
    return read_yaml(ROOT / "data" / "step_times.yaml", RootModel[list[StepTimes]]).root


@dataclass(frozen=True)
class PlannedRun:
    """A run that pages need, and every table and figure that shows it."""

    spec: Spec
    tables: tuple[str, ...]  # of all papers
    seconds: float | None  # of the finished run; None before it is done


def planned_runs(pages: list[targets.Page]) -> list[PlannedRun]:
    """The distinct runs of pages, sorted by id."""
    tables: dict[str, list[str]] = {}
    for grid in dict.fromkeys(grid for page in targets.all_pages(pages[0].scale) for grid in page.grids()):
        for run in targets.page(grid[1], pages[0].scale, grid[0]).runs():
            tables.setdefault(run, []).append(target_name(*grid))
    specs = {run: spec for page in pages for run, spec in page.available_runs().items()}
    return [PlannedRun(spec, tuple(tables[run]), training_seconds(run)) for run, spec in sorted(specs.items())]


def target_name(paper: str, name: str) -> str:
    """A table or figure as a target: `micse/table2`."""
    return name if paper == name else f"{paper}/{name}"


def training_seconds(run: str) -> float | None:
    """Seconds that a finished run took; None for a run that is not finished."""
    report = training_report(catalog.RUNS / run)
    return json.loads(report.read_text())["provenance"]["seconds"] if report else None


def device_name(gpu: str | None, processor: str, threads: int) -> str:
    """Name of a device in data/step_times.yaml."""
    return gpu or f"{processor}, {threads} threads"


def run_seconds(spec: Spec, times: StepTimes) -> float | None:
    """Forecast of a run on a device, for training and STS evaluation; None where its step cannot be derived."""
    rate = times.sentences_per_second
    test = TEST_SENTENCES / rate if rate else 0.0
    if declaration(spec.method).kind != "trained":
        return test + (spec.number("fit_sentences") / rate if rate else 0.0)
    if (step := step_seconds(step_name(spec), times)) is None:
        return None
    size = spec.number("batch_size") * spec.number("max_length") / (times.batch_size * times.max_length)
    evaluations = spec.number("steps") // spec.number("evaluate_every")
    return spec.number("steps") * step * size + (evaluations * DEV_SENTENCES / rate if rate else 0.0) + test


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


def fastest_seconds(spec: Spec, scale: str) -> float | None:
    """Forecast of a run on the fastest device that its encoder was measured on; None without one."""
    measured = [times for times in step_times() if times.encoder == base_encoder(spec, scale)]
    return min((s for times in measured if (s := run_seconds(spec, times)) is not None), default=None)


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
    return targets.all_runs(scale)[spec.encoder.revision].encoder.name


def plan_report(pages: list[targets.Page]) -> str:
    """The runs of pages as a text table, what they share, and hours on every measured device."""
    scale, runs = pages[0].scale, planned_runs(pages)
    shown = {target_name(*grid) for page in pages for grid in page.grids()}
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
        hours_table(runs, shown, scale),
    ]
    return "\n".join(lines)


def hours_table(runs: list[PlannedRun], shown: set[str], scale: str) -> str:
    """Hours with one run at a time: of all runs, of the missing ones, and of all if tables shared no runs."""
    rows, unknown, unmeasured = [], Counter(), set()
    for times in step_times():
        on = [run for run in runs if base_encoder(run.spec, scale) == times.encoder]
        known = [(run, s / 3600) for run in on if (s := run_seconds(run.spec, times)) is not None]
        unmeasured |= {step_name(run.spec) for run in on} - {step_name(run.spec) for run, _ in known}
        if known:
            missing = sum(s for run, s in known if run.seconds is None)
            apart = sum(s * len([t for t in run.tables if t in shown]) for run, s in known)
            row = [times.device, times.encoder, f"{len(known)} of {len(on)}", sum(s for _, s in known), missing, apart]
            rows.append([*row, times.source])
    for run in runs:
        name = base_encoder(run.spec, scale)
        if name not in {times.encoder for times in step_times()}:
            unknown[name] += 1
    head = ["device", "encoder", "runs", "hours", "of them missing", "without sharing", "source"]
    parts = ["Forecast of training and STS evaluation, one run after the other:", tabulate(rows, head, floatfmt=".1f")]
    parts += [f"No step time: {', '.join(sorted(unmeasured))}."] if unmeasured else []
    parts += [f"{name}: {count} runs, measured on no device." for name, count in sorted(unknown.items())]
    return "\n".join([*parts, "`python benchmarks/methods.py --save` adds a device to data/step_times.yaml."])
