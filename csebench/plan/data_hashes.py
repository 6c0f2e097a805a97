"""Hashes of benchmark data, for planning: kept on disk, since a plan is made in seconds and corpora have gigabytes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from csebench.base.caches import cached
from csebench.base.data_root import matches
from csebench.base.errors import BadInput
from csebench.base.files import read_text, sha256, write_json
from csebench.plan import catalog
from csebench.plan.registry import protocol
from csebench.plan.spec import digest

FILE = catalog.RUNS / ".plan" / "data.json"  # by path: [size, times] of the file, and its sha256


@cached
def given_data(evaluator: str, scale_name: str) -> str:
    """One hash over the files of the given data root that an evaluator reads; empty where it reads none there.

    What rules fetch is not part of it: it is not there yet when the first plan is made, and is compared with published
    hashes when it is fetched.
    """
    given = catalog.given_root(catalog.scale(scale_name))
    if given is None:
        return ""
    files = {name: path for pattern in protocol(evaluator).files for name, path in matches(given, pattern).items()}
    return digest(kept_hashes(files)) if files else ""


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
        kept = json.loads(read_text(FILE))
    except (BadInput, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
