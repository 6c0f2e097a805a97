"""Which test sets are the standard ones, and that printed values are judged by scores on these
only."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from made_up import clear, made_up, table
from score_files import STANDARD_SETS, edit_score_file, write_scores

from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, with_digest, write_json
from csebench.base.project import ROOT
from csebench.data import fetch
from csebench.plan import grids, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import DataSource, Download, hashes_file
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.paper import Claim
from csebench.report.numbers import claims, compare, standard_sets, stats
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.standard_sets import glob_as_regex, set_name
from csebench.report.pages.table import table_page
from csebench.report.words import comparisons as words
from csebench.report.words.claims import detail_text
from csebench.score.data_of_scores import EvaluationData, Scored
from csebench.score.evaluate import data_sha256

SCALE = "paper"
OTHER = "d" * 64
STS = [{"label": name, "task": task} for name, task in (("x", "STS-B"), ("y", "SICK-R"))]
COLUMNS = [
    *STS,
    {"label": "MR", "task": "MR", "evaluator": "transfer"},
    {"label": "mean", "mean": True},
]
COLUMNS += [
    {"label": "gain", "delta": "x"},
    {"label": "beir", "task": "scifact", "evaluator": "beir:scifact"},
]
PRINTED = {
    "A": ["71.00", "71.00", "71.00", "71.00", "9.00", "71.00"],
    "B": ["62.00"] * 4 + [None, "61.00"],
}
FAMILY = [{"question": "Is A better?", "primary": True, "rows": [["A", "B"]], "columns": ["x"]}]
FAMILY.append({"question": "On MR?", "rows": [["A", "B"]], "columns": ["MR"]})
METHODS = {"A": "simcse", "B": "ct"}
PAPER = {
    "name": "made_up",
    "tables": {
        "1": table(
            {r: (METHODS[r], PRINTED[r]) for r in "AB"}, COLUMNS, baseline="B", compare=FAMILY
        )
    },
}
VALUES = {"A": (0.70, 0.71, 0.72), "B": (0.60, 0.62, 0.61)}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two rows at the papers' own scale, on the standard test sets where these are known."""
    made_up(tmp_path, monkeypatch, PAPER, name=SCALE, differs="", seeds_by_size={})
    for cells in grids.plan_grid("made_up", "table1", SCALE):
        for cell in cells:
            for number, spec in enumerate(cell.specs):
                value = VALUES[cell.row.label][number]
                write_scores(spec, cell.evaluator, SCALE, [(cell.task, cell.metric, value)])
    clear()
    yield tmp_path
    clear()


def change_data(evaluator, data, labels="AB", runs=slice(None)):
    """Change the data that score files of an evaluator state."""
    for row in labels:
        for cell in grids.plan_grid("made_up", "table1", SCALE)[
            grids.find_grid("made_up", "table1").row(row)
        ]:
            for spec in cell.specs[runs] if cell.evaluator == evaluator else ():
                path = targets.score_path(spec.run_id, evaluator, SCALE)
                edit_score_file(
                    path, lambda content: content["evaluations"][0].update(data_sha256=data)
                )
    clear()


def is_standard_data(evaluator, data):
    return standard_sets.is_standard_data(evaluator, data, SCALE)


def verdicts(row="A"):
    view = grid_view("made_up", "table1", SCALE)
    return {
        cell.plan.column.label: cell.verdict
        for cell in view.rows[view.grid.row(row)]
        if cell.judged
    }


def page():
    clear()
    return table_page(targets.page("table1", SCALE, "made_up")).write("markdown")


def edit_scale(key, value):
    """Change a setting of the scale."""
    file = Path("config/paper.yaml")
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {key: value}))
    clear()


# ---------------------------------------------------------------- what is judged


def test_scores_on_standard_sets_are_judged_and_others_named(project):
    """BEIR's sets have no entry in data/test_sets.yaml: what did not come from its server is not
    known."""
    assert {label for label, verdict in verdicts().items() if verdict == stats.REPRODUCED} == {
        "x",
        "y",
        "MR",
        "mean",
    }
    text = page()
    assert "**Not known to be the standard test data: beir:scifact (data 000000000000).**" in text
    assert "6 of 6 printed values are reproduced" in text, "derived ones are not counted"
    (row,) = (
        line for line in text.splitlines() if line.startswith("| A | **71.00 ± 1.00** (71.00 ✓) |")
    )
    assert row.endswith("71.00 ± 1.00** |")


def test_printed_values_are_not_judged_on_other_data(project):
    """Nor what is derived from it; the rest of the page is."""
    change_data("sts", OTHER)
    assert verdicts() == {"MR": stats.REPRODUCED}
    text = page()
    assert (
        "Not known to be the standard test data: beir:scifact (data 000000000000), sts (data"
        " dddddddddddd)." in text
    )
    assert "2 of 2 printed values are reproduced" in text
    assert "(printed +9.00)" not in text and "A beats B here" in text
    first, second = (
        answer.comparisons[0] for answer in compare.answers(grid_view("made_up", "table1", SCALE))
    )
    assert (first.is_judged, second.is_judged) == (False, True)
    assert "| A | 71.00 |" in text.split("Printed on")[1], (
        "printed values that no cell shows are in the fold"
    )


def test_a_score_without_a_hash_is_not_judged(project):
    change_data("sts", None)
    assert "x" not in verdicts() and "sts (data of unknown hash)" in page()


def test_items_alone_tell_a_standard_set_of_another_layout(project):
    change_data("sts", OTHER)
    for path in (catalog.results_folder(SCALE) / "scores").glob("*.sts.json"):
        standard = {"items": STANDARD_SETS["sts"]["items"][0], "scores": {}}
        edit_score_file(
            path, lambda content, standard=standard: content.update(replicates=standard)
        )
    clear()
    assert verdicts()["x"] == stats.REPRODUCED


def test_a_row_of_other_data_than_its_table_is_not_judged_even_beside_a_standard_one(project):
    change_data("sts", OTHER, "B", slice(2))
    assert (verdicts("A")["x"], verdicts("B")["x"]) == (stats.REPRODUCED, stats.NOT_COMPARABLE)
    assert (
        "61.00 [2 ‡] (62.00)" in page()
        and "standard test data: beir:scifact (data 000000000000).**" in page()
    )


def test_claims_are_not_tested_on_other_data(project):
    claim = Claim(quote="better", section="1", table="1", row="A", versus=["B"], columns=["x"])
    assert claims.judge("made_up", claim, SCALE).ours.direction == claims.Direction.AGREES
    change_data("sts", OTHER)
    judged = claims.judge("made_up", claim, SCALE).ours
    assert judged.verdict == claims.ClaimVerdict.UNTESTABLE
    assert detail_text(judged) == "the test data of A is not known to be the standard set"


def test_other_scales_need_no_standard_data(project):
    """They judge no printed value: data/smoke is right there."""
    change_data("sts", OTHER)
    edit_scale("differs", "fewer steps")
    assert "standard test data" not in page()
    comparison = compare.answers(grid_view("made_up", "table1", SCALE))[0].comparisons[0]
    assert words.sentence(comparison).startswith("A beats B here")


# ---------------------------------------------------------------- which data is standard


def test_data_smoke_is_no_standard_set():
    for name in (
        "sts",
        "stsb_dev",
        "transfer",
        "transfer:fasttest",
        "geometry",
        "stsb_retrieval",
        "beir:smoke",
    ):
        assert not is_standard_data(
            name, EvaluationData(data_sha256(protocol(name), ROOT / "data" / "smoke"))
        ), name


def test_entries_are_what_the_published_study_was_scored_on():
    """Its data was compared with other copies and with the published counts."""
    found = {}
    for path in sorted((ROOT / "results" / "mini" / "scores").glob("*.json")):
        evaluator = path.name.removesuffix(".json").partition(".")[2].replace(".", ":")
        if (name := set_name(protocol(evaluator))) in STANDARD_SETS and name not in found:
            found[name] = Scored(json.loads(path.read_text()), is_outdated=False).data
            assert is_standard_data(evaluator, found[name])
            assert is_standard_data(evaluator, EvaluationData(found[name].files))
            items_suffice = is_standard_data(evaluator, EvaluationData(OTHER, found[name].items))
            assert items_suffice == (name in ("sts", "stsb_dev")), (
                "items of others do not cover all that is read"
            )
    assert set(found) == set(STANDARD_SETS)
    assert not is_standard_data("sts", EvaluationData()) and not is_standard_data(
        "beir:scifact", EvaluationData()
    )


def test_a_set_is_stated_once_and_with_known_keys(project):
    (project / "data" / "test_sets.yaml").unlink()
    (project / "data" / "test_sets.yaml").write_text(yaml.safe_dump({"sts": {"hashes": ["a"]}}))
    clear()
    with pytest.raises(BadInput, match=r"test_sets\.yaml.*hashes"):
        is_standard_data("sts", EvaluationData("a"))


def brought(root, monkeypatch):
    """`csebench fetch beir:scifact`, with data/smoke's corpus in its place."""
    downloads = [Download(url="https://a.b/scifact.zip", sum="md5:0")]
    source = DataSource(downloads=downloads, folder="beir/scifact", ready="source.json")
    monkeypatch.setattr(fetch, "sources", lambda: {"beir:scifact": source})

    def fetch_url(_, folder):
        shutil.copytree(ROOT / "data" / "smoke" / "beir" / "smoke", folder / "made" / "scifact")
        return (
            shutil.make_archive(folder / "scifact", "zip", folder / "made")
            and folder / "scifact.zip"
        )

    monkeypatch.setattr(fetch, "fetch_url", fetch_url)
    fetch.fetch_source("beir:scifact", root)


def test_what_was_fetched_is_standard(project, monkeypatch):
    root = project / catalog.FETCHED
    brought(root, monkeypatch)
    data = data_sha256(protocol("beir:scifact"), root)
    assert not is_standard_data("beir:scifact", EvaluationData(OTHER))
    clear()
    assert is_standard_data("beir:scifact", EvaluationData(data)) and is_standard_data(
        "beir:scifact:dot", EvaluationData(data)
    )
    assert not is_standard_data("beir:fiqa", EvaluationData(data))
    change_data("beir:scifact", data)
    assert verdicts()["beir"] == stats.REPRODUCED and "standard test data" not in page()
    shutil.rmtree(root / "beir")
    clear()
    assert is_standard_data("beir:scifact", EvaluationData(data)), "the notes are enough"
    root.rename(project / "elsewhere")
    clear()
    assert not is_standard_data("beir:scifact", EvaluationData(data))
    monkeypatch.setenv("CSEBENCH_DATA", str(project / "elsewhere"))
    edit_scale("data_root", None)
    assert is_standard_data("beir:scifact", EvaluationData(data)), (
        "fetched into a folder of the user's"
    )


def test_what_was_edited_after_it_was_fetched_is_not(project, monkeypatch):
    root = project / catalog.FETCHED
    brought(root, monkeypatch)
    with open(root / "beir" / "scifact" / "corpus.jsonl", "a", encoding="utf-8") as file:
        file.write('{"_id": "more", "text": "a document"}\n')
    clear()
    assert not is_standard_data(
        "beir:scifact", EvaluationData(data_sha256(protocol("beir:scifact"), root))
    )
    notes = hashes_file("beir:scifact", root)
    notes.write_text(notes.read_text().replace("corpus.jsonl", "corpus2.jsonl"))
    clear()
    with pytest.raises(BadInput, match=r"edited since it was written.*fetch the data again"):
        is_standard_data("beir:scifact", EvaluationData(OTHER))


@pytest.mark.parametrize(
    "name", ["sts", "transfer", "stsb_dev", "beir:cqadupstack", "clusters:imdb"]
)
def test_notes_give_the_hash_that_an_evaluation_states(name, project, monkeypatch):
    """Of every kind of pattern: several folders, forums, any file of a folder."""
    smoke = ROOT / "data" / "smoke"
    files = [path for path in smoke.rglob("*") if path.is_file()]
    hashes = {str(path.relative_to(smoke)): fetch.sha256(path) for path in files}
    write_json(hashes_file("senteval", project / catalog.FETCHED), with_digest({"files": hashes}))
    clear()
    given = data_sha256(protocol(name), DataRoot((project / "nothing", smoke)))
    assert is_standard_data(name, EvaluationData(given))


def test_patterns_are_those_of_glob(tmp_path):
    names = ["a/x.txt", "a/b/x.txt", "a/b/c/x.txt", "a/y.txt", "a/x_txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for pattern in ("a/*.txt", "a/**/x.txt", "a/?.txt", "a/*/x.txt", "a/x.txt"):
        expected = {str(path.relative_to(tmp_path)) for path in tmp_path.glob(pattern)}
        assert {name for name in names if re.fullmatch(glob_as_regex(pattern), name)} == expected, (
            pattern
        )
