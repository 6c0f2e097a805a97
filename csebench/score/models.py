"""A model to be scored, from whatever names it: a run's folder, a control, a hub id."""

from csebench.base import hub
from csebench.base.errors import BadInput
from csebench.base.models import FACTS, read_facts
from csebench.model.embedder import Embedder
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import Affine, SentenceEncoder, SentenceTransformerEmbedder
from csebench.plan.catalog.registry import declaration, fill, load
from csebench.plan.schema.declarations import POOLERS, EncoderRef, Evaluation


def has_modules(ref: EncoderRef) -> bool:
    """Whether it is a model of sentence-transformers, which states its pooling; raises as
    `hub.fetch_files`."""
    folder = hub.local_folder(ref)
    if folder is not None:
        return (folder / "modules.json").exists()
    return "modules.json" in hub.listed(ref.name, ref.revision, "model", f"model {ref.name}")[1]


def open_model(
    name: str, pooler: str | None = None, evaluation: Evaluation = Evaluation()
) -> Embedder:
    """A model ready for the evaluators: a run's folder, a control, any Hugging Face or
    sentence-transformers encoder. Raises BadInput where there is no such model or its pooling is
    not known, RunFailed where the hub does not answer.

    Args:
        name: folder, or hub id (`ID@COMMIT` pins its revision).
        pooler: needed where the folder does not state one; one of sentence-transformers is used
            with all its modules unless a pooler is given.
    """
    ref = EncoderRef.parse(name)
    folder = hub.local_folder(ref)
    facts = read_facts(folder)
    if folder is not None and facts["control"] is not None:
        declared, where = declaration(facts["control"]), folder / FACTS
        if declared.kind != "control":
            raise BadInput(f"{where}: control: {declared.name} is none of the controls.")
        return load(declared.name)(
            fill(declared, facts["params"], f"{where}: params: {declared.name}"), facts["seed"]
        )
    pooler = pooler or facts["pooler"]
    if pooler is None and has_modules(ref):
        return SentenceTransformerEmbedder(ref, evaluation)
    if pooler is None:
        raise BadInput(f"{name}: states no pooling; give --pooler ({', '.join(POOLERS)}).")
    transform = None
    if folder is not None:
        if (folder / "modules.json").exists() and not (folder / "config.json").exists():
            raise BadInput(
                f"{name}: --pooler {pooler}: the folder has no encoder (config.json); leave"
                " --pooler out."
            )
        transform = Affine.load(folder)
    if transform is not None and pooler != facts["pooler"]:
        fitted_to = facts["pooler"] or f"a pooler that {FACTS} does not state"
        raise BadInput(
            f"{folder}: --pooler {pooler}: its map (transform.safetensors) was fitted to vectors of"
            f" {fitted_to}, and says nothing of others. Leave --pooler out."
        )
    encoder = Encoder.load(ref, with_pooler=pooler == "cls")
    encoder.check_pooler(pooler, f"model {name}")
    return SentenceEncoder(encoder, pooler, transform, evaluation)
