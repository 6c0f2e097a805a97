"""Write the model folder of a run, from which other programs load it.

AutoModel and AutoTokenizer can load the folder, and SentenceTransformer in most cases (see
`save_encoder`), with the same sentence vectors as in csebench. csebench/train/run.py adds the
facts, report and model card to the folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

from csebench.base.files import write_json
from csebench.base.models import added_folder
from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.encoder import MODULES_FILE, Encoder
from csebench.model.pooling import PROMPT_TEMPLATES, TWO_LAYERS
from csebench.model.sentence_encoder import Affine, FittedMap, MethodMap, save_map

TANH = "torch.nn.modules.activation.Tanh"
# sentence-transformers finds its modules here in every version since 1
ST = "sentence_transformers.models"


@dataclass(frozen=True)
class ModuleEntry:
    """An entry of modules.json. A sentence passes through the entries in their order."""

    folder: str  # relative to the model's folder; empty for the model's folder itself
    kind: str  # full name of the class


def save_encoder(
    folder: Path,
    encoder: Encoder,
    pooler: str,
    transform: FittedMap | None,
    modules: dict[str, nn.Module],
    added: Sequence[Encoder] = (),
) -> None:
    """Write an encoder, its tokenizer, and the modules of sentence-transformers that pool.

    Modules of csebench encode with prompts (a template, or a prefix), make features of token
    states, sum the vectors of several encoders, and rank a corpus. To load such a model, csebench
    must be installed, and the call is `SentenceTransformer(…, trust_remote_code=True)`. AutoModel
    loads the first encoder alone, without its prefix and its feature layer. sentence-transformers
    cannot apply an affine map, or one that a method computes, so no `modules.json` is written for
    them. It opens such a folder all the same, as an encoder that is pooled by the mean, without the
    map. The card warns of this.

    Args:
        transform: the fitted map that follows pooling, or None.
        modules: further modules that the method exports, by name.
        added: encoders whose vectors are added to those of `encoder`. Each has a folder of its own
            in `folder`, from which it can be loaded alone if it has no feature layer.
    """
    for number, other in enumerate(added, start=2):
        save_encoder(added_folder(folder, number), other, pooler, None, {})

    # The pooling module of sentence-transformers for two layers needs the states of all layers.
    encoder.model.config.output_hidden_states = pooler in TWO_LAYERS
    if encoder.added_modules:
        # AutoModel does not know these modules, so their weights are not among those of the model
        modules = {**modules, **encoder.added_modules}
        encoder.model.save_pretrained(folder, state_dict=weights_of_architecture(encoder))
    else:
        encoder.model.save_pretrained(folder)
    save_tokenizer(folder, encoder.tokenizer)
    if modules:
        save_modules(folder, modules)

    if transform is not None:
        save_map(folder, transform)
    if isinstance(transform, Affine | MethodMap):
        return
    if needs_csebench(encoder, pooler, added):
        steps = [ModuleEntry("", "csebench.model.prompt.Prompt")]
    else:
        steps = save_pooling(folder, encoder, pooler)
    if isinstance(transform, CorpusRanks):
        steps.append(ModuleEntry("", "csebench.model.ranks_module.Ranks"))

    entries = []
    for index, step in enumerate(steps):
        entry = {"idx": index, "name": str(index), "path": step.folder, "type": step.kind}
        entries.append(entry)
    write_json(folder / "modules.json", entries)


def needs_csebench(encoder: Encoder, pooler: str, added: Sequence[Encoder]) -> bool:
    """Whether sentence-transformers needs a module of csebench to embed as this model does."""
    return bool(added) or pooler in PROMPT_TEMPLATES or bool(encoder.added_modules)


def weights_of_architecture(encoder: Encoder) -> dict[str, torch.Tensor]:
    """Return the weights that a model has without its prefix and its feature layer."""
    added = tuple(f"{name}." for name in encoder.added_modules)
    weights = encoder.model.state_dict()
    return {key: value for key, value in weights.items() if not key.startswith(added)}


def save_tokenizer(folder: Path, tokenizer) -> None:
    """Write a tokenizer as it was loaded, without the settings of its last call."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    if tokenizer.padding_side != "right":  # encoders are trained with padding on this side
        tokenizer.padding_side = "right"
    # These keys say how the tokenizer was opened, for example with HF_HUB_OFFLINE=1. With them,
    # files of the same run would differ between machines.
    for key in ("is_local", "local_files_only"):
        tokenizer.init_kwargs.pop(key, None)
    tokenizer.save_pretrained(folder)


def save_modules(folder: Path, modules: dict[str, nn.Module]) -> None:
    """Write the weights of further modules that a method exports."""
    weights = {}
    for name, module in modules.items():
        for key, value in module.state_dict().items():
            weights[f"{name}.{key}"] = value
    save_weights(folder / MODULES_FILE, weights)


def save_pooling(folder: Path, encoder: Encoder, pooler: str) -> list[ModuleEntry]:
    """Write the modules of sentence-transformers that tokenise, encode and pool.

    Returns:
        The modules, in their order.
    """
    limits = {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", limits)
    size = {"word_embedding_dimension": encoder.size}
    steps = [ModuleEntry("", f"{ST}.Transformer")]

    if pooler in TWO_LAYERS:
        step = ModuleEntry("1_WeightedLayerPooling", f"{ST}.WeightedLayerPooling")
        steps.append(step)
        layers = {"num_hidden_layers": encoder.num_layers, "layer_start": 0}
        write_json(folder / step.folder / "config.json", size | layers)
        # one weight for the embedding output, and one for each layer
        weights = np.zeros(encoder.num_layers + 1, dtype=np.float32)
        weights[list(TWO_LAYERS[pooler])] = 1
        save_file({"layer_weights": weights}, folder / step.folder / "model.safetensors")

    step = ModuleEntry(f"{len(steps)}_Pooling", f"{ST}.Pooling")
    steps.append(step)
    is_cls = pooler in ("cls", "cls_before_pooler")
    mode = {"pooling_mode_cls_token": is_cls, "pooling_mode_mean_tokens": not is_cls}
    write_json(folder / step.folder / "config.json", size | mode)

    if pooler == "cls":
        step = ModuleEntry("2_Dense", f"{ST}.Dense")
        steps.append(step)
        shape = {"in_features": encoder.size, "out_features": encoder.size, "bias": True}
        activation = {"activation_function": TANH}
        write_json(folder / step.folder / "config.json", shape | activation)
        dense = encoder.model.pooler.dense.state_dict()
        weights = {f"linear.{key}": value for key, value in dense.items()}
        save_weights(folder / step.folder / "model.safetensors", weights)
    return steps


def save_weights(file: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Write tensors of any device to a safetensors file."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in weights.items()}
    save_file(arrays, file)
