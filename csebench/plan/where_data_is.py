"""Where benchmark data come from: the public source of every file of a data root, and what to do about one that has
none. The fetching itself is in csebench/data/fetch.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import RootModel

from csebench.base.caches import cached
from csebench.base.data_root import DataRoot, matches
from csebench.base.errors import BadInput
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.plan import catalog
from csebench.plan.declarations import Beir, Download, Scale
from csebench.plan.registry import Protocol, protocol

# `csebench fetch SOURCE` brings the files that a pattern names; the second is a file that is there when all are.
SENTEVAL = "downstream/STS/STSBenchmark/sts-test.csv"
SOURCES = {
    r"wiki/wiki1m_for_simcse\.txt": ("wiki", "wiki/wiki1m_for_simcse.txt"),
    r"nli/nli_for_simcse\.csv": ("nli", "nli/nli_for_simcse.csv"),
    r"wiki/\*\.txt": ("wiki", "wiki/wiki1m_for_simcse.txt"),
    r"downstream/(STS|SICK|MR|CR|SUBJ|MPQA|SST|TREC|MRPC)/.+": ("senteval", SENTEVAL),
    r"misc/imdb/.+": ("imdb", "misc/imdb/train.tsv"),
    r"misc/stackoverflow/.+": ("stackoverflow", "misc/stackoverflow/title_StackOverflow.txt"),
}
NOT_PUBLIC = "it is not public, but a public file of SimCSE can take its place"
BY_HAND = {  # files without a public source: how to get them
    "wiki/wiki1m_github.txt": NOT_PUBLIC,
    "nli/nli_triplets.csv": NOT_PUBLIC,
    "misc/flickr30k/captions.token": "Flickr30k's captions are given out on request (a form at"
    " https://shannon.cs.illinois.edu/DenotationGraph/); its results_20130124.token is this file",
}


def source_of(name: str) -> tuple[str, str] | None:
    """What `csebench fetch` calls the source of a file, or of a pattern of files, of a data root, and a file that is
    there when the source has been fetched; None where no public source is known."""
    if folder := re.match(r"beir/([\w-]+)/", name):
        known = beir().md5
        return (f"beir:{folder[1]}", f"beir/{folder[1]}/source.json") if folder[1] in known else None
    return next((source for pattern, source in SOURCES.items() if re.fullmatch(pattern, name)), None)


@cached
def beir() -> Beir:
    return read_yaml(ROOT / "data" / "beir.yaml", Beir)


@cached
def downloads() -> dict[str, Download]:
    return read_yaml(ROOT / "data" / "downloads.yaml", RootModel[dict[str, Download]]).root


def from_hub(wanted: Protocol, data_root: Path | DataRoot) -> bool:
    """Whether an evaluator takes its data from the Hugging Face hub: a task of mteb of which the data root has no
    file. Where some are there, one that is missing is an error rather than another source."""
    return wanted.declaration.hub and not any(matches(data_root, pattern) for pattern in wanted.files)


def absent(evaluator: str, data_root: Path | DataRoot) -> list[str]:
    """Files and patterns that an evaluator reads and the data root has not; none of a task that comes from the hub."""
    wanted = protocol(evaluator)
    if from_hub(wanted, data_root):
        return []
    return [pattern for pattern in wanted.files if not matches(data_root, pattern)]


def unavailable(evaluator: str, data_root: Path | DataRoot) -> str | None:
    """Why an evaluator cannot be run: the data root has not its files, and no public source has them."""
    if protocol(evaluator).fetched is not None:
        return None
    lacking = [pattern for pattern in absent(evaluator, data_root) if source_of(pattern) is None]
    return f"no {', '.join(lacking)} in the folder of benchmark data: {remedy(lacking[0])}" if lacking else None


def cannot_be_had(name: str, scale: Scale) -> bool:
    """Whether a file is neither in the given data root nor fetched by a rule."""
    given = catalog.given_root(scale)
    return not (given and (given / name).exists()) and (source_of(name) is None or scale.data_root is not None)


def require_files(names: Iterable[str], scale: Scale) -> None:
    """Raises BadInput for the first file that is neither in the given data root nor fetched."""
    for name in names:
        if not (catalog.data_root(scale) / name).exists():
            raise BadInput(no_file(name, scale))


def no_file(name: str, scale: Scale) -> str:
    """That a file of the benchmark data is missing, where it was looked for, and what to do."""
    if scale.data_root is not None:
        return f"{catalog.data_root(scale) / name}: no such file; {remedy(name)}"
    given = os.environ.get("CSEBENCH_DATA")
    state = f"is {given}{'' if Path(given).is_dir() else ', which is no folder'}" if given else "is not set"
    return f"{name}: no such file of the benchmark data (CSEBENCH_DATA {state}); {remedy(name)}"


def remedy(name: str) -> str:
    """What to do about a file, or a pattern of files, that a data root has not."""
    supply = "put it into the folder that CSEBENCH_DATA (or --data) names (docs/data.md)"
    if source := source_of(name):
        return f"`csebench fetch {source[0]}` fetches it; or {supply}."
    known = f"{BY_HAND[name]}; " if name in BY_HAND else "it has no public source; "
    return f"{known}{supply}."
