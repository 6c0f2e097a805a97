"""What the page on others' runs says in sentences: its first lines, its caveats, what the runs of a method mean.

The numbers come from csebench/report/evidence.py, the tables are in evidence_tables.py.
"""

from __future__ import annotations

from csebench.plan import evidence
from csebench.plan.evidence import Evidence, Key
from csebench.plan.papers import Published
from csebench.report import stats
from csebench.report.evidence import (
    SWEEP,
    Group,
    Print,
    budget,
    circumstances,
    groups,
    keys,
    printed_by_authors,
    sweeps,
)
from csebench.report.pages.table import SIGNS

# What a verdict says about a printed value: whether it could be one more run, not how many runs reach it.
WITHIN = {
    stats.REPRODUCED: "printed value within their spread",
    stats.CLOSE: "printed value at the edge of their spread",
    stats.LOWER: "runs lower than print",
    stats.HIGHER: "runs higher than print",
}
RARE = 0.25  # a printed value that a smaller share of runs reaches is high for their recipe


# ---------------------------------------------------------------- names and numbers


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


def signed(x: float) -> str:
    return f"{x:+z.2f}"


def as_list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def source_names(experiments: list[Evidence]) -> str:
    return ", ".join(dict.fromkeys(e.name for e in experiments))


# ---------------------------------------------------------------- sentences


def opening() -> list[str]:
    """What was found, first."""
    trained = [e for e in evidence.all_evidence() if e.experiment.kind in ("retrained", "paper") and e.experiment.runs]
    count, count_of_sources = sum(len(e.experiment.runs) for e in trained), len({e.name for e in trained})
    lines, rising = [], []
    for key, runs, value in sweeps():
        s = runs.summary
        lines.append(finding(key, runs, value))
        if kept_last(runs):
            rising.append(f"{runs.kept_last_step} of {s.n} on {encoder_title(key)}")
    parts = [
        f"Other people have trained these methods again and published their scores: {count} training runs from"
        f" {count_of_sources} sources. None of these runs was made by this project. Which of them reach the printed"
        " number?",
        as_list(lines),
    ]
    if rising:
        parts.append(
            f"In {len(rising)} of these {len(lines)} sweeps the last checkpoint of most runs was their best"
            f" ({'; '.join(rising)}): scores were still rising when training ended, so a longer schedule might reach"
            " more."
        )
    few = [groups(key)[0].summary.n for key in keys() if groups(key) and groups(key)[0].kind != SWEEP]
    if few:
        parts.append(
            f"{len(few)} further combinations of method and encoder have at most {max(few)} comparable runs each;"
            f" those with {stats.SEEDS_NEEDED} or more have a verdict, which is weak."
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
        " the authors' in the settings listed here, and perhaps in others. Single runs are self-selected: people who"
        " miss a number open an issue, people who reach it do not. Only a sweep of seeds avoids this. The setups"
        " of the sweeps:",
        "\n".join(f"- {name}: {'. '.join(lines)}." for name, lines in setups.items()),
    ]


def how_to_read() -> str:
    signs = ", ".join(f"{SIGNS[name]} {text}" for name, text in WITHIN.items())
    return (
        f"Two questions, two columns. *Verdict*: could the printed value be one more run of this recipe? {signs},"
        f" {SIGNS[stats.TOO_FEW]} too few seeds. ± is the half-width of the 95 % interval around the mean of others'"
        " runs for this verdict (99 % at the edge); a wide interval is weak evidence, as many values lie in it."
        " *Reach print*: how many runs are at or above the printed value. A value can be within the spread and above"
        " every run. *z*: by how many standard deviations the printed value is above the mean. The released checkpoint"
        " has the score that its README states."
    )


def meaning_text(key: Key) -> str:
    """What others' runs of a method say, in a sentence or two."""
    runs, *more = groups(key)
    value, s = printed_by_authors(key), runs.summary
    text = "no printed value is known." if value is None else comparison_text(runs, value)
    if kept_last(runs):
        text += f" But in {runs.kept_last_step} of {s.n} runs the last checkpoint was the best, so longer training"
        text += " might reach more."
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
