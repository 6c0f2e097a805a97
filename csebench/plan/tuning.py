"""Tuning on STS-B dev: the trials of a search, the file that holds them, and the settings that a scale takes from it.

A trial is one point of the grid of the values to try: two ordinary runs, with seeds and subsets of the corpus that no
table uses. The first has the settings of a method that is not searched; the others follow in random order. Where the
choice lies at an end of its values, the next one outward is tried, too. The shared settings of a kind (plan/recipe.py:
SHARED) are searched on its host alone, those of a method without added components: every other search starts from what
these chose, and covers the rest. csebench/run.py runs the trials."""

import math
import random
from collections.abc import Mapping
from itertools import chain, count, islice, product
from pathlib import Path
from statistics import fmean, median, stdev

from pydantic import Field

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up
from csebench.base.files import project_files, read_typed, with_digest, write_json
from csebench.base.project import find, folders
from csebench.plan import catalog
from csebench.plan.declarations import Scale, Seed, Strict, Value
from csebench.plan.papers import Recipe
from csebench.plan.recipe import conditions, host, inherited, make_spec, recipe_defect, recipe_name
from csebench.plan.registry import COMPONENTS, METHODS, declaration, valid_declarations
from csebench.plan.spec import Spec
from csebench.plan.versions import draft_codes

ENCODER = "bert-base"  # role in config/; rows on another encoder keep their settings
SIZE = "1%"  # of the corpus, as on the page of all methods
FIRST_SEED = 47  # the first from here on that no table uses
SEEDS = 2  # of a trial

Settings = dict[str, Value]  # by parameter; `ami.weight` is one of a component


class TrialRun(Strict):
    run: str
    seed: Seed
    model_sha256: str | None = None
    dev: float | None = Field(default=None, ge=-1, le=1)  # Spearman on STS-B dev of the step that is kept
    failure: str | None = None  # why there is no such score, and none at another try


class Trial(Strict):
    settings: Settings
    runs: list[TrialRun] = Field(min_length=1)

    @property
    def failure(self) -> str | None:
        return next((run.failure for run in self.runs if run.failure is not None), None)

    @property
    def dev(self) -> float | None:
        """Mean over the seeds; None where a run failed."""
        scores = [run.dev for run in self.runs if run.dev is not None]
        return fmean(scores) if len(scores) == len(self.runs) else None


class Search(Strict):
    """results/<scale>/tuning/<name>.json."""

    name: str  # `micse`, or `ct+ami` for a method with components that it does not have by itself
    planned: int = Field(ge=1)  # trials
    spec: Spec  # of the first run; the others differ from it in settings and seed only
    trials: list[Trial] = Field(min_length=1)
    chosen: Settings | None  # those of `best_trial`; None: all trials failed


class SearchFile(Search):
    """The same as it is in the file."""

    sha256: str  # of the other keys


def best_trial(trials: list[Trial]) -> Trial | None:
    """Of the trials whose score is within one seed deviation of the highest: the one that changes the fewest settings
    of the first trial, of several the highest. None where all failed."""
    scored = [(trial, trial.dev) for trial in trials if trial.dev is not None]
    if not scored:
        return None
    least, first = max(dev for _, dev in scored) - seed_deviation(trials), trials[0].settings
    near = [(trial, dev) for trial, dev in scored if dev >= least]
    return min(near, key=lambda pair: (sum(first[k] != v for k, v in pair[0].settings.items()), -pair[1]))[0]


def seed_deviation(trials: list[Trial]) -> float:
    """Standard deviation between the runs of a trial, the median over trials; 0 with one seed."""
    scores = [[run.dev for run in trial.runs if run.dev is not None] for trial in trials]
    return median([stdev(of_trial) for of_trial in scores if len(of_trial) > 1] or [0.0])


# ---------------------------------------------------------------- trials


def search_space(name: str) -> dict[str, list[Value]]:
    """The values to try, by parameter: of a method what it does not inherit, with its components; of added components
    theirs alone. A weight of a component is tried at 0, too. Empty where there is nothing to try."""
    method, *added = name.split("+")
    declared, space = declaration(method), {}
    if not added:
        space = {key: values for key, values in declared.search.items() if key not in inherited(declared)}
    for component in sorted(added or declared.components):
        for key, values in declaration(component, COMPONENTS).search.items():
            space[f"{component}.{key}"] = [0.0, *values] if key == "weight" else values
    return space


def searches_before(name: str) -> list[str]:
    """The searches that one starts from: on the host of its kind; of the method without the added components."""
    method, *added = name.split("+")
    declared = declaration(method)
    return [host(declared.kind)] * bool(inherited(declared)) + [method] * bool(added and search_space(method))


def tunable() -> list[str]:
    """Methods that have something to try."""
    return [name for name in valid_declarations(METHODS) if not is_broken(name) and search_space(name)]


def plan_trials(name: str, scale_name: str, number: int | None = None) -> list[tuple[Settings, list[Spec]]]:
    """The settings and runs of each trial of the grid, or of the first `number`."""
    space, untuned = search_space(name), plan_trial(name, {}, scale_name)
    if not space:
        taken = f" but what it takes from {' and '.join(before)}" if (before := searches_before(name)) else ""
        raise BadInput(f"tune: {name} has nothing to try{taken}. Methods that have: {', '.join(tunable())}.")
    first = {key: untuned.settings[key] for key in space}
    grid = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    random.Random(name).shuffle(grid)
    tried = [first, *(settings for settings in grid if settings != first)][:number]
    return [with_runs(plan_trial(name, settings, scale_name), settings, scale_name) for settings in tried]


def with_runs(spec: Spec, settings: Settings, scale_name: str) -> tuple[Settings, list[Spec]]:
    filled = {key: spec.settings[key] for key in settings}
    return filled, [spec.with_seed(seed) for seed in trial_seeds(catalog.scale(scale_name))]


def plan_outward(name: str, scale_name: str, trials: list[Trial]) -> list[tuple[Settings, list[Spec]]]:
    """The trials that follow those made: where a chosen number is the largest or the smallest that was tried, the next
    one outward, as far away as its neighbour by ratio. None at 0, or where that was tried before or is not allowed."""
    best, further = best_trial(trials), []
    chosen = best.settings if best else {}
    for key, value in chosen.items():
        tried = sorted({v for trial in trials if isinstance(v := trial.settings[key], int | float)})
        if len(tried) < 3 or value not in (tried[0], tried[-1]) or value == 0:
            continue
        neighbour = tried[1] if value == tried[0] else tried[-2]
        settings = chosen | {key: float(f"{value * value / neighbour:.1g}")}
        try:
            planned = with_runs(plan_trial(name, settings, scale_name), settings, scale_name)
        except BadInput:  # outside of what the parameter allows
            continue
        if all(trial.settings != planned[0] for trial in trials):
            further.append(planned)
    return further


def plan_trial(name: str, settings: Settings, scale_name: str) -> Spec:
    """The run of a trial, with what the searches before chose."""
    scale, (method, *added) = catalog.scale(scale_name), name.split("+")
    encoder = look_up(f"encoder of config/{scale_name}.yaml", ENCODER, scale.encoders, "tune")
    size = look_up(f"size of config/{scale_name}.yaml", SIZE, scale.sizes, "tune")
    declared = declaration(method)
    if name != (canonical := recipe_name(declared, {*declared.components, *added})):
        raise BadInput(f"tune: {name}: write {canonical}.")
    recipe = Recipe(method=method, components={component: {} for component in added})
    searches = [search for base in searches_before(name) if (search := made_search(base, scale_name))]
    tuned = {search.name: search.chosen or {} for search in searches} | {name: settings}
    return make_spec(recipe, encoder, size, trial_seeds(scale)[0], conditions(scale, tuned), f"tune: {name}")


def trial_seeds(scale: Scale) -> list[int]:
    """The seeds, also of the subsets, of the runs of each trial at a scale: no table uses them."""
    used = {*chain(scale.seeds, *scale.seeds_by_size.values(), *scale.seeds_by_table.values())}
    return [*islice((seed for seed in count(FIRST_SEED) if seed not in used), SEEDS)]


def settings_text(settings: Settings) -> str:
    """`learning_rate 3e-05, temperature 0.05`"""
    return ", ".join(f"{key} {value}" for key, value in settings.items())


# ---------------------------------------------------------------- files


def search_path(name: str, scale_name: str) -> Path:
    return catalog.results_folder(scale_name) / "tuning" / f"{name}.json"


def search_files(scale_name: str) -> list[Path]:
    """The files of the searches that were made at a scale, without those of broken methods and components."""
    names = project_files(search_path("", scale_name).parent, "*.json")
    return [search_path(name, scale_name) for name in names if not is_broken(name)]


def read_search(path: Path) -> Search:
    """Raises BadInput where the file is not a search, or that of another name."""
    remedy = "Restore the file, or delete it and search again."
    _, search = read_typed(find(path), SearchFile, remedy)
    if search.name != path.stem:
        raise BadInput(f"{path}: name: is {search.name!r}, but the file is {path.name}. {remedy}")
    return search


def made_search(name: str, scale_name: str) -> Search | None:
    """The search that was made of a name at a scale; None where there is no file of it."""
    path = search_path(name, scale_name)
    return read_search(path) if find(path).exists() else None


def made_trials(name: str, scale_name: str, planned: list[tuple[Settings, list[Spec]]]) -> list[Trial]:
    """The trials that the file of a search has; none of one that was made under other settings than those of
    `plan_trials` today, or with other seeds."""
    (settings, untuned), *_ = planned
    search = made_search(name, scale_name)
    is_current = search and search.spec == untuned[0] and search.trials[0].settings == settings
    return search.trials if search and is_current and len(search.trials[0].runs) == len(untuned) else []


def write_search(search: Search, scale_name: str) -> None:
    content = search.model_dump(exclude_none=True) | {"chosen": search.chosen}
    write_json(folders()[-1] / search_path(search.name, scale_name), with_digest(content))


# ---------------------------------------------------------------- what a scale takes


@cached
def tuned_settings(scale_name: str) -> Mapping[str, Settings]:
    """What searches chose, by name; empty for a scale that is not `tuned`."""
    if not catalog.scale(scale_name).tuned:
        return {}
    key = f"config/{scale_name}.yaml: tuned"
    searches = [read_search(path) for path in search_files(scale_name)]
    searches = [search for search in searches if not is_of_other_draft(search)]
    if not searches:
        folder = search_path("", scale_name).parent
        raise BadInput(f"{key}: no search in {folder}/; `{command(['METHOD'], scale_name)}` makes one.")
    for search in searches:
        if reason := defect(search, scale_name):
            path, again = search_path(search.name, scale_name), command([search.name], scale_name, search.planned)
            raise BadInput(f"{path}: {reason}; `{again}` makes it again.")
    most = max(search.planned for search in searches)
    values = {search.name: math.prod(map(len, search_space(search.name).values())) for search in searches}
    if any(search.planned < min(most, values[search.name]) for search in searches):  # than another, and than it could
        numbers = ", ".join(f"{search.name} {search.planned}" for search in searches)
        raise BadInput(f"{key}: different numbers of trials ({numbers}); `csebench tune` all with one --trials.")
    return {search.name: search.chosen or {} for search in searches}


def is_of_other_draft(search: Search) -> bool:
    """Whether a search was made with code of a draft that is no longer its code (plan/versions.py)."""
    return bool(search.spec.code) and search.spec.code != draft_codes(search.spec.method, search.spec.components)


def is_broken(name: str) -> bool:
    """Whether a file that `ct+ami` needs is not valid."""
    method, *added = name.split("+")
    return recipe_defect(method, added) is not None


def defect(search: Search, scale_name: str) -> str | None:
    """Why nothing can be taken from a search; None where it can. One that covers shared settings that are inherited
    today, or those of the method where a component is added, stays what it is."""
    space = search_space(search.name)
    inherited_today = {key: value for key, value in search.trials[0].settings.items() if key not in space}
    if changed := differences(search.spec, plan_trial(search.name, inherited_today, scale_name)):
        return f"made under other settings ({', '.join(changed)})"
    for number, trial in enumerate(search.trials[1:], 1):
        strange = [f"{key} {value}" for key, value in trial.settings.items() if value not in space.get(key, [value])]
        before = (search.trials[:count] for count in range(number, 0, -1))
        outward = (settings for trials in before for settings, _ in plan_outward(search.name, scale_name, trials))
        if strange and trial.settings not in outward:
            return f"{strange[0]} is no value that `csebench tune` tries"
    if len(search.trials) < search.planned:
        return f"{len(search.trials)} of {search.planned} trials are made"
    return "every trial failed" if search.chosen is None else None


def differences(first: Spec, second: Spec) -> list[str]:
    """The settings, versions and data in which two runs differ."""
    one, two = (
        spec.model_dump(exclude={"params", "components"})
        | spec.settings
        | {f"{name}.version": component.version for name, component in spec.components.items()}
        for spec in (first, second)
    )
    return sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))


def command(methods: list[str], scale_name: str, trials: int | str = "N") -> str:
    return f"csebench tune {' '.join(methods)} --scale {scale_name} --trials {trials}"
