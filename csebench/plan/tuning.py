"""Tuning on STS-B dev: plan the trials of a search, read and write its file, and choose settings.

A search tries values of hyper-parameters. A trial is one combination of these values. It has SEEDS
ordinary runs, with seeds and subsets of the corpus that no table uses. The first trial has the
settings of the method before tuning. The other trials follow in random order. If the best value of
a number is the smallest or the largest one, the next value outward is tried, too.

There are three kinds of search:

1. on the host of a kind of methods (plan/recipe.py: HOSTS), which also chooses the settings that
   methods of this kind share (SEARCHED_TOGETHER),
2. on another method, which takes the shared settings from the host and chooses the others,
3. on a method with added components, which takes the settings of the method and chooses those of
   the components.

csebench/study/search.py runs the trials.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count, islice, product
from pathlib import Path
from statistics import fmean, median, stdev

from pydantic import Field

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up
from csebench.base.files import project_files, read_typed, with_digest, write_json
from csebench.base.project import find, folders
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, valid_declarations
from csebench.plan.code_versions import draft_codes
from csebench.plan.recipe import conditions, host, inherited, make_spec, recipe_defect, recipe_name
from csebench.plan.schema.declarations import Scale, Seed, Strict, Value
from csebench.plan.schema.paper import Recipe
from csebench.plan.schema.spec import Spec

ENCODER = "bert-base"  # role in config/; rows on another encoder keep their settings
SIZE = "1%"  # of the corpus, as on the page of all methods
FIRST_SEED = 47  # trials take the first seeds that no table uses, counted from here
SEEDS = 2  # number of runs of a trial

Settings = dict[str, Value]  # hyper-parameter -> value; `ami.weight` is one of a component


class TrialRun(Strict):
    """A run of a trial, and its score."""

    run: str  # id of the run
    seed: Seed
    model_sha256: str | None = None
    dev: float | None = Field(default=None, ge=-1, le=1)  # Spearman on STS-B dev of the kept step
    failure: str | None = None  # why the run has no score; a retry would fail, too


class Trial(Strict):
    """Settings that were tried, and the runs that have them."""

    settings: Settings
    runs: list[TrialRun] = Field(min_length=1)

    @property
    def failure(self) -> str | None:
        """Why the first failed run failed; None if no run failed."""
        return next((run.failure for run in self.runs if run.failure is not None), None)

    @property
    def dev(self) -> float | None:
        """Mean score over the seeds; None if a run failed."""
        scores = [run.dev for run in self.runs if run.dev is not None]
        if len(scores) < len(self.runs):
            return None
        return fmean(scores)


class Search(Strict):
    """The trials of a search, and the settings that it chose."""

    name: str  # `micse`, or `ct+ami` for a method with added components
    planned: int = Field(ge=1)  # number of trials; a search with fewer was stopped
    spec: Spec  # the first run; other runs differ from it only in settings and seed
    trials: list[Trial] = Field(min_length=1)
    chosen: Settings | None  # settings of `best_trial`; None: all trials failed


class SearchFile(Search):
    """A search in its file, results/<scale>/tuning/<name>.json."""

    sha256: str  # of the other keys


@dataclass(frozen=True)
class PlannedTrial:
    """Settings to be tried, complete and typed, and the runs that have them."""

    settings: Settings
    specs: list[Spec]  # one per seed


# ---------------------------------------------------------------- the choice


def best_trial(trials: list[Trial]) -> Trial | None:
    """Choose among the trials whose score is within one seed deviation of the highest score.

    The choice is the trial that changes the fewest settings of the first trial. Among several such
    trials, it is the one with the highest score.

    Returns:
        None if all trials failed.
    """
    scores = [trial.dev for trial in trials if trial.dev is not None]
    if not scores:
        return None
    least = max(scores) - seed_deviation(trials)
    first = trials[0].settings

    def fewest_changes_then_highest(trial: Trial) -> tuple[int, float]:
        assert trial.dev is not None  # for type checkers
        changed = [key for key, value in trial.settings.items() if value != first[key]]
        return len(changed), -trial.dev

    near_the_best = [trial for trial in trials if trial.dev is not None and trial.dev >= least]
    return min(near_the_best, key=fewest_changes_then_highest)


def seed_deviation(trials: list[Trial]) -> float:
    """Return the median over trials of the standard deviation between the runs of a trial.

    Returns:
        0 if no trial has two scores.
    """
    deviations = []
    for trial in trials:
        scores = [run.dev for run in trial.runs if run.dev is not None]
        if len(scores) > 1:
            deviations.append(stdev(scores))
    return median(deviations or [0.0])


# ---------------------------------------------------------------- trials


def search_space(name: str) -> dict[str, list[Value]]:
    """List the values to try, by parameter; empty if there is nothing to try.

    A search on a method covers the parameters that the method does not inherit, and the parameters
    of its own components. A search with added components covers only their parameters. The weight
    of a component is also tried at 0.
    """
    method, *added = name.split("+")
    declared = declaration(method)
    space: dict[str, list[Value]] = {}
    if not added:
        shared = inherited(declared)
        space = {key: values for key, values in declared.search.items() if key not in shared}
    for component in sorted(added or declared.components):
        for key, declared_values in declaration(component, COMPONENTS).search.items():
            values = declared_values
            if key == "weight":
                values = [0.0, *declared_values]
            space[f"{component}.{key}"] = values
    return space


def searches_before(name: str) -> list[str]:
    """Name the searches whose choices a search starts from.

    These are the search on the host of the method's kind, and the search on the method without
    added components.
    """
    method, *added = name.split("+")
    declared = declaration(method)
    searches = []
    if inherited(declared):
        searches.append(host(declared.kind))
    if added and search_space(method):
        searches.append(method)
    return searches


def tunable() -> list[str]:
    """Name the methods that have something to try."""
    valid = [name for name in valid_declarations(METHODS) if not is_broken(name)]
    return [name for name in valid if search_space(name)]


def plan_trials(name: str, scale_name: str, number: int | None = None) -> list[PlannedTrial]:
    """Plan a trial for every combination of the values to try, or the first `number` of them.

    Raises:
        BadInput: there is nothing to try, or the name or the scale is wrong.
    """
    space = search_space(name)
    untuned = plan_trial(name, {}, scale_name)
    if not space:
        message = f"tune: {name} has nothing to try"
        before = searches_before(name)
        if before:
            message += f" but what it takes from {' and '.join(before)}"
        raise BadInput(f"{message}. Methods that have: {', '.join(tunable())}.")
    first = {key: untuned.settings[key] for key in space}
    grid = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    random.Random(name).shuffle(grid)
    others = [settings for settings in grid if settings != first]
    return [with_seeds(name, settings, scale_name) for settings in [first, *others][:number]]


def plan_outward(name: str, scale_name: str, trials: list[Trial]) -> list[PlannedTrial]:
    """Plan trials beyond the smallest and largest values that were tried (`outward_settings`).

    A value that its parameter does not allow is left out. So is a trial that was made.

    Args:
        trials: the trials that were made.
    """
    further = []
    for settings in outward_settings(trials):
        try:
            planned = with_seeds(name, settings, scale_name)
        except BadInput:  # the parameter does not allow it
            continue
        if all(trial.settings != planned.settings for trial in trials):
            further.append(planned)
    return further


def outward_settings(trials: list[Trial]) -> list[Settings]:
    """List the settings of the best trial with one number moved outward, once for each such number.

    A number is moved if it is the smallest or the largest of the numbers tried for its parameter.
    It moves by the factor between its neighbour and itself, and is rounded to one digit: after 0.1
    and 0.2 comes 0.4. It is not moved if fewer than three numbers were tried. Nor is it if there is
    no such factor, because one of the two is 0 or their signs differ.
    """
    best = best_trial(trials)
    if best is None:
        return []
    further = []
    for key, value in best.settings.items():
        numbers = [trial.settings[key] for trial in trials]
        tried = sorted({number for number in numbers if isinstance(number, int | float)})
        if len(tried) < 3 or value not in (tried[0], tried[-1]):
            continue
        neighbour = tried[1] if value == tried[0] else tried[-2]
        if value * neighbour <= 0:
            continue
        outward = float(f"{value * value / neighbour:.1g}")  # one digit
        further.append(best.settings | {key: outward})
    return further


def with_seeds(name: str, settings: Settings, scale_name: str) -> PlannedTrial:
    """Plan the runs of a trial, one per seed."""
    spec = plan_trial(name, settings, scale_name)
    seeds = trial_seeds(catalog.scale(scale_name))
    complete = {key: spec.settings[key] for key in settings}
    return PlannedTrial(complete, [spec.with_seed(seed) for seed in seeds])


def plan_trial(name: str, settings: Settings, scale_name: str) -> Spec:
    """Make the first run of a trial. Settings that are not tried come from earlier searches.

    A search with other code of its method counts as not made.
    """
    method, *added = name.split("+")
    declared = declaration(method)
    scale = catalog.scale(scale_name)
    encoder = look_up(f"encoder of config/{scale_name}.yaml", ENCODER, scale.encoders, "tune")
    size = look_up(f"size of config/{scale_name}.yaml", SIZE, scale.sizes, "tune")
    canonical = recipe_name(declared, {*declared.components, *added})
    if name != canonical:
        raise BadInput(f"tune: {name}: write {canonical}.")
    tuned = {}
    for before in searches_before(name):
        search = made_search(before, scale_name)
        if search is not None and not is_of_other_code(search):
            tuned[search.name] = search.chosen or {}
    tuned[name] = settings
    recipe = Recipe(method=method, components={component: {} for component in added})
    seed = trial_seeds(scale)[0]
    return make_spec(recipe, encoder, size, seed, conditions(scale, tuned), f"tune: {name}")


def trial_seeds(scale: Scale) -> list[int]:
    """Choose the seeds of the runs of each trial, and of their subsets. No table uses them."""
    used = {*chain(scale.seeds, *scale.seeds_by_size.values(), *scale.seeds_by_table.values())}
    unused = (seed for seed in count(FIRST_SEED) if seed not in used)
    return [*islice(unused, SEEDS)]


def settings_text(settings: Settings) -> str:
    """Word settings: `learning_rate 3e-05, temperature 0.05`."""
    return ", ".join(f"{key} {value}" for key, value in settings.items())


# ---------------------------------------------------------------- files


def search_path(name: str, scale_name: str) -> Path:
    return catalog.results_folder(scale_name) / "tuning" / f"{name}.json"


def search_files(scale_name: str) -> list[Path]:
    """List the files of searches at a scale, without those of broken methods and components."""
    names = project_files(search_path("", scale_name).parent, "*.json")
    return [search_path(name, scale_name) for name in names if not is_broken(name)]


def read_search(path: Path) -> Search:
    """Read a search. Raise BadInput if the file is no search, or has a search of another name."""
    remedy = "Restore the file, or delete it and search again."
    _, search = read_typed(find(path), SearchFile, remedy)
    if search.name != path.stem:
        raise BadInput(f"{path}: name: is {search.name!r}, but the file is {path.name}. {remedy}")
    return search


def made_search(name: str, scale_name: str) -> Search | None:
    """Read the search of a name at a scale; None if there is no file of it."""
    path = search_path(name, scale_name)
    return read_search(path) if find(path).exists() else None


def kept_trials(search: Search | None, planned: list[PlannedTrial]) -> list[Trial]:
    """List the trials in the file of a search that need not be made again.

    Either all trials are kept or none, because they were made with the same code and settings. The
    first one tells whether these are still the planned ones.

    Args:
        search: from its file; None if there is no file.
        planned: the trials as they are planned now.
    """
    first_planned = planned[0]
    if search is None or search.spec != first_planned.specs[0]:
        return []
    first_made = search.trials[0]
    if first_made.settings != first_planned.settings:
        return []
    if len(first_made.runs) != len(first_planned.specs):
        return []
    return search.trials


def write_search(search: Search, scale_name: str) -> None:
    content = search.model_dump(exclude_none=True) | {"chosen": search.chosen}
    write_json(folders()[-1] / search_path(search.name, scale_name), with_digest(content))


# ---------------------------------------------------------------- settings for a scale


@cached
def tuned_settings(scale_name: str) -> Mapping[str, Settings]:
    """Collect the settings that searches chose, by the name of the search.

    Returns:
        nothing for a scale that is not `tuned`.

    Raises:
        BadInput: there is no search, a search was made under other settings (`search_defect`), or
            searches have different numbers of trials, so that comparisons would be unfair.
    """
    if not catalog.scale(scale_name).tuned:
        return {}
    key = f"config/{scale_name}.yaml: tuned"
    searches = [read_search(path) for path in search_files(scale_name)]
    searches = [search for search in searches if not is_of_other_code(search)]
    if not searches:
        folder = search_path("", scale_name).parent
        first_search = command(["METHOD"], scale_name)
        raise BadInput(f"{key}: no search in {folder}/; `{first_search}` makes one.")
    for search in searches:
        defect = search_defect(search, scale_name)
        if defect is not None:
            path = search_path(search.name, scale_name)
            again = command([search.name], scale_name, search.planned)
            raise BadInput(f"{path}: {defect}; `{again}` makes it again.")
    most = max(search.planned for search in searches)
    for search in searches:
        combinations = math.prod(map(len, search_space(search.name).values()))
        possible = min(most, combinations)  # a small search cannot have as many trials as others
        if search.planned < possible:
            numbers = ", ".join(f"{search.name} {search.planned}" for search in searches)
            remedy = "`csebench tune` all with one --trials"
            raise BadInput(f"{key}: different numbers of trials ({numbers}); {remedy}.")
    return {search.name: search.chosen or {} for search in searches}


def is_of_other_code(search: Search) -> bool:
    """Whether the code of a method was edited after the search on it, without a new version.

    Such a search counts as not made. This does not hold for a search on a host, because other
    methods take its choices: `search_defect` refuses it instead.
    """
    method = search.spec.method
    if search.name == host(declaration(method).kind):
        return False
    return search.spec.code != draft_codes(method, search.spec.components)


def is_broken(name: str) -> bool:
    """Whether a file that `ct+ami` needs is not valid."""
    method, *added = name.split("+")
    return recipe_defect(method, added) is not None


def search_defect(search: Search, scale_name: str) -> str | None:
    """Say why no settings can be taken from a search.

    A search may cover settings that it would not cover now: shared settings that are inherited, or
    settings of the method itself in a search with added components. This is not a defect.

    Returns:
        None if they can be taken.
    """
    space = search_space(search.name)
    first, *others = search.trials
    no_longer_covered = {key: value for key, value in first.settings.items() if key not in space}
    first_run = plan_trial(search.name, no_longer_covered, scale_name)
    changed = spec_differences(search.spec, first_run)
    if changed:
        return f"made under other settings ({', '.join(changed)})"
    for number, trial in enumerate(others, 1):
        key = first_untried(trial, space)
        if key is not None and not is_outward(trial, search.trials[:number]):
            return f"{key} {trial.settings[key]} is no value that `csebench tune` tries"
    if len(search.trials) < search.planned:
        return f"{len(search.trials)} of {search.planned} trials are made"
    if search.chosen is None:
        return "every trial failed"
    return None


def first_untried(trial: Trial, space: dict[str, list[Value]]) -> str | None:
    """Name the first setting of a trial whose value is not among the values to try."""
    for key, value in trial.settings.items():
        if key in space and value not in space[key]:
            return key
    return None


def is_outward(trial: Trial, earlier: list[Trial]) -> bool:
    """Whether a trial can come from `plan_outward`.

    Args:
        earlier: the trials that were made before it. The trial may have been planned after any of
            them, because `plan_outward` can plan several trials at once.
    """
    for number in range(len(earlier), 0, -1):  # mostly after the last one, so begin there
        if trial.settings in outward_settings(earlier[:number]):
            return True
    return False


def spec_differences(first: Spec, second: Spec) -> list[str]:
    """Name the settings, versions and data in which two runs differ, in alphabetical order."""
    of_first, of_second = comparable(first), comparable(second)
    keys = of_first.keys() | of_second.keys()
    return sorted(key for key in keys if of_first.get(key) != of_second.get(key))


def comparable(spec: Spec) -> dict:
    """Flatten a run to its settings, versions and data by name."""
    content = spec.model_dump(exclude={"params", "components"}) | spec.settings
    for name, component in spec.components.items():
        content[f"{name}.version"] = component.version
    return content


def command(methods: list[str], scale_name: str, trials: int | str = "N") -> str:
    return f"csebench tune {' '.join(methods)} --scale {scale_name} --trials {trials}"
