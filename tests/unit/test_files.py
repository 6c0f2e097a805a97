"""What writers of files leave to one another: temporary files, bytes, and turns at one file or folder."""

import errno
import hashlib
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from csebench.base import files
from csebench.base.processes import locked


def test_a_failed_writer_leaves_nothing(tmp_path):
    (tmp_path / "scores.json").write_text("old")
    with pytest.raises(KeyboardInterrupt), files.replacing(tmp_path / "scores.json") as temporary:
        temporary.write_text("new")
        raise KeyboardInterrupt
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("scores.json", "old")]


def test_equal_content_gives_equal_bytes(tmp_path):
    files.write_json(tmp_path / "new" / "x.json", {"b": [1.5], "a": "ü"})
    assert (tmp_path / "new" / "x.json").read_bytes() == b'{\n "a": "\\u00fc",\n "b": [\n  1.5\n ]\n}\n'
    assert files.digest({"b": 1, "a": "ü"}) == hashlib.sha256('{"a":"ü","b":1}'.encode()).hexdigest()[:10]
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "x.json", float("nan"))


def test_a_hash_is_that_of_the_content_whatever_the_times_of_the_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("one")
    before, state = files.sha256(path), path.stat()
    path.write_text("two")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert files.sha256(path) != before


def test_an_error_of_the_system_names_the_file(tmp_path):
    """Python does not name it where a write fails; torch.save's says "unexpected pos", that of safetensors is no
    OSError."""

    class Full(io.RawIOBase):
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def safetensors():
        raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")

    for write in (lambda: Full().write(b""), lambda: torch.save(torch.zeros(9), Full()), safetensors):
        with pytest.raises(OSError) as error, files.replacing(tmp_path / "state.pt"):
            write()
        assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / "state.pt"))


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


def test_writers_of_a_site_take_turns(tmp_path, monkeypatch):
    from csebench.plan import catalog
    from csebench.report import site

    pytest.importorskip("sphinx", reason="Sphinx is missing: pip install -e '.[docs]'")
    monkeypatch.setattr(catalog, "results_folder", lambda scale: tmp_path)
    for step in ("copy_sources", "write_navigation"):
        monkeypatch.setattr(site, step, lambda scale, folder: None)

    def work(enter):
        def run_sphinx(source, folder):
            folder.mkdir(parents=True)
            enter()
            (folder / "index.html").touch()

        monkeypatch.setattr(site, "run_sphinx", run_sphinx)
        assert site.write_site("smoke").exists()

    in_turns(work)
    assert {path.name for path in tmp_path.iterdir()} == {"html", ".html.lock"}


def test_evaluations_into_one_file_take_turns(tiny_bert, smoke_data, tmp_path, monkeypatch):
    from csebench.score import evaluate, models

    monkeypatch.setattr(models, "open_model", lambda *_: None)

    def work(enter):
        monkeypatch.setattr(evaluate, "score", enter)
        evaluate.evaluate(str(tiny_bert), ["sts"], smoke_data, tmp_path / "out.json", "avg")

    in_turns(work)
    assert list(tmp_path.iterdir()) == []
