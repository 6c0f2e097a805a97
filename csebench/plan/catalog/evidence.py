"""Scores that others published (`evidence/*.yaml`).

This module has the schema of these files, reads them, finds the evidence for a row of a table, and
refuses contents that cannot be true. csebench/report/numbers/others.py compares the scores.
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
from csebench.plan.schema.paper import Erratum, Published, PublishedValue, Recipe, Row

FULL = "100%"  # of the training set
AVERAGE = "Avg."  # of the seven STS test sets
TRANSFER = "TransferAvg"  # average of the seven transfer tasks
DEV = ("stsb_dev", "sickr_dev")
# hyper-parameters of the training budget; a recipe that changes them is still the same method
BUDGET = {"batch_size", "learning_rate", "steps", "warmup_steps"}
FIRST_YEAR = 2018  # of BERT, which is older than every method here
NOT_NOTED = "not noted"  # in place of a date
ROUNDING = 1e-9  # tolerance, because binary fractions are rounded

# in messages
REALLY = "If the source really has it, add `sure: false` to the experiment."
METHOD_KIND = "method of evidence/methods.yaml"
ENCODER_KIND = "encoder of evidence/methods.yaml"


# ---------------------------------------------------------------- names and scores


@cached
def tasks() -> dict[str, list[str]]:
    """List the tasks of STS and of transfer, by the name of their average (`published_as` of
    evaluators)."""
    by_average = {}
    for declared in registry.valid_evaluators().values():
        if declared.published_as and declared.average:
            by_average[declared.published_as] = declared.tasks
    return by_average


def score_names() -> list[str] | None:
    """List the names that a score may have.

    Returns:
        None if every name has to be accepted, because the file of an evaluator is invalid.
    """
    if len(registry.valid_evaluators()) < len(registry.adapter_names(EVALUATORS)):
        return None
    names = []
    for average, columns in tasks().items():
        names += [*columns, average]
    return [*names, *DEV]


def score_name(evaluator: str, task: str) -> str | None:
    """Return the name that the task of an evaluator has in evidence/.

    Returns:
        None if evidence/ has no such scores. `transfer:fasttest`, for one, is another protocol.
    """
    declared = registry.valid_evaluators().get(evaluator)
    if declared is None or declared.published_as is None:
        return None
    if task not in (*declared.tasks, "Avg."):
        return None
    is_only_task = not declared.average
    if task == "Avg." or is_only_task:
        return declared.published_as
    return task


def known_name(name: str, kind: str, known: Collection[str] | None) -> str:
    """Check that a name is known, and return it.

    Args:
        known: the names that other files state; None: every name is accepted.

    Raises:
        ValueError: the name is not among them.
    """
    if known is not None and name not in known:
        raise ValueError(str(unknown(kind, name, known)).rstrip("."))
    return name


def _known_method(name: str) -> str:
    return known_name(name, METHOD_KIND, evidence_names().methods)


def _known_encoder(name: str) -> str:
    return known_name(name, ENCODER_KIND, evidence_names().encoders)


def _known_paper(name: str) -> str:
    return known_name(name, "paper", catalog.paper_files())


def _known_task(name: str) -> str:
    return known_name(name, "task", score_names())


MethodName = Annotated[str, AfterValidator(_known_method)]
EncoderName = Annotated[str, AfterValidator(_known_encoder)]
PaperName = Annotated[str, AfterValidator(_known_paper)]
Task = Annotated[str, AfterValidator(_known_task)]
PrintedScores = Annotated[dict[Task, PublishedValue], Field(min_length=1)]  # as printed, in percent


# ---------------------------------------------------------------- schema


class Setup(Strict):
    """How runs were made, as their source states it; `?` marks doubt."""

    code: str | None = None  # implementation, if it is not the authors' own
    batch_size: str | None = None
    learning_rate: str | None = None
    steps: int | None = Field(default=None, ge=1)
    # steps between evaluations on the dev set
    evaluate_every: int | None = Field(default=None, ge=1)
    selection: str | None = None  # which step's model is kept
    precision: str | None = None
    versions: str | None = None  # versions of libraries
    gpu: str | None = None
    # other differences from the authors' recipe or protocol
    differs: str | None = None


class PublishedRun(Strict):
    """One training run, or one scored model."""

    seed: str | None = None
    by: str | None = None  # who made the run, if a source has runs of several people
    best_step: int | None = Field(default=None, ge=0)  # step whose model was scored
    scores: PrintedScores  # task or average -> score in percent
    quote: str | None = None  # words of the source next to the numbers, to find them by


class RunsSummary(Strict):
    """Mean, or mean ± standard deviation, of n runs."""

    n: int = Field(ge=2)  # number of runs
    seeds: list[str] = []  # one per run, if the source states them
    scores: PrintedScores  # task or average -> score in percent
    quote: str | None = None  # words of the source next to the numbers, to find them by


class Experiment(Strict):
    """Runs of one setting, on one encoder, scored in one way."""

    method: MethodName
    setting: str | None = None  # how the runs differ from the method itself
    encoder: EncoderName
    pooler: Pooler | None = None  # None: the default pooler of the method
    # `checkpoint`: a released model was scored; `authors`: given by the authors outside their
    # paper; `paper`: a baseline that a later paper ran again
    kind: Literal["retrained", "checkpoint", "untrained", "authors", "paper"] = "retrained"
    size: str = FULL  # size of the training set
    corpus: str | None = None  # training corpus
    # data of the transfer scores; `dev`: dev folds, as in the trainer's fast evaluation
    transfer: Literal["test", "dev"] = "test"
    # whether the experiment can be compared with the authors' number, because its corpus, budget,
    # objective, pooler and aggregation are those of the paper
    comparable: bool
    # False: a value, the setting or the encoder is doubtful, and no verdict counts the experiment
    sure: bool = True
    setup: Setup = Setup()  # completed by `setup` of the source
    summary: RunsSummary | None = None  # what the source states of all runs together
    runs: list[PublishedRun] = []  # what the source states of single runs


class Remark(Strict):
    """A statement of a source without a number that can be used."""

    method: MethodName
    encoder: EncoderName
    text: str  # the statement, in our words
    quote: str | None = None  # words of the source
    sure: bool = True  # False: the statement is doubtful


class EvidenceSource(Strict):
    """A place where scores are published.

    A source is a file of a repository at a commit (`repository`, `commit`, `path`), an issue
    (`repository`, `thread`), or tables of a paper of papers/ (`paper`, `tables`).
    """

    who: str  # who published the scores
    repository: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")  # on GitHub
    commit: str | None = Field(None, pattern=r"^[0-9a-f]{8,40}$")
    path: str | None = None  # file in the repository
    thread: int | None = Field(None, ge=1)  # number of the issue
    paper: PaperName | None = None  # file of papers/, without `.yaml`
    tables: list[str] = []  # tables of the paper
    licence: str | None = None  # licence of the repository
    date: str  # `2023-11-22`, `2023-11`, `2023`, `2023-11 to 2023-12` or `not noted`
    note: str | None = None
    setup: Setup = Setup()  # what all experiments of the source share
    experiments: list[Experiment] = []
    remarks: list[Remark] = []


class Printed(Strict):
    """An average that a method's authors print for an encoder."""

    value: PublishedValue
    seeds: int = Field(default=1, ge=1)  # number of seeds that `value` averages
    note: str | None = None


class EvidenceMethod(Strict):
    """A method that evidence can be about."""

    title: Line
    # encoder -> average that the authors print, if no row of papers/ has it
    printed: dict[str, Printed] = {}
    paper: Line | None = None  # name of its paper, for `errata`; None: the title
    errata: list[Erratum] = []  # errors of a paper that is not in papers/


class Names(Strict):
    """The names that sources of evidence use for methods and encoders."""

    # papers whose rows tell what a method's authors print; rows of other papers count only for
    # methods that none of these papers has
    papers: list[str] = []
    encoders: dict[str, str]  # name -> title
    methods: dict[str, EvidenceMethod]  # name -> method


# ---------------------------------------------------------------- reading


@cached
def evidence_sources() -> dict[str, EvidenceSource]:
    """Read every source, by the name of its file.

    Sources of the project come before those of folders that join it.

    Raises:
        BadInput: a source is not valid, or repeats runs of another source.
    """
    paths = project_files("evidence", "*.yaml", ["methods"])
    evidence_folders = [folder / "evidence" for folder in folders()]

    def by_folder(name: str) -> int:
        return evidence_folders.index(paths[name].parent)

    sources: dict[str, EvidenceSource] = {}
    source_of_run: dict[tuple, str] = {}  # the first source of each run that counts
    for name in sorted(paths, key=by_folder):
        source, lines = read_source(paths[name])
        refuse_evidence(runs_of_others(name, source, source_of_run), lines)
        sources[name] = source
    return sources


def read_source(path: Path) -> tuple[EvidenceSource, Lines]:
    """Read the source of a file, and the lines of its keys.

    Raises:
        BadInput: something in it does not fit the schema, or cannot be true.
    """
    source, lines = read_with_lines(path, EvidenceSource, as_written=True)
    refuse_evidence(source_problems(source), lines)
    return source, lines


@cached
def evidence_names() -> Names:
    """Read evidence/methods.yaml of the project and of the folders that join it."""
    parts: dict[Path, Names] = {}
    lines_of: dict[Path, Lines] = {}
    for folder in folders():
        path = folder / "evidence" / "methods.yaml"
        if path.exists():
            parts[path], lines_of[path] = read_with_lines(path, Names, as_written=True)
    encoders = catalog.joined({path: part.encoders for path, part in parts.items()})
    methods = catalog.joined({path: part.methods for path, part in parts.items()})
    papers = []
    for path, part in parts.items():
        refuse_evidence(name_problems(part, encoders), lines_of[path])
        papers += part.papers
    return Names(papers=papers, encoders=encoders, methods=methods)


@dataclass(frozen=True, eq=False)
class Evidence:
    """An experiment, and the source that it is from."""

    name: str  # of the source's file
    source: EvidenceSource
    experiment: Experiment

    @property
    def setup(self) -> Setup:
        """Setup of the experiment, completed by the setup of its source.

        `differs` has the texts of both.
        """
        of_source, of_experiment = self.source.setup, self.experiment.setup
        differences = [text for text in (of_source.differs, of_experiment.differs) if text]
        stated = of_experiment.model_dump(exclude_none=True)
        stated["differs"] = "; ".join(differences) or None
        return of_source.model_copy(update=stated)


@cached
def all_evidence() -> list[Evidence]:
    """List every experiment of every source."""
    evidence = []
    for name, source in evidence_sources().items():
        evidence += [Evidence(name, source, experiment) for experiment in source.experiments]
    return evidence


# ---------------------------------------------------------------- the evidence of a row


class MatchKey(NamedTuple):
    """What an experiment and a row of a table must share, so that they can be compared."""

    method: str
    encoder: str
    pooler: str | None  # None: methods/ has no such method, so its default is not known


def evidence_of(key: MatchKey, score: str, size: str = FULL) -> list[Evidence]:
    """List the experiments of a key that have a score, also those that are not comparable or sure.

    Experiments with a `setting` are left out, because they differ from the method itself.

    Args:
        score: one of `score_names`. Scores of a transfer task on dev folds do not count.
        size: size of the training set.
    """
    is_transfer = score in (TRANSFER, *tasks().get(TRANSFER, []))
    found = []
    for evidence in all_evidence():
        experiment = evidence.experiment
        if experiment.setting is not None or experiment.size != size:
            continue
        if key_of(experiment) != key or not has_score(experiment, score):
            continue
        if is_transfer and experiment.transfer == "dev":
            continue
        found.append(evidence)
    return found


def has_score(experiment: Experiment, score: str) -> bool:
    """Whether a run of an experiment, or its summary, has a score."""
    if experiment.summary is not None and score in experiment.summary.scores:
        return True
    return any(score in run.scores for run in experiment.runs)


def key_of(experiment: Experiment) -> MatchKey:
    """Return the key of an experiment. Its pooler, if not stated, is the method's default."""
    pooler = experiment.pooler or default_pooler(experiment.method)
    return MatchKey(experiment.method, experiment.encoder, pooler)


def key_of_row(row: Row, encoder: str) -> MatchKey | None:
    """Return the key of the evidence that belongs to a row of a table.

    Args:
        encoder: the role of the table's encoder, for a row that names none.

    Returns:
        None if there can be no evidence, because the recipe is another method
        (`is_another_method`), or because evidence/methods.yaml does not have it.

    Raises:
        BadInput: the row names `evidence` of a method that evidence/methods.yaml does not have.
    """
    recipe = row.run
    if recipe is not None and recipe.encoder:
        encoder = recipe.encoder
    methods = evidence_names().methods
    if row.evidence is not None:
        method = row.evidence.method
        if method not in methods:
            raise unknown(METHOD_KIND, method, methods, f"{row.label}: evidence")
        return MatchKey(method, row.evidence.encoder or encoder, default_pooler(method))
    if recipe is None or is_another_method(recipe) or recipe.method not in methods:
        return None
    pooler = str(recipe.params.get("pooler", "")) or default_pooler(recipe.method)
    return MatchKey(recipe.method, encoder, pooler)


def is_another_method(recipe: Recipe) -> bool:
    """Whether a recipe differs from its method in more than the pooler and the training budget."""
    if recipe.variant or recipe.components or recipe.sweep:
        return True
    return bool({*recipe.params} - BUDGET - {"pooler"})


@cached
def default_pooler(method: str) -> str | None:
    """Return the pooler that a method declares.

    Returns:
        None if methods/ has no such valid file, or if it is a released model, which has its own
        pooling.
    """
    declared = registry.valid_declarations(METHODS).get(method)
    if declared is None or declared.kind == "released":
        return None
    return declared.hyperparameters.model_fields["pooler"].default


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
        messages.append(f"{where}: {dotted(problem.keys)}: {problem.text}")
    if len(messages) > MOST_ERRORS:
        rest = f"{lines.file}: and {len(messages) - MOST_ERRORS} more."
        messages = [*messages[:MOST_ERRORS], rest]
    if messages:
        raise BadInput("\n".join(messages))


def dotted(keys: tuple) -> str:
    """Write keys as `experiments.0.runs.3`."""
    return ".".join(map(str, keys))


def source_problems(source: EvidenceSource) -> Iterator[Problem]:
    """Find what cannot be true in a source: its place, its date, its numbers, runs that are
    given twice."""
    yield from place_problems(source)
    yield from date_problems(source.date)
    for index, experiment in enumerate(source.experiments):
        yield from experiment_problems(source, experiment, ("experiments", index))
    yield from doubled_runs(source)


def place_problems(source: EvidenceSource) -> Iterator[Problem]:
    """Find out whether a source names exactly one place where its numbers can be looked up, and
    whether it has numbers or remarks."""
    is_at_commit = None not in (source.repository, source.commit, source.path)
    is_issue = None not in (source.repository, source.thread)
    is_in_paper = source.paper is not None and len(source.tables) > 0
    if [is_at_commit, is_issue, is_in_paper].count(True) != 1:
        places = (
            "`repository`, `commit` and `path`; `repository` and `thread`; `paper` and `tables`"
        )
        yield Problem(("who",), f"a source names one place: {places}.")
    if not source.experiments and not source.remarks:
        yield Problem(("who",), "a source has `experiments` or `remarks`.")


def date_problems(text: str) -> Iterator[Problem]:
    """Find what is wrong with a date.

    It is `2023-11-22`, `2023-11`, `2023`, two of these with `to` between them, or `not noted`. `?`
    at the end marks doubt.
    """
    if text == NOT_NOTED:
        return
    days = []
    for part in text.removesuffix("?").split(" to "):
        day = first_day(part)
        if day is None:
            forms = f"write 2023-11-22, 2023-11, 2023, `2023-11 to 2023-12`, or `{NOT_NOTED}`"
            yield Problem(("date",), f"{part!r} is no date; {forms}.")
            return
        days.append(day)
    if len(days) > 2 or days != sorted(days):
        yield Problem(("date",), f"{text!r}: write one date, or two with the earlier one first.")
    if days[0].year < FIRST_YEAR:
        yield Problem(("date",), f"{text!r}: no method here is older than {FIRST_YEAR}.")
    # time zones east of UTC may already have tomorrow's date
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    if days[-1] > tomorrow:
        yield Problem(("date",), f"{text!r} is in the future.")


def first_day(text: str) -> date | None:
    """Return the first day of a year, a month or a day; None if the text is none of these."""
    if re.fullmatch(r"\d{4}(-\d\d){0,2}", text) is None:
        return None
    try:
        return date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:  # such as month 13
        return None


def experiment_problems(
    source: EvidenceSource, experiment: Experiment, keys: tuple
) -> Iterator[Problem]:
    """Find what cannot be true in the runs of an experiment and in their summary."""
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
    """Find scores out of their range, fractions, and averages that contradict their tasks.

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
    """Say that a number cannot be a score in percent; None if it can be one."""
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
    """Return the lowest score that a task can have: 0 for an accuracy, -100 for a correlation."""
    accuracies = (TRANSFER, *tasks().get(TRANSFER, ()))
    return 0 if task in accuracies else -100


def average_problem(scores: dict[str, Published], average: str, columns: list[str]) -> str | None:
    """Say that an average contradicts its tasks; None if it fits.

    If the scores of some tasks are not given, some scores of these tasks must make the average
    possible. One unit of the last digit is tolerated: half a unit because the average is rounded,
    and half a unit because its tasks are.
    """
    given = [scores[task] for task in columns if task in scores]
    if not given:
        return None
    printed = scores[average]
    coarsest = max(printed.unit, *(score.unit for score in given))
    slack = printed.unit / 2 + coarsest / 2 + ROUNDING

    total = sum(score.value for score in given)
    absent = len(columns) - len(given)
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
    """Find numbers of a summary that contradict its runs, if these are given."""
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
        for text in mean_problems(printed, scores):
            yield Problem(here, f"{printed.text}: {text}")


def mean_problems(printed: Published, scores: list[Published]) -> Iterator[str]:
    """Say that a printed mean, or its deviation, contradicts the scores of its runs."""
    values = [score.value for score in scores]
    slack = max(score.unit for score in scores) + ROUNDING
    mean = fmean(values)
    if abs(printed.value - mean) > printed.unit / 2 + slack:
        yield f"the mean of its runs is {mean:.3f}."
    if printed.std is None:
        return
    std = stdev(values)
    if abs(printed.std - std) > unit_of_deviation(printed) / 2 + slack:
        yield f"the deviation of its runs is {std:.3f}."


def unit_of_deviation(printed: Published) -> float:
    """Return one unit of the last printed digit of a deviation: 0.1 for `78.13 ± 0.4`."""
    deviation = printed.text.partition("±")[2]
    decimals = deviation.partition(".")[2]
    return 10.0 ** -len(decimals)


def doubled_runs(source: EvidenceSource) -> Iterator[Problem]:
    """Find runs and summaries that a source gives twice.

    Two runs of one setup must not have the same seed. Two runs, or two summaries, of one setting
    must not agree in all scores.
    """
    first_place: dict[tuple, tuple] = {}  # the keys at which something was found first
    for number, experiment in enumerate(source.experiments):
        for index, run in enumerate(experiment.runs):
            keys = ("experiments", number, "runs", index)
            for identity in run_identities(experiment, run):
                first = first_place.setdefault((identity.kind, identity.values), keys)
                if first != keys:
                    text = f"has the {identity.text} of {dotted(first)}; give a run once."
                    yield Problem(keys, text)
        summary = experiment.summary
        if summary is not None and is_telling(summary.scores):
            keys = ("experiments", number, "summary")
            values = (setting_of(experiment), printed_scores(summary.scores))
            first = first_place.setdefault(("summary", values), keys)
            if first != keys:
                yield Problem(keys, f"has the scores of {dotted(first)}; give it once.")


@dataclass(frozen=True)
class RunIdentity:
    """Values that two different runs of a source do not share."""

    kind: Literal["seed", "scores"]
    values: tuple
    text: str  # name of the values in messages: `seed 42`, `scores`


def run_identities(experiment: Experiment, run: PublishedRun) -> list[RunIdentity]:
    """List what identifies a run: its seed, and its scores if they cannot agree by chance."""
    setting = setting_of(experiment)
    identities = []
    if run.seed is not None:
        values = (setting, experiment.setup, run.by, run.seed)
        identities.append(RunIdentity("seed", values, f"seed {run.seed}"))
    if is_telling(run.scores):
        values = (setting, printed_scores(run.scores))
        identities.append(RunIdentity("scores", values, "scores"))
    return identities


def setting_of(x: Experiment) -> tuple:
    """Return what tells the setting of an experiment from other settings."""
    return (x.method, x.setting, x.encoder, x.pooler, x.kind, x.size, x.corpus, x.transfer)


def is_telling(scores: dict[str, Published]) -> bool:
    """Whether equal scores mean the same run: two or more scores, or one with many digits."""
    return len(scores) > 1 or any(score.unit < 0.001 for score in scores.values())


def printed_scores(scores: dict[str, Published]) -> tuple:
    return tuple(sorted((task, score.value) for task, score in scores.items()))


def runs_of_others(
    name: str, source: EvidenceSource, source_of_run: dict[tuple, str]
) -> Iterator[Problem]:
    """Find runs that would count twice, because another source also gives them.

    Args:
        name: name of the source.
        source_of_run: the first source of each run; the runs of this source are added.
    """
    for keys, identity in counted_runs(source):
        first = source_of_run.setdefault(identity, name)
        if first != name:
            text = f"has the scores of a run of {first}, and would count twice;"
            yield Problem(keys, f"{text} leave it out, or say `comparable: false`.")


def counted_runs(source: EvidenceSource) -> Iterator[tuple[tuple, tuple]]:
    """Yield the keys of each run that counts, and what identifies it in any source."""
    for number, experiment in enumerate(source.experiments):
        if not (experiment.comparable and experiment.sure):
            continue
        if experiment.kind not in ("retrained", "paper"):  # two people may score one checkpoint
            continue
        for index, run in enumerate(experiment.runs):
            if not is_telling(run.scores):
                continue
            identity = (experiment.method, experiment.encoder, printed_scores(run.scores))
            yield ("experiments", number, "runs", index), identity


def name_problems(part: Names, encoders: Collection[str]) -> Iterator[Problem]:
    """Find what cannot be true in the printed averages of a file evidence/methods.yaml.

    Args:
        encoders: the encoders of all these files.
    """
    for name, method in part.methods.items():
        for encoder, printed in method.printed.items():
            keys = ("methods", name, "printed", encoder)
            if encoder not in encoders:
                yield Problem(keys, str(unknown(ENCODER_KIND, encoder, encoders)))
            text = range_problem(AVERAGE, printed.value)
            if text is None and is_fraction(printed.value):
                text = fraction_text(printed.value)
            if text is not None:
                yield Problem((*keys, "value"), text)
