"""The files of a model's folder, and the one hash by which scores name a model.

This module checks that a folder can be loaded without running code of others, and that its hash
covers all files that are read. base/hub.py finds and fetches models. Never imports torch.
"""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat, RootModel

from csebench.base.errors import BadInput, first_line
from csebench.base.files import (
    SHA256,
    is_there,
    read_json,
    read_typed,
    refuse_special_files,
    sha256,
    sha256_of_files,
)
from csebench.base.project import folders
from csebench.base.yaml_lines import read_yaml

# A file in the model's folder that says how the model was trained. It is written last, so a folder
# that has it is complete.
REPORT = "training.json"
# A file in the folder of each model that csebench wrote. It names the run and the pooler, the
# control, or the released model.
FACTS = "csebench.json"
CARD = "README.md"
WEIGHTS = "model.safetensors"
TOKENIZER = ".model"  # suffix of a sentencepiece file, which transformers takes under any name
# Some published revisions are the hash of the weights alone. This file states the hash of the whole
# folder for each of them.
REVISIONS = "encoders/revisions.yaml"
# If a folder has such a file, transformers reads every file of weights in it, also hidden ones.
DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
NAMING = (  # keys of configurations whose values name files of the model
    "weight_map",  # shards of the weights
    "transformers_weights",
    "fast_tokenizer_files",
    "configuration_files",
)
# configurations whose values are arguments of functions of transformers, which may be paths
ARGUMENTS = re.compile(r"sentence_[\w-]+_config\.json")
# a class with the name of its module, which is neither sentence-transformers' nor torch's
CLASS_ELSEWHERE = re.compile(r"(?!sentence_transformers\.|torch\.).*\..*")
# the configurations of an encoder, without those of sentence-transformers
CONFIGS = ("config.json", "tokenizer_config.json")
# Keys of configurations, with values that make a library load code, or files of another repository.
FOREIGN = {
    "auto_map": re.compile(r".*"),
    "type": CLASS_ELSEWHERE,
    "types": CLASS_ELSEWHERE,
    "tokenizer_class": CLASS_ELSEWHERE,
    "activation_function": CLASS_ELSEWHERE,  # sentence-transformers would silently use Tanh
    "attn_implementation": re.compile(r".*/.*"),  # a kernel of the hub
    "_attn_implementation": re.compile(r".*/.*"),
    "use_kernels": re.compile("True"),
    "weights_only": re.compile("False"),  # allows a pickle, which may call any function
    "tokenizer_name_or_path": re.compile(r".*"),
    "base_model_name_or_path": re.compile(r".*"),  # of an adapter
}
Sum = Annotated[str, Field(pattern=f"^{SHA256.pattern}$")]


# ---------------------------------------------------------------- what a model states of itself


class Spent(BaseModel):
    """What csebench reads from the provenance of a run."""

    seconds: Annotated[FiniteFloat, Field(strict=True, ge=0)] | None = None
    gpu: str | None = None
    peak_gpu_mb: Annotated[int, Field(strict=True, ge=0)] | None = None


class Report(BaseModel):
    """What csebench reads from the report of a run."""

    spec: dict[str, Any] = {}
    provenance: Spent = Spent()
    model_sha256: str | None = None


class Facts(BaseModel):
    """What csebench reads from a model's `csebench.json`."""

    run: str | None = None
    method: str | None = None
    pooler: str | None = None
    control: str | None = None
    released: dict[str, Any] | None = None  # an EncoderRef
    params: dict[str, Any] = {}  # of a control, and of a method that makes a feature layer
    seed: int = Field(default=0, ge=0, lt=2**32)
    # of how many encoders the sentence vectors are the sum; all but the first are in `added_folder`
    encoders: int = Field(default=1, ge=1, le=99)


def read_facts(folder: Path | None) -> dict:
    """Read what a model's `csebench.json` states, with defaults.

    Args:
        folder: None for a model of the hub. A model that csebench did not write states nothing, so
            the result has only defaults.
    """
    if folder is None or not is_there(folder / FACTS):
        return Facts().model_dump()
    _, facts = read_typed(folder / FACTS, Facts, _remedy(folder))
    return facts.model_dump()


def added_folder(model: Path, number: int) -> Path:
    """Return the folder of a model's second encoder, third encoder, and so on.

    The first encoder is in the folder of the model itself.
    """
    return model / f"{number}_Encoder"  # base/hub.py:READ has such names


def train_again(run: Path) -> str:
    """Word what to do about the damaged folder of a run, at the end of a message."""
    return f"Delete {run}, and the run is trained again."


def _remedy(model: Path) -> str:
    """Word what to do about a damaged model, which belongs to a run or is a copy elsewhere."""
    if model.name == "model":
        return train_again(model.parent)
    return "Restore its files."


# ---------------------------------------------------------------- the hash


def model_sha256(folder: Path) -> str:
    """Compute one hash over the names and contents of all files that a model is read from."""
    files = sorted(hashed_files(folder).items())
    return sha256_of_files((str(name), sha256(path)) for name, path in files)


def hashed_files(folder: Path) -> dict[PurePosixPath, Path]:
    """Find the files that the hash of a model covers, by their names in its folder.

    The model card, the report that states the hash, and hidden files (`.cache/`, `.git/`) are left
    out. So no configuration may name one of these (`check_named_files`).
    """
    files = {}
    for path in files_below(folder):
        name = PurePosixPath(path.relative_to(folder))
        if str(name) not in (REPORT, CARD):
            files[name] = path
    return files


def files_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Give every file in a folder and in the folders below it. Links are followed.

    Directly in the folder, hidden files and folders are left out. Deeper ones are given, and hidden
    files of sentencepiece, too.

    Args:
        above: the folders that hold this one, set only by the recursive call.

    Raises:
        BadInput: a folder cannot be listed, or is a link to a folder that holds it.
    """
    inside = folder.resolve()
    if inside in above:
        raise BadInput(f"{folder}: is a link to a folder that holds it; delete the link.")
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder}: cannot be listed: {error.strerror}.") from None
    is_outermost = not above
    for path in paths:
        if is_outermost and path.name.startswith(".") and path.suffix != TOKENIZER:
            continue
        if path.is_dir():
            yield from files_below(path, above | {inside})
        elif path.is_file():
            yield path


def check_model(folder: Path) -> None:
    """Refuse a finished model whose files do not have the hash that its report states.

    Reports of older versions of csebench state no hash. Their models are not checked.

    Raises:
        BadInput: the files differ, or the report is damaged.
    """
    if not is_there(folder / REPORT):
        return
    _, report = read_typed(folder / REPORT, Report, _remedy(folder))
    expected = report.model_sha256
    if expected is None:
        return
    actual = model_sha256(folder)
    if actual != expected:
        sums = f"sha256 is {actual[:12]}…, {REPORT} states {expected[:12]}…"
        raise BadInput(
            f"{folder}: files differ from those that training wrote ({sums}). {_remedy(folder)}"
        )


def check_revision(folder: Path, revision: str) -> None:
    """Refuse a folder that is not the encoder of a revision.

    A revision that is no sha256 states nothing about the folder, so every folder passes.

    Raises:
        BadInput: the folder has another sha256. If the revision is the sha256 of its weights alone,
            the message says so.
    """
    if not SHA256.fullmatch(revision):
        return
    actual = model_sha256(folder)
    expected = pinned_folder(revision)
    if actual == expected:
        return
    weights = folder / WEIGHTS
    if expected == revision and weights.exists() and sha256(weights) == revision:
        raise BadInput(
            f"{folder}: the revision {revision[:12]}… is the sha256 of {WEIGHTS} alone, which pins"
            " neither the configuration nor the tokenizer. State the sha256 of the folder instead:"
            f" {actual}. To keep the ids of its runs, keep the revision, and write the line"
            f" `{revision}: {actual}` into {REVISIONS} of your project."
        )
    raise BadInput(
        f"{folder}: another encoder was expected: the sha256 of the folder is {actual}, not"
        f" {expected[:12]}…. Restore its files, or state its sha256 as revision."
    )


def pinned_folder(revision: str) -> str:
    """Return the sha256 of the folder that a revision stands for.

    In published runs, the revision of an encoder is the sha256 of its weights alone. The ids of
    these runs are computed from it, so it cannot be changed. Instead, the project and each folder
    that joins it can state the sha256 of the whole folder for such a revision (`REVISIONS`). Any
    other revision stands for itself.
    """
    expected = revision
    for project in folders():
        file = project / REVISIONS
        if file.exists():
            expected = read_yaml(file, Revisions).root.get(revision, expected)
    return expected


class Revisions(RootModel):
    """The sha256 of a whole folder, by the sha256 of its weights alone."""

    root: dict[Sum, Sum]


# ---------------------------------------------------------------- code and files of others


def check_foreign(folder: Path, patterns: tuple[str, ...] = CONFIGS) -> None:
    """Refuse a model whose configuration asks for code, or for files that its hash does not cover.

    If such code or files were loaded, the revision would not pin the model. If they were left out,
    the vectors would be those of another model.

    Args:
        patterns: names of the configurations to look into. `**/` before a name means any folder.
    """
    refuse_special_files(folder)
    files = hashed_files(folder)
    if any(DISTRIBUTED.fullmatch(str(name)) for name in files):
        _refuse_hidden_weights(folder)
    nested = any("/" in pattern for pattern in patterns)
    check_named_files(files, nested)
    for name, file in files.items():
        if any(_matches(name, pattern) for pattern in patterns):
            _refuse_foreign_values(file)


def _refuse_hidden_weights(folder: Path) -> None:
    """Refuse a folder with a hidden file of weights, which the hash of the model does not cover."""
    for path in folder.glob(".*.safetensors"):
        raise BadInput(
            f"{path}: would be read as weights; delete it, or give it a name that is not hidden."
        )


def _refuse_foreign_values(file: Path) -> None:
    """Refuse a configuration in which a value asks for code, or files of another repository."""
    for key, value in _entries(read_json(file), FOREIGN):
        if key in FOREIGN and FOREIGN[key].fullmatch(str(value)):
            raise BadInput(
                f"{file}: {key}: {value!r} asks for Python code, or for files of another"
                " repository. A model may bring neither (docs/security.md). Use one that its"
                " library loads without; --pooler takes the encoder of a sentence-transformers"
                " model alone."
            )


def _matches(name: PurePosixPath, pattern: str) -> bool:
    """Whether the name of a file matches a pattern of `check_foreign`."""
    if pattern.startswith("**/"):
        return name.match(pattern.removeprefix("**/"))
    return str(name) == pattern


def check_named_files(files: dict[PurePosixPath, Path], nested: bool) -> None:
    """Refuse a model if a configuration names a file, or a folder, that its hash does not cover.

    Args:
        files: the files of the model, as `hashed_files` gives them.
        nested: whether to look into configurations below the folder of the model, too.
    """
    parents: set[PurePosixPath] = set()
    for name in files:
        parents.update(name.parents)
    for name, file in files.items():
        if name.parent.parts and not nested:
            continue
        for named in sorted(_named_files(file)):
            relative = PurePosixPath(named)
            path = name.parent / relative
            is_inside = not relative.is_absolute() and ".." not in relative.parts
            if is_inside and (path in files or path in parents):
                continue
            if is_inside and not os.path.lexists(file.parent / named):
                continue  # no library can read it
            raise BadInput(
                f"{file}: names {named!r}, which is not among the files that the hash of the model"
                f" covers. A model is read from its own folder, and not from hidden files, {CARD}"
                f" or {REPORT}. Move the file into the folder, and write its name."
            )


def _named_files(file: Path) -> set[str]:
    """Find the files and folders that libraries read because a configuration names them.

    Returns:
        Their paths, relative to the folder of the configuration, or absolute.
    """
    if file.name == "modules.json":
        return {str(value) for key, value in _entries(read_json(file)) if key == "path"}
    if ARGUMENTS.fullmatch(file.name):
        entries = _entries(read_json(file))
        # libraries look these up in the current folder, not in the folder of the configuration
        return {os.path.abspath(str(value)) for key, value in entries if key.endswith("_file")}
    if not file.name.endswith(("config.json", ".index.json")):
        return set()
    content = read_json(file)
    named = {str(value) for key, value in _entries(content, NAMING) if key in NAMING}
    if isinstance(content, dict) and isinstance(content.get("types"), dict):
        named.update(content["types"])  # folders of sentence-transformers' Router
    return named


def _entries(content, outermost: Collection[str] = (), key: str = "") -> Iterator[tuple[str, Any]]:
    """Give a pair of key and value for every text, number and bool in the content of a JSON file.

    The key is usually the innermost one that leads to the value. But a key in `outermost` stands
    for all values below it: if several such keys lead to a value, the first one is given.

    Args:
        key: the key of `content`.
    """
    if isinstance(content, dict):
        for name, value in content.items():
            inner_key = key if key in outermost else name
            yield from _entries(value, outermost, inner_key)
    elif isinstance(content, list):
        for value in content:
            yield from _entries(value, outermost, key)
    elif content is not None:
        yield key, content


# ---------------------------------------------------------------- models that do not work


def check_vocabulary(tokenizer, config, what: str) -> None:
    """Refuse a tokenizer that does not fit its model.

    `AutoTokenizer` loads any class of transformers that a configuration names.

    Raises:
        BadInput: it is no tokenizer, cannot pad, or has another vocabulary than the model.
    """
    where = f"{what}: tokenizer_config.json"
    if not hasattr(tokenizer, "get_vocab"):
        raise BadInput(
            f"{where}: tokenizer_class: {type(tokenizer).__name__} is no tokenizer; restore the"
            " file."
        )
    if tokenizer.pad_token_id is None:
        raise BadInput(f"{where}: the tokenizer has no padding token; name one as pad_token.")
    ids = tokenizer.get_vocab().values()
    size = getattr(config, "vocab_size", len(ids))
    # a tokenizer that did not find its vocabulary file loads, but has only special tokens
    if max(ids) >= size or len(ids) < size / 4:
        raise BadInput(
            f"{where}: the tokenizer has {len(ids)} tokens, but config.json has vocab_size {size};"
            " restore its files."
        )


def unreadable_model(what: str, error: Exception) -> BadInput:
    """Word the error for a model that a library, such as transformers, cannot load."""
    reason = first_line(error)
    if type(error).__name__ == "UnpicklingError":
        reason = (
            "its .bin file of weights is damaged, or has more than tensors, which could run code;"
            " use safetensors"
        )
    return BadInput(f"{what}: cannot be read: {reason}.")


def refuse_model_folder(out: Path) -> None:
    """Refuse an output in the folder of a model.

    The output would change the hash of the model, and could replace one of its files.
    """
    for folder in (out, *out.parents):
        if is_model_folder(folder):
            raise BadInput(
                f"{out}: {folder} is the folder of a model, which must stay as it is; choose"
                " another place."
            )


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a model.

    It does if it is a model of csebench or of sentence-transformers, or has a configuration and
    weights.
    """
    if (folder / FACTS).exists() or (folder / "modules.json").exists():
        return True
    if not (folder / "config.json").exists():
        return False
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*.index.json")]
    return bool(weights)
