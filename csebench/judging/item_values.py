"""Values of single test items as CSV or npz, for systems that were scored by any other program.

CSV: a line per item with the columns `id` and `value`, and if wanted `task` and `hash` (of the
item's content). npz: arrays `ids` and `values`, and if wanted `hashes`. Arrays of several tasks are
named `TASK/ids` and so on. Values are fractions of a score, of which more is better.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput, did_you_mean, first_line
from csebench.base.files import UNREADABLE_NPZ, file_state, read_text
from csebench.judging.task_scores import (
    ItemValue,
    TaskScore,
    checked_fraction,
    score_of_items,
)

COLUMNS = ("id", "value", "task", "hash")
NEEDED = ("id", "value")
ARRAYS = ("ids", "values", "hashes")
ONLY_TASK = "items"  # name of the task if the file states none


@dataclass(frozen=True)
class ItemRow:
    """An item as a file states it."""

    where: str  # for messages
    task: str
    id: str
    item: ItemValue


def read_item_values(path: Path) -> dict[str, TaskScore]:
    """Read the values of all items of one system.

    Returns:
        The score of each task, by its name.

    Raises:
        BadInput: the file has another form, a value is no fraction, or an item stands twice.
    """
    rows = csv_rows(path) if path.suffix == ".csv" else npz_rows(path)
    by_task: dict[str, dict[str, ItemValue]] = {}
    for row in rows:
        items = by_task.setdefault(row.task, {})
        if row.id in items:
            raise BadInput(f"{row.where}: id: {row.id} stands twice in {row.task}; keep one.")
        items[row.id] = row.item
    if not by_task:
        raise BadInput(f"{path}: holds no items; write a line or an entry for each.")
    return {task: score_of_items(task, items) for task, items in by_task.items()}


def csv_rows(path: Path) -> Iterator[ItemRow]:
    """Read the lines of a CSV file."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        check_head(reader.fieldnames or [], f"{path}: line 1")
        for row in reader:
            yield item_of_line(row, f"{path}: line {reader.line_num}")
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: no CSV: {error}.") from None


def check_head(names: Sequence[str], where: str) -> None:
    """Check the head of a CSV file.

    Raises:
        BadInput: a column is missing, unknown or stands twice.
    """
    for name in NEEDED:
        if name not in names:
            raise BadInput(
                f"{where}: has no column `{name}`; the head must be {','.join(COLUMNS)},"
                " of which task and hash may be left out."
            )
    for name in names:
        if name not in COLUMNS:
            raise BadInput(
                f"{where}: unknown column {name!r}.{did_you_mean(name, COLUMNS)}"
                f" Known: {', '.join(COLUMNS)}."
            )
        if list(names).count(name) > 1:
            raise BadInput(f"{where}: column {name} stands twice; keep one.")


def item_of_line(row: dict, where: str) -> ItemRow:
    """Read an item from a line of a CSV file."""
    if None in row or None in row.values():
        raise BadInput(f"{where}: has another number of cells than the head; correct the line.")
    if not row["id"]:
        raise BadInput(f"{where}: id: is empty; name the item.")
    try:
        value = float(row["value"])
    except ValueError:
        raise BadInput(f"{where}: value: {row['value']!r} is not a number.") from None
    value = checked_fraction(value, f"{where}: value")
    return ItemRow(
        where, row.get("task") or ONLY_TASK, row["id"], ItemValue(value, row.get("hash", ""))
    )


def npz_rows(path: Path) -> Iterator[ItemRow]:
    """Read the items of an npz file, task after task."""
    arrays = read_arrays(path)
    for name in arrays:
        task, _, kind = name.rpartition("/")
        if kind not in ARRAYS:
            raise BadInput(
                f"{path}: {name}: unknown array. Known: {', '.join(ARRAYS)}, or TASK/ids and so on."
            )
        if kind == "values":
            yield from rows_of_task(path, task, arrays)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file by name."""
    file_state(path)  # refuses a pipe or a device
    try:
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except UNREADABLE_NPZ as error:
        raise BadInput(
            f"{path}: cannot be read as npz: {first_line(error)}. Write it with numpy.savez."
        ) from None
    if not any(name.rpartition("/")[2] == "values" for name in arrays):
        raise BadInput(f"{path}: has no array `values`; write ids and values with numpy.savez.")
    return arrays


def rows_of_task(path: Path, task: str, arrays: dict[str, np.ndarray]) -> Iterator[ItemRow]:
    """Read the items of one task from its arrays."""
    prefix = f"{task}/" if task else ""
    values = arrays[f"{prefix}values"]
    ids = arrays.get(f"{prefix}ids")
    hashes = arrays.get(f"{prefix}hashes")
    if ids is None:
        raise BadInput(
            f"{path}: {prefix}ids: is missing; name each item, so that items are paired."
        )
    if values.dtype.kind not in "biuf":
        raise BadInput(f"{path}: {prefix}values: must hold numbers, not {values.dtype}.")
    for kind, array in (("values", values), ("ids", ids), ("hashes", hashes)):
        if array is not None and (array.ndim != 1 or len(array) != len(values)):
            raise BadInput(
                f"{path}: {prefix}{kind}: has shape {array.shape}; every array needs one"
                " entry per item."
            )
    for number, value in enumerate(values.tolist()):
        where = f"{path}: {prefix}values: entry {number}"
        content = "" if hashes is None else str(hashes[number])
        item = ItemValue(checked_fraction(float(value), where), content)
        yield ItemRow(where, task or ONLY_TASK, str(ids[number]), item)
