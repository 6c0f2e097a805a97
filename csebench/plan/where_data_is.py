"""The source of every file of a data root, what to do without one, hashes of given data. Fetching: data/fetch.py."""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, RootModel

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, digest, matches, read_typed, read_yaml, sha256, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog
from csebench.plan.declarations import Scale, Strict, Url
from csebench.plan.registry import Protocol, protocol


class Download(Strict):
    """A file of a server, with the sum that it must have."""

    url: Url
    sum: str = Field(pattern="^(md5|sha256):[0-9a-f]+$")


class Source(Strict):
    """What `csebench fetch NAME` brings (data/sources.yaml)."""

    hub: str | None = None  # ID@COMMIT of the data set that has `file`; without one, there are `downloads`
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

    sources: dict[str, Source]
    by_hand: dict[str, str]  # what to do about a file without a public source


@cached
def sources_file() -> SourcesFile:
    return read_yaml(ROOT / "data" / "sources.yaml", SourcesFile)


def sources() -> dict[str, Source]:
    """What can be fetched, by name."""
    return sources_file().sources


def source_of(file: str) -> str | None:
    """The name of the source of a file, or of a pattern of files, of a data root; None without a public one."""
    for name, source in sources().items():
        if re.fullmatch(f"{re.escape(source.folder)}/({source.files})", file):
            return name
    return None


def from_hub(wanted: Protocol, data_root: Path | DataRoot) -> bool:
    """Whether an evaluator takes its data from the Hugging Face hub: a task of mteb of which the data root has no
    file. Where some are there, one that is missing is an error rather than another source."""
    return wanted.declaration.hub and not any(matches(data_root, pattern) for pattern in wanted.files)


@cached
def unavailable(evaluator: str, scale_name: str) -> str | None:
    """Why an evaluator cannot be run at a scale: the data root has not its files, and no public source has them."""
    wanted, data_root = protocol(evaluator), catalog.data_root(catalog.scale(scale_name))
    if from_hub(wanted, data_root):
        return None
    lacking = [name for name in wanted.files if source_of(name) is None and not matches(data_root, name)]
    return f"no {', '.join(lacking)} in the folder of benchmark data: {remedy(lacking[0])}" if lacking else None


def missing(name: str, scale: Scale) -> str | None:
    """`no_file` where a file is neither in the given data root nor fetched by a rule, else None."""
    given = catalog.given_root(scale)
    is_given = given is not None and (given / name).exists()
    return None if is_given or (source_of(name) and scale.data_root is None) else no_file(name, scale)


def no_file(name: str, scale: Scale) -> str:
    """That a file of the benchmark data is missing, where it was looked for, and what to do."""
    return f"{name}: no such file of the benchmark data in {catalog.data_root(scale)}; {remedy(name)}"


def remedy(name: str) -> str:
    """What to do about a file, or a pattern of files, that a data root has not."""
    supply = "put it into the folder that CSEBENCH_DATA (or --data) names (docs/data.md)"
    if source := source_of(name):
        return f"`csebench fetch {source}` fetches it; or {supply}."
    return f"{sources_file().by_hand.get(name, 'it has no public source')}; {supply}."


HASHES = catalog.RUNS / ".plan" / "data.json"
HashesFile = RootModel[dict[str, tuple[list[int], str]]]  # by path: (size and times of the file, its sha256)


@cached
def given_data(evaluator: str, scale_name: str) -> str:
    """One hash over the files of the given data root that an evaluator reads; empty where it reads none there. What
    rules fetch is not part of it: it is not there yet when the first plan is made."""
    given = catalog.given_root(catalog.scale(scale_name))
    if given is None:
        return ""
    files = {name: path for pattern in protocol(evaluator).files for name, path in matches(given, pattern).items()}
    return digest(kept_hashes(files)) if files else ""


def kept_hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of files, by name; kept on disk, as corpora have gigabytes, while size and times are as they were."""
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
    if new and catalog.RUNS.is_dir():  # a plan alone, as of a dry run, writes nothing into a folder without runs
        with contextlib.suppress(OSError):  # where the folder is read-only, files are read again
            write_json(HASHES, kept | new)
    return hashes
