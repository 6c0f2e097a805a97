"""The page of claims: what papers conclude from their tables, by the printed numbers and our runs.

It arranges judgements (csebench/report/numbers/claims.py) and their sentences
(csebench/report/words/claims.py). The page of a table uses `sentence_table`, too, for the sentences
about it.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np

from csebench.base.project import REPOSITORY
from csebench.base.terminal import capitalised, counted
from csebench.plan.catalog.evidence import AVERAGE, evidence_names
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    RESULTS,
    SIDE_BY_SIDE,
    paper,
    paper_names,
    results_folder,
)
from csebench.plan.targets import grid_label, page
from csebench.report.figures.printed_gains import PICTURE as PRINTED_GAINS
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.claims import (
    ClaimVerdict,
    Judged,
    judge_all,
)
from csebench.report.numbers.others import spread
from csebench.report.numbers.printed_gains import (
    deviations,
    printed_gains,
    published_deviation,
)
from csebench.report.numbers.printed_spread import (
    ASSUMED_DEVIATIONS,
    PART_OF_DATA,
    REFERENCE_ENCODER,
    deviations_on_part,
)
from csebench.report.pages.page import (
    Fold,
    PageContent,
    Part,
    Picture,
    TextTable,
    linked_count,
    relative_path,
)
from csebench.report.provenance import scale_line
from csebench.report.words.audit import paper_label
from csebench.report.words.claim_counts import verdict_counts
from csebench.report.words.claims import (
    DEPENDS,
    claim_formula,
    here_text,
    on_print_text,
    open_text,
    verdict_range,
)
from csebench.report.words.power import CLAIMS_HEAD, CLAIMS_LEGEND, claim_rows
from csebench.report.words.printed_gains import gains_finding


def claims_page(scale: str) -> PageContent:
    """Count the verdicts by paper, then show the sentences by verdict and paper.

    Sentences that the printed numbers contradict come first, then those that are supported. The
    others are folded.
    """
    sentences = judge_all(scale, paper_names())
    folder = results_folder(scale)
    parts: list[Part] = [
        f"**{len(sentences)} sentences, by the papers' own numbers: {verdict_counts(sentences)}.**",
        verdicts_table(sentences),
        dependence_text(sentences),
        open_text(sentences),
    ]
    for verdict in contradictions():
        parts += verdict_parts(verdict, sentences, scale, folder)
    parts += ["## Which printed gains exceed their noise over seeds", gains_picture(folder)]
    for verdict in other_verdicts():
        parts += verdict_parts(verdict, sentences, scale, folder)
    parts += [
        "## How claims are judged",
        assumption_text(),
        (
            "Printed numbers are tested over the seeds of others. Our runs are tested over seeds"
            " and test items. Our runs on another encoder say which row scores higher there. They"
            " cannot contradict the paper."
        ),
        claims_legend(),
        power_fold(),
    ]
    return PageContent("Do the papers' claims hold?", scale_line(page(SIDE_BY_SIDE, scale)), parts)


# ---------------------------------------------------------------- counts and links


def contradictions() -> list[ClaimVerdict]:
    """List the verdicts that contradict a paper. A reader sees them first."""
    return [verdict for verdict in ClaimVerdict if verdict.is_contradiction]


def other_verdicts() -> list[ClaimVerdict]:
    return [verdict for verdict in ClaimVerdict if not verdict.is_contradiction]


def verdicts_table(sentences: list[Judged]) -> TextTable:
    """Count sentences by paper and verdict, with links to their sections.

    A count of a paper is at the deviation that others published. The last two rows count all
    sentences: at that deviation, and over all deviations that are tried.
    """
    order = [*contradictions(), *other_verdicts()]
    rows = []
    for name in paper_names():
        of_paper = [sentence for sentence in sentences if sentence.paper == name]
        if not of_paper:
            continue
        counts = Counter(sentence.published.verdict for sentence in of_paper)
        cells = []
        for verdict in order:
            cells.append(linked_count(counts[verdict], section_title(name, verdict)))
        rows.append([paper_label(name), *cells])
    totals = Counter(sentence.published.verdict for sentence in sentences)
    rows.append([all_papers_label(), *(str(totals[verdict]) for verdict in order)])
    ranges = [verdict_range(sentences, verdict) for verdict in order]
    tried = ", ".join(f"{deviation:.2g}" for deviation in deviations())
    rows.append([f"all, range if seeds deviate by {tried} points", *ranges])
    return TextTable(["paper", *order], rows)


def all_papers_label() -> str:
    """Name the row of all papers: `all, if seeds deviate by 0.84 points`.

    It is `all` if others published no deviation.
    """
    published = published_deviation()
    if published is None:
        return "all"
    return f"all, if seeds deviate by {published:.2f} points"


def section_title(name: str, verdict: ClaimVerdict) -> str:
    return f"{paper_label(name)}: {verdict}"


def dependence_text(sentences: list[Judged]) -> str:
    """Say which sentences depend on the deviation over seeds that is assumed."""
    changing = len([judged for judged in sentences if judged.depends_on_deviation])
    tried = [f"{deviation:.2g}" for deviation in deviations()]
    if published_deviation() is not None:
        tried[0] += " (others' runs)"
    *larger, smallest = tried
    return (
        f"A count links to its sentences. {DEPENDS} marks a verdict, of a sentence or of a part of"
        f" it, that depends on how much scores vary between seeds; {changing} sentences have such a"
        f" verdict. The STS average of BERT-base is taken to deviate by {', '.join(larger)} or"
        f" {smallest} points. Other encoders have a first value of their own, and the deviation of"
        " a single task shrinks with that of the average ([how claims are"
        " judged](#how-claims-are-judged))."
    )


# ---------------------------------------------------------------- sections


def verdict_parts(
    verdict: ClaimVerdict, sentences: list[Judged], scale: str, folder: Path
) -> list[Part]:
    """Show the sentences with a verdict under a heading, by paper. Empty without any."""
    with_verdict = [judged for judged in sentences if judged.published.verdict == verdict]
    if not with_verdict:
        return []
    parts: list[Part] = [f"## {capitalised(verdict)}: {len(with_verdict)}"]
    for name in paper_names():
        of_paper = [sentence for sentence in with_verdict if sentence.paper == name]
        if not of_paper:
            continue
        parts.append(f"### {section_title(name, verdict)}")
        table = sentence_table(of_paper, scale, folder)
        if verdict.is_contradiction or verdict == ClaimVerdict.SUPPORTED:
            parts.append(table)
        else:
            parts.append(Fold(counted(len(of_paper), "sentence"), [table]))
    return parts


def gains_picture(folder: Path) -> Picture:
    """Show all printed gains beside their noise over seeds."""
    file = os.path.relpath(RESULTS / PRINTED_GAINS, folder)
    return Picture(file, gains_finding(printed_gains()))


def assumption_text() -> str:
    """Say what the verdicts on printed numbers assume about the deviation over seeds."""
    reference = evidence_names().encoders[REFERENCE_ENCODER]
    borrowed = spread(REFERENCE_ENCODER, AVERAGE)
    printed = deviations_on_part()
    if borrowed is None or not printed:
        return f"{DEPENDS}: the verdict depends on the deviation over seeds."
    median = float(np.median(printed))
    root_mean_square = float(np.sqrt(np.mean(np.square(printed))))
    assumed = " and ".join(f"{deviation:g}" for deviation in ASSUMED_DEVIATIONS)
    return (
        "What is assumed: papers print most numbers from a single run, without a deviation. Each"
        " such number gets the deviation of seeds that others published:"
        f" {borrowed.std:.2f} points of the STS average on {reference}. It may be too large. Papers"
        f" print {len(printed)} deviations at {PART_OF_DATA.replace('%', ' %')} of the data. Their"
        f" median is {median:.2f}, their root mean square {root_mean_square:.2f}. So every sentence"
        f" is also judged as if seeds moved the STS average by {assumed} points only. The"
        " deviations of other tasks and encoders are reduced by the same factor. “Supported if"
        f" seeds deviate by {ASSUMED_DEVIATIONS[0]:g} or less” means supported at"
        f" {ASSUMED_DEVIATIONS[0]:g} and at every smaller deviation that is tried."
    )


def power_fold() -> Fold:
    """Fold how many seeds it would take to show each claim."""
    rows = []
    for name, *cells in claim_rows():
        rows.append([paper(name).label, *cells])
    return Fold(
        "How many seeds would show each claim", [CLAIMS_LEGEND, TextTable(CLAIMS_HEAD, rows)]
    )


def sentence_table(sentences: list[Judged], scale: str, folder: Path) -> TextTable:
    """Make a table with a line per sentence, and a line per claim of a sentence with several.

    At the default scale the column of our runs is empty.

    Args:
        folder: folder of the page, from which links to tables and figures start.
    """
    lines = []
    for sentence in sentences:
        has_parts = len(sentence.rows) > 1
        places = "" if has_parts else place_links(sentence, scale, folder)
        lines.append([quote_text(sentence), places, *verdict_cells(sentence)])
        if has_parts:
            for row in sentence.rows:
                formula = f"· {claim_formula(row.claims[0])}"
                lines.append([formula, place_links(row, scale, folder), *verdict_cells(row)])
    ours = "our runs" if scale == PAPER_SCALE else f"here ({scale})"
    return TextTable(["claim", "about", "by printed numbers", f"by our runs: {ours}"], lines)


def quote_text(sentence: Judged) -> str:
    """Quote a sentence, with its paper and sections."""
    sections = dict.fromkeys(section_text(claim.section) for claim in sentence.claims)
    source = ", ".join([paper(sentence.paper).label, *sections])
    return f"“{sentence.claims[0].quote}” ({source})"


def section_text(section: str) -> str:
    """`sec. 3.2`, or the name of a part without a number: `abstract`."""
    return section if section.isalpha() and section.islower() else f"sec. {section}"


def place_links(judged: Judged, scale: str, folder: Path) -> str:
    """Link the pages of the tables and figures that a claim or sentence is about."""
    links = []
    for place in judged.places:
        path = relative_path(judged.paper, place, scale, "md", folder)
        links.append(f"[{grid_label(place)}]({path})")
    return ", ".join(links)


def verdict_cells(judged: Judged) -> list[str]:
    """Word the judgements by the printed numbers and by our runs."""
    ours = "–" if judged.scale == DEFAULT_SCALE else here_text(judged)
    return [on_print_text(judged), ours]


def claims_legend() -> str:
    """Explain how claims are judged, with the deviations that single printed runs get."""
    encoder_texts = []
    for encoder, title in evidence_names().encoders.items():
        seed_spread = spread(encoder, AVERAGE)
        if seed_spread is not None:
            method = evidence_names().methods[seed_spread.method].title
            source = f"{seed_spread.n} seeds of {method}, {seed_spread.source}"
            encoder_texts.append(f"{title} {seed_spread.std:.2f} ({source})")
    on_average = ", ".join(encoder_texts) or "none"
    return (
        "A sentence has one verdict. If it makes several claims, each has its own line and verdict"
        f" ([what the words mean]({REPOSITORY}/blob/main/docs/statistics.md"
        "#does-the-papers-sentence-hold)). p is two-sided. It is corrected where one of several"
        " comparisons is picked. A printed single run gets the deviation of seeds that others"
        " published for the same encoder, task and kind of data. On the STS average:"
        f" {on_average}. On a single task the deviation is larger."
    )
