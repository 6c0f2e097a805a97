"""What methods, components, evaluators, scales (config/) and data/registry.yaml declare, as
schemas."""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from csebench.base.hub import EncoderRef

# of a file, and a column of listings
Name = Annotated[str, Field(pattern=r"^[a-z]\w*$", max_length=20)]


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("must be one line")
    return text.rstrip("\n")


# a label or title: a heading, or a part of a sentence
Line = Annotated[str, AfterValidator(_one_line)]
ParamName = Annotated[str, Field(pattern=r"^[a-zA-Z]\w*$")]
Value = bool | int | float | str
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]  # numpy's generators take no other
Threads = Annotated[int, Field(strict=True, ge=1, le=1024)]
BatchSize = Annotated[int, Field(ge=1, le=2**20)]
LARGEST_INTEGER = 2**31 - 1  # of whole numbers among the hyper-parameters
# a link on pages, or fetched
Url = Annotated[str, Field(pattern=r"^https?://[\w.-]+(:\d+)?/[\w./~%?&=+,:@{}#-]*$")]
Precision = Literal["fp32", "bf16"]
Averages = Literal["avg", "avg_top2", "avg_first_last_2021", "avg_first_last_2022"]
# csebench/model/pooling.py defines each
Pooler = Literal["cls", "cls_before_pooler", Averages, "mask", "mask_bare"]
POOLERS: tuple[Pooler, ...] = get_args(Pooler)
FRACTION = "fraction"  # unit of a score whose evaluator declares none; papers print it in percent
# what a method's loss compares; labelled triplets
TrainedKind = Literal["two_views", "token_level", "supervised"]
# of a method: its paper, its public code
Reading = Literal["as printed", "as released", "released, repaired"]


class Strict(BaseModel):
    """Unknown keys are an error; instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


# Keys of a declaration for readers, scales or `csebench tune`: they cannot change the score of a
# run.
FOR_READERS = {
    "title",
    "paper",
    "citation",
    "needs",
    "colours",
    "trains",
    "search",
    "keeps",
    "below",
    "deviations",
}
# of evaluators
FOR_READERS |= {"counts", "published_as", "ordered", "units", "bounds", "panels", "texts", "source"}
Colour = Annotated[str, Field(pattern="^#[0-9A-F]{6}$")]


def without_text(declared: dict[str, Any]) -> dict[str, Any]:
    """A literal declaration without what is for readers, the sources of parameters and
    differences of variants."""
    counting = {key: value for key, value in declared.items() if key not in FOR_READERS}
    for key, part in (("params", slice(1)), ("variants", slice(2, None))):
        for name, value in counting.get(key, {}).items():
            if isinstance(value, tuple):
                counting[key] = counting[key] | {name: value[part]}
    return counting


# ---------------------------------------------------------------- methods


@dataclass(frozen=True)
class Unstated:
    """Marks a hyper-parameter that a run leaves out of its identity at one value: one that came
    later moves no id."""

    value: Value


class TrainingSettings(BaseModel):
    """Hyper-parameters that every method has; a declaration may override the defaults, which are of
    SimCSE's trainer (transformers 4.2.1: no warm-up, no weight decay, linear decay) and of its
    unsupervised BERT-base script.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)
    # optimiser steps, the same for every corpus size
    steps: int = Field(default=15_625, ge=1, le=LARGEST_INTEGER)
    batch_size: int = Field(default=64, ge=2, le=2**20)  # sentences
    # tokens in training; evaluation is not truncated
    max_length: int = Field(default=32, ge=4, le=2**20)
    optimizer: Literal["adamw", "rmsprop"] = "adamw"
    learning_rate: float = Field(default=3e-5, gt=0)
    warmup_steps: int = Field(default=0, ge=0, le=LARGEST_INTEGER)
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float = Field(
        default=1.0, gt=0, description="largest norm of the gradient (`max_grad_norm`)"
    )
    dropout: float = Field(default=0.1, ge=0, lt=1)  # hidden and attention
    # steps between evaluations on STS-B dev
    evaluate_every: int = Field(default=125, ge=1, le=LARGEST_INTEGER)
    pooler: Pooler = "cls_before_pooler"  # in training, on STS-B dev and at test
    selection: Annotated[Literal["best", "last"], Unstated("best")] = "best"  # the step kept


class Variant(NamedTuple):
    """Settings in which a method departs from what it declares; with a reading, a row of the
    page of variants."""

    reading: Reading | None = None
    difference: str = ""
    # a component that is None is left out; `like` names a variant that it starts from
    params: dict[str, Any] = {}


class Declaration(Strict):
    """The literal `DECLARATION` at the top of a method or component file."""

    name: Name
    version: int = Field(ge=1)  # increase it when a change of the code changes a number
    title: Line
    paper: str
    citation: str
    # else of the base class
    kind: TrainedKind | Literal["fitted", "untrained", "control", "component"] = "two_views"
    needs: str = ""  # required besides an encoder and a corpus of sentences
    colours: dict[str, Colour] = {}  # in figures, alone (``) and with components (`ami`)
    trains: str = "encoder"  # modules whose weights the optimiser updates
    params: dict[ParamName, tuple[Value, str]] = {}  # name: (the paper's value, its source)
    # allowed values of a text parameter
    choices: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    search: dict[str, list[Value]] = {}  # parameter: values that `csebench tune` tries
    # parameters that no scale overrides and no search on another method chooses
    keeps: list[str] = []
    components: dict[str, dict[str, Value]] = {}  # plug-ins that are part of the method
    asks: list[Literal["queue", "attention", "tokens"]] = []  # what a component needs of its method
    # what a method lacks, with the reason
    refuses: dict[Literal["queue", "attention", "tokens"], str] = {}
    below: list[tuple[str | float, str | float]] = []  # two parameters, or a parameter and a
    # number, of which the first must be less than the second; else the run is refused
    # (reading, difference, params), or params alone; `default`: the method itself
    variants: dict[str, Variant] = {}
    deviations: list[str] = []  # from the paper, and choices where the paper is silent

    @field_validator("variants", mode="before")
    @classmethod
    def complete_variants(cls, variants: Any, info) -> Any:
        """Each variant with the parameters of the one that it is like, of this method, or of
        another: `msse:code`."""
        if not isinstance(variants, dict) or not all(
            isinstance(v, dict | list | tuple) for v in variants.values()
        ):
            raise ValueError("must hold (reading, difference, params), or params, for each variant")
        noted = {
            name: (None, "", v) if isinstance(v, dict) else tuple(v) for name, v in variants.items()
        }
        stated = {name: dict(parts[2]) for name, parts in noted.items() if len(parts) > 2}
        for name, params in stated.items():
            if (other := params.get("like")) is not None:
                method, _, like = str(other).rpartition(":")
                known = info.context(method).variant_params if method and info.context else stated
                if like not in known or "like" in known[like]:
                    raise ValueError(
                        f"{name}: `like: {other}` must name a variant that states its own"
                        " parameters"
                    )
                stated[name] = {
                    **known[like],
                    **{key: value for key, value in params.items() if key != "like"},
                }
        return {name: (*parts[:2], stated.get(name, {})) for name, parts in noted.items()}

    @model_validator(mode="after")
    def names_are_declared(self):
        sides = [side for pair in self.below for side in pair if isinstance(side, str)]
        for key, names in (("below", sides), ("keeps", self.keeps), ("search", self.search)):
            known = self.hyperparameters.model_fields if key == "search" else self.params
            if strange := [name for name in names if name not in known]:
                raise ValueError(
                    f"{key}: unknown parameter {strange[0]!r}; known: {', '.join(known)}"
                )
        return self

    @cached_property
    def unstated(self) -> dict[str, Value]:
        """Values that runs have without stating them, by hyper-parameter."""
        fields = self.hyperparameters.model_fields.items()
        return {
            name: mark.value
            for name, field in fields
            for mark in field.metadata
            if isinstance(mark, Unstated)
        }

    @property
    def variant_params(self) -> dict[str, dict[str, Any]]:
        """The parameters that differ, by variant; without `default`, which has none."""
        return {
            name: variant.params for name, variant in self.variants.items() if name != "default"
        }

    @property
    def is_trained(self) -> bool:
        return self.kind in get_args(TrainedKind)

    @property
    def needs_corpus(self) -> bool:
        return self.is_trained or self.kind == "fitted"

    @property
    def corpus(self) -> Literal["sentences", "triplets"]:
        """The kind of data that it trains on."""
        return "triplets" if self.kind == "supervised" else "sentences"

    @cached_property
    def hyperparameters(self) -> type[BaseModel]:
        """The hyper-parameters, a method's with `TrainingSettings`'s, as a model. Numbers declared
        not negative stay so."""
        inherited = TrainingSettings.model_fields if self.kind != "component" else {}
        fields: dict[str, Any] = {}
        for name, (value, _) in self.params.items():
            kind = Literal[tuple(self.choices[name])] if name in self.choices else type(value)
            if name in inherited:
                kind = inherited[name].annotation
                for bound in inherited[name].metadata:
                    kind = Annotated[kind, bound]
            elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                kind = Annotated[
                    kind, Field(ge=0, le=LARGEST_INTEGER if isinstance(value, int) else None)
                ]
            fields[name] = (kind, value)
        base: dict[str, Any] = (
            {"__base__": TrainingSettings}
            if inherited
            else {"__config__": TrainingSettings.model_config}
        )
        return create_model(self.name, **base, **fields)


# ---------------------------------------------------------------- evaluators


class ItemScore(Strict):
    """How an evaluator's per-item values make its score of a task, so that rows can be tested
    over test items. Patterns name items as `files` names files; `{task}` and `{metric}` are
    those of the score."""

    # of the items that hold a value per test item; of several, each weighs the same in a mean
    values: str
    # of the values; or their rank correlation with the gold values, concatenated
    score: Literal["mean", "spearman"]
    # for `spearman`: of the items that hold the gold values, in the order of `values`
    gold: str | None = None
    metric: str | None = None  # the only one that is made so; None: every metric
    # of the items that hold ids of each test item's sentences, in the order of `values`
    sentences: str | None = None


class Panel(Strict):
    """What a figure shows of one model, drawn by `draw_KIND(figure, items, source)` of the
    evaluator's file."""

    item: str  # without which there is nothing to draw
    width: float  # inches
    height: float
    shared_axes: bool = False  # whether the panels of a figure have the same limits


class Texts(Strict):
    """Items to be read, not plotted: K texts retrieved for each of Q queries, beside what papers
    print of L models."""

    queries: str  # item (Q,)
    retrieved: str  # item (Q, K), the closest first
    printed: str  # item (Q, L, K)
    labels: list[str]  # of the L


class EvaluatorDeclaration(Strict):
    """The literal `DECLARATION` at the top of an evaluator file."""

    name: Name
    version: int = Field(ge=1)
    title: Line
    # name of the protocol's variant, as forks differ silently; may contain {settings}
    protocol: str
    tasks: list[str]  # as in the papers' columns
    average: bool = False  # whether it also gives the average of its tasks, `Avg.`
    counts: dict[str, int] = {}  # task: test items, where its accuracy or recall is a share
    # below the data root, names or patterns of all that it reads; or by task
    files: list[str] | dict[str, list[str]]
    # whether a task of which the data root has no file comes from a hub of the evaluator's library
    hub: bool = False
    published_as: str | None = None  # what evidence/ calls its average, or its only task
    # a parameter without a default, what stands behind the colon: `beir:scifact`
    takes: str | None = None
    # of it, what data/smoke has: `beir:smoke` is what the conformance suite runs
    example: str | None = None
    ordered: str = ""  # why the order of items matters, where the protocol itself makes it matter
    params: dict[str, Value] = {}
    variants: dict[str, dict[str, Value]] = {}  # also behind a colon: `transfer:fasttest`
    metric: str | None = None  # what a cell shows, a task's first row; None: the first of `best`
    best: dict[str, float]  # metric: what a perfect model scores
    # metric: between what random vectors score on data/smoke
    chance: dict[str, tuple[float, float]]
    units: dict[str, str] = {}  # metric: unit of its values, where they are no fractions
    bounds: dict[str, tuple[float | None, float | None]] = {}  # metric: see `bounds_of`
    items: ItemScore | None = None  # None: rows are compared over seeds alone
    panels: dict[str, Panel] = {}  # by the kind that a paper's figure names
    texts: Texts | None = None
    needs: str = ""  # besides what the project installs
    source: str  # official file, paper section
    deviations: list[str] = []

    def unit_of(self, metric: str) -> str:
        """The unit of a metric's values; of `mutual information, head 1` that of `mutual
        information`."""
        return self.units.get(metric, self.units.get(metric.partition(",")[0], FRACTION))

    def bounds_of(self, metric: str) -> tuple[float, float]:
        """The lowest and the highest value of a metric: as in `bounds`, else 0 and 1, or none if
        it has a unit."""
        low, high = self.bounds.get(metric, (None, None) if metric in self.units else (0.0, 1.0))
        return -math.inf if low is None else low, math.inf if high is None else high


# ---------------------------------------------------------------- data and scales


def _below(path: str) -> str:
    if not path or Path(path).is_absolute() or ".." in Path(path).parts or "\0" in path:
        raise ValueError("must be a path below the data root, without ..")
    return path


class Dataset(Strict):
    """A file below the data root that is part of a run's identity."""

    path: Annotated[str, AfterValidator(_below)]  # below the data root
    sha256: str  # or `hub:COMMIT` for a file whose hash the hub states and fetching checks
    # that it holds, so that planning refuses a size above it
    sentences: int | None = Field(default=None, ge=2)
    note: str = ""


class Evaluation(Strict):
    """Settings of the evaluation that can change a score."""

    precision: Precision = "fp32"
    batch_size: BatchSize = 128
    # tokens; None: the maximum of the encoder
    max_length: int | None = Field(default=None, ge=4, le=2**20)


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed occurs twice; its runs would be one")
    return seeds


Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_distinct)]


class RunSettings(Strict):
    """What a scale, or a command line, sets for all runs."""

    precision: Precision = "fp32"
    threads: Threads = 1
    # of the steps of every recipe (recipe.shortened_schedule)
    steps_factor: float = Field(default=1.0, gt=0, le=1)
    override: dict[str, Value] = {}  # hyper-parameters of every method
    kinds: dict[TrainedKind, dict[str, Value]] = {}  # of the methods of a kind that have them
    # parameter of a method or component: value -> its substitute
    substitutes: dict[str, dict[str, Value]] = {}

    def changes(self, declared: Declaration, stated: dict[str, Value]) -> dict[str, Value]:
        """What is set in place of the values that a method or component has by itself or in a
        recipe (`stated`)."""
        of_kind = next(
            (settings for kind, settings in self.kinds.items() if kind == declared.kind), {}
        )
        settings = {} if declared.kind == "component" else self.override | of_kind
        known = {*declared.hyperparameters.model_fields} - {*declared.keeps}
        changed = {key: value for key, value in settings.items() if key in known}
        values = {key: str(changed.get(key, stated.get(key))) for key in self.substitutes}
        return changed | {
            k: self.substitutes[k][value]
            for k, value in values.items()
            if value in self.substitutes[k]
        }


class Scale(RunSettings):
    """config/<scale>.yaml: encoders, data, seeds and settings with which the papers' rows are
    run."""

    scale: str
    purpose: str
    # from the papers; empty: printed values are judged
    differs: str = "another encoder, other data, fewer steps"
    data_root: str | None = None  # None: CSEBENCH_DATA, else what rules/data.smk fetches
    corpus: str  # a name in data/registry.yaml
    triplets: str | None = None  # a name there, of the data that supervised methods train on
    dev: str  # a name there: STS-B dev
    sizes: dict[str, Annotated[int, Field(ge=2)]]  # size of a column (`1%`) -> sentences drawn
    seeds: Seeds
    seeds_by_size: dict[str, Seeds] = {}  # for sizes with other seeds
    # for tables with other seeds (micse/table2), but for those sizes
    seeds_by_table: dict[str, Seeds] = {}
    encoders: dict[str, EncoderRef]  # role in the papers -> encoder at this scale
    evaluation: Evaluation = Evaluation()
    # of a finished run; `scores`: csebench/score/prune.py
    keep: Literal["model", "scores"] = "scores"
    # evaluator of a table, or its name -> its substitute here; None: none
    evaluators: dict[str, str | None] = {}
    # swept parameter: value -> its substitute here; None: none
    sweeps: dict[str, dict[str, Value | None]] = {}
    tuned: bool = False  # take what searches chose (csebench/plan/tuning.py)

    def seeds_of(self, table: str, number: int | None = None) -> list[int]:
        """The seeds of a table (micse/table2). A number of seeds are the first of the longest
        list that a table has, whose scores other tables share, and the seeds after it."""
        if number is None:
            return self.seeds_by_table.get(table, self.seeds)
        longest = max([self.seeds, *self.seeds_by_table.values()], key=len)
        return [*longest, *range(max(longest) + 1, max(longest) + 1 + number)][:number]

    @model_validator(mode="after")
    def settings_agree(self):
        if self.steps_factor != 1 and "steps" in self.override:
            raise ValueError("steps_factor and override.steps both set the steps; keep one")
        return self
