"""What every evaluator must do.

They are found by file name: `pytest tests/conformance/test_evaluators.py -k NAME`. A new file in
evaluators/ needs no test of its own for this. It declares what a perfect model scores (`best`),
between which bounds random vectors score on data/smoke (`chance`), how its items make its scores,
and what it draws.
"""

import ast
import functools
import json
import re
import shutil
from typing import NamedTuple

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


def all_evaluators():
    """List every evaluator with every variant, as people write them."""
    names = []
    for adapter in adapter_names(EVALUATORS):
        declared = evaluator_declaration(adapter)
        name = adapter
        if declared.takes:
            name = f"{adapter}:{declared.example}"
        names.append(name)
        names += [f"{name}:{variant}" for variant in declared.variants]
    return names


def is_variant(evaluator):
    """Whether a name is `EVALUATOR:VARIANT` or `EVALUATOR:TASK:VARIANT`."""
    name_parts = 2 if protocol(evaluator).declaration.takes else 1
    return len(evaluator.split(":")) > name_parts


def is_rounded(evaluator):
    """Whether a name is a variant whose scores depend on rounding, as its declaration says."""
    return evaluator.rpartition(":")[2] in protocol(evaluator).declaration.rounding


ALL = all_evaluators()
PLAIN = [evaluator for evaluator in ALL if not is_variant(evaluator)]
WITH_TRUTH = [name for name in ALL if protocol(name).declaration.best and not is_rounded(name)]
WITH_CHANCE = [evaluator for evaluator in ALL if protocol(evaluator).declaration.chance]


class Scored(NamedTuple):
    """The result of an evaluator for a model."""

    rows: list[Score]
    items: dict[str, np.ndarray]


@pytest.fixture(scope="module")
def run(finished, tmp_path_factory):
    """Score a control once for all tests that ask for it: `run("oracle", "sts", data)`."""

    @functools.cache
    def scores(method, evaluator, data):
        model = open_model(str(finished(method) / "model"))
        model.cache_dir = tmp_path_factory.mktemp("cache")
        model.artifacts_dir = tmp_path_factory.mktemp("artifacts")
        return Scored(*run_evaluator(evaluator, model, data))

    return scores


# ---------------------------------------------------------------- files


every_file = pytest.mark.parametrize(
    "path", [*files(EVALUATORS).values(), TEMPLATE], ids=lambda path: path.stem
)


@every_file
def test_a_file_has_the_sections_of_the_template(path):
    """After the first line, every section occurs once and in the template's order."""
    assert sections(path) == sections(TEMPLATE)


def sections(path):
    """List the headings of the sections in the docstring of a module."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    _, _, text = docstring.partition("\n\n")
    return re.findall(r"^([A-Z]\w+):", text, re.MULTILINE)


@every_file
def test_a_file_draws_its_panels(path):
    """A file has functions `draw_KIND` and `draw_KIND_columns` for every panel that it declares."""
    text = path.read_text(encoding="utf-8")
    declared = read_literal(path, "DECLARATION")[0].get("panels", {})
    drawn = re.findall(r"^def draw_(\w+)\(", text, re.MULTILINE)
    assert {*declared, *(f"{kind}_columns" for kind in declared)} <= set(drawn)


def test_the_template_is_a_valid_evaluator(smoke_data):
    declared = EvaluatorDeclaration.model_validate(read_literal(TEMPLATE, "DECLARATION")[0])
    rows, items = _template.evaluate(random_model(64), smoke_data, **declared.params)
    check_items_make_scores(declared, rows, items)


# names that a module of the engine may hold as text
ALLOWED = {
    # defaults and examples
    "plan/schema/paper.py": {"sts"},
    "api.py": {"sts"},
    "study/attempt.py": {"sts"},
    "cli/verbs.py": {"beir", "mteb", "sts"},
    # a format of files, named after its package
    "cli/export.py": {"mteb"},
    "sharing/mteb_folder.py": {"mteb"},
    # sources of data, packages with versions
    "data/fetch.py": {"beir", "mteb"},
    "data/preflight.py": {"mteb"},
    "base/provenance.py": {"beir", "mteb"},
    "base/extras.py": {"beir", "mteb"},
    # what a component asks of a method
    "plan/schema/declarations.py": {"attention"},
    # what evidence/ calls a score
    "plan/catalog/evidence.py": {"stsb_dev"},
}


def test_the_engine_names_no_evaluator():
    """An evaluator declares what the engine needs to know of it."""
    names = "|".join(adapter_names(EVALUATORS))
    quoted = re.compile(rf'"({names})[:"]')
    folder = ROOT / "csebench"
    named = {}
    for path in folder.rglob("*.py"):
        evaluators = set(quoted.findall(path.read_text(encoding="utf-8")))
        if evaluators:
            named[str(path.relative_to(folder))] = evaluators
    assert named == ALLOWED


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_oracle_gets_the_top_score(evaluator, run, smoke_data):
    best = protocol(evaluator).declaration.best
    rows = [row for row in run("oracle", evaluator, smoke_data).rows if row.metric in best]
    assert {row.metric for row in rows} == set(best)
    for row in rows:
        assert row.value == pytest.approx(best[row.metric], abs=1e-9), row


@pytest.mark.parametrize("evaluator", WITH_CHANCE)
def test_random_gets_chance(evaluator, run, smoke_data):
    """The bounds say something: the best score is outside them."""
    declared = protocol(evaluator).declaration
    rows = []
    for row in run("random", evaluator, smoke_data).rows:
        if row.metric in declared.chance and row.subset == "all":
            rows.append(row)
    assert {row.metric for row in rows} == set(declared.chance)
    for row in rows:
        low, high = declared.chance[row.metric]
        assert low <= row.value <= high, row
        assert not low <= declared.best.get(row.metric, np.inf) <= high


@pytest.mark.parametrize("evaluator", ALL)
def test_rows_are_tidy_and_two_runs_byte_identical(evaluator, finished, smoke_data, tmp_path):
    """Every row has a finite value, and none occurs twice. A task that stands for itself is
    declared."""
    declared = protocol(evaluator).declaration
    model = str(finished("bert") / "model")
    file1 = tmp_path / "1.json"
    file2 = tmp_path / "2.json"

    content1 = evaluate_model(model, [evaluator], smoke_data, file1)
    content2 = evaluate_model(model, [evaluator], smoke_data, file2)

    assert json.dumps(content1["scores"]) == json.dumps(content2["scores"])
    assert content1["evaluations"] == content2["evaluations"]
    items_file1 = store.beside(file1, store.ITEMS)
    items_file2 = store.beside(file2, store.ITEMS)
    assert items_file1.read_bytes() == items_file2.read_bytes()

    rows = []
    for entry in content1["scores"]:
        rows.append(Score(entry["task"], entry["subset"], entry["metric"], entry["value"]))
    check_tidy(declared, rows)
    items = store.items(content1, file1)[evaluator]
    check_items_make_scores(declared, rows, items)
    if declared.texts:
        check_texts(declared.texts, items)


def check_tidy(declared, rows):
    keys = set()
    for row in rows:
        assert type(row.value) is float, row
        assert np.isfinite(row.value), row
        assert declared.takes or row.task in (*declared.tasks, "Avg."), row
        keys.add((row.task, row.subset, row.metric))
    assert len(keys) == len(rows)


def check_texts(declared_texts, items):
    """Check that there is a printed text for each query, label and rank."""
    queries = items[declared_texts.queries]
    retrieved = items[declared_texts.retrieved]
    printed = items[declared_texts.printed]
    ranks = retrieved.shape[1]
    assert printed.shape == (len(queries), len(declared_texts.labels), ranks)


def check_items_make_scores(declared, rows, items):
    """If the items have a rule, their mean or their rank correlation is the score of every task."""
    checked = 0
    for row in rows:
        own = sample(items, declared.items, row.task, row.metric)
        if row.subset != "all" or own is None:
            continue
        if own.gold is None:
            score = own.values.mean()
        else:
            score = spearman(own.values, own.gold)
        # SentEval averages over folds of unequal size
        assert score == pytest.approx(row.value, abs=0.01), row
        checked += 1

    has_rule = declared.items is not None
    assert (checked > 0) == has_rule
    if has_rule:
        is_correlation = declared.items.score == "spearman"
        assert is_correlation == (declared.items.gold is not None)


# ---------------------------------------------------------------- broken models


COLLAPSED = (
    "the model gives different sentences the same vector, up to rounding, and so has no score"
)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("evaluator", PLAIN)
def test_vectors_that_are_no_numbers_or_equal(evaluator, tiny_bert, smoke_data):
    """Every evaluator ends as a failed run that names the problem."""
    model = open_model(str(tiny_bert), "avg")
    set_all_weights(model, float("nan"))
    with pytest.raises(RunFailed, match="the model gives vectors that are not finite"):
        run_evaluator(evaluator, model, smoke_data)

    set_all_weights(model, 1.0)
    with pytest.raises(RunFailed, match=COLLAPSED):
        run_evaluator(evaluator, model, smoke_data)


def set_all_weights(model, value):
    """Set all weights of a model, and so all numbers of its vectors, to one value."""
    for parameter in model.encoder.parameters():
        torch.nn.init.constant_(parameter, value)


class Collapsed(Embedder):
    """Gives sentences one of a few directions, up to rounding and to their length."""

    def __init__(self, kind):
        self.kind = kind

    def vectors(self, sentences):
        rows = [self.vector(sentence) for sentence in sentences]
        return np.array(rows, dtype=np.float32)

    def vector(self, sentence):
        direction = np.random.default_rng(0).standard_normal(16)
        match self.kind:
            case "zeros":
                return 0.0 * direction
            case "short":
                return 1e-30 * direction
            case "lengths":
                return (1 + len(sentence)) * direction
            case "noise":
                noise = np.random.default_rng(list(sentence.encode())).standard_normal(16)
                return direction + 1e-6 * noise
            case "two directions":
                return np.random.default_rng(len(sentence) % 2).standard_normal(16)


@pytest.mark.parametrize("kind", ["zeros", "short", "lengths", "noise", "two directions"])
@pytest.mark.parametrize(
    "evaluator", [name for name in PLAIN if not name.startswith(("attention", "transfer"))]
)
def test_a_collapsed_model_has_no_score(evaluator, kind, smoke_data):
    with pytest.raises(RunFailed, match=COLLAPSED):
        run_evaluator(evaluator, Collapsed(kind), smoke_data)


# ---------------------------------------------------------------- changed data


WITH_HEADER = ("SICK", "MRPC", "qrels", "imdb", "banking77")  # folders whose files have a header
LINE = rb".*\n"
CSV_ROW = rb'(?:"[^"]*"|[^"\n])*\n'  # a quoted text may have line ends


def shuffle(path):
    """Put the rows of a file in another order, the same one for all files of equal length."""
    folder = path.parent.name
    row_pattern = CSV_ROW if folder == "banking77" else LINE
    rows = re.findall(row_pattern, path.read_bytes().removesuffix(b"\n") + b"\n")
    header = []
    if folder in WITH_HEADER:
        header = [rows.pop(0)]
    rng = np.random.default_rng(len(header) + len(rows))
    order = rng.permutation(len(rows))
    path.write_bytes(b"".join(header + [rows[index] for index in order]))


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_order_of_items_does_not_matter(evaluator, run, smoke_data, tmp_path):
    """The order never matters for the oracle. It matters for random vectors only if the protocol
    itself goes by the order, and its declaration says so."""
    shuffled_data = shutil.copytree(smoke_data, tmp_path / "data")
    paths = set()
    for pattern in protocol(evaluator).files:
        paths.update(shuffled_data.glob(pattern))
    for path in paths:
        if path.suffix != ".json":
            shuffle(path)
    assert any(is_changed(path, shuffled_data, smoke_data) for path in paths)

    methods = ["oracle"]
    if not protocol(evaluator).declaration.ordered:
        methods.append("random")
    for method in methods:
        rows = run(method, evaluator, smoke_data).rows
        shuffled_rows = run(method, evaluator, shuffled_data).rows
        for row, shuffled in zip(rows, shuffled_rows, strict=True):
            assert shuffled[:3] == row[:3]
            assert shuffled.value == pytest.approx(row.value, abs=1e-9), row


def is_changed(path, data, original_data):
    original = original_data / path.relative_to(data)
    return path.read_bytes() != original.read_bytes()


@pytest.fixture
def refuse(monkeypatch, tmp_path):
    """Let an evaluator refuse data before a sentence is embedded: `refuse("sts", data)`.

    Returns:
        A function that returns the message, and checks that nothing was written.
    """
    monkeypatch.setattr(models, "open_model", lambda *_: Embedder())  # it cannot embed
    out = tmp_path / "out.json"

    def message(evaluator, data):
        with pytest.raises(BadInput) as error:
            evaluate_model("a-model", [evaluator], data, out)
        assert not out.exists()
        assert "\n" not in str(error.value)
        return str(error.value)

    return message


@pytest.mark.parametrize("evaluator", PLAIN)
def test_missing_data(evaluator, refuse, smoke_data, tmp_path):
    """If all files of a pattern are missing, the message names the pattern or their folder."""
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for pattern in protocol(evaluator).files:
        paths = list(data.glob(pattern))
        for path in paths:
            path.unlink()

        message = refuse(evaluator, data)

        folder = paths[-1].parent
        assert str(data / pattern) in message or str(folder) in message, message
        for path in paths:
            restore(path, data, smoke_data)


@pytest.mark.parametrize("evaluator", PLAIN)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe no such form\n"], ids=["empty", "garbage"])
def test_malformed_data(evaluator, content, refuse, smoke_data, tmp_path):
    """The message names the file or its folder, whichever file is malformed."""
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for pattern in protocol(evaluator).files:
        for path in list(data.glob(pattern)):
            path.write_bytes(content)

            message = refuse(evaluator, data)

            assert str(path) in message or str(path.parent) in message, message
            restore(path, data, smoke_data)


def restore(path, data, smoke_data):
    shutil.copy(smoke_data / path.relative_to(data), path)
