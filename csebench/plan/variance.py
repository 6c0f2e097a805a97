"""The study of where spread comes from, `config/variance.yaml`: its runs, crossed over four sources of randomness.

Each source has a seed of its own: the subset of the corpus, the order of batches, dropout (with other noise of the
steps), and new weights (the head). A block has two seeds of every source and all 16 combinations; blocks share none.
The page is no part of `all`. Shares of variance: csebench/report/crossed.py; the page: report/variance_page.py.
"""

from __future__ import annotations

from itertools import product

from pydantic import Field

from csebench.base.caches import cached
from csebench.base.errors import BadInput, unknown
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.plan.catalog import STUDY, scale_names
from csebench.plan.declarations import Strict, Value
from csebench.plan.papers import Column, Recipe, Row, Table
from csebench.plan.registry import METHODS, check_name, declaration
from csebench.plan.spec import Spec

NAME = STUDY  # of the page, and of its table
SOURCES = ("subset", "order", "dropout", "head")
BEST, LAST = "best on STS-B dev", "last step"  # the columns: which step of a run is scored
Levels = tuple[int, ...]  # of each source, which of its two seeds in the block


class Study(Strict):
    """config/variance.yaml."""

    scales: list[str]
    methods: list[str]
    size: str
    sweep: dict[str, Value] = {}  # settings that a scale's do not override
    note: str = ""  # why these
    blocks: int = Field(ge=2, le=1000)
    first_seed: int = Field(ge=0, lt=2**31)


@cached
def study() -> Study:
    """Raises BadInput, also for an unknown scale or method."""
    file = f"config/{NAME}.yaml"
    content = read_yaml(ROOT / file, Study)
    for name in content.scales:
        if name not in scale_names():
            raise unknown("scale", name, scale_names(), f"{file}: scales")
    for name in content.methods:
        check_name(name, METHODS, f"{file}: methods")
    return content


def scales() -> list[str]:
    """The scales that have the page."""
    return study().scales


def table() -> Table:
    """A row for each method, a column for each step that is scored; every cell has the runs of `crossed`."""
    content = study()
    sweeps = {BEST: content.sweep, LAST: content.sweep | {"selection": "last"}}
    columns = [Column(label=label, task="Avg.", size=content.size, sweep=sweep) for label, sweep in sweeps.items()]
    rows = [
        Row(label=declaration(name).title, run=Recipe(method=name), source="measured", values=[None] * len(columns))
        for name in content.methods
    ]
    return Table(title="where spread comes from", columns=columns, rows=rows)


def design(label: str) -> list[tuple[int, Levels]]:
    """(block, levels) of the runs of a column.

    The last step is scored in a quarter of the runs, where every seed of a block occurs twice: those in which subset
    and dropout have the same level, and so have order and head.
    """
    combinations = list(product((0, 1), repeat=len(SOURCES)))
    if label == LAST:
        combinations = [levels for levels in combinations if levels[:2] == levels[2:]]
    return [(block, levels) for block in range(study().blocks) for levels in combinations]


def crossed(base: Spec, label: str) -> tuple[Spec, ...]:
    """A run for every entry of `design`, in its order. Raises BadInput for a method that is not trained."""
    if base.corpus is None:
        raise BadInput(f"config/{NAME}.yaml: methods: {base.method} is not trained, so it has no order of batches.")
    specs = []
    for block, levels in design(label):
        first = study().first_seed + 2 * block
        subset, order, dropout, head = (first + level for level in levels)
        corpus = base.corpus.model_copy(update={"subset_seed": subset})
        seeds = {"order": order, "dropout": dropout, "head": head}
        specs.append(base.model_copy(update={"seed": first, "seeds": seeds, "corpus": corpus}))
    return tuple(specs)
