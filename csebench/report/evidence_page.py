"""The page "Does it reproduce?" (`results/evidence.md`) and its figure.

What belongs here: words, tables and drawing. The numbers come from csebench/report/evidence.py. Same data, same bytes:
no dates, no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from csebench.plan import evidence
from csebench.plan.evidence import AVERAGE, TRANSFER, Checkpoint, Evidence, Key
from csebench.plan.papers import Published
from csebench.report import stats
from csebench.report.drawing import COLOURS, STYLE, figure_files, write_files
from csebench.report.evidence import (
    LATER,
    MEAN_ONLY,
    PICKED_FROM,
    SINGLE,
    SWEEP,
    UNTRAINED,
    Group,
    Print,
    average,
    budget,
    checkpoints_of,
    circumstances,
    groups,
    keys,
    printed_by_authors,
    scored_by_others,
    selection,
)
from csebench.report.markdown import SIGNS, markdown_table

NAME = "evidence"
TITLE = "Does it reproduce?"
ALT_TEXT = "Others' runs against the printed values"
CAPTION = (
    "A dot is a run: average of the seven STS test sets, Spearman x 100. Dashed: the printed value. Bar: mean ± sd."
    " Hollow: the last checkpoint of the run was its best."
)
COMMAND = f"snakemake -j4 results/{NAME}.md"
RARE = 0.25  # a printed value that a smaller share of runs reaches is high for their recipe
KINDS = {
    "retrained": "trained again by others",
    "paper": "re-run in a later paper",
    "checkpoint": "released checkpoint scored by others",
    "authors": "given by the authors outside their paper",
    "untrained": "model without training",
}


class TableData(NamedTuple):
    head: list[str]
    rows: list[list[str]]


class Section(NamedTuple):
    heading: str
    parts: Sequence[str | TableData]  # paragraphs and lists as Markdown, and tables


def page() -> str:
    """The whole page as Markdown."""
    parts = [f"# {TITLE}", *opening(), f"![{ALT_TEXT}]({NAME}.svg)", CAPTION, *caveats()]
    for section in sections():
        parts.append(f"## {section.heading}")
        parts += [part if isinstance(part, str) else markdown_table(*part) for part in section.parts]
    return "\n\n".join([*parts, f"Regenerate: `{COMMAND}`."]) + "\n"


def sections() -> list[Section]:
    """What follows the figure, for Markdown and HTML."""
    with_runs = [key for key in keys() if groups(key)]
    return [
        Section("Method by method", ["\n".join(f"- **{title(key)}**: {meaning_text(key)}" for key in with_runs)]),
        Section(
            "Printed values and others' runs",
            [how_to_read(), TableData(HEAD, [row for key in with_runs for row in table_rows(key)])],
        ),
        Section(
            "Test set by test set",
            ["How many runs of a seed sweep are at or above the printed value of each column.", task_table()],
        ),
        Section("What selection does", selection_parts()),
        Section(
            "Released checkpoints",
            [
                "Average of the seven STS test sets: what the method's paper prints, what the README of the checkpoint"
                " states (`off`: how far from print) and what others scored. This is about a file, not about"
                " training: a released model can score what is printed while a new training does not; it may be the"
                " best of several runs. `snakemake results/paper/checkpoints.md` scores the files again, with the"
                " protocol of this project.",
                checkpoint_table(),
            ],
        ),
        Section(
            "Models without training",
            [
                "Nothing is random here, so everybody should get the same number; the pooling and the copy of SICK-R"
                " explain the differences.",
                untrained_table(),
            ],
        ),
        Section("What takes no part in a verdict", excluded_parts()),
        Section(
            "Sources",
            [
                "Numbers are facts with a source; texts and code stay their authors'. How to add a source:"
                " docs/evidence.md.",
                source_table(),
            ],
        ),
    ]


def title(key: Key) -> str:
    """`unsup-SimCSE, BERT-base`; with the pooler where it is not the method's own."""
    pooler = "" if key.pooler == evidence.default_pooler(key.method) else f" ({key.pooler})"
    return f"{method_title(key)}, {encoder_title(key)}{pooler}"


def method_title(named) -> str:
    return evidence.names().methods[named.method].title


def encoder_title(named) -> str:
    return evidence.names().encoders[named.encoder]


def value_text(value: Published) -> str:
    return value.text.replace("±", " ± ")


def sweeps() -> list[tuple[Key, Group, Print]]:
    """Seed sweeps of a method with a printed value: what the figure and the first lines are about."""
    largest = [(key, groups(key)[0], printed_by_authors(key)) for key in keys() if groups(key)]
    return [(key, runs, value) for key, runs, value in largest if runs.kind == SWEEP and value is not None]


# ---------------------------------------------------------------- words


def opening() -> list[str]:
    """What was found, first."""
    trained = [e for e in evidence.all_evidence() if e.experiment.kind in ("retrained", "paper") and e.experiment.runs]
    count, count_of_sources = sum(len(e.experiment.runs) for e in trained), len({e.name for e in trained})
    lines, cut_short = [], []
    for key, runs, value in sweeps():
        s = runs.summary
        lines.append(finding(key, runs, value))
        if kept_last(runs):
            cut_short.append(f"{runs.kept_last_step} of {s.n} on {encoder_title(key)}")
    parts = [
        f"Other people have trained these methods again and published their scores: {count} training runs from"
        f" {count_of_sources} sources. None of these runs was made by this project. How does a printed number sit"
        " among them?",
        as_list(lines),
    ]
    if cut_short:
        parts.append(
            f"In {len(cut_short)} of these {len(lines)} sweeps the last checkpoint of most runs was their best"
            f" ({'; '.join(cut_short)}), which suggests that training was cut short: there the recipe is as suspect as"
            " the printed number."
        )
    few = [groups(key)[0].summary.n for key in keys() if groups(key) and groups(key)[0].kind != SWEEP]
    if few:
        parts.append(
            f"{len(few)} further combinations of method and encoder have at most {max(few)} comparable runs each,"
            " which shows little."
        )
    return parts


def finding(key: Key, runs: Group, value: Print) -> str:
    """How a seed sweep compares with print, in one sentence with its numbers."""
    s = runs.summary
    half_width = stats.verdict_on(s, value.value, value.seeds).half_width or 0.0  # a sweep has a deviation
    return (
        f"{title(key)}: **{runs.reach(value.value.value)} of {s.n} runs reach the printed {value_text(value.value)}**;"
        f" mean ± sd {s.mean:.2f} ± {s.std:.2f}, 95 % interval for one run {s.mean - half_width:.2f} to"
        f" {s.mean + half_width:.2f}, highest {max(runs.values):.2f}."
    )


def kept_last(runs: Group) -> bool:
    """Whether half of the runs or more keep their last step."""
    return runs.kept_last_step is not None and 2 * runs.kept_last_step >= runs.summary.n


def caveats() -> list[str]:
    """What limits the conclusions, and the setups of the sweeps."""
    setups: dict[str, list[str]] = {}
    for key, runs, _ in sweeps():
        setup = runs.evidence[0].setup
        lines = setups.setdefault(runs.sources[0], [circumstances(setup)])
        lines.append(f"{encoder_title(key)}: {budget(setup)}")
    return [
        "**Keep in mind.** A verdict on this page is about these runs, not about a paper. Others' runs differ from"
        " the authors' in what is listed here, and in what nobody lists. Single runs are self-selected: people who"
        " miss a number open an issue, people who reach it do not. Only a sweep of seeds is free of that. The setups"
        " of the sweeps:",
        "\n".join(f"- {name}: {'. '.join(lines)}." for name, lines in setups.items()),
    ]


def how_to_read() -> str:
    signs = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items())
    return (
        f"Verdicts follow the rule of all tables of this project: {signs}. ± behind a verdict is the half-width of the"
        " 95 % interval around the mean of others' runs in which a printed value counts as reproduced. A wide interval"
        " is weak evidence, as it holds many values. z: by how many standard deviations the printed value is above the"
        " mean. The released checkpoint has the score that its README states."
    )


def meaning_text(key: Key) -> str:
    """What others' runs of a method say, in a sentence or two."""
    runs, *more = groups(key)
    value, s = printed_by_authors(key), runs.summary
    text = "no printed value is known." if value is None else comparison_text(runs, value)
    if kept_last(runs):
        text += f" But in {runs.kept_last_step} of {s.n} runs the last checkpoint was the best, so the recipe is as"
        text += " suspect as the number."
    if runs.kind != SWEEP and s.n >= stats.SEEDS_NEEDED:
        text += " These runs are self-selected."
    also = [f"{g.kind} {g.summary.mean:.2f} (n = {g.summary.n})" for g in more]
    return text + (f" Also: {'; '.join(also)}." if also else "")


def comparison_text(runs: Group, value: Print) -> str:
    """A group of runs against the printed value."""
    s, text = runs.summary, value_text(value.value)
    off, reach = s.mean - value.value.value, runs.reach(value.value.value)
    verdict = stats.verdict_on(s, value.value, value.seeds)
    if verdict.half_width is None or s.std is None:
        side = "at" if abs(off) < value.value.unit else f"{abs(off):.2f} {'above' if off > 0 else 'below'}"
        count = "one run" if s.n == 1 else f"{s.n} runs, on average"
        return f"{count} {side} the printed {text}; too few for a verdict."
    if verdict.name in (stats.LOWER, stats.HIGHER):
        return (
            f"others' runs are {abs(off):.2f} {'above' if off > 0 else 'below'} the printed {text}, more than their"
            f" seeds explain (sd {s.std:.2f}, n = {s.n}); {reach} of {s.n} reach it."
        )
    if reach == 0:
        return (
            f"none of {s.n} runs reaches the printed {text}. It is within the interval of ±{verdict.half_width:.2f}"
            f" only because the runs spread by {s.std:.2f}: possible as a single run, but above every run seen."
        )
    if reach < RARE * s.n:
        return (
            f"the printed {text} is possible as a single run, but a good one: {reach} of {s.n} reach it. A lower run,"
            f" down to {s.mean - 2 * s.std:.1f}, is not a failed reproduction."
        )
    return f"the printed {text} is what this recipe gives: {reach} of {s.n} runs reach it."


# ---------------------------------------------------------------- tables

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
    """`✓ reproduced ±1.72`, or why there is none."""
    if verdict.half_width is None:
        return f"{SIGNS[stats.TOO_FEW]} {verdict.reason}"
    return f"{SIGNS[verdict.name]} {verdict.name} ±{verdict.half_width:.2f}"


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
    """What reporting the best of k seeds adds."""
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
        dev = [run.scores["stsb_dev"].value for _, run in runs.runs]
        lines.append(
            f"- {title(key)}: of all {picked.n} seeds, the best on dev scores {test[int(np.argmax(dev))]:.2f} on test,"
            f" the best on test {test.max():.2f}."
        )
    return [
        "The best of several seeds is another number than the score of one run, whichever set picks it. A cell has"
        " what the best of k seeds is expected to add to the mean when STS-B dev picks it / when the test sets"
        " themselves pick it: exact, over all subsets of the seeds. In brackets: the chance that the one picked by dev"
        " reaches the printed value. STS-B test is one of the seven test sets.",
        TableData(["", "correlation of dev and test", "mean", *(f"best of {k}" for k in PICKED_FROM)], rows),
        "\n".join(lines),
    ]


def signed(x: float) -> str:
    return f"{round(x, 2) + 0.0:+.2f}"  # + 0.0: no -0.00


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


def excluded_parts() -> list[str]:
    """Experiments that are doubtful or not comparable, and what is said without a number."""
    unsure = [e for e in evidence.all_evidence() if not e.experiment.sure]
    other = [
        e
        for e in evidence.all_evidence()
        if (x := e.experiment).sure and not x.comparable and x.kind in ("retrained", "paper")
    ]
    remarks = [(name, remark) for name, source in evidence.sources().items() for remark in source.remarks]
    all_experiments = evidence.all_evidence()
    lines = [
        f"{len(unsure)} of {len(all_experiments)} experiments are **unsure**: a value, its setting or its encoder is"
        f" doubtful ({source_names(unsure)}).",
        f"{len(other)} train something else than the paper's recipe (other data, budget, objective or pooling), or do"
        f" not report what can be compared ({source_names(other)}).",
    ]
    reports = [f"{method_title(r)}, {encoder_title(r)} ({name}): {r.text}." for name, r in remarks]
    return [as_list(lines), f"{len(remarks)} reports give no number that can be used:", as_list(reports)]


def as_list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def source_names(experiments: list[Evidence]) -> str:
    return ", ".join(dict.fromkeys(e.name for e in experiments))


def source_table() -> TableData:
    rows = []
    for name, source in evidence.sources().items():
        where = f"{source.paper}, Tables {', '.join(source.tables)}"
        if source.repository:
            where = f"[{source.repository}]({source.url}) " + (source.path or f"#{source.thread}")
        kinds = ", ".join(dict.fromkeys(KINDS[e.kind] for e in source.experiments))
        count = sum(len(e.runs) or (e.summary.n if e.summary else 0) for e in source.experiments)
        scores = f"{count}: {kinds}" if count else "remarks"
        rows.append([name, source.who, where, source.licence or "", source.date, scores])
    return TableData(["source", "who", "where", "licence", "date", "scores"], rows)


# ---------------------------------------------------------------- figure

MARKS = {SWEEP: ("o", COLOURS[0], 0), SINGLE: ("s", COLOURS[5], 1.2), LATER: ("^", COLOURS[2], 2.1)}  # and place on x
BIN = 0.15  # of the score: dots within one stand side by side


def draw(folder: Path) -> list[Path]:
    """The figure as SVG, PNG and CSV: a panel per seed sweep, a dot per run, the printed value as a line.

    Returns:
        the files written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    panels = sweeps()
    table = [["method", "encoder", "group", "source", "seed", "score", "keeps_last_step", "printed"]]
    with matplotlib.rc_context(STYLE):
        columns = max(len(panels), 1)
        figure = Figure(figsize=(2.6 * columns + 0.8, 4.4), layout="constrained")
        axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
        for axis, (key, _, value) in zip(axes, panels, strict=False):
            table += panel(axis, key, value)
        axes[0].set_ylabel("average of the seven STS test sets (Spearman x 100)")
        figure.supxlabel("hollow: the last checkpoint was the best; bar: mean ± standard deviation", fontsize=8)
        return write_files(folder / NAME, figure_files(figure, table))


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
