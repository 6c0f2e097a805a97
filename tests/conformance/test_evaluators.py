"""What every evaluator must do, found by file name: `pytest tests/conformance/test_evaluators.py -k
NAME`.

A new file in evaluators/ needs no test of its own for this: it declares what a perfect model scores
(`best`), between what random vectors score on data/smoke (`chance`), how its items make its scores
and what it draws.
"""

import ast
import functools
import json
import re
import shutil

import numpy as np
import pytest
import torch
from controls import random_model

from csebench.base.errors import BadInput, RunFailed
from csebench.base.project import ROOT
from csebench.model.embedder import Embedder
from csebench.model.metrics import spearman
from csebench.plan.catalog.registry import (
    EVALUATORS,
    adapter_names,
    evaluator_declaration,
    files,
    protocol,
    read_literal,
)
from csebench.plan.schema.declarations import EvaluatorDeclaration
from csebench.score import models, store
from csebench.score.evaluate import evaluate_model, run_evaluator
from csebench.score.models import open_model
from csebench.score.score_types import Score, sample
from evaluators import _template

TEMPLATE = ROOT / EVALUATORS / "_template.py"


def every():
    """Every evaluator with every variant, as people write them."""
    for name in adapter_names(EVALUATORS):
        d = evaluator_declaration(name)
        text = f"{name}:{d.example}" if d.takes else name
        yield text
        yield from (f"{text}:{variant}" for variant in d.variants)


ALL = list(every())
WITH_TRUTH = [e for e in ALL if protocol(e).declaration.best]
PLAIN = [e for e in ALL if ":" not in e or (protocol(e).declaration.takes and e.count(":") == 1)]


@pytest.fixture(scope="module")
def run(finished, tmp_path_factory):
    """Scores of a control or of a tiny encoder, made once: `run("oracle", "sts", data)`."""

    @functools.cache
    def scores(method, evaluator, data):
        model = open_model(str(finished(method) / "model"))
        model.cache_dir, model.artifacts_dir = (
            tmp_path_factory.mktemp(name) for name in ("cache", "artifacts")
        )
        return run_evaluator(evaluator, model, data)

    return scores


@pytest.mark.parametrize(
    "path", [*files(EVALUATORS).values(), TEMPLATE], ids=lambda path: path.stem
)
def test_a_file_has_the_sections_of_the_template_and_draws_its_panels(path):
    """Behind the first line every section once, in this order; for every panel a function
    `draw_KIND`."""
    assert sections(path) == sections(TEMPLATE)
    drawn = re.findall(r"^def draw_(\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*read_literal(path, "DECLARATION")[0].get("panels", {})} <= {*drawn}


def sections(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return re.findall(r"^([A-Z]\w+):", text.partition("\n\n")[2], re.MULTILINE)


def test_the_template_is_a_valid_evaluator(smoke_data):
    declared = EvaluatorDeclaration.model_validate(read_literal(TEMPLATE, "DECLARATION")[0])
    rows, items = _template.evaluate(random_model(64), smoke_data, **declared.params)
    check_items_make_scores(declared, rows, items)


# module: names that it may hold as text: defaults and examples, sources of data, packages with
# versions
ALLOWED = {
    **{
        "plan/schema/paper.py": {"sts"},
        "api.py": {"sts"},
        "study/attempt.py": {"sts"},
        "cli/verbs.py": {"beir", "sts"},
    },
    **{
        "data/fetch.py": {"beir", "mteb"},
        "data/preflight.py": {"mteb"},
        "base/provenance.py": {"beir", "mteb"},
    },
    "plan/schema/declarations.py": {"attention"},  # what a component asks of a method
    "plan/catalog/evidence.py": {"stsb_dev"},  # what evidence/ calls a score
}


def test_the_engine_names_no_evaluator():
    """What it needs to know of one, the evaluator declares."""
    folder, quoted = ROOT / "csebench", re.compile(rf'"({"|".join(adapter_names(EVALUATORS))})[:"]')
    named = {
        path: {*quoted.findall(path.read_text(encoding="utf-8"))} for path in folder.rglob("*.py")
    }
    assert {
        str(path.relative_to(folder)): evaluators
        for path, evaluators in named.items()
        if evaluators
    } == ALLOWED


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_oracle_gets_the_top_score(evaluator, run, smoke_data):
    best = protocol(evaluator).declaration.best
    rows = [row for row in run("oracle", evaluator, smoke_data)[0] if row.metric in best]
    assert {row.metric for row in rows} == {*best}
    assert rows == [row._replace(value=pytest.approx(best[row.metric], abs=1e-9)) for row in rows]


@pytest.mark.parametrize("evaluator", [e for e in ALL if protocol(e).declaration.chance])
def test_random_gets_chance(evaluator, run, smoke_data):
    d = protocol(evaluator).declaration
    rows = [
        row
        for row in run("random", evaluator, smoke_data)[0]
        if row.metric in d.chance and row.subset == "all"
    ]
    assert {row.metric for row in rows} == {*d.chance}
    for row in rows:
        low, high = d.chance[row.metric]
        assert low <= row.value <= high, row
        assert not low <= d.best.get(row.metric, np.inf) <= high, "chance says nothing"


@pytest.mark.parametrize("evaluator", ALL)
def test_rows_are_tidy_and_two_runs_byte_identical(evaluator, finished, smoke_data, tmp_path):
    """Every row has a finite value, none is twice; a task that stands for itself is declared."""
    d, model = protocol(evaluator).declaration, finished("bert") / "model"
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    one, two = (evaluate_model(str(model), [evaluator], smoke_data, file) for file in files)
    assert (
        json.dumps(one["scores"]) == json.dumps(two["scores"])
        and one["evaluations"] == two["evaluations"]
    )
    assert len({store.beside(file, store.ITEMS).read_bytes() for file in files}) == 1
    items = store.items(one, files[0])[evaluator]
    rows = [Score(*(row[key] for key in Score._fields)) for row in one["scores"]]
    for row in rows:
        assert type(row.value) is float and np.isfinite(row.value), row
        assert d.takes or row.task in (*d.tasks, "Avg."), row
    assert len({row[:3] for row in rows}) == len(rows)
    check_items_make_scores(d, rows, items)
    if d.texts:
        queries, retrieved, printed = (
            items[name] for name in (d.texts.queries, d.texts.retrieved, d.texts.printed)
        )
        assert printed.shape == (len(queries), len(d.texts.labels), retrieved.shape[1])


def check_items_make_scores(declared, rows, items):
    """Whose items have a rule, their mean or their rank correlation is the score of every task."""
    checked = 0
    for row in rows:
        if (
            row.subset != "all"
            or (own := sample(items, declared.items, row.task, row.metric)) is None
        ):
            continue
        score = own.values.mean() if own.gold is None else spearman(own.values, own.gold)
        # SentEval averages over folds of unequal size
        assert score == pytest.approx(row.value, abs=0.01), row
        checked += 1
    assert bool(checked) == (declared.items is not None)
    assert not checked or (declared.items.score == "spearman") == (declared.items.gold is not None)


def fill(model, value):
    """Let all weights of a model, and so all numbers of its vectors, be one value."""
    for parameter in model.encoder.parameters():
        torch.nn.init.constant_(parameter, value)


COLLAPSED = (
    "the model gives different sentences the same vector, up to rounding, and so has no score"
)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("evaluator", PLAIN)
def test_vectors_that_are_no_numbers_or_equal(evaluator, tiny_bert, smoke_data):
    """They end as a failed run that says so, whichever the evaluator."""
    model = open_model(str(tiny_bert), "avg")
    fill(model, float("nan"))
    with pytest.raises(RunFailed, match="the model gives vectors that are not finite"):
        run_evaluator(evaluator, model, smoke_data)
    fill(model, 1.0)
    with pytest.raises(RunFailed, match=COLLAPSED):
        run_evaluator(evaluator, model, smoke_data)


class Collapsed(Embedder):
    """Gives sentences one of a few directions, up to rounding and to their length."""

    def __init__(self, kind):
        self.kind = kind

    def vectors(self, sentences):
        rows = []
        for sentence in sentences:
            seed = len(sentence) % 2 if self.kind == "two directions" else 0
            direction = np.random.default_rng(seed).standard_normal(16)
            noise = np.random.default_rng(list(sentence.encode())).standard_normal(16)
            size = {"zeros": 0.0, "lengths": float(1 + len(sentence)), "short": 1e-30}.get(
                self.kind, 1.0
            )
            rows.append(size * direction + (1e-6 * noise if self.kind == "noise" else 0.0))
        return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize("kind", ["zeros", "short", "lengths", "noise", "two directions"])
@pytest.mark.parametrize(
    "evaluator", [e for e in PLAIN if not e.startswith(("attention", "transfer"))]
)
def test_a_collapsed_model_has_no_score(evaluator, kind, smoke_data):
    with pytest.raises(RunFailed, match=COLLAPSED):
        run_evaluator(evaluator, Collapsed(kind), smoke_data)


HEADED = ("SICK", "MRPC", "qrels", "imdb", "banking77")  # folders of files with a header


def shuffle(path):
    """Another order of the rows of a file; files of equal length stay side by side."""
    # in quotes are line ends
    row = rb'(?:"[^"]*"|[^"\n])*\n' if path.parent.name == "banking77" else rb".*\n"
    rows = re.findall(row, path.read_bytes().removesuffix(b"\n") + b"\n")
    header = int(path.parent.name in HEADED)
    order = np.random.default_rng(len(rows)).permutation(len(rows) - header) + header
    path.write_bytes(b"".join([*rows[:header], *(rows[i] for i in order)]))


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_order_of_items_does_not_matter(evaluator, run, smoke_data, tmp_path):
    """For the oracle nowhere, for random vectors nowhere but where the protocol itself goes by
    it and says so."""
    other = shutil.copytree(smoke_data, tmp_path / "data")
    read = {path for pattern in protocol(evaluator).files for path in other.glob(pattern)}
    for path in read:
        if path.suffix != ".json":
            shuffle(path)
    assert any(
        path.read_bytes() != (smoke_data / path.relative_to(other)).read_bytes() for path in read
    )
    methods = ["oracle"] if protocol(evaluator).declaration.ordered else ["oracle", "random"]
    for method in methods:
        scores, shuffled_scores = (run(method, evaluator, data)[0] for data in (smoke_data, other))
        assert [
            score._replace(value=pytest.approx(score.value, abs=1e-9)) for score in scores
        ] == shuffled_scores


@pytest.mark.parametrize("evaluator", PLAIN)
@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe no such form\n"], ids=["missing", "empty", "garbage"]
)
def test_missing_or_malformed_data(evaluator, content, monkeypatch, smoke_data, tmp_path):
    """Whatever file, or all of a pattern, one message names it, before a sentence is embedded;
    nothing is written."""
    monkeypatch.setattr(models, "open_model", lambda *_: Embedder())  # it cannot embed
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for pattern in protocol(evaluator).files:
        paths = list(data.glob(pattern))
        for group in [paths] if content is None else [[path] for path in paths]:
            for path in group:
                path.unlink() if content is None else path.write_bytes(content)
            with pytest.raises(BadInput) as error:
                evaluate_model("a-model", [evaluator], data, tmp_path / "out.json")
            message, named = (
                str(error.value),
                (data / pattern if content is None else path, path.parent),
            )
            assert "\n" not in message and any(str(name) in message for name in named), message
            assert not (tmp_path / "out.json").exists()
            for path in group:
                shutil.copy(smoke_data / path.relative_to(data), path)
