"""Names of models, and files of the Hugging Face hub at pinned revisions in the cache of its
library.

The hub's list of a commit's files decides which files there are and with what content. Both are
checked at each use. What is there needs no connection: `HF_HUB_OFFLINE=1` is for other programs.
Never imports torch."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import SHA256, sha256
from csebench.base.models import model_sha256
from csebench.base.project import find, folders
from csebench.base.terminal import on_terminal

# What a model is read from: configuration, tokenizer, weights; also in the folders of
# sentence-transformers' modules.
READ = re.compile(
    r"(\w*\d+_\w+/)*((?!adapter_)[\w.-]+\.(json|txt|model|spm|bpe|codes|tiktoken)"
    r"|model(-\d+-of-\d+)?\.safetensors|pytorch_model(-\d+-of-\d+)?\.bin)"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # what a repository of the hub can be called
# of the project, or one's own; a name below it is taken for no id of the hub
ENCODERS_FOLDER = "encoders/"


class EncoderRef(BaseModel):
    """An encoder at a pinned revision."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str  # id of the hub, name of a folder of the project, or path
    revision: str  # commit on the hub; sha256 of a folder (base/models.py:check_revision)

    @classmethod
    def parse(cls, name: str) -> "EncoderRef":
        """Read `ID@COMMIT`, an id without a commit, a path, or the name of a folder.

        A path starts with `/`, `./` or `../`. Without `@`, the revision is `main`.

        Raises:
            BadInput: `ID@BRANCH` where a folder has the name, too: it is not clear which is meant.
        """
        if is_path(name):
            return cls(name=name, revision="main")
        repository, _, revision = name.partition("@")
        if not revision:
            return cls(name=repository, revision="main")
        if not COMMIT.fullmatch(revision):
            for folder in (name, repository):
                if find_folder(folder) is not None:
                    raise BadInput(
                        f"{name}: there is a folder {folder}. Write ./{folder} for the folder, or"
                        f" the whole commit ({repository}@ and 40 digits) for the model of the hub."
                    )
        return cls(name=repository, revision=revision)

    @property
    def is_pinned(self) -> bool:
        """Whether the revision says which files are read: a commit, or the sha256 of a folder."""
        return bool(COMMIT.fullmatch(self.revision) or SHA256.fullmatch(self.revision))


def is_path(name: str) -> bool:
    """Whether a name can only be a folder: it starts with `/`, `./` or `../`."""
    return name in (".", "..") or name.startswith(("/", "./", "../"))


def as_path(name: str) -> str:
    """Write the name of a folder so that no record takes it for an id of the hub."""
    if is_path(name) or name.startswith(ENCODERS_FOLDER) or not ID.fullmatch(name):
        return name
    return f"./{name}"


def names_commit(name: str) -> bool:
    """Whether a name is `ID@COMMIT`, which means the hub's model, whatever folders there are."""
    return not is_path(name) and COMMIT.fullmatch(name.partition("@")[2]) is not None


def find_folder(name: str) -> Path | None:
    """Find a folder by its path; by its name, below the current folder or else the project."""
    if Path(name).is_dir():
        return Path(name)
    if not is_path(name) and find(name).is_dir():
        return find(name)
    return None


def local_folder(ref: EncoderRef) -> Path | None:
    """Find the folder that a model is read from; None for a model of the hub.

    A name with a commit means the hub's model, whatever folders there are.

    Raises:
        BadInput: a path has a commit as its revision, or two folders have different encoders of
            this name, so that one would be taken for the other.
    """
    if COMMIT.fullmatch(ref.revision):
        if is_path(ref.name):
            raise BadInput(
                f"{ref.name}: a folder has no commit ({ref.revision[:12]}…); state its sha256 as"
                " revision."
            )
        return None
    if ref.name.startswith(ENCODERS_FOLDER):
        refuse_second_encoder(ref.name)
    return find_folder(ref.name)


def folder_of(name: str) -> Path | None:
    """Find the folder that a name means on a command line; None for a model of the hub."""
    return local_folder(EncoderRef.parse(name))


def refuse_second_encoder(name: str) -> None:
    """Refuse an encoder of one name that differs in two of the project, the folders that join it
    and the current one.

    Equal copies, as in another checkout, are one encoder.
    """
    places = dict.fromkeys((folder / name).resolve() for folder in (*folders(), Path.cwd()))
    found = [place for place in places if (place / "config.json").exists()]
    for other in found[1:]:
        if model_sha256(other) != model_sha256(found[0]):
            raise BadInput(
                f"{other}: {found[0]} has this name, too, and is another encoder; rename one of"
                " them."
            )


def fetch_model(ref: EncoderRef, kind: str = "encoder") -> Path:
    """Return the folder that a model is to be loaded from.

    A folder is used as it is. Of a model of the hub, all files are fetched into the cache, and a
    view is returned that has those files only.

    Raises:
        BadInput: there is no such folder; also as `fetch_files`.
        RunFailed: as `fetch_files`.
    """
    folder = local_folder(ref)
    if folder is not None:
        return folder
    if is_path(ref.name) or SHA256.fullmatch(ref.revision):
        raise BadInput(f"{kind} {ref.name}: no such folder.")
    what = f"{kind} {ref.name} at {ref.revision[:12]}"
    snapshot = fetch_files(ref.name, ref.revision, "model", what)
    _, files = listed(ref.name, snapshot.name, "model", what)
    return view(snapshot, ref.name, model_files(files))


def view(snapshot: Path, name: str, files: list[str]) -> Path:
    """Make a folder of links to exactly these files of a snapshot, which lasts as long as this
    process.

    Libraries read whatever file lies in a model's folder. In the cache there may be more than the
    revision has, put there by a user or another program.
    """
    root = Path(tempfile.mkdtemp(prefix="csebench-"))
    atexit.register(_remove_view, root, os.getpid())
    folder = root / name / snapshot.name  # which messages show
    for file in files:
        link = folder / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(snapshot.absolute() / file)
    return folder


def _remove_view(root: Path, process: int) -> None:
    """Delete a view at the end of the process that made it, not at that of a fork."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def model_files(names: Iterable[str]) -> list[str]:
    """Those of a repository's files that a model is read from; each folder's weights in one
    format."""
    names = [name for name in names if READ.fullmatch(name)]
    safe = {name.rpartition("/")[0] for name in names if name.endswith(".safetensors")}
    return [
        name for name in names if not name.endswith(".bin") or name.rpartition("/")[0] not in safe
    ]


def cached_model(ref: EncoderRef) -> Path | None:
    """Folder of a model in the cache, if all its files are there; the hub is not asked."""
    try:
        folder, files = listed(ref.name, ref.revision, "model", ref.name, local_files_only=True)
    except (BadInput, RunFailed):
        return None
    return folder if all((folder / name).exists() for name in model_files(files)) else None


def missing_bytes(ref: EncoderRef, what: str) -> int:
    """Bytes of a model that are not in the cache; raises as `fetch_files`, also where only the list
    of files is public."""
    names = model_files(listed(ref.name, ref.revision, "model", what)[1])
    infos = _snapshot(ref.name, ref.revision, "model", what, names, dry_run=True)
    return sum(info.file_size or 0 for info in infos if info.will_download)


def fetch_files(
    repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = ()
) -> Path:
    """Folder in the cache with the named files of a repository, or those of a model, as the hub
    lists them; what is missing or has changed is fetched. Raises BadInput where there is no such
    repository, file, access or weights; RunFailed where the hub cannot be reached, fails, or
    sends other bytes twice."""
    folder, files = listed(repository, revision, repo_type, what)
    chosen = list(names) or model_files(files)
    if lacking := [name for name in chosen if name not in files]:
        raise BadInput(f"{what}: the hub has no such file ({lacking[0]}).")
    if not names and not any(name.endswith((".safetensors", ".bin")) for name in chosen):
        raise BadInput(
            f"{what}: the hub has no weights of it (model.safetensors or pytorch_model.bin, or"
            " shards)."
        )
    for last in (False, False, True):
        for name in drop_changed(folder, files, chosen):
            print(
                f"{folder / name}: differs from the hash that the hub lists; downloading it again",
                file=sys.stderr,
            )
        missing = [name for name in chosen if not (folder / name).exists()]
        if not missing:
            return folder
        if not last:
            _snapshot(repository, revision, repo_type, what, missing)
    raise RunFailed(
        f"{what}: {missing[0]}: two downloads differ from the hash that the hub lists; try again"
        " later."
    )


def drop_changed(folder: Path, files: dict, names: Iterable[str]) -> list[str]:
    """Names of the files in a commit's folder that differ from the hub's list, which are removed
    from the cache."""
    from huggingface_hub.utils.sha import git_hash

    changed = []
    for path, entry in ((folder / name, files[name]) for name in names if (folder / name).exists()):
        actual = sha256(path) if entry.lfs_sha256 else git_hash(path.read_bytes())
        if actual != (stated := entry.lfs_sha256 or entry.blob_id):
            blob = folder.parents[1] / "blobs" / Path(stated).name
            # an editor may have replaced the link by a file
            for part in (path.resolve(), blob.resolve(), path, blob):
                part.unlink(missing_ok=True)
            changed.append(str(path.relative_to(folder)))
    return changed


def listed(repository: str, revision: str, repo_type: str, what: str, **more) -> tuple[Path, dict]:
    """Folder in the cache of a repository's commit, and the hub's list of its files: `size` in
    bytes, `blob_id` (git's sha1) and `lfs_sha256` by name. Raises as `fetch_files`."""
    from huggingface_hub._tree_cache import read_tree_cache

    # fetches the list, and no file
    folder = Path(_snapshot(repository, revision, repo_type, what, **more))
    files = read_tree_cache(str(folder.parents[1]), folder.name)
    if files is None:
        # raises why the hub gave no list
        _snapshot(repository, revision, repo_type, what, dry_run=True, **more)
        raise RunFailed(
            f"{what}: the hub's list of its files cannot be written to {folder.parents[1]}."
        )
    return folder, files


def _snapshot(
    repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = (), **more
) -> Any:
    """`snapshot_download` of the named files, which resumes what breaks off, and waits as long
    as the hub asks."""
    from huggingface_hub import snapshot_download, utils

    # else it warns of no files
    utils.logging.get_logger("huggingface_hub._snapshot_download").setLevel("ERROR")
    asked = {"revision": revision, "repo_type": repo_type, "allow_patterns": list(names), **more}
    with nullcontext() if names and not more and on_terminal() else utils.disable_progress_bars():
        try:
            return snapshot_download(repository, **asked)
        # also of the HTTP library, which differs by version; a full disk
        except Exception as error:
            raise _explained(error, what) from None


def _explained(error: BaseException, what: str) -> BadInput | RunFailed:
    """An error of huggingface_hub, or of the HTTP library below it, in one line."""
    from huggingface_hub import constants, errors

    # not in the cache; why not fetched:
    if isinstance(error, (errors.LocalEntryNotFoundError, errors.DryRunError)):
        error = error.__cause__ or error
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        sent = (
            "a token was sent"
            if "authorization" in response.request.headers
            else "no token was sent"
        )
        unless = (
            "" if isinstance(error, errors.GatedRepoError) else ", or there is no such repository"
        )
        return BadInput(
            f"{what}: access is restricted{unless} (HTTP {response.status_code}; {sent}). Ask for"
            " access on the hub's page of it, and set HF_TOKEN to a token that has it, or run `hf"
            " auth login`."
        )
    if isinstance(error, errors.HFValidationError):
        return BadInput(f"{what}: no such folder, and not a name of the hub.")
    if isinstance(error, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)):
        return BadInput(f"{what}: the hub has no such repository or commit ({first_line(error)}).")
    # offline, no hub has failed
    kind = BadInput if isinstance(error, errors.OfflineModeIsEnabled) else RunFailed
    return kind(
        f"{what}: not in the cache ({constants.HF_HUB_CACHE}) with the list of its files, and"
        f" cannot be fetched: {first_line(error)}. Try again; without a network, run `csebench"
        " fetch TARGET --scale SCALE` on another machine and copy its HF_HOME to this one."
    )
