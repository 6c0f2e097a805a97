"""csebench from Python: frames with units, any object with `encode`, nothing imported before it is needed."""

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

SMOKE = ROOT / "data" / "smoke"
MINI = ROOT / "results" / "mini"


class Model:
    """The vector of a sentence counts its letters."""

    def encode(self, sentences):
        return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz "] for text in sentences]


def in_python(code, cwd):
    env = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "HF_HUB_OFFLINE": "1"}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_import_loads_neither_pandas_nor_torch_and_tables_load_no_torch(tmp_path):
    """From any folder."""
    code = (
        "import sys, csebench; print([m for m in ('pandas', 'torch') if m in sys.modules]);"
        "csebench.table('infocse/table4'); print('torch' in sys.modules)"
    )
    done = in_python(code, tmp_path)
    assert done.stdout.split("\n")[:2] == ["[]", "False"], done.stderr


def test_scores_are_those_of_the_csv_and_read_anew(tmp_path, monkeypatch):
    """Of a few runs, in a project that is not the current folder."""
    (tmp_path / "results" / "mini" / "scores").mkdir(parents=True)
    for run in sorted({path.name.partition(".")[0] for path in (MINI / "scores").glob("*.json")})[:3]:
        for path in (MINI / "scores").glob(f"{run}.*"):
            shutil.copy(path, tmp_path / path.relative_to(ROOT))
    monkeypatch.setattr("csebench.api.folders", lambda: [tmp_path])
    frame, csv = csebench.scores("mini"), pandas.read_csv(MINI / "scores.csv", low_memory=False)
    csv = csv[csv["run"].isin(frame["run"])]
    assert len(frame) and list(frame.columns) == list(csv.columns)
    columns = ["run", "task", "subset", "metric", "value", "unit"]
    assert set(map(tuple, frame[columns].values)) == set(map(tuple, csv[columns].values))
    shutil.rmtree(tmp_path / "results" / "mini" / "scores")
    assert len(csebench.scores("mini")) == 0


def test_a_table_has_a_row_per_cell_with_units():
    frame = csebench.table("infocse/table4", scale="mini")
    assert list(frame["row"].unique()) == ["InfoCSE", "w/o pre-training"] and set(frame["unit"]) == {"fraction x 100"}
    assert frame["published"].dtype == float and frame["n"].max() == 3
    assert len(csebench.table("informin_cl/table3", scale="smoke")) == 0  # of settings


def test_an_argument_of_another_type_is_named():
    given = {"model": Model(), "data": SMOKE}
    for function, arguments, name in (
        ("table", {}, "target"),
        *(("try_method", {"file": "mine.py"}, name) for name in ("against", "seeds", "evaluators")),
        *(("evaluate", given, name) for name in ("model", "data", "evaluators", "pooler")),
    ):
        for wrong in (b"3", [None], {}, object()):
            with pytest.raises(BadInput, match=rf"^{function}: {name}: "):
                getattr(csebench, function)(**arguments | {name: wrong})


def test_an_object_gives_the_scores_of_its_vectors():
    from csebench.model.embedder import Embedder
    from csebench.score.evaluate import run_evaluator

    class Vectors(Embedder):
        def vectors(self, sentences):
            return np.array(Model().encode(sentences), dtype=np.float32)

    scores, _ = run_evaluator("sts", Vectors(), SMOKE)
    frame = csebench.evaluate(Model(), "sts,stsb_dev", data=SMOKE)
    assert set(frame["unit"]) == {"fraction"} and set(frame["evaluator"]) == {"sts", "stsb_dev"}
    assert [score.value for score in scores] == list(frame[frame["evaluator"] == "sts"]["value"])


def test_data_are_looked_for_where_the_environment_says(monkeypatch):
    monkeypatch.setenv("CSEBENCH_DATA", str(SMOKE))
    assert len(csebench.evaluate(Model(), "stsb_dev")) and len(csebench.evaluate(Model(), ["stsb_dev"]))


@pytest.mark.parametrize("vectors", [[1.0], "text", [[1.0, 2.0]]], ids=str)
def test_what_encode_gives_is_checked(vectors):
    Wrong = type("Wrong", (), {"encode": lambda self, sentences: vectors})
    with pytest.raises(BadInput, match="encode gave"):
        csebench.evaluate(Wrong(), data=SMOKE)


def test_missing_data_are_refused_before_the_model_is_loaded():
    with pytest.raises(BadInput, match="no such file"):
        csebench.evaluate("no/model", data="nowhere")


def notebook_code():
    """(source, outputs) of each cell of code."""
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    return [("".join(cell["source"]), cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_starts_with_the_numbers_of_the_page():
    """Stale after results/mini/methods.md has changed: jupyter nbconvert --to notebook --execute --inplace
    docs/notebook.ipynb"""
    (_, (output,)), *_ = notebook_code()
    line = re.compile(r"^(\S.*?) {2,}(-?\d+\.\d\d) +(\S+) +\d+ +(True|False)$", re.M)
    stored = {row: numbers for row, *numbers in line.findall("".join(output["data"]["text/plain"]))}
    page = (MINI / "methods.md").read_text(encoding="utf-8").partition("<details>")[0].replace("**", "")
    cell = r"^\| (.+?) \|.* \| (-?\d+\.\d\d)(?: ± (\d+\.\d\d))?(†?)(?: \[\d missing\])? \| [^|]+ \|$"
    cells = re.findall(cell, page, re.M)
    assert cells and stored == {row: [mean, std or "NaN", str(outdated == "†")] for row, mean, std, outdated in cells}


@pytest.mark.slow
def test_the_notebook_runs():
    code = notebook_code()
    assert all(outputs for _, outputs in code)
    done = in_python("\n".join(source for source, _ in code), ROOT / "docs")
    assert done.returncode == 0, done.stderr
