"""Score JSONs whose scores are written in the formats of other tools.

Scores are read and checked here, and never computed. A file comes from `csebench evaluate`, or is
published in `results/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, Field

from csebench.base.errors import BadInput
from csebench.base.files import read_typed, sha256_of_files
from csebench.base.models import Sum, model_sha256
from csebench.base.project import REPOSITORY, ROOT
from csebench.judging.own_scores import protocol_of, rows_of
from csebench.plan.catalog.registry import Protocol
from csebench.plan.schema.spec import Spec
from csebench.score.score_file import (
    REMEDY,
    ScoreContent,
    ScoredBy,
    ScoreRow,
    read_published,
    refuse_file,
    row_defects,
)

SOURCE = "csebench"  # how the names of our sources begin
NO_FILES = sha256_of_files([])  # stated by scores on data of the hub, which a package pins
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


class StatedEvaluation(ScoredBy):
    """The identity of scores, with everything that other tools are told."""

    code: str | None = None  # stated for an edited evaluator only
    model_sha256: Sum | None = None  # of a folder
    model_commit: Commit | None = None  # on the hub
    precision: str
    batch_size: int
    max_length: int | None


class ScoringProvenance(BaseModel):
    """When a model was scored, and with which packages."""

    started: AwareDatetime
    packages: dict[str, str | None]


class SharedScoreFile(ScoreContent):
    """The keys of a score JSON that are written for other tools."""

    model: str
    run: str | None
    spec: Spec | None = None  # published files state it
    evaluations: Annotated[list[StatedEvaluation], Field(min_length=1)]
    provenance: ScoringProvenance


@dataclass(frozen=True)
class SharedModel:
    """A model as other tools name it. The name and the revision identify it."""

    name: str  # OWNER/NAME: `csebench/RUN`, `csebench/FOLDER`, or an id of the hub
    revision: str  # sha256 of a folder; commit of the hub
    run: str | None = field(default=None, compare=False)  # id of the run that made it
    # of this run; None if the file does not state it
    seed: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SharedScores:
    """The scores of a model by one evaluator, and how they were made."""

    path: Path  # of the score JSON
    model: SharedModel
    evaluator: Protocol
    evaluation: StatedEvaluation
    provenance: ScoringProvenance
    rows: list[ScoreRow]


def read_shared_scores(path: Path) -> list[SharedScores]:
    """Read a score JSON of csebench.

    Returns:
        The scores of every evaluator in the file.

    Raises:
        BadInput: the file is damaged or incomplete, contradicts itself, or is of an unknown
            evaluator.
    """
    _, file = read_typed(path, SharedScoreFile, REMEDY)
    if file.spec is not None:
        read_published(path)  # checks run and weights, too
    scores = []
    for number, evaluation in enumerate(file.evaluations):
        where = f"{path}: evaluations.{number}"
        evaluator = protocol_of(evaluation, where)
        rows = rows_of(file.scores, evaluator)
        if not rows:
            raise BadInput(f"{where}: the file has no scores of {evaluator.text}. {REMEDY}")
        if evaluation.data_sha256 is None:
            raise BadInput(f"{where}.data_sha256: missing. {REMEDY}")
        refuse_file(path, row_defects(rows, evaluator.declaration))
        model = model_of(file, evaluation, where)
        scores.append(SharedScores(path, model, evaluator, evaluation, file.provenance, rows))
    return scores


def model_of(file: SharedScoreFile, evaluation: StatedEvaluation, where: str) -> SharedModel:
    """Name the model that was scored.

    Args:
        where: file and key, for messages.

    Raises:
        BadInput: the file states neither the hash of a folder nor a commit.
    """
    if evaluation.model_commit is not None:
        repository, _, _ = file.model.partition("@")
        if "/" not in repository:  # an old id of the hub, such as `bert-base-uncased`
            repository = f"csebench/{repository}"
        return SharedModel(repository, evaluation.model_commit)
    if evaluation.model_sha256 is None:
        raise BadInput(f"{where}: states neither model_sha256 nor model_commit. {REMEDY}")
    if file.run is None:
        folder = Path(file.model).name
        return SharedModel(f"csebench/{folder}", evaluation.model_sha256)
    seed = None if file.spec is None else file.spec.seed
    return SharedModel(f"csebench/{file.run}", evaluation.model_sha256, file.run, seed)


# ---------------------------------------------------------------- what is written of one model


def only_model(all_scores: Sequence[SharedScores]) -> SharedModel:
    """Return the model of scores that are all of one model, each by another evaluator."""
    first = all_scores[0]
    seen: dict[str, Path] = {}
    for scores in all_scores:
        if scores.model != first.model:
            raise BadInput(
                f"{scores.path}: scores of {scores.model.name} at {scores.model.revision[:10]}, but"
                f" {first.path} has scores of {first.model.name} at {first.model.revision[:10]}. A"
                " model card and a repository describe one model. Export each model by itself."
            )
        name = scores.evaluator.text
        if name in seen:
            raise BadInput(f"{scores.path} and {seen[name]}: both are of {name}; give one of them.")
        seen[name] = scores.path
    return first.model


def check_is_scored_model(out: Path, folder: Path, model: SharedModel) -> None:
    """Refuse to write scores into the folder of a model that they are not of.

    Args:
        out: what is to be written, for the message.
    """
    if model_sha256(folder) != model.revision:
        raise BadInput(
            f"{out}: the model in {folder} is not the one that was scored, {model.name}; give the"
            " scores of this model."
        )


def source_name(model: SharedModel) -> str:
    """Name csebench, and the run that made the model if there is one, as the source of scores."""
    if model.run is None:
        return SOURCE
    return f"{SOURCE} run {model.run}"


def link_to_scores(path: Path) -> str:
    """Link to a score JSON of the repository. Link to the repository for any other one."""
    results = ROOT / "results"
    if path.resolve().is_relative_to(results):
        return f"{REPOSITORY}/blob/main/{path.resolve().relative_to(ROOT)}"
    return REPOSITORY
