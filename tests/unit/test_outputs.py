"""Outputs of commands: a command replaces its own files, and no file of others. It also writes
into a pipe or a device."""

import json
import os
import shutil
import subprocess
import sys
import threading
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from csebench import cli
from csebench.base import files, outputs
from csebench.base.project import ROOT
from csebench.score import store

SMOKE = ROOT / "data" / "smoke"
CORPUS = SMOKE / "wiki" / "smoke.txt"
ENCODER = ROOT / "encoders" / "bert-mini-wiki"
SCORING = ["--pooler", "avg", "--evaluators", "stsb_dev", "--data", SMOKE]
EVALUATION = ["evaluate", "--model", ENCODER, *SCORING, "--out"]
INPUTS = ["--encoder", ENCODER, "--corpus", CORPUS, "--data", SMOKE]
TRAINING = ["train", "--method", "simcse", *INPUTS, "--out"]
TRANSLATION = ["back-translate", CORPUS, "--translators", "a b", "--out"]
PAGE = ["render", "audit", "--out"]
VERBS = {
    "evaluate": EVALUATION,
    "train": TRAINING,
    "back-translate": TRANSLATION,
    "render": PAGE,
    "init": ["init"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_torch(monkeypatch):
    """Make torch impossible to import, because an output must be refused before it is needed."""
    for module in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)


def call(*arguments):
    """Run a command of csebench and return its exit status."""
    return cli.main([str(word) for word in arguments])


def names_in(folder):
    """List what is in a folder."""
    return [path.name for path in folder.iterdir()]


NAMES = [
    "tau0.05",
    "tau0.1",
    "tau0",
    "a.json",
    "a.txt",
    "a",
    "a.items",
    ".json",
    "a.b.json",
    "a.json.json",
]


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_what_goes_with_two_outputs_has_two_names(one, other, here):
    assert files_of(here / one).isdisjoint(files_of(here / other))


def files_of(path):
    """List an output and what is written with it."""
    return {
        path,
        store.beside(path, store.ITEMS),
        store.beside(path, store.ARTIFACTS),
        store.shards_folder(path),
    }


def items_beside(path):
    """Read the per-item values that were written with an output."""
    items = store.items({}, path)
    assert items is not None
    return items["sts"]["a"].tolist()


def test_items_of_older_files_are_found(here):
    scores = here / "x.json"
    older_name = here / "x.items.npz"
    store.write_items(older_name, {"sts/a": np.ones(2)})
    assert items_beside(scores) == [1, 1]

    newer_name = store.beside(scores, store.ITEMS)
    store.write_items(newer_name, {"sts/a": np.zeros(2)})
    assert items_beside(scores) == [0, 0]


PUBLISHED = json.dumps({"spec": {}, "evaluations": [], "scores": []})


@pytest.mark.parametrize(
    ("verb", "out", "file", "content"),
    [
        ("evaluate", "scores.yaml", "scores.yaml", "a: 1"),
        ("evaluate", "package.json", "package.json", '{"name": "x"}'),
        ("evaluate", "list.json", "list.json", "[1]"),
        ("evaluate", "published.json", "published.json", PUBLISHED),
        ("evaluate", "notes.txt", "notes.txt", "mine"),
        ("evaluate", "a", "a.items.npz", "mine"),
        ("evaluate", "b", "b.files", "mine"),
        ("evaluate", "c", "c.items.npz/mine", "mine"),
        ("train", "data", "data/train.json", "[]"),
        ("train", "run", "run/progress.json", "{}"),
        ("train", "logs", "logs/log.jsonl", "{}"),
        ("train", "work", "work/model.part/mine", "mine"),
        ("train", "old", "old/pruned.json", "mine"),
        ("back-translate", "notes.txt", "notes.txt", "mine"),
        ("back-translate", "t.txt", "t.txt.json", '{"mine": 1}'),
        ("render", "README.md", "README.md", "# Mine\n\nText.\n"),
        ("render", "notes", "notes", "mine"),
        ("init", "work", "work/papers", "mine"),
    ],
)
def test_a_file_of_others_stays(verb, out, file, content, here, no_torch, capsys):
    path = here / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    before = set(here.rglob("*"))

    assert call(*VERBS[verb], out) == 2
    error = capsys.readouterr().err
    assert error.count("csebench: ") == 1
    assert file.partition("/mine")[0] in error
    assert "choose another" in error
    assert path.read_text() == content
    assert set(here.rglob("*")) == before


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_a_page_takes_the_place_of_a_page_of_its_form_only(form, here, capsys):
    def render(out):
        return call("render", "audit", "--format", form, "--out", out)

    (here / "empty").touch()
    for out in ("page", "page", "empty"):
        assert render(out) == 0

    (here / "mine").write_text("step,loss\n1,2\n# Mine\n")
    (here / "other.json").write_text('{"mine": 1}')
    for out in ("mine", "other.json"):
        capsys.readouterr()
        assert render(out) == 2
        assert "exists and is not a page" in capsys.readouterr().err


MODEL_FILES = ["config.json", "model.safetensors", "scores.json", "1_Pooling/new.json"]


def contents(folder):
    """Read all files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", MODEL_FILES)
def test_the_folder_of_a_model_is_not_changed(verb, name, here, no_torch, capsys):
    """By its own name, by a link to the folder, and by a link to a file in it."""
    shutil.copytree(ENCODER, here / "model")
    (here / "folder").symlink_to("model")
    (here / "file").symlink_to(f"model/{name}")
    before = contents(here)

    for out in (f"model/{name}", f"folder/{name}", "file"):
        assert call(*VERBS[verb], out) == 2, out
    assert capsys.readouterr().err.count("csebench: ") == 3
    assert contents(here) == before


def test_a_translation_does_not_take_the_place_of_its_corpus(here, no_torch, capsys):
    shutil.copyfile(CORPUS, here / "corpus.txt")
    os.link(here / "corpus.txt", here / "same.txt")
    for out in ("corpus.txt", "same.txt"):
        assert call("back-translate", "corpus.txt", "--translators", "a b", "--out", out) == 2
        assert "is the corpus" in capsys.readouterr().err


def test_a_link_is_followed_and_stays(here):
    (here / "elsewhere").mkdir()
    (here / "page.md").symlink_to("elsewhere/page.md")
    assert call(*PAGE, "page.md") == 0
    assert (here / "page.md").is_symlink()
    page = (here / "elsewhere" / "page.md").read_text()
    assert page.startswith("# ")


@pytest.mark.parametrize("verb", VERBS)
def test_a_loop_of_links_is_no_place(verb, here, no_torch, capsys):
    (here / "loop").symlink_to("loop")
    assert call(*VERBS[verb], "loop") == 2
    assert "Too many levels of symbolic links" in capsys.readouterr().err
    assert names_in(here) == ["loop"]


# ---------------------------------------------------------------- pipes and devices


class PipeReader:
    """A thread that reads what is written into a pipe."""

    def __init__(self, path):
        self.read = []
        self.thread = threading.Thread(target=lambda: self.read.append(path.read_text()))
        self.thread.start()

    def text(self):
        """Wait until the pipe is closed and return the text."""
        self.thread.join(timeout=20)
        (text,) = self.read
        return text


def test_a_pipe_is_written_through(here):
    pipe = here / "pipe"
    os.mkfifo(pipe)
    reader = PipeReader(pipe)
    files.write_text(pipe, "text")
    assert reader.text() == "text"
    assert outputs.is_stream(pipe)
    assert names_in(here) == ["pipe"]


def test_a_device_is_not_replaced():
    before = os.stat("/dev/null")
    files.write_text(Path("/dev/null"), "text")
    assert os.stat("/dev/null").st_rdev == before.st_rdev
    assert outputs.is_stream(Path("/dev/null"))


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_an_open_file_is_continued(name, here):
    with open(here / "log", "w") as file:
        file.write("before\n")
        file.flush()
        os.symlink(f"/dev/fd/{file.fileno()}", "link")
        files.write_text(Path(name.format(file.fileno())), "page\n")
        file.write("after\n")
    assert (here / "log").read_text() == "before\npage\nafter\n"


COMMAND = [sys.executable, "-m", "csebench", *map(str, PAGE)]


@pytest.mark.parametrize("out", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_page_on_standard_output(out, here):
    to_pipe = subprocess.run([*COMMAND, out], capture_output=True, text=True, check=True)
    assert to_pipe.stdout.startswith("# ")

    with open(here / "page.md", "w") as file:
        file.write("first\n")
        file.flush()
        subprocess.run([*COMMAND, out], stdout=file, check=True)
    assert (here / "page.md").read_text() == f"first\n{to_pipe.stdout}"
    assert os.path.islink("/dev/stdout")
    assert names_in(here) == ["page.md"]


def test_scores_in_a_pipe_keep_no_items(here, capsys):
    os.mkfifo(here / "pipe")
    reader = PipeReader(here / "pipe")
    assert call(*EVALUATION, here / "pipe") == 0
    assert "per-item values are not kept" in capsys.readouterr().err
    content = json.loads(reader.text())
    assert content["scores"]
    assert content["items"] == ""
    assert content["items_sha256"] is None
    assert names_in(here) == ["pipe"]


def test_scores_on_a_device_keep_no_items(here, capsys):
    assert call(*EVALUATION, "/dev/null") == 0
    assert "per-item values are not kept" in capsys.readouterr().err
    assert names_in(here) == []


@pytest.mark.parametrize("verb", ["train", "back-translate", "init"])
def test_what_is_more_than_one_file_needs_a_place(verb, here, no_torch, capsys):
    os.mkfifo(here / "pipe")
    for out in ("pipe", "/dev/null"):
        assert call(*VERBS[verb], out) == 2
    assert capsys.readouterr().err.count("csebench: ") == 2
    assert names_in(here) == ["pipe"]


def test_scores_are_written_again_and_each_output_keeps_its_items(here, capsys):
    for name in ("tau0.05", "tau0.1", "tau0.05"):
        assert call(*EVALUATION, name) == 0
    for name in ("tau0.05", "tau0.1"):
        content = json.loads((here / name).read_text())
        assert content["items"] == f"{name}.items.npz"
        assert store.items(content, here / name)

    capsys.readouterr()
    (here / "tau0.1").write_text("{}")
    assert call(*EVALUATION, "tau0.1") == 2
    assert "choose another name" in capsys.readouterr().err
