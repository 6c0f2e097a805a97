"""A run as a value: its settings, and the id that is computed from them.

csebench/plan/recipe.py makes it from a row of a table.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from csebench.base.errors import BadInput
from csebench.base.files import digest
from csebench.plan.schema.declarations import EncoderRef, Precision, Seed, Strict, Threads, Value

# source of randomness in training: the order of batches, dropout and other noise in the steps, new
# weights (the head); CorpusSpec has the seed of the subset
NoiseSource = Literal["order", "dropout", "head"]
RUNS = Path("runs")
TRAINER_VERSION = 2  # increase it when a change of the engine changes a trained model
TRANSLATION_VERSION = 1  # increase it when csebench/data/translate.py would write other sentences


class ComponentSpec(Strict):
    """A component of a run, with every hyper-parameter."""

    version: int
    params: dict[str, Value]


class CorpusSpec(Strict):
    """The sentences that a run draws from a corpus."""

    name: str
    sha256: str
    size: int = Field(ge=2)  # sentences drawn; all if the corpus has no more
    subset_seed: Seed


class Spec(Strict):
    """Everything that decides the model of a run, typed and complete.

    Commit, hardware, library versions, paths and labels go into the provenance.
    """

    method: str
    method_version: int
    params: dict[str, Value]
    components: dict[str, ComponentSpec] = {}
    encoder: EncoderRef
    corpus: CorpusSpec | None = None  # None: nothing is trained or fitted
    dev_sha256: str | None = None  # of the STS-B dev file on which the best step is selected
    seed: Seed
    # seeds of sources that have one of their own; without one, a source has `seed`
    seeds: dict[NoiseSource, Seed] = Field(default={}, exclude_if=lambda v: not v)
    precision: Precision
    threads: Threads  # one and two threads give different bits
    trainer_version: int = TRAINER_VERSION
    # hash of the code of each draft, by unit (`methods/margin`); see plan/code_versions.py
    code: dict[str, str] = Field(default={}, exclude_if=lambda v: not v)

    @property
    def run_id(self) -> str:
        """`simcse-0123456789`: folder name of the run, and its name in every command."""
        return f"{self.method}-{digest(self.model_dump())}"

    @property
    def cell_id(self) -> str:
        """The id without the seeds, which is common to the runs that one cell averages."""
        content = self.model_dump(exclude={"seed": True, "seeds": True, "corpus": {"subset_seed"}})
        return f"{self.method}-{digest(content)}"

    @property
    def model(self) -> EncoderRef:
        """The model of the run, as the encoder of a run that starts from it."""
        return EncoderRef(name=str(RUNS / self.run_id / "model"), revision=self.run_id)

    @property
    def run_before(self) -> str | None:
        """The id of the run whose model this one starts from; None if it starts from an encoder."""
        run_id = self.encoder.revision
        return run_id if self.encoder.name == str(RUNS / run_id / "model") else None

    @property
    def settings(self) -> dict[str, Value]:
        """Every hyper-parameter: `learning_rate`, and `ami.weight` of a component."""
        settings = dict(self.params)
        for name, component in self.components.items():
            settings |= {f"{name}.{key}": value for key, value in component.params.items()}
        return settings

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
        """Return a numeric hyper-parameter; 0 if the method has none of that name.

        Raises:
            BadInput: it is a text.
        """
        value = self.params.get(name, 0)
        if isinstance(value, str):
            raise BadInput(f"{self.method}: {name}: is {value!r}, but must be a number.")
        return value

    @property
    def back_translated(self) -> bool:
        """Whether the positives of the run are the back-translated corpus that
        csebench/data/translate.py writes."""
        return self.params.get("augmentation") == "back_translation"
