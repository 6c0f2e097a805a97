"""The page of a table or figure: its answer, a picture, our scores; folded, what is printed and
how it was made."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.project import REPOSITORY
from csebench.base.shown import as_markdown, visible
from csebench.base.terminal import counted
from csebench.plan import targets
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    GENERATED,
    SIDE_BY_SIDE,
    VARIANTS,
    paper,
    scale,
)
from csebench.plan.catalog.registry import protocol
from csebench.plan.grids import recipe_values
from csebench.plan.schema.paper import Figure, SettingsTable
from csebench.report.numbers import stats
from csebench.report.numbers.cells import ON_OTHER_DATA, Cell, GridView, grid_view
from csebench.report.numbers.claims import judge_all
from csebench.report.numbers.compare import (
    Answer,
    Relation,
    answers,
    best_rows,
    block,
    summary_columns,
)
from csebench.report.pages.claims import sentence_table
from csebench.report.pages.methods import tuning_parts
from csebench.report.pages.page import (
    Fold,
    PageContent,
    Part,
    Picture,
    TextTable,
    as_list,
    relative_path,
)
from csebench.report.provenance import (
    deviation_lines,
    page_conditions,
    provenance_lines,
    scale_line,
)
from csebench.report.words import comparisons as words
from csebench.report.words.cells import reasons_of_cell
from csebench.score.data_of_scores import SHOWN_DIGITS, Scored
from csebench.score.store import stored_score

SOURCES = {
    "measured": "measured by the authors",
    "rerun": "re-run by the authors",
    "copied": "copied from {}",
}
SOURCES |= {"unknown": "source not stated"}
SIGNS = {
    stats.REPRODUCED: "✓",
    stats.CLOSE: "≈",
    stats.LOWER: "↓",
    stats.HIGHER: "↑",
    stats.TOO_FEW: "?",
}
STALE = "†"
HOW_COMPARED = (
    "Differences are in points (0.01 of a score), paired by seed; the interval is over seeds and"
    " test items. Interval and p are corrected for all comparisons of a question (Bonferroni,"
    f" Holm). [How rows are compared]({REPOSITORY}/blob/main/docs/statistics.md)."
)
HOW_VARIANTS = (
    "Where a method's public code differs from its paper, it has a table: *as printed* is the"
    " paper, *as released* the code with what it does by mistake, *released, repaired* the code"
    " where it would not run, or is not what the paper ran. Below: whether they score otherwise"
    " than *as printed*."
)


def table_page(page: targets.Page) -> PageContent:
    """The page of one paper's table or figure, of one number in all papers, or of all variants."""
    views, folder = [grid_view(*grid, page.scale) for grid in page.grids()], page.path.parent
    if len(views) == 1:
        (view,) = views
        said, shown, folds = view_parts(view, folder)
        tuned = tuning_parts(page.scale) if view.paper == SIDE_BY_SIDE else []
        parts = [*status_line(view), *said, *shown, *folds, *tuned, *made(page)]
        return PageContent(heading(view), scale_line(page), parts)
    of_variants, firsts, sections = page.papers == (VARIANTS,), [], []
    for view in views:
        said, shown, folds = view_parts(view, folder)
        title, page_of_it = (
            heading(view),
            relative_path(view.paper, view.name, view.scale, "md", folder),
        )
        firsts += [(title if of_variants else f"[{title}]({page_of_it})", one) for one in said[:1]]
        details = [Fold("Details", folds)] if folds else []
        sections += [f"## {title}", *status_line(view), *said[1:], *shown, *details]
    title = (
        paper(VARIANTS).title if of_variants else f"{targets.grid_label(page.name)} of all papers"
    )
    legends = [HOW_VARIANTS] if of_variants else []
    return PageContent(
        title, scale_line(page), [*legends, as_list(by_text(firsts)), *sections, *made(page)]
    )


def heading(view: GridView) -> str:
    """`miCSE · Table 2 · Few-shot: AMI as a plug-in`"""
    if view.paper in GENERATED:
        return view.grid.title
    about = paper(view.paper)
    return f"{about.label or about.reference} · {targets.grid_label(view.name)} · {view.grid.title}"


def status_line(view: GridView) -> list[str]:
    """How many runs have scores, where some have none, old ones, or ones on other data than the
    table or the paper."""
    done, wanted = view.progress
    parts = []
    if 0 < done < wanted:
        parts.append(f"{done} of {wanted} runs are scored")
    if view.outdated:
        parts.append(
            f"{STALE}: {view.outdated} of them with an older code version or other settings"
        )
    if view.elsewhere:
        text = (
            "on other test data than the rest of the table, which count in no mean and are compared"
            " with nothing"
        )
        parts.append(f"{ON_OTHER_DATA}: {counted(view.elsewhere, 'run')} {text}")
    lines = []
    if parts:
        lines.append(f"{'; '.join(parts)}.")
    if view.not_standard:
        lines.append(not_standard_text(view))
    return lines


def not_standard_text(view: GridView) -> str:
    """Which printed values are not judged, as the scores are not on the test sets that papers
    use."""
    names = []
    for evaluator in view.not_standard:
        data = view.data[evaluator]
        names.append(f"{evaluator} (data {data.files[:SHOWN_DIGITS] or 'of unknown hash'})")
    return (
        f"**Not known to be the standard test data: {', '.join(names)}.** Papers print scores on"
        " that, so these cells are not judged by printed values ([which data"
        f" is]({REPOSITORY}/blob/main/docs/data.md#standard-test-sets))."
    )


def view_parts(view: GridView, folder: Path) -> tuple[list[str], list[Part], list[Part]]:
    """On a page in a folder: the answers; picture, table and legend; what is folded."""
    if isinstance(view.grid, SettingsTable):
        return settings_parts(view, view.grid)
    answered, is_figure = answers(view), isinstance(view.grid, Figure)
    title = view.grid.title * has_values(view) if is_figure else forest_title(view, answered)
    file = relative_path(view.paper, view.name, view.scale, "svg", folder)
    parts: list[Part] = [Picture(file, title)] if title else []
    shown = [i for i in row_order(view) if any(cell.plan.specs for cell in view.rows[i])]
    if shown and (has_values(view) or not is_figure):
        columns = view.score_grid.columns if view.scale != DEFAULT_SCALE else []
        best = [best_rows(view, column) for column in columns]
        parts += [*score_tables(view, shown, best), *table_legend(view, shown, best)]
    printed = printed_fold(view, folded=bool(shown))
    parts += [] if shown else printed
    folds = [*(printed if shown else []), *others_fold(view)]
    if answered and view.scale != DEFAULT_SCALE:
        compared: list[Part] = []
        how = [HOW_COMPARED, *seeds_only_text(answered)]
        for answer in answered:
            rows = [words.comparison_row(c) for c in answer.comparisons]
            compared += [answer.family.question, TextTable(words.COMPARISON_HEAD, rows)]
        count = sum(len(answer.comparisons) for answer in answered)
        folds.append(Fold(f"Every declared comparison: {count}", [*compared, *how]))
    if view.scale != DEFAULT_SCALE and (claims := judge_all(view.scale, [view.paper], view.name)):
        folds.append(
            Fold(f"Claims about it: {len(claims)}", [sentence_table(claims, view.scale, folder)])
        )
    folds += texts_fold(view)
    if notes := [*view.grid.notes, *by_text(missing_scores(view))]:
        folds.append(Fold("Notes, and rows not run here", [as_list(notes)]))
    return answer_lines(view, answered), parts, folds


def seeds_only_text(answered: list[Answer]) -> list[str]:
    """How many comparisons lack the error over test items that others have, though their
    evaluators declare items."""
    tested = [c for answer in answered for c in answer.comparisons if c.estimate is not None]
    lacking = sum(c.over_seeds_only for c in tested)
    if not lacking:
        return []
    count = "All" if lacking == len(tested) else f"{lacking} of {len(tested)}"
    return [
        f"{count} of these intervals are over seeds only: the score files have no replicates over"
        " test items."
    ]


def answer_lines(view: GridView, answered: list[Answer]) -> list[str]:
    """The answer in bold, what is not matched, then one line per other question. What is not
    matched stands behind the first of them for all, where it is the same everywhere, or settings
    are as papers print them."""
    if view.scale == DEFAULT_SCALE:
        return [f"**{words.SMOKE}**"]
    if not any(cell.plan.specs for cell in view.cells):
        reasons = {cell.plan.missing for cell in view.cells if cell.plan.missing}
        why = next(iter(reasons)) if len(reasons) == 1 else "no row has a method and data here"
        printed = " The printed values follow." * any(cell.published for cell in view.cells)
        return [f"**Nothing is run here: {why}.**{printed}"]
    lines = [f"**{reproduced_text(view.cells)}**"] if view.judged else []
    every = [comparison for answer in answered for comparison in answer.comparisons]
    once = not scale(view.scale).tuned or len({c.differs for c in every if c.estimate}) == 1
    for place, answer in enumerate(answered):
        primary, said = (
            answer.family.primary and len(answer.comparisons) == 1,
            words.family_sentence(answer),
        )
        question = "" if primary or view.paper == VARIANTS else answer.family.question
        if primary and view.judged and answer.comparisons[0].is_judged:
            said = printed_lead(answer)
        elif primary or not answered[0].family.primary:
            said = f"**{said}**"
        unmatched = words.not_matched(
            answer.comparisons if not once else every if place == 0 else ()
        )
        lines.append(" ".join(filter(None, [question, said, unmatched])))
    done, wanted = view.progress
    if not lines and not done:
        lines.append(
            f"**{nothing_to_draw(view) or f'No answer yet: 0 of {wanted} runs are scored.'}**"
        )
    return lines


def nothing_to_draw(view: GridView) -> str:
    """Why a figure has nothing to draw though its runs were scored; empty where it has, or they
    were not."""
    for plan in [] if has_values(view) else [cell.plan for cell in view.cells if cell.plan.specs]:
        if stored_score(plan.specs[0], plan.evaluator, view.scale)[0]:
            needs = f"{plan.evaluator} needs {protocol(plan.evaluator).declaration.needs}"
            return (
                f"Nothing to draw here: the runs have no scores of the task {plan.task} ({needs})."
            )
    return ""


def reproduced_text(cells: list[Cell]) -> str:
    """`30 of 36 printed values are reproduced; 3 close, 3 lower, 0 higher, 0 untested.`"""
    counts = Counter(
        cell.verdict for cell in cells if cell.judged and cell.published and cell.plan.specs
    )
    reproduced = f"{counts[stats.REPRODUCED]} of {counts.total()} printed values are reproduced"
    others = ", ".join(
        f"{counts[name]} {name}" for name in (stats.CLOSE, stats.LOWER, stats.HIGHER)
    )
    untested = sum(counts[name] for name in (stats.TOO_FEW, stats.NOT_COMPARABLE, ""))
    return f"{reproduced}; {others}, {untested} untested."


def printed_lead(answer: Answer) -> str:
    """Where printed values are judged: whether the printed difference of two rows is shown."""
    (c,) = answer.comparisons
    if c.estimate is None or c.p is None or c.printed is None:
        return words.sentence(c, answer.family.equality)
    row, against, gain = (
        words.short_label(c.row),
        words.short_label(c.against),
        f"{c.estimate.gain:+.2f}",
    )
    if c.relation == Relation.WORSE:
        return f"{row} is worse than {against} (printed {c.printed:+.2f}): {gain}."
    shown = "is shown" if c.relation == Relation.BETTER else "is not shown"
    bound = "" if c.relation == Relation.BETTER else f"; {words.excluded(c.high or 0.0)}"
    return f"{row}'s lead over {against} (printed {c.printed:+.2f}) {shown}: {gain}{bound}."


def has_values(view: GridView) -> bool:
    """Whether a figure has anything to draw."""
    return any(cell.values or (cell.published and cell.judged) for cell in view.cells)


def forest_title(view: GridView, answered: list[Answer]) -> str:
    """The first clause of the answer, the title of a table's forest plot; empty where it has
    none."""
    tested = any(c.p is not None for answer in answered for c in answer.comparisons)
    if not tested or view.scale == DEFAULT_SCALE or view.paper == VARIANTS:
        return ""
    first = answered[0]
    if not first.family.primary:
        return first.family.question
    return words.sentence(first.comparisons[0], first.family.equality).split(" here")[0].rstrip(".")


def row_order(view: GridView) -> list[int]:
    """Indices of rows as a page shows them: as printed; on the page of all methods from the
    best, controls last."""
    rows = range(len(view.rows))
    if view.paper != SIDE_BY_SIDE:
        return [*rows]
    average = view.column("Avg.")
    return sorted(
        rows, key=lambda i: (average[i].is_control, -average[i].mean if average[i].values else inf)
    )


def score_tables(view: GridView, shown: list[int], best: list[list[set[int]]]) -> list[TextTable]:
    """Our scores, bold where one row is best in a column; rows that learn with labels are a
    table of their own."""
    bold = {(i, j) for j, sets in enumerate(best) for rows in sets if len(rows) == 1 for i in rows}
    head = ["Model", *(column.label for column in view.score_grid.columns)]
    # by whether a row learns with labels
    tables: dict[bool, list[list[str]]] = {False: [], True: []}
    for i in shown:
        of, cells = block(view, i), view.rows[i]
        texts = [cell_text(cell, (i, j) in bold) for j, cell in enumerate(cells)]
        tables[of is not None and of[1] == "triplets"].append([view.grid.rows[i].label, *texts])
    if not tables[False]:
        return [TextTable(head, tables[True])]
    return [
        TextTable(head, rows, "Trained with labels" * supervised)
        for supervised, rows in tables.items()
        if rows
    ]


def cell_text(cell: Cell, bold: bool) -> str:
    """`78.41 ± 0.31`; where printed values are judged, with the published one and its verdict,
    `(78.13 ✓)`."""
    text = f"**{cell.text}**" if bold else cell.text
    text += STALE if cell.stale else ""
    text += f" [{cell.absent} missing]" if cell.absent and cell.values else ""
    if cell.runs_elsewhere and cell.values:
        text += f" [{cell.runs_elsewhere} {ON_OTHER_DATA}]"
    if not cell.judged or cell.published is None:
        return text
    sign = SIGNS.get(cell.verdict, "")
    return f"{text} ({cell.published.text}{f' {sign}' if sign else ''})"


def table_legend(view: GridView, shown: list[int], best: list[list[set[int]]]) -> list[Part]:
    """How to read the cells, and which rows may be best in the columns that sum up the table,
    folded if many."""
    cells = [cell for i in shown for cell in view.rows[i]]
    seeds, metrics = words.ends_text(len(cell.values) for cell in cells), {}
    for cell in cells:
        metrics.setdefault(cell.factor, set()).update({cell.plan.metric} - {""})
    measures = [
        f"{', '.join(sorted(of))}{f' × {factor:g}' * (factor != 1)}"
        for factor, of in metrics.items()
        if of
    ]
    parts = [
        f"Mean ± standard deviation of {seeds} seed{'s' * (seeds != '1')}, {'; '.join(measures)}."
    ]
    if view.judged:
        parts.append(
            "Behind it the printed value:"
            f" {', '.join(f'{sign} {name}' for name, sign in SIGNS.items())}."
        )
    parts += (
        ["Bold: best at 95 %."] if any(len(rows) == 1 for sets in best for rows in sets) else []
    )
    columns: dict[tuple[str, ...], list[str]] = {}  # by the rows that may be best in them
    for column in summary_columns(view) if best else []:
        for rows in (rows for rows in best[column] if len(rows) > 1):
            labels = tuple(words.short_label(view.grid.rows[i].label) for i in sorted(rows))
            columns.setdefault(labels, []).append(view.score_grid.columns[column].label)
    lines = [f"{', '.join(labels)}: {', '.join(rows)}." for rows, labels in columns.items()]
    many = len(lines) > 2 or any(len(rows) > words.MOST_ROWS for rows in columns)
    parts += [] if many else [f"Possibly best in {line}" for line in lines]
    if any(cell.ours is None and not cell.runs_elsewhere for cell in cells):
        parts.append("–: no run or no number.")
    if view.sentences_seen:
        parts.append(
            f"Columns limit the training pool; every run sees {view.sentences_seen:,} sentences."
        )
    return [
        " ".join(parts),
        *([Fold("Possibly best, by column", [as_list(lines)])] if many else []),
    ]


# ---------------------------------------------------------------- what is folded


def printed_fold(view: GridView, folded: bool) -> list[Part]:
    """The published values, with where each comes from."""
    table = table_of(view, lambda cell: cell.published and cell.published.text)
    if not table.rows:
        return []
    rows = [row for row in view.score_grid.rows if any(row.values) or row.note]
    sources = [
        f"{SOURCES[row.source].format(row.origin)}. {row.note or ''}".rstrip() for row in rows
    ]
    lines = as_list(by_text(zip((row.label for row in rows), sources, strict=True)))
    if not folded:
        return [table, Fold("Where the printed values come from", [lines])]
    parts = [] if view.judged and not view.not_standard else [table]
    encoders = dict.fromkeys(cell.published_encoder for cell in view.cells if cell.published)
    return [
        Fold(f"Printed on {', '.join(encoders)}, and where each value comes from", [*parts, lines])
    ]


def by_text(of_rows: Iterable[tuple[str, str]]) -> list[str]:
    """A line per text, with the rows that have it: `SimCSE; CT: measured by the authors.`"""
    rows: dict[str, dict[str, None]] = {}
    for label, text in of_rows:
        rows.setdefault(text, {})[label] = None
    return [f"{'; '.join(labels)}: {text}" for text, labels in rows.items()]


def table_of(view: GridView, text: Callable[[Cell], str | None]) -> TextTable:
    """A text of every cell, of the rows and columns that have one."""
    rows = [
        (row.label, [text(c) for c in cells])
        for row, cells in zip(view.grid.rows, view.rows, strict=True)
    ]
    rows = [(label, texts) for label, texts in rows if any(texts)]
    columns = [i for i in range(len(view.score_grid.columns)) if any(texts[i] for _, texts in rows)]
    body = [[label, *(texts[i] or "–" for i in columns)] for label, texts in rows]
    return TextTable(["Model", *(view.score_grid.columns[i].label for i in columns)], body)


def others_fold(view: GridView) -> list[Part]:
    """Scores of runs that other people published, and how these runs differ."""
    table = table_of(view, others_text)
    if not table.rows:
        return []
    known = [(cell.plan.row, cell.others) for cell in view.cells if cell.others]
    lines = as_list(
        by_text(
            (row.label, f"{o.kind}, {', '.join(o.sources)}: {o.differs(row)}.") for row, o in known
        )
    )
    printed = "; in brackets what these runs say of the printed value" * any(
        cell.published for cell in view.cells
    )
    return [
        Fold(
            "Others' runs on the paper's encoder", [f"Not mixed with ours{printed}.", table, lines]
        )
    ]


def others_text(cell: Cell) -> str | None:
    """`75.11 ± 0.84, n = 50 (printed 76.25: reproduced)`: others' runs, and the verdict on the
    published value."""
    if cell.others is None:
        return None
    summary, published = cell.others.summary, cell.published
    text = f"{cell.mean_and_std(summary)}, n = {summary.n}"
    if published is None:
        return text
    return (
        f"{text} (printed {published.text}:"
        f" {cell.others.verdict(published, cell.published_seeds).name})"
    )


def texts_fold(view: GridView) -> list[Part]:
    """What the first run of every row retrieved for each query, and what papers print."""
    retrieved, labels, texts = {}, [], {}
    for cell, *_ in view.rows:
        declared = protocol(cell.plan.evaluator).declaration.texts if cell.plan.specs else None
        if declared is None:
            continue
        content, is_outdated = stored_score(cell.plan.specs[0], cell.plan.evaluator, view.scale)
        if content is None or not view.is_on_its_data(
            cell.plan.evaluator, Scored(content, is_outdated)
        ):
            continue  # none, or of other queries
        if "texts" in content:
            if texts and any(content["texts"][key] != texts[key] for key in ("queries", "printed")):
                problem = (
                    f"the texts of {cell.plan.row.label} are of other queries than those of the"
                    " rows above"
                )
                raise BadInput(f"{view.paper}/{view.name}: {problem}; evaluate its runs again.")
            retrieved[cell.plan.row.label] = content["texts"]["retrieved"]
            labels, texts = declared.labels, content["texts"]
    if not texts:
        return []
    head, tables = ["", *retrieved, *(f"{label} (printed)" for label in labels)], []
    for number, query in enumerate(texts["queries"]):
        columns = [*(of_row[number] for of_row in retrieved.values()), *texts["printed"][number]]
        rows = [[f"#{rank}", *row] for rank, row in enumerate(zip(*columns, strict=True), 1)]
        tables += [f"Query: {visible(query)}", TextTable(head, rows)]
    return [Fold("Retrieved texts", tables)]


def missing_scores(view: GridView) -> Iterator[tuple[str, str]]:
    """Name rows, or some of their columns, without a run or score, and why; and rows whose loss
    trains nothing."""
    for row, cells in zip(view.score_grid.rows, view.rows, strict=True):
        runs = {spec.run_id for cell in cells for spec in cell.plan.specs}
        if runs and all(cell.unchanged for cell in cells):
            yield row.label, f"the loss is 0 in all {len(runs)} runs, so training changes nothing."
        elif runs and all(cell.loss_vanished for cell in cells if cell.plan.specs):
            yield (
                row.label,
                f"in all {len(runs)} runs the loss is 0, or below 1e-4 of its start after the first"
                " steps, so training changes next to nothing.",
            )
        by_reason: dict[str, list[str]] = {}
        for cell in cells:
            reasons = map(as_markdown, reasons_of_cell(cell))
            if cell.plan.missing:
                reasons = [cell.plan.missing]
            for reason in reasons:
                by_reason.setdefault(reason.rstrip("."), []).append(cell.plan.column.label)
        for reason, columns in by_reason.items():
            every = (
                len(columns) == sum(cell.plan.column.task is not None for cell in cells)
                or not row.run
            )
            yield f"{row.label}{'' if every else ', ' + ', '.join(columns)}", f"{reason}."


def made(page: targets.Page) -> list[Part]:
    """How the scores were made: settings, commits, hardware; and where methods deviate from the
    papers."""
    settings = "\n".join(f"- **{label}**: {text}" for label, text in page_conditions(page))
    parts: list[Part] = [Fold("How it was made", [provenance_lines(page), settings])]
    if choices := deviation_lines(page):
        parts.append(
            Fold(
                "Where methods deviate from the paper, or it leaves a choice", ["\n".join(choices)]
            )
        )
    return parts


def settings_parts(
    view: GridView, table: SettingsTable
) -> tuple[list[str], list[Part], list[Part]]:
    """A table of settings with cells `128 (128 ✓)`: the value in the recipe at scale paper, and
    the printed one."""
    signs, body = Counter(), []
    for row in table.rows:
        body.append([row.label])
        for printed, ours in zip(
            row.values, recipe_values(view.paper, view.name, row.param), strict=True
        ):
            sign = "" if printed is None else " ✓" if float(printed) == float(f"{ours:g}") else " ≠"
            signs[sign] += 1
            body[-1].append(f"{ours:g} ({printed or '–'}{sign})")
    legend = (
        "The value in the recipe at scale paper (printed value); ✓ equal, ≠ different, – not"
        " printed."
    )
    shown: list[Part] = [
        TextTable(["Setting", *(column.label for column in table.columns)], body),
        legend,
    ]
    folds: list[Part] = [Fold("Notes", [as_list(table.notes)])] if table.notes else []
    equal, printed = signs[" ✓"], signs.total() - signs[""]
    return [f"**{equal} of {printed} printed settings equal the recipes.**"], shown, folds


# ---------------------------------------------------------------- what tuning chose
