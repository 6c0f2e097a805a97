"""Read the tables of a paper from pasted text, for `csebench new paper --from`.

The text has a tab between cells. Its cells may be marked as in Markdown or LaTeX. The result is
the `tables` of a file of papers/. Parts that could not be read are listed for the user, so that
nothing gets lost silently.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import yaml

from csebench.base.errors import BadInput
from csebench.base.files import read_text
from csebench.base.terminal import counted
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import METHODS, valid_declarations, valid_evaluators
from csebench.plan.schema.paper import PRINTED, Grid, Recipe, Row, UnscoredTable

EVALUATOR = Grid.model_fields["evaluator"].default
EMPTY = ("", "-", "–", "—", "n/a")  # cells without a value
MOST_PLACES = 4  # how many places of a mark are listed
ColumnKeys = dict[str, str]  # keys of a column in papers/*.yaml
STATE_SOURCE = (
    "source: unknown in {}. In the file, state how the authors got the values: `source: measured`,"
    ' `rerun`, or `copied` with `from: "Who 2021"`.'
)

# Marks in cells. Bold in Markdown has its text as group 1; the commands of LaTeX have no group.
BOLD = re.compile(r"\*\*(?=\S)(.+?)\*\*|\\(?:textbf|mathbf|bm|bfseries|bf)\b")
STYLES = {"underline": "underlined", "textit": "italic", "emph": "italic", "uline": "underlined"}
CITATION = re.compile(r"\\cite\w*\*?(?:\[[^\]]*\])*\{[^{}]*\}")
SUPERSCRIPT = re.compile(r"\^\s*(\{[^{}]*\}|\\[a-zA-Z]+|.)")
SYMBOL = re.compile(r"\\([a-zA-Z]+)|\*+|[†‡§¶∗⋆★☆♠♣♥♦♤♧♢♡♯△▽▲▼◇◆⋄↑↓✝✓✗‖¹²³⁰⁴-⁹ᵃ-ᶻ]")


def with_tables(template: str, path: Path) -> tuple[str, list[str]]:
    """Replace the tables in the template of a paper by those of a file.

    Returns:
        The text of the paper, and a line for each part of the file that could not be read.

    Raises:
        BadInput: the file has no table, or no column that is known.
    """
    tables: dict[str, dict] = {}
    unread: list[str] = []
    rows_with_values = 0
    for number, pasted in pasted_tables(path).items():
        table, problems = read_table(pasted.lines)
        unread += [f"table {number}: {problem}" for problem in problems]
        if table is None:
            continue
        unread += [f"table {number}: {mark}" for mark in pasted.unread_marks()]
        rows_with_values += sum("values" in row for row in table["rows"])
        tables[number] = {"title": f"Table {number}", **table}
    if not tables:
        raise BadInput(
            f"{path}: no column is a task of an evaluator, or a size of the training set."
        )
    unread.append(STATE_SOURCE.format(counted(rows_with_values, "row")))
    content = yaml.safe_dump(
        {"tables": tables},
        default_flow_style=None,
        width=math.inf,
        sort_keys=False,
        allow_unicode=True,
    )
    # split the template before its tables and before its claims
    head, _, claims = re.split(r"(?m)^(?=tables:|# claims:)", template)
    return f"{head}{content}{claims}", unread


# ---------------------------------------------------------------- the text


@dataclass
class PastedTable:
    """The cells of a table by line, without marks, and the positions of each mark."""

    lines: list[list[str]] = field(default_factory=list)
    marks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (line, cell)

    def add_line(self, line: str) -> None:
        """Add a line, with a tab between its cells."""
        cells = []
        for text in line.split("\t"):
            cell, marks = without_marks(text)
            for mark in dict.fromkeys(marks):
                self.marks.setdefault(mark, []).append((len(self.lines), len(cells)))
            cells.append(cell)
        self.lines.append(cells)

    def unread_marks(self) -> list[str]:
        """Say for each mark where it was."""
        texts = []
        for mark, positions in self.marks.items():
            places = [self.place_of(*position) for position in positions[:MOST_PLACES]]
            if len(positions) > MOST_PLACES:
                places.append(f"{len(positions) - MOST_PLACES} more")
            texts.append(f"{mark} is not read: {'; '.join(places)}")
        return texts

    def place_of(self, line: int, cell: int) -> str:
        """Word the place of a cell: `row 'SimCSE', column 'Avg.'`."""
        names = []
        if line > 0:
            names.append(f"row {self.lines[line][0]!r}")
        if 0 < cell < len(self.lines[0]):
            names.append(f"column {self.lines[0][cell]!r}")
        if not names:
            return "the first cell"
        return ", ".join(names)


def pasted_tables(path: Path) -> dict[str, PastedTable]:
    """Read the tables of a file by their numbers.

    The first line of a table has the labels of columns, and the first cell of a line the label of
    a row. A line `# table 2` states the number of the table below it. Without such a line, the file
    has one table, number 1.

    Raises:
        BadInput: there is no table, or two have the same number.
    """
    tables: dict[str, PastedTable] = {}
    current = None
    for line in read_text(path).splitlines():
        if not line.strip():
            continue
        heading = re.fullmatch(r"# table (\w+)\s*", line)
        if heading is not None:
            number = heading[1]
            if number in tables:
                raise BadInput(
                    f"{path}: two tables have the number {number}; state another one in a line"
                    " `# table NUMBER`."
                )
            current = tables[number] = PastedTable()
            continue
        if current is None:
            current = tables["1"] = PastedTable()
        current.add_line(line)
    # a table needs a row below the labels of columns, and a column right of the labels of rows
    has_values = [len(table.lines) > 1 and len(table.lines[0]) > 1 for table in tables.values()]
    if not tables or not all(has_values):
        raise BadInput(
            f"{path}: needs a line with the labels of columns and a line per row, with tabs between"
            " cells."
        )
    return tables


def without_marks(text: str) -> tuple[str, list[str]]:
    """Remove the marks of styles, footnotes and citations from a cell.

    Returns:
        The cell, and the marks.
    """
    text = re.sub(r"\\pm\b|\+/-", "±", text).replace("−", "-")
    marks: list[str] = []

    def note_bold(match: re.Match) -> str:
        marks.append("bold")
        return match[1] or ""

    def note_citation(match: re.Match) -> str:
        marks.append(match[0])
        return ""

    def note_superscript(match: re.Match) -> str:
        inner = match[1].strip("{} ")
        if inner.startswith("±"):  # a deviation belongs to the value
            return inner
        marks.append(f"^{inner}")
        return ""

    def note_symbol(match: re.Match) -> str:
        marks.append(STYLES.get(match[1]) or match[0])
        return ""

    text = BOLD.sub(note_bold, text)
    text = CITATION.sub(note_citation, text)
    text = SUPERSCRIPT.sub(note_superscript, text)
    text = SYMBOL.sub(note_symbol, text)
    return re.sub("[{}$]", "", text).strip(), marks


# ---------------------------------------------------------------- tables of a paper


def read_table(lines: list[list[str]]) -> tuple[dict | None, list[str]]:
    """Turn the cells of a table into a table of papers/*.yaml, without its title.

    If no column is known, but a row is, the table is read with rows as columns.

    Returns:
        The table, or None if neither columns nor rows are known; and what could not be read.
    """
    header, *body = lines
    labels = header[1:]  # the first cell labels no column
    evaluator, columns = known_columns(labels)
    if not columns:
        _, columns_of_rows = known_columns([cells[0] for cells in body])
        if columns_of_rows:
            transposed = zip_longest(*lines, fillvalue="")
            return read_table([list(cells) for cells in transposed])

    unread = unread_columns(labels, columns)
    if not columns:
        return None, unread
    recipes = known_recipes()
    rows = []
    for label, *cells in body:
        recipe = find_recipe(label, recipes)
        if recipe is None:
            unread.append(f"row {label!r}: no known method, or several")
        for surplus in cells[len(labels) :]:
            if surplus:
                unread.append(f"row {label!r}: {surplus!r} is right of the last column")
        by_column = dict(zip_longest(labels, cells[: len(labels)], fillvalue=""))
        values, problems = read_values({column: by_column[column] for column in columns})
        unread += [f"row {label!r}, {problem}" for problem in problems]
        rows.append(row_of_paper(label, recipe, values))
    return {"evaluator": evaluator, "columns": list(columns.values()), "rows": rows}, unread


def unread_columns(labels: list[str], columns: dict[str, ColumnKeys]) -> list[str]:
    """Say which columns are not known, and which labels occur twice."""
    unread = [f"column {label!r}: no known task" for label in labels if label not in columns]
    for label, count in Counter(labels).items():
        if count > 1:
            unread.append(f"column {label!r}: occurs twice, the last is taken")
    return unread


def read_values(cells: dict[str, str]) -> tuple[list[str | None], list[str]]:
    """Read the values in the cells of a row, by column.

    Returns:
        The values, and the cells that hold something else.
    """
    values = []
    problems = []
    for column, cell in cells.items():
        value = printed_number(cell)
        if value is None and cell.lower() not in EMPTY:
            problems.append(f"column {column!r}: {cell!r} is no number")
        values.append(value)
    return values, problems


def row_of_paper(label: str, recipe: dict | None, values: list[str | None]) -> dict:
    """Lay out a row as papers/*.yaml has it. The source of its values is not known."""
    row: dict = {"label": label}
    if recipe is None:
        row["missing"] = "no recipe yet"
    else:
        row["run"] = recipe
    if any(values):
        row |= {"source": "unknown", "values": values}
    return row


def printed_number(cell: str) -> str | None:
    """Write `78.13±0.4` as papers/*.yaml has it. None if a cell holds no number."""
    text = re.sub(r"_(?=\s*±)|\s*%$", "", cell)
    text = re.sub(r"±\s*\.", "±0.", text).strip()
    if re.fullmatch(PRINTED, text) is None:
        return None
    return text


def plain(label: str) -> str:
    """Reduce a label for comparisons: remove its citation, spaces, signs and upper case."""
    without_citation = re.sub(r"\([^()]*\b(19|20)\d\d\w?\)", "", label)
    return re.sub(r"[^a-z0-9+%.]", "", without_citation.lower()).strip(".")


# ---------------------------------------------------------------- what labels mean


def known_columns(labels: list[str]) -> tuple[str, dict[str, ColumnKeys]]:
    """Find the columns whose labels are tasks of evaluators or sizes of the training set.

    Returns:
        The evaluator with the most columns, and the known columns by label.
    """
    meanings = meanings_of_labels()
    known: dict[str, dict[str, ColumnKeys]] = {}
    for label in labels:
        key = plain(label).replace("average", "avg")
        if key in meanings:
            known[label] = meanings[key]

    counts = Counter()
    for by_evaluator in known.values():
        counts.update(by_evaluator.keys())

    def most_columns_then_default(evaluator: str) -> tuple[int, bool]:
        return counts[evaluator], evaluator == EVALUATOR

    main = max(counts, key=most_columns_then_default, default=EVALUATOR)
    columns = {}
    for label, by_evaluator in known.items():
        if main in by_evaluator:
            columns[label] = {"label": label, **by_evaluator[main]}
        else:
            evaluator, column = next(iter(by_evaluator.items()))
            columns[label] = {"label": label, **column, "evaluator": evaluator}
    return main, columns


def meanings_of_labels() -> dict[str, dict[str, ColumnKeys]]:
    """List the columns that a plain label can mean, by evaluator."""
    meanings: dict[str, dict[str, ColumnKeys]] = {}
    for name, declared in valid_evaluators().items():
        tasks = list(declared.tasks)
        if declared.average:
            tasks.append("Avg.")
        for task in tasks:
            evaluator = f"{name}:{task}" if declared.takes else name
            meanings.setdefault(plain(task), {})[evaluator] = {"task": task}
    for size in catalog.scale("paper").sizes:
        meanings[plain(size)] = {EVALUATOR: {"task": "Avg.", "size": size}}
    return meanings


def known_recipes() -> dict[str, Recipe | None]:
    """List recipes by plain label: rows of papers/, and methods by name and title.

    Returns:
        The recipe of each label. None stands for a label that rows with several methods have.
    """
    recipes: dict[str, Recipe | None] = {}
    for row in rows_of_papers():
        label = plain(row.label)
        if row.run is None or row.run.sweep or re.search("[a-z]{2}", label) is None:
            continue
        recipe = recipes.setdefault(label, row.run)
        if recipe is not None and recipe.method != row.run.method:
            recipes[label] = None
    for name, declared in valid_declarations(METHODS).items():
        recipe = Recipe(method=name)
        recipes[plain(declared.title)] = recipe
        recipes[plain(name)] = recipe
    return recipes


def rows_of_papers() -> Iterator[Row]:
    """Iterate over the rows of all tables of scores in papers/."""
    for name in catalog.paper_names():
        for table in catalog.paper(name).tables.values():
            if not isinstance(table, UnscoredTable):
                yield from table.rows


def find_recipe(label: str, recipes: dict[str, Recipe | None]) -> dict | None:
    """Find the recipe of a row by its label, which may end with an encoder: `SimCSE-BERT_base`."""
    name = plain(label)
    recipe = recipes.get(name)
    if recipe is not None:
        return recipe.model_dump(exclude_defaults=True)
    for role in catalog.scale("paper").encoders:
        if not name.endswith(plain(role)):
            continue
        recipe = recipes.get(name.removesuffix(plain(role)))
        if recipe is not None:
            return recipe.model_dump(exclude_defaults=True) | {"encoder": role}
    return None
