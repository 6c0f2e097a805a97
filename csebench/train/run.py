"""Make the model of a run from its inputs: train or fit it, and export it.

A run ends with a finished model, or with nothing that looks like one. csebench/train/trainer.py
trains a method, and csebench/model/export.py writes the files of the encoder. The caller,
csebench/study/work.py, checks whether the run is needed and holds its lock.
"""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from csebench.base.errors import BadInput, Diverged, first_line
from csebench.base.files import SHA256, system_errors, with_digest, write_json, write_text
from csebench.base.models import CARD, FACTS, REPORT, model_sha256
from csebench.base.processes import is_main_process, use_threads
from csebench.base.provenance import Stopwatch
from csebench.base.runs import Progress, is_done
from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.encoder import Encoder
from csebench.model.export import save_encoder
from csebench.model.pooling import PROMPT_TEMPLATES
from csebench.model.sentence_encoder import (
    OWN_KEYS,
    Affine,
    FittedMap,
    MethodMap,
    SentenceEncoder,
    check_length,
)
from csebench.plan import code_versions
from csebench.plan.catalog.registry import declaration, load, typed_params
from csebench.plan.schema.declarations import Hyperparameters
from csebench.plan.schema.spec import Spec
from csebench.train import parallel
from csebench.train.foreign import ForeignCode
from csebench.train.inputs import Inputs, fitting_sentences
from csebench.train.trainer import fit, untrained_report


@dataclass
class ModelParts:
    """The parts of a run's model."""

    encoder: Encoder | None  # None for a control, and for a released model
    # encoders whose vectors are added to those of `encoder`
    added: list[Encoder] = field(default_factory=list)
    transform: FittedMap | None = None  # follows pooling
    modules: dict[str, nn.Module] = field(default_factory=dict)  # that the method also exports


def make_model(
    spec: Spec, inputs: Inputs, progress: Progress, chunk_size: int | None = None
) -> None:
    """Make the model of a run in `model/` of its folder.

    The folder gets the name `model/` when all its files are written. If a killed run left a
    checkpoint, training resumes from the checkpoint, and ends with the same weights.

    Args:
        progress: of the run, whose lock this process holds (csebench/base/runs.py: work_on).
        chunk_size: see `fit`.

    Raises:
        BadInput: see `load_encoder` and `fit`.
        Diverged: see `fit`. If the spec says so, the model is the untrained encoder instead.
        Untrainable: see `fit`.
        Stopped: SIGTERM, SIGINT or SIGHUP stopped the run. A checkpoint has been written.
    """
    out = progress.folder
    parallel.start_processes()
    watch = Stopwatch()
    versions = code_versions.mark(code_versions.units_of_run(spec))
    use_threads(spec.threads)
    params = typed_params(spec.method, spec.params)
    parts = ModelParts(load_encoder(spec, params))
    if is_main_process():
        write_json(out / "spec.json", spec.model_dump())

    # Train. Only the main process has the trained weights afterwards.
    method = declaration(spec.method)
    report: dict[str, Any] = {}
    if parts.encoder is not None and method.is_trained:
        try:
            trained = fit(spec, params, out, parts.encoder, inputs, progress, chunk_size)
            report = trained.report
            parts.added = trained.added
            parts.modules = trained.modules
        except Diverged as error:
            if spec.if_diverged == "fail":
                raise
            # again, because training has changed its weights
            parts.encoder = load_encoder(spec, params)
            assert parts.encoder is not None
            report = untrained_report(spec, params, parts.encoder, inputs, first_line(error))
    parallel.stop()
    if not is_main_process():
        return

    # Fit the map that follows pooling.
    if parts.encoder is not None and method.fits_map:
        model = SentenceEncoder(parts.encoder, params.pooler, added=parts.added)
        parts.transform = fit_transform(spec, params, model, inputs)

    # Export.
    report |= {"run": spec.run_id, "spec": spec.model_dump()}
    report["provenance"] = watch.record(
        data_sha256=inputs.sha256, chunk_size=chunk_size, **versions
    )
    # On a file system without locks, another process may have finished the run meanwhile.
    if not is_done(out):
        with system_errors(out / "model.part"):
            export(spec, params, out, report, parts)


def load_encoder(spec: Spec, params: Hyperparameters) -> Encoder | None:
    """Load the encoder that a run starts from.

    Returns:
        The encoder. None for a control, which has none, and for a released model, which is opened
        when it is scored.

    Raises:
        BadInput: the encoder is missing, its revision is not pinned, or the method cannot use it.
    """
    method = declaration(spec.method)
    if method.kind == "control":
        return None
    encoder_name = spec.encoder.name
    if spec.run_before is None:
        spec.encoder.refuse_unpinned(f"encoder {encoder_name}")
    if not method.loads_encoder:  # a released model
        return None
    encoder = Encoder.load(
        spec.encoder,
        params.dropout if method.is_trained else None,
        with_pooler=params.pooler == "cls",
        new_pooler=method.is_trained,
    )
    encoder.check_trainable(params.pooler, f"encoder {encoder_name}")
    if method.is_trained:
        check_length(params.max_length, encoder.max_seq_length, encoder_name, "max_length")
    if not encoder.tokenizer.is_fast:
        kind = type(encoder.tokenizer).__name__
        raise BadInput(
            f"encoder {encoder_name}: {kind} is written in Python; give the folder a"
            " tokenizer.json."
        )
    return encoder


def fit_transform(
    spec: Spec, params: Hyperparameters, model: SentenceEncoder, inputs: Inputs
) -> FittedMap:
    """Embed sentences of the corpus, and fit the map of a method to their vectors.

    Torch is seeded with the seed of the run first. A method draws its random numbers from torch.

    Args:
        model: the model without a map.
    """
    sentences = fitting_sentences(spec, inputs)
    vectors = model.embed(sentences)
    method_class = load(spec.method)  # before ForeignCode, because importing may set seeds
    guard = ForeignCode(spec.run_id, holds_interrupts=False)
    guard.seed(spec.seed)
    with guard:
        fitted = method_class.fit(vectors, params)
    return checked_map(spec.method, method_class, fitted)


def checked_map(method: str, method_class: type, fitted: Any) -> FittedMap:
    """Make the map that a method has fitted.

    Args:
        fitted: what `fit` of the method returned.

    Raises:
        BadInput: `fit` returned something else than a map (docs/methods.md).
    """
    if isinstance(fitted, CorpusRanks):
        return fitted
    if isinstance(fitted, tuple) and len(fitted) == 2:
        return Affine(*fitted)
    if not isinstance(fitted, dict):
        raise BadInput(
            f"{method}: fit: must return (shift, matrix), a CorpusRanks, or arrays by name."
        )
    if set(fitted) in OWN_KEYS:
        raise BadInput(
            f"{method}: fit: {', '.join(fitted)} are the names of csebench's own maps; use others."
        )
    if not hasattr(method_class, "apply"):
        raise BadInput(f"{method}: fit returns arrays by name, so its class needs `apply`.")
    return MethodMap(fitted, method_class.apply)


def export(spec: Spec, params: Hyperparameters, out: Path, report: dict, parts: ModelParts) -> None:
    """Write `out/model/`. The folder gets this name when all its files are written.

    Without an encoder, only facts are written: name and parameters of a control, name and revision
    of a released model.
    """
    model = out / "model"
    part = out / "model.part"
    # A killed process may have left these folders. No process uses them now: the run is locked.
    for leftover in (model, part):
        shutil.rmtree(leftover, ignore_errors=True)

    facts = {"run": spec.run_id, "method": spec.method, "seed": spec.seed}
    encoder = parts.encoder
    if encoder is not None:
        facts["pooler"] = params.pooler
        if parts.added:
            facts["encoders"] = 1 + len(parts.added)
        if encoder.feature_layer is not None:
            facts["params"] = spec.params  # the method makes the layer from them again
        save_encoder(part, encoder, params.pooler, parts.transform, parts.modules, parts.added)
    elif declaration(spec.method).kind == "released":
        facts["released"] = spec.encoder.model_dump()
    else:
        facts |= {"control": spec.method, "params": spec.params}
    write_json(part / FACTS, facts)
    write_json(part / REPORT, with_digest(report | {"model_sha256": model_sha256(part)}))
    write_text(part / CARD, card(spec, parts, report.get("diverged")))
    os.replace(part, model)


def card(spec: Spec, parts: ModelParts, divergence: str | None) -> str:
    """Return the text of the model card of a run.

    Args:
        divergence: how the training diverged; None if it did not.
    """
    method = declaration(spec.method)
    origin = f"revision {spec.encoder.revision[:12]}"
    if SHA256.fullmatch(spec.encoder.revision):
        origin = f"folder, {origin}"

    if method.kind == "released":
        return (
            f"# {spec.run_id}\n\n{spec.encoder.name} ({origin}) as it is, with its own pooling. Its"
            " files are not in this folder.\n"
        )

    if parts.encoder is None:
        return (
            f"# {spec.run_id}\n\n{method.title}, seed {spec.seed}. The folder has no weights:"
            " csebench computes the vectors.\n"
        )

    base_encoder = f"{spec.encoder.name} ({origin})"
    if spec.corpus is None:
        source = f"exported by csebench from {base_encoder}"
    elif divergence is not None:
        source = f"training by csebench diverged ({divergence}): this is {base_encoder}, untrained"
    else:
        steps = spec.params.get("steps")
        batch_size = spec.params.get("batch_size")
        corpus = f"{spec.corpus.size:,} {method.corpus} of {spec.corpus.name}"
        if steps and batch_size:
            corpus += f", {steps:,} steps at batch size {batch_size:,},"
        source = f"trained by csebench on {corpus} from {base_encoder}, seed {spec.seed}"
    vector = str(spec.params.get("pooler"))
    if parts.encoder.feature_layer is not None:
        vector += " of what a feature layer makes of token states"
    if parts.added:
        vector += f", summed over {1 + len(parts.added)} encoders"
    return (
        f"# {spec.run_id}\n\n{method.title}, {source}.\n\nSentence vector: {vector}. Loads with"
        f" {ways_to_load(spec, parts)}.\n\nPaper: {method.paper}\n\n"
        f"```bibtex\n{method.citation}\n```\n"
    )


def ways_to_load(spec: Spec, parts: ModelParts) -> str:
    """Say with which libraries the model of a run loads, and what they leave out."""
    pooler = spec.params.get("pooler")
    left_out = []  # what the usual ways to load do not have
    if parts.added:
        left_out.append("all encoders but the first")
    if parts.encoder is not None:
        for module in parts.encoder.added_modules:
            left_out.append(f"the {module.replace('_', ' ')}")

    ways = "AutoModel and SentenceTransformer"
    if isinstance(parts.transform, Affine | MethodMap):
        ways = (
            "AutoModel, without the map that follows pooling, which only csebench applies;"
            " SentenceTransformer leaves the map out, too, and pools by the mean"
        )
        if left_out:
            ways += f"; both leave out {' and '.join(left_out)}"
    elif left_out:
        ways = (
            "SentenceTransformer, which needs csebench and trust_remote_code=True; AutoModel would"
            f" leave out {' and '.join(left_out)}"
        )
    elif pooler in PROMPT_TEMPLATES or parts.transform is not None:
        ways += ", of which the second needs csebench and trust_remote_code=True"
    if pooler in PROMPT_TEMPLATES:
        ways += f"; template: {PROMPT_TEMPLATES[pooler]}"
    return ways
