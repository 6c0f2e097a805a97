"""The hyper-parameters of methods and components: the declared value, our value, and its origin.

A declaration states the value of the paper or of its authors' code. A scale replaces some of these
values, and searches on STS-B dev choose others (csebench/plan/recipe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import (
    COMPONENTS,
    METHODS,
    declaration,
    fill,
    valid_declarations,
)
from csebench.plan.recipe import (
    SettingLayers,
    by_component,
    choices,
    choosing_searches,
    resolve,
)
from csebench.plan.schema.declarations import Declaration, Value
from csebench.plan.tuning import tuned_settings


class Origin(StrEnum):
    """Where our value of a hyper-parameter comes from."""

    DECLARED = "declared value"  # neither the scale nor a search changes it
    SCALE = "scale"  # config/<scale>.yaml changes the declared value
    SEARCH = "search"  # a search on STS-B dev chose it


@dataclass(frozen=True)
class MethodSetting:
    """A hyper-parameter of a method or component, as declared and as our runs have it."""

    key: str  # `learning_rate`; `rtd.weight` belongs to a component
    declared: Value  # the value of the paper or of its authors' code
    source: str  # where the declared value stands; empty: it is the trainer's default
    here: Value  # the value at the scale
    origin: Origin  # of the value at the scale
    search: str = ""  # the search that chose the value: `simcse`, `ct+ami`


def reported_methods() -> list[str]:
    """List the methods that have settings to report: those that start from an encoder."""
    methods = valid_declarations(METHODS)
    return [name for name, declared in methods.items() if declared.loads_encoder]


def method_settings(name: str, scale_name: str) -> list[MethodSetting]:
    """List the settings of a method and of its components at a scale.

    They are those of a row that states no values of its own.

    Args:
        name: a method, or a method with added components: `ct+ami`.

    Raises:
        BadInput: the name or the scale is wrong, or no settings can be taken from a search.
    """
    method_name, *added = name.split("+")
    method = declaration(method_name)
    components = sorted({*method.components, *added})
    tuned = tuned_settings(scale_name)
    searches = choosing_searches(method, components, tuned)
    chosen_by_unit = by_component(choices(method, components, tuned))

    layers = SettingLayers(search=chosen_by_unit.get("", {}))
    settings = settings_of_unit(method, layers, searches, scale_name)
    for component in components:
        layers = SettingLayers(
            method=method.components.get(component, {}),
            search=chosen_by_unit.get(component, {}),
        )
        declared = declaration(component, COMPONENTS)
        settings += settings_of_unit(declared, layers, searches, scale_name, method_name)
    return settings


def settings_of_unit(
    declared: Declaration,
    layers: SettingLayers,
    searches: Mapping[str, str],
    scale_name: str,
    method: str = "",
) -> list[MethodSetting]:
    """List the settings of a method or of a component, without those of other files.

    Args:
        layers: what the method sets for its component, and what searches chose.
        searches: the search that chose each setting, with `rtd.weight` for one of a component.
        method: the method that has the component; empty if none has.
    """
    scale = read_scale(scale_name)
    where = f"config/{scale_name}.yaml: {declared.name}"
    declared_values = declared.unstated | fill(declared, dict(layers.method), where)
    prefix = ""
    if declared.kind == "component":
        prefix = f"{declared.name}."

    settings = []
    for key, here in resolve(declared, layers, scale, where).items():
        _, source = declared.params.get(key, ("", ""))
        if key in layers.method:
            source = f"set by methods/{method}.py"
        search = ""
        if key in layers.search:
            origin = Origin.SEARCH
            search = searches[prefix + key]
        elif here != declared_values[key]:
            origin = Origin.SCALE  # no row, variant or sweep is here to change it
        else:
            origin = Origin.DECLARED
        settings.append(
            MethodSetting(prefix + key, declared_values[key], source, here, origin, search)
        )
    return settings


# ---------------------------------------------------------------- components


def hosts_of_component(component: str, scale_name: str) -> list[str]:
    """Name what has a component: methods, and methods to which a search added it.

    Returns:
        names such as `diffcse` and `simcse+ami`, methods that have the component first.
    """
    hosts = []
    for name, declared in valid_declarations(METHODS).items():
        if component in declared.components:
            hosts.append(name)
    for search in tuned_settings(scale_name):
        _, *added = search.split("+")
        if component in added:
            hosts.append(search)
    return hosts


def component_settings_in(component: str, host: str, scale_name: str) -> list[MethodSetting]:
    """List the settings of a component in a method that has it, or to which it is added."""
    settings = method_settings(host, scale_name)
    return [setting for setting in settings if setting.key.startswith(f"{component}.")]


def component_settings_alone(component: str, scale_name: str) -> list[MethodSetting]:
    """List the settings of a component that no method has and no search added."""
    declared = declaration(component, COMPONENTS)
    return settings_of_unit(declared, SettingLayers(), {}, scale_name)
