"""Settings in which two rows differ although their comparison is about something else.

They are derived from the specs of the runs, which also have what a scale or a search changed.
"""

from typing import NamedTuple

import numpy as np

from csebench.plan.catalog.registry import declaration
from csebench.plan.grids import CellPlan
from csebench.report.numbers.cells import Cell

# parameters that rows should have in common, with their names on pages and in CSV
COMPARED_SETTINGS = {
    "learning_rate": "learning rate",
    "temperature": "temperature",
    "pooler": "pooler",
    "batch_size": "batch",
    "steps": "steps",
    "max_length": "length",
    "dropout": "dropout",
}


class Setting(NamedTuple):
    """A shared setting in which two rows differ, with its value in each."""

    name: str
    here: str
    there: str


def setting_differences(a: Cell, b: Cell) -> tuple[Setting, ...]:
    """List shared settings, encoder and training data in which the runs of two cells differ.

    Settings that the comparison is about are left out. These are the settings that a method keeps
    by definition, and for two rows of one method the settings that the rows state differently.
    """
    first = first_plan_with_runs(a)
    second = first_plan_with_runs(b)
    if first is None or second is None:
        return ()
    here = first.specs[0]
    there = second.specs[0]
    excluded = {*declaration(here.method).keeps, *declaration(there.method).keeps}
    if here.method == there.method:
        stated_by_one_row = stated_settings(first) ^ stated_settings(second)
        excluded |= {name for name, _ in stated_by_one_row}

    settings = []
    for key, name in COMPARED_SETTINGS.items():
        if key not in excluded and key in here.params and key in there.params:
            own_value = setting_text(here.params[key])
            other_value = setting_text(there.params[key])
            settings.append(Setting(name, own_value, other_value))
    if here.run_before is None and there.run_before is None:
        settings.append(Setting("encoder", here.encoder.name, there.encoder.name))
    if here.corpus and there.corpus:
        settings.append(Setting("corpus", here.corpus.name, there.corpus.name))
        settings.append(Setting("sentences", f"{here.corpus.size:,}", f"{there.corpus.size:,}"))
    return tuple(setting for setting in settings if setting.here != setting.there)


def first_plan_with_runs(cell: Cell) -> CellPlan | None:
    for leaf in cell.leaves:
        if leaf.plan.specs:
            return leaf.plan
    return None


def stated_settings(plan: CellPlan) -> set[tuple[str, str]]:
    """Collect the settings that a row or its variant states, as (name, value)."""
    recipe = plan.row.run
    assert recipe is not None  # a row with runs has a recipe
    variant = declaration(recipe.method).variant_params.get(recipe.variant or "default", {})
    settings = {**variant, **recipe.params, **recipe.sweep}
    return {(key, str(value)) for key, value in settings.items() if key != "components"}


def setting_text(value) -> str:
    """Write a value as people do: `3e-5`, `0.05`, `avg`."""
    if not isinstance(value, float):
        return str(value)
    if 0 < value < 0.001:
        return np.format_float_scientific(value, trim="-", exp_digits=1)
    return f"{value:g}"
