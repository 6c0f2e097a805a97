"""Take the score JSONs of another checkout, for `csebench import`.

A file is accepted if a page of the scale here needs exactly this score: the same run, scored by the
same version of the evaluator, with the same settings, on the same test data. It also has to pass
all checks of csebench's own files (csebench/score/score_file.py). A file that is here stays as it
is. Never imports torch.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from csebench.base.caches import cached, cached_by_folder
from csebench.base.errors import BadInput, shortened
from csebench.base.files import is_there, read_bytes, write_bytes
from csebench.plan import targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.spec import Spec
from csebench.report.numbers.standard_sets import is_standard_data
from csebench.score.data_of_scores import SHOWN_DIGITS, EvaluationData, Scored, data_of_most
from csebench.score.evaluate import data_sha256
from csebench.score.score_file import (
    REMEDY,
    is_other_code,
    read_published,
    settings,
    unversioned_code_of,
)
from csebench.score.store import has_other_settings, read_scores, score_files

MOST_DIFFERENCES = 5  # names of settings that a message lists


class ImportState(StrEnum):
    """What becomes of a score JSON of another checkout."""

    ACCEPTED = "accepted"
    ALREADY_THERE = "already there"
    REFUSED = "refused"


@dataclass(frozen=True)
class FoundScore:
    """A score JSON of another checkout, with the result of its checks."""

    path: Path
    target: Path  # where its copy belongs, below the current folder
    state: ImportState
    reason: str = ""  # why it is refused


@dataclass(frozen=True)
class PlannedScore:
    """A score that pages of a scale need."""

    spec: Spec
    evaluator: str


# ---------------------------------------------------------------- finding and copying


def find_scores(folder: Path, scale: str) -> list[Path]:
    """List the score JSONs of a folder, by name.

    Args:
        folder: the folder of the JSONs, or a checkout that has them where csebench writes them.

    Raises:
        BadInput: there is no such folder, or it holds no JSON.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; unpack a zip file first.")
    below_checkout = targets.scores_folder(scale)
    for place in (folder, folder / "scores", folder / below_checkout):
        paths = [path for path in sorted(place.glob("*.json")) if not path.name.startswith(".")]
        if paths:
            return paths
    raise BadInput(
        f"{folder}: holds no score JSON, neither itself nor in scores/ or {below_checkout}/."
    )


def examine_scores(paths: Iterable[Path], scale: str) -> list[FoundScore]:
    """Check score JSONs of another checkout, and write nothing."""
    return [examine_score(path, scale) for path in paths]


def examine_score(path: Path, scale: str) -> FoundScore:
    """Check one score JSON of another checkout."""
    target = targets.scores_folder(scale) / path.name
    try:
        content = read_published(path)
        planned = planned_score(path.name, content, scale)
        refuse_other_settings(content, planned.evaluator, scale)
        refuse_changed_code(content)
        refuse_other_data(content, planned.evaluator, scale)
        is_here = has_same_scores(content, planned, scale)
    except BadInput as error:
        return FoundScore(path, target, ImportState.REFUSED, reason_on_one_line(error, path))
    state = ImportState.ALREADY_THERE if is_here else ImportState.ACCEPTED
    return FoundScore(path, target, state)


def reason_on_one_line(error: BadInput, path: Path) -> str:
    """Shorten the message about a file to what is wrong in it.

    The remedy is left out, because it is for files that csebench itself has written here.
    """
    message = str(error)
    if message.startswith(f"{path}: "):  # a message about a file here keeps its path and remedy
        message = message.replace(f"{path}: ", "").removesuffix(REMEDY)
    return shortened(" ".join(message.split()))


def copy_scores(found: Iterable[FoundScore]) -> None:
    """Copy the accepted files to their places. Each copy is complete, or is not there."""
    for score in found:
        if score.state is ImportState.ACCEPTED:
            write_bytes(score.target, read_bytes(score.path))


# ---------------------------------------------------------------- checks


def planned_score(name: str, content: dict, scale: str) -> PlannedScore:
    """Look up the score that a file is for.

    Args:
        name: of the file.
        content: of the file, which belongs to the run that the name states.

    Raises:
        BadInput: no page of the scale needs it.
    """
    planned = planned_scores(scale).get(name)
    if planned is not None:
        return planned
    spec = Spec.model_validate(content["spec"])
    if spec.run_id in targets.runs(scale):
        evaluator = content["evaluations"][0]["evaluator"]
        raise BadInput(f"no page of scale {scale} shows scores of {evaluator} for this run.")
    raise BadInput(why_unplanned(spec, scale))


@cached
def planned_scores(scale: str) -> dict[str, PlannedScore]:
    """Collect the scores that pages of a scale need, by the names of their files."""
    by_name = {}
    for page in targets.pages(scale):
        for (run_id, evaluator), spec in page.scores().items():
            name = targets.score_file(run_id, evaluator, scale).name
            by_name[name] = PlannedScore(spec, evaluator)
    return by_name


def why_unplanned(spec: Spec, scale: str) -> str:
    """Say why no page needs a run: how it differs from the most similar run of its method."""
    runs_of_method = [run for run in targets.runs(scale).values() if run.method == spec.method]
    if not runs_of_method:
        return f"no page of scale {scale} has runs of {spec.method}."

    def number_of_differences(run: Spec) -> int:
        return len(tuning.spec_differences(spec, run))

    nearest = min(runs_of_method, key=number_of_differences)
    differences = tuning.spec_differences(spec, nearest)
    names = ", ".join(differences[:MOST_DIFFERENCES])
    if len(differences) > MOST_DIFFERENCES:
        names += " and more"
    return (
        f"no page of scale {scale} needs this run. It differs from the most similar one,"
        f" {nearest.run_id}, in {names}."
    )


def refuse_other_settings(content: dict, evaluator: str, scale: str) -> None:
    """Raise BadInput if a score was made by other code of its evaluator, or with other settings."""
    (stated,) = content["evaluations"]
    current = settings(protocol(evaluator), catalog.scale(scale).evaluation)
    for key, here in current.items():
        there = stated.get(key, here)  # older files do not state every setting
        if there != here:
            raise BadInput(f"evaluations.0.{key}: is {there}, but here it is {here}.")
    if is_other_code(stated, current):
        raise BadInput(f"evaluations.0.code: made by another code of {evaluator}.")


def refuse_changed_code(content: dict) -> None:
    """Raise BadInput if a run or score was made with code that its version does not stand for."""
    for key, units in unversioned_code_of(content).items():
        if units:
            names = ", ".join(units)
            raise BadInput(f"{key}.unversioned_code: {names} was changed without a new version.")


def refuse_other_data(content: dict, evaluator: str, scale: str) -> None:
    """Raise BadInput if a score is on other test data than this checkout has, or on unknown data.

    Without scores and data here, only the standard test sets are known.
    """
    data = Scored(content, is_outdated=False).data
    own_data = data_here(evaluator, scale)
    if own_data is not None:
        if not data.is_same_as(own_data):
            raise BadInput(
                f"evaluations.0.data_sha256: scored on {data.text_beside(own_data)}, but this"
                f" checkout has {own_data.text_beside(data)} for {evaluator}."
            )
        return
    if not is_standard_data(evaluator, data, scale):
        raise BadInput(
            f"evaluations.0.data_sha256: {data.files[:SHOWN_DIGITS]} is not known as test data of"
            f" {evaluator}. Fetch its data here, and import again."
        )


def data_here(evaluator: str, scale: str) -> EvaluationData | None:
    """Find the test data that most scores of an evaluator here are on, or else the data itself.

    Returns:
        None if there are neither scores nor data.
    """
    scored = own_scores(evaluator, scale)
    if scored:
        return data_of_most(scored)
    root = catalog.data_root(catalog.scale(scale))
    try:
        return EvaluationData(data_sha256(protocol(evaluator), root))
    except BadInput:  # the data is not here
        return None


@cached_by_folder
def own_scores(evaluator: str, scale: str) -> list[Scored]:
    """Read the scores of an evaluator that are here already."""
    ending = f".{protocol(evaluator).key}.json"
    scored = []
    for path in score_files(scale):
        if not path.name.endswith(ending):
            continue
        content = read_scores(path)
        if content is not None:
            scored.append(Scored(content, is_outdated=False))
    return scored


def has_same_scores(content: dict, planned: PlannedScore, scale: str) -> bool:
    """Whether a score is here already. The weights or the machine may be others.

    Raises:
        BadInput: the file here has another value, or was made by other code.
    """
    path = targets.score_path(planned.spec.run_id, planned.evaluator, scale)
    if not is_there(path):
        return False
    file_here = read_published(path)
    (stated,) = file_here["evaluations"]
    current = settings(protocol(planned.evaluator), catalog.scale(scale).evaluation)
    if has_other_settings(stated, current):
        raise BadInput(
            f"{path} is here, scored with older code or other settings. Delete it, and import"
            " again."
        )
    here = values_by_score(file_here)
    there = values_by_score(content)
    for score in {**here, **there}:
        if here.get(score) != there.get(score):
            raise BadInput(
                f"{path} is here with other scores: {' '.join(score)} is {here.get(score)}, and"
                f" {there.get(score)} in this file. Nothing is replaced."
            )
    return True


def values_by_score(content: dict) -> dict[tuple[str, str, str], float]:
    """List the values of a score JSON by task, subset and metric."""
    return {(row["task"], row["subset"], row["metric"]): row["value"] for row in content["scores"]}
