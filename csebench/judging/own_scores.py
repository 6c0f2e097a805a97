"""Score JSONs of csebench, from `csebench evaluate` or published in `results/`.

A published file holds replicates over its test items. For a file of `csebench evaluate` they are
made from the values of single items in the file beside it.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from csebench.base.errors import BadInput, first_line
from csebench.base.files import digest, read_typed
from csebench.judging.task_scores import TaskScore, are_fractions
from csebench.plan.catalog.registry import (
    EVALUATORS,
    Protocol,
    check_name,
    evaluator_declaration,
    protocol,
)
from csebench.plan.schema.declarations import FRACTION
from csebench.score.replicates import make_replicates, read_replicates
from csebench.score.score_file import (
    REMEDY,
    ReplicatesRecord,
    ScoreContent,
    ScoredBy,
    ScoreRow,
    refuse_file,
    row_defects,
)
from csebench.score.score_types import Items, Sample, Score, sample
from csebench.score.store import ITEMS
from csebench.score.store import items as read_items

# what NumPy raises for arrays of another shape or type
UNUSABLE_ITEMS = (ValueError, TypeError, IndexError)


class JudgedScoreFile(ScoreContent):
    """The keys of a score JSON that the judge reads."""

    replicates: ReplicatesRecord | None = None


def read_own_scores(path: Path, metric: str | None) -> dict[str, TaskScore]:
    """Read a score JSON of csebench.

    Args:
        metric: None for the main metric of each evaluator.

    Returns:
        A score for every task that has this metric, by the task's name with its evaluator.

    Raises:
        BadInput: the file is damaged, contradicts itself, or is of an unknown evaluator.
    """
    content, file = read_typed(path, JudgedScoreFile, REMEDY)
    published = content.get("replicates")
    items_by_evaluator = {}
    if published is None:
        items_by_evaluator = read_items(content, path) or {}

    scores: dict[str, TaskScore] = {}
    seen: set[tuple[str, str]] = set()
    for number, evaluation in enumerate(file.evaluations):
        where = f"{path}: evaluations.{number}"
        known = protocol_of(evaluation, where)
        evaluated = (known.declaration.name, known.taken)
        if evaluated in seen:
            raise BadInput(
                f"{where}: a second variant of {known.declaration.name}, whose rows cannot be told"
                " from those of the first; evaluate each into a file of its own."
            )
        seen.add(evaluated)
        rows = rows_of(file.scores, known)
        refuse_file(path, row_defects(rows, known.declaration))
        items = items_by_evaluator.get(known.text, {})
        data = name_of_data(evaluation)
        replicates = published
        if published is None:
            try:
                replicates = replicates_of_rows(known, rows, items)
            except UNUSABLE_ITEMS as error:  # arrays of another shape or type than the evaluator's
                raise BadInput(
                    f"{path}{ITEMS}: {known.text}: cannot be resampled: {first_line(error)}."
                    " Evaluate the model again."
                ) from None
        scores |= own_task_scores(known, rows, items, replicates, data, metric)
    return scores


def protocol_of(evaluation: ScoredBy, where: str) -> Protocol:
    """Find the evaluator, with the settings that an evaluation states.

    Raises:
        BadInput: there is no such evaluator, or it has no such parameter.
    """
    check_name(evaluation.evaluator, EVALUATORS, where)
    declaration = evaluator_declaration(evaluation.evaluator)
    name = declaration.name
    if declaration.takes:
        name += f":{evaluation.params.get(declaration.takes, '')}"
    for variant in declaration.variants:
        with_variant = protocol(f"{name}:{variant}", where)
        if with_variant.params == evaluation.params:
            return with_variant
    return protocol(name, where)


def rows_of(rows: Sequence[ScoreRow], known: Protocol) -> list[ScoreRow]:
    """Select the rows of an evaluator in a file that may hold several."""
    names = {*known.tasks, "Avg."}
    selected = [row for row in rows if row.evaluator == known.declaration.name]
    if known.declaration.takes:
        return [row for row in selected if row.task in names]
    return selected


def name_of_data(evaluation: ScoredBy) -> str:
    """Name what must agree in two scores of a task: evaluator, settings and test data."""
    settings = digest(evaluation.params)
    data = (evaluation.data_sha256 or "unknown")[:12]
    return f"{evaluation.evaluator} version {evaluation.version}, settings {settings}, data {data}"


def replicates_of_rows(
    known: Protocol, rows: Sequence[ScoreRow] | Sequence[Score], items: Items
) -> dict | None:
    """Make replicates of all scores of an evaluator, as published files have them.

    The digest of the test items covers all tasks, so it would be another one for some of them.

    Returns:
        None if no score follows from items.

    Raises:
        ValueError, TypeError, IndexError: a value is not finite, or arrays have another shape or
            type than those of the evaluator.
    """
    scores = [Score(row.task, row.subset, row.metric, row.value) for row in rows]
    replicates = make_replicates(scores, items, known.declaration.items)
    check_finite_replicates(replicates)
    return replicates


def own_task_scores(
    known: Protocol,
    rows: Sequence[ScoreRow] | Sequence[Score],
    items: Items,
    replicates: dict | None,
    test_set: str,
    metric: str | None,
) -> dict[str, TaskScore]:
    """Take the scores of tasks, with replicates over their test items.

    Averages and parts of tasks are left out. So are metrics whose unit is no fraction. An evaluator
    is left out if it declares no best value, or one that is not positive.

    Args:
        items: values of single items; empty if they are not known.
        replicates: of these rows, as in a score JSON; None if there are none.
        test_set: names the test data.
        metric: None for the first metric of each task, which is its main metric.
    """
    rule = known.declaration.items
    content = {} if replicates is None else {"replicates": replicates}
    scores = {}
    for row in rows_to_judge(known, rows, metric):
        test_items = sample(items, rule, row.task, row.metric)
        of_row = read_replicates(content, row.task, row.metric)
        is_correlation = rule is not None and rule.gold is not None
        scores[name_of_task(known, row.task)] = TaskScore(
            value=row.value,
            test_set=f"{row.metric}, {test_set}",
            replicates=of_row,
            item_count=None if test_items is None else len(test_items.values),
            has_fractions=of_row is not None and (is_correlation or has_fraction(test_items)),
        )
    return scores


def has_fraction(test_items: Sample | None) -> bool:
    """Whether values of items are known, and one of them is neither 0 nor 1."""
    if test_items is None:
        return False
    return are_fractions(test_items.values)


def check_finite_replicates(replicates: dict | None) -> None:
    """Raise ValueError if a value of a test item was infinite or not a number."""
    if replicates is None:
        return
    for by_metric in replicates["scores"].values():
        for encoded in by_metric.values():
            if not math.isfinite(encoded["clustered"]["unit"]):
                raise ValueError("a value is not a finite number")


def rows_to_judge(
    known: Protocol, rows: Sequence[ScoreRow] | Sequence[Score], metric: str | None
) -> list[Score]:
    """Select one row for each task, as `own_task_scores` describes."""
    declaration = known.declaration
    if not declaration.best or min(declaration.best.values()) <= 0:
        return []  # nothing says that more is better
    by_task: dict[str, Score] = {}
    for row in rows:
        is_whole_task = row.subset == "all" and row.task != "Avg."
        if is_whole_task and row.task not in by_task and metric in (None, row.metric):
            by_task[row.task] = Score(row.task, row.subset, row.metric, row.value)
    return [row for row in by_task.values() if declaration.unit_of(row.metric) == FRACTION]


def name_of_task(known: Protocol, task: str) -> str:
    """Name a task with its evaluator: `sts/STS12`, `beir:scifact`."""
    if known.declaration.takes and task == known.taken:
        return known.text
    return f"{known.text}/{task}"
