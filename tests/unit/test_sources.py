"""Data come from the given folder first, and from fetched files second, file by file. Planning
keeps the hashes of given files on disk."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from csebench.base import caches, files
from csebench.base.files import DataRoot, matches
from csebench.cli import main
from csebench.data.sts import read_sts
from csebench.plan import targets
from csebench.plan.catalog import data_sources
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import protocol
from csebench.score.evaluate import data_sha256
from csebench.study import workflow

FLICKR = "neighbours"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A project folder without fetched data, and an empty CSEBENCH_DATA, which the caller fills."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "given"
    folder.mkdir()
    monkeypatch.setenv("CSEBENCH_DATA", str(folder))
    caches.clear()
    yield folder
    caches.clear()


def put(root: Path, name: str, text: str = "text\n") -> Path:
    """Write a file below a folder, and return its path."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_is_taken_from_the_first_root_that_has_it(tmp_path):
    """For `wiki/*.txt`, a fetched corpus must not change what is read, whatever the user put
    there."""
    first = put(tmp_path / "a", "x/one.txt")
    put(tmp_path / "b", "x/one.txt")
    second = put(tmp_path / "b", "x/two.txt")

    root = DataRoot((tmp_path / "a", tmp_path / "b"))

    assert root / "x/one.txt" == first
    assert root / "x/two.txt" == second
    assert matches(root, "x/?[nw][oe].txt") == {"x/one.txt": first, "x/two.txt": second}
    assert matches(root, "x/*.txt") == {"x/one.txt": first}


def test_evaluators_read_two_folders_as_they_read_one(smoke_data, tmp_path):
    """If STS has two tasks in another folder, the pairs and the sum of the data stay the same."""
    for name in ("downstream/SICK", "downstream/STS/STS13-en-test"):
        shutil.copytree(smoke_data / name, tmp_path / name)

    root = DataRoot((tmp_path, smoke_data))

    assert data_sha256(protocol("sts"), root) == data_sha256(protocol("sts"), smoke_data)
    for task in ("STS13", "SICK-R"):
        joined = [pairs.left for pairs in read_sts(root, task)]
        assert joined == [pairs.left for pairs in read_sts(smoke_data, task)]


def test_a_partial_data_root_leaves_the_rest_to_be_fetched(given):
    corpus = catalog.dataset("wiki1m-simcse").path
    dev = catalog.dataset("stsb-dev").path
    put(given, corpus)

    markers = workflow.fetched_markers([corpus, dev], catalog.scale("paper"))

    assert markers == [Path(catalog.FETCHED) / dev]


def inputs_by_evaluator():
    """Return the data that evaluators of several kinds read at scale paper."""
    names = ("sts", "transfer", "beir:scifact", "clusters:imdb", "attention")
    return {name: workflow.evaluator_data(name, "paper") for name in names}


def test_inputs_are_the_same_before_and_after_fetching(given):
    """Otherwise Snakemake would run jobs again."""
    project = given.parent
    before = inputs_by_evaluator()
    for paths in before.values():
        for path in paths:
            put(project, str(path))
    put(project, f"{catalog.FETCHED}/downstream/STS/STS12-en-test/STS.input.MSRpar.txt")
    caches.clear()

    assert inputs_by_evaluator() == before


def test_a_run_without_its_corpus_is_refused_with_one_message(given, capsys, monkeypatch):
    """The workflow and `csebench work` refuse it before anything is written, and `csebench plan`
    says so too."""
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.delenv("CSEBENCH_DATA")
    monkeypatch.setattr(workflow.os, "_exit", sys.exit)
    (page,) = targets.parse_target("micse/table3", "mini")
    run_id = next(iter(page.runs()))

    with pytest.raises(SystemExit, match="2"):
        workflow.run_data(run_id, "mini")
    message = capsys.readouterr().err
    assert "wiki/wiki1m_github.txt: no such file of the benchmark data in data/official;" in message
    assert message.count("docs/data.md") == 1
    assert "public file of SimCSE" in message

    assert main(["work", run_id, "--scale", "mini"]) == 2
    assert capsys.readouterr().err == message
    assert not (given.parent / "runs" / run_id).exists()

    assert main(["plan", "micse/table3", "--scale", "mini"]) == 0
    assert f"Missing: {message.removeprefix('csebench: ')}" in capsys.readouterr().out


def test_a_missing_file_is_named_with_what_to_do(monkeypatch):
    """A scale with a data root of its own fetches nothing."""
    monkeypatch.setenv("CSEBENCH_DATA", "nowhere")
    mini = catalog.scale("mini")
    own_root = mini.model_copy(update={"data_root": "data/none"})

    message = data_sources.missing(catalog.STSB_DEV, own_root)
    what = f"{catalog.STSB_DEV}: no such file of the benchmark data in data/none;"
    assert f"{what} `csebench fetch senteval`" in message
    assert "in nowhere and data/official;" in data_sources.missing("wiki/a.txt", mini)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    catalog.RUNS.mkdir()  # else nothing is kept
    return put(tmp_path, "sts.csv", "one\n")


def hashed(file):
    """Return the hash that planning keeps of a file."""
    return data_sources.kept_hashes({"sts.csv": file})["sts.csv"]


def test_a_file_is_read_again_only_when_it_changes(file, monkeypatch):
    """It is read again even if its size and the time of its content are as they were."""
    first = hashed(file)
    assert first == files.sha256(file)
    before = file.stat()
    with monkeypatch.context() as patched:
        patched.setattr(data_sources, "sha256", lambda path: pytest.fail("was read again"))
        assert hashed(file) == first

    file.write_text("two\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    files._sha256.cache_clear()  # of this process, which knows size and time only
    assert hashed(file) != first


@pytest.mark.parametrize("content", ["", "[]", "{", '{"PATH": 3}', '{"PATH": [1, 2]}', "\udcff"])
def test_a_damaged_file_of_hashes_is_made_again(file, content):
    damaged = content.replace("PATH", str(file)).encode("utf-8", "surrogateescape")
    data_sources.HASHES.parent.mkdir(parents=True, exist_ok=True)
    data_sources.HASHES.write_bytes(damaged)
    digest = files.sha256(file)

    assert hashed(file) == digest
    kept = json.loads(data_sources.HASHES.read_text())
    assert kept[str(file)][1] == digest


def test_what_cannot_be_had_plans_no_training_and_keeps_its_identity(given):
    """A score that exists is shown without its data."""
    (page,) = targets.parse_target("msse/table8", "paper")
    assert page.runs()
    assert not page.available()
    assert not page.available_runs()
    assert set(page.runs()) <= set(targets.runs("paper"))
    assert "Flickr30k's captions are given out on request" in targets.unavailable(FLICKR, "paper")

    run_id, evaluator = next(iter(page.scores()))
    put(given.parent, str(targets.score_path(run_id, evaluator, "paper")), "{}")
    assert set(page.available()) == {(run_id, evaluator)}
    assert workflow.evaluator_data(evaluator, "paper") == []

    put(given, "misc/flickr30k/captions.token")
    caches.clear()
    assert page.available_runs() == page.runs()


def test_a_task_of_mteb_comes_from_its_hub_where_none_of_its_files_are_there(given, smoke_data):
    task = "mteb:Banking77Classification"
    assert data_sources.from_hub(protocol(task), catalog.data_root(catalog.scale("paper")))
    assert not data_sources.from_hub(protocol(task), smoke_data)
    assert workflow.evaluator_data(task, "paper") == []
    put(given, "misc/banking77/categories.json")
    caches.clear()
    assert "misc/banking77/t*.csv" in targets.unavailable(task, "paper")
