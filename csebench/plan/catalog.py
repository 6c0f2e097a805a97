"""The project's data files, read and checked: scales (config/), papers (papers/), datasets (data/registry.yaml); and
the paths of data, runs and results.

What follows from them is in recipe.py, grids.py and targets.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import RootModel, ValidationError

from csebench.base.caches import cached
from csebench.base.data_root import DataRoot
from csebench.base.errors import BadInput, explain, unknown
from csebench.base.files import read_yaml
from csebench.base.project import REPOSITORY, ROOT
from csebench.plan.declarations import Dataset, Scale, Training
from csebench.plan.papers import Column, Family, Paper, Published, Recipe, Row, Table
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
        raise BadInput(
            f"this csebench is installed without its project: {ROOT} has no config/, data/ and papers/. Get a"
            f" checkout: git clone {REPOSITORY} && cd {REPOSITORY.rpartition('/')[2]} && pip install -e ."
        )


def scale_names() -> list[str]:
    """Names of the files of config/. Raises BadInput for one that no scale can have."""
    return _yaml_names("config")


def _yaml_names(folder: str) -> list[str]:
    """Names of the YAML files of a folder, which are names of pages or of folders of results/, too. A hidden one, such
    as the lock of an editor, is none of them. Raises BadInput: a name is reserved, or not of letters and digits."""
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
    or its file names a dataset, method, parameter, size or evaluator that does not exist."""
    if name not in scale_names():
        raise unknown("scale", name, scale_names())
    file = f"config/{name}.yaml"
    scale = read_yaml(ROOT / file, Scale)
    if scale.scale != name:
        raise BadInput(f"{file}: scale: is {scale.scale!r}, but the file is {name}.yaml; make them agree.")
    for key in ("corpus", "triplets", "dev"):
        if getattr(scale, key) is not None:
            dataset(getattr(scale, key), f"{file}: {key}")
    for name, size in scale.sizes.items():
        if size > (holds := dataset(scale.corpus).sentences or size):
            raise BadInput(f"{file}: sizes: {name} is {size:,} sentences, but {scale.corpus} holds {holds:,}.")
    try:
        Training.model_validate(scale.override)
    except ValidationError as e:
        raise explain(e, f"{file}: override", Training.model_fields) from None
    for key, folder, settings in (("methods", METHODS, scale.methods), ("components", COMPONENTS, scale.components)):
        for method, values in settings.items():
            check_name(method, folder, f"{file}: {key}")
            if (declared := valid_declarations(folder).get(method)) is not None:
                fill(declared, values, f"{file}: {key}.{method}")
    for size in scale.seeds_by_size:
        if size not in scale.sizes:
            raise unknown("size", size, scale.sizes, f"{file}: seeds_by_size")
    if scale.seeds_by_table:
        tables = [f"{name}/table{number}" for name in paper_names() for number in paper(name).tables]
        for table in scale.seeds_by_table:
            if table not in tables:
                raise unknown("table", table, tables, f"{file}: seeds_by_table")
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
    if name == SIDE_BY_SIDE:
        return side_by_side()
    if name == VARIANTS:
        return variants()
    if name not in paper_names():
        raise unknown("paper", name, paper_names())
    paper = read_yaml(ROOT / "papers" / f"{name}.yaml", Paper)
    if paper.name != name:
        raise BadInput(f"papers/{name}.yaml: name: is {paper.name!r}, but the file is {name}.yaml; make them agree.")
    return paper


def paper_names() -> list[str]:
    """Names of the files of papers/. Raises BadInput for one that no paper can have."""
    names, scales = _yaml_names("papers"), scale_names()
    if both := sorted({*names} & {*scales}):
        raise BadInput(
            f"papers/{both[0]}.yaml: config/{both[0]}.yaml has the same name, and so the same folder of"
            " results/; name one of them otherwise."
        )
    return names


def side_by_side() -> Paper:
    """The table of all methods: every file of methods/ is a row, an invalid file with its error as reason."""
    rows, untrained, trained, simcse = [], [], [], ""
    for name in names(METHODS):
        try:
            declared = declaration(name)
        except BadInput as error:
            rows.append((name, None, str(error)))
            continue
        rows.append((declared.title, Recipe(method=name), None))
        untrained += [declared.title] * (declared.kind == "untrained")
        trained += [declared.title] * (declared.kind == "trained" and declared.corpus == "sentences")
        simcse = declared.title if name == "simcse" else simcse
    questions = (
        ("Does training beat the untrained encoder?", next(iter(untrained), "")),
        ("Which methods without labels beat SimCSE?", simcse),
    )
    families = [
        Family(question=question, rows=pairs, first_page=question)
        for question, against in questions
        if against and (pairs := [(title, against) for title in trained if title != against])
    ]
    caption = "Spearman x 100 on the STS test sets; each method's default variant on 1 % of the corpus."
    table = _sts_table(
        "all methods side by side", caption, rows, baseline=next(iter(untrained), None), compare=families
    )
    return Paper(name=SIDE_BY_SIDE, title="Methods", reference="csebench", tables={SIDE_BY_SIDE: table})


def variants() -> Paper:
    """Papers and released code side by side: one table per method whose variants have a reading.

    A row is a variant, labelled with what it is (as printed, as released …); its difference is a note of the table.
    """
    tables = {}
    for method, declared in valid_declarations(METHODS).items():
        noted = {f"{v.reading} ({name})": (name, v.difference) for name, v in declared.variants.items() if v.reading}
        if noted:
            rows = [(label, Recipe(method=method, variant=name), None) for label, (name, _) in noted.items()]
            notes = [f"{label}: {difference}." for label, (_, difference) in noted.items()]
            caption = f"{declared.paper}. Trained on 1 % of the corpus."
            tables[method] = _sts_table(f"{declared.title} ({method})", caption, rows, notes)
    return Paper(name=VARIANTS, title="Papers and released code", reference="csebench", tables=tables)


def _sts_table(
    title: str,
    caption: str,
    rows: Sequence[tuple[str, Recipe | None, str | None]],
    notes: Iterable[str] = (),
    baseline: str | None = None,
    compare: Sequence[Family] = (),
) -> Table:
    """Methods scored on the STS test sets after training on 1 % of the corpus.

    Args:
        rows: (label, recipe, why there is none).
        baseline: label of the row to which a last column shows the differences.
    """
    columns = [Column(label=c, task=c, size="1%") for c in STS_COLUMNS]
    columns += [Column(label="gain over untrained", delta="Avg.")] if baseline else []
    values: list[Published | None] = [None] * len(columns)
    made = [Row(label=label, run=run, missing=why, source="measured", values=values) for label, run, why in rows]
    return Table(
        title=title, caption=caption, columns=columns, rows=made, notes=[*notes], baseline=baseline, compare=[*compare]
    )


def given_root(scale: Scale) -> Path | None:
    """The folder of benchmark data that the user gives: that of the scale, else CSEBENCH_DATA.

    The folder of a scale is given as a relative path, so that a copied checkout does not change the plan.
    """
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
