"""A run as a value: what was asked for, and the key under which its result is kept."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

from csebench.plan.schema import EncoderRef, Value

TRAINER_VERSION = 1  # bump it when a change of the engine changes a trained model


def digest(content, length: int = 10) -> str:
    """Short sha256 of the canonical JSON of a value; the order of keys does not matter."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ComponentSpec(Frozen):
    version: int
    params: dict[str, Value]


class CorpusSpec(Frozen):
    name: str
    sha256: str
    size: int  # sentences drawn; all of them where it is at least the corpus' size
    subset_seed: int


class Spec(Frozen):
    """Everything that decides which model a run ends with, typed and filled in.

    Not here, but in the provenance that the worker writes: commit, hardware, library versions, paths, labels.
    """

    method: str
    method_version: int
    params: dict[str, Value]
    components: dict[str, ComponentSpec] = {}
    encoder: EncoderRef
    corpus: CorpusSpec | None = None  # None: nothing is trained or fitted
    dev_sha256: str | None = None  # of the STS-B dev file that selects the best step
    seed: int
    precision: Literal["fp32", "bf16"]
    threads: int  # one and two threads give different bits
    trainer_version: int = TRAINER_VERSION

    @property
    def run_id(self) -> str:
        return f"{self.method}-{digest(self.model_dump())}"

    @property
    def back_translated(self) -> bool:
        """Whether its positives are read from a file that csebench/data/translate.py makes of its corpus."""
        return self.params.get("augmentation") == "back_translation"

    @property
    def cell_id(self) -> str:
        """The key without the seed: the runs that one cell averages."""
        content = self.model_dump(exclude={"seed": True, "corpus": {"subset_seed"}})
        return f"{self.method}-{digest(content)}"
