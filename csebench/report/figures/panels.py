"""Figures that an evaluator declares and draws: a panel per row, from per-item values of a run.

Per-item values are not published. Where they are gone, a figure is drawn from its CSV file, which
has all that it shows.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csebench.plan.catalog.registry import Drawing, load_drawing
from csebench.plan.schema.declarations import Panel
from csebench.plan.targets import grid_path, score_path
from csebench.report.figures.parts import DrawnFigure
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.data_of_scores import Scored
from csebench.score.drawing import WIDTH, DrawingSource, with_six_digits
from csebench.score.store import items, stored_score, value


@dataclass(frozen=True)
class PanelNumbers:
    """What the panel of a row shows."""

    columns: dict[str, np.ndarray]
    lines: list[list]  # the published columns, for the CSV file
    source: DrawingSource

    @property
    def head(self) -> list[str]:
        """The names of the columns in the CSV file."""
        return published_names(self.columns)


def published_names(columns: dict[str, np.ndarray]) -> list[str]:
    """Name the columns that are published. Sentences of data sets belong to others."""
    return [name for name in columns if name != "text"]


def draw_panels(figure, view: GridView) -> DrawnFigure:
    """Lay out the panels of the rows, each drawn from the run of its first seed."""
    drawing = load_drawing(view.figure.kind)
    numbers_of_rows = [
        panel_numbers(cells[0], drawing, view, row.label)
        for row, cells in zip(view.figure.rows, view.rows, strict=True)
    ]
    panel_count = sum(numbers is not None for numbers in numbers_of_rows)
    subfigures = iter(split_figure(figure, drawing.panel, max(1, panel_count)))

    table: list[list] = [["model"]]
    drawn = []
    for row, numbers in zip(view.figure.rows, numbers_of_rows, strict=True):
        if numbers is None:
            table.append([row.label])
            continue
        subfigure = next(subfigures)
        drawn.append(subfigure)
        drawing.draw(subfigure, numbers.columns, numbers.source)
        table[0] = ["model", *numbers.head]
        table += [[row.label, *line] for line in numbers.lines]

    if drawing.panel.shared_axes:
        share_limits(drawn)
    note = f"One run of each row, that of the first seed (n = 1): {view.figure.axis}."
    return DrawnFigure(table, note, is_empty=not drawn)


def split_figure(figure, panel: Panel, count: int):
    """Split a figure into equal parts for panels, as many side by side as its width has room."""
    columns = min(count, max(1, int(WIDTH // panel.width)))
    rows = -(-count // columns)  # rounded up
    figure.set_layout_engine("constrained")
    figure.set_size_inches(WIDTH, rows * panel.height)
    return figure.subfigures(rows, columns, squeeze=False).flat


def share_limits(subfigures: list) -> None:
    """Give axes at the same place of all panels the limits that hold everything they show."""
    for same_axes in zip(*(subfigure.axes for subfigure in subfigures), strict=True):
        if same_axes[0].get_label() == "<colorbar>":
            continue
        limits = [axes.axis() for axes in same_axes]
        left, right, bottom, top = zip(*limits, strict=True)
        for axes in same_axes:
            axes.axis((min(left), max(right), min(bottom), max(top)))


def panel_numbers(cell: Cell, drawing: Drawing, view: GridView, label: str) -> PanelNumbers | None:
    """Read what the panel of a row shows, of a cell's first run.

    Args:
        label: of the row.

    Returns:
        None if there is no score, if it is of other test data, or if neither its items nor the CSV
        file of the figure are on this machine.
    """
    if not cell.plan.specs:
        return None
    spec = cell.plan.specs[0]
    evaluator = cell.plan.evaluator
    content, is_outdated = stored_score(spec, evaluator, view.scale)
    if content is None or value(content, cell.plan.task, cell.plan.column.metric) is None:
        return None
    if not view.is_on_its_data(evaluator, Scored(content, is_outdated)):
        return None
    source = DrawingSource(evaluator, label, content)
    file = score_path(spec.run_id, evaluator, view.scale)
    arrays = (items(content, file) or {}).get(evaluator, {})
    if drawing.panel.item not in arrays:
        return published_numbers(grid_path(view.paper, view.name, view.scale, "csv"), source)
    columns = drawing.columns(arrays)
    names = published_names(columns)
    lines = []
    for line in zip(*(columns[name] for name in names), strict=True):
        lines.append([str(with_six_digits(entry)) for entry in line])
    # as precise as the CSV file, so that the picture is the same where only that file is left
    return PanelNumbers(columns | columns_of_lines(names, lines), lines, source)


def published_numbers(path: Path, source: DrawingSource) -> PanelNumbers | None:
    """Read what a panel shows from the CSV file of its figure; None if the file lacks it.

    The file does not state its run. Numbers of an earlier run of the row are taken for this one's.
    """
    if not path.exists():
        return None
    with open(path, newline="", encoding="utf-8") as file:
        (_, *names), *rows = csv.reader(file)
    lines = [row[1:] for row in rows if row[0] == source.model and any(row[1:])]
    if not lines:
        return None
    return PanelNumbers(columns_of_lines(names, lines), lines, source)


def columns_of_lines(names: Sequence[str], lines: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Turn lines of a CSV file into columns."""
    columns = {}
    for name, texts in zip(names, zip(*lines, strict=True), strict=True):
        columns[name] = as_numbers(texts)
    return columns


def as_numbers(texts: tuple[str, ...]) -> np.ndarray:
    """Read a column of a CSV file as numbers, or as texts if one of them is no number."""
    try:
        return np.array(texts, dtype=float)
    except ValueError:
        return np.array(texts)
