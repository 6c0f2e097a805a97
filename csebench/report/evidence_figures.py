"""The figures of the page on others' runs, as SVG, PNG and CSV: runs against print, and what picking the best does.

The numbers come from csebench/report/evidence.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from csebench.plan.evidence import DEV, Key
from csebench.report.evidence import (
    LATER,
    MEAN_ONLY,
    SINGLE,
    SWEEP,
    Group,
    Print,
    Selection,
    groups,
    selection,
    sweeps,
)
from csebench.report.evidence_words import encoder_title, method_title
from csebench.score.drawing import COLOURS, STYLE, figure_files, write_files

RUNS = (
    "A dot is a run: average of the seven STS test sets, Spearman x 100. Dashed: the printed value. Bar: mean ± sd."
    " Hollow: the last checkpoint of the run was its best."
)
SELECTION = (
    "Above: a dot is a seed, its score on STS-B dev against its average of the seven STS test sets. Below: what the"
    " best of k seeds is expected to add to the mean of the test sets, when dev or when the test sets pick it."
    " Dashed: the printed value."
)
MARKS = {SWEEP: ("o", COLOURS[0], 0), SINGLE: ("s", COLOURS[5], 1.2), LATER: ("^", COLOURS[2], 2.1)}  # and place on x
BIN = 0.15  # of the score: dots within one stand side by side
PICKED = {"dev": ("o", "-", COLOURS[0]), "test": ("s", "--", COLOURS[5])}  # by which set: mark, line, colour


def draw(folder: Path) -> list[Path]:
    """Both figures; returns the files written."""
    return [*draw_runs(folder), *draw_selection(folder)]


# ---------------------------------------------------------------- runs against print


def draw_runs(folder: Path) -> list[Path]:
    """A panel per seed sweep, a dot per run, the printed value as a line."""
    import matplotlib
    from matplotlib.figure import Figure

    panels = sweeps()
    table = [["method", "encoder", "group", "source", "seed", "score", "keeps_last_step", "printed"]]
    with matplotlib.rc_context(STYLE):
        across = max(len(panels), 1)
        figure = Figure(figsize=(2.6 * across + 0.8, 4.4), layout="constrained")
        axes = figure.subplots(1, across, sharey=True, squeeze=False).flat
        for axis, (key, _, value) in zip(axes, panels, strict=False):
            table += panel(axis, key, value)
        figure.supylabel("average of the seven STS test sets (Spearman x 100)", fontsize=9)
        figure.supxlabel("hollow: the last checkpoint was the best; bar: mean ± standard deviation", fontsize=8)
        return write_files(folder / "evidence", figure_files(figure, table))


def panel(axis, key: Key, value: Print) -> list[list]:
    """One encoder's runs; returns the rows of what is drawn."""
    rows, drawn = [], [g for g in groups(key) if g.kind != MEAN_ONLY]
    for runs in drawn:
        marker, colour, x = MARKS[runs.kind]
        offsets = dodge(runs.values)
        for (e, run), score, offset in zip(runs.runs, runs.values, offsets, strict=True):
            last = run.best_step is not None and run.best_step == e.setup.steps
            axis.plot(x + offset, score, marker, ms=4, mew=0.9, mec=colour, mfc="white" if last else colour)
            names = (method_title(key), encoder_title(key), runs.kind, e.name)
            rows.append([*names, run.seed or "", score, int(last), value.value.value])
        if runs.summary.std is not None:
            bar = {"fmt": "_", "ms": 9, "color": "black", "lw": 1.2, "capsize": 3}
            axis.errorbar(x + offsets.max() + 0.2, runs.summary.mean, runs.summary.std, **bar)
    line = value.value.value
    axis.axhline(line, color="black", lw=1.2, ls="--", zorder=0)
    text = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right", "fontsize": 8}
    axis.annotate(f"printed {value.value.text}", (1, line), (0, 3), **text)
    labels = [f"{runs.kind.replace(' in ', chr(10) + 'in ')}\nn = {runs.summary.n}" for runs in drawn]
    axis.set_xticks([MARKS[runs.kind][2] for runs in drawn], labels, fontsize=7)
    axis.set_xlim(-0.6, 2.6)
    reach = f"{drawn[0].reach(line)} of {drawn[0].summary.n} seeds reach print"
    axis.set_title(f"{method_title(key)}\n{encoder_title(key)}\n{reach}")
    return rows


def dodge(scores: tuple[float, ...], width: float = 0.08) -> np.ndarray:
    """Offsets on x of dots with nearly the same score, so that they do not cover one another."""
    bins = np.floor(np.asarray(scores) / BIN)
    offsets = np.zeros(len(scores))
    for one in np.unique(bins):
        members = np.flatnonzero(bins == one)
        offsets[members] = (np.arange(len(members)) - (len(members) - 1) / 2) * width
    return offsets


# ---------------------------------------------------------------- what selection does


def draw_selection(folder: Path) -> list[Path]:
    """Two panels per seed sweep with dev scores: dev against test, and what the best of k seeds adds."""
    import matplotlib
    from matplotlib.figure import Figure

    panels = [(*sweep, picked) for sweep in sweeps() if (picked := selection(sweep[1], sweep[2].value.value))]
    table = [["method", "encoder", "seed", "dev", "test", "k", "picked_by", "adds", "correlation", "printed"]]
    with matplotlib.rc_context(STYLE):
        columns = max(len(panels), 1)
        figure = Figure(figsize=(2.6 * columns + 0.8, 5.6), layout="constrained")
        above, below = figure.subplots(2, columns, squeeze=False)
        for i, (key, runs, value, picked) in enumerate(panels):
            if i:
                above[i].sharex(above[0])
                above[i].sharey(above[0])
                below[i].sharey(below[0])
            table += seeds_panel(above[i], key, runs, value, picked)
            table += best_panel(below[i], key, runs, value, picked)
        above[0].set_ylabel("average of the seven test sets")
        below[0].set_ylabel("adds to the mean, in points")
        if panels:
            below[0].legend(loc="upper left", fontsize=7, frameon=False)
        return write_files(folder / "evidence-selection", figure_files(figure, table))


def seeds_panel(axis, key: Key, runs: Group, value: Print, picked: Selection) -> list[list]:
    """Dev against test, a dot per seed; returns the rows of what is drawn."""
    dev = [run.scores[DEV[0]].value for _, run in runs.runs]
    axis.plot(dev, runs.values, "o", ms=3, mew=0, alpha=0.7, color=COLOURS[0])
    axis.axhline(value.value.value, color="black", lw=1.2, ls="--", zorder=0)
    axis.set_title(f"{method_title(key)}\n{encoder_title(key)}\ncorrelation {picked.correlation:.2f}, n = {picked.n}")
    axis.set_xlabel("STS-B dev", fontsize=8)
    return [
        [
            method_title(key),
            encoder_title(key),
            run.seed or "",
            x,
            y,
            "",
            "",
            "",
            picked.correlation,
            value.value.value,
        ]
        for (_, run), x, y in zip(runs.runs, dev, runs.values, strict=True)
    ]


def best_panel(axis, key: Key, runs: Group, value: Print, picked: Selection) -> list[list]:
    """What the best of k seeds adds, by the set that picks it; returns the rows of what is drawn."""
    rows, mean = [], runs.summary.mean
    for by, expected in (("dev", picked.by_dev), ("test", picked.by_test)):
        mark, line, colour = PICKED[by]
        adds = [score - mean for score in expected.values()]
        axis.plot(range(len(adds)), adds, marker=mark, ls=line, ms=4, color=colour, label=f"picked on {by}")
        names = (method_title(key), encoder_title(key), "", "", "")
        rows += [
            [*names, k, by, add, picked.correlation, value.value.value] for k, add in zip(expected, adds, strict=True)
        ]
    axis.axhline(value.value.value - mean, color="black", lw=1.2, ls="--", zorder=0)
    text = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "fontsize": 8}
    axis.annotate(f"printed {value.value.text}", (0, value.value.value - mean), (3, 3), **text)
    axis.set_xticks(range(len(picked.by_dev)), [str(k) for k in picked.by_dev])
    axis.set_xlabel("best of k seeds", fontsize=8)
    return rows
