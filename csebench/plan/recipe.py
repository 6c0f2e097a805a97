"""Turn a recipe into a run, with every hyper-parameter filled in.

A recipe comes from a row of a table, or from a command line. Values come in layers, and later
layers override earlier ones:

1. the method's declaration,
2. its variant,
3. the recipe,
4. the shortened schedule, if a scale makes only a fraction of the steps,
5. the scale's settings,
6. the choices of searches, for parameters that neither variant nor recipe sets,
7. the values that the table sweeps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from csebench.base.caches import cached
from csebench.base.errors import BadInput, problem_of, unknown
from csebench.plan.catalog import registry
from csebench.plan.catalog.files import POSITIVES, data_root, dataset
from csebench.plan.catalog.registry import (
    COMPONENTS,
    METHODS,
    check_name,
    declaration,
    fill,
    valid_declarations,
)
from csebench.plan.code_versions import draft_codes
from csebench.plan.schema.declarations import (
    AS_IT_IS,
    LARGEST_INTEGER,
    Dataset,
    Declaration,
    EncoderRef,
    RunSettings,
    Scale,
    SharedSetting,
    Value,
)
from csebench.plan.schema.paper import Recipe
from csebench.plan.schema.spec import TRANSLATION_VERSION, ComponentSpec, CorpusSpec, Spec, digest

# shared settings, which are searched once for all methods of a kind
SEARCHED_TOGETHER: tuple[SharedSetting, ...] = get_args(SharedSetting)
HOSTS = ("simcse", "simcse_sup")  # methods on which shared settings are searched, one per kind
FEWEST_STEPS = 50  # a scale does not shorten a schedule below this


@dataclass(frozen=True)
class Conditions:
    """The data and settings that a scale, or a command line, adds to every recipe."""

    corpora: Mapping[str, Dataset | None]  # data to train on: `sentences` and `triplets`
    dev_sha256: str | None  # of STS-B dev
    settings: RunSettings
    # (number of sentences, seed) of a pre-training stage; None: a method with a stage is refused
    stage: tuple[int, int] | None = None
    # settings that searches chose, by `recipe_name`
    tuned: Mapping[str, dict[str, Value]] = field(default_factory=dict)


def conditions(scale: Scale, tuned: Mapping[str, dict[str, Value]] = {}) -> Conditions:
    """State the conditions of a scale.

    Args:
        tuned: settings that searches chose, by `recipe_name`.
    """
    triplets = dataset(scale.triplets) if scale.triplets else None
    return Conditions(
        corpora={"sentences": dataset(scale.corpus), "triplets": triplets},
        dev_sha256=dataset(scale.dev).sha256,
        settings=scale,
        stage=(max(scale.sizes.values(), default=10**9), scale.seeds[0]),
        tuned=tuned,
    )


@dataclass(frozen=True)
class SettingLayers:
    """Layers of settings of a method or component; later ones override earlier ones.

    The defaults of the declaration lie below the first layer. `resolve` inserts the settings of the
    scale between `recipe` and `search`.
    """

    # what a method sets for its component
    method: Mapping[str, Value] = field(default_factory=dict)
    variant: Mapping[str, Value] = field(default_factory=dict)
    recipe: Mapping[str, Value] = field(default_factory=dict)
    search: Mapping[str, Value] = field(default_factory=dict)  # chosen by searches
    sweep: Mapping[str, Value] = field(default_factory=dict)  # set by the table


def make_spec(
    recipe: Recipe, encoder: EncoderRef, size: int, seed: int, given: Conditions, where: str
) -> Spec:
    """Make the run of a recipe.

    Args:
        encoder: the encoder that training, or its pre-training stage, starts from.
        size: number of sentences to draw from the corpus.
        seed: seed of the run, and of the subset of the corpus.
        where: file and key of the recipe, for messages.

    Raises:
        BadInput: the recipe names what does not exist, or its settings contradict each other.
    """
    of_scale = given.settings
    method = declaration(recipe.method)
    variant = variant_settings(method, recipe.variant, where)
    component_names = used_components(method, variant, recipe)
    by_search = by_component(choices(method, component_names, given.tuned))
    layers = SettingLayers(
        variant=variant.params,
        recipe=recipe.params,
        search=by_search.get("", {}),
        sweep=recipe.sweep,
    )
    params = resolve(method, layers, of_scale, f"{where}: {method.name}")

    components = {}
    for name in component_names:
        component = component_of(method, name, where)
        layers = SettingLayers(
            method=method.components.get(name, {}),
            variant=variant.components.get(name) or {},
            recipe=recipe.components.get(name, {}),
            search=by_search.get(name, {}),
        )
        of_component = resolve(component, layers, of_scale, f"{where}: {name}")
        components[name] = ComponentSpec(version=component.version, params=of_component)

    stage = pretraining(params, encoder, given, where)
    if stage is not None:
        encoder = stage.model
    corpus = corpus_spec(method, size, seed, given, where)

    # Inputs that cannot change the model get a fixed value, because they would change the run id.
    dev_sha256 = given.dev_sha256 if method.is_trained else None
    precision = of_scale.precision if method.is_trained else "fp32"
    if method.kind in AS_IT_IS:  # fitted methods keep the seed, which draws their sentences
        seed = 0
    spec = Spec(
        method=method.name,
        method_version=method.version,
        params=params,
        components=components,
        encoder=encoder,
        corpus=corpus,
        dev_sha256=dev_sha256,
        seed=seed,
        precision=precision,
        threads=of_scale.threads,
        code=draft_codes(method.name, component_names),
    )
    refuse_contradictions(spec, where)
    return spec


def resolve(
    declared: Declaration, layers: SettingLayers, of_scale: RunSettings, where: str
) -> dict[str, Value]:
    """Fill in the hyper-parameters of a method or component: typed, checked and complete.

    A value that the variant or the recipe states precedes the choice of a search.
    """
    stated = {**layers.variant, **layers.recipe}
    # first without the scale, because its changes depend on these values
    before_scale = fill(declared, {**layers.method, **stated}, where)
    by_scale = of_scale.changes(declared, before_scale)
    if declared.kind != "component":
        by_scale = shortened_schedule(before_scale, of_scale.steps_factor) | by_scale
    by_search = {key: value for key, value in layers.search.items() if key not in stated}
    complete = {**layers.method, **stated, **by_scale, **by_search, **layers.sweep}
    return fill(declared, complete, where)


@dataclass(frozen=True)
class VariantSettings:
    """The settings that a variant changes."""

    params: dict[str, Value]
    components: dict[str, dict[str, Value] | None]  # None: the component is left out


def variant_settings(method: Declaration, name: str | None, where: str) -> VariantSettings:
    """Look up the settings that a variant of a method changes: none for None or `default`.

    Raises:
        BadInput: the method has no such variant.
    """
    if name is None or name == "default":
        return VariantSettings({}, {})
    if name not in method.variant_params:
        raise unknown(f"variant of {method.name}", name, method.variant_params, where)
    params = dict(method.variant_params[name])
    return VariantSettings(components=params.pop("components", {}), params=params)


def used_components(method: Declaration, variant: VariantSettings, recipe: Recipe) -> list[str]:
    """Name the components of a run, from the method, the variant and the recipe.

    A variant can leave out a component, unless the recipe names it.
    """
    names = {*method.components, *variant.components, *recipe.components}
    left_out = {name for name, params in variant.components.items() if params is None}
    return sorted(names - (left_out - {*recipe.components}))


def component_of(method: Declaration, name: str, where: str) -> Declaration:
    """Read the declaration of a component. Raise BadInput if a method cannot take it."""
    check_name(name, COMPONENTS, where)
    component = declaration(name, COMPONENTS)
    for need in component.asks:
        if need in method.refuses:
            reason = method.refuses[need]
            raise BadInput(f"{where}: {method.name} cannot take component {name}: {reason}.")
    return component


def corpus_spec(
    method: Declaration, size: int, seed: int, given: Conditions, where: str
) -> CorpusSpec | None:
    """State the sentences that a run draws from its corpus; None for a method without a corpus.

    Raises:
        BadInput: the method needs a corpus, and there is none of its kind.
    """
    if not method.needs_corpus:
        return None
    corpus = given.corpora.get(method.corpus)
    if corpus is None:
        raise BadInput(f"{where}: no {method.corpus} to train {method.name} on.")
    name = Path(corpus.path).name
    return CorpusSpec(name=name, sha256=corpus.sha256, size=size, subset_seed=seed)


def recipe_defect(method: str, components: Iterable[str], where: str = "") -> str | None:
    """Say what is wrong with the file of a method, or of a component that is added to it.

    Returns:
        None if nothing is wrong.
    """
    files = [(method, METHODS)]
    files += [(name, COMPONENTS) for name in components]
    for name, folder in files:
        defect = registry.adapter_defect(name, folder, where)
        if defect is not None:
            return defect
    return problem_of(check_alone, method)


@cached
def check_alone(method: str) -> None:
    """Raise BadInput if a method, or one of its variants, has settings that make no run.

    The check assumes that data and encoders are there.
    """
    _, lines = registry.read_literal(registry.files(METHODS)[method], "DECLARATION")
    any_data = Dataset(path="any", sha256="")
    any_encoder = EncoderRef(name="any", revision="any")
    given = Conditions(
        corpora={"sentences": any_data, "triplets": any_data},
        dev_sha256="",
        settings=RunSettings(),
        stage=(LARGEST_INTEGER, 0),
    )
    for variant in (None, *declaration(method).variant_params):
        place = ()
        if variant is not None:
            place = ("variants", variant)
        where, found_keys = lines.locate(place)
        where = ": ".join([where, *found_keys[1:]])  # file, line and name of the variant
        recipe = Recipe(method=method, variant=variant)
        make_spec(recipe, any_encoder, LARGEST_INTEGER, 0, given, where)


def refuse_contradictions(spec: Spec, where: str) -> None:
    """Raise BadInput if settings that are valid by themselves cannot go together."""
    method = declaration(spec.method)
    steps, warmup = spec.number("steps"), spec.number("warmup_steps")
    if warmup > steps:
        raise BadInput(f"{where}: warmup_steps: {warmup} is above steps, {steps}.")
    if spec.corpus is not None:
        refuse_large_batch(spec, spec.corpus.size, where)
    refuse_order(method, spec.params, where)
    for name, component in spec.components.items():
        refuse_order(declaration(name, COMPONENTS), component.params, where)


def refuse_large_batch(spec: Spec, size: int, where: str) -> None:
    """Raise BadInput if a batch is larger than what a run draws from its corpus.

    Args:
        size: number of sentences or triplets that the run draws.
    """
    batch = spec.number("batch_size")
    drawn = size
    kind = declaration(spec.method).corpus
    if spec.document_lines > 0:
        drawn = size // spec.document_lines
        kind = f"documents of {spec.document_lines} lines"
    if batch > drawn:
        raise BadInput(f"{where}: batch_size: {batch} is above the {drawn} {kind} of the corpus.")


def refuse_order(declared: Declaration, params: Mapping[str, Value], where: str) -> None:
    """Raise BadInput if parameters contradict `below` of the declaration."""

    def value_and_text(side: str | float) -> tuple[float, str]:
        if isinstance(side, str):  # a parameter
            return float(params[side]), f"{side} ({params[side]})"
        return side, f"{side:g}"

    for less, more in declared.below:
        low, low_text = value_and_text(less)
        high, high_text = value_and_text(more)
        if low >= high:
            raise BadInput(f"{where}: {declared.name}: {low_text} must be below {high_text}.")


# ---------------------------------------------------------------- settings that searches chose


def recipe_name(method: Declaration, components: Iterable[str]) -> str:
    """Name the search for a recipe: `simcse`, or `ct+ami` with an added component."""
    added = {*components} - {*method.components}
    return "+".join([method.name, *sorted(added)])


@cached
def host(kind: str) -> str:
    """Name the method on which the shared settings of a kind are searched.

    Returns:
        one of HOSTS, else the first method of the kind with a search; empty if there is none.
    """
    searched = []
    for name, declared in valid_declarations(METHODS).items():
        if declared.kind == kind and declared.search:
            searched.append(name)
    preferred = [name for name in searched if name in HOSTS]
    candidates = preferred + searched
    if not candidates:
        return ""
    return candidates[0]


def inherited(method: Declaration) -> list[str]:
    """Name the shared settings that a method takes from the search on the host of its kind."""
    if host(method.kind) in ("", method.name):
        return []
    return shared_settings(method)


def shared_settings(method: Declaration) -> list[str]:
    """Name the settings that a method shares with others, and does not keep by definition."""
    params = method.hyperparameters.model_fields
    return [key for key in SEARCHED_TOGETHER if key in params and key not in method.keeps]


def choices(
    method: Declaration, components: Iterable[str], tuned: Mapping[str, dict[str, Value]]
) -> dict[str, Value]:
    """Collect the settings that searches chose for a method with components."""
    searches = choosing_searches(method, components, tuned)
    return {key: tuned[search][key] for key, search in searches.items()}


def choosing_searches(
    method: Declaration, components: Iterable[str], tuned: Mapping[str, Mapping[str, Value]]
) -> dict[str, str]:
    """Name the search that chose each setting of a method with components.

    There are three searches, and a later one overrides an earlier one: the search for shared
    settings on the host of the method's kind, the search on the method itself, and the search with
    the components that are added to it.
    """
    shared_host = host(method.kind)
    of_host = tuned.get(shared_host, {})
    searches = {key: shared_host for key in inherited(method) if key in of_host}
    for name in (method.name, recipe_name(method, components)):
        for key in tuned.get(name, {}):
            searches[key] = name
    return searches


def by_component(settings: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Group settings by component: `ami.weight` belongs to `ami`. The method has the key ``."""
    parts: dict[str, dict[str, Value]] = {}
    for key, value in settings.items():
        component, _, param = key.rpartition(".")
        parts.setdefault(component, {})[param] = value
    return parts


# ---------------------------------------------------------------- stages and schedules


def shortened_schedule(params: dict[str, Any], factor: float) -> dict[str, Value]:
    """Shorten the schedule of a method to a fraction of its steps and of its warm-up.

    A schedule keeps FEWEST_STEPS, if it has as many. The interval between evaluations stays, but is
    at most the number of steps, so that there is at least one evaluation.

    Returns:
        the changed hyper-parameters; none for a method that is not trained.
    """
    if factor == 1 or "steps" not in params:
        return {}
    steps = max(min(FEWEST_STEPS, params["steps"]), round(factor * params["steps"]))
    return {
        "steps": steps,
        "warmup_steps": round(factor * params["warmup_steps"]),
        "evaluate_every": min(steps, params["evaluate_every"]),
    }


def pretraining(params: dict, encoder: EncoderRef, given: Conditions, where: str) -> Spec | None:
    """Make the run that comes first, named by the parameter `pretraining`.

    All runs that start from it share it, whatever their sizes and seeds are.

    Returns:
        None if the parameter names none.

    Raises:
        BadInput: the conditions allow no such stage.
    """
    name = params.get("pretraining", "none")
    if name == "none":
        return None
    if given.stage is None:
        remedy = "then give --encoder DIR/model and --set pretraining=none"
        raise BadInput(f"{where}: train {name} first, {remedy}.")
    size, seed = given.stage
    return make_spec(Recipe(method=name), encoder, size, seed, given, where)


# ---------------------------------------------------------------- files of a run


def corpus_of(method: Declaration, scale: Scale) -> Dataset | None:
    """Look up the data that a method trains on at a scale; None if the scale has none."""
    return conditions(scale).corpora[method.corpus]


def training_files(spec: Spec, scale: Scale) -> list[str]:
    """List the files of the data root that a run is trained on: its corpus, and STS-B dev."""
    files = []
    if spec.corpus is not None:
        corpus = corpus_of(declaration(spec.method), scale)
        if corpus is not None:
            files.append(corpus.path)
    if spec.dev_sha256:
        files.append(dataset(scale.dev).path)
    return files


def corpus_path(spec: Spec, scale: Scale) -> Path | None:
    """Return the path of the corpus that a run trains on; None if it needs none."""
    if spec.corpus is None:
        return None
    return data_root(scale) / training_files(spec, scale)[0]


def back_translation_facts(corpus_sha256: str, translators: str) -> dict:
    """State everything that decides a back-translated corpus. Its file is named by the hash of
    these facts."""
    return {
        "corpus_sha256": corpus_sha256,
        "translators": translators,
        "beams": 5,
        "longest": 128,
        "version": TRANSLATION_VERSION,
    }


def positives_path(spec: Spec) -> Path | None:
    """Return the path of the back-translated corpus of a run; None if it needs none."""
    if not spec.back_translated or spec.corpus is None:
        return None
    facts = back_translation_facts(spec.corpus.sha256, str(spec.params["translators"]))
    return POSITIVES / f"{digest(facts)}.txt"
