"""Pages as files: written with a checksum in results/.logs/, so that a page that was edited by hand is made again.

Snakemake does not look into its own outputs. It makes a page again when a parameter of its rule changes: the number of
edits that were noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from csebench.base.files import write_text
from csebench.plan.catalog import RESULTS


def write_page(path: Path, text: str) -> None:
    """Write a page, and the checksum of one below results/."""
    if (checksum := checksum_path(path)) is not None:
        write_text(checksum, f"{_sha256(text.encode())} {_read(checksum)[1]}\n")
    write_text(path, text)


def count_edits(path: Path) -> int:
    """How often a page below results/ was edited by hand, as far as it was noticed: each edit is counted once."""
    checksum = checksum_path(path)
    if checksum is None:
        return 0
    written, edits = _read(checksum)
    with contextlib.suppress(OSError):  # no page, or a folder that cannot be written
        content = _sha256(path.read_bytes())
        if written and content != written:
            edits += 1
            write_text(checksum, f"{content} {edits}\n")
    return edits


def checksum_path(path: Path) -> Path | None:
    """Where the checksum of a page is; None for a page that is elsewhere than below results/."""
    results = RESULTS.absolute()
    if not path.absolute().is_relative_to(results):
        return None
    return RESULTS / ".logs" / f"{path.absolute().relative_to(results)}.sha256"


def _read(checksum: Path) -> tuple[str, int]:
    """(sha256, edits); of a page that was not written here, or of a damaged file, nothing."""
    try:
        written, edits = checksum.read_text(encoding="utf-8").split()
        return written, int(edits)
    except (OSError, ValueError):
        return "", 0


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
