"""Fill the numbers that README.md and docs/*.md quote.

They come from results/mini, from results/evidence.csv, and from what is computed from papers/ and
evidence/ alone: verdicts on claims, inconsistencies, and what picking seeds adds.

    python docs/quoted_numbers.py          # fill
    python docs/quoted_numbers.py --check  # exit code 1 if a number is stale

A number stands between two comments. The first one has a Python expression, which may call the
functions below. A word must stand before the number in its line, because in Markdown a line that
begins with a comment ends the paragraph:

    AMI has <!-- n: text("micse/table3", "AMI+SimCSE", "1%") -->54.52 ± 0.05†<!-- /n -->
    and miCSE <!-- n: format(mean("micse/table3", "miCSE", "1%"), ".1f") -->55.2<!-- /n -->

`table(...)` fills a whole table. Inside of a Markdown table, an expression must not contain `|`.
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

from csebench.base.errors import BadInput, first_line, look_up, unknown
from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT
from csebench.plan.catalog.files import DEFAULT_SCALE, paper_names
from csebench.report.numbers.audit import findings
from csebench.report.numbers.claims import Judged, judge_all
from csebench.report.numbers.others import PooledMethod, pooled_methods
from csebench.report.numbers.others import sweeps as seed_sweeps
from csebench.report.numbers.power import noncentrality
from csebench.report.numbers.printed_gains import deviations
from csebench.report.numbers.selection import (
    SelectionGain,
    best_scores,
    runs_to_reach,
    selection_of,
)
from csebench.report.numbers.stats import LEVEL
from csebench.report.words.claim_counts import severity_counts, verdict_counts
from csebench.report.words.comparisons import outward_range
from csebench.report.words.evidence import key_title

MINI = ROOT / "results" / "mini"
EVIDENCE = ROOT / "results" / "evidence.csv"
QUOTE = re.compile(r"<!-- n: (.*?) -->(.*?)<!-- /n -->", re.DOTALL)
OLD = "†"  # scored with an older code version
BUILTINS = {function.__name__: function for function in (abs, format, len, max, min, round, sum)}


# ---------------------------------------------------------------- cells of scale mini


@cache
def cells() -> dict[tuple[str, str, str], dict]:
    """Read results/mini/cells.csv by table (`micse/table3`, `methods`), row and column."""
    by_key: dict[tuple[str, str, str], dict] = {}
    for row in _rows(MINI / "cells.csv"):
        table = f"{row['paper']}/{row['table']}"
        if row["table"] == row["paper"]:
            table = row["table"]
        by_key.setdefault((table, row["row"], row["column"]), row)
    return by_key


def cell(table: str, row: str, column: str = "Avg.") -> dict:
    """Find a cell.

    Raises:
        BadInput: names the first of table, row and column that does not exist.
    """
    tables = {key[0] for key in cells()}
    if table not in tables:
        raise unknown("table", table, tables)
    rows = {key[1] for key in cells() if key[0] == table}
    if row not in rows:
        raise unknown("row", row, rows)
    columns = {key[2] for key in cells() if key[:2] == (table, row)}
    if column not in columns:
        raise unknown("column", column, columns)
    return cells()[table, row, column]


def text(table: str, row: str, column: str = "Avg.") -> str:
    """Write a cell as its page does: `54.58 ± 0.04`, with † for an older code version."""
    values = cell(table, row, column)
    score = values["text"] or "–"
    return f"{score}{OLD}" if values["outdated"] == "True" else score


def mean(table: str, row: str, column: str = "Avg.") -> float:
    """Give the mean of our seeds, in the unit of the printed value."""
    return _number(cell(table, row, column), "ours")


def score_columns(table: str) -> tuple[str, ...]:
    """List the columns of a table without those of differences (`Δ`)."""
    columns = dict.fromkeys(key[2] for key in cells() if key[0] == table)
    return tuple(column for column in columns if not column.startswith("Δ"))


def tested() -> list[dict]:
    """Read the comparisons of results/mini/comparisons.csv that were tested."""
    return [row for row in _rows(MINI / "comparisons.csv") if row["p"]]


def matched() -> str:
    """Count the tested comparisons whose rows differ in no other setting: `231 of 240`."""
    count = sum(not row["differs"] for row in tested())
    return f"{count} of {len(tested())}"


def floor(share: float) -> float:
    """Compute the smallest difference that unlimited seeds would detect in a share of the pairs.

    It follows from the errors over the test items of the STS average, which seeds do not reduce.
    """
    of_average = [row for row in tested() if is_sts_average(row)]
    percentiles = quantiles(item_errors(of_average), n=100, method="inclusive")
    return noncentrality(inf) * percentiles[round(100 * share) - 1]


def is_sts_average(comparison: dict) -> bool:
    """Whether a comparison is about the average of the STS sets, not of the transfer tasks."""
    if not comparison["columns"].startswith(("Avg", "STS(Avg")):
        return False
    table_name = f"{comparison['paper']}/{comparison['table']}"
    if comparison["table"] == comparison["paper"]:
        table_name = comparison["table"]
    return cell(table_name, comparison["row"], comparison["columns"])["evaluator"] == "sts"


def item_error() -> float:
    """Give the median error of a comparison over test items, in points."""
    return median(item_errors(tested()))


def item_errors(rows: list[dict]) -> list[float]:
    """List the errors over test items of the comparisons that have one."""
    return [float(row["item_se"]) for row in rows if row["item_se"]]


def table(name: str, *columns: str, label: str = "Model") -> str:
    """Write a table in Markdown with all its rows.

    Args:
        columns: labels of columns. By default all columns of scores, without differences.
        label: the head of the first column, which names the rows.
    """
    rows = list(dict.fromkeys(key[1] for key in cells() if key[0] == name))
    columns = columns or score_columns(name)
    lines = [[label, *columns], ["---"] * (len(columns) + 1)]
    for row in rows:
        lines.append([row, *(text(name, row, column) for column in columns)])
    markdown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if OLD in markdown:
        markdown += f"\n\n{OLD} scored with an older code version."
    return f"\n\n{markdown}\n\n"


# ---------------------------------------------------------------- others' runs


@cache
def sweep(method: str, encoder: str) -> list[dict]:
    """Read the seeds of a method on an encoder that others ran, from results/evidence.csv.

    Raises:
        BadInput: if there is no such seed sweep.
    """
    sweeps: dict[str, list[dict]] = {}  # by method and encoder
    for row in _rows(EVIDENCE):
        if row["group"] == "seed sweep":
            sweeps.setdefault(f"{row['method']}, {row['encoder']}", []).append(row)
    return look_up("seed sweep", f"{method}, {encoder}", sweeps)


def others(method: str, encoder: str) -> str:
    """Write mean and deviation of others' seeds: `75.11 ± 0.84`."""
    scores = [float(row["score"]) for row in sweep(method, encoder)]
    return f"{average(scores):.2f} ± {stdev(scores):.2f}"


def reached(method: str, encoder: str) -> int:
    """Count others' seeds that reach the printed value, both rounded as printed."""
    seeds = sweep(method, encoder)
    return sum(round(float(row["score"]), 2) >= float(row["printed"]) for row in seeds)


@cache
def selection(method: str, encoder: str, count: int) -> SelectionGain:
    """Compute what the best of `count` seeds adds in others' sweep of a method on an encoder."""
    by_title = {key_title(sweep.key): sweep for sweep in seed_sweeps()}
    title = f"{method}, {encoder}"
    selected = selection_of(look_up("seed sweep", title, by_title), (count,))
    if selected is None or not selected.gains:
        raise BadInput(f"{title}: no scores on dev of {count} seeds")
    return selected.gains[0]


def best_of(method: str, encoder: str, count: int) -> str:
    """Write what the best of `count` seeds on dev is expected to score on test: `76.02`."""
    scores = [float(row["score"]) for row in sweep(method, encoder)]
    return f"{average(scores) + selection(method, encoder, count).by_dev:.2f}"


@cache
def pooled(method: str, encoder: str) -> PooledMethod:
    """Find the pooled runs of a method on an encoder."""
    by_title = {key_title(found.key): found for found in pooled_methods()}
    return look_up("pooled method", f"{method}, {encoder}", by_title)


def new_run_range(method: str, encoder: str) -> str:
    """Write the range of one run of a new source, over all sources: `73.27 to 77.27`."""
    new_run = pooled(method, encoder).runs.effects.new_source_range(LEVEL)
    return outward_range(new_run.low, new_run.high)


def picked_to_reach(method: str, encoder: str, by_dev: bool) -> int:
    """Give the smallest number of runs whose best is expected to reach the printed value."""
    found = pooled(method, encoder)
    scores = best_scores(found)
    if scores is None:
        raise BadInput(f"{method}, {encoder}: no seed sweep with scores on dev")
    count = runs_to_reach(found.printed.value, scores.by_dev if by_dev else scores.by_test)
    if count is None:
        raise BadInput(f"{method}, {encoder}: no such best is expected to reach the printed value")
    return count


# ---------------------------------------------------------------- what the papers print


@cache
def judged_sentences() -> list[Judged]:
    """Judge every sentence of the papers. The verdicts on printed numbers fit every scale."""
    return judge_all(DEFAULT_SCALE, paper_names())


def sentences() -> int:
    """Count the sentences of the papers that are judged."""
    return len(judged_sentences())


def claim_verdicts() -> str:
    """Count the sentences by verdict on printed numbers, as ranges over the assumed deviations."""
    return verdict_counts(judged_sentences())


def claim_verdict(paper: str, beginning: str) -> str:
    """Give the verdict on a sentence by printed numbers, with its p: `supported (p = 0.032)`.

    Args:
        beginning: of the sentence.
    """
    found = []
    for row in _rows(MINI / "claims.csv"):
        if row["paper"] == paper and row["claim"].startswith(beginning):
            found.append(row)
    if len(found) != 1:
        raise BadInput(f"{paper}: {len(found)} sentences begin with {beginning!r}")
    (row,) = found
    p = re.search(r"p = [\d.e-]+\d", row["detail"])
    return f"{row['printed']} ({p[0]})" if p else row["printed"]


def deviation_texts() -> str:
    """List the deviations over seeds at which claims are judged: `0.84, 0.5 and 0.35`."""
    *larger, smallest = [f"{deviation:.2g}" for deviation in deviations()]
    return f"{', '.join(larger)} and {smallest}"


def inconsistencies() -> str:
    """Count the inconsistencies in print: `84: 1 serious, 42 notable, 41 minor`."""
    return f"{len(findings())}: {severity_counts(findings())}"


# ---------------------------------------------------------------- texts


FUNCTIONS = (
    cell,
    text,
    mean,
    matched,
    floor,
    item_error,
    table,
    sweep,
    others,
    reached,
    best_of,
    pooled,
    new_run_range,
    picked_to_reach,
    sentences,
    claim_verdicts,
    claim_verdict,
    deviation_texts,
    inconsistencies,
)
NAMES = {"__builtins__": BUILTINS} | {function.__name__: function for function in FUNCTIONS}


def main(arguments: list[str]) -> int:
    """Fill the texts, or with `--check` name the stale ones.

    Returns:
        The exit code: 1 if a checked text is stale, 2 if an expression is invalid.
    """
    is_check = "--check" in arguments
    stale = []
    try:
        for path in texts():
            content = read_text(path)
            file = str(path.relative_to(ROOT))
            filled = fill(content, file)
            if filled == content:
                continue
            stale.append(file)
            if not is_check:
                write_text(path, filled)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    if is_check and stale:
        remedy = "run `python docs/quoted_numbers.py`."
        print(f"stale numbers in {', '.join(stale)}: {remedy}", file=sys.stderr)
        return 1
    return 0


def texts() -> list[Path]:
    """List the files with quoted numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def fill(content: str, file: str) -> str:
    """Give a text with its numbers as they are now.

    Args:
        file: the name of the text, for messages.

    Raises:
        BadInput: for an invalid expression, with file and line.
    """
    if content.count("<!-- n:") != len(QUOTE.findall(content)):
        raise BadInput(f"{file}: a `<!-- n: … -->` has no `<!-- /n -->` after it.")

    def place(match: re.Match) -> str:
        number = content[: match.start()].count("\n") + 1
        return f"{file}: line {number}"

    def filled(match: re.Match) -> str:
        expression = match[1]
        try:
            value = eval(expression, NAMES)
        except Exception as error:
            raise BadInput(f"{place(match)}: {expression}: {first_line(error)}.") from None
        number = f"{value:.2f}" if isinstance(value, float) else str(value)
        return f"<!-- n: {expression} -->{number}<!-- /n -->"

    at_line_start = re.search(r"^[ *>-]*<!-- n: .*?-->\S", content, re.MULTILINE)
    if at_line_start:
        problem = "begins with a comment, which ends the paragraph; put a word before it."
        raise BadInput(f"{place(at_line_start)}: {problem}")
    return QUOTE.sub(filled, content)


def _rows(path: Path) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(cell: dict, key: str) -> float:
    if not cell[key]:
        raise BadInput(f"{cell['row']}, {cell['column']}: no {key}")
    return float(cell[key])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
