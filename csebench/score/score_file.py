"""What a score JSON states, and what it must be to be shown: of the run and the evaluator that its name states, with
finite values, and unchanged since it was written. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat

from csebench.base.errors import BadInput
from csebench.base.files import digest, read_object
from csebench.plan.registry import Protocol, protocol
from csebench.plan.schema import Evaluation

REMEDY = "Restore the file, or delete it, and the evaluation runs again."


class ScoreRow(BaseModel):
    evaluator: str
    task: str
    subset: str
    metric: str
    value: Annotated[FiniteFloat, Field(strict=True)]


class ScoredBy(BaseModel):
    evaluator: str
    version: int
    params: dict[str, Any] = {}
    model_sha256: str | None = None


class TrainedAs(BaseModel):
    run: str | None = None
    model_sha256: str | None = None


class Scores(BaseModel):
    """The keys of a score JSON that others depend on; it may have more."""

    evaluations: Annotated[list[ScoredBy], Field(min_length=1)]
    scores: Annotated[list[ScoreRow], Field(min_length=1)]
    items: str = ""  # file of per-item values, and its hash
    items_sha256: str | None = None


class ScoreFile(Scores):
    """The same of a published one."""

    run: str
    spec: dict[str, Any]
    training: TrainedAs = TrainedAs()
    evaluations: Annotated[list[ScoredBy], Field(min_length=1, max_length=1)]


def settings(wanted: Protocol, evaluation: Evaluation) -> dict:
    """What decides the scores of a given model on given data, but its pooler."""
    params = {"params": wanted.params} if wanted.params else {}
    identified = {"evaluator": wanted.declaration.name, "version": wanted.declaration.version}
    return {**identified, "protocol": wanted.declaration.protocol, **params, **evaluation.model_dump()}


def read_published(path: Path) -> dict:
    """A published score JSON, `<run>.<evaluator>.json`, checked.

    Raises:
        BadInput: it does not fit the schema, or is of another run, evaluator or weights than it states.
    """
    content = read_object(path, ScoreFile, REMEDY)
    file = ScoreFile.model_validate(content)
    run, _, key = path.name.removesuffix(".json").partition(".")
    of_spec = f"{file.spec.get('method')}-{digest(file.spec)}"
    for name, stated in (("run", file.run), ("spec", of_spec), ("training.run", file.training.run or run)):
        if stated != run:
            raise BadInput(f"{path}: {name}: is of run {stated}, another than the file's name states. {REMEDY}")
    (by,) = file.evaluations
    if not is_by(by, key) or any(row.evaluator != by.evaluator for row in file.scores):
        raise BadInput(f"{path}: scores of evaluator {by.evaluator}, another than the file's name states. {REMEDY}")
    if None not in (by.model_sha256, file.training.model_sha256) and by.model_sha256 != file.training.model_sha256:
        raise BadInput(f"{path}: scores of other weights than those of the training that it states. {REMEDY}")
    return content


def is_by(by: ScoredBy, key: str) -> bool:
    """Whether an evaluation is that of a key such as `beir.scifact`; its variant is compared at equal versions, since
    what a variant sets may differ between versions. An evaluator that is gone is not compared."""
    try:
        wanted = protocol(key.replace(".", ":"))
    except BadInput:
        return True
    taken = str(by.params.get(wanted.declaration.takes or "", ""))
    if (by.evaluator, taken) != (wanted.declaration.name, wanted.taken):
        return False
    return by.version != wanted.declaration.version or by.params == wanted.params
