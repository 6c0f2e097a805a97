"""Published score JSONs in which one value is of another type, size or shape, with a digest that
fits: what reads them refuses them with file and key, or shows them. Every key of two published
files is tried with some wrong values.
"""

import json
import random
from pathlib import Path

import pytest

from csebench import cli
from csebench.base import files
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.terminal import csv_text
from csebench.plan import targets
from csebench.report import csv_tables
from csebench.report.figures.training import training_curve
from csebench.report.numbers.cells import grid_view
from csebench.report.pages.table import table_page
from csebench.score.score_file import read_published
from csebench.score.scores_csv import SCORES, score_rows

SCALE = "mini"
PAGES = ["msse/table8", "msse/table3"]  # texts that were retrieved; a curve, averages, replicates
ABSENT = object()
WRONG = [None, True, -1, 0, 7, 2**70, 10**400, 1.5, -1e308, 1e308, "", "x", "a\0b", "9" * 400]
WRONG += [[], {}, [[]], {"a": 1}, [None], ["x"], [1], ABSENT]
REQUIRED = [  # keys without which a page cannot be written
    "run",
    "spec",
    "scores",
    "evaluations",
    "training",
    "provenance",
    "provenance.packages",
    "provenance.packages.torch",
    "training.provenance",
    "training.provenance.commit",
    "training.provenance.dirty_diff_sha256",
    "training.provenance.processor",
    "training.provenance.gpu",
]


def first_score(name):
    (page,) = targets.parse_target(name, SCALE)
    run, evaluator = next(iter(page.scores()))
    return ROOT / targets.score_path(run, evaluator, SCALE)


def keys(value, above=()):
    """The keys of a value and of what is in it; of a list, the first and the last item."""
    yield above
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from keys(inner, (*above, key))
    elif isinstance(value, list) and value:
        yield from keys(value[0], (*above, 0))
        yield (*above, len(value) - 1)


def with_value(content, place, value):
    copy = json.loads(json.dumps(content))
    if not place:
        return value
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    if value is ABSENT:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return copy


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            files.with_digest(content) if isinstance(content, dict) else content, default=str
        )
    )


def show(name):
    """Everything that is made of the scores of a page, at the current folder."""
    csv_text(SCORES, score_rows(SCALE))
    (page,) = targets.parse_target(name, SCALE)
    view = grid_view(*page.grids()[0], SCALE)
    for form in ("markdown", "latex", "csv", "json"):
        table_page(page).write(form)
    csv_tables.comparison_records(view)
    list(csv_tables.cell_rows(view))
    for cell in view.cells:
        training_curve(cell, SCALE)


@pytest.mark.parametrize("name", PAGES)
def test_any_wrong_value_is_refused_with_its_file_or_can_be_shown(name, tmp_path, monkeypatch):
    source = first_score(name)
    content = json.loads(source.read_text())
    for task in list(content["replicates"]["scores"])[1:] if "replicates" in content else []:
        del content["replicates"]["scores"][task]  # all are alike
    read, chosen = [], random.Random(0)
    for number, place in enumerate(keys(content)):
        # many keys, which are checked alike
        is_uniform = place[:1] == ("spec",) or {"argv", "packages"} & {*place}
        for value in chosen.sample(WRONG, 1 if is_uniform else 4):
            if place == (files.DIGEST,) or (not place and value is ABSENT):
                continue
            path = tmp_path / str(number) / source.name
            write(path, with_value(content, place, value))
            try:
                read_published(path)
            except BadInput as error:
                assert str(path) in str(error) and len(str(error)) < 4000
                continue
            read.append((place, value))
    for place, value in chosen.sample(read, 5):
        # a new folder, as scores are remembered by it
        folder = tmp_path / f"shown{len(list(tmp_path.iterdir()))}"
        write(folder / source.relative_to(ROOT), with_value(content, place, value))
        monkeypatch.chdir(folder)
        show(name)


@pytest.mark.parametrize("key", REQUIRED)
def test_a_key_that_pages_need(key, tmp_path):
    source = first_score("msse/table3")
    write(
        tmp_path / source.name,
        with_value(json.loads(source.read_text()), tuple(key.split(".")), ABSENT),
    )
    with pytest.raises(BadInput) as error:
        read_published(tmp_path / source.name)
    assert str(error.value).startswith(f"{tmp_path / source.name}: {key.removesuffix('.torch')}: ")


def first(content):
    """The replicates of one score."""
    task = next(iter(content["replicates"]["scores"].values()))
    return next(iter(task.values()))["clustered"]


EDITS = {  # in a file with replicates: what is edited, and what the message names
    "too few resamples": (
        lambda c: first(c).update(values="AAAA"),
        "clustered.values: holds 3 bytes, not the 1024",
    ),
    "no base64": (lambda c: first(c).update(values="?" * 1368), "clustered.values: is no base64"),
    "other letters": (
        lambda c: first(c).update(values="ä" * 1368),
        "clustered.values: is no base64",
    ),
    "a unit of 0": (
        lambda c: first(c).update(unit=0),
        "clustered.unit: Input should be greater than 0",
    ),
    "a huge unit": (lambda c: first(c).update(unit=1e300), "clustered.unit: Input should be less"),
    "no items": (lambda c: c["replicates"].pop("items"), "items: Field required"),
    "a version as text": (
        lambda c: c["replicates"].update(version="1"),
        "version: Input should be a valid integer",
    ),
    "nothing": (lambda c: c.update(replicates=None), "replicates: must be left out"),
    "texts that are nothing": (lambda c: c.update(texts=None), "texts: must be left out"),
    "texts of no evaluator": (
        lambda c: c.update(texts={"queries": ["q"], "retrieved": [["a"]], "printed": [[["a"]]]}),
        "texts.printed: must have the texts of 0 models",
    ),
    "a step as text": (
        lambda c: c["training"]["curve"][0].update(step="3"),
        "curve.0.step: Input should be a valid",
    ),
    "a step without a loss": (
        lambda c: c["training"]["curve"][0].pop("loss"),
        "curve.0.loss: Field required",
    ),
    "a version of code as text": (
        lambda c: c["evaluations"][0].update(version="2"),
        "evaluations.0.version",
    ),
    "a column that scores.csv has": (
        lambda c: c["scores"][0].update(method="x"),
        "scores.0.method: unknown key",
    ),
    "a value of more than is drawn": (
        lambda c: c["scores"][0].update(value=1e300),
        "scores.0.value",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_message_names_the_key(name, tmp_path):
    edit, message = EDITS[name]
    source = first_score("msse/table3")
    content = json.loads(source.read_text())
    edit(content)
    write(tmp_path / source.name, content)
    with pytest.raises(BadInput) as error:
        read_published(tmp_path / source.name)
    assert message in str(error.value) and str(error.value).endswith(
        "and the evaluation runs again."
    )


def test_texts_of_other_queries_are_not_shown_side_by_side(tmp_path, monkeypatch):
    (page,) = targets.parse_target("msse/table8", SCALE)
    first_runs = [cells[0].specs[0].run_id for cells in page_rows(page)]
    assert len(first_runs) > 1
    for run in first_runs:
        path = targets.score_path(run, "neighbours", SCALE)
        content = json.loads((ROOT / path).read_text())
        if run == first_runs[-1]:
            content["texts"]["queries"][0] = "another query"
        write(tmp_path / path, content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"msse/table8: the texts of .* are of other queries"):
        table_page(page)


def page_rows(page: targets.Page):
    paper, name = page.grids()[0]
    view = grid_view(paper, name, SCALE)
    return [[cell.plan for cell in row] for row in view.rows if row[0].plan.specs]


def test_every_published_file_is_read():
    paths = sorted(Path(ROOT / "results" / SCALE / "scores").glob("*.json"))
    assert paths and all(read_published(path) for path in paths)


@pytest.mark.parametrize("key", ["seconds", "gpu", "peak_gpu_mb"])
@pytest.mark.parametrize("value", [[], {}, "x" * 3, -1, True], ids=repr)
def test_a_malformed_report_of_a_run_is_its_reason(key, value, tmp_path, monkeypatch, capsys):
    """`csebench status` adds its hours."""
    if key == "gpu" and isinstance(value, str):
        pytest.skip("a name")
    monkeypatch.chdir(tmp_path)
    (page,) = targets.parse_target("micse/table2", "smoke")
    run = next(iter(page.runs()))
    (tmp_path / "runs" / run).mkdir(parents=True)
    report = files.with_digest({"provenance": {key: value}})
    (tmp_path / "runs" / run / "train.json").write_text(json.dumps(report))
    assert cli.main(["status", "micse/table2"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ", 1 failed, " in printed and f"train.json: provenance.{key}: " in printed
