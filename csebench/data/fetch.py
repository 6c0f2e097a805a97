"""Official data from their hub, at pinned revisions and checked: what the rules use where no data root is given."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from csebench import ROOT
from csebench.base.caches import cached
from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import read_yaml, sha256, write_json
from csebench.data.corpus import check_sha256
from csebench.data.sts import read_sts
from csebench.plan.catalog import dataset
from csebench.plan.schema import Beir

REPOSITORY = "princeton-nlp/datasets-for-simcse"
REVISION = "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef"
SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def download(name: str) -> Path:
    """A file of SimCSE's dataset repository, checked against the sha256 that the hub keeps for that revision.

    Raises:
        RunFailed: no connection, or another content.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    where = {"repo_id": REPOSITORY, "filename": name, "repo_type": "dataset", "revision": REVISION}
    try:
        path = Path(hf_hub_download(**where))
        expected = get_hf_file_metadata(hf_hub_url(**where)).etag
    except (OSError, ValueError) as e:
        raise RunFailed(
            f"{REPOSITORY}/{name}: cannot be fetched ({e}). Without a connection, set CSEBENCH_DATA to a folder"
            " in the layout of docs/data.md."
        ) from None
    if (actual := sha256(path)) != expected:
        raise RunFailed(f"{path}: sha256 is {actual[:12]}…, the hub says {expected[:12]}…: fetch it again.")
    return path


def model_commit(hub_id: str) -> str | None:
    """The commit that a model's main branch is at now; None where the hub has no such public model.

    Raises:
        RunFailed: no connection.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return Path(hf_hub_download(hub_id, "config.json")).parent.name  # of the cache: snapshots/COMMIT/config.json
    except RepositoryNotFoundError:
        return None
    except (OSError, ValueError) as e:
        raise RunFailed(f"{hub_id}: the hub cannot be asked for its commit: {e}") from None


def fetch_file(name: str, root: Path) -> None:
    """A corpus of data/registry.yaml that SimCSE's repository has."""
    wanted = dataset(name)
    path = download(Path(wanted.path).name)
    try:
        check_sha256(path, wanted.sha256)
    except BadInput as e:
        raise RunFailed(str(e)) from None
    out = root / wanted.path
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, out.with_name(out.name + ".part"))
    os.replace(out.with_name(out.name + ".part"), out)


def fetch_senteval(root: Path) -> None:
    """SimCSE's copy of SentEval's data; unpacked, then every STS set is read and counted."""
    with tarfile.open(download("senteval.tar")) as tar:
        marker = "STS/STSBenchmark/sts-dev.csv"
        name = next((name for name in tar.getnames() if name.endswith(marker)), None)
        if name is None:
            raise RunFailed(f"senteval.tar: no {marker} in it.")
        prefix = name.removesuffix(marker)
        part = root / "downstream.part"
        shutil.rmtree(part, ignore_errors=True)
        tar.extractall(part, filter="data")
    target = root / "downstream"
    shutil.rmtree(target, ignore_errors=True)
    os.replace(part / prefix, target)
    shutil.rmtree(part, ignore_errors=True)
    try:
        for task in SETS:
            read_sts(root, task)
    except BadInput as e:
        shutil.rmtree(target)
        raise RunFailed(f"senteval.tar is not what was expected: {e}") from None


def fetch_beir(name: str, root: Path) -> None:
    """A dataset of BEIR from its official server, checked against the md5 that BEIR states.

    Raises:
        RunFailed: no connection, or another content.
    """
    url, archive = beir().url.format(name=name), root / "beir" / f"{name}.zip.part"
    archive.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urlopen(url, timeout=60) as stream, open(archive, "wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as e:
        archive.unlink(missing_ok=True)
        raise RunFailed(
            f"{url}: cannot be fetched ({e}). Without a connection, CSEBENCH_DATA names a folder with beir/{name}."
        ) from None
    with open(archive, "rb") as file:
        md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 != beir().md5[name]:
        archive.unlink()
        raise RunFailed(f"{url}: md5 is {md5}, data/beir.yaml states {beir().md5[name]}: fetch it again.")
    part = root / "beir" / f"{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    shutil.unpack_archive(archive, part, "zip")
    shutil.rmtree(root / "beir" / name, ignore_errors=True)
    os.replace(part / name, root / "beir" / name)
    write_json(root / "beir" / name / "source.json", {"url": url, "md5": md5})
    shutil.rmtree(part)
    archive.unlink()


@cached
def beir() -> Beir:
    return read_yaml(ROOT / "data" / "beir.yaml", Beir)


def sources() -> dict:
    """Functions that fetch, by the name of what they fetch."""
    return {
        "wiki": partial(fetch_file, "wiki1m-simcse"),
        "nli": partial(fetch_file, "nli-simcse"),
        "senteval": fetch_senteval,
        **{f"beir:{name}": partial(fetch_beir, name) for name in beir().md5},
    }
