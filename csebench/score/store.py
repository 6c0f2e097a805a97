"""Scores on disk: one JSON per run and evaluator, or a note beside them why there is none. Never
imports torch."""

import contextlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from csebench.base.caches import cached_by_folder
from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import (
    UNREADABLE_NPZ,
    digest,
    file_state,
    is_there,
    read_json,
    replacing,
    sha256,
    write_bytes,
)
from csebench.base.outputs import check_output, is_stream, is_taken, not_ours
from csebench.base.project import ROOT, folders, published
from csebench.base.runs import read_progress
from csebench.plan.catalog.files import RUNS, results_folder
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, fill, protocol
from csebench.plan.code_versions import draft_codes
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import Page, score_path, unavailable
from csebench.score.score_file import is_other_code, read_published, settings
from csebench.score.score_types import Items

# of the file of per-item values beside a JSON of scores; follows its whole name
ITEMS = ".items.npz"
ARTIFACTS = ".files"  # of the folder beside it in which evaluators leave files of their own
FAILED = ".failed.txt"


@cached_by_folder
def read_scores(path: Path) -> dict | None:
    """A published score JSON, or None where there is none; raises BadInput as `read_published`
    does."""
    return read_published(path) if is_there(path) else None


def value(content: dict, task: str, metric: str | None = None) -> float | None:
    """A score JSON's value of a task, without a metric of its first, as a fraction; `Avg.` as the
    papers print it, from two-decimal values. None where the evaluator gave the task no such metric
    (as `attention`, without spaCy).
    """
    rows = [score for score in content["scores"] if score["task"] == task]
    if not rows:
        raise BadInput(f"scores of {content['run']}: none for task {task!r}.")
    subset = "printed" if task == "Avg." else "all"
    return next(
        (r["value"] for r in rows if r["subset"] == subset and metric in (None, r["metric"])), None
    )


def beside(path: Path, ending: str) -> Path:
    """A file or folder that goes with a JSON of scores. Its name has the whole name of the JSON:
    without `.05`, what goes with `tau0.05` would be that of `tau0.1`, too."""
    return path.with_name(path.name + ending)


def shards_folder(path: Path) -> Path:
    """The hidden folder in which an evaluation keeps the vectors of a corpus until its scores
    are written."""
    return path.with_name(f".{path.name}.shards")


def check_scores_output(path: Path) -> None:
    """Raise BadInput where a JSON of scores, or what goes with it, would take the place of
    something else."""
    if is_stream(path):
        return
    if is_taken(path) and not is_score_file(path):
        raise not_ours(path, "a file of scores that `csebench evaluate` wrote")
    items_file = beside(path, ITEMS)
    check_output(items_file)
    if is_taken(items_file) and not zipfile.is_zipfile(items_file):
        raise not_ours(items_file, "a file of per-item values")
    check_output(beside(path, ARTIFACTS), is_folder=True)


def is_score_file(path: Path) -> bool:
    """Whether a file is what `csebench evaluate` writes. A published one is not: it also has the
    spec of its run."""
    try:
        content = read_json(path)
    except BadInput:
        return False
    return (
        isinstance(content, dict)
        and {"evaluations", "scores"} <= content.keys()
        and "spec" not in content
    )


def write_items(file: Path, items: dict) -> dict[str, str]:
    """Write per-item values by `<evaluator>/<item>`, for `items` to read. Return what a score
    JSON states of them."""
    with replacing(file) as temporary, open(temporary, "wb") as opened:
        np.savez_compressed(opened, **items)
    return {"items": str(file), "items_sha256": sha256(file)}


def items(content: dict, path: Path) -> dict[str, Items] | None:
    """Per-item values behind a score JSON at a path, by evaluator and name; None where the file
    is gone (it is not published). Raises BadInput where it is damaged, or another than was
    written with the JSON."""
    file = items_file(content, path)
    if file is None:
        return None
    file_state(file)  # refuses a pipe or a device
    remedy = f"Restore it; or delete it and {path}, and the evaluation runs again."
    stated = content.get("items_sha256")
    if stated is not None and (actual := sha256(file)) != stated:
        raise BadInput(
            f"{file}: sha256 is {actual[:12]}…, {path} states {stated[:12]}…: it was changed."
            f" {remedy}"
        )
    by_evaluator: dict[str, Items] = {}
    try:
        with np.load(file) as archive:
            for name in archive.files:
                evaluator, _, item = name.partition("/")
                by_evaluator.setdefault(evaluator, {})[item] = archive[name]
    except UNREADABLE_NPZ as error:
        raise BadInput(f"{file}: cannot be read: {first_line(error)}. {remedy}") from None
    return by_evaluator


def items_file(content: dict, path: Path) -> Path | None:
    """The file of per-item values of a score JSON at a path; None where it is gone. An older one
    has the name of the JSON without its suffix."""
    for file in (beside(path, ITEMS), path.with_suffix(ITEMS)):
        if os.path.lexists(file):
            return file
    stated = Path(content.get("items", ""))
    try:
        return stated if stated.is_file() else None
    except OSError:  # a name that no file can have
        return None


@cached_by_folder
def newest(scale: str) -> dict[tuple[str, str], dict]:
    """Read the score JSONs of a scale by what was run and scored.

    Of several versions of the code, those of the newest are taken; of a draft, whose code has no
    order, those of today's code.
    """
    files = []
    for path in score_files(scale):
        content = read_scores(path)
        if content is None:
            continue
        spec = Spec.model_validate(content["spec"])
        if is_of_other_draft(spec):
            continue
        run = unversioned(spec)
        if spec.code:
            run = f"{run} {digest(spec.code)}"
        evaluator = path.name.removesuffix(".json").partition(".")[2].replace(".", ":")
        version = content["evaluations"][0]["version"]
        versions = (spec.trainer_version, spec.method_version, version)
        files.append((versions, (run, evaluator), content))
    return {key: content for _, key, content in sorted(files, key=lambda file: file[0])}


def is_of_other_draft(spec: Spec) -> bool:
    """Whether a run was made by code of a draft that is no longer its code."""
    if not spec.code:
        return False
    try:
        return spec.code != draft_codes(spec.method, spec.components)
    except BadInput:  # a method or component that is gone
        return True


def score_files(scale: str) -> list[Path]:
    """Score JSONs of a scale: those of the folder that results are written to, and published
    ones that it lacks."""
    folder = results_folder(scale) / "scores"
    names = {path.name for path in folder.glob("*.json")}
    if folders()[1:]:
        names |= {path.name for path in (ROOT / folder).glob("*.json")}
    return [published(folder / name) for name in sorted(names)]


def unversioned(spec: Spec) -> str:
    """The key of a run but for the versions of method, components and trainer. A hyper-parameter
    that was declared later has its default; of a run that this one starts from only the method
    counts, as its id has versions.
    """
    content = spec.model_dump(exclude={"method_version", "trainer_version", "code"})
    content["params"] = completed(spec.method, METHODS, spec.params)
    content["components"] = {
        name: completed(name, COMPONENTS, c.params) for name, c in spec.components.items()
    }
    if spec.run_before is not None:
        content["encoder"] = spec.run_before.rpartition("-")[0]
    return digest(content)


def completed(name: str, folder: Path, params: dict) -> dict:
    """Hyper-parameters with the defaults of those that they lack; as they are if they are no
    longer declared so."""
    try:
        return fill(declaration(name, folder), params, name)
    except BadInput:
        return params


def stored_score(spec: Spec, evaluator: str, scale: str) -> tuple[dict | None, bool]:
    """The score JSON that pages show of a run, and whether it is outdated (†): of an older code
    version, or of other settings than the scale has; those that were added later are not in
    older files."""
    content = read_scores(score_path(spec.run_id, evaluator, scale))
    is_old = content is None
    if content is None and (content := newest(scale).get((unversioned(spec), evaluator))) is None:
        return None, False
    wanted = settings(protocol(evaluator), read_scale(scale).evaluation)
    for done in content["evaluations"]:
        changed = any(done.get(key, value) != value for key, value in wanted.items())
        if changed or is_other_code(done, wanted):
            return content, True
    return content, is_old


def stale_runs(pages: Iterable[Page]) -> set[str]:
    """Runs of pages that have a score of older code only, which the pages show as such."""
    return {
        run_id
        for page in pages
        if newest(page.scale)
        for (run_id, evaluator), spec in page.available().items()
        if not score_path(run_id, evaluator, page.scale).exists()
        and stored_score(spec, evaluator, page.scale)[1]
    }


# ---------------------------------------------------------------- why there is none


def failure_file(run: Path, evaluator: str) -> Path:
    return run / "scores" / f"{protocol(evaluator).key}{FAILED}"


def note_failure(run: Path, evaluator: str, error: Exception) -> None:
    """Keep the reason of a failed evaluation in the folder of its run."""
    reason = (
        str(error)
        if isinstance(error, BadInput | RunFailed)
        else f"{type(error).__name__}: {error}"
    )
    write_bytes(failure_file(run, evaluator), " ".join(reason.split()).encode("utf-8", "replace"))


def failures(run: Path) -> dict[str, str]:
    """Reasons of failed evaluations by evaluator."""
    reasons = {}
    for path in sorted((run / "scores").glob(f"*{FAILED}")):
        # a score that was made meanwhile takes it away
        with contextlib.suppress(FileNotFoundError):
            evaluator = path.name.removesuffix(FAILED).replace(".", ":")
            reasons[evaluator] = path.read_text(encoding="utf-8", errors="replace")
    return reasons


def why_missing(run_id: str, evaluator: str, scale: str) -> str | None:
    """Why a planned score is not there, if it is known: its data cannot be had, or evaluation or
    training failed."""
    if (
        text := unavailable(evaluator, scale) or failures(RUNS / run_id).get(evaluator)
    ) is not None:
        return text
    try:
        progress = read_progress(RUNS / run_id)
    except BadInput as error:
        return str(error)
    return (
        f"training failed: {progress['message']}"
        if progress and progress["state"] == "failed"
        else None
    )
