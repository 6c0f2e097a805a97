"""Settings in which two rows differ although their comparison is about something else.

They are derived from the specs of the runs. A spec also has the values that a scale or a search
changed. Every part of two specs is compared: hyper-parameters of methods and of components that
both rows have, the encoder that a run starts from, the projector, training data, precision and
versions.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from csebench.base.hub import ENCODERS_FOLDER
from csebench.plan.catalog.registry import declaration
from csebench.plan.grids import CellPlan
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import method_of
from csebench.report.numbers.cells import Cell

# names on pages and in CSV; any other parameter is written with spaces (`setting_name`)
SETTING_NAMES = {
    "batch_size": "batch",
    "max_length": "length",
    "clip": "largest gradient",
    "selection": "kept step",
}
# `form` selects a formula of a method's loss, so values of two methods cannot be compared
OWN_PARAMETERS = {"form"}
START_ENCODER = "start encoder"
PROJECTOR = "projector"
# listed first, because pages name only a few settings; the other parts keep the order of the spec
LISTED_FIRST = (
    START_ENCODER,
    PROJECTOR,
    "learning_rate",
    "temperature",
    "pooler",
    "batch_size",
    "steps",
    "max_length",
    "dropout",
)


class Setting(NamedTuple):
    """A shared setting in which two rows differ, with its value in each."""

    name: str
    here: str
    there: str


def setting_differences(pairs: Sequence[tuple[Cell, Cell]]) -> tuple[Setting, ...]:
    """List the settings in which the runs of pairs of cells differ, each once.

    Only settings that both rows have are listed. Settings that the comparison is about are left
    out. These are the settings that a method keeps by definition, and for two rows of one method
    the settings that the rows state differently.
    """
    settings: list[Setting] = []
    for first, second in plans_with_runs(pairs):
        excluded = subjects(first, second)
        differing = differing_parts(first, second)
        settings += [setting for key, setting in differing.items() if key not in excluded]
    return tuple(dict.fromkeys(settings))


def kept_differences(pairs: Sequence[tuple[Cell, Cell]]) -> tuple[str, ...]:
    """Name the settings that differ because one of two methods keeps its own, each once."""
    names: list[str] = []
    for first, second in plans_with_runs(pairs):
        here = first.specs[0].method
        there = second.specs[0].method
        if here != there:
            kept = kept_settings(first, second)
            differing = differing_parts(first, second)
            names += [setting.name for key, setting in differing.items() if key in kept]
    return tuple(dict.fromkeys(names))


def kept_settings(first: CellPlan, second: CellPlan) -> set[str]:
    """Name the settings that the method of either plan keeps by definition."""
    here = declaration(first.specs[0].method)
    there = declaration(second.specs[0].method)
    return {*here.keeps, *there.keeps}


def plans_with_runs(pairs: Sequence[tuple[Cell, Cell]]) -> Iterator[tuple[CellPlan, CellPlan]]:
    """Go through the pairs of cells that both have runs, and yield the plans of both."""
    for cell, base in pairs:
        first = first_plan_with_runs(cell)
        second = first_plan_with_runs(base)
        if first is not None and second is not None:
            yield first, second


def differing_parts(first: CellPlan, second: CellPlan) -> dict[str, Setting]:
    """Collect the settings that runs of both plans have, and in which they differ, by key."""
    here = shared_parts(first.specs[0], second.specs[0])
    there = shared_parts(second.specs[0], first.specs[0])
    first_keys = [key for key in LISTED_FIRST if key in here]
    settings = {}
    for key in dict.fromkeys([*first_keys, *here]):
        if key in there and here[key] != there[key]:
            settings[key] = Setting(setting_name(key), here[key], there[key])
    return settings


def subjects(first: CellPlan, second: CellPlan) -> set[str]:
    """Name the settings that the comparison of two plans is about.

    A projector or a start encoder that follows from one of these settings is named, too.
    """
    here = first.specs[0]
    there = second.specs[0]
    excluded = kept_settings(first, second)
    if here.method == there.method:
        stated_by_one_row = stated_settings(first) ^ stated_settings(second)
        excluded |= {name for name, _ in stated_by_one_row}
    else:
        excluded |= OWN_PARAMETERS
    if "pooler" in excluded:
        excluded.add(PROJECTOR)  # SimCSE's head belongs to one pooler
    if "pretraining" in excluded:
        excluded.add(START_ENCODER)
    return excluded


# ---------------------------------------------------------------- the parts of a spec


def shared_parts(spec: Spec, other: Spec) -> dict[str, str]:
    """Write the parts of a spec that can be compared with another spec, by name.

    If one of the two specs trains nothing, the parts that only training has are left out.
    """
    parts = {START_ENCODER: start_encoder(spec, other)}
    for key, value in spec.settings.items():
        if key in other.settings and key != PROJECTOR:
            parts[key] = setting_text(value)
    if spec.corpus and other.corpus:
        parts["corpus"] = spec.corpus.name
        parts["sentences"] = f"{spec.corpus.size:,}"
        if spec.corpus.name == other.corpus.name:
            parts["corpus file"] = spec.corpus.sha256[:12]
    if is_trained(spec) and is_trained(other):
        parts |= training_parts(spec)
    parts |= version_parts(spec)
    return parts


def is_trained(spec: Spec) -> bool:
    """Whether gradient steps are made. An untrained or a fitted encoder has none."""
    return spec.dev_sha256 is not None


def training_parts(spec: Spec) -> dict[str, str]:
    """Write the parts of a spec that decide how gradient steps are made."""
    parts = {
        "precision": spec.precision,
        "threads": str(spec.threads),
        "trainer version": str(spec.trainer_version),
        "dev file": str(spec.dev_sha256)[:12],
        "seeds of": ", ".join(sorted(spec.seeds)) or "the run",
        "end of a divergence": spec.if_diverged,
    }
    projector = projector_of(spec)
    if projector is not None:
        parts[PROJECTOR] = projector
    return parts


def version_parts(spec: Spec) -> dict[str, str]:
    """Write the versions of a method and its components, and the code of drafts."""
    parts = {f"{spec.method} version": str(spec.method_version)}
    for name, component in spec.components.items():
        parts[f"{name} version"] = str(component.version)
    for unit, code in spec.code.items():
        parts[f"code of {unit}"] = code[:12]
    return parts


def start_encoder(spec: Spec, other: Spec) -> str:
    """Name the encoder of a run's start: `bert-mini-wiki`, or `one that condenser trained`.

    If the other run starts from a run of the same method, the id of the run is given. If it starts
    from another revision of the same encoder, the revision is given.
    """
    encoder = spec.encoder
    other_encoder = other.encoder
    if spec.run_before is not None:
        method = method_of(spec.run_before)
        if other.run_before is None or method_of(other.run_before) != method:
            return f"one that {method} trained"
        return spec.run_before
    if encoder.name == other_encoder.name and encoder.revision != other_encoder.revision:
        return f"{encoder.name} at {str(encoder.revision)[:12]}"
    return encoder.name.removeprefix(ENCODERS_FOLDER)


def projector_of(spec: Spec) -> str | None:
    """Name the head between the pooler and the loss that contrasts sentences.

    With any pooler but `cls_before_pooler`, the value `mlp` means no head, because SimCSE's head is
    only added to that pooler (csebench/train/method.py: ClsHeadMethod).

    Returns:
        None if the parameter is not a name, but the size of a projector inside the method's loss.
    """
    value = spec.params.get(PROJECTOR)
    if value is None:
        parts = declaration(spec.method).trains.split(", ")
        value = "mlp" if "head" in parts else "none"
    if not isinstance(value, str):
        return None
    if value == "mlp" and spec.params.get("pooler") != "cls_before_pooler":
        return "none"
    return value


# ---------------------------------------------------------------- plans and texts


def first_plan_with_runs(cell: Cell) -> CellPlan | None:
    for leaf in cell.leaves:
        if leaf.plan.specs:
            return leaf.plan
    return None


def stated_settings(plan: CellPlan) -> set[tuple[str, str]]:
    """Collect the settings that a row, its variant or its column states, as (name, value).

    A setting of a component has its name in front: `ami.weight`.
    """
    recipe = plan.row.run
    assert recipe is not None  # a row with runs has a recipe
    variant = declaration(recipe.method).variant_params.get(recipe.variant or "default", {})
    settings = {**variant, **recipe.params, **recipe.sweep, **plan.column.sweep}
    stated = {(key, str(value)) for key, value in settings.items() if key != "components"}
    for components in (variant.get("components", {}), recipe.components):
        for name, params in components.items():
            stated |= component_settings(name, params)
    return stated


def component_settings(name: str, params: dict | None) -> set[tuple[str, str]]:
    """Write stated settings of a component as (name, value). None takes the component away."""
    return {(f"{name}.{key}", str(value)) for key, value in (params or {}).items()}


def setting_name(key: str) -> str:
    """Name a part of a spec as people do: `learning rate`, `batch`, `ami weight`."""
    return SETTING_NAMES.get(key, key.replace("_", " ").replace(".", " "))


def setting_text(value) -> str:
    """Write a value as people do: `3e-5`, `0.05`, `avg`."""
    if not isinstance(value, float):
        return str(value)
    if 0 < value < 0.001:
        return np.format_float_scientific(value, trim="-", exp_digits=1)
    return f"{value:g}"
