"""What a table, a figure or a paper's results show, in one or two plain sentences.

Selects two rows and words their comparison; the tests are those of csebench/report/compare.py and power.py. Scores of
an older code version, missing runs and scale smoke give no finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from csebench.plan.catalog import DEFAULT_SCALE
from csebench.plan.declarations import Value
from csebench.plan.grids import recipe_values
from csebench.plan.papers import Column, SettingsTable
from csebench.plan.targets import grid_label, grid_names
from csebench.report import stats
from csebench.report.cells import (
    Cell,
    GridView,
    differences,
    encoder_role,
    grid_view,
    is_comparable,
    is_control,
    is_deterministic,
    same_runs,
)
from csebench.report.compare import compared_columns, item_variances
from csebench.report.power import Design, interval_text

AUTHORS = "measured"  # source of rows that a paper measures itself


class Finding(NamedTuple):
    text: str
    grid: str  # name of the table or figure that the text is about


@dataclass(frozen=True)
class Contrast:
    """The difference of two rows in a column, with its test."""

    mean: float
    design: Design
    seeds: int
    holm: float | None  # p after Holm's correction; None where the table has no tests between its rows
    tests: int  # that the correction is over

    @property
    def p(self) -> float | None:
        """Of this difference by itself, two-sided."""
        error, df = self.design.error(self.seeds)
        return None if error == inf else stats.two_sided(self.mean, (error**2, df))

    @property
    def significant(self) -> bool:
        p = self.p if self.holm is None else self.holm
        return p is not None and p < stats.LEVEL


def grid_finding(view: GridView) -> str:
    """What the scores of a table or figure show: a difference with its 95 % interval, and how clear the others are."""
    if isinstance(view.grid, SettingsTable):
        return settings_finding(view, view.grid)
    if view.scale == DEFAULT_SCALE:
        return f"No finding: scale {view.scale} only shows that the workflow runs."
    column = finding_column(view)
    if column is None:
        return f"No finding yet: {why_none(view)}."
    cells = tested_cells(view, column)
    return " ".join([main_sentence(view, column, cells), *further_sentences(view, column, cells)])


def paper_finding(paper_name: str, scale: str) -> Finding:
    """The finding of the first table or figure that compares the authors' rows with others: one that has scores of
    both, where there is one."""
    views = [grid_view(paper_name, name, scale) for name in grid_names(paper_name)]
    views = [view for view in views if not isinstance(view.grid, SettingsTable)]
    planned = [view for view in views if len({row.source == AUTHORS for row in view.score_grid.rows if row.run}) == 2]
    view = next((view for view in planned if compares_with_others(view)), (planned or views)[0])
    return Finding(f"{grid_label(view.name)}: {grid_finding(view)}", view.name)


def compares_with_others(view: GridView) -> bool:
    """Whether a table or figure has scores of the authors' rows and of others in one column."""
    column = finding_column(view)
    rows = tested_cells(view, column) if column else ()
    return len({view.score_grid.rows[i].source == AUTHORS for i in rows}) == 2


# ---------------------------------------------------------------- which rows


def finding_column(view: GridView) -> Column | None:
    """The last compared column with two rows to compare: mostly the average, or the whole training set."""
    columns = [column for column in compared_columns(view) if len(tested_cells(view, column)) > 1]
    return columns[-1] if columns else None


def tested_cells(view: GridView, column: Column) -> dict[int, Cell]:
    """Cells by row, all on the encoder that most of them are on: with all their runs, of today's code, no control."""
    cells = {i: cell for i, cell in enumerate(view.column(column.label)) if is_comparable(cell)}
    roles = [encoder_role(cell) or view.score_grid.encoder for cell in cells.values()]
    most = max(roles, key=roles.count, default=None)
    return {i: cell for (i, cell), role in zip(cells.items(), roles, strict=True) if role == most}


def contrast(view: GridView, column: Column, a: int, b: int) -> Contrast:
    """Row a less row b, over the test items too where they are known; corrected where the table compared the two."""
    cells, pairs = view.column(column.label), view.comparisons.get(column.label, {"pairs": []})["pairs"]
    stored = next((pair for pair in pairs if {pair["a"], pair["b"]} == {a, b}), {})
    summary = stats.summarise(differences(cells[a], cells[b]))
    item_variance = stored.get("item_variance")
    if item_variance is None:
        item_variance, _ = item_variances(cells[a], cells[b], view.scale) or (None, None)
    tests = sum(len(comparison["pairs"]) for comparison in view.comparisons.values())
    return Contrast(summary.mean, Design(summary.std, item_variance), summary.n, stored.get("holm"), tests)


# ---------------------------------------------------------------- sentences


def main_sentence(view: GridView, column: Column, cells: dict[int, Cell]) -> str:
    """The authors' best row against the best of the others; where only one of the two is here, the best two rows. It
    says of which rows, where others have no scores of today's code."""
    order = sorted(cells, key=lambda i: cells[i].mean, reverse=not column.lower)
    extreme = "lowest" if column.lower else "highest"
    authors = [i for i in order if view.score_grid.rows[i].source == AUTHORS]
    others = [i for i in order if i not in authors]
    if authors and others:
        a, b, relation = authors[0], others[0], "best baseline"
    else:
        (a, b, *_), relation = order, "next of them" if left_out(view, column) else "next row"
    first, second = (view.score_grid.rows[i].label for i in (a, b))
    cell, difference = cells[a], contrast(view, column, a, b)
    scores = f"{first} has {cell.number(cell.mean)} in column {column.label}"
    if len(cells) > 2 and a == order[0]:
        compared = f" of the {len(cells)} rows compared" if left_out(view, column) else ""
        scores = f"{first} has the {extreme} value{compared} in column {column.label}, {cell.number(cell.mean)}"
    name = second if len(cells) == 2 else f"{second}, the {relation}"
    if same_runs(cell, cells[b]):
        return f"{scores}; the runs of {second} are the same at this scale, whose settings replace what differs."
    if difference.p is None:
        return f"{scores}, {size_text(difference.mean, cell)} {name}; from one seed, chance cannot be ruled out."
    interval = interval_text(difference.mean, difference.design, difference.seeds, cell.digits)
    return f"{scores}, {size_text(difference.mean, cell)} {name} ({interval}): {verdict_text(difference)}."


def size_text(difference: float, cell: Cell) -> str:
    """`0.66 above`, `0.66 below`, `the same as`."""
    size = cell.number(abs(difference))
    return "the same as" if not float(size) else f"{size} {'above' if difference > 0 else 'below'}"


def verdict_text(difference: Contrast) -> str:
    """Whether the test tells two rows apart, by itself and after the correction for all pairs of the table."""
    assert difference.p is not None
    if difference.p >= stats.LEVEL:
        return "the scores do not tell the two apart"
    if difference.holm is None or difference.tests < 2:
        return f"a significant difference (p = {difference.p:.2g}, not corrected for other pairs of rows)"
    corrected = f"Holm's correction for {difference.tests} pairs of rows (p = {difference.holm:.2g})"
    return f"{'significant' if difference.significant else 'not significant'} after {corrected}"


def further_sentences(view: GridView, column: Column, cells: dict[int, Cell]) -> list[str]:
    """How many rows beat the untrained encoder, or else how many pairs of rows differ; how many rows are left out."""
    sentences = []
    sign = -1 if column.lower else 1
    fixed = [i for i in cells if is_deterministic(cells[i])]
    untrained = max(fixed, key=lambda i: sign * cells[i].mean, default=None)
    pairs = view.comparisons.get(column.label, {"pairs": []})["pairs"]
    if untrained is not None and len(cells) > 2:
        sentences.append(untrained_sentence(view, column, cells, untrained))
    elif len(pairs) > 1:
        sentences.append(pairs_sentence(view, column))
    if left_out(view, column):
        sentences.append(left_out_sentence(view, column, cells))
    return sentences


def pairs_sentence(view: GridView, column: Column) -> str:
    """`Of the 6 pairs of rows in this column, none differ significantly; in other columns: 2 in 1%.`"""
    differ = {
        label: sum(pair["holm"] < stats.LEVEL for pair in comparison["pairs"])
        for label, comparison in view.comparisons.items()
    }
    here, total = differ.pop(column.label), len(view.comparisons[column.label]["pairs"])
    verb = "differs" if here == 1 else "differ"
    elsewhere = ", ".join(f"{count} in {label}" for label, count in differ.items() if count)
    return f"Of the {total} pairs of rows in this column, {here or 'none'} {verb} significantly" + (
        f"; in other columns: {elsewhere}." if elsewhere else "."
    )


def left_out(view: GridView, column: Column) -> list[Cell]:
    """Cells of methods that a finding does not compare: runs are missing, or their scores are outdated."""
    here = [cell for cell in view.column(column.label) if (cell.plan.specs or cell.parts) and not is_control(cell)]
    return [cell for cell in here if not is_comparable(cell)]


def left_out_sentence(view: GridView, column: Column, cells: dict[int, Cell]) -> str:
    """How many rows are left out, whose they are, and which of them would come first."""
    missing = left_out(view, column)
    text = f"Left out: {rows_text(len(missing))} with missing or outdated scores (†)"
    sources = {view.score_grid.rows[i].source for i in cells}
    if AUTHORS in {cell.plan.row.source for cell in missing} - sources:
        text += ", all of the authors' among them"
    sign = -1 if column.lower else 1
    best = max(sign * cell.mean for cell in cells.values())
    above = [cell for cell in missing if cell.values and sign * cell.mean > best]
    names = [f"{c.plan.row.label} {c.number(c.mean)}" for c in sorted(above, key=lambda c: -sign * c.mean)[:3]]
    if names:
        names += [f"{len(above) - 3} more"] * (len(above) > 3)
        text += f"; {'lower' if column.lower else 'higher'} than all that are compared: {', '.join(names)}"
    return f"{text}."


def untrained_sentence(view: GridView, column: Column, cells: dict[int, Cell], untrained: int) -> str:
    """How many rows differ from the untrained encoder: those with its pooling, and those with another."""
    others = [i for i in cells if i != untrained and not is_deterministic(cells[i])]
    alike = [i for i in others if poolers(cells[i]) == poolers(cells[untrained])]
    sign = -1 if column.lower else 1

    def counts(rows: list[int]) -> str:
        gains = [contrast(view, column, i, untrained) for i in rows]
        better, worse = (sum(g.significant and g.mean * s > 0 for g in gains) for s in (sign, -sign))
        return f"{number_is(better)} significantly better and {number_is(worse)} worse"

    row, score = view.score_grid.rows[untrained].label, cells[untrained].number(cells[untrained].mean)
    encoder, rest = f"the untrained encoder ({row}, {score})", [i for i in others if i not in alike]
    if not alike:
        return f"Of {rows_text(len(rest))} with another pooling than {encoder}, {counts(rest)}."
    text = f"Of {rows_text(len(alike))} with the pooling of {encoder}, {counts(alike)}"
    return text + (f"; of {rows_text(len(rest))} with another pooling, {counts(rest)}." if rest else ".")


def poolers(cell: Cell) -> set[Value]:
    """Of the runs behind a cell."""
    return (
        set().union(*map(poolers, cell.parts)) if cell.parts else {spec.params["pooler"] for spec in cell.plan.specs}
    )


def number_is(count: int) -> str:
    """`none is`, `1 is`, `2 are`"""
    return f"{count or 'none'} {'is' if count < 2 else 'are'}"


def rows_text(count: int) -> str:
    return f"{count} row{'s' * (count > 1)}"


def why_none(view: GridView) -> str:
    """Why there is no finding: what a table or figure has no scores of."""
    cells = [cell for row in view.rows for cell in row]
    done, wanted = view.progress
    if not wanted:
        return "nothing is run here, the values are the published ones"
    if not any(cell.values for cell in cells):
        return f"none of the {wanted} runs has scores"
    if any(cell.stale for cell in cells):
        return (
            "scores are of an older code version or of other settings (†), from which no conclusion is drawn"
            if done == wanted
            else f"{done} of {wanted} runs have scores, some of an older code version or of other settings (†)"
        )
    return f"{done} of {wanted} runs have scores, which is not enough to compare two rows"


def settings_finding(view: GridView, table: SettingsTable) -> str:
    """How many printed settings the recipes at scale paper have."""
    equal = [
        float(printed) == float(f"{ours:g}")
        for row in table.rows
        for printed, ours in zip(row.values, recipe_values(view.paper, view.name, row.param), strict=True)
        if printed is not None
    ]
    if all(equal):
        return f"All {len(equal)} printed settings are those of the recipes at scale paper."
    return f"{equal.count(False)} of {len(equal)} printed settings differ from the recipes at scale paper."
