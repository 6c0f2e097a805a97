"""Pipes, devices, sockets, loops of links and files without an end are refused in the place of a
file. They are not read."""

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_readers import JSON_READERS, OTHER_READERS

from csebench import cli
from csebench.base import caches, files
from csebench.base.errors import BadInput
from csebench.base.models import check_foreign
from csebench.base.project import ROOT
from csebench.plan.catalog import files as catalog
from csebench.score import store

SMOKE = ROOT / "data" / "smoke"
ENCODER = ROOT / "encoders" / "bert-mini-wiki"


@pytest.fixture(autouse=True)
def no_waiting():
    """Interrupt a test that waits for the other end of a pipe, or reads a device to its end."""

    def interrupt(*_):
        raise AssertionError("it was opened, and waits")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_socket(path):
    """Make a socket, by its short name: long ones are refused."""
    socket_file = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket_file.bind(path.name)
    finally:
        os.chdir(here)


def make_endless(path):
    """Make a file of a size that no machine has in memory: a hole."""
    with open(path, "wb") as file:
        file.truncate(2**42)


def make_two_links(path):
    """Make two links that lead to each other."""
    path.with_name("b").symlink_to(path.name)
    path.symlink_to("b")


@dataclass(frozen=True)
class Kind:
    """A kind of special file."""

    make: Callable[[Path], object]
    message: str  # what a message says of it


KINDS = {
    "pipe": Kind(os.mkfifo, "is a pipe"),
    "link to a device": Kind(lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "link to the terminal": Kind(lambda path: path.symlink_to("/dev/tty"), "is a device"),
    "socket": Kind(make_socket, "is a socket"),
    "loop": Kind(lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
    "two links": Kind(make_two_links, "Too many levels"),
    "folder": Kind(os.mkdir, "Is a directory"),
    "hole": Kind(make_endless, "more than the memory of this machine"),
}


READERS = {name: read for name, (_, read) in JSON_READERS.items()} | OTHER_READERS
# A reader of lines never has a whole file in memory.
WHOLE = [name for name in READERS if not name.endswith("jsonl")]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_refuses_what_is_no_file(name, kind, tmp_path):
    if (name, kind) == ("x.items.npz", "hole"):
        pytest.skip("the hash of a file of any size is computed, a block at a time")
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind].make(path)

    with pytest.raises(BadInput, match=KINDS[kind].message):
        READERS[name](path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hole"])
def test_no_hash_is_computed_of_it(kind, tmp_path):
    KINDS[kind].make(tmp_path / "x")
    with pytest.raises(BadInput, match=KINDS[kind].message):
        files.sha256(tmp_path / "x")


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "socket"])
@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "1_Pooling/config.json"])
def test_a_model_holds_files_only(name, kind, tmp_path):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "monitor")  # which no library reads
    check_foreign(tmp_path)

    KINDS[kind].make(tmp_path / name)
    with pytest.raises(BadInput, match=f"{name}: {KINDS[kind].message}"):
        check_foreign(tmp_path)


def test_a_file_of_the_system_that_never_ends_is_read_to_its_size():
    """Files below /proc and /sys state a size of 0. Some wait when they are read."""
    assert files.read_bytes(Path("/proc/self/status")) == b""


TRAINING = ["train", "--method", "simcse", "--encoder", ENCODER, "--data", SMOKE, "--out", "out"]
COMMANDS = {  # arguments; x is the special file
    "corpus": [*TRAINING, "--corpus", "x"],
    "triplets": [*TRAINING, "--method", "simcse_sup", "--corpus", "x"],
    "spec": ["train", "x", "--out", "out"],
    "pasted table": ["new", "paper", "mine", "--from", "x"],
    "corpus to translate": ["back-translate", "x", "--translators", "a b", "--out", "out.txt"],
}


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "socket", "loop", "folder"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_it_and_writes_nothing(command, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    KINDS[kind].make(tmp_path / "x")

    assert cli.main([str(word) for word in COMMANDS[command]]) == 2

    message = capsys.readouterr().err
    assert "x: " in message
    assert KINDS[kind].message in message
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_process_substitution_is_told_what_to_do(monkeypatch, tmp_path, capsys):
    """In bash, `--corpus <(zcat corpus.gz)` names a pipe."""
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    command = [*TRAINING, "--corpus", f"/dev/fd/{reading}"]

    assert cli.main([str(word) for word in command]) == 2

    expected = "is a pipe, which can be read only once; save what comes from it as a file"
    assert expected in capsys.readouterr().err
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_in_the_place_of_a_published_score_it_is_no_missing_score(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caches.clear()
    path = catalog.results_folder("smoke") / "scores" / "x.sts.json"
    path.parent.mkdir(parents=True)
    KINDS[kind].make(path)

    with pytest.raises(BadInput, match=KINDS[kind].message):
        store.read_scores(path)


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "socket"])
def test_a_model_is_a_folder(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    KINDS[kind].make(tmp_path / "x")

    assert cli.main(["evaluate", "--model", "x", "--data", str(SMOKE), "--out", "scores.json"]) == 2

    assert "--model x: is a file; name the folder of a model" in capsys.readouterr().err
