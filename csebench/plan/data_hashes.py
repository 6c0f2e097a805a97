"""Hashes of benchmark data, for planning: kept on disk, since a plan is made in seconds and corpora have gigabytes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from csebench.base.caches import cached, cached_by_folder
from csebench.base.data_root import matches
from csebench.base.errors import BadInput
from csebench.base.files import digest, read_json, read_text, sha256, write_json
from csebench.plan import catalog
from csebench.plan.registry import protocol
from csebench.plan.where_data_is import remedy

FILE = catalog.RUNS / ".plan" / "data.json"  # by path: [size, times] of the file, and its sha256

SUMS = ".sha256"  # folder of fetched data with a list per source: the sha256 of its files, as `sha256sum` writes it


@cached
def given_data(evaluator: str, scale_name: str) -> str:
    """One hash over the files of the given data root that an evaluator reads; empty where it reads none there.

    What rules fetch is not part of it: it is not there yet when the first plan is made.

    Raises:
        BadInput: a file that was fetched has changed since.
    """
    scale, patterns = catalog.scale(scale_name), protocol(evaluator).files
    read = {str(path): path for pattern in patterns for path in matches(catalog.data_root(scale), pattern).values()}
    check_fetched(kept_hashes({name: path for name, path in read.items() if fetched_name(path) in fetched_sums()}))
    given = catalog.given_root(scale)
    if given is None:
        return ""
    files = {name: path for pattern in patterns for name, path in matches(given, pattern).items()}
    return digest(kept_hashes(files)) if files else ""


@cached_by_folder
def fetched_sums() -> dict[str, str]:
    """The sha256 of fetched files by their names, as `csebench fetch` listed them. Older versions listed none."""
    lists = sorted((Path(catalog.FETCHED) / SUMS).glob("[!.]*"))
    lines = [line.split("  ", 1) for path in lists for line in read_text(path).splitlines()]
    return {name: stated for stated, name in (line for line in lines if len(line) == 2)}


def fetched_name(path: Path) -> str | None:
    """The name of a file below the folder of fetched data; None for one elsewhere."""
    folder = Path(catalog.FETCHED).absolute()
    return path.absolute().relative_to(folder).as_posix() if path.absolute().is_relative_to(folder) else None


def check_fetched(hashes: Mapping[str, str]) -> None:
    """Compare files, given with their sha256, with what was fetched.

    Raises:
        BadInput: one has changed since.
    """
    for path, actual in hashes.items():
        if (name := fetched_name(Path(path))) and (stated := fetched_sums().get(name, actual)) != actual:
            raise BadInput(
                f"{path}: changed since it was fetched: sha256 is {actual[:12]}…, it was {stated[:12]}…;"
                f" {remedy(name)}"
            )


def kept_hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of files, by name; a file whose size and times are as they were is not read again."""
    kept, new, hashes = read_kept(), {}, {}
    for name, path in files.items():
        status, key = os.stat(path), str(path.absolute())
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        match kept.get(key):
            case [known, str(content)] if known == state:
                hashes[name] = content
            case _:
                hashes[name] = sha256(path)
                new[key] = [state, hashes[name]]
    if new:
        with contextlib.suppress(OSError):  # where the folder is read-only, files are read again
            write_json(FILE, kept | new)
    return hashes


def read_kept() -> dict:
    """What is kept; nothing where there is no file, or a damaged one."""
    try:
        kept = read_json(FILE)
    except BadInput:
        return {}
    return kept if isinstance(kept, dict) else {}
