"""The folder that a run leaves: what AutoModel, AutoTokenizer and SentenceTransformer load."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from torch import nn

from csebench.base.files import write_json
from csebench.model.encoder import MODULES_FILE, Encoder
from csebench.model.pooling import PROMPT_TEMPLATES, TWO_LAYERS

TANH = "torch.nn.modules.activation.Tanh"
ST = "sentence_transformers.models"  # where its modules have been found since version 1


def save_encoder(
    folder: Path, encoder: Encoder, pooler: str, transform, modules: dict[str, nn.Module]
) -> None:
    """What AutoModel, AutoTokenizer and SentenceTransformer load, with equal vectors; beside it
    other `modules`.

    A fitted transform stays out of sentence-transformers' reach. A prompt is pooled by a module of
    ours, so `SentenceTransformer(…, trust_remote_code=True)` then needs csebench installed.
    """
    # sentence-transformers reads it
    encoder.model.config.output_hidden_states = pooler in TWO_LAYERS
    encoder.model.save_pretrained(folder)
    # else the file has what its last call asked for
    encoder.tokenizer.backend_tokenizer.no_truncation()
    encoder.tokenizer.backend_tokenizer.no_padding()
    if encoder.tokenizer.padding_side != "right":  # where the encoder was trained with its padding
        encoder.tokenizer.padding_side = "right"
    # how it was opened, as with HF_HUB_OFFLINE=1: other bytes by machine
    for key in ("is_local", "local_files_only"):
        encoder.tokenizer.init_kwargs.pop(key, None)
    encoder.tokenizer.save_pretrained(folder)
    if modules:
        state = {
            f"{name}.{k}": v
            for name, module in modules.items()
            for k, v in module.state_dict().items()
        }
        save_file({k: v.detach().cpu().numpy() for k, v in state.items()}, folder / MODULES_FILE)
    if transform is not None:
        return transform.save(folder)
    if pooler in PROMPT_TEMPLATES:
        prompt = {"idx": 0, "name": "0", "path": "", "type": "csebench.model.prompt.Prompt"}
        return write_json(folder / "modules.json", [prompt])
    config = {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", config)
    parts = [("", "Transformer")]
    if pooler in TWO_LAYERS:
        parts.append(("1_WeightedLayerPooling", "WeightedLayerPooling"))
        # of the embeddings and every layer
        weights = np.zeros(encoder.num_layers + 1, dtype=np.float32)
        weights[list(TWO_LAYERS[pooler])] = 1
        config = {
            "word_embedding_dimension": encoder.size,
            "num_hidden_layers": encoder.num_layers,
            "layer_start": 0,
        }
        write_json(folder / parts[-1][0] / "config.json", config)
        save_file({"layer_weights": weights}, folder / parts[-1][0] / "model.safetensors")
    parts.append((f"{len(parts)}_Pooling", "Pooling"))
    cls = pooler in ("cls", "cls_before_pooler")
    config = {"pooling_mode_cls_token": cls, "pooling_mode_mean_tokens": not cls}
    write_json(
        folder / parts[-1][0] / "config.json", {"word_embedding_dimension": encoder.size, **config}
    )
    if pooler == "cls":
        parts.append(("2_Dense", "Dense"))
        config = {"in_features": encoder.size, "out_features": encoder.size, "bias": True}
        write_json(folder / parts[-1][0] / "config.json", config | {"activation_function": TANH})
        dense = encoder.model.pooler.dense.state_dict()
        save_file(
            {f"linear.{k}": v.cpu().numpy() for k, v in dense.items()},
            folder / "2_Dense/model.safetensors",
        )
    listed = [
        {"idx": i, "name": str(i), "path": p, "type": f"{ST}.{kind}"}
        for i, (p, kind) in enumerate(parts)
    ]
    write_json(folder / "modules.json", listed)
