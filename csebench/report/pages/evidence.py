"""The page `results/evidence.md`: what others' runs say of printed values.

It arranges numbers (csebench/report/numbers/others.py) and sentences
(csebench/report/words/evidence.py) in tables. The picture is drawn in
csebench/report/figures/evidence.py. Nothing depends on a date or scale: the same data always give
the same bytes.
"""

from itertools import zip_longest

from csebench.base.terminal import and_list
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import EvidenceSource, MatchKey
from csebench.report.numbers import stats
from csebench.report.numbers.others import (
    Group,
    PooledMethod,
    Sweep,
    groups,
    keys_with_runs,
    pooled_methods,
    sweeps,
)
from csebench.report.numbers.printed_averages import AuthorsPrint, printed_by_authors
from csebench.report.numbers.selection import Selection, SelectionGain, best_scores, selection_of
from csebench.report.pages.page import Fold, PageContent, Part, Picture, TextTable, as_list
from csebench.report.words.audit import paper_label
from csebench.report.words.claims import p_text
from csebench.report.words.comparisons import outward_range
from csebench.report.words.evidence import (
    MEAN_OVER_SOURCES,
    SETUPS_TITLE,
    budget_text,
    circumstances,
    counts_text,
    encoder_title,
    key_title,
    method_title,
    pooled_text,
    print_place,
    reach_text,
    sweeps_text,
    verdict_range_text,
)
from csebench.report.words.verdicts import printed_verdict_text

PICKED_FROM = (1, 3, 5, 10, 50)  # numbers of seeds from which the best is reported
POOLED_COLUMNS = [
    "method, encoder",
    "printed",
    "verdict on the printed value",
    "95 % range of one new run",
    "mean over sources (95 % interval)",
    "sources",
    "runs",
    "sd within sources",
    "sd between sources (τ)",
    "Cochran's Q",
]
POOLED_SOURCE_COLUMNS = ["method, encoder", "source", "kind of runs", "n", "mean", "sd"]
EVIDENCE_COLUMNS = [
    "method, encoder",
    "printed",
    "kind of runs, source",
    "verdict on the printed value",
    "n",
    "mean ± sd",
    "min to max",
    "reach the printed value",
]
SOURCE_COLUMNS = ["source", "who", "where", "licence", "date", "scored models"]
SOURCE_KINDS = {
    "retrained": "trained again by others",
    "paper": "re-run in a later paper",
    "checkpoint": "released by the authors, scored by others",
    "authors": "given by the authors outside their paper",
    "untrained": "without training",
}


def evidence_page(_scale: str) -> PageContent:
    """Show what others' runs say of printed values; the same at every scale."""
    all_pooled = pooled_methods()
    all_sweeps = sweeps()
    keys_of_sweeps = [sweep.key for sweep in all_sweeps]
    other_keys = [key for key in keys_with_runs() if key not in keys_of_sweeps]
    rows_of_few_runs = rows_of_keys(other_keys)
    parts: list[Part] = [
        pooled_text(),
        *pooled_parts(all_pooled),
        reach_text(),
        sweeps_text(),
        Picture("evidence.svg", "Others' runs against the printed values"),
        *judged_alone_parts(all_pooled),
        TextTable(EVIDENCE_COLUMNS, rows_of_keys(keys_of_sweeps)),
        (
            "Scores are averages of the seven STS test sets, Spearman × 100. *Reach the printed"
            " value*: runs at or above it. *Verdict*: the printed value against the range that"
            " holds 95 % of further such runs. It *agrees* if it is inside, and the range is"
            f" narrower than ±{stats.AGREEMENT:g} point. It is *inconclusive* if it is inside a"
            " wider range, because such a range rules out little. It *differs* if it is outside."
            f" With {stats.ORDER_STATISTICS} or more runs, the range comes from the sorted runs"
            " themselves; with fewer, it is a prediction interval by Student's t. Half a unit of"
            " the last printed digit is added at both ends, because printed values are rounded"
            " ([statistics](../docs/statistics.md))."
        ),
        counts_text(),
        Fold(
            f"Methods with few runs: {len(rows_of_few_runs)} groups",
            ["Is a number missing? Open an issue.", TextTable(EVIDENCE_COLUMNS, rows_of_few_runs)],
        ),
        Fold(
            "What picking the best of several seeds adds",
            [*selection_parts(all_sweeps), *best_parts(all_pooled)],
        ),
        Fold(SETUPS_TITLE, [setups_list(all_sweeps)]),
        Fold("Reports without a number that can be used", [remarks_list()]),
        Fold(
            "Sources",
            [
                (
                    "*Scored models*: trained runs, or models that were only scored."
                    " [Add a source](../docs/evidence.md)."
                ),
                source_table(),
            ],
        ),
        "Regenerate: `snakemake -j4 results/evidence.md`.",
    ]
    return PageContent("Do others reach the printed scores?", "", parts)


# ---------------------------------------------------------------- runs of several sources


def pooled_parts(methods: list[PooledMethod]) -> list[Part]:
    """Show what the runs of several sources say together, and then the sources."""
    if not methods:
        return []
    rows_of_sources = []
    for pooled in methods:
        rows_of_sources += source_rows(pooled)
    return [
        TextTable(POOLED_COLUMNS, [pooled_row(pooled) for pooled in methods]),
        (
            "*Printed* is what a method's authors print. The brackets say where the value was read."
            " `papers/` does not have the paper of every method, for example not SimCSE's. Then the"
            " value is that of a table that copies it, of the method's README or final version, or"
            " of people who quote it (*quoted by others*)."
        ),
        (
            "Each source counts the same, whatever its number of runs. *sd within sources* is the"
            " deviation between runs of one source, taken to be the same in all sources. τ is the"
            " deviation between the true means of sources: what remains of the spread of their"
            " means without the part that the noise of their own runs explains. Cochran's Q tests"
            " whether sources differ; p is the chance of such a large Q if they do not"
            " ([statistics](../docs/statistics.md))."
        ),
        (
            f"The sources follow. *Seed sweep*: one source has {stats.SEEDS_NEEDED} or more runs"
            f" and states their seeds. *Single runs*: a source has fewer than {stats.SEEDS_NEEDED},"
            " or does not state their seeds. *Re-run in later papers*: another paper trained the"
            " method as its baseline. *Mean only*: the source gives only the mean of n runs."
        ),
        TextTable(POOLED_SOURCE_COLUMNS, rows_of_sources),
    ]


def judged_alone_parts(methods: list[PooledMethod]) -> list[Part]:
    """Say which verdict counts if a group of runs and all sources together have different ones."""
    if not methods:
        return []
    return [
        "The next table judges each group of runs by itself. A seed sweep shows only how the seeds"
        " of its source vary. Single runs of several sources are one group, whose ± contains what"
        " differs between sources. If the first table has a verdict over all sources, that one"
        " counts."
    ]


def pooled_row(pooled: PooledMethod) -> list[str]:
    """Make the row of a method on an encoder under POOLED_COLUMNS."""
    runs = pooled.runs
    printed = pooled.printed
    effects = runs.effects
    mean_range = effects.mean_range
    new_run = effects.new_source_range(stats.LEVEL)
    verdict = runs.verdict(printed.value, printed.seeds)
    return [
        key_title(pooled.key),
        f"{printed.value.text} ({print_place(printed)})",
        printed_verdict_text(verdict, runs.summary.n, mean=MEAN_OVER_SOURCES),
        outward_range(new_run.low, new_run.high),
        f"{effects.mean:.2f} ({outward_range(mean_range.low, mean_range.high)})",
        str(effects.sources),
        str(runs.summary.n),
        f"{effects.within:.2f}",
        f"{effects.tau:.2f}",
        f"Q = {effects.q:.1f}, {p_text(effects.p, 1)}",
    ]


def source_rows(pooled: PooledMethod) -> list[list[str]]:
    """Make a row per source under POOLED_SOURCE_COLUMNS. The first row names the method."""
    rows = []
    for source in pooled.runs.by_source:
        title = "" if rows else key_title(pooled.key)
        mean, std, n = source.summary
        std_text = "–" if std is None else f"{std:.2f}"
        rows.append([title, source.name, source.kind, str(n), f"{mean:.2f}", std_text])
    return rows


def best_parts(methods: list[PooledMethod]) -> list[Part]:
    """Tabulate the expected score of the best of 1, 2, 3, … runs of an average source."""
    head = ["best of"]
    columns: list[list[str]] = []
    for pooled in methods:
        scores = best_scores(pooled)
        if scores is None:
            continue
        title = key_title(pooled.key)
        head += [f"{title}: picked by STS-B dev", f"{title}: picked by the test sets"]
        columns.append([f"{score:.2f}" for score in scores.by_dev])
        columns.append([f"{score:.2f}" for score in scores.by_test])
    if not columns:
        return []
    rows = []
    for count, cells in enumerate(zip_longest(*columns, fillvalue="–"), 1):
        rows.append([str(count), *cells])
    return [
        (
            "The next table gives the expected score of the best of k runs of an average source."
            " It is the mean over sources, plus what picking adds in the seed sweep on the same"
            " encoder. A source with a higher mean needs fewer runs."
        ),
        TextTable(head, rows),
    ]


# ---------------------------------------------------------------- groups of runs


def rows_of_keys(keys: list[MatchKey]) -> list[list[str]]:
    """Make the rows of several methods and encoders."""
    rows = []
    for key in keys:
        rows += group_rows(key)
    return rows


def group_rows(key: MatchKey) -> list[list[str]]:
    """Make a row under EVIDENCE_COLUMNS for every group of runs of a method on an encoder.

    The method and its printed value stand in the first row only.
    """
    printed = printed_by_authors(key)
    printed_text = "–"
    if printed is not None:
        printed_text = f"{printed.value.text} ({print_place(printed)})"
    rows = []
    for group in groups(key):
        names = ["", ""]
        if not rows:
            names = [key_title(key), printed_text]
        rows.append([*names, *cells_of_group(group, printed)])
    return rows


def cells_of_group(group: Group, printed: AuthorsPrint | None) -> list[str]:
    """Describe the runs of a group, and where the printed value lies against their range.

    Returns:
        kind and source, verdict, number, mean, lowest and highest, and how many reach the value.
    """
    source = group.sources[0] if len(group.sources) == 1 else f"{len(group.sources)} sources"
    mean = f"{group.summary.mean:.2f}"
    if group.summary.std is not None:
        mean += f" ± {group.summary.std:.2f}"
    ends = ""
    if len(group.values) > 1:
        ends = f"{min(group.values):.2f} to {max(group.values):.2f}"
    verdict_text = ""
    reach = ""
    if printed is not None:
        verdict = group.verdict(printed.value, printed.seeds)
        verdict_text = verdict_range_text(verdict, printed.seeds, group.summary.n)
        if group.values:
            reach = f"{group.reach(printed.value.value)} of {group.summary.n}"
    n = str(group.summary.n)
    return [f"{group.kind}, {source}", verdict_text, n, mean, ends, reach]


# ---------------------------------------------------------------- picking seeds


def selection_parts(all_sweeps: list[Sweep]) -> list[Part]:
    """Show what reporting the best of several seeds adds, and what the best of all seeds scores."""
    rows = []
    lines = []
    for sweep in all_sweeps:
        selection = selection_of(sweep, PICKED_FROM)
        if selection is None:
            continue
        title = key_title(sweep.key)
        rows.append([title, *selection_cells(selection)])
        lines.append(
            f"{title}: of all {selection.seeds} seeds, the best on dev scores"
            f" {selection.best_by_dev:.2f} on test, the best on test"
            f" {selection.best_by_test:.2f}."
        )
    head = ["", "Pearson correlation of dev and test", "mean"]
    head += [f"best of {count}" for count in PICKED_FROM]
    return [
        (
            "A cell says how much the best of k seeds adds to the mean: first if the score on STS-B"
            " dev picks the seed, then if the test sets themselves do. Both are exact, over all"
            " subsets of the seeds. In brackets: the chance that the seed picked by dev reaches the"
            " printed value. Dev is related to test: STS-B's own test set is one of the seven."
            " Picking by dev can get worse with more seeds, because dev and test may rank seeds"
            " differently."
        ),
        TextTable(head, rows),
        as_list(lines),
    ]


def selection_cells(selection: Selection) -> list[str]:
    """Show what picking seeds adds in a sweep, with a dash for more seeds than it has."""
    cells = [f"{selection.correlation:.3f}", f"{selection.mean:.2f}"]
    cells += [gain_text(gain) for gain in selection.gains]
    cells += ["–"] * (len(PICKED_FROM) - len(selection.gains))
    return cells


def gain_text(gain: SelectionGain) -> str:
    """Show what picking the best of a number of seeds adds: `+0.54 / +0.72 (24 %)`."""
    return f"{gain.by_dev:+z.2f} / {gain.by_test:+z.2f} ({100 * gain.reach:.0f} %)"


# ---------------------------------------------------------------- setups, remarks, sources


def setups_list(all_sweeps: list[Sweep]) -> str:
    """List how the runs of sweeps were made, a line per source."""
    parts_of_source: dict[str, list[str]] = {}
    for sweep in all_sweeps:
        setup = sweep.runs.evidence[0].setup
        source = sweep.runs.sources[0]
        if source not in parts_of_source:
            parts_of_source[source] = [circumstances(setup)]
        parts_of_source[source].append(f"{encoder_title(sweep.key)}: {budget_text(setup)}")
    return as_list(f"{source}: {'. '.join(parts)}." for source, parts in parts_of_source.items())


def remarks_list() -> str:
    """List what sources report without a number that can be used."""
    lines = []
    for name, source in evidence.evidence_sources().items():
        for remark in source.remarks:
            title = f"{method_title(remark)}, {encoder_title(remark)}"
            lines.append(f"{title} ({name}): {remark.text}.")
    return as_list(lines)


def source_table() -> TextTable:
    """List every source, with what it has."""
    rows = []
    for name, source in evidence.evidence_sources().items():
        licence = source.licence or ""
        cells = [source.who, source_place(source), licence, source.date, scores_text(source)]
        rows.append([name, *cells])
    return TextTable(SOURCE_COLUMNS, rows)


def source_place(source: EvidenceSource) -> str:
    """Name the tables of a paper, or link a repository at a commit, or a thread of it."""
    if source.paper:
        return f"{paper_label(source.paper)}, {tables_text(source.tables)}"
    url = f"https://github.com/{source.repository}"
    if source.thread:
        link = f"[{source.repository}]({url}/issues/{source.thread})"
    else:
        link = f"[{source.repository}]({url}/tree/{source.commit})"
    if source.path:
        return f"{link} {source.path}"
    return f"{link} #{source.thread}"


def tables_text(numbers: list[str]) -> str:
    """Name tables: `Table 1`, `Tables 1, 2 and 3`."""
    noun = "Table" if len(numbers) == 1 else "Tables"
    return f"{noun} {and_list(numbers)}"


def scores_text(source: EvidenceSource) -> str:
    """Count the scored models of a source by kind: `4 without training, 6 trained again by …`."""
    counts: dict[str, int] = {}  # by kind
    for experiment in source.experiments:
        models = len(experiment.runs)
        if not models and experiment.summary is not None:
            models = experiment.summary.n
        counts[experiment.kind] = counts.get(experiment.kind, 0) + models
    if not counts:
        return "none, only remarks"
    return ", ".join(f"{count} {SOURCE_KINDS[kind]}" for kind, count in counts.items())
