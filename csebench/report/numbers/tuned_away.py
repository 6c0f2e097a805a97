"""Terms that a search on STS-B dev has tuned away, as values.

A search tries weights of a term of a loss. If a weight of next to nothing scores as well as the
chosen one, the method trains as if it had no such term. Comparing it with a row that lacks the term
then says nothing about the term at the paper's weight. Searches are read in
csebench/plan/tuning.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from csebench.base.caches import cached_by_folder
from csebench.plan.catalog.registry import declaration
from csebench.plan.grids import CellPlan
from csebench.plan.schema.spec import Spec
from csebench.plan.tuning import Search, Settings, made_search, seed_deviation, tuned_settings
from csebench.report.numbers.cells import Cell
from csebench.report.numbers.row_settings import first_plan_with_runs, is_trained

# Share of the paper's weight up to which a weight is next to nothing. No method declares such a
# value but 0: a search comes this low only outward.
NEXT_TO_NOTHING = 0.01


@dataclass(frozen=True)
class TriedWeight:
    """A weight that a search tried, with the score of its trial."""

    weight: float
    dev: float  # mean Spearman on STS-B dev, in points


@dataclass(frozen=True)
class WeightSearch:
    """How a search chose the weight of a term, with the other settings as chosen."""

    method: str  # name of the search: `micse`, or `ct+ami`
    parameter: str  # `reconstruction`, or `ami.weight` of a component
    values: int  # weights tried
    strongest: float  # weight
    weakest: TriedWeight
    chosen: TriedWeight
    untuned: TriedWeight | None  # the paper's weight; None if not tried with the chosen settings


@dataclass(frozen=True)
class TunedAway:
    """A term of a row that a search has tuned away."""

    row: str  # label
    search: WeightSearch


def terms_tuned_away(pairs: Sequence[tuple[Cell, Cell]], scale: str) -> tuple[TunedAway, ...]:
    """List the tuned-away terms that one of two rows has and the other lacks.

    A row with the weight 0 lacks the term. No term is listed if one of the rows is not trained, or
    if the rows have random settings, which no search chose.
    """
    terms: list[TunedAway] = []
    for cell, base in pairs:
        first = first_plan_with_runs(cell)
        second = first_plan_with_runs(base)
        if first is not None and second is not None:
            terms += own_terms(first, second, scale)
            terms += own_terms(second, first, scale)
    return tuple(dict.fromkeys(terms))


def own_terms(plan: CellPlan, other: CellPlan, scale: str) -> Iterator[TunedAway]:
    """Yield the tuned-away terms of a row that the other row lacks."""
    if plan.has_random_settings:  # random settings come from no search
        return
    spec = plan.specs[0]
    settings_of_other = other.specs[0].settings
    if not is_trained(spec) or not is_trained(other.specs[0]):
        return
    for search in searches_without_effect(scale):
        is_used = applies_to(search, spec)
        is_shared = settings_of_other.get(search.parameter, 0) != 0
        if is_used and not is_shared:
            yield TunedAway(plan.row.label, search)


def applies_to(search: WeightSearch, spec: Spec) -> bool:
    """Whether a run has the method and components of a search, and the weight that it chose."""
    method, *added = search.method.split("+")
    if spec.method != method or not set(added) <= spec.components.keys():
        return False
    return spec.settings.get(search.parameter) == search.chosen.weight


@cached_by_folder
def searches_without_effect(scale: str) -> tuple[WeightSearch, ...]:
    """Collect the terms that are tuned away at a scale; none if the scale is not tuned."""
    without_effect: list[WeightSearch] = []
    for name in tuned_settings(scale):
        search = made_search(name, scale)
        if search is not None:
            without_effect += weights_without_effect(search)
    return tuple(without_effect)


def weights_without_effect(search: Search) -> Iterator[WeightSearch]:
    """Yield the weights that could be next to nothing.

    Such a value scores no lower than the chosen one.

    A score is lower only if it is lower by more than the deviation between seeds. A weight is
    judged by the trials whose other settings are the chosen ones. Nothing is said of a weight if
    the search tried no value that is next to nothing.
    """
    for parameter, chosen in (search.chosen or {}).items():
        if not isinstance(chosen, float) or not is_weight(search.name, parameter):
            continue
        devs = devs_by_weight(search, parameter)
        if chosen not in devs:  # a file that was edited
            continue
        weakest = min(devs)
        of_paper = search.trials[0].settings[parameter]
        is_next_to_nothing = weakest <= NEXT_TO_NOTHING * float(of_paper)
        lowest_equal = devs[chosen] - 100 * seed_deviation(search.trials)
        if is_next_to_nothing and len(devs) > 1 and devs[weakest] >= lowest_equal:
            yield weight_search(search, parameter, chosen, devs)


def is_weight(search_name: str, parameter: str) -> bool:
    """Whether a parameter of a search weighs a term of the loss.

    It does if it is the `weight` of a component, or if its method declares it (`weights`).
    """
    component, _, name = parameter.rpartition(".")
    if component:
        return name == "weight"
    return parameter in declaration(search_name.partition("+")[0]).weights


def devs_by_weight(search: Search, parameter: str) -> dict[float, float]:
    """Read the score of each weight that was tried with the other settings as chosen, in points."""
    chosen = without(search.chosen or {}, parameter)
    devs = {}
    for trial in search.trials:
        weight = trial.settings[parameter]
        is_alike = without(trial.settings, parameter) == chosen
        if isinstance(weight, float) and trial.dev is not None and is_alike:
            devs[weight] = 100 * trial.dev
    return devs


def without(settings: Settings, parameter: str) -> Settings:
    """Leave one parameter out of settings."""
    return {key: value for key, value in settings.items() if key != parameter}


def weight_search(
    search: Search, parameter: str, chosen: float, devs: dict[float, float]
) -> WeightSearch:
    """Describe how a search chose a weight.

    Args:
        devs: score of each weight, in points.
    """
    untuned = None
    weight_before = search.trials[0].settings[parameter]
    if isinstance(weight_before, float) and weight_before in devs:
        untuned = TriedWeight(weight_before, devs[weight_before])
    weakest = min(devs)
    return WeightSearch(
        method=search.name,
        parameter=parameter,
        values=len(devs),
        strongest=max(devs),
        weakest=TriedWeight(weakest, devs[weakest]),
        chosen=TriedWeight(chosen, devs[chosen]),
        untuned=untuned,
    )
