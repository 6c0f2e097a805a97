"""A run as a value: its settings, and the id that is computed from them.

From a table row to a spec: csebench/plan/recipe.py.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from csebench.base.files import digest
from csebench.plan.declarations import EncoderRef, Precision, Seed, Threads, Value

Source = Literal["order", "dropout", "head"]  # of randomness in training; that of the subset is in CorpusSpec
TRAINER_VERSION = 2  # increase it when a change of the engine changes a trained model


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ComponentSpec(Frozen):
    version: int
    params: dict[str, Value]


class CorpusSpec(Frozen):
    name: str
    sha256: str
    size: int = Field(ge=2)  # sentences drawn; all if the corpus has no more
    subset_seed: Seed


class Spec(Frozen):
    """Everything that decides the model of a run, typed and complete.

    Commit, hardware, library versions, paths and labels are not part of it; they go into the provenance.
    """

    method: str
    method_version: int
    params: dict[str, Value]
    components: dict[str, ComponentSpec] = {}
    encoder: EncoderRef
    corpus: CorpusSpec | None = None  # None: nothing is trained or fitted
    dev_sha256: str | None = None  # of the STS-B dev file on which the best step is selected
    seed: Seed
    seeds: dict[Source, Seed] = Field(default={}, exclude_if=lambda v: not v)  # of sources with a seed of their own
    precision: Precision
    threads: Threads  # one and two threads give different bits
    trainer_version: int = TRAINER_VERSION

    @property
    def run_id(self) -> str:
        """`simcse-0123456789`: folder name of the run, and its name in every command."""
        return f"{self.method}-{digest(self.model_dump())}"

    def seed_of(self, source: Source) -> int:
        """The seed of the order of batches, of dropout and other noise in the steps, or of new weights (the head)."""
        return self.seeds.get(source, self.seed)

    def number(self, name: str) -> int | float:
        """A numeric hyper-parameter; 0 where the method has none of that name."""
        value = self.params.get(name, 0)
        assert not isinstance(value, str), name
        return value

    @property
    def back_translated(self) -> bool:
        """Whether its positives are the back-translated corpus that csebench/data/translate.py writes."""
        return self.params.get("augmentation") == "back_translation"

    @property
    def cell_id(self) -> str:
        """The id without the seeds, which is common to the runs that one cell averages."""
        content = self.model_dump(exclude={"seed": True, "seeds": True, "corpus": {"subset_seed"}})
        return f"{self.method}-{digest(content)}"
