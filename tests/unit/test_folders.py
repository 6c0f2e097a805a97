"""A folder of one's own joins the project: its files are found, names that the project has are
refused, and results are written to it."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from made_up import table

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, matches
from csebench.base.hub import EncoderRef, local_folder
from csebench.base.project import ROOT, folders, name_of
from csebench.data.sts import read_sts
from csebench.plan.catalog import data_sources, evidence, registry
from csebench.plan.catalog import files as catalog
from csebench.score.evaluate import data_sha256

COLUMNS = [{"label": "1%", "size": "1%", "task": "Avg."}]
ROWS = {"SimCSE": ("simcse", [None]), "Mine": ("mine", [None])}
PAPER = {
    "name": "own",
    "title": "My paper",
    "reference": "Me",
    "tables": {"2": table(ROWS, COLUMNS)},
}


def write_yaml(path, content):
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder that joins the project, with a method, a paper, a scale and a dataset; not the
    current one."""
    folder = tmp_path / "own"
    for name in ("methods", "papers", "config", "data"):
        (folder / name).mkdir(parents=True)

    code = (ROOT / "methods" / "simcse.py").read_text()
    (folder / "methods" / "mine.py").write_text(code.replace('"name": "simcse"', '"name": "mine"'))

    write_yaml(folder / "papers" / "own.yaml", PAPER)

    scale = yaml.safe_load((ROOT / "config" / "mini.yaml").read_text())
    del scale["tuned"], scale["seeds_by_table"]
    scale |= {"scale": "own_scale", "corpus": "own"}
    write_yaml(folder / "config" / "own_scale.yaml", scale)

    known = yaml.safe_load((ROOT / "data" / "registry.yaml").read_text())
    write_yaml(folder / "data" / "registry.yaml", {"own": known["wiki1m-github"]})

    monkeypatch.setenv("CSEBENCH_PROJECT", str(folder))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield folder
    caches.clear()


def test_what_is_in_it_is_the_projects(own):
    assert folders() == [ROOT, own]
    assert registry.load("mine").__module__ == "methods.mine"
    assert "simcse" in registry.adapter_names(registry.METHODS)
    assert {"micse", "own"} <= set(catalog.paper_names())
    assert catalog.scale("own_scale").corpus == "own"
    assert name_of(registry.files(registry.METHODS)["mine"]) == "methods/mine.py"

    (own / "evidence").mkdir()
    shutil.copy(ROOT / "evidence" / "Echo.yaml", own / "evidence" / "more.yaml")
    caches.clear()
    assert {"Echo", "more"} <= evidence.evidence_sources().keys()


REFUSED = {  # file of the project -> what finds it
    "methods/simcse.py": lambda: registry.adapter_names(registry.METHODS),
    "papers/micse.yaml": catalog.paper_names,
    "config/mini.yaml": catalog.scale_names,
    "evidence/Echo.yaml": evidence.evidence_sources,
    "evidence/methods.yaml": evidence.evidence_names,
    "data/registry.yaml": catalog.datasets,
    "evaluators/_probe.py": lambda: registry.load("transfer", registry.EVALUATORS),
}


def assert_names_both(refused, first, second):
    """Assert that a message names two places."""
    assert str(first) in str(refused.value)
    assert str(second) in str(refused.value)


@pytest.mark.parametrize(("name", "find"), REFUSED.items())
def test_a_name_that_the_project_has_is_refused_with_both_places(name, find, own):
    copy = own / name
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / name, copy)
    caches.clear()

    with pytest.raises(BadInput) as refused:
        find()

    assert_names_both(refused, copy, ROOT / name)


def test_results_are_written_to_it_and_paths_are_of_the_current_folder(
    own, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("CSEBENCH_PROJECT", "")  # which the option sets
    options = ["--project", "own", "--scale", "mini", "--out", "page.md"]
    assert cli.main(["render", "own/table2", *options]) == 0
    assert (tmp_path / "page.md").exists()

    monkeypatch.chdir(tmp_path)
    assert cli.main(["csv", "--project", "own", "--scale", "own_scale"]) == 0
    assert (own / "results" / "own_scale" / "cells.csv").exists()
    assert not (tmp_path / "results").exists()


def test_the_variable_may_name_a_folder_below_the_current_one(own, tmp_path, monkeypatch):
    monkeypatch.setenv("CSEBENCH_PROJECT", "own")
    assert cli.main(["csv", "--scale", "own_scale"]) == 0
    assert (own / "results" / "own_scale" / "cells.csv").exists()


def test_files_of_export_are_of_the_current_folder(own, tmp_path, monkeypatch):
    monkeypatch.setenv("CSEBENCH_PROJECT", "")
    score, *_ = (ROOT / "results" / "mini" / "scores").glob("micse-*.sts.json")
    shutil.copy(score, tmp_path / score.name)
    options = ["--out", "card.md", "--project", "own"]
    assert cli.main(["export", "model-index", score.name, *options]) == 0
    assert (tmp_path / "card.md").exists()


def test_a_spec_as_text_is_no_path_of_the_current_folder(own, monkeypatch, capsys):
    """Its text is longer than the name of a file may be."""
    monkeypatch.setenv("CSEBENCH_PROJECT", "")
    spec = json.dumps({"method": "x" * 300})
    assert cli.main(["train", spec, "--project", "own", "--out", "runs/mine"]) == 2
    assert "too long" not in capsys.readouterr().err


def test_a_folder_that_is_made_joins_while_the_current_one_is_in_it(tmp_path, monkeypatch):
    assert cli.main(["init", str(tmp_path / "work")]) == 0
    assert folders() == [ROOT]
    (tmp_path / "work" / "papers" / "drafts").mkdir(parents=True)
    for here in ("work", "work/papers/drafts"):
        monkeypatch.chdir(tmp_path / here)
        assert folders() == [ROOT, tmp_path / "work"]
        assert cli.main(["papers", "--json"]) == 0


def test_a_folder_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan", "table2", "--project", "nowhere"]) == 2
    assert "--project: nowhere: no such folder" in capsys.readouterr().err
    monkeypatch.setenv("CSEBENCH_PROJECT", "nowhere")
    assert cli.main(["methods"]) == 2
    assert "CSEBENCH_PROJECT: nowhere: no such folder" in capsys.readouterr().err


EVALUATOR = """
DECLARATION = {
    "name": "words",
    "version": 1,
    "title": "Words",
    "protocol": "words",
    "tasks": ["words"],
    "files": ["misc/words/*.txt"],
    "best": {},
    "chance": {},
    "source": "none",
    "deviations": [],
}
"""
SMOKE = "data/smoke"


@pytest.fixture
def with_data(own):
    """The same folder with an evaluator of its own, and this evaluator's data at scale smoke."""
    (own / "evaluators").mkdir()
    (own / "evaluators" / "words.py").write_text(EVALUATOR)
    put(own, f"{SMOKE}/misc/words/one.txt")
    caches.clear()
    return own


def put(folder, name, text="text\n"):
    """Write a file below a folder, and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


EVALUATORS = (
    "sts",
    "transfer",
    "attention",
    "beir:smoke",
    "beir:cqadupstack",
    "clusters:imdb",
    "neighbours",
)


def sums(data_root):
    """Return the sum of the data of every evaluator that reads from a data root."""
    return {name: data_sha256(registry.protocol(name), data_root) for name in EVALUATORS}


def test_data_of_ones_own_join_the_projects_file_by_file(with_data):
    """The project's evaluators read what they read without the folder, even if they read any file
    of a folder."""
    for name in (
        "wiki/more.txt",
        "misc/imdb/more.tsv",
        "beir/cqadupstack/more/corpus.jsonl",
        "beir/own/corpus.jsonl",
    ):
        put(with_data, f"{SMOKE}/{name}")
    smoke = catalog.scale("smoke")

    root = catalog.data_root(smoke)

    assert isinstance(root, DataRoot)
    assert sums(root) == sums(ROOT / SMOKE)
    joined = [pairs.left for pairs in read_sts(root, "STS12")]
    assert joined == [pairs.left for pairs in read_sts(ROOT / SMOKE, "STS12")]
    assert data_sources.unavailable("words", "smoke") is None
    assert data_sources.given_data("words", "smoke")
    assert data_sources.missing("misc/words/one.txt", smoke) is None
    assert list(matches(root, "misc/words/*.txt")) == ["misc/words/one.txt"]
    assert matches(root, "beir/own/**/corpus.jsonl")


@pytest.mark.parametrize(
    ("name", "evaluator"),
    [
        ("counts.yaml", None),
        ("downstream/STS/STSBenchmark/sts-dev.csv", "stsb_dev"),
        ("downstream/MR/rt-polarity.pos", "transfer"),
        ("wiki/smoke.txt", "attention"),
        ("beir/smoke/qrels/test.tsv", "beir:smoke"),
    ],
)
def test_a_data_file_that_the_project_has_is_refused_with_both_places(name, evaluator, own):
    put(own, f"{SMOKE}/{name}")
    root = catalog.data_root(catalog.scale("smoke"))

    with pytest.raises(BadInput) as refused:
        if evaluator is None:
            read_sts(root, "STS12")
        else:
            data_sha256(registry.protocol(evaluator), root)

    message = re.match("(.+?): (.+) has this name, too", str(refused.value))
    assert message
    first, second = message.groups()
    assert Path(first).resolve() == own / SMOKE / name
    assert Path(second).resolve() == ROOT / SMOKE / name


def test_two_folders_of_ones_own_join_and_are_compared_too(own, tmp_path, monkeypatch):
    first = tmp_path / "own1"
    second = tmp_path / "own2"
    put(first, f"{SMOKE}/misc/own1.txt")
    put(second, f"{SMOKE}/misc/own2.txt")
    for folder in (first, second):
        put(folder, f"{SMOKE}/misc/both.txt")
    monkeypatch.setenv("CSEBENCH_PROJECT", f"{first}:{second}")
    caches.clear()

    root = catalog.data_root(catalog.scale("smoke"))

    assert (root / "misc/own1.txt").exists()
    assert (root / "misc/own2.txt").exists()
    assert (root / "counts.yaml").exists()
    with pytest.raises(BadInput, match="has this name, too"):
        root / "misc/both.txt"


def test_a_message_names_the_place_that_the_scale_reads(with_data, monkeypatch):
    """It names CSEBENCH_DATA only if that is read: not at a scale with a folder of its own, nor for
    `--data`."""
    smoke = catalog.scale("smoke")
    mini = catalog.scale("mini")
    file = "misc/words/one.txt"
    (with_data / SMOKE / file).unlink()
    messages = [
        data_sources.unavailable("words", "smoke"),
        data_sources.missing(file, smoke),
        data_sources.missing("beir/scifact/corpus.jsonl", smoke),
    ]
    shutil.rmtree(with_data / SMOKE)
    caches.clear()
    messages.append(data_sources.unavailable("words", "smoke"))
    for message in messages:
        assert "own/data/smoke (docs/data.md)." in message
        assert "CSEBENCH_DATA" not in message
        assert "--data" not in message

    assert "CSEBENCH_DATA" in data_sources.unavailable("words", "mini")
    for folder in ("", "given"):
        monkeypatch.setenv("CSEBENCH_DATA", folder)
        assert "CSEBENCH_DATA" in data_sources.missing(file, mini)

    with pytest.raises(BadInput, match=r"put it into elsewhere \(docs/data.md\)") as refused:
        data_sha256(registry.protocol("words"), Path("elsewhere"))
    assert "CSEBENCH_DATA" not in str(refused.value)


def test_data_of_ones_own_are_read_from_the_given_folder_at_other_scales(
    with_data, tmp_path, monkeypatch
):
    put(tmp_path / "given", "misc/words/one.txt")
    monkeypatch.setenv("CSEBENCH_DATA", str(tmp_path / "given"))
    caches.clear()
    assert data_sources.unavailable("words", "mini") is None


def test_an_encoder_that_the_project_has_is_refused_with_both_places(own, tmp_path, monkeypatch):
    name = catalog.scale("smoke").encoders["bert-base"].name
    ref = EncoderRef(name=name, revision="main")
    assert local_folder(ref) == ROOT / name
    put(own, "encoders/mine/config.json", "{}")
    mine = EncoderRef(name="encoders/mine", revision="main")
    assert local_folder(mine) == own / "encoders/mine"

    second = put(own, f"{name}/config.json", "{}").parent
    caches.clear()
    with pytest.raises(BadInput) as refused:
        local_folder(ref)
    assert_names_both(refused, second, ROOT / name)
    caches.clear()
    with pytest.raises(BadInput) as refused:
        catalog.scale("smoke")
    assert_names_both(refused, second, ROOT / name)

    shutil.rmtree(second)
    shutil.copytree(ROOT / name, second)  # the same encoder
    assert local_folder(ref) is not None

    put(tmp_path, f"{name}/config.json", "{}")  # in the current folder, which is none of them
    with pytest.raises(BadInput, match="has this name, too"):
        local_folder(ref)
