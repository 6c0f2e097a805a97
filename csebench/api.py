"""Results as pandas frames, and scores of any model, from Python: `csebench.scores`,
`csebench.table`, `csebench.evaluate`. The same as the command line's csv and evaluate, without
files::

    import csebench

    csebench.scores("mini")                      # every score, a row each
    csebench.table("micse/table2", scale="mini")  # every cell of a table or figure
    csebench.evaluate(model, "sts", data="data/smoke")  # model: any object with `encode`
"""

import inspect
from collections.abc import Callable
from contextlib import chdir
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from pydantic import ConfigDict, SkipValidation, TypeAdapter, ValidationError

from csebench.base import caches
from csebench.base.errors import BadInput, shortened
from csebench.base.project import folders
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import evaluator_declaration, protocol
from csebench.plan.schema.declarations import FRACTION

if TYPE_CHECKING:
    import pandas

    from csebench.model.embedder import Embedder

P = ParamSpec("P")
T = TypeVar("T")
COLUMNS = ["evaluator", "protocol", "task", "subset", "metric", "value", "unit"]


class Encodes(Protocol):
    """What `evaluate` needs of a model, such as a SentenceTransformer."""

    def encode(self, sentences: list[str]) -> Any:
        """(sentences, D): an array, a tensor, or a list of lists."""


def for_notebooks(function: Callable[P, T]) -> Callable[P, T]:
    """Files are read again at each call, and an argument of another type than is annotated
    raises BadInput."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = signature.parameters[name].annotation
            try:
                TypeAdapter(
                    kind, config=ConfigDict(arbitrary_types_allowed=True, strict=True)
                ).validate_python(value)
            except ValidationError:
                raise BadInput(
                    f"{function.__name__}: {name}: must be {kind}, not {shortened(repr(value))}."
                ) from None
        caches.clear()
        return function(*args, **kwargs)

    return wrapper


def scores(scale: str = "mini") -> "pandas.DataFrame":
    """Every score of a scale: the columns of `scores.csv`, with what was run, and `value` in
    `unit`. Raises BadInput for an unknown scale or a damaged score file."""
    import pandas

    from csebench.score.scores_csv import SCORES, score_rows

    with chdir(folders()[-1]):  # paths of results are relative
        catalog.scale(scale)
        return pandas.DataFrame(score_rows(scale), columns=SCORES)


def table(target: str, scale: str = "mini") -> "pandas.DataFrame":
    """Every cell of a table or figure (`micse/table2`), or of a table of all papers (`table2`,
    `methods`): the columns of `cells.csv`, and `unit`, of `ours`, `std` and `published`. Raises
    BadInput for an unknown scale or target.
    """
    import pandas

    from csebench.plan.schema.paper import SettingsTable
    from csebench.report.csv_tables import CELLS, cell_rows
    from csebench.report.numbers.cells import grid_view

    with chdir(folders()[-1]):
        grids = dict.fromkeys(
            grid for page in targets.parse_target(target, scale) for grid in page.grids()
        )
        views = [grid_view(*grid, scale) for grid in grids]
        rows = [
            row
            for view in views
            if not isinstance(view.grid, SettingsTable)
            for row in cell_rows(view)
        ]
    for row in rows:  # `fraction x 100`
        has_score = row["evaluator"] and row["metric"]
        name = (
            protocol(row["evaluator"]).declaration.unit_of(row["metric"]) if has_score else FRACTION
        )
        row["unit"] = name if row["factor"] == 1 else f"{name} x {row['factor']:g}"
    frame = pandas.DataFrame(rows, columns=[*CELLS, "unit"])
    numbers = ["published", "published_std", "ours", "std"]
    frame[numbers] = frame[numbers].apply(pandas.to_numeric)  # an empty text becomes NaN
    return frame


def evaluate(
    model: SkipValidation[Encodes | str | Path],
    evaluators: str | list[str] = "sts",
    data: str | Path | None = None,
    pooler: str | None = None,
) -> "pandas.DataFrame":
    """Scores of a model, a row each, with `value` in `unit`. Nothing is written. Raises BadInput
    for an unknown evaluator, missing data, or a model that cannot be read; RunFailed for a score
    that is not a finite number.

    Args:
        model: any object with `encode`, whose `encode_query` and `encode_document`, if it has both,
            are used in searches; or a folder or hub id, as for `csebench evaluate`.
        evaluators: names, comma-separated or a list: `sts,transfer:fasttest`.
        data: folder of benchmark data; CSEBENCH_DATA, else the fetched data, without it.
        pooler: of a folder or hub id that does not state one.
    """
    import pandas

    from csebench.score.evaluate import data_sha256, run_evaluator, tidy

    names = evaluators.split(",") if isinstance(evaluators, str) else evaluators
    if data is None:
        root = catalog.data_root(catalog.scale("paper"), folders()[-1] / catalog.FETCHED)
    else:
        root = Path(data)
    for name in names:
        data_sha256(protocol(name), root)  # refuses missing data before a model is loaded
    opened, made_by = (
        open_any(model, pooler),
        {"pooler": pooler, "precision": "own", "max_length": "own"},
    )
    rows = [
        row for name in names for row in tidy(name, made_by, run_evaluator(name, opened, root)[0])
    ]
    units = [evaluator_declaration(row["evaluator"]).unit_of(row["metric"]) for row in rows]
    return pandas.DataFrame(rows, columns=COLUMNS).assign(unit=units)


def open_any(model: Encodes | str | Path, pooler: str | None) -> "Embedder":
    """A model as evaluators see it. Raises BadInput for an object without `encode`."""
    import numpy as np

    from csebench.model.embedder import Embedder
    from csebench.score.models import open_model

    if isinstance(model, str | Path):
        return open_model(str(model), pooler)
    if not callable(getattr(model, "encode", None)):
        kind = type(model).__name__
        raise BadInput(
            f"evaluate: model: a {kind} has no method `encode`; give a model that has, or a folder."
        )

    encode_query = getattr(model, "encode_query", None)
    encode_document = getattr(model, "encode_document", None)

    class Encoded(Embedder):
        has_roles = callable(encode_query) and callable(encode_document)

        def vectors(self, sentences: list[str]) -> np.ndarray:
            return self.encoded(model.encode, sentences)

        def query_vectors(self, queries: list[str]) -> np.ndarray:
            return self.encoded(encode_query if self.has_roles else model.encode, queries)

        def document_vectors(self, documents: list[str]) -> np.ndarray:
            return self.encoded(encode_document if self.has_roles else model.encode, documents)

        def encoded(self, encode: Any, sentences: list[str]) -> np.ndarray:
            vectors = encode(sentences)
            if hasattr(vectors, "detach"):  # a tensor, perhaps on a GPU
                vectors = vectors.detach().float().cpu()
            try:
                vectors = np.asarray(vectors, dtype=np.float32)
            except (TypeError, ValueError) as error:
                raise BadInput(f"evaluate: encode gave no array of numbers: {error}.") from None
            if vectors.ndim != 2 or len(vectors) != len(sentences):
                raise BadInput(
                    f"evaluate: encode gave shape {vectors.shape} for {len(sentences)} sentences."
                )
            return vectors

    return Encoded()
