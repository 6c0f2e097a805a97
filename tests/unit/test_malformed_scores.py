"""Published score JSONs in which one value has another type, size or shape. Their digests fit.

Readers refuse them with file and key, or show them. Every key of two published files is tried with
some wrong values.
"""

import json
import random

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
PAGES = [
    "msse/table8",  # with texts that were retrieved
    "msse/table3",  # with a curve, averages and replicates
]
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
    """Return the first published score file of a page."""
    (page,) = targets.parse_target(name, SCALE)
    run, evaluator = next(iter(page.scores()))
    return ROOT / targets.score_path(run, evaluator, SCALE)


def keys(value, above=()):
    """List the paths of all keys in a value. A list stands for its first and its last item.

    Args:
        above: keys that lead to the value.
    """
    yield above
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from keys(inner, (*above, key))
    elif isinstance(value, list) and value:
        yield from keys(value[0], (*above, 0))
        yield (*above, len(value) - 1)


def with_value(content, place, value):
    """Copy a JSON with another value at a place, or without it.

    Args:
        place: keys that lead to the value; empty for the whole content.
    """
    if not place:
        return value
    copy = json.loads(json.dumps(content))
    *above, last = place
    inner = copy
    for key in above:
        inner = inner[key]
    if value is ABSENT:
        del inner[last]
    else:
        inner[last] = value
    return copy


def write(path, content):
    """Write a JSON, with a digest that fits if it is an object."""
    if isinstance(content, dict):
        content = files.with_digest(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, default=str))


def show(name):
    """Make everything that is made of the scores of a page, in the current folder."""
    csv_text(SCORES, score_rows(SCALE))
    (page,) = targets.parse_target(name, SCALE)
    for form in ("markdown", "latex", "csv", "json"):
        table_page(page).write(form)

    view = grid_view(*page.grids()[0], SCALE)
    csv_tables.comparison_records(view)
    list(csv_tables.cell_rows(view))
    for cell in view.cells:
        training_curve(cell, SCALE)


def has_many_equals(place):
    """Tell whether a key is one of many that are checked in the same way."""
    return place[:1] == ("spec",) or "argv" in place or "packages" in place


def keep_replicates_of_one_task(content):
    """Leave out the other tasks, because their replicates are checked in the same way."""
    if "replicates" in content:
        for task in list(content["replicates"]["scores"])[1:]:
            del content["replicates"]["scores"][task]


@pytest.mark.parametrize("name", PAGES)
def test_any_wrong_value_is_refused_with_its_file_or_can_be_shown(name, tmp_path, monkeypatch):
    source = first_score(name)
    content = json.loads(source.read_text())
    keep_replicates_of_one_task(content)

    rng = random.Random(0)
    accepted = []
    for number, place in enumerate(keys(content)):
        count = 4
        if has_many_equals(place):
            count = 1
        for value in rng.sample(WRONG, count):
            is_digest = place == (files.DIGEST,)
            is_no_content = not place and value is ABSENT
            if is_digest or is_no_content:
                continue
            path = tmp_path / str(number) / source.name
            write(path, with_value(content, place, value))
            try:
                read_published(path)
            except BadInput as error:
                assert str(path) in str(error)
                assert len(str(error)) < 4000
            else:
                accepted.append((place, value))

    for number, (place, value) in enumerate(rng.sample(accepted, 5)):
        folder = tmp_path / f"shown{number}"  # a new one, as scores are remembered by their folder
        write(folder / source.relative_to(ROOT), with_value(content, place, value))
        monkeypatch.chdir(folder)
        show(name)


@pytest.mark.parametrize("key", REQUIRED)
def test_a_key_that_pages_need(key, tmp_path):
    source = first_score("msse/table3")
    content = json.loads(source.read_text())
    path = tmp_path / source.name
    write(path, with_value(content, tuple(key.split(".")), ABSENT))
    with pytest.raises(BadInput) as error:
        read_published(path)
    assert str(error.value).startswith(f"{path}: {key.removesuffix('.torch')}: ")


def first_replicates(content):
    """Find the replicates of one score."""
    scores_of_task = next(iter(content["replicates"]["scores"].values()))
    return next(iter(scores_of_task.values()))["clustered"]


# What is edited in a file with replicates. Each function is named for what the file then has.


def too_few_resamples(content):
    first_replicates(content)["values"] = "AAAA"


def no_base64(content):
    first_replicates(content)["values"] = "?" * 1368


def other_letters(content):
    first_replicates(content)["values"] = "ä" * 1368


def a_unit_of_0(content):
    first_replicates(content)["unit"] = 0


def a_huge_unit(content):
    first_replicates(content)["unit"] = 1e300


def no_items(content):
    content["replicates"].pop("items")


def a_version_as_text(content):
    content["replicates"]["version"] = "1"


def replicates_of_nothing(content):
    content["replicates"] = None


def texts_that_are_nothing(content):
    content["texts"] = None


def texts_of_no_evaluator(content):
    content["texts"] = {"queries": ["q"], "retrieved": [["a"]], "printed": [[["a"]]]}


def a_step_as_text(content):
    content["training"]["curve"][0]["step"] = "3"


def a_step_without_a_loss(content):
    content["training"]["curve"][0].pop("loss")


def a_version_of_code_as_text(content):
    content["evaluations"][0]["version"] = "2"


def a_column_that_scores_csv_has(content):
    content["scores"][0]["method"] = "x"


def a_value_of_more_than_is_drawn(content):
    content["scores"][0]["value"] = 1e300


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (too_few_resamples, "clustered.values: holds 3 bytes, not the 1024"),
        (no_base64, "clustered.values: is no base64"),
        (other_letters, "clustered.values: is no base64"),
        (a_unit_of_0, "clustered.unit: Input should be greater than 0"),
        (a_huge_unit, "clustered.unit: Input should be less"),
        (no_items, "items: Field required"),
        (a_version_as_text, "version: Input should be a valid integer"),
        (replicates_of_nothing, "replicates: must be left out"),
        (texts_that_are_nothing, "texts: must be left out"),
        (texts_of_no_evaluator, "texts.printed: must have the texts of 0 models"),
        (a_step_as_text, "curve.0.step: Input should be a valid"),
        (a_step_without_a_loss, "curve.0.loss: Field required"),
        (a_version_of_code_as_text, "evaluations.0.version"),
        (a_column_that_scores_csv_has, "scores.0.method: unknown key"),
        (a_value_of_more_than_is_drawn, "scores.0.value"),
    ],
)
def test_the_message_names_the_key(edit, message, tmp_path):
    source = first_score("msse/table3")
    content = json.loads(source.read_text())
    edit(content)
    path = tmp_path / source.name
    write(path, content)
    with pytest.raises(BadInput) as error:
        read_published(path)
    assert message in str(error.value)
    assert str(error.value).endswith("and the evaluation runs again.")


def test_texts_of_other_queries_are_not_shown_side_by_side(tmp_path, monkeypatch):
    (page,) = targets.parse_target("msse/table8", SCALE)
    runs = first_runs_of_rows(page)
    assert len(runs) > 1
    for run in runs:
        path = targets.score_path(run, "neighbours", SCALE)
        content = json.loads((ROOT / path).read_text())
        if run == runs[-1]:
            content["texts"]["queries"][0] = "another query"
        write(tmp_path / path, content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"msse/table8: the texts of .* are of other queries"):
        table_page(page)


def first_runs_of_rows(page: targets.Page) -> list[str]:
    """List the first run of each row of a page that has runs."""
    paper, name = page.grids()[0]
    view = grid_view(paper, name, SCALE)
    specs_by_row = [row[0].plan.specs for row in view.rows]
    return [specs[0].run_id for specs in specs_by_row if specs]


def test_every_published_file_is_read():
    paths = sorted((ROOT / "results" / SCALE / "scores").glob("*.json"))
    assert paths
    for path in paths:
        assert read_published(path), path


NOT_EVEN_A_NAME = [[], {}, -1, True]
MALFORMED_REPORTS = [
    *(("seconds", value) for value in [*NOT_EVEN_A_NAME, "xxx"]),
    *(("gpu", value) for value in NOT_EVEN_A_NAME),
    *(("peak_gpu_mb", value) for value in [*NOT_EVEN_A_NAME, "xxx"]),
]


@pytest.mark.parametrize(("key", "value"), MALFORMED_REPORTS, ids=repr)
def test_a_malformed_report_of_a_run_is_its_reason(key, value, tmp_path, monkeypatch, capsys):
    """`csebench status` reads how many hours the run took."""
    monkeypatch.chdir(tmp_path)
    (page,) = targets.parse_target("micse/table2", "smoke")
    run = next(iter(page.runs()))
    report = tmp_path / "runs" / run / "train.json"
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps(files.with_digest({"provenance": {key: value}})))

    assert cli.main(["status", "micse/table2"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ", 1 failed, " in printed
    assert "train.json:" in printed
    assert f"provenance.{key}: " in printed
