"""The page "Does it reproduce?" (`results/evidence.md`) and its picture: what runs that others
published say of the printed values. The numbers are in csebench/report/numbers/others.py. Same
data, same bytes: no dates, no scale.
"""

from pathlib import Path

import numpy as np

from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import DEV, MatchKey
from csebench.plan.catalog.files import paper, paper_names
from csebench.report.numbers import others, stats
from csebench.report.numbers.stats import SLACK
from csebench.report.pages.page import Fold, PageContent, Part, Picture, TextTable, as_list
from csebench.report.words.comparisons import outward_range
from csebench.report.words.verdicts import not_tested_text
from csebench.score.drawing import COLOURS, GREY, STYLE, WIDTH, write_figure

WITHIN = {
    stats.REPRODUCED: "inside {}",
    stats.CLOSE: "outside {}, close",
    stats.LOWER: "above the range {}",
    stats.HIGHER: "below the range {}",
}  # where the printed value lies; the names are of the runs
PICKED_FROM = (1, 3, 5, 10, 50)  # numbers of seeds of which the best is reported
EVIDENCE_COLUMNS = [
    "method, encoder",
    "printed",
    "others' runs",
    "n",
    "mean ± sd",
    "min to max",
    "reach print",
]
EVIDENCE_COLUMNS += ["printed value lies"]
SOURCE_KINDS = {
    "retrained": "trained again by others",
    "paper": "re-run in a later paper",
    "checkpoint": "released checkpoint scored by others",
    "authors": "given by the authors outside their paper",
    "untrained": "model without training",
}
# and place on x
MARKS = {others.SWEEP: ("o", COLOURS[0], 0), others.SINGLE: ("s", COLOURS[5], 1.2)}
MARKS |= {others.LATER: ("^", COLOURS[2], 2.1)}
OWN_CODE = "own re-implementation"  # what a source states
BIN = 0.15  # of the score: dots within one stand side by side


def evidence_page(_scale: str) -> PageContent:
    """The same at every scale."""
    of_sweeps = [key for key, _, _ in others.sweeps()]
    few = [
        row for key in others.keys_with_runs() if key not in of_sweeps for row in group_rows(key)
    ]
    remarks = [
        f"{others.method_title(remark)}, {others.encoder_title(remark)} ({name}): {remark.text}."
        for name, source in evidence.evidence_sources().items()
        for remark in source.remarks
    ]
    setups: dict[str, list[str]] = {}  # how the runs of sweeps were made, by source
    for key, runs, _ in others.sweeps():
        setup = runs.evidence[0].setup
        lines = setups.setdefault(runs.sources[0], [others.circumstances(setup)])
        lines.append(f"{others.encoder_title(key)}: {others.budget_text(setup)}")
    parts: list[Part] = [
        reach_text(),
        sweeps_text(),
        Picture("evidence.svg", "Others' runs against the printed values"),
        TextTable(EVIDENCE_COLUMNS, [row for key in of_sweeps for row in group_rows(key)]),
        (
            "Average of the seven STS test sets, Spearman × 100. *Reach print*: runs at or above"
            " the printed value. The last column: where the printed value lies, against the range"
            " of 95 % of further such runs; *close*: in that of 99 % (docs/statistics.md)."
        ),
        counts_text(),
        Fold(
            f"Methods with few runs: {len(few)} groups",
            ["Is a number missing? Open an issue.", TextTable(EVIDENCE_COLUMNS, few)],
        ),
        Fold("What picking the best of several seeds adds", selection_parts()),
        Fold(
            "The setups of the sweeps",
            [as_list(f"{name}: {'. '.join(lines)}." for name, lines in setups.items())],
        ),
        Fold("Reports without a number that can be used", [as_list(remarks)]),
        Fold(
            "Sources",
            ["Numbers are facts with a source. How to add one: docs/evidence.md.", source_table()],
        ),
        "Regenerate: `snakemake -j4 results/evidence.md`.",
    ]
    return PageContent("Does it reproduce?", "", parts)


def reach_text() -> str:
    """The answer: how many runs of each sweep reach the printed value, a sentence per method."""
    methods = dict.fromkeys(key.method for key, _, _ in others.sweeps())
    if not methods:
        return "**No seed sweep of others is known.**"
    return " ".join(map(reach_sentence, methods))


def reach_sentence(method: str) -> str:
    """`**In 3 of 4 seed sweeps of X no run reaches the printed value** (…); on BERT-base 5 of 50
    do.`"""
    none, some = [], []
    for key, runs, printed in others.sweeps():
        if key.method != method:
            continue
        count = runs.reach(printed.value.value)
        if count:
            some.append(f"on {others.encoder_and_pooler(key)} {count} of {runs.summary.n} do")
        else:
            none.append(others.encoder_and_pooler(key))
    sweeps = (
        f"{len(none) + len(some)} seed sweeps of {evidence.evidence_names().methods[method].title}"
    )
    text = f"**In {len(none)} of {sweeps} no run reaches the printed value**"
    if none:
        text += f" ({', '.join(none)})"
    if some:
        text += f"; {', '.join(some)}"
    return f"{text}."


def sweeps_text() -> str:
    """Of which runs the answer is."""
    sweeps = [runs for _, runs, _ in others.sweeps()]
    sources = ", ".join(sorted({source for runs in sweeps for source in runs.sources}))
    seeds = " or ".join(str(n) for n in sorted({runs.summary.n for runs in sweeps}))
    setups = [runs.evidence[0].setup for runs in sweeps]
    if all((setup.code or "").startswith(OWN_CODE) for setup in setups):
        code = f"of one re-implementation ({sources}), not of the authors' code; how it differs is"
    else:
        code = f"of one source ({sources}); its code, and how it differs, are"
    text = f"Each sweep is {seeds} seeds {code} folded below. None of these runs is ours."
    kept_last = []
    for key, runs, _ in others.sweeps():
        if 2 * sum(runs.kept_last_step) >= runs.summary.n:
            kept_last.append(others.encoder_and_pooler(key))
    if not kept_last:
        return text
    more = "the last checkpoint of most runs was the best: longer training might reach more."
    return f"{text} On {' and '.join(kept_last)} {more}"


def counts_text() -> str:
    """How many re-trainings the verdicts rest on, and what is apart."""
    every = evidence.all_evidence()
    trained = [e for e in every if e.experiment.kind in ("retrained", "paper")]
    comparable = [e for e in trained if e.experiment.comparable and e.experiment.sure]
    runs = sum(len(e.experiment.runs) for e in comparable)
    rest = sum(len(e.experiment.runs) for e in trained) - runs
    means = sum(e.experiment.summary is not None and not e.experiment.runs for e in trained)
    scored = sum(len(e.experiment.runs) for e in every if e.experiment.kind == "checkpoint")
    sources = {e.name for e in comparable if e.experiment.runs}
    return (
        f"{runs} comparable re-trainings from {len(sources)} sources: runs that others trained with"
        " the paper's data, budget, objective and pooling, each with a score of its own. Apart"
        f" from them: {rest} re-trainings that differ in these or are doubtful, {means} means of"
        f" several runs without their scores, and {scored} scores of released checkpoints."
    )


def group_rows(key: MatchKey) -> list[list[str]]:
    """A row for every group of runs of a method on an encoder, as under HEAD."""
    value, rows = others.printed_by_authors(key), []
    for runs in others.groups(key):
        s, reach, lies = runs.summary, "", ""
        if value is not None:
            reach = f"{runs.reach(value.value.value)} of {s.n}" if runs.values else ""
            verdict = runs.verdict(value.value, value.seeds)
            lies = not_tested_text(verdict, s.n)
            if verdict.low is not None and verdict.high is not None:
                lies = WITHIN[verdict.name].format(outward_range(verdict.low, verdict.high))
        printed = "–" if value is None else f"{value.value.text} ({value.where})"
        sources = runs.sources[0] if len(runs.sources) == 1 else f"{len(runs.sources)} sources"
        mean = f"{s.mean:.2f}" + ("" if s.std is None else f" ± {s.std:.2f}")
        span = f"{min(runs.values):.2f} to {max(runs.values):.2f}" if len(runs.values) > 1 else ""
        first = ["", ""] if rows else [others.title(key), printed]
        rows.append([*first, f"{runs.kind}, {sources}", str(s.n), mean, span, reach, lies])
    return rows


def selection_parts() -> list[Part]:
    """What reporting the best of k seeds adds, and what the best of all seeds scores."""
    rows, lines = [], []
    for key, runs, value in others.sweeps():
        if any(DEV[0] not in run.scores for _, run in runs.runs):
            continue
        dev, test = (
            np.array([run.scores[DEV[0]].value for _, run in runs.runs]),
            np.array(runs.values),
        )
        reached, mean, cells = (
            (test >= value.value.value - SLACK).astype(float),
            runs.summary.mean,
            [],
        )
        for k in [k for k in PICKED_FROM if k <= len(test)]:
            # by what one is picked, and what of it is shown
            pairs = (dev, test), (test, test), (dev, reached)
            by_dev, by_test, reach = (others.expected_of_best(k, *pair) for pair in pairs)
            cells.append(f"{by_dev - mean:+z.2f} / {by_test - mean:+z.2f} ({100 * reach:.0f} %)")
        cells += ["–"] * (len(PICKED_FROM) - len(cells))
        rows.append(
            [others.title(key), f"{np.corrcoef(dev, test)[0, 1]:.3f}", f"{mean:.2f}", *cells]
        )
        lines.append(
            f"{others.title(key)}: of all {len(test)} seeds, the best on dev scores"
            f" {test[dev.argmax()]:.2f} on test, the best on test {test.max():.2f}."
        )
    return [
        (
            "A cell has what the best of k seeds adds to the mean when STS-B dev picks it / when"
            " the test sets themselves pick it: exact, over all subsets of the seeds. In brackets:"
            " the chance that the one picked by dev reaches the printed value. STS-B test is one of"
            " the seven test sets."
        ),
        TextTable(
            ["", "correlation of dev and test", "mean", *(f"best of {k}" for k in PICKED_FROM)],
            rows,
        ),
        as_list(lines),
    ]


def source_table() -> TextTable:
    rows = []
    for name, source in evidence.evidence_sources().items():
        place = f"issues/{source.thread}" if source.thread else f"tree/{source.commit}"
        url = f"https://github.com/{source.repository}/{place}"
        where = f"[{source.repository}]({url}) " + (source.path or f"#{source.thread}")
        if source.paper:
            *first, last = source.tables
            tables = f"Tables {', '.join(first)} and {last}" if first else f"Table {last}"
            label = paper(source.paper).label if source.paper in paper_names() else source.paper
            where = f"{label}, {tables}"
        kinds = ", ".join(dict.fromkeys(SOURCE_KINDS[e.kind] for e in source.experiments))
        count = sum(len(e.runs) or (e.summary.n if e.summary else 0) for e in source.experiments)
        scores = f"{count}: {kinds}" if count else "remarks"
        rows.append([name, source.who, where, source.licence or "", source.date, scores])
    return TextTable(["source", "who", "where", "licence", "date", "scores"], rows)


def draw_runs(folder: Path) -> list[Path]:
    """A panel per seed sweep, a dot per run, the printed value as a line."""
    import matplotlib
    from matplotlib.figure import Figure

    panels = others.sweeps()
    table = [
        ["method", "encoder", "group", "source", "seed", "score", "keeps_last_step", "printed"]
    ]
    with matplotlib.rc_context(STYLE):
        rows = max(-(-len(panels) // 2), 1)
        figure = Figure(figsize=(WIDTH, 3.3 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, 2, sharey=True, squeeze=False).flat
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        for axis, (key, _, value) in zip(axes, panels, strict=False):
            table += panel(axis, key, value)
        figure.supylabel("average of the seven STS test sets (Spearman x 100)", fontsize=9)
        figure.supxlabel(
            "hollow: the last checkpoint was the best; bar: mean ± standard deviation", fontsize=9
        )
        return write_figure(folder / "evidence.svg", figure, table)


def panel(axis, key: MatchKey, value: others.Print) -> list[list]:
    """One encoder's runs; returns the rows of what is drawn."""
    method, encoder, line = others.method_title(key), others.encoder_title(key), value.value.value
    rows, drawn = [], [g for g in others.groups(key) if g.kind != others.MEAN_ONLY]
    for runs in drawn:
        marker, colour, x = MARKS[runs.kind]
        bins = np.floor(np.asarray(runs.values) / BIN)
        # on x, so that dots with nearly the same score do not cover one another
        offsets = np.zeros(len(bins))
        for one in np.unique(bins):
            members = np.flatnonzero(bins == one)
            offsets[members] = (np.arange(len(members)) - (len(members) - 1) / 2) * 0.08
        for (e, run), last, score, offset in zip(
            runs.runs, runs.kept_last_step, runs.values, offsets, strict=True
        ):
            axis.plot(
                x + offset, score, marker, ms=4, mew=0.9, mec=colour, mfc="none" if last else colour
            )
            rows.append(
                [method, encoder, runs.kind, e.name, run.seed or "", score, int(last), line]
            )
        if runs.summary.std is not None:
            bar = {"fmt": "_", "ms": 9, "color": GREY, "lw": 1.2, "capsize": 3}
            axis.errorbar(x + offsets.max() + 0.2, runs.summary.mean, runs.summary.std, **bar)
    axis.axhline(line, color=GREY, lw=1.2, ls="--", zorder=0)
    text = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
    axis.annotate(f"printed {value.value.text}", (1, line), (0, 3), **text)
    labels = [
        runs.kind.replace(" in later ", "\nin later\n") + f"\nn = {runs.summary.n}"
        for runs in drawn
    ]
    axis.set_xticks([MARKS[runs.kind][2] for runs in drawn], labels)
    axis.set_xlim(-0.6, 2.6)
    axis.set_title(
        f"{method}, {encoder}\n{drawn[0].reach(line)} of {drawn[0].summary.n} seeds reach print"
    )
    return rows
