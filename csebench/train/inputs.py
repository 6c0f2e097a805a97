"""What a run reads, checked and in memory before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import sha256
from csebench.data.corpus import draw_subset, read_corpus, read_positives
from csebench.data.sts import Pairs, read_sts
from csebench.plan.catalog import STSB_DEV
from csebench.plan.registry import declaration
from csebench.plan.spec import Spec


@dataclass(frozen=True)
class Inputs:
    """Of one run."""

    sentences: Sequence  # sentences, or tuples of sentences; empty where nothing is trained
    dev: Pairs | None  # STS-B dev, which selects the best step
    sha256: dict[str, str | None]  # of the files read, for the provenance


def gather(spec: Spec, corpus: Path | None, data_root: Path, positives: Path | None) -> Inputs:
    """Read what the spec names.

    Args:
        corpus: the file that the spec means, which its sha256 must confirm.
        data_root: holds STS-B dev.
        positives: the corpus back-translated, for a run that takes its positives from there.

    Raises:
        BadInput: a file is missing, or is not the one that the spec names.
    """
    sentences: Sequence = ()
    read: dict[str, str | None] = {"corpus": None, "dev": spec.dev_sha256}
    if spec.corpus is not None:
        if corpus is None:
            raise BadInput(f"method {spec.method} needs a corpus: give --corpus FILE.")
        sentences = read_corpus(corpus, spec.corpus.sha256, declaration(spec.method).corpus, size=spec.corpus.size)
        read["corpus"] = sha256(corpus)
        if spec.back_translated:
            sentences = with_positives(spec, sentences, positives)
            read["positives"] = sha256(positives)
        sentences = draw_subset(sentences, spec.corpus.size, spec.corpus.subset_seed)
    dev = read_dev(spec, data_root) if spec.dev_sha256 is not None else None
    return Inputs(sentences, dev, read)


def with_positives(spec: Spec, sentences: Sequence[str], positives: Path | None) -> list[tuple[str, str]]:
    """Every sentence with its back-translation."""
    if positives is None:
        raise BadInput(
            f"{spec.run_id} takes back-translations as positives: give --positives FILE, which `csebench"
            " back-translate` makes from the corpus, or another `augmentation`."
        )
    rewritten = read_positives(positives, spec.corpus.sha256, spec.params["translators"], len(sentences))
    return list(zip(sentences, rewritten, strict=True))


def read_dev(spec: Spec, data_root: Path) -> Pairs:
    path = data_root / STSB_DEV
    if (actual := sha256(path)) != spec.dev_sha256:
        raise BadInput(
            f"{path}: sha256 is {actual[:12]}…, expected {spec.dev_sha256[:12]}…: another release of STS-B dev."
        )
    (dev,) = read_sts(data_root, "STS-B", "dev")
    return dev
