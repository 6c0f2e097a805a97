"""Whether what `from_pretrained` loads is the whole model: it fills what is missing with random weights, or leaves
weights out, and goes on."""

from pathlib import Path
from typing import Any

import transformers

from csebench.base.errors import BadInput

# Any one group is a tokenizer; without one, transformers makes a tokenizer of special tokens only.
TOKENIZERS = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))
PIECES = ("*.model", "*.spm")  # of sentencepiece
CHANGE_VECTORS = ("prefix", "prompt", "lora", "adapter")  # modules that the authors' code adds to the encoder


def check_tokenizer(folder: Path, what: str) -> None:
    """Raises BadInput for a folder without the vocabulary of a tokenizer."""
    complete = any(all((folder / name).exists() for name in group) for group in TOKENIZERS)
    if not complete and not any(path for pattern in PIECES for path in folder.glob(pattern)):
        names = ", ".join(" with ".join(group) for group in TOKENIZERS)
        raise BadInput(f"{what}: no tokenizer in {folder} ({names}, or {' or '.join(PIECES)}); restore its files.")


def check_architecture(config, what: str) -> None:
    """Raises BadInput where config.json names a class of another type of model: weights of a BERT fit a RoBERTa."""
    for name in getattr(config, "architectures", None) or []:
        expected = getattr(getattr(transformers, name, None), "config_class", None)
        if expected is not None and expected.model_type != config.model_type:
            raise BadInput(
                f"{what}: config.json: model_type is {config.model_type}, but architectures has {name}, which is a"
                f" {expected.model_type}; restore the file."
            )


def check_weights(model, loading: dict[str, Any], what: str, may_be_new: tuple[str, ...] = ()) -> None:
    """Raises BadInput where the weights of a file are not those that the configuration asks for.

    Heads, whatever their name, may be left out of the encoder: released checkpoints have many (`cls`, `mlp`,
    `discriminator`). What belongs to a module of the encoder, or changes its vectors, may not.

    Args:
        loading: as `from_pretrained(…, output_loading_info=True)` gives it.
        may_be_new: modules that may have random weights.
    """
    prefix, modules = f"{model.base_model_prefix}.", {name for name, _ in model.named_children()} - {"pooler"}
    missing = [name for name in loading["missing_keys"] if name.split(".")[0] not in may_be_new]
    left = [name for name in loading["unexpected_keys"] if not name.endswith("position_ids")]
    left = [
        name
        for name in left
        if name.removeprefix(prefix).split(".")[0] in modules or any(word in name for word in CHANGE_VECTORS)
    ]
    shapes = [name for name, *_ in loading["mismatched_keys"]]
    for names, problem in ((missing, "not in"), (left, "not used, but in"), (shapes, "of another shape in")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise BadInput(
                f"{what}: {min(names)}{more}: {problem} its file of weights. The file and config.json do not fit; get"
                " the model again."
            )
