"""Read results as pandas frames, and score any model, from Python.

`csebench.scores` and `csebench.table` give what `csebench csv` writes. `csebench.evaluate` scores a
model like `csebench evaluate`, and writes no file::

    import csebench

    csebench.scores("mini")                      # every score, a row each
    csebench.table("micse/table2", scale="mini")  # every cell of a table or figure
    csebench.evaluate(model, "sts", data="data/smoke")  # model: any object with `encode`
    csebench.judge({"mine": model, "base": "base.json"})  # is `mine` higher?
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
from csebench.base.files import DataRoot
from csebench.base.project import folders
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import distinct_names, evaluator_declaration, protocol
from csebench.plan.schema.declarations import FRACTION

if TYPE_CHECKING:
    import numpy as np
    import pandas

    from csebench.model.embedder import Embedder

P = ParamSpec("P")
T = TypeVar("T")
COLUMNS = ["evaluator", "protocol", "task", "subset", "metric", "value", "unit"]  # of `evaluate`


class Encodes(Protocol):
    """A model that `evaluate` can score, such as a SentenceTransformer."""

    def encode(self, sentences: list[str]) -> Any:
        """Return vectors of shape (sentences, D): an array, a tensor, or a list of lists."""


def scores(scale: str = "mini") -> "pandas.DataFrame":
    """Read every score of a scale.

    Returns:
        A row per score, with the columns of `scores.csv`. `value` is in `unit`.

    Raises:
        BadInput: the scale is unknown, or a score file is damaged.
    """
    import pandas

    from csebench.score.scores_csv import SCORES, score_rows

    with chdir(folders()[-1]):  # paths of results are relative
        catalog.scale(scale)
        return pandas.DataFrame(score_rows(scale), columns=SCORES)


def table(target: str, scale: str = "mini") -> "pandas.DataFrame":
    """Read every cell of a table or figure.

    Args:
        target: a table or figure of a paper (`micse/table2`), or a table of all papers (`table2`,
            `methods`).

    Returns:
        A row per cell, with the columns of `cells.csv` and the `unit` of `ours`, `std` and
        `published`.

    Raises:
        BadInput: the scale or the target is unknown.
    """
    import pandas

    from csebench.plan.schema.paper import UnscoredTable
    from csebench.report.csv_tables import CELLS, cell_rows
    from csebench.report.numbers.cells import grid_view

    grids: dict[tuple[str, str], None] = {}  # a dict keeps each grid once, in order
    rows: list[dict] = []
    with chdir(folders()[-1]):
        for page in targets.parse_target(target, scale):
            grids |= dict.fromkeys(page.grids())
        for grid in grids:
            view = grid_view(*grid, scale)
            if not isinstance(view.grid, UnscoredTable):
                rows += cell_rows(view)
    for row in rows:
        row["unit"] = unit_of_cell(row)
    frame = pandas.DataFrame(rows, columns=[*CELLS, "unit"])
    numbers = ["published", "published_std", "ours", "std"]
    frame[numbers] = frame[numbers].apply(pandas.to_numeric)  # an empty text becomes NaN
    return frame


def unit_of_cell(row: dict) -> str:
    """Word the unit of the values in a cell: `fraction x 100`."""
    unit = FRACTION
    if row["evaluator"] and row["metric"]:
        unit = protocol(row["evaluator"]).declaration.unit_of(row["metric"])
    if row["factor"] == 1:
        return unit
    return f"{unit} x {row['factor']:g}"


def evaluate(
    model: SkipValidation[Encodes | str | Path],
    evaluators: str | list[str] = "sts",
    data: str | Path | None = None,
    pooler: str | None = None,
) -> "pandas.DataFrame":
    """Score a model. Nothing is written.

    Args:
        model: any object with `encode`, or a folder or hub id, as for `csebench evaluate`. If an
            object has both `encode_query` and `encode_document`, retrieval tasks use these.
        evaluators: names, comma-separated or a list: `sts,transfer:fasttest`.
        data: folder of benchmark data. None means CSEBENCH_DATA, or else the fetched data.
        pooler: pooler of a folder or hub id that does not state its own.

    Returns:
        A row per score, with `value` in `unit`.

    Raises:
        BadInput: an evaluator is unknown, data is missing, or the model cannot be read.
        RunFailed: a score is not a finite number.
    """
    import pandas

    from csebench.score.evaluate import data_sha256, run_evaluator, tidy

    names = distinct_names(evaluators)
    root = benchmark_data(data)
    for name in names:
        data_sha256(protocol(name), root)  # refuses missing data before a model is loaded
    embedder = open_any(model, pooler)
    made_by = {"pooler": pooler, "precision": "own", "max_length": "own"}
    rows = []
    for name in names:
        result, *_ = run_evaluator(name, embedder, root)
        rows += tidy(name, made_by, result)
    units = [evaluator_declaration(row["evaluator"]).unit_of(row["metric"]) for row in rows]
    return pandas.DataFrame(rows, columns=COLUMNS).assign(unit=units)


def judge(
    systems: dict[str, Any],
    evaluators: str | list[str] = "sts",
    data: str | Path | None = None,
    metric: str | None = None,
    within: float | None = None,
) -> "pandas.DataFrame":
    """Say which of two or more systems is higher, as `csebench judge` does. Nothing is written.

    Args:
        systems: by name, a source or a list of sources, which are the seeds of the system. A source
            is a file or folder as for `csebench judge`, a hub id, or any object with `encode`.
        evaluators: score the models with these; names, comma-separated or a list.
        data: folder of benchmark data. None means CSEBENCH_DATA, or else the fetched data.
        metric: metric to judge. None for the main metric of each task.
        within: points; a difference that is shown to be smaller counts as `same`. None for 0.02.

    Returns:
        A row for each pair of systems over all tasks (`task` is None) and in each task, with
        `verdict`, `text`, and numbers in points. `attrs` has the `sentence`, the `groups` of
        systems that cannot be told apart, and `doubts` on the input.

    Raises:
        BadInput: a file is damaged, or the systems cannot be compared.
        RunFailed: a model could not be scored.
    """
    import pandas

    from csebench.judging.comparison import judge_systems
    from csebench.judging.systems import ReadingOptions, read_systems
    from csebench.judging.words import judgement_content

    sources = {name: opened_sources(name, of_system) for name, of_system in systems.items()}
    options = ReadingOptions(distinct_names(evaluators), benchmark_data(data), metric)
    judged = judge_systems(read_systems(sources, options), within)
    content = judgement_content(judged)
    frame = pandas.DataFrame(content["comparisons"])
    frame.attrs = {key: content[key] for key in ("sentence", "groups", "doubts")}
    return frame


def opened_sources(name: str, given: Any) -> list:
    """List the sources of a system: texts as absolute paths or hub ids, objects as embedders.

    Raises:
        BadInput: there is no source, a pattern matches nothing, or an object has no `encode`.
    """
    from csebench.judging.arguments import SystemArgument, seeds_of

    if not isinstance(given, list | tuple):
        given = [given]
    sources = []
    for source in given:
        if isinstance(source, str | Path):
            argument = SystemArgument(f"{name}={source}", Path.cwd())
            for path in argument.matching(str(source)):
                sources += seeds_of(path)
        elif callable(getattr(source, "encode", None)):
            sources.append(open_any(source, None))
        else:
            kind = type(source).__name__
            raise BadInput(
                f"judge: {name}: a {kind} is no source; give a file, a folder, a hub id or an"
                " object with a method `encode`."
            )
    if not sources:
        raise BadInput(f"judge: {name}: has no source; give a file, a folder or a model.")
    return sources


def benchmark_data(given: str | Path | None) -> Path | DataRoot:
    """Choose the folder of benchmark data: the given one, or that of scale paper."""
    if given is not None:
        return Path(given)
    return catalog.data_root(catalog.scale("paper"), folders()[-1] / catalog.FETCHED)


def open_any(model: Encodes | str | Path, pooler: str | None) -> "Embedder":
    """Open a model as the embedder that evaluators call.

    Raises:
        BadInput: an object has no `encode`.
    """
    import numpy as np

    from csebench.model.embedder import Embedder
    from csebench.score.models import open_model

    if isinstance(model, str | Path):
        return open_model(str(model), pooler)
    if not callable(getattr(model, "encode", None)):
        kind = type(model).__name__
        raise BadInput(
            f"evaluate: model: a {kind} has no method `encode`; give a model with one, or a folder."
        )

    encode_query: Any = getattr(model, "encode_query", None)
    encode_document: Any = getattr(model, "encode_document", None)

    class Encoded(Embedder):
        """The object, seen as an embedder."""

        has_roles = callable(encode_query) and callable(encode_document)

        def vectors(self, sentences: list[str]) -> np.ndarray:
            return as_matrix(model.encode(sentences), len(sentences))

        def query_vectors(self, queries: list[str]) -> np.ndarray:
            if not self.has_roles:
                return self.vectors(queries)
            return as_matrix(encode_query(queries), len(queries))

        def document_vectors(self, documents: list[str]) -> np.ndarray:
            if not self.has_roles:
                return self.vectors(documents)
            return as_matrix(encode_document(documents), len(documents))

    return Encoded()


def as_matrix(vectors: Any, count: int) -> "np.ndarray":
    """Convert the vectors that a model gave for `count` sentences to an array, a row each.

    Raises:
        BadInput: the vectors are not numbers, or their array has another shape.
    """
    import numpy as np

    if hasattr(vectors, "detach"):  # a tensor, perhaps on a GPU
        vectors = vectors.detach().float().cpu()
    try:
        vectors = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BadInput(f"evaluate: encode gave no array of numbers: {error}.") from None
    if vectors.ndim != 2 or len(vectors) != count:
        raise BadInput(f"evaluate: encode gave shape {vectors.shape} for {count} sentences.")
    return vectors


def for_notebooks(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a public function, so that each call checks its arguments and reads files again.

    Raises:
        BadInput: the wrapper raises it if an argument has another type than its annotation.
    """
    signature = inspect.signature(function)
    config = ConfigDict(arbitrary_types_allowed=True, strict=True)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = signature.parameters[name].annotation
            try:
                TypeAdapter(kind, config=config).validate_python(value)
            except ValidationError:
                given = shortened(repr(value))
                raise BadInput(
                    f"{function.__name__}: {name}: must be {kind}, not {given}."
                ) from None
        caches.clear()
        return function(*args, **kwargs)

    return wrapper
