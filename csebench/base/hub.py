"""Files of the Hugging Face hub at pinned revisions, in the cache of its library, where the hub's list of a commit's
files decides which there are and with what content; both are checked at each use. What is there needs no connection:
`HF_HUB_OFFLINE=1` is for other programs. Never imports torch."""

import re
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import sha256
from csebench.base.models import model_sha256
from csebench.base.project import find, folders
from csebench.base.terminal import on_terminal

# What a model is read from: configuration, tokenizer, weights; also in the folders of sentence-transformers' modules.
READ = re.compile(
    r"(\w*\d+_\w+/)*((?!adapter_)[\w.-]+\.(json|txt|model|spm|bpe|codes|tiktoken)"
    r"|model(-\d+-of-\d+)?\.safetensors|pytorch_model(-\d+-of-\d+)?\.bin)"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
ENCODERS = "encoders"  # the folder of the project, and of one's own, whose encoders are named by their paths


class EncoderRef(BaseModel):
    """An encoder at a pinned revision."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str  # hub id, or a folder of the project
    revision: str  # commit on the hub, or sha256: of the folder (base/models.py), or of its weights

    @classmethod
    def parse(cls, name: str) -> "EncoderRef":
        """From `ID@COMMIT`; a folder, or an id without a commit, has revision `main`."""
        hub, _, revision = (name, "", "") if Path(name).exists() else name.partition("@")
        return cls(name=hub, revision=revision or "main")


def local_folder(ref: EncoderRef) -> Path | None:
    """Find the folder that a name means, below the project or as it is; None for a name of the hub.

    Raises:
        BadInput: two folders have different encoders of this name: one would be taken for the other.
    """
    if Path(ref.name).parts[:1] == (ENCODERS,):
        refuse_second_encoder(ref.name)
    return next((path for path in (find(ref.name), Path(ref.name)) if (path / "config.json").exists()), None)


def refuse_second_encoder(name: str) -> None:
    """Refuse an encoder of one name that differs in two of the project, the folders that join it and the current one.

    Equal copies, as in another checkout, are one encoder.
    """
    places = dict.fromkeys((folder / name).resolve() for folder in (*folders(), Path.cwd()))
    found = [place for place in places if (place / "config.json").exists()]
    for other in found[1:]:
        if model_sha256(other) != model_sha256(found[0]):
            raise BadInput(f"{other}: {found[0]} has this name, too, and is another encoder; rename one of them.")


def fetch_model(ref: EncoderRef, kind: str = "encoder") -> Path:
    """The folder of a model, as it is, or in the cache with all its files; raises as `fetch`."""
    return local_folder(ref) or fetch(ref.name, ref.revision, "model", f"{kind} {ref.name} at {ref.revision[:12]}")


def model_files(names: Iterable[str]) -> list[str]:
    """Those of a repository's files that a model is read from; each folder's weights in one format."""
    names = [name for name in names if READ.fullmatch(name)]
    safe = {name.rpartition("/")[0] for name in names if name.endswith(".safetensors")}
    return [name for name in names if not name.endswith(".bin") or name.rpartition("/")[0] not in safe]


def cached_model(ref: EncoderRef) -> Path | None:
    """Folder of a model in the cache, if all its files are there; the hub is not asked."""
    try:
        folder, files = listed(ref.name, ref.revision, "model", ref.name, local_files_only=True)
    except (BadInput, RunFailed):
        return None
    return folder if all((folder / name).exists() for name in model_files(files)) else None


def missing_bytes(ref: EncoderRef, what: str) -> int:
    """Bytes of a model that are not in the cache; raises as `fetch`, also where only the list of files is public."""
    names = model_files(listed(ref.name, ref.revision, "model", what)[1])
    infos = _snapshot(ref.name, ref.revision, "model", what, names, dry_run=True)
    return sum(info.file_size or 0 for info in infos if info.will_download)


def fetch(repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = ()) -> Path:
    """Folder in the cache with the named files of a repository, or those of a model, as the hub lists them; what is
    missing or has changed is fetched. Raises BadInput where there is no such repository, file, access or weights;
    RunFailed where the hub cannot be reached, fails, or sends other bytes twice."""
    folder, files = listed(repository, revision, repo_type, what)
    chosen = list(names) or model_files(files)
    if lacking := [name for name in chosen if name not in files]:
        raise BadInput(f"{what}: the hub has no such file ({lacking[0]}).")
    if not names and not any(name.endswith((".safetensors", ".bin")) for name in chosen):
        raise BadInput(f"{what}: the hub has no weights of it (model.safetensors or pytorch_model.bin, or shards).")
    for last in (False, False, True):
        for name in drop_changed(folder, files, chosen):
            print(f"{folder / name}: differs from the hash that the hub lists; downloading it again", file=sys.stderr)
        missing = [name for name in chosen if not (folder / name).exists()]
        if not missing:
            return folder
        if not last:
            _snapshot(repository, revision, repo_type, what, missing)
    raise RunFailed(f"{what}: {missing[0]}: two downloads differ from the hash that the hub lists; try again later.")


def drop_changed(folder: Path, files: dict, names: Iterable[str]) -> list[str]:
    """Names of the files in a commit's folder that differ from the hub's list, which are removed from the cache."""
    from huggingface_hub.utils.sha import git_hash

    changed = []
    for path, entry in ((folder / name, files[name]) for name in names if (folder / name).exists()):
        actual = sha256(path) if entry.lfs_sha256 else git_hash(path.read_bytes())
        if actual != (stated := entry.lfs_sha256 or entry.blob_id):
            blob = folder.parents[1] / "blobs" / Path(stated).name
            for part in (path.resolve(), blob.resolve(), path, blob):  # an editor may have replaced the link by a file
                part.unlink(missing_ok=True)
            changed.append(str(path.relative_to(folder)))
    return changed


def listed(repository: str, revision: str, repo_type: str, what: str, **more) -> tuple[Path, dict]:
    """Folder in the cache of a repository's commit, and the hub's list of its files: `size` in bytes, `blob_id` (git's
    sha1) and `lfs_sha256` by name. Raises as `fetch`."""
    from huggingface_hub._tree_cache import read_tree_cache

    folder = Path(_snapshot(repository, revision, repo_type, what, **more))  # fetches the list, and no file
    files = read_tree_cache(str(folder.parents[1]), folder.name)
    if files is None:
        _snapshot(repository, revision, repo_type, what, dry_run=True, **more)  # raises why the hub gave no list
        raise RunFailed(f"{what}: the hub's list of its files cannot be written to {folder.parents[1]}.")
    return folder, files


def _snapshot(repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = (), **more) -> Any:
    """`snapshot_download` of the named files, which resumes what breaks off, and waits as long as the hub asks."""
    from huggingface_hub import snapshot_download, utils

    utils.logging.get_logger("huggingface_hub._snapshot_download").setLevel("ERROR")  # else it warns of no files
    asked = {"revision": revision, "repo_type": repo_type, "allow_patterns": list(names), **more}
    with nullcontext() if names and not more and on_terminal() else utils.disable_progress_bars():
        try:
            return snapshot_download(repository, **asked)
        except Exception as error:  # also of the HTTP library, which differs by version; a full disk
            raise _explained(error, what) from None


def _explained(error: BaseException, what: str) -> BadInput | RunFailed:
    """An error of huggingface_hub, or of the HTTP library below it, in one line."""
    from huggingface_hub import constants, errors

    if isinstance(error, (errors.LocalEntryNotFoundError, errors.DryRunError)):  # not in the cache; why not fetched:
        error = error.__cause__ or error
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        sent = "a token was sent" if "authorization" in response.request.headers else "no token was sent"
        unless = "" if isinstance(error, errors.GatedRepoError) else ", or there is no such repository"
        return BadInput(
            f"{what}: access is restricted{unless} (HTTP {response.status_code}; {sent}). Ask for access on the hub's"
            " page of it, and set HF_TOKEN to a token that has it, or run `hf auth login`."
        )
    if isinstance(error, errors.HFValidationError):
        return BadInput(f"{what}: no such folder, and not a name of the hub.")
    if isinstance(error, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)):
        return BadInput(f"{what}: the hub has no such repository or commit ({first_line(error)}).")
    kind = BadInput if isinstance(error, errors.OfflineModeIsEnabled) else RunFailed  # offline, no hub has failed
    return kind(
        f"{what}: not in the cache ({constants.HF_HUB_CACHE}) with the list of its files, and cannot be fetched:"
        f" {first_line(error)}. Try again; without a network, run `csebench fetch TARGET --scale SCALE` on another"
        " machine and copy its HF_HOME to this one."
    )
