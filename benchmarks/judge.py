"""Error rates of verdicts, of the judgement of claims and of the audit, by simulation.

The truth of each simulated case is known, and the judge is not told.

Verdicts: our values and the published ones are drawn from distributions whose means are 0, 1, 2 or
4 deviations apart. With equal means every verdict except `agrees` and `inconclusive` is a false
alarm; 5 % are intended. Values that are far apart should not agree.

Claims: scores of a row and of others are drawn around true means, printed with two digits or taken
as runs, and judged as claims of papers/*.yaml are. A *borderline* truth is one at which nothing
should be significant: equal means, or a difference exactly at the stated limit. A false alarm is a
significant verdict that the truth does not support. A miss is a true or false sentence without the
significant verdict that it deserves.

Audit: made-up papers with planted misprints and wrong sentences, and clean ones.

    python benchmarks/judge.py [--draws 1000] [--tables 200] [--quick]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tabulate import tabulate

from csebench.base import caches
from csebench.base.project import ROOT
from csebench.base.terminal import bar
from csebench.plan.catalog.files import STS_COLUMNS
from csebench.plan.schema.paper import Claim, Published
from csebench.report.numbers import printed_spread, stats
from csebench.report.numbers.audit import FindingKind, findings
from csebench.report.numbers.cells import GridView, printed_view
from csebench.report.numbers.claims import (
    Direction,
    Judgement,
    Significance,
    StatedSize,
    judge_row,
    judge_sentence,
)
from csebench.report.numbers.contrasts import contrast_printed, contrast_runs, pair_cells
from csebench.report.numbers.others import Spread

SEED = 0
DEVIATION = 0.84  # of a run over seeds, in points: that of SimCSE on BERT-base
SWEEP = 50  # seeds that the spread of a single printed run is estimated from
FAR = 4  # deviations between the means of a true or false sentence
OTHERS = ["A", "B", "C", "D"]
HOLDS = "shown to hold"
FAILS = "shown to fail"
ITEMS = {"TREC": 500, "MRPC": 1725, "SST": 1821}
RIGHT_SIZE = "size stated: right"
WRONG_SIZE = "size stated: off by 0.05"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=1000,
        help="per line of the claims, and a tenth of the verdicts",
    )
    parser.add_argument("--tables", type=int, default=200, help="papers per line of the audit")
    parser.add_argument("--quick", action="store_true", help="20 draws and 4 papers per line")
    args = parser.parse_args()
    if args.quick:
        args.draws = 20
        args.tables = 4
    started = time.perf_counter()
    print_verdicts(judge_values(10 * args.draws))
    print_claims(judge_claims(args.draws), args.draws)
    print_audit(judge_audit(args.tables))
    print(f"\nseed {SEED}, {time.perf_counter() - started:.0f} s")


def print_verdicts(rows: list[list]) -> None:
    head = ["deviations off", "published", "spread", "seeds", *VERDICTS]
    print(tabulate(rows, head, floatfmt=".3f"))
    alarms = [1 - row[4] - row[5] for row in rows if row[0] == 0]
    wrong = [row[4] for row in rows if row[0] == FAR]
    print(f"\nfalse alarms: {min(alarms):.3f} to {max(alarms):.3f}, 0.05 are intended")
    print(f"agrees at {FAR} deviations: at most {max(wrong):.3f}\n")


def print_claims(rows: list[list], draws: int) -> None:
    print(
        f"Claims: a run's deviation is {DEVIATION}; true and false sentences are {FAR} of them"
        " apart; level 0.05\n"
    )
    head = ["sentence", "judged on", "n", "right", "false alarms", "misses"]
    print(tabulate(rows, head, floatfmt=".3f"))
    alarms = [row[4] for row in rows if row[0] != WRONG_SIZE]
    highest_error = 0.5 / draws**0.5
    error_at_level = (0.05 * 0.95 / draws) ** 0.5
    print(
        f"\nfalse alarms: {min(alarms):.3f} to {max(alarms):.3f};"
        f" one standard error is at most {highest_error:.3f}, at 0.05 {error_at_level:.4f}\n"
    )


def print_audit(rows: list[list]) -> None:
    print("Audit: made-up papers with one misprint or wrong sentence each\n")
    head = ["planted", "expected", "n", "found", "missed", "false findings a paper"]
    print(tabulate(rows, head, floatfmt=".3f"))


# ---------------------------------------------------------------- made-up papers


@contextmanager
def project(*papers):
    """Work in a project that has only these papers, and no evidence.

    The spread of seeds may be replaced inside (`draw_view`). It is restored at the end.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tests")
        from made_up import made_up

        made_up(Path(folder), patch, *papers)
        patch.setattr(printed_spread, "seed_spread", printed_spread.seed_spread)
        yield
    caches.clear()


def table(values_of: dict, columns=("Avg.",), **settings) -> dict:
    """Make a table of a paper in which nothing is run.

    Args:
        values_of: the printed values of each row, by its label.
        settings: further keys of the table.
    """
    rows = []
    for label, values in values_of.items():
        rows.append(
            {"label": label, "missing": "made up", "source": "measured", "values": list(values)}
        )
    return {
        "title": "Made up",
        "columns": [{"label": column, "task": column} for column in columns],
        "rows": rows,
        **settings,
    }


# ---------------------------------------------------------------- verdicts


def standard_normal(rng, size) -> np.ndarray:
    return rng.standard_normal(size)


def heavy_tailed(rng, size) -> np.ndarray:
    return rng.standard_t(3, size) / np.sqrt(3)


VERDICTS = (stats.AGREES, stats.INCONCLUSIVE, stats.CLOSE, stats.LOWER, stats.HIGHER)
PUBLISHED = {"one run": 1, "mean ± std of 5": 5}  # seeds of the published value
SPREADS = {"normal": standard_normal, "t, 3 df": heavy_tailed}  # each of deviation 1


def judge_values(draws: int) -> list[list]:
    """Simulate verdicts.

    Returns:
        Rows of: deviations between the means, how the value is published, spread, our seeds, and
        the fraction of each verdict.
    """
    rng = np.random.default_rng(SEED)
    rows = []
    for deviations_off, publication, spread, our_seeds in product(
        (0, 1, 2, 4), PUBLISHED, SPREADS, (3, 5, 10)
    ):
        their_seeds = PUBLISHED[publication]
        runs = 78 + 0.5 * SPREADS[spread](rng, (draws, our_seeds + their_seeds))
        runs[:, our_seeds:] += 0.5 * deviations_off
        names = []
        for values in runs:
            printed = published(values[our_seeds:])
            names.append(stats.verdict(values[:our_seeds], printed, their_seeds).name)
        fractions = [names.count(name) / draws for name in VERDICTS]
        rows.append([deviations_off, publication, spread, our_seeds, *fractions])
    return rows


def published(runs: np.ndarray) -> Published:
    """Return the printed value of a run, or of the mean of several with their deviation."""
    value = round(float(runs.mean()), 2)
    std = None
    if len(runs) > 1:
        std = round(float(runs.std(ddof=1)), 2)
    return Published(value=value, std=std, text=f"{value:.2f}")


# ---------------------------------------------------------------- claims


class PlantedSentence(NamedTuple):
    """A claim, and what is true of it."""

    name: str
    claim: dict
    differences: list[float]  # true differences of our mean to the others', in points
    right: str | None  # the significant verdict that is right; None if the truth is borderline


class RunSource(NamedTuple):
    """The kind of scores that a claim is judged on."""

    seeds: int
    is_printed: bool  # else our runs


class Rates(NamedTuple):
    """Fractions of draws. None if the truth has no right verdict."""

    right: float | None
    false_alarms: float
    misses: float | None


ONE = {"versus": ["A"]}
ALL = {"versus": OTHERS}
LARGEST = ALL | {"up_to": "3"}
COMPARABLE = {"relation": "comparable"}
LIMIT = {"relation": "comparable", "less_than": "1.0"}
NOT_WORSE = ONE | {"relation": "not worse"}
GAP = FAR * DEVIATION
SENTENCES = [
    PlantedSentence("above one: true", ONE, [GAP], HOLDS),
    PlantedSentence("above one: false", ONE, [-GAP], FAILS),
    PlantedSentence("above one: borderline", ONE, [0], None),
    PlantedSentence("above all four: true", ALL, [GAP] * 4, HOLDS),
    PlantedSentence("above all four: false of one", ALL, [GAP, GAP, GAP, -GAP], FAILS),
    PlantedSentence("above all four: borderline of one", ALL, [GAP, GAP, GAP, 0], None),
    PlantedSentence("above all four: borderline", ALL, [0] * 4, None),
    PlantedSentence("up to, largest of four: true of one", LARGEST, [0, 0, 0, GAP], HOLDS),
    PlantedSentence("up to, largest of four: borderline", LARGEST, [0] * 4, None),
    PlantedSentence("comparable: false", ONE | COMPARABLE, [GAP], FAILS),
    PlantedSentence("comparable: true", ONE | COMPARABLE, [0], None),
    PlantedSentence("comparable to four: true", ALL | COMPARABLE, [0] * 4, None),
    PlantedSentence("less than 1.0: false", ONE | LIMIT, [1 + GAP], FAILS),
    PlantedSentence("less than 1.0: borderline", ONE | LIMIT, [1], None),
    PlantedSentence("less than 1.0: true", ONE | LIMIT, [0], HOLDS),
    PlantedSentence("on par or better: false", NOT_WORSE, [-GAP], FAILS),
    PlantedSentence("on par or better: borderline", NOT_WORSE, [0], None),
]
ONE_PRINTED_RUN = "print, one run"
SOURCES = {
    ONE_PRINTED_RUN: RunSource(1, True),
    "print, mean ± std of 5": RunSource(5, True),
    "ours, 3 seeds": RunSource(3, False),
    "ours, 5 seeds": RunSource(5, False),
    "ours, 10 seeds": RunSource(10, False),
}


def judge_claims(draws: int) -> list[list]:
    """Simulate judgements of claims.

    Returns:
        Rows of: sentence, what it is judged on, draws, and the Rates.
    """
    rng = np.random.default_rng(SEED)
    rows = []
    empty_table = table({label: [None] for label in ["Ours", *OTHERS]})
    with project({"name": "made_up", "tables": {"1": empty_table}}):
        base = printed_view("made_up", "table1", "smoke")
        for sentence in bar(SENTENCES, "judging", "sentence"):
            for source_name, source in SOURCES.items():
                outcomes = []
                for _ in range(draws):
                    judgement = judge_draw(rng, base, sentence.claim, sentence.differences, source)
                    outcomes.append(outcome(judgement))
                rates = outcome_rates(outcomes, sentence.right)
                rows.append([sentence.name, source_name, draws, *rates])

        for source_name, source in SOURCES.items():
            outcomes = []
            for _ in range(draws):
                judgements = [judge_draw(rng, base, ONE, [0], source) for _ in range(4)]
                outcomes.append(outcome(judge_sentence(judgements)))
            name = "a sentence over four rows: borderline"
            rows.append([name, source_name, draws, *outcome_rates(outcomes, None)])

        right_rates = size_rates(rng, base, draws, 0.0)
        wrong_rates = size_rates(rng, base, draws, 0.05)
        rows.append([RIGHT_SIZE, ONE_PRINTED_RUN, draws, *right_rates])
        rows.append([WRONG_SIZE, ONE_PRINTED_RUN, draws, *wrong_rates])
    return rows


def judge_draw(
    rng, base: GridView, claim: dict, differences: list[float], source: RunSource
) -> Judgement:
    """Draw scores with these true differences, and judge a claim by them."""
    view = draw_view(rng, base, differences, source)
    return judge(view, claim_of(**claim), source.is_printed)


def draw_view(rng, base: GridView, differences: list[float], source: RunSource) -> GridView:
    """Draw the scores of a table. The judge sees the spread that a sweep of this draw shows."""
    means_below_ours = [0, *differences]
    means_below_ours += [0] * (len(OTHERS) - len(differences))
    means = 75 - np.array(means_below_ours)
    runs = means[:, None] + DEVIATION * rng.standard_normal((len(means), source.seeds))
    sweep_deviation = float(rng.normal(0, DEVIATION, SWEEP).std(ddof=1))
    spread = Spread(sweep_deviation, SWEEP, "simcse", "made up")
    printed_spread.seed_spread = lambda *_: spread
    return view_of(base, runs, source.is_printed)


def view_of(base: GridView, runs: np.ndarray, is_printed: bool) -> GridView:
    """Put runs (rows, seeds) into the made-up table, as its printed values or as ours."""
    rows = []
    for (cell,), row in zip(base.rows, runs, strict=True):
        if is_printed:
            rows.append([replace(cell, published=published(row), published_seeds=len(row))])
        else:
            rows.append([replace(cell, values=dict(enumerate(map(float, row))))])
    return replace(base, rows=rows)


def claim_of(**settings) -> Claim:
    return Claim(quote="x", section="1", table="1", row="Ours", columns=["Avg."], **settings)


def judge(view: GridView, claim: Claim, is_printed: bool) -> Judgement:
    pairings = pair_cells(claim, view, view)
    if is_printed:
        contrasts = [contrast_printed(claim, pairing) for pairing in pairings]
    else:
        count = len(pairings)
        contrasts = [contrast_runs(claim, pairing, view.scale, count) for pairing in pairings]
    return judge_row(claim, contrasts, 2)


def outcome(judgement: Judgement) -> str | None:
    """Say what a test shows of a claim: HOLDS, FAILS, or None if it shows nothing."""
    if judgement.significance != Significance.YES:
        return None
    return HOLDS if judgement.direction == Direction.AGREES else FAILS


def outcome_rates(outcomes: list[str | None], right: str | None) -> Rates:
    """Count outcomes. A borderline truth has nothing to miss."""
    wrong = [shown for shown in outcomes if shown is not None and shown != right]
    alarms = len(wrong) / len(outcomes)
    if right is None:
        return Rates(None, alarms, None)
    hits = outcomes.count(right) / len(outcomes)
    return Rates(hits, alarms, 1 - hits)


def size_rates(rng, base: GridView, draws: int, off: float) -> Rates:
    """Count judgements of the stated size of a difference.

    Authors compute the difference before they round its two values.

    Args:
        off: how far the stated size is from the true one.
    """
    sizes = []
    for _ in range(draws):
        ours, theirs = rng.uniform(70, 80, 2)
        if abs(ours - theirs) < 0.1:
            theirs = ours - 0.1
        claim = claim_of(**ONE, by=f"{ours - theirs + off:.2f}")
        means = [[ours]] + [[theirs]] * len(OTHERS)
        view = view_of(base, np.array(means), True)
        sizes.append(judge(view, claim, True).size)
    as_stated = sizes.count(StatedSize.AS_STATED) / draws
    other = sizes.count(StatedSize.OTHER) / draws
    if off:
        return Rates(other, 0.0, as_stated)
    return Rates(as_stated, other, None)


# ---------------------------------------------------------------- audit


def judge_audit(count: int) -> list[list]:
    """Audit papers with planted mistakes.

    Returns:
        Rows of: what is planted, the expected kind of finding, papers, the fraction with a finding
        of that kind, the fraction without, and other findings per paper.
    """
    rng = np.random.default_rng(SEED)
    rows = []
    for planted in bar(PLANTED, "auditing", "misprint"):
        papers = []
        while len(papers) < count:
            papers += planted.make_papers(rng)
        named = [{"name": f"paper{number}", **paper} for number, paper in enumerate(papers)]
        with project(*named):
            all_findings = findings()

        papers_found = set()
        for finding in all_findings:
            if finding.kind == planted.kind:
                papers_found.update(finding.papers)
        expected_kinds = {planted.kind}
        if planted.kind == FindingKind.NEAR_DUPLICATE:
            # a changed digit of a copied row is a wrong sum as well
            expected_kinds.add(FindingKind.WRONG_SUM)
        others = [finding for finding in all_findings if finding.kind not in expected_kinds]

        found = None
        missed = None
        if planted.kind is not None:
            found = len(papers_found) / len(papers)
            missed = 1 - found
        others_per_paper = len(others) / len(papers)
        kind = planted.kind or "none"
        rows.append([planted.name, kind, len(papers), found, missed, others_per_paper])
    return rows


def sts_table(rng, misprint: Callable | None = None) -> list[dict]:
    """Make a paper of one table. With `misprint` one cell is misprinted."""
    labels = ["Ours", "Theirs", "Others"]
    rows = score_rows(rng, labels)
    if misprint is not None:
        cells = rows[str(rng.choice(labels))]
        column = int(rng.integers(7))
        cells[column] = misprint(rng, cells[column])
    return [{"tables": {"1": table(rows, STS_COLUMNS)}}]


def score_rows(rng, labels: list[str]) -> dict[str, list[str]]:
    """Make rows of seven STS scores with two digits, and their average, taken before rounding."""
    rows = {}
    for label in labels:
        values = rng.uniform(60, 85, 7)
        rows[label] = [f"{value:.2f}" for value in (*values, values.mean())]
    return rows


def change_digit(rng, text: str) -> str:
    """Replace a digit by another one. The first digit is kept."""
    places = [place for place, letter in enumerate(text) if place > 0 and letter != "."]
    place = int(rng.choice(places))
    digit = (int(text[place]) + int(rng.integers(1, 10))) % 10
    return f"{text[:place]}{digit}{text[place + 1 :]}"


def swap_digits(rng, text: str) -> str:
    """Exchange the two digits before the point, or the two after it. Equal digits are kept."""
    pairs = [(first, second) for first, second in ((0, 1), (3, 4)) if text[first] != text[second]]
    if not pairs:
        return change_digit(rng, text)
    first, second = pairs[int(rng.integers(len(pairs)))]
    digits = list(text)
    digits[first], digits[second] = digits[second], digits[first]
    return "".join(digits)


def average_of_another(rng) -> list[dict]:
    """Make a paper whose first row prints the average of its second row."""
    (paper,) = sts_table(rng)
    first, second, _ = paper["tables"]["1"]["rows"]
    first["values"][-1] = second["values"][-1]
    return [paper]


def accuracy(rng, task: str, is_possible: bool) -> list[dict]:
    """Make a paper with an accuracy: of a count of items, or any number with two digits."""
    correct = int(rng.integers(ITEMS[task] // 2, ITEMS[task]))
    value = 100 * correct / ITEMS[task]
    if not is_possible:
        value = rng.uniform(50, 100)
    return [{"tables": {"1": table({"Ours": [f"{value:.2f}"]}, (task,), evaluator="transfer")}}]


def repeated(rng, sources: tuple[str, str]) -> list[dict]:
    """Make a paper that prints one setting in two tables, with one digit changed.

    Args:
        sources: where the values of the two tables come from.
    """
    value = f"{rng.uniform(60, 85):.2f}"
    values = [value, change_digit(rng, value)]
    tables = {}
    for number, source, printed in zip("12", sources, values, strict=True):
        made = table({"Ours": [printed]}, ("STS-B",))
        row = made["rows"][0]
        row |= {"run": {"method": "simcse"}, "missing": None, "source": source}
        if source == "copied":
            row["from"] = "others"
        tables[number] = made
    return [{"tables": tables}]


def copied(rng, has_misprint: bool) -> list[dict]:
    """Make a paper, and another that copies its row. A misprint changes one digit of a test set."""
    (cells,) = score_rows(rng, ["Ours"]).values()
    copy = list(cells)
    if has_misprint:
        column = int(rng.integers(7))
        copy[column] = change_digit(rng, copy[column])
    return [{"tables": {"1": table({"Ours": row}, STS_COLUMNS)}} for row in (cells, copy)]


def paper_with_claim(rng, mistake: str | None) -> list[dict]:
    """Make a paper whose text says a difference of two averages.

    Args:
        mistake: `size` or `direction` if the text differs in it from the table.
    """

    def average(row: dict) -> float:
        return float(row["values"][-1])

    (paper,) = sts_table(rng)
    better, worse, _ = sorted(paper["tables"]["1"]["rows"], key=average, reverse=True)
    claim = {"quote": "better", "section": "1", "table": "1", "columns": ["Avg."]}
    if mistake == "direction":
        claim |= {"row": worse["label"], "versus": [better["label"]]}
    else:
        gap = average(better) - average(worse)
        if mistake == "size":
            gap += 0.1
        claim |= {"row": better["label"], "versus": [worse["label"]], "by": f"{gap:.2f}"}
    return [paper | {"claims": [claim]}]


class PlantedMistake(NamedTuple):
    """A kind of made-up paper, and the finding that each such paper should have."""

    name: str
    make_papers: Callable
    kind: FindingKind | None  # None: the papers are clean


def any_accuracy(task: str) -> PlantedMistake:
    name = f"any two digits, {task} of {ITEMS[task]} items"
    make = partial(accuracy, task=task, is_possible=False)
    return PlantedMistake(name, make, FindingKind.IMPOSSIBLE)


PLANTED = [
    PlantedMistake("clean tables", sts_table, None),
    PlantedMistake("clean sentences", partial(paper_with_claim, mistake=None), None),
    PlantedMistake("clean accuracies", partial(accuracy, task="TREC", is_possible=True), None),
    PlantedMistake("clean copies", partial(copied, has_misprint=False), None),
    PlantedMistake(
        "a copied value and a re-run", partial(repeated, sources=("copied", "rerun")), None
    ),
    PlantedMistake(
        "one digit of a score", partial(sts_table, misprint=change_digit), FindingKind.WRONG_SUM
    ),
    PlantedMistake(
        "two digits exchanged", partial(sts_table, misprint=swap_digits), FindingKind.WRONG_SUM
    ),
    PlantedMistake("the average of another row", average_of_another, FindingKind.WRONG_SUM),
    *(any_accuracy(task) for task in ITEMS),
    PlantedMistake(
        "a setting with two values",
        partial(repeated, sources=("measured", "rerun")),
        FindingKind.INCONSISTENT,
    ),
    PlantedMistake(
        "one digit of a copied row", partial(copied, has_misprint=True), FindingKind.NEAR_DUPLICATE
    ),
    PlantedMistake(
        "a sentence with another size",
        partial(paper_with_claim, mistake="size"),
        FindingKind.SENTENCE,
    ),
    PlantedMistake(
        "a sentence the other way",
        partial(paper_with_claim, mistake="direction"),
        FindingKind.SENTENCE,
    ),
]


if __name__ == "__main__":
    main()
