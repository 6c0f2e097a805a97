"""Train the trials of a search, each an ordinary run in runs/. csebench/plan/tuning.py says which
there are."""

from collections.abc import Callable

from csebench.base.errors import RunFailed, Untrainable, first_line
from csebench.base.gpus import acquire_gpus
from csebench.base.runs import (
    delete_model,
    has_model,
    lock_run,
    read_report,
    training_report,
)
from csebench.plan import recipe, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec
from csebench.plan.tuning import Trial, TrialRun
from csebench.study.work import train_and_score


def tune(names: list[str], scale_name: str, number: int | None, log: Callable[[str], None]) -> None:
    """Search for the settings of methods, each over all of its values or the same number of
    trials; first the searches that they start from, where there is no file of these. Trials that
    a file of a search or runs/ has are kept, so a search that was stopped goes on where it was.
    Raises BadInput, before anything is trained, where a method has nothing to try, or a file is
    damaged; RunFailed where every trial of a method failed by its own loss, or a run stopped for
    any other reason; Stopped at SIGTERM, SIGINT or SIGHUP."""
    before = [search for name in names for search in tuning.searches_before(name)]
    first = [
        search
        for search in before
        if search in names or tuning.made_search(search, scale_name) is None
    ]
    wanted = dict.fromkeys([*first, *names])
    for name in wanted:
        tuning.plan_trials(name, scale_name, number)
        tuning.made_search(name, scale_name)
    for name in wanted:
        search(name, catalog.scale(scale_name), number, log)


def search(name: str, scale: Scale, number: int | None, log: Callable[[str], None]) -> None:
    """Run the trials of one search that are not made; its file, which keeps the others, is
    written after each."""
    planned, path = (
        tuning.plan_trials(name, scale.scale, number),
        tuning.search_path(name, scale.scale),
    )
    trials, untuned = tuning.made_trials(name, scale.scale, planned), planned[0].specs[0]
    stage = recipe.pretraining(
        untuned.params, scale.encoders[tuning.ENCODER], recipe.conditions(scale), name
    )
    made_settings = [trial.settings for trial in trials]
    missing = [trial for trial in planned if trial.settings not in made_settings]
    while missing or (missing := tuning.plan_outward(name, scale.scale, trials)):
        if stage:
            trained(stage, scale, needs_model=True)
        following = missing.pop(0)
        runs = [run_trial(spec, scale) for spec in following.specs]
        trial = Trial(settings=following.settings, runs=runs)
        trials.append(trial)
        count, best = max(len(planned), len(trials)), tuning.best_trial(trials)
        content = tuning.Search(
            name=name, planned=count, spec=untuned, trials=trials, chosen=best and best.settings
        )
        tuning.write_search(content, scale.scale)
        log(f"{name}: trial {len(trials)} of {count}: {trial_label(trial)}")
    if (best := tuning.best_trial(trials)) is None:
        raise RunFailed(f"{name}: every trial failed; {path} has the reasons.")
    log(f"{name}: chosen: {trial_label(best)}; {path}")


def run_trial(spec: Spec, scale: Scale) -> TrialRun:
    """One run of a trial; one that its own loss ended is without a score."""
    run = {"run": spec.run_id, "seed": spec.seed}
    try:
        report = trained(spec, scale)
    except Untrainable as error:
        return TrialRun(**run, failure=first_line(error))
    if scale.keep == "scores":
        delete_model(catalog.RUNS / spec.run_id)
    return TrialRun(**run, dev=report["best_dev"], model_sha256=report["model_sha256"])


def trained(spec: Spec, scale: Scale, needs_model: bool = False) -> dict:
    """Train a run unless it is done, or, with `needs_model`, unless its model is there; returns
    its report."""
    folder = catalog.RUNS / spec.run_id
    if training_report(folder) is None or (needs_model and not has_model(folder)):
        acquire_gpus()
        with lock_run(folder):
            train_and_score(spec, scale)
    report = read_report(folder)
    assert report is not None, folder
    return report


def trial_label(trial: Trial) -> str:
    """`learning_rate 3e-05, temperature 0.05: 63.71 on STS-B dev`"""
    score = (
        f"failed ({trial.failure})" if trial.dev is None else f"{100 * trial.dev:.2f} on STS-B dev"
    )
    return f"{tuning.settings_text(trial.settings)}: {score}"
