"""Verdicts on systems in words: a word for each, sentences, tables, and the content of --json."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

from csebench.base.terminal import counted
from csebench.judging.comparison import (
    JudgedComparisons,
    JudgedPair,
    is_told_apart,
    mean_score,
    ranked,
    reversed_comparison,
    seeds_that_decide,
    stated_item_count,
    times_as_many_items,
)
from csebench.judging.systems import JudgedSystem
from csebench.report.csv_tables import finite
from csebench.report.numbers.compare import Comparison
from csebench.report.numbers.power import POWER
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.comparisons import (
    numbers_text,
    outward,
    outward_range,
    verdict_interval,
)

MOST_LISTED_SYSTEMS = 4  # names that a sentence lists
IN_POINTS = "In points (0.01 of a score)."
NOTHING_TO_TEST = (
    "There is nothing to test with: give several seeds of a system (NAME=PATH,PATH), or files with"
    " values of test items."
)


def verdict_with_interval(comparison: Comparison) -> str:
    """Write `higher: +0.67 (95 % +0.26 to +1.07)`; without the interval if nothing is tested."""
    return f"{comparison.relation.word}: {numbers_text(comparison)}"


def interval_cell(comparison: Comparison) -> str | None:
    """Write the interval below the title `95 % interval`: `+0.26 to +1.07`; None without one.

    Another level than 95 % is stated: `-0.01 to +0.02 (90 %)`.
    """
    interval = verdict_interval(comparison)
    if interval is None:
        return None
    text = outward_range(interval.low, interval.high, "+")
    if interval.percent != 95:
        text += f" ({interval.percent} %)"
    return text


# ---------------------------------------------------------------- two systems


def pair_sentence(judged: JudgedComparisons, pair: JudgedPair) -> str:
    """Word what is shown of two systems over all tasks."""
    comparison = pair.overall
    names = f"{comparison.row} against {comparison.against}, {comparison.columns}"
    sentences = [f"{names}: {verdict_with_interval(comparison)}."]
    match comparison.relation.word:
        case VerdictWord.SAME:
            sentences.append(f"The difference is within {judged.within:g} points.")
        case VerdictWord.UNCLEAR:
            sentences += [excluded_text(comparison), needs_text(pair)]
    return " ".join(sentences)


def excluded_text(comparison: Comparison) -> str:
    """Word the differences that an unclear comparison excludes."""
    return f"A difference above {outward(bound_of(comparison))} points is excluded."


def bound_of(comparison: Comparison) -> float:
    """Return the largest difference, in either direction, that is not excluded."""
    low = comparison.family_low or 0.0
    high = comparison.family_high or 0.0
    return max(abs(low), abs(high))


def needs_text(pair: JudgedPair) -> str:
    """Word how many items or seeds would decide an unclear comparison."""
    items = times_as_many_items(pair.overall)
    seeds = seeds_that_decide(pair.overall)
    ways = []
    if items is not None and items < inf:
        ways.append(f"{factor_text(items)} times as many items")
    if seeds is not None and seeds < inf:
        varying = [system.name for system in (pair.first, pair.second) if system.seeds > 1]
        whose = varying[0] if len(varying) == 1 else "each"
        ways.append(f"{seeds:,.0f} seeds of {whose}")
    size = "a true difference as large as this"
    if not ways:
        return f"No number of items or seeds alone would show {size}."
    return f"To show {size} with {100 * POWER:.0f} % power takes {' or '.join(ways)}."


def factor_text(factor: float) -> str:
    """Write a factor with one decimal, or rounded up to a whole number from ten on."""
    if factor < 10:
        return f"{factor:.1f}"
    return f"{ceil(factor):,}"


def errors_text(pair: JudgedPair) -> str:
    """Word what the intervals of a pair cover: test items, seeds or both."""
    if pair.overall.p is None:
        return why_not_tested([pair])
    estimate = pair.overall.estimate
    assert estimate is not None
    parts = []
    if estimate.item_se is not None:
        parts.append("the test items" if pair.items is None else counted(pair.items, "test item"))
    if estimate.seed_sd is not None:
        varying = [str(count) for count in estimate.seed_counts if count > 1]
        parts.append(f"{' + '.join(varying)} seeds")
    sentences = [f"{IN_POINTS} The interval covers {' and '.join(parts)}."]
    if estimate.item_se is None:
        sentences.append("Values of single test items are not known.")
    if pair.first.seeds == 1 or pair.second.seeds == 1:
        sentences.append(single_models_sentence(pair))
    return " ".join(sentences)


def single_models_sentence(pair: JudgedPair) -> str:
    """Word that one system of a pair is a single model, or that both are."""
    first = pair.first
    second = pair.second
    if first.seeds == second.seeds:
        return "Each system is one model, so no seeds vary."
    single, varying = (first, second) if first.seeds == 1 else (second, first)
    return f"{single.name} is a single model, so only the seeds of {varying.name} vary."


def why_not_tested(pairs: Sequence[JudgedPair]) -> str:
    """Word why no mean difference of some pairs is tested: no items at all, or not in all tasks."""
    without_items = []
    is_any_task_tested = False
    for pair in pairs:
        for comparison in pair.tasks:
            if comparison.p is not None:
                is_any_task_tested = True
            elif comparison.columns not in without_items:
                without_items.append(comparison.columns)
    if not is_any_task_tested:
        return NOTHING_TO_TEST
    verb = "has" if len(without_items) == 1 else "have"
    names = names_text(without_items)
    return f"{IN_POINTS} The mean is not tested, because {names} {verb} no values of test items."


def task_table(judged: JudgedComparisons, pair: JudgedPair) -> tuple[list[str], list[list]]:
    """Lay out the difference over all tasks and in each task.

    Returns:
        The titles of columns, and the rows.
    """
    head = ["task", pair.first.name, pair.second.name, "difference", "95 % interval", "verdict"]
    comparisons = [(list(judged.compared.tasks), pair.overall)]
    if len(pair.tasks) > 1:
        for task, comparison in zip(judged.compared.tasks, pair.tasks, strict=True):
            comparisons.append(([task], comparison))
    rows = []
    for tasks, comparison in comparisons:
        scores = [f"{mean_score(system, tasks):.2f}" for system in (pair.first, pair.second)]
        assert comparison.estimate is not None
        difference = f"{comparison.estimate.gain:+z.2f}"
        interval = interval_cell(comparison)
        verdict = str(comparison.relation.word)
        rows.append([comparison.columns, *scores, difference, interval, verdict])
    return head, rows


# ---------------------------------------------------------------- more than two systems


def ranking_sentence(judged: JudgedComparisons) -> str:
    """Word which system is highest, and which ones cannot be told from it."""
    best, *others = ranked(judged.compared)
    tasks = judged.compared.tasks
    score = f"{mean_score(best, tasks):.2f}"
    where = tasks[0] if len(tasks) == 1 else f"mean of {len(tasks)} tasks"
    first = f"{best.name} is highest of {len(others) + 1} systems ({where}: {score})"
    close = []
    for other in others:
        if not is_told_apart(judged.pair(best.name, other.name).overall):
            close.append(other.name)
    if not close:
        beginning = f"{first} and is told apart from all others."
    else:
        beginning = f"{first} and cannot be told from {names_text(close)}."
    of_all = sum(is_told_apart(pair.overall) for pair in judged.pairs)
    of_neighbours = 0
    for first, second in pairwise(ranked(judged.compared)):
        of_neighbours += is_told_apart(judged.pair(first.name, second.name).overall)
    pairs = counted(len(judged.pairs), "pair")
    counts = f"{of_all} of {pairs} are told apart"
    counts += f", {of_neighbours} of {len(others)} pairs of neighbours."
    return f"{beginning} {counts}"


def names_text(names: Sequence[str]) -> str:
    """List the first of many names: `a, b, c, d and 3 more`."""
    text = ", ".join(names[:MOST_LISTED_SYSTEMS])
    if len(names) > MOST_LISTED_SYSTEMS:
        text += f" and {len(names) - MOST_LISTED_SYSTEMS} more"
    return text


def ranking_table(judged: JudgedComparisons) -> tuple[list[str], list[list]]:
    """Lay out systems from the highest on, with their groups and the verdict on the next one.

    Returns:
        The titles of columns, and the rows.
    """
    head = ["rank", "system", "score", "seeds", "groups", "against the next"]
    systems = ranked(judged.compared)
    rows: list[list] = []
    for rank, system in enumerate(systems, 1):
        verdict = None
        if rank < len(systems):
            verdict = verdict_between(judged, system, systems[rank])
        score = f"{mean_score(system, judged.compared.tasks):.2f}"
        rows.append([rank, system.name, score, system.seeds, groups_text(judged, system), verdict])
    return head, rows


def verdict_between(judged: JudgedComparisons, first: JudgedSystem, second: JudgedSystem) -> str:
    """Write the verdict on a system against another one, whatever their order was."""
    return verdict_with_interval(as_seen_from(first.name, judged.pair(first.name, second.name)))


def as_seen_from(name: str, pair: JudgedPair) -> Comparison:
    """Return the comparison of a pair over all tasks with the system of this name first."""
    comparison = pair.overall
    if comparison.row == name:
        return comparison
    return reversed_comparison(comparison)


def groups_text(judged: JudgedComparisons, system: JudgedSystem) -> str:
    """List the numbers of the groups that a system is in: `1, 2`."""
    numbers = []
    for number, group in enumerate(judged.groups, 1):
        if system.name in group:
            numbers.append(str(number))
    return ", ".join(numbers)


# ---------------------------------------------------------------- everything


@dataclass(frozen=True)
class JudgementText:
    """What the command prints."""

    sentence: str
    head: list[str]
    rows: list[list]
    notes: list[str]  # below the table


def judgement_in_words(judged: JudgedComparisons) -> JudgementText:
    """Word what is shown of systems: a sentence, a table and notes."""
    if len(judged.compared.systems) == 2:
        (pair,) = judged.pairs
        head, rows = task_table(judged, pair)
        notes = [errors_text(pair)]
        tested_tasks = sum(comparison.p is not None for comparison in pair.tasks)
        if tested_tasks > 1:
            notes.append(
                f"Verdicts and intervals of single tasks hold for all {tested_tasks} at once"
                " (Holm, Bonferroni)."
            )
        return JudgementText(
            pair_sentence(judged, pair), head, rows, notes + notes_on_input(judged)
        )
    head, rows = ranking_table(judged)
    notes = [
        f"Systems with a common group cannot be told apart; --json lists every pair. {IN_POINTS}"
        f" Verdicts and intervals hold for all {counted(len(judged.pairs), 'pair')} at once (Holm,"
        " Bonferroni)."
    ]
    if all(pair.overall.p is None for pair in judged.pairs):
        notes = [why_not_tested(judged.pairs)]
    return JudgementText(ranking_sentence(judged), head, rows, notes + notes_on_input(judged))


def notes_on_input(judged: JudgedComparisons) -> list[str]:
    """Word which tasks are left out, and what is doubtful about the input."""
    notes = list(judged.compared.doubts)
    tasks = judged.compared.left_out
    if tasks:
        notes.append(f"Left out, because not every system has a score: {names_text(tasks)}.")
    return notes


def judgement_content(judged: JudgedComparisons) -> dict:
    """Collect everything that is shown, for --json."""
    systems = []
    for system in ranked(judged.compared):
        by_task = {task: mean_score(system, [task]) for task in judged.compared.tasks}
        systems.append(
            {
                "name": system.name,
                "score": mean_score(system, judged.compared.tasks),
                "seeds": system.seeds,
                "scores": by_task,
            }
        )
    return {
        "sentence": judgement_in_words(judged).sentence,
        "systems": systems,
        "tasks": list(judged.compared.tasks),
        "left_out": list(judged.compared.left_out),
        "doubts": list(judged.compared.doubts),
        "within": judged.within,
        "groups": [list(group) for group in judged.groups],
        "comparisons": judgement_records(judged),
    }


def judgement_records(judged: JudgedComparisons) -> list[dict]:
    """Lay out every comparison: a record for each pair over all tasks and in each task."""
    rows = []
    for pair in judged.pairs:
        rows.append(pair_record(pair.overall, None, pair.items))
        for task, comparison in zip(judged.compared.tasks, pair.tasks, strict=True):
            items = stated_item_count([*pair.first.scores[task], *pair.second.scores[task]])
            rows.append(pair_record(comparison, task, items))
    return rows


def pair_record(comparison: Comparison, task: str | None, items: int | None) -> dict:
    """Lay out a comparison. Numbers are in points; None stands for no number.

    Args:
        task: None for the mean of all tasks.
        items: number of test items, if it is known.
    """
    estimate = comparison.estimate
    assert estimate is not None
    bound = None
    if comparison.p is not None:
        bound = bound_of(comparison)
    return {
        "first": comparison.row,
        "second": comparison.against,
        "task": task,
        "verdict": str(comparison.relation.word),
        "text": verdict_with_interval(comparison),
        "difference": estimate.gain,
        "low": comparison.low,
        "high": comparison.high,
        "p": comparison.p,
        "p_of_family": comparison.p_family,
        "low_of_family": comparison.family_low,
        "high_of_family": comparison.family_high,
        "bound": bound,
        "items": items,
        "item_error": estimate.item_se,
        "seed_deviation": estimate.seed_sd,
        "times_as_many_items": finite(times_as_many_items(comparison)),
        "seeds_needed": finite(seeds_that_decide(comparison)),
    }
