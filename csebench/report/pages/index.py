"""The first page of a scale: the questions that its tables answer, one picture, and which table
has how many runs."""

import os
from collections import Counter

from csebench.base.errors import by_number
from csebench.plan.catalog.files import (
    DEFAULT_SCALE,
    SIDE_BY_SIDE,
    VARIANTS,
    paper,
    paper_names,
    results_folder,
)
from csebench.plan.schema.paper import SettingsTable
from csebench.plan.targets import grid_label, left_out, page, planned_grids
from csebench.report.numbers.cells import (
    ON_OTHER_DATA,
    PAPER_SCALE,
    GridView,
    grid_view,
)
from csebench.report.numbers.compare import Answer, answer
from csebench.report.pages.evidence import reach_text
from csebench.report.pages.page import PageContent, Part, Picture, TextTable
from csebench.report.pages.table import STALE, nothing_to_draw
from csebench.report.provenance import scale_line
from csebench.report.words.cells import scored_text
from csebench.report.words.comparisons import family_sentence, not_matched


def index_page(scale: str) -> PageContent:
    views = [grid_view(name, grid, scale) for name, grid in planned_grids(scale)]
    evidence = os.path.relpath(results_folder(DEFAULT_SCALE) / "evidence.md", results_folder(scale))
    apart = (
        ""
        if scale == PAPER_SCALE
        else f"Not asked at scale {scale}, whose encoder is not the papers'. "
    )
    reach = f"Runs of others on the papers' encoders: {reach_text()}"
    parts: list[Part] = [f"Do the printed numbers reproduce? {apart}{reach} [Evidence]({evidence})"]
    if scale != DEFAULT_SCALE:
        parts += [questions([grid_view(SIDE_BY_SIDE, SIDE_BY_SIDE, scale), *views])]
        parts += [
            Picture(
                f"{SIDE_BY_SIDE}.svg",
                "Every method against the untrained encoder and against SimCSE",
            )
        ]
    parts += [
        "## Tables and figures",
        coverage(views),
        *(f"Left out: {broken}" for broken in left_out(scale)),
    ]
    counts = "; ".join(
        f"{count} {label}" for label, count in sorted(Counter(map(state, views)).items())
    )
    marks = f"{STALE}: with an older code version or other settings"
    if any(view.elsewhere for view in views):
        marks += (
            f"; {ON_OTHER_DATA}: on other test data than the rest of the table, so that they do not"
            " count"
        )
    parts += [
        f"A cell: the runs that it shows; {marks}. {counts}.",
        (
            f"[All methods]({SIDE_BY_SIDE}.md) · [papers and released code]({VARIANTS}.md) ·"
            " [claims](claims.md) · [inconsistencies in the published tables](audit.md) · [every"
            " score](scores.csv) · [every cell](cells.csv) · [every comparison](comparisons.csv)"
        ),
    ]
    return PageContent(f"Results at scale {scale}", scale_line(page(SIDE_BY_SIDE, scale)), parts)


def questions(views: list[GridView]) -> str:
    """The declared questions of the first page with their answers, as a numbered list."""
    asked: dict[str, list[tuple[GridView, Answer]]] = {}
    for view in views:
        for family in view.grid.compare:
            if family.first_page:
                asked.setdefault(family.first_page, []).append((view, answer(view, family)))
    lines = []
    for question, answered in asked.items():
        parts = [f"{len(lines) + 1}.", question]
        for view, one in answered:
            label, path = (
                f"{paper(view.paper).label} {grid_label(view.name)}",
                f"{view.paper}/{view.name}",
            )
            if view.paper == SIDE_BY_SIDE:
                label, path = "all methods, on 1 % of the corpus", SIDE_BY_SIDE
            parts += [
                f"**{family_sentence(one)}**",
                not_matched(one.comparisons),
                f"([{label}]({path}.md))",
            ]
        lines.append(" ".join(filter(None, parts)))
    return "\n".join(lines)


def state(view: GridView) -> str:
    """By its scored runs `complete`, `partial`, `missing`, `nothing to draw`; without any `cited
    only`, `settings`."""
    if isinstance(view.grid, SettingsTable):
        return "settings"
    done, wanted = view.progress
    if not wanted:
        return "cited only"
    if not done:
        return "nothing to draw" if nothing_to_draw(view) else "missing"
    return "complete" if done == wanted else "partial"


def coverage(views: list[GridView]) -> TextTable:
    """Tables and figures × papers: how many of the runs of each have scores."""
    links: dict[str, dict[str, str]] = {}  # by table or figure and paper
    for view in views:
        label, (done, shown) = state(view), view.progress
        if label in ("complete", "partial", "missing"):
            all_new = done == shown and not view.outdated and not view.elsewhere
            scored = scored_text(done, shown, view.outdated, view.elsewhere)
            label = f"{shown} runs" if all_new else f"{label}: {scored}"
        links.setdefault(view.name, {})[view.paper] = f"[{label}]({view.paper}/{view.name}.md)"
    rows = []
    for name in sorted(links, key=lambda name: (name.startswith("figure"), by_number(name))):
        label = (
            grid_label(name) if name.startswith("figure") else f"[{grid_label(name)}]({name}.md)"
        )
        rows.append([label, *(links[name].get(paper_name, "") for paper_name in paper_names())])
    return TextTable(["", *(paper(name).label for name in paper_names())], rows)
