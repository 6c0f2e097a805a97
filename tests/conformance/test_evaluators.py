"""What every evaluator must do, found by file name: `pytest tests/conformance/test_evaluators.py -k NAME`.

A new file in evaluators/ needs no test of its own for this: it declares what a perfect model scores (`best`),
between what random vectors score on data/smoke (`chance`), how its items make its scores and what it draws.
"""

import ast
import csv
import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from csebench.base.errors import BadInput, RunFailed
from csebench.base.project import ROOT
from csebench.model.embedder import Embedder
from csebench.model.metrics import spearman
from csebench.plan.declarations import EvaluatorDeclaration
from csebench.plan.registry import EVALUATORS, evaluator_declaration, files, names, panels, protocol, read_literal
from csebench.score import evaluate as module
from csebench.score import models
from csebench.score.evaluate import evaluate, run_evaluator
from csebench.score.models import open_model
from csebench.score.score_types import Score, sample
from evaluators import _template

TEMPLATE = ROOT / EVALUATORS / "_template.py"


def every():
    """Every evaluator with every variant, as people write them."""
    for name in names(EVALUATORS):
        d = evaluator_declaration(name)
        text = f"{name}:{d.example}" if d.takes else name
        yield text
        yield from (f"{text}:{variant}" for variant in d.variants)


ALL = list(every())
WITH_TRUTH = [e for e in ALL if protocol(e).declaration.best]
PLAIN = [e for e in ALL if ":" not in e or (protocol(e).declaration.takes and e.count(":") == 1)]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def run(finished, smoke_data, tmp_path_factory):
    """Scores of a control or of a tiny encoder: `run("oracle", "sts", data)`; of the project's data made once."""
    kept = {}

    def score(method, evaluator, data):
        model = open_model(str(finished(method) / "model"))
        model.cache_dir, model.artifacts_dir = (tmp_path_factory.mktemp(name) for name in ("cache", "artifacts"))
        return run_evaluator(evaluator, model, data)

    def scores(method, evaluator, data):
        if data != smoke_data:
            return score(method, evaluator, data)
        if (method, evaluator) not in kept:
            kept[method, evaluator] = score(method, evaluator, data)
        return kept[method, evaluator]

    return scores


# ---------------------------------------------------------------- the file


SOURCES = [*files(EVALUATORS).values(), TEMPLATE]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_docstring_in_the_fixed_order(path):
    """That of the template: one line, then every section once, in its order, each at the start of a line."""
    assert sections(path) == sections(TEMPLATE)


def sections(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return re.findall(r"^([A-Z]\w+):", text.partition("\n\n")[2], re.MULTILINE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_panel_has_its_function(path):
    assert {*read_literal(path, "DECLARATION").get("panels", {})} <= drawn_by(path)


def test_the_template_is_a_valid_evaluator(smoke_data):
    declared = EvaluatorDeclaration.model_validate(read_literal(TEMPLATE, "DECLARATION"))
    rows, items = _template.evaluate(Letters(), smoke_data, **declared.params)
    check_items_make_scores(declared, rows, items)


def drawn_by(path):
    """Kinds of the functions `draw_KIND` of a file."""
    functions = (n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef))
    return {name.removeprefix("draw_") for name in functions if name.startswith("draw_")}


def test_importing_an_evaluator_that_draws_imports_no_torch():
    """A page with its figure is rendered where torch is not installed."""
    modules = sorted({f"evaluators.{files(EVALUATORS)[name].stem}" for (name,) in panels().values()})
    code = f"import sys; [__import__(m) for m in {modules}]; print(*({{'torch', 'transformers'}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert modules and done.stdout.strip() == ""


ALLOWED = {  # module: the names that it may hold as text, and why
    "plan/papers.py": {"sts"},  # the evaluator of a table that names none
    "plan/declarations.py": {"attention"},  # what a component asks of a method
    "cli/verbs.py": {"beir", "sts"},  # an example of what to show; the evaluator of a command that names none
    "api.py": {"sts"},  # the evaluator of a call that names none
    "cli/attempt.py": {"sts"},  # the same
    "plan/evidence.py": {"stsb_dev"},  # what evidence/ calls a score
    "data/fetch.py": {"beir", "mteb"},  # sources that are fetched, one of them by its own package
    "data/preflight.py": {"mteb"},  # the same, to be checked before a run
    "base/provenance.py": {"beir", "mteb"},  # packages whose versions are recorded
}


def test_the_engine_names_no_evaluator():
    """What it needs to know of one, the evaluator declares."""
    folder, named = ROOT / "csebench", {}
    for path in folder.rglob("*.py"):
        texts = (n.value for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Constant))
        found = {t.partition(":")[0] for t in texts if isinstance(t, str)} & {*names(EVALUATORS)}
        if found:
            named[str(path.relative_to(folder))] = found
    assert named == ALLOWED


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_oracle_gets_the_top_score(evaluator, run, smoke_data):
    best = protocol(evaluator).declaration.best
    rows, _ = run("oracle", evaluator, smoke_data)
    assert {row.metric for row in rows} >= set(best)
    for row in rows:
        if row.metric in best:
            assert row.value == pytest.approx(best[row.metric], abs=1e-9), row


@pytest.mark.parametrize("evaluator", ALL)
def test_random_gets_chance(evaluator, run, smoke_data):
    d = protocol(evaluator).declaration
    rows, _ = run("bert" if not d.chance else "random", evaluator, smoke_data)
    assert {row.metric for row in rows} >= set(d.chance)
    for row in rows:
        if row.metric in d.chance and row.subset == "all":
            low, high = d.chance[row.metric]
            assert low <= row.value <= high, row
            assert not low <= d.best.get(row.metric, np.inf) <= high, "chance says nothing"


@pytest.mark.parametrize("evaluator", ALL)
def test_rows_are_tidy_and_two_runs_byte_identical(evaluator, finished, smoke_data, tmp_path):
    """Every row has a finite value, none is twice; a task that stands for itself is declared."""
    d, model, files = (
        protocol(evaluator).declaration,
        str(finished("bert") / "model"),
        [tmp_path / "1", tmp_path / "2"],
    )
    one, two = (evaluate(model, [evaluator], smoke_data, file.with_suffix(".json")) for file in files)
    assert json.dumps(one["scores"]) == json.dumps(two["scores"]) and one["evaluations"] == two["evaluations"]
    archive, again = (file.with_suffix(".items.npz").read_bytes() for file in files)
    assert archive == again
    with np.load(files[0].with_suffix(".items.npz")) as arrays:
        items = {name.partition("/")[2]: arrays[name] for name in arrays}
    rows = [Score(*(row[key] for key in Score._fields)) for row in one["scores"]]
    for row in rows:
        assert type(row.value) is float and np.isfinite(row.value), row
        assert d.takes or row.task in (*d.tasks, "Avg."), row
    assert len({row[:3] for row in rows}) == len(rows)
    check_items_make_scores(d, rows, items)
    if d.texts:
        queries, retrieved, printed = (items[name] for name in (d.texts.queries, d.texts.retrieved, d.texts.printed))
        assert printed.shape == (len(queries), len(d.texts.labels), retrieved.shape[1])


def check_items_make_scores(declared, rows, items):
    """Whose items have a rule, their mean or their rank correlation is the score of every task."""
    checked = 0
    for row in rows:
        if row.subset != "all" or (own := sample(items, declared.items, row.task, row.metric)) is None:
            continue
        score = own.values.mean() if own.gold is None else spearman(own.values, own.gold)
        assert score == pytest.approx(row.value, abs=0.01), row  # SentEval averages over folds of unequal size
        checked += 1
    assert bool(checked) == (declared.items is not None)


# ---------------------------------------------------------------- vectors that say nothing


class Letters(Embedder):
    """Counts of letters."""

    def vectors(self, sentences):
        return np.array([[s.count(letter) + 0.1 for letter in "aeiou"] for s in sentences], dtype=np.float32)


class Same(Embedder):
    """One number everywhere."""

    def __init__(self, value):
        self.value = value

    def vectors(self, sentences):
        return np.full((len(sentences), 4), self.value, dtype=np.float32)


def model_of(evaluator, value, tiny_bert):
    """A model that gives one value, or, for an evaluator that looks inside of it, is made of one."""
    if protocol(evaluator).declaration.best:
        return Same(value)
    model = open_model(str(tiny_bert), "avg")
    for parameter in model.encoder.parameters():
        torch.nn.init.constant_(parameter, value)
    return model


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("evaluator", PLAIN)
def test_equal_vectors(evaluator, tiny_bert, smoke_data):
    """They have a score, or end as a failed run with the one message that says what is usually wrong."""
    try:
        rows, _ = run_evaluator(evaluator, model_of(evaluator, 1.0, tiny_bert), smoke_data)
        assert rows
    except RunFailed as error:
        assert re.fullmatch(rf"{evaluator}: .* is not a finite number\. Usually the model gives .*\.", str(error))


@pytest.mark.parametrize("evaluator", PLAIN)
def test_vectors_that_are_no_numbers(evaluator, tiny_bert, smoke_data):
    with pytest.raises(RunFailed, match="the model gives vectors that are not finite"):
        run_evaluator(evaluator, model_of(evaluator, float("nan"), tiny_bert), smoke_data)


NAN, ROW = float("nan"), Score("STS-B", "all", "spearman", 0.5)
REFUSED = [  # rows, items, and what the message names, which no evaluator need check itself
    ([ROW._replace(value=NAN)], {}, "^stsb_dev: STS-B, all, spearman: the score is not a finite number"),
    ([ROW], {"STS-B/dev": np.array([0.1, NAN])}, "^stsb_dev: STS-B/dev: a per-item value is not a finite number"),
    ([ROW._replace(value=76.2)], {}, r"^evaluators/stsb_dev\.py: .*76\.2 is no spearman, which is from -1 to 1"),
    ([ROW] * 2, {}, r"^evaluators/stsb_dev\.py: .*STS-B, all, spearman stands twice"),
    ([ROW._replace(metric="entropy", value=3.0)], {}, r"3\.0 is no entropy, which is from 0 to 1"),
    ([ROW._replace(subset="dev"), ROW._replace(subset="mean", value=0.6)], {}, "its parts give 0.5"),
]


@pytest.mark.parametrize(("rows", "items", "problem"), REFUSED)
def test_scores_that_no_page_takes_fail_at_once(rows, items, problem, monkeypatch, smoke_data):
    monkeypatch.setattr(module, "load", lambda *_: lambda model, data_root: (rows, items))
    with pytest.raises(RunFailed, match=problem):
        run_evaluator("stsb_dev", None, smoke_data)


# ---------------------------------------------------------------- data


QUOTED = {"banking77": ",", "amazon_counterfactual": "\t"}  # folders of files in which a line may be part of a row
HEADED = ("SICK", "MRPC", "qrels", "imdb", *QUOTED)


def shuffle(path):
    """Another order of the rows of a file; files of equal length stay side by side."""
    delimiter, text = QUOTED.get(path.parent.name), path.read_bytes()
    rows = text.removesuffix(b"\n").split(b"\n")
    if delimiter:
        rows = list(csv.reader(io.StringIO(text.decode("utf-8"), newline=""), delimiter=delimiter))
    header = int(path.parent.name in HEADED)
    order = np.random.default_rng(len(rows)).permutation(len(rows) - header) + header
    rows = rows[:header] + [rows[i] for i in order]
    if delimiter:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=delimiter).writerows(rows)
    else:
        path.write_bytes(b"\n".join(rows) + b"\n")


@pytest.mark.parametrize("evaluator", WITH_TRUTH)
def test_order_of_items_does_not_matter(evaluator, run, smoke_data, tmp_path):
    """For the oracle nowhere, for random vectors nowhere but where the protocol itself goes by it and says so."""
    other = shutil.copytree(smoke_data, tmp_path / "data")
    for path in other.rglob("*"):
        if path.is_file() and path.suffix not in (".yaml", ".json", ".md"):
            shuffle(path)
    assert any(p.read_bytes() != (smoke_data / p.relative_to(other)).read_bytes() for p in read_by(evaluator, other))
    methods = ["oracle"] if protocol(evaluator).declaration.ordered else ["oracle", "random"]
    for method in methods:
        scores, shuffled_scores = (run(method, evaluator, data)[0] for data in (smoke_data, other))
        assert [score._replace(value=pytest.approx(score.value, abs=1e-9)) for score in scores] == shuffled_scores


def read_by(evaluator, data):
    return sorted({p for pattern in protocol(evaluator).files for p in data.glob(pattern) if p.is_file()})


class Untouched(Embedder):
    def vectors(self, sentences):
        pytest.fail("sentences were embedded before all data had been read")


@pytest.mark.parametrize("evaluator", PLAIN)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe no such form\n"], ids=["missing", "empty", "garbage"])
def test_missing_or_malformed_data(evaluator, content, monkeypatch, smoke_data, tmp_path):
    """Whatever file, or all of a pattern, one message names it, before a sentence is embedded; nothing is written."""
    monkeypatch.setattr(models, "open_model", lambda *_: Untouched())
    data = shutil.copytree(smoke_data, tmp_path / "data")
    for pattern in protocol(evaluator).files:
        paths = list(data.glob(pattern))
        for group in [paths] if content is None else [[path] for path in paths]:
            kept = {path: path.read_bytes() for path in group}
            for path in group:
                path.unlink() if content is None else path.write_bytes(content)
            with pytest.raises(BadInput) as error:
                evaluate("a-model", [evaluator], data, tmp_path / "out.json")
            message, named = str(error.value), (data / pattern if content is None else path, path.parent)
            assert "\n" not in message and any(str(name) in message for name in named), message
            assert not (tmp_path / "out.json").exists()
            for path, before in kept.items():
                path.write_bytes(before)
