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

from csebench.base.display import bar, loading
from csebench.base.errors import by_number
from csebench.base.files import write_text
from csebench.base.locks import locked
from csebench.plan import catalog, targets
from csebench.plan.papers import Figure, Row
from csebench.plan.spec import Spec
from csebench.report import (
    claims,
    claims_page,
    evidence,
    evidence_figures,
    evidence_page,
    evidence_words,
    judging,
    markdown,
    overview,
    stats,
)
from csebench.report.audit import Finding, findings, paper_label
from csebench.report.power import POWER
from csebench.report.table_power import PairPower, needed_label, pair_powers
from csebench.report.view import PAPER_SCALE, Cell, GridView, grid_view, is_control
from csebench.score.store import read_scores, score

TEMPLATES = Path(__file__).with_name("templates")
ASSETS = ("style.css", "script.js")
FIGURES = "figures"
PICTURES = ("svg", "png", "csv")
STATES = {"complete": "●", "partial": "◐", "missing": "○", "settings": "≡", "nothing to run": "–"}
CLAIM_SIGNS = dict(zip(judging.VERDICTS, ("✓", "≈", "≈?", "=", "≠", "(✗)", "✗", "–"), strict=True))
CLAIM_CLASSES = dict(
    zip(judging.VERDICTS, ("holds", "weak", "weak", "weak", "reversed", "weak", "reversed", "untestable"), strict=True)
)


class RunDetails(NamedTuple):
    """A run that a page shows, and the evaluators whose scores of it the page shows."""

    spec: Spec
    evaluators: list[str]
    content: dict | None  # of its first score JSON
    stale: bool


class SiteContent(NamedTuple):
    scale: str
    views: dict[str, list[GridView]]  # by paper; a generated page counts as one
    judged: list[claims.JudgedSentence]
    findings: list[Finding]


def write_site(scale: str) -> Path:
    """Write the folder `html/` among the pages of a scale; returns its index.

    The new folder is written completely before two renames put it into the place of the old one, by one process at a
    time. A process killed between the renames leaves the old folder as `.html.old` until the next call.
    """
    with loading("scores and claims"):
        content = collect_content(scale)
    out = catalog.results_folder(scale) / "html"
    new, old = (out.with_name(f".html.{name}") for name in ("new", "old"))
    with locked(out.with_name(".html.lock"), f"{out}: another process writes it; waiting for its end."):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        write_pages(content, new)
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    return out / "index.html"


def collect_content(scale: str) -> SiteContent:
    views = overview.views_by_paper(scale)
    for name in catalog.GENERATED:
        views[name] = [grid_view(name, table, scale) for table in catalog.paper(name).tables]
    return SiteContent(scale, views, claims.judge_all(scale), findings())


def write_pages(content: SiteContent, folder: Path) -> None:
    (folder / FIGURES).mkdir(parents=True)
    for name in ASSETS:
        shutil.copyfile(TEMPLATES / name, folder / name)
    for view in (view for views in content.views.values() for view in views):
        for ending, source in figure_files(view).items():
            shutil.copyfile(source, folder / figure_link(view, ending))
    if has_evidence():
        evidence_figures.draw(folder / FIGURES)
    templates = template_environment(content.scale)
    for name, (template, values) in bar(page_templates(content).items(), "pages", "page"):
        write_text(folder / f"{name}.html", templates.get_template(template).render(here=name, **values))


def page_templates(content: SiteContent) -> dict[str, tuple[str, dict]]:
    """(template, its values) of every page, by the page's name."""
    pages = {"index": ("index.html", index_values(content))}
    if has_evidence():
        pages[evidence_page.NAME] = ("evidence.html", {"sections": evidence_page.sections()})
    for name, views in content.views.items():
        pages[name] = ("paper.html", {"about": catalog.paper(name), "views": views, "runs": runs_on_page(views)})
    pages["claims"] = ("claims.html", {"judged": content.judged})
    pages["audit"] = ("audit.html", {"sections": overview.findings_by_section(content.findings)})
    return pages


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
    functions = (cell_anchor, conditions_rows, derivation, figure_files, figure_link, label_of_place)
    functions += (claims_page.claim_formula, claims_page.claims_legend)
    functions += (link_to_place, provenance_text, retrieved_rows, row_letters, run_commands, run_facts, seed_rows)
    functions += (snakemake_command, source_label, tested_pairs, error_text, targets.grid_label)
    functions += (markdown.heading, markdown.missing_reasons, markdown.settings_cells, markdown.source_lines)
    functions += (markdown.missing_scores, markdown.others_source, markdown.others_text, markdown.ties_meaning)
    functions += (markdown.equal_rows, markdown.variants_legend, markdown.power_section, has_evidence)
    functions += (overview.audit_legend, paper_label, needed_label, pair_powers, pairs_of_cell)
    environment.globals |= {function.__name__: function for function in functions}
    environment.globals |= {
        "scale": catalog.scale(scale),
        "papers": catalog.paper_names(),
        "paper": catalog.paper,
        "comparable": scale == PAPER_SCALE,
        "evidence_page": evidence_page,
        "evidence_words": evidence_words,
        "not_comparable": markdown.not_comparable(scale),
        "PICTURES": PICTURES,
        "SEVERAL": overview.SEVERAL,
        "GENERATED": catalog.GENERATED,
        "SIDE_BY_SIDE": catalog.SIDE_BY_SIDE,
        "SIGNS": markdown.SIGNS,
        "STALE": markdown.STALE,
        "STATES": STATES,
        "CLAIM_CLASSES": CLAIM_CLASSES,
        "CLAIM_SIGNS": CLAIM_SIGNS,
        "LEVEL": stats.LEVEL,
        "POWER": POWER,
    }
    return environment


# ---------------------------------------------------------------- text


def inline(text: str) -> Markup:
    """Markdown's `code`, **bold** and [links](https://…) as HTML; everything else is escaped. No line ends between a
    number and its % or ±."""
    text = re.sub(r"(?<=\d) (?=%)|(?<=±) | (?=± \d)", "\N{NO-BREAK SPACE}", text)
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    html = re.sub(r"\[([^]]+)\]\((https://[^) ]+)\)", r'<a href="\2">\1</a>', html)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", html))


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


def label_of_place(paper_name: str, place: str) -> str:
    """`Table 2` for `table2`; other places as they are."""
    is_grid = paper_name in catalog.paper_names() and place in targets.grid_names(paper_name)
    return targets.grid_label(place) if is_grid else place


# ---------------------------------------------------------------- tables and figures


def cell_anchor(view: GridView, row: int, column: int) -> str:
    return f"{view.name}-r{row}-c{column}"


def page_of_view(view: GridView) -> targets.Page:
    """The Markdown page or figure of a view."""
    return targets.page(view.name, view.scale, None if view.paper == catalog.SIDE_BY_SIDE else view.paper)


def snakemake_command(view: GridView) -> str:
    return f"snakemake -j4 {page_of_view(view).path}"


def conditions_rows(view: GridView) -> list[list[str]]:
    return markdown.page_conditions(page_of_view(view))


def provenance_text(view: GridView) -> str:
    return markdown.provenance_section(page_of_view(view))


def figure_files(view: GridView) -> dict[str, Path]:
    """The existing files of a figure, by their ending; none for a table."""
    if not isinstance(view.grid, Figure):
        return {}
    paths = {ending: targets.grid_path(view.paper, view.name, view.scale, ending) for ending in PICTURES}
    return {ending: path for ending, path in paths.items() if path.exists()}


def figure_link(view: GridView, ending: str) -> str:
    return f"{FIGURES}/{view.paper}-{view.name}.{ending}"


def row_letters(view: GridView, row: int, label: str) -> str:
    """Letters of a row in a compared column: it does not differ from rows with the same letter."""
    return view.comparisons.get(label, {"letters": {}})["letters"].get(str(row), "")


def tested_pairs(view: GridView) -> list[tuple[str, str, str, dict]]:
    """(column, row, other row, test) of every pair of rows that was compared."""
    labels = [row.label for row in view.grid.rows]
    return [
        (column, labels[pair["a"]], labels[pair["b"]], pair)
        for column, comparison in view.comparisons.items()
        for pair in comparison["pairs"]
    ]


def pairs_of_cell(view: GridView, cell: Cell, row: int, powers: list[PairPower]) -> list[tuple[str, float, PairPower]]:
    """(other row, difference to it, power) of every pair of a cell's column that has it."""
    column, pairs = cell.plan.column.label, []
    for power in powers:
        if power.column == column and row in power.rows:
            (other,) = power.rows - {row}
            pairs.append((view.grid.rows[other].label, cell.mean - view.column(column)[other].mean, power))
    return pairs


def error_text(variance: float | None) -> str:
    """Standard error of a difference over test items."""
    return "–" if variance is None else f"{variance**0.5:.2g}"


def retrieved_rows(view: GridView) -> list[tuple[str, list[tuple]]]:
    """(query, rows) for each query; a row has the texts at one rank, retrieved by our runs and then printed."""
    if view.texts is None:
        return []
    columns = (*view.texts["retrieved"].values(), *view.texts["printed"].values())
    return [
        (query, list(zip(*(column[number] for column in columns), strict=True)))
        for number, query in enumerate(view.texts["queries"])
    ]


# ---------------------------------------------------------------- a cell's details


def seed_rows(cell: Cell, scale: str) -> list[tuple[int, str | None, Spec | None, str | None]]:
    """(seed, value, run, id of the older run whose score is shown instead) of a cell; a derived cell has no runs."""
    number = f".{cell.digits + 2}f"
    if not cell.plan.specs:
        return [(seed, format(cell.values[seed], number), None, None) for seed in cell.seeds]
    rows = []
    for spec in cell.plan.specs:
        content, stale = score(spec, cell.plan.evaluator, scale)
        value = format(cell.values[spec.seed], number) if content else None
        rows.append((spec.seed, value, spec, content["run"] if content and stale else None))
    return rows


def derivation(view: GridView, cell: Cell) -> str:
    """How a cell without runs is computed."""
    if cell.plan.column.delta is not None:
        return f"Difference to {view.score_grid.baseline} in column {cell.plan.column.delta}"
    return "Mean of the columns before it, seed by seed"


def source_label(row: Row) -> str:
    return markdown.SOURCES[row.source] + (f" from {row.origin}" if row.origin else "")


def runs_on_page(views: list[GridView]) -> dict[str, tuple[RunDetails, list[Spec]]]:
    """The runs of a page by id, each with the runs that it starts from."""
    specs, before, evaluators = {}, {}, {}
    for cell in (cell for view in views for row in view.rows for cell in row):
        for spec in cell.plan.specs:
            specs[spec.run_id], before[spec.run_id] = spec, list(cell.plan.before)
            evaluators.setdefault(spec.run_id, set()).add(cell.plan.evaluator)
    scale = views[0].scale
    return {run: (run_details(specs[run], sorted(evaluators[run]), scale), before[run]) for run in sorted(specs)}


def run_details(spec: Spec, evaluators: list[str], scale: str) -> RunDetails:
    for evaluator in evaluators:
        content, stale = score(spec, evaluator, scale)
        if content is not None:
            return RunDetails(spec, evaluators, content, stale)
    return RunDetails(spec, evaluators, None, False)


def run_facts(run: RunDetails, scale: str) -> dict[str, str]:
    """What was run and how it was trained, by label; the latter once it has scores."""
    spec = run.spec
    method = f"{spec.method} version {spec.method_version}"
    method += "".join(f" + {name} version {c.version}" for name, c in spec.components.items())
    facts = {"Method": method, "Encoder": f"{spec.encoder.name} @ {spec.encoder.revision[:12]}"}
    if spec.corpus:
        drawn = f"{spec.corpus.size:,} drawn with seed {spec.corpus.subset_seed}"
        facts["Corpus"] = f"{spec.corpus.name} (sha256 {spec.corpus.sha256[:12]}), {drawn}"
    values = {**spec.params, **{f"{n}.{k}": v for n, c in spec.components.items() for k, v in c.params.items()}}
    facts["Settings"] = ", ".join(f"{key} {value}" for key, value in values.items()) or "none"
    if run.content is not None:
        facts |= _training_facts(run.content)
        paths = [targets.score_path(run.content["run"], evaluator, scale) for evaluator in run.evaluators]
        facts["Scores"] = ", ".join(str(path) for path in paths if path.exists())
    return facts


def _training_facts(content: dict) -> dict[str, str]:
    training, scoring = content["training"], content["provenance"]
    provenance, facts = training["provenance"], {}
    if training.get("best_step") is not None:
        best = f"best at step {training['best_step']:,} of {training['steps']:,}"
        facts["Training"] = f"{best}, STS-B dev {100 * training['best_dev']:.2f}"
    dirty = provenance["dirty_diff_sha256"]
    facts["Commit"] = str(provenance["commit"]) + (f", with changes (sha256 {dirty[:12]})" if dirty else ", clean")
    if scoring["commit"] != provenance["commit"] or scoring["dirty_diff_sha256"] != dirty:
        facts["Scored at"] = markdown.commit_label(scoring)
    if changed := sorted({u for p in (provenance, scoring) for u in p.get("unversioned_code", [])}):
        facts["Code changed without a new version"] = ", ".join(changed)
    facts["Torch"] = provenance["packages"]["torch"]
    hardware = provenance["gpu"] or provenance["processor"]
    facts["Hardware"] = f"{hardware}, {provenance['cores']} cores, threads used: {provenance['threads']}"
    facts["Started"] = f"{provenance['started']}, {provenance['seconds']:,.0f} s; scored {scoring['started']}"
    return facts


def run_commands(run: RunDetails, before: list[Spec], scale_name: str) -> str:
    """The commands that make a run and its scores without Snakemake, in order."""
    scale, run_id = catalog.scale(scale_name), run.spec.run_id
    lines = [f"csebench work {spec.run_id} --scale {scale_name}" for spec in (*before, run.spec)]
    lines += [f"csebench publish {run_id} {evaluator} --scale {scale_name}" for evaluator in run.evaluators]
    settings = scale.evaluation
    evaluate = f"csebench evaluate --model runs/{run_id}/model --evaluators {','.join(run.evaluators)}"
    evaluate += f" --precision {settings.precision} --batch-size {settings.batch_size}"
    evaluate += f" --max-length {settings.max_length}" if settings.max_length else ""
    evaluate += f" --data {scale.data_root}" if scale.data_root else ""
    return "\n".join([*lines, f"{evaluate} --out runs/{run_id}/again.json"])


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
        "views": content.views,
        "runs": (len({run for run, _ in done} - incomplete), len({run for run, _ in pairs})),
        "scores": (len(done), len(pairs)),
        "states": Counter(view.state for view in all_views),
        "verdicts": Counter(cell.verdict.name for cell in cells if cell.verdict),
        "verdict_names": [*markdown.SIGNS, stats.NOT_COMPARABLE],
        "claim_pairs": Counter((sentence.published.verdict, sentence.ours.verdict) for sentence in content.judged),
        "kinds": sorted(Counter(finding.kind for finding in content.findings).items()),
        "numbers": sorted({view.name for view in papers}, key=column_order),
    }


def column_order(name: str) -> tuple:
    """Sorts the columns of the coverage matrix: tables before figures, each by number."""
    return name.startswith("figure"), by_number(name)
