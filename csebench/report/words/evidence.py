"""Sentences for runs that other people published, and names of methods, encoders and tables.

The numbers are in csebench/report/numbers/others.py and printed_averages.py. The tables of the page
"Do others reach the printed scores?" are made in csebench/report/pages/evidence.py.
"""

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
from csebench.report.numbers.selection import best_scores, runs_to_reach
from csebench.report.numbers.verdict_words import PrintedWord
from csebench.report.words.comparisons import outward_range
from csebench.report.words.verdicts import equals_mean, printed_verdict_text

SETUPS_TITLE = "The setups of the sweeps"  # of the folded section with `circumstances`
# `code` of a setup starts with this if the source does not use the authors' code
OWN_CODE = "own re-implementation"

# ---------------------------------------------------------------- the answer over sources


def pooled_text() -> str:
    """Say whether printed values are plausible over all sources, a sentence or two per method."""
    texts = []
    for pooled in pooled_methods():
        texts += [pooled_sentence(pooled), picking_sentence(pooled)]
    if not texts:
        return "**No method has runs of enough sources to pool them.**"
    return " ".join(text for text in texts if text)


def pooled_sentence(pooled: PooledMethod) -> str:
    """Give the verdict of all sources on a printed value.

    `**X on E: 76.25 is printed; 67 runs of 14 sources average 75.27. Verdict: inconclusive: …**`
    """
    count = pooled.runs.summary.n
    printed = pooled.printed
    name = f"{method_title(pooled.key)} on {encoder_and_pooler(pooled.key)}"
    verdict = pooled.runs.verdict(printed.value, printed.seeds)
    effects = pooled.runs.effects
    what_varies = "source" if effects.tau > effects.within else "seed"
    answer = verdict_range_text(verdict, printed.seeds, count, what_varies)
    return (
        f"**{name}: {printed.value.text} is printed; {count} runs of {effects.sources} sources"
        f" average {effects.mean:.2f}. Verdict: {answer}.**"
    )


def picking_sentence(pooled: PooledMethod) -> str:
    """Say how many runs an average source needs, so that its best is expected to reach a value.

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
        most = len(scores.by_test)
        return (
            f"An average source stays below {pooled.printed.value.text} even with the best of"
            f" {most} runs by test score."
        )
    text = (
        f"To reach {pooled.printed.value.text}, an average source needs the best of {by_test} runs"
        " if it picks by test score"
    )
    if by_dev is None:
        return f"{text}. The best of {len(scores.by_dev)} by STS-B dev does not reach it."
    return f"{text}, and the best of {by_dev} if it picks by STS-B dev."


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
    """Say which sweeps of a method have no run that reaches the printed value.

    `**In 3 of 4 seed sweeps of X no run reaches the printed value** (…); on E 5 of 50 runs do.`
    """
    encoders_without = []
    texts_of_others = []
    for sweep in sweeps_of_method:
        encoder = encoder_and_pooler(sweep.key)
        count = sweep.runs.reach(sweep.printed.value.value)
        if count:
            texts_of_others.append(f"on {encoder} {count} of {sweep.runs.summary.n} runs do")
        else:
            encoders_without.append(encoder)
    method = method_title(sweeps_of_method[0].key)
    counts = f"{len(encoders_without)} of {len(sweeps_of_method)} seed sweeps of {method}"
    text = f"**In {counts} no run reaches the printed value**"
    if encoders_without:
        text += f" ({', '.join(encoders_without)})"
    if texts_of_others:
        text += f"; {', '.join(texts_of_others)}"
    return f"{text}."


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
    if all(code.startswith(OWN_CODE) for code in codes):
        return f"of one re-implementation ({sources}), not of the authors' code. {differences}"
    return f"of one source ({sources}). {differences}"


def still_rises(runs: Group) -> bool:
    """Whether at least half of the runs are known to have their best checkpoint last."""
    kept_last = [run for run in runs.runs if run.kept_last_step]
    return 2 * len(kept_last) >= runs.summary.n


def counts_text() -> str:
    """Say how many re-trainings the verdicts rest on, and how many do not count."""
    counts = count_evidence()
    return (
        f"The verdicts rest on {counts.comparable} runs from {counts.sources} sources, which"
        " publish the score of each run. Others trained them with the paper's data, budget,"
        " objective and pooling; details of the optimiser may differ (see the setups below)."
        f" {counts.other_runs} runs are not counted, because they differ in these or are doubtful."
        f" {counts.checkpoints} scores of released checkpoints are not counted either."
        f" {counts.means} means of several runs are published without single scores; only pooled"
        " verdicts use them."
    )


# ---------------------------------------------------------------- verdicts


def verdict_range_text(
    verdict: stats.Verdict, printed_seeds: int, runs: int, what_varies: str = "seed"
) -> str:
    """Word the verdict, the distance of a printed value, and the range of further such runs.

    `inconclusive: 1.14 above an average run, inside the range of such runs, 73.15 to 76.71; a lucky
    but possible seed`

    Args:
        printed_seeds: number of runs that the printed value is a mean of.
        runs: number of runs that it is judged by.
        what_varies: what a value may owe its distance to: `seed`, or `source` where runs differ
            more between sources than within one.
    """
    text = printed_verdict_text(verdict, runs)
    if verdict.low is None or verdict.high is None:
        return text
    word = stats.printed_word(verdict.name)
    side = "outside" if word == PrintedWord.DIFFERS else "inside"
    text += f", {side} the range of such runs, {outward_range(verdict.low, verdict.high)}"
    if word == PrintedWord.INCONCLUSIVE and printed_seeds == 1 and not equals_mean(verdict):
        text += f"; {possible_text(verdict, what_varies)}"
    return text


def possible_text(verdict: stats.Verdict, what_varies: str) -> str:
    """Say how such a printed value may come about: `a lucky but possible seed`.

    A seed is ordinary if it lies in the middle quarter of the range of further runs.
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

    `final version; 78.14 in miCSE, Table 1`
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
    return f"{runs.kind}, {', '.join(runs.sources)}: {setup_differences(runs, row)}."


def setup_differences(runs: Group, row: Row) -> str:
    """Say how runs differ from the authors' recipe, with their budget next to a row's own."""
    first, *others = runs.evidence
    if others:
        return f"{len(runs.sources)} sources with their own setups"
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
    if setup.evaluate_every:
        parts.append(f"evaluated every {setup.evaluate_every} steps")
    parts += [setup.selection, setup.differs]
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
