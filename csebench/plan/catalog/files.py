"""The project's data files, read and checked: scales (config/), papers (papers/), datasets
(data/registry.yaml); and the paths of data, runs and results. What follows from them is in
recipe.py, grids.py and targets.py.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

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
from csebench.plan.schema.declarations import Dataset, Scale, TrainingSettings
from csebench.plan.schema.paper import Column, Family, Paper, Recipe, Row, Table
from csebench.plan.schema.spec import RUNS as RUNS

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
RESULTS = Path("results")
YAML = "[!_]*.yaml"  # files of a folder, without templates
DEFAULT_SCALE = "smoke"
FETCHED = "data/official"  # where rules/data.smk puts what it downloads
STSB_DEV = "downstream/STS/STSBenchmark/sts-dev.csv"  # below a data root
POSITIVES = Path("data/back-translation")
SIDE_BY_SIDE = "methods"  # the page of all methods
VARIANTS = "variants"  # the page of papers and released code side by side
GENERATED = (SIDE_BY_SIDE, VARIANTS)  # from declarations, not from a file of papers/
STS_COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")
OVER_ALL = ("index", "claims", "audit")  # pages that are made from all pages of a scale
# what a paper or scale cannot be called: folders and pages of results/, and what `csebench plan`
# takes for a target
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


def scale_names() -> list[str]:
    """Names of the files of config/. Raises BadInput for one that no scale can have."""
    names = [*project_files("config", YAML)]
    for name in names:
        check_file_name("config", name)
    return names


def paper_files() -> list[str]:
    """Names of the files of papers/, valid or not."""
    return [*project_files("papers", YAML)]


@cached
def broken_papers() -> dict[str, str]:
    """What is wrong with the files of papers/ that are not valid, by name. They have no pages."""
    reasons = {name: problem_of(_read, "papers", name, Paper) for name in paper_files()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def paper_names() -> list[str]:
    """Names of the valid files of papers/."""
    return [name for name in paper_files() if name not in broken_papers()]


def check_file_name(folder: str, name: str) -> None:
    """Raises BadInput for a name that no paper or no scale can have, as its pages or their
    folder have it, too."""
    file = f"{folder}/{name}.yaml"
    if not re.fullmatch(r"\w+", name):
        raise BadInput(f"{file}: name it with letters, digits and _ only, as its pages are.")
    if re.fullmatch(r"(table|figure)\w+", name) or name in RESERVED:
        raise BadInput(f"{file}: {name!r} is reserved: it means other pages; name it otherwise.")
    if folder == "papers" and name in project_files("config", YAML):
        raise BadInput(
            f"{file}: config/ has this name, too, and so the folder of results/; rename it."
        )


@cached
def scale(name: str = DEFAULT_SCALE) -> Scale:
    """The scale of `config/<name>.yaml`. Raises BadInput: no such scale, or it names what does
    not exist."""
    scale, file = _read("config", name, Scale)[0], f"config/{name}.yaml"
    for key in ("triplets", "dev") if scale.triplets else ("dev",):
        dataset(getattr(scale, key), f"{file}: {key}")
    holds = dataset(scale.corpus, f"{file}: corpus").sentences or math.inf
    for label, size in scale.sizes.items():
        if size > holds:
            raise BadInput(
                f"{file}: sizes: {label} is {size:,} sentences, but {scale.corpus} holds {holds:,}."
            )
    for encoder in scale.encoders.values():
        local_folder(encoder)  # refuses two of one name
    validated(TrainingSettings, scale.override, f"{file}: override")
    declared = [*valid_declarations(METHODS).values(), *valid_declarations(COMPONENTS).values()]
    params = {name for d in declared for name in d.hyperparameters.model_fields}
    if len(declared) < len(adapter_names(METHODS)) + len(
        adapter_names(COMPONENTS)
    ):  # a broken file may have any
        params |= {
            *scale.substitutes,
            *(name for settings in scale.kinds.values() for name in settings),
        }
    tables = (
        [f"{p}/table{n}" for p in paper_names() for n in paper(p).tables]
        if scale.seeds_by_table
        else []
    )
    tables += [
        label for label in scale.seeds_by_table if label.partition("/")[0] in broken_papers()
    ]
    for kind, key, named, known in (
        ("size", "seeds_by_size", scale.seeds_by_size, scale.sizes),
        ("table", "seeds_by_table", scale.seeds_by_table, tables),
        ("parameter", "substitutes", scale.substitutes, params),
        *(
            ("parameter", f"kinds.{kind}", settings, params)
            for kind, settings in scale.kinds.items()
        ),
    ):
        if strange := [name for name in named if name not in known]:
            raise unknown(kind, strange[0], known, f"{file}: {key}")
    for evaluator, substitute in scale.evaluators.items():
        registry.check_name(evaluator.partition(":")[0], EVALUATORS, f"{file}: evaluators")
        if (
            substitute is not None
            and adapter_defect(substitute, EVALUATORS, f"{file}: evaluators") is None
        ):
            registry.protocol(substitute, f"{file}: evaluators")
    return scale


@cached
def encoder_roles() -> set[str]:
    """The roles of encoders in all scales that are valid."""
    valid = [scale(name) for name in scale_names() if problem_of(scale, name) is None]
    return {role for one in valid for role in one.encoders}


@cached
def datasets() -> dict[str, Dataset]:
    """The datasets of data/registry.yaml, of the project and of folders that join it; two of one
    name are refused."""
    paths = (path for folder in folders() if (path := folder / "data" / "registry.yaml").exists())
    return joined({path: read_yaml(path, RootModel[dict[str, Dataset]]).root for path in paths})


def joined(parts: Mapping[Path, Mapping[str, T]]) -> dict[str, T]:
    """What several files have by name. Raises BadInput, with both files, for a name that two
    have."""
    places: dict[str, Path] = {}
    for name, path in ((name, path) for path, part in parts.items() for name in part):
        if places.setdefault(name, path) != path:
            raise BadInput(f"{path}: {name}: {places[name]} has this name, too; rename one.")
    return {name: parts[path][name] for name, path in places.items()}


def dataset(name: str, where: str = "data/registry.yaml") -> Dataset:
    """A dataset by name. Raises BadInput, with `where` (file: key) in its message, for an
    unknown name."""
    return look_up("dataset of data/registry.yaml", name, datasets(), where)


@cached
def paper(name: str) -> Paper:
    """The paper of `papers/<name>.yaml`, or one that is generated: `methods`, `variants`. Raises
    BadInput."""
    generated = {SIDE_BY_SIDE: side_by_side, VARIANTS: variants}
    return generated[name]() if name in generated else _read("papers", name, Paper)[0]


def place_in_paper(paper_name: str, grid_name: str, *keys) -> str:
    """`papers/micse.yaml: line 28: tables.2.rows.3`, of keys below a table or figure; of a
    generated one its name."""
    if paper_name in GENERATED:
        return grid_name
    kind = "figure" if grid_name.startswith("figure") else "table"
    _, lines = _read("papers", paper_name, Paper)
    where, place = lines.locate((f"{kind}s", grid_name.removeprefix(kind), *keys))
    return f"{where}: {'.'.join(map(str, place))}"


@cached
def _read(folder: str, name: str, model: type[M]) -> tuple[M, Lines]:
    """The YAML file of a name, which states the name, too, and its lines."""
    path = look_up(model.__name__.lower(), name, project_files(folder, YAML))
    check_file_name(folder, name)
    content, lines = read_with_lines(path, model)
    key = "scale" if model is Scale else "name"
    if (stated := getattr(content, key)) != name:
        where, _ = lines.locate((key,))
        raise BadInput(
            f"{where}: {key}: is {stated!r}, but the file is {name}.yaml; make them agree."
        )
    return content, lines


def method_labels() -> dict[str, str]:
    """What valid methods are called in tables: their titles; of equal ones each with its name
    behind it."""
    titles = {name: declared.title for name, declared in valid_declarations(METHODS).items()}
    count = Counter(titles.values())
    return {
        name: title if count[title] == 1 else f"{title} ({name})" for name, title in titles.items()
    }


def side_by_side() -> Paper:
    """The table of all methods: every file of methods/ is a row, an invalid file with its error
    as reason."""
    labels, methods = method_labels(), valid_declarations(METHODS)
    rows = {
        labels.get(name, name): adapter_defect(name, METHODS) or Recipe(method=name)
        for name in adapter_names(METHODS)
    }
    untrained = next(
        (labels[name] for name, declared in methods.items() if declared.kind == "untrained"), None
    )
    trained = [
        labels[name] for name, d in methods.items() if d.is_trained and d.corpus == "sentences"
    ]
    questions = {"Does training beat the untrained encoder?": untrained}
    questions |= {"Which methods trained without labels beat SimCSE?": labels.get("simcse")}
    families = [
        Family(question=question, rows=pairs, first_page=question)
        for question, against in questions.items()
        if against and (pairs := [(title, against) for title in trained if title != against])
    ]
    caption = (
        "Spearman x 100 on the STS test sets; each method's default variant on 1 % of the corpus."
    )
    table = _sts_table("All methods", caption, rows, baseline=untrained, compare=families)
    return Paper(
        name=SIDE_BY_SIDE, title="Methods", reference="csebench", tables={SIDE_BY_SIDE: table}
    )


def variants() -> Paper:
    """Papers and released code side by side: a table per method whose variants have a reading,
    each of them a row."""
    tables = {}
    for method, declared in valid_declarations(METHODS).items():
        read = {f"{v.reading} ({name})": name for name, v in declared.variants.items() if v.reading}
        if read:
            rows = {label: Recipe(method=method, variant=name) for label, name in read.items()}
            notes = [
                f"{label}: {declared.variants[name].difference}." for label, name in read.items()
            ]
            caption = f"{declared.paper}. Trained on 1 % of the corpus."
            printed, *others = sorted(read, key=lambda label: not label.startswith("as printed"))
            pairs = [(label, printed) for label in others]
            question = "Does the released code score otherwise than the paper's text?"
            asked = [Family(question=question, rows=pairs, equality=True)] if pairs else []
            tables[method] = _sts_table(
                f"{declared.title} ({method})", caption, rows, notes=notes, compare=asked
            )
    return Paper(
        name=VARIANTS, title="Papers and released code", reference="csebench", tables=tables
    )


def _sts_table(title: str, caption: str, runs: Mapping[str, Recipe | str], **more: Any) -> Table:
    """A table of the STS test sets after training on 1 % of the corpus: recipes by label, or why
    there is none. With a `baseline`, the label of a row, a last column shows the differences to
    it."""
    columns = [Column(label=c, task=c, size="1%") for c in STS_COLUMNS]
    columns += [Column(label="gain over untrained", delta="Avg.")] if more.get("baseline") else []
    rows = [
        Row(label=k, missing=run) if isinstance(run, str) else Row(label=k, run=run)
        for k, run in runs.items()
    ]
    return Table(title=title, caption=caption, columns=columns, rows=rows, **more)


def given_root(scale: Scale) -> Path | DataRoot | None:
    """Find the benchmark data that the user gives: the scale's `data_root`, else CSEBENCH_DATA.

    A `data_root` is a folder of the project and of every folder that joins it. Their files join one
    by one, and none replaces another. The paths are relative, so that a copied checkout does not
    change the plan.
    """
    if scale.data_root is None:
        given = os.environ.get("CSEBENCH_DATA")
        return Path(given) if given else None
    places = dict.fromkeys(folder / scale.data_root for folder in folders())
    roots = [Path(os.path.relpath(place)) for place in places if place.exists()]
    if len(roots) > 1:
        return DataRoot(tuple(roots), joined=True)
    return roots[0] if roots else Path(os.path.relpath(ROOT / scale.data_root))


def data_root(scale: Scale, fetched: Path = Path(FETCHED)) -> Path | DataRoot:
    """Find where benchmark data are read: the scale's own folder; else CSEBENCH_DATA, and behind it
    what rules fetch.

    Args:
        fetched: where that is, if another folder is the current one.
    """
    given = given_root(scale)
    if given is None or isinstance(given, DataRoot) or scale.data_root:
        return given or fetched
    return DataRoot((given, fetched))


def results_folder(scale_name: str) -> Path:
    """The folder of a scale's pages: `results/mini`; the default scale's pages are in `results`."""
    return RESULTS if scale_name == DEFAULT_SCALE else RESULTS / scale_name
