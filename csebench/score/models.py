"""A model to be scored, from whatever names it: a run's folder, a control, a hub id, a file of vectors."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import hf_hub_download

from csebench.base.errors import BadInput
from csebench.model.embedder import EmbeddingFile
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import Affine, SentenceEncoder, SentenceTransformerEmbedder
from csebench.plan.registry import load
from csebench.plan.schema import POOLERS, EncoderRef, Evaluation


def pooler_of(folder: Path) -> str | None:
    """The pooler that a folder of ours states."""
    own = folder / "csebench.json"
    return json.loads(own.read_text()).get("pooler") if own.exists() else None


def has_modules(ref: EncoderRef) -> bool:
    """Whether sentence-transformers says how its sentences are pooled; a hub that cannot be reached says nothing."""
    if Path(ref.name).exists():
        return (Path(ref.name) / "modules.json").exists()
    try:
        return bool(hf_hub_download(ref.name, "modules.json", revision=ref.revision))
    except (OSError, ValueError):
        return False


def open_model(name: str, pooler: str | None = None, evaluation: Evaluation = Evaluation()):
    """A model ready for the evaluators: a run's folder, a control, any Hugging Face or sentence-transformers encoder.

    Args:
        name: folder, hub id (`ID@COMMIT` pins its revision), or .npz file of embeddings.
        pooler: needed where the folder does not state one; one of sentence-transformers is used with all its modules
            unless a pooler is given.

    Raises:
        BadInput: there is no such model, or nobody says how to pool it.
    """
    folder = Path(name)
    if folder.suffix == ".npz":
        return EmbeddingFile(folder)
    own = folder / "csebench.json"
    facts = json.loads(own.read_text()) if own.exists() else {}
    if "control" in facts:
        return load(facts["control"])(facts["params"], facts["seed"])
    pooler = pooler or pooler_of(folder)
    ref = EncoderRef.parse(name)
    if pooler is None and has_modules(ref):
        return SentenceTransformerEmbedder(ref, evaluation)
    if pooler is None:
        raise BadInput(f"{name}: does not say how to pool; give --pooler ({', '.join(POOLERS)}).")
    encoder = Encoder.load(ref, with_pooler=pooler == "cls")
    return SentenceEncoder(encoder, pooler, Affine.load(folder), evaluation)
