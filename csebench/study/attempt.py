"""Run `csebench try`: compare a method or component of one's own with other methods.

This module has the steps of the command, in their order. attempt_paper.py writes the attempt as an
ordinary paper, so that the workflow can make its runs and pages.
"""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir
from pathlib import Path

from csebench.base import caches
from csebench.base.errors import BadInput, RunFailed, last_error
from csebench.base.hub import can_be_reached
from csebench.base.locks import locked
from csebench.base.processes import run_program
from csebench.base.project import ROOT, folders
from csebench.base.runs import read_report
from csebench.data.preflight import downloads
from csebench.plan import targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import distinct_names
from csebench.plan.recipe import conditions, corpus_path, make_spec, positives_path
from csebench.plan.schema.spec import Spec
from csebench.study.attempt_notices import (
    forecast_lines,
    missing_search_runs,
    restart_notices,
    scale_notice,
)
from csebench.study.attempt_paper import Attempt, open_attempt, replaced_defaults, write_paper
from csebench.study.attempt_results import results

SETTINGS = 8  # random settings of an attempt, if the user asks for no other number
SEEDS_OF_A_ROW = 5  # runs of each row with the settings of one search
CHECKED_STEPS = 2
# `csebench try` locks this name: Snakemake refuses to make a file that another Snakemake makes
WORKFLOW = Path(".snakemake", "workflow")


def try_method(
    file: str | Path,
    against: str = "simcse",
    scale: str | None = None,
    settings: int = SETTINGS,
    seeds: int | None = None,
    trials: int | None = None,
    evaluators: str = "sts",
    component: bool = False,
    plan: bool = False,
) -> list[dict]:
    """Compare one's own method with others, over random settings that they share.

    Every row is run with the same seeds. A seed decides the settings of a run and its subset of the
    corpus. With `settings=1`, all runs have the settings of one search instead.
    Finished work is not repeated.

    Args:
        file: the method, in a folder methods/. A component is in methods/components/.
        against: methods to compare with, comma-separated. A component is plugged into each of them.
        scale: name of a file in config/. None: see `answering_scale`.
        settings: number of random settings. 1 means the settings of one search.
        seeds: number of runs of each row with the settings of one search; None means 5. The first
            seeds are those of the scale's tables, so that published scores can be used.
        trials: number of trials in the search for the method's own settings. None means as many as
            the other methods had.
        evaluators: comma-separated. Each has a table of its own.
        component: whether the file is a component.
        plan: print what is left to do and how long it takes, and run nothing.

    Returns:
        One comparison per evaluator and method, with words, interval, bound, settings that differ,
        page and what to do next. Empty with `plan`.

    Raises:
        BadInput: the file or an argument is wrong.
        RunFailed: training fails.
    """
    check_options(settings, seeds, trials)
    attempt = open_attempt(
        Path(file),
        component,
        against=distinct_names(against),
        scale=scale or answering_scale(),
        evaluators=distinct_names(evaluators),
        seeds=seeds or SEEDS_OF_A_ROW,
        settings=settings,
    )
    # paths of results are relative to this folder
    with chdir(folders()[-1]), ExitStack() as stack:
        count = trial_count(attempt, trials)
        # lock the paper: the runs of another `csebench try` are planned from it
        stack.enter_context(locked(attempt.paper_file))
        write_paper(attempt)
        notices = scale_notice(attempt) + restart_notices(attempt) + replaced_defaults(attempt)
        notices += [*forecast_lines(attempt, count), downloads(attempt.pages)]
        for line in notices:
            print_note(line)
        if plan:
            return []
        if has_training_left(attempt, count):
            check_two_steps(attempt)
            print_note(f"Two steps of {attempt.name} train, twice with the same result.")
        run_searches(attempt, count)
        run_workflow(attempt)
        return results(attempt)


def check_options(settings: int, seeds: int | None, trials: int | None) -> None:
    """Raise BadInput if there are no settings, or --seeds or --trials beside random settings."""
    if settings < 1:
        raise BadInput(f"--settings {settings}: must be at least 1.")
    if settings == 1:
        return
    for option, value in (("--seeds", seeds), ("--trials", trials)):
        if value is not None:
            raise BadInput(
                f"{option}: is for the settings of one search. Add --settings 1, or leave it out:"
                " each random setting has a seed of its own."
            )


def answering_scale() -> str:
    """Choose the scale of an attempt: one that can tell methods apart, if its encoders can be had.

    Returns:
        `small`, whose encoders are on the hub, if the hub can be reached. Otherwise `mini`, which
        tells no methods apart that train without labels, or the default scale if there is no mini.
    """
    if "small" in catalog.scale_names() and can_be_reached():
        return "small"
    return catalog.scale_with_results()


def print_note(line: str) -> None:
    """Print a line that does not belong to the results."""
    print(line, file=sys.stderr, flush=True)


def trial_count(attempt: Attempt, trials: int | None) -> int:
    """Choose the number of trials: as many as the other searches of the scale had.

    Args:
        trials: the number that the user asked for, if any.

    Raises:
        BadInput: the other searches have another number of trials, or the scale takes no settings
            from searches.
    """
    if trials is not None and not catalog.scale(attempt.scale).tuned:
        raise BadInput(
            f"--trials: scale {attempt.scale} takes no settings from searches; leave it out."
        )
    searches = [tuning.read_search(path) for path in tuning.search_files(attempt.scale)]
    usual = max((search.planned for search in searches), default=None)
    if trials is not None and usual is not None and trials != usual:
        raise BadInput(
            f"--trials {trials}: searches at scale {attempt.scale} have {usual} trials; leave it"
            " out."
        )
    return trials or usual or 1


def has_training_left(attempt: Attempt, trials: int) -> bool:
    """Whether a run, or a trial of a search, still has to be trained.

    Args:
        trials: number of trials of each search.
    """
    if missing_search_runs(attempt, trials):
        return True
    needed = set()
    for page in attempt.pages:
        needed |= page.available_runs().keys()
    return not needed <= targets.finished_runs(attempt.pages)


def check_two_steps(attempt: Attempt) -> None:
    """Train two steps twice, on the smallest data of the project and on the CPU.

    Raises:
        RunFailed: the steps fail, or the two models differ in any bit.
    """
    spec = spec_of_check(attempt)
    hashes = set()
    with tempfile.TemporaryDirectory() as temporary:
        for name in ("first", "second"):
            out = Path(temporary, name)
            train_for_check(attempt, spec, out)
            report = read_report(out)
            assert report is not None, out
            hashes.add(report["model_sha256"])
    if len(hashes) > 1:
        raise RunFailed(
            f"try: {attempt.name}: two runs with the same seed differ; draw random numbers with"
            " torch alone."
        )


def spec_of_check(attempt: Attempt) -> Spec:
    """Plan a run of two steps at the default scale. A component runs on its first host."""
    scale = catalog.scale(catalog.DEFAULT_SCALE)
    first_recipe, *_ = attempt.recipes().values()
    # a sweep overrides all other settings
    two_steps = {"steps": CHECKED_STEPS, "evaluate_every": 1}
    recipe = first_recipe.model_copy(update={"sweep": two_steps})
    encoder = scale.encoders[tuning.ENCODER]
    size = min(scale.sizes.values())
    where = f"try: {attempt.name}"
    spec = make_spec(recipe, encoder, size, scale.seeds[0], conditions(scale), where)
    # two steps need no pre-training, whose model may not be there yet
    return spec.model_copy(update={"encoder": encoder})


def train_for_check(attempt: Attempt, spec: Spec, out: Path) -> None:
    """Train a run of the check in a process of its own, on the CPU.

    Two runs on the CPU must agree bit for bit.

    Raises:
        RunFailed: training failed. The message names the line of one's own file, if it is known.
    """
    scale = catalog.scale(catalog.DEFAULT_SCALE)
    # several joined folders make several data roots; take the one that has this file
    data_root = str(catalog.data_root(scale) / catalog.STSB_DEV).removesuffix(catalog.STSB_DEV)
    command = [sys.executable, "-m", "csebench", "train", spec.model_dump_json()]
    command += ["--data", data_root, "--device", "cpu", "--out", str(out)]
    corpus = corpus_path(spec, scale)
    if corpus is not None:
        command += ["--corpus", str(corpus)]
    positives = positives_path(spec)
    if positives is not None:
        command += ["--positives", str(positives)]

    task = f"try: {attempt.name}"
    done = run_program(command, task, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return
    problem = f"{task}: {CHECKED_STEPS} steps of training fail"
    lines = re.findall(rf'File ".*/{attempt.unit}.py", line (\d+)', done.stderr)
    if lines:
        problem += f" at {attempt.unit}.py, line {lines[-1]}"
    raise RunFailed(f"{problem}: {last_error(done.stderr)}")


def run_searches(attempt: Attempt, trials: int) -> None:
    """Search for the settings of the attempt, if the scale takes settings from searches."""
    searches = attempt.searches()
    if searches:
        options = ["--scale", attempt.scale, "--trials", str(trials)]
        run_step(attempt, "csebench", "tune", *searches, *options)


def run_workflow(attempt: Attempt) -> None:
    """Train and score the missing runs, and write the pages."""
    snakefile = str(ROOT / "Snakefile")
    jobs = str(os.cpu_count() or 1)
    options = ["-s", snakefile, "-j", jobs, "--quiet", "rules", "host"]
    options += ["--config", f"scale={attempt.scale}"]
    pages = [str(page.path) for page in attempt.pages]
    with locked(WORKFLOW):
        run_step(attempt, "snakemake", *options, "--", *pages)


def run_step(attempt: Attempt, *command: str) -> None:
    """Run a verb or the workflow in a process of its own, so that its end frees the GPU.

    Raises:
        RunFailed: the command failed. It printed the reason.
    """
    stderr = 2  # the number, because a notebook replaces sys.stderr
    done = run_program([sys.executable, "-m", *command], f"try: {attempt.name}", stdout=stderr)
    if done.returncode:
        raise RunFailed(
            f"try: {attempt.name}: failed for the reason above. Fix it, then run the same command"
            " to resume."
        )
    caches.clear()
