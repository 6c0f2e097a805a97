"""The page of claims: how many sentences hold, how they are judged, and every sentence with its rows."""

from __future__ import annotations

from collections import Counter

from csebench.plan.catalog import paper, paper_names
from csebench.plan.evidence import AVERAGE, names
from csebench.plan.papers import Claim
from csebench.report import judging, stats
from csebench.report.claims import JudgedClaim, JudgedSentence, judge_all
from csebench.report.evidence import spread
from csebench.report.judging import VERDICTS, Judgement
from csebench.report.markdown import folded, markdown_table

SIDES = ("on the printed numbers", "on ours")


def claims_sections(scale: str) -> list[str]:
    """The page below its title: legend, counts, and a table per paper."""
    sentences = judge_all(scale)
    parts = [claims_legend(), verdict_counts(sentences)]
    for name in paper_names():
        of_paper = [sentence for sentence in sentences if sentence.paper == name]
        tested = [sentence for sentence in of_paper if not is_untestable(sentence)]
        parts += [f"## {paper(name).label}: {paper(name).reference}", sentence_table(tested)]
        if left := [sentence for sentence in of_paper if is_untestable(sentence)]:
            parts.append(folded(f"Sentences that cannot be tested: {len(left)}", sentence_table(left)))
    return parts


def is_untestable(sentence: JudgedSentence) -> bool:
    """Whether neither the printed numbers nor ours can test a sentence."""
    return {sentence.published.verdict, sentence.ours.verdict} == {judging.UNTESTABLE}


def sentence_table(sentences: list[JudgedSentence]) -> str:
    lines = [line for sentence in sentences for line in sentence_lines(sentence)]
    return markdown_table(["claim", "of", *SIDES], lines) if lines else "None."


def sentence_lines(sentence: JudgedSentence) -> list[list[str]]:
    """A sentence with its verdict, and below it its rows where it has several."""
    sections = ", ".join(f"sec. {section}" for section in sentence.sections)
    quote = f"“{sentence.quote}” ({sections})"
    if len(sentence.rows) == 1:
        (row,) = sentence.rows
        return [[quote, claim_link(row), judgement_text(row.published), judgement_text(row.ours)]]
    first = [quote, "", judgement_text(sentence.published), judgement_text(sentence.ours)]
    rows = [
        [f"· {claim_formula(row.claim)}", claim_link(row), judgement_text(row.published), judgement_text(row.ours)]
        for row in sentence.rows
    ]
    return [first, *rows]


def claims_legend() -> str:
    """How claims are judged."""
    return (
        "A sentence has one verdict. If it is about several rows, they follow it, each with its own.\n\n"
        f"- **{judging.HOLDS}**: every comparison that the sentence makes goes its way, significantly (at"
        f" {stats.LEVEL:g}); **{judging.WEAK}**: every comparison goes its way, and a test does not rule out chance;"
        f" **{judging.UNTESTED}**: every comparison goes its way, and there is no test, as nobody has published seeds"
        " of such scores.\n"
        f"- **{judging.REVERSED}**: a comparison goes the other way, significantly with Bonferroni's correction for"
        f" the sentence's comparisons and rows; **{judging.WEAK_REVERSED}**: one goes the other way.\n"
        f"- **{judging.EQUAL}**, **{judging.DIFFERENT}** (significantly): the verdicts on “comparable”, “similar” and"
        " “not sensitive” where the sentence does not state a limit. That no difference is shown does not prove"
        " equality. A stated limit (“less than 0.4”) is strict, and is tested from both sides.\n"
        f"- **{judging.SIZE_OFF}**, next to a verdict: the sentence states a number, and the difference is another, by"
        f" more than rounding. *{judging.HOLDS}, {judging.SIZE_OFF}*: the direction holds, the stated number does not."
        " No test enters; on ours, only scale `paper` can be expected to give the stated number.\n"
        f"- **{judging.UNTESTABLE}**: numbers are missing or of an older code version (†), there is one seed, or"
        " equality is claimed and the spread is not known.\n\n"
        "p is two-sided and of one comparison by itself; a table that compares the same rows has the same p before"
        " Holm's correction. On the printed numbers, the deviation over seeds is the printed one; a single run gets"
        " that of seeds that others have published, on the same encoder and task and trained on the same kind of data"
        f" ({known_spreads()}). Each row names the seeds that it uses. Nobody has published seeds for a single"
        " accuracy, recall or nDCG, nor for supervised training: the spread is not known there, and nothing is"
        " significant. On ours, rows are paired by seed, and the variance of test items is added where it is known,"
        " except to averages over columns."
    )


def known_spreads() -> str:
    """Deviations of the STS average over others' seeds, by encoder, and whose they are."""
    encoders = {title: spread(encoder, AVERAGE) for encoder, title in names().encoders.items()}
    known = {title: nearest for title, nearest in encoders.items() if nearest is not None}
    if not known:
        return "there are none"
    values = ", ".join(f"{title} {nearest.std:.2f}" for title, nearest in known.items())
    sources = "; ".join(
        dict.fromkeys(f"{s.n} seeds of {names().methods[s.method].title} by {s.source}" for s in known.values())
    )
    return f"{values} points on the STS average, more on a single task; {sources}, results/evidence.md"


def claim_formula(claim: Claim) -> str:
    """What a claim compares: `miCSE > SimCSE, PCL; column Avg.`"""
    versus = "every other row" if claim.versus == "others" else list_names(claim.versus)
    versus += f" but {list_names(claim.exclude)}" if claim.exclude else ""
    versus += f" of Table {claim.versus_table}" if claim.versus_table else ""
    versus += f" ({claim.versus_column})" if claim.versus_column else ""
    sign = {"above": "<" if claim.lower else ">", "comparable": "≈", "not worse": "≤" if claim.lower else "≥"}
    statistic = "deviation of " if claim.statistic == "std" else ""
    columns = ("the average of " if claim.on_average else "") + ", ".join(claim.columns)
    return f"{statistic}{claim.row} {sign[claim.relation]} {versus}; column{'s' * (len(claim.columns) > 1)} {columns}"


def list_names(labels: list[str]) -> str:
    """Up to three names, or how many rows they are."""
    return ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} rows"


def judgement_text(judgement: Judgement) -> str:
    """The verdict in italics, whether the claimed size is off, and the numbers."""
    size = f", {judging.SIZE_OFF}" if judgement.stated is False else ""
    return f"*{judgement.verdict}*{size}: {judgement.text}"


def claim_link(judged: JudgedClaim) -> str:
    """A link to the page of the table or figure that a claim is about."""
    place, ending = judged.claim.place, "md" if judged.claim.table else "svg"
    return f"[{place}]({judged.paper}/{place}.{ending})"


def verdict_counts(sentences: list[JudgedSentence]) -> str:
    """A table with the number of sentences per verdict, on the printed numbers and on ours."""
    counts = [Counter(s.published.verdict for s in sentences), Counter(s.ours.verdict for s in sentences)]
    body = [[verdict, *(str(count[verdict]) for count in counts)] for verdict in VERDICTS]
    return markdown_table([f"{len(sentences)} sentences", *SIDES], body)
