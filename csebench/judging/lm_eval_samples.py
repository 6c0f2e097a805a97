"""Samples of lm-evaluation-harness: `samples_TASK_DATE.jsonl`, written by `--log_samples`.

A line is about one document and one filter of the answers. `lm_eval/evaluator.py` (release 0.4)
writes `doc_id`, `filter`, `doc_hash`, `target_hash`, the list `metrics`, and a key for each metric.
`lm_eval/loggers/evaluation_tracker.py` names the file. A score is called `METRIC,FILTER` there, as
in `exact_match,strict-match`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import BaseModel, ConfigDict

from csebench.base.errors import BadInput, unknown, validated
from csebench.base.files import parse_json, read_text
from csebench.judging.task_scores import (
    ItemValue,
    TaskScore,
    checked_fraction,
    score_of_items,
)

PATTERN = "samples_*.jsonl"  # files of samples in a folder
AGGREGATED = "results_*.json"  # files of lm-eval without values of single documents
NAME = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.-]+")
SAMPLES_REMEDY = "Write it with `lm-eval run … --log_samples`, release 0.4.5 or newer."


class SampleLine(BaseModel):
    """The keys of a line that the judge reads."""

    model_config = ConfigDict(extra="allow")

    doc_id: int | str
    metrics: list[str]
    filter: str = "none"
    doc_hash: str = ""
    target_hash: str = ""

    def values(self) -> dict[str, Any]:
        """Return the values of this document by `METRIC,FILTER`."""
        given = self.model_extra or {}
        return {f"{metric},{self.filter}": given.get(metric) for metric in self.metrics}


@dataclass(frozen=True)
class NumberedLine:
    """A line with its place for messages."""

    where: str
    line: SampleLine


def read_samples_folder(folder: Path, metric: str | None) -> dict[str, TaskScore]:
    """Read the samples of one model: a file for every task.

    Raises:
        BadInput: a file is damaged, or two files are of one task.
    """
    scores: dict[str, TaskScore] = {}
    for path in sorted(folder.glob(PATTERN)):
        for task, score in read_samples(path, metric).items():
            if task in scores:
                raise BadInput(
                    f"{path}: the folder has two files of {task}; name one of them instead of the"
                    " folder."
                )
            scores[task] = score
    return scores


def read_samples(path: Path, metric: str | None) -> dict[str, TaskScore]:
    """Read the values of all documents of a task.

    Args:
        metric: `METRIC` or `METRIC,FILTER`. None for the first metric that is a number in every
            line of its filter.

    Returns:
        The score by task and metric.

    Raises:
        BadInput: the file holds no samples, has no such metric, or names a document twice.
    """
    lines = list(numbered_lines(path))
    if not lines:
        raise BadInput(f"{path}: holds no samples. {SAMPLES_REMEDY}")
    name = chosen_metric(lines, metric, path)
    filter_name = name.partition(",")[2]
    items: dict[str, ItemValue] = {}
    for numbered in lines:
        if numbered.line.filter != filter_name:
            continue
        item = str(numbered.line.doc_id)
        where = f"{numbered.where}: {name.partition(',')[0]}"
        if item in items:
            raise BadInput(f"{numbered.where}: doc_id: {item} stands twice; keep one of the lines.")
        value = numbered.line.values().get(name)
        if not is_number(value):
            raise BadInput(f"{where}: must be a number for each document; choose another --metric.")
        content = f"{numbered.line.doc_hash} {numbered.line.target_hash}".strip()
        items[item] = ItemValue(checked_fraction(float(value), where), content)
    task = f"{task_name(path)}, {name.removesuffix(',none')}"
    return {task: score_of_items(task, items)}


def numbered_lines(path: Path) -> Iterator[NumberedLine]:
    """Read the lines of a file that are not empty."""
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if text.strip():
            where = f"{path}: line {number}"
            content = parse_json(text, where, SAMPLES_REMEDY)
            yield NumberedLine(where, validated(SampleLine, content, where, remedy=SAMPLES_REMEDY))


def chosen_metric(lines: list[NumberedLine], metric: str | None, path: Path) -> str:
    """Choose the metric that is judged, as `METRIC,FILTER`.

    Raises:
        BadInput: no line has the metric, or no metric is a number in every line of its filter.
    """
    by_filter: dict[str, list[dict[str, Any]]] = {}  # values of the lines of a filter
    for numbered in lines:
        by_filter.setdefault(numbered.line.filter, []).append(numbered.line.values())
    in_every_line: list[str] = []
    in_any_line: list[str] = []
    for of_lines in by_filter.values():
        in_every_line += numeric_metrics(of_lines, all)
        in_any_line += numeric_metrics(of_lines, any)

    if metric is not None:
        for name in in_every_line + in_any_line:
            if metric in (name, name.partition(",")[0]):
                return name
    if not in_every_line:
        raise BadInput(
            f"{path}: no metric has a number for each document, so nothing can be judged."
            f" {SAMPLES_REMEDY}"
        )
    if metric is not None:
        raise unknown("metric", metric, in_any_line, f"{path}: --metric")
    return in_every_line[0]


def numeric_metrics(
    of_lines: list[dict[str, Any]], in_how_many: Callable[[Iterable[bool]], bool]
) -> list[str]:
    """List the metrics that are numbers, in all or in any of the lines of a filter."""
    names: dict[str, None] = {}
    for values in of_lines:
        names |= dict.fromkeys(values)
    return [name for name in names if in_how_many(is_number(v.get(name)) for v in of_lines)]


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false count as 1 and 0."""
    return isinstance(value, int | float)


def task_name(path: Path) -> str:
    """Read the task from the name of a file of samples; another name is taken as it is."""
    match = NAME.fullmatch(path.stem)
    return match["task"] if match else path.stem
