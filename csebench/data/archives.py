"""Unpacking of downloaded archives, which are not trusted even where their sum is right: files and folders below one
folder, and no more bytes than an archive of that size can hold honestly.

Where archives come from: csebench/data/fetch.py.
"""

from __future__ import annotations

import errno
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

from csebench.base.errors import RunFailed

MOST_FILES = 300_000  # the Large Movie Review Dataset has 100,000
LARGEST_RATIO = 100  # of the bytes of all files to those of the archive; text compresses by 3 to 5
DAMAGE = (tarfile.TarError, BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError, ValueError)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive into a new folder.

    Raises:
        RunFailed: it is damaged, or holds what it must not: a path that leaves the folder, a link, a device, or more
            than its size allows. Nothing of it is left.
    """
    try:
        if archive_is_zip(archive):
            _unpack_zip(archive, folder)
        else:
            with open_tar(archive) as tar:
                for member in files_of(tar, archive):
                    with tar.extractfile(member) as source:
                        _write(source, folder / member.name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def archive_is_zip(archive: Path) -> bool:
    with open(archive, "rb") as file:
        return file.read(2) == b"PK"


def _unpack_zip(archive: Path, folder: Path) -> None:
    with _damage(archive), ZipFile(archive) as content:
        members = content.infolist()
        limit = Limit(archive)
        for member in members:
            limit.add(member.filename, member.file_size)
            kind = (member.external_attr >> 16) & 0o170000
            if kind not in (0, 0o100000, 0o040000):
                raise refusal(archive, member.filename, "is a link or a device")
        for member in members:
            if not member.is_dir():
                with content.open(member) as source:  # which ends after the stated size
                    _write(source, folder / member.filename)


@contextmanager
def open_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """A tar archive; its damage is reported as RunFailed."""
    with _damage(archive), tarfile.open(archive) as tar:
        yield tar


def files_of(tar: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    """The files of a tar archive, each checked before it is given out.

    Raises:
        RunFailed: as `unpack` does.
    """
    limit = Limit(archive)
    for member in tar:
        limit.add(member.name, member.size)
        if member.isfile():
            yield member
        elif not member.isdir():
            raise refusal(archive, member.name, "is a link or a device")


class Limit:
    """Counts what an archive unpacks to, and refuses what it must not."""

    def __init__(self, archive: Path):
        self.archive, self.files, self.bytes = archive, 0, 0
        self.most_bytes = LARGEST_RATIO * archive.stat().st_size

    def add(self, name: str, size: int) -> None:
        """Raises RunFailed where a file leaves the folder, or is one too many."""
        self.files += 1
        self.bytes += size
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise refusal(self.archive, name, "leaves the folder that it is unpacked into")
        if self.files > MOST_FILES or self.bytes > self.most_bytes:
            raise refusal(self.archive, name, f"unpacks to more than {MOST_FILES} files or {self.most_bytes} bytes")


def refusal(archive: Path, name: str, reason: str) -> RunFailed:
    return RunFailed(f"{archive.name}: {name[:200]!r} {reason}; nothing of it was kept. Do not use this archive.")


@contextmanager
def _damage(archive: Path):
    try:
        yield
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # of the disk
            raise
        reason = str(error).partition("\n")[0].removesuffix(":")
        raise RunFailed(f"{archive.name}: is damaged ({reason}); delete it and fetch it again.") from None


def _write(source, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        shutil.copyfileobj(source, file)
