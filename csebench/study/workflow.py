"""What the rules of the workflow compute: inputs, threads and minutes of jobs. Never imports
torch."""

import fcntl
import os
import sys
from collections.abc import Iterable
from functools import wraps
from pathlib import Path

from csebench.base.errors import BadInput, last_error
from csebench.base.files import matches
from csebench.base.runs import DONE, PRUNED
from csebench.base.shown import visible, visible_lines
from csebench.plan import forecast, page_records, recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import from_hub, missing, source_of, sources
from csebench.plan.catalog.registry import protocol
from csebench.plan.code_versions import unversioned_code
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec, digest
from csebench.score.score_file import settings

# of the rule page; `inputs_of` refuses what is no page
PAGE = r"(?!partial/)(\w+/){0,2}(?!evidence\b)\w+"


def refusing(function):
    """Decorator of what rules call: bad input ends the workflow with one message and exit code
    2, where Snakemake would bury it in a traceback and exit with 1."""

    @wraps(function)
    def checked(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BadInput as error:
            print(f"csebench: {visible_lines(str(error))}", file=sys.stderr, flush=True)
            os._exit(2)

    return checked


@refusing
def start(scale: str) -> None:
    """Check the scale, which is a number in `--config scale=3`, and plan its runs."""
    catalog.scale(scale)
    targets.runs(scale)


def hold_folder() -> None:
    """Lock the folder of the workflow until this process ends, shared with other Snakemakes in
    it, and delete the lock that a killed one left: Snakemake itself cannot tell it from that of
    one at work. Does nothing where the folder cannot be written, or its file system has no
    locks."""
    folder = Path(".snakemake")
    try:
        folder.mkdir(exist_ok=True)
        file = os.open(folder / "csebench.lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.glob("locks/*.lock"):
                left.unlink()
        except BlockingIOError:  # another Snakemake is at work, and its locks are
            pass
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        return


def report_failures(logs: Iterable[str]) -> None:
    """Print a line per log of a failed job with the reason."""
    for name in dict.fromkeys(logs):
        content = (
            Path(name).read_text(encoding="utf-8", errors="replace") if Path(name).exists() else ""
        )
        print(f"csebench: failed: {visible(last_error(content))} ({name})", file=sys.stderr)


@refusing
def report_defects(scale: str) -> None:
    """Print a line for each broken file that has no pages, and one where the code of a unit
    changed and its version did not."""
    lines = [f"left out: {broken}" for broken in targets.left_out(scale)]
    if changed := unversioned_code():
        lines.append(
            f"{', '.join(changed)}: the code changed, the version did not. New results are kept"
            " apart from those of the version, or marked. Bump `version` if a number can change;"
            f" if none can: python -m csebench.plan.code_versions --bless {' '.join(changed)}"
        )
    for line in lines:
        print(f"csebench: {visible_lines(line)}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- pages


@refusing
def inputs_of(output: str, scale: str | None = None, is_dry_run: bool = False) -> list[Path]:
    """Inputs of the rule of a file below results/: what rules make for it, and the record of what
    it was made from. A page in results/partial/ waits for no other file. The folder must not
    contradict the `scale` of `--config`.
    """
    path = Path(output)
    made = page_records.made_by_rules(path)
    if scale not in (None, page_records.name_and_scale(path)[1]):
        raise BadInput(
            f"{path} is not a page of scale {scale}: its pages are in"
            f" {catalog.results_folder(scale)}/."
        )
    return [
        *([] if path.is_relative_to(page_records.PARTIAL) else made),
        page_records.renewed_record(path, is_dry_run),
    ]


@refusing
def inputs_of_all(scale: str) -> list[Path]:
    """Every page of a scale, and the scores: a deleted one is made again, though pages are up to
    date."""
    from csebench.report.pages import has_picture  # where it is needed: it loads all of the room

    names = [
        *(f"{page}.md" for page in catalog.OVER_ALL),
        "scores.csv",
        "cells.csv",
        "comparisons.csv",
    ]
    pages = targets.pages(scale)
    files = [page.path.with_suffix(".md") for page in pages]
    files += [
        p.path for p in pages if p.path.suffix == ".svg" and (p.path.exists() or has_picture(p))
    ]
    files += [catalog.results_folder(scale) / name for name in names]
    return [*files, catalog.RESULTS / "evidence.md", *page_records.scores_of_pages(pages)]


# ---------------------------------------------------------------- jobs


@refusing
def planned_run(run_id: str, first_scale: str) -> tuple[Spec, Scale]:
    """A run and a scale whose pages need it: `first_scale` if they do."""
    scale_name = targets.scale_of_run(run_id, first_scale)
    return targets.run(run_id, scale_name), catalog.scale(scale_name)


@refusing
def run_data(run_id: str, first_scale: str) -> list[Path]:
    """Corpus and dev set of a run, what is made of its corpus, and the run before it: files that
    rules make."""
    spec, scale = planned_run(run_id, first_scale)
    files = fetched_markers(recipe.training_files(spec, scale), scale)
    if (positives := recipe.positives_path(spec)) is not None:
        files.append(positives)
    if spec.run_before is not None:
        files.append(catalog.RUNS / spec.run_before / DONE)
    return files


def fetched_markers(names: Iterable[str], scale: Scale) -> list[Path]:
    """The files by which rules show that the sources of some files of the data root are fetched.
    Given data are no inputs: their hashes are in the identities of runs and scores, and another
    place of the data root, as in a moved checkout, must start nothing. What can neither be read
    nor fetched ends the workflow."""
    given, markers = catalog.given_root(scale), {}
    for name in names:
        if (why := missing(name, scale)) is not None:
            raise BadInput(why)
        if given is None or not (given / name).exists():
            source = source_of(name)
            assert source is not None, name
            markers[Path(catalog.FETCHED) / sources()[source].marker] = None
    return [*markers]


@refusing
def trained_run(run_id: str, evaluator: str, score_scale: str, first_scale: str) -> list[Path]:
    """The file that says that a run is trained. Nothing where its score is published and the run
    is not here and cannot be trained, because its corpus cannot be had: then the score is used
    as it is."""
    made = catalog.RUNS / run_id / DONE
    # the model is deleted: what is missing needs another training
    if made.with_name(PRUNED).exists():
        made.unlink(missing_ok=True)
    if made.parent.exists() or not targets.score_path(run_id, evaluator, score_scale).exists():
        return [made]
    spec, scale = planned_run(run_id, first_scale)
    return [] if spec.corpus and missing(recipe.training_files(spec, scale)[0], scale) else [made]


def evaluator_data(evaluator: str, scale_name: str) -> list[Path]:
    """What an evaluator reads: files of the data root by name, and a file of every source that
    is fetched for it; nothing of a source that cannot be fetched (a score of it was made
    elsewhere)."""
    scale, wanted = catalog.scale(scale_name), protocol(evaluator)
    if targets.unavailable(evaluator, scale_name) or from_hub(wanted, catalog.data_root(scale)):
        return []
    given = catalog.given_root(scale)
    patterns = [p for p in wanted.files if "*" not in p or given is None or not matches(given, p)]
    return fetched_markers(patterns, scale)


@refusing
def wanted_evaluators(run_id: str, first_scale: str, wanted: Iterable[str]) -> str:
    """What a run is scored by while its model is in memory, comma-separated: the evaluators of
    the pages that the workflow was called for; of every page where that is more than pages."""
    scale_name = targets.scale_of_run(run_id, first_scale)
    try:
        pages = [page for target in wanted for page in targets.parse_target(target, scale_name)]
    except BadInput:  # reports, folders, score files
        pages = []
    pages = pages or targets.pages(scale_name)
    return ",".join(
        sorted(
            {evaluator for page in pages for run, evaluator in page.available() if run == run_id}
        )
    )


def settings_identity(evaluator: str, scale_name: str) -> str:
    """The key of an evaluation's settings: another version or batch size is scored again."""
    return digest(settings(protocol(evaluator), catalog.scale(scale_name).evaluation))


@refusing
def training_minutes(run_id: str, first_scale: str, attempt: int) -> int:
    """What a cluster is asked for."""
    spec, scale = planned_run(run_id, first_scale)
    return forecast.job_minutes(forecast.fastest_seconds(spec, scale.scale), attempt)
