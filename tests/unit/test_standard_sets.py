"""Standard test sets: which data is standard. Printed values are judged only by scores on it."""

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
COLUMNS = [
    {"label": "x", "task": "STS-B"},
    {"label": "y", "task": "SICK-R"},
    {"label": "MR", "task": "MR", "evaluator": "transfer"},
    {"label": "mean", "mean": True},
    {"label": "gain", "delta": "x"},
    {"label": "beir", "task": "scifact", "evaluator": "beir:scifact"},
]
ROWS = {
    "A": ("simcse", ["71.00", "71.00", "71.00", "71.00", "9.00", "71.00"]),
    "B": ("ct", ["62.00", "62.00", "62.00", "62.00", None, "61.00"]),
}
QUESTIONS = [
    {"question": "Is A better?", "primary": True, "rows": [["A", "B"]], "columns": ["x"]},
    {"question": "On MR?", "rows": [["A", "B"]], "columns": ["MR"]},
]
PAPER = {
    "name": "made_up",
    "tables": {"1": table(ROWS, COLUMNS, baseline="B", compare=QUESTIONS)},
}
VALUES = {"A": (0.70, 0.71, 0.72), "B": (0.60, 0.62, 0.61)}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Score two rows at the papers' own scale, on the standard test sets if these are known."""
    made_up(tmp_path, monkeypatch, PAPER, name=SCALE, differs="", seeds_by_size={})
    for cells in grids.plan_grid("made_up", "table1", SCALE):
        for cell in cells:
            for seed, spec in enumerate(cell.specs):
                value = VALUES[cell.row.label][seed]
                write_scores(spec, cell.evaluator, SCALE, [(cell.task, cell.metric, value)])
    clear()
    yield tmp_path
    clear()


def change_data(evaluator, data, labels="AB", runs=slice(None)):
    """Change the data that score files of an evaluator state.

    Args:
        labels: of the rows.
        runs: of each cell of these rows.
    """

    def state(content):
        content["evaluations"][0]["data_sha256"] = data

    rows = grids.plan_grid("made_up", "table1", SCALE)
    for label in labels:
        for cell in rows[grids.find_grid("made_up", "table1").row(label)]:
            if cell.evaluator != evaluator:
                continue
            for spec in cell.specs[runs]:
                edit_score_file(targets.score_path(spec.run_id, evaluator, SCALE), state)
    clear()


def is_standard_data(evaluator, data):
    """Tell whether data is standard at the papers' own scale."""
    return standard_sets.is_standard_data(evaluator, data, SCALE)


def verdicts(row="A"):
    """Collect the verdicts of a row on its judged cells, by column."""
    view = grid_view("made_up", "table1", SCALE)
    verdicts_by_column = {}
    for cell in view.rows[view.grid.row(row)]:
        if cell.judged:
            verdicts_by_column[cell.plan.column.label] = cell.verdict
    return verdicts_by_column


def page():
    """Write the page of the table."""
    clear()
    return table_page(targets.page("table1", SCALE, "made_up")).write("markdown")


def edit_scale(key, value):
    """Change a setting of the scale."""
    file = Path("config/paper.yaml")
    settings = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(settings | {key: value}))
    clear()


def first_comparisons():
    """Make the first comparison of each question of the table."""
    answers = compare.answers(grid_view("made_up", "table1", SCALE))
    return [answer.comparisons[0] for answer in answers]


# ---------------------------------------------------------------- what is judged


def test_scores_on_standard_sets_are_judged_and_others_named(project):
    """BEIR's sets have no entry in data/test_sets.yaml, so data is known only if it came from
    BEIR's server."""
    judged = {label for label, verdict in verdicts().items() if verdict == stats.INCONCLUSIVE}
    assert judged == {"x", "y", "MR", "mean"}
    text = page()
    assert "**Not known to be the standard test data: beir:scifact (data 000000000000).**" in text
    assert "0 of 6 printed values agree with our runs; 0 differ, 6 inconclusive" in text, (
        "derived ones are not counted"
    )

    beginning = "| A | **71.00 ± 1.00** (71.00 ~ +0.00) |"
    (row,) = [line for line in text.splitlines() if line.startswith(beginning)]
    assert row.endswith("71.00 ± 1.00** |")


def test_printed_values_are_not_judged_on_other_data(project):
    """Values that are derived from them are not judged either. The rest of the page is."""
    change_data("sts", OTHER)
    assert verdicts() == {"MR": stats.INCONCLUSIVE}
    text = page()
    not_known = (
        "Not known to be the standard test data: beir:scifact (data 000000000000), sts (data"
        " dddddddddddd)."
    )
    assert not_known in text
    assert "0 of 2 printed values agree with our runs; 0 differ, 2 inconclusive" in text
    assert "Printed: +9.00" not in text
    assert "A is higher than B" in text
    on_sts, on_transfer = first_comparisons()
    assert not on_sts.is_judged
    assert on_transfer.is_judged
    folded = text.split("The printed values (")[1]
    assert "| A | 71.00 |" in folded, "printed values that no cell shows are in the fold"


def test_a_score_without_a_hash_is_not_judged(project):
    change_data("sts", None)
    assert "x" not in verdicts()
    assert "sts (data of unknown hash)" in page()


def test_items_alone_tell_a_standard_set_of_another_layout(project):
    def add_replicates_of_the_standard_items(content):
        content["replicates"] = {"items": STANDARD_SETS["sts"]["items"][0], "scores": {}}

    change_data("sts", OTHER)
    for path in (catalog.results_folder(SCALE) / "scores").glob("*.sts.json"):
        edit_score_file(path, add_replicates_of_the_standard_items)
    clear()
    assert verdicts()["x"] == stats.INCONCLUSIVE


def test_a_row_of_other_data_than_its_table_is_not_judged_even_beside_a_standard_one(project):
    change_data("sts", OTHER, labels="B", runs=slice(2))
    assert verdicts("A")["x"] == stats.INCONCLUSIVE
    assert verdicts("B")["x"] == stats.NOT_COMPARABLE
    text = page()
    assert "61.00 [2 ‡] (62.00)" in text
    assert "standard test data: beir:scifact (data 000000000000).**" in text


def test_claims_are_not_tested_on_other_data(project):
    claim = Claim(quote="better", section="1", table="1", row="A", versus=["B"], columns=["x"])
    on_standard_data = claims.judge("made_up", claim, SCALE).ours
    assert on_standard_data.direction == claims.Direction.AGREES

    change_data("sts", OTHER)
    on_other_data = claims.judge("made_up", claim, SCALE).ours
    assert on_other_data.verdict == claims.ClaimVerdict.CANNOT_TELL
    reason = "the test data of A is not known to be the standard set"
    assert detail_text(on_other_data) == reason


def test_other_scales_need_no_standard_data(project):
    """They judge no printed value, so that data/smoke will do."""
    change_data("sts", OTHER)
    edit_scale("differs", "fewer steps")
    assert "standard test data" not in page()
    on_sts, _ = first_comparisons()
    assert words.sentence(on_sts).startswith("A is higher than B")


# ---------------------------------------------------------------- which data is standard


@pytest.mark.parametrize(
    "name",
    [
        "sts",
        "stsb_dev",
        "transfer",
        "transfer:fasttest",
        "geometry",
        "stsb_retrieval",
        "beir:smoke",
    ],
)
def test_data_smoke_is_no_standard_set(name):
    smoke = EvaluationData(data_sha256(protocol(name), ROOT / "data" / "smoke"))
    assert not is_standard_data(name, smoke)


def published_data():
    """Read the data that the published study was scored on.

    Returns:
        {entry in data/test_sets.yaml: (an evaluator that reads this set, the data)}.
    """
    found = {}
    for path in sorted((ROOT / "results" / "mini" / "scores").glob("*.json")):
        evaluator = path.name.removesuffix(".json").partition(".")[2].replace(".", ":")
        name = set_name(protocol(evaluator))
        if name in STANDARD_SETS and name not in found:
            content = json.loads(path.read_text())
            found[name] = (evaluator, Scored(content, is_outdated=False).data)
    return found


def test_entries_are_what_the_published_study_was_scored_on():
    """Its data was compared with other copies and with the published counts."""
    found = published_data()
    assert set(found) == set(STANDARD_SETS)
    for name, (evaluator, data) in found.items():
        assert is_standard_data(evaluator, data)
        assert is_standard_data(evaluator, EvaluationData(data.files))
        items_suffice = is_standard_data(evaluator, EvaluationData(OTHER, data.items))
        # items of other evaluators do not cover all that is read
        assert items_suffice == (name in ("sts", "stsb_dev")), name


@pytest.mark.parametrize("name", ["sts", "beir:scifact"])
def test_data_that_is_not_stated_is_no_standard_set(name):
    assert not is_standard_data(name, EvaluationData())


def test_a_set_is_stated_once_and_with_known_keys(project):
    file = project / "data" / "test_sets.yaml"
    file.unlink()
    file.write_text(yaml.safe_dump({"sts": {"hashes": ["a"]}}))
    clear()
    with pytest.raises(BadInput, match=r"test_sets\.yaml.*hashes"):
        is_standard_data("sts", EvaluationData("a"))


def fetch_scifact(root, monkeypatch):
    """Run `csebench fetch beir:scifact`, with the corpus of data/smoke as the download."""
    downloads = [Download(url="https://a.b/scifact.zip", sum="md5:0")]
    source = DataSource(downloads=downloads, folder="beir/scifact", ready="source.json")
    monkeypatch.setattr(fetch, "sources", lambda: {"beir:scifact": source})

    def fetch_url(_, folder):
        shutil.copytree(ROOT / "data" / "smoke" / "beir" / "smoke", folder / "made" / "scifact")
        shutil.make_archive(folder / "scifact", "zip", folder / "made")
        return folder / "scifact.zip"

    monkeypatch.setattr(fetch, "fetch_url", fetch_url)
    fetch.fetch_source("beir:scifact", root)


def test_what_was_fetched_is_standard(project, monkeypatch):
    root = project / catalog.FETCHED
    fetch_scifact(root, monkeypatch)
    fetched = EvaluationData(data_sha256(protocol("beir:scifact"), root))
    assert not is_standard_data("beir:scifact", EvaluationData(OTHER))
    clear()
    assert is_standard_data("beir:scifact", fetched)
    assert is_standard_data("beir:scifact:dot", fetched)
    assert not is_standard_data("beir:fiqa", fetched)

    change_data("beir:scifact", fetched.files)
    assert verdicts()["beir"] == stats.INCONCLUSIVE
    assert "standard test data" not in page()

    shutil.rmtree(root / "beir")
    clear()
    assert is_standard_data("beir:scifact", fetched), "the notes are enough"


def test_what_was_fetched_into_a_folder_of_the_users_is_standard(project, monkeypatch):
    elsewhere = project / "elsewhere"
    fetch_scifact(elsewhere, monkeypatch)
    fetched = EvaluationData(data_sha256(protocol("beir:scifact"), elsewhere))
    clear()
    assert not is_standard_data("beir:scifact", fetched)

    monkeypatch.setenv("CSEBENCH_DATA", str(elsewhere))
    edit_scale("data_root", None)
    assert is_standard_data("beir:scifact", fetched)


def test_what_was_fetched_is_standard_if_no_other_folder_is_given(project, monkeypatch):
    monkeypatch.delenv("CSEBENCH_DATA", raising=False)
    edit_scale("data_root", None)
    root = project / catalog.FETCHED
    fetch_scifact(root, monkeypatch)
    clear()
    fetched = EvaluationData(data_sha256(protocol("beir:scifact"), root))
    assert is_standard_data("beir:scifact", fetched)


def test_data_that_was_edited_after_it_was_fetched_is_not_standard(project, monkeypatch):
    root = project / catalog.FETCHED
    fetch_scifact(root, monkeypatch)
    with open(root / "beir" / "scifact" / "corpus.jsonl", "a", encoding="utf-8") as file:
        file.write('{"_id": "more", "text": "a document"}\n')
    clear()
    edited = EvaluationData(data_sha256(protocol("beir:scifact"), root))
    assert not is_standard_data("beir:scifact", edited)


def test_notes_that_were_edited_after_they_were_written_are_refused(project, monkeypatch):
    root = project / catalog.FETCHED
    fetch_scifact(root, monkeypatch)
    notes = hashes_file("beir:scifact", root)
    notes.write_text(notes.read_text().replace("corpus.jsonl", "corpus2.jsonl"))
    clear()
    with pytest.raises(BadInput, match=r"edited since it was written.*fetch the data again"):
        is_standard_data("beir:scifact", EvaluationData(OTHER))


@pytest.mark.parametrize(
    "name", ["sts", "transfer", "stsb_dev", "beir:cqadupstack", "clusters:imdb"]
)
def test_notes_give_the_hash_that_an_evaluation_states(name, project, monkeypatch):
    """The sets have patterns of every kind: several folders, forums, any file of a folder."""
    smoke = ROOT / "data" / "smoke"
    hashes = {}
    for path in smoke.rglob("*"):
        if path.is_file():
            hashes[str(path.relative_to(smoke))] = fetch.sha256(path)
    notes = hashes_file("senteval", project / catalog.FETCHED)
    write_json(notes, with_digest({"files": hashes}))
    clear()

    stated = data_sha256(protocol(name), DataRoot((project / "nothing", smoke)))
    assert is_standard_data(name, EvaluationData(stated))


@pytest.mark.parametrize("pattern", ["a/*.txt", "a/**/x.txt", "a/?.txt", "a/*/x.txt", "a/x.txt"])
def test_patterns_are_those_of_glob(pattern, tmp_path):
    names = ["a/x.txt", "a/b/x.txt", "a/b/c/x.txt", "a/y.txt", "a/x_txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    expected = {str(path.relative_to(tmp_path)) for path in tmp_path.glob(pattern)}
    regex = glob_as_regex(pattern)
    assert {name for name in names if re.fullmatch(regex, name)} == expected
