"""Downloaded archives: what must not be unpacked ends with one message, and nothing outside or inside the folder."""

import io
import tarfile
import zipfile

import pytest

from csebench.base.errors import RunFailed
from csebench.data import archives
from csebench.data.archives import unpack


def tar(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                archive.addfile(member)
    return path


def zipped(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def refused(archive, tmp_path, part):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunFailed, match=part) as caught:
        unpack(archive, tmp_path / "inner" / "folder")
    assert str(caught.value).count("\n") == 0 and archive.name in str(caught.value)
    assert not (tmp_path / "inner" / "folder").exists()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("make", [tar, zipped])
def test_files_and_folders_are_unpacked(make, tmp_path):
    archive = make(tmp_path / "archive", ("set/a.txt", b"one"), ("set/inner/b.txt", b"two"))
    unpack(archive, tmp_path / "folder")
    assert (tmp_path / "folder" / "set" / "a.txt").read_bytes() == b"one"
    assert (tmp_path / "folder" / "set" / "inner" / "b.txt").read_bytes() == b"two"


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize("name", ["../outside", "set/../../outside", "/tmp/outside", "..\\outside"])
def test_a_path_that_leaves_the_folder(make, name, tmp_path):
    refused(make(tmp_path / "archive", ("set/a", b"one"), (name, b"two")), tmp_path, "leaves the folder")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_link_or_device_of_a_tar_archive(kind, tmp_path):
    archive = tar(tmp_path / "archive", ("set/a", b"one"), ("set/b", (kind, "/etc/passwd")), ("set/b/c", b"two"))
    refused(archive, tmp_path, "is a link or a device")


def test_a_link_of_a_zip_archive(tmp_path):
    link = zipfile.ZipInfo("set/b")
    link.external_attr = 0o120777 << 16
    refused(zipped(tmp_path / "archive", ("set/a", b"one"), (link, "/etc/passwd")), tmp_path, "is a link or a device")


@pytest.mark.parametrize("make", [tar, zipped])
def test_an_archive_that_grows_without_measure(make, tmp_path):
    archive = make(tmp_path / "archive", ("set/a", b"\0" * 10_000_000))
    assert archive.stat().st_size < 20_000
    refused(archive, tmp_path, "unpacks to more than")


@pytest.mark.parametrize("make", [tar, zipped])
def test_an_archive_of_too_many_files(make, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    refused(make(tmp_path / "archive", *((str(n), b"x") for n in range(4))), tmp_path, "more than 3 files")


def test_a_zip_archive_that_understates_its_size(tmp_path):
    archive = zipped(tmp_path / "archive", ("set/a", b"x" * 5000))
    content = archive.read_bytes()
    archive.write_bytes(content.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little")))
    refused(archive, tmp_path, "is damaged")


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"\x1f\x8b\x08\0", b"no archive"])
def test_what_is_no_archive(content, tmp_path):
    (tmp_path / "archive").write_bytes(content)
    refused(tmp_path / "archive", tmp_path, "is damaged")
