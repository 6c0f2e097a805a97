"""Fetching of official data from the hub or a server. Revisions are pinned, and files are checked.

data/sources.yaml says where each source is fetched from, and which sums its files must have.
data/preflight.py finds the sources that a target needs. Data of mteb stay in the cache of the
datasets library. base/hub.py fetches models.
"""

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
from csebench.base.extras import check_run_modules
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
# end of a message: what to do if a server cannot be reached
SUPPLY = "put its files into the folder that CSEBENCH_DATA names (docs/data.md)"


# ---------------------------------------------------------------- sources


def fetch_source(name: str, root: Path) -> None:
    """Fetch a source of data/sources.yaml into a data root.

    Its files are moved there only after all of them have been checked.

    Raises:
        RunFailed: a server cannot be reached, or what it sends is not what was expected.
    """
    source = sources()[name]
    part = root / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    (part / source.folder).mkdir(parents=True)
    try:
        downloaded = download(source, part)
        lay_out(name, downloaded, part, root)
        if source.registered:
            check_sha256(part / source.marker, dataset(source.registered).sha256)
        _publish(name, part, root)
    except (BadInput, shutil.ReadError, tarfile.TarError, FileNotFoundError) as error:
        raise RunFailed(f"{name} is not what was expected: {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def download(source: DataSource, part: Path) -> list[Path]:
    """Download the files of a source into a folder. A file of the hub stays in the hub's cache."""
    if source.hub is None:
        return [fetch_url(wanted, part) for wanted in source.downloads]
    ref = EncoderRef.parse(source.hub)
    what = f"{ref.name}/{source.file}"
    folder = hub.fetch_files(ref.name, ref.revision, "dataset", what, [source.file])
    return [folder / source.file]


def fetch_url(wanted: Download, folder: Path) -> Path:
    """Fetch a file that has a published sum into a folder.

    Raises:
        RunFailed: the server cannot be reached, or the file has another sum.
    """
    out = folder / Path(wanted.url).name
    algorithm, expected = wanted.sum.split(":")
    try:
        actual = _stream_to_file(wanted.url, out, algorithm)
    except (OSError, HTTPException) as error:
        raise RunFailed(
            f"{wanted.url}: cannot be fetched ({error}); try again, or {SUPPLY}."
        ) from None
    if actual != expected:
        raise RunFailed(
            f"{wanted.url}: {algorithm} is {actual}, expected {expected}; fetch it again."
        )
    return out


def _stream_to_file(url: str, out: Path, algorithm: str) -> str:
    """Write a file from a server as it comes, and return its hash."""
    hashed = hashlib.new(algorithm)
    with urlopen(url, timeout=60) as stream, open(out, "wb") as file:
        with bar(None, out.name, "B", total=stream.length, unit_scale=True) as progress:
            while block := stream.read(READ_SIZE):
                file.write(block)
                hashed.update(block)
                progress.update(len(block))
        if stream.length:  # counts down to 0, unless the connection broke off
            raise OSError(f"the connection broke off, {stream.length} bytes are missing")
    return hashed.hexdigest()


def lay_out(name: str, downloaded: list[Path], part: Path, root: Path) -> None:
    """Unpack the downloaded files, and arrange them below `part` as they will be below the root."""
    source = sources()[name]
    folder = part / source.folder
    unpacked = part / "unpacked"
    archive = downloaded[0]
    if archive.suffix in ARCHIVES:
        # "data" refuses links and paths that lead out of the folder. Unpacking of zip files takes
        # no filter, and skips such paths.
        tar_filter = None if archive.suffix == ".zip" else "data"
        shutil.unpack_archive(archive, unpacked, filter=tar_filter)
    match name.partition(":")[0]:
        case "senteval":
            ready = next(unpacked.rglob(source.ready), unpacked / source.ready)
            os.replace(ready.parents[2], folder)  # `ready` is two folders below what is wanted
            for task in PUBLISHED_COUNTS:
                read_sts(DataRoot((part, root)), task)  # raises if they are not the published files
        case "beir":
            os.replace(unpacked / folder.name, folder)
            write_json(folder / source.ready, source.downloads[0].model_dump())
        case "imdb":
            write_imdb(unpacked, folder)
        case _:
            for path in downloaded:
                shutil.copyfile(path, folder / path.name)


def write_imdb(unpacked: Path, folder: Path) -> None:
    """Write the Large Movie Review Dataset as two tables: label, id, rating and text."""
    for split in ("train", "test"):
        rows = []
        for label, sentiment in enumerate(("neg", "pos")):
            for path in unpacked.rglob(f"{split}/{sentiment}/*.txt"):
                number, rating = path.stem.split("_")
                without_tabs = " ".join(read_text(path).split("\t"))
                one_line = " ".join(without_tabs.splitlines())
                rows.append((label, int(number), int(rating), one_line))
        lines = ["label\tid\trating\ttext"]
        for label, number, rating, text in sorted(rows):
            lines.append(f"{label}\t{number}\t{rating}\t{text}")
        write_text(folder / f"{split}.tsv", "\n".join(lines) + "\n")


def _publish(name: str, part: Path, root: Path) -> None:
    """Write the hashes of the files of a source below the root, then move the files there."""
    source = sources()[name]
    folder = part / source.folder
    files = [path for path in folder.rglob("*") if path.is_file()]
    hashes = {str(path.relative_to(part)): sha256(path) for path in files}
    write_json(hashes_file(name, root), with_digest({"files": hashes}))
    # move `ready` last, because it tells others that all files are there
    files.sort(key=lambda path: path == folder / source.ready)
    for path in files:
        out = root / path.relative_to(part)
        out.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, out)


# ---------------------------------------------------------------- tasks of mteb


def mteb_task(name: str) -> "AbsTask":
    """Return a task of mteb, restricted to English and to its test set.

    Raises:
        BadInput: mteb, or another package of the extra `run`, is not installed.
    """
    check_run_modules(f"mteb:{name}")
    import mteb

    return mteb.get_task(name, languages=["eng"], eval_splits=["test"])


def task_source(task: "AbsTask") -> tuple[str, str]:
    """Return the repository and the commit that mteb takes the data of a task from."""
    return task.metadata.dataset["path"], task.metadata.dataset["revision"]


def load_task(task: "AbsTask") -> None:
    """Load the data of a task from the hub into the cache of the datasets library.

    With HF_HUB_OFFLINE=1, it is loaded from that cache.

    Raises:
        RunFailed: the hub cannot be reached, or has sent a file that differs from its list. Such a
            file is removed.
    """
    import datasets
    from huggingface_hub import constants

    datasets.disable_progress_bars()
    repository, revision = task_source(task)
    try:
        if constants.HF_HUB_OFFLINE:
            _refuse_other_revision(repository, revision)
            task.load_data()
        else:
            _load_checked(task, repository, revision)
    except Exception as error:  # mteb, datasets or a library below them may raise any
        raise RunFailed(
            f"mteb: {task.metadata.name}: its data, {repository} at {revision}, come from the"
            f" Hugging Face hub: {first_line(error)}. Run it where the hub can be reached, or bring"
            " the HF_HOME of a machine that has run it."
        ) from None


def _refuse_other_revision(repository: str, revision: str) -> None:
    """Refuse a cache that holds other revisions of a data set.

    Without a network, the datasets library may read another revision than the one it is asked for,
    also if that one is not cached.
    """
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = repository.partition("/")
    folder = _datasets_cache() / f"{owner}___{camelcase_to_snakecase(name)}"
    commits = {path.name for path in folder.glob("*/*/*")}  # CONFIGURATION/VERSION/COMMIT
    for other in sorted(commits - {revision}):
        if hub.COMMIT.fullmatch(other):
            raise RunFailed(f"{folder}: {other} would be read; delete its folder")


def _load_checked(task: "AbsTask", repository: str, revision: str) -> None:
    """Load the data of a task, and compare its files with the list of the hub.

    The list is fetched first, so that this fails if the hub cannot be reached. The datasets library
    would then take any revision in its cache.
    """
    folder, files = hub.listed(repository, revision, "dataset", "its data")
    try:
        task.load_data()
    finally:  # a file that differs may also be why the loading failed
        downloaded = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        changed = hub.drop_changed(folder, files, downloaded & files.keys())
        if changed:
            for path in cached_task(repository, revision):
                shutil.rmtree(path)
            raise RunFailed(f"{changed[0]} differs from the hash that the hub lists; try again")


def cached_task(repository: str, revision: str) -> list[Path]:
    """Find a data set at a revision in the cache of the datasets library.

    Returns:
        A folder for each configuration of the data set.
    """
    owner = repository.partition("/")[0]  # the cache writes the rest in snake case
    folders = _datasets_cache().glob(f"{owner}___*/*/*/{revision}")
    return [folder for folder in folders if folder.is_dir()]


def _datasets_cache() -> Path:
    """Return the cache of the datasets library. Does not import it, because that takes seconds."""
    from huggingface_hub import constants

    default = Path(constants.HF_HUB_CACHE).parent / "datasets"
    return Path(os.environ.get("HF_DATASETS_CACHE", default))
