"""All results of a scale as one folder of HTML, to be read without a server or a network. Same scores, same bytes.

Without JavaScript every table is there as printed, and a cell's number leads to its details further down the page.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from csebench.plan import catalog, targets
from csebench.plan.papers import Figure
from csebench.plan.spec import Spec
from csebench.report import claims, markdown, overview, stats
from csebench.report.view import PAPER_SCALE, Cell, View, is_control, view
from csebench.score.store import read, score

TEMPLATES = Path(__file__).with_name("templates")
ASSETS = ("style.css", "script.js")
PICTURES = ("svg", "png", "csv")
STATES = {"complete": "●", "partial": "◐", "missing": "○", "settings": "≡", "nothing to run": "–"}
CLAIM_SIGNS = {claims.HOLDS: "✓", claims.WEAK: "≈", claims.REVERSED: "✗", claims.UNTESTABLE: "–"}


class Run(NamedTuple):
    """A run that a page shows, and what it is scored by there."""

    spec: Spec
    evaluators: list[str]
    content: dict | None  # of its first score JSON
    stale: bool


class Site(NamedTuple):
    scale: str
    views: dict[str, list[View]]  # by paper, the page of all methods among them
    judged: list[claims.Judged]
    findings: list


def site(scale: str) -> Path:
    """Writes `results/SCALE/html/` and returns its index.

    It is written beside the old one and takes its place by two renames; killed between them, the old one is
    `.html.old`, until the next call.
    """
    found = gather(scale)
    out = catalog.results_folder(scale) / "html"
    new, old = (out.with_name(f".html.{name}") for name in ("new", "old"))
    for left_over in (new, old):
        shutil.rmtree(left_over, ignore_errors=True)
    write(found, new)
    if out.exists():
        out.rename(old)
    new.rename(out)
    shutil.rmtree(old, ignore_errors=True)
    return out / "index.html"


def gather(scale: str) -> Site:
    from csebench.report.audit import findings

    views = {name: [view(name, grid, scale) for grid in targets.grid_names(name)] for name in catalog.paper_names()}
    views[catalog.SIDE_BY_SIDE] = [view(catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, scale)]
    return Site(scale, views, claims.judge_all(scale), findings())


def write(found: Site, folder: Path) -> None:
    (folder / "figures").mkdir(parents=True)
    for name in ASSETS:
        shutil.copyfile(TEMPLATES / name, folder / name)
    for own in found.views.values():
        for shown in own:
            for ending, source in drawn(shown).items():
                shutil.copyfile(source, folder / picture(shown, ending))
    templates = environment(found)
    for name, (template, values) in pages(found).items():
        text = templates.get_template(template).render(here=name, **values)
        (folder / f"{name}.html").write_text(text, encoding="utf-8", newline="\n")


def pages(found: Site) -> dict[str, tuple[str, dict]]:
    """Template and values of every page by its name."""
    shown = {"index": ("index.html", index_values(found))}
    for name, own in found.views.items():
        shown[name] = ("paper.html", {"about": catalog.paper(name), "views": own, "runs": runs_of(own)})
    shown["claims"] = ("claims.html", {"judged": found.judged})
    shown["audit"] = ("audit.html", {"findings": found.findings})
    return shown


def environment(found: Site) -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"inline": inline, "blocks": blocks, "items": lambda lines: [x.removeprefix("- ") for x in lines]}
    made.tests["control"] = is_control
    functions = (anchor, commands, conditions, derivation, drawn, facts, foot, letters, pairs, picture, place_link)
    functions += (place_name, seeds, set_against, short, snakemake, source_of, texts)
    functions += (
        overview.legend,
        markdown.heading,
        markdown.reasons,
        markdown.settings_cells,
        markdown.sources,
        markdown.tied,
    )
    made.globals |= {function.__name__: function for function in functions}
    made.globals |= {
        "at": catalog.scale(found.scale),
        "papers": catalog.paper_names(),
        "paper": catalog.paper,
        "comparable": found.scale == PAPER_SCALE,
        "NOT_COMPARABLE": markdown.NOT_COMPARABLE,
        "SIDE_BY_SIDE": catalog.SIDE_BY_SIDE,
        "SIGNS": markdown.SIGNS,
        "STALE": markdown.STALE,
        "STATES": STATES,
        "CLAIM_SIGNS": CLAIM_SIGNS,
        "LEVEL": stats.LEVEL,
    }
    return made


# ---------------------------------------------------------------- text


def inline(text: str) -> Markup:
    """`code` and **bold** of the Markdown pages; everything else is escaped."""
    found = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", found))


def blocks(text: str) -> Markup:
    """Paragraphs and lists of a Markdown page."""
    made = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if all(line.startswith("- ") for line in lines):
            made.append(Markup("<ul>{}</ul>").format(Markup("").join(_item(line) for line in lines)))
        else:
            made.append(Markup("<p>{}</p>").format(inline(block)))
    return Markup("\n").join(made)


def _item(line: str) -> Markup:
    return Markup("<li>{}</li>").format(inline(line.removeprefix("- ")))


def short(name: str) -> str:
    """`Table 2` of `table2`."""
    return targets.grid_label(name)


def place_link(paper_name: str, place: str) -> str | None:
    """Where a place such as `table2` or `Section 4 and Table 2` is on the paper's page."""
    if paper_name not in catalog.paper_names():
        return None
    named = [kind.lower() + key for kind, key in re.findall(r"(table|figure)\s*(\w+)", place, re.IGNORECASE)]
    there = [name for name in named if name in targets.grid_names(paper_name)]
    return f"{paper_name}.html" + (f"#{there[0]}" if there else "")


def place_name(paper_name: str, place: str) -> str:
    return short(place) if paper_name in catalog.paper_names() and place in targets.grid_names(paper_name) else place


# ---------------------------------------------------------------- tables and figures


def anchor(shown: View, row: int, place: int) -> str:
    return f"{shown.name}-r{row}-c{place}"


def page_of(shown: View) -> targets.Page:
    """The Markdown page or figure of a view."""
    return targets.page(shown.name, shown.scale, None if shown.paper == catalog.SIDE_BY_SIDE else shown.paper)


def snakemake(shown: View) -> str:
    return f"snakemake -j4 {page_of(shown).path}"


def conditions(shown: View) -> list[list[str]]:
    return markdown.conditions(page_of(shown))


def foot(shown: View) -> str:
    return markdown.made(page_of(shown))


def drawn(shown: View) -> dict[str, Path]:
    """Files of a figure by their ending, those that there are."""
    if not isinstance(shown.grid, Figure):
        return {}
    found = {ending: targets.grid_path(shown.paper, shown.name, shown.scale, ending) for ending in PICTURES}
    return {ending: path for ending, path in found.items() if path.exists()}


def picture(shown: View, ending: str) -> str:
    return f"figures/{shown.paper}-{shown.name}.{ending}"


def letters(shown: View, row: int, label: str) -> str:
    """Letters of the rows that a row does not differ from in a column."""
    return shown.comparisons.get(label, {"letters": {}})["letters"].get(str(row), "")


def pairs(shown: View) -> list[tuple[str, str, str, dict]]:
    """(column, row, other row, test) of every pair compared."""
    label = [row.label for row in shown.grid.rows]
    return [
        (column, label[pair["a"]], label[pair["b"]], pair)
        for column, own in shown.comparisons.items()
        for pair in own["pairs"]
    ]


def texts(shown: View) -> list[tuple[str, list[tuple]]]:
    """(query, rows) of what was retrieved: a place's texts, ours, then those printed."""
    if shown.texts is None:
        return []
    columns = (*shown.texts["retrieved"].values(), *shown.texts["printed"].values())
    return [
        (query, list(zip(*(column[number] for column in columns), strict=True)))
        for number, query in enumerate(shown.texts["queries"])
    ]


# ---------------------------------------------------------------- a cell's details


def seeds(cell: Cell, scale: str) -> list[tuple[int, str | None, Spec | None, str | None]]:
    """(seed, value, run, the older run that is shown in its place) of a cell; a derived one has values alone."""
    number = f".{cell.digits + 2}f"
    if not cell.plan.specs:
        return [(seed, format(cell.values[seed], number), None, None) for seed in cell.seeds]
    found = []
    for spec in cell.plan.specs:
        content, old = score(spec, cell.plan.evaluator, scale)
        value = format(cell.values[spec.seed], number) if content else None
        found.append((spec.seed, value, spec, content["run"] if old else None))
    return found


def derivation(shown: View, cell: Cell) -> str:
    """What a cell without runs of its own is made of."""
    if cell.plan.column.delta is not None:
        return f"Difference to {shown.grid.baseline} in column {cell.plan.column.delta}"
    return "Mean of the columns before it, seed by seed"


def source_of(row) -> str:
    return markdown.SOURCES[row.source] + (f" from {row.origin}" if row.origin else "")


def runs_of(views: list[View]) -> dict[str, tuple[Run, list[Spec]]]:
    """The runs of a page by their id, with those that they start from."""
    specs, before, evaluators = {}, {}, {}
    for cell in (cell for shown in views for row in shown.rows for cell in row):
        for spec in cell.plan.specs:
            specs[spec.run_id], before[spec.run_id] = spec, list(cell.plan.before)
            evaluators.setdefault(spec.run_id, set()).add(cell.plan.evaluator)
    scale = views[0].scale
    return {run: (scored(specs[run], sorted(evaluators[run]), scale), before[run]) for run in sorted(specs)}


def scored(spec: Spec, evaluators: list[str], scale: str) -> Run:
    for evaluator in evaluators:
        content, stale = score(spec, evaluator, scale)
        if content is not None:
            return Run(spec, evaluators, content, stale)
    return Run(spec, evaluators, None, False)


def facts(run: Run, scale: str) -> dict[str, str]:
    """What was run and where, of the run's score JSON."""
    spec, found = run.spec, {}
    found["Method"] = f"{spec.method} version {spec.method_version}"
    found["Method"] += "".join(f" + {name} version {c.version}" for name, c in spec.components.items())
    found["Encoder"] = f"{spec.encoder.name} @ {spec.encoder.revision[:12]}"
    if spec.corpus:
        drawn = f"{spec.corpus.size:,} drawn with seed {spec.corpus.subset_seed}"
        found["Corpus"] = f"{spec.corpus.name} (sha256 {spec.corpus.sha256[:12]}), {drawn}"
    values = {**spec.params, **{f"{n}.{k}": v for n, c in spec.components.items() for k, v in c.params.items()}}
    found["Settings"] = ", ".join(f"{key} {value}" for key, value in values.items()) or "none"
    if run.content is not None:
        found |= _made(run.content)
        paths = [targets.score_path(run.content["run"], evaluator, scale) for evaluator in run.evaluators]
        found["Scores"] = ", ".join(str(path) for path in paths if path.exists())
    return found


def _made(content: dict) -> dict[str, str]:
    training, scoring = content["training"], content["provenance"]
    made, found = training["provenance"], {}
    if training.get("best_step") is not None:
        best = f"best at step {training['best_step']:,} of {training['steps']:,}"
        found["Training"] = f"{best}, STS-B dev {100 * training['best_dev']:.2f}"
    dirty = made["dirty_diff_sha256"]
    found["Commit"] = str(made["commit"]) + (f", with changes (sha256 {dirty[:12]})" if dirty else ", clean")
    if scoring["commit"] != made["commit"] or scoring["dirty_diff_sha256"] != dirty:
        found["Scored at"] = markdown.commit(scoring)
    found["Torch"] = made["packages"]["torch"]
    found["Hardware"] = f"{made['gpu'] or made['processor']}, {made['cores']} cores, threads used: {made['threads']}"
    found["Started"] = f"{made['started']}, {made['seconds']:,.0f} s; scored {scoring['started']}"
    return found


def commands(run: Run, before: list[Spec], scale: str) -> str:
    """What makes a run and its scores by hand, in order."""
    at, run_id = catalog.scale(scale), run.spec.run_id
    lines = [f"csebench work {spec.run_id} --scale {scale}" for spec in (*before, run.spec)]
    lines += [f"csebench publish {run_id} {evaluator} --scale {scale}" for evaluator in run.evaluators]
    wanted = at.evaluation
    again = f"csebench evaluate --model runs/{run_id}/model --evaluators {','.join(run.evaluators)}"
    again += f" --precision {wanted.precision} --batch-size {wanted.batch_size}"
    again += f" --max-length {wanted.max_length}" if wanted.max_length else ""
    again += f" --data {at.data_root}" if at.data_root else ""
    return "\n".join([*lines, f"{again} --out runs/{run_id}/again.json"])


# ---------------------------------------------------------------- the overview, claims


def index_values(found: Site) -> dict:
    """Counts over everything at a scale."""
    pairs = {pair for page in targets.pages(found.scale) for pair in page.scores()}
    have = {(run, e) for run, e in pairs if read(targets.score_path(run, e, found.scale)) is not None}
    lacking = {run for run, _ in pairs - have}
    cells = [cell for own in found.views.values() for shown in own for row in shown.rows for cell in row]
    return {
        "views": found.views,
        "runs": (len({run for run, _ in have} - lacking), len({run for run, _ in pairs})),
        "scores": (len(have), len(pairs)),
        "states": Counter(shown.state for own in found.views.values() for shown in own),
        "verdicts": Counter(cell.verdict.name for cell in cells if cell.verdict),
        "verdict_names": [*markdown.SIGNS, stats.NOT_COMPARABLE],
        "claim_pairs": Counter((one.published.verdict, one.ours.verdict) for one in found.judged),
        "kinds": sorted(Counter(finding.kind for finding in found.findings).items()),
        "numbers": grid_names(found),
    }


def grid_names(found: Site) -> list[str]:
    """Columns of the matrix: tables by number, then figures."""
    names = {shown.name for name in catalog.paper_names() for shown in found.views[name]}
    return sorted(names, key=lambda name: (name.startswith("figure"), targets.grid_order(name)))


def set_against(claim) -> str:
    """What a claim compares: `miCSE > SimCSE, PCL in Avg.`"""
    than = "every other row" if claim.than == "others" else ", ".join(claim.than)
    than += f" but {', '.join(claim.but)}" if claim.but else ""
    than += f" of Table {claim.than_table}" if claim.than_table else ""
    than += f" in {claim.than_column}" if claim.than_column else ""
    sign = "≈" if claim.within else "<" if claim.lower else ">"
    what = "deviation of " if claim.of == "std" else ""
    where = ("the average of " if claim.on_average else "") + ", ".join(claim.columns)
    return f"{what}{claim.row} {sign} {than}; column{'s' * (len(claim.columns) > 1)} {where}"
