"""The files of a data root: where each comes from, what to do if one is missing, and the hashes of
files that the user gives.

The sources are read from data/sources.yaml. csebench/data/fetch.py downloads them.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, RootModel

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, digest, matches, read_typed, sha256, write_json
from csebench.base.project import ROOT, folders
from csebench.base.yaml_lines import read_yaml
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import Protocol, protocol
from csebench.plan.schema.declarations import Scale, Strict, Url

# ---------------------------------------------------------------- sources


class Download(Strict):
    """A file of a server, and the sum that it must have."""

    url: Url
    sum: str = Field(pattern="^(md5|sha256):[0-9a-f]+$")


class DataSource(Strict):
    """A source of data/sources.yaml, which `csebench fetch NAME` downloads."""

    # ID@COMMIT of the data set that has `file`; None: there are `downloads`
    hub: str | None = None
    file: str = ""
    downloads: list[Download] = []
    folder: str  # below a data root
    files: str = ".+"  # regular expression of the files in `folder`
    ready: str  # a file in `folder` that exists only if all of them do
    registered: str | None = None  # dataset of data/registry.yaml with the sha256 of `ready`

    @property
    def marker(self) -> str:
        """The file of a data root that exists only if all files of the source do."""
        return f"{self.folder}/{self.ready}"


class SourcesFile(Strict):
    """data/sources.yaml."""

    sources: dict[str, DataSource]
    by_hand: dict[str, str]  # what to do about a file without a public source


class FetchedFiles(BaseModel):
    """The files of a fetched source, noted by `csebench fetch` if its download had the pinned
    sum."""

    files: dict[str, str]  # sha256 by name below the data root
    sha256: str  # of the other keys


def hashes_file(source: str, data_root: Path | DataRoot) -> Path:
    """Return the path of the notes on a fetched source: `.hashes/beir.scifact.json`."""
    return data_root / ".hashes" / f"{source.replace(':', '.')}.json"


@cached
def sources_file() -> SourcesFile:
    return read_yaml(ROOT / "data" / "sources.yaml", SourcesFile)


def sources() -> dict[str, DataSource]:
    """Return the sources of data/sources.yaml, by name."""
    return sources_file().sources


def source_of(file: str) -> str | None:
    """Name the public source of a file of a data root, or of a pattern of files.

    Returns:
        None if there is none.
    """
    for name, source in sources().items():
        if re.fullmatch(f"{re.escape(source.folder)}/({source.files})", file):
            return name
    return None


# ---------------------------------------------------------------- missing files


def from_hub(evaluator: Protocol, data_root: Path | DataRoot) -> bool:
    """Whether an evaluator takes its data from the Hugging Face hub.

    An evaluator with `hub`, such as mteb, does so if the data root has none of its files. If the
    data root has some of them, a missing file is an error: sources are not mixed.
    """
    if not evaluator.declaration.hub:
        return False
    return not any(matches(data_root, pattern) for pattern in evaluator.files)


@cached
def unavailable(evaluator: str, scale_name: str) -> str | None:
    """Say why an evaluator cannot be run at a scale.

    Returns:
        None if it can: its files are in the data root, or a public source has them.
    """
    needed = protocol(evaluator)
    data_root = catalog.data_root(catalog.scale(scale_name))
    if from_hub(needed, data_root):
        return None
    without_source = [pattern for pattern in needed.files if source_of(pattern) is None]
    lacking = [pattern for pattern in without_source if not matches(data_root, pattern)]
    if not lacking:
        return None
    return (
        f"no {', '.join(lacking)} in the folder of benchmark data: {remedy(lacking[0], data_root)}"
    )


def missing(name: str, scale: Scale) -> str | None:
    """Say that a file is missing (`no_file`).

    Returns:
        None if the file is in the given data root, or a rule fetches it.
    """
    given = catalog.given_root(scale)
    if given is not None and (given / name).exists():
        return None
    is_fetched = source_of(name) is not None and scale.data_root is None
    if is_fetched:
        return None
    return no_file(name, scale)


def no_file(name: str, scale: Scale) -> str:
    """Say that a file of the benchmark data is missing, where it was looked for, and what to do."""
    data_root = catalog.data_root(scale)
    return f"{name}: no such file of the benchmark data in {data_root}; {remedy(name, data_root)}"


def remedy(name: str, data_root: Path | DataRoot) -> str:
    """Say what to do about a file, or a pattern of files, that a data root does not have.

    CSEBENCH_DATA is named only if the data root reads it.
    """
    source = source_of(name)
    without_source = sources_file().by_hand.get(name, "it has no public source")
    if reads_fetched(data_root):
        supply = "put it into the folder that CSEBENCH_DATA (or --data) names (docs/data.md)"
        if source is None:
            return f"{without_source}; {supply}."
        return f"`csebench fetch {source}` fetches it; or {supply}."
    folder = own_place(data_root)
    if source is None:
        return f"{without_source}; put it into {folder} (docs/data.md)."
    return (
        f"`csebench fetch {source}` fetches it to {catalog.FETCHED}; copy it to {folder}"
        " (docs/data.md)."
    )


def reads_fetched(data_root: Path | DataRoot) -> bool:
    """Whether a data root includes the folder that `csebench fetch` writes to.

    It does at scales without a `data_root` of their own. Only these scales read CSEBENCH_DATA.
    """
    roots = data_root.roots if isinstance(data_root, DataRoot) else (data_root,)
    fetched = Path(catalog.FETCHED).parts
    return any(root.parts[-len(fetched) :] == fetched for root in roots)


def own_place(data_root: Path | DataRoot) -> Path:
    """Return the folder into which the user should put a file.

    If the data root is in the project, this is the corresponding folder in the last folder that
    joins the project, so that users do not change the project itself.
    """
    last = data_root.roots[-1] if isinstance(data_root, DataRoot) else data_root
    absolute = Path(os.path.abspath(last))
    for folder in reversed(folders()):
        if absolute.is_relative_to(folder):
            return Path(os.path.relpath(folders()[-1] / absolute.relative_to(folder)))
    return last


# ---------------------------------------------------------------- hashes of given data

HASHES = catalog.RUNS / ".plan" / "data.json"
# path -> (size and times of the file, sha256)
HashesFile = RootModel[dict[str, tuple[list[int], str]]]


@cached
def given_data(evaluator: str, scale_name: str) -> str:
    """Hash the files of the given data root that an evaluator reads.

    Files that rules fetch are not part of the hash: they are not there when the first plan is made.

    Returns:
        one hash over all files; empty if the evaluator reads none of the given data root.
    """
    given = catalog.given_root(catalog.scale(scale_name))
    if given is None:
        return ""
    files: dict[str, Path] = {}
    for pattern in protocol(evaluator).files:
        files |= matches(given, pattern)
    if not files:
        return ""
    return digest(kept_hashes(files))


def kept_hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the sha256 of files, by name.

    Corpora have gigabytes, so hashes are kept on disk. A file is read again only if its size or one
    of its times has changed.
    """
    kept: dict[str, Any] = {}
    with contextlib.suppress(BadInput):  # no file, or a damaged one
        kept, _ = read_typed(HASHES, HashesFile)
    changed: dict[str, Any] = {}
    hashes: dict[str, str] = {}
    for name, path in files.items():
        key = str(path.absolute())
        status = os.stat(path)
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        kept_state, kept_hash = kept.get(key, (None, ""))
        if kept_state == state:
            hashes[name] = kept_hash
        else:
            hashes[name] = sha256(path)
            changed[key] = [state, hashes[name]]
    # without runs, planning must not create files, for example in a dry run
    if changed and catalog.RUNS.is_dir():
        with contextlib.suppress(OSError):  # the folder is read-only: files are read again
            write_json(HASHES, kept | changed)
    return hashes
