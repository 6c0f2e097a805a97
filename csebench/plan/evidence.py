"""Scores that others published (`evidence/*.yaml`): their schema, and which are of a row. docs/evidence.md says how
to contribute a source; tests/unit/test_evidence.py checks their completeness and arithmetic."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from csebench.base.caches import cached
from csebench.base.errors import unknown
from csebench.base.files import project_files, read_with_lines
from csebench.base.project import folders
from csebench.plan import catalog, registry
from csebench.plan.declarations import Line, Pooler, Strict
from csebench.plan.papers import Erratum, PublishedValue, Row
from csebench.plan.registry import EVALUATORS, METHODS

FULL = "100%"  # of the training set
AVERAGE, TRANSFER = "Avg.", "TransferAvg"  # averages of the seven STS test sets and of the seven transfer tasks
DEV = ("stsb_dev", "sickr_dev")
BUDGET = {"batch_size", "learning_rate", "steps", "warmup_steps"}  # in which a re-training may differ, and says so
METHOD, ENCODER = "method of evidence/methods.yaml", "encoder of evidence/methods.yaml"  # in messages


# ---------------------------------------------------------------- names and scores


@cached
def tasks() -> dict[str, list[str]]:
    """The tasks of STS and of transfer, by what their average is called (`published_as` of evaluators)."""
    declared = registry.valid_evaluators().values()
    return {d.published_as: d.tasks for d in declared if d.published_as and d.average}


def score_names() -> list[str] | None:
    """What a score may be called; None, for any name, while the file of an evaluator is broken."""
    if len(registry.valid_evaluators()) < len(registry.names(EVALUATORS)):
        return None
    return [*(name for average, of in tasks().items() for name in (*of, average)), *DEV]


def score_name(evaluator: str, task: str) -> str | None:
    """What a task of an evaluator is called in evidence; None where evidence has none of it."""
    declared = registry.valid_evaluators().get(evaluator)  # None: such as `transfer:fasttest`, another protocol
    if declared is None or declared.published_as is None or task not in (*declared.tasks, "Avg."):
        return None
    return declared.published_as if task == "Avg." or not declared.average else task


def known_name(name: str, kind: str, known: Collection[str] | None) -> str:
    """The name, which has to be one that other files state; None: any. Raises ValueError for another."""
    if known is not None and name not in known:
        raise ValueError(str(unknown(kind, name, known)).rstrip("."))
    return name


MethodName = Annotated[str, AfterValidator(lambda name: known_name(name, METHOD, names().methods))]
EncoderName = Annotated[str, AfterValidator(lambda name: known_name(name, ENCODER, names().encoders))]
Task = Annotated[str, AfterValidator(lambda name: known_name(name, "task", score_names()))]
Scores = Annotated[dict[Task, PublishedValue], Field(min_length=1)]  # as printed, in percent


# ---------------------------------------------------------------- schema


class Setup(Strict):
    """How runs were made, as their source states it; `?` marks doubt."""

    code: str | None = None
    batch_size: str | None = None
    learning_rate: str | None = None
    steps: int | None = Field(default=None, ge=1)
    evaluate_every: int | None = Field(default=None, ge=1)  # steps between evaluations on the dev set
    selection: str | None = None
    precision: str | None = None
    versions: str | None = None
    gpu: str | None = None
    differs: str | None = None  # from the authors' recipe or protocol, what no other key has


class PublishedRun(Strict):
    """One training run, or one scored model."""

    seed: str | None = None
    by: str | None = None  # where a source has runs of several people
    best_step: int | None = Field(default=None, ge=0)
    scores: Scores
    quote: str | None = None  # that locates the numbers


class Summary(Strict):
    """Mean, or mean ± standard deviation, of n runs."""

    n: int = Field(ge=2)
    seeds: list[str] = []
    scores: Scores
    quote: str | None = None


class Experiment(Strict):
    """Runs of one setting, on one encoder, scored in one way."""

    method: MethodName
    setting: str | None = None  # how it differs from the method itself
    encoder: EncoderName
    pooler: Pooler | None = None  # where it is not the method's own
    kind: Literal["retrained", "checkpoint", "untrained", "authors", "paper"] = "retrained"
    size: str = FULL  # of the training set
    corpus: str | None = None
    transfer: Literal["test", "dev"] = "test"  # what its transfer scores are of; dev: the trainer's fast evaluation
    comparable: bool  # with the authors' number: corpus, budget, objective, pooler and aggregation of the paper
    sure: bool = True  # False: a value, its setting or its encoder is doubtful; it takes no part in a verdict
    setup: Setup = Setup()
    summary: Summary | None = None
    runs: list[PublishedRun] = []


class Remark(Strict):
    """What a source says without a number that can be used."""

    method: MethodName
    encoder: EncoderName
    text: str
    quote: str | None = None
    sure: bool = True


class Source(Strict):
    """A place where scores are published: files at a commit (`repository`, `commit`, `path`), an issue (`repository`,
    `thread`), or tables of a paper of papers/ (`paper`, `tables`)."""

    who: str
    repository: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")  # on GitHub
    commit: str | None = Field(None, pattern=r"^[0-9a-f]{8,40}$")
    path: str | None = None
    thread: int | None = Field(None, ge=1)  # number of the issue
    paper: Annotated[str, AfterValidator(lambda name: known_name(name, "paper", catalog.paper_files()))] | None = None
    tables: list[str] = []
    licence: str | None = None
    date: str
    note: str | None = None
    setup: Setup = Setup()  # of all its experiments
    experiments: list[Experiment] = []
    remarks: list[Remark] = []


class Printed(Strict):
    value: PublishedValue
    seeds: int = 1
    note: str | None = None


class Method(Strict):
    title: Line
    printed: dict[str, Printed] = {}  # by encoder
    errata: list[Erratum] = []  # of a paper that is not in papers/


class Names(Strict):
    """evidence/methods.yaml."""

    encoders: dict[str, str]
    methods: dict[str, Method]


# ---------------------------------------------------------------- reading, and which evidence is of a row


@cached
def sources() -> dict[str, Source]:
    """Every source by the name of its file. Raises BadInput, with file and line, for one that does not fit."""
    paths = project_files("evidence", "*.yaml", ["methods"])
    return {name: read_with_lines(path, Source, as_written=True)[0] for name, path in paths.items()}


@cached
def names() -> Names:
    """The names of methods and encoders, and printed values that no row of papers/ has."""
    paths = (path for folder in folders() if (path := folder / "evidence" / "methods.yaml").exists())
    parts = {path: read_with_lines(path, Names, as_written=True)[0] for path in paths}
    encoders = catalog.joined({path: part.encoders for path, part in parts.items()})
    return Names(encoders=encoders, methods=catalog.joined({path: part.methods for path, part in parts.items()}))


@dataclass(frozen=True, eq=False)
class Evidence:
    """An experiment with the source that it is from."""

    name: str  # of the source's file
    source: Source
    experiment: Experiment

    @property
    def setup(self) -> Setup:
        """That of the source, over it that of the experiment; what differs is said of both."""
        outer, inner = self.source.setup, self.experiment.setup
        differs = "; ".join(filter(None, (outer.differs, inner.differs))) or None
        return outer.model_copy(update={**inner.model_dump(exclude_none=True), "differs": differs})


class Key(NamedTuple):
    """What evidence must share with a row."""

    method: str
    encoder: str
    pooler: str | None  # None: methods/ has no such file, so the authors' own


@cached
def all_evidence() -> list[Evidence]:
    """Every experiment of every source."""
    return [Evidence(name, source, e) for name, source in sources().items() for e in source.experiments]


def key_of_row(row: Row, encoder: str) -> Key | None:
    """Method, encoder and pooler whose evidence is of a row of a table, whose encoder has a role; None where there can
    be none: a variant, a component, a sweep, or a parameter beyond the training budget makes a recipe another method.
    Raises BadInput where the row names `evidence` of a method that evidence/methods.yaml does not have."""
    given, recipe = row.evidence, row.run
    role = (given and given.encoder) or (recipe and recipe.encoder) or encoder
    if given is not None:
        if given.method not in names().methods:
            raise unknown(METHOD, given.method, names().methods, f"{row.label}: evidence")
        return Key(given.method, role, default_pooler(given.method))
    other = recipe and (recipe.variant or recipe.components or recipe.sweep or {*recipe.params} - BUDGET - {"pooler"})
    if recipe is None or other or recipe.method not in names().methods:
        return None
    return Key(recipe.method, role, str(recipe.params.get("pooler", "")) or default_pooler(recipe.method))


@cached
def default_pooler(method: str) -> str | None:
    """The pooler of a method's file; None where methods/ has none, or a broken one."""
    declared = registry.valid_declarations(METHODS).get(method)
    return declared and declared.hyperparameters.model_fields["pooler"].default


def key_of(experiment: Experiment) -> Key:
    """The key of an experiment; without a pooler of its own, the method's default."""
    return Key(experiment.method, experiment.encoder, experiment.pooler or default_pooler(experiment.method))


def evidence_of(key: Key, score: str, size: str = FULL) -> list[Evidence]:
    """Every experiment with a score (one of `score_names`) of the method itself, comparable or not, sure or not. Of a
    transfer task, scores on dev folds do not count."""
    of_transfer = score in (TRANSFER, *tasks().get(TRANSFER, []))
    return [
        evidence
        for evidence in all_evidence()
        if (e := evidence.experiment).setting is None and e.size == size and key_of(e) == key
        if any(score in part.scores for part in (*e.runs, *filter(None, [e.summary])))
        if not (of_transfer and e.transfer == "dev")
    ]
