"""Check an attempt of `csebench try`, and write it as a paper.

The paper, `papers/try_<name>.yaml`, has a table per evaluator. Its runs, pages, comparisons and
forecast are planned like those of any other paper. attempt.py has the steps of the command, and
attempt_notices.py and attempt_results.py word what the command prints.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from csebench.base import caches
from csebench.base.errors import BadInput, look_up
from csebench.base.files import near_file
from csebench.base.project import folders, join
from csebench.plan import targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import unavailable
from csebench.plan.catalog.registry import (
    COMPONENTS,
    METHODS,
    check_name,
    declaration,
    protocol,
)
from csebench.plan.random_settings import check_prior, draw_settings
from csebench.plan.recipe import (
    choices,
    conditions,
    host,
    make_spec,
    recipe_defect,
    recipe_name,
)
from csebench.plan.schema.paper import Recipe
from csebench.study.generated_paper import paper_file, table_row, write_generated_paper


@dataclass(frozen=True)
class Attempt:
    """A method or component of one's own, with the methods that it is compared with."""

    name: str
    folder: Path  # METHODS or COMPONENTS
    against: tuple[str, ...]  # methods; for a component its hosts
    scale: str
    evaluators: tuple[str, ...]
    seeds: int  # runs of each row if all of them have the same settings
    settings: int = 1  # random settings that each row is run at; 1: those of one search

    @property
    def has_random_settings(self) -> bool:
        """Whether each run of a row has random settings of its own, which the rows share."""
        return self.settings > 1

    @property
    def is_component(self) -> bool:
        return self.folder == COMPONENTS

    @property
    def unit(self) -> str:
        """The name under which the versions of its code are kept: `methods/mine`."""
        return f"{self.folder}/{self.name}"

    @property
    def paper(self) -> str:
        return f"try_{self.name}"

    @property
    def paper_file(self) -> Path:
        return paper_file(self.paper)

    @property
    def pages(self) -> list[targets.Page]:
        return targets.parse_target(self.paper, self.scale)

    def recipes(self) -> dict[str, Recipe]:
        """Pair each method of `against` with the recipe that is compared with it.

        A method of one's own has one recipe. A component is plugged into each of these methods.
        """
        if not self.is_component:
            return dict.fromkeys(self.against, Recipe(method=self.name))
        own_component = {self.name: {}}
        return {name: Recipe(method=name, components=own_component) for name in self.against}

    def searches(self) -> list[str]:
        """Name the searches for the recipes, each once.

        The list is empty if settings are drawn, or if the scale takes none from searches.
        """
        if self.has_random_settings or not catalog.scale(self.scale).tuned:
            return []
        names = [search_of(recipe) for recipe in self.recipes().values()]
        return [name for name in dict.fromkeys(names) if tuning.search_space(name)]


def search_of(recipe: Recipe) -> str:
    """Name the search for a recipe: `margin`, or `simcse+margin` for a component."""
    return recipe_name(declaration(recipe.method), recipe.components)


def open_attempt(file: Path, is_component: bool = False, **settings) -> Attempt:
    """Check the file of a method or component, and join its folder to the project.

    Args:
        settings: the other fields of `Attempt`.

    Raises:
        BadInput: the file is in another folder, its declaration is wrong, or a name is unknown.
    """
    folder = METHODS
    if is_component:
        folder = COMPONENTS
    file = Path(os.path.realpath(file))
    check_place(file, folder)
    project = file.parents[len(folder.parts)]  # the folder that holds methods/
    if project not in folders():
        joined = [str(path) for path in folders()[1:]]  # the first is csebench itself
        join([*joined, str(project)])
        caches.clear()
    attempt = Attempt(file.stem, folder, **settings)
    check_attempt(attempt)
    return attempt


def check_place(file: Path, folder: Path) -> None:
    """Raise BadInput unless a file exists and lies in a folder methods/ or methods/components/."""
    is_in_place = file.parent.parts[-len(folder.parts) :] == folder.parts
    if is_in_place and file.is_file():
        return
    kind = folder.name.rstrip("s")
    remedy = f"`csebench new {kind} NAME` writes one there."
    if file.exists():
        raise BadInput(f"try: {file}: is not in a folder {folder}/. {remedy}")
    raise BadInput(f"try: {file}: no such file.{near_file(file)} {remedy}")


def check_attempt(attempt: Attempt) -> None:
    """Raise BadInput if a declaration is wrong, a name is unknown, or data cannot be had."""
    declaration(attempt.name, attempt.folder)
    for method in attempt.against:
        check_name(method, METHODS, "--against")
    if attempt.name in attempt.against:
        raise BadInput(f"--against: {attempt.name} cannot be compared with itself.")
    scale = catalog.scale(attempt.scale)
    if attempt.has_random_settings:
        check_prior(scale, ", or use --settings 1, which takes the settings of one search")
    for evaluator in attempt.evaluators:
        protocol(evaluator, "--evaluators")
        reason = unavailable(evaluator, attempt.scale)
        if reason is not None:
            raise BadInput(f"--evaluators: {evaluator}: {reason}")
    for recipe in attempt.recipes().values():
        defect = recipe_defect(recipe.method, recipe.components)
        if defect is not None:
            raise BadInput(defect)


def write_paper(attempt: Attempt) -> None:
    """Write the paper of an attempt.

    Raises:
        BadInput: a file of this name exists, and `csebench try` did not write it.
    """
    write_generated_paper(paper_content(attempt), "try")


def paper_content(attempt: Attempt) -> dict:
    """Lay out the paper: a table per evaluator, and in it a question per comparison.

    The rows are the methods to compare with, then one's own method. A component has a row for each
    host.
    """
    titles = catalog.method_labels()
    if attempt.is_component:
        title = declaration(attempt.name, COMPONENTS).title
    else:
        title = titles[attempt.name]
    labels = [titles[method] for method in attempt.against]
    rows = {titles[method]: Recipe(method=method) for method in attempt.against}
    families = []
    for label, recipe in zip(labels, attempt.recipes().values(), strict=True):
        own_label = title
        if attempt.is_component:
            own_label = f"{title} + {label}"
        rows[own_label] = recipe
        family = {
            "question": f"Does {own_label} beat {label}?",
            "rows": [[own_label, label]],
            "primary": not families,  # the first question
        }
        families.append(family)

    notes = [f"{title}: {note}" for note in replaced_defaults(attempt)]
    number_of_runs = {"run_seeds": attempt.seeds}
    if attempt.has_random_settings:
        number_of_runs = {"random_settings": attempt.settings}
    tables = {}
    for number, evaluator in enumerate(attempt.evaluators, 1):
        tasks = protocol(evaluator).tasks
        tables[str(number)] = {
            "title": f"{title} against {', '.join(labels)}, {evaluator}",
            "evaluator": evaluator,
            **number_of_runs,
            "columns": [{"label": task, "task": task, "size": tuning.SIZE} for task in tasks],
            "rows": [table_row(label, recipe) for label, recipe in rows.items()],
            "compare": families,
            "notes": list(notes),  # a copy: YAML would write the same list as an alias
        }
    return {
        "name": attempt.paper,
        "label": f"Try {title}",
        "title": title,
        "reference": "one's own",
        "tables": tables,
    }


def replaced_defaults(attempt: Attempt) -> list[str]:
    """Say which defaults of one's own file other values replace in its runs, and why.

    Settings that the search for the method itself chooses, or that are drawn, are left out, because
    they are meant to be replaced.
    """
    scale = catalog.scale(attempt.scale)
    file = f"config/{attempt.scale}.yaml"
    size = look_up(f"size of {file}", tuning.SIZE, scale.sizes, "try")
    encoder = look_up(f"encoder of {file}", tuning.ENCODER, scale.encoders, "try")
    tuned = {}
    if not attempt.has_random_settings:
        tuned = tuning.tuned_settings(attempt.scale)
    given = conditions(scale, tuned)
    prefix = ""
    if attempt.is_component:
        prefix = f"{attempt.name}."

    notes: list[str] = []
    for recipe in attempt.recipes().values():
        method = declaration(recipe.method)
        spec = make_spec(recipe, encoder, size, scale.seeds[0], given, "try")
        replaced = {*tuning.search_space(search_of(recipe))}
        if attempt.has_random_settings:
            replaced |= {*draw_settings(method, spec.components, scale, spec.seed)}
        chosen = choices(method, spec.components, tuned)
        for key, (default, _) in declaration(attempt.name, attempt.folder).params.items():
            setting = f"{prefix}{key}"
            value = spec.settings.get(setting, default)
            if value == default or setting in replaced:
                continue
            source = f"scale {attempt.scale}"
            if chosen.get(setting) == value:
                source = f"the search on {host(method.kind)} at scale {attempt.scale}"
            notes.append(f"{setting} is {value}, not {default} as in the file: set by {source}.")
    return list(dict.fromkeys(notes))
