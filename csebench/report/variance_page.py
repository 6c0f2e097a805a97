"""The page on where spread comes from (`results/mini/variance.md`). Its runs: csebench/plan/variance.py."""

from __future__ import annotations

from math import sqrt

import numpy as np

from csebench.plan import targets
from csebench.plan.catalog import STS_COLUMNS
from csebench.plan.catalog import scale as read_scale
from csebench.plan.grids import CellPlan, plan_grid
from csebench.plan.variance import BEST, LAST, NAME, SOURCES, Levels, design, study
from csebench.report.crossed import MeanSquares, Share, mean_squares, share_alone, total_deviation
from csebench.report.markdown import made_sections, page_conditions, scale_warning
from csebench.report.sections import Part, Section, TableData, as_markdown
from csebench.report.stats import quantile, summarise, two_sided
from csebench.score.store import score, value

TITLE = "Where spread comes from"
LABELS = {"subset": "subset of the corpus", "order": "order of batches", "dropout": "dropout", "head": "new weights"}
HEAD = ["source", "alone: sd", "alone: share"]
Scores = dict[tuple[int, Levels], float]  # by (block, levels)


def page(scale_name: str) -> str:
    """The whole page as Markdown."""
    made, title = targets.page(NAME, scale_name), f"# {TITLE}, at scale {scale_name}"
    parts = [title, scale_warning(scale_name), *as_markdown(sections(scale_name))]
    return "\n\n".join([*parts, *made_sections(made, study_conditions(made))]) + "\n"


def study_conditions(made: targets.Page) -> list[list[str]]:
    scale, content = read_scale(made.scale), study()
    seeds = range(content.first_seed, content.first_seed + 2 * content.blocks)
    return [
        *(row for row in page_conditions(made) if row[0] not in ("Seeds", "Sentences of a column")),
        ["Sentences of a run", f"{scale.sizes[content.size]:,}"],
        ["Settings of the study", ", ".join(f"{key} {value}" for key, value in content.sweep.items()) or "none"],
        ["Seeds of each source", ", ".join(map(str, seeds))],
    ]


def sections(scale_name: str) -> list[Section]:
    methods, content = plan_grid(NAME, NAME, scale_name), study()
    about = [
        f"**Finding.** {' '.join(finding(best, scale_name) for best, _ in methods)}",
        f"Four sources of randomness have a seed each: {', '.join(LABELS.values())}. A block has two seeds of every"
        f" source and a run for each of the 16 combinations; {content.blocks} blocks, which share no seed. New weights"
        " are the head and the layers of a component; dropout includes other noise of the steps. Scores are"
        f" Spearman x 100, the average of {', '.join(STS_COLUMNS[:-1])}.",
        *filter(None, [content.note]),
        "**Alone**: the spread where only this source varies and the other three stay, as a standard deviation and"
        " as a share of the variance where all four vary. The shares add up to 1 if the sources act independently, and"
        " to more if a source changes what another one does. Intervals are at 95 %, under a normal model of random"
        f" effects; {content.blocks} blocks leave them wide.",
    ]
    return [Section("", about), *(method_section(best, last, scale_name) for best, last in methods)]


def finding(best: CellPlan, scale_name: str) -> str:
    """How much a method's scores spread, and which source makes most of it, with its interval."""
    scores = read(best, BEST, scale_name)
    if len(scores) < len(best.specs):
        return f"{best.row.label}: no finding yet, {len(scores)} of {len(best.specs)} runs are scored."
    squares = squares_of(scores)
    shares = {source: share_alone(squares, number) for number, source in enumerate(SOURCES)}
    largest = max(shares, key=lambda source: shares[source].value)
    share, clear = (
        shares[largest],
        all(other.high < shares[largest].low for source, other in shares.items() if source != largest),
    )
    total = sum(share.value for share in shares.values())
    pooler, mean = best.specs[0].params["pooler"], np.mean([*scores.values()])
    return (
        f"{best.row.label}, pooler `{pooler}`, mean {mean:.2f}: standard deviation"
        f" {share_text(total_deviation(squares))}. The largest source: {LABELS[largest]}, which varied alone gives"
        f" {100 * share.value:.0f} % of the variance (95 % interval {100 * share.low:.0f} % to"
        f" {100 * share.high:.0f} %); all four, each varied alone, add up to {100 * total:.0f} %"
        f"{'' if clear else ', and their intervals overlap'}."
    )


def squares_of(scores: Scores) -> MeanSquares:
    levels = (2,) * len(SOURCES)
    return mean_squares(np.array([scores[key] for key in design(BEST)]).reshape(study().blocks, *levels))


def method_section(best: CellPlan, last: CellPlan, scale_name: str) -> Section:
    """Shares of the variance of a method's scores, and its last step against its best on STS-B dev."""
    title, scores, of_last = best.row.label, read(best, BEST, scale_name), read(last, LAST, scale_name)
    if len(scores) < len(best.specs):
        return Section(title, [f"{len(scores)} of {len(best.specs)} runs are scored; shares need all of them."])
    squares = squares_of(scores)
    deviation, body, total_share = total_deviation(squares), [], 0.0
    for number, source in enumerate(SOURCES):
        alone = share_alone(squares, number)
        total_share += alone.value
        body.append([LABELS[source], f"{deviation.value * sqrt(alone.value):.2f}", share_text(alone)])
    body.append(["sum", "", f"{total_share:.2f}"])
    mean = np.mean([*scores.values()])
    total = f"All four vary: mean {mean:.2f}, standard deviation {share_text(deviation)}, over {len(scores)} runs."
    return Section(title, [total, TableData(HEAD, body), *paired(scores, of_last, len(last.specs))])


def paired(best: Scores, last: Scores, wanted: int) -> list[Part]:
    """Last step against best on STS-B dev over the runs that have both."""
    if len(last) < wanted:
        return [f"Last step: {len(last)} of {wanted} runs are scored."]
    of_best, of_last = summarise(best[key] for key in last), summarise(last.values())
    change = summarise(last[key] - best[key] for key in last)
    assert of_best.std is not None and of_last.std is not None and change.std is not None
    row = [str(change.n), f"{of_best.mean:.2f} ± {of_best.std:.2f}", f"{of_last.mean:.2f} ± {of_last.std:.2f}"]
    half = quantile(0.95, change.n - 1) * change.std / sqrt(change.n)
    row += [f"{change.mean:+z.2f} ± {half:.2f}", f"{two_sided(change.mean, change.error):.2g}"]
    head = ["runs", BEST, LAST, "last - best, 95 % interval over runs", "p"]
    return [TableData(head, [row]), "Paired over runs; that some share a seed is not taken into account."]


def read(cell: CellPlan, label: str, scale_name: str) -> Scores:
    """The scores of a cell's runs that have one, in printed units."""
    scores = {}
    for key, spec in zip(design(label), cell.specs, strict=True):
        content, stale = score(spec, cell.evaluator, scale_name)
        if content is not None and not stale and (fraction := value(content, cell.task)) is not None:
            scores[key] = 100 * fraction
    return scores


def share_text(share: Share) -> str:
    """`0.41 [0.20, 0.77]`"""
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"
