"""Find the runs and the file of one row of a paper's table: `micse/table2/simcse`.

The workflow can make a row alone. Its file lists the scores of the row and of no other.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from csebench.base.errors import BadInput, unknown
from csebench.plan import targets
from csebench.plan.catalog.data_sources import unavailable
from csebench.plan.grids import find_grid, plan_row
from csebench.plan.schema.paper import Table
from csebench.plan.schema.spec import Spec


@dataclass(frozen=True)
class TableRow:
    """A row of a paper's table, at a scale."""

    paper: str
    table: str  # table2
    index: int  # from 0
    name: str  # within its table, as in `row_names`
    scale: str

    @property
    def path(self) -> Path:
        """The file of the row: `results/mini/micse/table2/simcse.csv`."""
        return targets.grid_path(self.paper, f"{self.table}/{self.name}", self.scale, "csv")

    def available(self) -> dict[tuple[str, str], Spec]:
        """Collect the scores of the row that exist or can be made, as (run id, evaluator).

        Raises:
            BadInput: there are none.
        """
        cells = plan_row(self.paper, self.table, self.index, self.scale)
        scores = targets.scores_of(cells)
        available = targets.available_scores(scores, self.scale)
        if available:
            return available
        reasons = [cell.missing for cell in cells if cell.missing]
        for _, evaluator in scores:
            why = unavailable(evaluator, self.scale)
            if why is not None:
                reasons.append(why)
        reason = "; ".join(dict.fromkeys(reasons))  # each once
        raise BadInput(f"{self.path}: nothing of this row can be run: {reason}.")


def find_row(target: str, scale_name: str) -> TableRow | None:
    """Find the row that a target names.

    Args:
        target: `micse/table2/simcse`, or the path of the row's file.
        scale_name: for a target that names no scale.

    Returns:
        None if the target has not the form of a row, or names a page or a figure.

    Raises:
        BadInput: the paper has no such table of scores, or the table has no such row.
    """
    parts, scale_name = targets.split_target(target.removesuffix(".csv"), scale_name)
    if len(parts) != 3 or target.endswith((".md", ".svg")):
        return None
    paper_name, table, name = parts
    if not isinstance(find_grid(paper_name, table), Table):
        raise BadInput(f"{target}: {paper_name}/{table} is no table of scores.")
    names = row_names(paper_name, table)
    if name not in names:
        hint = f"Rows: {', '.join(names)}."
        raise unknown(f"row of {paper_name}/{table}", name, names, hint=hint)
    return TableRow(paper_name, table, names.index(name), name, scale_name)


def row_names(paper_name: str, table: str) -> list[str]:
    """Make a name for each row of a table from its label: `simcse`, `ami-simcse`.

    No two rows have the same name. Only letters, digits, `_`, `-` and decimal points are left, so
    that a shell reads a name as one word.
    """
    grid = find_grid(paper_name, table)
    assert isinstance(grid, Table), table
    names: list[str] = []
    for row in grid.rows:
        words = re.sub(r"([^\w.]|\.(?!\d))+", "-", short_label(row.label).lower())
        name = words.strip("-.") or "row"
        count = 1
        numbered = name
        while numbered in names:
            count += 1
            numbered = f"{name}-{count}"
        names.append(numbered)
    return names


def short_label(label: str) -> str:
    """Leave out the citation after a row's name: `SimCSE` for `SimCSE (Gao et al., 2021)`."""
    name, _, citation = label.rpartition(" (")
    ends_in_year = re.search(r"\b(19|20)\d\d[a-z]?\)$", citation)
    if name and ("et al" in citation or ends_in_year):
        return name
    return label
