"""The files of a model's folder, and the one hash by which its scores name it. Never imports torch."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat

from csebench.base.errors import BadInput, first_line
from csebench.base.files import is_there, read_json, read_typed, refuse_special_files, sha256

REPORT = "training.json"  # in the model's folder, written last: the model is complete, and how it was trained
FACTS = "csebench.json"  # in the folder of a model of ours: its run and its pooler, or the control that it is
CARD = "README.md"
WEIGHTS = "model.safetensors"
CLASS_ELSEWHERE = re.compile(r"(?!sentence_transformers\.|torch\.).*\..*")
CONFIGS = ("config.json", "tokenizer_config.json")  # of a folder that is no model of sentence-transformers
FOREIGN = {  # values of keys in configurations, by which a model brings code, or files of another repository
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


def read_facts(folder: Path) -> dict:
    """What a model's `csebench.json` states, with defaults; of a model that is not ours only defaults."""
    file = folder / FACTS
    return (read_typed(file, Facts, _remedy(folder))[1] if is_there(file) else Facts()).model_dump()


def model_sha256(folder: Path) -> str:
    """One hash over the names and contents of all files of a model: weights, tokenizer, configuration, modules;
    without the model card, the report that states the hash, and hidden files (`.cache/`, `.git/`)."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    names = [name for name in sorted(files) if str(name) not in (REPORT, CARD) and name.parts[0][0] != "."]
    lines = [f"{name.as_posix()} {sha256(files[name])}" for name in names]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check_model(folder: Path) -> None:
    """Raises BadInput where files of a finished model differ from those that its report states by a hash (older
    reports state none), or the report is damaged."""
    report = folder / REPORT
    stated = read_typed(report, Report, _remedy(folder))[1].model_sha256 if is_there(report) else None
    if stated is not None and (actual := model_sha256(folder)) != stated:
        sums = f"sha256 is {actual[:12]}…, {REPORT} states {stated[:12]}…"
        raise BadInput(f"{folder}: files differ from those that training wrote ({sums}). {_remedy(folder)}")


def check_revision(folder: Path, revision: str) -> None:
    """Raises BadInput where a revision is a sha256, but neither of the folder nor of its weights."""
    if len(revision) != 64 or ((folder / WEIGHTS).exists() and sha256(folder / WEIGHTS) == revision):
        return
    if (actual := model_sha256(folder)) != revision:
        sums = f"neither the sha256 of the folder ({actual[:12]}…) nor that of {WEIGHTS} is {revision[:12]}…"
        what_to_do = "Restore its files, or state the sha256 of the folder as revision."
        raise BadInput(f"{folder}: another encoder was expected: {sums}. {what_to_do}")


def check_foreign(folder: Path, patterns: tuple[str, ...] = CONFIGS) -> None:
    """Raises BadInput for a model whose configuration asks for code, or for another repository: with it, its revision
    would not pin it; without it, the vectors would be those of another model. Libraries read what else is in the
    folder, so it must hold regular files only."""
    refuse_special_files(folder)
    for file in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        for key, value in _entries(read_json(file)):
            if key in FOREIGN and FOREIGN[key].fullmatch(str(value)):
                raise BadInput(
                    f"{file}: {key}: {value!r} asks for Python code, or for files of another repository. A model may"
                    " bring neither (docs/security.md). Use one that its library loads without; --pooler takes the"
                    " encoder of a sentence-transformers model alone."
                )


def _entries(content, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a JSON text, with the outermost key of `FOREIGN` above it, else its own."""
    if isinstance(content, dict | list):
        parts = content.items() if isinstance(content, dict) else ((key, value) for value in content)
        for name, value in parts:
            yield from _entries(value, key if key in FOREIGN else name)
    elif content is not None:
        yield key, content


def check_vocabulary(tokenizer, config, what: str) -> None:
    """Raises BadInput where what `AutoTokenizer` loaded is no tokenizer (it takes any class of transformers), cannot
    pad, or has another vocabulary than the model."""
    where = f"{what}: tokenizer_config.json"
    if not hasattr(tokenizer, "get_vocab"):
        raise BadInput(f"{where}: tokenizer_class: {type(tokenizer).__name__} is no tokenizer; restore the file.")
    if tokenizer.pad_token_id is None:
        raise BadInput(f"{where}: the tokenizer has no padding token; name one as pad_token.")
    ids = tokenizer.get_vocab().values()
    size = getattr(config, "vocab_size", len(ids))
    if max(ids) >= size or len(ids) < size / 4:  # a class that finds no file of its own has special tokens only
        tokens = f"the tokenizer has {len(ids)} tokens"
        raise BadInput(f"{where}: {tokens}, but config.json has vocab_size {size}; restore its files.")


def unreadable(what: str, error: Exception) -> BadInput:
    """The refusal of a model that transformers, sentence-transformers or a library below them cannot load."""
    reason = first_line(error)
    if type(error).__name__ == "UnpicklingError":
        reason = "its .bin file of weights is damaged, or has more than tensors, which could run code; use safetensors"
    return BadInput(f"{what}: cannot be read: {reason}.")


def refuse_model_folder(out: Path) -> None:
    """Raise BadInput for an output in the folder of a model: the model would be another one, by the hash of its files,
    and its own files could be replaced."""
    for folder in (out, *out.parents):
        if is_model_folder(folder):
            raise BadInput(
                f"{out}: {folder} is the folder of a model, which must stay as it is; choose another place."
            )


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a model: one of ours, of sentence-transformers, or a configuration with weights."""
    if (folder / FACTS).exists() or (folder / "modules.json").exists():
        return True
    if not (folder / "config.json").exists():
        return False
    weights = [path for ending in ("safetensors", "bin", "index.json") for path in folder.glob(f"*.{ending}")]
    return bool(weights)
