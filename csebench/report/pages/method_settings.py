"""The page of all settings: the paper's value of each hyper-parameter, ours, and its origin.

It has a section for each method and each component, whose heading is its title.
"""

from collections.abc import Sequence
from itertools import chain

from csebench.plan.catalog.files import SIDE_BY_SIDE, method_labels
from csebench.plan.catalog.registry import COMPONENTS, valid_declarations
from csebench.plan.targets import page
from csebench.report.numbers.method_settings import (
    MethodSetting,
    component_settings_alone,
    component_settings_in,
    hosts_of_component,
    method_settings,
    reported_methods,
)
from csebench.report.numbers.row_settings import setting_name, setting_text
from csebench.report.pages.page import PageContent, Part, TextTable, as_list, heading_link
from csebench.report.provenance import scale_line
from csebench.report.words.method_settings import (
    changes_sentence,
    declared_source,
    origin_text,
    search_title,
    settings_sentence,
)

SETTINGS_HEAD = ["setting", "declared", "source", "here", "here from"]
ANY_METHOD = "any method that adds it"


def settings_page(scale: str) -> PageContent:
    """Show the settings of every method, then of every component."""
    settings_of = {name: method_settings(name, scale) for name in reported_methods()}
    parts: list[Part] = [
        f"**{changes_sentence(chain.from_iterable(settings_of.values()), scale)}**",
        how_to_read(scale),
    ]
    labels = method_labels()
    components = valid_declarations(COMPONENTS)
    titles = [labels[name] for name in settings_of]
    titles += [declared.title for declared in components.values()]
    parts.append(f"Go to: {' · '.join(heading_link(title, title) for title in titles)}.")
    for name, settings in settings_of.items():
        parts += method_parts(name, labels[name], settings, scale)
    for name, declared in components.items():
        parts.append(f"## {declared.title}")
        parts += component_parts(name, scale)
    title = "Settings of all methods, in the papers and here"
    return PageContent(title, scale_line(page(SIDE_BY_SIDE, scale)), parts)


def how_to_read(scale: str) -> str:
    """Explain the columns, and which runs have other values."""
    return (
        "The declared value is that of the paper or of its authors' code; its source says where it"
        " stands, or that the choice is ours. Our value is the declared one, or that of"
        f" config/{scale}.yaml, or the choice of a search on STS-B dev. Most methods"
        " trained without labels share learning rate, temperature and pooler, as SimCSE's search"
        " chose them. Those trained with labels share the choices of a search of their own. A row"
        " of a table may state other values. Runs on other encoders than bert-base use no value"
        " that a search chose."
    )


def method_parts(
    name: str, label: str, settings: Sequence[MethodSetting], scale: str
) -> list[Part]:
    """Show the settings of a method and of its components under a heading."""
    rows = [setting_row(setting, name, scale) for setting in settings]
    sentence = settings_sentence(name, settings, scale)
    return [f"## {label}", sentence, TextTable(SETTINGS_HEAD, rows)]


def component_parts(component: str, scale: str) -> list[Part]:
    """Show the settings of a component in each method that has it, or to which a search added it.

    A component without such a method has the settings that a row gives it by naming it.
    """
    hosts = hosts_of_component(component, scale)
    sentences = []
    rows = []
    for host in hosts:
        settings = component_settings_in(component, host, scale)
        sentences.append(settings_sentence(host, settings, scale))
        title = search_title(host)
        rows += [[title, *setting_row(setting, host, scale)] for setting in settings]
    if not hosts:
        settings = component_settings_alone(component, scale)
        sentences.append("No method has it, and no search added it to one.")
        rows = [[ANY_METHOD, *setting_row(setting, component, scale)] for setting in settings]
    return [as_list(sentences), TextTable(["in", *SETTINGS_HEAD], rows)]


def setting_row(setting: MethodSetting, name: str, scale: str) -> list[str]:
    """Write a setting as a row under SETTINGS_HEAD.

    Args:
        name: the method that has the setting, or the method with added components.
    """
    return [
        setting_name(setting.key),
        setting_text(setting.declared),
        declared_source(setting),
        setting_text(setting.here),
        origin_text(setting, name, scale),
    ]
