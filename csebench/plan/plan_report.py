"""What `csebench plan` prints: runs that are done and missing, hours, and what each table costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tabulate import tabulate

from csebench.base.errors import BadInput
from csebench.base.runs import read_report
from csebench.base.tables import records
from csebench.plan import catalog, cost, targets
from csebench.plan.cost import Step, Work
from csebench.plan.spec import Spec


@dataclass(frozen=True)
class PlannedRun:
    """A run that pages need, and every table and figure that shows it."""

    spec: Spec
    tables: tuple[str, ...]  # of all papers
    seconds: float | None  # of training, where it was done here
    damage: str | None  # of the run's report


def planned_runs(pages: list[targets.Page]) -> list[PlannedRun]:
    """The distinct runs of pages, sorted by id."""
    tables: dict[str, list[str]] = {}
    for grid in dict.fromkeys(grid for page in targets.pages(pages[0].scale) for grid in page.grids()):
        for run in targets.page(grid[1], pages[0].scale, grid[0]).runs():
            tables.setdefault(run, []).append(target_name(*grid))
    specs = {run: spec for page in pages for run, spec in page.available_runs().items()}
    return [PlannedRun(spec, tuple(tables[run]), *training_seconds(run)) for run, spec in sorted(specs.items())]


def target_name(paper: str, name: str) -> str:
    """A table or figure as a target: `micse/table2`."""
    return name if paper == name else f"{paper}/{name}"


def training_seconds(run: str) -> tuple[float | None, str | None]:
    """Seconds that a run took that was trained here, None for another; and what is wrong with its report."""
    try:
        report = read_report(catalog.RUNS / run)
    except BadInput as error:
        return None, str(error)
    return (None if report is None else report.get("provenance", {}).get("seconds")), None


# ---------------------------------------------------------------- the whole


def summary(work: Work, stale: int = 0) -> str:
    """Runs and cells; hours by kind of work, and every table and figure by itself.

    Args:
        stale: number of runs that have scores of older code only.
    """
    runs, finished = planned_runs(work.pages), targets.finished_runs(work.pages)
    shown = {target_name(*grid) for grid in work.grids}
    apart = sum(len(shown.intersection(run.tables)) for run in runs)
    done = len(finished.intersection(run.spec.run_id for run in runs))
    damages = [run.damage for run in runs if run.damage]
    published = len([run for run in runs if run.spec.run_id in finished and run.seconds is None]) - len(damages)
    shared = sum(len(run.tables) > len(shown.intersection(run.tables)) for run in runs)
    cells = len(work.cells)
    made = sum(not work.steps(scores) for scores in work.cells.values())
    lines = [
        f"{len(runs)} runs at scale {work.scale.scale}, {done} done, {len(runs) - done} missing."
        + (f" Without sharing between tables and figures there would be {apart}." if apart > len(runs) else "")
        + (f" {shared} also serve tables or figures that are not asked for." if shared else "")
    ]
    lines += [f"{published} of those done were not trained here: their scores are published."] if published else []
    lines += (
        [f"{stale} of those missing have scores of an older code version, which pages show with †."] if stale else []
    )
    lines += damages
    lines += [f"{cells} cells: {made} complete."]
    return "\n\n".join(filter(None, ["\n".join(lines), hours_table(work), tables_table(work)]))


def hours_table(work: Work) -> str:
    """Hours of what is missing on one device, by kind of work, with the sources of the forecast."""
    steps = work.steps(work.missing)
    if not steps:
        return "Nothing is left to be made."
    kinds: dict[str, list[Step]] = {}
    for step in sorted(steps):
        kinds.setdefault(_kind(step), []).append(step)
    rows = [[kind, len(of), *_hours(work, of)] for kind, of in sorted(kinds.items(), key=lambda item: item[0])]
    rows.append(["all", "", *_hours(work, steps)])
    head = ["still to be made", "number", "hours (range)", "not measured"]
    device = f"on one {work.device}, one run after the other" if work.device else "measured on no device"
    lines = [f"Forecast {device}:", tabulate(rows, head, disable_numparse=True, colalign=_right(4))]
    counts = {name: 0 for name in dict.fromkeys(work.encoders.values())}
    for step in steps:
        if step.kind == "train":
            counts[work.encoders[step.run]] += 1
    for name, count in counts.items():
        if count:
            source = work.times[name].source if name in work.times else "measured on no device"
            lines.append(f"{name}, {count} runs: {source}")
    if others := sorted({times.device for times in cost.step_times()} - {work.device}):
        lines.append(f"Other devices for --device: {'; '.join(others)}. data/step_times.yaml has them all.")
    return "\n".join(lines)


def _kind(step: Step) -> str:
    return {
        "train": "training",
        "translate": "back-translation",
        "score": f"scoring: {step.evaluator.partition(':')[0]}",
    }[step.kind]


def _hours(work: Work, steps: Iterable[Step]) -> list:
    """Hours of the measured steps, and the number of those that were not measured."""
    steps = list(steps)
    estimate, unknown = work.cost(steps)
    return ["–" if steps and unknown == len(steps) else estimate.hours, unknown or ""]


def _right(count: int) -> list[str]:
    return ["left", *["right"] * (count - 1)]


def tables_rows(work: Work) -> tuple[list[str], list[list]]:
    """Columns and rows: what is missing of every table and figure if it were made alone."""
    rows = []
    for grid in work.grids:
        of_cells = [scores for cell, scores in work.cells.items() if cell[:2] == grid]
        steps = work.steps(set().union(*of_cells))
        made = sum(not work.steps(scores) for scores in of_cells)
        trained = sum(step.kind == "train" for step in steps)
        if of_cells:
            rows.append([target_name(*grid), f"{made} of {len(of_cells)}", trained, *_hours(work, steps)])
    return ["table or figure alone", "cells complete", "runs to train", "hours (range)", "not measured"], rows


def tables_table(work: Work) -> str:
    head, rows = tables_rows(work)
    return tabulate(rows, head, disable_numparse=True, colalign=_right(5)) if rows else ""


def downloads_line(models: int, others: int) -> str:
    """What has to be downloaded first: models of the hub, and other sources."""
    counts = [f"{count} {what}" for count, what in ((models, "models"), (others, "other sources")) if count]
    if not counts:
        return "Nothing is left to be downloaded."
    return f"To be downloaded: {', '.join(counts)}; `csebench check` asks for their sizes."


# ---------------------------------------------------------------- lists of runs


def content(work: Work) -> dict:
    """What `csebench plan --json` prints."""
    tables = {"scale": work.scale.scale, "device": work.device, "tables": records(*tables_rows(work))}
    return tables | {"runs": records(*runs_rows(work))}


def runs_rows(work: Work) -> tuple[list[str], list[list]]:
    """Columns and rows: every run of the targets, with its state and the tables and figures that show it."""
    finished, rows = targets.finished_runs(work.pages), []
    for run in planned_runs(work.pages):
        state = "damaged" if run.damage else "done" if run.spec.run_id in finished else "missing"
        size = run.spec.corpus.size if run.spec.corpus else "-"
        rows.append([run.spec.run_id, size, run.spec.seed, state, run.seconds, len(run.tables), " ".join(run.tables)])
    return ["run", "sentences", "seed", "state", "seconds", "shown in", "tables"], rows


def runs_table(work: Work) -> str:
    head, rows = runs_rows(work)
    return tabulate(rows, head, floatfmt=".1f")
