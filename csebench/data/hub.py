"""Files of the Hugging Face hub at pinned revisions: from the cache first, else fetched and compared with the sha256
that the hub states. Never imports torch.

A commit never changes, so what is in the cache needs no connection: `HF_HUB_OFFLINE=1` is for other programs.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from csebench import ROOT
from csebench.base.display import on_terminal
from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import sha256
from csebench.plan.schema import EncoderRef

# What a repository of a model may hold for its configuration and tokenizer; weights are chosen by format.
SMALL = r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
SMALL += r"|vocab\.txt|merges\.txt|(source|target|spiece|sentencepiece\.bpe)\.(spm|model)"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # the first that there is
CONFIG = "config.json"
TIMEOUT_SECONDS = 10  # for the facts of a repository
COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Remote:
    """A file as the hub lists it."""

    name: str
    size: int  # bytes


def model_source(ref: EncoderRef, kind: str = "encoder") -> dict:
    """What `from_pretrained` is called with: a folder, the project's or any, or a model's folder in the cache, which
    is filled from the hub where it is not complete.

    Raises:
        BadInput: neither a folder nor a model of the hub, or access to it is restricted.
        RunFailed: it is not in the cache, and the hub cannot be reached, breaks off or sends other bytes.
    """
    folder = local_folder(ref)
    if folder is None:
        check_hub_name(ref.name, kind)
    return {"pretrained_model_name_or_path": folder or fetch_model(ref, kind)}


def check_hub_name(name: str, kind: str) -> None:
    """Raises BadInput where the hub can have no model of that name."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        raise BadInput(f"{kind} {name}: no such folder, and not a name of the hub.") from None


def local_folder(ref: EncoderRef) -> Path | None:
    """The folder that a name means, below the project or as it is; None for a name of the hub."""
    return next((path for path in (ROOT / ref.name, Path(ref.name)) if (path / CONFIG).exists()), None)


def fetch_model(ref: EncoderRef, kind: str = "encoder") -> Path:
    """Folder in the cache with all that `from_pretrained` reads of a model; weights compared with their sha256. A
    branch, which may have moved, is looked up on the hub where that can be reached."""
    folder, what = cached_model(ref), f"{kind} {ref.name} at {ref.revision[:12]}"
    if folder is None or not COMMIT.fullmatch(ref.revision):
        try:
            names = [file.name for file in model_files(ref, what)]
            return [fetch(ref.name, name, ref.revision, "model", what) for name in names][-1].parent
        except RunFailed:
            if folder is None:
                raise
    weights = next(name for name in WEIGHTS if (folder / name).exists())
    return fetch(ref.name, weights, ref.revision, "model", what).parent


def cached_model(ref: EncoderRef) -> Path | None:
    """Folder of a model in the cache, if it holds configuration, weights and a tokenizer."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(ref.name, CONFIG, revision=ref.revision)
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    there = {path.name for path in folder.iterdir()}
    has_tokenizer = there & {"tokenizer.json", "vocab.txt", "vocab.json"}
    return folder if has_tokenizer and there & {*WEIGHTS} else None


def cached_commit(ref: EncoderRef) -> str:
    """The commit that the cache has of a model's revision, which may be a branch; the revision where it has none."""
    from huggingface_hub import try_to_load_from_cache

    paths = [try_to_load_from_cache(ref.name, name, revision=ref.revision) for name in (CONFIG, "modules.json")]
    return next((Path(path).parent.name for path in paths if isinstance(path, str)), ref.revision)


def model_files(ref: EncoderRef, what: str) -> list[Remote]:
    """Configuration, tokenizer and weights of a model of the hub, weights last: a folder that has them is complete."""
    from huggingface_hub import HfApi

    asked = {"revision": ref.revision, "files_metadata": True, "timeout": TIMEOUT_SECONDS}
    facts = _asked(what, lambda: HfApi().model_info(ref.name, **asked))
    sizes = {file.rfilename: file.size or 0 for file in facts.siblings}
    weights = [name for name in WEIGHTS if name in sizes][:1]
    if not weights:
        raise BadInput(f"{what}: the hub has no weights of it ({' or '.join(WEIGHTS)}).")
    return [Remote(name, sizes[name]) for name in [*(n for n in sizes if re.fullmatch(SMALL, n)), *weights]]


def has_file(ref: EncoderRef, name: str) -> bool:
    """Whether the hub lists a file of a model; raises as `fetch`."""
    from huggingface_hub import HfApi

    asked = {"revision": ref.revision, "timeout": TIMEOUT_SECONDS}
    facts = _asked(f"model {ref.name}", lambda: HfApi().model_info(ref.name, **asked))
    return name in {file.rfilename for file in facts.siblings or ()}


def fetch(repository: str, name: str, revision: str, repo_type: str, what: str) -> Path:
    """Path in the cache of one file, which is fetched if it is not there; what has other bytes than the hub states is
    fetched anew, once.

    Raises:
        BadInput: there is no such file, or access to it is restricted.
        RunFailed: the hub cannot be reached, breaks off or sends other bytes again.
    """
    from huggingface_hub import hf_hub_download

    where = {"repo_id": repository, "filename": name, "revision": revision, "repo_type": repo_type}
    path = Path(_asked(what, lambda: hf_hub_download(**where)))
    if is_sound(path):
        return path
    print(f"{path}: the content differs from the sha256 that the hub states; downloading it again", file=sys.stderr)
    forget(path)
    path = Path(_asked(what, lambda: hf_hub_download(**where)))
    if is_sound(path):
        return path
    forget(path)
    raise RunFailed(f"{what}: {name}: two downloads differ from the sha256 that the hub states; try again later.")


def size(repository: str, name: str, revision: str, repo_type: str, what: str) -> int:
    """Bytes of a file of the hub; raises as `fetch`."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(repository, name, revision=revision, repo_type=repo_type)
    return _asked(what, lambda: get_hf_file_metadata(url, timeout=TIMEOUT_SECONDS)).size or 0


def dataset_size(repository: str, revision: str, what: str) -> int:
    """Bytes of all files of a data set of the hub; raises as `fetch`."""
    from huggingface_hub import HfApi

    asked = {"revision": revision, "files_metadata": True, "timeout": TIMEOUT_SECONDS}
    facts = _asked(what, lambda: HfApi().dataset_info(repository, **asked))
    return sum(file.size or 0 for file in facts.siblings)


def is_sound(path: Path) -> bool:
    """Whether a file of the cache has the sha256 that the hub stated; a small file, kept under git's hash, is not
    checked."""
    stated = Path(os.readlink(path)).name if path.is_symlink() else ""  # the cache keeps a file under its ETag
    return not SHA256.fullmatch(stated) or sha256(path) == stated


def forget(path: Path) -> None:
    """Remove a file from the cache, with what its link leads to."""
    link, content = path, path.resolve()
    while link.is_symlink():
        after = link.parent / os.readlink(link)
        link.unlink()
        link = after
    content.unlink(missing_ok=True)


def _asked(what: str, call):
    """The answer of a call of huggingface_hub; its errors, and those of the HTTP library below it, in one line."""
    from huggingface_hub import errors, utils

    if not on_terminal():
        utils.disable_progress_bars()
    utils.logging.set_verbosity_error()
    try:
        return call()
    except errors.GatedRepoError:
        raise BadInput(
            f"{what}: access is restricted: ask for it on the hub's page of the model, then `hf auth login`."
        ) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise BadInput(f"{what}: the hub has no such repository or commit ({first_line(error)}).") from None
    except errors.RemoteEntryNotFoundError as error:
        raise BadInput(f"{what}: the hub has no such file ({first_line(error)}).") from None
    except Exception as error:  # of the HTTP library, which differs by version; offline mode; a full disk
        raise RunFailed(
            f"{what}: not in the cache ({cache_folder()}), and cannot be fetched: {first_line(error)}. Run the"
            " command again to resume the download; without a network, run `csebench fetch TARGET --scale SCALE` on"
            " another machine and copy its HF_HOME to this one."
        ) from None


def cache_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)
