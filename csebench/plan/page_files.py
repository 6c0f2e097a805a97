"""Checksums in results/.logs/ of what rules write below results/, so that what was edited by hand is made again.

Snakemake does not look into its own outputs. It makes one again when a parameter of its rule changes: the number of
edits that were noticed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import folder_sha256, sha256, write_text
from csebench.plan.catalog import RESULTS


def write_page(path: Path, text: str) -> None:
    """Write a page, and the checksum of one below results/."""
    write_text(path, text)
    note_checksum(path)


def note_checksum(path: Path) -> None:
    """Keep the checksum of a file or folder that was just written, where it is one below results/."""
    if (checksum := checksum_path(path)) is not None:
        write_text(checksum, f"{_content_sha256(path)} {_read(checksum)[1]}\n")


def count_edits(*paths: Path) -> int:
    """How often files and folders below results/ were edited by hand, as far as it was noticed: each edit is counted
    once."""
    return sum(map(_count_edits, paths))


def _count_edits(path: Path) -> int:
    checksum = checksum_path(path)
    if checksum is None:
        return 0
    written, edits = _read(checksum)
    with contextlib.suppress(OSError, BadInput):  # it is not there, or a folder cannot be written
        content = _content_sha256(path)
        if written and content != written:
            edits += 1
            write_text(checksum, f"{content} {edits}\n")
    return edits


def checksum_path(path: Path) -> Path | None:
    """Where the checksum of a file or folder is; None for one elsewhere than below results/, or in a hidden folder."""
    results = RESULTS.absolute()
    if not path.absolute().is_relative_to(results):
        return None
    name = path.absolute().relative_to(results)
    return None if any(part.startswith(".") for part in name.parts) else RESULTS / ".logs" / f"{name}.sha256"


def _read(checksum: Path) -> tuple[str, int]:
    """(sha256, edits); of what was not written here, or of a damaged file, nothing."""
    try:
        written, edits = checksum.read_text(encoding="utf-8").split()
        return written, int(edits)
    except (OSError, ValueError):
        return "", 0


def _content_sha256(path: Path) -> str:
    return folder_sha256(path) if path.is_dir() else sha256(path)
