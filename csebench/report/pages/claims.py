"""The page of claims: what papers conclude from their tables, by the printed numbers and our runs.

It arranges judgements (csebench/report/numbers/claims.py) and their sentences
(csebench/report/words/claims.py). The page of a table uses `sentence_table`, too, for the sentences
about it.
"""

from pathlib import Path

import numpy as np

from csebench.base.project import REPOSITORY
from csebench.plan.catalog.evidence import AVERAGE, evidence_names
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    SIDE_BY_SIDE,
    paper,
    paper_names,
    results_folder,
)
from csebench.plan.targets import grid_label, page
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.claims import (
    ClaimVerdict,
    Judged,
    judge_all,
)
from csebench.report.numbers.others import spread
from csebench.report.numbers.printed_spread import (
    ASSUMED_DEVIATIONS,
    PART_OF_DATA,
    REFERENCE_ENCODER,
    deviations_on_part,
)
from csebench.report.pages.page import Fold, PageContent, Part, TextTable, relative_path
from csebench.report.provenance import scale_line
from csebench.report.words.claims import (
    DEPENDS,
    claim_formula,
    here_text,
    on_print_text,
    open_text,
    verdict_range,
)
from csebench.report.words.power import CLAIMS_HEAD, CLAIMS_LEGEND, claim_rows


def claims_page(scale: str) -> PageContent:
    """Open with sentences that the printed numbers contradict.

    The other sentences are folded, by paper.
    """
    sentences = judge_all(scale, paper_names())
    folder = results_folder(scale)
    parts: list[Part] = [
        verdicts_text(sentences),
        open_text(sentences),
        assumption_text(sentences),
        (
            "Printed numbers are tested over seeds that others have published, ours over seeds and"
            " test items. Runs on another encoder only compare rows: they contradict no paper's"
            " sentence."
        ),
        Fold("How claims are judged", [claims_legend()]),
    ]
    for verdict in ClaimVerdict:
        if verdict.is_contradiction:
            parts += contradiction_parts(verdict, sentences, scale, folder)
    parts.append("## The other sentences")
    for name in paper_names():
        rest_of_paper = []
        for sentence in sentences:
            if sentence.paper == name and not sentence.published.verdict.is_contradiction:
                rest_of_paper.append(sentence)
        if rest_of_paper:
            parts.append(paper_fold(name, rest_of_paper, scale, folder))
    parts.append(power_fold())
    return PageContent(
        "What the papers say of their tables", scale_line(page(SIDE_BY_SIDE, scale)), parts
    )


def verdicts_text(sentences: list[Judged]) -> str:
    """Count the verdicts on the printed numbers, as ranges over the assumed deviations."""
    supported = verdict_range(sentences, ClaimVerdict.SUPPORTED)
    left_open = verdict_range(sentences, ClaimVerdict.OPEN)
    against = verdict_range(sentences, ClaimVerdict.AGAINST)
    misprints = verdict_range(sentences, ClaimVerdict.MISPRINT)
    cannot_tell = verdict_range(sentences, ClaimVerdict.CANNOT_TELL)
    return (
        f"**The papers' own numbers support {supported} of {len(sentences)} sentences, leave"
        f" {left_open} open and are against {against}.** {misprints} are misprints: the table has"
        f" another size than the sentence. {cannot_tell} cannot be told. A range stands where the"
        " count depends on how far a seed moves a score."
    )


def assumption_text(sentences: list[Judged]) -> str:
    """Say what the verdicts on printed numbers assume about the deviation over seeds."""
    reference = evidence_names().encoders[REFERENCE_ENCODER]
    borrowed = spread(REFERENCE_ENCODER, AVERAGE)
    printed = deviations_on_part()
    if borrowed is None or not printed:
        return f"{DEPENDS}: the verdict depends on the deviation over seeds."
    median = float(np.median(printed))
    root_mean_square = float(np.sqrt(np.mean(np.square(printed))))
    assumed = " and ".join(f"{deviation:g}" for deviation in ASSUMED_DEVIATIONS)
    changing = len([judged for judged in sentences if judged.depends_on_deviation])
    return (
        "What is assumed: papers print most numbers from a single run, without a deviation. Each"
        " such number gets the deviation of seeds that others published:"
        f" {borrowed.std:.2f} points of the STS average on {reference}. It may be too large. Papers"
        f" print {len(printed)} deviations at {PART_OF_DATA.replace('%', ' %')} of the data. Their"
        f" median is {median:.2f}, their root mean square {root_mean_square:.2f}. So every sentence"
        f" is also judged as if seeds moved the STS average by {assumed} points only. The"
        f" deviations of other tasks and encoders shrink with it. {DEPENDS} marks the {changing}"
        f" sentences whose verdict changes: “supported from {ASSUMED_DEVIATIONS[0]:g} down” means"
        f" supported at {ASSUMED_DEVIATIONS[0]:g} and below."
    )


def contradiction_parts(
    verdict: ClaimVerdict, sentences: list[Judged], scale: str, folder: Path
) -> list[Part]:
    """Show the sentences that are contradicted in one way, under a heading. Empty without any."""
    contradicted = [judged for judged in sentences if judged.published.verdict == verdict]
    if not contradicted:
        return []
    heading = f"## {verdict.capitalize()}: {len(contradicted)}"
    return [heading, sentence_table(contradicted, scale, folder)]


def paper_fold(name: str, sentences: list[Judged], scale: str, folder: Path) -> Fold:
    """Fold sentences of a paper, sorted by verdict."""
    order = list(ClaimVerdict)
    by_verdict = sorted(sentences, key=lambda sentence: order.index(sentence.published.verdict))
    counts = []
    for verdict in order:
        count = verdict_range(sentences, verdict)
        if count != "0":
            counts.append(f"{count} {verdict}")
    summary = f"{paper(name).label}: {', '.join(counts)}"
    return Fold(summary, [sentence_table(by_verdict, scale, folder)])


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
    return TextTable(
        ["claim", "about", "printed (over seeds)", f"{ours}, over seeds and test items"], lines
    )


def quote_text(sentence: Judged) -> str:
    """Quote a sentence, with its paper and sections."""
    sections = dict.fromkeys(f"sec. {claim.section}" for claim in sentence.claims)
    source = ", ".join([paper(sentence.paper).label, *sections])
    return f"“{sentence.claims[0].quote}” ({source})"


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
    deviations = []
    for encoder, title in evidence_names().encoders.items():
        seed_spread = spread(encoder, AVERAGE)
        if seed_spread is not None:
            method = evidence_names().methods[seed_spread.method].title
            source = f"{seed_spread.n} seeds of {method}, {seed_spread.source}"
            deviations.append(f"{title} {seed_spread.std:.2f} ({source})")
    on_average = ", ".join(deviations) or "none"
    return (
        "A sentence has one verdict. If it makes several claims, each has its own line and verdict"
        f" ([what the words mean]({REPOSITORY}/blob/main/docs/statistics.md"
        "#does-the-papers-sentence-hold)). p is two-sided. It is corrected where one of several"
        " comparisons is picked. A printed single run gets the deviation of seeds that others"
        " published for the same encoder, task and kind of data. On the STS average:"
        f" {on_average}. On a single task it is larger."
    )
