"""The schema of score JSONs, and the checks of a published one before pages show it.

A published file must be unchanged since it was written, belong to the run and evaluator in its
name, and hold values and averages that an evaluation can give. Where scores are stored, and how
they are found, is in csebench/score/store.py. Never imports torch.
"""

import base64
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    field_validator,
    model_validator,
)

from csebench.base.errors import BadInput
from csebench.base.files import digest, read_typed
from csebench.plan.catalog.registry import EVALUATORS, Protocol, protocol
from csebench.plan.code_versions import draft_code
from csebench.plan.schema.declarations import Evaluation, EvaluatorDeclaration
from csebench.plan.schema.spec import Spec
from csebench.score.replicates import DRAWS, VERSION
from csebench.score.score_types import Score

LARGEST_VALUE = 1e9  # of numbers that pages compute with
BYTES_OF_REPLICATES = 2 * DRAWS  # 16 bits each
FIRST_VERSION = 1  # of replicates that state no version
RANGE_TOLERANCE = 1e-6  # how far rounding may move a value out of its range
REMEDY = "Restore the file, or delete it, and the evaluation runs again."

# ---------------------------------------------------------------- schema

# `strict` refuses a text that looks like a number: pages read the JSON itself, not these models.
Number = Annotated[FiniteFloat, Field(strict=True, ge=-LARGEST_VALUE, le=LARGEST_VALUE)]
Whole = Annotated[int, Field(strict=True, ge=0, le=2**63)]


class ScoreRow(BaseModel):
    """One score. Other keys are forbidden, because `scores.csv` has no columns for them."""

    model_config = ConfigDict(extra="forbid")

    evaluator: str
    protocol: str = ""
    task: str
    subset: str
    metric: str
    value: Number


class ScoredBy(BaseModel):
    """The identity of scores (csebench/score/evaluate.py: score_identity).

    `store.stored_score` compares it with today's settings.
    """

    evaluator: str
    version: Whole
    params: dict[str, Any] = {}
    model_sha256: str | None = None
    pooler: str | None = None
    protocol: str | None = None
    data_sha256: str | None = None


class Provenance(BaseModel):
    """How a run was trained or scored, as far as pages print it."""

    commit: str | None
    dirty_diff_sha256: str | None
    packages: dict[str, str | None]
    gpu: str | None
    processor: str
    unversioned_code: list[str] = []

    @field_validator("packages")
    @classmethod
    def _states_torch(cls, packages: dict[str, str | None]) -> dict[str, str | None]:
        if "torch" not in packages:
            raise ValueError("must state the version of torch")
        return packages


def unversioned_code_of(content: dict) -> dict[str, list[str]]:
    """Name the code that changed without a new version before a run was trained or scored.

    Args:
        content: of a score JSON.

    Returns:
        the units of code, by the key of the file that states them.
    """
    return {
        "provenance": content["provenance"].get("unversioned_code", []),
        "training.provenance": content["training"]["provenance"].get("unversioned_code", []),
    }


class CurvePoint(BaseModel):
    """Measurements at one step of training. A None means that all vectors were equal."""

    step: Whole
    encoder: Whole = 0
    loss: Annotated[FiniteFloat, Field(strict=True)]
    alignment: Number | None
    uniformity: Number | None
    spearman: Number | None


class TrainingFacts(BaseModel):
    """The part of a run's training report that pages and figures read."""

    run: str | None = None
    model_sha256: str | None = None
    best_encoder: Whole = 0
    curve: list[CurvePoint] | None = None
    loss_vanished: bool = False  # csebench/train/trainer.py: has_vanished
    best_dev: Number | None = None  # Spearman on STS-B dev of the model; None: it is not trained
    diverged: str | None = None  # how training diverged, so that the model is the untrained encoder
    provenance: Provenance


class EncodedChanges(BaseModel):
    """Changes of a score in resamples, written by `replicates.encode`."""

    unit: Annotated[Number, Field(gt=0)]
    values: str

    @field_validator("values")
    @classmethod
    def _are_of_every_draw(cls, values: str) -> str:
        try:
            size = len(base64.b64decode(values, validate=True))
        except ValueError:
            raise ValueError("is no base64") from None
        if size != BYTES_OF_REPLICATES:
            raise ValueError(
                f"holds {size} bytes, not the {BYTES_OF_REPLICATES} of {DRAWS} resamples"
            )
        return values


class ScoreReplicates(BaseModel):
    clustered: EncodedChanges


class PublishedReplicates(BaseModel):
    """Replicates of every score, by task and metric, made by this version of the code.

    Replicates of two runs can be paired if their `items` are equal.
    """

    version: Whole = FIRST_VERSION
    items: str
    scores: dict[str, dict[str, ScoreReplicates]]


class OtherReplicates(BaseModel):
    """Replicates made by another version of the code. Only their version is read."""

    version: Whole
    scores: dict[str, dict[str, Any]]


# Tags of the two models. Messages of validation errors contain them.
OUR_VERSION = f"version {VERSION}"
OTHER_VERSION = "another version"


def version_of_replicates(content: Any) -> str:
    """Choose the model that validates replicates, by its tag."""
    if not isinstance(content, dict):
        return OUR_VERSION  # this model refuses it with a message
    version = content.get("version", FIRST_VERSION)
    return OUR_VERSION if version == VERSION else OTHER_VERSION


ReplicatesRecord = Annotated[
    Annotated[PublishedReplicates, Tag(OUR_VERSION)]
    | Annotated[OtherReplicates, Tag(OTHER_VERSION)],
    Discriminator(version_of_replicates),
]


class ReadableTexts(BaseModel):
    """Texts that a model retrieved for each query, next to those that papers print.

    Every query has the same number of texts, and the same number of printed models.
    """

    queries: list[str]
    retrieved: list[list[str]]
    printed: list[list[list[str]]]

    @model_validator(mode="after")
    def _has_equal_lengths(self) -> "ReadableTexts":
        if not len(self.queries) == len(self.retrieved) == len(self.printed):
            raise ValueError("retrieved and printed must have an entry per query")
        numbers_of_models = {len(by_model) for by_model in self.printed}
        numbers_of_texts = {len(texts) for texts in self.retrieved}
        for by_model in self.printed:
            numbers_of_texts.update(len(texts) for texts in by_model)
        if len(numbers_of_texts) > 1 or len(numbers_of_models) > 1:
            raise ValueError("every query needs the same number of texts and of models")
        return self


class ScoreContent(BaseModel):
    """The keys of a score JSON that csebench reads. The file may have more."""

    evaluations: Annotated[list[ScoredBy], Field(min_length=1)]
    scores: Annotated[list[ScoreRow], Field(min_length=1)]
    items: str = ""  # file of per-item values
    items_sha256: str | None = None  # of that file
    sha256: str  # of the other keys


class ScoreFile(ScoreContent):
    """The keys of a published score JSON, which also states its run and how it was trained."""

    run: str
    spec: Spec
    training: TrainingFacts
    provenance: Provenance
    evaluations: Annotated[list[ScoredBy], Field(min_length=1, max_length=1)]
    # left out, not null, if there are none
    replicates: ReplicatesRecord | None = None
    texts: ReadableTexts | None = None

    @field_validator("replicates", "texts", mode="before")
    @classmethod
    def _is_there_or_left_out(cls, content: Any) -> Any:
        if content is None:
            raise ValueError("must be left out if there is nothing")
        return content


# ---------------------------------------------------------------- settings of scores


def settings(evaluator_protocol: Protocol, evaluation: Evaluation) -> dict:
    """State what decides the scores of a given model on given data, except its pooler.

    `code` is stated for a draft only. The version of any other evaluator stands for its code.
    """
    declaration = evaluator_protocol.declaration
    decided = {"evaluator": declaration.name, "version": declaration.version}
    code = draft_code(declaration.name, EVALUATORS)
    if code is not None:
        decided["code"] = code
    decided["protocol"] = declaration.protocol
    if evaluator_protocol.params:
        decided["params"] = evaluator_protocol.params
    return decided | evaluation.model_dump()


def is_other_code(stated: dict, current: dict) -> bool:
    """Whether a score was made by other code of its evaluator.

    Args:
        stated, current: both as `settings` returns them.
    """
    return stated.get("code") != current.get("code")


# ---------------------------------------------------------------- reading and checks


def read_published(path: Path) -> dict:
    """Read a published score JSON, `<run>.<evaluator>.json`.

    Raises:
        BadInput: it does not fit the schema, belongs to another run, evaluator or weights than it
            states, or holds values that no evaluation gives. The message names file and key.
    """
    content, file = read_typed(path, ScoreFile, REMEDY)
    name = path.name.removesuffix(".json")
    run_of_spec = f"{file.spec.method}-{digest(content['spec'])}"
    refuse_file(path, defects(file, name, run_of_spec))
    return content


def refuse_file(path: Path, problems: Iterator[str]) -> None:
    """Raise BadInput with the first problem of a file, if it has any."""
    problem = next(problems, None)
    if problem is not None:
        raise BadInput(f"{path}: {problem} {REMEDY}")


def defects(file: ScoreFile, name: str, run_of_spec: str) -> Iterator[str]:
    """Find contradictions in a published file, and name the key of each.

    Args:
        name: of the file, `<run>.<evaluator>`.
        run_of_spec: run id that follows from the settings in the file.
    """
    run, _, evaluator = name.partition(".")
    yield from run_defects(file, run, run_of_spec)
    try:
        named = protocol(evaluator.replace(".", ":"))
    except BadInput:
        return  # the evaluator is gone, so nothing says what its scores must be
    if is_of_other_evaluator(file, named):
        stated = file.evaluations[0].evaluator
        yield f"scores: of evaluator {stated}, another than the file's name states."
    texts = named.declaration.texts
    labels = texts.labels if texts else []
    if file.texts and any(len(by_model) != len(labels) for by_model in file.texts.printed):
        yield f"texts.printed: must have the texts of {len(labels)} models: {', '.join(labels)}."
    yield from row_defects(file.scores, named.declaration)


def run_defects(file: ScoreFile, run: str, run_of_spec: str) -> Iterator[str]:
    """Find places where a file does not belong to the run in its name, or to its weights."""
    stated_runs = {"run": file.run, "spec": run_of_spec, "training.run": file.training.run or run}
    for key, stated in stated_runs.items():
        if stated != run:
            yield f"{key}: is of run {stated}, another than the file's name states."
    (evaluation,) = file.evaluations
    scored, trained = evaluation.model_sha256, file.training.model_sha256
    if scored is not None and trained is not None and scored != trained:
        yield "evaluations.0.model_sha256: other weights than those of the training that it states."
    pooler = file.spec.params.get("pooler")
    if evaluation.pooler is not None and pooler is not None and evaluation.pooler != pooler:
        yield f"evaluations.0.pooler: is {evaluation.pooler}, but the run has {pooler}."


def is_of_other_evaluator(file: ScoreFile, named: Protocol) -> bool:
    """Whether scores come from another evaluator, data set or variant than the file's name says."""
    (evaluation,) = file.evaluations
    declaration = named.declaration
    if {row.evaluator for row in file.scores} != {declaration.name}:
        return True
    if evaluation.evaluator != declaration.name:
        return True
    stated_choice = evaluation.params.get(declaration.takes or "", "")
    if str(stated_choice) != named.taken:
        return True
    # an older version may have had other parameters for the same variant
    return evaluation.version == declaration.version and evaluation.params != named.params


def row_defects(
    rows: Sequence[ScoreRow | Score], declaration: EvaluatorDeclaration
) -> Iterator[str]:
    """Find rows that occur twice, values out of range, and averages that differ from their parts.

    The subset `mean` must be the mean of the other subsets of its task. The task `Avg.` must be the
    mean of the tasks. Its subset `printed` must be the mean of their values as papers print them,
    in percent with two decimals.
    """
    values: dict[tuple[str, str], dict[str, float]] = {}  # (task, metric): value by subset
    for number, row in enumerate(rows):
        by_subset = values.setdefault((row.task, row.metric), {})
        if row.subset in by_subset:
            yield f"scores.{number}: {row.task}, {row.subset}, {row.metric} stands twice."
        by_subset[row.subset] = row.value
        low, high = declaration.bounds_of(row.metric)
        if not low - RANGE_TOLERANCE <= row.value <= high + RANGE_TOLERANCE:
            yield (
                f"scores.{number}.value: {row.value} is no {row.metric}, which is from {low:g} to"
                f" {high:g}."
            )
    for (task, metric), by_subset in values.items():
        for subset, mean in expected_means(task, metric, values, declaration).items():
            if subset not in by_subset:
                continue
            value = by_subset[subset]
            if not abs(value - mean) <= RANGE_TOLERANCE:  # also true if either is NaN
                yield f"scores: {task}, {subset}, {metric}: {value}, but its parts give {mean}."


def expected_means(
    task: str,
    metric: str,
    values: dict[tuple[str, str], dict[str, float]],
    declaration: EvaluatorDeclaration,
) -> dict[str, float]:
    """Compute the averages of a task by subset. An average is NaN if a part of it is missing."""
    # imported here, so that pages are not made again after every edit in csebench/model/
    from csebench.model.metrics import mean_scores

    by_subset = values[task, metric]
    parts = [value for subset, value in by_subset.items() if subset not in ("all", "mean")]
    means = {"mean": fmean(parts) if parts else math.nan}
    if task == "Avg." and declaration.average:
        task_values = []
        for name in declaration.tasks:
            subsets_of_task = values.get((name, metric), {})
            task_values.append(subsets_of_task.get("all", math.nan))
        means["all"], means["printed"] = mean_scores(task_values)
    return means
