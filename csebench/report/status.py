"""State of the runs of targets, read from runs/, as a summary in a terminal. Never imports torch.

Forecasts: csebench/plan/cost.py.
"""

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

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from csebench.base.errors import BadInput, MissingFile
from csebench.base.files import read_bytes
from csebench.base.models import Provenance, train_again
from csebench.base.runs import DONE, PROGRESS, PRUNED, format_duration, has_model, read_progress
from csebench.base.terminal import records
from csebench.plan import catalog, cost, targets
from csebench.plan.spec import Spec
from csebench.score.store import failures, stale_runs

SILENT_SECONDS = 120  # a run on another host counts as stopped after so long without a write
STATES = {"done": "green", "running": "cyan", "failed": "red", "stopped": "yellow", "waiting": ""}
PLAIN_WIDTH = 160  # where there is no terminal


@dataclass(frozen=True)
class RunStatus:
    """A planned run and the state of its folder; `facts` come from train.json or progress.json."""

    id: str
    spec: Spec
    missing: tuple[str, ...]  # evaluators whose scores pages show and that are not published
    state: str  # a key of STATES
    facts: dict

    @property
    def device(self) -> str | None:
        """Name of the device, as in data/step_times.yaml; None before the run has begun."""
        if self.facts.get("processor") is None:
            return None
        return cost.device_name(self.facts["gpu"], self.facts["processor"], self.spec.threads)


def read_statuses(pages: list[targets.Page]) -> list[RunStatus]:
    """The current state of the runs of pages."""
    finished = targets.finished_runs(pages)
    specs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    missing: dict[str, list[str]] = {run_id: [] for run_id in specs}
    for (run_id, evaluator), scale in {score: page.scale for page in pages for score in page.available()}.items():
        if not targets.score_path(run_id, evaluator, scale).exists():
            missing[run_id].append(evaluator)
    return [
        RunStatus(run_id, spec, tuple(missing[run_id]), *read_state(run_id, run_id in finished))
        for run_id, spec in sorted(specs.items())
    ]


def read_state(run_id: str, is_finished: bool = False) -> tuple[str, dict]:
    """State and facts of a run. A failure comes first: an evaluator that failed is none (failed_scores). A damaged
    file is a failure, whose message names it.

    Args:
        is_finished: whether its scores are all published, perhaps from elsewhere (targets.finished_runs).
    """
    try:
        return _read_state(catalog.RUNS / run_id, is_finished)
    except BadInput as error:
        return "failed", {"message": str(error)}


def _read_state(folder: Path, is_finished: bool) -> tuple[str, dict]:
    progress = read_progress(folder / PROGRESS)
    if progress is not None and progress["state"] == "failed":
        return "failed", progress
    is_finished = is_finished or has_model(folder)
    if is_finished and (facts := read_training(folder)) is not None:
        return "done", facts
    if progress is not None and is_alive(progress):
        return "running", progress
    if is_finished:
        return "done", {}
    return ("waiting", {}) if progress is None else ("stopped", progress)


def read_training(folder: Path) -> dict | None:
    """Provenance of a finished run; None before it is finished.

    Only this is parsed: the training curves of a thousand long runs take seconds.
    """
    for name in (DONE, PRUNED):
        with contextlib.suppress(MissingFile):
            text = read_bytes(folder / name).decode("utf-8", errors="replace")
            break
    else:
        return None
    key = '"provenance": '
    try:
        provenance, _ = json.JSONDecoder().raw_decode(text, text.index(key) + len(key))
        return Provenance.model_validate(provenance).model_dump()
    except (ValueError, RecursionError):
        raise BadInput(f"{folder / name}: is damaged. {train_again(folder)}") from None


def is_alive(progress: dict) -> bool:
    """Whether the process that writes a progress.json still runs."""
    if progress["host"] != socket.gethostname():
        return time.time() - progress["updated"] < SILENT_SECONDS
    try:
        os.kill(progress["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process of another user
        return True
    return True


# ---------------------------------------------------------------- printing


def show_status(pages: list[targets.Page], scale: str, every: int | None) -> None:
    """Print the summary and a line per table; in a terminal with `every`, again after so many seconds until no run is
    left."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    head = Text(f"Scale {scale}: runs in {catalog.RUNS}/, scores in {catalog.results_folder(scale)}/scores/")
    if every is None or not console.is_terminal:
        runs = read_statuses(pages)
        return console.print(Group(head, summary(runs, len(stale_runs(pages))), Text(), tables_table(pages, runs)))
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            runs = read_statuses(pages)
            live.update(Group(head, summary(runs), Text(), tables_table(pages, runs)), refresh=True)
            if all(run.state in ("done", "failed") for run in runs):
                return None
            time.sleep(every)


def tables_rows(pages: list[targets.Page], runs: list[RunStatus]) -> tuple[list[str], list[list]]:
    """Columns and rows: for every table and figure with runs, how many are in which state.

    A run is done in a row once the scores that this table or figure shows are there; others may wait for more of it.
    """
    states, rows = {run.id: run.state for run in runs}, []
    for paper, name in dict.fromkeys(grid for page in pages for grid in page.grids()):
        page = targets.page(name, pages[0].scale, paper)
        finished = targets.finished_runs([page])
        shown = [run_id for run_id in page.available_runs() if run_id in states]
        if counts := Counter(state_on_page(states[run_id], run_id in finished) for run_id in shown):
            target = name if paper == name else f"{paper}/{name}"
            rows.append([target, counts.total(), *(counts[state] for state in STATES)])
    return ["table or figure", "runs", *STATES], rows


def state_on_page(state: str, is_finished: bool) -> str:
    """The state of a run for a page, whose scores of it are all there (`is_finished`) or not."""
    return "done" if is_finished and state in ("waiting", "stopped") else state


def tables_table(pages: list[targets.Page], runs: list[RunStatus]) -> Table:
    columns, rows = tables_rows(pages, runs)
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name == columns[0] else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(str(value) if value else "–" for value in row))
    return table


def content(pages: list[targets.Page]) -> dict:
    """What `csebench status --json` prints."""
    runs = read_statuses(pages)
    facts = ("step", "steps", "left", "message")
    listed = [
        {"run": run.id, "state": run.state, "device": run.device, "missing": list(run.missing)}
        | {name: run.facts.get(name) for name in facts}
        for run in runs
    ]
    return {"scale": pages[0].scale, "tables": records(*tables_rows(pages, runs)), "runs": listed}


def summary(runs: list[RunStatus], stale: int = 0) -> Group:
    """Counts of states, hours spent, and a table each of running runs, failed runs and failed scores.

    Args:
        stale: number of runs that have scores of older code only.
    """
    counts = Counter(run.state for run in runs)
    line = Text(f"{len(runs)} runs: ") + Text(", ").join(
        Text(f"{counts[state]} {state}", style if counts[state] else "") for state, style in STATES.items()
    )
    hours = {"GPU": 0.0, "CPU": 0.0}  # a resumed run counts from its last start
    for run in runs:
        hours["GPU" if run.facts.get("gpu") else "CPU"] += (run.facts.get("seconds") or 0) / 3600
    parts = [line, Text(f"spent: {hours['GPU']:.2f} GPU hours, {hours['CPU']:.2f} CPU hours")]
    if published := sum(run.state == "done" and not run.facts for run in runs):
        parts.append(Text(f"{published} of those done were not trained here: their scores are published."))
    if stale:
        parts.append(Text(f"{stale} not yet done have scores of an older code version, which pages show with †."))
    if counts["stopped"]:
        parts.append(Text("Start the workflow again to resume stopped runs, from their checkpoint if they have one."))
    if counts["running"]:
        parts += [Text(), running_table([run for run in runs if run.state == "running"])]
    if counts["failed"]:
        parts += [Text(), failed_table([run for run in runs if run.state == "failed"])]
    parts += failed_scores({run.id: failures(catalog.RUNS / run.id) for run in runs if run.state == "done"})
    return Group(*parts)


def running_table(runs: list[RunStatus]) -> Table:
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


def failed_scores(reasons: dict[str, dict[str, str]]) -> list:
    """Why finished runs lack scores, a table of reasons by run and evaluator; nothing where none failed."""
    rows = [(run_id, name, reason) for run_id, by_name in reasons.items() for name, reason in by_name.items()]
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for name in ("score failed", "evaluator", "reason"):
        table.add_column(name, no_wrap=name != "reason")
    for row in rows:
        table.add_row(*map(Text, row))
    return [Text(), table] if rows else []


def failed_table(runs: list[RunStatus]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("failed")
    table.add_column("log", no_wrap=True)
    for run in runs:
        log, message = catalog.RUNS / run.id / "train.log", run.facts["message"]
        text = message if message.startswith(run.id) else f"{run.id}: {message}"
        table.add_row(Text(text), str(log) if log.exists() else "–")
    return table
