"""Writers of files leave each other no temporary files, equal bytes for equal content, and take
turns at one file or folder."""

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
    path = tmp_path / "scores.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.replacing(path) as temporary:
        temporary.write_text("new")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


def test_equal_content_gives_equal_bytes(tmp_path):
    path = tmp_path / "new" / "x.json"
    files.write_json(path, {"b": [1.5], "a": "ü"})
    assert path.read_bytes() == b'{\n "a": "\\u00fc",\n "b": [\n  1.5\n ]\n}\n'
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "x.json", float("nan"))


class Full(io.RawIOBase):
    """A file on a full disk."""

    def write(self, _):
        raise OSError(28, "No space left on device")


def fail_as_safetensors():
    raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")


WRITERS = {
    "Python": lambda: Full().write(b""),  # whose message has no file
    "torch": lambda: torch.save(torch.zeros(9), Full()),  # which says "unexpected pos"
    "safetensors": fail_as_safetensors,  # which raises no OSError
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_error_of_the_system_names_the_file(write, tmp_path):
    path = tmp_path / "state.pt"
    with pytest.raises(OSError) as error, files.replacing(path):
        write()
    assert error.value.errno == 28
    assert error.value.filename == str(path)


def in_turns(work, workers=3):
    """Call `work(enter)` in several threads; `enter` must be called by one at a time."""
    inside = []

    def enter(*_):
        inside.append("a thread")
        time.sleep(0.02)
        inside.pop()
        assert not inside

    with ThreadPoolExecutor(workers) as pool:
        threads = [pool.submit(work, enter) for _ in range(workers)]
        for thread in threads:
            thread.result(timeout=60)


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
