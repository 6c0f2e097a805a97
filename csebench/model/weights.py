"""Whether `from_pretrained` loads the whole model: it goes on with random weights, or without some of the file's."""

from typing import Any

from csebench.base.errors import BadInput

CHANGE_VECTORS = ("prefix", "prompt", "lora", "adapter")  # modules that the authors' code adds to the encoder


def check_weights(model, loading: dict[str, Any], what: str, may_be_new: tuple[str, ...] = ()) -> None:
    """Raises BadInput where the weights of a file are not those that the configuration asks for: `loading` is what
    `from_pretrained(…, output_loading_info=True)` gives, `may_be_new` are modules that may have random weights. Heads,
    whatever their name, may be left out of the encoder: released checkpoints have many (`cls`, `mlp`,
    `discriminator`). What belongs to a module of the encoder, or changes its vectors, may not."""
    prefix, modules = f"{model.base_model_prefix}.", {name for name, _ in model.named_children()} - {"pooler"}
    missing = [name for name in loading["missing_keys"] if name.split(".")[0] not in may_be_new]
    unused = [name for name in loading["unexpected_keys"] if not name.endswith("position_ids")]
    left = {name for name in unused if name.removeprefix(prefix).split(".")[0] in modules}
    left |= {name for name in unused if any(word in name for word in CHANGE_VECTORS)}
    shapes = [name for name, *_ in loading["mismatched_keys"]]
    for names, problem in ((missing, "not in"), (left, "not used, but in"), (shapes, "of another shape in")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            reason = f"{problem} its file of weights. The file and config.json do not fit; get the model again."
            raise BadInput(f"{what}: {min(names)}{more}: {reason}")
