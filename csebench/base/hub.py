"""Names of models, and files of the Hugging Face hub at pinned revisions.

The files are in the cache of the hub's library. For each commit, the hub lists the names of the
files and the hashes of their contents. The files are compared with this list at each use. Files in
the cache need no connection, even without `HF_HUB_OFFLINE=1`. base/models.py checks what the folder
of a model holds. data/fetch.py fetches data sets. Never imports torch.
"""

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
from csebench.base.models import check_model, check_revision, model_sha256
from csebench.base.project import find, folders
from csebench.base.terminal import on_terminal

# The names of files that a model is read from: configuration, tokenizer and weights. They are at
# the top, or in the folders of sentence-transformers' modules, such as 1_Pooling/. The file
# modules.safetensors has what csebench exports with an encoder, such as its prefix.
READ = re.compile(
    r"(\w*\d+_\w+/)*((?!adapter_)[\w.-]+\.(json|txt|model|spm|bpe|codes|tiktoken)"
    r"|(model(-\d+-of-\d+)?|modules)\.safetensors|pytorch_model(-\d+-of-\d+)?\.bin)"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # name of a repository of the hub
# In the project, or in a folder that joins it. A name that begins so is never an id of the hub.
ENCODERS_FOLDER = "encoders/"
ANSWER_SECONDS = 3  # within which the hub must answer
DOWNLOADS = 2  # of a file that differs from the hub's list


def can_be_reached() -> bool:
    """Whether the hub answers within ANSWER_SECONDS. Never with `HF_HUB_OFFLINE=1`."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        with urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=ANSWER_SECONDS):
            return True
    except HTTPError:  # it answers
        return True
    except OSError:
        return False


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
            BadInput: the name is `ID@BRANCH`, and a folder has this name, too, so that it is not
                clear which is meant.
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

    def refuse_unpinned(self, where: str) -> None:
        """Raise BadInput if the revision does not say which files are read.

        Args:
            where: what names the model, for the message.
        """
        if not self.is_pinned:
            raise BadInput(
                f"{where}: the revision {self.revision!r} does not say which files are read. State"
                " a commit of the hub (40 digits), or the sha256 of a folder (64 digits)."
            )


def is_path(name: str) -> bool:
    """Whether a name can only be a folder: it starts with `/`, `./` or `../`."""
    return name in (".", "..") or name.startswith(("/", "./", "../"))


def as_path(name: str) -> str:
    """Write the name of a folder in a form that nobody can take for an id of the hub."""
    if is_path(name) or name.startswith(ENCODERS_FOLDER) or not ID.fullmatch(name):
        return name
    return f"./{name}"


def names_commit(name: str) -> bool:
    """Whether a name is `ID@COMMIT`. It means the hub's model, also if a folder has this name."""
    return not is_path(name) and COMMIT.fullmatch(name.partition("@")[2]) is not None


def find_folder(name: str) -> Path | None:
    """Find a folder by its path, or by its name below the current folder or the project."""
    if Path(name).is_dir():
        return Path(name)
    if not is_path(name) and find(name).is_dir():
        return find(name)
    return None


def local_folder(ref: EncoderRef) -> Path | None:
    """Find the folder that a model is read from. None for a model of the hub.

    A name with a commit means the hub's model, also if a folder has this name.

    Raises:
        BadInput: a path has a commit as its revision, or two folders have different encoders of
            this name.
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
    """Find the folder that a name means on a command line. None for a model of the hub."""
    return local_folder(EncoderRef.parse(name))


def refuse_second_encoder(name: str) -> None:
    """Refuse the name of an encoder if two folders have different encoders of this name.

    The name is looked up in the project, in the folders that join it, and in the current folder.
    Equal copies, as in another checkout, are one encoder.
    """
    candidates = [(project / name).resolve() for project in (*folders(), Path.cwd())]
    encoders = [path for path in dict.fromkeys(candidates) if (path / "config.json").exists()]
    for other in encoders[1:]:
        if model_sha256(other) != model_sha256(encoders[0]):
            raise BadInput(
                f"{other}: {encoders[0]} has this name, too, and is another encoder; rename one of"
                " them."
            )


# ---------------------------------------------------------------- models


def check_local_model(ref: EncoderRef) -> None:
    """Refuse a folder that is not what training wrote, or not the model of its revision.

    A model of the hub passes, because its files are checked when they are fetched.

    Raises:
        BadInput: the files of the folder differ.
    """
    folder = local_folder(ref)
    if folder is not None:
        check_model(folder)
        check_revision(folder, ref.revision)


def fetch_model(ref: EncoderRef, kind: str = "encoder") -> Path:
    """Return the folder that a model is to be loaded from.

    A folder is returned as it is. The files of a model of the hub are fetched into the cache, and
    the result is a temporary folder with links to exactly these files (`view`).

    Raises:
        BadInput: there is no such folder, or the hub has no such model (`fetch_files`).
        RunFailed: the hub cannot be reached, or fails.
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
    """Make a folder of links to exactly these files of a snapshot.

    Libraries read any file that they find in a model's folder. A user or another program may have
    added files to the cache. So libraries get this folder instead. It is deleted when this process
    ends.
    """
    root = Path(tempfile.mkdtemp(prefix="csebench-"))
    atexit.register(_remove_view, root, os.getpid())
    folder = root / name / snapshot.name  # messages show this name
    for file in files:
        link = folder / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(snapshot.absolute() / file)
    return folder


def _remove_view(root: Path, process: int) -> None:
    """Delete a view, unless this process is a fork of the one that made it and still needs it."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def model_files(names: Iterable[str]) -> list[str]:
    """Select the files of a repository that are needed to load a model.

    If a folder has weights as safetensors, its other weights (.bin) are left out.
    """
    needed = [name for name in names if READ.fullmatch(name)]
    folders_with_safetensors = {_folder(name) for name in needed if name.endswith(".safetensors")}

    selected = []
    for name in needed:
        is_second_copy = name.endswith(".bin") and _folder(name) in folders_with_safetensors
        if not is_second_copy:
            selected.append(name)
    return selected


def _folder(name: str) -> str:
    """Return the folder in the name of a file of a repository."""
    return name.rpartition("/")[0]


def cached_model(ref: EncoderRef) -> Path | None:
    """Find the folder of a model in the cache, without asking the hub.

    Returns:
        None if a file of the model is not there.
    """
    try:
        folder, files = listed(ref.name, ref.revision, "model", ref.name, local_files_only=True)
    except (BadInput, RunFailed):
        return None
    if all((folder / name).exists() for name in model_files(files)):
        return folder
    return None


def missing_bytes(ref: EncoderRef, what: str) -> int:
    """Count the bytes of a model that are not in the cache.

    Raises:
        BadInput: the hub has no such model, or gives no access to its files, even if it lists them.
        RunFailed: the hub cannot be reached, or fails.
    """
    _, files = listed(ref.name, ref.revision, "model", what)
    names = model_files(files)
    infos = _snapshot(ref.name, ref.revision, "model", what, names, dry_run=True)
    return sum(info.file_size or 0 for info in infos if info.will_download)


# ---------------------------------------------------------------- files of a repository


def fetch_files(
    repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = ()
) -> Path:
    """Bring files of a repository into the cache.

    A file that differs from the hub's list is downloaded again.

    Args:
        repo_type: `model` or `dataset`.
        what: the repository as a message calls it.
        names: the files; if there are none, the files of a model (`model_files`).

    Returns:
        The folder of the commit in the cache.

    Raises:
        BadInput: there is no such repository or file, no access to it, or no weights in it.
        RunFailed: the hub cannot be reached, fails, or twice sends a file that differs from its
            list.
    """
    folder, files = listed(repository, revision, repo_type, what)
    chosen = list(names)
    for name in chosen:
        if name not in files:
            raise BadInput(f"{what}: the hub has no such file ({name}).")
    if not chosen:
        chosen = model_files(files)
        if not any(name.endswith((".safetensors", ".bin")) for name in chosen):
            raise BadInput(
                f"{what}: the hub has no weights of it (model.safetensors or pytorch_model.bin, or"
                " shards)."
            )

    missing = _drop_and_find_missing(folder, files, chosen)
    for _ in range(DOWNLOADS):
        if not missing:
            break
        _snapshot(repository, revision, repo_type, what, missing)
        missing = _drop_and_find_missing(folder, files, chosen)
    if missing:
        raise RunFailed(
            f"{what}: {missing[0]}: two downloads differ from the hash that the hub lists; try"
            " again later."
        )
    return folder


def _drop_and_find_missing(folder: Path, files: dict, names: list[str]) -> list[str]:
    """Remove changed files from the cache, with a line on stderr, and list what is not there."""
    for name in drop_changed(folder, files, names):
        print(
            f"{folder / name}: differs from the hash that the hub lists; downloading it again",
            file=sys.stderr,
        )
    return [name for name in names if not (folder / name).exists()]


def drop_changed(folder: Path, files: dict, names: Iterable[str]) -> list[str]:
    """Remove files from the cache that differ from the hub's list.

    Args:
        folder: of the commit.
        files: the hub's list, as `listed` returns it.
        names: the files to check.

    Returns:
        The names of the removed files.
    """
    from huggingface_hub.utils.sha import git_hash

    changed = []
    for name in names:
        path = folder / name
        if not path.exists():
            continue
        if files[name].lfs_sha256:
            expected = files[name].lfs_sha256
            actual = sha256(path)
        else:
            expected = files[name].blob_id
            actual = git_hash(path.read_bytes())
        if actual == expected:
            continue
        blob = folder.parents[1] / "blobs" / Path(expected).name
        # `path` is a link to the blob, or a file if an editor has replaced the link
        for part in (path.resolve(), blob.resolve(), path, blob):
            part.unlink(missing_ok=True)
        changed.append(str(path.relative_to(folder)))
    return changed


def listed(repository: str, revision: str, repo_type: str, what: str, **more) -> tuple[Path, dict]:
    """Get the hub's list of the files of a commit. Fetch the list if it is not in the cache.

    Args:
        what: the repository as a message calls it.
        more: options of `snapshot_download`.

    Returns:
        The folder of the commit in the cache, and an entry for each file by its name: `size` in
        bytes, `blob_id` (git's sha1), and `lfs_sha256`.

    Raises:
        BadInput: there is no such repository, or no access to it.
        RunFailed: the hub cannot be reached, or fails.
    """
    from huggingface_hub._tree_cache import read_tree_cache

    # given no names of files, this fetches only the list
    folder = Path(_snapshot(repository, revision, repo_type, what, **more))
    files = read_tree_cache(str(folder.parents[1]), folder.name)
    if files is None:
        # raises the reason why the hub gave no list
        _snapshot(repository, revision, repo_type, what, dry_run=True, **more)
        raise RunFailed(
            f"{what}: the hub's list of its files cannot be written to {folder.parents[1]}."
        )
    return folder, files


def _snapshot(
    repository: str, revision: str, repo_type: str, what: str, names: Iterable[str] = (), **more
) -> Any:
    """Call `snapshot_download` for the named files.

    `snapshot_download` resumes a download that broke off, and waits as long as the hub asks.

    Args:
        more: options with which nothing is downloaded (`dry_run`, `local_files_only`).

    Raises:
        BadInput, RunFailed: `snapshot_download` failed (`_explained`).
    """
    from huggingface_hub import snapshot_download, utils

    # it would warn that it fetches no files if there are no names
    utils.logging.get_logger("huggingface_hub._snapshot_download").setLevel("ERROR")
    is_download = bool(names) and not more
    if is_download and on_terminal():
        progress_bars = nullcontext()
    else:
        progress_bars = utils.disable_progress_bars()
    options = {"revision": revision, "repo_type": repo_type, "allow_patterns": list(names), **more}
    with progress_bars:
        try:
            return snapshot_download(repository, **options)
        # Exception: the HTTP library below differs by version, and a disk can be full
        except Exception as error:
            raise _explained(error, what) from None


def _explained(error: BaseException, what: str) -> BadInput | RunFailed:
    """Word an error of huggingface_hub, or of the HTTP library below it, in one line."""
    from huggingface_hub import constants, errors

    # These say only that a file is not in the cache. Their cause says why it was not fetched.
    if isinstance(error, (errors.LocalEntryNotFoundError, errors.DryRunError)):
        error = error.__cause__ or error

    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        is_repository_known = isinstance(error, errors.GatedRepoError)
        return _no_access(response, is_repository_known, what)
    if isinstance(error, errors.HFValidationError):
        return BadInput(f"{what}: no such folder, and not a name of the hub.")
    if isinstance(error, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)):
        return BadInput(f"{what}: the hub has no such repository or commit ({first_line(error)}).")
    message = (
        f"{what}: not in the cache ({constants.HF_HUB_CACHE}) with the list of its files, and"
        f" cannot be fetched: {first_line(error)}. Try again; without a network, run `csebench"
        " fetch TARGET --scale SCALE` on another machine and copy its HF_HOME to this one."
    )
    if isinstance(error, errors.OfflineModeIsEnabled):
        return BadInput(message)  # the user has switched the network off; the hub did not fail
    return RunFailed(message)


def _no_access(response: Any, is_repository_known: bool, what: str) -> BadInput:
    """Word the error for a repository to which the hub gives this user no access."""
    reason = "access is restricted"
    if not is_repository_known:
        reason += ", or there is no such repository"
    token = "no token was sent"
    if "authorization" in response.request.headers:
        token = "a token was sent"
    return BadInput(
        f"{what}: {reason} (HTTP {response.status_code}; {token}). Ask for access on its page of"
        " the hub. Then set HF_TOKEN to a token that has access, or run `hf auth login`."
    )
