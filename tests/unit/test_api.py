"""csebench from Python: frames with units, any object with `encode`, nothing imported before it
is needed."""

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
    def vectors(self, sentences):
        return np.array(
            [[text.count(letter) for letter in "abcdefghijklmnop"] for text in sentences],
            np.float32,
        )

    def encode(self, sentences):
        return self.vectors(sentences).tolist()


def in_python(code, cwd):
    env = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_import_loads_neither_pandas_nor_torch_and_tables_load_no_torch(tmp_path):
    code = "import sys, csebench; print([m for m in ('pandas', 'torch') if m in sys.modules])"
    done = in_python(
        f"{code}; csebench.table('infocse/table4'); print('torch' in sys.modules)", tmp_path
    )
    assert done.stdout.split("\n")[:2] == ["[]", "False"], done.stderr


def test_scores_are_those_of_the_project_and_read_anew(tmp_path, monkeypatch):
    folder = MINI.relative_to(ROOT) / "scores"
    (tmp_path / folder).mkdir(parents=True)
    path = min((ROOT / folder).glob("*.sts.json"))
    shutil.copy(path, tmp_path / folder)
    monkeypatch.setattr("csebench.api.folders", lambda: [tmp_path])
    frame, csv = csebench.scores("mini"), pandas.read_csv(MINI / "scores.csv", nrows=1)
    assert [*frame.columns] == [*csv.columns]
    assert [*frame["value"]] == [row["value"] for row in json.loads(path.read_text())["scores"]]
    shutil.rmtree(tmp_path / folder)
    assert len(csebench.scores("mini")) == 0


def test_a_folder_of_ones_own_has_the_published_scores_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    published = pandas.read_csv(MINI / "scores.csv")
    assert len(csebench.scores("mini")) == len(published) > 0
    assert csebench.table("micse/table3", scale="mini")["ours"].notna().any()
    # one's own file takes the place of a published one
    folder = tmp_path / "results" / "mini" / "scores"
    folder.mkdir(parents=True)
    shutil.copy(min((MINI / "scores").glob("*.sts.json")), folder)
    assert len(csebench.scores("mini")) == len(published)


def test_functions_are_listed_before_they_are_loaded(tmp_path):
    done = in_python(
        "import sys, csebench; print(dir(csebench), 'pandas' in sys.modules)", tmp_path
    )
    assert all(f"'{name}'" in done.stdout for name in csebench.__all__) and "False" in done.stdout
    assert {*csebench.__all__} == {*csebench.MODULES}


def test_a_table_has_a_row_per_cell_with_units():
    frame = csebench.table("infocse/table4", scale="mini")
    assert list(frame["row"].unique()) == ["InfoCSE", "w/o pre-training"] and set(
        frame["unit"]
    ) == {"fraction x 100"}
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
    scores, _ = run_evaluator("sts", Model(), SMOKE)
    frame = csebench.evaluate(Model(), "sts,stsb_dev,sts", data=SMOKE)  # each once
    assert set(frame["unit"]) == {"fraction"} and set(frame["evaluator"]) == {"sts", "stsb_dev"}
    assert [score.value for score in scores] == list(frame[frame["evaluator"] == "sts"]["value"])


@pytest.mark.parametrize("vectors", [[1.0], "text", [[1.0, 2.0]]], ids=str)
def test_what_encode_gives_is_checked(vectors):
    Wrong = type("Wrong", (), {"encode": lambda self, sentences: vectors})
    with pytest.raises(BadInput, match="encode gave"):
        csebench.evaluate(Wrong(), ["sts"], data=SMOKE)


def test_data_are_looked_for_where_the_environment_says_before_the_model_is_loaded(monkeypatch):
    monkeypatch.setenv("CSEBENCH_DATA", "nowhere")
    with pytest.raises(BadInput, match="nowhere/downstream"):
        csebench.evaluate("no/model")


NOTEBOOK = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_starts_with_the_numbers_of_the_study():
    """Else: jupyter nbconvert --to notebook --execute --inplace docs/notebook.ipynb"""
    shown = "".join(CODE[0]["outputs"][0]["data"]["text/plain"])
    methods = csebench.table("methods", scale="mini")
    averages = methods[methods["column"] == "Avg."].set_index("row")["ours"].dropna()
    stored = re.findall(r"^(\S.*?) {2,}(-?\d+\.\d\d) ", shown, re.M)
    assert dict(stored) == {row: f"{average:.2f}" for row, average in averages.items()}


@pytest.mark.slow
def test_the_notebook_runs():
    done = in_python("\n".join("".join(cell["source"]) for cell in CODE), ROOT / "docs")
    assert done.returncode == 0 and all(cell["outputs"] for cell in CODE), done.stderr
