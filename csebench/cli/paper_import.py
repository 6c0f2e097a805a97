"""A paper's tables from Markdown, CSV or LaTeX, for `csebench new paper --from`."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import yaml

from csebench.base.errors import BadInput
from csebench.base.files import read_text
from csebench.base.terminal import counted
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import METHODS, valid_declarations, valid_evaluators
from csebench.plan.schema.paper import PRINTED, Grid, Recipe, SettingsTable

EVALUATOR = Grid.model_fields["evaluator"].default


EMPTY = ("", "-", "–", "—", "n/a")  # cells


BOLD = re.compile(r"\*\*(?=\S)(.+?)\*\*|\\(?:textbf|mathbf|bm|bfseries|bf)\b")


STYLES = {"underline": "underlined", "textit": "italic", "emph": "italic", "uline": "underlined"}


CITATION = re.compile(r"\\cite\w*\*?(?:\[[^\]]*\])*\{[^{}]*\}")


SUPERSCRIPT = re.compile(r"\^\s*(\{[^{}]*\}|\\[a-zA-Z]+|.)")


SYMBOL = re.compile(r"\\([a-zA-Z]+)|\*+|[†‡§¶∗⋆★☆♠♣♥♦♤♧♢♡♯△▽▲▼◇◆⋄↑↓✝✓✗‖¹²³⁰⁴-⁹ᵃ-ᶻ]")


MOST_PLACES = 4  # of a mark that are listed


STATE_SOURCE = (
    "source: unknown in {}. Say in the file where the values are from: `source: measured` by the"
    ' authors, `rerun` by them, or `copied` with `from: "Who 2021"`.'
)


@dataclass
class PastedTable:
    """The cells of a table by line, without marks, and where each mark was."""

    lines: list[list[str]] = field(default_factory=list)
    marks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (line, cell)

    def add_line(self, line: str) -> None:
        cells = []
        for text in line.split("\t"):
            cell, marks = without_marks(text)
            for mark in dict.fromkeys(marks):
                self.marks.setdefault(mark, []).append((len(self.lines), len(cells)))
            cells.append(cell)
        self.lines.append(cells)

    def place(self, line: int, cell: int) -> str:
        """`row 'SimCSE', column 'Avg.'`"""
        names = []
        if line > 0:
            names.append(f"row {self.lines[line][0]!r}")
        if cell > 0 and cell < len(self.lines[0]):
            names.append(f"column {self.lines[0][cell]!r}")
        return ", ".join(names) or "the first cell"

    def unread_marks(self) -> list[str]:
        """A text per mark, with where it was."""
        texts = []
        for mark, positions in self.marks.items():
            places = [self.place(*position) for position in positions[:MOST_PLACES]]
            if len(positions) > MOST_PLACES:
                places.append(f"{len(positions) - MOST_PLACES} more")
            texts.append(f"{mark} is not read: {'; '.join(places)}")
        return texts


def with_tables(text: str, path: Path, unread: list[str]) -> str:
    """The template of a paper with the tables of a file in place of its own.

    Args:
        unread: takes what could not be read, a line each.
    """
    head, _, claims = re.split(r"(?m)^(?=tables:|# claims:)", text)
    tables, rows = {}, 0
    for number, pasted in pasted_tables(path).items():
        table = read_table(number, pasted.lines, unread)
        if not table:
            continue
        unread += [f"table {number}: {mark}" for mark in pasted.unread_marks()]
        rows += sum("values" in row for row in table["rows"])
        tables[number] = table
    if not tables:
        raise BadInput(
            f"{path}: no column is a task of an evaluator, or a size of the training set."
        )
    unread.append(STATE_SOURCE.format(counted(rows, "row")))
    shape = {
        "default_flow_style": None,
        "width": math.inf,
        "sort_keys": False,
        "allow_unicode": True,
    }
    return f"{head}{yaml.safe_dump({'tables': tables}, **shape)}{claims}"


def pasted_tables(path: Path) -> dict[str, PastedTable]:
    """The tables of a file by number: tabs between cells, the labels of columns in the first
    line and those of rows in the first cell. A line `# table 2` states the number of the table
    below it, which is else 1. Raises BadInput where there is no table."""
    tables: dict[str, PastedTable] = {}
    for line in filter(str.strip, read_text(path).splitlines()):
        if match := re.fullmatch(r"# table (\w+)\s*", line):
            tables[match[1]] = PastedTable()
            continue
        if not tables:
            tables["1"] = PastedTable()
        tables[next(reversed(tables))].add_line(line)
    if not tables or any(
        len(table.lines) < 2 or len(table.lines[0]) < 2 for table in tables.values()
    ):
        raise BadInput(
            f"{path}: needs a line with the labels of columns and a line per row, with tabs between"
            " cells."
        )
    return tables


def without_marks(text: str) -> tuple[str, list[str]]:
    """A cell without the marks of styles, footnotes and citations, and these marks."""
    text = re.sub(r"\\pm\b|\+/-", "±", text).replace("−", "-")
    marks: list[str] = []

    def style(match: re.Match) -> str:
        marks.append("bold")
        return match[1] or ""

    def citation(match: re.Match) -> str:
        marks.append(match[0])
        return ""

    def superscript(match: re.Match) -> str:
        inner = match[1].strip("{} ")
        if inner.startswith("±"):  # a deviation
            return inner
        marks.append(f"^{inner}")
        return ""

    def symbol(match: re.Match) -> str:
        marks.append(STYLES.get(match[1]) or match[0])
        return ""

    text = BOLD.sub(style, text)
    text = CITATION.sub(citation, text)
    text = SUPERSCRIPT.sub(superscript, text)
    text = SYMBOL.sub(symbol, text)
    return re.sub("[{}$]", "", text).strip(), marks


def read_table(number: str, lines: list[list[str]], unread: list[str]) -> dict:
    """A table as in papers/*.yaml, whose columns may be the printed rows; empty where neither
    are known. What could not be read is added to `unread`."""
    (_, *labels), *body = lines
    evaluator, columns = known_columns(labels)
    if not columns and known_columns([label for label, *_ in body])[1]:
        return read_table(number, [*map(list, zip_longest(*lines, fillvalue=""))], unread)
    unread += [
        f"table {number}: column {label!r}: no known task"
        for label in labels
        if label not in columns
    ]
    twice = [label for label, count in Counter(labels).items() if count > 1]
    unread += [
        f"table {number}: column {label!r}: occurs twice, the last is taken" for label in twice
    ]
    recipes, rows = known_recipes(), []
    for label, *cells in body if columns else []:
        if not (run := find_recipe(label, recipes)):
            unread.append(f"table {number}: row {label!r}: no known method, or several")
        beyond = [cell for cell in cells[len(labels) :] if cell]
        unread += [
            f"table {number}: row {label!r}: {cell!r} is behind the last column" for cell in beyond
        ]
        cells = dict(zip_longest(labels, cells[: len(labels)], fillvalue=""))
        values = {column: printed_number(cells[column]) for column in columns}
        for column in (
            column
            for column, value in values.items()
            if not value and cells[column].lower() not in EMPTY
        ):
            unread.append(
                f"table {number}: row {label!r}, column {column!r}: {cells[column]!r} is no number"
            )
        row = {"label": label, **({"run": run} if run else {"missing": "no recipe yet"})}
        if any(values.values()):
            row |= {"source": "unknown", "values": [*values.values()]}
        rows.append(row)
    table = {
        "title": f"Table {number}",
        "evaluator": evaluator,
        "columns": [*columns.values()],
        "rows": rows,
    }
    return table if columns else {}


def printed_number(cell: str) -> str | None:
    """`78.13±0.4` as papers/*.yaml has it; None where a cell holds no number."""
    text = re.sub(r"_(?=\s*±)|\s*%$", "", cell)
    text = re.sub(r"±\s*\.", "±0.", text).strip()
    return text if re.fullmatch(PRINTED, text) else None


def plain(label: str) -> str:
    """A label without citation, spaces, signs and case, to be compared with others."""
    return re.sub(
        r"[^a-z0-9+%.]", "", re.sub(r"\([^()]*\b(19|20)\d\d\w?\)", "", label).lower()
    ).strip(".")


def known_columns(labels: list[str]) -> tuple[str, dict[str, dict[str, str]]]:
    """The evaluator of most columns, and the columns by label: tasks of evaluators, and sizes of
    the training set."""
    known: dict[str, dict[str, dict[str, str]]] = {}  # by label and evaluator
    for name, declared in valid_evaluators().items():
        for task in [*declared.tasks, *["Avg."] * declared.average]:
            known.setdefault(plain(task), {})[f"{name}:{task}" if declared.takes else name] = {
                "task": task
            }
    known |= {
        plain(size): {EVALUATOR: {"task": "Avg.", "size": size}}
        for size in catalog.scale("paper").sizes
    }
    evaluators = {
        label: known[key]
        for label in labels
        if (key := plain(label).replace("average", "avg")) in known
    }
    counts = Counter(
        evaluator for by_evaluator in evaluators.values() for evaluator in by_evaluator
    )
    main = max(
        counts or [EVALUATOR], key=lambda evaluator: (counts[evaluator], evaluator == EVALUATOR)
    )
    columns = {}
    for label, by_evaluator in evaluators.items():
        evaluator = main if main in by_evaluator else next(iter(by_evaluator))
        columns[label] = {"label": label} | by_evaluator[evaluator]
        columns[label] |= {} if evaluator == main else {"evaluator": evaluator}
    return main, columns


def known_recipes() -> dict[str, Recipe | None]:
    """Recipes by label: methods by name and title, and the rows of papers/; None for a label of
    several methods."""
    methods = valid_declarations(METHODS).items()
    recipes: dict[str, Recipe | None] = {}
    tables = [t for name in catalog.paper_names() for t in catalog.paper(name).tables.values()]
    for row in (
        row for table in tables if not isinstance(table, SettingsTable) for row in table.rows
    ):
        if row.run and not row.run.sweep and re.search("[a-z]{2}", plain(row.label)):
            first = recipes.setdefault(plain(row.label), row.run)
            recipes[plain(row.label)] = first if first and first.method == row.run.method else None
    return recipes | {
        plain(label): Recipe(method=name) for name, d in methods for label in (d.title, name)
    }


def find_recipe(label: str, recipes: dict[str, Recipe | None]) -> dict | None:
    """The recipe of a row by its label, which may end with an encoder: `SimCSE-BERT_base`."""
    name, encoders = (
        plain(label),
        {plain(role): {"encoder": role} for role in catalog.scale("paper").encoders},
    )
    for end, encoder in {"": {}, **encoders}.items():
        if name.endswith(end) and (recipe := recipes.get(name.removesuffix(end))):
            return recipe.model_dump(exclude_defaults=True) | encoder
    return None
