"""Sentences for runs that other people published, and names of methods, encoders and tables.

The numbers are in csebench/report/numbers/others.py and printed_averages.py. The tables of the page
"Do others reach the printed scores?" are made in csebench/report/pages/evidence.py.
"""

from csebench.base.terminal import and_list, counted
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import MatchKey, Remark, Setup
from csebench.plan.catalog.files import paper
from csebench.plan.schema.paper import Row
from csebench.plan.targets import grid_label
from csebench.report.numbers import stats
from csebench.report.numbers.others import (
    Group,
    GroupKind,
    PooledMethod,
    Sweep,
    count_evidence,
    pooled_methods,
    sweeps,
)
from csebench.report.numbers.printed_averages import AuthorsPrint, PrintedAverage
from csebench.report.numbers.random_effects import SOURCES_NEEDED
from csebench.report.numbers.selection import best_scores, runs_to_reach
from csebench.report.numbers.verdict_words import PrintedWord
from csebench.report.words.comparisons import outward_range
from csebench.report.words.verdicts import distance_text, equals_mean, printed_verdict_text

SETUPS_TITLE = "The setups of the sweeps"  # of the folded section with `circumstances`
# `code` of a setup starts with this if the source does not use the authors' code
REIMPLEMENTATION = "re-implementation"
MEAN_OVER_SOURCES = "the mean over sources"

# ---------------------------------------------------------------- the answer over sources


def pooled_text() -> str:
    """Say whether printed values are plausible over all sources, a paragraph per method."""
    paragraphs = []
    for pooled in pooled_methods():
        paragraphs.append(f"{pooled_sentence(pooled)} {picking_sentence(pooled)}".rstrip())
    if not paragraphs:
        return "**No method has runs of enough sources to pool them.**"
    paragraphs.append(
        "Other methods and encoders follow below. There, differences between sources cannot be told"
        f" from those between seeds: fewer than {SOURCES_NEEDED} sources have runs, or none has"
        " several. So they get no verdict over sources. The tables judge the single runs of all"
        " sources as one group, whose ± contains both."
    )
    return "\n\n".join(paragraphs)


def pooled_sentence(pooled: PooledMethod) -> str:
    """Give the verdict of all sources on a printed value.

    `**X on E: 76.25 is printed; the means of 14 sources (67 runs) average 75.27. The …**`
    """
    printed = pooled.printed.value.text
    effects = pooled.runs.effects
    name = f"{method_title(pooled.key)} on {encoder_and_pooler(pooled.key)}"
    return (
        f"**{name}: {printed} is printed; the means of {effects.sources} sources"
        f" ({pooled.runs.summary.n} runs) average {effects.mean:.2f}. {pooled_verdict(pooled)}**"
    )


def pooled_verdict(pooled: PooledMethod) -> str:
    """Word the verdict of all sources, and why a value that is inconclusive is possible.

    `The verdict is *differs*: 76.25 is 2.10 above the mean over sources, and outside …`
    """
    printed = pooled.printed
    effects = pooled.runs.effects
    verdict = pooled.runs.verdict(printed.value, printed.seeds)
    assert verdict.low is not None and verdict.high is not None, "a pool always has a range"
    word = stats.printed_word(verdict.name)
    distance = distance_text(verdict, pooled.runs.summary.n, mean=MEAN_OVER_SOURCES)
    side = "outside" if word == PrintedWord.DIFFERS else "inside"
    what = "one run" if printed.seeds == 1 else f"the mean of {printed.seeds} runs"
    ends = outward_range(verdict.low, verdict.high)
    text = (
        f"The verdict is *{word}*: {printed.value.text} is {distance}, and {side} the 95 % range of"
        f" {what} by a new source ({ends})"
    )
    text += ", which is too wide to confirm it." if word == PrintedWord.INCONCLUSIVE else "."
    if word == PrintedWord.INCONCLUSIVE and printed.seeds == 1 and not equals_mean(verdict):
        what_varies = "source" if effects.tau > effects.within else "seed"
        text += f" {printed.value.text} is {possible_text(verdict, what_varies)}."
    return text


def picking_sentence(pooled: PooledMethod) -> str:
    """Say of how many runs of an average source the best is expected to reach a printed value.

    Returns:
        Empty if an average run reaches it, or if nothing is known about picking.
    """
    printed = pooled.printed.value
    scores = best_scores(pooled)
    if scores is None:
        return ""
    by_dev = runs_to_reach(printed, scores.by_dev)
    by_test = runs_to_reach(printed, scores.by_test)
    if by_test == 1:
        return ""
    if by_test is None:
        return (
            f"For an average source, even the best of {len(scores.by_test)} runs is expected to"
            f" stay below {printed.text}, also if the test sets pick it."
        )
    text = (
        f"For an average source, the best of {by_test} runs is expected to reach {printed.text} if"
        " the test sets pick it"
    )
    if by_dev is None:
        return f"{text}. If STS-B dev picks it, the best of {len(scores.by_dev)} does not."
    return f"{text}, and the best of {by_dev} if STS-B dev picks it."


# ---------------------------------------------------------------- the answer of each sweep


def reach_text() -> str:
    """Say how many runs of each sweep reach the printed value, a sentence per method."""
    by_method: dict[str, list[Sweep]] = {}
    for sweep in sweeps():
        by_method.setdefault(sweep.key.method, []).append(sweep)
    if not by_method:
        return "**No seed sweep of others is known.**"
    return " ".join(reach_sentence(of_method) for of_method in by_method.values())


def reach_sentence(sweeps_of_method: list[Sweep]) -> str:
    """Say on which encoders no run of a method's sweeps reaches the printed value.

    `**Seed sweeps of X (50 seeds per encoder, of one source): no run reaches the printed value on A
    and B; on C 5 of 50 do.**`
    """
    encoders_without = []
    reached = []
    seeds = set()
    sources = set()
    for sweep in sweeps_of_method:
        encoder = encoder_and_pooler(sweep.key)
        seeds.add(sweep.runs.summary.n)
        sources.update(sweep.runs.sources)
        count = sweep.runs.reach(sweep.printed.value.value)
        if count:
            reached.append(f"on {encoder} {count} of {sweep.runs.summary.n}")
        else:
            encoders_without.append(encoder)

    origin = "one source" if len(sources) == 1 else f"{len(sources)} sources"
    numbers = " or ".join(map(str, sorted(seeds)))
    method = method_title(sweeps_of_method[0].key)
    text = f"**Seed sweeps of {method} ({numbers} seeds per encoder, of {origin}): "
    if not encoders_without:
        return f"{text}{and_list(reached)} reach the printed value.**"
    text += f"no run reaches the printed value on {and_list(encoders_without)}"
    if reached:
        text += f"; {and_list(reached)} do"
    return f"{text}.**"


def sweeps_text() -> str:
    """Say which seeds and code the sweeps ran, and where longer training might reach more."""
    found = sweeps()
    seeds = sorted({sweep.runs.summary.n for sweep in found})
    text = (
        f"Each sweep has {' or '.join(map(str, seeds))} seeds {code_text(found)} None of these runs"
        " is ours."
    )
    rising = [encoder_and_pooler(sweep.key) for sweep in found if still_rises(sweep.runs)]
    if rising:
        text += (
            f" On {' and '.join(rising)} the last checkpoint of at least half of the runs was the"
            " best: longer training might reach more."
        )
    return text


def code_text(found: list[Sweep]) -> str:
    """Say whose code the sweeps ran, and where its differences are listed."""
    names = set()
    for sweep in found:
        names.update(sweep.runs.sources)
    sources = ", ".join(sorted(names))
    codes = [sweep.runs.evidence[0].setup.code or "" for sweep in found]
    differences = f"“{SETUPS_TITLE}” (below) lists how it differs."
    if all(code.startswith(REIMPLEMENTATION) for code in codes):
        return f"of one re-implementation ({sources}), not of the authors' code. {differences}"
    return f"of one source ({sources}). {differences}"


def still_rises(runs: Group) -> bool:
    """Whether at least half of the runs are known to have their best checkpoint last."""
    kept_last = [run for run in runs.runs if run.kept_last_step]
    return 2 * len(kept_last) >= runs.summary.n


def counts_text() -> str:
    """Say how many runs the verdicts rest on, and how many do not count."""
    counts = count_evidence()
    text = (
        f"The verdicts on this page rest on {counts.comparable} runs from {counts.sources} sources,"
        " which publish the average of each run."
    )
    if counts.means:
        text += (
            f" Pooled verdicts also use {counted(counts.means, 'mean')} of several runs whose"
            " single averages are not published."
        )
    text += (
        " All were trained with the paper's data, budget, objective and pooling; details of the"
        " optimiser may differ (see the setups below)."
        f" {counts.other_runs} runs and {counted(counts.other_means, 'mean')} of several runs are"
        " not counted, because they differ in these or are doubtful."
        f" {counts.without_average} more runs state no average of the seven STS test sets."
        f" {counts.checkpoints} scores of released checkpoints are not counted either."
    )
    return text


# ---------------------------------------------------------------- verdicts


def verdict_range_text(verdict: stats.Verdict, printed_seeds: int, runs: int) -> str:
    """Word the verdict of runs on a printed value, its distance, and the range of a further run.

    `inconclusive: 1.14 above an average run, inside the 95 % range of a further run (73.15 to
    76.71); a lucky but possible seed`

    Args:
        printed_seeds: number of runs that the printed value is a mean of.
        runs: number of runs that it is judged by.
    """
    text = printed_verdict_text(verdict, runs)
    if verdict.low is None or verdict.high is None:
        return text
    word = stats.printed_word(verdict.name)
    side = "outside" if word == PrintedWord.DIFFERS else "inside"
    what = "a further run" if printed_seeds == 1 else f"the mean of {printed_seeds} further runs"
    text += f", {side} the 95 % range of {what} ({outward_range(verdict.low, verdict.high)})"
    if word == PrintedWord.INCONCLUSIVE and printed_seeds == 1 and not equals_mean(verdict):
        text += f"; {possible_text(verdict, 'seed')}"
    return text


def possible_text(verdict: stats.Verdict, what_varies: str) -> str:
    """Say how such a printed value may come about: `a lucky but possible seed`.

    A seed is ordinary if it lies in the middle quarter of the range of further runs.

    Args:
        what_varies: what a value may owe its distance to: `seed`, or `source` where runs differ
            more between sources than within one.
    """
    if what_varies == "source":
        return "possible, because the means of sources vary more than the seeds of one source"
    assert verdict.low is not None and verdict.high is not None, "only a range makes it possible"
    if abs(verdict.distance) <= (verdict.high - verdict.low) / 8:
        return "an ordinary seed"
    luck = "a lucky" if verdict.distance <= 0 else "an unlucky"
    return f"{luck} but possible seed"


# ---------------------------------------------------------------- where a value is printed


def print_place(printed: AuthorsPrint) -> str:
    """Say where authors print an average, and which other values other tables have.

    `final version of its paper; 78.14 in miCSE, Table 1`
    """
    if printed.row is not None:
        place = average_place(printed.row)
    else:
        place = printed.note or "quoted by others"
    others = [f"{row.value.text} in {average_place(row)}" for row in printed.other_rows]
    return "; ".join([place, *others])


def average_place(average: PrintedAverage) -> str:
    """Name the table that prints an average: `InfoCSE, Table 2`."""
    return f"{paper(average.paper).label}, {grid_label(average.grid_name)}"


# ---------------------------------------------------------------- how runs were made


def group_remark(runs: Group, row: Row) -> str:
    """Name the sources of a group of runs for a row of a table, and how their setups differ."""
    if runs.kind == GroupKind.POOLED:
        return (
            "pooled over all sources that state the score, without runs of this paper. Each has its"
            " own setup (`csebench show` names them)."
        )
    if len(runs.evidence) > 1:
        return (
            f"{runs.kind} of the sources {and_list(runs.sources)}, each with its own setup"
            " (`csebench show` names them)."
        )
    return f"{runs.kind}, {', '.join(runs.sources)}: {setup_differences(runs, row)}."


def setup_differences(runs: Group, row: Row) -> str:
    """Say how runs differ from the authors' recipe, with their budget next to a row's own."""
    first = runs.evidence[0]
    parts = [budget_text(first.setup, row), circumstances(first.setup)]
    return "; ".join(part for part in parts if part)


def budget_text(setup: Setup, row: Row | None = None) -> str:
    """Name the budget of runs: `batch 64 (this row: 50), learning rate 3e-5, 15,625 steps`."""
    params = {}
    if row is not None and row.run is not None:
        params = row.run.params
    parts = []
    if setup.batch_size is not None:
        own_value = own_value_text(setup.batch_size, params.get("batch_size"))
        parts.append(f"batch {setup.batch_size}{own_value}")
    if setup.learning_rate is not None:
        own_value = own_value_text(setup.learning_rate, params.get("learning_rate"))
        parts.append(f"learning rate {setup.learning_rate}{own_value}")
    if setup.steps is not None:
        own_value = own_value_text(setup.steps, params.get("steps"))
        parts.append(f"{setup.steps:,} steps{own_value}")
    return ", ".join(parts)


def own_value_text(theirs: str | int, here) -> str:
    """Give a row's own value in brackets. Empty if it has none, or the same."""
    if here is None or str(theirs) == str(here) or float(theirs) == float(here):
        return ""
    return f" (this row: {here:g})"


def circumstances(setup: Setup) -> str:
    """Name code, precision, versions, GPU, selection, and what else a source states."""
    parts = [setup.code, setup.precision, setup.versions]
    if setup.gpu:
        parts.append(f"GPU {setup.gpu}")
    if setup.selection:
        parts.append(f"scored checkpoint: {setup.selection}")
    if setup.evaluate_every:
        parts.append(f"evaluated every {setup.evaluate_every} steps")
    parts.append(setup.differs)
    return "; ".join(part for part in parts if part)


# ---------------------------------------------------------------- names


def key_title(key: MatchKey) -> str:
    """Name a method and its encoder: `unsup-SimCSE, BERT-base`."""
    return f"{method_title(key)}, {encoder_and_pooler(key)}"


def encoder_and_pooler(key: MatchKey) -> str:
    """Name an encoder, with the pooler if it is not the method's own: `BERT-base (avg)`."""
    if key.pooler == evidence.default_pooler(key.method):
        return encoder_title(key)
    return f"{encoder_title(key)} ({key.pooler})"


def method_title(named: MatchKey | Remark) -> str:
    """Name the method of a key or remark."""
    return evidence.evidence_names().methods[named.method].title


def encoder_title(named: MatchKey | Remark) -> str:
    """Name the encoder of a key or remark."""
    return evidence.evidence_names().encoders[named.encoder]
