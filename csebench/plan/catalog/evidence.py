"""Scores that others published (`evidence/*.yaml`): their schema, the checks of a file, and which
are of a row.

docs/evidence.md says how to contribute a source.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from csebench.base.caches import cached
from csebench.base.errors import MOST_ERRORS, BadInput, unknown
from csebench.base.files import project_files
from csebench.base.project import folders
from csebench.base.yaml_lines import Lines, read_with_lines
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog import registry
from csebench.plan.catalog.registry import EVALUATORS, METHODS
from csebench.plan.schema.declarations import Line, Pooler, Strict
from csebench.plan.schema.paper import Erratum, Published, PublishedValue, Row

FULL = "100%"  # of the training set
# averages of the seven STS test sets and of the seven transfer tasks
AVERAGE, TRANSFER = "Avg.", "TransferAvg"
DEV = ("stsb_dev", "sickr_dev")
# in which a re-training may differ, and says so
BUDGET = {"batch_size", "learning_rate", "steps", "warmup_steps"}
FIRST_YEAR = 2018  # of BERT, which is older than every method here
NOT_NOTED = "not noted"  # in place of a date
ROUNDING = 1e-9  # of binary fractions
REALLY = "If the source really has it, add `sure: false` to the experiment."
# in messages
METHOD, ENCODER = "method of evidence/methods.yaml", "encoder of evidence/methods.yaml"


# ---------------------------------------------------------------- names and scores


@cached
def tasks() -> dict[str, list[str]]:
    """The tasks of STS and of transfer, by what their average is called (`published_as` of
    evaluators)."""
    declared = registry.valid_evaluators().values()
    return {d.published_as: d.tasks for d in declared if d.published_as and d.average}


def score_names() -> list[str] | None:
    """What a score may be called; None, for any name, while the file of an evaluator is broken."""
    if len(registry.valid_evaluators()) < len(registry.adapter_names(EVALUATORS)):
        return None
    return [*(name for average, of in tasks().items() for name in (*of, average)), *DEV]


def score_name(evaluator: str, task: str) -> str | None:
    """What a task of an evaluator is called in evidence; None where evidence has none of it."""
    # None: such as `transfer:fasttest`, another protocol
    declared = registry.valid_evaluators().get(evaluator)
    if declared is None or declared.published_as is None or task not in (*declared.tasks, "Avg."):
        return None
    return declared.published_as if task == "Avg." or not declared.average else task


def known_name(name: str, kind: str, known: Collection[str] | None) -> str:
    """The name, which has to be one that other files state; None: any. Raises ValueError for
    another."""
    if known is not None and name not in known:
        raise ValueError(str(unknown(kind, name, known)).rstrip("."))
    return name


MethodName = Annotated[
    str, AfterValidator(lambda name: known_name(name, METHOD, evidence_names().methods))
]
EncoderName = Annotated[
    str, AfterValidator(lambda name: known_name(name, ENCODER, evidence_names().encoders))
]
Task = Annotated[str, AfterValidator(lambda name: known_name(name, "task", score_names()))]
PrintedScores = Annotated[dict[Task, PublishedValue], Field(min_length=1)]  # as printed, in percent


# ---------------------------------------------------------------- schema


class Setup(Strict):
    """How runs were made, as their source states it; `?` marks doubt."""

    code: str | None = None
    batch_size: str | None = None
    learning_rate: str | None = None
    steps: int | None = Field(default=None, ge=1)
    # steps between evaluations on the dev set
    evaluate_every: int | None = Field(default=None, ge=1)
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
    scores: PrintedScores
    quote: str | None = None  # that locates the numbers


class RunsSummary(Strict):
    """Mean, or mean ± standard deviation, of n runs."""

    n: int = Field(ge=2)
    seeds: list[str] = []
    scores: PrintedScores
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
    # what its transfer scores are of; dev: the trainer's fast evaluation
    transfer: Literal["test", "dev"] = "test"
    # with the authors' number: corpus, budget, objective, pooler and aggregation of the paper
    comparable: bool
    # False: a value, its setting or its encoder is doubtful; it takes no part in a verdict
    sure: bool = True
    setup: Setup = Setup()
    summary: RunsSummary | None = None
    runs: list[PublishedRun] = []


class Remark(Strict):
    """What a source says without a number that can be used."""

    method: MethodName
    encoder: EncoderName
    text: str
    quote: str | None = None
    sure: bool = True


class EvidenceSource(Strict):
    """A place where scores are published: files at a commit (`repository`, `commit`, `path`), an
    issue (`repository`, `thread`), or tables of a paper of papers/ (`paper`, `tables`)."""

    who: str
    repository: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")  # on GitHub
    commit: str | None = Field(None, pattern=r"^[0-9a-f]{8,40}$")
    path: str | None = None
    thread: int | None = Field(None, ge=1)  # number of the issue
    paper: (
        Annotated[
            str, AfterValidator(lambda name: known_name(name, "paper", catalog.paper_files()))
        ]
        | None
    ) = None
    tables: list[str] = []
    licence: str | None = None
    date: str
    note: str | None = None
    setup: Setup = Setup()  # of all its experiments
    experiments: list[Experiment] = []
    remarks: list[Remark] = []


class Printed(Strict):
    value: PublishedValue
    seeds: int = Field(default=1, ge=1)
    note: str | None = None


class EvidenceMethod(Strict):
    title: Line
    printed: dict[str, Printed] = {}  # by encoder
    errata: list[Erratum] = []  # of a paper that is not in papers/


class Names(Strict):
    """evidence/methods.yaml."""

    # Papers whose rows tell what a method's authors print. Rows of other papers count only for
    # methods that none of these has.
    papers: list[str] = []
    encoders: dict[str, str]
    methods: dict[str, EvidenceMethod]


# ---------------------------------------------------------------- checks of a file


@dataclass(frozen=True)
class Problem:
    """Something in a file that cannot be true, or that a reader would take for something else."""

    keys: tuple  # where it is: ("experiments", 0, "runs", 3)
    text: str


def refuse_evidence(problems: Iterator[Problem], lines: Lines) -> None:
    """Raise BadInput with file, line and keys of each problem; do nothing if there is none."""
    messages = []
    for problem in problems:
        where, _ = lines.locate(problem.keys)
        keys = ".".join(map(str, problem.keys))
        messages.append(f"{where}: {keys}: {problem.text}")
    if len(messages) > MOST_ERRORS:
        more = f"{lines.file}: and {len(messages) - MOST_ERRORS} more."
        messages = [*messages[:MOST_ERRORS], more]
    if messages:
        raise BadInput("\n".join(messages))


def source_problems(source: EvidenceSource) -> Iterator[Problem]:
    """Find what cannot be true in a source: its place, its date, its numbers, runs that are
    given twice."""
    yield from place_problems(source)
    yield from date_problems(source.date)
    for index, experiment in enumerate(source.experiments):
        yield from experiment_problems(source, experiment, ("experiments", index))
    yield from doubled_runs(source)


def place_problems(source: EvidenceSource) -> Iterator[Problem]:
    """A source names one place where its numbers can be looked up, and has numbers or remarks."""
    places = (
        (source.repository, source.commit, source.path),
        (source.repository, source.thread),
        (source.paper, source.tables or None),
    )
    complete = [place for place in places if None not in place]
    if len(complete) != 1:
        wanted = (
            "`repository`, `commit` and `path`; `repository` and `thread`; `paper` and `tables`"
        )
        yield Problem(("who",), f"a source names one place: {wanted}.")
    if not source.experiments and not source.remarks:
        yield Problem(("who",), "a source has `experiments` or `remarks`.")


def date_problems(text: str) -> Iterator[Problem]:
    """`2023-11-22`, `2023-11`, `2023`, two of them with `to` between them, or `not noted`; `?`
    marks doubt."""
    if text == NOT_NOTED:
        return
    days = []
    for part in text.removesuffix("?").split(" to "):
        day = first_day(part)
        if day is None:
            wanted = f"write 2023-11-22, 2023-11, 2023, `2023-11 to 2023-12`, or `{NOT_NOTED}`"
            yield Problem(("date",), f"{part!r} is no date; {wanted}.")
            return
        days.append(day)
    if len(days) > 2 or days != sorted(days):
        yield Problem(("date",), f"{text!r}: the first date is to be the earlier one of two.")
    if days[0].year < FIRST_YEAR:
        yield Problem(("date",), f"{text!r}: no method here is older than {FIRST_YEAR}.")
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)  # where it is already another day
    if days[-1] > tomorrow:
        yield Problem(("date",), f"{text!r} is in the future.")


def first_day(text: str) -> date | None:
    """The first day of a year, a month or a day; None if the text is none of these."""
    if re.fullmatch(r"\d{4}(-\d\d){0,2}", text) is None:
        return None
    try:
        return date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:  # such as month 13
        return None


def experiment_problems(
    source: EvidenceSource, experiment: Experiment, keys: tuple
) -> Iterator[Problem]:
    """What cannot be true of the runs of an experiment and of their summary."""
    if not experiment.runs and experiment.summary is None:
        yield Problem(keys, "an experiment has `runs` or a `summary`.")
    steps = experiment.setup.steps or source.setup.steps
    for index, run in enumerate(experiment.runs):
        here = (*keys, "runs", index)
        yield from score_problems(run.scores, experiment.sure, here)
        for task, score in run.scores.items():
            if score.std is not None:
                text = f"{score.text}: a run has one score; a mean ± deviation is a `summary`."
                yield Problem((*here, "scores", task), text)
        if steps is not None and run.best_step is not None and run.best_step > steps:
            text = f"step {run.best_step:,} is after the last one, {steps:,}."
            yield Problem((*here, "best_step"), text)
    if experiment.summary is not None:
        here = (*keys, "summary")
        yield from score_problems(experiment.summary.scores, experiment.sure, here)
        yield from summary_problems(experiment.summary, experiment.runs, here)


def score_problems(scores: dict[str, Published], sure: bool, keys: tuple) -> Iterator[Problem]:
    """Scores out of their range, fractions, and averages that are not those of their tasks.

    A source that really prints such an average or such a small score says `sure: false`.
    """
    wrong = []
    for task, score in scores.items():
        text = range_problem(task, score)
        if text is None and sure and is_fraction(score):
            text = f"{fraction_text(score)} {REALLY}"
        if text is not None:
            wrong.append(Problem((*keys, "scores", task), text))
    yield from wrong
    if wrong or not sure:  # an average of wrong scores is wrong, too
        return
    for average, columns in tasks().items():
        if average not in scores:
            continue
        text = average_problem(scores, average, columns)
        if text is not None:
            yield Problem((*keys, "scores", average), text)


def range_problem(task: str, score: Published) -> str | None:
    """Say that a score is none in percent; None if it can be one."""
    low = lowest(task)
    if not low <= score.value <= 100:
        return f"{score.text} is not between {low} and 100, in percent."
    if score.std is not None and score.std > 100:
        return f"{score.text}: a deviation in percent is at most 100."
    return None


def is_fraction(score: Published) -> bool:
    return abs(score.value) <= 1


def fraction_text(score: Published) -> str:
    return f"{score.text} looks like a fraction; write it in percent."


def lowest(task: str) -> int:
    """The lowest score that a task can have: 0 of an accuracy, -100 of a correlation."""
    accuracies = (TRANSFER, *tasks().get(TRANSFER, ()))
    return 0 if task in accuracies else -100


def average_problem(scores: dict[str, Published], average: str, columns: list[str]) -> str | None:
    """Say that an average contradicts its tasks; None if it fits.

    Where some tasks are not given, the average must be possible with any score of these. A unit of
    the last digit is allowed: half for the rounding of the average, half for that of its tasks.
    """
    known = [scores[task] for task in columns if task in scores]
    if not known:
        return None
    printed = scores[average]
    coarsest = max(printed.unit, *(score.unit for score in known))
    slack = printed.unit / 2 + coarsest / 2 + ROUNDING
    total = sum(score.value for score in known)
    absent = len(columns) - len(known)
    low = (total + absent * lowest(average)) / len(columns)
    high = (total + absent * 100) / len(columns)
    if low - slack <= printed.value <= high + slack:
        return None
    if absent:
        return f"{printed.text}: with the tasks given here, it is between {low:.2f} and {high:.2f}."
    return f"{printed.text}: its {len(columns)} tasks average {low:.3f}. {REALLY}"


def summary_problems(
    summary: RunsSummary, runs: list[PublishedRun], keys: tuple
) -> Iterator[Problem]:
    """A summary whose numbers are not those of its runs, where these are given."""
    if summary.seeds and len(summary.seeds) != summary.n:
        yield Problem((*keys, "seeds"), f"{len(summary.seeds)} seeds of {summary.n} runs.")
    if len({*summary.seeds}) < len(summary.seeds):
        yield Problem((*keys, "seeds"), "a seed is given twice.")
    if not runs:
        return
    if len(runs) != summary.n:
        yield Problem((*keys, "n"), f"{summary.n} runs, but `runs` has {len(runs)}.")
        return
    for task, printed in summary.scores.items():
        scores = [run.scores[task] for run in runs if task in run.scores]
        here = (*keys, "scores", task)
        if len(scores) < len(runs):
            yield Problem(here, f"only {len(scores)} of {len(runs)} runs have this score.")
            continue
        values = [score.value for score in scores]
        slack = max(score.unit for score in scores) + ROUNDING
        mean = fmean(values)
        if abs(printed.value - mean) > printed.unit / 2 + slack:
            yield Problem(here, f"{printed.text}: the mean of its runs is {mean:.3f}.")
        if printed.std is None:
            continue
        std = stdev(values)
        if abs(printed.std - std) > unit_of_deviation(printed) / 2 + slack:
            yield Problem(here, f"{printed.text}: the deviation of its runs is {std:.3f}.")


def unit_of_deviation(printed: Published) -> float:
    """One unit of the last printed digit of a deviation: 0.1 for `78.13 ± 0.4`."""
    deviation = printed.text.partition("±")[2]
    return 10.0 ** -len(deviation.partition(".")[2])


def doubled_runs(source: EvidenceSource) -> Iterator[Problem]:
    """A seed that is given twice within a setup, or all scores of a run twice within a setting."""
    seen: dict[tuple, tuple] = {}
    for number, x in enumerate(source.experiments):
        setting = (x.method, x.setting, x.encoder, x.pooler, x.kind, x.size, x.corpus, x.transfer)
        for index, run in enumerate(x.runs):
            keys = ("experiments", number, "runs", index)
            identities = {}
            if run.seed is not None:
                by_seed = ("seed", setting, x.setup, run.by, run.seed)
                identities[by_seed] = f"seed {run.seed}"
            if is_telling(run.scores):
                identities[("scores", setting, printed_scores(run.scores))] = "scores"
            for identity, what in identities.items():
                first = seen.setdefault(identity, keys)
                if first != keys:
                    other = ".".join(map(str, first))
                    yield Problem(keys, f"has the {what} of {other}; give a run once.")
        if x.summary is not None and is_telling(x.summary.scores):
            keys = ("experiments", number, "summary")
            first = seen.setdefault(("summary", setting, printed_scores(x.summary.scores)), keys)
            if first != keys:
                other = ".".join(map(str, first))
                yield Problem(keys, f"has the scores of {other}; give it once.")


def is_telling(scores: dict[str, Published]) -> bool:
    """Whether equal scores mean the same run: several of them, or one with many digits."""
    return len(scores) > 1 or any(score.unit < 0.001 for score in scores.values())


def printed_scores(scores: dict[str, Published]) -> tuple:
    return tuple(sorted((task, score.value) for task, score in scores.items()))


def name_problems(part: Names, encoders: Collection[str]) -> Iterator[Problem]:
    """What cannot be true of the averages that evidence/methods.yaml has."""
    for name, method in part.methods.items():
        for encoder, printed in method.printed.items():
            keys = ("methods", name, "printed", encoder)
            if encoder not in encoders:
                yield Problem(keys, str(unknown(ENCODER, encoder, encoders)))
            text = range_problem(AVERAGE, printed.value)
            if text is None and is_fraction(printed.value):
                text = fraction_text(printed.value)
            if text is not None:
                yield Problem((*keys, "value"), text)


# ---------------- reading, and which evidence is of a row


def read_source(path: Path) -> tuple[EvidenceSource, Lines]:
    """The source of a file, and its lines. Raises BadInput for what does not fit or cannot be
    true."""
    source, lines = read_with_lines(path, EvidenceSource, as_written=True)
    refuse_evidence(source_problems(source), lines)
    return source, lines


@cached
def evidence_sources() -> dict[str, EvidenceSource]:
    """Every source by the name of its file, those of the project before those of folders that join
    it.

    Raises BadInput, with file and line, for one that does not fit, or that gives runs of another
    one.
    """
    paths = project_files("evidence", "*.yaml", ["methods"])
    places = [folder / "evidence" for folder in folders()]
    in_order = sorted(paths, key=lambda name: places.index(paths[name].parent))
    found: dict[str, EvidenceSource] = {}
    first: dict[tuple, str] = {}  # the source of each run that counts
    for name in in_order:
        source, lines = read_source(paths[name])
        refuse_evidence(runs_of_others(name, source, first), lines)
        found[name] = source
    return found


def runs_of_others(name: str, source: EvidenceSource, first: dict[tuple, str]) -> Iterator[Problem]:
    """Find runs that count and that another source gives, too; `first` maps runs to their
    source, and grows."""
    for number, experiment in enumerate(source.experiments):
        if not (experiment.comparable and experiment.sure):
            continue
        if experiment.kind not in ("retrained", "paper"):  # two people may score one checkpoint
            continue
        for index, run in enumerate(experiment.runs):
            if not is_telling(run.scores):
                continue
            identity = (experiment.method, experiment.encoder, printed_scores(run.scores))
            if first.setdefault(identity, name) != name:
                keys = ("experiments", number, "runs", index)
                text = f"has the scores of a run of {first[identity]}, and would count twice;"
                yield Problem(keys, f"{text} leave it out, or say `comparable: false`.")


@cached
def evidence_names() -> Names:
    """The names of methods and encoders, and printed values that no row of papers/ has."""
    files = [folder / "evidence" / "methods.yaml" for folder in folders()]
    read = {path: read_with_lines(path, Names, as_written=True) for path in files if path.exists()}
    parts = {path: part for path, (part, _) in read.items()}
    encoders = catalog.joined({path: part.encoders for path, part in parts.items()})
    methods = catalog.joined({path: part.methods for path, part in parts.items()})
    for part, lines in read.values():
        refuse_evidence(name_problems(part, encoders), lines)
    papers = [name for part in parts.values() for name in part.papers]
    return Names(papers=papers, encoders=encoders, methods=methods)


@dataclass(frozen=True, eq=False)
class Evidence:
    """An experiment with the source that it is from."""

    name: str  # of the source's file
    source: EvidenceSource
    experiment: Experiment

    @property
    def setup(self) -> Setup:
        """That of the source, over it that of the experiment; what differs is said of both."""
        outer, inner = self.source.setup, self.experiment.setup
        differs = "; ".join(filter(None, (outer.differs, inner.differs))) or None
        return outer.model_copy(update={**inner.model_dump(exclude_none=True), "differs": differs})


class MatchKey(NamedTuple):
    """What evidence must share with a row."""

    method: str
    encoder: str
    pooler: str | None  # None: methods/ has no such file, so the authors' own


@cached
def all_evidence() -> list[Evidence]:
    """Every experiment of every source."""
    return [
        Evidence(name, source, e)
        for name, source in evidence_sources().items()
        for e in source.experiments
    ]


def key_of_row(row: Row, encoder: str) -> MatchKey | None:
    """Method, encoder and pooler whose evidence is of a row of a table, whose encoder has a role;
    None where there can be none: a variant, a component, a sweep, or a parameter beyond the
    training budget makes a recipe another method. Raises BadInput where the row names `evidence` of
    a method that evidence/methods.yaml does not have.
    """
    given, recipe = row.evidence, row.run
    role = (given and given.encoder) or (recipe and recipe.encoder) or encoder
    if given is not None:
        if given.method not in evidence_names().methods:
            raise unknown(METHOD, given.method, evidence_names().methods, f"{row.label}: evidence")
        return MatchKey(given.method, role, default_pooler(given.method))
    other = recipe and (
        recipe.variant
        or recipe.components
        or recipe.sweep
        or {*recipe.params} - BUDGET - {"pooler"}
    )
    if recipe is None or other or recipe.method not in evidence_names().methods:
        return None
    return MatchKey(
        recipe.method, role, str(recipe.params.get("pooler", "")) or default_pooler(recipe.method)
    )


@cached
def default_pooler(method: str) -> str | None:
    """The pooler of a method's file; None where methods/ has none, or a broken one."""
    declared = registry.valid_declarations(METHODS).get(method)
    return declared and declared.hyperparameters.model_fields["pooler"].default


def key_of(experiment: Experiment) -> MatchKey:
    """The key of an experiment; without a pooler of its own, the method's default."""
    return MatchKey(
        experiment.method,
        experiment.encoder,
        experiment.pooler or default_pooler(experiment.method),
    )


def evidence_of(key: MatchKey, score: str, size: str = FULL) -> list[Evidence]:
    """Every experiment with a score (one of `score_names`) of the method itself, comparable or
    not, sure or not. Of a transfer task, scores on dev folds do not count."""
    of_transfer = score in (TRANSFER, *tasks().get(TRANSFER, []))
    return [
        evidence
        for evidence in all_evidence()
        if (e := evidence.experiment).setting is None and e.size == size and key_of(e) == key
        if any(score in part.scores for part in (*e.runs, *filter(None, [e.summary])))
        if not (of_transfer and e.transfer == "dev")
    ]
