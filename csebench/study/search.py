"""Run the searches of `csebench tune`: train the trials, and write the file of each search.

Each trial consists of ordinary runs in runs/. Which trials there are, and which one is chosen, is
decided in csebench/plan/tuning.py.
"""

from collections.abc import Callable

from csebench.base.errors import RunFailed, Untrainable, first_line
from csebench.base.gpus import acquire_gpus
from csebench.base.runs import (
    delete_model,
    has_model,
    read_report,
    training_report,
    work_on,
)
from csebench.plan import recipe, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec
from csebench.plan.tuning import Trial, TrialRun
from csebench.study.work import train_and_score


def tune(names: list[str], scale_name: str, number: int | None, log: Callable[[str], None]) -> None:
    """Search for the settings of methods.

    A search may start from the choices of other searches. If one of these has no file yet, it runs
    first. Trials in the file of a search are kept, and runs in runs/ are not repeated. So the same
    call resumes a search that was stopped.

    Args:
        names: methods, also with components, as in `ct+ami`.
        number: trials of each search. None means every combination of the values to try.
        log: called with a line per trial and per search.

    Raises:
        BadInput: a method has nothing to try, or a file is damaged. Raised before any training.
        RunFailed: the settings of every trial of a method made it fail, or a run failed for
            another reason.
        Stopped: SIGTERM, SIGINT or SIGHUP asked for an end.
    """
    needed_first: list[str] = []
    for name in names:
        for earlier in tuning.searches_before(name):
            if earlier in names or tuning.made_search(earlier, scale_name) is None:
                needed_first.append(earlier)
    searches = list(dict.fromkeys([*needed_first, *names]))
    for name in searches:  # both calls refuse bad input, here before anything is trained
        tuning.plan_trials(name, scale_name, number)
        tuning.made_search(name, scale_name)
    for name in searches:
        run_search(name, catalog.scale(scale_name), number, log)


def run_search(name: str, scale: Scale, number: int | None, log: Callable[[str], None]) -> None:
    """Run the missing trials of a search. Write its file after each of them.

    The planned trials come first. If the best trial then has the largest or smallest value that was
    tried, the next value outward is tried, and so on until the best trial lies within.
    """
    planned = tuning.plan_trials(name, scale.scale, number)
    untuned = planned[0].specs[0]  # the first trial has the settings before tuning
    earlier_search = tuning.made_search(name, scale.scale)
    encoder = scale.encoders[tuning.ENCODER]
    # a run that all trials start from, for methods that need one
    pretraining = recipe.pretraining(untuned.params, encoder, recipe.conditions(scale), name)

    trials = tuning.kept_trials(earlier_search, planned)
    planned_number = len(planned)
    if trials and earlier_search is not None:
        # the earlier call may have had a larger --trials
        planned_number = max(planned_number, earlier_search.planned)
    kept_settings = [trial.settings for trial in trials]
    missing = [trial for trial in planned if trial.settings not in kept_settings]
    if not missing:
        missing = tuning.plan_outward(name, scale.scale, trials)
    while missing:
        if pretraining:  # trains once, and only if a trial is missing
            train_unless_done(pretraining, scale, needs_model=True)
        planned_trial = missing.pop(0)
        runs = [run_trial(spec, scale) for spec in planned_trial.specs]
        trial = Trial(settings=planned_trial.settings, runs=runs)
        trials.append(trial)

        # write the file after each trial, so that a stopped search loses none
        best = tuning.best_trial(trials)
        chosen = None
        if best is not None:
            chosen = best.settings
        search = tuning.Search(
            name=name, planned=planned_number, spec=untuned, trials=trials, chosen=chosen
        )
        tuning.write_search(search, scale.scale)
        count = max(planned_number, len(trials))  # outward trials exceed the planned number
        log(f"{name}: trial {len(trials)} of {count}: {trial_label(trial)}")
        if not missing:
            missing = tuning.plan_outward(name, scale.scale, trials)

    path = tuning.search_path(name, scale.scale)
    best = tuning.best_trial(trials)
    if best is None:
        raise RunFailed(f"{name}: every trial failed; {path} has the reasons.")
    log(f"{name}: chosen: {trial_label(best)}; {path}")


def run_trial(spec: Spec, scale: Scale) -> TrialRun:
    """Train one run of a trial. If its settings make it fail, return the reason, not a score."""
    run = {"run": spec.run_id, "seed": spec.seed}
    try:
        report = train_unless_done(spec, scale)
    except Untrainable as error:
        return TrialRun(**run, failure=first_line(error))
    if scale.keep == "scores":
        delete_model(catalog.RUNS / spec.run_id)
    return TrialRun(**run, dev=report["best_dev"], model_sha256=report["model_sha256"])


def train_unless_done(spec: Spec, scale: Scale, needs_model: bool = False) -> dict:
    """Train a run unless it is done, and return its report.

    Args:
        needs_model: whether to train a done run again if its model was deleted.
    """
    folder = catalog.RUNS / spec.run_id
    is_done = training_report(folder) is not None
    if not is_done or (needs_model and not has_model(folder)):
        acquire_gpus()
        with work_on(folder, spec, spec.run_id) as progress:
            train_and_score(spec, scale, progress)
    report = read_report(folder)
    assert report is not None, folder
    return report


def trial_label(trial: Trial) -> str:
    """Word a trial: `learning_rate 3e-05, temperature 0.05: 63.71 on STS-B dev`."""
    settings = tuning.settings_text(trial.settings)
    if trial.dev is None:
        return f"{settings}: failed ({trial.failure})"
    return f"{settings}: {100 * trial.dev:.2f} on STS-B dev"
