"""The files of a model's folder, and the one hash by which scores name a model.

Here are the checks that a folder can be loaded without running code of others, and that its hash
covers all that is read. Where a model comes from: base/hub.py. Never imports torch.
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

# In the model's folder. It says how the model was trained. It is written last, so the model is
# complete.
REPORT = "training.json"
# in the folder of a model that csebench wrote: its run and its pooler, or which control it is
FACTS = "csebench.json"
CARD = "README.md"
WEIGHTS = "model.safetensors"
TOKENIZER = ".model"  # suffix of a sentencepiece file, which transformers takes under any name
# states the hash of the folder for published revisions that are the hash of the weights alone
REVISIONS = "encoders/revisions.yaml"
# If there is such a file, transformers reads every file of weights in the folder, also hidden ones.
DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
NAMING = (  # keys of configurations whose values name files of the model
    "weight_map",  # shards of the weights
    "transformers_weights",
    "fast_tokenizer_files",
    "configuration_files",
)
# holds arguments for functions of transformers, which may be paths
ARGUMENTS = re.compile(r"sentence_[\w-]+_config\.json")
CLASS_ELSEWHERE = re.compile(r"(?!sentence_transformers\.|torch\.).*\..*")
# the configurations of a folder that is no model of sentence-transformers
CONFIGS = ("config.json", "tokenizer_config.json")
# keys in configurations by whose values a model brings code, or files of another repository
FOREIGN = {
    "auto_map": re.compile(r".*"),
    "type": CLASS_ELSEWHERE,
    "types": CLASS_ELSEWHERE,
    "tokenizer_class": CLASS_ELSEWHERE,
    "activation_function": CLASS_ELSEWHERE,  # sentence-transformers would use Tanh instead
    "attn_implementation": re.compile(r".*/.*"),  # a kernel of the hub
    "_attn_implementation": re.compile(r".*/.*"),
    "use_kernels": re.compile("True"),
    "weights_only": re.compile("False"),  # a pickle that may call any function
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
    pooler: str | None = None
    control: str | None = None
    params: dict[str, Any] = {}
    seed: int = Field(default=0, ge=0, lt=2**32)


def read_facts(folder: Path | None) -> dict:
    """Read what a model's `csebench.json` states, with defaults.

    Args:
        folder: None for a model of the hub. A model that csebench did not write has only defaults.
    """
    if folder is None or not is_there(folder / FACTS):
        return Facts().model_dump()
    _, facts = read_typed(folder / FACTS, Facts, _remedy(folder))
    return facts.model_dump()


def train_again(run: Path) -> str:
    """Word what to do about the damaged folder of a run, at the end of a message."""
    return f"Delete {run}, and the run is trained again."


def _remedy(model: Path) -> str:
    """Word what to do about a damaged model. It is in the folder of a run, or a copy elsewhere."""
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

    Left out are the model card, the report that states the hash, and hidden files (`.cache/`,
    `.git/`). No configuration may name these (`check_named_files`).
    """
    files = {}
    for path in files_below(folder):
        name = PurePosixPath(path.relative_to(folder))
        if str(name) not in (REPORT, CARD):
            files[name] = path
    return files


def files_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Give every file in a folder and in the folders below it. Links are followed.

    Args:
        above: the folders that hold this one. If there are none, hidden files and folders are left
            out.

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
    for path in paths:
        if not above and path.name.startswith(".") and path.suffix != TOKENIZER:
            continue
        if path.is_dir():
            yield from files_below(path, above | {inside})
        elif path.is_file():
            yield path


def check_model(folder: Path) -> None:
    """Refuse a finished model whose files differ from those that its report states by a hash.

    Reports of older versions of csebench state no hash. Then nothing is compared.

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
    """Refuse a folder that is not the encoder of a revision. A revision that is no sha256 fits all.

    Raises:
        BadInput: the folder has another sha256. It does not help if its weights have this one.
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
    the runs are computed from it, so it stays. The project, and each folder that joins it, states
    the sha256 of the folder for such a revision.
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

    If they were loaded, the revision would not pin the model. If they were left out, its vectors
    would be those of another model.

    Args:
        patterns: names of the configurations to look into. `**/` before a name means any folder.
    """
    refuse_special_files(folder)
    files = hashed_files(folder)
    if any(DISTRIBUTED.fullmatch(str(name)) for name in files):
        for path in folder.glob(".*.safetensors"):
            raise BadInput(
                f"{path}: would be read as weights; delete it, or give it a name that is not"
                " hidden."
            )
    nested = any("/" in pattern for pattern in patterns)
    check_named_files(files, nested)
    for name, file in files.items():
        if not any(_matches(name, pattern) for pattern in patterns):
            continue
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
        nested: look into configurations in folders of the folder, too.
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
                continue  # what is not there is not read
            raise BadInput(
                f"{file}: names {named!r}, which is not among the files that the hash of the model"
                f" covers. A model is read from its own folder, and not from hidden files, {CARD}"
                f" or {REPORT}. Move the file into the folder, and write its name."
            )


def _named_files(file: Path) -> set[str]:
    """Find the files and folders that libraries read because a configuration names them.

    Returns:
        Their names, relative to the folder of the configuration.
    """
    if file.name == "modules.json":
        return {str(value) for key, value in _entries(read_json(file)) if key == "path"}
    if ARGUMENTS.fullmatch(file.name):
        entries = _entries(read_json(file))
        # libraries take these relative to the current folder, so they are absolute here
        return {os.path.abspath(str(value)) for key, value in entries if key.endswith("_file")}
    if not file.name.endswith(("config.json", ".index.json")):
        return set()
    content = read_json(file)
    named = {str(value) for key, value in _entries(content, NAMING) if key in NAMING}
    if isinstance(content, dict) and isinstance(content.get("types"), dict):
        named.update(content["types"])  # folders of sentence-transformers' Router
    return named


def _entries(content, outermost: Collection[str] = (), key: str = "") -> Iterator[tuple[str, Any]]:
    """Give every value in a JSON text that is no list or object, with a key.

    Args:
        outermost: keys that hold for all values below them.
        key: the key of `content`.

    Returns:
        Pairs of key and value. The key is the first one on the way down that is among `outermost`,
        or else the last one.
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
    # a class that does not find its file has special tokens only
    if max(ids) >= size or len(ids) < size / 4:
        raise BadInput(
            f"{where}: the tokenizer has {len(ids)} tokens, but config.json has vocab_size {size};"
            " restore its files."
        )


def unreadable_model(what: str, error: Exception) -> BadInput:
    """Word the error for a model that transformers, sentence-transformers or a library below them
    cannot load."""
    reason = first_line(error)
    if type(error).__name__ == "UnpicklingError":
        reason = (
            "its .bin file of weights is damaged, or has more than tensors, which could run code;"
            " use safetensors"
        )
    return BadInput(f"{what}: cannot be read: {reason}.")


def refuse_model_folder(out: Path) -> None:
    """Refuse an output in the folder of a model.

    It would change the hash of the model, and could replace one of its files.
    """
    for folder in (out, *out.parents):
        if is_model_folder(folder):
            raise BadInput(
                f"{out}: {folder} is the folder of a model, which must stay as it is; choose"
                " another place."
            )


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a model: of csebench, of sentence-transformers, or any configuration
    with weights."""
    if (folder / FACTS).exists() or (folder / "modules.json").exists():
        return True
    if not (folder / "config.json").exists():
        return False
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*.index.json")]
    return bool(weights)
