"""The systems that are judged: their seeds, read from files of any format, and their common tasks.

A system has one or more sources: files, folders or models. A source gives scores of tasks. If
several sources of a system give a score of the same task, they are its seeds, in their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np

from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, file_state, read_json
from csebench.base.models import FACTS
from csebench.judging.item_values import read_item_values
from csebench.judging.lm_eval_samples import (
    AGGREGATED,
    PATTERN,
    read_samples,
    read_samples_folder,
)
from csebench.judging.mteb_results import read_mteb_file, read_mteb_folder, task_files
from csebench.judging.own_scores import read_own_scores
from csebench.judging.scales import doubts_on_scales
from csebench.judging.scoring import score_embedder, score_judged_model
from csebench.judging.task_scores import TaskScore, why_not_paired
from csebench.model.embedder import Embedder
from csebench.plan.catalog.registry import protocol

MODEL_FILES = ("config.json", "modules.json", FACTS)
KINDS = (
    "a score JSON of csebench, results of mteb (.json or a folder), samples of lm-eval (.jsonl or a"
    " folder), values of items (.csv, .npz), or a model"
)

Source = str | Path | Embedder
TaskScores = dict[str, TaskScore]


@dataclass(frozen=True)
class ReadingOptions:
    """What decides which scores are read or made."""

    evaluators: Sequence[str]  # score the models with these
    data_root: Path | DataRoot  # of the evaluators
    metric: str | None = None  # None: the main metric of each format


@dataclass(frozen=True)
class JudgedSystem:
    """A system with its scores."""

    name: str
    scores: Mapping[str, tuple[TaskScore, ...]]  # by task, one per seed

    @property
    def seeds(self) -> int:
        """The number of seeds, which is the same for every task."""
        return len(next(iter(self.scores.values())))

    def mean_by_seed(self, tasks: Sequence[str]) -> list[float]:
        """Average the scores of tasks, in points, for each seed."""
        means = []
        for seed in range(self.seeds):
            means.append(100 * fmean(self.scores[task][seed].value for task in tasks))
        return means


@dataclass(frozen=True)
class JudgedSystems:
    """Systems that can be compared, because they share these tasks."""

    systems: tuple[JudgedSystem, ...]
    tasks: tuple[str, ...]
    left_out: tuple[str, ...]  # tasks that only some of the systems have
    doubts: tuple[str, ...] = ()  # sentences on what may be wrong with the input


@dataclass(frozen=True)
class SeedSource:
    """A source of a system."""

    system: str
    number: int  # among the sources of the system, from 0
    source: Source


# ---------------------------------------------------------------- reading


def read_systems(sources: Mapping[str, Sequence[Source]], options: ReadingOptions) -> JudgedSystems:
    """Read or score all systems, and check that they were scored on the same test data.

    Files are read before any model is scored, so that bad input ends the command at once.

    Args:
        sources: at least two systems, by name, each with at least one source.

    Raises:
        BadInput: an evaluator does not exist, a file is damaged, or the systems cannot be compared.
    """
    for name in options.evaluators:
        protocol(name, "--evaluators")  # refuses an unknown one
    if len(sources) < 2:
        raise BadInput("judge: needs at least two systems; name a second one.")
    seeds_by_system = scores_by_system(sources, options)
    tasks, left_out = shared_tasks(seeds_by_system)
    systems = []
    doubts: list[str] = []
    for name, seeds in seeds_by_system.items():
        system = make_system(name, tasks, seeds)
        doubts += doubts_on_seeds(system, sources[name])
        systems.append(system)
    check_paired(systems, tasks)
    doubts += doubts_on_scales(json_sources(sources))
    return JudgedSystems(tuple(systems), tuple(tasks), tuple(left_out), tuple(doubts))


def json_sources(sources: Mapping[str, Sequence[Source]]) -> list[Path]:
    """List the sources that are JSON files."""
    files = []
    for of_system in sources.values():
        for source in of_system:
            if not isinstance(source, Embedder) and Path(source).suffix == ".json":
                files.append(Path(source))
    return files


def scores_by_system(
    sources: Mapping[str, Sequence[Source]], options: ReadingOptions
) -> dict[str, list[TaskScores]]:
    """Read or make the scores of every source: those that are no models first."""
    files: list[SeedSource] = []
    models: list[SeedSource] = []
    for system, of_system in sources.items():
        for number, source in enumerate(of_system):
            seed = SeedSource(system, number, source)
            if is_model(source):
                models.append(seed)
            else:
                files.append(seed)

    by_place: dict[tuple[str, int], TaskScores] = {}
    for file in files:
        by_place[file.system, file.number] = scores_of_source(file.source, options)
    for model in models:
        by_place[model.system, model.number] = scores_of_source(model.source, options)

    by_system: dict[str, list[TaskScores]] = {}
    for system, of_system in sources.items():
        by_system[system] = [by_place[system, number] for number in range(len(of_system))]
    return by_system


def is_model(source: Source) -> bool:
    """Whether a source has to be scored. What is no file or folder is an id of the hub."""
    if isinstance(source, Embedder):
        return True
    path = Path(source)
    if path.is_dir():
        return any((path / name).exists() for name in MODEL_FILES)
    return not path.is_absolute() and not path.exists()


def scores_of_source(source: Source, options: ReadingOptions) -> TaskScores:
    """Read the scores of one source, or make them.

    Raises:
        BadInput: the source is of no known kind, is damaged, or has no score to judge.
    """
    if isinstance(source, Embedder):
        scores = score_embedder(source, options.evaluators, options.data_root, options.metric)
    elif is_model(source):
        scores = score_judged_model(
            str(source), options.evaluators, options.data_root, options.metric
        )
    elif Path(source).is_dir():
        scores = read_folder(Path(source), options.metric)
    else:
        scores = read_file(Path(source), options.metric)
    if not scores:
        wanted = (
            f"a metric {options.metric}" if options.metric else "a fraction of which more is better"
        )
        raise BadInput(f"{source}: has no score that is {wanted}, so nothing can be judged.")
    return scores


def read_file(path: Path, metric: str | None) -> TaskScores:
    """Read a file of any format."""
    file_state(path)  # refuses a missing file, a pipe and a device
    if path.suffix == ".jsonl":
        return read_samples(path, metric)
    if path.suffix in (".csv", ".npz"):
        if path.name.endswith(".items.npz"):
            json_file = path.name.removesuffix(".items.npz")
            raise BadInput(f"{path}: belongs to {json_file}; give that file, which reads this one.")
        if metric is not None:
            raise BadInput(f"{path}: --metric: an item has only one value here; leave it out.")
        return read_item_values(path)
    if path.suffix != ".json":
        raise BadInput(f"{path}: is of no known kind; give {KINDS}.")
    content = read_json(path)
    if isinstance(content, dict) and "evaluations" in content:
        return read_own_scores(path, metric)
    if isinstance(content, dict) and "task_name" in content:
        return read_mteb_file(path, metric)
    raise BadInput(
        f"{path}: has neither `evaluations`, as score JSONs of csebench have, nor `task_name`, as"
        f" results of mteb 1.11 and newer have; give {KINDS}."
    )


def read_folder(folder: Path, metric: str | None) -> TaskScores:
    """Read a folder of lm-eval's samples, or of mteb's results.

    lm-eval makes a folder for a model, and mteb one for each commit of a model. A folder that holds
    just one of these stands for it.
    """
    if any(folder.glob(PATTERN)):
        return read_samples_folder(folder, metric)
    if any(folder.glob(AGGREGATED)):
        raise BadInput(
            f"{folder}: holds results of lm-eval without samples; run it again with --log_samples."
        )
    if task_files(folder):
        return read_mteb_folder(folder, metric)
    inner = [path for path in folders_in(folder) if holds_results(path)]
    if len(inner) == 1:
        return read_folder(inner[0], metric)
    if inner:
        names = ", ".join(path.name for path in inner[:3])
        raise BadInput(
            f"{folder}: holds {len(inner)} models ({names}); name one of them, or write"
            f" NAME='{folder}/*' if they are seeds of one system."
        )
    raise BadInput(f"{folder}: holds no results; give {KINDS}.")


def holds_results(folder: Path) -> bool:
    """Whether a folder, or a folder inside it, has files of samples or results."""
    for place in (folder, *folders_in(folder)):
        if any(place.glob(PATTERN)) or task_files(place):
            return True
    return False


def folders_in(folder: Path) -> list[Path]:
    """List the folders in a folder that are not hidden, by name."""
    return sorted(path for path in folder.glob("[!.]*") if path.is_dir())


# ---------------------------------------------------------------- one system


def shared_tasks(seeds_by_system: Mapping[str, list[TaskScores]]) -> tuple[list[str], list[str]]:
    """List the tasks that all systems have, and those that only some have, in order.

    Raises:
        BadInput: no task is shared.
    """
    names_by_system: dict[str, dict[str, None]] = {}
    for system, seeds in seeds_by_system.items():
        names_by_system[system] = {}
        for scores in seeds:
            names_by_system[system] |= dict.fromkeys(scores)
    shared: list[str] = []
    left_out: list[str] = []
    every_name: dict[str, None] = {}
    for names in names_by_system.values():
        every_name |= names
    for task in every_name:
        if all(task in names for names in names_by_system.values()):
            shared.append(task)
        else:
            left_out.append(task)
    if not shared:
        texts = [f"{system} has {', '.join(list(n)[:3])}" for system, n in names_by_system.items()]
        raise BadInput(f"judge: no task is in all systems: {'; '.join(texts[:3])}.")
    return shared, left_out


def make_system(name: str, tasks: Sequence[str], seeds: Sequence[TaskScores]) -> JudgedSystem:
    """Collect the seeds of each shared task.

    Raises:
        BadInput: tasks have different numbers of seeds.
    """
    scores = {}
    for task in tasks:
        scores[task] = tuple(of_source[task] for of_source in seeds if task in of_source)
    counts = {task: len(of_task) for task, of_task in scores.items()}
    fewest = min(counts, key=lambda task: counts[task])
    most = max(counts, key=lambda task: counts[task])
    if counts[fewest] != counts[most]:
        raise BadInput(
            f"{name}: has {counts[most]} seeds of {most} and {counts[fewest]} of {fewest}; give"
            " every seed the same tasks."
        )
    return JudgedSystem(name, scores)


def doubts_on_seeds(system: JudgedSystem, sources: Sequence[Source]) -> list[str]:
    """Word which seeds of a system have the same scores.

    Two models may have the same mean, or be right and wrong on the same items. They do not have the
    same fractions on all items.

    Raises:
        BadInput: two seeds have the same fractions on all items, or the same source.
    """
    doubts = []
    for first, second in combinations(range(system.seeds), 2):
        pairs = [(of_task[first], of_task[second]) for of_task in system.scores.values()]
        if not all(is_same_score(*pair) for pair in pairs):
            continue
        is_one_model = any(score.has_fractions and other.has_fractions for score, other in pairs)
        which = f"seeds {first + 1} and {second + 1}"
        if len(sources) == system.seeds:
            which = f"{sources[first]} and {sources[second]}"
            is_one_model |= sources[first] == sources[second]
        same = f"{system.name}: {which} have the same scores"
        if is_one_model:
            raise BadInput(f"{same}, so one model was scored twice; leave one of them out.")
        doubts.append(f"{same}; check that they are two models.")
    return doubts


def is_same_score(first: TaskScore, second: TaskScore) -> bool:
    """Whether two scores are equal, with all values of items that are known."""
    if first.value != second.value:
        return False
    if first.replicates is None or second.replicates is None:
        return True
    return bool(np.array_equal(first.replicates.clustered, second.replicates.clustered))


def check_paired(systems: Sequence[JudgedSystem], tasks: Sequence[str]) -> None:
    """Check that all scores of a task are on the same test items.

    Raises:
        BadInput: two scores are on others; the message says how the items differ.
    """
    for task in tasks:
        base = systems[0].scores[task][0]
        for system in systems:
            for seed, score in enumerate(system.scores[task], 1):
                reason = why_not_paired(base, score)
                if reason is not None:
                    second = system.name if system.seeds == 1 else f"{system.name} (seed {seed})"
                    raise BadInput(
                        f"judge: {systems[0].name} and {second} were scored on different test data"
                        f" of {task}: {reason}. Score both on the same data."
                    )
