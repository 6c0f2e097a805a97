"""Read the inputs of a run: its sentences, and STS-B dev.

Everything is checked and in memory before a run writes its first file. The readers of the file
formats are in csebench/data/. Never imports torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, sha256
from csebench.data.corpus import (
    Corpus,
    check_sha256,
    draw_subset,
    join_lines,
    read_corpus,
    read_positives,
)
from csebench.data.sts import Pairs, read_sts
from csebench.plan.catalog.files import STSB_DEV
from csebench.plan.catalog.registry import declaration
from csebench.plan.schema.spec import Spec


@dataclass(frozen=True)
class Inputs:
    """The inputs of one run."""

    # sentences, documents, or tuples of sentences; empty if nothing is trained
    sentences: Sequence
    dev: Pairs | None  # STS-B dev, which selects the best step
    sha256: dict[str, str | None]  # of each file read, for the provenance


def fitting_sentences(spec: Spec, inputs: Inputs) -> list[str]:
    """Draw the sentences that the map of a method is fitted on (`fit_sentences`)."""
    assert spec.corpus is not None
    count = int(spec.number("fit_sentences"))
    return list(draw_subset(inputs.sentences, count, spec.corpus.subset_seed))


def read_corpus_of(spec: Spec, path: Path | None) -> Corpus | None:
    """Read the corpus of a run.

    Returns:
        None if the run needs none.

    Raises:
        BadInput: the file is missing, or is not the one that the spec states.
    """
    if spec.corpus is None:
        return None
    if path is None:
        raise BadInput(f"method {spec.method} needs a corpus: give --corpus FILE.")
    kind = declaration(spec.method).corpus
    return read_corpus(path, spec.corpus.sha256, kind, size=spec.corpus.size)


def read_inputs(
    spec: Spec, corpus: Corpus | None, data_root: Path | DataRoot, positives: Path | None = None
) -> Inputs:
    """Gather what a run trains on: the sentences that it draws from its corpus, and STS-B dev.

    If the method has the parameter `document_lines`, so many consecutive lines are a document, and
    documents are drawn instead of sentences: as many as the run's number of sentences makes.

    Args:
        corpus: the corpus of the run, from `read_corpus_of`.
        data_root: folder of benchmark data, with STS-B dev.
        positives: the back-translated corpus; needed if `spec.back_translated`.

    Raises:
        BadInput: a file is missing, or is not the one that the spec states.
    """
    sentences: Sequence = ()
    digests: dict[str, str | None] = {"corpus": None, "dev": spec.dev_sha256}
    if spec.corpus is not None:
        assert corpus is not None, spec.run_id
        sentences = corpus.sentences
        digests["corpus"] = corpus.sha256
        if spec.back_translated:
            if positives is None:
                raise BadInput(
                    f"{spec.run_id}: give --positives FILE (`csebench back-translate` makes it)."
                )
            translators = str(spec.params["translators"])
            rewritten = read_positives(positives, spec.corpus.sha256, translators, len(sentences))
            sentences = list(zip(sentences, rewritten, strict=True))
            digests["positives"] = sha256(positives)
        size = spec.corpus.size
        if spec.document_lines > 0:
            sentences = join_lines(sentences, spec.document_lines)
            size //= spec.document_lines
        sentences = draw_subset(sentences, size, spec.corpus.subset_seed)

    dev = None
    if spec.dev_sha256 is not None:
        check_sha256(data_root / STSB_DEV, spec.dev_sha256)
        (dev,) = read_sts(data_root, "STS-B", "dev")
    return Inputs(sentences, dev, digests)
