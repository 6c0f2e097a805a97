"""Fills the numbers that README.md and docs/*.md quote from results/mini and results/evidence.csv.

    python docs/quoted_numbers.py          # fill
    python docs/quoted_numbers.py --check  # exit code 1 where a text is stale

A number stands between two comments, the first with a Python expression of the functions below; a
word stands before it in its line, as Markdown ends a paragraph where a line begins with a comment:

    AMI has <!-- n: text("micse/table3", "AMI+SimCSE", "1%") -->54.52 ± 0.05†<!-- /n -->
    and miCSE <!-- n: format(mean("micse/table3", "miCSE", "1%"), ".1f") -->55.2<!-- /n -->

`table(...)` fills a whole table. An expression must not contain `|` inside of a Markdown table.
"""

from __future__ import annotations

import csv
import re
import sys
from functools import cache
from math import inf
from pathlib import Path
from statistics import mean as average
from statistics import median, quantiles, stdev

from csebench.base.errors import BadInput, first_line, unknown
from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT
from csebench.report.numbers.power import noncentrality

MINI = ROOT / "results" / "mini"
EVIDENCE = ROOT / "results" / "evidence.csv"
QUOTE = re.compile(r"<!-- n: (.*?) -->(.*?)<!-- /n -->", re.DOTALL)
OLD = "†"  # scored with an older code version
BUILTINS = {function.__name__: function for function in (abs, format, len, max, min, round, sum)}


# ---------------------------------------------------------------- mini's cells


@cache
def cells() -> dict[tuple[str, str, str], dict]:
    """Cells of results/mini/cells.csv by table (`micse/table3`, `methods`), row and column."""
    by_key: dict[tuple[str, str, str], dict] = {}
    for row in _rows(MINI / "cells.csv"):
        table = row["table"] if row["table"] == row["paper"] else f"{row['paper']}/{row['table']}"
        by_key.setdefault((table, row["row"], row["column"]), row)
    return by_key


def cell(table: str, row: str, column: str = "Avg.") -> dict:
    for known, name, what in (
        ({key[0] for key in cells()}, table, "table"),
        ({key[1] for key in cells() if key[0] == table}, row, "row"),
        ({key[2] for key in cells() if key[:2] == (table, row)}, column, "column"),
    ):
        if name not in known:
            raise unknown(what, name, known)
    return cells()[table, row, column]


def text(table: str, row: str, column: str = "Avg.") -> str:
    """A cell as its page prints it: `54.58 ± 0.04`, with † where it was scored with an older
    code version."""
    wanted = cell(table, row, column)
    return (wanted["text"] or "–") + (OLD if wanted["outdated"] == "True" else "")


def mean(table: str, row: str, column: str = "Avg.") -> float:
    """Our mean over seeds, in printed units."""
    return _number(cell(table, row, column), "ours")


def std(table: str, row: str, column: str = "Avg.") -> float:
    """Our sample standard deviation over seeds, in printed units."""
    return _number(cell(table, row, column), "std")


def published(table: str, row: str, column: str = "Avg.") -> str:
    """The published value: `54.55`, or `67.94 ± 1.16`."""
    wanted = cell(table, row, column)
    digits = len(wanted["text"].split(" ")[0].partition(".")[2]) or 2
    return " ± ".join(
        f"{float(wanted[k]):.{digits}f}" for k in ("published", "published_std") if wanted[k]
    )


def score_columns(table: str) -> tuple[str, ...]:
    """Labels of the columns of a table but differences (`Δ`)."""
    return tuple(
        dict.fromkeys(key[2] for key in cells() if key[0] == table and not key[2].startswith("Δ"))
    )


def answer(page: str) -> str:
    """The answer at the head of a page of results/mini."""
    line = re.search(r"^\*\*.*", read_text(MINI / f"{page}.md"), re.MULTILINE)
    if line is None:
        raise BadInput(f"{page}: no answer")
    return line[0]


def tested() -> list[dict]:
    """The comparisons of results/mini/comparisons.csv that were tested."""
    return [row for row in _rows(MINI / "comparisons.csv") if row["p"]]


def matched() -> str:
    """How many of them are matched: `231 of 240`."""
    return f"{sum(not row['differs'] for row in tested())} of {len(tested())}"


def floor(share: float) -> float:
    """The difference that any number of seeds detects, over the test items of the STS average,
    in a share of pairs."""
    of_average = [row for row in tested() if row["columns"].startswith(("Avg", "STS(Avg"))]
    return (
        noncentrality(inf)
        * quantiles(item_errors(of_average), n=100, method="inclusive")[round(100 * share) - 1]
    )


def item_error() -> float:
    """The median error of a comparison over test items, in points."""
    return median(item_errors(tested()))


def item_errors(rows: list[dict]) -> list[float]:
    return [float(row["item_se"]) for row in rows if row["item_se"]]


def table(name: str, *columns: str, label: str = "Model") -> str:
    """A table in Markdown with all its rows.

    Args:
        columns: labels; all but differences where none is named.
        label: of the column of rows.
    """
    rows = list(dict.fromkeys(key[1] for key in cells() if key[0] == name))
    columns = columns or score_columns(name)
    lines = [[label, *columns], ["---"] * (len(columns) + 1)]
    for row in rows:
        lines.append([row, *(text(name, row, column) for column in columns)])
    made = "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"
    return made + (f"{OLD} scored with an older code version.\n\n" if OLD in made else "")


# ---------------------------------------------------------------- others' runs


@cache
def sweep(method: str, encoder: str) -> list[dict]:
    """Others' seeds of a method on an encoder, from results/evidence.csv."""
    rows = [row for row in _rows(EVIDENCE) if row["group"] == "seed sweep"]
    chosen = [row for row in rows if (row["method"], row["encoder"]) == (method, encoder)]
    if not chosen:
        raise unknown(
            "seed sweep",
            f"{method}, {encoder}",
            {f"{row['method']}, {row['encoder']}" for row in rows},
        )
    return chosen


def others(method: str, encoder: str) -> str:
    """Mean and deviation of others' seeds: `75.11 ± 0.84`."""
    scores = [float(row["score"]) for row in sweep(method, encoder)]
    return f"{average(scores):.2f} ± {stdev(scores):.2f}"


def reached(method: str, encoder: str) -> int:
    """How many of others' seeds reach the printed value, both rounded as printed."""
    return sum(
        round(float(row["score"]), 2) >= float(row["printed"]) for row in sweep(method, encoder)
    )


def kept_last(method: str, encoder: str) -> int:
    """In how many of others' runs the last checkpoint was the best."""
    return sum(row["keeps_last_step"] == "1" for row in sweep(method, encoder))


# ---------------------------------------------------------------- texts


FUNCTIONS = (cell, text, mean, std, published, answer, matched, floor, item_error, table)
FUNCTIONS += (sweep, others, reached, kept_last)
NAMES = {"__builtins__": BUILTINS} | {function.__name__: function for function in FUNCTIONS}


def fill(content: str, file: str) -> str:
    """A text with its numbers as they are now. Raises BadInput for an invalid expression, with
    file and line."""
    if content.count("<!-- n:") != len(QUOTE.findall(content)):
        raise BadInput(f"{file}: a `<!-- n: … -->` has no `<!-- /n -->` behind it.")

    def place(match: re.Match) -> str:
        number = content[: match.start()].count("\n") + 1
        return f"{file}: line {number}"

    if match := re.search(r"^[ *>-]*<!-- n: .*?-->\S", content, re.MULTILINE):
        raise BadInput(
            f"{place(match)}: begins with a comment, which ends the paragraph; put a word"
            " before it."
        )

    def filled(match: re.Match) -> str:
        try:
            value = eval(match[1], NAMES)
        except Exception as error:
            raise BadInput(f"{place(match)}: {match[1]}: {first_line(error)}.") from None
        value = f"{value:.2f}" if isinstance(value, float) else str(value)
        return f"<!-- n: {match[1]} -->{value}<!-- /n -->"

    return QUOTE.sub(filled, content)


def texts() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main(arguments: list[str]) -> int:
    stale = []
    try:
        for path in texts():
            content, file = read_text(path), str(path.relative_to(ROOT))
            if (now := fill(content, file)) == content:
                continue
            stale.append(file)
            if "--check" not in arguments:
                write_text(path, now)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    if "--check" in arguments and stale:
        print(
            f"stale numbers in {', '.join(stale)}: run `python docs/quoted_numbers.py`.",
            file=sys.stderr,
        )
        return 1
    return 0


def _rows(path: Path) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(cell: dict, key: str) -> float:
    if not cell[key]:
        raise BadInput(f"{cell['row']}, {cell['column']}: no {key}")
    return float(cell[key])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
