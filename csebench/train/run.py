"""One run: gather its inputs, fit, export. Ends with a finished model, or with nothing that
looks like one."""

import os
import shutil
from pathlib import Path
from typing import Any

from csebench.base.errors import BadInput
from csebench.base.files import SHA256, DataRoot, system_errors, with_digest, write_json, write_text
from csebench.base.models import CARD, FACTS, REPORT, model_sha256
from csebench.base.processes import is_main_process, use_threads
from csebench.base.provenance import Stopwatch
from csebench.base.runs import Progress, finish, is_done, lock_run
from csebench.data.corpus import draw_subset
from csebench.model.encoder import Encoder
from csebench.model.export import save_encoder
from csebench.model.pooling import PROMPT_TEMPLATES
from csebench.model.sentence_encoder import Affine, SentenceEncoder, check_length
from csebench.plan import code_versions
from csebench.plan.catalog.registry import declaration, load
from csebench.plan.schema.spec import Spec
from csebench.train import parallel
from csebench.train.foreign import ForeignCode
from csebench.train.inputs import read_inputs
from csebench.train.trainer import fit


def train(
    spec: Spec,
    out: Path,
    corpus: Path | None,
    data_root: Path | DataRoot,
    positives: Path | None = None,
    chunk_size: int | None = None,
) -> None:
    """Make the model of a run: `out/model/`, moved there when it is whole, and `out/train.json`,
    its report.

    Continues from the checkpoint that a killed run left, and ends with the same weights. A finished
    model is kept as it is. While another process trains the run, waits for its model. Files that
    are read: see `read_inputs`; settings and errors of training: see `fit`. Raises BadInput also
    where `out` holds another run, and Stopped, after a checkpoint, where SIGTERM, SIGINT or SIGHUP
    asked for an end.
    """
    parallel.start_processes()
    with lock_run(out):
        if is_done(out, spec):
            return finish(out)
        watch = Stopwatch()
        inputs = read_inputs(spec, corpus, data_root, positives)
        use_threads(spec.threads)
        encoder, transform, modules, report = load_encoder(spec), None, {}, {}
        if is_main_process():
            # nothing is written before every input has been read
            write_json(out / "spec.json", spec.model_dump())
        method = declaration(spec.method)
        # a map of the vectors of some sentences
        if encoder is not None and method.kind == "fitted":
            assert spec.corpus is not None
            some = draw_subset(
                inputs.sentences, int(spec.number("fit_sentences")), spec.corpus.subset_seed
            )
            vectors = SentenceEncoder(encoder, str(spec.params["pooler"])).embed(list(some))
            method_class = load(spec.method)  # whose file may seed what it likes
            with ForeignCode(spec.run_id, holds_interrupts=False):
                transform = Affine(*method_class.fit(vectors, spec.params))
        if encoder is not None and method.is_trained:
            with Progress(out, spec.run_id) as progress:
                report, modules = fit(spec, out, encoder, inputs, progress, chunk_size)
        parallel.stop()
        if is_main_process():
            report |= {"run": spec.run_id, "spec": spec.model_dump()}
            marks = code_versions.mark(code_versions.units_of_run(spec))
            report |= {
                "provenance": watch.record(
                    data_sha256=inputs.sha256, chunk_size=chunk_size, **marks
                )
            }
            # on a file system without locks another process may have been faster
            if not is_done(out, spec):
                with system_errors(out / "model.part"):
                    export(spec, out, report, encoder, transform, modules)
            finish(out)


def load_encoder(spec: Spec) -> Encoder | None:
    """The encoder that a run starts from; None for a control."""
    method, params = declaration(spec.method), dict[str, Any](spec.params)
    if method.kind == "control":
        return None
    if spec.run_before is None and not spec.encoder.is_pinned:
        raise BadInput(
            f"encoder {spec.encoder.name}: the revision {spec.encoder.revision!r} does not say"
            " which files are read. State a commit of the hub (40 digits), or the sha256 of a"
            " folder (64 digits)."
        )
    with_pooler = params.get("pooler") == "cls"
    encoder = Encoder.load(
        spec.encoder, params.get("dropout"), with_pooler, new_pooler=method.is_trained
    )
    encoder.check_trainable(params["pooler"], f"encoder {spec.encoder.name}")
    check_length(
        params.get("max_length", 0), encoder.max_seq_length, spec.encoder.name, "max_length"
    )
    if not encoder.tokenizer.is_fast:
        kind = type(encoder.tokenizer).__name__
        raise BadInput(
            f"encoder {spec.encoder.name}: {kind} is written in Python; give the folder a"
            " tokenizer.json."
        )
    return encoder


def export(
    spec: Spec,
    out: Path,
    report: dict,
    encoder: Encoder | None,
    transform: Affine | None,
    modules: dict,
) -> None:
    """Write `out/model/`, which takes its name when it is whole. What a killed process left of
    it is deleted: the lock of the run excludes that another process is writing it. A control has
    no encoder."""
    model, part = out / "model", out / "model.part"
    for leftover in (model, part):
        shutil.rmtree(leftover, ignore_errors=True)
    facts = {"run": spec.run_id, "method": spec.method, "seed": spec.seed}
    if encoder is None:
        facts |= {"control": spec.method, "params": spec.params}
    else:
        facts["pooler"] = spec.params["pooler"]
        save_encoder(part, encoder, str(spec.params["pooler"]), transform, modules)
    write_json(part / FACTS, facts)
    write_json(part / REPORT, with_digest(report | {"model_sha256": model_sha256(part)}))
    write_text(part / CARD, card(spec))
    os.replace(part, model)


def card(spec: Spec) -> str:
    """The model card of a run."""
    method = declaration(spec.method)
    corpus = (
        f"{spec.corpus.size:,} {method.corpus} of {spec.corpus.name}" if spec.corpus else "nothing"
    )
    pooler, steps, batch = (spec.params.get(key) for key in ("pooler", "steps", "batch_size"))
    corpus += f", {int(steps) * int(batch):,} seen," if steps and batch else ""
    origin = f"revision {spec.encoder.revision[:12]}"
    if SHA256.fullmatch(spec.encoder.revision):
        origin = f"folder, {origin}"
    loads = "AutoModel" if method.kind == "fitted" else "AutoModel and SentenceTransformer"
    if pooler in PROMPT_TEMPLATES:
        loads += (
            ", of which the second needs csebench and trust_remote_code=True; template:"
            f" {PROMPT_TEMPLATES[pooler]}"
        )
    return (
        f"# {spec.run_id}\n\n{method.title}, trained by csebench on {corpus} from"
        f" {spec.encoder.name} ({origin}), seed {spec.seed}.\n\nSentence vector: {pooler}. Loads"
        f" with {loads}.\n\nPaper: {method.paper}\n\n```bibtex\n{method.citation}\n```\n"
    )
