"""How far the runs of targets are, read from runs/: a live summary in a terminal. Never imports torch."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from csebench.base.progress import format_duration, read_progress
from csebench.base.run_dir import PROGRESS
from csebench.plan import catalog, forecast, targets
from csebench.plan.spec import Spec

SILENT_SECONDS = 120  # a run on another host that has not written for so long is taken for stopped
STATES = {"done": "green", "running": "cyan", "failed": "red", "stopped": "yellow", "waiting": ""}
KINDS = ("GPU", "CPU")
PLAIN_WIDTH = 160  # where there is no terminal


@dataclass(frozen=True)
class Run:
    """A planned run as its folder shows it; `facts` are of train.json or progress.json."""

    id: str
    spec: Spec
    encoder: str
    state: str  # of STATES
    facts: dict

    @property
    def device(self) -> str | None:
        """As step times name it; None before it is known."""
        if "processor" not in self.facts:
            return None
        return forecast.device(self.facts["gpu"], self.facts["processor"], self.spec.threads)

    @property
    def kind(self) -> str:
        return "GPU" if self.facts.get("gpu") else "CPU"

    @property
    def alike(self) -> tuple:
        """Runs that are equal in this take the same time on the same device."""
        size = (self.spec.params.get(key) for key in ("steps", "batch_size", "max_length", "evaluate_every"))
        return (forecast.step_name(self.spec), self.encoder, *size)


def planned(pages: list[targets.Page]) -> dict[str, tuple[Spec, str]]:
    """The distinct runs of pages by id: spec, and the encoder whose shape they have."""
    specs = {run_id: (spec, page.scale) for page in pages for run_id, spec in page.runs().items()}
    return {run_id: (spec, forecast.encoder_of(spec, scale)) for run_id, (spec, scale) in sorted(specs.items())}


def find(plan: dict[str, tuple[Spec, str]]) -> list[Run]:
    """Planned runs as they are now."""
    return [Run(run_id, *known, *state_of(run_id)) for run_id, known in plan.items()]


def state_of(run_id: str) -> tuple[str, dict]:
    """State and facts of a run. A failure counts though the model may be whole: its scores are missing."""
    progress = read_progress(catalog.RUNS / run_id / PROGRESS)
    if progress is not None and progress["state"] == "failed":
        return "failed", progress
    facts = made(catalog.RUNS / run_id / "train.json")
    if facts is not None:
        return "done", facts
    if progress is not None:
        return "running" if alive(progress) else "stopped", progress
    return "waiting", {}


def made(report: Path) -> dict | None:
    """Provenance of a train.json, and whether the run was resumed; what else it holds, the curves of a long run,
    is not parsed: a thousand of them take seconds. None where there is none."""
    try:
        text = report.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    key = '"provenance": '
    provenance, _ = json.JSONDecoder().raw_decode(text, text.index(key) + len(key))
    return provenance | {"resumed": '"resumed_at": ' in text and '"resumed_at": null' not in text}


def alive(progress: dict) -> bool:
    if progress["host"] != socket.gethostname():
        return time.time() - progress["updated"] < SILENT_SECONDS
    try:
        os.kill(progress["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


# ---------------------------------------------------------------- hours


def spent(runs: list[Run]) -> dict[str, float]:
    """Seconds on GPUs and on CPUs; of a run that was resumed, those since."""
    return {kind: sum(run.facts.get("seconds", 0) for run in runs if run.kind == kind) for kind in KINDS}


def left(runs: list[Run]) -> tuple[dict[str, float], Counter]:
    """Seconds still to go on GPUs and on CPUs, and for how many runs each source tells them or they are `unknown`.

    What has not begun is taken to go where most of the runs went.
    """
    used = [run for run in runs if run.state == "done"] or [run for run in runs if run.device]
    device, kind = Counter((run.device, run.kind) for run in used).most_common(1)[0][0] if used else (None, None)
    measured = {times.encoder: times for times in forecast.step_times() if times.device == device}
    taken: dict[tuple, list[float]] = {}
    for run in used:
        if run.state == "done" and run.device == device and not run.facts["resumed"]:
            taken.setdefault(run.alike, []).append(run.facts["seconds"])
    seconds, sources = dict.fromkeys(KINDS, 0.0), Counter()
    for run in runs:
        if run.state in ("done", "failed"):
            continue
        times = measured.get(run.encoder)
        if (own := run.facts.get("left")) is not None:
            seconds[run.kind] += own
            sources["by their own pace"] += 1
        elif times and (own := forecast.seconds(run.spec, times)) is not None:
            seconds[kind] += own
            sources["by the steps measured on this device"] += 1
        elif run.alike in taken:
            seconds[kind] += mean(taken[run.alike])
            sources["by the mean of such runs done here"] += 1
        else:
            sources["unknown"] += 1
    return seconds, sources


def hours(seconds: dict[str, float]) -> str:
    return ", ".join(f"{seconds[kind] / 3600:.2f} {kind} hours" for kind in KINDS)


# ---------------------------------------------------------------- what is shown


def show(pages: list[targets.Page], every: int | None) -> None:
    """Prints the summary; in a terminal again `every` so many seconds until no run is left to be done."""
    plan = planned(pages)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    if every is None or not console.is_terminal:
        return console.print(view(find(plan)))
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            runs = find(plan)
            live.update(view(runs), refresh=True)
            if all(run.state in ("done", "failed") for run in runs):
                return None
            time.sleep(every)


def view(runs: list[Run]) -> Group:
    counts, seconds, sources = Counter(run.state for run in runs), *left(runs)
    line = Text(f"{len(runs)} runs: ") + Text(", ").join(
        Text(f"{counts[state]} {state}", style if counts[state] else "") for state, style in STATES.items()
    )
    unknown = sources.pop("unknown", 0)
    known = f" for {sources.total()} runs: " + ", ".join(f"{n} {source}" for source, n in sorted(sources.items()))
    to_go = f"left:  {hours(seconds)}" + (known if sources else "") + (f"; unknown for {unknown}" if unknown else "")
    parts = [line, Text(f"spent: {hours(spent(runs))}"), Text(to_go)]
    if counts["stopped"]:
        parts.append(
            Text("The workflow started again goes on with what is stopped, from its checkpoint where it has one.")
        )
    if counts["running"]:
        parts += [Text(), running([run for run in runs if run.state == "running"])]
    if counts["failed"]:
        parts += [Text(), failed([run for run in runs if run.state == "failed"])]
    return Group(*parts)


def running(runs: list[Run]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for name in ("running", "", "step", "loss", "dev", "left", "device", "host"):
        table.add_column(name, justify="right" if name in ("step", "loss", "dev", "left") else "left", no_wrap=True)
    for run in runs:
        facts = run.facts
        begun = facts["steps"] > 0
        table.add_row(
            run.id,
            ProgressBar(total=facts["steps"], completed=facts["step"], width=20) if begun else "",
            f"{facts['step']}/{facts['steps']}" if begun else "–",
            "–" if facts["loss"] is None else f"{facts['loss']:.3f}",
            "–" if facts["dev"] is None else f"{100 * facts['dev']:.2f}",
            "–" if facts["left"] is None else format_duration(facts["left"]),
            Text(run.device or "–"),
            Text(facts["host"]),
        )
    return table


def failed(runs: list[Run]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("failed")
    table.add_column("log", no_wrap=True)
    for run in runs:
        log, message = catalog.RUNS / run.id / "train.log", run.facts["message"]
        said = message if message.startswith(run.id) else f"{run.id}: {message}"
        table.add_row(Text(said), str(log) if log.exists() else "–")
    return table
