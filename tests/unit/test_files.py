"""What writers of files leave to one another: temporary files, permissions, and turns at one file or folder."""

import errno
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from csebench.base import files
from csebench.base.locks import locked


def test_a_failed_writer_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), files.replacing(tmp_path / "scores.json") as temporary:
        temporary.touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_with_the_file(tmp_path):
    """Python does not name it where a write fails."""
    with pytest.raises(OSError) as error, files.replacing(tmp_path / "scores.json"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert error.value.filename == str(tmp_path / "scores.json")


def test_a_full_disk_below_a_library_is_an_error_of_the_system(tmp_path):
    """torch.save's says "unexpected pos", and that of safetensors is no OSError."""

    class Full(io.RawIOBase):
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError) as error, files.replacing(tmp_path / "state.pt"):
        torch.save(torch.zeros(9), Full())
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / "state.pt"))
    with pytest.raises(OSError) as error, files.system_errors(tmp_path / "model"):
        raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
    assert (error.value.errno, error.value.filename) == (28, str(tmp_path / "model"))


# ---------------------------------------------------------------- several processes (threads stand for them)


def in_turns(work, workers=3):
    """Calls `work(enter)` in several threads; `enter` must be called by one at a time."""
    inside = []

    def enter(*_):
        inside.append(None)
        time.sleep(0.05)
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
