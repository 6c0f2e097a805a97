"""csebench from Python: frames with units, any object with `encode`, nothing imported before it is needed."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import csebench
from csebench.base.errors import BadInput
from csebench.base.project import ROOT

SMOKE = ROOT / "data" / "smoke"


class Model:
    """The vector of a sentence counts its letters."""

    def encode(self, sentences):
        return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz "] for text in sentences]


def in_python(code, cwd=ROOT):
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


def test_an_unknown_attribute_is_one():
    with pytest.raises(AttributeError, match="no attribute 'score_s'"):
        csebench.score_s  # noqa: B018


def test_scores_are_those_of_the_csv(tmp_path, monkeypatch):
    """Of a few runs, in a project that is not the current folder."""
    import pandas

    mini = ROOT / "results" / "mini"
    (tmp_path / "results" / "mini" / "scores").mkdir(parents=True)
    for run in sorted({path.name.partition(".")[0] for path in (mini / "scores").glob("*.json")})[:3]:
        for path in (mini / "scores").glob(f"{run}.*"):
            shutil.copy(path, tmp_path / path.relative_to(ROOT))
    monkeypatch.setattr("csebench.api.ROOT", tmp_path)
    frame, csv = (
        csebench.scores("mini"),
        pandas.read_csv(mini / "scores.csv", low_memory=False),
    )
    csv = csv[csv["run"].isin(frame["run"])]
    assert len(frame) and list(frame.columns) == list(csv.columns)
    columns = ["run", "task", "subset", "metric", "value", "unit"]
    assert set(map(tuple, frame[columns].values)) == set(map(tuple, csv[columns].values))


def test_a_table_has_a_row_per_cell_with_units():
    frame = csebench.table("infocse/table4", scale="mini")
    assert list(frame["row"].unique()) == ["InfoCSE", "w/o pre-training"] and set(frame["unit"]) == {"fraction x 100"}
    assert frame["published"].dtype == float and frame["n"].max() == 3


@pytest.mark.parametrize("wrong", [{"target": "micse/table99"}, {"target": "table2", "scale": "minni"}])
def test_an_unknown_table_or_scale_is_named(wrong):
    with pytest.raises(BadInput, match=r"'99'|minni"):
        csebench.table(**wrong)


@pytest.mark.parametrize("wrong", [None, 3, 0.5, True, [], [None], {}, object()], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        ("scores", {}, "scale"),
        ("table", {}, "target"),
        ("table", {"target": "table2"}, "scale"),
        ("evaluate", {"data": SMOKE}, "model"),
        ("evaluate", {"model": Model()}, "data"),
        ("evaluate", {"model": Model(), "data": SMOKE}, "evaluators"),
        ("evaluate", {"model": "nowhere", "data": SMOKE}, "pooler"),
    ],
)
def test_an_argument_of_another_type_is_named(function, arguments, name, wrong):
    if (name, wrong) in (("evaluators", []), ("data", None), ("pooler", None)):
        return  # allowed
    with pytest.raises(BadInput, match=rf"^{function}: {name}: "):
        getattr(csebench, function)(**arguments, **{name: wrong})


def test_a_notebook_sees_a_score_that_changed(tmp_path, monkeypatch):
    mini = ROOT / "results" / "mini" / "scores"
    (tmp_path / "results" / "mini" / "scores").mkdir(parents=True)
    source = next(mini.glob("simcse-*.stsb_dev.json"))
    copy = tmp_path / source.relative_to(ROOT)
    shutil.copy(source, copy)
    monkeypatch.setattr("csebench.api.ROOT", tmp_path)
    before = csebench.scores("mini")
    copy.unlink()
    assert len(before) > 0 and len(csebench.scores("mini")) == 0


def test_any_object_with_encode_is_scored():
    frame = csebench.evaluate(Model(), "sts", data=SMOKE)
    assert {"STS12", "STS-B", "Avg."} <= set(frame["task"]) and set(frame["unit"]) == {"fraction"}
    assert frame["value"].between(-1, 1).all()


def test_an_object_gives_the_scores_of_the_same_vectors_in_a_file(tmp_path):
    from csebench.score.evaluate import evaluate, sentences

    texts = sentences(["sts"], SMOKE)
    np.savez(tmp_path / "vectors.npz", sentences=texts, vectors=np.array(Model().encode(texts), dtype=np.float32))
    written = evaluate(str(tmp_path / "vectors.npz"), ["sts"], SMOKE, tmp_path / "out.json")["scores"]
    assert [row["value"] for row in written] == list(csebench.evaluate(Model(), "sts", data=SMOKE)["value"])


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(BadInput, match="a dict has no method `encode`"):
        csebench.evaluate({}, data=SMOKE)
    with pytest.raises(BadInput, match="no such file"):
        csebench.evaluate(Model(), data="nowhere")
    Wrong = type("Wrong", (), {"encode": lambda self, sentences: [1.0]})
    with pytest.raises(BadInput, match=r"encode gave shape \(1,\)"):
        csebench.evaluate(Wrong(), data=SMOKE)
    for vectors in (None, "text", [[1.0], [1.0, 2.0]]):
        Wrong = type("Wrong", (), {"encode": lambda self, sentences, vectors=vectors: vectors})
        with pytest.raises(BadInput, match="encode gave"):
            csebench.evaluate(Wrong(), data=SMOKE)


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
    page = re.sub(r"\*\*|<sup>\w+</sup>", "", (ROOT / "results" / "mini" / "methods.md").read_text(encoding="utf-8"))
    cells = re.findall(
        r"^\| (.+?) \|.* \| (-?\d+\.\d\d)(?: ± (\d+\.\d\d))?(†?)(?: \[\d missing\])? \| [^|]+ \|$", page, re.M
    )
    assert cells and stored == {row: [mean, std or "NaN", str(outdated == "†")] for row, mean, std, outdated in cells}


@pytest.mark.slow
def test_the_notebook_runs():
    code = notebook_code()
    assert all(outputs for _, outputs in code)
    done = in_python("\n".join(source for source, _ in code), ROOT / "docs")
    assert done.returncode == 0, done.stderr
