"""All results of a scale as a folder of HTML, to be read without a server or a network. Same scores, same bytes.

The functions here give the content of the pages; the layout is in templates/. Without JavaScript every table is
complete, and the value of a cell links to its details further down the page.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from csebench.base.errors import by_number
from csebench.base.files import write_text
from csebench.base.processes import locked
from csebench.base.terminal import bar, loading
from csebench.plan import catalog, targets, tuning
from csebench.report import (
    answers,
    audit,
    claims,
    claims_page,
    evidence,
    evidence_figures,
    evidence_page,
    evidence_words,
    findings,
    html_cells,
    judging,
    markdown,
    overview,
    stats,
    tuning_page,
)
from csebench.report.cells import PAPER_SCALE, GridView, grid_view, is_control
from csebench.report.html_cells import FIGURES, PICTURES
from csebench.report.power import POWER
from csebench.report.table_power import needed_label, pair_powers
from csebench.score.store import read_scores

TEMPLATES = Path(__file__).with_name("templates")
ASSETS = ("style.css", "script.js")
STATES = {"complete": "●", "partial": "◐", "missing": "○", "settings": "≡", "nothing to run": "–"}
CLAIM_SIGNS = dict(zip(judging.VERDICTS, ("✓", "≈", "≈?", "=", "≠", "(✗)", "✗", "–"), strict=True))
CLAIM_CLASSES = dict(
    zip(judging.VERDICTS, ("holds", "weak", "weak", "weak", "reversed", "weak", "reversed", "untestable"), strict=True)
)


class SiteContent(NamedTuple):
    scale: str
    views: dict[str, list[GridView]]  # by paper; a generated page counts as one
    paper_findings: dict[str, findings.Finding]
    judged: list[claims.JudgedSentence]
    audit_findings: list[audit.Finding]


def write_site(scale: str) -> Path:
    """Write the folder `html/` among the pages of a scale; returns its index.

    The new folder is written completely before two renames put it into the place of the old one, by one process at a
    time. A process killed between the renames leaves the old folder as `.html.old` until the next call.
    """
    with loading("scores and claims"):
        content = collect_content(scale)
    out = catalog.results_folder(scale) / "html"
    if out.is_symlink():  # the folder that it leads to is replaced, and the link stays
        out = out.resolve()
    new, old = (out.with_name(f".html.{name}") for name in ("new", "old"))
    with locked(out):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            write_pages(content, new)
        except BaseException:  # Ctrl-C, too
            shutil.rmtree(new, ignore_errors=True)
            raise
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    return out / "index.html"


def collect_content(scale: str) -> SiteContent:
    views = overview.views_by_paper(scale)
    for name in catalog.GENERATED:
        views[name] = [grid_view(name, table, scale) for table in catalog.paper(name).tables]
    of_papers = {name: findings.paper_finding(name, scale) for name in catalog.paper_names()}
    return SiteContent(scale, views, of_papers, claims.judge_all(scale), audit.findings())


def write_pages(content: SiteContent, folder: Path) -> None:
    (folder / FIGURES).mkdir(parents=True)
    for name in ASSETS:
        shutil.copyfile(TEMPLATES / name, folder / name)
    for view in (view for views in content.views.values() for view in views):
        for ending, source in html_cells.figure_files(view).items():
            shutil.copyfile(source, folder / html_cells.figure_link(view, ending))
    if has_evidence():
        evidence_figures.draw(folder / FIGURES)
        for columns in (1, 2):
            evidence_figures.draw_runs(folder / FIGURES, columns)
    if has_tuning(content.scale):
        tuning_page.draw(folder / FIGURES, content.scale)
    templates = template_environment(content.scale)
    for name, (template, values) in bar(page_templates(content).items(), "pages", "page"):
        write_text(folder / f"{name}.html", templates.get_template(template).render(here=name, **values))


def page_templates(content: SiteContent) -> dict[str, tuple[str, dict]]:
    """(template, its values) of every page, by the page's name."""
    pages = {"index": ("index.html", index_values(content))}
    if has_evidence():
        pages[evidence_page.NAME] = ("evidence.html", {})
    if has_tuning(content.scale):
        values = {"title": tuning_page.TITLE, "sections": tuning_page.sections(content.scale)}
        pages[tuning_page.NAME] = ("study.html", values)
    for name, views in content.views.items():
        values = {"about": catalog.paper(name), "views": views, "runs": html_cells.runs_on_page(views)}
        pages[name] = ("paper.html", values | {"finding": content.paper_findings.get(name)})
    pages["claims"] = ("claims.html", {"judged": content.judged})
    pages["audit"] = ("audit.html", {"sections": overview.findings_by_section(content.audit_findings)})
    return pages


def has_tuning(scale: str) -> bool:
    """Whether a search was made at a scale."""
    return bool(tuning.search_files(scale))


def has_evidence() -> bool:
    """Whether evidence/ has a seed sweep, with which the overview starts."""
    return bool(evidence.sweeps())


def template_environment(scale: str) -> Environment:
    """The templates, with the filters, functions and constants that they use."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"inline": inline, "blocks": blocks, "items": list_items}
    environment.tests["control"] = is_control
    functions = (findings.grid_finding, targets.grid_label, has_evidence, link_to_place)
    functions += (needed_label, pair_powers, audit.paper_label, audit.place_label, audit.section_id, audit.where_label)
    environment.globals |= {function.__name__: function for function in functions}
    modules = (answers, claims_page, evidence_page, evidence_words, html_cells, markdown, overview)
    environment.globals |= {module.__name__.rpartition(".")[2]: module for module in modules}
    environment.globals |= {
        "scale": catalog.scale(scale),
        "papers": catalog.paper_names(),
        "paper": catalog.paper,
        "comparable": scale == PAPER_SCALE,
        "PICTURES": PICTURES,
        "GENERATED": catalog.GENERATED,
        "SIDE_BY_SIDE": catalog.SIDE_BY_SIDE,
        "VARIANTS": catalog.VARIANTS,
        "STATES": STATES,
        "CLAIM_CLASSES": CLAIM_CLASSES,
        "CLAIM_SIGNS": CLAIM_SIGNS,
        "SIZE_OFF": judging.SIZE_OFF,
        "LEVEL": stats.LEVEL,
        "POWER": POWER,
    }
    return environment


# ---------------------------------------------------------------- text


def inline(text: str) -> Markup:
    """Markdown's `code`, **bold**, *slanted* and [links](table2.md) as HTML; everything else is escaped. No
    line ends between a number and its % or ±."""
    text = re.sub(r"(?<=\d) (?=%)|(?<=±) | (?=± \d)", "\N{NO-BREAK SPACE}", text)
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    html = re.sub(
        r"\[([^]]+)\]\((https://[^) ]+|[\w/-]+\.(?:md|svg))\)",
        lambda link: f'<a href="{site_link(link[2])}">{link[1]}</a>',
        html,
    )
    html = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", html)
    return Markup(re.sub(r"(?<!\w)\*([^*\s]|[^*\s][^*]*[^*\s])\*(?!\w)", r"<em>\1</em>", html))


def site_link(target: str) -> str:
    """`micse.html#table2` for `micse/table2.md`, which a Markdown page of the scale links to; an address as it is."""
    if target.startswith("https://"):
        return target
    folder, _, name = target.rpartition("/")
    name = name.partition(".")[0]
    return f"{folder}.html#{name}" if folder else f"{name}.html"


def blocks(text: str) -> Markup:
    """Paragraphs and lists of a Markdown page as HTML."""
    parts = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if all(line.startswith("- ") for line in lines):
            items = (Markup("<li>{}</li>").format(inline(item)) for item in list_items(lines))
            parts.append(Markup("<ul>{}</ul>").format(Markup("").join(items)))
        else:
            parts.append(Markup("<p>{}</p>").format(inline(block)))
    return Markup("\n").join(parts)


def list_items(lines: list[str]) -> list[str]:
    """Lines of a Markdown list without their dashes."""
    return [line.removeprefix("- ") for line in lines]


def link_to_place(paper_name: str, place: str) -> str | None:
    """Link to a place such as `table2` or `Section 4 and Table 2`; None for a paper without a page."""
    if paper_name not in catalog.paper_names():
        return None
    mentioned = [kind.lower() + key for kind, key in re.findall(r"(table|figure)\s*(\w+)", place, re.IGNORECASE)]
    names = [name for name in mentioned if name in targets.grid_names(paper_name)]
    return f"{paper_name}.html" + (f"#{names[0]}" if names else "")


# ---------------------------------------------------------------- index and claims


def index_values(content: SiteContent) -> dict:
    """Values of the template of the index: counts over everything at a scale."""
    pairs = {pair for page in targets.pages(content.scale) for pair in page.scores()}
    done = {(run, e) for run, e in pairs if read_scores(targets.score_path(run, e, content.scale)) is not None}
    incomplete = {run for run, _ in pairs - done}
    all_views = [view for views in content.views.values() for view in views]
    cells = [cell for view in all_views for row in view.rows for cell in row]
    papers = [view for view in all_views if view.paper not in catalog.GENERATED]
    return {
        "study": answers.answers(content.scale) if content.scale != catalog.DEFAULT_SCALE else [],
        "tuning_page": tuning_page if has_tuning(content.scale) else None,
        "views": content.views,
        "runs": (len({run for run, _ in done} - incomplete), len({run for run, _ in pairs})),
        "scores": (len(done), len(pairs)),
        "states": Counter(view.state for view in all_views),
        "verdicts": Counter(cell.verdict.name for cell in cells if cell.verdict),
        "verdict_names": [*markdown.SIGNS, stats.NOT_COMPARABLE],
        "findings": {
            name: (finding, next(view for view in content.views[name] if view.name == finding.grid))
            for name, finding in content.paper_findings.items()
        },
        "print_verdicts": Counter(sentence.published.verdict for sentence in content.judged),
        "our_verdicts": Counter(sentence.ours.verdict for sentence in content.judged),
        "kinds": sorted(Counter(finding.kind for finding in content.audit_findings).items()),
        "numbers": sorted({view.name for view in papers}, key=column_order),
    }


def column_order(name: str) -> tuple:
    """Sorts the columns of the coverage matrix: tables before figures, each by number."""
    return name.startswith("figure"), by_number(name)
