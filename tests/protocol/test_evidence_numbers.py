"""Every number of evidence/*.yaml against a second transcription: tables of runs, summaries and sources.

They lie outside of the project, in the folder CSEBENCH_FACTS, else ../shared/facts; without it, tests are skipped.
"""

import csv
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from csebench.base.project import ROOT
from csebench.plan import evidence

FACTS = Path(os.environ.get("CSEBENCH_FACTS", ROOT.parent / "shared" / "facts")) / "independent"
KINDS = {
    "retrained": "retrained",
    "checkpoint": "released checkpoint scored",
    "untrained": "untrained model scored",
    "authors": "authors' log",
    "paper": "re-run printed in another paper",
}
NUMBER = re.compile(r"-?\d+(\.\d+)?(±\d+(\.\d+)?)?")

pytestmark = pytest.mark.skipif(not FACTS.is_dir(), reason=f"no second transcription: {FACTS} is not there")


def table(name):
    with open(FACTS / f"{name}.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def file_name(source_id):
    return source_id.replace("#", "-")


def encoder(row):
    return row["encoder"].rstrip("?").lower()


def texts(scores):
    return frozenset((task, value.text) for task, value in scores.items())


def printed(row):
    return frozenset((task, row[task]) for task in evidence.score_names() if NUMBER.fullmatch(row.get(task) or ""))


def flags(experiment):
    return "y" if experiment.comparable else "n", "y" if experiment.sure else "n"


def head(row):
    """Method of a row without its setting: `unsup-SimCSE (dropout 0.2)` is of unsup-SimCSE."""
    return re.sub(r"( \(| \+ |-\d+ \(|, (\[CLS\]|mean|first|last|manual)).*", "", row["method"])


def test_every_source_is_there():
    assert {file_name(row["source_id"]) for row in table("sources")} == evidence.sources().keys()


@pytest.mark.parametrize("row", table("sources") if FACTS.is_dir() else [], ids=lambda row: row["source_id"])
def test_place_of_a_source(row):
    source = evidence.sources()[file_name(row["source_id"])]
    if source.paper:
        assert all(f"{number}" in row["location"] for number in source.tables)
    else:
        place = f"#{source.thread}" if source.thread else f"@{source.commit}"
        assert row["location"].startswith(f"{source.repository}{place}")
        assert source.licence == row["licence"]
    assert source.date == row["date"].replace("?", "not noted")


def test_every_single_run():
    """seeds.tsv: training runs one by one, with seed, best step and setup."""
    ours = Counter(
        (
            *(e.name, x.encoder, texts(run.scores) - extra(run), run.seed or "", str(run.best_step or "")),
            *(x.setup.batch_size or "", x.setup.learning_rate or "", x.corpus or "", *flags(x)),
        )
        for e in evidence.all_evidence()
        if (x := e.experiment).kind == "retrained"
        for run in x.runs
        if texts(run.scores) - extra(run)
    )
    theirs = Counter(
        (
            *(file_name(row["source_id"]), encoder(row), printed(row), row["seed_or_index"], row["best_step"]),
            *(row["batch_size"], row["learning_rate"], row["corpus"], row["comparable"], row["sure"]),
        )
        for row in table("seeds")
    )
    assert {run[0] for run in ours - theirs} <= {"SCD-5", "PromCSE-15"}  # which only summaries.tsv has
    assert theirs - ours == Counter()


def extra(run):
    """Scores that seeds.tsv has no column for."""
    columns = {*evidence.tasks()[evidence.AVERAGE], evidence.AVERAGE, "stsb_dev"}
    return frozenset((task, value.text) for task, value in run.scores.items() if task not in columns)


def test_every_reported_result():
    """summaries.tsv: single results and means, with transfer scores."""
    titles = {name: method.title for name, method in evidence.names().methods.items()}
    titles["bert"], titles["consert"] = "BERT", "ConSERT unsup"
    ours = Counter()
    for e in evidence.all_evidence():
        x = e.experiment
        scored = [(str(x.summary.n), x.summary)] if x.summary else [("1", run) for run in x.runs]
        for n, result in scored:
            ours[e.name, titles[x.method], x.encoder, n, texts(result.scores), KINDS[x.kind], *flags(x)] += 1
    theirs = Counter(
        (
            *(file_name(row["source_id"]), head(row), encoder(row), row["n_seeds"] or "1", printed(row)),
            *(row["kind"], row["comparable"], row["sure"]),
        )
        for row in table("summaries")
        if printed(row)
    )
    assert ours - theirs == Counter()
    assert theirs - ours == Counter()


def test_reports_without_a_number_are_remarks():
    theirs = Counter((file_name(row["source_id"]), encoder(row)) for row in table("summaries") if not printed(row))
    ours = Counter((name, r.encoder) for name, source in evidence.sources().items() for r in source.remarks)
    assert ours == theirs


def test_stated_averages_of_released_checkpoints():
    """As the README of the transcription or the sources give them."""
    text = (FACTS / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Released checkpoints")[2].partition("\n## ")[0]
    logged = {row[task] for row in table("summaries") for task in ("Avg.", "TransferAvg")}
    for checkpoint in evidence.checkpoints():
        for value in checkpoint.stated.values():
            assert value.text in section or value.text in logged, f"{checkpoint.hub}: {value.text}"
