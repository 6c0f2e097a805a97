"""The project's data files, read and checked: scales (config/), papers (papers/) and datasets
(data/registry.yaml).

This module also generates two papers from the declarations of methods, and knows the paths of data
and results. Runs and pages are planned from these files in recipe.py, grids.py and targets.py.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, RootModel

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up, problem_of, unknown, validated
from csebench.base.files import DataRoot, project_files
from csebench.base.hub import local_folder
from csebench.base.project import ROOT, folders
from csebench.base.yaml_lines import Lines, read_with_lines, read_yaml
from csebench.plan.catalog import registry
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    adapter_defect,
    adapter_names,
    valid_declarations,
)
from csebench.plan.schema.declarations import Dataset, Declaration, Scale, TrainingSettings
from csebench.plan.schema.paper import Column, Family, Paper, Recipe, Row, Table
from csebench.plan.schema.spec import RUNS as RUNS

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
RESULTS = Path("results")
YAML = "[!_]*.yaml"  # pattern of files that are not templates
DEFAULT_SCALE = "smoke"
FETCHED = "data/official"  # where rules/data.smk puts what it downloads
STSB_DEV = "downstream/STS/STSBenchmark/sts-dev.csv"  # below a data root
POSITIVES = Path("data/back-translation")  # folder of back-translated corpora
SIDE_BY_SIDE = "methods"  # the page of all methods
VARIANTS = "variants"  # the page of papers and released code side by side
GENERATED = (SIDE_BY_SIDE, VARIANTS)  # papers that are made from declarations
STS_COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")
OVER_ALL = ("index", "claims", "audit", "settings")  # pages that are made from all pages of a scale
# Names that no paper or scale can have, because folders and pages of results/ or targets of
# `csebench plan` have them.
RESERVED = {
    *GENERATED,
    *OVER_ALL,
    "all",
    "cells",
    "comparisons",
    "evidence",
    "figures",
    "html",
    "partial",
    "scores",
}


# ---------------------------------------------------------------- scales


def scale_names() -> list[str]:
    """List the names of the files of config/. Raise BadInput for a name that no scale can have."""
    names = [*project_files("config", YAML)]
    for name in names:
        check_file_name("config", name)
    return names


def scale_with_results() -> str:
    """Choose the default scale of what reads results: one with published results, if any."""
    return "mini" if "mini" in scale_names() else DEFAULT_SCALE


@cached
def scale(name: str = DEFAULT_SCALE) -> Scale:
    """Read the scale of `config/<name>.yaml`.

    Raises:
        BadInput: there is no such scale, its file is not valid, or it names what does not exist.
    """
    content, _ = _read("config", name, Scale)
    file = f"config/{name}.yaml"
    check_datasets(content, file)
    for encoder in content.encoders.values():
        local_folder(encoder)  # raises if two folders have an encoder of this name
    validated(TrainingSettings, content.override, f"{file}: override")
    check_keys(content, file)
    check_substitutes(content, file)
    return content


def check_datasets(scale: Scale, file: str) -> None:
    """Raise BadInput if a scale names unknown data, or draws more sentences than its corpus has."""
    if scale.triplets:
        dataset(scale.triplets, f"{file}: triplets")
    dataset(scale.dev, f"{file}: dev")
    corpus_size = dataset(scale.corpus, f"{file}: corpus").sentences or math.inf
    for label, size in scale.sizes.items():
        if size > corpus_size:
            raise BadInput(
                f"{file}: sizes: {label} is {size:,} sentences, but {scale.corpus} holds"
                f" {corpus_size:,}."
            )


def check_keys(scale: Scale, file: str) -> None:
    """Raise BadInput if a scale has settings for a size, a table or a parameter that does not
    exist."""
    refuse_unknown("size", scale.seeds_by_size, scale.sizes, f"{file}: seeds_by_size")
    if scale.seeds_by_table:  # reading all papers is slow, so do it only if it is needed
        tables = known_tables(scale)
        refuse_unknown("table", scale.seeds_by_table, tables, f"{file}: seeds_by_table")
    params = known_parameters(scale)
    refuse_unknown("parameter", scale.substitutes, params, f"{file}: substitutes")
    for kind, settings in scale.kinds.items():
        refuse_unknown("parameter", settings, params, f"{file}: kinds.{kind}")


def refuse_unknown(kind: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise BadInput for the first name that is not known."""
    for name in names:
        if name not in known:
            raise unknown(kind, name, known, where)


def known_tables(scale: Scale) -> list[str]:
    """List the tables of papers/, as `micse/table2`.

    If a paper is broken, assume that it has all tables that the scale names.
    """
    tables = []
    for name in paper_names():
        tables += [f"{name}/table{key}" for key in paper(name).tables]
    for table in scale.seeds_by_table:
        if table.partition("/")[0] in broken_papers():
            tables.append(table)
    return tables


def known_parameters(scale: Scale) -> set[str]:
    """Collect the parameters of methods and components.

    If a file is broken, assume that it has all parameters that the scale names.
    """
    methods, components = valid_declarations(METHODS), valid_declarations(COMPONENTS)
    params: set[str] = set()
    for declared in (*methods.values(), *components.values()):
        params |= {*declared.hyperparameters.model_fields}
    number_of_files = len(adapter_names(METHODS)) + len(adapter_names(COMPONENTS))
    if len(methods) + len(components) < number_of_files:
        params |= {*scale.substitutes}
        for settings in scale.kinds.values():
            params |= {*settings}
    return params


def check_substitutes(scale: Scale, file: str) -> None:
    """Raise BadInput if an evaluator that a scale replaces, or its substitute, does not exist."""
    where = f"{file}: evaluators"
    for evaluator, substitute in scale.evaluators.items():
        registry.check_name(evaluator.partition(":")[0], EVALUATORS, where)
        if substitute is None:
            continue
        if adapter_defect(substitute, EVALUATORS, where) is None:
            registry.protocol(substitute, where)


@cached
def encoder_roles() -> set[str]:
    """Collect the roles of encoders in all valid scales."""
    roles: set[str] = set()
    for name in scale_names():
        if problem_of(scale, name) is None:
            roles |= {*scale(name).encoders}
    return roles


# ---------------------------------------------------------------- datasets


def dataset(name: str, where: str = "data/registry.yaml") -> Dataset:
    """Look up a dataset by name.

    Args:
        where: file and key that name it, for the message.

    Raises:
        BadInput: there is no such dataset.
    """
    return look_up("dataset of data/registry.yaml", name, datasets(), where)


@cached
def datasets() -> dict[str, Dataset]:
    """Read data/registry.yaml of the project and of folders that join it.

    Raises:
        BadInput: a file is not valid, or two files have a dataset with the same name.
    """
    registries = {}
    for folder in folders():
        path = folder / "data" / "registry.yaml"
        if path.exists():
            registries[path] = read_yaml(path, RootModel[dict[str, Dataset]]).root
    return joined(registries)


def joined(parts: Mapping[Path, Mapping[str, T]]) -> dict[str, T]:
    """Merge the contents of several files.

    Raises:
        BadInput: two files have the same name.
    """
    contents: dict[str, T] = {}
    path_of: dict[str, Path] = {}
    for path, part in parts.items():
        for name, value in part.items():
            if name in contents:
                raise BadInput(f"{path}: {name}: {path_of[name]} has this name, too; rename one.")
            contents[name] = value
            path_of[name] = path
    return contents


# ---------------------------------------------------------------- papers


def paper_files() -> list[str]:
    """List the names of the files of papers/, valid or not."""
    return [*project_files("papers", YAML)]


def paper_names() -> list[str]:
    """List the names of the valid files of papers/."""
    return [name for name in paper_files() if name not in broken_papers()]


@cached
def broken_papers() -> dict[str, str]:
    """Say what is wrong with the invalid files of papers/, by name. They have no pages."""
    reasons = {}
    for name in paper_files():
        reason = problem_of(_read, "papers", name, Paper)
        if reason is not None:
            reasons[name] = reason
    return reasons


@cached
def paper(name: str) -> Paper:
    """Read the paper of `papers/<name>.yaml`, or generate `methods` or `variants`.

    Raises:
        BadInput: there is no such paper, or its file is not valid.
    """
    if name == SIDE_BY_SIDE:
        return side_by_side()
    if name == VARIANTS:
        return variants()
    content, _ = _read("papers", name, Paper)
    return content


def place_in_paper(paper_name: str, grid_name: str, *keys) -> str:
    """Say where something is in the file of a paper: `papers/micse.yaml: line 28: tables.2.rows.3`.

    Args:
        keys: keys below the table or figure.

    Returns:
        only the name of the table if the paper is generated, because it has no file.
    """
    if paper_name in GENERATED:
        return grid_name
    kind = "figure" if grid_name.startswith("figure") else "table"
    _, lines = _read("papers", paper_name, Paper)
    where, found_keys = lines.locate((f"{kind}s", grid_name.removeprefix(kind), *keys))
    return f"{where}: {'.'.join(map(str, found_keys))}"


# ---------------------------------------------------------------- reading a file


@cached
def _read(folder: str, name: str, model: type[M]) -> tuple[M, Lines]:
    """Read the file of a scale or a paper, and the lines of its keys.

    Raises:
        BadInput: there is no such file, it is not valid, or it states another name.
    """
    path = look_up(model.__name__.lower(), name, project_files(folder, YAML))
    check_file_name(folder, name)
    content, lines = read_with_lines(path, model)
    key = "scale" if model is Scale else "name"
    stated = getattr(content, key)
    if stated != name:
        where, _ = lines.locate((key,))
        raise BadInput(
            f"{where}: {key}: is {stated!r}, but the file is {name}.yaml; make them agree."
        )
    return content, lines


def check_file_name(folder: str, name: str) -> None:
    """Raise BadInput for a name that no paper or scale can have.

    Pages and folders of results/ are named after papers and scales, so that names can collide.
    """
    file = f"{folder}/{name}.yaml"
    if not re.fullmatch(r"\w+", name):
        raise BadInput(f"{file}: name it with letters, digits and _ only, as its pages are.")
    if re.fullmatch(r"(table|figure)\w+", name) or name in RESERVED:
        raise BadInput(f"{file}: {name!r} is reserved: it means other pages; name it otherwise.")
    if folder == "papers" and name in project_files("config", YAML):
        raise BadInput(
            f"{file}: config/ has this name, too, and so the folder of results/; rename it."
        )


# ---------------------------------------------------------------- papers that are generated


def side_by_side() -> Paper:
    """Generate the table of all methods.

    Every file of methods/ is a row. The row of an invalid file shows its error in place of scores.
    Released models are left out, because they do not start from the encoder of the table.
    """
    labels = method_labels()
    methods = valid_declarations(METHODS)
    rows: dict[str, Row] = {}
    for name in adapter_names(METHODS):
        label = labels.get(name, name)
        defect = adapter_defect(name, METHODS)
        if defect is not None:
            rows[label] = Row(label=label, missing=defect)
        elif methods[name].kind != "released":
            rows[label] = Row(label=label, run=Recipe(method=name))

    untrained = None
    trained = []  # methods that train without labels
    for name, declared in methods.items():
        if declared.kind == "untrained" and untrained is None:
            untrained = labels[name]
        if declared.is_trained and declared.corpus == "sentences":
            trained.append(labels[name])
    questions = compared_with(untrained, trained, "Does training beat the untrained encoder?")
    beats_simcse = "Which methods trained without labels beat SimCSE?"
    questions += compared_with(labels.get("simcse"), trained, beats_simcse)

    columns = sts_columns()
    if untrained:
        columns.append(Column(label="gain over untrained", delta="Avg."))
    table = Table(
        title="All methods",
        caption=(
            "Spearman x 100 on the STS test sets; each method's default variant on 1 % of the"
            " corpus."
        ),
        columns=columns,
        rows=[*rows.values()],
        baseline=untrained,
        compare=questions,
    )
    return Paper(
        name=SIDE_BY_SIDE, title="Methods", reference="csebench", tables={SIDE_BY_SIDE: table}
    )


def method_labels() -> dict[str, str]:
    """Return the labels of the valid methods in tables.

    A label is the title of the method. If two titles are equal, the name follows in parentheses.
    """
    titles = {name: declared.title for name, declared in valid_declarations(METHODS).items()}
    count = Counter(titles.values())
    labels = {}
    for name, title in titles.items():
        labels[name] = title if count[title] == 1 else f"{title} ({name})"
    return labels


def compared_with(against: str | None, rows: list[str], question: str) -> list[Family]:
    """Make a question for the first page of a scale, which compares each row with one other row.

    Args:
        against: label of the other row.

    Returns:
        nothing if there is no other row, or no row to compare with it.
    """
    if not against:
        return []
    pairs = [(row, against) for row in rows if row != against]
    if not pairs:
        return []
    return [Family(question=question, rows=pairs, first_page=question)]


def variants() -> Paper:
    """Generate the tables of papers and released code side by side.

    Every method whose variants have a reading has a table. Each of these variants is a row.
    """
    tables = {}
    for method, declared in valid_declarations(METHODS).items():
        if any(variant.reading for variant in declared.variants.values()):
            tables[method] = table_of_variants(method, declared)
    return Paper(
        name=VARIANTS, title="Papers and released code", reference="csebench", tables=tables
    )


def table_of_variants(method: str, declared: Declaration) -> Table:
    """Make the table of a method's variants that are a reading of its paper or of its code."""
    rows: list[Row] = []
    notes: list[str] = []
    for name, variant in declared.variants.items():
        if not variant.reading:
            continue
        label = f"{variant.reading} ({name})"
        rows.append(Row(label=label, run=Recipe(method=method, variant=name)))
        notes.append(f"{label}: {variant.difference}.")

    def printed_first(label: str) -> bool:
        return not label.startswith("as printed")  # False sorts before True

    # every other row is compared with the paper's text
    labels = [row.label for row in rows]
    printed, *others = sorted(labels, key=printed_first)
    pairs = [(label, printed) for label in others]
    questions = []
    if pairs:
        question = "Does the released code score otherwise than the paper's text?"
        questions.append(Family(question=question, rows=pairs, equality=True))
    return Table(
        title=f"{declared.title} ({method})",
        caption=f"{declared.paper}. Trained on 1 % of the corpus.",
        columns=sts_columns(),
        rows=rows,
        notes=notes,
        compare=questions,
    )


def sts_columns() -> list[Column]:
    """Make the columns of the STS test sets, after training on 1 % of the corpus."""
    return [Column(label=name, task=name, size="1%") for name in STS_COLUMNS]


# ---------------------------------------------------------------- folders


def given_root(scale: Scale) -> Path | DataRoot | None:
    """Find the benchmark data that the user gives: the scale's `data_root`, else CSEBENCH_DATA.

    The project, and every folder that joins it, may have a folder of this name. The files of all
    these folders are read, and no file replaces another. The paths are relative, so that a copied
    checkout does not change the plan.

    Returns:
        None if the user gives none.
    """
    if scale.data_root is None:
        given = os.environ.get("CSEBENCH_DATA")
        return Path(given) if given else None
    candidates = dict.fromkeys(folder / scale.data_root for folder in folders())
    roots = [Path(os.path.relpath(path)) for path in candidates if path.exists()]
    if len(roots) > 1:
        return DataRoot(tuple(roots), joined=True)
    if roots:
        return roots[0]
    return Path(os.path.relpath(ROOT / scale.data_root))


def data_root(scale: Scale, fetched: Path = Path(FETCHED)) -> Path | DataRoot:
    """Find where benchmark data are read.

    A scale with a `data_root` reads only this folder. Other scales read CSEBENCH_DATA, and then the
    files that rules fetch.

    Args:
        fetched: the folder that rules fetch into, for a process in another current folder.
    """
    given = given_root(scale)
    if given is None:
        return fetched
    if scale.data_root or isinstance(given, DataRoot):
        return given
    return DataRoot((given, fetched))


def results_folder(scale_name: str) -> Path:
    """Return the folder of a scale's pages: `results/mini`, and `results` for the default scale."""
    return RESULTS if scale_name == DEFAULT_SCALE else RESULTS / scale_name
