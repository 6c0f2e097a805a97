"""A run as a value: its settings, and the id that is computed from them. From a table row to it:
recipe.py."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from csebench.base.errors import BadInput
from csebench.base.files import digest
from csebench.plan.schema.declarations import EncoderRef, Precision, Seed, Strict, Threads, Value

# of randomness in training; that of the subset is in CorpusSpec
NoiseSource = Literal["order", "dropout", "head"]
RUNS = Path("runs")
TRAINER_VERSION = 2  # increase it when a change of the engine changes a trained model
TRANSLATION_VERSION = 1  # increase it when csebench/data/translate.py would write other sentences


class ComponentSpec(Strict):
    version: int
    params: dict[str, Value]


class CorpusSpec(Strict):
    name: str
    sha256: str
    size: int = Field(ge=2)  # sentences drawn; all if the corpus has no more
    subset_seed: Seed


class Spec(Strict):
    """Everything that decides the model of a run, typed and complete. Commit, hardware, library
    versions, paths and labels go into the provenance."""

    method: str
    method_version: int
    params: dict[str, Value]
    components: dict[str, ComponentSpec] = {}
    encoder: EncoderRef
    corpus: CorpusSpec | None = None  # None: nothing is trained or fitted
    dev_sha256: str | None = None  # of the STS-B dev file on which the best step is selected
    seed: Seed
    # of sources with a seed of their own
    seeds: dict[NoiseSource, Seed] = Field(default={}, exclude_if=lambda v: not v)
    precision: Precision
    threads: Threads  # one and two threads give different bits
    trainer_version: int = TRAINER_VERSION
    # Hash of the code, by unit (`methods/margin`), where no version stands for it:
    # plan/code_versions.py.
    code: dict[str, str] = Field(default={}, exclude_if=lambda v: not v)

    @property
    def run_id(self) -> str:
        """`simcse-0123456789`: folder name of the run, and its name in every command."""
        return f"{self.method}-{digest(self.model_dump())}"

    @property
    def model(self) -> EncoderRef:
        """Its model, as the encoder of a run that starts from it."""
        return EncoderRef(name=str(RUNS / self.run_id / "model"), revision=self.run_id)

    @property
    def run_before(self) -> str | None:
        """The id of the run whose model it starts from; None where it starts from an encoder."""
        run_id = self.encoder.revision
        return run_id if self.encoder.name == str(RUNS / run_id / "model") else None

    @property
    def settings(self) -> dict[str, Value]:
        """Every hyper-parameter: `learning_rate`, and `ami.weight` of a component."""
        components = self.components.items()
        return self.params | {
            f"{name}.{key}": value for name, c in components for key, value in c.params.items()
        }

    def with_seed(self, seed: int) -> "Spec":
        """The run with another seed, on the subset of the corpus that this one draws."""
        corpus = self.corpus and self.corpus.model_copy(update={"subset_seed": seed})
        return self.model_copy(update={"seed": seed, "corpus": corpus})

    def seed_of(self, source: NoiseSource) -> int:
        """The seed of the order of batches, of dropout and other noise in the steps, or of new
        weights (the head)."""
        return self.seeds.get(source, self.seed)

    def number(self, name: str) -> int | float:
        """A numeric hyper-parameter; 0 where the method has none of that name. Raises BadInput
        for a text."""
        value = self.params.get(name, 0)
        if isinstance(value, str):
            raise BadInput(f"{self.method}: {name}: is {value!r}, but must be a number.")
        return value

    @property
    def back_translated(self) -> bool:
        """Whether its positives are the back-translated corpus that csebench/data/translate.py
        writes."""
        return self.params.get("augmentation") == "back_translation"

    @property
    def cell_id(self) -> str:
        """The id without the seeds, which is common to the runs that one cell averages."""
        content = self.model_dump(exclude={"seed": True, "seeds": True, "corpus": {"subset_seed"}})
        return f"{self.method}-{digest(content)}"
