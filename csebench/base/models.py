"""The files of a model's folder, and the one hash by which its scores name it. Never imports
torch."""

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

# in the model's folder, written last: the model is complete, and how it was trained
REPORT = "training.json"
# in the folder of a model of ours: its run and its pooler, or the control that it is
FACTS = "csebench.json"
CARD = "README.md"
WEIGHTS = "model.safetensors"
TOKENIZER = ".model"  # the suffix of a sentencepiece file, which transformers takes under any name
# the folders that published revisions of weights alone stand for
REVISIONS = "encoders/revisions.yaml"
# beside which transformers reads every file of weights, also hidden ones, which no hash covers
DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
NAMING = (  # keys of configurations whose values name files of the model
    "weight_map",  # shards of the weights
    "transformers_weights",
    "fast_tokenizer_files",
    "configuration_files",
)
# of functions of transformers, which take paths from them
ARGUMENTS = re.compile(r"sentence_[\w-]+_config\.json")
CLASS_ELSEWHERE = re.compile(r"(?!sentence_transformers\.|torch\.).*\..*")
# of a folder that is no model of sentence-transformers
CONFIGS = ("config.json", "tokenizer_config.json")
# values of keys in configurations, by which a model brings code, or files of another repository
FOREIGN = {
    "auto_map": re.compile(r".*"),
    "type": CLASS_ELSEWHERE,
    "types": CLASS_ELSEWHERE,
    "tokenizer_class": CLASS_ELSEWHERE,
    "activation_function": CLASS_ELSEWHERE,  # sentence-transformers would put Tanh in its place
    "attn_implementation": re.compile(r".*/.*"),  # a kernel of the hub
    "_attn_implementation": re.compile(r".*/.*"),
    "use_kernels": re.compile("True"),
    "weights_only": re.compile("False"),  # a pickle that may call any function
    "tokenizer_name_or_path": re.compile(r".*"),
    "base_model_name_or_path": re.compile(r".*"),  # of an adapter
}


class Spent(BaseModel):
    """What others read of the provenance of a run."""

    seconds: Annotated[FiniteFloat, Field(strict=True, ge=0)] | None = None
    gpu: str | None = None
    peak_gpu_mb: Annotated[int, Field(strict=True, ge=0)] | None = None


class Report(BaseModel):
    """What others read of a run's report."""

    spec: dict[str, Any] = {}
    provenance: Spent = Spent()
    model_sha256: str | None = None


class Facts(BaseModel):
    """What others read of a model's `csebench.json`."""

    run: str | None = None
    pooler: str | None = None
    control: str | None = None
    params: dict[str, Any] = {}
    seed: int = Field(default=0, ge=0, lt=2**32)


def train_again(run: Path) -> str:
    """What to do about the damaged folder of a run: the end of a message."""
    return f"Delete {run}, and the run is trained again."


def _remedy(model: Path) -> str:
    """The same of a model, which is in the folder of a run, or a copy elsewhere."""
    return train_again(model.parent) if model.name == "model" else "Restore its files."


def read_facts(folder: Path | None) -> dict:
    """Read what a model's `csebench.json` states, with defaults.

    Args:
        folder: None for a model of the hub. A model that is not ours has only defaults.
    """
    if folder is None or not is_there(folder / FACTS):
        return Facts().model_dump()
    return read_typed(folder / FACTS, Facts, _remedy(folder))[1].model_dump()


def files_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Every file in a folder and the folders in it, also where those are links.

    Args:
        above: the folders that hold this one. In the outermost, what is hidden is left out.

    Raises:
        BadInput: a folder cannot be listed, or is a link to one that holds it.
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


def hashed_files(folder: Path) -> dict[PurePosixPath, Path]:
    """The files of a model by their names, which is what its hash covers.

    Left out are the model card, the report that states the hash, and hidden files (`.cache/`,
    `.git/`). No configuration may name these (`check_named_files`).
    """
    files = {}
    for path in files_below(folder):
        name = PurePosixPath(path.relative_to(folder))
        if str(name) not in (REPORT, CARD):
            files[name] = path
    return files


def model_sha256(folder: Path) -> str:
    """Compute one hash over the names and contents of all files that a model is read from."""
    files = sorted(hashed_files(folder).items())
    return sha256_of_files((str(name), sha256(path)) for name, path in files)


def check_model(folder: Path) -> None:
    """Raises BadInput where files of a finished model differ from those that its report states
    by a hash (older reports state none), or the report is damaged."""
    report = folder / REPORT
    stated = (
        read_typed(report, Report, _remedy(folder))[1].model_sha256 if is_there(report) else None
    )
    if stated is not None and (actual := model_sha256(folder)) != stated:
        sums = f"sha256 is {actual[:12]}…, {REPORT} states {stated[:12]}…"
        raise BadInput(
            f"{folder}: files differ from those that training wrote ({sums}). {_remedy(folder)}"
        )


Sum = Annotated[str, Field(pattern=f"^{SHA256.pattern}$")]


class Revisions(RootModel):
    """The sha256 of a whole folder by that of its weights alone."""

    root: dict[Sum, Sum]


def pinned_folder(revision: str) -> str:
    """The sha256 of the folder that a revision stands for.

    Published runs have the sha256 of an encoder's weights as its revision, from which their ids are
    computed. The project, and each folder that joins it, states which folders those are.
    """
    expected = revision
    for project in folders():
        file = project / REVISIONS
        if file.exists():
            expected = read_yaml(file, Revisions).root.get(revision, expected)
    return expected


def check_revision(folder: Path, revision: str) -> None:
    """Refuse a folder that is another than a sha256 as its revision says.

    Raises:
        BadInput: the folder has another sha256, also where its weights have that one.
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


def check_foreign(folder: Path, patterns: tuple[str, ...] = CONFIGS) -> None:
    """Refuse a model whose configuration asks for code, or for files that its hash does not cover.

    With them, its revision would not pin it. Without them, its vectors would be those of another
    model.

    Args:
        patterns: of the configurations to look into; `**/` before a name means any folder.
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
    """Whether a pattern means a file of a model."""
    if pattern.startswith("**/"):
        return name.match(pattern.removeprefix("**/"))
    return str(name) == pattern


def check_named_files(files: dict[PurePosixPath, Path], nested: bool) -> None:
    """Refuse a model if a configuration names a file, or a folder, that its hash does not cover.

    Args:
        files: of the model, as `hashed_files` gives them.
        nested: configurations in folders of the folder are read, too.
    """
    folders = {parent for name in files for parent in name.parents}
    for name, file in files.items():
        if name.parent.parts and not nested:
            continue
        for named in sorted(_named_files(file)):
            relative = PurePosixPath(named)
            inside = not relative.is_absolute() and ".." not in relative.parts
            path = name.parent / relative
            if inside and (path in files or path in folders):
                continue
            if inside and not os.path.lexists(file.parent / named):
                continue  # what is not there is not read
            raise BadInput(
                f"{file}: names {named!r}, which is not among the files that the hash of the model"
                f" covers. A model is read from its own folder, and not from hidden files, {CARD}"
                f" or {REPORT}. Move the file into the folder, and write its name."
            )


def _named_files(file: Path) -> set[str]:
    """Names of files and folders, beside a configuration, that libraries read because it names
    them."""
    if file.name == "modules.json":
        return {str(value) for key, value in _entries(read_json(file)) if key == "path"}
    if ARGUMENTS.fullmatch(file.name):  # relative to wherever the program runs
        entries = _entries(read_json(file))
        return {os.path.abspath(str(value)) for key, value in entries if key.endswith("_file")}
    if not file.name.endswith(("config.json", ".index.json")):
        return set()
    content = read_json(file)
    named = {str(value) for key, value in _entries(content, NAMING) if key in NAMING}
    # of sentence-transformers' Router
    routes = content.get("types") if isinstance(content, dict) else None
    if isinstance(routes, dict):
        named.update(routes)
    return named


def _entries(content, outermost: Collection[str] = (), key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a JSON text, with the first key above it that is one of `outermost`, else
    its own."""
    if isinstance(content, dict | list):
        parts = (
            content.items() if isinstance(content, dict) else ((key, value) for value in content)
        )
        for name, value in parts:
            yield from _entries(value, outermost, key if key in outermost else name)
    elif content is not None:
        yield key, content


def check_vocabulary(tokenizer, config, what: str) -> None:
    """Raises BadInput where what `AutoTokenizer` loaded is no tokenizer (it takes any class of
    transformers), cannot pad, or has another vocabulary than the model."""
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
    # a class that finds no file of its own has special tokens only
    if max(ids) >= size or len(ids) < size / 4:
        tokens = f"the tokenizer has {len(ids)} tokens"
        raise BadInput(
            f"{where}: {tokens}, but config.json has vocab_size {size}; restore its files."
        )


def unreadable_model(what: str, error: Exception) -> BadInput:
    """The refusal of a model that transformers, sentence-transformers or a library below them
    cannot load."""
    reason = first_line(error)
    if type(error).__name__ == "UnpicklingError":
        reason = (
            "its .bin file of weights is damaged, or has more than tensors, which could run code;"
            " use safetensors"
        )
    return BadInput(f"{what}: cannot be read: {reason}.")


def refuse_model_folder(out: Path) -> None:
    """Raise BadInput for an output in the folder of a model: the model would be another one, by
    the hash of its files, and its own files could be replaced."""
    for folder in (out, *out.parents):
        if is_model_folder(folder):
            raise BadInput(
                f"{out}: {folder} is the folder of a model, which must stay as it is; choose"
                " another place."
            )


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a model: one of ours, of sentence-transformers, or a configuration
    with weights."""
    if (folder / FACTS).exists() or (folder / "modules.json").exists():
        return True
    if not (folder / "config.json").exists():
        return False
    weights = [
        path
        for ending in ("safetensors", "bin", "index.json")
        for path in folder.glob(f"*.{ending}")
    ]
    return bool(weights)
