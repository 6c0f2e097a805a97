"""Official data from their hub or server, at pinned revisions and checked: data/sources.yaml
says from where."""

import hashlib
import os
import shutil
import tarfile
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from csebench.base import hub
from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import DataRoot, read_text, sha256, with_digest, write_json, write_text
from csebench.base.terminal import bar
from csebench.data.corpus import check_sha256
from csebench.data.sts import PUBLISHED_COUNTS, read_sts
from csebench.plan.catalog.data_sources import DataSource, Download, hashes_file, sources
from csebench.plan.catalog.files import dataset
from csebench.plan.schema.declarations import EncoderRef

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

ARCHIVES = (".zip", ".tar", ".gz")
READ_SIZE = 2**20  # bytes that are read at a time
# where a server cannot be reached
SUPPLY = "put its files into the folder that CSEBENCH_DATA names (docs/data.md)"


def fetch_source(name: str, root: Path) -> None:
    """Bring a source of data/sources.yaml into a data root.

    Its files are moved there when all of them are checked.

    Raises:
        RunFailed: a server cannot be reached, or what it sends is not what was expected.
    """
    source, part = sources()[name], root / f".{name}.part"
    made = part / source.folder
    shutil.rmtree(part, ignore_errors=True)
    made.mkdir(parents=True)
    try:
        lay_out(name, download(source, part), part, root)
        if source.registered:
            check_sha256(part / source.marker, dataset(source.registered).sha256)
        files = [path for path in made.rglob("*") if path.is_file()]
        hashes = {str(path.relative_to(part)): sha256(path) for path in files}
        write_json(hashes_file(name, root), with_digest({"files": hashes}))
        # last, the file that says that all are there
        for path in sorted(files, key=lambda path: path == made / source.ready):
            out = root / path.relative_to(part)
            out.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, out)
    except (BadInput, shutil.ReadError, tarfile.TarError, FileNotFoundError) as error:
        raise RunFailed(f"{name} is not what was expected: {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def download(source: DataSource, part: Path) -> list[Path]:
    """Download the files of a source; a file of the hub stays in its cache."""
    if source.hub is None:
        return [fetch_url(wanted, part) for wanted in source.downloads]
    ref = EncoderRef.parse(source.hub)
    what = f"{ref.name}/{source.file}"
    folder = hub.fetch_files(ref.name, ref.revision, "dataset", what, [source.file])
    return [folder / source.file]


def lay_out(name: str, downloaded: list[Path], part: Path, root: Path) -> None:
    """Unpack what was downloaded, and lay it out below `part` as it is to lie below the root."""
    source, unpacked = sources()[name], part / "unpacked"
    made, first = part / source.folder, downloaded[0]
    if first.suffix in ARCHIVES:
        # of a tar file no links and paths to elsewhere; a zip file has none
        shutil.unpack_archive(first, unpacked, filter=None if first.suffix == ".zip" else "data")
    match name.partition(":")[0]:
        case "senteval":
            ready = next(unpacked.rglob(source.ready), unpacked / source.ready)
            os.replace(ready.parents[2], made)
            for task in PUBLISHED_COUNTS:
                # refuses files that are not the published ones
                read_sts(DataRoot((part, root)), task)
        case "beir":
            os.replace(unpacked / made.name, made)
            write_json(made / source.ready, source.downloads[0].model_dump())
        case "imdb":
            write_imdb(unpacked, made)
        case _:
            for path in downloaded:
                shutil.copyfile(path, made / path.name)


def write_imdb(unpacked: Path, folder: Path) -> None:
    """Two tables of the Large Movie Review Dataset: label, id, rating and text."""
    for split in ("train", "test"):
        rows = []
        for path in (*unpacked.rglob(f"{split}/neg/*.txt"), *unpacked.rglob(f"{split}/pos/*.txt")):
            number, rating = map(int, path.stem.split("_"))
            text = " ".join(" ".join(read_text(path).split("\t")).splitlines())
            rows.append((int(path.parent.name == "pos"), number, rating, text))
        lines = ["label\tid\trating\ttext", *("\t".join(map(str, row)) for row in sorted(rows))]
        write_text(folder / f"{split}.tsv", "\n".join(lines) + "\n")


def fetch_url(wanted: Download, folder: Path) -> Path:
    """Fetch a file that has a published sum into a folder."""
    out, (kind, expected) = folder / Path(wanted.url).name, wanted.sum.split(":")
    actual = hashlib.new(kind)
    try:
        with urlopen(wanted.url, timeout=60) as stream, open(out, "wb") as file:
            with bar(None, out.name, "B", total=stream.length, unit_scale=True) as progress:
                while block := stream.read(READ_SIZE):
                    file.write(block)
                    actual.update(block)
                    progress.update(len(block))
            if stream.length:  # bytes that were promised and did not come
                raise OSError(f"the connection broke off, {stream.length} bytes are missing")
    except (OSError, HTTPException) as error:
        raise RunFailed(
            f"{wanted.url}: cannot be fetched ({error}); try again, or {SUPPLY}."
        ) from None
    if actual.hexdigest() != expected:
        raise RunFailed(
            f"{wanted.url}: {kind} is {actual.hexdigest()}, expected {expected}; fetch it again."
        )
    return out


def mteb_task(name: str) -> "AbsTask":
    """A task of mteb: its English, and its test set."""
    import mteb

    return mteb.get_task(name, languages=["eng"], eval_splits=["test"])


def task_source(task: "AbsTask") -> tuple[str, str]:
    """Repository and commit that mteb takes the data of a task from."""
    return task.metadata.dataset["path"], task.metadata.dataset["revision"]


def load_task(task: "AbsTask") -> None:
    """Load the data of a task from the hub into the cache of the datasets library; with
    HF_HUB_OFFLINE=1 from there. Where the hub cannot be reached, for which the library would
    take any revision in its cache, or sent a file that differs from its list (which is removed),
    raises RunFailed."""
    import datasets
    from huggingface_hub import constants

    datasets.disable_progress_bars()
    repository, revision = task_source(task)
    try:
        if constants.HF_HUB_OFFLINE:
            if cached := cached_task(repository, revision):
                names = {path.name for path in cached[0].parents[2].glob("*/*/*")} - {revision}
                if others := {name for name in names if hub.COMMIT.fullmatch(name)}:
                    raise RunFailed(f"{cached[0]}: {min(others)} would be read; delete its folder")
            return task.load_data()
        folder, files = hub.listed(repository, revision, "dataset", "its data")
        try:
            task.load_data()
        finally:
            there = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
            if changed := hub.drop_changed(folder, files, there & files.keys()):
                for path in cached_task(repository, revision):
                    shutil.rmtree(path)
                raise RunFailed(f"{changed[0]} differs from the hash that the hub lists; try again")
    except Exception as error:  # of any library on the way
        data = (
            f"its data, {repository} at {revision}, come from the Hugging Face hub:"
            f" {first_line(error)}"
        )
        remedy = (
            "Run it where the hub can be reached, or bring the HF_HOME of a machine that has"
            " run it."
        )
        raise RunFailed(f"mteb: {task.metadata.name}: {data}. {remedy}") from None


def cached_task(repository: str, revision: str) -> list[Path]:
    """Folders of the datasets library's cache with a data set at a revision, one per
    configuration."""
    from huggingface_hub import constants

    cache = Path(
        os.environ.get("HF_DATASETS_CACHE", Path(constants.HF_HUB_CACHE).parent / "datasets")
    )
    owner = repository.partition("/")[0]  # the name behind it is written with underscores
    return [path for path in cache.glob(f"{owner}___*/*/*/{revision}") if path.is_dir()]
