"""The page of claims: what papers conclude from their tables, on the printed numbers and on our runs."""

from __future__ import annotations

from collections import Counter

from csebench.plan.catalog import DEFAULT_SCALE, SIDE_BY_SIDE, paper, paper_names
from csebench.plan.evidence import AVERAGE, names
from csebench.plan.papers import Claim
from csebench.plan.targets import grid_label, page
from csebench.report import claims, stats
from csebench.report.cells import PAPER_SCALE
from csebench.report.claims import RELATIONS, JudgedClaim, JudgedSentence, judge_all
from csebench.report.others import spread
from csebench.report.pages.page import Fold, Page, Part, Table
from csebench.report.pages.table import scale_line


def claims_page(scale: str) -> Page:
    sentences = judge_all(scale)
    counts = Counter(sentence.published.verdict for sentence in sentences)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in claims.VERDICTS)
    parts: list[Part] = [
        f"**Of {len(sentences)} sentences the printed numbers leave {verdicts}.**",
        "The printed numbers are tested over seeds that others have published, ours over seeds and test items. A study"
        " on another encoder says what it saw and contradicts no paper's sentence.",
    ]
    for verdict, title in (
        (claims.CONTRADICTED, "Contradicted by the printed numbers"),
        (claims.SUPPORTED, "Supported by the printed numbers"),
    ):
        chosen = [sentence for sentence in sentences if sentence.published.verdict == verdict]
        parts += [f"## {title}: {len(chosen)}", sentence_table(chosen, scale)]
    parts.append("## The other sentences")
    for name in paper_names():
        rest = [
            s for s in sentences if s.paper == name and s.published.verdict in (claims.NOT_SHOWN, claims.UNTESTABLE)
        ]
        if rest:
            parts.append(Fold(f"{paper(name).label}: {len(rest)}", [sentence_table(rest, scale)]))
    parts.append(Fold("How claims are judged", [legend()]))
    return Page("What the papers say of their tables", scale_line(page(SIDE_BY_SIDE, scale)), parts)


def sentence_table(sentences: list[JudgedSentence], scale: str) -> Table:
    ours = "our runs" if scale == PAPER_SCALE else f"here ({scale})"
    return Table(["claim", "about", "printed", ours], [line for s in sentences for line in sentence_lines(s, scale)])


def sentence_lines(sentence: JudgedSentence, scale: str) -> list[list[str]]:
    """A sentence with its verdict, and below it its rows where it has several."""
    sections = ", ".join(f"sec. {section}" for section in sentence.sections)
    quote = f"“{sentence.quote}” ({paper(sentence.paper).label}, {sections})"
    if len(sentence.rows) == 1:
        return [[quote, claim_link(sentence.rows[0]), *judgements(sentence, scale)]]
    rows = [[f"· {claim_formula(row.claim)}", claim_link(row), *judgements(row, scale)] for row in sentence.rows]
    return [[quote, "", *judgements(sentence, scale)], *rows]


def judgements(judged: JudgedClaim | JudgedSentence, scale: str) -> list[str]:
    """On the printed numbers and on ours; at the default scale nothing is said of ours."""
    return [judged.published.text, "–" if scale == DEFAULT_SCALE else judged.here]


def legend() -> str:
    """How claims are judged."""
    return (
        "A sentence has one verdict. If it is about several rows, they follow it, each with its own.\n\n"
        f"- **{claims.SUPPORTED}**: every comparison that the sentence makes goes its way, each significantly (at"
        f" {stats.LEVEL:g}).\n"
        f"- **{claims.NOT_SHOWN}**: they go its way, and a test does not rule out chance; equality is never shown"
        " where no limit is stated.\n"
        f"- **{claims.CONTRADICTED}**: a printed comparison goes the other way; of our runs, significantly with"
        " Bonferroni's correction; or the sentence says “significantly” and the test does not.\n"
        f"- **{claims.UNTESTABLE}**: numbers are missing, or nobody has published seeds of such scores.\n"
        "- **of another size**: the sentence states a number, and the difference is another, by more than rounding.\n"
        f"- **{claims.SEEN}**, **{claims.NOT_SEEN}**, **{claims.OPPOSITE}**: what a study on another encoder saw; what"
        " is not seen has a bound.\n\n"
        "p is two-sided and of one comparison by itself. A printed single run gets the deviation of seeds that others"
        f" have published, on the same encoder, task and kind of data ({known_spreads()}); the table names them."
    )


def known_spreads() -> str:
    """Deviations of the STS average over others' seeds, by encoder, and whose they are."""
    encoders = {title: spread(encoder, AVERAGE) for encoder, title in names().encoders.items()}
    known = {title: nearest for title, nearest in encoders.items() if nearest is not None}
    if not known:
        return "there are none"
    values = ", ".join(f"{title} {nearest.std:.2f}" for title, nearest in known.items())
    return f"{values} points on the STS average, more on a single task"


def claim_formula(claim: Claim) -> str:
    """What a claim compares: `miCSE > SimCSE, PCL; column Avg.`"""
    versus = "every other row" if claim.versus == "others" else list_names(claim.versus)
    versus += f" but {list_names(claim.exclude)}" if claim.exclude else ""
    versus += f" of Table {claim.versus_table}" if claim.versus_table else ""
    versus += f" ({claim.versus_column})" if claim.versus_column else ""
    relation = RELATIONS[claim.relation]
    statistic = "deviation of " if claim.statistic == "std" else ""
    columns = ("the average of " if claim.on_average else "") + ", ".join(claim.columns)
    sign = relation.lower_sign if claim.lower else relation.sign
    return f"{statistic}{claim.row} {sign} {versus}; column{'s' * (len(claim.columns) > 1)} {columns}"


def list_names(labels: list[str]) -> str:
    """Up to three names, or how many rows they are."""
    return ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} rows"


def claim_link(judged: JudgedClaim) -> str:
    """A link to the page of the table or figure that a claim is about."""
    return f"[{grid_label(judged.claim.place)}]({judged.paper}/{judged.claim.place}.md)"
