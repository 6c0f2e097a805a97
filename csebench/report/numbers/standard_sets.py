"""Standard test sets: whether scores are on the data that papers print numbers of
(data/test_sets.yaml)."""

import re
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
    """The hashes of a standard test set, each of a release that is known to be one."""

    files: list[str] = []  # `data_sha256` of score files
    items: list[str] = []  # `replicates.items`, only where they cover gold scores and sentences


@cached
def standard_sets() -> dict[str, StandardSet]:
    """The entries of data/test_sets.yaml, of the project and of folders that join it, by
    evaluator."""
    paths = (path for folder in folders() if (path := folder / "data" / "test_sets.yaml").exists())
    return catalog.joined(
        {path: read_yaml(path, RootModel[dict[str, StandardSet]]).root for path in paths}
    )


def set_name(wanted: Protocol) -> str:
    """The name of what an evaluator reads, whatever its variant: `transfer`, `beir:scifact`."""
    name = wanted.declaration.name
    return f"{name}:{wanted.taken}" if wanted.declaration.takes else name


def is_standard_data(evaluator: str, data: EvaluationData, scale_name: str) -> bool:
    """Whether data is known to be the standard test set of an evaluator: by its hashes, or as it
    was fetched.

    Args:
        scale_name: whose data roots have the notes on what was fetched.
    """
    known = standard_sets().get(set_name(protocol(evaluator)), StandardSet())
    if data.files in known.files or data.items in known.items:
        return True
    return data.files != "" and data.files == fetched_data(evaluator, scale_name)


@cached_by_folder
def fetched_data(evaluator: str, scale_name: str) -> str:
    """The `data_sha256` of scores on the files that `csebench fetch` brought; empty where it did
    not bring them all.

    A fetched source is standard by construction: its download had the hash that data/sources.yaml
    pins. Fetching notes the hashes of its files, so they are known here without the files.
    """
    noted = fetched_hashes(scale_name)
    sums = []
    for pattern in protocol(evaluator).files:
        names = [name for name in noted if re.fullmatch(glob_as_regex(pattern), name)]
        if not names:
            return ""
        sums += [(name, noted[name]) for name in sorted(names, key=PurePath)]
    if not sums:
        return ""
    return sha256_of_files(sums)


@cached_by_folder
def fetched_hashes(scale_name: str) -> dict[str, str]:
    """The sha256 of every file that was fetched, by its name below the data root."""
    noted: dict[str, str] = {}
    for root in (catalog.given_root(catalog.scale(scale_name)), Path(catalog.FETCHED)):
        if root is None:
            continue
        for path in (hashes_file(name, root) for name in sources()):
            if path.exists():
                noted |= read_typed(path, FetchedFiles, "Delete it, and fetch the data again.")[
                    1
                ].files
    return noted


def glob_as_regex(pattern: str) -> str:
    """A pattern of `Path.glob` as a regular expression: `*` stays within a folder, `**/` is any
    number of folders."""
    text = re.escape(pattern).replace(r"\*\*/", "(.+/)?")
    return text.replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
