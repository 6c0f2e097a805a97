"""The verb `status`: which runs are done, running, failed, stopped or waiting.

The states are read from the files in runs/ and results/. Nothing is started or changed.
"""

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from csebench.base.errors import BadInput
from csebench.base.runs import has_model, read_progress, read_report
from csebench.base.terminal import counted, json_text, print_text, summary_line, table_text
from csebench.cli.options import parse_targets
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.spec import Spec
from csebench.score.store import failures, outdated_runs, read_scores

NOT_RECORDED = "not recorded"  # stands where no file says anything
SILENT_SECONDS = 120  # after this time without a write, a run on another host counts as stopped
STATES = ("done", "running", "failed", "stopped", "waiting")


class RunStatus(NamedTuple):
    """A planned run and the state of its folder."""

    spec: Spec
    state: str  # one of STATES
    facts: dict  # of train.json or progress.json


def show_status(args):
    """Print the state of the runs of targets, for people or as JSON."""
    pages = parse_targets(args.target, args.scale)
    runs = read_statuses(pages)
    if args.json:
        listed = [run_record(run) for run in runs[: args.limit]]
        return print(json_text({"scale": pages[0].scale, "runs": listed}))
    scale = pages[0].scale  # a target may be the path of a page of another scale
    scores = f"{catalog.results_folder(scale)}/scores/"
    head = f"Scale {scale}: runs in {catalog.RUNS}/, scores in {scores}"
    summary = status_summary(pages, runs)
    return print_text("\n\n".join([f"{head}\n{summary}", *detail_tables(runs, args.limit)]))


def run_record(run: RunStatus) -> dict:
    """Lay out a run for programs."""
    record: dict = {"run": run.spec.run_id, "state": run.state}
    for key in ("step", "steps", "message"):
        record[key] = run.facts.get(key)
    return record


def read_statuses(pages: list[targets.Page]) -> list[RunStatus]:
    """Read the current state of the runs of pages, by id."""
    finished = targets.finished_runs(pages)
    specs: dict[str, Spec] = {}
    for page in pages:
        specs |= page.available_runs()
    statuses = []
    for run_id, spec in sorted(specs.items()):
        state, facts = read_state(run_id, run_id in finished)
        statuses.append(RunStatus(spec, state, facts))
    return statuses


def read_state(run_id: str, is_finished: bool = False) -> tuple[str, dict]:
    """Read the state and the facts of a run.

    A failure comes first, even if the model is there. A damaged file is a failure, too.

    Args:
        is_finished: whether all scores of the run are published, perhaps by another machine
            (targets.finished_runs).
    """
    folder = catalog.RUNS / run_id
    try:
        progress = read_progress(folder)
        if progress is not None and progress["state"] == "failed":
            return "failed", progress
        is_finished = is_finished or has_model(folder)
        report = read_report(folder) if is_finished else None
    except BadInput as error:
        return "failed", {"message": str(error)}
    if report is not None:
        return "done", report.get("provenance", {})
    if progress is not None and is_alive(progress):
        return "running", progress
    if is_finished:
        return "done", {}
    if progress is not None:
        return "stopped", progress
    return "waiting", {}


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
    """Count the states, and add up the hours spent. A resumed run counts since its last start."""
    counts = Counter(run.state for run in runs)
    states = [f"{counts[state]} {state}" for state in STATES]
    lines = [f"{counted(len(runs), 'run')}: {', '.join(states)}"]
    trained_here = [run.facts for run in runs if run.facts]
    if trained_here or counts["done"] == 0:  # runs that are done by stored scores have a line below
        lines.append(f"spent: {hours_text(trained_here)}")
    return "\n".join([*lines, *stored_lines(pages, runs)])


def hours_text(timed: Iterable[dict]) -> str:
    """Word the hours of runs by device: `1.75 GPU hours, 0.60 CPU hours (2 runs not recorded)`.

    Args:
        timed: facts of runs, with `seconds` if they are recorded, and `gpu`.
    """
    hours: dict[str, float] = {}
    unknown_count = 0
    for facts in timed:
        if facts.get("seconds") is None:
            unknown_count += 1
            continue
        device = "GPU" if facts.get("gpu") else "CPU"
        hours[device] = hours.get(device, 0.0) + facts["seconds"] / 3600
    texts = [f"{hours[device]:.2f} {device} hours" for device in ("GPU", "CPU") if device in hours]
    if not texts:
        return NOT_RECORDED
    if unknown_count:
        texts[-1] += f" ({counted(unknown_count, 'run')} {NOT_RECORDED})"
    return ", ".join(texts)


def stored_lines(pages: list[targets.Page], runs: list[RunStatus]) -> list[str]:
    """Say how many runs are done by stored scores alone, and how many have outdated scores."""
    lines = []
    # a run that is done in runs/, too, has facts
    published = {run.spec.run_id for run in runs if run.state == "done" and not run.facts}
    if published:
        text = f"{len(published)} done by scores stored in results/"
        trainings = published_trainings(pages, published)
        if any(trainings):
            text += f"; their training took {hours_text(trainings)} where they were made"
        else:
            text += f"; the hours of their training are {NOT_RECORDED}"
        lines.append(f"{text}.")
    outdated = len(outdated_runs(pages))
    if outdated:
        verb = "has" if outdated == 1 else "have"
        lines.append(
            f"{outdated} of the missing {verb} a score of older code; pages mark it with †."
        )
    return lines


def published_trainings(pages: list[targets.Page], run_ids: set[str]) -> list[dict]:
    """Read from stored scores how runs were trained: `seconds`, `gpu` and more.

    Returns:
        The facts of each run, from one of its scores that states the seconds. Empty if none does.
    """
    trainings: dict[str, dict] = {run_id: {} for run_id in run_ids}
    for page in pages:
        for run_id, evaluator in page.available():
            if run_id not in run_ids or trainings[run_id]:
                continue
            content = read_scores(targets.score_path(run_id, evaluator, page.scale)) or {}
            provenance = content.get("training", {}).get("provenance", {})
            if provenance.get("seconds") is not None:
                trainings[run_id] = provenance
    return list(trainings.values())


def detail_tables(runs: list[RunStatus], limit: int | None) -> list[str]:
    """Lay out tables of running runs, failed runs and failed scores, without empty tables.

    Args:
        limit: the number of rows of each table; None for all.
    """
    running: list[list] = []
    failed: list[list] = []
    unscored: list[list] = []
    for run in runs:
        run_id = run.spec.run_id
        match run.state:
            case "running":
                running.append(running_row(run))
            case "failed":
                failed.append(failed_row(run))
            case "done":
                for evaluator, reason in failures(catalog.RUNS / run_id).items():
                    unscored.append([run_id, evaluator, reason])
    tables = []
    for columns, rows in (
        (["running", "step", "loss", "dev", "host"], running),
        (["failed", "log"], failed),
        (["score failed", "evaluator", "reason"], unscored),
    ):
        if rows:
            tables.append(table_text(columns, rows[:limit]))
        if limit is not None and len(rows) > limit:
            tables.append(summary_line(limit, len(rows), "row"))
    return tables


def running_row(run: RunStatus) -> list:
    """Lay out the progress of a run."""
    step = loss = dev = NOT_RECORDED
    if run.facts["steps"]:
        step = f"{run.facts['step']}/{run.facts['steps']}"
    if run.facts["loss"] is not None:
        loss = f"{run.facts['loss']:.3f}"
    if run.facts["dev"] is not None:
        dev = f"{100 * run.facts['dev']:.2f}"
    return [run.spec.run_id, step, loss, dev, run.facts["host"] or NOT_RECORDED]


def failed_row(run: RunStatus) -> list:
    """Lay out the reason of a failed run, and its log if there is one."""
    run_id = run.spec.run_id
    reason = run.facts["message"].removeprefix(f"{run_id}: ")
    log = catalog.RUNS / run_id / "train.log"
    if not log.exists():
        log = NOT_RECORDED
    return [f"{run_id}: {reason}", log]
