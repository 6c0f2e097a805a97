"""Where a user lets a command write: its own files, also a pipe or a device; nothing of others
is replaced."""

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
EVALUATION = [
    "evaluate",
    "--model",
    ENCODER,
    "--pooler",
    "avg",
    "--evaluators",
    "stsb_dev",
    "--data",
    SMOKE,
    "--out",
]
TRAINING = [
    "train",
    "--method",
    "simcse",
    "--encoder",
    ENCODER,
    "--corpus",
    CORPUS,
    "--data",
    SMOKE,
    "--out",
]
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
    """What needs torch cannot be imported: an output must be refused before."""
    for module in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)


def call(*arguments):
    return cli.main([str(word) for word in arguments])


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


@pytest.mark.parametrize(("one", "other"), [*combinations(NAMES, 2)])
def test_what_goes_with_two_outputs_has_two_names(one, other, here):
    def names(name):
        path = here / name
        return {
            path,
            store.beside(path, store.ITEMS),
            store.beside(path, store.ARTIFACTS),
            store.shards_folder(path),
        }

    assert names(one).isdisjoint(names(other))


def items_beside(path):
    items = store.items({}, path)
    assert items is not None
    return items["sts"]["a"].tolist()


def test_items_of_older_files_are_found(here):
    store.write_items(here / "x.items.npz", {"sts/a": np.ones(2)})
    assert items_beside(here / "x.json") == [1, 1]
    store.write_items(store.beside(here / "x.json", store.ITEMS), {"sts/a": np.zeros(2)})
    assert items_beside(here / "x.json") == [0, 0]


PUBLISHED = {"spec": {}, "evaluations": [], "scores": []}
FOREIGN = {  # verb, output: file that is there, its content
    ("evaluate", "scores.yaml"): ("scores.yaml", "a: 1"),
    ("evaluate", "package.json"): ("package.json", '{"name": "x"}'),
    ("evaluate", "list.json"): ("list.json", "[1]"),
    ("evaluate", "published.json"): ("published.json", json.dumps(PUBLISHED)),
    ("evaluate", "notes.txt"): ("notes.txt", "mine"),
    ("evaluate", "a"): ("a.items.npz", "mine"),
    ("evaluate", "b"): ("b.files", "mine"),
    ("evaluate", "c"): ("c.items.npz/mine", "mine"),
    ("train", "data"): ("data/train.json", "[]"),
    ("train", "run"): ("run/progress.json", "{}"),
    ("train", "work"): ("work/model.part/mine", "mine"),
    ("train", "old"): ("old/pruned.json", "mine"),
    ("back-translate", "notes.txt"): ("notes.txt", "mine"),
    ("back-translate", "t.txt"): ("t.txt.json", '{"mine": 1}'),
    ("render", "README.md"): ("README.md", "# Mine\n\nText.\n"),
    ("render", "notes"): ("notes", "mine"),
    ("init", "work"): ("work/papers", "mine"),
}


@pytest.mark.parametrize(("verb", "out"), FOREIGN)
def test_a_file_of_others_stays(verb, out, here, no_torch, capsys):
    name, content = FOREIGN[verb, out]
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).write_text(content)
    before = {*here.rglob("*")}
    assert call(*VERBS[verb], out) == 2
    error = capsys.readouterr().err
    assert (
        error.count("csebench: ") == 1
        and name.partition("/mine")[0] in error
        and "choose another" in error
    )
    assert (here / name).read_text() == content and {*here.rglob("*")} == before


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_a_page_takes_the_place_of_a_page_of_its_form_only(form, here, capsys):
    def render(out):
        return call("render", "audit", "--format", form, "--out", out)

    (here / "empty").touch()
    assert [render("page"), render("page"), render("empty")] == [0, 0, 0]
    (here / "mine").write_text("step,loss\n1,2\n# Mine\n")
    (here / "other.json").write_text('{"mine": 1}')
    capsys.readouterr()
    assert [render("mine"), render("other.json")] == [2, 2]
    assert "exists and is not a page" in capsys.readouterr().err


MODEL_FILES = ["config.json", "model.safetensors", "scores.json", "1_Pooling/new.json"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", MODEL_FILES)
def test_the_folder_of_a_model_is_not_changed(verb, name, here, no_torch, capsys):
    """By its own name, by a link to the folder, and by a link to a file in it."""
    shutil.copytree(ENCODER, here / "model")
    (here / "folder").symlink_to("model")
    (here / "file").symlink_to(f"model/{name}")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    for out in (f"model/{name}", f"folder/{name}", "file"):
        assert call(*VERBS[verb], out) == 2, out
    assert capsys.readouterr().err.count("csebench: ") == 3
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


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
    assert (here / "page.md").is_symlink() and (
        here / "elsewhere" / "page.md"
    ).read_text().startswith("# ")


@pytest.mark.parametrize("verb", VERBS)
def test_a_loop_of_links_is_no_place(verb, here, no_torch, capsys):
    (here / "loop").symlink_to("loop")
    assert call(*VERBS[verb], "loop") == 2
    assert "Too many levels of symbolic links" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["loop"]


# ---------------------------------------------------------------- pipes and devices


def read_pipe(path, into):
    thread = threading.Thread(target=lambda: into.append(path.read_text()))
    thread.start()
    return thread


def test_a_pipe_is_written_through(here):
    os.mkfifo(here / "pipe")
    thread = read_pipe(here / "pipe", read := [])
    files.write_text(here / "pipe", "text")
    thread.join(timeout=20)
    assert read == ["text"] and outputs.is_stream(here / "pipe")
    assert [path.name for path in here.iterdir()] == ["pipe"]


def test_a_device_is_not_replaced():
    before = os.stat("/dev/null")
    files.write_text(Path("/dev/null"), "text")
    assert os.stat("/dev/null").st_rdev == before.st_rdev and outputs.is_stream(Path("/dev/null"))


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_an_open_file_is_continued(name, here):
    with open(here / "log", "w") as file:
        file.write("before\n")
        file.flush()
        name = name.format(file.fileno())
        if name == "link":
            os.symlink(f"/dev/fd/{file.fileno()}", name)
        files.write_text(Path(name), "page\n")
        file.write("after\n")
    assert (here / "log").read_text() == "before\npage\nafter\n"


COMMAND = [sys.executable, "-m", "csebench", *map(str, PAGE)]


@pytest.mark.parametrize("out", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_page_on_standard_output(out, here):
    printed = subprocess.run([*COMMAND, out], capture_output=True, text=True, check=True).stdout
    with open(here / "page.md", "w") as file:
        file.write("first\n")
        file.flush()
        subprocess.run([*COMMAND, out], stdout=file, check=True)
    assert printed.startswith("# ") and (here / "page.md").read_text() == f"first\n{printed}"
    assert os.path.islink("/dev/stdout") and [path.name for path in here.iterdir()] == ["page.md"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_scores_on_a_stream_keep_no_items(kind, here, capsys):
    out = here / "pipe" if kind == "pipe" else Path("/dev/null")
    read = []
    if kind == "pipe":
        os.mkfifo(out)
        thread = read_pipe(out, read)
    assert call(*EVALUATION, out) == 0
    assert "per-item values are not kept" in capsys.readouterr().err
    if kind == "pipe":
        thread.join(timeout=20)
        content = json.loads(read[0])
        assert content["scores"] and content["items"] == "" and content["items_sha256"] is None
    assert {path.name for path in here.iterdir()} <= {"pipe"}


@pytest.mark.parametrize("verb", ["train", "back-translate", "init"])
def test_what_is_more_than_one_file_needs_a_place(verb, here, no_torch, capsys):
    os.mkfifo(here / "pipe")
    for out in ("pipe", "/dev/null"):
        assert call(*VERBS[verb], out) == 2
    assert capsys.readouterr().err.count("csebench: ") == 2 and [
        path.name for path in here.iterdir()
    ] == ["pipe"]


def test_scores_are_written_again_and_each_output_keeps_its_items(here, capsys):
    assert [
        call(*EVALUATION, "tau0.05"),
        call(*EVALUATION, "tau0.1"),
        call(*EVALUATION, "tau0.05"),
    ] == [0, 0, 0]
    for name in ("tau0.05", "tau0.1"):
        content = json.loads((here / name).read_text())
        assert content["items"] == f"{name}.items.npz" and store.items(content, here / name)
    capsys.readouterr()
    (here / "tau0.1").write_text("{}")
    assert call(*EVALUATION, "tau0.1") == 2 and "choose another name" in capsys.readouterr().err
