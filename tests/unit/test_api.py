"""csebench from Python gives frames with units, and scores any object with `encode`. It imports
nothing before it is needed."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas
import pytest

import csebench
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.model.embedder import Embedder
from csebench.score.evaluate import run_evaluator

SMOKE = ROOT / "data" / "smoke"
MINI = ROOT / "results" / "mini"


class Model(Embedder):
    """A model whose vectors count the first letters of the alphabet."""

    def vectors(self, sentences):
        rows = []
        for text in sentences:
            rows.append([text.count(letter) for letter in "abcdefghijklmnop"])
        return np.array(rows, np.float32)

    def encode(self, sentences):
        return self.vectors(sentences).tolist()


def in_python(code, cwd):
    """Run code in another Python, with the project on its path."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


LOADS_NO_TORCH = """\
import sys, csebench
print([name for name in ("pandas", "torch") if name in sys.modules])
csebench.table("infocse/table4")
print("torch" in sys.modules)
"""


def test_import_loads_neither_pandas_nor_torch_and_tables_load_no_torch(tmp_path):
    done = in_python(LOADS_NO_TORCH, tmp_path)
    assert done.stdout.split("\n")[:2] == ["[]", "False"], done.stderr


def test_scores_are_those_of_the_project_and_read_anew(tmp_path, monkeypatch):
    folder = MINI.relative_to(ROOT) / "scores"
    (tmp_path / folder).mkdir(parents=True)
    path = min((ROOT / folder).glob("*.sts.json"))
    shutil.copy(path, tmp_path / folder)
    monkeypatch.setattr("csebench.api.folders", lambda: [tmp_path])

    frame = csebench.scores("mini")
    published = pandas.read_csv(MINI / "scores.csv", nrows=1)
    rows_of_file = json.loads(path.read_text())["scores"]
    assert list(frame.columns) == list(published.columns)
    assert list(frame["value"]) == [row["value"] for row in rows_of_file]

    shutil.rmtree(tmp_path / folder)
    assert len(csebench.scores("mini")) == 0


def test_a_folder_of_ones_own_has_the_published_scores_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    published = pandas.read_csv(MINI / "scores.csv")
    assert len(csebench.scores("mini")) == len(published) > 0
    assert csebench.table("micse/table3", scale="mini")["ours"].notna().any()
    # A file of one's own takes the place of a published one.
    folder = tmp_path / "results" / "mini" / "scores"
    folder.mkdir(parents=True)
    shutil.copy(min((MINI / "scores").glob("*.sts.json")), folder)
    assert len(csebench.scores("mini")) == len(published)


def test_functions_are_listed_before_they_are_loaded(tmp_path):
    code = "import sys, csebench; print(dir(csebench), 'pandas' in sys.modules)"
    listed = in_python(code, tmp_path).stdout
    for name in csebench.__all__:
        assert f"'{name}'" in listed
    assert "False" in listed
    assert set(csebench.__all__) == set(csebench.MODULES)


def test_a_table_has_a_row_per_cell_with_units():
    frame = csebench.table("infocse/table4", scale="mini")

    assert list(frame["row"].unique()) == ["InfoCSE", "w/o pre-training"]
    assert set(frame["unit"]) == {"fraction x 100"}
    assert frame["published"].dtype == float
    assert frame["n"].max() == 3
    assert len(csebench.table("informin_cl/table3", scale="smoke")) == 0  # of settings


TRIED = {"file": "mine.py"}

EVALUATED = {"model": Model(), "data": SMOKE}


@pytest.mark.parametrize(
    ("function", "given", "name"),
    [
        ("table", {}, "target"),
        ("try_method", TRIED, "against"),
        ("try_method", TRIED, "seeds"),
        ("try_method", TRIED, "evaluators"),
        ("evaluate", EVALUATED, "model"),
        ("evaluate", EVALUATED, "data"),
        ("evaluate", EVALUATED, "evaluators"),
        ("evaluate", EVALUATED, "pooler"),
    ],
)
def test_an_argument_of_another_type_is_named(function, given, name):
    for wrong in (b"3", [None], {}, object()):
        arguments = given | {name: wrong}
        with pytest.raises(BadInput, match=rf"^{function}: {name}: "):
            getattr(csebench, function)(**arguments)


def test_an_object_gives_the_scores_of_its_vectors():
    frame = csebench.evaluate(Model(), "sts,stsb_dev,sts", data=SMOKE)  # each once

    assert set(frame["unit"]) == {"fraction"}
    assert set(frame["evaluator"]) == {"sts", "stsb_dev"}
    scores, _ = run_evaluator("sts", Model(), SMOKE)
    of_sts = frame[frame["evaluator"] == "sts"]
    assert list(of_sts["value"]) == [score.value for score in scores]


@pytest.mark.parametrize("vectors", [[1.0], "text", [[1.0, 2.0]]], ids=str)
def test_what_encode_gives_is_checked(vectors):
    class Wrong:
        def encode(self, sentences):
            return vectors

    with pytest.raises(BadInput, match="encode gave"):
        csebench.evaluate(Wrong(), ["sts"], data=SMOKE)


def test_data_are_looked_for_where_the_environment_says_before_the_model_is_loaded(monkeypatch):
    monkeypatch.setenv("CSEBENCH_DATA", "nowhere")
    with pytest.raises(BadInput, match="nowhere/downstream"):
        csebench.evaluate("no/model")


NOTEBOOK = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_starts_with_the_numbers_of_the_study():
    """If it does not: jupyter nbconvert --to notebook --execute --inplace docs/notebook.ipynb"""
    methods = csebench.table("methods", scale="mini")
    averages = methods[methods["column"] == "Avg."].set_index("row")["ours"].dropna()
    expected = {row: f"{average:.2f}" for row, average in averages.items()}

    output = "".join(CODE[0]["outputs"][0]["data"]["text/plain"])
    row_and_average = r"^(\S.*?) {2,}(-?\d+\.\d\d) "
    assert dict(re.findall(row_and_average, output, re.M)) == expected


@pytest.mark.slow
def test_the_notebook_runs():
    cells = ["".join(cell["source"]) for cell in CODE]
    done = in_python("\n".join(cells), ROOT / "docs")
    assert done.returncode == 0, done.stderr
    for cell in CODE:
        assert cell["outputs"]
