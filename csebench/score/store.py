"""Scores on disk: one JSON per run and evaluator, and the files that go with it.

If a score could not be made, a note with the reason lies in its place. What a score JSON states,
and how it is checked, is in csebench/score/score_file.py. Never imports torch.
"""

import contextlib
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
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
from csebench.plan.catalog.files import RUNS
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, fill, protocol
from csebench.plan.code_versions import draft_codes
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import Page, score_path, scores_folder, unavailable
from csebench.score.score_file import is_other_code, read_published, settings
from csebench.score.score_types import Items

# endings that are appended to the whole name of a score JSON
ITEMS = ".items.npz"  # file of per-item values
ARTIFACTS = ".files"  # folder in which evaluators leave files of their own
FAILED = ".failed.txt"  # ending of a note that says why there is no score

# ---------------------------------------------------------------- the scores that pages show


def stored_score(spec: Spec, evaluator: str, scale: str) -> tuple[dict | None, bool]:
    """Find the score JSON that pages show for a run.

    If the run itself has no score, take one that older code made of the same run.

    Returns:
        The content, or None if there is no score. Then whether the score is outdated, which pages
        mark with †. A score is outdated if an older version of the code made it, or if it was made
        with other settings than the scale has. Settings that an older file does not state count as
        equal.
    """
    content = read_scores(score_path(spec.run_id, evaluator, scale))
    is_of_older_run = content is None
    if content is None:
        content = newest(scale).get((unversioned(spec), evaluator))
    if content is None:
        return None, False
    current = settings(protocol(evaluator), read_scale(scale).evaluation)
    for stated in content["evaluations"]:
        if has_other_settings(stated, current):
            return content, True
    return content, is_of_older_run


def has_other_settings(stated: dict, current: dict) -> bool:
    """Whether a score states settings or code that differ from the current ones."""
    differs = any(stated.get(key, value) != value for key, value in current.items())
    return differs or is_other_code(stated, current)


@cached_by_folder
def read_scores(path: Path) -> dict | None:
    """Read a published score JSON, or return None if there is none.

    Raises:
        BadInput: the file fails the checks of `read_published`.
    """
    if not is_there(path):
        return None
    return read_published(path)


def value(content: dict, task: str, metric: str | None = None) -> float | None:
    """Look up the score of a task in a score JSON, in the unit that the file states.

    `Avg.` is computed as papers print it, from values with two decimals.

    Args:
        metric: None for the first metric of the task.

    Returns:
        None if the evaluator gave the task no such metric, such as `attention` without spaCy.
    """
    rows = [row for row in content["scores"] if row["task"] == task]
    if not rows:
        raise BadInput(f"scores of {content['run']}: none for task {task!r}.")
    subset = "printed" if task == "Avg." else "all"
    for row in rows:
        if row["subset"] == subset and metric in (None, row["metric"]):
            return row["value"]
    return None


@cached_by_folder
def newest(scale: str) -> dict[tuple[str, str], dict]:
    """Read the newest score JSON of each run and evaluator of a scale.

    Several versions of the code may have made scores of one run. The score of the newest version is
    taken. Drafts have no versions, so a score of a draft counts only if today's code made it.

    Returns:
        The content by `unversioned` run and evaluator.
    """
    files: list[VersionedScore] = []
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
        files.append(VersionedScore(run, evaluator, versions, content))
    files.sort(key=lambda file: file.versions)
    return {(file.run, file.evaluator): file.content for file in files}  # the last one stays


@dataclass(frozen=True)
class VersionedScore:
    """A score JSON, with the versions of the code that made it."""

    run: str  # `unversioned`
    evaluator: str
    versions: tuple[int, int, int]  # of trainer, method and evaluator
    content: dict


def score_files(scale: str) -> list[Path]:
    """List the score JSONs of a scale.

    They are the files in the folder that results are written to, and published files that this
    folder lacks.
    """
    folder = scores_folder(scale)
    names = {path.name for path in folder.glob("*.json")}
    has_own_folder = len(folders()) > 1
    if has_own_folder:
        names.update(path.name for path in (ROOT / folder).glob("*.json"))
    return [published(folder / name) for name in sorted(names)]


def is_of_other_draft(spec: Spec) -> bool:
    """Whether a run was made by a draft whose code has changed since."""
    if not spec.code:
        return False
    try:
        return spec.code != draft_codes(spec.method, spec.components)
    except BadInput:  # a method or component is gone
        return True


def unversioned(spec: Spec) -> str:
    """Hash a run without the versions of trainer, method and components.

    Runs that differ only in the code that made them have the same hash. A hyper-parameter that was
    declared later counts with its default. If the run starts from another run, only the method of
    that run counts, because its id depends on versions.
    """
    content = spec.model_dump(exclude={"method_version", "trainer_version", "code"})
    content["params"] = completed(spec.method, METHODS, spec.params)
    content["components"] = {
        name: completed(name, COMPONENTS, component.params)
        for name, component in spec.components.items()
    }
    if spec.run_before is not None:
        content["encoder"] = spec.run_before.rpartition("-")[0]
    return digest(content)


def completed(name: str, folder: Path, params: dict) -> dict:
    """Fill missing hyper-parameters with their defaults.

    Values that the declaration no longer allows are returned as they are.
    """
    try:
        return fill(declaration(name, folder), params, name)
    except BadInput:
        return params


def outdated_runs(pages: Iterable[Page]) -> set[str]:
    """Name the runs of pages that lack a score, so that pages show one of older code instead."""
    outdated = set()
    for page in pages:
        if not newest(page.scale):
            continue
        for (run_id, evaluator), spec in page.available().items():
            if score_path(run_id, evaluator, page.scale).exists():
                continue
            _, is_outdated = stored_score(spec, evaluator, page.scale)
            if is_outdated:
                outdated.add(run_id)
    return outdated


# ---------------------------------------------------------------- files next to a score JSON


def beside(path: Path, ending: str) -> Path:
    """Name the file or folder that goes with a score JSON.

    The ending is appended to the whole name. If it replaced a suffix, `tau0.05` and `tau0.1` would
    share their files.
    """
    return path.with_name(path.name + ending)


def shards_folder(path: Path) -> Path:
    """Name the hidden folder that keeps the vectors of a corpus until the scores are written."""
    return path.with_name(f".{path.name}.shards")


def write_items(file: Path, items: dict) -> dict[str, str]:
    """Write per-item values in the form that `items` reads.

    Args:
        items: arrays by `<evaluator>/<item>`.

    Returns:
        The keys of a score JSON that refer to the file.
    """
    with replacing(file) as temporary, open(temporary, "wb") as opened:
        np.savez_compressed(opened, **items)
    return {"items": str(file), "items_sha256": sha256(file)}


def items(content: dict, path: Path) -> dict[str, Items] | None:
    """Read the per-item values that belong to a score JSON.

    Args:
        content: of the score JSON.
        path: of the score JSON.

    Returns:
        Arrays by evaluator and name. None if the file is gone, because it is not published.

    Raises:
        BadInput: the file is damaged, or is not the one that was written with the JSON.
    """
    file = items_file(content, path)
    if file is None:
        return None
    file_state(file)  # refuses a pipe or a device
    remedy = f"Restore it; or delete it and {path}, and the evaluation runs again."
    stated = content.get("items_sha256")
    if stated is not None:
        actual = sha256(file)
        if actual != stated:
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
    """Find the file of per-item values of a score JSON, or return None if it is gone."""
    older_name = path.with_suffix(ITEMS)  # without the suffix of the JSON
    for file in (beside(path, ITEMS), older_name):
        if os.path.lexists(file):
            return file
    stated = Path(content.get("items", ""))
    try:
        return stated if stated.is_file() else None
    except OSError:  # a name that no file can have
        return None


def check_scores_output(path: Path) -> None:
    """Check that a score JSON and the files that go with it would replace nothing else.

    Raises:
        BadInput: one of the paths is taken by something that `csebench evaluate` did not write.
    """
    if is_stream(path):
        return
    if is_taken(path) and not is_score_file(path):
        raise not_ours(path, "a file of scores that `csebench evaluate` wrote")
    values_file = beside(path, ITEMS)
    check_output(values_file)
    if is_taken(values_file) and not zipfile.is_zipfile(values_file):
        raise not_ours(values_file, "a file of per-item values")
    check_output(beside(path, ARTIFACTS), is_folder=True)


def is_score_file(path: Path) -> bool:
    """Whether `csebench evaluate` wrote a file.

    Published files do not count. They also have the spec of their run.
    """
    try:
        content = read_json(path)
    except BadInput:
        return False
    if not isinstance(content, dict):
        return False
    return "evaluations" in content and "scores" in content and "spec" not in content


# ---------------------------------------------------------------- reasons for missing scores


def why_missing(run_id: str, evaluator: str, scale: str) -> str | None:
    """Explain why a planned score is missing, or return None if no reason is known.

    Its data may be unavailable, or the evaluation or the training failed.
    """
    reason = unavailable(evaluator, scale) or failures(RUNS / run_id).get(evaluator)
    if reason is not None:
        return reason
    try:
        progress = read_progress(RUNS / run_id)
    except BadInput as error:
        return str(error)
    if progress and progress["state"] == "failed":
        return f"training failed: {progress['message']}"
    return None


def failure_file(run: Path, evaluator: str) -> Path:
    """Name the file that keeps the reason of a failed evaluation."""
    return run / "scores" / f"{protocol(evaluator).key}{FAILED}"


def note_failure(run: Path, evaluator: str, error: Exception) -> None:
    """Keep the reason of a failed evaluation, on one line, in the folder of its run."""
    reason = str(error)
    if not isinstance(error, BadInput | RunFailed):
        reason = f"{type(error).__name__}: {reason}"
    line = " ".join(reason.split())
    write_bytes(failure_file(run, evaluator), line.encode("utf-8", "replace"))


def failures(run: Path) -> dict[str, str]:
    """Read the reasons of failed evaluations of a run, by evaluator."""
    reasons = {}
    for path in sorted((run / "scores").glob(f"*{FAILED}")):
        evaluator = path.name.removesuffix(FAILED).replace(".", ":")
        # another process deletes the note when it has made the score
        with contextlib.suppress(FileNotFoundError):
            reasons[evaluator] = path.read_text(encoding="utf-8", errors="replace")
    return reasons
