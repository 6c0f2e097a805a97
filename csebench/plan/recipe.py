"""From a recipe (a row of a table, a command line) to its run: every hyper-parameter typed and filled in.

Values are layered: the method's declaration, its variant, the recipe, the scale's settings, what the table sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from csebench.base.errors import BadInput, unknown
from csebench.plan.catalog import POSITIVES, RUNS, data_root, dataset
from csebench.plan.papers import Recipe
from csebench.plan.registry import COMPONENTS, declaration, fill
from csebench.plan.schema import Dataset, Declaration, EncoderRef, Scale, Value
from csebench.plan.spec import ComponentSpec, CorpusSpec, Spec, digest

Settings = Mapping[str, dict[str, Value]]


@dataclass(frozen=True)
class Conditions:
    """What a scale, or a command line, gives to every run besides its recipe."""

    corpora: Mapping[str, Dataset | None]  # `sentences` and `triplets`: what methods train on
    dev_sha256: str | None  # of STS-B dev
    precision: str = "fp32"
    threads: int = 1
    stage: tuple[int, int] | None = None  # sentences and seed of a pre-training stage; None: there can be none
    override: Mapping[str, Value] = field(default_factory=dict)  # hyper-parameters of all methods
    methods: Settings = field(default_factory=dict)
    components: Settings = field(default_factory=dict)


def conditions(scale: Scale) -> Conditions:
    """Those of a scale."""
    return Conditions(
        corpora={kind: dataset(name) if name else None for kind, name in corpus_names(scale).items()},
        dev_sha256=dataset(scale.dev).sha256,
        precision=scale.precision,
        threads=scale.threads,
        stage=(max(scale.sizes.values(), default=10**9), scale.seeds[0]),
        override=scale.override,
        methods=scale.methods,
        components=scale.components,
    )


def make_spec(recipe: Recipe, encoder: EncoderRef, size: int, seed: int, given: Conditions, where: str) -> Spec:
    """The run of a recipe.

    Args:
        encoder: that training starts from; with a pre-training stage, that the stage starts from.
        size: sentences drawn from the corpus.
        where: file and key of the recipe, for messages.

    Raises:
        BadInput: an unknown variant or parameter, a value that does not fit, or a component that the method cannot
            take.
    """
    method = declaration(recipe.method)
    if recipe.variant is not None and recipe.variant not in method.variants:
        raise unknown(f"variant of {method.name}", recipe.variant, method.variants, where)
    variant = dict(method.variants[recipe.variant]) if recipe.variant else {}
    plugins = [method.components, variant.pop("components", {}), recipe.components]
    used = sorted({name for layer in plugins for name in layer})
    plugins.append(given.components)
    for name in used:
        if reason := refusal(method, declaration(name, COMPONENTS)):
            raise BadInput(f"{where}: {method.name} cannot take component {name}: {reason}.")
    layers = (variant, recipe.params, given.override, given.methods.get(method.name, {}), recipe.sweep)
    params = typed(method, merged(*layers), where)
    if stage := pretraining(params, encoder, given, where):
        encoder = EncoderRef(name=str(RUNS / stage.run_id / "model"), revision=stage.run_id)
    reads_corpus, corpus = method.kind in ("trained", "fitted"), given.corpora.get(method.corpus)
    return Spec(
        method=method.name,
        method_version=method.version,
        params=params,
        components={
            name: ComponentSpec(
                version=declaration(name, COMPONENTS).version,
                params=typed(declaration(name, COMPONENTS), merged(*(p.get(name, {}) for p in plugins)), where),
            )
            for name in used
        },
        encoder=encoder,
        corpus=corpus_spec(corpus, size, seed) if reads_corpus else None,
        dev_sha256=given.dev_sha256 if method.kind == "trained" else None,
        seed=0 if method.kind == "untrained" else seed,  # what is fitted draws its sentences by seed
        precision=given.precision if method.kind == "trained" else "fp32",
        threads=given.threads,
    )


def refusal(method: Declaration, component: Declaration) -> str | None:
    """Why a method cannot take a component, as its declaration says; None where it can."""
    return next((method.refuses[need] for need in component.asks if need in method.refuses), None)


def pretraining(params: dict, encoder: EncoderRef, given: Conditions, where: str) -> Spec | None:
    """The run that comes first, where the parameter `pretraining` names one; the same for every size and seed."""
    name = params.get("pretraining", "none")
    if name == "none":
        return None
    if given.stage is None:
        raise BadInput(f"{where}: {name} would have to be trained first; give its model as encoder, pretraining=none.")
    return make_spec(Recipe(method=name), encoder, *given.stage, given, where)


def merged(*layers: Mapping) -> dict:
    """Of several dicts; the later one wins."""
    return {key: value for layer in layers for key, value in layer.items()}


def typed(declared: Declaration, values: dict, where: str) -> dict:
    """Hyper-parameters of a method or component, checked and complete, without those that have no effect.

    What is not trained has no learning rate, so none is part of its identity.
    """
    params = fill(declared, values, f"{where}: {declared.name}")
    if declared.kind in ("trained", "component"):
        return params
    return {key: value for key, value in params.items() if key in declared.params or key == "pooler"}


# ---------------------------------------------------------------- corpora


def corpus_spec(corpus: Dataset, size: int, seed: int) -> CorpusSpec:
    return CorpusSpec(name=Path(corpus.path).name, sha256=corpus.sha256, size=size, subset_seed=seed)


def corpus_names(scale: Scale) -> dict[str, str | None]:
    """Name of the dataset that methods train on, by kind."""
    return {"sentences": scale.corpus, "triplets": scale.triplets}


def corpus_of(method: Declaration, scale: Scale) -> Dataset | None:
    """What a method trains on at a scale; None where the scale has no such data."""
    name = corpus_names(scale)[method.corpus]
    return dataset(name) if name else None


def corpus_path(spec: Spec, scale: Scale) -> Path | None:
    """File of the scale's data root that a run trains on; None where it trains on nothing."""
    corpus = corpus_of(declaration(spec.method), scale) if spec.corpus else None
    return data_root(scale) / corpus.path if corpus else None


# ---------------------------------------------------------------- back-translation


def back_translation_facts(corpus_sha256: str, translators: str) -> dict:
    """What decides a back-translated corpus (csebench/data/translate.py); the file is kept under the hash of this.

    `version` goes up when translate.py would write other sentences.
    """
    return {"corpus_sha256": corpus_sha256, "translators": translators, "beams": 5, "longest": 128, "version": 1}


def positives_path(spec: Spec) -> Path | None:
    """File of the back-translated corpus of a run, under the hash of what decides it."""
    if not spec.back_translated:
        return None
    return POSITIVES / f"{digest(back_translation_facts(spec.corpus.sha256, spec.params['translators']))}.txt"
