"""What every evaluator must do, found by file name: `pytest tests/conformance/test_evaluators.py -k NAME`.

A new file in evaluators/ needs no test of its own for this: it declares what a perfect model scores (`best`) and
between what random vectors score on data/smoke (`chance`).
"""

import csv
import json
import shutil

import numpy as np
import pytest

from csebench.base.errors import BadInput, RunFailed
from csebench.model.embedder import Embedder
from csebench.plan.registry import EVALUATORS, declaration, load, names, protocol
from csebench.score.evaluate import evaluate


def every():
    """Every evaluator with every variant, as people write them."""
    for name in names(EVALUATORS):
        d = declaration(name, EVALUATORS)
        text = f"{name}:{d.example}" if d.takes else name
        yield text
        yield from (f"{text}:{variant}" for variant in d.variants)


ALL = list(every())
WITH_TRUTH = [e for e in ALL if protocol(e).declaration.best]
PLAIN = [e for e in ALL if ":" not in e or (protocol(e).declaration.takes and e.count(":") == 1)]


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def run(finished, tmp_path):
    """Scores of a control or of a tiny encoder: `run("oracle", "sts", data)`."""

    def run(method, evaluator, data):
        from csebench.score.models import open_model

        model = open_model(str(finished(method) / "model"))
        model.cache_dir, model.artifacts_dir = tmp_path / "scratch", tmp_path / "beside"
        return load(protocol(evaluator).declaration.name, EVALUATORS)(model, data, **protocol(evaluator).params)

    return run


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_oracle_gets_the_top_score(evaluator, run, smoke_data):
    best = protocol(evaluator).declaration.best
    rows, _ = run("oracle", evaluator, smoke_data)
    assert {r["metric"] for r in rows} >= set(best)
    for row in rows:
        if row["metric"] in best:
            assert row["value"] == pytest.approx(best[row["metric"]], abs=1e-9), row


@pytest.mark.parametrize("evaluator", ALL)
def test_random_gets_chance(evaluator, run, smoke_data):
    d = protocol(evaluator).declaration
    rows, _ = run("bert" if not d.chance else "random", evaluator, smoke_data)
    assert {r["metric"] for r in rows} >= set(d.chance)
    for row in rows:
        if row["metric"] in d.chance and row["subset"] == "all":
            low, high = d.chance[row["metric"]]
            assert low <= row["value"] <= high, row
            assert not low <= d.best.get(row["metric"], np.inf) <= high, "chance says nothing"


@pytest.mark.parametrize("evaluator", ALL)
def test_rows_are_tidy(evaluator, run, smoke_data):
    """Every row has the four keys and a finite value, none twice; a task that stands for itself is declared."""
    d = protocol(evaluator).declaration
    rows, items = run("bert", evaluator, smoke_data)
    for row in rows:
        assert set(row) == {"task", "subset", "metric", "value"}
        assert type(row["value"]) is float and np.isfinite(row["value"]), row
        assert d.takes or row["task"] in (*d.tasks, "Avg."), row
    keys = [(r["task"], r["subset"], r["metric"]) for r in rows]
    assert len(set(keys)) == len(keys)
    assert all(np.asarray(values).dtype != object for values in items.values())


@pytest.mark.parametrize("evaluator", ALL)
def test_two_runs_are_byte_identical(evaluator, finished, smoke_data, tmp_path):
    model = str(finished("bert") / "model")
    for name in ("one", "two"):
        evaluate(model, [evaluator], smoke_data, tmp_path / name / "scores.json")
    one, two = (json.loads((tmp_path / n / "scores.json").read_text()) for n in ("one", "two"))
    assert json.dumps(one["scores"]) == json.dumps(two["scores"])
    assert one["evaluations"] == two["evaluations"]
    items = [(tmp_path / n / "scores.items.npz").read_bytes() for n in ("one", "two")]
    assert items[0] == items[1]


class Broken(Embedder):
    def vectors(self, sentences):
        return np.full((len(sentences), 4), np.nan, dtype=np.float32)


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_vectors_that_are_no_numbers(evaluator, smoke_data):
    wanted = protocol(evaluator)
    with pytest.raises(RunFailed, match="not finite"):
        load(wanted.declaration.name, EVALUATORS)(Broken(), smoke_data, **wanted.params)


# ---------------------------------------------------------------- data


QUOTED = {"banking77": ",", "amazon_counterfactual": "\t"}  # folders of files in which a line may be part of a row
HEADED = ("SICK", "MRPC", "qrels", "imdb", *QUOTED)
UNORDERED = (".yaml", ".json", ".md")


def shuffled(source, target):
    """A data root with the rows of every file in another order; files of equal length stay side by side."""
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        if not path.is_file() or path.suffix in UNORDERED:
            continue
        delimiter = QUOTED.get(path.parent.name)
        if delimiter:
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file, delimiter=delimiter))
        else:
            rows = path.read_bytes().removesuffix(b"\n").split(b"\n")
        header = 1 if path.parent.name in HEADED else 0
        order = np.random.default_rng(len(rows)).permutation(len(rows) - header) + header
        rows = rows[:header] + [rows[i] for i in order]
        if delimiter:
            with open(path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter=delimiter).writerows(rows)
        else:
            path.write_bytes(b"\n".join(rows) + b"\n")
    return target


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_order_of_items_does_not_matter(evaluator, run, smoke_data, tmp_path):
    """For the oracle nowhere, for random vectors nowhere but where the protocol itself goes by it and says so."""
    other = shuffled(smoke_data, tmp_path / "data")
    assert any(p.read_bytes() != (smoke_data / p.relative_to(other)).read_bytes() for p in read_by(evaluator, other))
    methods = ["oracle"] if protocol(evaluator).declaration.ordered else ["oracle", "random"]
    for method in methods:
        one, two = (run(method, evaluator, data)[0] for data in (smoke_data, other))
        assert [{**r, "value": pytest.approx(r["value"], abs=1e-9)} for r in one] == two


def read_by(evaluator, data):
    return sorted({p for pattern in protocol(evaluator).files for p in data.glob(pattern) if p.is_file()})


@pytest.mark.parametrize("evaluator", [e for e in PLAIN if protocol(e).files])
def test_missing_data(evaluator, finished, smoke_data, tmp_path):
    """Whatever file is gone, one message names it, or its pattern, and nothing is written."""
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for pattern in protocol(evaluator).files:
        for path in data.glob(pattern):
            path.unlink()
        with pytest.raises(BadInput) as error:
            evaluate(str(finished("random") / "model"), [evaluator], data, tmp_path / "out.json")
        assert str(error.value).count("\n") == 0 and str(data / pattern) in str(error.value)
        assert not (tmp_path / "out.json").exists()
        shutil.copytree(smoke_data, data, dirs_exist_ok=True)


@pytest.mark.parametrize("evaluator", PLAIN)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe no such form\n"], ids=["empty", "garbage"])
def test_malformed_data(evaluator, content, finished, smoke_data, tmp_path):
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for path in read_by(evaluator, data):
        kept = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(BadInput) as error:
            evaluate(str(finished("random") / "model"), [evaluator], data, tmp_path / "out.json")
        message = str(error.value)
        assert "\n" not in message and (str(path) in message or str(path.parent) in message), message
        assert not (tmp_path / "out.json").exists()
        path.write_bytes(kept)
