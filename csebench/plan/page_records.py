"""What files below results/ are made from, and records of it in results/.logs/: the workflow
makes a page again when one of these contents has changed, whatever the times of files, and
whoever wrote the page."""

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from csebench.base.files import digest, sha256, write_text
from csebench.base.project import PACKAGE, folders, name_of
from csebench.plan import targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.targets import Page

PARTIAL = catalog.RESULTS / "partial"  # pages that are made from the scores that exist
PAGE_ROOMS = ("base", "plan", "score", "report")  # rooms that csebench/report/ imports
# an edited label renders again, and trains nothing
DATA = ("config", "papers", "evidence", "methods", "evaluators")


def renewed_record(output: Path, is_dry_run: bool = False) -> Path:
    """The record of what a file below results/ was made from: newer than the file where that
    changed or lacks a part.

    Args:
        is_dry_run: write no record; a new file outside the project takes the place of one to be
        renewed.
    """
    record, content = record_of(output), content_hash(output)
    if (
        content is not None
        and record.exists()
        and record.read_text(encoding="utf-8").startswith(content)
    ):
        return record
    if is_dry_run:
        return Path(new_file().name)
    # Snakemake ignores a newer file with the content of before
    write_text(record, f"{content} {time.time_ns()}")
    return record


@functools.cache
def new_file() -> "tempfile._TemporaryFileWrapper":
    """A file that is newer than every page, and is deleted at the end of the process."""
    return tempfile.NamedTemporaryFile(prefix="csebench-", suffix=".made-from")


@contextlib.contextmanager
def recording(page: Path, out: Path | None) -> Iterator[None]:
    """Keep the record of a page that such a block writes to its place in results/, or in
    results/partial/."""
    out = Path(os.path.relpath(out or os.devnull))
    content = (
        content_hash(out) if out in (page, PARTIAL / page.relative_to(catalog.RESULTS)) else None
    )
    yield
    if content is not None:
        write_text(record_of(out), content)
        os.utime(record_of(out), (0, 0))  # older than the page
    elif out.is_relative_to(catalog.RESULTS):
        record_of(out).unlink(missing_ok=True)


def record_of(output: Path) -> Path:
    """In a folder of its own: Snakemake lists a folder once, and takes what is written later for
    missing."""
    return catalog.RESULTS / ".logs" / output.relative_to(catalog.RESULTS) / "made-from"


def content_hash(output: Path) -> str | None:
    """Hash of what a file below results/ is made from: files of rules, code, data; None if one
    of rules is missing."""
    made = made_by_rules(output)
    if not output.is_relative_to(PARTIAL) and not all(path.exists() for path in made):
        return None
    names = (*DATA, "docs") if output.name == "html" else DATA
    sources = [
        *(folder / name for folder in folders() for name in names),
        *(PACKAGE / room for room in PAGE_ROOMS),
    ]
    project = [
        path
        for source in sources
        for path in sorted(source.rglob("[!.]*"))
        if "__pycache__" not in path.parts
    ]
    # by which printed values are judged
    project += [folder / "data" / "test_sets.yaml" for folder in folders()]
    contents = {path: path for path in made} | {name_of(path): path for path in project}
    return digest(
        {str(name): sha256(path) for name, path in contents.items() if path.is_file()}, 16
    )


def made_by_rules(output: Path) -> list[Path]:
    """The files that rules make for a file below results/: scores, pages, searches."""
    name, scale = name_and_scale(output)
    if name == "evidence":
        return []
    if name in ("scores", "cells", "comparisons"):
        return scores_of_pages(targets.pages(scale))
    if name == "html":  # which copies pages
        files = {
            path
            for page in targets.pages(scale)
            for path in (page.path, page.path.with_suffix(".md"))
        }
        over_all = [
            catalog.results_folder(scale) / f"{over_all}.md" for over_all in catalog.OVER_ALL
        ]
        return [*sorted(files), *over_all, catalog.RESULTS / "evidence.md"]
    if name in catalog.OVER_ALL:
        return [
            *scores_of_pages(targets.pages(scale)),
            *(page.path for page in targets.pages(scale)),
        ]
    (page,) = targets.parse_target(name, scale)
    searches = tuning.search_files(scale) if name == catalog.SIDE_BY_SIDE else []
    return scores_of_pages([page]) + searches


def scores_of_pages(pages: Iterable[Page]) -> list[Path]:
    """Score JSONs that pages show."""
    return sorted(
        {targets.score_path(*pair, page.scale) for page in pages for pair in page.available()}
    )


def name_and_scale(output: Path) -> tuple[str, str]:
    """Of a file below results/: `micse/table2`, `index`, `html` …, and the scale."""
    parts, scale = targets.split_target(str(output), catalog.DEFAULT_SCALE)
    return "/".join(parts).partition(".")[0], scale
