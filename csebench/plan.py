"""From tables to runs: which runs a target needs, and which of them it shares. Never imports torch."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import RootModel, ValidationError

from csebench import ROOT
from csebench.data import back_translation_facts
from csebench.errors import BadInput, explain, read_yaml, unknown
from csebench.papers import Column, Figure, Grid, Paper, Recipe, Row, Settings, Table
from csebench.registry import COMPONENTS, EVALUATORS, METHODS, check_name, declaration, fill, names, protocol
from csebench.schema import Dataset, Declaration, EncoderRef, Scale, Training, Value
from csebench.spec import ComponentSpec, CorpusSpec, Spec, digest

RUNS = Path("runs")
RESULTS = Path("results")
DEFAULT_SCALE = "smoke"
FETCHED = "data/official"  # where rules/data.smk puts what it downloads
POSITIVES = Path("data/back-translation")
SIDE_BY_SIDE = "methods"  # the page of all methods
STS_COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")


@cache
def scale(name: str = DEFAULT_SCALE) -> Scale:
    known = [p.stem for p in (ROOT / "config").glob("*.yaml")]
    if name not in known:
        raise unknown("scale", name, known)
    found = read_yaml(ROOT / "config" / f"{name}.yaml", Scale)
    file = f"config/{name}.yaml"
    for key in ("corpus", "triplets", "dev"):
        if getattr(found, key) is not None:
            dataset(getattr(found, key), f"{file}: {key}")
    try:
        Training.model_validate(found.override)
    except ValidationError as e:
        raise explain(e, f"{file}: override", Training.model_fields) from None
    for key, folder, settings in (("methods", METHODS, found.methods), ("components", COMPONENTS, found.components)):
        for name, values in settings.items():
            check_name(name, folder, f"{file}: {key}")
            try:
                declared = declaration(name, folder)
            except BadInput:
                continue  # a broken file: the rows that need it say so
            fill(declared, values, f"{file}: {key}.{name}")
    for size in found.seeds_by_size:
        if size not in found.sizes:
            raise unknown("size", size, found.sizes, f"{file}: seeds_by_size")
    for asked, played in found.evaluators.items():
        check_name(asked.partition(":")[0], EVALUATORS, f"{file}: evaluators")
        if played is not None:
            protocol(played, f"{file}: evaluators")
    return found


@cache
def datasets() -> dict[str, Dataset]:
    return read_yaml(ROOT / "data" / "registry.yaml", RootModel[dict[str, Dataset]]).root


def dataset(name: str, where: str = "data/registry.yaml") -> Dataset:
    if name not in datasets():
        raise unknown("dataset of data/registry.yaml", name, datasets(), where)
    return datasets()[name]


@cache
def paper(name: str) -> Paper:
    if name == SIDE_BY_SIDE:
        return side_by_side()
    if name not in paper_names():
        raise unknown("paper", name, paper_names())
    return read_yaml(ROOT / "papers" / f"{name}.yaml", Paper)


def paper_names() -> list[str]:
    return sorted(p.stem for p in (ROOT / "papers").glob("*.yaml"))


def side_by_side() -> Paper:
    """Every method there is in one table, so that a new file in methods/ is in it without touching another file."""
    rows = []
    for name in names(METHODS):
        try:
            label, run, missing = declaration(name).title, Recipe(method=name), None
        except BadInput as error:
            label, run, missing = name, None, str(error)
        values = [None] * len(STS_COLUMNS)
        rows.append(Row(label=label, run=run, missing=missing, source="measured", values=values))
    table = Table(
        title="all methods side by side",
        caption="Spearman x 100 on the STS test sets; each method's default variant on 1 % of the corpus.",
        columns=[Column(label=c, task=c, size="1%") for c in STS_COLUMNS],
        rows=rows,
    )
    return Paper(name=SIDE_BY_SIDE, title="Methods", reference="csebench", tables={SIDE_BY_SIDE: table})


def data_root(of: Scale) -> Path:
    """The folder of benchmark data: the scale's own, else CSEBENCH_DATA, else what the rules fetch."""
    if of.data_root:
        return ROOT / of.data_root
    return Path(os.environ.get("CSEBENCH_DATA", FETCHED))


def results_folder(scale_name: str) -> Path:
    """Pages of different scales never overwrite each other: the default scale's are at results/ itself."""
    return RESULTS if scale_name == DEFAULT_SCALE else RESULTS / scale_name


# ---------------------------------------------------------------- runs


def make_spec(
    recipe: Recipe,
    at: Scale,
    encoder: EncoderRef,
    size: int,
    seed: int,
    where: str,
    corpus: Dataset | None = None,
    dev_sha256: str | None = None,
) -> Spec:
    """The run of a recipe at a scale: declared values, then the variant's, the recipe's and the scale's.

    `corpus` and `dev_sha256` stand in for the scale's where the command line names files. A method with a
    pre-training stage starts from the model of that run.
    """
    method = declaration(recipe.method)
    if recipe.variant is not None and recipe.variant not in method.variants:
        raise unknown(f"variant of {method.name}", recipe.variant, method.variants, where)
    variant = dict(method.variants[recipe.variant]) if recipe.variant else {}
    plugins = [method.components, variant.pop("components", {}), recipe.components]
    used = sorted({name for layer in plugins for name in layer})
    plugins.append(at.components)
    trained, fitted = method.kind == "trained", method.kind == "fitted"
    for name in used:
        if declaration(name, COMPONENTS).gives_queue and not method.takes_queue:
            raise BadInput(f"{where}: {method.name} has no use for the queue that component {name} gives.")
    layers = (variant, recipe.params, at.override, at.methods.get(method.name, {}), recipe.sweep)
    params = typed(method, merged(*layers), where)
    if stage := pretraining(params, at, encoder, where, corpus, dev_sha256):
        encoder = EncoderRef(name=str(RUNS / stage.run_id / "model"), revision=stage.run_id)
    return Spec(
        method=method.name,
        method_version=method.version,
        params=params,
        components={
            name: ComponentSpec(
                version=declaration(name, COMPONENTS).version,
                params=typed(declaration(name, COMPONENTS), merged(*(p.get(name, {}) for p in plugins)), where),
            )
            for name in used
        },
        encoder=encoder,
        corpus=corpus_spec(corpus or corpus_of(method, at), size, seed) if trained or fitted else None,
        dev_sha256=(dev_sha256 or dataset(at.dev).sha256) if trained else None,
        seed=seed if trained or method.kind == "control" else 0,
        precision=at.precision if trained else "fp32",
        threads=at.threads,
    )


def pretraining(params: dict, at: Scale, encoder: EncoderRef, where: str, *data) -> Spec | None:
    """The run that comes first, where the parameter `pretraining` names one; the same for every size and seed."""
    name = params.get("pretraining", "none")
    if name == "none":
        return None
    size = max(at.sizes.values(), default=10**9)
    return make_spec(Recipe(method=name), at, encoder, size, at.seeds[0], where, *data)


def merged(*layers: dict) -> dict:
    """Of several dicts; the later one wins."""
    return {key: value for layer in layers for key, value in layer.items()}


def typed(found: Declaration, values: dict, where: str) -> dict:
    """Hyper-parameters of a method or component, checked and complete, without those that play no part.

    What is not trained has no learning rate, so none is part of its identity.
    """
    params = fill(found, values, f"{where}: {found.name}")
    if found.kind in ("trained", "component"):
        return params
    return {k: v for k, v in params.items() if k in found.params or k == "pooler"}


def corpus_spec(corpus: Dataset, size: int, seed: int) -> CorpusSpec:
    return CorpusSpec(name=Path(corpus.path).name, sha256=corpus.sha256, size=size, subset_seed=seed)


def corpus_of(method: Declaration, at: Scale) -> Dataset | None:
    """What a method trains on at a scale; None where the scale has no such data."""
    name = at.triplets if method.corpus == "triplets" else at.corpus
    return dataset(name) if name else None


def corpus_path(spec: Spec, at: Scale) -> Path | None:
    """Where the corpus of a run lies in the scale's data root."""
    return data_root(at) / corpus_of(declaration(spec.method), at).path if spec.corpus else None


def positives_path(spec: Spec) -> Path | None:
    """Where the back-translated corpus of a run is kept: under the hash of what decides it."""
    if not spec.back_translated:
        return None
    made = back_translation_facts(spec.corpus.sha256, spec.params["translators"])
    return POSITIVES / f"{digest(made)}.txt"


def back_translation(key: str, first: str) -> tuple[Path, str]:
    """Corpus and translators of a file of `positives_path`, as a run of scale `first`, or of another, wants it."""
    for name in scales(first):
        for spec in runs(name).values():
            if spec.back_translated and positives_path(spec).stem == key:
                return corpus_path(spec, scale(name)), spec.params["translators"]
    raise BadInput(f"no table of any scale needs a back-translation {key!r}.")


def seeds(at: Scale, size: str) -> list[int]:
    return at.seeds_by_size.get(size, at.seeds)


@dataclass(frozen=True)
class CellPlan:
    """One cell of a table: its runs, one a seed, and what is read off them; or why there are none."""

    row: Row
    column: Column
    specs: tuple[Spec, ...] = ()
    evaluator: str | None = None
    task: str | None = None
    metric: str | None = None
    missing: str | None = None
    before: tuple[Spec, ...] = ()  # runs that those start from


@cache
def plan_grid(paper_name: str, name: str, scale_name: str) -> list[list[CellPlan]]:
    """Rows of cells of `table2` or `figure3`; none of a table of settings.

    Raises:
        BadInput: a row or column names something that does not exist.
    """
    found, where = find_grid(paper_name, name), f"papers/{paper_name}.yaml: {name}"
    if isinstance(found, Settings):
        return []
    for column in found.columns:
        if column.task is not None:
            tasks = protocol(column.evaluator or found.evaluator, where).tasks
            if column.task not in tasks:
                raise unknown(
                    f"task of {column.evaluator or found.evaluator}", column.task, tasks, f"{where}: {column.label}"
                )
    rows = []
    for row in found.rows:
        missing = row.missing or _broken(row.run, f"{where}: {row.label}")
        rows.append([_cell(found, row, column, missing, scale_name, where) for column in found.columns])
    return rows


def _cell(table: Grid, row: Row, column: Column, missing: str | None, scale_name: str, where: str) -> CellPlan:
    if missing:
        return CellPlan(row, column, missing=missing)
    if column.task is None:
        return CellPlan(row, column)  # derived from other cells
    at = scale(scale_name)
    role = row.run.encoder or table.encoder
    if role not in at.encoders:
        return CellPlan(row, column, missing=f"no {role} at scale {at.scale}")
    if column.size not in at.sizes:
        raise unknown(f"size of config/{at.scale}.yaml", column.size, at.sizes, f"{where}: column {column.label}")
    if corpus_of(declaration(row.run.method), at) is None:
        return CellPlan(row, column, missing=f"no triplets at scale {at.scale}")
    wanted = column.evaluator or table.evaluator
    evaluator = stand_in(wanted, at)
    if evaluator is None:
        return CellPlan(row, column, missing=f"no {wanted} at scale {at.scale}")
    sweep, absent = swept(row.run.sweep | column.sweep, at)
    if absent:
        return CellPlan(row, column, missing=absent)
    recipe = row.run.model_copy(update={"sweep": sweep})
    of = (recipe, at, at.encoders[role], at.sizes[column.size])
    specs = [make_spec(*of, seed, f"{where}: {row.label}") for seed in seeds(at, column.size)]
    distinct = {spec.run_id: spec for spec in specs}  # what is not trained is the same for every seed
    before = pretraining(specs[0].params, at, at.encoders[role], where)
    found = protocol(evaluator)
    return CellPlan(
        row,
        column,
        tuple(distinct.values()),
        evaluator,
        column.task if column.task in found.tasks else found.tasks[0],
        column.metric or found.metric,
        before=(before,) if before else (),
    )


def stand_in(evaluator: str, at: Scale) -> str | None:
    """What plays an evaluator at a scale: itself, unless the scale says otherwise of it or of all of its name."""
    of_name = at.evaluators.get(evaluator.partition(":")[0], evaluator)
    return at.evaluators.get(evaluator, of_name)


def swept(sweep: dict[str, Value], at: Scale) -> tuple[dict[str, Value], str | None]:
    """A sweep's values as a scale plays them, and why it has none."""
    played = {key: at.sweeps.get(key, {}).get(str(value), value) for key, value in sweep.items()}
    absent = [f"no {key} {sweep[key]} at scale {at.scale}" for key, value in played.items() if value is None]
    return played, "; ".join(absent) or None


def _broken(recipe: Recipe, where: str) -> str | None:
    """What is wrong with the files that a recipe needs; a name that does not exist is raised."""
    needed = [(recipe.method, METHODS), *((c, COMPONENTS) for c in recipe.components)]
    for name, folder in needed:
        check_name(name, folder, where)
        try:
            found = declaration(name, folder)
        except BadInput as error:
            return str(error)
        if folder == METHODS:
            needed += [(c, COMPONENTS) for c in found.components]
            needed += [(stage, METHODS) for stage in found.stages]
    return None


def find_grid(paper_name: str, name: str) -> Table | Settings | Figure:
    """`table2` or `figure3` of a paper; the page of all methods is a table of a paper of its own."""
    of = paper(paper_name)
    for kind, known in (("table", of.tables), ("figure", of.figures)):
        if name.startswith(kind):
            if name.removeprefix(kind) not in known:
                raise unknown(f"{kind} of {paper_name}", name.removeprefix(kind), known)
            return known[name.removeprefix(kind)]
    return of.tables[name]


def settings_of(paper_name: str, name: str, param: str) -> list[Value]:
    """What the recipe of each column of a printed table of settings has for a parameter, at the paper's own scale."""
    table, at, found = find_grid(paper_name, name), scale("paper"), []
    for column in table.columns:
        role, where = column.run.encoder or table.encoder, f"papers/{paper_name}.yaml: {name}: {column.label}"
        spec = make_spec(column.run, at, at.encoders[role], at.sizes["100%"], at.seeds[0], where)
        component, dot, key = param.partition(".")
        if dot and component not in spec.components:
            raise unknown("component", component, spec.components, where)
        params = spec.components[component].params if dot else spec.params
        if (key or param) not in params:
            raise unknown("parameter", key or param, params, where)
        found.append(params[key or param])
    return found


# ---------------------------------------------------------------- targets


@dataclass(frozen=True)
class Page:
    """What is written for readers: one paper's table or figure, or all papers' tables of one number."""

    name: str  # table2, figure3, methods
    papers: tuple[str, ...]
    scale: str
    path: Path

    def grids(self) -> list[tuple[str, str]]:
        return [(p, self.name) for p in self.papers]

    def cells(self) -> list[CellPlan]:
        return [cell for p, n in self.grids() for row in plan_grid(p, n, self.scale) for cell in row]

    def runs(self) -> dict[str, Spec]:
        return {spec.run_id: spec for cell in self.cells() for spec in (*cell.before, *cell.specs)}

    def scores(self) -> dict[tuple[str, str], Spec]:
        """(run, evaluator) pairs that the page shows."""
        return {(spec.run_id, cell.evaluator): spec for cell in self.cells() for spec in cell.specs}


@cache
def runs(scale_name: str) -> dict[str, Spec]:
    """Every run that some page of a scale needs."""
    return {run_id: spec for p in pages(scale_name) for run_id, spec in p.runs().items()}


@cache
def evaluators(scale_name: str) -> dict[str, set[str]]:
    """What each run of a scale is scored by; a pre-training by nothing."""
    found: dict[str, set[str]] = {run_id: set() for run_id in runs(scale_name)}
    for p in pages(scale_name):
        for run_id, evaluator in p.scores():
            found[run_id].add(evaluator)
    return found


def run(run_id: str, scale_name: str) -> Spec:
    if run_id not in runs(scale_name):
        raise BadInput(f"no table of scale {scale_name} needs a run {run_id!r}; `csebench plan all` lists them.")
    return runs(scale_name)[run_id]


def scales(first: str) -> list[str]:
    """Every scale, `first` before the others."""
    return [first, *sorted({p.stem for p in (ROOT / "config").glob("*.yaml")} - {first})]


def scale_of_run(run_id: str, first: str) -> str:
    """The scale whose pages need a run; `first` is looked at before the others."""
    if run_id in runs(first):
        return first
    found = next((name for name in scales(first) if run_id in runs(name)), None)
    if found is None:
        raise BadInput(f"no table of any scale needs a run {run_id!r}; `csebench plan all` lists them.")
    return found


def page(name: str, scale_name: str, paper_name: str | None = None) -> Page:
    folder = results_folder(scale_name)
    if name == SIDE_BY_SIDE:
        return Page(name, (SIDE_BY_SIDE,), scale_name, grid_path(name, name, scale_name, "md"))
    if paper_name is not None:
        ending = "svg" if isinstance(find_grid(paper_name, name), Figure) else "md"
        return Page(name, (paper_name,), scale_name, grid_path(paper_name, name, scale_name, ending))
    number = name.removeprefix("table")
    having = tuple(p for p in paper_names() if number in paper(p).tables)
    if not having:
        raise unknown("table", number, {n for p in paper_names() for n in paper(p).tables})
    return Page(name, having, scale_name, folder / f"{name}.md")


@cache
def pages(scale_name: str) -> tuple[Page, ...]:
    """Every page of runs: tables over all papers, then each paper's tables and figures."""
    numbers = sorted({n for p in paper_names() for n in paper(p).tables}, key=int)
    own = [page(n, scale_name, p) for p in paper_names() for n in grids(p)]
    return (*(page(f"table{n}", scale_name) for n in numbers), page(SIDE_BY_SIDE, scale_name), *own)


def grids(paper_name: str) -> list[str]:
    """Names of a paper's tables and figures."""
    of = paper(paper_name)
    return [f"table{n}" for n in of.tables] + [f"figure{n}" for n in of.figures]


def parse_target(target: str, scale_name: str) -> list[Page]:
    """Pages of `all`, `methods`, `table2`, `micse/figure3` or a path such as `results/mini/micse/table2.md`."""
    if target == "all":
        return list(pages(scale_name))
    parts = re.sub(r"\.(md|svg)$", "", target).removeprefix("results/").split("/")
    if parts[0] in {p.stem for p in (ROOT / "config").glob("*.yaml")}:
        scale_name, parts = parts[0], parts[1:]
    if parts == [SIDE_BY_SIDE]:
        return [page(SIDE_BY_SIDE, scale_name)]
    if len(parts) == 1 and re.fullmatch(r"table\w+", parts[0]):
        return [page(parts[0], scale_name)]
    if len(parts) == 2 and re.fullmatch(r"(table|figure)\w+", parts[1]):
        return [page(parts[1], scale_name, parts[0])]
    known = [str(p.path.relative_to(results_folder(scale_name)).with_suffix("")) for p in pages(scale_name)]
    raise unknown("target", "/".join(parts), [*known, "all"])


def grid_path(paper_name: str, name: str, scale_name: str, ending: str) -> Path:
    """What is written of one paper's table or figure: `results/micse/table2.md`."""
    folder = results_folder(scale_name)
    return (folder if paper_name == SIDE_BY_SIDE else folder / paper_name) / f"{name}.{ending}"


def score_path(run_id: str, evaluator: str, scale_name: str) -> Path:
    return results_folder(scale_name) / "scores" / f"{run_id}.{protocol(evaluator).key}.json"
