"""Results of mteb: a folder with a JSON file per task, or one such file.

The format is that of `TaskResult.to_disk` in mteb 2.26 (mteb/results/task_result.py), which has
been in use since mteb 1.11: `task_name`, `dataset_revision`, and under `scores` a list of subsets
for each split, each with `main_score` and `hf_subset`. The score of a task is the mean over all
its splits and subsets, as `TaskResult.main_score` computes it. mteb stores no values of single
items, so these scores can be compared over seeds only.
"""

from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from csebench.base.errors import BadInput, validated
from csebench.base.files import read_json
from csebench.judging.task_scores import TaskScore, checked_fraction

MAIN_SCORE = "main_score"
OTHER_FILES = ("model_meta.json",)  # files of a folder of results that hold no scores
RESULTS_REMEDY = "Give a folder with the results of mteb 1.11 or newer."


class SubsetScores(BaseModel):
    """The scores of one subset; the file has a key for every metric."""

    model_config = ConfigDict(extra="allow")

    hf_subset: str


class TaskFile(BaseModel):
    """The keys of a file of results that the judge reads."""

    task_name: str
    dataset_revision: str
    scores: Annotated[
        dict[str, Annotated[list[SubsetScores], Field(min_length=1)]], Field(min_length=1)
    ]


def task_files(folder: Path) -> list[Path]:
    """List the files of results in a folder."""
    files = sorted(folder.glob("*.json"))
    return [path for path in files if path.name not in OTHER_FILES]


def read_mteb_folder(folder: Path, metric: str | None) -> dict[str, TaskScore]:
    """Read the results of one model.

    Raises:
        BadInput: a file is no result of mteb, or two files are of one task.
    """
    scores: dict[str, TaskScore] = {}
    files: dict[str, Path] = {}
    for path in task_files(folder):
        for task, score in read_mteb_file(path, metric).items():
            if task in scores:
                raise BadInput(
                    f"{path}: task_name: {task} is also in {files[task].name}; remove one of them."
                )
            scores[task] = score
            files[task] = path
    return scores


def read_mteb_file(path: Path, metric: str | None) -> dict[str, TaskScore]:
    """Read the results of one task.

    Args:
        metric: a key beside `main_score`. None for `main_score`.

    Returns:
        The score by the name of the task; empty if the task has no such metric.

    Raises:
        BadInput: the file is no result of mteb.
    """
    file = validated(TaskFile, read_json(path, RESULTS_REMEDY), str(path), remedy=RESULTS_REMEDY)
    key = metric or MAIN_SCORE
    values = []
    parts = []
    for split, subsets in sorted(file.scores.items()):
        for number, subset in enumerate(subsets):
            value = (subset.model_extra or {}).get(key)
            where = f"{path}: scores.{split}.{number}.{key}"
            if value is None and metric is not None:
                return {}
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise BadInput(f"{where}: must be a number. {RESULTS_REMEDY}")
            values.append(checked_fraction(value, where))
            parts.append(f"{split}/{subset.hf_subset}")
    test_set = f"revision {file.dataset_revision} of {', '.join(sorted(parts))}"
    return {file.task_name: TaskScore(fmean(values), test_set)}
