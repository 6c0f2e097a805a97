"""What a score JSON states, and what it must be to be shown: of the run and the evaluator that
its name states, unchanged since it was written, with values and averages that can be. Never
imports torch."""

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
FIRST_VERSION = 1  # of replicates that state none
RANGE_TOLERANCE = 1e-6  # of a value at the end of its range
REMEDY = "Restore the file, or delete it, and the evaluation runs again."


# Pages read the JSON as it is, not the model of it: a number must be one in the file, and no text
# that could be one.
Number = Annotated[FiniteFloat, Field(strict=True, ge=-LARGEST_VALUE, le=LARGEST_VALUE)]
Whole = Annotated[int, Field(strict=True, ge=0, le=2**63)]


class ScoreRow(BaseModel):
    """One score; `scores.csv` has a column for each key, and no other."""

    model_config = ConfigDict(extra="forbid")

    evaluator: str
    protocol: str = ""
    task: str
    subset: str
    metric: str
    value: Number


class ScoredBy(BaseModel):
    """What decides the scores of a model. `store.stored_score` compares it with today's
    settings."""

    evaluator: str
    version: Whole
    params: dict[str, Any] = {}
    model_sha256: str | None = None
    pooler: str | None = None
    protocol: str | None = None
    data_sha256: str | None = None


class Provenance(BaseModel):
    """What pages print of how a run was trained or scored."""

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


class CurvePoint(BaseModel):
    """What was measured at a step of training; None where all vectors were equal."""

    step: Whole
    encoder: Whole = 0
    loss: Annotated[FiniteFloat, Field(strict=True)]
    alignment: Number | None
    uniformity: Number | None
    spearman: Number | None


class TrainingFacts(BaseModel):
    """What pages and figures read of the report of a run."""

    run: str | None = None
    model_sha256: str | None = None
    best_encoder: Whole = 0
    curve: list[CurvePoint] | None = None
    loss_vanished: bool = False  # csebench/train/trainer.py: has_vanished
    provenance: Provenance


class EncodedChanges(BaseModel):
    """Changes of a score in resamples, as `replicates.encode` writes them."""

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
    """Replicates of every score, by task and metric, of this version of the code. Equal `items`
    are paired."""

    version: Whole = FIRST_VERSION
    items: str
    scores: dict[str, dict[str, ScoreReplicates]]


class OtherReplicates(BaseModel):
    """Those of another version, which are not taken: only their version is read."""

    version: Whole
    scores: dict[str, dict[str, Any]]


OURS, OTHER = f"version {VERSION}", "another version"  # parts of keys in messages


def version_of_replicates(content: Any) -> str:
    """Whether replicates are of this code's version, for the choice of their model."""
    version = content.get("version", FIRST_VERSION) if isinstance(content, dict) else VERSION
    return OURS if version == VERSION else OTHER


ReplicatesRecord = Annotated[
    Annotated[PublishedReplicates, Tag(OURS)] | Annotated[OtherReplicates, Tag(OTHER)],
    Discriminator(version_of_replicates),
]


class ReadableTexts(BaseModel):
    """Texts that were retrieved for each query, and those that papers print; as many for every
    query."""

    queries: list[str]
    retrieved: list[list[str]]
    printed: list[list[list[str]]]

    @model_validator(mode="after")
    def _has_equal_lengths(self) -> "ReadableTexts":
        if not len(self.queries) == len(self.retrieved) == len(self.printed):
            raise ValueError("retrieved and printed must have an entry per query")
        lengths = {len(texts) for texts in self.retrieved}
        for by_model in self.printed:
            lengths |= {len(texts) for texts in by_model}
        if len(lengths) > 1 or len({len(by_model) for by_model in self.printed}) > 1:
            raise ValueError("every query needs the same number of texts and of models")
        return self


class ScoreContent(BaseModel):
    """The keys of a score JSON that others depend on; it may have more."""

    evaluations: Annotated[list[ScoredBy], Field(min_length=1)]
    scores: Annotated[list[ScoreRow], Field(min_length=1)]
    items: str = ""  # file of per-item values, and its hash
    items_sha256: str | None = None
    sha256: str  # of the other keys


class ScoreFile(ScoreContent):
    """The same of a published one."""

    run: str
    spec: Spec
    training: TrainingFacts
    provenance: Provenance
    evaluations: Annotated[list[ScoredBy], Field(min_length=1, max_length=1)]
    replicates: ReplicatesRecord | None = None  # None: there are none
    texts: ReadableTexts | None = None

    @field_validator("replicates", "texts", mode="before")
    @classmethod
    def _is_there_or_left_out(cls, content: Any) -> Any:
        if content is None:
            raise ValueError("must be left out where there is nothing")
        return content


def settings(wanted: Protocol, evaluation: Evaluation) -> dict:
    """State what decides the scores of a given model on given data, except its pooler.

    `code` is there for a draft only: an evaluator whose version does not stand for its code.
    """
    name = wanted.declaration.name
    decided = {"evaluator": name, "version": wanted.declaration.version}
    if (code := draft_code(name, EVALUATORS)) is not None:
        decided["code"] = code
    decided["protocol"] = wanted.declaration.protocol
    if wanted.params:
        decided["params"] = wanted.params
    return decided | evaluation.model_dump()


def is_other_code(made_by: dict, wanted: dict) -> bool:
    """Whether a score was made by other code of its evaluator than is wanted (both as
    `settings`)."""
    return made_by.get("code") != wanted.get("code")


def read_published(path: Path) -> dict:
    """A published score JSON, `<run>.<evaluator>.json`. Raises BadInput, which names file and key,
    where it does not fit the schema, is of another run, evaluator or weights than it states, or
    holds what no evaluation gives.
    """
    content, file = read_typed(path, ScoreFile, REMEDY)
    refuse_file(
        path,
        defects(
            file, path.name.removesuffix(".json"), f"{file.spec.method}-{digest(content['spec'])}"
        ),
    )
    return content


def refuse_file(path: Path, problems: Iterator[str]) -> None:
    """Raises BadInput with the first of what is wrong in a file, if anything is."""
    if (problem := next(problems, None)) is not None:
        raise BadInput(f"{path}: {problem} {REMEDY}")


def defects(file: ScoreFile, name: str, of_spec: str) -> Iterator[str]:
    """What is wrong in a published file by its name, each with its key; `of_spec` is the run of
    its settings. What a variant sets is compared at equal versions; an evaluator that is gone is
    not compared."""
    run, _, evaluator = name.partition(".")
    for key, stated in (
        ("run", file.run),
        ("spec", of_spec),
        ("training.run", file.training.run or run),
    ):
        if stated != run:
            yield f"{key}: is of run {stated}, another than the file's name states."
    (by,) = file.evaluations
    weights = by.model_sha256, file.training.model_sha256
    if None not in weights and weights[0] != weights[1]:
        yield "evaluations.0.model_sha256: other weights than those of the training that it states."
    pooler = file.spec.params.get("pooler")
    if None not in (by.pooler, pooler) and by.pooler != pooler:
        yield f"evaluations.0.pooler: is {by.pooler}, but the run has {pooler}."
    try:
        wanted = protocol(evaluator.replace(".", ":"))
    except BadInput:
        return
    declared, taken = wanted.declaration, str(by.params.get(wanted.declaration.takes or "", ""))
    of_another = {row.evaluator for row in file.scores} != {
        declared.name
    } or by.evaluator != declared.name
    if (
        of_another
        or taken != wanted.taken
        or (by.version == declared.version and by.params != wanted.params)
    ):
        yield f"scores: of evaluator {by.evaluator}, another than the file's name states."
    labels = declared.texts.labels if declared.texts else []
    if file.texts and any(len(by_model) != len(labels) for by_model in file.texts.printed):
        yield f"texts.printed: must have the texts of {len(labels)} models: {', '.join(labels)}."
    yield from row_defects(file.scores, declared)


def row_defects(rows: Sequence[ScoreRow | Score], declared: EvaluatorDeclaration) -> Iterator[str]:
    """Rows that stand twice, values out of range, means that are not those of their parts. `mean`
    is the mean of the other subsets of a task, `Avg.` that of the tasks, or (`printed`) of their
    values in percent with two decimals.
    """
    # not above: pages are not made again for an edit in model/
    from csebench.model.metrics import mean_scores

    values: dict[tuple[str, str], dict[str, float]] = {}  # (task, metric): by subset
    for number, row in enumerate(rows):
        subsets = values.setdefault((row.task, row.metric), {})
        if row.subset in subsets:
            yield f"scores.{number}: {row.task}, {row.subset}, {row.metric} stands twice."
        subsets[row.subset] = row.value
        low, high = declared.bounds_of(row.metric)
        if not low - RANGE_TOLERANCE <= row.value <= high + RANGE_TOLERANCE:
            yield (
                f"scores.{number}.value: {row.value} is no {row.metric}, which is from {low:g} to"
                f" {high:g}."
            )
    for (task, metric), subsets in values.items():
        parts = [value for subset, value in subsets.items() if subset not in ("all", "mean")]
        means = {"mean": fmean(parts) if parts else math.nan}
        if task == "Avg." and declared.average:
            of_tasks = [
                values.get((name, metric), {}).get("all", math.nan) for name in declared.tasks
            ]
            means["all"], means["printed"] = mean_scores(of_tasks)
        for subset, mean in means.items():
            if subset in subsets and not abs(subsets[subset] - mean) <= RANGE_TOLERANCE:
                yield (
                    f"scores: {task}, {subset}, {metric}: {subsets[subset]}, but its parts give"
                    f" {mean}."
                )
