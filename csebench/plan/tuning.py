"""Tuning on STS-B dev: the trials of a search, the file that holds them, and the settings that a scale takes from it.

A trial is an ordinary run, with a seed and a subset of the corpus that no table uses. The first has the settings that
the scale gives the method without tuning; the others are drawn, without repetition, from the grid of the values that
the method and its components declare as `search`. csebench/run.py runs them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, count, product
from pathlib import Path

from pydantic import Field, model_validator

from csebench.base.caches import cached
from csebench.base.errors import BadInput, unknown
from csebench.base.files import read_typed, with_digest, write_json
from csebench.plan import catalog
from csebench.plan.declarations import EncoderRef, Scale, Strict, Value
from csebench.plan.papers import Recipe
from csebench.plan.recipe import Conditions, conditions, make_spec, recipe_name
from csebench.plan.registry import COMPONENTS, METHODS, declaration, recipe_defect, valid_declarations
from csebench.plan.spec import Spec

ENCODER = "bert-base"  # role in config/; rows on another encoder keep their settings
SIZE = "1%"  # of the corpus, as on the page of all methods
FIRST_SEED = 47  # the first from here on that no table uses

Settings = dict[str, Value]  # by parameter; `ami.weight` is one of a component


class Trial(Strict):
    """One run of a search."""

    settings: Settings
    run: str
    model_sha256: str | None = None
    dev: float | None = Field(default=None, ge=-1, le=1)  # Spearman on STS-B dev of the step that is kept
    failure: str | None = None  # why there is no such score, and none at another try

    @model_validator(mode="after")
    def scored_or_failed(self):
        if (self.dev is None) == (self.failure is None):
            raise ValueError("needs either a score (`dev`) or a reason (`failure`)")
        return self


class Search(Strict):
    """results/<scale>/tuning/<name>.json."""

    name: str  # `micse`, or `ct+ami` for a method with components that it does not have by itself
    planned: int = Field(ge=1)  # trials
    spec: Spec  # of the first trial; the others differ from it in their settings only
    trials: list[Trial] = Field(min_length=1)
    chosen: Settings | None  # those of the best trial, of several the first; None: all trials failed

    @model_validator(mode="after")
    def trials_fit(self):
        """Each is the run of its settings, no two the same; the first is that of the spec, the best is chosen."""
        runs = [trial.run for trial in self.trials]
        for number, trial in enumerate(self.trials):
            if trial.settings.keys() != self.trials[0].settings.keys():
                raise ValueError(f"trials.{number}.settings: are of other parameters than those of the first trial")
            if trial.run != (run := self.spec.with_settings(trial.settings).run_id):
                raise ValueError(f"trials.{number}.run: is {trial.run}, but its settings give {run}")
        if runs[0] != self.spec.run_id:
            raise ValueError("trials.0: has other settings than `spec`")
        if len({*runs}) < len(runs) or len(runs) > self.planned:
            raise ValueError(f"trials: {len(runs)} of {self.planned} planned, {len({*runs})} of them different")
        if self.chosen != chosen_settings(self.trials):
            raise ValueError("`chosen` is not what the best trial has")
        return self


class SearchFile(Search):
    """The same as it is in the file."""

    sha256: str  # of the other keys


def best_trial(trials: list[Trial]) -> Trial | None:
    """The first of those with the highest score; None where all failed."""
    return max((t for t in trials if t.dev is not None), key=lambda t: t.dev or 0.0, default=None)


def chosen_settings(trials: list[Trial]) -> Settings | None:
    best = best_trial(trials)
    return best and best.settings


# ---------------------------------------------------------------- trials


def search_space(name: str) -> dict[str, list[Value]]:
    """The values to try, by parameter, of a method with its components. Raises BadInput where none is declared."""
    method, *added = name.split("+")
    space = dict(declaration(method).search)
    for component in sorted({*declaration(method).components, *added}):
        searched = declaration(component, COMPONENTS).search
        space |= {f"{component}.{key}": values for key, values in searched.items()}
    if not space:
        raise BadInput(
            f"methods/{method}.py: {name} has no search space: its declaration has no `search` (docs/methods.md)."
            f" Methods that have one: {', '.join(tunable())}."
        )
    return space


def tunable() -> list[str]:
    """Methods that declare values to try."""
    return [name for name, declared in valid_declarations(METHODS).items() if declared.search]


def plan_trials(name: str, scale_name: str, number: int) -> list[tuple[Settings, Spec]]:
    """The settings and the run of each trial; a larger number adds trials to those of a smaller one. Raises BadInput
    where the grid has fewer."""
    space, untuned = search_space(name), plan_trial(name, {}, scale_name)
    first = {key: untuned.settings[key] for key in space}
    grid = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    random.Random(name).shuffle(grid)
    others = [settings for settings in grid if settings != first]
    if number > (most := len(others) + 1):
        raise BadInput(
            f"tune: {name} has {most} different trials; every method gets as many: --trials {most} at most, or more"
            f" values in `search` of methods/{name.partition('+')[0]}.py."
        )
    drawn = [plan_trial(name, settings, scale_name) for settings in others[: number - 1]]
    return [({key: spec.settings[key] for key in space}, spec) for spec in (untuned, *drawn)]


def plan_trial(name: str, settings: Settings, scale_name: str) -> Spec:
    """The run of a trial. Raises BadInput as `make_spec` does, or where the scale lacks the encoder or the size."""
    scale, (method, *added) = catalog.scale(scale_name), name.split("+")
    for kind, key, known in (("encoder", ENCODER, scale.encoders), ("size", SIZE, scale.sizes)):
        if key not in known:
            raise unknown(f"{kind} of config/{scale_name}.yaml", key, known, "tune")
    declared = declaration(method)
    if name != (canonical := recipe_name(declared, {*declared.components, *added})):
        raise BadInput(f"tune: {name}: write {canonical}.")
    recipe = Recipe(method=method, components={component: {} for component in added})
    given = replace(conditions(scale), tuned={name: settings})
    return make_spec(recipe, scale.encoders[ENCODER], scale.sizes[SIZE], trial_seed(scale), given, f"tune: {name}")


def trial_seed(scale: Scale) -> int:
    """The seed, and that of the subset, of all trials at a scale: no table uses it."""
    used = {*chain(scale.seeds, *scale.seeds_by_size.values(), *scale.seeds_by_table.values())}
    return next(seed for seed in count(FIRST_SEED) if seed not in used)


def settings_text(settings: Settings) -> str:
    """`learning_rate 3e-05, temperature 0.05`"""
    return ", ".join(f"{key} {value}" for key, value in settings.items())


# ---------------------------------------------------------------- files


def search_path(name: str, scale_name: str) -> Path:
    return catalog.results_folder(scale_name) / "tuning" / f"{name}.json"


def search_files(scale_name: str) -> list[Path]:
    """The files of all searches that were made at a scale: of the checkout, since runs follow from them; without those
    of methods and components whose files are broken."""
    paths = catalog.ROOT.glob(str(search_path("*", scale_name)))
    return sorted(path.relative_to(catalog.ROOT) for path in paths if not is_broken(path.stem))


def read_search(path: Path) -> Search:
    """Raises BadInput where the file is not a search, or that of another name."""
    remedy = "Restore the file, or delete it and search again."
    _, search = read_typed(catalog.ROOT / path, SearchFile, remedy)
    if search.name != path.stem:
        raise BadInput(f"{path}: name: is {search.name!r}, but the file is {path.name}. {remedy}")
    return search


def write_search(search: Search, scale_name: str) -> None:
    content = search.model_dump(exclude_none=True) | {"chosen": search.chosen}
    write_json(catalog.ROOT / search_path(search.name, scale_name), with_digest(content))


# ---------------------------------------------------------------- what a scale takes


def tuned_conditions(scale: Scale, encoder: EncoderRef) -> Conditions:
    """The conditions of a scale for runs that start from an encoder, with what searches on that encoder chose."""
    tuned = tuned_settings(scale.scale) if encoder == scale.encoders.get(ENCODER) else {}
    return replace(conditions(scale), tuned=tuned)


@cached
def tuned_settings(scale_name: str) -> Mapping[str, Settings]:
    """What searches chose, by name, of those that `tuned` in config/<scale>.yaml asks for; empty without it. Raises
    BadInput: nothing can be taken from a search, or searches have different numbers of trials."""
    wanted, key = catalog.scale(scale_name).tuned, f"config/{scale_name}.yaml: tuned"
    paths = search_files(scale_name) if wanted is True else [search_path(n, scale_name) for n in wanted or ()]
    if wanted and not paths:
        folder = search_path("", scale_name).parent
        raise BadInput(f"{key}: no search in {folder}/; `{command(['METHOD'], scale_name)}` makes one.")
    searches = {}
    for path in paths:
        if not (catalog.ROOT / path).exists():
            raise BadInput(f"{key}: {path}: no such file; `{command([path.stem], scale_name)}` makes it.")
        search = searches[path.stem] = read_search(path)
        if reason := defect(search, scale_name):
            raise BadInput(
                f"{path}: {reason}; `{command([search.name], scale_name, search.planned)}` makes it again, or leave"
                f" {search.name} out of `tuned` in config/{scale_name}.yaml."
            )
    if len({search.planned for search in searches.values()}) > 1:
        numbers = ", ".join(f"{name} {search.planned}" for name, search in searches.items())
        raise BadInput(f"{key}: different numbers of trials ({numbers}); `csebench tune` all with one --trials.")
    return {name: search.chosen or {} for name, search in searches.items()}


def is_broken(name: str) -> bool:
    """Whether a file that `ct+ami` needs is not valid."""
    method, *added = name.split("+")
    return recipe_defect(method, added) is not None


def defect(search: Search, scale_name: str) -> str | None:
    """Why nothing can be taken from a search; None where it can."""
    if changed := differences(search.spec, plan_trial(search.name, {}, scale_name)):
        return f"made under other settings ({', '.join(changed)})"
    space = search_space(search.name)
    for key, value in (setting for trial in search.trials[1:] for setting in trial.settings.items()):
        if value not in space.get(key, []):
            return f"{key} {value} is no value that `csebench tune` tries"
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
