"""From targets (names or paths that a user asks for) to pages, and from pages to runs and score
files."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from csebench.base.caches import cached
from csebench.base.errors import BadInput, by_number, problem_of, unknown
from csebench.base.files import read_json
from csebench.base.project import published
from csebench.base.runs import has_model
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import unavailable
from csebench.plan.catalog.files import (
    GENERATED,
    VARIANTS,
    paper,
    paper_names,
    results_folder,
    scale,
    scale_names,
)
from csebench.plan.catalog.registry import EVALUATORS, protocol
from csebench.plan.code_versions import draft_code
from csebench.plan.grids import CellPlan, find_grid, plan_grid, untrained_cell
from csebench.plan.recipe import corpus_path, positives_path
from csebench.plan.schema.paper import Figure
from csebench.plan.schema.spec import RUNS, Spec


@dataclass(frozen=True)
class Page:
    """A page of results: one paper's table or figure, or the tables of all papers with one
    number."""

    name: str  # table2, figure3, methods, variants
    papers: tuple[str, ...]
    scale: str
    path: Path

    def grids(self) -> list[tuple[str, str]]:
        """(paper, name) of the tables or figures on the page."""
        if self.name == VARIANTS:
            return [(VARIANTS, method) for method in paper(VARIANTS).tables]
        return [(paper_name, self.name) for paper_name in self.papers]

    @cached
    def cells(self) -> list[CellPlan]:
        """The cells of its tables or figures, with the untrained encoder's whose line a figure
        shows."""
        cells = [
            cell for grid in self.grids() for row in plan_grid(*grid, self.scale) for cell in row
        ]
        return cells + [
            cell for grid in self.grids() if (cell := untrained_cell(*grid, self.scale))
        ]

    @cached
    def runs(self) -> dict[str, Spec]:
        """The runs that the page needs, by id, with those that they start from."""
        return {spec.run_id: spec for cell in self.cells() for spec in (*cell.before, *cell.specs)}

    @cached
    def scores(self) -> dict[tuple[str, str], Spec]:
        """The scores that the page shows, as (run id, evaluator)."""
        return {(spec.run_id, cell.evaluator): spec for cell in self.cells() for spec in cell.specs}

    def available(self) -> dict[tuple[str, str], Spec]:
        """Those that exist or can be made: not where an evaluator's data are neither here nor
        public."""
        scores = self.scores().items()
        usable = {
            evaluator
            for _, evaluator in self.scores()
            if unavailable(evaluator, self.scale) is None
        }
        return {
            pair: spec
            for pair, spec in scores
            if pair[1] in usable or score_path(*pair, self.scale).exists()
        }

    def available_runs(self) -> dict[str, Spec]:
        """The runs behind those scores, with the runs that they start from."""
        wanted = {
            run for spec in self.available().values() for run in (spec.run_id, spec.run_before)
        }
        return {run_id: spec for run_id, spec in self.runs().items() if run_id in wanted}


@cached
def runs(scale_name: str) -> dict[str, Spec]:
    """Every run that the pages of a scale need, by id."""
    return {run_id: spec for page in pages(scale_name) for run_id, spec in page.runs().items()}


def finished_runs(pages: Iterable[Page]) -> set[str]:
    """Runs of pages of which nothing is left to be made: their model is there, or every score
    that the pages show is published. A run that others start from is finished, too, when all of
    these are."""
    specs: dict[str, Spec] = {}
    unscored: set[str] = set()
    for page in pages:
        specs |= page.available_runs()
        unscored |= {
            run_id for run_id, e in page.available() if not is_scored(run_id, e, page.scale)
        }
    left = {run_id for run_id in unscored if not has_model(RUNS / run_id)}
    left |= {
        before
        for run_id in left
        if (before := specs[run_id].run_before) and not has_model(RUNS / before)
    }
    return {*specs} - left


@cached
def evaluators(scale_name: str) -> dict[str, set[str]]:
    """The evaluators that score each run of a scale; none for a pre-training run."""
    evaluators: dict[str, set[str]] = {run_id: set() for run_id in runs(scale_name)}
    for page in pages(scale_name):
        for run_id, evaluator in page.scores():
            evaluators[run_id].add(evaluator)
    return evaluators


def run(run_id: str, scale_name: str) -> Spec:
    """A run of a scale by id."""
    if run_id not in runs(scale_name):
        hint = f"`csebench plan all --scale {scale_name} --runs` lists the runs."
        edited = "A run has another id after an edit of its method's code or settings;"
        raise BadInput(f"no table of scale {scale_name} needs a run {run_id!r}. {edited} {hint}")
    return runs(scale_name)[run_id]


def scale_of_run(run_id: str, first: str) -> str:
    """The scale whose pages need a run; `first` is tried before the others."""
    for name in dict.fromkeys([first, *scale_names()]):
        if run_id in runs(name):
            return name
    hint = "`csebench plan all --scale SCALE --runs` lists the runs."
    raise BadInput(f"no table of any scale needs a run {run_id!r}; {hint}")


def base_encoder(spec: Spec, scale_name: str) -> str:
    """The encoder whose architecture a run has: of a run that starts from another run's model,
    that run's."""
    return (
        spec.encoder.name
        if spec.run_before is None
        else run(spec.run_before, scale_name).encoder.name
    )


def back_translation(key: str, first: str) -> tuple[Path, str]:
    """(corpus, translators) of the back-translated corpus with a key, from a run of scale
    `first`, or of another."""
    for name in dict.fromkeys([first, *scale_names()]):
        for spec in runs(name).values():
            positives, corpus = positives_path(spec), corpus_path(spec, scale(name))
            if positives and corpus and positives.stem == key:
                return corpus, str(spec.params["translators"])
    raise BadInput(f"no table of any scale needs a back-translation {key!r}.")


def page(name: str, scale_name: str, paper_name: str | None = None) -> Page:
    """The page of `table2` of all papers, of a table or figure of one paper, or a generated one."""
    if name in GENERATED:
        return Page(name, (name,), scale_name, grid_path(name, name, scale_name, "md"))
    if paper_name is not None:
        ending = "svg" if isinstance(find_grid(paper_name, name), Figure) else "md"
        return Page(
            name, (paper_name,), scale_name, grid_path(paper_name, name, scale_name, ending)
        )
    known = [key for p in paper_names() for key in paper(p).tables]
    if (key := name.removeprefix("table")) not in known:
        raise unknown("table", key, known)
    having = [p for p in paper_names() if key in paper(p).tables]
    papers = [p for p in having if grid_defect(p, name, scale_name) is None] or having
    return Page(name, tuple(papers), scale_name, results_folder(scale_name) / f"{name}.md")


@cached
def pages(scale_name: str) -> tuple[Page, ...]:
    """Every page of a scale: tables over all papers, generated ones, then each paper's; without
    those `left_out`."""
    of_papers = [page(name, scale_name, of_paper) for of_paper, name in planned_grids(scale_name)]
    tables = sorted(
        {page.name for page in of_papers if page.name.startswith("table")}, key=by_number
    )
    return (*(page(name, scale_name) for name in (*tables, *GENERATED)), *of_papers)


@cached
def grid_defect(paper_name: str, name: str, scale_name: str) -> str | None:
    """Why a table or figure has no page at a scale: its file names what does not exist; None
    where it has one."""
    return problem_of(plan_grid, paper_name, name, scale_name)


def planned_grids(scale_name: str) -> list[tuple[str, str]]:
    """(paper, name) of every table and figure of papers/ that has a page at a scale."""
    return [
        (p, name)
        for p in paper_names()
        for name in grid_names(p)
        if grid_defect(p, name, scale_name) is None
    ]


def left_out(scale_name: str) -> list[str]:
    """What is wrong with papers, and with tables and figures, that have no pages at a scale."""
    defects = [grid_defect(p, name, scale_name) for p in paper_names() for name in grid_names(p)]
    return [*catalog.broken_papers().values(), *filter(None, defects)]


def grid_names(paper_name: str) -> list[str]:
    """Names of a paper's tables and figures: `table2`, `figure3`."""
    about = paper(paper_name)
    return [f"table{key}" for key in about.tables] + [f"figure{key}" for key in about.figures]


def grid_label(name: str) -> str:
    """`Table 2` for `table2`, `Table A1` for `tableA1`; other names capitalised."""
    kind = next((kind for kind in ("table", "figure") if name.startswith(kind)), name)
    return f"{kind.capitalize()} {name.removeprefix(kind)}".strip()


def target_name(paper: str, name: str) -> str:
    """A table or figure as a target: `micse/table2`."""
    return name if paper == name else f"{paper}/{name}"


def parse_target(target: str, scale_name: str) -> list[Page]:
    """The pages of `all`, `methods`, `variants`, `variants/micse`, `table2`, `micse` (all of the
    paper's), `micse/figure3`, or of a path such as `results/mini/micse/table2.md`."""
    if target == "all":
        return list(pages(scale_name))
    parts, scale_name = split_target(target, scale_name)
    if broken := catalog.broken_papers().get("".join(parts[:1])):
        raise BadInput(broken)
    match parts:
        case [name] if name in GENERATED or re.fullmatch(r"table\w+", name):
            return [page(name, scale_name)]
        case [name] if name in paper_names():
            return [page(grid, scale_name, name) for grid in grid_names(name)]
        case [folder, name] if folder == VARIANTS:
            return [page(name, scale_name, VARIANTS)]
        case [folder, name] if folder in paper_names() and re.fullmatch(r"(table|figure)\w+", name):
            return [page(name, scale_name, folder)]
    known = [
        str(p.path.relative_to(results_folder(scale_name)).with_suffix(""))
        for p in pages(scale_name)
    ]
    known += [
        *paper_names(),
        "all",
        *(f"{name}/{target}" for name in scale_names() for target in known),
    ]
    hint = (
        "`csebench papers` lists tables and figures; `csebench show NAME` describes methods,"
        " evaluators and runs."
    )
    if target.endswith(".yaml"):  # a file of papers/
        known = paper_names()
    raise unknown("target", "/".join(parts) or target, known, hint=hint)


def split_target(target: str, scale_name: str) -> tuple[list[str], str]:
    """The names in a target or a path, and the scale, which a path may name."""
    parts = (
        re.sub(r"\.(md|svg)$", "", target)
        .removeprefix("results/")
        .removeprefix("partial/")
        .split("/")
    )
    return (parts[1:], parts[0]) if parts[0] in scale_names() else (parts, scale_name)


def grid_path(paper_name: str, name: str, scale_name: str, ending: str) -> Path:
    """Path of a file about one paper's table or figure: `results/micse/table2.md`."""
    folder = results_folder(scale_name)
    return (folder if name == paper_name else folder / paper_name) / f"{name}.{ending}"


def is_scored(run_id: str, evaluator: str, scale_name: str) -> bool:
    """Whether a score is there, and made by today's code of an evaluator that is a draft."""
    path = score_path(run_id, evaluator, scale_name)
    if not path.exists():
        return False
    code = draft_code(protocol(evaluator).declaration.name, EVALUATORS)
    if code is None:
        return True
    made_by = read_json(path, "Delete it, and the evaluation runs again.")["evaluations"][0]
    return made_by.get("code") == code


def score_path(run_id: str, evaluator: str, scale_name: str) -> Path:
    """Path of a score JSON, which may be one that the project publishes."""
    return published(score_file(run_id, evaluator, scale_name))


def score_file(run_id: str, evaluator: str, scale_name: str) -> Path:
    """Path to write a score JSON to: `results/scores/<run>.<evaluator>.json`."""
    return results_folder(scale_name) / "scores" / f"{run_id}.{protocol(evaluator).key}.json"
