"""Error rates of verdicts, of the judgement of claims and of the audit, by simulation: the truth is
known, the judge is not told.

Verdicts: our values and the published ones are drawn from distributions whose means are 0, 1, 2 or
4 deviations apart. With equal means every verdict but `reproduced` is a false alarm; 5 % are
intended.

Claims: scores of a row and of others are drawn around true means, printed with two digits or taken
as runs, and judged as claims of papers/*.yaml are. A *borderline* truth is one at which nothing
should be significant: equal means, or a difference exactly at the stated limit. A false alarm is a
significant verdict that the truth does not support; a miss is a true or false sentence without the
significant verdict that it deserves.

Audit: made-up papers with planted misprints and wrong sentences, and clean ones.

    python benchmarks/judge.py [--draws 1000] [--tables 200] [--quick]
"""

import argparse
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

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
from csebench.report.numbers.cells import printed_view
from csebench.report.numbers.claims import (
    Direction,
    Significance,
    StatedSize,
    judge_row,
    judge_sentence,
)
from csebench.report.numbers.contrasts import contrast_printed, contrast_runs, pair_cells
from csebench.report.numbers.others import Spread

SEED = 0
DEVIATION = 0.84  # of a run over seeds, in points: that of SimCSE on BERT-base
SWEEP = 50  # seeds behind the spread of a single printed run
FAR = 4  # deviations between the means of a true or false sentence
OTHERS = ["A", "B", "C", "D"]
HOLDS, FAILS = "shown to hold", "shown to fail"
ITEMS = {"TREC": 500, "MRPC": 1725, "SST": 1821}


@contextmanager
def project(*papers):
    """A checkout with these papers alone, and no evidence; what is set in it is undone at its
    end."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tests")
        from made_up import made_up

        made_up(Path(folder), patch, *papers)
        patch.setattr(printed_spread, "seed_spread", printed_spread.seed_spread)
        yield
    caches.clear()


def table(rows, columns=("Avg.",), **more):
    """Of rows {label: printed values}; nothing is run."""
    made = [
        {"label": k, "missing": "made up", "source": "measured", "values": list(v)}
        for k, v in rows.items()
    ]
    return {
        "title": "Made up",
        "columns": [{"label": c, "task": c} for c in columns],
        "rows": made,
    } | more


# ---------------------------------------------------------------- verdicts

VERDICTS = (stats.REPRODUCED, stats.CLOSE, stats.LOWER, stats.HIGHER)
PUBLISHED = {"one run": 1, "mean ± std of 5": 5}
SPREADS = {  # of deviation 1
    "normal": lambda rng, size: rng.standard_normal(size),
    "t, 3 df": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
}


def published(runs):
    """One run, or the mean of several with their deviation, with two digits."""
    value = round(float(runs.mean()), 2)
    std = round(float(runs.std(ddof=1)), 2) if len(runs) > 1 else None
    return Published(value=value, std=std, text=f"{value:.2f}")


def judge_values(draws):
    """[deviations between the means, published as, spread, our seeds, fraction of each verdict]."""
    rng, rows = np.random.default_rng(SEED), []
    for off, (kind, theirs), spread, ours in product(
        (0, 1, 2, 4), PUBLISHED.items(), SPREADS, (3, 5, 10)
    ):
        runs = 78 + 0.5 * SPREADS[spread](rng, (draws, ours + theirs))
        runs[:, ours:] += 0.5 * off
        names = [stats.verdict(draw[:ours], published(draw[ours:]), theirs).name for draw in runs]
        rows.append([off, kind, spread, ours, *(names.count(name) / draws for name in VERDICTS)])
    return rows


# ---------------------------------------------------------------- claims

# name, claim, true differences of our mean to the others' (in points), the significant verdict that
# is right, or None
ONE, ALL = {"versus": ["A"]}, {"versus": OTHERS}
COMPARABLE, LIMIT = {"relation": "comparable"}, {"relation": "comparable", "less_than": "1.0"}
GAP = FAR * DEVIATION
SENTENCES = [
    ("above one: true", ONE, [GAP], HOLDS),
    ("above one: false", ONE, [-GAP], FAILS),
    ("above one: borderline", ONE, [0], None),
    ("above all four: true", ALL, [GAP] * 4, HOLDS),
    ("above all four: false of one", ALL, [GAP, GAP, GAP, -GAP], FAILS),
    ("above all four: borderline of one", ALL, [GAP, GAP, GAP, 0], None),
    ("above all four: borderline", ALL, [0] * 4, None),
    ("up to, largest of four: true of one", ALL | {"up_to": "3"}, [0, 0, 0, GAP], HOLDS),
    ("up to, largest of four: borderline", ALL | {"up_to": "3"}, [0] * 4, None),
    ("comparable: false", ONE | COMPARABLE, [GAP], FAILS),
    ("comparable: true", ONE | COMPARABLE, [0], None),
    ("comparable to four: true", ALL | COMPARABLE, [0] * 4, None),
    ("less than 1.0: false", ONE | LIMIT, [1 + GAP], FAILS),
    ("less than 1.0: borderline", ONE | LIMIT, [1], None),
    ("less than 1.0: true", ONE | LIMIT, [0], HOLDS),
    ("on par or better: false", ONE | {"relation": "not worse"}, [-GAP], FAILS),
    ("on par or better: borderline", ONE | {"relation": "not worse"}, [0], None),
]
SOURCES = {"print, one run": (1, True), "print, mean ± std of 5": (5, True)}
SOURCES |= {f"ours, {n} seeds": (n, False) for n in (3, 5, 10)}


def view_of(base, runs, printed):
    """The made-up table with a draw of runs (rows, seeds) as its printed values, or as ours."""
    rows = []
    for (cell,), row in zip(base.rows, runs, strict=True):
        if printed:
            rows.append([replace(cell, published=published(row), published_seeds=len(row))])
        else:
            rows.append([replace(cell, values=dict(enumerate(map(float, row))))])
    return replace(base, rows=rows)


def judge(view, claim, printed):
    pairings = pair_cells(claim, view, view)
    if printed:
        contrasts = [contrast_printed(claim, pairing) for pairing in pairings]
    else:
        contrasts = [contrast_runs(claim, pairing, view.scale) for pairing in pairings]
    return judge_row(claim, contrasts, 2)


def outcome(judgement):
    """What a test shows of a claim, if anything."""
    if judgement.significance != Significance.YES:
        return None
    return HOLDS if judgement.direction == Direction.AGREES else FAILS


def draw(rng, base, differences, seeds, printed):
    """A view of one draw, and the spread that a sweep of this draw shows."""
    means = 75 - np.array([0, *differences, *[0] * (len(OTHERS) - len(differences))])
    runs = means[:, None] + DEVIATION * rng.standard_normal((len(means), seeds))
    spread = Spread(float(rng.normal(0, DEVIATION, SWEEP).std(ddof=1)), SWEEP, "simcse", "made up")
    printed_spread.seed_spread = lambda *_: spread
    return view_of(base, runs, printed)


def claim_of(**more):
    return Claim(quote="x", section="1", table="1", row="Ours", columns=["Avg."], **more)


def judge_claims(draws):
    """[sentence, judged on, n, right, false alarms, misses] with fractions of n."""
    rng, rows = np.random.default_rng(SEED), []
    with project(
        {"name": "made_up", "tables": {"1": table({label: [None] for label in ["Ours", *OTHERS]})}}
    ):
        base = printed_view("made_up", "table1", "smoke")

        def judged(given, differences, seeds, printed):
            return judge(draw(rng, base, differences, seeds, printed), claim_of(**given), printed)

        for name, given, differences, right in bar(SENTENCES, "judging", "sentence"):
            for source, drawn in SOURCES.items():
                verdicts = [outcome(judged(given, differences, *drawn)) for _ in range(draws)]
                rows.append([name, source, draws, *rates(verdicts, right)])
        for source, drawn in SOURCES.items():
            sentences = ([judged(ONE, [0], *drawn) for _ in range(4)] for _ in range(draws))
            verdicts = [outcome(judge_sentence(rows_of_one)) for rows_of_one in sentences]
            rows.append(
                ["a sentence over four rows: borderline", source, draws, *rates(verdicts, None)]
            )
        rows += [["size stated: right", *SIZES, draws, *sizes(rng, base, draws, 0.0)]]
        rows += [["size stated: off by 0.05", *SIZES, draws, *sizes(rng, base, draws, 0.05)]]
    return rows


def rates(verdicts, right):
    """(right, false alarms, misses); a borderline truth has nothing to miss."""
    alarms = sum(v is not None and v != right for v in verdicts) / len(verdicts)
    if right is None:
        return None, alarms, None
    hits = verdicts.count(right) / len(verdicts)
    return hits, alarms, 1 - hits


SIZES = ("print, one run",)


def sizes(rng, base, draws, off):
    """The same for the stated size of a difference, which authors compute before they round its
    two values."""
    said = []
    for _ in range(draws):
        ours, theirs = rng.uniform(70, 80, 2)
        if abs(ours - theirs) < 0.1:
            theirs = ours - 0.1
        claim = claim_of(**ONE, by=f"{ours - theirs + off:.2f}")
        view = view_of(base, np.array([[ours], *[[theirs]] * len(OTHERS)]), True)
        said.append(judge(view, claim, True).size)
    if off:
        return said.count(StatedSize.OTHER) / draws, 0.0, said.count(StatedSize.AS_STATED) / draws
    return said.count(StatedSize.AS_STATED) / draws, said.count(StatedSize.OTHER) / draws, None


# ---------------------------------------------------------------- audit


def score_rows(rng, labels):
    """Rows of seven STS scores with two digits, and their average computed before rounding."""
    rows = {}
    for label in labels:
        values = rng.uniform(60, 85, 7)
        rows[label] = [f"{v:.2f}" for v in (*values, values.mean())]
    return rows


def change_digit(rng, text):
    """One digit before or after the point replaced by another."""
    place = int(rng.choice([i for i, c in enumerate(text) if c != "." and i]))
    return (
        text[:place] + str((int(text[place]) + int(rng.integers(1, 10))) % 10) + text[place + 1 :]
    )


def swap_digits(rng, text):
    """The two digits before or after the point exchanged."""
    pairs = [(a, b) for a, b in ((0, 1), (3, 4)) if text[a] != text[b]]
    if not pairs:
        return change_digit(rng, text)
    a, b = pairs[int(rng.integers(len(pairs)))]
    digits = list(text)
    digits[a], digits[b] = digits[b], digits[a]
    return "".join(digits)


def sts_table(rng, misprint=None):
    """A paper of one table; with `misprint` one cell is misprinted."""
    labels = ["Ours", "Theirs", "Others"]
    rows = score_rows(rng, labels)
    if misprint is not None:
        cells = rows[str(rng.choice(labels))]
        column = int(rng.integers(7))
        cells[column] = misprint(rng, cells[column])
    return [{"tables": {"1": table(rows, STS_COLUMNS)}}]


def average_of_another(rng):
    (paper,) = sts_table(rng)
    first, second, _ = paper["tables"]["1"]["rows"]
    first["values"][-1] = second["values"][-1]
    return [paper]


def accuracy(rng, task, possible):
    """An accuracy: of a count of items, or any number with two digits."""
    correct = int(rng.integers(ITEMS[task] // 2, ITEMS[task]))
    value = 100 * correct / ITEMS[task] if possible else rng.uniform(50, 100)
    return [{"tables": {"1": table({"Ours": [f"{value:.2f}"]}, (task,), evaluator="transfer")}}]


def repeated(rng, sources, change=True):
    """One setting in two tables of a paper; with `change` one digit of it differs."""
    value, tables = f"{rng.uniform(60, 85):.2f}", {}
    for number, source in zip("12", sources, strict=True):
        printed = change_digit(rng, value) if change and number == "2" else value
        tables[number] = table({"Ours": [printed]}, ("STS-B",))
        row = {"run": {"method": "simcse"}, "missing": None, "source": source}
        tables[number]["rows"][0] |= row | ({"from": "others"} if source == "copied" else {})
    return [{"tables": tables}]


def copied(rng, change):
    """A row that a second paper copies; with `change` one digit of a test set differs."""
    (cells,) = score_rows(rng, ["Ours"]).values()
    copy = list(cells)
    if change:
        column = int(rng.integers(7))
        copy[column] = change_digit(rng, copy[column])
    return [{"tables": {"1": table({"Ours": row}, STS_COLUMNS)}} for row in (cells, copy)]


def sentence(rng, wrong):
    """A paper whose text says a difference of two averages: the printed one, another size, or
    the other way."""
    (paper,) = sts_table(rng)
    best, second, _ = sorted(
        paper["tables"]["1"]["rows"], key=lambda row: -float(row["values"][-1])
    )
    gap = float(best["values"][-1]) - float(second["values"][-1]) + (0.1 if wrong == "size" else 0)
    row, versus = (second, best) if wrong == "direction" else (best, second)
    said = {
        "quote": "better",
        "section": "1",
        "table": "1",
        "row": row["label"],
        "versus": [versus["label"]],
    }
    said |= {"columns": ["Avg."]} | ({} if wrong == "direction" else {"by": f"{gap:.2f}"})
    return [paper | {"claims": [said]}]


# what, how its papers are made, and the kind of the finding that each should have; None: it is
# clean
PLANTED = [
    ("clean tables", (sts_table,), None),
    ("clean sentences", (sentence, None), None),
    ("clean accuracies", (accuracy, "TREC", True), None),
    ("clean copies", (copied, False), None),
    ("a copied value and a re-run", (repeated, ("copied", "rerun")), None),
    ("one digit of a score", (sts_table, change_digit), FindingKind.WRONG_SUM),
    ("two digits exchanged", (sts_table, swap_digits), FindingKind.WRONG_SUM),
    ("the average of another row", (average_of_another,), FindingKind.WRONG_SUM),
    *(
        (f"any two digits, {t} of {n} items", (accuracy, t, False), FindingKind.IMPOSSIBLE)
        for t, n in ITEMS.items()
    ),
    ("a setting with two values", (repeated, ("measured", "rerun")), FindingKind.INCONSISTENT),
    ("one digit of a copied row", (copied, True), FindingKind.NEAR_DUPLICATE),
    ("a sentence with another size", (sentence, "size"), FindingKind.SENTENCE),
    ("a sentence the other way", (sentence, "direction"), FindingKind.SENTENCE),
]


def judge_audit(count):
    """[planted, expected kind, papers, fraction with that finding, missed, other findings a
    paper]."""
    rng, rows = np.random.default_rng(SEED), []
    for what, (make, *given), kind in bar(PLANTED, "auditing", "misprint"):
        papers = []
        while len(papers) < count:
            papers += make(rng, *given)
        with project(*({"name": f"paper{number}", **paper} for number, paper in enumerate(papers))):
            found = findings()
        expected = {paper for f in found if f.kind == kind for paper in f.papers}
        # a changed digit of a copied row is a wrong sum as well
        related = {FindingKind.NEAR_DUPLICATE: {FindingKind.WRONG_SUM}}.get(kind, set())
        others = [f for f in found if f.kind != kind and f.kind not in related]
        hits = len(expected) / len(papers)
        rates = (None, None) if kind is None else (hits, 1 - hits)
        rows.append([what, kind or "none", len(papers), *rates, len(others) / len(papers)])
    return rows


def main():
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
    draws, count = (20, 4) if args.quick else (args.draws, args.tables)
    started = time.perf_counter()
    rows = judge_values(10 * draws)
    head = ["deviations off", "published", "spread", "seeds", *VERDICTS]
    print(tabulate(rows, head, floatfmt=".3f"))
    alarms = [1 - row[4] for row in rows if row[0] == 0]
    print(f"\nfalse alarms: {min(alarms):.3f} to {max(alarms):.3f}, 0.05 are intended\n")

    rows = judge_claims(draws)
    print(
        f"Claims: a run's deviation is {DEVIATION}; true and false sentences are {FAR} of them"
        " apart; level 0.05\n"
    )
    print(
        tabulate(
            rows, ["sentence", "judged on", "n", "right", "false alarms", "misses"], floatfmt=".3f"
        )
    )
    alarms = [row[4] for row in rows if row[0] != "size stated: off by 0.05"]
    print(f"\nfalse alarms: {min(alarms):.3f} to {max(alarms):.3f}", end="; ")
    print(
        f"one standard error is at most {0.5 / draws**0.5:.3f}, at 0.05"
        f" {(0.05 * 0.95 / draws) ** 0.5:.4f}\n"
    )

    rows = judge_audit(count)
    print("Audit: made-up papers with one misprint or wrong sentence each\n")
    head = ["planted", "expected", "n", "found", "missed", "false findings a paper"]
    print(tabulate(rows, head, floatfmt=".3f"))
    print(f"\nseed {SEED}, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
