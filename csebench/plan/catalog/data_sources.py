"""The source of every file of a data root, what to do without one, hashes of given data.
Fetching: data/fetch.py."""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, Field, RootModel

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, digest, matches, read_typed, sha256, write_json
from csebench.base.project import ROOT, folders
from csebench.base.yaml_lines import read_yaml
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import Protocol, protocol
from csebench.plan.schema.declarations import Scale, Strict, Url


class Download(Strict):
    """A file of a server, with the sum that it must have."""

    url: Url
    sum: str = Field(pattern="^(md5|sha256):[0-9a-f]+$")


class DataSource(Strict):
    """What `csebench fetch NAME` brings (data/sources.yaml)."""

    # ID@COMMIT of the data set that has `file`; without one, there are `downloads`
    hub: str | None = None
    file: str = ""
    downloads: list[Download] = []
    folder: str
    files: str = ".+"
    ready: str
    registered: str | None = None

    @property
    def marker(self) -> str:
        """The file of a data root that is there when all are."""
        return f"{self.folder}/{self.ready}"


class SourcesFile(Strict):
    """data/sources.yaml."""

    sources: dict[str, DataSource]
    by_hand: dict[str, str]  # what to do about a file without a public source


class FetchedFiles(BaseModel):
    """What `csebench fetch` notes of a source when its download had the pinned sum."""

    files: dict[str, str]  # sha256 by name below the data root
    sha256: str  # of the other keys


def hashes_file(source: str, data_root: Path | DataRoot) -> Path:
    """Path of the notes on a fetched source: `.hashes/beir.scifact.json`."""
    return data_root / ".hashes" / f"{source.replace(':', '.')}.json"


@cached
def sources_file() -> SourcesFile:
    return read_yaml(ROOT / "data" / "sources.yaml", SourcesFile)


def sources() -> dict[str, DataSource]:
    """What can be fetched, by name."""
    return sources_file().sources


def source_of(file: str) -> str | None:
    """The name of the source of a file, or of a pattern of files, of a data root; None without a
    public one."""
    for name, source in sources().items():
        if re.fullmatch(f"{re.escape(source.folder)}/({source.files})", file):
            return name
    return None


def from_hub(wanted: Protocol, data_root: Path | DataRoot) -> bool:
    """Whether an evaluator takes its data from the Hugging Face hub: a task of mteb of which the
    data root has no file. Where some are there, one that is missing is an error rather than
    another source."""
    return wanted.declaration.hub and not any(
        matches(data_root, pattern) for pattern in wanted.files
    )


@cached
def unavailable(evaluator: str, scale_name: str) -> str | None:
    """Why an evaluator cannot be run at a scale: the data root has not its files, and no public
    source has them."""
    wanted, data_root = protocol(evaluator), catalog.data_root(catalog.scale(scale_name))
    if from_hub(wanted, data_root):
        return None
    lacking = [
        name for name in wanted.files if source_of(name) is None and not matches(data_root, name)
    ]
    if not lacking:
        return None
    return (
        f"no {', '.join(lacking)} in the folder of benchmark data: {remedy(lacking[0], data_root)}"
    )


def missing(name: str, scale: Scale) -> str | None:
    """`no_file` where a file is neither in the given data root nor fetched by a rule, else None."""
    given = catalog.given_root(scale)
    is_given = given is not None and (given / name).exists()
    return (
        None if is_given or (source_of(name) and scale.data_root is None) else no_file(name, scale)
    )


def no_file(name: str, scale: Scale) -> str:
    """That a file of the benchmark data is missing, where it was looked for, and what to do."""
    data_root = catalog.data_root(scale)
    return f"{name}: no such file of the benchmark data in {data_root}; {remedy(name, data_root)}"


def remedy(name: str, data_root: Path | DataRoot) -> str:
    """Say what to do about a file, or a pattern of files, that a data root does not have.

    Only a root that CSEBENCH_DATA adds to, and that holds what is fetched, is told of either.
    """
    source, without_source = (
        source_of(name),
        sources_file().by_hand.get(name, "it has no public source"),
    )
    if reads_fetched(data_root):
        supply = "put it into the folder that CSEBENCH_DATA (or --data) names (docs/data.md)"
        return (
            f"`csebench fetch {source}` fetches it; or {supply}."
            if source
            else f"{without_source}; {supply}."
        )
    folder = own_place(data_root)
    if source:
        return (
            f"`csebench fetch {source}` fetches it to {catalog.FETCHED}; copy it to {folder}"
            " (docs/data.md)."
        )
    return f"{without_source}; put it into {folder} (docs/data.md)."


def reads_fetched(data_root: Path | DataRoot) -> bool:
    """Whether what is fetched is found in a data root, as at scales without a `data_root` of
    their own."""
    roots = data_root.roots if isinstance(data_root, DataRoot) else (data_root,)
    fetched = Path(catalog.FETCHED).parts
    return any(root.parts[-len(fetched) :] == fetched for root in roots)


def own_place(data_root: Path | DataRoot) -> Path:
    """The folder into which the user puts a file: of a root in the project, that of the last
    folder that joins it."""
    last = data_root.roots[-1] if isinstance(data_root, DataRoot) else data_root
    for folder in reversed(folders()):
        if (place := Path(os.path.abspath(last))).is_relative_to(folder):
            return Path(os.path.relpath(folders()[-1] / place.relative_to(folder)))
    return last


HASHES = catalog.RUNS / ".plan" / "data.json"
# by path: (size and times of the file, its sha256)
HashesFile = RootModel[dict[str, tuple[list[int], str]]]


@cached
def given_data(evaluator: str, scale_name: str) -> str:
    """One hash over the files of the given data root that an evaluator reads; empty where it
    reads none there. What rules fetch is not part of it: it is not there yet when the first plan
    is made."""
    given = catalog.given_root(catalog.scale(scale_name))
    if given is None:
        return ""
    files = {
        name: path
        for pattern in protocol(evaluator).files
        for name, path in matches(given, pattern).items()
    }
    return digest(kept_hashes(files)) if files else ""


def kept_hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of files, by name; kept on disk, as corpora have gigabytes, while size and
    times are as they were."""
    kept, new, hashes = {}, {}, {}
    with contextlib.suppress(BadInput):  # no file, or a damaged one
        kept = read_typed(HASHES, HashesFile)[0]
    for name, path in files.items():
        status, key = os.stat(path), str(path.absolute())
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        known, hashes[name] = kept.get(key, (None, ""))
        if known != state:
            hashes[name] = sha256(path)
            new[key] = [state, hashes[name]]
    # a plan alone, as of a dry run, writes nothing into a folder without runs
    if new and catalog.RUNS.is_dir():
        with contextlib.suppress(OSError):  # where the folder is read-only, files are read again
            write_json(HASHES, kept | new)
    return hashes
