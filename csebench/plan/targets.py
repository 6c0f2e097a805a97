"""Find the pages, runs and score files of targets, which are names or paths that a user asks for.

A target names one or more pages (`parse_target`). A page shows tables or figures, which need runs
and scores. This module knows which pages a scale has, and the paths of their files.
csebench/plan/grids.py plans the cells of one table or figure.
"""

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
from csebench.plan.grids import (
    CellPlan,
    find_grid,
    plan_grid,
    plan_row,
    rows_of_method,
    untrained_cell,
)
from csebench.plan.recipe import corpus_path, positives_path
from csebench.plan.schema.paper import Figure
from csebench.plan.schema.spec import RUNS, Spec

# ---------------------------------------------------------------- a page


@dataclass(frozen=True)
class Page:
    """A page of results: a table or figure of one paper, or the tables of all papers with one
    number."""

    name: str  # table2, figure3, methods, variants
    papers: tuple[str, ...]  # papers whose table or figure the page shows
    scale: str
    path: Path  # file of the page, below results/

    def grids(self) -> list[tuple[str, str]]:
        """List the tables or figures on the page, as (paper, name)."""
        if self.name == VARIANTS:
            return [(VARIANTS, method) for method in paper(VARIANTS).tables]
        return [(paper_name, self.name) for paper_name in self.papers]

    @cached
    def cells(self) -> list[CellPlan]:
        """List all cells on the page.

        Some figures show the untrained encoder as a line. Its cells come last.
        """
        cells: list[CellPlan] = []
        untrained_cells: list[CellPlan] = []
        for paper_name, name in self.grids():
            for row in plan_grid(paper_name, name, self.scale):
                cells += row
            untrained = untrained_cell(paper_name, name, self.scale)
            if untrained is not None:
                untrained_cells.append(untrained)
        return cells + untrained_cells

    @cached
    def runs(self) -> dict[str, Spec]:
        """Collect the runs that the page needs, by id, and the runs that they start from."""
        runs = {}
        for cell in self.cells():
            runs |= {spec.run_id: spec for spec in (*cell.before, *cell.specs)}
        return runs

    @cached
    def scores(self) -> dict[tuple[str, str], Spec]:
        """Collect the scores that the page shows, as (run id, evaluator), with the run of each."""
        return scores_of(self.cells())

    def available(self) -> dict[tuple[str, str], Spec]:
        """Collect the scores of the page that exist or can be made."""
        return available_scores(self.scores(), self.scale)

    def available_runs(self) -> dict[str, Spec]:
        """Collect the runs of the available scores, by id, and the runs that they start from."""
        needed: set[str | None] = set()
        for spec in self.available().values():
            needed |= {spec.run_id, spec.run_before}
        return {run_id: spec for run_id, spec in self.runs().items() if run_id in needed}


# ---------------------------------------------------------------- scores


def scores_of(cells: Iterable[CellPlan]) -> dict[tuple[str, str], Spec]:
    """Collect the scores that cells show, as (run id, evaluator), with the run of each."""
    scores = {}
    for cell in cells:
        scores |= {(spec.run_id, cell.evaluator): spec for spec in cell.specs}
    return scores


def available_scores(
    scores: dict[tuple[str, str], Spec], scale_name: str
) -> dict[tuple[str, str], Spec]:
    """Choose the scores that exist or can be made.

    A score cannot be made if its evaluator lacks data that no public source has.
    """
    evaluators = {evaluator for _, evaluator in scores}
    usable = {name for name in evaluators if unavailable(name, scale_name) is None}
    available = {}
    for (run_id, evaluator), spec in scores.items():
        if evaluator in usable or score_path(run_id, evaluator, scale_name).exists():
            available[run_id, evaluator] = spec
    return available


# ---------------------------------------------------------------- pages of a scale


@cached
def pages(scale_name: str) -> tuple[Page, ...]:
    """List every page of a scale.

    First come the tables with one number in all papers, then the generated pages, then the tables
    and figures of each paper. Tables and figures with a defect (`left_out`) have no page.
    """
    own_pages = []
    for paper_name, name in planned_grids(scale_name):
        own_pages.append(page(name, scale_name, paper_name))
    tables = {own_page.name for own_page in own_pages if own_page.name.startswith("table")}
    shared_names = [*sorted(tables, key=by_number), *GENERATED]
    shared_pages = [page(name, scale_name) for name in shared_names]
    return (*shared_pages, *own_pages)


def page(name: str, scale_name: str, paper_name: str | None = None) -> Page:
    """Describe the page of a table or figure of one paper, of `table2` of all papers, or of a
    generated paper.

    Args:
        paper_name: the paper; None: all papers with a table of this name.

    Raises:
        BadInput: there is no such table or figure.
    """
    if name in GENERATED:
        return Page(name, (name,), scale_name, grid_path(name, name, scale_name, "md"))
    if paper_name is not None:
        ending = "svg" if isinstance(find_grid(paper_name, name), Figure) else "md"
        path = grid_path(paper_name, name, scale_name, ending)
        return Page(name, (paper_name,), scale_name, path)

    key = name.removeprefix("table")
    with_table = [paper_name for paper_name in paper_names() if key in paper(paper_name).tables]
    if not with_table:
        known: list[str] = []
        for paper_name in paper_names():
            known += paper(paper_name).tables
        raise unknown("table", key, known)
    valid = [p for p in with_table if grid_defect(p, name, scale_name) is None]
    papers = tuple(valid or with_table)
    return Page(name, papers, scale_name, results_folder(scale_name) / f"{name}.md")


def planned_grids(scale_name: str) -> list[tuple[str, str]]:
    """List the tables and figures of papers/ that have a page at a scale, as (paper, name)."""
    grids = []
    for paper_name, name in grids_of_papers():
        if grid_defect(paper_name, name, scale_name) is None:
            grids.append((paper_name, name))
    return grids


def grids_of_papers() -> list[tuple[str, str]]:
    """List all tables and figures of papers/, as (paper, name)."""
    grids = []
    for paper_name in paper_names():
        grids += [(paper_name, name) for name in grid_names(paper_name)]
    return grids


@cached
def grid_defect(paper_name: str, name: str, scale_name: str) -> str | None:
    """Say why a table or figure has no page at a scale, such as an unknown method.

    Returns:
        None if it has a page.
    """
    return problem_of(plan_grid, paper_name, name, scale_name)


def left_out(scale_name: str) -> list[str]:
    """Say what is wrong with the papers, tables and figures that have no pages at a scale."""
    reasons = [*catalog.broken_papers().values()]
    for paper_name, name in grids_of_papers():
        defect = grid_defect(paper_name, name, scale_name)
        if defect is not None:
            reasons.append(defect)
    return reasons


def grid_names(paper_name: str) -> list[str]:
    """List the names of a paper's tables and figures: `table2`, `figure3`."""
    content = paper(paper_name)
    return [f"table{key}" for key in content.tables] + [f"figure{key}" for key in content.figures]


def grid_label(name: str) -> str:
    """Return `Table 2` for `table2`, `Table A1` for `tableA1`. Capitalise other names."""
    for kind in ("table", "figure"):
        if name.startswith(kind):
            return f"{kind.capitalize()} {name.removeprefix(kind)}".strip()
    return name.capitalize()


# ---------------------------------------------------------------- runs of a scale


@cached
def runs(scale_name: str) -> dict[str, Spec]:
    """Collect every run that the pages of a scale need, by id."""
    by_id = {}
    for page in pages(scale_name):
        by_id |= page.runs()
    return by_id


def run(run_id: str, scale_name: str) -> Spec:
    """Look up a run of a scale. Raise BadInput if no table or figure of the scale needs it."""
    planned = runs_including(run_id, scale_name)
    if run_id not in planned:
        hint = f"`csebench plan all --scale {scale_name} --runs` lists the runs."
        edited = "A run has another id after an edit of its method's code or settings;"
        raise BadInput(f"no table of scale {scale_name} needs a run {run_id!r}. {edited} {hint}")
    return planned[run_id]


def runs_including(run_id: str, scale_name: str) -> dict[str, Spec]:
    """Collect the runs of a scale among which to look for one run, by id.

    To plan the rows of one method is much faster than to plan all pages.

    Returns:
        the runs of the method that `run_id` names. If the run is not one of them, as a stage of
        pre-training, all runs of the scale. The run may be missing there, too.
    """
    by_id = runs_of_method(method_of(run_id), scale_name)
    if run_id in by_id:
        return by_id
    return runs(scale_name)


def evaluators(run_id: str, scale_name: str) -> set[str]:
    """Collect the evaluators that score a run in the tables and figures of a scale.

    Returns:
        none for a run that is only a stage of pre-training.
    """
    names = set()
    for cell in cells_of_method(method_of(run_id), scale_name):
        if any(spec.run_id == run_id for spec in cell.specs):
            names.add(cell.evaluator)
    return names


def method_of(run_id: str) -> str:
    """Name the method of a run: `simcse` for `simcse-ed38b82775`."""
    method, _, _ = run_id.rpartition("-")
    return method


@cached
def runs_of_method(method: str, scale_name: str) -> dict[str, Spec]:
    """Collect the runs of all rows that run a method, by id."""
    by_id = {}
    for cell in cells_of_method(method, scale_name):
        by_id |= {spec.run_id: spec for spec in cell.specs}
    return by_id


@cached
def cells_of_method(method: str, scale_name: str) -> list[CellPlan]:
    """List the cells of all rows that run a method. Rows with a defect are left out.

    A defect elsewhere in the table does not matter. A job then still finds its run, although the
    table has no page.
    """
    grids = grids_of_papers()
    for name in GENERATED:
        grids += page(name, scale_name).grids()
    cells: list[CellPlan] = []
    for paper_name, name in grids:
        for index in rows_of_method(method, paper_name, name):
            if problem_of(plan_row, paper_name, name, index, scale_name) is None:
                cells += plan_row(paper_name, name, index, scale_name)
    return cells


def scale_of_run(run_id: str, first: str) -> str:
    """Find the scale whose tables or figures need a run.

    Args:
        first: the scale to try before the others.

    Raises:
        BadInput: no page of any scale needs it.
    """
    for name in dict.fromkeys([first, *scale_names()]):
        if run_id in runs_including(run_id, name):
            return name
    hint = "`csebench plan all --scale SCALE --runs` lists the runs."
    raise BadInput(f"no table of any scale needs a run {run_id!r}; {hint}")


def base_encoder(spec: Spec, scale_name: str) -> str:
    """Name the encoder whose architecture a run has.

    A run that starts from the model of another run has the architecture of that run.
    """
    if spec.run_before is None:
        return spec.encoder.name
    return run(spec.run_before, scale_name).encoder.name


def back_translation(key: str, first: str) -> tuple[Path, str]:
    """Find what a back-translated corpus is made from, by its key.

    Args:
        first: the scale whose runs are searched before those of other scales.

    Returns:
        (path of the corpus to translate, translators).

    Raises:
        BadInput: no run of any scale needs it.
    """
    for name in dict.fromkeys([first, *scale_names()]):
        for spec in runs(name).values():
            positives, corpus = positives_path(spec), corpus_path(spec, scale(name))
            if positives and corpus and positives.stem == key:
                return corpus, str(spec.params["translators"])
    raise BadInput(f"no table of any scale needs a back-translation {key!r}.")


def finished_runs(pages: Iterable[Page]) -> set[str]:
    """Collect the ids of runs that need no more training.

    A run is finished if its model is there, or if nothing needs the model any more. Nothing needs
    it if all scores of the run on these pages exist, and all runs that start from it are finished.
    """
    specs: dict[str, Spec] = {}
    scores: set[tuple[str, str, str]] = set()  # pages share many
    for page in pages:
        specs |= page.available_runs()
        scores |= {(*score, page.scale) for score in page.available()}
    unscored = {score[0] for score in scores if not is_scored(*score)}

    unfinished = {run_id for run_id in unscored if not has_model(RUNS / run_id)}
    started_from = {specs[run_id].run_before for run_id in unfinished}
    for before in started_from:
        if before is not None and not has_model(RUNS / before):
            unfinished.add(before)
    return {*specs} - unfinished


# ---------------------------------------------------------------- targets


def parse_target(target: str, scale_name: str) -> list[Page]:
    """Find the pages of a target.

    Args:
        target: `all`, `methods`, `variants`, `variants/micse`, `table2`, `micse` (every page of the
            paper), `micse/figure3`, or a path such as `results/mini/micse/table2.md`.
        scale_name: for a target that names no scale.

    Raises:
        BadInput: there is no such target, or the file of the paper is invalid.
    """
    parts, scale_name = split_target(target, scale_name)
    if parts == ["all"] and not target.endswith(".md"):
        return list(pages(scale_name))
    if parts and parts[0] in catalog.broken_papers():
        raise BadInput(catalog.broken_papers()[parts[0]])
    match parts:
        case [name] if name in GENERATED or re.fullmatch(r"table\w+", name):
            return [page(name, scale_name)]
        case [name] if name in paper_names():
            return [page(grid, scale_name, name) for grid in grid_names(name)]
        case [folder, name] if folder == VARIANTS:
            return [page(name, scale_name, VARIANTS)]
        case [folder, name] if folder in paper_names() and re.fullmatch(r"(table|figure)\w+", name):
            return [page(name, scale_name, folder)]
    known = known_targets(scale_name)
    if target.endswith(".yaml"):  # a file of papers/
        known = paper_names()
    hint = (
        "`csebench papers` lists tables and figures; `csebench show NAME` describes methods,"
        " evaluators and runs."
    )
    raise unknown("target", "/".join(parts) or target, known, hint=hint)


def known_targets(scale_name: str) -> list[str]:
    """List what a target can be, for a message."""
    folder = results_folder(scale_name)
    page_targets = []
    for page in pages(scale_name):
        page_targets.append(str(page.path.relative_to(folder).with_suffix("")))
    known = [*page_targets, *paper_names(), "all"]
    for name in scale_names():
        known += [f"{name}/{target}" for target in page_targets]
    return known


def split_target(target: str, scale_name: str) -> tuple[list[str], str]:
    """Split a target or a path into its names, and find its scale.

    Args:
        scale_name: for a target that names no scale.
    """
    name = re.sub(r"\.(md|svg)$", "", target)
    name = name.removeprefix("results/").removeprefix("partial/")
    parts = name.split("/")
    if parts[0] in scale_names():
        return parts[1:], parts[0]
    return parts, scale_name


def target_name(paper: str, name: str) -> str:
    """Write a table or figure as a target: `micse/table2`."""
    if paper == name:  # a generated paper with one table
        return name
    return f"{paper}/{name}"


# ---------------------------------------------------------------- files


def grid_path(paper_name: str, name: str, scale_name: str, ending: str) -> Path:
    """Return the path of a file about one paper's table or figure: `results/micse/table2.md`."""
    folder = results_folder(scale_name)
    if name != paper_name:
        folder = folder / paper_name
    return folder / f"{name}.{ending}"


def is_scored(run_id: str, evaluator: str, scale_name: str) -> bool:
    """Whether a score exists.

    If the evaluator is a draft, only a score that its current code made counts.
    """
    path = score_path(run_id, evaluator, scale_name)
    if not path.exists():
        return False
    code = draft_code(protocol(evaluator).declaration.name, EVALUATORS)
    if code is None:
        return True
    content = read_json(path, "Delete it, and the evaluation runs again.")
    return content["evaluations"][0].get("code") == code


def score_path(run_id: str, evaluator: str, scale_name: str) -> Path:
    """Return the path to read a score JSON from: a local one, or one that the project publishes."""
    return published(score_file(run_id, evaluator, scale_name))


def score_file(run_id: str, evaluator: str, scale_name: str) -> Path:
    """Return the path to write a score JSON to: `results/scores/<run>.<evaluator>.json`."""
    return scores_folder(scale_name) / f"{run_id}.{protocol(evaluator).key}.json"


def scores_folder(scale_name: str) -> Path:
    """Return the folder of the score JSONs of a scale."""
    return results_folder(scale_name) / "scores"
