"""The page of claims: what papers conclude from their tables, on the printed numbers and on our
runs."""

from collections import Counter
from pathlib import Path

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
from csebench.plan.schema.paper import Claim
from csebench.plan.targets import grid_label, page
from csebench.report.numbers import claims
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.others import method_title, spread
from csebench.report.pages.page import Fold, PageContent, Part, TextTable, relative_path
from csebench.report.provenance import scale_line
from csebench.report.words.power import CLAIMS_HEAD, CLAIMS_LEGEND, claim_rows


def claims_page(scale: str) -> PageContent:
    """Opens with sentences that the printed numbers contradict, or give another size; folds the
    others, by paper."""
    sentences, folder = claims.judge_all(scale, paper_names()), results_folder(scale)
    counts = Counter(sentence.published.verdict for sentence in sentences)
    contradicted = [
        sentence for sentence in sentences if sentence.published.verdict == claims.CONTRADICTED
    ]
    other_size = [
        s for s in sentences if s.published.size == claims.OTHER and s not in contradicted
    ]
    opposed = [
        sentence.published
        for sentence in contradicted
        if sentence.published.direction != claims.AGREES
    ]
    significant = sum(judgement.shown == claims.YES for judgement in opposed)
    parts: list[Part] = [
        (
            f"**The printed numbers contradict {len(contradicted)} of {len(sentences)} sentences"
            f" and support {counts[claims.SUPPORTED]}.** {counts[claims.NOT_SHOWN]} go the stated"
            f" way, but not significantly; {counts[claims.UNTESTABLE]} cannot be tested."
        ),
        (
            f"In {len(opposed)} of the contradicted a printed number goes the other way, in"
            f" {significant or 'none'} by more than chance; {len(contradicted) - len(opposed)} say"
            " “significantly” where a test does not. For"
            f" {counted(len(other_size), 'more sentence')} they give another size than it states."
        ),
        (
            "Printed numbers are tested over seeds that others have published, ours over seeds and"
            " test items. A study on another encoder says what it saw and contradicts no paper's"
            " sentence."
        ),
        Fold("How claims are judged", [claims_legend()]),
        "## Contradicted by the printed numbers",
        sentence_table(contradicted, scale, folder),
        "## Of another size in the printed numbers",
        sentence_table(other_size, scale, folder),
        "## The other sentences",
    ]
    for name in paper_names():
        rest = [s for s in sentences if s.paper == name and s not in (*contradicted, *other_size)]
        rest.sort(key=lambda sentence: claims.VERDICTS.index(sentence.published.verdict))
        counts = Counter(sentence.published.verdict for sentence in rest)
        summary = (
            f"{paper(name).label}:"
            f" {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}"
        )
        parts += [Fold(summary, [sentence_table(rest, scale, folder)])] if rest else []
    needed = [[paper(row[0]).label, *row[1:]] for row in claim_rows()]
    parts.append(
        Fold(
            "How many seeds would show each claim", [CLAIMS_LEGEND, TextTable(CLAIMS_HEAD, needed)]
        )
    )
    return PageContent(
        "What the papers say of their tables", scale_line(page(SIDE_BY_SIDE, scale)), parts
    )


def sentence_table(sentences: list[claims.Judged], scale: str, folder: Path) -> TextTable:
    """A line per sentence, and per claim of several, on a page in a folder; at the default scale
    without our runs."""
    lines = []
    for sentence in sentences:
        sections = ", ".join(dict.fromkeys(f"sec. {claim.section}" for claim in sentence.claims))
        quote = f"“{sentence.claims[0].quote}” ({paper(sentence.paper).label}, {sections})"
        rows = [
            (f"· {claim_formula(row.claims[0])}", row)
            for row in sentence.rows
            if len(sentence.rows) > 1
        ]
        for text, judged in [(quote, sentence), *rows]:
            paths = {
                place: relative_path(judged.paper, place, scale, "md", folder)
                for place in judged.places
            }
            links = ", ".join(f"[{grid_label(place)}]({path})" for place, path in paths.items())
            about = "" if judged is sentence and rows else links
            lines.append(
                [text, about, judged.published.text, "–" if scale == DEFAULT_SCALE else judged.here]
            )
    ours = "our runs" if scale == PAPER_SCALE else f"here ({scale})"
    return TextTable(
        ["claim", "about", "printed (over seeds)", f"{ours}, over seeds and test items"], lines
    )


def claims_legend() -> str:
    """How claims are judged."""
    spreads = [
        (title, spread(encoder, AVERAGE)) for encoder, title in evidence_names().encoders.items()
    ]
    known = [
        f"{title} {s.std:.2f} ({s.n} seeds of {method_title(s)}, {s.source})"
        for title, s in spreads
        if s
    ]
    return (
        "A sentence has one verdict; its parts follow it, each with its own ([what each"
        f" means]({REPOSITORY}/blob/main/docs/statistics.md#does-the-papers-sentence-hold)). p is"
        " two-sided, and corrected where one of several comparisons is picked. A printed single"
        " run gets the deviation of seeds that others have published, on the same encoder, task"
        f" and kind of data. On the STS average: {', '.join(known) or 'none'}; more on a single"
        " task."
    )


def claim_formula(claim: Claim) -> str:
    """What a claim compares: `miCSE > SimCSE, PCL; column Avg.`"""
    versus = "every other row" if claim.versus == "others" else list_names(claim.versus)
    versus += f" but {list_names(claim.exclude)}" if claim.exclude else ""
    versus += f" of Table {claim.versus_table}" if claim.versus_table else ""
    versus += f" ({claim.versus_column})" if claim.versus_column else ""
    statistic = "deviation of " if claim.statistic == "std" else ""
    columns = ("the average of " if claim.on_average else "") + ", ".join(claim.columns)
    signs = {"above": (">", "<"), "comparable": ("≈", "≈"), "not worse": ("≥", "≤")}[claim.relation]
    return (
        f"{statistic}{claim.row} {signs[claim.lower]} {versus};"
        f" column{'s' * (len(claim.columns) > 1)} {columns}"
    )


def list_names(labels: list[str]) -> str:
    """Up to three names, or how many rows they are."""
    return ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} rows"
