"""Open models for scoring: the folder of a run, a control, a released model, or a hub id."""

from pathlib import Path

from safetensors.numpy import load_file

from csebench.base import hub
from csebench.base.errors import BadInput, validated
from csebench.base.models import FACTS, read_facts
from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.embedder import Embedder
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import (
    AFFINE_KEYS,
    MAP_FILE,
    RANKS_KEYS,
    Affine,
    FittedMap,
    MethodMap,
    SentenceEncoder,
    SentenceTransformerEmbedder,
)
from csebench.plan.catalog.registry import METHODS, adapter_names, declaration, load
from csebench.plan.schema.declarations import POOLERS, EncoderRef, Evaluation


def open_model(
    name: str, pooler: str | None = None, evaluation: Evaluation = Evaluation()
) -> Embedder:
    """Open a model for the evaluators.

    Args:
        name: folder, or hub id (`ID@COMMIT` pins its revision).
        pooler: required if the folder does not state one. A model of sentence-transformers is used
            with all its modules unless a pooler is given.

    Raises:
        BadInput: there is no such model, its pooling is unknown, or it has no such pooler.
        RunFailed: the hub does not answer.
    """
    ref = EncoderRef.parse(name)
    folder = hub.local_folder(ref)
    facts = read_facts(folder)
    if folder is not None and facts["control"] is not None:
        return open_control(folder, facts)
    if folder is not None and facts["released"] is not None:
        return open_released(folder, facts, pooler, evaluation)

    pooler = pooler or facts["pooler"]
    if pooler is None:
        if has_modules(ref):
            return SentenceTransformerEmbedder(ref, evaluation)
        raise BadInput(f"{name}: states no pooling; give --pooler ({', '.join(POOLERS)}).")

    transform = None
    if folder is not None:
        if (folder / "modules.json").exists() and not (folder / "config.json").exists():
            raise BadInput(
                f"{name}: --pooler {pooler}: the folder has no encoder (config.json); leave"
                " --pooler out."
            )
        transform = load_map(folder, facts["method"])
    if transform is not None and pooler != facts["pooler"]:
        fitted_to = facts["pooler"] or f"a pooler that {FACTS} does not state"
        raise BadInput(
            f"{folder}: --pooler {pooler}: its map ({MAP_FILE}) was fitted to vectors of"
            f" {fitted_to} and does not suit other vectors. Leave --pooler out."
        )
    encoders = Encoder.load_all(ref, with_pooler=pooler == "cls")
    for encoder in encoders:
        encoder.check_pooler(pooler, f"model {name}")
    first, *added = encoders
    return SentenceEncoder(first, pooler, transform, evaluation, added)


def load_map(folder: Path, method: str | None) -> FittedMap | None:
    """Load the fitted map of a model folder, or return None if it has none.

    Args:
        method: name of the method that fitted the map, or None if the folder does not state it.

    Raises:
        BadInput: the method computes the map, and the project does not have this method.
    """
    path = folder / MAP_FILE
    if not path.exists():
        return None
    arrays = load_file(path)
    if set(arrays) == AFFINE_KEYS:
        return Affine(**arrays)
    if set(arrays) == RANKS_KEYS:
        return CorpusRanks(**arrays)
    if method is None or method not in adapter_names(METHODS):
        name = method or f"which {FACTS} does not state"
        raise BadInput(
            f"{path}: the method that fitted this map ({name}) also computes it, but this project"
            f" does not have the method. Add its file to {METHODS}/."
        )
    return MethodMap(arrays, load(method).apply)


def open_control(folder: Path, facts: dict) -> Embedder:
    """Open a control, a model without weights whose scores are known in advance.

    Args:
        facts: stated in the folder, with the name of the control and its parameters.
    """
    where = folder / FACTS
    control = declaration(facts["control"])
    if control.kind != "control":
        raise BadInput(f"{where}: control: {control.name} is not a control.")
    params = validated(control.hyperparameters, facts["params"], f"{where}: params: {control.name}")
    return load(control.name)(params, facts["seed"])


def open_released(
    folder: Path, facts: dict, pooler: str | None, evaluation: Evaluation
) -> Embedder:
    """Open the published model that the folder of a run names, with its own pooling.

    Args:
        facts: stated in the folder, with the name and the revision of the model.
        pooler: refused, because it would take the place of the model's own pooling.

    Raises:
        BadInput: the revision is not pinned, a pooler is given, there is no such model at this
            revision, its folder is damaged, or it states no pooling.
        RunFailed: the hub does not answer.
    """
    where = f"{folder / FACTS}: released"
    ref = validated(EncoderRef, facts["released"], where)
    ref.refuse_unpinned(where)
    if pooler is not None:
        raise BadInput(
            f"{folder}: --pooler {pooler}: the run is {ref.name} with its own pooling; leave"
            " --pooler out."
        )
    hub.check_local_model(ref)
    if not has_modules(ref):
        raise BadInput(
            f"{ref.name}: states no pooling, because it has no modules.json of"
            " sentence-transformers. Use the method bert with a pooler."
        )
    return SentenceTransformerEmbedder(ref, evaluation)


def states_pooling(ref: EncoderRef) -> bool:
    """Whether a model can be opened without a pooler.

    Raises:
        BadInput: the hub has no such model.
        RunFailed: the hub does not answer.
    """
    facts = read_facts(hub.local_folder(ref))
    if any(facts[fact] is not None for fact in ("pooler", "control", "released")):
        return True
    return has_modules(ref)


def has_modules(ref: EncoderRef) -> bool:
    """Whether a model is in the format of sentence-transformers, which states its pooling.

    Raises:
        BadInput: the hub has no such model.
        RunFailed: the hub does not answer.
    """
    folder = hub.local_folder(ref)
    if folder is not None:
        return (folder / "modules.json").exists()
    _, files = hub.listed(ref.name, ref.revision, "model", f"model {ref.name}")
    return "modules.json" in files
