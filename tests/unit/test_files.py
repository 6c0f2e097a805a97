"""What writers of files leave to one another: temporary files, bytes, and turns at one file or
folder."""

import io
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
import torch

from csebench.base import files
from csebench.base.locks import locked
from csebench.score import evaluate, models


def test_a_failed_writer_leaves_nothing(tmp_path):
    (tmp_path / "scores.json").write_text("old")
    with pytest.raises(KeyboardInterrupt), files.replacing(tmp_path / "scores.json") as temporary:
        temporary.write_text("new")
        raise KeyboardInterrupt
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("scores.json", "old")
    ]


def test_equal_content_gives_equal_bytes(tmp_path):
    files.write_json(tmp_path / "new" / "x.json", {"b": [1.5], "a": "ü"})
    assert (
        tmp_path / "new" / "x.json"
    ).read_bytes() == b'{\n "a": "\\u00fc",\n "b": [\n  1.5\n ]\n}\n'
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "x.json", float("nan"))


def test_an_error_of_the_system_names_the_file(tmp_path):
    """Where a write fails, Python does not; torch.save says "unexpected pos", safetensors raises
    no OSError."""

    class Full(io.RawIOBase):
        def write(self, _):
            raise OSError(28, "No space left on device")

    def safetensors():
        raise RuntimeError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    for write in (
        lambda: Full().write(b""),
        lambda: torch.save(torch.zeros(9), Full()),
        safetensors,
    ):
        with pytest.raises(OSError) as error, files.replacing(tmp_path / "state.pt"):
            write()
        assert (error.value.errno, error.value.filename) == (28, str(tmp_path / "state.pt"))


def in_turns(work, workers=3):
    """Calls `work(enter)` in several threads; `enter` must be called by one at a time."""
    inside = []

    def enter(*_):
        inside.append(None)
        time.sleep(0.02)
        assert inside.pop() is None and not inside

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, enter) for _ in range(workers)]:
            done.result(timeout=60)


def test_a_lock_of_what_does_not_come_to_be_is_held_by_one_and_deleted(tmp_path):
    def work(enter):
        for _ in range(5):
            with locked(tmp_path / "run"):
                enter()

    in_turns(work)
    assert list(tmp_path.iterdir()) == []


def test_evaluations_into_one_file_take_turns(tiny_bert, smoke_data, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "open_model", lambda *_: Mock(prompts={}))

    def work(enter):
        monkeypatch.setattr(evaluate, "score_model", enter)
        evaluate.evaluate_model(str(tiny_bert), ["sts"], smoke_data, tmp_path / "out.json", "avg")

    in_turns(work)
    assert list(tmp_path.iterdir()) == []
