"""The page of claims: what papers conclude from their tables, by the printed numbers and our runs.

It arranges judgements (csebench/report/numbers/claims.py) and their sentences
(csebench/report/words/claims.py). The page of a table uses `sentence_table`, too, for the sentences
about it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csebench.base.project import REPOSITORY
from csebench.base.terminal import counted
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
    CONTRADICTIONS,
    ClaimVerdict,
    Judged,
    StatedSize,
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
    verdict_range,
)
from csebench.report.words.power import CLAIMS_HEAD, CLAIMS_LEGEND, claim_rows


@dataclass(frozen=True)
class SortedSentences:
    """The sentences of all papers, in the order of the page's sections."""

    contradicted: list[Judged]
    other_size: list[Judged]  # not contradicted, but of another size than stated
    rest: list[Judged]

    @property
    def all(self) -> list[Judged]:
        return [*self.contradicted, *self.other_size, *self.rest]


def claims_page(scale: str) -> PageContent:
    """Open with sentences that the printed numbers contradict, or to which they give another size.

    The other sentences are folded, by paper.
    """
    sentences = sort_sentences(judge_all(scale, paper_names()))
    folder = results_folder(scale)
    parts: list[Part] = [
        verdicts_text(sentences),
        contradicted_text(sentences),
        assumption_text(sentences),
        (
            "Printed numbers are tested over seeds that others have published, ours over seeds and"
            " test items. A study on another encoder says what it saw and contradicts no paper's"
            " sentence."
        ),
        Fold("How claims are judged", [claims_legend()]),
        "## Contradicted by the printed numbers",
    ]
    for verdict in CONTRADICTIONS:
        parts += contradiction_parts(verdict, sentences.contradicted, scale, folder)
    parts += [
        "## Of another size in the printed numbers",
        sentence_table(sentences.other_size, scale, folder),
        "## The other sentences",
    ]
    for name in paper_names():
        rest_of_paper = [sentence for sentence in sentences.rest if sentence.paper == name]
        if rest_of_paper:
            parts.append(paper_fold(name, rest_of_paper, scale, folder))
    parts.append(power_fold())
    return PageContent(
        "What the papers say of their tables", scale_line(page(SIDE_BY_SIDE, scale)), parts
    )


def sort_sentences(sentences: list[Judged]) -> SortedSentences:
    """Sort sentences by what the printed numbers say of them, at the published deviations."""
    contradicted = []
    other_size = []
    rest = []
    for sentence in sentences:
        if sentence.published.verdict.is_contradiction:
            contradicted.append(sentence)
        elif sentence.published.size == StatedSize.OTHER:
            other_size.append(sentence)
        else:
            rest.append(sentence)
    return SortedSentences(contradicted, other_size, rest)


def verdicts_text(sentences: SortedSentences) -> str:
    """Count the verdicts on the printed numbers, as ranges over the assumed deviations."""
    contradicted = verdict_range(sentences.all, *CONTRADICTIONS)
    supported = verdict_range(sentences.all, ClaimVerdict.SUPPORTED)
    not_shown = verdict_range(sentences.all, ClaimVerdict.NOT_SHOWN)
    untestable = verdict_range(sentences.all, ClaimVerdict.UNTESTABLE)
    return (
        f"**The printed numbers contradict {contradicted} of {len(sentences.all)} sentences and"
        f" support {supported}; how many depends on how far a seed moves a score.**"
        f" {not_shown} go the stated way, but not significantly; {untestable} cannot be tested."
    )


def contradicted_text(sentences: SortedSentences) -> str:
    """Count the sentences contradicted in each way, and the sentences that state another size."""
    against = verdict_range(sentences.all, ClaimVerdict.AGAINST)
    other_way = verdict_range(sentences.all, ClaimVerdict.OTHER_WAY)
    unproven = verdict_range(sentences.all, ClaimVerdict.UNPROVEN_SIGNIFICANCE)
    return (
        f"Of the contradicted, {against} are against beyond chance; {other_way} go the other way,"
        f" which may be chance; {unproven} say “significantly” where a test does not. For"
        f" {counted(len(sentences.other_size), 'more sentence')} the numbers give another size than"
        " stated."
    )


def assumption_text(sentences: SortedSentences) -> str:
    """Say what the verdicts on printed numbers assume about the deviation over seeds."""
    reference = evidence_names().encoders[REFERENCE_ENCODER]
    borrowed = spread(REFERENCE_ENCODER, AVERAGE)
    printed = deviations_on_part()
    if borrowed is None or not printed:
        return f"{DEPENDS}: the verdict depends on the deviation over seeds."
    median = float(np.median(printed))
    root_mean_square = float(np.sqrt(np.mean(np.square(printed))))
    assumed = " and ".join(f"{deviation:g}" for deviation in ASSUMED_DEVIATIONS)
    changing = len([judged for judged in sentences.all if judged.depends_on_deviation])
    return (
        "The assumption: most printed numbers are single runs, and get the deviation over seeds"
        f" that others published. It is {borrowed.std:.2f} points of the STS average on"
        f" {reference}. Papers print less: the {len(printed)} deviations at"
        f" {PART_OF_DATA.replace('%', ' %')} of the data have the median {median:.2f} and the root"
        f" mean square {root_mean_square:.2f}. So every sentence is judged at {assumed} as well,"
        " and all other deviations shrink in proportion, unless they are this small already."
        f" {DEPENDS} marks the {changing} sentences whose verdict changes: “supported from"
        f" {ASSUMED_DEVIATIONS[0]:g} down” holds at {ASSUMED_DEVIATIONS[0]:g} and less."
    )


def contradiction_parts(
    verdict: ClaimVerdict, contradicted: list[Judged], scale: str, folder: Path
) -> list[Part]:
    """Show the sentences that are contradicted in one way, under a heading. Empty without any."""
    sentences = [judged for judged in contradicted if judged.published.verdict == verdict]
    if not sentences:
        return []
    text = str(verdict)
    heading = f"### {text[0].upper()}{text[1:]}: {len(sentences)}"
    return [heading, sentence_table(sentences, scale, folder)]


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
        "A sentence has one verdict; its parts follow it, each with its own ([what each"
        f" means]({REPOSITORY}/blob/main/docs/statistics.md#does-the-papers-sentence-hold)). p is"
        " two-sided, and corrected where one of several comparisons is picked. A printed single"
        " run gets the deviation of seeds that others have published, on the same encoder, task"
        f" and kind of data. On the STS average: {on_average}; more on a"
        " single task."
    )
