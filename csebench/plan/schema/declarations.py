"""The schemas of declarations: methods, components, evaluators, scales (config/) and datasets
(data/registry.yaml).

A schema checks one declaration by itself. csebench/plan/catalog/registry.py reads the declarations
of methods and evaluators, csebench/plan/catalog/files.py those of scales and datasets.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

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

# ---------------------------------------------------------------- types

# a file name; it is short because listings have a column for it
Name = Annotated[str, Field(pattern=r"^[a-z]\w*$", max_length=20)]


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("must be one line")
    return text.rstrip("\n")


# a label or title: a heading, or a part of a sentence
Line = Annotated[str, AfterValidator(_one_line)]
ParamName = Annotated[str, Field(pattern=r"^[a-zA-Z]\w*$")]
Value = bool | int | float | str
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]  # what numpy's generators accept
Threads = Annotated[int, Field(strict=True, ge=1, le=1024)]
BatchSize = Annotated[int, Field(ge=1, le=2**20)]
LARGEST_INTEGER = 2**31 - 1  # limit of a whole-number hyper-parameter
# a link on pages, or an address to fetch from
Url = Annotated[str, Field(pattern=r"^https?://[\w.-]+(:\d+)?/[\w./~%?&=+,:@{}#-]*$")]
Precision = Literal["fp32", "bf16"]
Averages = Literal["avg", "avg_top2", "avg_first_last_2021", "avg_first_last_2022"]
LastToken = Literal["last", "last_eol"]  # of decoders
# csebench/model/pooling.py defines each
Pooler = Literal["cls", "cls_before_pooler", Averages, "mask", "mask_bare", LastToken]
POOLERS: tuple[Pooler, ...] = get_args(Pooler)
# unit of a score if its evaluator declares none; papers print fractions in percent
FRACTION = "fraction"
# settings that methods share: searched once for all methods of a kind, drawn once for all rows
SharedSetting = Literal["learning_rate", "temperature", "pooler"]
# what a method's loss compares: two views of a sentence, tokens, labelled triplets
TrainedKind = Literal["two_views", "token_level", "supervised"]
TRAINED_KINDS = get_args(TrainedKind)
# kinds of methods whose model exists already and is not changed, so that a seed changes nothing
AS_IT_IS = ("untrained", "released")
# whether a trained method learns from labels
Training = Literal["unlabelled", "labelled"]
# what a variant follows: the paper of its method, or the public code
Reading = Literal["as printed", "as released", "released, repaired"]
Colour = Annotated[str, Field(pattern="^#[0-9A-F]{6}$")]


class Strict(BaseModel):
    """A model that refuses unknown keys, and whose instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


# ---------------------------------------------------------------- what can change a score

# Keys of a declaration that cannot change the score of a run with given settings. They are for
# readers, for scales or for `csebench tune`.
FOR_READERS = {
    # of methods and components
    "title",
    "paper",
    "citation",
    "needs",
    "colours",
    "trains",
    "search",
    "weights",
    "keeps",
    "below",
    "deviations",
    # of evaluators
    "counts",
    "published_as",
    "ordered",
    "rounding",
    "units",
    "bounds",
    "panels",
    "texts",
    "source",
}


def without_text(declared: dict[str, Any]) -> dict[str, Any]:
    """Reduce a literal declaration to what can change the score of a run.

    The keys of FOR_READERS, the sources of parameters, and the readings and differences of variants
    are left out.
    """
    counting = {key: value for key, value in declared.items() if key not in FOR_READERS}
    if "params" in counting:
        counting["params"] = _keep_part(counting["params"], slice(1))  # (value, source)
    if "variants" in counting:
        # (reading, difference, params)
        counting["variants"] = _keep_part(counting["variants"], slice(2, None))
    return counting


def _keep_part(entries: dict[str, Any], part: slice) -> dict[str, Any]:
    """Cut each tuple among the values of a dict to some of its entries."""
    reduced = {}
    for name, value in entries.items():
        reduced[name] = value[part] if isinstance(value, tuple) else value
    return reduced


# ---------------------------------------------------------------- methods


@dataclass(frozen=True)
class Unstated:
    """A mark on a hyper-parameter: a run that has this value does not state it.

    The hyper-parameter is newer than the first runs. They trained with this value, and keep their
    ids because it is not stated.
    """

    value: Value


class Hyperparameters(BaseModel):
    """The hyper-parameters of a method or component, as typed attributes.

    Every declaration makes a subclass with a field for each of its parameters
    (`Declaration.hyperparameters`). Code gets an object of this subclass as `Hyperparameters`.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True
    )

    if TYPE_CHECKING:  # type checkers cannot know the fields of a subclass that is made at run time

        def __getattr__(self, name: str) -> Any: ...


class TrainingSettings(Hyperparameters):
    """Hyper-parameters that every method has.

    The defaults come from SimCSE's trainer (transformers 4.2.1: no warm-up, no weight decay, linear
    decay) and its unsupervised BERT-base script. A declaration may state other defaults.
    """

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
    dropout: float = Field(default=0.1, ge=0, lt=1)  # of hidden layers and attention
    # steps between evaluations on STS-B dev
    evaluate_every: int = Field(default=125, ge=1, le=LARGEST_INTEGER)
    pooler: Pooler = "cls_before_pooler"  # in training, on STS-B dev and at test
    # the step whose model is kept
    selection: Annotated[Literal["best", "last"], Unstated("best")] = "best"


class Variant(NamedTuple):
    """Settings that replace declared values of a method.

    A variant with a reading is a row of the page of variants.
    """

    reading: Reading | None = None
    difference: str = ""  # from the other readings, in words
    # components that are None are left out; `like` names the variant to start from
    params: dict[str, Any] = {}


class Declaration(Strict):
    """The literal `DECLARATION` at the top of a method or component file."""

    name: Name
    version: int = Field(ge=1)  # increase it when a change of the code changes a number
    title: Line
    paper: str
    citation: str
    extends: Name | None = None  # the method whose class the class of this file extends
    # default: the kind of the method that it extends
    kind: TrainedKind | Literal["fitted", "untrained", "released", "control", "component"] = (
        "two_views"
    )
    needs: str = ""  # requirements in addition to an encoder and a corpus of sentences
    colours: dict[str, Colour] = {}  # in figures, by added component: ``, `ami`
    trains: str = "encoder"  # modules whose weights the optimiser updates
    params: dict[ParamName, tuple[Value, str]] = {}  # name: (the paper's value, its source)
    # allowed values of a text parameter
    choices: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    search: dict[str, list[Value]] = {}  # parameter: values that `csebench tune` tries
    weights: list[str] = []  # parameters that weigh a term of the loss; without the term they are 0
    # parameters that no scale overrides and no search on another method chooses
    keeps: list[str] = []
    components: dict[str, dict[str, Value]] = {}  # plug-ins that are part of the method
    asks: list[Literal["queue", "attention", "tokens"]] = []  # what a component needs of its method
    # what a method lacks, with the reason
    refuses: dict[Literal["queue", "attention", "tokens"], str] = {}
    # pairs of parameters, or of a parameter and a number; a run is refused if the first is not less
    # than the second
    below: list[tuple[str | float, str | float]] = []
    # (reading, difference, params), or params alone; `default`: the method itself
    variants: dict[str, Variant] = {}
    deviations: list[str] = []  # from the paper, and choices on which the paper is silent

    @field_validator("variants", mode="before")
    @classmethod
    def complete_variants(cls, variants: Any, info) -> Any:
        """Write each variant as (reading, difference, params), with all of its parameters.

        A variant may be `like` another variant, of this method or of another one (`msse:code`). It
        then has the parameters of the other variant, and overrides some of them.

        Args:
            info: has a function as its context, which returns the declaration of another method.
        """
        if not isinstance(variants, dict) or not all(map(_has_parts, variants.values())):
            raise ValueError("must hold (reading, difference, params), or params, for each variant")
        descriptions: dict[str, tuple] = {}  # (reading, difference)
        params: dict[str, dict[str, Any]] = {}
        for name, variant in variants.items():
            if isinstance(variant, dict):
                descriptions[name] = (None, "")
                params[name] = dict(variant)
            else:
                descriptions[name] = tuple(variant[:2])
                if len(variant) > 2:
                    params[name] = dict(variant[2])

        for name, own in params.items():  # in the order of the file: earlier ones are complete
            like = own.get("like")
            if like is None:
                continue
            method, _, other = str(like).rpartition(":")
            candidates = params
            if method and info.context:
                candidates = info.context(method).variant_params
            if other not in candidates or "like" in candidates[other]:
                raise ValueError(
                    f"{name}: `like: {like}` must name a variant that states its own parameters"
                )
            differences = {key: value for key, value in own.items() if key != "like"}
            params[name] = candidates[other] | differences
        return {name: (*descriptions[name], params.get(name, {})) for name in variants}

    @model_validator(mode="after")
    def names_are_declared(self):
        for pair in self.below:
            sides = [side for side in pair if isinstance(side, str)]
            _check_parameters("below", sides, self.params)
        _check_parameters("keeps", self.keeps, self.params)
        _check_parameters("weights", self.weights, self.params)
        _check_parameters("search", self.search, self.hyperparameters.model_fields)
        return self

    @cached_property
    def unstated(self) -> dict[str, Value]:
        """The value at which runs leave out a hyper-parameter, by its name (see `Unstated`)."""
        values = {}
        for name, field in self.hyperparameters.model_fields.items():
            for mark in field.metadata:
                if isinstance(mark, Unstated):
                    values[name] = mark.value
        return values

    @property
    def variant_params(self) -> dict[str, dict[str, Any]]:
        """The changed parameters of each variant. `default` changes none and is left out."""
        params = {name: variant.params for name, variant in self.variants.items()}
        params.pop("default", None)
        return params

    @property
    def is_trained(self) -> bool:
        return self.kind in TRAINED_KINDS

    @property
    def training(self) -> Training | None:
        """Whether the method learns from labels; None if it is not trained."""
        if not self.is_trained:
            return None
        return "labelled" if self.kind == "supervised" else "unlabelled"

    @property
    def loads_encoder(self) -> bool:
        """Whether a run starts from an encoder.

        A control has none. A released model is opened when it is scored.
        """
        return self.kind not in ("control", "released")

    def has_effect(self, param: str) -> bool:
        """Whether a hyper-parameter can change a run.

        If nothing is trained, settings of the trainer have no effect, but the pooler has. A
        released model has its own pooling.
        """
        if self.is_trained or self.kind == "component" or param in self.params:
            return True
        return param == "pooler" and self.kind != "released"

    @property
    def fits_map(self) -> bool:
        """Whether a map that follows pooling is fitted to vectors of sentences of the corpus."""
        return "fit_sentences" in self.params

    @property
    def needs_corpus(self) -> bool:
        return self.is_trained or self.kind == "fitted"

    @property
    def corpus(self) -> Literal["sentences", "triplets"]:
        """The kind of data that the method trains on."""
        return "triplets" if self.kind == "supervised" else "sentences"

    @cached_property
    def hyperparameters(self) -> type[Hyperparameters]:
        """The type of the hyper-parameters. For a method, it extends `TrainingSettings`."""
        training = {} if self.kind == "component" else TrainingSettings.model_fields
        fields: dict[str, Any] = {}
        for name, (value, _) in self.params.items():
            if name in training:  # the method declares another default; type and bounds stay
                value_type = training[name].annotation
                for bound in training[name].metadata:
                    value_type = Annotated[value_type, bound]
            elif name in self.choices:
                value_type = Literal[tuple(self.choices[name])]
            else:
                value_type = _type_of_parameter(value)
            fields[name] = (value_type, value)
        base = Hyperparameters if self.kind == "component" else TrainingSettings
        return create_model(self.name, __base__=base, **fields)


def _has_parts(variant: Any) -> bool:
    return isinstance(variant, dict | list | tuple)


def _check_parameters(key: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError if a key of a declaration names a parameter that does not exist."""
    for name in names:
        if name not in known:
            raise ValueError(f"{key}: unknown parameter {name!r}; known: {', '.join(known)}")


def _type_of_parameter(value: Value) -> Any:
    """Return the type of a parameter with a declared value.

    If the declared number is not negative, negative numbers are refused.
    """
    if isinstance(value, bool | str) or value < 0:
        return type(value)
    if isinstance(value, int):
        return Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
    return Annotated[float, Field(ge=0)]


# ---------------------------------------------------------------- evaluators


class ItemScore(Strict):
    """How the score of a task is computed from the values of its test items.

    An evaluator that declares it lets rows be tested over test items. The texts are patterns of
    item names. `{task}` and `{metric}` stand for the task and the metric of the score.
    """

    # items that hold a value per test item; several items have equal weights in a mean
    values: str
    # mean: mean of the values;
    # spearman: rank correlation of all values with their gold values
    score: Literal["mean", "spearman"]
    # for `spearman`: items that hold the gold values, in the order of `values`
    gold: str | None = None
    metric: str | None = None  # the only metric computed like this; None: every metric
    # items that hold ids of each test item's sentences, in the order of `values`
    sentences: str | None = None


class Panel(Strict):
    """The part of a figure about one model.

    In the evaluator's file, `draw_KIND_columns(items)` gives the arrays that it shows, by name, and
    `draw_KIND(figure, columns, source)` draws them.
    """

    item: str  # the panel is drawn only if a score has this item
    width: float  # inches; panels of at most 3.65 stand side by side
    height: float
    shared_axes: bool = False  # whether the panels of a figure have the same limits


class Texts(Strict):
    """Items to be read, not plotted.

    They are K texts that a model retrieves for each of Q queries, and the texts that papers print
    for L models.
    """

    queries: str  # item (Q,)
    retrieved: str  # item (Q, K), the closest first
    printed: str  # item (Q, L, K)
    labels: list[str]  # of the L models


class EvaluatorDeclaration(Strict):
    """The literal `DECLARATION` at the top of an evaluator file."""

    name: Name
    version: int = Field(ge=1)
    title: Line
    # name of the protocol's variant, as forks differ silently; may contain {settings}
    protocol: str
    tasks: list[str]  # as in the papers' columns
    average: bool = False  # whether its tasks are also averaged, as `Avg.`
    counts: dict[str, int] = {}  # task: number of test items, if its score is a share of them
    # names or patterns of all files below the data root that the evaluator reads; or these by task
    files: list[str] | dict[str, list[str]]
    # whether the evaluator's library loads data from its hub if the data root has none of `files`
    hub: bool = False
    # name that evidence/ has for the average of the tasks, or for the only task
    published_as: str | None = None
    # parameter that users give after a colon: `beir:scifact` gives the data set of `beir`
    takes: str | None = None
    # value of the parameter `takes` in data/smoke: the conformance suite runs `beir:smoke`
    example: str | None = None
    ordered: str = ""  # why the order of items matters, if the protocol itself makes it matter
    # variant: why its scores depend on rounding, so that even a perfect model can miss the best
    rounding: dict[str, str] = {}
    params: dict[str, Value] = {}
    variants: dict[str, dict[str, Value]] = {}  # named after a colon: `transfer:fasttest`
    # main metric: cells show it, and it comes first for each task; None: the first of `best`
    metric: str | None = None
    best: dict[str, float]  # metric: score of a perfect model
    # metric: lowest and highest score of random vectors on data/smoke
    chance: dict[str, tuple[float, float]]
    units: dict[str, str] = {}  # metric: unit of its values; fractions have none
    bounds: dict[str, tuple[float | None, float | None]] = {}  # metric: see `bounds_of`
    items: ItemScore | None = None  # None: rows are compared over seeds alone
    panels: dict[str, Panel] = {}  # by the kind that a paper's figure names
    texts: Texts | None = None
    needs: str = ""  # requirements in addition to what the project installs
    source: str  # official file, paper section
    deviations: list[str] = []

    def unit_of(self, metric: str) -> str:
        """Return the unit of a metric's values.

        `mutual information, head 1` has the unit of `mutual information` if it states none.
        """
        if metric in self.units:
            return self.units[metric]
        general_metric = metric.partition(",")[0]
        return self.units.get(general_metric, FRACTION)

    def bounds_of(self, metric: str) -> tuple[float, float]:
        """Return the lowest and the highest value of a metric.

        If `bounds` does not state them, a fraction lies between 0 and 1, and a metric with a unit
        has no bounds.
        """
        if metric in self.bounds:
            low, high = self.bounds[metric]
        elif metric in self.units:
            low, high = None, None
        else:
            low, high = 0.0, 1.0
        if low is None:
            low = -math.inf
        if high is None:
            high = math.inf
        return low, high


# ---------------------------------------------------------------- data and scales


def _below(path: str) -> str:
    if not path or Path(path).is_absolute() or ".." in Path(path).parts or "\0" in path:
        raise ValueError("must be a path below the data root, without ..")
    return path


class Dataset(Strict):
    """A file below the data root that is part of a run's identity."""

    path: Annotated[str, AfterValidator(_below)]  # below the data root
    sha256: str  # or `hub:COMMIT` for a file whose hash the hub states and fetching checks
    # number of sentences in the file; a scale cannot draw more
    sentences: int | None = Field(default=None, ge=2)
    note: str = ""


class Evaluation(Strict):
    """Settings of the evaluation that can change a score."""

    precision: Precision = "fp32"  # precision in which sentences are embedded
    batch_size: BatchSize = 128  # sentences that are embedded at once
    # tokens of a sentence; None: the maximum of the encoder
    max_length: int | None = Field(default=None, ge=4, le=2**20)


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed occurs twice; its runs would be one")
    return seeds


Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_distinct)]


class RunSettings(Strict):
    """Settings that a scale, or a command line, gives to all runs."""

    precision: Precision = "fp32"  # precision of training
    threads: Threads = 1  # CPU threads of a run
    # fraction of each recipe's steps that is trained (recipe.shortened_schedule)
    steps_factor: float = Field(default=1.0, gt=0, le=1)
    override: dict[str, Value] = {}  # hyper-parameters of every method
    # hyper-parameters by kind of method; a method ignores those that it does not have
    kinds: dict[TrainedKind, dict[str, Value]] = {}
    # parameter of a method or component: value -> its substitute
    substitutes: dict[str, dict[str, Value]] = {}

    def changes(self, declared: Declaration, stated: dict[str, Value]) -> dict[str, Value]:
        """Return the settings that replace those of a method or component.

        Args:
            stated: the values before this change, from the declaration and the recipe.
        """
        changed: dict[str, Value] = {}
        if declared.kind != "component":
            changed |= self.override
            for kind, settings in self.kinds.items():
                if kind == declared.kind:
                    changed |= settings
        allowed = {*declared.hyperparameters.model_fields} - {*declared.keeps}
        changed = {key: value for key, value in changed.items() if key in allowed}
        for key, substitutes in self.substitutes.items():
            value = str(changed.get(key, stated.get(key)))
            if value in substitutes:
                changed[key] = substitutes[value]
        return changed


class Control(Strict):
    """A difference between two rows that a scale must see before it judges methods of a kind.

    A control holds if the 95 % interval of the difference lies above `least`. If it does not hold,
    the scale gives no verdict on the methods in `judges`.
    """

    name: Line  # for pages: `SimCSE above the untrained encoder`
    table: str  # `micse/table4`
    row: str  # label of the row that must score higher
    against: str  # label of the other row
    against_table: str | None = None  # table of the other row; None: the same table
    column: str  # label of the column, in both tables
    least: float = 0.0  # what the difference must exceed, in points
    judges: list[Training] = Field(min_length=1)  # judged only if the control holds


class Span(Strict):
    """An interval of a positive number, from which values are drawn evenly on a logarithmic
    axis."""

    low: float = Field(gt=0)
    high: float = Field(gt=0)

    @model_validator(mode="after")
    def low_is_below_high(self):
        if self.low >= self.high:
            raise ValueError(f"low ({self.low:g}) must be below high ({self.high:g})")
        return self


class Scale(RunSettings):
    """config/<scale>.yaml: encoders, data, seeds and settings with which the papers' rows are
    run."""

    scale: str  # name of the file
    purpose: str  # what the scale is for, in a few words
    # how runs at this scale differ from the papers' runs; empty: printed values are judged
    differs: str = "another encoder, other data, fewer steps"
    data_root: str | None = None  # None: CSEBENCH_DATA, else what rules/data.smk fetches
    corpus: str  # name in data/registry.yaml: sentences to train on
    # name in data/registry.yaml: triplets for supervised methods; None: they are not run
    triplets: str | None = None
    dev: str  # name in data/registry.yaml: STS-B dev
    # size of a column (`1%`) -> number of sentences that are drawn
    sizes: dict[str, Annotated[int, Field(ge=2)]]
    seeds: Seeds  # every cell has one run per seed
    seeds_by_size: dict[str, Seeds] = {}  # size -> its seeds, in place of `seeds`
    # table (`micse/table2`) -> its seeds, in place of `seeds`; `seeds_by_size` overrides them
    seeds_by_table: dict[str, Seeds] = {}
    encoders: dict[str, EncoderRef]  # role in the papers -> encoder at this scale
    evaluation: Evaluation = Evaluation()  # how models are scored
    # what is kept of a finished run; `scores`: a model is deleted when it is no longer needed
    keep: Literal["model", "scores"] = "scores"
    # evaluator (`transfer`, `transfer:fasttest`) -> its substitute; `null`: its cells stay empty
    evaluators: dict[str, str | None] = {}
    # swept parameter: value -> its substitute; `null`: its cells stay empty
    sweeps: dict[str, dict[str, Value | None]] = {}
    controls: list[Control] = []  # what the scale must see before it judges methods
    tuned: bool = False  # whether runs have the settings that searches chose (plan/tuning.py)
    # what comparisons over random settings draw for the settings that methods share: a span, or
    # values to choose from (plan/random_settings.py)
    prior: dict[SharedSetting, Span | Annotated[list[Value], Field(min_length=1)]] = {}

    def seeds_of(self, table: str, number: int | None = None) -> list[int]:
        """List the seeds of a table.

        Args:
            table: `micse/table2`.
            number: number of seeds that the table states; None: it states none. The seeds are the
                first of the scale's longest list of seeds, so that tables share scores. If the list
                is too short, the next integers follow.
        """
        if number is None:
            return self.seeds_by_table.get(table, self.seeds)
        longest = max([self.seeds, *self.seeds_by_table.values()], key=len)
        next_seed = max(longest) + 1
        further = range(next_seed, next_seed + number)
        return [*longest, *further][:number]

    @model_validator(mode="after")
    def settings_agree(self):
        if self.steps_factor != 1 and "steps" in self.override:
            raise ValueError("steps_factor and override.steps both set the steps; keep one")
        return self
