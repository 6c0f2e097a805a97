"""Compute what the rules of the workflow need: inputs, threads and minutes of jobs.

Snakemake calls these functions while it plans, so the module never imports torch. What a job does
belongs to work.py and to the verbs of csebench/cli/.
"""

import fcntl
import os
import sys
from collections.abc import Iterable
from functools import wraps
from pathlib import Path

from csebench.base import job_server
from csebench.base.errors import BadInput, last_error
from csebench.base.files import matches
from csebench.base.runs import DONE, PRUNED
from csebench.base.shown import visible, visible_lines
from csebench.plan import forecast, page_records, recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import (
    from_hub,
    missing,
    source_of,
    sources,
    unavailable,
)
from csebench.plan.catalog.registry import protocol
from csebench.plan.code_versions import changed_without_bump
from csebench.plan.rows import find_row
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec, digest
from csebench.score.score_file import settings

# paths of the rule `page`, without results/ and .md; `inputs_of` refuses those that are no pages
PAGE = r"(?!partial/)(\w+/){0,2}(?!evidence\b)\w+"
# paths of the rule `row`, without results/ and .csv
ROW = r"(?!partial/)(\w+/){1,2}table\w+/[\w.-]+"


def refusing(function):
    """Make bad input end the workflow with one message and exit code 2.

    This decorates functions that rules call. If they raised BadInput, Snakemake would bury the
    message in a traceback and exit with 1.
    """

    @wraps(function)
    def checked(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BadInput as error:
            print_line(str(error))
            os._exit(2)

    return checked


def print_line(text: str) -> None:
    print(f"csebench: {visible_lines(text)}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- start and end of a workflow


@refusing
def start(scale: str) -> None:
    """Check the scale, and plan its runs.

    Args:
        scale: name of a scale. `--config scale=3` gives a number, which is refused, too.
    """
    catalog.scale(scale)
    targets.runs(scale)


def hold_folder() -> None:
    """Lock the folder of the workflow until this process ends, and delete stale files in it.

    Several Snakemakes may share the folder. A killed one leaves locks and its socket behind, and
    Snakemake cannot tell stale locks from those of a running Snakemake. They are deleted if no
    other Snakemake is running.
    Nothing happens if the folder cannot be written, or if its file system has no locks.
    """
    folder = Path(".snakemake")
    try:
        folder.mkdir(exist_ok=True)
        # never closed: the end of the process releases the lock
        file = os.open(folder / "csebench.lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # every running Snakemake shares the lock, so an exclusive one means that none runs
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for stale in [*folder.glob("locks/*.lock"), *folder.glob("*.sock")]:
                stale.unlink()
        except BlockingIOError:  # another Snakemake is running, and the locks are its own
            pass
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        return


def start_job_server() -> None:
    """Start the process that runs jobs in its forks, until this process ends. Only on Linux."""
    if sys.platform == "linux":
        job_server.start_server(Path(".snakemake") / f"jobs-{os.getpid()}.sock")


@refusing
def report_defects(scale: str) -> None:
    """Print the broken files, which are left out, and code that changed without a new version."""
    for defect in targets.left_out(scale):
        print_line(f"left out: {defect}")
    changed = changed_without_bump()
    if changed:
        print_line(
            f"{', '.join(changed)}: the code changed without a new version. New runs and scores are"
            " kept apart from those of the version, or flagged. Raise `version` if a number can"
            " change. If none can: python -m csebench.plan.code_versions --bless"
            f" {' '.join(changed)}"
        )


def report_failures(logs: Iterable[str]) -> None:
    """Print the reason of each failed job, with the name of its log."""
    for name in dict.fromkeys(logs):
        path = Path(name)
        content = ""
        if path.exists():
            content = path.read_text(encoding="utf-8", errors="replace")
        print(f"csebench: failed: {visible(last_error(content))} ({name})", file=sys.stderr)


def report_success(wanted: Iterable[str], scale: str) -> None:
    """Say what finished pages of the default scale show, and what to run next.

    Args:
        wanted: the targets of the workflow; none, or `all`, for all pages of the scale.
        scale: the scale whose pages `all` stands for.
    """
    names = list(wanted)
    if not names or "all" in names:
        is_smoke = scale == catalog.DEFAULT_SCALE
    else:
        is_smoke = not smoke_outputs().isdisjoint(map(Path, names))
    if not is_smoke:
        return
    print_line(
        "done: training, scoring and pages work on this machine. Scale"
        f" {catalog.DEFAULT_SCALE} shows no more than that; its numbers say nothing about a method."
    )
    print_line(
        "next: `csebench claims micse` (is what a paper says supported by its own numbers?),"
        " `csebench plan micse/table2 --scale paper` (what a rerun takes)."
    )


def smoke_outputs() -> set[Path]:
    """List the pages of the default scale that show scores of runs."""
    scale = catalog.DEFAULT_SCALE
    paths = {page.path.with_suffix(".md") for page in targets.pages(scale) if page.available()}
    return paths | {catalog.results_folder(scale) / "index.md"}


# ---------------------------------------------------------------- pages


@refusing
def inputs_of(output: str, scale: str | None = None, is_dry_run: bool = False) -> list[Path]:
    """List the inputs of a file below results/: files that rules make for it, and its record.

    The record (csebench/plan/page_records.py) says what the file was made from. It is the only
    input of a page in results/partial/.

    Args:
        scale: the scale that `--config` states, if any. The file must be of this scale.
    """
    path = Path(output)
    inputs = page_records.made_by_rules(path)
    if path.is_relative_to(page_records.PARTIAL):
        inputs = []
    _, scale_of_page = page_records.name_and_scale(path)
    if scale is not None and scale != scale_of_page:
        folder = catalog.results_folder(scale)
        raise BadInput(f"{path} is not a page of scale {scale}: its pages are in {folder}/.")
    return [*inputs, page_records.renewed_record(path, is_dry_run)]


@refusing
def inputs_of_all(scale: str) -> list[Path]:
    """List every page, figure and CSV file of a scale, and the scores.

    The scores are listed so that a deleted one is made again even if the pages are up to date.
    """
    from csebench.report.pages import has_picture  # here, because it loads all of csebench/report/

    pages = targets.pages(scale)
    texts = [page.path.with_suffix(".md") for page in pages]
    figures = [page for page in pages if page.path.suffix == ".svg"]
    pictures = [page.path for page in figures if page.path.exists() or has_picture(page)]
    names = [f"{name}.md" for name in catalog.OVER_ALL]
    names += ["scores.csv", "cells.csv", "comparisons.csv", "claims.csv"]
    over_all = [catalog.results_folder(scale) / name for name in names]
    evidence = catalog.RESULTS / "evidence.md"
    return [*texts, *pictures, *over_all, evidence, *page_records.scores_of_pages(pages)]


# ---------------------------------------------------------------- jobs that train


@refusing
def planned_run(run_id: str, first_scale: str) -> tuple[Spec, Scale]:
    """Find a run, and a scale whose pages need the run. `first_scale` is preferred."""
    scale_name = targets.scale_of_run(run_id, first_scale)
    return targets.run(run_id, scale_name), catalog.scale(scale_name)


@refusing
def run_data(run_id: str, first_scale: str) -> list[Path]:
    """List the inputs of a run that rules make.

    These are fetched data, the back-translation of its corpus, and the run that it starts from.
    """
    spec, scale = planned_run(run_id, first_scale)
    files = fetched_markers(recipe.training_files(spec, scale), scale)
    positives = recipe.positives_path(spec)
    if positives is not None:
        files.append(positives)
    if spec.run_before is not None:
        files.append(catalog.RUNS / spec.run_before / DONE)
    return files


def fetched_markers(names: Iterable[str], scale: Scale) -> list[Path]:
    """List the marker files that show that the sources of some data are fetched.

    Data that the user gives is no input. Ids of runs and scores contain its hashes, so a new path
    of the same data, as in a moved checkout, must start nothing.

    Args:
        names: files, or patterns of files, of the data root.

    Raises:
        BadInput: a file is neither given nor can it be fetched.
    """
    given = catalog.given_root(scale)
    markers: dict[Path, None] = {}  # a dict keeps the order
    for name in names:
        reason = missing(name, scale)
        if reason is not None:
            raise BadInput(reason)
        if given is not None and (given / name).exists():
            continue
        source = source_of(name)
        assert source is not None, name
        markers[Path(catalog.FETCHED) / sources()[source].marker] = None
    return list(markers)


@refusing
def wanted_evaluators(run_id: str, first_scale: str, wanted: Iterable[str]) -> str:
    """List the evaluators that score a run while its model is in memory, comma-separated.

    These are the evaluators of the requested pages and rows, or of all pages if the targets include
    other files, such as reports, folders and score files.

    Args:
        wanted: the targets of the workflow.
    """
    scale_name = targets.scale_of_run(run_id, first_scale)
    scores: set[tuple[str, str]] = set()
    try:
        for target in wanted:
            scores |= scores_of_target(target, scale_name)
    except BadInput:  # a target is neither a page nor a row
        scores = set()
    if not scores:
        scores = scores_of_target("all", scale_name)
    evaluators = {evaluator for scored_run, evaluator in scores if scored_run == run_id}
    return ",".join(sorted(evaluators))


def scores_of_target(target: str, scale_name: str) -> set[tuple[str, str]]:
    """Collect the scores that pages or a row show and that can be made, as (run id, evaluator)."""
    row = find_row(target, scale_name)
    if row is not None:
        return {*row.available()}
    scores = set()
    for page in targets.parse_target(target, scale_name):
        scores |= {*page.available()}
    return scores


@refusing
def training_minutes(run_id: str, first_scale: str, attempt: int) -> int:
    """Choose the minutes to request from a cluster for a run and its scores."""
    spec, scale = planned_run(run_id, first_scale)
    return forecast.job_minutes(forecast.fastest_seconds(spec, scale.scale), attempt)


# ---------------------------------------------------------------- jobs that score


@refusing
def trained_run(
    run_id: str, evaluator: str, score_scale: str, first_scale: str, is_dry_run: bool
) -> list[Path]:
    """List the inputs of a score: the file that says that its run is trained, or nothing.

    If the model was deleted, this file is deleted, too, so that a missing score trains the run
    again. A published score needs no input if its run is not here and the corpus of the run cannot
    be fetched. Then the score is used as it is.

    Args:
        is_dry_run: keep the file. Snakemake then does not list the training that a missing score
            of a deleted model needs. `csebench plan` does.
    """
    done = catalog.RUNS / run_id / DONE
    if not is_dry_run and done.with_name(PRUNED).exists():
        done.unlink(missing_ok=True)
    is_published = targets.score_path(run_id, evaluator, score_scale).exists()
    if done.parent.exists() or not is_published:
        return [done]
    spec, scale = planned_run(run_id, first_scale)
    if spec.corpus is None:
        return [done]
    corpus = recipe.training_files(spec, scale)[0]
    if missing(corpus, scale) is None:
        return [done]
    return []


def evaluator_data(evaluator: str, scale_name: str) -> list[Path]:
    """List the marker files of the data that must be fetched for an evaluator.

    The list is empty if the data cannot be fetched. A score that exists was then made elsewhere.
    """
    scale = catalog.scale(scale_name)
    parsed = protocol(evaluator)
    if unavailable(evaluator, scale_name) is not None:
        return []
    if from_hub(parsed, catalog.data_root(scale)):
        return []
    given = catalog.given_root(scale)
    names = []
    for pattern in parsed.files:
        is_given = "*" in pattern and given is not None and bool(matches(given, pattern))
        if not is_given:
            names.append(pattern)
    return fetched_markers(names, scale)


def settings_identity(evaluator: str, scale_name: str) -> str:
    """Hash the settings of an evaluation, so that another version or batch size scores again."""
    return digest(settings(protocol(evaluator), catalog.scale(scale_name).evaluation))
