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
from csebench.base.terminal import and_list, capitalised, counted
from csebench.plan.catalog.evidence import AVERAGE, evidence_names
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    RESULTS,
    SIDE_BY_SIDE,
    paper,
    paper_names,
    results_folder,
)
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import declaration, protocol
from csebench.plan.grids import find_grid
from csebench.plan.schema.declarations import Training
from csebench.plan.schema.paper import Claim, Grid
from csebench.plan.targets import grid_label, page
from csebench.report.figures.printed_gains import PICTURE as PRINTED_GAINS
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.claims import (
    ClaimVerdict,
    Judged,
    judge_all,
)
from csebench.report.numbers.controls import why_not_judged
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
    REFERENCE_TITLE,
    assumed_share,
    deviations_on_part,
    mean_of_sweep,
)
from csebench.report.numbers.verdict_words import VerdictWord
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
from csebench.report.words import power
from csebench.report.words.audit import paper_label
from csebench.report.words.claim_counts import verdict_counts
from csebench.report.words.claims import (
    DEPENDS,
    claim_formula,
    here_text,
    on_print_text,
    open_text,
    quoted,
    verdict_range,
)
from csebench.report.words.comparisons import cannot_tell_text
from csebench.report.words.printed_gains import gains_finding


def claims_page(scale: str) -> PageContent:
    """Count the verdicts by paper, then show the sentences by verdict and paper.

    Sentences that the printed numbers contradict come first, then those that are supported. The
    others are folded.
    """
    sentences = judge_all(scale, paper_names())
    folder = results_folder(scale)
    parts: list[Part] = [
        f"**{len(sentences)} sentences that claim something, by the papers' own numbers:"
        f" {verdict_counts(sentences)}.**",
        dependence_text(sentences),
        VERDICT_MEANINGS,
        SENTENCE_OF_PARTS,
        verdicts_table(sentences),
        (
            f"A count links to its sentences. {open_text(sentences)} Differences have the unit of"
            " their table. If it prints fractions, 0.0312 is 3.12 points."
        ),
    ]
    for text in (controls_text(scale), words_text(scale)):
        if text:
            parts.append(text)
    for verdict in (*contradictions(), *other_verdicts()):
        parts += verdict_parts(verdict, sentences, scale, folder)
    parts += [
        "## Which printed gains are significant over seeds",
        "A gain is one printed difference that a claim rests on.",
        gains_picture(folder),
        "## How claims are judged",
        *assumption_parts(),
        (
            "Tests on printed numbers allow for chance between seeds, with the deviation that the"
            " paper prints, or else an assumed one. Tests on our runs allow for seeds and test"
            " items. Our runs on another encoder say which row scores higher there. They cannot"
            " contradict the paper."
        ),
        P_AND_MEANS,
        power_fold(),
    ]
    return PageContent("Do the papers' claims hold?", scale_line(page(SIDE_BY_SIDE, scale)), parts)


VERDICT_MEANINGS = (
    "*Supported*: every printed difference goes the claimed way, significantly. If a sentence says"
    " “up to”, only the largest difference counts. *Against*: a difference goes the other way,"
    " significantly. *Misprint*: the sentence states a size, and the table shows another one; or it"
    " states a limit, which the table does not keep. *Cannot tell*: no difference can be tested,"
    " because numbers are missing or no deviation of such scores is known. *Open*: all others;"
    " chance is not ruled out. Some sentences say that rows are alike (≈). If such a sentence"
    " states a limit, it is *supported* if the difference is significantly smaller than the limit,"
    " and *against* if it is significantly larger. Without a limit, it is never *supported*, and"
    " *against* if the rows differ significantly"
    f" ([more]({REPOSITORY}/blob/main/docs/statistics.md#does-the-papers-sentence-hold))."
)
SENTENCE_OF_PARTS = (
    "A *sentence* is a quoted passage that claims something; one printed sentence can give several."
    " If a quotation claims several things, each is a *part*, on a line of its own (“·”). The"
    " sentence is *supported* if all its parts are supported, and *cannot tell* if all are *cannot"
    " tell*. It is *against* if a part is *against* and stays significant after a correction for"
    " the number of parts. Otherwise it is a *misprint* if a part is one. Any other mix is *open*."
)
P_AND_MEANS = (
    "p is two-sided. It is corrected (Bonferroni) if one comparison is enough for the verdict: the"
    " largest for “up to”, the clearest of those that go the other way, or the clearest difference"
    " between rows that are said to be alike. If all comparisons have to be significant, the p of"
    " the weakest needs no correction. *Mean of the columns*: we average the columns. *Avg.*: the"
    " average as printed."
)

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
    tried = and_list([f"{deviation:.2g}" for deviation in deviations()])
    rows.append([f"all, range over deviations of {tried} points", *ranges])
    return TextTable(["paper", *order], rows)


def all_papers_label() -> str:
    """Name the row of all papers: `all, at a deviation of 0.84 points`.

    It is `all` if others published no deviation.
    """
    published = published_deviation()
    if published is None:
        return "all"
    return f"all, at a deviation of {published:.2f} points"


def section_title(name: str, verdict: ClaimVerdict) -> str:
    return f"{paper_label(name)}: {verdict}"


def dependence_text(sentences: list[Judged]) -> str:
    """Say which deviation over seeds is assumed, and how many verdicts depend on it."""
    changing = 0
    changing_in_part = 0
    for sentence in sentences:
        if sentence.depends_on_deviation:
            changing += 1
        elif any(row.depends_on_deviation for row in sentence.rows):
            changing_in_part += 1
    tried = [f"{deviation:.2g}" for deviation in deviations()]
    if published_deviation() is not None:
        tried[0] += " (others' runs)"
    *larger, smallest = tried
    assumed = assumed_text()
    have = "has" if changing == 1 else "have"
    return (
        "Most printed numbers come from one run. So how much they vary over seeds has to be"
        " assumed. Where a paper prints a deviation over seeds, the test uses it, so that a small"
        f" difference can be significant. Everything else is judged {counted(len(tried), 'time')}:"
        f" as if the STS average on {REFERENCE_TITLE} had a standard deviation of"
        f" {', '.join(larger)} or {smallest} points. For other encoders and single tasks, the"
        f" deviation is taken from others' runs of these. If {assumed} is assumed for"
        f" {REFERENCE_TITLE}, most of these deviations shrink, too ([all assumed"
        f" deviations](#how-claims-are-judged)). {DEPENDS} marks a verdict that changes with the"
        f" assumed deviation. {capitalised(counted(changing, 'sentence'))} {have} such a verdict."
        f" In {changing_in_part} more, only a part has one."
    )


def assumed_text() -> str:
    """Name the deviations that are assumed beside the published one: `0.5 or 0.35`."""
    return " or ".join(f"{deviation:g}" for deviation in ASSUMED_DEVIATIONS)


# which comparisons a scale judges, by the training that its controls let it judge
JUDGED: dict[Training, str] = {
    "unlabelled": "Comparisons of methods trained without labels are judged. ",
    "labelled": "A comparison is judged if at least one of its rows was trained with labels. ",
}


def controls_text(scale: str) -> str:
    """Say which methods a scale does not judge, and why. Empty if its controls take no verdict."""
    not_judged = []
    judged = []
    for training, text in JUDGED.items():
        reason = why_not_judged(training, scale)
        if reason is None:
            judged.append(text)
        else:
            not_judged.append(f"{capitalised(cannot_tell_text(reason))}.")
    if not not_judged:
        return ""
    return (
        f"**Our runs.** {' '.join(not_judged)} So a comparison of such methods is"
        f" *{VerdictWord.CANNOT_TELL}*. {''.join(judged)}[Controls](index.md#controls) are"
        " differences that a scale must see before it judges methods."
    )


def words_text(scale: str) -> str:
    """Define the words of the column of our runs. Empty at a scale without them."""
    if scale in (DEFAULT_SCALE, PAPER_SCALE):
        return ""
    return (
        f"In the column of our runs, *{VerdictWord.NOT_TESTED}* means that a comparison which the"
        " claim needs says nothing here: its runs were not made, the scale lacks what it needs, or"
        " it presumes something that does not hold in our runs. The cell says which."
        f" {replaced_encoders_text(scale)}The results of comparisons that were made stand in"
        f" brackets. *{capitalised(VerdictWord.UNCLEAR)}* means that all comparisons were made and"
        " are not all significant ([all"
        f" words]({REPOSITORY}/blob/main/docs/statistics.md#does-one-row-beat-another)). Some cells"
        " add “a search found no effect of X”. X is a term of a loss, whose weight we searched on"
        " STS-B dev. A weight near 0 scored as well there as the best one. Our runs use the weight"
        " that the search chose, so they do not say whether X helps at the paper's weight."
    )


def replaced_encoders_text(scale: str) -> str:
    """Say which of the papers' encoders a scale replaces by another one. Empty for none."""
    titles = evidence_names().encoders
    printed = read_scale(PAPER_SCALE).encoders
    replaced = []
    for role, encoder in read_scale(scale).encoders.items():
        if role in printed and encoder != printed[role]:
            replaced.append(titles.get(role, role))
    if not replaced:
        return ""
    return (
        f"For example, this scale replaces {and_list(replaced)} by a small encoder, and has no"
        " replacement for other encoders. "
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
    """Show all printed gains beside their standard errors over seeds."""
    file = os.path.relpath(RESULTS / PRINTED_GAINS, folder)
    return Picture(file, gains_finding(printed_gains()))


def assumption_parts() -> list[Part]:
    """Say what the verdicts on printed numbers assume about the deviation over seeds."""
    borrowed = spread(REFERENCE_ENCODER, AVERAGE)
    lowest_average = mean_of_sweep(REFERENCE_ENCODER)
    printed = deviations_on_part()
    if borrowed is None or lowest_average is None or not printed:
        return [f"{DEPENDS}: the verdict depends on the deviation over seeds."]
    method = evidence_names().methods[borrowed.method].title
    median = float(np.median(printed))
    root_mean_square = float(np.sqrt(np.mean(np.square(printed))))
    assumed = assumed_text()
    share = PART_OF_DATA.replace("%", " %")
    largest = f"{ASSUMED_DEVIATIONS[0]:g}"
    return [
        (
            "Papers print most numbers from a single run, without a deviation over seeds. We assume"
            " that such a number has the deviation of seeds that others published for the same"
            " encoder, task and kind of training data (with or without labels). On"
            f" {REFERENCE_TITLE}, it is {borrowed.std:.2f} points of the STS average."
        ),
        (
            f"This may be too large. Papers print deviations, too, but only for training on {share}"
            f" of the corpus or less. We take those at {share}, of the stronger methods only: the"
            f" methods that on the whole corpus score at least as high as {method} does on average"
            f" over its {borrowed.n} published seeds ({lowest_average:.2f}). These {len(printed)}"
            f" deviations have the median {median:.2f} and the root mean square"
            f" {root_mean_square:.2f}; those of weaker methods are mostly larger. So every sentence"
            f" is also judged as if {REFERENCE_TITLE} deviated by {assumed} points only. Then these"
            " deviations of the STS average are assumed:"
        ),
        assumed_deviations_table(),
        (
            f"A deviation above that of {REFERENCE_TITLE} shrinks by the same factor as that of"
            f" {REFERENCE_TITLE}. A lower one is only capped at {assumed}. The deviations of single"
            " tasks are usually larger than that of the average. They shrink by the same factor as"
            f" the average on their encoder. “*Supported* if seeds deviate by"
            f" {largest} or less in the STS average of {REFERENCE_TITLE}” means: supported with the"
            f" deviations in the column of {largest}, and in every column to its right."
        ),
    ]


def assumed_deviations_table() -> TextTable:
    """List the deviations that are assumed of the STS average, by encoder, with their source."""
    rows = []
    for encoder, title in evidence_names().encoders.items():
        published = spread(encoder, AVERAGE)
        if published is None:
            continue
        method = evidence_names().methods[published.method].title
        source = f"{published.n} seeds of {method} (source: {published.source})"
        cells = [f"{published.std:.2f}"]
        for deviation in ASSUMED_DEVIATIONS:
            cells.append(f"{published.std * assumed_share(encoder, deviation):.2f}")
        rows.append([title, source, *cells])
    assumed = [f"if {REFERENCE_TITLE} had {deviation:g}" for deviation in ASSUMED_DEVIATIONS]
    return TextTable(["encoder", "published by others", "deviation", *assumed], rows)


# headings of columns on this page, where “against” is a verdict
POWER_HEADINGS = {"about": "table", "against": "compared with"}


def power_fold() -> Fold:
    """Fold how many seeds it would take to show each claim."""
    rows = []
    for name, place, *cells in power.claim_rows(with_unknown=True):
        rows.append([paper(name).label, grid_label(place), *cells])
    head = [POWER_HEADINGS.get(column, column) for column in power.CLAIMS_HEAD]
    table = TextTable(head, rows)
    return Fold(
        "How many seeds would show a claimed difference",
        [power.CLAIMS_LEGEND, power.SHOWN_COMPARISON, table],
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
        places = ""
        if not has_parts:
            places = place_links(sentence, scale, folder)
            if sentence.published.contrasts_asked > 1:
                places += f": {claim_formula(sentence.claims[0])}"
        printed, ours = verdict_cells(sentence)
        if is_in_erratum(sentence):
            audit = f"[the audit]({audit_link(scale, folder)})"
            printed += f"; numbers elsewhere in print speak against the sentence ({audit})"
        lines.append([quote_text(sentence), places, printed, ours])
        if has_parts:
            for row in sentence.rows:
                formula = f"· {claim_formula(row.claims[0])}"
                lines.append([formula, place_links(row, scale, folder), *verdict_cells(row)])
    ours = "by our runs" if scale == PAPER_SCALE else f"by our runs (scale {scale})"
    return TextTable(["sentence or part (·)", "table or figure", "by printed numbers", ours], lines)


def quote_text(sentence: Judged) -> str:
    """Quote a sentence, with its paper and sections."""
    sections = dict.fromkeys(section_text(claim.section) for claim in sentence.claims)
    source = ", ".join([paper(sentence.paper).label, *sections])
    return f"{quoted(sentence.claims[0].quote)} ({source})"


def is_in_erratum(sentence: Judged) -> bool:
    """Whether an erratum of the paper quotes a sentence that no number of its table contradicts."""
    quote = quoted(sentence.claims[0].quote)
    errata = paper(sentence.paper).errata
    return any(erratum.text.startswith(quote) for erratum in errata)


def audit_link(scale: str, folder: Path) -> str:
    """Give the path of the audit's page from a folder."""
    return os.path.relpath(results_folder(scale) / "audit.md", folder)


def section_text(section: str) -> str:
    """`sec. 3.2`, or the name of a part without a number: `abstract`."""
    return section if section.isalpha() and section.islower() else f"sec. {section}"


def place_links(judged: Judged, scale: str, folder: Path) -> str:
    """Link the pages of the tables and figures that a claim or sentence is about."""
    links = []
    for place in judged.places:
        path = relative_path(judged.paper, place, scale, "md", folder)
        links.append(f"[{grid_label(place)}]({path})")
    baselines = [baseline_text(judged.paper, claim) for claim in judged.claims]
    remarks = [*baselines, kind_of_scores(judged), labels_text(judged)]
    text = ", ".join(links)
    stated = [remark for remark in dict.fromkeys(remarks) if remark]
    return f"{text} ({'; '.join(stated)})" if stated else text


def grid_of(paper_name: str, claim: Claim) -> Grid:
    """Find the table or figure of scores that a claim is about."""
    grid = find_grid(paper_name, claim.place)
    assert isinstance(grid, Grid), claim.place
    return grid


def baseline_text(paper_name: str, claim: Claim) -> str:
    """Say over which row the columns of a claim are gains. Empty if they are no gains."""
    grid = grid_of(paper_name, claim)
    if all(grid.columns[grid.column(label)].delta is None for label in claim.columns):
        return ""
    return f"Δ: gain over {grid.baseline}"


def kind_of_scores(judged: Judged) -> str:
    """Name the scores of a claim's columns: `Transfer tasks of SentEval`. Empty if all are of STS.

    Each column is named if they have different kinds: `Avg. Sup = Transfer tasks of SentEval`.
    """
    evaluators = {}
    for claim in judged.claims:
        grid = grid_of(judged.paper, claim)
        for label in claim.columns:
            evaluators[label] = grid.column_evaluator(grid.columns[grid.column(label)])
    of_usual_table = Grid.model_fields["evaluator"].default
    if {*evaluators.values()} == {of_usual_table}:
        return ""
    titles = {label: protocol(name).declaration.title for label, name in evaluators.items()}
    if len({*titles.values()}) == 1:
        return titles.popitem()[1]
    return ", ".join(f"{label} = {title}" for label, title in titles.items())


def labels_text(judged: Judged) -> str:
    """Say that the rows of a claim are trained with labels. Empty if they are not."""
    for claim in judged.claims:
        grid = grid_of(judged.paper, claim)
        recipe = grid.rows[grid.row(claim.row)].run
        if recipe is None or declaration(recipe.method).training != "labelled":
            return ""
    return "trained with labels"


def verdict_cells(judged: Judged) -> list[str]:
    """Word the judgements by the printed numbers and by our runs."""
    ours = "–" if judged.scale == DEFAULT_SCALE else here_text(judged)
    return [on_print_text(judged), ours]
