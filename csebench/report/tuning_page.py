"""The page on what tuning bought each method (`results/mini/tuning.md`), and its figure.

A pure function of the files of searches. Which trials there are: csebench/plan/tuning.py.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from statistics import median
from textwrap import fill

import numpy as np

from csebench.plan import tuning
from csebench.plan.catalog import scale as read_scale
from csebench.plan.registry import COMPONENTS, declaration
from csebench.plan.tuning import Search, settings_text
from csebench.report.evidence import expected_of_best
from csebench.report.markdown import scale_warning
from csebench.report.sections import Part, Picture, Section, TableData, as_markdown
from csebench.score.drawing import STYLE, figure_files, method_colour, write_files

NAME = "tuning"  # of the page, and of its figure
TITLE = "What tuning bought each method"
FIGURE = Picture(
    NAME,
    "Score on STS-B dev against the number of trials",
    "Line: expected score of the best of so many trials. Dashed: the settings of the scale, without tuning.",
)
PANELS = 5  # in a row of the figure
NO_METHOD = "#777777"  # of a search of a method without a colour
TITLE_WIDTH = 24  # letters that fit above a panel
HEAD = ["method", "trials", "without tuning", "chosen settings", "tuned", "gain"]


def page(scale_name: str) -> str:
    """The whole page as Markdown."""
    parts = [f"# {TITLE}, at scale {scale_name}", scale_warning(scale_name), *as_markdown(sections(scale_name))]
    return "\n\n".join(parts) + "\n"


def sections(scale_name: str) -> list[Section]:
    searches, scale = read_searches(scale_name), read_scale(scale_name)
    if not searches:
        return [Section("", [f"No search was made: `{tuning.command(['METHOD …'], scale_name)}`."])]
    counts = sorted({search.planned for search in searches})
    ks = [k for k in (2, 4, 8, 16, 32, 64) if k <= counts[-1]]
    parts: list[Part] = [
        finding(searches),
        "Every method gets the same number of trials. The first trial has the settings of the scale; the others are"
        " drawn at random, without repetition, from the values that the method declares (`csebench show METHOD`). All"
        f" trials train on {scale.sizes[tuning.SIZE]:,} sentences from `{scale.encoders[tuning.ENCODER].name}`, with a"
        f" subset and a seed that no table uses ({tuning.trial_seed(scale)}). A score is Spearman x 100 on STS-B dev.",
        TableData([*HEAD, *(f"best of {k}" for k in ks)], [summary_row(search, ks) for search in searches]),
        "*Best of k*: the expected best of k trials: the first, and k - 1 of the others in random order. The gain"
        " is measured on the set that chose the settings, with one seed, so part of it is chance; the tables of a"
        " scale that uses these settings show what remains on the test sets.",
        FIGURE,
    ]
    if len(counts) > 1:
        parts.append(f"**Not the same number of trials for each**: {', '.join(map(str, counts))}.")
    if defects := [f"- {s.name}: {reason}." for s in searches if (reason := tuning.defect(s, scale_name))]:
        parts += ["Settings that no scale takes until the search is made again:", "\n".join(defects)]
    rows = [
        [label(search), settings_text(t.settings), f"failed: {t.failure}" if t.dev is None else points(t.dev), t.run]
        for search in searches
        for t in search.trials
    ]
    again = tuning.command([search.name for search in searches], scale_name, counts[-1])
    trials = TableData(["method", "settings", "STS-B dev", "run"], rows)
    return [Section("", parts), Section("All trials", [trials, f"Search again: `{again}`."])]


def read_searches(scale_name: str) -> list[Search]:
    return [tuning.read_search(path) for path in tuning.search_files(scale_name)]


def label(search: Search) -> str:
    """The titles of what was tuned: `Contrastive Tension + Attention-level mutual information` for `ct+ami`."""
    method, *added = search.name.split("+")
    titles = [declaration(method).title, *(declaration(component, COMPONENTS).title for component in added)]
    return " + ".join(titles)


def finding(searches: list[Search]) -> str:
    """How much tuning gained, over the methods that have a score before and after it."""
    gains = {label(search): gained for search in searches if (gained := gain(search)) is not None}
    if not gains:
        return "**Finding.** None yet: no search has a score with the settings of the scale."
    most, unchanged = max(gains, key=lambda name: gains[name]), sum(gain == 0 for gain in gains.values())
    return (
        f"**Finding.** Tuning gained {median(gains.values()):+z.2f} points on STS-B dev in the median of {len(gains)}"
        f" methods, at most {gains[most]:+z.2f} ({most}); for {unchanged} the settings of the scale were the best."
    )


def gain(search: Search) -> float | None:
    """Points of the best trial over the settings of the scale; None where these have no score."""
    first, best = search.trials[0].dev, tuning.best_trial(search.trials)
    return None if first is None or best is None or best.dev is None else 100 * (best.dev - first)


def summary_row(search: Search, ks: list[int]) -> list[str]:
    """A search in a row of `HEAD`, and the expected best of each of `ks` trials."""
    best, expected, gained = tuning.best_trial(search.trials), expected_best(search), gain(search)
    return [
        label(search),
        f"{len(search.trials)}" + (f" of {search.planned}" if len(search.trials) < search.planned else ""),
        points(search.trials[0].dev),
        "–" if best is None else settings_text(best.settings),
        points(best and best.dev),
        "–" if gained is None else f"{gained:+z.2f}",
        *(f"{expected[k - 1]:.2f}" if k <= len(expected) else "–" for k in ks),
    ]


def expected_best(search: Search) -> list[float]:
    """The expected best score of a search of 1, 2, … trials, the first as it was and the others in random order, in
    printed units; failed trials are left out."""
    scores = np.array([100 * trial.dev for trial in search.trials if trial.dev is not None])
    if search.trials[0].dev is None:
        return [expected_of_best(k, scores, scores) for k in range(1, len(scores) + 1)]
    later = scores.clip(scores[0])[1:]
    return [scores[0], *(expected_of_best(k, later, later) for k in range(1, len(later) + 1))]


def points(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.2f}"


def draw(folder: Path, scale_name: str) -> list[Path]:
    """The expected best score against the number of trials, a panel per search; returns the files written."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    table: list[list] = [["method", "trials", "expected_best", "without_tuning"]]
    searches = read_searches(scale_name)
    rows = max(1, ceil(len(searches) / PANELS))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 1.1 + 1.7 * rows), layout="constrained")
        axes = [*figure.subplots(rows, PANELS, sharex=True, sharey=True, squeeze=False).flat]
        for axis, search in zip(axes, searches, strict=False):
            expected, first = expected_best(search), search.trials[0].dev
            colour = method_colour(search.name) or NO_METHOD
            axis.set_title(fill(label(search), TITLE_WIDTH), fontsize=8)
            axis.plot(range(1, len(expected) + 1), expected, marker="o", ms=4, color=colour)
            if first is not None:
                axis.axhline(100 * first, color=colour, lw=1, ls="--")
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            lines = enumerate(expected, 1)
            table += [[search.name, k, best, "" if first is None else 100 * first] for k, best in lines]
        for axis in axes[len(searches) :]:
            axis.set_visible(False)
        for axis in axes[max(0, len(searches) - PANELS) : len(searches)]:  # the lowest of each column
            axis.tick_params(labelbottom=True)
        figure.suptitle(f"{TITLE} at scale {scale_name}: the expected best of so many trials")
        figure.supxlabel("trials", fontsize=9)
        figure.supylabel("STS-B dev (Spearman x 100)", fontsize=9)
        return write_files(folder / NAME, figure_files(figure, table))
