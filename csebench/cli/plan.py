"""The verb plan: runs that are done and missing, hours, and what each table costs."""

from collections import Counter
from collections.abc import Collection

from csebench.base.terminal import counted, json_text, print_text, records, table_text
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
    "not measured",
]
RUN_COLUMNS = ["run", "sentences", "seed", "state", "seconds", "tables"]


def show_plan(args):
    work = Work(parse_targets(args.target, args.scale), args.device)
    runs, shown_in, tables = (
        read_statuses(work.pages),
        tables_of_runs(work.scale.scale),
        tables_rows(work),
    )
    listed = []
    for run in runs:
        size = run.spec.corpus.size if run.spec.corpus else "-"
        # of training, where it was done here
        seconds = run.facts.get("seconds") if run.state == "done" else None
        listed.append(
            [
                run.spec.run_id,
                size,
                run.spec.seed,
                run.state,
                seconds,
                " ".join(shown_in[run.spec.run_id]),
            ]
        )
    if args.json:
        content = {
            "scale": work.scale.scale,
            "device": work.device,
            "tables": records(TABLE_COLUMNS, tables),
        }
        return print(json_text(content | {"runs": records(RUN_COLUMNS, listed)}))
    parts = [
        plan_summary(work, runs, shown_in),
        hours_table(work),
        table_text(TABLE_COLUMNS, tables) if tables else "",
    ]
    parts += [
        preflight.downloads(work.pages),
        table_text(RUN_COLUMNS, listed, ".1f") if args.runs else "",
    ]
    return print_text("\n\n".join(filter(None, parts)))


def tables_of_runs(scale: str) -> dict[str, list[str]]:
    """Every table and figure, of all papers, that shows a run."""
    tables: dict[str, list[str]] = {}
    for grid in dict.fromkeys(grid for page in targets.pages(scale) for grid in page.grids()):
        for run in targets.page(grid[1], scale, grid[0]).runs():
            tables.setdefault(run, []).append(target_name(*grid))
    return tables


def plan_summary(work: Work, runs: list[RunStatus], shown_in: dict[str, list[str]]) -> str:
    """How many runs and cells are done, and how many runs are shared."""
    states, shown = Counter(run.state for run in runs), {target_name(*grid) for grid in work.grids}
    shared = sum(not shown.issuperset(shown_in[run.spec.run_id]) for run in runs)
    made, done = sum(not work.steps(scores) for scores in work.cells.values()), states["done"]
    first = (
        f"{counted(len(runs), 'run')} at scale {work.scale.scale}, {done} done, {len(runs) - done}"
        " missing."
    )
    first += (
        f" {shared} {'is' if shared == 1 else 'are'} shared with other tables." if shared else ""
    )
    failed = (
        [f"{states['failed']} of those missing failed; `csebench status` says why."]
        if states["failed"]
        else []
    )
    cells = f"{counted(len(work.cells), 'cell')}: {made} complete."
    return "\n".join([first, *stored_lines(work.pages, runs), *failed, cells])


def hours_table(work: Work) -> str:
    """Hours of what is missing on one device, by kind of work."""
    steps = work.steps(work.missing)
    if not steps:
        return "Nothing is left to be made."
    kinds: dict[str, list[Step]] = {}
    for step in sorted(steps):
        kind = {"train": "training", "translate": "back-translation"}.get(step.kind)
        kinds.setdefault(kind or f"scoring: {step.evaluator.partition(':')[0]}", []).append(step)
    rows = [[kind, len(of), *_hours(work, of)] for kind, of in sorted(kinds.items())]
    rows.append(["all", "", *_hours(work, steps)])
    device = (
        f"on one {work.device}, one run after the other" if work.device else "measured on no device"
    )
    lines = [
        f"Forecast {device}:",
        table_text(["still to be made", "number", "hours (range)", "not measured"], rows),
    ]
    note = forecast.bf16_note(work.scale, work.device)
    if note is not None:
        lines.append(note)
    if others := sorted({times.device for times in forecast.step_times()} - {work.device}):
        lines.append("\n  ".join(["Other devices for --device, of data/step_times.yaml:", *others]))
    return "\n".join(lines)


def _hours(work: Work, steps: Collection[Step]) -> list:
    """Hours of the measured steps, and the number of those that were not measured."""
    estimate, unknown = work.cost(steps)
    return ["–" if unknown and unknown == len(steps) else estimate.hours, unknown or ""]


def tables_rows(work: Work) -> list[list]:
    """What is missing of every table and figure if it were made alone."""
    rows = []
    for grid in work.grids:
        of_cells = [scores for cell, scores in work.cells.items() if cell[:2] == grid]
        steps = work.steps(set().union(*of_cells))
        made = sum(not work.steps(scores) for scores in of_cells)
        trained = sum(step.kind == "train" for step in steps)
        if of_cells:
            rows.append(
                [target_name(*grid), f"{made} of {len(of_cells)}", trained, *_hours(work, steps)]
            )
    return rows
