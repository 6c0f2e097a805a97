"""The project's data files, read and checked: scales (config/), papers (papers/), datasets (data/registry.yaml); and
the paths of data, runs and results. What follows from them is in recipe.py, grids.py and targets.py."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, RootModel, ValidationError

from csebench.base.caches import cached
from csebench.base.data_root import DataRoot
from csebench.base.errors import BadInput, explain, unknown
from csebench.base.files import read_yaml
from csebench.base.project import REPOSITORY, ROOT
from csebench.plan.declarations import Dataset, Scale, Training
from csebench.plan.papers import Column, Family, Paper, Recipe, Row, Table
from csebench.plan.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    check_name,
    declaration,
    fill,
    names,
    protocol,
    valid_declarations,
)
from csebench.plan.spec import RUNS as RUNS

M = TypeVar("M", bound=BaseModel)
RESULTS = Path("results")
DEFAULT_SCALE = "smoke"
FETCHED = "data/official"  # where rules/data.smk puts what it downloads
STSB_DEV = "downstream/STS/STSBenchmark/sts-dev.csv"  # below a data root
POSITIVES = Path("data/back-translation")
SIDE_BY_SIDE = "methods"  # the page of all methods
VARIANTS = "variants"  # the page of papers and released code side by side
GENERATED = (SIDE_BY_SIDE, VARIANTS)  # from declarations, not from a file of papers/
STS_COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")
OVER_ALL = ("index", "claims", "audit")  # pages that are made from all pages of a scale
# what a paper or scale cannot be called: folders and pages of results/, and what `csebench plan` takes for a target
RESERVED = {*GENERATED, *OVER_ALL, "all", "cells", "comparisons", "evidence", "figures", "html", "partial", "scores"}


def is_checkout() -> bool:
    """Whether the project's data files are there: an installed package is its code alone."""
    return all((ROOT / folder).is_dir() for folder in ("config", "data", "papers"))


def require_checkout() -> None:
    """Raises BadInput, with how to get one, where there is no checkout of the project."""
    if not is_checkout():
        clone = f"git clone {REPOSITORY} && cd {REPOSITORY.rpartition('/')[2]} && pip install -e ."
        raise BadInput(f"csebench is installed without its project: {ROOT} has no config/, data/ and papers/: {clone}")


def scale_names() -> list[str]:
    """Names of the files of config/. Raises BadInput for one that no scale can have."""
    return _yaml_names("config")


def paper_names() -> list[str]:
    """Names of the files of papers/. Raises BadInput for one that no paper can have."""
    if both := sorted({*(names := _yaml_names("papers"))} & {*scale_names()}):
        raise BadInput(f"papers/{both[0]}.yaml: config/ has this name, too, and so the folder of results/; rename it.")
    return names


def _yaml_names(folder: str) -> list[str]:
    """Names of the YAML files of a folder, without hidden ones, such as the lock of an editor. They are those of pages
    or of folders of results/, too."""
    names = sorted(path.stem for path in (ROOT / folder).glob("[!.]*.yaml"))
    for name in names:
        if not re.fullmatch(r"\w+", name):
            raise BadInput(f"{folder}/{name}.yaml: name it with letters, digits and _ only, as its pages are.")
        if re.fullmatch(r"(table|figure)\w+", name) or name in RESERVED:
            raise BadInput(f"{folder}/{name}.yaml: {name!r} is reserved: it means other pages; name it otherwise.")
    return names


def scales(first: str) -> list[str]:
    """Names of all scales, with `first` in front."""
    return [first, *(name for name in scale_names() if name != first)]


@cached
def scale(name: str = DEFAULT_SCALE) -> Scale:
    """The scale of `config/<name>.yaml`; everything that it names is checked to exist. Raises BadInput: no such scale,
    or its file names a dataset, method, parameter, size, table or evaluator that does not exist."""
    scale, file = _read("config", name, scale_names(), Scale), f"config/{name}.yaml"
    for key in ("triplets", "dev") if scale.triplets else ("dev",):
        dataset(getattr(scale, key), f"{file}: {key}")
    holds = dataset(scale.corpus, f"{file}: corpus").sentences or math.inf
    for label, size in scale.sizes.items():
        if size > holds:
            raise BadInput(f"{file}: sizes: {label} is {size:,} sentences, but {scale.corpus} holds {holds:,}.")
    try:
        Training.model_validate(scale.override)
    except ValidationError as e:
        raise explain(e, f"{file}: override", Training.model_fields) from None
    for key, folder, settings in (("methods", METHODS, scale.methods), ("components", COMPONENTS, scale.components)):
        for method, values in settings.items():
            check_name(method, folder, f"{file}: {key}")
            if (declared := valid_declarations(folder).get(method)) is not None:
                fill(declared, values, f"{file}: {key}.{method}")
    tables = [f"{p}/table{n}" for p in paper_names() for n in paper(p).tables] if scale.seeds_by_table else []
    for kind, key, known in (("size", "seeds_by_size", scale.sizes), ("table", "seeds_by_table", tables)):
        if strange := [label for label in getattr(scale, key) if label not in known]:
            raise unknown(kind, strange[0], known, f"{file}: {key}")
    for evaluator, substitute in scale.evaluators.items():
        check_name(evaluator.partition(":")[0], EVALUATORS, f"{file}: evaluators")
        if substitute is not None:
            protocol(substitute, f"{file}: evaluators")
    return scale


@cached
def datasets() -> dict[str, Dataset]:
    """The datasets of data/registry.yaml by name."""
    return read_yaml(ROOT / "data" / "registry.yaml", RootModel[dict[str, Dataset]]).root


def dataset(name: str, where: str = "data/registry.yaml") -> Dataset:
    """A dataset by name. Raises BadInput, with `where` (file: key) in its message, for an unknown name."""
    if name not in datasets():
        raise unknown("dataset of data/registry.yaml", name, datasets(), where)
    return datasets()[name]


@cached
def paper(name: str) -> Paper:
    """The paper of `papers/<name>.yaml`, or one that is generated: `methods`, `variants`. Raises BadInput."""
    generated = {SIDE_BY_SIDE: side_by_side, VARIANTS: variants}
    return generated[name]() if name in generated else _read("papers", name, paper_names(), Paper)


def _read(folder: str, name: str, known: list[str], model: type[M]) -> M:
    """The YAML file of a name, which states the name, too."""
    if name not in known:
        raise unknown(model.__name__.lower(), name, known)
    content, key = read_yaml(ROOT / folder / f"{name}.yaml", model), "scale" if model is Scale else "name"
    if (stated := getattr(content, key)) != name:
        raise BadInput(f"{folder}/{name}.yaml: {key}: is {stated!r}, but the file is {name}.yaml; make them agree.")
    return content


def side_by_side() -> Paper:
    """The table of all methods: every file of methods/ is a row, an invalid file with its error as reason."""
    rows, untrained, trained, simcse = [], [], [], ""
    for name in names(METHODS):
        try:
            declared = declaration(name)
        except BadInput as error:
            rows.append((name, str(error)))
            continue
        rows.append((declared.title, Recipe(method=name)))
        untrained += [declared.title] * (declared.kind == "untrained")
        trained += [declared.title] * (declared.kind == "trained" and declared.corpus == "sentences")
        simcse = declared.title if name == "simcse" else simcse
    questions = (
        ("Does training beat the untrained encoder?", next(iter(untrained), "")),
        ("Which methods trained without labels beat SimCSE?", simcse),
    )
    families = [
        Family(question=question, rows=pairs, first_page=question)
        for question, against in questions
        if against and (pairs := [(title, against) for title in trained if title != against])
    ]
    caption = "Spearman x 100 on the STS test sets; each method's default variant on 1 % of the corpus."
    table = _sts_table("All methods", caption, rows, baseline=next(iter(untrained), ""), compare=families)
    return Paper(name=SIDE_BY_SIDE, title="Methods", reference="csebench", tables={SIDE_BY_SIDE: table})


def variants() -> Paper:
    """Papers and released code side by side: one table per method whose variants have a reading (as printed, as
    released …). Each of these is a row; its difference is a note of the table."""
    tables = {}
    for method, declared in valid_declarations(METHODS).items():
        read = {f"{v.reading} ({name})": (name, v) for name, v in declared.variants.items() if v.reading}
        if read:
            rows = [(label, Recipe(method=method, variant=name)) for label, (name, _) in read.items()]
            notes = [f"{label}: {variant.difference}." for label, (_, variant) in read.items()]
            caption = f"{declared.paper}. Trained on 1 % of the corpus."
            tables[method] = _sts_table(f"{declared.title} ({method})", caption, rows, notes)
    return Paper(name=VARIANTS, title="Papers and released code", reference="csebench", tables=tables)


def _sts_table(
    title: str,
    caption: str,
    runs: Sequence[tuple],
    notes: Sequence[str] = (),
    baseline: str = "",
    compare: Sequence[Family] = (),
) -> Table:
    """Labels with recipes, or with the reason why there is none, scored on the STS test sets after training on 1 % of
    the corpus. A last column shows the differences to the row with the label `baseline`."""
    columns = [Column(label=c, task=c, size="1%") for c in STS_COLUMNS]
    columns += [Column(label="gain over untrained", delta="Avg.")] if baseline else []
    filled: dict[str, Any] = {"source": "measured", "values": [None] * len(columns)}
    rows = [Row(label=label, **{"missing" if isinstance(run, str) else "run": run}, **filled) for label, run in runs]
    shown: dict[str, Any] = {
        "columns": columns,
        "rows": rows,
        "compare": [*compare],
        "notes": [*notes],
        "baseline": baseline or None,
    }
    return Table(title=title, caption=caption, **shown)


def given_root(scale: Scale) -> Path | None:
    """The folder of benchmark data that the user gives: that of the scale, as a relative path, so that a copied
    checkout does not change the plan; else CSEBENCH_DATA."""
    if scale.data_root:
        return Path(os.path.relpath(ROOT / scale.data_root))
    return Path(os.environ["CSEBENCH_DATA"]) if os.environ.get("CSEBENCH_DATA") else None


def data_root(scale: Scale) -> Path | DataRoot:
    """Where benchmark data are read: the scale's own folder alone; else CSEBENCH_DATA, and behind it what the rules
    fetch."""
    given, fetched = given_root(scale), Path(FETCHED)
    if given is None or scale.data_root:
        return given or fetched
    return DataRoot((given, fetched))


def results_folder(scale_name: str) -> Path:
    """The folder of a scale's pages: `results/mini`; the default scale's pages are in `results`."""
    return RESULTS if scale_name == DEFAULT_SCALE else RESULTS / scale_name
