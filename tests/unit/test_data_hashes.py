"""Hashes of benchmark data that planning keeps on disk."""

import json
import os
import shutil
from pathlib import Path

import pytest

from csebench.base import caches, files
from csebench.base.errors import BadInput
from csebench.data import fetch
from csebench.plan import catalog, data_hashes
from csebench.plan.registry import protocol
from csebench.score.evaluate import data_sha256


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sts.csv"
    path.write_text("one\n")
    return path


def hashed(file):
    return data_hashes.kept_hashes({"sts.csv": file})["sts.csv"]


def test_a_file_is_read_once(file, monkeypatch):
    first = hashed(file)
    monkeypatch.setattr(data_hashes, "sha256", lambda path: pytest.fail("was read again"))
    assert hashed(file) == first == files.sha256(file)


def test_a_changed_file_of_the_same_size_and_time_is_read_again(file):
    first, times = hashed(file), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text("two\n")
    os.utime(file, ns=times)
    files._sha256.cache_clear()  # of this process, which knows size and time only
    assert hashed(file) != first


@pytest.mark.parametrize("content", ["", "[]", "{", '{"PATH": 3}', '{"PATH": [1, 2]}', "\udcff"])
def test_a_damaged_file_of_hashes_is_made_again(file, content):
    data_hashes.FILE.parent.mkdir(parents=True)
    data_hashes.FILE.write_bytes(content.replace("PATH", str(file)).encode("utf-8", "surrogateescape"))
    assert hashed(file) == files.sha256(file)
    assert json.loads(data_hashes.FILE.read_text())[str(file)][1] == files.sha256(file)


@pytest.fixture
def fetched(smoke_data, tmp_path, monkeypatch):
    """The folder of fetched data, with the smoke data as what was fetched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CSEBENCH_DATA", raising=False)
    root = Path(catalog.FETCHED)
    monkeypatch.setattr(fetch, "fetch_senteval", lambda root: shutil.copytree(smoke_data, root))
    fetch.sources()["senteval"](root)
    caches.clear()
    yield root
    caches.clear()


def test_fetched_data_that_was_changed_in_place_is_refused(fetched):
    wanted = protocol("sts")
    assert data_hashes.given_data("sts", "paper") == "" and data_sha256(wanted, fetched)
    file = fetched / "downstream" / "SICK" / "SICK_test_annotated.txt"
    file.write_text(file.read_text() + "\n")
    caches.clear()
    for read in (lambda: data_hashes.given_data("sts", "paper"), lambda: data_sha256(wanted, fetched)):
        with pytest.raises(BadInput, match=f"{file}: changed since it was fetched.*`csebench fetch senteval`"):
            read()


def test_data_that_an_older_version_fetched_is_not_checked(fetched):
    shutil.rmtree(fetched / data_hashes.SUMS)
    caches.clear()
    assert data_sha256(protocol("sts"), fetched)
