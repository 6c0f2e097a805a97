"""The verb `plan`: which runs are done or missing, and how many hours the missing ones take.

It also says what each table would take alone, and which command starts the work.
"""

from collections import Counter
from collections.abc import Collection

from csebench.base.project import snakemake_at_scale, snakemake_on_slurm
from csebench.base.terminal import (
    command_text,
    counted,
    json_text,
    print_text,
    records,
    summary_line,
    table_text,
)
from csebench.cli.options import parse_targets
from csebench.cli.status import RunStatus, read_statuses, stored_lines
from csebench.data import preflight
from csebench.plan import forecast, targets
from csebench.plan.forecast import Step, Work
from csebench.plan.targets import target_name

TABLE_COLUMNS = [
    "table or figure alone",
    "cells complete",
    "runs to train",
    "hours (range)",
    "without a forecast",
]
RUN_COLUMNS = ["run", "sentences", "seed", "state", "seconds", "tables"]


def show_plan(args):
    """Print the plan of targets, for people or as JSON."""
    work = Work(parse_targets(args.target, args.scale), args.device)
    runs = read_statuses(work.pages)
    shown_in = tables_of_runs(work.scale.scale)
    tables = tables_rows(work)
    listed_runs = [run_row(run, shown_in[run.spec.run_id]) for run in runs[: args.limit]]
    if args.json:
        content = {
            "scale": work.scale.scale,
            "device": work.device,
            "tables": records(TABLE_COLUMNS, tables),
            "runs": records(RUN_COLUMNS, listed_runs),
        }
        return print(json_text(content))

    parts = [plan_summary(work, runs, shown_in), hours_table(work)]
    if tables:
        parts.append(table_text(TABLE_COLUMNS, tables))
    if args.runs:
        parts.append(table_text(RUN_COLUMNS, listed_runs, ".1f"))
        parts.append(summary_line(len(listed_runs), len(runs), "run"))
    if work.steps(work.missing):
        parts.append(preflight.downloads(work.pages))
        parts.append(start_commands(work, is_whole_scale="all" in args.target))
    return print_text("\n\n".join(parts))


def start_commands(work: Work, is_whole_scale: bool) -> str:
    """Give the commands that start the missing work, here and on a cluster.

    Args:
        is_whole_scale: whether all pages of the scale were asked for.
    """
    pages = [str(page.path) for page in work.pages]
    if is_whole_scale:
        pages = ["all"]
    scale = work.scale.scale
    lines = [
        "To start or resume it:",
        command_text(snakemake_at_scale(pages, scale)),
        "On SLURM:",
        command_text(snakemake_on_slurm(pages, scale)),
    ]
    return "\n".join(lines)


def tables_of_runs(scale: str) -> dict[str, list[str]]:
    """List the tables and figures of all papers that show each run."""
    grids: dict[tuple[str, str], None] = {}  # a dict keeps the order
    for page in targets.pages(scale):
        grids |= dict.fromkeys(page.grids())
    tables: dict[str, list[str]] = {}
    for paper, name in grids:
        for run in targets.page(name, scale, paper).runs():
            tables.setdefault(run, []).append(target_name(paper, name))
    return tables


def run_row(run: RunStatus, tables: list[str]) -> list:
    """Lay out a run under RUN_COLUMNS."""
    size = "-"
    if run.spec.corpus is not None:
        size = run.spec.corpus.size
    seconds = None  # of training, if it was done on this machine
    if run.state == "done":
        seconds = run.facts.get("seconds")
    return [run.spec.run_id, size, run.spec.seed, run.state, seconds, " ".join(tables)]


def plan_summary(work: Work, runs: list[RunStatus], shown_in: dict[str, list[str]]) -> str:
    """Say how many runs and cells are done, and how many runs other tables show, too."""
    states = Counter(run.state for run in runs)
    done = states["done"]
    requested = {target_name(*grid) for grid in work.grids}
    shared = 0
    for run in runs:
        if not requested.issuperset(shown_in[run.spec.run_id]):
            shared += 1
    missing = len(runs) - done
    count = f"{counted(len(runs), 'run')} at scale {work.scale.scale}"
    first_line = f"{count}, {done} done, {missing} missing."
    if shared == 1:
        first_line += " 1 is shared with other tables."
    elif shared:
        first_line += f" {shared} are shared with other tables."

    lines = [first_line, *stored_lines(work.pages, runs)]
    if states["failed"]:
        lines.append(f"{states['failed']} of those missing failed; `csebench status` says why.")
    complete = sum(work.is_complete(scores) for scores in work.cells.values())
    lines.append(f"{counted(len(work.cells), 'cell')}: {complete:,} complete.")
    return "\n".join(lines)


def hours_table(work: Work) -> str:
    """Forecast the hours of the missing work on one device, by kind of work."""
    steps = work.steps(work.missing)
    if not steps:
        return "Nothing is left to be made."
    steps_by_kind: dict[str, list[Step]] = {}
    for step in sorted(steps):
        steps_by_kind.setdefault(kind_of_step(step), []).append(step)
    rows = []
    for kind, kind_steps in sorted(steps_by_kind.items()):
        rows.append([kind, len(kind_steps), *hours_cells(work, kind_steps)])
    rows.append(["all", "", *hours_cells(work, steps)])

    device = "measured on no device"
    if work.device:
        device = f"on one {work.device}, one run after the other"
    columns = ["still to be made", "number", "hours (range)", "without a forecast"]
    lines = [f"Forecast {device}:", table_text(columns, rows)]
    others = sorted({times.device for times in forecast.step_times()} - {work.device})
    if others:
        lines.append("Other devices for --device, in data/step_times.yaml:")
        lines += [f"  {device}" for device in others]
    return "\n".join(lines)


def kind_of_step(step: Step) -> str:
    """Word the kind of a step. An evaluator is one kind with all its parameters."""
    match step.kind:
        case "train":
            return "training"
        case "translate":
            return "back-translation"
        case "score":
            evaluator, _, _ = step.evaluator.partition(":")
            return f"scoring: {evaluator}"


def hours_cells(work: Work, steps: Collection[Step]) -> list:
    """Lay out the hours of the measured steps, and the number of the other steps."""
    estimate, unmeasured = work.cost(steps)
    hours = estimate.hours
    if unmeasured and unmeasured == len(steps):
        hours = "–"
    return [hours, unmeasured or ""]


def tables_rows(work: Work) -> list[list]:
    """Lay out under TABLE_COLUMNS what is missing for each table or figure alone."""
    rows = []
    for grid in work.grids:
        # a key is (paper, name, row, column); grid is (paper, name)
        scores_by_cell = [scores for key, scores in work.cells.items() if key[:2] == grid]
        if not scores_by_cell:
            continue
        steps = work.steps(set().union(*scores_by_cell))
        complete = sum(work.is_complete(scores) for scores in scores_by_cell)
        to_train = sum(step.kind == "train" for step in steps)
        row = [target_name(*grid), f"{complete} of {len(scores_by_cell)}", to_train]
        rows.append(row + hours_cells(work, steps))
    return rows
