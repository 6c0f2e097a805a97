"""The picture of others' runs against the printed values (`results/evidence.svg`). Same data, same bytes."""

from pathlib import Path

import numpy as np

from csebench.plan.evidence import Key
from csebench.report.others import LATER, MEAN_ONLY, SINGLE, SWEEP, Print, encoder_title, groups, method_title, sweeps
from csebench.score.drawing import COLOURS, GREY, STYLE, WIDTH, write_figure

MARKS = {SWEEP: ("o", COLOURS[0], 0), SINGLE: ("s", COLOURS[5], 1.2), LATER: ("^", COLOURS[2], 2.1)}  # and place on x
BIN = 0.15  # of the score: dots within one stand side by side


def draw_runs(folder: Path) -> list[Path]:
    """A panel per seed sweep, a dot per run, the printed value as a line."""
    import matplotlib
    from matplotlib.figure import Figure

    panels = sweeps()
    table = [["method", "encoder", "group", "source", "seed", "score", "keeps_last_step", "printed"]]
    with matplotlib.rc_context(STYLE):
        rows = max(-(-len(panels) // 2), 1)
        figure = Figure(figsize=(WIDTH, 3.3 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, 2, sharey=True, squeeze=False).flat
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        for axis, (key, _, value) in zip(axes, panels, strict=False):
            table += panel(axis, key, value)
        figure.supylabel("average of the seven STS test sets (Spearman x 100)", fontsize=9)
        figure.supxlabel("hollow: the last checkpoint was the best; bar: mean ± standard deviation", fontsize=9)
        return write_figure(folder / "evidence.svg", figure, table)


def panel(axis, key: Key, value: Print) -> list[list]:
    """One encoder's runs; returns the rows of what is drawn."""
    method, encoder, line = method_title(key), encoder_title(key), value.value.value
    rows, drawn = [], [g for g in groups(key) if g.kind != MEAN_ONLY]
    for runs in drawn:
        marker, colour, x = MARKS[runs.kind]
        bins = np.floor(np.asarray(runs.values) / BIN)
        offsets = np.zeros(len(bins))  # on x, so that dots with nearly the same score do not cover one another
        for one in np.unique(bins):
            members = np.flatnonzero(bins == one)
            offsets[members] = (np.arange(len(members)) - (len(members) - 1) / 2) * 0.08
        for (e, run), last, score, offset in zip(runs.runs, runs.kept_last_step, runs.values, offsets, strict=True):
            axis.plot(x + offset, score, marker, ms=4, mew=0.9, mec=colour, mfc="none" if last else colour)
            rows.append([method, encoder, runs.kind, e.name, run.seed or "", score, int(last), line])
        if runs.summary.std is not None:
            bar = {"fmt": "_", "ms": 9, "color": GREY, "lw": 1.2, "capsize": 3}
            axis.errorbar(x + offsets.max() + 0.2, runs.summary.mean, runs.summary.std, **bar)
    axis.axhline(line, color=GREY, lw=1.2, ls="--", zorder=0)
    text = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
    axis.annotate(f"printed {value.value.text}", (1, line), (0, 3), **text)
    labels = [runs.kind.replace(" in later ", "\nin later\n") + f"\nn = {runs.summary.n}" for runs in drawn]
    axis.set_xticks([MARKS[runs.kind][2] for runs in drawn], labels)
    axis.set_xlim(-0.6, 2.6)
    axis.set_title(f"{method}, {encoder}\n{drawn[0].reach(line)} of {drawn[0].summary.n} seeds reach print")
    return rows
