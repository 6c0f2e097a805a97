"""Hashes of benchmark data that planning keeps on disk."""

import json
import os

import pytest

from csebench.base import files
from csebench.plan import where_data_is


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sts.csv"
    path.write_text("one\n")
    return path


def hashed(file):
    return where_data_is.kept_hashes({"sts.csv": file})["sts.csv"]


def test_a_file_is_read_once(file, monkeypatch):
    first = hashed(file)
    monkeypatch.setattr(where_data_is, "sha256", lambda path: pytest.fail("was read again"))
    assert hashed(file) == first == files.sha256(file)


def test_a_changed_file_of_the_same_size_and_time_is_read_again(file):
    first, times = hashed(file), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text("two\n")
    os.utime(file, ns=times)
    files._sha256.cache_clear()  # of this process, which knows size and time only
    assert hashed(file) != first


@pytest.mark.parametrize("content", ["", "[]", "{", '{"PATH": 3}', '{"PATH": [1, 2]}', "\udcff"])
def test_a_damaged_file_of_hashes_is_made_again(file, content):
    where_data_is.HASHES.parent.mkdir(parents=True)
    where_data_is.HASHES.write_bytes(content.replace("PATH", str(file)).encode("utf-8", "surrogateescape"))
    assert hashed(file) == files.sha256(file)
    assert json.loads(where_data_is.HASHES.read_text())[str(file)][1] == files.sha256(file)
