"""Standard test sets: whether scores are on the same test data as the numbers that papers print.

data/test_sets.yaml lists the hashes of known releases. Data from `csebench fetch` is standard, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from pydantic import RootModel

from csebench.base.caches import cached, cached_by_folder
from csebench.base.files import read_typed, sha256_of_files
from csebench.base.project import folders
from csebench.base.yaml_lines import read_yaml
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import FetchedFiles, hashes_file, sources
from csebench.plan.catalog.registry import Protocol, protocol
from csebench.plan.schema.declarations import Strict
from csebench.score.data_of_scores import EvaluationData


class StandardSet(Strict):
    """The hashes of a standard test set, one for each release that is known to be standard."""

    files: list[str] = []  # `data_sha256` of score files
    # `replicates.items` of score files, only if the digest covers gold scores and sentences
    items: list[str] = []


def is_standard_data(evaluator: str, data: EvaluationData, scale_name: str) -> bool:
    """Whether data is known to be the standard test set of an evaluator.

    Args:
        scale_name: the scale whose data roots hold the notes on fetched files.
    """
    known = standard_sets().get(set_name(protocol(evaluator)), StandardSet())
    if data.files in known.files or data.items in known.items:
        return True
    return data.files != "" and data.files == fetched_data(evaluator, scale_name)


@cached
def standard_sets() -> dict[str, StandardSet]:
    """Read data/test_sets.yaml of the project and of folders that join it, by evaluator."""
    entries = {}
    for folder in folders():
        path = folder / "data" / "test_sets.yaml"
        if path.exists():
            entries[path] = read_yaml(path, RootModel[dict[str, StandardSet]]).root
    return catalog.joined(entries)


def set_name(evaluator: Protocol) -> str:
    """Name the test set of an evaluator, without the evaluator's variant.

    `transfer`, or `beir:scifact` if the evaluator takes a parameter without a default.
    """
    name = evaluator.declaration.name
    if evaluator.declaration.takes:
        return f"{name}:{evaluator.taken}"
    return name


# ---------------------------------------------------------------- fetched data


@cached_by_folder
def fetched_data(evaluator: str, scale_name: str) -> str:
    """Compute the `data_sha256` that scores on fetched files have; empty if a file is missing.

    A fetched source is standard by construction: its download had the hash that data/sources.yaml
    pins. Fetching notes the hashes of its files, so they are known here without the files.
    """
    hashes = fetched_hashes(scale_name)
    files = []
    for pattern in protocol(evaluator).files:
        regex = glob_as_regex(pattern)
        names = [name for name in hashes if re.fullmatch(regex, name)]
        if not names:
            return ""
        for name in sorted(names, key=PurePath):
            files.append((name, hashes[name]))
    if not files:
        return ""
    return sha256_of_files(files)


@cached_by_folder
def fetched_hashes(scale_name: str) -> dict[str, str]:
    """Read the sha256 of every file that was fetched, by its name below the data root."""
    hashes: dict[str, str] = {}
    for path in fetch_notes(scale_name):
        _, fetched = read_typed(path, FetchedFiles, "Delete it, and fetch the data again.")
        hashes |= fetched.files
    return hashes


def fetch_notes(scale_name: str) -> Iterator[Path]:
    """Find the notes on fetched files, below the given data root and the project's own."""
    for root in (catalog.given_root(catalog.scale(scale_name)), Path(catalog.FETCHED)):
        if root is None:
            continue
        for name in sources():
            path = hashes_file(name, root)
            if path.exists():
                yield path


def glob_as_regex(pattern: str) -> str:
    """Translate a pattern of `Path.glob` to a regular expression.

    `*` stays within a folder, `**/` is any number of folders.
    """
    text = re.escape(pattern).replace(r"\*\*/", "(.+/)?")
    return text.replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
