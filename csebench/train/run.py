"""A run: gather its inputs, fit, export. `train` leaves a finished model, or nothing that looks like one."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import torch

from csebench.base.errors import BadInput
from csebench.base.files import sha256, write_json
from csebench.base.progress import Progress
from csebench.base.provenance import Stopwatch
from csebench.base.run_dir import REPORT, finish, is_done
from csebench.data.corpus import draw_subset, read_corpus, read_positives
from csebench.data.sts import read_sts
from csebench.model.encoder import Encoder
from csebench.model.export import save_encoder, save_modules
from csebench.model.sentence_encoder import Affine, SentenceEncoder
from csebench.plan.registry import declaration, load
from csebench.plan.schema import TEMPLATES
from csebench.plan.spec import Spec
from csebench.train import parallel
from csebench.train.trainer import CHECKPOINT_SECONDS, fit


def train(
    spec: Spec,
    out: Path,
    corpus: Path | None,
    data_root: Path,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    positives: Path | None = None,
) -> None:
    """Make the model of a run: `out/model/`, moved there when it is whole, and `out/train.json`, its report.

    Continues from `out/.checkpoint.pt` where a killed run left one, and ends with the same weights. A finished
    model is kept as it is, whatever asks for it again.

    Args:
        corpus: the file that the spec means, which its sha256 must confirm.
        data_root: holds STS-B dev, which selects the best step.
        positives: the corpus back-translated, for a run that takes its positives from there.

    Raises:
        BadInput: a file is missing or not the one the spec names, or `out` holds another run.
        RunFailed: the loss is not finite.
        Stopped: SIGTERM asked for an end, before which the checkpoint was written.
    """
    parallel.start()
    model, part = out / "model", out / "model.part"
    if is_done(out, spec):
        return finish(out)
    watch = Stopwatch()
    found = declaration(spec.method)
    sentences, dev = None, None
    if spec.corpus is not None:
        if corpus is None:
            raise BadInput(f"method {spec.method} needs a corpus: give --corpus FILE.")
        sentences = read_corpus(corpus, spec.corpus.sha256, found.corpus)
        if spec.back_translated:
            if positives is None:
                raise BadInput(
                    f"{spec.run_id} takes back-translations as positives: give --positives FILE, which `csebench"
                    " back-translate` makes from the corpus, or another `augmentation`."
                )
            translators = spec.params["translators"]
            rewritten = read_positives(positives, spec.corpus.sha256, translators, len(sentences))
            sentences = list(zip(sentences, rewritten, strict=True))
        sentences = draw_subset(sentences, spec.corpus.size, spec.corpus.subset_seed)
    if spec.dev_sha256 is not None:
        dev = _read_dev(spec, data_root)
    torch.set_num_threads(spec.threads)
    facts, report = {"run": spec.run_id, "method": spec.method, "seed": spec.seed}, {}
    encoder = transform = pooler = None
    modules = {}
    if found.kind == "control":
        facts |= {"control": spec.method, "params": spec.params}
    else:
        facts["pooler"] = pooler = spec.params["pooler"]
        encoder = Encoder.load(spec.encoder, spec.params.get("dropout"), with_pooler=pooler == "cls")
    if parallel.rank() == 0:
        write_json(out / "spec.json", spec.model_dump())  # nothing is written before every input has been read
    if found.kind == "fitted":
        some = draw_subset(sentences, spec.params["fit_sentences"], spec.corpus.subset_seed)
        transform = Affine(*load(spec.method).fit(SentenceEncoder(encoder, pooler).embed(some), spec.params))
    elif found.kind == "trained":
        with Progress(out, spec.run_id) as progress, sigterm() as stop:
            report, modules = fit(spec, out, encoder, sentences, dev, checkpoint_seconds, progress, stop)
    parallel.stop()
    if parallel.rank() > 0:
        return
    data = {"corpus": spec.corpus and sha256(corpus), "dev": spec.dev_sha256}
    if spec.back_translated:
        data["positives"] = sha256(positives)
    report |= {"run": spec.run_id, "spec": spec.model_dump(), "provenance": watch.record(data_sha256=data)}
    for stale in (model, part):
        shutil.rmtree(stale, ignore_errors=True)
    write_json(part / "csebench.json", facts)
    if encoder is not None:
        save_encoder(part, encoder, pooler, transform)
    if modules:
        save_modules(part, modules)
    write_json(part / REPORT, report)
    (part / "README.md").write_text(card(spec))
    os.replace(part, model)
    finish(out)


@contextmanager
def sigterm():
    """An event that SIGTERM sets instead of ending the process: clusters send it some seconds before they kill."""
    event = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, before)


def _read_dev(spec: Spec, data_root: Path):
    path = data_root / "downstream/STS/STSBenchmark/sts-dev.csv"
    if (found := sha256(path)) != spec.dev_sha256:
        raise BadInput(
            f"{path}: sha256 is {found[:12]}…, expected {spec.dev_sha256[:12]}…: another release of STS-B dev."
        )
    (dev,) = read_sts(data_root, "STS-B", "dev")
    return dev


def card(spec: Spec) -> str:
    """The model card of a run."""
    found = declaration(spec.method)
    corpus = f"{spec.corpus.size:,} {found.corpus} of {spec.corpus.name}" if spec.corpus else "nothing"
    pooler = spec.params.get("pooler")
    loads = "AutoModel" if found.kind == "fitted" else "AutoModel and SentenceTransformer"
    if pooler in TEMPLATES:
        loads += f", of which the second needs csebench and trust_remote_code=True; template: {TEMPLATES[pooler]}"
    return (
        f"# {spec.run_id}\n\n{found.title}, trained by csebench on {corpus} from {spec.encoder.name}"
        f" (revision {spec.encoder.revision[:12]}), seed {spec.seed}.\n\n"
        f"Sentence vector: {pooler}. Loads with {loads}.\n\n"
        f"Paper: {found.paper}\n\n```bibtex\n{found.citation}\n```\n"
    )
