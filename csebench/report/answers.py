"""The first page of a study: what its scores answer, each with a number, an interval and the page that it is from.

The questions are about the four papers' methods, so the tables that answer them are named here. The tests are those of
csebench/report/compare.py and power.py. Unlike findings on pages (findings.py), answers use scores of an older code
version too, marked †.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median

from csebench.plan import tuning
from csebench.plan.catalog import SIDE_BY_SIDE, paper, paper_names, results_folder
from csebench.plan.catalog import scale as read_scale
from csebench.plan.papers import Column
from csebench.plan.registry import COMPONENTS, declaration
from csebench.plan.spec import Spec
from csebench.plan.targets import Page, grid_label, page
from csebench.report import stats
from csebench.report.cells import Cell, GridView, combine_parts, differences, grid_view
from csebench.report.compare import item_variances
from csebench.report.findings import Contrast, number_is, poolers
from csebench.report.markdown import STALE, markdown_table
from csebench.report.power import POWER, Design, interval_text, smallest_difference
from csebench.report.sections import TableData

TITLE = "What this study says"
FEW_SENTENCES = 1_000  # of a training set, at most
FEW, MANY = "few", "many"  # columns: all with training sets of few sentences, all others
# Question: what is compared: (paper, table or figure, row, row that it is compared with, columns).
ADDITIONS = {
    "Does AMI help, alone and with a queue, and at few sentences?": {
        "alone": ("micse", "figure4", "AMI+SimCSE", "SimCSE", MANY),
        "with a queue": ("micse", "figure4", "miCSE", "MoCo+SimCSE", MANY),
        f"alone, {FEW_SENTENCES:,} sentences at most": ("micse", "figure4", "AMI+SimCSE", "SimCSE", FEW),
        f"with a queue, {FEW_SENTENCES:,} sentences at most": ("micse", "figure4", "miCSE", "MoCo+SimCSE", FEW),
    },
    "Does the auxiliary MLM help?": {
        "InfoCSE with it against without, STS-B dev": ("infocse", "table5", "InfoCSE", "w/o MLM loss", "STS-B"),
        "InfoCSE against SimCSE, test sets": ("infocse", "table12", "w/ MLM (InfoCSE)", "SimCSE", "Avg."),
    },
    "Does the dimension contrast help?": {
        "MSSE with it against without": ("msse", "table4", "MSSE", "w/o L_DCM", "STS(Avg.)"),
        "without MSSE's compensation": ("msse", "table4", "w/o L_ICM", "w/o L_DCM + L_ICM", "STS(Avg.)"),
    },
}
DETECTS = (
    f"*Detects*: the smallest true difference that the test shows with {100 * POWER:.0f} % power, before the"
    " correction."
)
HEAD = ["row", "against", "in", "difference", "95 % interval", "p, Holm", "detects", "from"]


@dataclass(frozen=True)
class Answered:
    """One row against another, averaged over columns; without scores, without a contrast."""

    view: GridView
    row: str
    versus: str
    columns: str
    contrast: Contrast | None = None
    stale: bool = False
    lacks_runs: bool = False  # of a column or a seed
    settings: str = ""  # what else differs between the rows, or hides a difference

    @property
    def sign(self) -> int:
        """Of a difference that a test shows; 0 where none is shown."""
        if self.contrast is None or not self.contrast.significant:
            return 0
        return 1 if self.contrast.mean > 0 else -1

    @property
    def size(self) -> str:
        """`+0.61†`"""
        assert self.contrast is not None
        return f"{self.contrast.mean:+z.2f}{STALE if self.stale else ''}"

    @property
    def interval(self) -> str:
        """`95 % interval +0.45 to +0.77, over 3 seeds`, or why there is none."""
        assert self.contrast is not None
        if self.contrast.p is None:
            return "one seed, no interval"
        return interval_text(self.contrast.mean, self.contrast.design, self.contrast.seeds, 2)

    @property
    def text(self) -> str:
        """`better (+0.61†, 95 % interval +0.45 to +0.77, over 3 seeds)`"""
        if self.contrast is None:
            return "no scores yet"
        what = {1: "better", -1: "worse", 0: "no difference shown"}[self.sign]
        if not self.sign and self.contrast.p is not None and self.contrast.p < stats.LEVEL:
            what += " after Holm's correction"
        return f"{what} ({self.size}, {self.interval}{self.settings and f'; {self.settings}'})"


@dataclass(frozen=True)
class Answer:
    question: str
    text: str
    views: tuple[GridView, ...] = ()  # the tables and figures that it is from
    tested: tuple[Answered, ...] = ()
    missing: tuple[Page, ...] = ()  # pages that more runs are needed for

    @property
    def unscored(self) -> list[Page]:
        """Pages whose runs would add what the answer lacks."""
        lacking = [page_of(t.view) for t in self.tested if t.lacks_runs]
        return list({p.path: p for p in (*lacking, *self.missing)}.values())


def answers_section(scale_name: str) -> list[str]:
    """The answers as a numbered list, and every comparison behind them, folded; as parts of a Markdown page."""
    made = answers(scale_name)
    lines = [f"{i}. **{answer.question}** {answer_text(answer)}" for i, answer in enumerate(made, 1)]
    parts = [f"## {TITLE}", "\n".join(lines)]
    if table := comparisons(made):
        parts += [
            how_to_read(),
            f"<details><summary>The {len(table.rows)} comparisons</summary>",
            markdown_table(*table),
            f"{DETECTS}\n\n</details>",
        ]
    return parts


def how_to_read() -> str:
    return (
        f"Differences are points of Spearman x 100, paired by seed. Better, worse: significant at {stats.LEVEL:g}"
        " after Holm's correction over the comparisons of an answer, where tables correct over all pairs of their rows"
        " and so show fewer; an interval is that of one comparison."
        f" {STALE} scored with an older code version."
    )


def comparisons(made: Iterable[Answer]) -> TableData | None:
    """Every comparison that has scores."""
    rows = [comparison_cells(t) for answer in made for t in answer.tested if t.contrast is not None]
    return TableData(HEAD, rows) if rows else None


def answer_text(answer: Answer) -> str:
    links = ", ".join(dict.fromkeys(link(view) for view in answer.views))
    missing = " ".join(str(page.path) for page in answer.unscored)
    text = answer.text + (f" From {links}." if links else "")
    return text + (f" Runs are missing: `snakemake -j4 {missing}`." if missing else "")


def answers(scale_name: str) -> list[Answer]:
    """Every question with its answer, in the order of the page; of a paper that is not in papers/, none."""
    methods = grid_view(SIDE_BY_SIDE, SIDE_BY_SIDE, scale_name)
    compared = [beats_untrained(methods), beats_simcse(methods)]
    compared += [
        adds_something(question, leads, scale_name)
        for question, leads in ADDITIONS.items()
        if all(paper_name in paper_names() for paper_name, *_ in leads.values())
    ]
    return [*compared, seed_spread(methods), detectable([t for answer in compared for t in answer.tested])]


# ---------------------------------------------------------------- comparisons


def compare_rows(view: GridView, row: str, versus: str, columns: Iterable[str]) -> Answered:
    """A row against another, on average over the columns in which both have scores; complete ones where there are."""
    grid = view.score_grid
    first, second = (view.rows[grid.row(label)] for label in (row, versus))
    wanted = [grid.column(label) for label in columns]
    scored = [i for i in wanted if first[i].values and second[i].values]
    complete = [i for i in scored if not first[i].absent and not second[i].absent]
    chosen = complete or scored
    if not chosen:
        return Answered(view, row, versus, "", lacks_runs=True)
    a, b = (average([cells[i] for i in chosen]) for cells in (first, second))
    by_seed = stats.summarise(differences(a, b))
    items = item_variances(a, b, view.scale)
    contrast = Contrast(by_seed.mean, Design(by_seed.std, items[0] if items else None), by_seed.n, None, 1)
    labels = column_range([grid.columns[i] for i in chosen])
    settings = settings_apart(first[chosen[0]].plan.specs[0], second[chosen[0]].plan.specs[0])
    return Answered(view, row, versus, labels, contrast, a.stale or b.stale, len(complete) < len(wanted), settings)


def settings_apart(first: Spec, second: Spec) -> str:
    """`learning rate 3e-05 against 0.0001; weight of auxiliary_mlm 1e-05, the smallest that is tried`"""
    tuned = [key for key in ("learning_rate", "temperature") if key in first.params and key in second.params]
    notes = [
        f"{key.replace('_', ' ')} {first.params[key]} against {second.params[key]}"
        for key in tuned
        if first.params[key] != second.params[key]
    ]
    for name, component in first.components.items():
        tried, weight = declaration(name, COMPONENTS).search.get("weight", ()), component.params.get("weight")
        if tried and weight == min(tried) and component != second.components.get(name):
            notes.append(f"weight of {name} {weight}, the smallest that is tried")
    return "; ".join(notes)


def average(cells: list[Cell]) -> Cell:
    """A cell with the mean of others for every seed that they share."""
    return cells[0] if len(cells) == 1 else combine_parts(cells[0], cells, lambda *v: sum(v) / len(v))


def column_range(columns: list[Column]) -> str:
    """`Avg.`, `0.5% to 100%`."""
    return " to ".join(dict.fromkeys(column.label for column in (columns[:1] + columns[-1:])))


def column_labels(view: GridView, columns: str) -> list[str]:
    """The columns that a word of ADDITIONS means: those of small training sets, those of others, or a label."""
    if columns not in (FEW, MANY):
        return [columns]
    sizes = read_scale(view.scale).sizes
    is_few = {column.label: sizes[column.size] <= FEW_SENTENCES for column in view.score_grid.columns}
    return [label for label, few in is_few.items() if few == (columns == FEW)]


def corrected(tested: Iterable[Answered]) -> tuple[Answered, ...]:
    """Comparisons with Holm's correction over all of them that have a test."""
    tested = tuple(tested)
    ps = [t.contrast.p for t in tested if t.contrast is not None and t.contrast.p is not None]
    adjusted = iter(stats.holm(ps))
    return tuple(
        replace(t, contrast=replace(t.contrast, holm=next(adjusted), tests=len(ps)))
        if t.contrast is not None and t.contrast.p is not None
        else t
        for t in tested
    )


# ---------------------------------------------------------------- answers


def adds_something(question: str, leads: dict[str, tuple[str, str, str, str, str]], scale_name: str) -> Answer:
    """Comparisons with a lead each: `Alone: no difference shown (…); with a queue: better (…)`."""
    views = {place: grid_view(*place, scale_name) for place in dict.fromkeys(rows[:2] for rows in leads.values())}
    tested = corrected(
        compare_rows(view := views[paper_name, name], row, versus, column_labels(view, columns))
        for paper_name, name, row, versus, columns in leads.values()
    )
    averaged = [columns in (FEW, MANY) for *_, columns in leads.values()]
    clauses = "; ".join(
        f"{lead}{f' ({t.columns})' if over_sizes and t.columns else ''}: {t.text}"
        for lead, over_sizes, t in zip(leads, averaged, tested, strict=True)
    )
    clauses = clauses if any(t.contrast for t in tested) else "no scores yet"
    return Answer(question, f"{clauses[:1].upper()}{clauses[1:]}.", tuple(views.values()), tested)


def beats_untrained(view: GridView) -> Answer:
    """Every trained method against the untrained encoder: those with its pooling, or all where none has it."""
    question, rows = "Does training beat the untrained encoder?", rows_by_method(view)
    untrained = rows["bert"]
    trained = {name: cell for name, cell in rows.items() if declaration(name).kind == "trained"}
    same_pooling = {name: cell for name, cell in trained.items() if poolers(cell) == poolers(untrained)} or trained
    tested = corrected(against(view, cell, untrained) for cell in same_pooling.values())
    simcse = next((t for name, t in zip(same_pooling, tested, strict=True) if name == "simcse"), tested[0])
    text = f"{simcse.row}: {simcse.text}. {counts(tested)}"
    if others := len(trained) - len(same_pooling):
        text += f" Left out: {others} methods with another pooling than the untrained encoder has here."
    return Answer(question, text, (view,), tested)


def beats_simcse(view: GridView) -> Answer:
    """Every method that learns from sentences without labels, by training or fitting, against SimCSE."""
    rows = rows_by_method(view)
    simcse = rows.pop("simcse")
    others = {name: cell for name, cell in rows.items() if learns_from_sentences(name)}
    tested = corrected(against(view, cell, simcse) for cell in others.values())
    best = sorted((t for t in tested if t.sign > 0), key=lambda t: -t.contrast.mean if t.contrast else 0)
    text = "; ".join(f"{t.row} ({t.size}, {t.interval})" for t in best) or "No method is shown to"
    text += f". {counts(tested)}"
    pooled_otherwise = [
        t.row for t, cell in zip(tested, others.values(), strict=True) if poolers(cell) != poolers(simcse)
    ]
    if pooled_otherwise:
        text += f" With another pooling than SimCSE: {', '.join(pooled_otherwise)}."
    return Answer(
        "Which methods without labels beat SimCSE?", f"{text} {tuning_text(view.scale, others)}", (view,), tested
    )


def learns_from_sentences(name: str) -> bool:
    return declaration(name).kind in ("trained", "fitted") and declaration(name).corpus == "sentences"


def tuning_text(scale_name: str, methods: Iterable[str]) -> str:
    """Whether the methods of a comparison were tuned alike."""
    searched = tuning.tuned_settings(scale_name)
    if not searched:
        return f"Settings: `config/{scale_name}.yaml`; the methods are not tuned alike."
    untuned = [declaration(name).title for name in methods if name not in searched]
    trials = tuning.read_search(tuning.search_path(next(iter(searched)), scale_name)).planned
    text = f"Tuned alike on STS-B dev, {trials} trials each ([what that bought](tuning.md))"
    return f"{text}; not tuned: {', '.join(untuned)}." if untuned else f"{text}."


def rows_by_method(view: GridView) -> dict[str, Cell]:
    """The average over the test sets of every method on the page of all methods."""
    cells = view.column("Avg.")
    return {cell.plan.specs[0].method: cell for cell in cells if cell.plan.specs}


def against(view: GridView, cell: Cell, other: Cell) -> Answered:
    return compare_rows(view, cell.plan.row.label, other.plan.row.label, [cell.plan.column.label])


def counts(tested: Iterable[Answered]) -> str:
    """`Of 14 methods 11 are better and 1 is worse; for 2 no difference is shown.`"""
    known = [t for t in tested if t.contrast is not None and t.contrast.p is not None]
    better, worse, unclear = (sum(t.sign == sign for t in known) for sign in (1, -1, 0))
    text = f"Of {len(known)} methods {number_is(better)} better and {number_is(worse)} worse"
    return f"{text}; for {unclear} no difference is shown."


def seed_spread(view: GridView) -> Answer:
    """The deviation over seeds of the methods."""
    trained = [cell for name, cell in rows_by_method(view).items() if declaration(name).kind == "trained"]
    spread = [(cell.ours.std, cell) for cell in trained if cell.ours and cell.ours.std is not None]
    sentences, missing = [], [] if spread else [page_of(view)]
    if spread:
        stds, old = [std for std, _ in spread], STALE if any(cell.stale for _, cell in spread) else ""
        n = {len(cell.values) for _, cell in spread}
        sentences.append(
            f"The standard deviation over {' or '.join(map(str, sorted(n)))} seeds is {median(stds):.2f}{old} points"
            f" in the median of {len(stds)} methods ({min(stds):.2f} to {max(stds):.2f})."
        )
    views = [view] if spread else []
    question = "How large is the seed spread?"
    return Answer(question, " ".join(sentences), tuple(views), missing=tuple(missing))


def detectable(tested: list[Answered]) -> Answer:
    """The smallest true differences that the comparisons of the other answers can show."""
    question = "What could this study not have seen?"
    smallest = [s for t in tested if (s := smallest_of(t)) < inf]
    if not smallest:
        return Answer(question, "Nothing can be said yet: no comparison has a test.")
    unclear = [s for t in tested if t.sign == 0 and (s := smallest_of(t)) < inf]
    text = (
        f"With {100 * POWER:.0f} % power at {stats.LEVEL:g}, before the correction, the median comparison above"
        f" detects a true difference of {median(smallest):.2f} points ({min(smallest):.2f} to {max(smallest):.2f} over"
        f" {len(smallest)} comparisons)."
    )
    if unclear:
        text += (
            f" Where no difference is shown, one of up to {median(unclear):.2f} points (median; {max(unclear):.2f} at"
            " most) may have been missed."
        )
    return Answer(question, text)


def smallest_of(tested: Answered) -> float:
    """The true difference that a comparison detects; infinite where there is no test."""
    return inf if tested.contrast is None else smallest_difference(tested.contrast.design, tested.contrast.seeds)


# ---------------------------------------------------------------- text


def page_of(view: GridView) -> Page:
    return page(view.name, view.scale, view.paper)


def from_index(page: Page) -> Path:
    return page.path.relative_to(results_folder(page.scale))


def link(view: GridView) -> str:
    """`[miCSE Figure 4](micse/figure4.svg)`"""
    label = "all methods" if view.paper == SIDE_BY_SIDE else f"{paper(view.paper).label} {grid_label(view.name)}"
    return f"[{label}]({from_index(page_of(view))})"


def comparison_cells(tested: Answered) -> list[str]:
    contrast, smallest = tested.contrast, smallest_of(tested)
    assert contrast is not None
    holm = "–" if contrast.holm is None else f"{contrast.holm:.2g}"
    detects = "–" if smallest == inf else f"{smallest:.2f}"
    interval = tested.interval.removeprefix("95 % interval ")
    return [tested.row, tested.versus, tested.columns, tested.size, interval, holm, detects, link(tested.view)]
