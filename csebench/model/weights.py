"""Check that `from_pretrained` has loaded the whole model.

transformers fills missing weights with random numbers, ignores weights that it does not expect, and
goes on. Other checks of a model's files are in csebench/base/models.py.
"""

from typing import Any

from csebench.base.errors import BadInput

SIMCSE_HEAD = "mlp.dense.weight"  # SimCSE trains this head instead of BERT's pooler layer
# Authors' code adds modules with such words in their names. They change the vectors of an encoder.
CHANGE_VECTORS = ("prefix", "prompt", "lora", "adapter")


def check_weights(
    model, loading: dict[str, Any], what: str, may_be_new: tuple[str, ...] = ()
) -> None:
    """Check that a file has the weights that its configuration asks for.

    A file may have heads of any name that the model does not use: released checkpoints have many
    (`cls`, `mlp`, `discriminator`). But it may not have unused weights that belong to a module of
    the encoder, or that would change its vectors.

    Args:
        loading: the information of `from_pretrained(…, output_loading_info=True)`.
        what: the model, for messages.
        may_be_new: modules that may have random weights.

    Raises:
        BadInput: weights are missing, unused or of another shape.
    """
    missing = [name for name in loading["missing_keys"] if name.split(".")[0] not in may_be_new]
    lacks_pooler = any(name.startswith("pooler.") for name in missing)
    has_head = any(name.endswith(SIMCSE_HEAD) for name in loading["unexpected_keys"])
    if lacks_pooler and has_head:
        raise BadInput(
            f"{what}: it has SimCSE's head ({SIMCSE_HEAD}), but no pooler layer: it is a checkpoint"
            " of SimCSE's training that must be converted first. Convert a copy with"
            " simcse_to_huggingface.py of github.com/princeton-nlp/SimCSE (`python"
            " simcse_to_huggingface.py --path FOLDER`), which makes the head the pooler layer."
        )
    refuse_weights(missing, "not in", what)
    refuse_weights(left_out_weights(model, loading["unexpected_keys"]), "not used, but in", what)
    mismatched = [name for name, *_ in loading["mismatched_keys"]]
    refuse_weights(mismatched, "of another shape in", what)


def left_out_weights(model, unexpected: list[str]) -> list[str]:
    """Select the unused weights of a file that belong to the encoder or change its vectors."""
    prefix = f"{model.base_model_prefix}."
    modules = {name for name, _ in model.named_children()}
    modules.discard("pooler")  # a model may be loaded without its pooler layer
    left_out = []
    for name in unexpected:
        if name.endswith("position_ids"):  # a buffer that older releases of transformers saved
            continue
        is_of_encoder = name.removeprefix(prefix).split(".")[0] in modules
        if is_of_encoder or any(word in name for word in CHANGE_VECTORS):
            left_out.append(name)
    return left_out


def refuse_weights(names: list[str], problem: str, what: str) -> None:
    """Raise BadInput if any weights have a problem.

    Args:
        names: the weights with the problem.
        problem: words of the message before `its file of weights`.
    """
    if not names:
        return
    others = ""
    if len(names) > 1:
        others = f" and {len(names) - 1} more"
    raise BadInput(
        f"{what}: {min(names)}{others}: {problem} its file of weights. The file and config.json do"
        " not fit; get the model again."
    )
