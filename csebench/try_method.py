"""`csebench try`: a matched comparison of one's own method, or of a component on a host, with others.

What it makes is an ordinary paper of one's own, `papers/try_<name>.yaml`, with a table per evaluator: its runs, pages,
comparisons and forecast are those of any table. Here is only what writes that file and calls the steps in order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from csebench import run
from csebench.base import caches
from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import write_text
from csebench.base.project import ROOT, folders, join
from csebench.base.terminal import counted
from csebench.plan import catalog, cost, targets, tuning
from csebench.plan.papers import Recipe
from csebench.plan.recipe import conditions, corpus_path, make_spec, positives_path, recipe_name
from csebench.plan.registry import COMPONENTS, METHODS, check_name, declaration, protocol

CHECKED_STEPS = 2
REPORT = "results_of_check"
Log = Callable[[str], None]


@dataclass(frozen=True)
class Attempt:
    """One's own method, or a component that is plugged into hosts, and what it is compared with."""

    name: str
    folder: Path  # METHODS or COMPONENTS
    against: tuple[str, ...]  # methods; for a component its hosts
    scale: str
    evaluators: tuple[str, ...]
    seeds: int

    @property
    def paper(self) -> str:
        return f"try_{self.name}"

    @property
    def pages(self) -> list[targets.Page]:
        return targets.parse_target(self.paper, self.scale)

    def own_recipes(self) -> dict[str, Recipe]:
        """By what each is compared with."""
        if self.folder == METHODS:
            return dict.fromkeys(self.against, Recipe(method=self.name))
        return {host: Recipe(method=host, components={self.name: {}}) for host in self.against}

    def searches(self) -> list[str]:
        """Names of the searches for what is one's own, where the scale takes settings from searches."""
        recipes = {recipe_name(declaration(r.method), r.components): r for r in self.own_recipes().values()}
        return [name for name in recipes if catalog.scale(self.scale).tuned and tuning.search_space(name)]


def opened(file: Path, is_component: bool = False, **settings) -> Attempt:
    """The attempt of a file of methods/ or methods/components/, whose folder joins the project. Raises BadInput: the
    file is elsewhere, its declaration is wrong, or a name is unknown."""
    folder = COMPONENTS if is_component else METHODS
    file = file.resolve()
    project = file.parents[len(folder.parts)] if len(file.parents) > len(folder.parts) else file.parent
    if file != project / folder / file.name or not file.is_file():
        where = "no such file" if not file.exists() else f"is not in a folder {folder}/"
        raise BadInput(
            f"try: {file}: {where}; `csebench new {'component' if is_component else 'method'} NAME` makes one."
        )
    if project not in folders():
        join([*map(str, folders()[1:]), str(project)])
        os.chdir(project)
        caches.clear()
    attempt = Attempt(file.stem, folder, **settings)
    declaration(attempt.name, folder)
    for method in attempt.against:
        check_name(method, METHODS, "--against")
    if attempt.name in attempt.against:
        raise BadInput(f"--against: {attempt.name} is what is tried.")
    for evaluator in attempt.evaluators:
        protocol(evaluator, "--evaluators")
    catalog.scale(attempt.scale)
    return attempt


def write_paper(attempt: Attempt) -> None:
    """Write the paper of an attempt, where it is another than what is there."""
    own, title = attempt.own_recipes(), declaration(attempt.name, attempt.folder).title
    labels = {method: declaration(method).title for method in attempt.against}
    if title in labels.values():
        title = f"{title} [{attempt.name}]"
    recipes = {label: Recipe(method=method) for method, label in labels.items()}
    pairs = []
    for method, label in labels.items():
        mine = title if attempt.folder == METHODS else f"{title} + {label}"
        recipes[mine] = own[method]
        pairs.append((mine, label))
    tables = {}
    for number, evaluator in enumerate(attempt.evaluators, 1):
        columns = [{"label": task, "task": task, "size": tuning.SIZE} for task in protocol(evaluator).tasks]
        rows = [
            {"label": label, "run": recipe.model_dump(exclude_defaults=True), "source": "measured"}
            | {"values": [None] * len(columns)}
            for label, recipe in recipes.items()
        ]
        families: list[dict] = [
            {"question": f"Does {mine} beat {label}?", "rows": [[mine, label]], "primary": n == 0}
            for n, (mine, label) in enumerate(pairs)
        ]
        tables[str(number)] = {
            "title": f"{title} against {', '.join(labels.values())}, {evaluator}",
            "evaluator": evaluator,
            "run_seeds": attempt.seeds,
            "columns": columns,
            "rows": rows,
            "compare": families,
        }
    content = {
        "name": attempt.paper,
        "label": f"Try {title}",
        "title": title,
        "reference": "one's own",
        "tables": tables,
    }
    text = f"# Written by `csebench try`.\n{yaml.safe_dump(content, sort_keys=False, allow_unicode=True)}"
    path = folders()[-1] / "papers" / f"{attempt.paper}.yaml"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
        caches.clear()


def budget(attempt: Attempt, trials: int | None) -> int:
    """Trials of a search: as many as what it is compared with had. Raises BadInput for another number."""
    known = {tuning.read_search(path).planned for path in tuning.search_files(attempt.scale)}
    if trials is not None and known and trials != max(known):
        raise BadInput(f"--trials {trials}: searches at scale {attempt.scale} have {max(known)} trials; leave it out.")
    return trials or max(known, default=1)


def forecast(attempt: Attempt, trials: int) -> list[str]:
    """What is left to do and its hours, in lines."""
    work = cost.Work(attempt.pages)
    steps = work.steps(work.missing)
    hours, unknown = work.cost(steps)
    trained = sum(step.kind == "train" for step in steps)
    lines = [f"To train: {counted(trained, 'run')}; to score: {counted(len(steps) - trained, 'file')}."]
    for name in attempt.searches():
        planned = tuning.plan_trials(name, attempt.scale, trials)
        before = tuning.made_search(name, attempt.scale)
        made = {trial.run for trial in before.trials} if before else set()
        left = [spec for _, spec in planned if spec.run_id not in made]
        prices = [price for spec in left for times in work.times.values() if (price := cost.training(spec, times))]
        hours += sum(prices, cost.Estimate())
        unknown += len(left) - len(prices)
        lines.append(f"To search the settings of {name}: {counted(len(left), 'trial')}.")
    unmeasured = f", without {counted(unknown, 'step')} that nobody has measured" if unknown else ""
    device = f"on one {work.device}" if work.device else "on a device that nobody has measured"
    return [*lines, f"Forecast: {hours.hours} {device}{unmeasured}."]


def check(attempt: Attempt) -> None:
    """Train two steps of the attempt twice, on what the project ships. Raises RunFailed, with the reason, where they
    fail or are not equal to the last bit."""
    scale = catalog.scale(catalog.DEFAULT_SCALE)
    recipe = next(iter(attempt.own_recipes().values()))
    recipe = recipe.model_copy(update={"params": recipe.params | {"steps": CHECKED_STEPS, "evaluate_every": 1}})
    size, given = min(scale.sizes.values()), conditions(scale)
    spec = make_spec(recipe, scale.encoders[tuning.ENCODER], size, scale.seeds[0], given, f"try: {attempt.name}")
    command = [
        sys.executable,
        "-m",
        "csebench",
        "train",
        spec.model_dump_json(),
        "--data",
        str(catalog.given_root(scale)),
    ]
    for option, path in (("--corpus", corpus_path(spec, scale)), ("--positives", positives_path(spec))):
        command += [option, str(path)] if path else []
    weights = []
    with tempfile.TemporaryDirectory() as temporary:
        for out in (Path(temporary) / "first", Path(temporary) / "second"):
            done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["it ended without a message"])[-1]
                raise RunFailed(
                    f"try: {attempt.name}: two steps of training fail: {reason.removeprefix('csebench: ')}"
                )
            weights.append(json.loads((out / "train.json").read_text(encoding="utf-8"))["model_sha256"])
    if len({*weights}) > 1:
        raise RunFailed(f"try: {attempt.name}: two runs of one seed differ; draw random numbers with torch alone.")


def train_and_score(attempt: Attempt) -> None:
    """Make the pages of an attempt, by the workflow. Raises RunFailed where a run fails."""
    pages = [str(page.path) for page in attempt.pages]
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-j", str(os.cpu_count() or 1)]
    command += ["--quiet", "rules", "host", "--config", f"scale={attempt.scale}", "--", *pages]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise RunFailed(f"try: {attempt.name}: the workflow failed; its last lines say why. The same command resumes.")
    caches.clear()


def results(attempt: Attempt) -> list[dict]:
    """The comparisons of an attempt: as of `csebench compare --json`, with the page and what to do next."""
    from csebench.report.cells import grid_view
    from csebench.report.compare import answers
    from csebench.report.csv_tables import comparison_record

    records = []
    for page in attempt.pages:
        for answer in answers(grid_view(attempt.paper, page.name, attempt.scale)):
            (comparison,) = answer.comparisons
            record = {"question": answer.family.question, **comparison_record(comparison)}
            records.append(record | {"page": str(page.path), "next": what_next(comparison)})
    return records


def what_next(comparison: Any) -> str:
    """Whether more seeds could show a difference of the size that was seen."""
    from csebench.report.power import Design, seeds_needed

    seen = comparison.estimate
    if seen is None or comparison.p is None:
        return "" if seen is None or seen.seeds > 1 else "With more than one seed, chance can be excluded: --seeds 3."
    if comparison.differs:
        return "Give both rows the same settings first: what differs may be the reason."
    needed = seeds_needed(abs(seen.gain), Design(seen.seed_sd or 0.0, (seen.item_se or 0.0) ** 2))
    if needed <= seen.seeds:
        return "More seeds would change little; try another scale or other test sets."
    if needed == float("inf"):
        return f"More seeds cannot show a difference of {abs(seen.gain):.2f}: the test items alone vary too much."
    return f"To show a difference of {abs(seen.gain):.2f} would take about {needed:.0f} seeds: --seeds {needed:.0f}."


def try_method(
    file: str | Path,
    against: str = "simcse",
    scale: str = "mini",
    seeds: int = 5,
    trials: int | None = None,
    evaluators: str = "sts",
    component: bool = False,
    log: Log = partial(print, file=sys.stderr, flush=True),
    plan: bool = False,
) -> list[dict]:
    """Compare one's own method with others, matched and paired by seed; returns the comparisons, one per evaluator and
    method, with words, interval, bound, what differs, page and what to do next; with `plan`, nothing is run. What is
    done is not done again. Raises BadInput for what is wrong with the file or an argument, RunFailed where training
    fails.

    Args:
        file: in a folder methods/ (a component in methods/components/).
        against: methods, comma-separated; for a component those that it is plugged into.
        seeds: of each row; the first ones are those of the scale's tables, whose scores may be published.
        trials: of the search for what is the method's own; as many as the others had, without it.
    """
    distinct = {"against": against, "evaluators": evaluators}
    lists = {key: tuple(dict.fromkeys(text.split(","))) for key, text in distinct.items()}
    attempt = opened(Path(file), component, scale=scale, seeds=seeds, **lists)
    count = budget(attempt, trials)
    write_paper(attempt)
    for line in forecast(attempt, count):
        log(line)
    if plan:
        return []
    check(attempt)
    log(f"Two steps of {attempt.name} train, twice the same.")
    if searches := attempt.searches():
        run.tune(searches, scale, count, log)
        caches.clear()
    train_and_score(attempt)
    return results(attempt)
