"""The verb status: the state of the runs of targets, read from the files in runs/ and results/."""

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from csebench.base.errors import BadInput
from csebench.base.runs import has_model, read_progress, read_report
from csebench.base.terminal import counted, json_text, print_text, table_text
from csebench.cli.options import parse_targets
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.spec import Spec
from csebench.score.store import failures, read_scores, stale_runs

SILENT_SECONDS = 120  # a run on another host counts as stopped after so long without a write
STATES = ("done", "running", "failed", "stopped", "waiting")


class RunStatus(NamedTuple):
    """A planned run and the state of its folder."""

    spec: Spec
    state: str  # one of STATES
    facts: dict  # of train.json or progress.json


def show_status(args):
    """Print the state, for people or as JSON."""
    pages = parse_targets(args.target, args.scale)
    runs = read_statuses(pages)
    if args.json:
        listed = [
            {"run": spec.run_id, "state": state}
            | {key: facts.get(key) for key in ("step", "steps", "message")}
            for spec, state, facts in runs
        ]
        return print(json_text({"scale": pages[0].scale, "runs": listed}))
    head = (
        f"Scale {args.scale}: runs in {catalog.RUNS}/, scores in"
        f" {catalog.results_folder(args.scale)}/scores/"
    )
    return print_text("\n\n".join([f"{head}\n{status_summary(pages, runs)}", *detail_tables(runs)]))


def read_statuses(pages: list[targets.Page]) -> list[RunStatus]:
    """The current state of the runs of pages."""
    finished = targets.finished_runs(pages)
    specs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    return [
        RunStatus(spec, *read_state(run_id, run_id in finished))
        for run_id, spec in sorted(specs.items())
    ]


def read_state(run_id: str, is_finished: bool = False) -> tuple[str, dict]:
    """State and facts of a run. A failure comes first, also where the model is there; a damaged
    file is one.

    Args:
        is_finished: whether its scores are all published, perhaps from elsewhere
        (targets.finished_runs).
    """
    folder = catalog.RUNS / run_id
    try:
        progress = read_progress(folder)
        if progress is not None and progress["state"] == "failed":
            return "failed", progress
        is_finished = is_finished or has_model(folder)
        if is_finished and (report := read_report(folder)) is not None:
            return "done", report.get("provenance", {})
    except BadInput as error:
        return "failed", {"message": str(error)}
    if progress is not None and is_alive(progress):
        return "running", progress
    if is_finished:
        return "done", {}
    return ("waiting", {}) if progress is None else ("stopped", progress)


def is_alive(progress: dict) -> bool:
    """Whether the process that writes a progress.json still runs."""
    if progress["host"] != socket.gethostname():
        return time.time() - progress["updated"] < SILENT_SECONDS
    try:
        os.kill(progress["pid"], 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # the process of another user
    return True


def status_summary(pages: list[targets.Page], runs: list[RunStatus]) -> str:
    """Counts of states, and hours spent: of a resumed run since its last start."""
    counts = Counter(run.state for run in runs)
    lines = [
        f"{counted(len(runs), 'run')}: {', '.join(f'{counts[state]} {state}' for state in STATES)}"
    ]
    lines += hours_lines(runs)
    return "\n".join([*lines, *stored_lines(pages, runs)])


def hours_lines(runs: list[RunStatus]) -> list[str]:
    """The hours spent here; nothing where no run was started here, as of published scores."""
    timed = [run.facts for run in runs if run.facts.get("seconds") is not None]
    return [f"spent: {hours_text(timed)}"] if timed else []


def hours_text(timed: Iterable[dict]) -> str:
    """`1.75 GPU hours, 0.60 CPU hours`, from `seconds` and `gpu` of runs; without a device that
    none was on."""
    hours: dict[str, float] = {}
    for facts in timed:
        device = "GPU" if facts.get("gpu") else "CPU"
        hours[device] = hours.get(device, 0.0) + facts["seconds"] / 3600
    return ", ".join(
        f"{hours[device]:.2f} {device} hours" for device in sorted(hours, reverse=True)
    )


def stored_lines(pages: list[targets.Page], runs: list[RunStatus]) -> list[str]:
    """How many runs are done by scores in results/ alone, and how many have older ones there."""
    lines = []
    published = {run.spec.run_id for run in runs if run.state == "done" and not run.facts}
    if published:
        text = f"{len(published)} done by scores stored in results/"
        timed = published_trainings(pages, published)
        if timed:
            text += f"; their training took {hours_text(timed)} where they were made"
        lines.append(f"{text}.")
    if stale := len(stale_runs(pages)):
        lines.append(
            f"{stale} of those missing with scores of an older code version, which pages show"
            " with †."
        )
    return lines


def published_trainings(pages: list[targets.Page], run_ids: set[str]) -> list[dict]:
    """What the stored scores of runs state of their training: `seconds`, `gpu` …, of one score
    per run."""
    found = {}
    for page in pages:
        for run_id, evaluator in page.available():
            if run_id not in run_ids or run_id in found:
                continue
            content = read_scores(targets.score_path(run_id, evaluator, page.scale)) or {}
            provenance = content.get("training", {}).get("provenance", {})
            if provenance.get("seconds") is not None:
                found[run_id] = provenance
    return [*found.values()]


def detail_tables(runs: list[RunStatus]) -> list[str]:
    """Tables of running runs, failed runs and failed scores, as far as there are any."""
    running, failed, unscored = [], [], []
    for spec, state, facts in runs:
        run_id, folder = spec.run_id, catalog.RUNS / spec.run_id
        if state == "running":
            step = f"{facts['step']}/{facts['steps']}" if facts["steps"] else None
            loss = None if facts["loss"] is None else f"{facts['loss']:.3f}"
            dev = None if facts["dev"] is None else f"{100 * facts['dev']:.2f}"
            running.append([run_id, step, loss, dev, facts["host"]])
        elif state == "failed":
            log, message = folder / "train.log", facts["message"].removeprefix(f"{run_id}: ")
            failed.append([f"{run_id}: {message}", log if log.exists() else None])
        elif state == "done":
            unscored += [[run_id, *failure] for failure in failures(folder).items()]
    tables = {("running", "step", "loss", "dev", "host"): running, ("failed", "log"): failed}
    tables |= {("score failed", "evaluator", "reason"): unscored}
    return [table_text(head, rows) for head, rows in tables.items() if rows]
