"""A run as a value: its settings, and the id that is computed from them.

csebench/plan/recipe.py makes a run from a row of a table.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from csebench.base.errors import BadInput
from csebench.base.files import digest
from csebench.plan.schema.declarations import EncoderRef, Precision, Seed, Strict, Threads, Value

# A source of randomness in training: the order of batches, noise in the steps (such as dropout), or
# the new weights of the head. The choice of sentences has a seed of its own, in CorpusSpec.
NoiseSource = Literal["order", "dropout", "head"]
RUNS = Path("runs")
TRAINER_VERSION = 2  # increase it when a change of the engine changes a trained model
TRANSLATION_VERSION = 1  # increase it when csebench/data/translate.py would write other sentences


class ComponentSpec(Strict):
    """A component of a run, with every hyper-parameter."""

    version: int  # version that the component declares
    params: dict[str, Value]  # all hyper-parameters of the component


class CorpusSpec(Strict):
    """The sentences that a run draws from a corpus."""

    name: str  # file name of the corpus
    sha256: str  # hash of the corpus file
    size: int = Field(ge=2)  # number of sentences to draw; a smaller corpus is used whole
    subset_seed: Seed  # decides which sentences are drawn


class Spec(Strict):
    """Everything that decides the model of a run, typed and complete.

    Commit, hardware, library versions, paths and labels go into the provenance.
    """

    method: str
    method_version: int  # version that the method declares
    params: dict[str, Value]  # all hyper-parameters of the method
    components: dict[str, ComponentSpec] = {}
    encoder: EncoderRef  # the model that the run starts from
    corpus: CorpusSpec | None = None  # training data; None: nothing is trained or fitted
    # sha256 of the STS-B dev file, on which the best step is selected; None: nothing is trained
    dev_sha256: str | None = None
    seed: Seed
    # seeds of single sources of randomness, in place of `seed`
    seeds: dict[NoiseSource, Seed] = Field(default={}, exclude_if=lambda v: not v)
    precision: Precision
    threads: Threads  # CPU threads; another number changes the last bits of the model
    trainer_version: int = TRAINER_VERSION  # version of the engine that trains
    # what becomes of a run whose training diverges: it fails, or its model is the encoder that it
    # started from
    if_diverged: Literal["fail", "untrained"] = Field(
        default="fail", exclude_if=lambda v: v == "fail"
    )
    # hash of the code of each draft, by unit (`methods/margin`); see plan/code_versions.py
    code: dict[str, str] = Field(default={}, exclude_if=lambda v: not v)

    @cached_property
    def run_id(self) -> str:
        """`simcse-0123456789`: folder name of the run, and its name in every command."""
        return f"{self.method}-{digest(self.model_dump())}"

    @property
    def cell_id(self) -> str:
        """An id that ignores the seeds: all runs that one cell averages have it."""
        content = self.model_dump(exclude={"seed": True, "seeds": True, "corpus": {"subset_seed"}})
        return f"{self.method}-{digest(content)}"

    @property
    def model(self) -> EncoderRef:
        """The trained model, as the encoder that a later run starts from."""
        return EncoderRef(name=str(RUNS / self.run_id / "model"), revision=self.run_id)

    @property
    def run_before(self) -> str | None:
        """The id of the run whose model this one starts from; None if it starts from an encoder."""
        run_id = self.encoder.revision
        if self.encoder.name == os.path.join(RUNS, run_id, "model"):  # faster than a Path
            return run_id
        return None

    @property
    def settings(self) -> dict[str, Value]:
        """All hyper-parameters by name. A component has its name in front: `ami.weight`."""
        settings = dict(self.params)
        for name, component in self.components.items():
            settings |= {f"{name}.{key}": value for key, value in component.params.items()}
        return settings

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Spec":
        """Copy the spec, with changes. The copy computes a `run_id` of its own."""
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("run_id", None)
        return copied

    def with_seed(self, seed: int) -> "Spec":
        """Return the run with another seed. The seed also draws another subset of the corpus."""
        corpus = self.corpus
        if corpus is not None:
            corpus = corpus.model_copy(update={"subset_seed": seed})
        return self.model_copy(update={"seed": seed, "corpus": corpus})

    def seed_of(self, source: NoiseSource) -> int:
        """Return the seed of a source of randomness."""
        return self.seeds.get(source, self.seed)

    def number(self, name: str) -> int | float:
        """Return a numeric hyper-parameter, or 0 if the method does not have it.

        Raises:
            BadInput: the hyper-parameter is a text.
        """
        value = self.params.get(name, 0)
        if isinstance(value, str):
            raise BadInput(f"{self.method}: {name}: is {value!r}, but must be a number.")
        return value

    @property
    def document_lines(self) -> int:
        """How many consecutive lines of the corpus are one document. 0: the run reads none."""
        return int(self.number("document_lines"))

    @property
    def back_translated(self) -> bool:
        """Whether the positives of the run are the back-translated corpus that
        csebench/data/translate.py writes."""
        return self.params.get("augmentation") == "back_translation"
