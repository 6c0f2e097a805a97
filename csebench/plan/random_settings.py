"""Random settings: compare rows at many settings, so that the answer does not hang on one search.

A table that states `random_settings: 24` has 24 runs in each row. Each run has a seed of its own,
and the seed decides its settings. Two runs with the same seed have the same value of every drawn
setting that both of them have. So the seed pairs the runs of two rows.

- Settings that methods share are drawn from the `prior` of the scale.
- A setting of one method or component is drawn from the values that `csebench tune` tries for it.
  Two rows with the same component share its draws.

A draw depends on the name of the setting and on the seed, and on nothing else. So the first 8 of 24
random settings are the settings of a table that states 8.
"""

import random
from collections.abc import Iterable
from math import log10

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.plan.recipe import shared_settings
from csebench.plan.schema.declarations import Declaration, Scale, Span, Value


def check_prior(scale: Scale, otherwise: str = "") -> None:
    """Raise BadInput if a scale has no prior.

    Args:
        otherwise: what the user can do instead of stating one.
    """
    if not scale.prior:
        raise BadInput(
            f"config/{scale.scale}.yaml: prior: is missing, so that no settings can be drawn."
            f" State one{otherwise}."
        )


def draw_settings(
    method: Declaration, components: Iterable[str], scale: Scale, seed: int
) -> dict[str, Value]:
    """Draw the settings of a run.

    Args:
        components: names of all components of the run.

    Returns:
        Values by setting, with `ami.weight` for a setting of a component. Empty for a method that
        is not trained.
    """
    if not method.is_trained:
        return {}
    drawn: dict[str, Value] = {}
    shared = shared_settings(method)
    for key in shared:
        if key in scale.prior:
            drawn[key] = draw_value(key, scale.prior[key], seed)
    for key, values in method.search.items():
        if key not in shared:
            drawn[key] = draw_value(f"{method.name}.{key}", values, seed)
    for name in components:
        for key, values in declaration(name, COMPONENTS).search.items():
            setting = f"{name}.{key}"
            drawn[setting] = draw_value(setting, values, seed)
    return drawn


def draw_value(name: str, choices: Span | Iterable[Value], seed: int) -> Value:
    """Draw the value of one setting from a span, rounded to two significant digits, or from a list.

    Numbers of a span are drawn evenly on a logarithmic axis.
    """
    uniform = random.Random(f"{name} {seed}").random()
    if isinstance(choices, Span):
        exponent = log10(choices.low) + uniform * log10(choices.high / choices.low)
        return float(f"{10**exponent:.1e}")
    values = list(choices)
    return values[int(uniform * len(values))]
