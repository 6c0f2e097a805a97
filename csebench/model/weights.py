"""Whether what `from_pretrained` loads is the whole model: it fills what is missing with random
weights, or leaves weights out, and goes on."""

from typing import Any

from csebench.base.errors import BadInput

SIMCSE_HEAD = "mlp.dense.weight"  # in the place of BERT's pooler layer
# modules that the authors' code adds to the encoder
CHANGE_VECTORS = ("prefix", "prompt", "lora", "adapter")


def check_weights(
    model, loading: dict[str, Any], what: str, may_be_new: tuple[str, ...] = ()
) -> None:
    """Raises BadInput where the weights of a file are not those that the configuration asks for.

    Heads, whatever their name, may be left out of the encoder: released checkpoints have many
    (`cls`, `mlp`, `discriminator`). What belongs to a module of the encoder, or changes its
    vectors, may not.

    Args:
        loading: as `from_pretrained(…, output_loading_info=True)` gives it.
        may_be_new: modules that may have random weights.
    """
    prefix, modules = (
        f"{model.base_model_prefix}.",
        {name for name, _ in model.named_children()} - {"pooler"},
    )
    missing = [name for name in loading["missing_keys"] if name.split(".")[0] not in may_be_new]
    left = [name for name in loading["unexpected_keys"] if not name.endswith("position_ids")]
    left = [
        name
        for name in left
        if name.removeprefix(prefix).split(".")[0] in modules
        or any(word in name for word in CHANGE_VECTORS)
    ]
    shapes = [name for name, *_ in loading["mismatched_keys"]]
    lacks_pooler = any(name.startswith("pooler.") for name in missing)
    if lacks_pooler and any(name.endswith(SIMCSE_HEAD) for name in loading["unexpected_keys"]):
        raise BadInput(
            f"{what}: it has SimCSE's head ({SIMCSE_HEAD}), but no pooler layer: it is a checkpoint"
            " of SimCSE's training that is not converted. Convert a copy with"
            " simcse_to_huggingface.py of github.com/princeton-nlp/SimCSE (`python"
            " simcse_to_huggingface.py --path FOLDER`), which makes the head the pooler layer."
        )
    for names, problem in (
        (missing, "not in"),
        (left, "not used, but in"),
        (shapes, "of another shape in"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise BadInput(
                f"{what}: {min(names)}{more}: {problem} its file of weights. The file and"
                " config.json do not fit; get the model again."
            )
