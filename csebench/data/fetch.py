"""Official data from their hub, at pinned revisions and checked: what the rules use where no data root is given."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from csebench.base import hub
from csebench.base.display import bar
from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import sha256, write_json, write_text
from csebench.data.archives import files_of, open_tar, unpack
from csebench.data.corpus import check_sha256
from csebench.data.sts import read_sts
from csebench.plan.catalog import dataset
from csebench.plan.data_hashes import SUMS
from csebench.plan.declarations import Dataset, Download
from csebench.plan.where_data_is import beir, downloads

REPOSITORY = "princeton-nlp/datasets-for-simcse"
REVISION = "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef"
STSB_DEV = "stsb-dev"  # in data/registry.yaml
HUB_FILES = {"wiki": "wiki1m_for_simcse.txt", "nli": "nli_for_simcse.csv", "senteval": "senteval.tar"}  # by source
BLOCK = 2**20  # bytes that are read at a time
SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def download(name: str) -> Path:
    """A file of SimCSE's dataset repository, in the cache or fetched, with the sha256 that the hub keeps for it.

    Raises:
        RunFailed: no connection, or another content.
    """
    return hub.fetch(REPOSITORY, REVISION, "dataset", f"{REPOSITORY}/{name}", [name]) / name


def fetch_file(name: str, root: Path) -> None:
    """A corpus of data/registry.yaml that SimCSE's repository has."""
    wanted = dataset(name)
    path = download(Path(wanted.path).name)
    _check(path, wanted)
    _put(path, root / wanted.path)


def _check(path: Path, wanted: Dataset) -> None:
    try:
        check_sha256(path, wanted.sha256)
    except BadInput as error:
        raise RunFailed(str(error)) from None


def _put(source: Path, out: Path) -> None:
    """A copy, which takes its name when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.part")
    shutil.copyfile(source, part)
    os.replace(part, out)


def fetch_senteval(root: Path) -> None:
    """SimCSE's copy of SentEval's data; unpacked, then every STS set is read and counted, and STS-B dev, which every
    run's identity names, is compared with its sha256."""
    part, target = root / "downstream.part", root / "downstream"
    shutil.rmtree(part, ignore_errors=True)
    unpack(download("senteval.tar"), part)
    marker = "STS/STSBenchmark/sts-dev.csv"
    markers = sorted(part.rglob(marker))
    if not markers:
        shutil.rmtree(part)
        raise RunFailed(f"senteval.tar: no {marker} in it.")
    shutil.rmtree(target, ignore_errors=True)
    os.replace(markers[0].parents[2], target)
    shutil.rmtree(part, ignore_errors=True)
    try:
        for task in SETS:
            read_sts(root, task)
        check_sha256(root / dataset(STSB_DEV).path, dataset(STSB_DEV).sha256)
    except BadInput as e:
        shutil.rmtree(target)
        raise RunFailed(f"senteval.tar is not what was expected: {e}") from None


def fetch_beir(name: str, root: Path) -> None:
    """A dataset of BEIR from its official server, checked against the md5 that BEIR states.

    Raises:
        RunFailed: no connection, another content, or an archive that must not be unpacked.
    """
    url, archive = beir().url.format(name=name), root / "beir" / f"{name}.zip.part"
    wanted = Download(url=url, md5=beir().md5[name])
    fetch_url(wanted, archive, f"CSEBENCH_DATA names a folder with beir/{name}")
    part = root / "beir" / f"{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    unpack(archive, part)
    if not (part / name).is_dir():
        shutil.rmtree(part)
        raise RunFailed(f"{url}: no folder {name} in it.")
    shutil.rmtree(root / "beir" / name, ignore_errors=True)
    os.replace(part / name, root / "beir" / name)
    write_json(root / "beir" / name / "source.json", wanted.model_dump(exclude_none=True))
    shutil.rmtree(part)
    archive.unlink()


def fetch_imdb(root: Path) -> None:
    """The Large Movie Review Dataset from its authors' server, as two tables: label, id, rating and text."""
    archive = root / "misc" / "imdb.tar.gz.part"
    fetch_url(downloads()["imdb"], archive, "CSEBENCH_DATA names a folder with misc/imdb")
    rows: dict[str, list] = {"train": [], "test": []}
    with open_tar(archive) as tar:
        for member in files_of(tar, archive):
            path = Path(member.name)
            if path.parent.name in ("neg", "pos") and path.parent.parent.name in rows and path.suffix == ".txt":
                number, rating = map(int, path.stem.split("_"))
                text = " ".join(tar.extractfile(member).read().decode("utf-8").split("\t"))
                label = int(path.parent.name == "pos")
                rows[path.parent.parent.name].append((label, number, rating, " ".join(text.splitlines())))
    for split, reviews in rows.items():
        lines = [f"{label}\t{number}\t{rating}\t{text}\n" for label, number, rating, text in sorted(reviews)]
        write_text(root / "misc" / "imdb" / f"{split}.tsv", "label\tid\trating\ttext\n" + "".join(lines))
    archive.unlink()


def fetch_stackoverflow(root: Path) -> None:
    """Titles and labels of Xu et al. 2015, from their repository, compared with pinned sums."""
    for name in ("title", "label"):
        out = root / "misc" / "stackoverflow" / f"{name}_StackOverflow.txt"
        part = out.with_name(f"{out.name}.part")
        fetch_url(downloads()[f"stackoverflow-{name}s"], part, f"put {out.name} into misc/stackoverflow")
        os.replace(part, out)


def fetch_task(task: str) -> None:
    """Data of a task of mteb, into the cache of the datasets library.

    Raises:
        RunFailed: its hub cannot be reached.
    """
    import datasets
    import mteb

    datasets.disable_progress_bars()
    wanted = mteb.get_task(task, languages=["eng"], eval_splits=["test"])
    try:
        load_task(wanted)
    except Exception as error:  # of any library on the way
        source = wanted.metadata.dataset
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunFailed(f"mteb: {task}: {source['path']} at {source['revision'][:12]}: {line}") from None


def load_task(task) -> None:
    """Load the data of a task of mteb: from the cache without asking the hub, else from the hub.

    Raises:
        RunFailed: the hub cannot be reached, or sent a file that differs from its list, which is removed.
    """
    dataset = task.metadata.dataset
    folders = cached_task(dataset["path"], dataset["revision"])
    revisions = {path.name for folder in folders[:1] for path in folder.parents[2].glob("*/*/*") if path.is_dir()}
    if {name for name in revisions if hub.COMMIT.fullmatch(name)} == {dataset["revision"]}:
        try:
            with _offline():  # takes the latest revision in the cache, here the only one
                return task.load_data()
        except Exception:  # of any library on the way: a part is not in the cache
            task.data_loaded = False
    folder, files = hub.listed(dataset["path"], dataset["revision"], "dataset", "its data")
    try:
        return task.load_data()
    finally:
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        if changed := hub.drop_changed(folder, files, there & files.keys()):
            for path in cached_task(dataset["path"], dataset["revision"]):
                shutil.rmtree(path)
            raise RunFailed(f"{changed[0]} differs from the hash that the hub lists; try again")


def cached_task(repository: str, revision: str) -> list[Path]:
    """Folders of the datasets library's cache with a data set at a revision, one per configuration."""
    cache = Path(os.environ.get("HF_DATASETS_CACHE", hub.cache_folder().parent / "datasets"))
    owner = repository.partition("/")[0]  # the name behind it is written with underscores
    return [path for path in cache.glob(f"{owner}___*/*/*/{revision}") if path.is_dir()]


@contextmanager
def _offline():
    """huggingface_hub and datasets as with HF_HUB_OFFLINE=1."""
    from datasets import config
    from huggingface_hub import constants

    before = config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


def fetch_url(wanted: Download, out: Path, without: str) -> None:
    """Fetch a file that has a published sum; nothing is left of one that breaks off or has another content.

    Args:
        without: what to do where there is no connection.

    Raises:
        RunFailed: no connection, it breaks off, or another content.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    kind, expected = ("md5", wanted.md5) if wanted.md5 else ("sha256", wanted.sha256)
    actual = hashlib.new(kind)
    try:
        with urlopen(wanted.url, timeout=60) as stream, open(out, "wb") as file:
            with bar(None, out.name, "B", total=stream.length, unit_scale=True) as progress:
                while block := stream.read(BLOCK):
                    file.write(block)
                    actual.update(block)
                    progress.update(len(block))
            if stream.length:  # bytes that were promised and did not come
                raise OSError(f"the connection broke off, {stream.length} bytes are missing")
    except (OSError, HTTPException) as error:
        out.unlink(missing_ok=True)
        raise RunFailed(
            f"{wanted.url}: cannot be fetched ({error}). Run the command again; without a connection, {without}."
        ) from None
    if actual.hexdigest() != expected:
        out.unlink()
        raise RunFailed(f"{wanted.url}: {kind} is {actual.hexdigest()}, expected {expected}; fetch it again.")


def sources() -> dict[str, Callable[[Path], None]]:
    """Functions that fetch into a folder, by the name of what they fetch."""
    fetchers = {
        "wiki": (partial(fetch_file, "wiki1m-simcse"), dataset("wiki1m-simcse").path),
        "nli": (partial(fetch_file, "nli-simcse"), dataset("nli-simcse").path),
        "senteval": (fetch_senteval, "downstream"),
        "imdb": (fetch_imdb, "misc/imdb"),
        "stackoverflow": (fetch_stackoverflow, "misc/stackoverflow"),
        **{f"beir:{name}": (partial(fetch_beir, name), f"beir/{name}") for name in beir().md5},
    }
    return {name: partial(_fetch_and_list, name, *fetcher) for name, fetcher in fetchers.items()}


def _fetch_and_list(name: str, fetch: Callable[[Path], None], brought: str, root: Path) -> None:
    """Bring a source, and list the sha256 of its files, so that a later change of them is noticed."""
    fetch(root)
    paths = (path for path in (root / brought, *(root / brought).rglob("*")) if path.is_file())
    names = sorted(path.relative_to(root).as_posix() for path in paths)
    listed = "".join(f"{sha256(root / name)}  {name}\n" for name in names)  # as `sha256sum` writes them
    write_text(root / SUMS / name.replace(":", "."), listed)
