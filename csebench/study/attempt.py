"""`csebench try`: a matched comparison of one's own method, or of a component on a host, with
others. It makes an ordinary paper, `papers/try_<name>.yaml`, with a table per evaluator: its
runs, pages, comparisons and forecast are those of any table. Here is only what writes that file
and calls the steps in order."""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from csebench.base import caches
from csebench.base.errors import BadInput, RunFailed, last_error, look_up
from csebench.base.files import near_file, read_json, read_text, write_text
from csebench.base.locks import locked
from csebench.base.models import train_again
from csebench.base.outputs import is_taken, not_ours
from csebench.base.processes import run_program
from csebench.base.project import ROOT, folders, join
from csebench.base.runs import read_report
from csebench.base.terminal import counted
from csebench.data.preflight import downloads
from csebench.plan import forecast, targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import unavailable
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    check_name,
    declaration,
    protocol,
)
from csebench.plan.code_versions import draft_code
from csebench.plan.recipe import (
    choices,
    conditions,
    corpus_path,
    host,
    make_spec,
    positives_path,
    recipe_defect,
    recipe_name,
)
from csebench.plan.schema.paper import Recipe
from csebench.score.store import read_scores, stored_score

CHECKED_STEPS = 2
# a name to lock: Snakemake refuses to work on a file that another one makes
WORKFLOW = Path(".snakemake", "workflow")
WRITTEN_BY_TRY = "# Written by `csebench try`.\n"  # the first line of its papers
SAME_TRAINING = "Both have the same losses, bit for bit: what is new has no effect."
SPREADS = {"seed_sd": "deviation over seeds", "item_se": "error of test items"}


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
    def paper_file(self) -> Path:
        return folders()[-1] / "papers" / f"{self.paper}.yaml"

    @property
    def pages(self) -> list[targets.Page]:
        return targets.parse_target(self.paper, self.scale)

    def recipes(self) -> dict[str, Recipe]:
        """By what each is compared with."""
        if self.folder == METHODS:
            return dict.fromkeys(self.against, Recipe(method=self.name))
        return {host: Recipe(method=host, components={self.name: {}}) for host in self.against}

    def searches(self) -> list[str]:
        """Names of the searches for what is one's own, where the scale takes settings from
        searches."""
        if not catalog.scale(self.scale).tuned:
            return []
        names = dict.fromkeys(self.searched(recipe) for recipe in self.recipes().values())
        return [name for name in names if tuning.search_space(name)]

    def searched(self, recipe: Recipe) -> str:
        """Name of the search for a recipe: `margin`, or `simcse+margin` for a component."""
        return recipe_name(declaration(recipe.method), recipe.components)


def open_attempt(file: Path, is_component: bool = False, **settings) -> Attempt:
    """Open the attempt of a method's or component's file, whose folder joins the project.

    Raises:
        BadInput: the file is elsewhere, its declaration is wrong, or a name is unknown.
    """
    folder = COMPONENTS if is_component else METHODS
    file = Path(os.path.realpath(file))
    is_in_place = file.parent.parts[-len(folder.parts) :] == folder.parts
    if not is_in_place or not file.is_file():
        where = f"no such file.{near_file(file)}"
        if file.exists():
            where = f"is not in a folder {folder}/."
        kind = folder.name.rstrip("s")
        raise BadInput(f"try: {file}: {where} `csebench new {kind} NAME` makes one.")
    if (project := file.parents[len(folder.parts)]) not in folders():
        join([*map(str, folders()[1:]), str(project)])
        caches.clear()
    attempt = Attempt(file.stem, folder, **settings)
    declaration(attempt.name, folder)
    for method in attempt.against:
        check_name(method, METHODS, "--against")
    if attempt.name in attempt.against:
        raise BadInput(f"--against: {attempt.name} is what is tried.")
    catalog.scale(attempt.scale)
    for evaluator in attempt.evaluators:
        protocol(evaluator, "--evaluators")
        if reason := unavailable(evaluator, attempt.scale):
            raise BadInput(f"--evaluators: {evaluator}: {reason}")
    for recipe in attempt.recipes().values():
        if broken := recipe_defect(recipe.method, recipe.components):
            raise BadInput(broken)
    return attempt


def restart_notices(attempt: Attempt) -> list[str]:
    """Say what starts anew, where the code of a file changed since the last runs or scores."""
    notices = []
    unit = f"{attempt.folder}/{attempt.name}"
    code_now = draft_code(attempt.name, attempt.folder)
    codes_of_runs = set()
    for recipe in attempt.recipes().values():
        for file in catalog.RUNS.glob(f"{recipe.method}-*/spec.json"):
            codes_of_runs.add(read_json(file, train_again(file.parent)).get("code", {}).get(unit))
    if is_new(code_now, codes_of_runs):
        notices.append(
            f"{unit}.py: its code changed since its last runs, so its search and runs start anew."
            f" The old runs stay in {catalog.RUNS}/."
        )
    for evaluator in attempt.evaluators:
        code_now = draft_code(protocol(evaluator).declaration.name, EVALUATORS)
        codes_of_scores = set()
        for page in attempt.pages:
            for run in page.runs():
                content = read_scores(targets.score_path(run, evaluator, attempt.scale))
                if content is not None:
                    codes_of_scores.add(content["evaluations"][0].get("code"))
        if is_new(code_now, codes_of_scores):
            notices.append(f"{evaluator}: its code changed, so its scores are made anew.")
    return notices


def is_new(code_now: str | None, codes: set[str | None]) -> bool:
    """Whether there are results of other code of a draft, and none of its code today."""
    others = codes - {None}
    return code_now is not None and bool(others) and code_now not in others


def replaced_defaults(attempt: Attempt) -> list[str]:
    """List the defaults of one's own file that its runs do not have, with what replaced them.

    Left out is what the search for the method itself chooses, which is its purpose.
    """
    scale, tuned = catalog.scale(attempt.scale), tuning.tuned_settings(attempt.scale)
    given = conditions(scale, tuned)
    size = look_up(f"size of config/{attempt.scale}.yaml", tuning.SIZE, scale.sizes, "try")
    role = f"encoder of config/{attempt.scale}.yaml"
    encoder = look_up(role, tuning.ENCODER, scale.encoders, "try")
    notes: list[str] = []
    for recipe in attempt.recipes().values():
        spec = make_spec(recipe, encoder, size, scale.seeds[0], given, "try")
        method, searched = declaration(recipe.method), tuning.search_space(attempt.searched(recipe))
        chosen = choices(method, spec.components, tuned)
        prefix = "" if attempt.folder == METHODS else f"{attempt.name}."
        for key, (default, _) in declaration(attempt.name, attempt.folder).params.items():
            setting = f"{prefix}{key}"
            value = spec.settings.get(setting, default)
            if value == default or setting in searched:
                continue
            source = f"scale {attempt.scale}"
            if chosen.get(setting) == value:
                source = f"the search on {host(method.kind)} at scale {attempt.scale}"
            note = f"{setting} is {value}, not {default} as in the file: set by {source}."
            if note not in notes:
                notes.append(note)
    return notes


def write_paper(attempt: Attempt) -> None:
    """Write the paper of an attempt."""
    titles = catalog.method_labels()
    title = (
        titles[attempt.name]
        if attempt.folder == METHODS
        else declaration(attempt.name, COMPONENTS).title
    )
    labels = {method: titles[method] for method in attempt.against}
    recipes, families = {label: Recipe(method=method) for method, label in labels.items()}, []
    for label, recipe in zip(labels.values(), attempt.recipes().values(), strict=True):
        mine = title if attempt.folder == METHODS else f"{title} + {label}"
        recipes[mine] = recipe
        families.append(
            {
                "question": f"Does {mine} beat {label}?",
                "rows": [[mine, label]],
                "primary": not families,
            }
        )
    tables = {}
    for number, evaluator in enumerate(attempt.evaluators, 1):
        tables[str(number)] = {
            "title": f"{title} against {', '.join(labels.values())}, {evaluator}",
            "evaluator": evaluator,
            "run_seeds": attempt.seeds,
            "columns": [
                {"label": t, "task": t, "size": tuning.SIZE} for t in protocol(evaluator).tasks
            ],
            "rows": [
                {"label": k, "run": run.model_dump(exclude_defaults=True)}
                for k, run in recipes.items()
            ],
            "compare": families,
            "notes": [f"{title}: {note}" for note in replaced_defaults(attempt)],
        }
    about = {
        "name": attempt.paper,
        "label": f"Try {title}",
        "title": title,
        "reference": "one's own",
    }
    content = yaml.safe_dump(about | {"tables": tables}, sort_keys=False, allow_unicode=True)
    path = attempt.paper_file
    if is_taken(path) and not read_text(path).startswith(WRITTEN_BY_TRY):
        raise not_ours(path, "a paper that `csebench try` wrote")
    write_text(path, f"{WRITTEN_BY_TRY}{content}")
    caches.clear()


def trial_count(attempt: Attempt, trials: int | None) -> int:
    """Trials of a search: as many as what it is compared with had. Raises BadInput for another
    number."""
    if trials is not None and not catalog.scale(attempt.scale).tuned:
        raise BadInput(
            f"--trials: scale {attempt.scale} takes no settings from searches; leave it out."
        )
    known = {tuning.read_search(path).planned for path in tuning.search_files(attempt.scale)}
    if trials is not None and known and trials != max(known):
        raise BadInput(
            f"--trials {trials}: searches at scale {attempt.scale} have {max(known)} trials; leave"
            " it out."
        )
    return trials or max(known, default=1)


def forecast_lines(attempt: Attempt, trials: int) -> list[str]:
    """What is left to do and its hours, in lines; an unmeasured step counts as one of the first
    of `against`."""
    work = forecast.Work(attempt.pages)
    steps = work.steps(work.missing)
    trained = [work.specs[step.run] for step in steps if step.kind == "train"]
    searched = []
    for name in attempt.searches():
        planned = tuning.plan_trials(name, attempt.scale, trials)
        made = [trial.settings for trial in tuning.made_trials(name, attempt.scale, planned)]
        for trial in planned:
            if trial.settings not in made:
                searched += trial.specs
    scored = [step for step in steps if step.kind == "score"]
    estimate, unknown = work.cost(scored)
    times, known = (
        work.times.get(work.scale.encoders[tuning.ENCODER].name),
        {"method": attempt.against[0]},
    )
    for spec in [*trained, *searched]:
        alike = spec.model_copy(update=known | {"components": {}})
        price = times and (
            forecast.training_estimate(spec, times) or forecast.training_estimate(alike, times)
        )
        unknown += price is None
        estimate += price or forecast.TimeEstimate()
    unmeasured = f", without {counted(unknown, 'part')} that nobody has measured" if unknown else ""
    device = f"on one {work.device}" if work.device else "on a device that nobody has measured"
    left = (
        f"{counted(len(searched), 'search run')}, {counted(len(trained), 'run')},"
        f" {counted(len(scored), 'score')}"
    )
    lines = [f"Left to make: {left}.", f"Forecast: {estimate.hours} {device}{unmeasured}."]
    if (note := forecast.bf16_note(work.scale, work.device)) is not None:
        lines.append(note)
    return lines


def check_two_steps(attempt: Attempt) -> None:
    """Train two steps twice, on what the project ships. Raises RunFailed where they fail, or
    differ in any bit."""
    scale = catalog.scale(catalog.DEFAULT_SCALE)
    recipe = next(iter(attempt.recipes().values()))
    # which override all
    recipe = recipe.model_copy(update={"sweep": {"steps": CHECKED_STEPS, "evaluate_every": 1}})
    size, given = min(scale.sizes.values()), conditions(scale)
    spec = make_spec(
        recipe, scale.encoders[tuning.ENCODER], size, scale.seeds[0], given, f"try: {attempt.name}"
    )
    command = [sys.executable, "-m", "csebench", "train", spec.model_dump_json()]
    dev = catalog.data_root(scale) / catalog.STSB_DEV
    data = str(dev).removesuffix(catalog.STSB_DEV)  # the root that has it, where several are joined
    command += ["--data", data, "--device", "cpu"]  # where bits are equal
    for option, path in (
        ("--corpus", corpus_path(spec, scale)),
        ("--positives", positives_path(spec)),
    ):
        command += [option, str(path)] if path else []
    weights = set()
    with tempfile.TemporaryDirectory() as temporary:
        for out in (Path(temporary, "first"), Path(temporary, "second")):
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            done = run_program([*command, "--out", str(out)], f"try: {attempt.name}", **pipes)
            if done.returncode:
                lines = re.findall(
                    rf'File ".*/{attempt.folder}/{attempt.name}.py", line (\d+)', done.stderr
                )
                where = f" at {attempt.folder}/{attempt.name}.py, line {lines[-1]}" if lines else ""
                reason = f"{CHECKED_STEPS} steps of training fail{where}: {last_error(done.stderr)}"
                raise RunFailed(f"try: {attempt.name}: {reason}")
            weights.add((read_report(out) or {})["model_sha256"])
    if len(weights) > 1:
        raise RunFailed(
            f"try: {attempt.name}: two runs of one seed differ; draw random numbers with torch"
            " alone."
        )


def run_csebench(attempt: Attempt, *command: str) -> None:
    """Run a verb, or the workflow, in a process of its own, which gives a GPU back at its end.
    Raises RunFailed."""
    stderr = 2  # also in a notebook
    done = run_program([sys.executable, "-m", *command], f"try: {attempt.name}", stdout=stderr)
    if done.returncode:
        raise RunFailed(
            f"try: {attempt.name}: failed; the lines above say why. The same command resumes."
        )
    caches.clear()


def results(attempt: Attempt) -> list[dict]:
    """The comparisons, as of `csebench compare --json`, with page, seconds of training here, and
    what to do next."""
    from csebench.report.csv_tables import comparison_record
    from csebench.report.numbers.cells import grid_view
    from csebench.report.numbers.compare import answers
    from csebench.report.words.comparisons import SMOKE

    records, searches = [], [tuning.made_search(name, attempt.scale) for name in attempt.searches()]
    trained = {
        run.run for search in searches if search for trial in search.trials for run in trial.runs
    }
    trained |= {run_id for page in attempt.pages for run_id in page.runs()}
    seconds = sum(
        report["provenance"]["seconds"]
        for run in trained
        if (report := read_report(catalog.RUNS / run))
    )
    what = f"{attempt.folder / attempt.name}.py{' --component' * (attempt.folder == COMPONENTS)}"
    lists = f"--against {','.join(attempt.against)} --evaluators {','.join(attempt.evaluators)}"
    command = f"csebench try {what} {lists} --scale {attempt.scale} --seeds {attempt.seeds}"
    for page in attempt.pages:
        view = grid_view(attempt.paper, page.name, attempt.scale)
        for answer in answers(view):
            (comparison,) = answer.comparisons
            record = {
                "question": answer.family.question,
                **comparison_record(comparison),
                "page": str(page.path),
            }
            record |= {
                "training_seconds": seconds,
                "next": what_next(comparison),
                "command": command,
            }
            if attempt.scale == catalog.DEFAULT_SCALE:
                record |= {"sentence": SMOKE, "next": ""}
            new, base = (
                training_curves(view, label) for label in (comparison.row, comparison.against)
            )
            if new and new == base:
                record["next"] = SAME_TRAINING
            records.append(record)
    return records


def training_curves(view: Any, label: str) -> list:
    """Loss and scores on STS-B dev over training, of each scored run of a row."""
    cell, *_ = view.rows[view.grid.row(label)]
    contents = [stored_score(spec, cell.plan.evaluator, view.scale)[0] for spec in cell.plan.specs]
    return [content["training"].get("curve") for content in contents if content is not None]


def comparison_lines(record: dict) -> list[str]:
    """What is behind the sentence of a comparison, in lines."""
    lines = [f"Not matched: {record['differs']}."] if record["differs"] else []
    if record["gain"] != "":
        spread = ", ".join(
            f"{name} {record[key]:.2f}" for key, name in SPREADS.items() if record[key] != ""
        )
        known = (
            f", 95 % interval {record['low']:+.2f} to {record['high']:+.2f}"
            if record["low"] != ""
            else ""
        )
        seeds = counted(record["seeds"], "seed")
        lines.append(
            f"Difference {record['gain']:+.2f} points{known};"
            f" {seeds}{f' ({spread})' if spread else ''}."
        )
    lines.append(f"Training took {record['training_seconds'] / 60:.1f} minutes here.")
    return [
        *lines,
        *filter(None, [record["next"]]),
        f"Page: {record['page']}",
        f"Again: {record['command']}",
    ]


def what_next(comparison: Any) -> str:
    """Whether more seeds could show a difference of the size that was seen."""
    from csebench.report.numbers.power import seeds_needed

    seen = comparison.estimate
    if seen is None or comparison.p is None:
        return (
            ""
            if seen is None or seen.seeds > 1
            else "With more than one seed, chance can be excluded: --seeds 3."
        )
    if comparison.differs:
        return "Give both rows the same settings first: what differs may be the reason."
    needed = seeds_needed(abs(seen.gain), seen)
    if needed <= seen.seeds:
        return "More seeds would change little; try another scale or other test sets."
    if needed == float("inf"):
        return (
            f"More seeds cannot show a difference of {abs(seen.gain):.2f}: the test items alone"
            " vary too much."
        )
    return (
        f"To show a difference of {abs(seen.gain):.2f} would take about {needed:.0f} seeds: --seeds"
        f" {needed:.0f}."
    )


def try_method(
    file: str | Path,
    against: str = "simcse",
    scale: str = "mini",
    seeds: int = 5,
    trials: int | None = None,
    evaluators: str = "sts",
    component: bool = False,
    plan: bool = False,
) -> list[dict]:
    """Compare one's own method with others, matched and paired by seed; returns the comparisons,
    one per evaluator and method, with words, interval, bound, what differs, page and what to do
    next; with `plan`, nothing is run. What is done is not done again. Raises BadInput for a wrong
    file or argument, RunFailed where training fails.

    Args:
        file: in a folder methods/ (a component in methods/components/).
        against: methods, comma-separated; for a component those that it is plugged into.
        seeds: of each row; the first ones are those of the scale's tables, whose scores may be
            published.
        trials: of the search for what is the method's own; as many as the others had, without it.
    """
    lists = {"against": against, "evaluators": evaluators}
    distinct = {key: tuple(dict.fromkeys(text.split(","))) for key, text in lists.items()}
    attempt = open_attempt(Path(file), component, scale=scale, seeds=seeds, **distinct)
    # the folder that paths of results are relative to
    with chdir(folders()[-1]), ExitStack() as stack:
        count = trial_count(attempt, trials)
        # the runs of another `try` are planned from this file
        stack.enter_context(locked(attempt.paper_file))
        write_paper(attempt)
        notices = [*restart_notices(attempt), *replaced_defaults(attempt)]
        notices += [*forecast_lines(attempt, count), downloads(attempt.pages)]
        for line in notices:
            print(line, file=sys.stderr, flush=True)
        if plan:
            return []
        check_two_steps(attempt)
        print(f"Two steps of {attempt.name} train, twice the same.", file=sys.stderr, flush=True)
        if searches := attempt.searches():
            run_csebench(
                attempt, "csebench", "tune", *searches, "--scale", scale, "--trials", str(count)
            )
        how = (
            "-s",
            str(ROOT / "Snakefile"),
            "-j",
            str(os.cpu_count() or 1),
            "--quiet",
            "rules",
            "host",
        )
        pages = (str(page.path) for page in attempt.pages)
        with locked(WORKFLOW):
            run_csebench(attempt, "snakemake", *how, "--config", f"scale={scale}", "--", *pages)
        return results(attempt)
