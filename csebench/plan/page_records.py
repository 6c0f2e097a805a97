"""Records of what the files below results/ are made from.

A record in results/.logs/ holds one hash over the contents of all files that a page is made from.
The workflow makes the page again if the hash has changed. It does not matter when these files were
written, or whether the workflow or a user wrote the page.
"""

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
from csebench.plan.controls import control_scores
from csebench.plan.rows import find_row
from csebench.plan.targets import Page

PARTIAL = catalog.RESULTS / "partial"  # pages that are made from the scores that exist
PAGE_ROOMS = ("base", "plan", "score", "report")  # folders of csebench/ that make pages
# folders whose content pages show, so that an edited label makes pages again
DATA = ("config", "papers", "evidence", "methods", "evaluators")


# ---------------------------------------------------------------- records


def renewed_record(output: Path, is_dry_run: bool = False) -> Path:
    """Return the record of a file below results/, and renew it if the file has to be made again.

    A file has to be made again if the hash has changed, or if one of its input files is missing.
    The renewed record is newer than the file, which tells the workflow.

    Args:
        is_dry_run: write no record. If it has to be renewed, return a new file outside the project
            in its place.
    """
    record = record_of(output)
    content = content_hash(output)
    if content is not None and record.exists():
        recorded = record.read_text(encoding="utf-8")
        if recorded.startswith(content):
            return record
    if is_dry_run:
        return Path(new_file().name)
    # Snakemake ignores a newer file whose content is the same, so a time makes it different.
    write_text(record, f"{content} {time.time_ns()}")
    return record


@functools.cache
def new_file() -> "tempfile._TemporaryFileWrapper":
    """Make a file that is newer than every page, and that is deleted at the end of the process."""
    return tempfile.NamedTemporaryFile(prefix="csebench-", suffix=".made-from")


@contextlib.contextmanager
def recording(page: Path, out: Path | None) -> Iterator[None]:
    """Keep the record of a page that the block writes.

    The page has a record if the block writes it to its place in results/ or in results/partial/. If
    the block writes to another file of results/, the record of this file is deleted.

    Args:
        page: the place of the page in results/.
        out: the file that the block writes; None if it writes none.
    """
    out = Path(os.path.relpath(out or os.devnull))
    content = None
    if out in (page, PARTIAL / page.relative_to(catalog.RESULTS)):
        content = content_hash(out)  # before the block reads scores, which may change meanwhile
    yield
    if content is not None:
        write_text(record_of(out), content)
        os.utime(record_of(out), (0, 0))  # older than the page
    elif out.is_relative_to(catalog.RESULTS):
        record_of(out).unlink(missing_ok=True)


def record_of(output: Path) -> Path:
    """Return the path of a record.

    Each record has a folder of its own. Snakemake lists a folder only once, and a record that is
    written to the folder later would seem to be missing.
    """
    return catalog.RESULTS / ".logs" / output.relative_to(catalog.RESULTS) / "made-from"


# ---------------------------------------------------------------- what a file is made from


def content_hash(output: Path) -> str | None:
    """Hash everything that a file below results/ is made from: files that rules make, code, data.

    Returns:
        None if a file that rules make is missing, except for pages in results/partial/, which are
        made from the files that exist.
    """
    rule_files = made_by_rules(output)
    if not output.is_relative_to(PARTIAL) and not all(path.exists() for path in rule_files):
        return None
    contents = {str(path): path for path in rule_files}
    _, scale = name_and_scale(output)
    contents |= {str(path): path for path in control_scores(scale)}
    if catalog.scale(scale).tuned:  # pages say what searches tuned away
        contents |= {str(path): path for path in tuning.search_files(scale)}
    contents |= {name_of(path): path for path in project_sources(output)}
    hashes = {name: sha256(path) for name, path in contents.items() if path.is_file()}
    return digest(hashes, 16)


def project_sources(output: Path) -> list[Path]:
    """List the files of the project, and of folders that join it, that a file below results/ is
    made from."""
    names = DATA
    if output.name == "html":
        names = (*DATA, "docs")
    sources: list[Path] = []
    for folder in folders():
        sources += [folder / name for name in names]
    sources += [PACKAGE / room for room in PAGE_ROOMS]

    files: list[Path] = []
    for source in sources:
        found = source.rglob("[!.]*")
        files += [path for path in sorted(found) if "__pycache__" not in path.parts]
    # the standard test sets: printed values are judged on no other data
    files += [folder / "data" / "test_sets.yaml" for folder in folders()]
    return files


def made_by_rules(output: Path) -> list[Path]:
    """List the files that rules make for a file below results/: scores, pages, searches.

    Raises:
        BadInput: there is no such page or row, or nothing of the row can be run.
    """
    name, scale = name_and_scale(output)
    if name == "evidence":
        return []
    if name in ("scores", "cells", "comparisons"):
        return scores_of_pages(targets.pages(scale))
    if name == "html":
        return copied_pages(scale)
    row = find_row(str(output), scale)
    if row is not None:
        return score_paths(row.available(), scale)
    if name in catalog.OVER_ALL:
        pages = targets.pages(scale)
        return scores_of_pages(pages) + [page.path for page in pages]
    (page,) = targets.parse_target(name, scale)
    files = scores_of_pages([page])
    if name == catalog.SIDE_BY_SIDE:
        files += tuning.search_files(scale)
    return files


def copied_pages(scale: str) -> list[Path]:
    """List the pages that the site of a scale copies."""
    files: set[Path] = set()
    for page in targets.pages(scale):
        files |= {page.path, page.path.with_suffix(".md")}  # a figure has a page, too
    folder = catalog.results_folder(scale)
    over_all = [folder / f"{name}.md" for name in catalog.OVER_ALL]
    return [*sorted(files), *over_all, catalog.RESULTS / "evidence.md"]


def scores_of_pages(pages: Iterable[Page]) -> list[Path]:
    """List the score JSONs that pages show."""
    paths: set[Path] = set()
    for page in pages:
        paths.update(score_paths(page.available(), page.scale))
    return sorted(paths)


def score_paths(scores: Iterable[tuple[str, str]], scale: str) -> list[Path]:
    """List the score JSONs of scores, each given as (run id, evaluator)."""
    return [targets.score_path(run_id, evaluator, scale) for run_id, evaluator in scores]


def name_and_scale(output: Path) -> tuple[str, str]:
    """Split the path of a file below results/ into its name and its scale.

    The name is `micse/table2`, `index`, `html` and so on.
    """
    parts, scale = targets.split_target(str(output), catalog.DEFAULT_SCALE)
    return "/".join(parts).partition(".")[0], scale
