"""The tables of the page on others' runs, as texts of cells.

The numbers come from csebench/report/evidence.py, the sentences are in evidence_words.py.
"""

from __future__ import annotations

import numpy as np

from csebench.plan import evidence
from csebench.plan.catalog import paper
from csebench.plan.evidence import AVERAGE, DEV, TRANSFER, Checkpoint, Key
from csebench.report import stats
from csebench.report.evidence import (
    PICKED_FROM,
    SWEEP,
    UNTRAINED,
    Print,
    average,
    checkpoints_of,
    groups,
    printed_by_authors,
    scored_by_others,
    selection,
    sweeps,
)
from csebench.report.evidence_words import WITHIN, encoder_title, method_title, signed, title, value_text
from csebench.report.pages.page import Table as TableData
from csebench.report.pages.table import SIGNS

KINDS = {
    "retrained": "trained again by others",
    "paper": "re-run in a later paper",
    "checkpoint": "released checkpoint scored by others",
    "authors": "given by the authors outside their paper",
    "untrained": "model without training",
}


HEAD = [
    "method, encoder",
    "printed",
    "others' runs",
    "n",
    "mean ± sd",
    "min to max",
    "z",
    "reach print",
    "verdict",
    "released checkpoint",
]


def table_rows(key: Key) -> list[list[str]]:
    """A row for every group of runs of a method on an encoder."""
    value, rows = printed_by_authors(key), []
    for runs in groups(key):
        s, z, reach, verdict = runs.summary, "", "", ""
        if value is not None:
            z = f"{(value.value.value - s.mean) / s.std:+.2f}" if s.std else ""
            reach = f"{runs.reach(value.value.value)} of {s.n}" if runs.values else ""
            verdict = verdict_text(stats.verdict_on(s, value.value, value.seeds))
        first = not rows
        rows.append(
            [
                title(key) if first else "",
                print_text(value) if first else "",
                f"{runs.kind}, {runs.sources[0] if len(runs.sources) == 1 else f'{len(runs.sources)} sources'}",
                str(s.n),
                f"{s.mean:.2f}" + ("" if s.std is None else f" ± {s.std:.2f}"),
                f"{min(runs.values):.2f} to {max(runs.values):.2f}" if len(runs.values) > 1 else "",
                z,
                reach,
                verdict,
                checkpoint_text(key) if first else "",
            ]
        )
    return rows


def print_text(value: Print | None) -> str:
    if value is None:
        return "–"
    return f"{value_text(value.value)} ({'; '.join([value.where, *value.others])})"


def verdict_text(verdict: stats.Verdict) -> str:
    """`✓ printed value within their spread, ±1.72`, or why there is none."""
    if verdict.half_width is None:
        return f"{SIGNS[stats.TOO_FEW]} {verdict.reason}"
    return f"{SIGNS[verdict.name]} {WITHIN[verdict.name]}, ±{verdict.half_width:.2f}"


def checkpoint_text(key: Key) -> str:
    stated = [value_text(c.stated[AVERAGE]) if AVERAGE in c.stated else "no score stated" for c in checkpoints_of(key)]
    return "; ".join(stated) or "–"


def task_table() -> TableData:
    tasks = [*evidence.tasks()[AVERAGE], AVERAGE]
    rows = []
    for key, _, _ in sweeps():
        row = [title(key)]
        for task in tasks:
            value, runs = printed_by_authors(key, task), next((g for g in groups(key, task) if g.kind == SWEEP), None)
            if value is None or runs is None:
                row.append("–")
            else:
                row.append(f"{runs.reach(value.value.value)} of {runs.summary.n}")
        rows.append(row)
    return TableData(["", *tasks], rows)


def selection_parts() -> list[str | TableData]:
    """What reporting the best of k seeds adds: a table, and what the best of all seeds scores."""
    rows, lines = [], []
    for key, runs, value in sweeps():
        picked = selection(runs, value.value.value)
        if picked is None:
            continue
        mean = runs.summary.mean
        cells = [
            f"{signed(picked.by_dev[k] - mean)} / {signed(picked.by_test[k] - mean)} ({100 * picked.reach[k]:.0f} %)"
            if k <= picked.n
            else "–"
            for k in PICKED_FROM
        ]
        rows.append([title(key), f"{picked.correlation:.3f}", f"{mean:.2f}", *cells])
        test = np.array(runs.values)
        dev = [run.scores[DEV[0]].value for _, run in runs.runs]
        lines.append(
            f"- {title(key)}: of all {picked.n} seeds, the best on dev scores {test[int(np.argmax(dev))]:.2f} on test,"
            f" the best on test {test.max():.2f}."
        )
    return [
        "A cell has what the best of k seeds adds to the mean when STS-B dev picks it / when the test sets themselves"
        " pick it: exact, over all subsets of the seeds. In brackets: the chance that the one picked by dev reaches"
        " the printed value. STS-B test is one of the seven test sets.",
        TableData(["", "correlation of dev and test", "mean", *(f"best of {k}" for k in PICKED_FROM)], rows),
        "\n".join(lines),
    ]


def checkpoint_table() -> TableData:
    head = ["method", "checkpoint", "pooler", "printed", "stated", "off", "stated, transfer", "scored by others"]
    rows = []
    for c in evidence.checkpoints():
        value, stated = (None if c.setting else printed_by_authors(evidence.key_of(c))), c.stated.get(AVERAGE)
        off = "" if value is None or stated is None else signed(stated.value - value.value.value)
        rows.append(
            [
                method_title(c) + (f" ({c.setting})" if c.setting else ""),
                f"[{c.hub}](https://huggingface.co/{c.hub})",
                "; ".join(filter(None, (c.pooler, c.note))),
                "–" if value is None else value_text(value.value),
                "–" if stated is None else value_text(stated),
                off,
                value_text(c.stated[TRANSFER]) if TRANSFER in c.stated else "–",
                others_text(c),
            ]
        )
    return TableData(head, rows)


def others_text(checkpoint: Checkpoint) -> str:
    """`76.25 (Ja1Zhou); 76.29 (gs25058: …)`, with what differs where the protocol does."""
    names: dict[str, dict[str, None]] = {}
    for e, run in scored_by_others(checkpoint):
        reason = None if e.experiment.comparable else e.experiment.setup.differs
        names.setdefault(average(run) or "", {})[e.name + (f": {reason}" if reason else "")] = None
    return "; ".join(f"{score} ({'; '.join(by)})" for score, by in names.items()) or "–"


def untrained_table() -> TableData:
    rows = [
        [encoder_title(x), x.setting or x.pooler or "", score, e.name, e.setup.differs or ""]
        for e in evidence.all_evidence()
        if (x := e.experiment).method == UNTRAINED and x.sure
        for run in x.runs
        if (score := average(run)) is not None
    ]
    return TableData(["encoder", "pooling", "Avg.", "source", "what differs"], sorted(rows))


def source_table() -> TableData:
    rows = []
    for name, source in evidence.sources().items():
        if source.paper:
            where = f"{paper(source.paper).label}, {tables_text(source.tables)}"
        else:
            where = f"[{source.repository}]({source.url}) " + (source.path or f"#{source.thread}")
        kinds = ", ".join(dict.fromkeys(KINDS[e.kind] for e in source.experiments))
        count = sum(len(e.runs) or (e.summary.n if e.summary else 0) for e in source.experiments)
        scores = f"{count}: {kinds}" if count else "remarks"
        rows.append([name, source.who, where, source.licence or "", source.date, scores])
    return TableData(["source", "who", "where", "licence", "date", "scores"], rows)


def tables_text(keys: list[str]) -> str:
    """`Table 2`, `Tables 1, 2 and 7`"""
    *others, last = keys
    return f"Tables {', '.join(others)} and {last}" if others else f"Table {last}"
