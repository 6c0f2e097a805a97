"""A model to be scored, from whatever names it: a run's folder, a control, a hub id, a file of vectors."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import hf_hub_download

from csebench.base.errors import BadInput, RunFailed
from csebench.model.embedder import Embedder, EmbeddingFile
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import Affine, SentenceEncoder, SentenceTransformerEmbedder
from csebench.plan.registry import load
from csebench.plan.schema import POOLERS, EncoderRef, Evaluation


def pooler_of(folder: Path) -> str | None:
    """The pooler that a folder of ours states."""
    return facts_of(folder).get("pooler")


def facts_of(folder: Path) -> dict:
    """What the `csebench.json` of a folder of ours states; of any other model nothing."""
    file = folder / "csebench.json"
    return json.loads(file.read_text()) if file.exists() else {}


def has_modules(ref: EncoderRef) -> bool:
    """Whether it is a model of sentence-transformers, which states its pooling; False if the hub cannot be reached."""
    if Path(ref.name).exists():
        return (Path(ref.name) / "modules.json").exists()
    try:
        return bool(hf_hub_download(ref.name, "modules.json", revision=ref.revision))
    except (OSError, ValueError):
        return False


def open_model(name: str, pooler: str | None = None, evaluation: Evaluation = Evaluation()) -> Embedder:
    """A model ready for the evaluators: a run's folder, a control, any Hugging Face or sentence-transformers encoder.

    Args:
        name: folder, hub id (`ID@COMMIT` pins its revision), or .npz file of embeddings.
        pooler: needed where the folder does not state one; one of sentence-transformers is used with all its modules
            unless a pooler is given.

    Raises:
        BadInput: there is no such model, it cannot be had from the hub, or its pooling is not known.
    """
    folder = Path(name)
    if folder.suffix == ".npz":
        return EmbeddingFile(folder)
    facts = facts_of(folder)
    if "control" in facts:
        return load(facts["control"])(facts["params"], facts["seed"])
    pooler = pooler or pooler_of(folder)
    ref = EncoderRef.parse(name)
    if pooler is None and has_modules(ref):
        return SentenceTransformerEmbedder(ref, evaluation)
    if pooler is None:
        raise BadInput(f"{name}: does not say how to pool; give --pooler ({', '.join(POOLERS)}).")
    try:
        encoder = Encoder.load(ref, with_pooler=pooler == "cls")
    except RunFailed as error:  # nothing has run: the name is the user's
        raise BadInput(str(error)) from None
    return SentenceEncoder(encoder, pooler, Affine.load(folder), evaluation)
