"""Scores that other people published (`evidence/*.yaml`): the schema, its checks, and which of them are of a row.

Statistics: csebench/report/others.py. docs/evidence.md says how to contribute a source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from csebench.base.caches import cached
from csebench.base.errors import BadInput, unknown
from csebench.base.files import Lines, read_with_lines
from csebench.plan import catalog, registry
from csebench.plan.declarations import Pooler, Strict
from csebench.plan.papers import Erratum, Published, PublishedValue, Row
from csebench.plan.registry import EVALUATORS, METHODS, declaration, evaluator_declaration

NOT_SOURCES = ("checkpoints", "methods")
FULL = "100%"  # of the training set
AVERAGE, TRANSFER = "Avg.", "TransferAvg"  # averages of the seven STS test sets and of the seven transfer tasks
DEV = ("stsb_dev", "sickr_dev")
SLACK = 1e-9  # what binary fractions do to decimal ones
BUDGET = ("batch_size", "learning_rate", "steps", "warmup_steps")  # in which a re-training may differ, and says so


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

    def merge(self, inner: Setup) -> Setup:
        """A source's setup with that of one of its experiments, which wins; what differs is said of both."""
        both = self.model_dump() | inner.model_dump(exclude_none=True)
        both["differs"] = "; ".join(filter(None, (self.differs, inner.differs))) or None
        return Setup(**both)


class PublishedRun(Strict):
    """One training run, or one scored model."""

    seed: str | None = None
    by: str | None = None  # where a source has runs of several people
    best_step: int | None = Field(default=None, ge=0)
    scores: dict[str, PublishedValue] = Field(min_length=1)  # as printed: Spearman x 100, accuracy in percent
    quote: str | None = None  # that locates the numbers


class Summary(Strict):
    """Mean, or mean ± standard deviation, of n runs."""

    n: int = Field(ge=2)
    seeds: list[str] = []
    scores: dict[str, PublishedValue] = Field(min_length=1)
    quote: str | None = None


class Experiment(Strict):
    """Runs of one setting, on one encoder, scored in one way."""

    method: str  # of evidence/methods.yaml
    setting: str | None = None  # how it differs from the method itself
    encoder: str
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

    @model_validator(mode="after")
    def has_scores(self):
        if not self.runs and self.summary is None:
            raise ValueError("needs `runs` or a `summary`")
        return self


class Remark(Strict):
    """What a source says without a number that can be used."""

    method: str
    encoder: str
    text: str
    quote: str | None = None
    sure: bool = True


class Source(Strict):
    """A place where scores are published: files at a commit, an issue thread, or tables of a paper of papers/."""

    who: str
    repository: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")  # on GitHub
    commit: str | None = Field(None, pattern=r"^[0-9a-f]{8,40}$")
    path: str | None = None
    thread: int | None = Field(None, ge=1)  # number of the issue
    paper: str | None = None
    tables: list[str] = []
    licence: str | None = None
    date: str
    note: str | None = None
    setup: Setup = Setup()  # of all its experiments
    experiments: list[Experiment] = []
    remarks: list[Remark] = []

    @model_validator(mode="after")
    def names_one_place(self):
        in_files = None not in (self.repository, self.commit, self.path)
        in_thread = None not in (self.repository, self.thread)
        in_paper = self.paper is not None and bool(self.tables)
        if in_files + in_thread + in_paper != 1:
            raise ValueError(
                "needs `repository`, `commit` and `path`, or `repository` and `thread`, or `paper` and `tables`"
            )
        if not self.experiments and not self.remarks:
            raise ValueError("needs `experiments` or `remarks`")
        return self

    @property
    def url(self) -> str | None:
        if self.repository is None:
            return None
        place = f"issues/{self.thread}" if self.thread else f"tree/{self.commit}"
        return f"https://github.com/{self.repository}/{place}"


class Printed(Strict):
    value: PublishedValue
    seeds: int = 1
    note: str | None = None


class Method(Strict):
    title: str
    printed: dict[str, Printed] = {}  # by encoder
    errata: list[Erratum] = []  # of a paper that is not in papers/


class Names(Strict):
    """evidence/methods.yaml."""

    encoders: dict[str, str]
    methods: dict[str, Method]


class Checkpoint(Strict):
    """A released model, as its README names it."""

    method: str
    setting: str | None = None
    encoder: str
    hub: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    pooler: Pooler | None = None
    stated: dict[str, PublishedValue] = {}
    where: str
    note: str | None = None

    @model_validator(mode="after")
    def has_pooler_or_note(self):
        if self.pooler is None and self.note is None:
            raise ValueError(f"{self.hub}: needs a `pooler`, or a `note` that says what stands in for one")
        return self


class Checkpoints(Strict):
    """evidence/checkpoints.yaml."""

    checkpoints: list[Checkpoint]


# ---------------------------------------------------------------- reading


def folder() -> Path:
    return catalog.ROOT / "evidence"


def sources() -> dict[str, Source]:
    """Every source by the name of its file. Raises BadInput as `source` does."""
    return {path.stem: source(path) for path in sorted(folder().glob("[!.]*.yaml")) if path.stem not in NOT_SOURCES}


@cached
def source(path: Path) -> Source:
    """One file, checked for what types cannot say: known names, values within range, no run twice. Whether averages
    and summaries fit their runs is a test: tests/unit/test_evidence.py.

    Raises:
        BadInput: the file does not fit the schema, or fails a check; with file and line.
    """
    content, lines = read_with_lines(path, Source, as_written=True)
    if content.paper is not None and content.paper not in catalog.paper_names():
        raise unknown("paper", content.paper, catalog.paper_names(), lines.where("paper"))
    first_places: dict[tuple, tuple] = {}
    for i, experiment in enumerate(content.experiments):
        check_names(experiment, lines, ("experiments", i))
        steps = content.setup.merge(experiment.setup).steps
        for j, run in enumerate(experiment.runs):
            place = ("experiments", i, "runs", j)
            check_run(run, steps, lines, place)
            for what, identity in identities(experiment, run).items():
                first = first_places.setdefault(identity, place)
                if first != place:
                    line = lines.numbers[first]
                    raise BadInput(f"{lines.where(*place)}: the same run twice: {what} as in line {line}; delete one.")
        if (summary := experiment.summary) is not None:
            place = ("experiments", i, "summary")
            check_scores(summary.scores, lines, (*place, "scores"))
            for what, count in (("seeds", len(summary.seeds)), ("runs", len(experiment.runs))):
                if count not in (0, summary.n):
                    raise BadInput(f"{lines.where(*place)}: n is {summary.n}, but there are {count} {what}.")
    for i, remark in enumerate(content.remarks):
        check_names(remark, lines, ("remarks", i))
    return content


@cached
def names() -> Names:
    """The names of methods and encoders, and printed values that no row of papers/ has."""
    if not folder().is_dir():
        return Names(encoders={}, methods={})
    content, lines = read_with_lines(folder() / "methods.yaml", Names, as_written=True)
    for name, method in content.methods.items():
        for encoder in method.printed:
            if encoder not in content.encoders:
                where = lines.where("methods", name, "printed", encoder)
                raise unknown("encoder", encoder, content.encoders, where)
    return content


@cached
def checkpoints() -> list[Checkpoint]:
    """Every released checkpoint."""
    if not folder().is_dir():
        return []
    content, lines = read_with_lines(folder() / "checkpoints.yaml", Checkpoints, as_written=True)
    seen = set()
    for i, checkpoint in enumerate(content.checkpoints):
        check_names(checkpoint, lines, ("checkpoints", i))
        check_scores(checkpoint.stated, lines, ("checkpoints", i, "stated"))
        if checkpoint.hub in seen:
            raise BadInput(f"{lines.where('checkpoints', i)}: {checkpoint.hub} is listed twice.")
        seen.add(checkpoint.hub)
    return content.checkpoints


# ---------------------------------------------------------------- checks


def check_names(named: Experiment | Remark | Checkpoint, lines: Lines, place: tuple) -> None:
    """The method and the encoder are those of evidence/methods.yaml."""
    for key, known in (("method", names().methods), ("encoder", names().encoders)):
        name = getattr(named, key)
        if name not in known:
            error = unknown(f"{key} of evidence/methods.yaml", name, known, lines.where(*place, key))
            raise BadInput(f"{error} A new one gets a line there.")


@cached
def tasks() -> dict[str, list[str]]:
    """The tasks of STS and of transfer, by what their average is called (`published_as` of evaluators)."""
    declared = [evaluator_declaration(name) for name in registry.names(EVALUATORS)]
    return {d.published_as: d.tasks for d in declared if d.published_as and d.average}


def score_names() -> list[str]:
    """What a score may be called."""
    return [*(name for average, of in tasks().items() for name in (*of, average)), *DEV]


def score_name(evaluator: str, task: str) -> str | None:
    """What a task of an evaluator is called in evidence; None where evidence has none of it."""
    if evaluator not in registry.names(EVALUATORS):  # such as `transfer:fasttest`, another protocol
        return None
    declared = evaluator_declaration(evaluator)
    if declared.published_as is None or task not in (*declared.tasks, "Avg."):
        return None
    return declared.published_as if task == "Avg." or not declared.average else task


def check_scores(scores: dict[str, Published], lines: Lines, place: tuple) -> None:
    """Known tasks, in percent."""
    for task, score in scores.items():
        where = lines.where(*place, task)
        if task not in score_names():
            raise unknown("task", task, score_names(), where)
        lowest = 0 if task in (TRANSFER, *tasks()[TRANSFER]) else -100
        if not lowest <= score.value <= 100:
            raise BadInput(f"{where}: {task}: {score.text} is out of range ({lowest} to 100).")
    if scores and all(abs(score.value) <= 1 for score in scores.values()):
        raise BadInput(f"{lines.where(*place)}: fractions; write correlations x 100 and accuracies in percent.")


def check_run(run: PublishedRun, steps: int | None, lines: Lines, place: tuple) -> None:
    """Scores of one run: no deviations, a best step within the training's steps."""
    check_scores(run.scores, lines, (*place, "scores"))
    for task, score in run.scores.items():
        if score.std is not None:
            raise BadInput(f"{lines.where(*place, 'scores', task)}: {task}: one run has no ±; use `summary`.")
    if run.best_step is not None and steps is not None and run.best_step > steps:
        raise BadInput(f"{lines.where(*place, 'best_step')}: best_step: {run.best_step} of a run of {steps} steps.")


def identities(experiment: Experiment, run: PublishedRun) -> dict[str, tuple]:
    """What no two runs of a source share: the seed within a setup, and all scores within a setting."""
    e = experiment
    setting = (e.method, e.setting, e.encoder, e.pooler, e.kind, e.size, e.corpus, e.transfer)
    identities = {}
    if run.seed is not None:
        identities[f"seed {run.seed}"] = (*setting, e.setup, run.seed)
    if len(run.scores) > 1:
        identities["all scores"] = (*setting, *sorted((task, score.value) for task, score in run.scores.items()))
    return identities


# ---------------------------------------------------------------- which evidence is of a row


@dataclass(frozen=True, eq=False)
class Evidence:
    """An experiment with the source that it is from."""

    name: str  # of the source's file
    source: Source
    experiment: Experiment

    @property
    def setup(self) -> Setup:
        return self.source.setup.merge(self.experiment.setup)


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
    """Method, encoder and pooler whose evidence is of a row; None where there can be none.

    Derived from the recipe: a variant, a component, a sweep, or a parameter other than those of the training budget
    makes it another method. A row's `evidence` names one where the recipe does not tell.

    Args:
        encoder: role of the row's table.

    Raises:
        BadInput: `evidence` names a method that evidence/methods.yaml does not have.
    """
    given, recipe = row.evidence, row.run
    role = (given and given.encoder) or (recipe and recipe.encoder) or encoder
    if given is not None:
        if given.method not in names().methods:
            raise unknown("method of evidence/methods.yaml", given.method, names().methods, f"{row.label}: evidence")
        return Key(given.method, role, default_pooler(given.method))
    if recipe is None or recipe.method not in names().methods or recipe.variant or recipe.components or recipe.sweep:
        return None
    if recipe.params.keys() - {*BUDGET, "pooler"}:
        return None
    pooler = recipe.params.get("pooler")
    return Key(recipe.method, role, default_pooler(recipe.method) if pooler is None else str(pooler))


@cached
def default_pooler(method: str) -> str | None:
    """The pooler of a method's file; None where methods/ has none."""
    if method not in registry.names(METHODS):
        return None
    return declaration(method).hyperparameters.model_fields["pooler"].default


def key_of(named: Experiment | Checkpoint) -> Key:
    """The key of an experiment; of a checkpoint, whose pooler is what its training ends in, the method's default."""
    pooler = named.pooler if isinstance(named, Experiment) else None
    return Key(named.method, named.encoder, pooler or default_pooler(named.method))


def evidence_of(key: Key, score: str, size: str = FULL) -> list[Evidence]:
    """Every experiment with a score of the method itself, comparable or not, sure or not.

    Args:
        score: one of `score_names`. Of a transfer task, scores on dev folds do not count.
        size: of the training set, as in the columns of few-shot tables.
    """
    of_transfer, matching = score in (TRANSFER, *tasks()[TRANSFER]), []
    for evidence in all_evidence():
        experiment = evidence.experiment
        is_of_key = experiment.setting is None and experiment.size == size and key_of(experiment) == key
        if is_of_key and not (of_transfer and experiment.transfer == "dev"):
            scored = [*experiment.runs, *([experiment.summary] if experiment.summary else [])]
            matching += [evidence] if any(score in part.scores for part in scored) else []
    return matching
