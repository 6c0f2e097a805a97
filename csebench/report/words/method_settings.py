"""Words for the hyper-parameters of methods: how ours differ from declared ones, and why."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.report.numbers.method_settings import MethodSetting, Origin
from csebench.report.numbers.row_settings import setting_name, setting_text

DEFAULT_SOURCE = "the trainer's default"


def changes_sentence(settings: Iterable[MethodSetting], scale: str) -> str:
    """Count how many settings differ from the declared ones, by where our values come from."""
    total = 0
    changes: Counter[Origin] = Counter()
    for setting in settings:
        total += 1
        if setting.here != setting.declared:
            changes[setting.origin] += 1
    return (
        f"At scale {scale}, {changes.total()} of {total} settings differ from the declared ones:"
        f" config/{scale}.yaml sets {changes[Origin.SCALE]}, and searches chose"
        f" {changes[Origin.SEARCH]}."
    )


def settings_sentence(name: str, settings: Sequence[MethodSetting], scale: str) -> str:
    """Say how settings differ from the declared ones: `DiffCSE: learning rate 7e-6 …, 3e-5 here`.

    A setting that a search chose is given with both values. Settings of the scale are only named,
    because they are the same for most methods.

    Args:
        name: the method, or the method with added components: `ct+ami`.
    """
    changed = [setting for setting in settings if setting.here != setting.declared]
    title = search_title(name)
    if not changed:
        return f"{title}: every value is the declared one."
    clauses = []
    of_scale = []
    for setting in changed:
        if setting.origin == Origin.SEARCH:
            clauses.append(search_clause(setting, name))
        else:
            of_scale.append(setting_name(setting.key))
    if of_scale:
        clauses.append(f"config/{scale}.yaml sets {', '.join(of_scale)}")
    return f"{title}: {'; '.join(clauses)}."


def search_clause(setting: MethodSetting, name: str) -> str:
    """Word a value that a search chose: `learning rate 7e-6 …, 3e-5 here, from SimCSE's search`."""
    declared = f"{setting_text(setting.declared)} declared ({short_source(setting)})"
    search = "its own search"
    if setting.search != name:
        search = f"{short_title(setting.search)}'s search"
    here = f"{setting_text(setting.here)} here"
    return f"{setting_name(setting.key)} {declared}, {here}, from {search}"


def short_source(setting: MethodSetting) -> str:
    """Shorten the source of a declared value to the place: `run_diffcse.sh`, `sec. 3.1`."""
    place, *_ = re.split(r"[:;,] ", declared_source(setting))
    return place


def declared_source(setting: MethodSetting) -> str:
    """Say where a declared value stands."""
    return setting.source or DEFAULT_SOURCE


def origin_text(setting: MethodSetting, name: str, scale: str) -> str:
    """Say where our value comes from: `config/mini.yaml`, `search on SimCSE (unsupervised)`.

    Args:
        name: the method, or the method with added components.
    """
    match setting.origin:
        case Origin.DECLARED:
            return "declared"
        case Origin.SCALE:
            return f"config/{scale}.yaml"
        case Origin.SEARCH:
            if setting.search == name:
                return "own search"
            return f"search on {search_title(setting.search)}"


def short_title(search: str) -> str:
    """Name what was tuned without remarks in parentheses: `SimCSE` for SimCSE (unsupervised)."""
    return re.sub(r" \([^)]*\)", "", search_title(search))


def search_title(search: str) -> str:
    """Name what was tuned: the title of a method, and of the components that were added to it."""
    method, *components = search.split("+")
    titles = [declaration(method).title]
    titles += [declaration(component, COMPONENTS).title for component in components]
    return " + ".join(titles)
