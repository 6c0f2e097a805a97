"""`csebench tune`: runs the trials of a search, each an ordinary run in runs/, and keeps what they give.

Which trials, and the file of a search: csebench/plan/tuning.py.
"""

from __future__ import annotations

from collections.abc import Callable

from csebench import worker
from csebench.base import gpus
from csebench.base.errors import RunFailed, Untrainable, first_line
from csebench.base.runs import delete_model, has_model, lock_run, read_report, training_report
from csebench.plan import catalog, tuning
from csebench.plan.declarations import Scale
from csebench.plan.recipe import conditions, pretraining
from csebench.plan.spec import Spec
from csebench.plan.tuning import Settings, Trial


def tune(names: list[str], scale_name: str, number: int, log: Callable[[str], None]) -> None:
    """Search for the settings of methods, with the same number of trials for each. Trials that a file of a search or
    runs/ has are kept, so a search that was stopped goes on where it was.

    Raises:
        BadInput: a method has no search space or too small a one, or its file is damaged; nothing is trained then.
        RunFailed: every trial of a method failed by its own loss, or a run stopped for any other reason.
        Stopped: SIGTERM or SIGINT asked for an end.
    """
    planned = {name: tuning.plan_trials(name, scale_name, number) for name in dict.fromkeys(names)}
    kept = {name: kept_trials(name, scale_name, untuned) for name, ((_, untuned), *_) in planned.items()}
    for name, trials in planned.items():
        search(name, scale_name, trials, kept[name], log)


def kept_trials(name: str, scale_name: str, untuned: Spec) -> dict[str, Trial]:
    """The trials that the file of a search has, by run; none of a search under other settings than today's."""
    path = tuning.search_path(name, scale_name)
    before = tuning.read_search(path) if (catalog.ROOT / path).exists() else None
    return {trial.run: trial for trial in before.trials} if before and before.spec == untuned else {}


def search(
    name: str,
    scale_name: str,
    planned: list[tuple[Settings, Spec]],
    made: dict[str, Trial],
    log: Callable[[str], None],
) -> None:
    """Run the trials of one search that are not made; its file, which keeps the others, is written after each."""
    scale, untuned, path = catalog.scale(scale_name), planned[0][1], tuning.search_path(name, scale_name)
    stage = pretraining(untuned.params, scale.encoders[tuning.ENCODER], conditions(scale), name)
    if stage and any(spec.run_id not in made for _, spec in planned):
        train(stage, scale, needs_model=True)
    for number, (settings, spec) in enumerate(planned, 1):
        if spec.run_id not in made:
            made[spec.run_id] = run_trial(settings, spec, scale)
        trials = [*made.values()]
        content = tuning.Search(
            name=name,
            planned=max(len(planned), len(trials)),
            spec=untuned,
            trials=trials,
            chosen=tuning.chosen_settings(trials),
        )
        tuning.write_search(content, scale_name)
        log(f"{name}: trial {number} of {len(planned)}: {trial_label(made[spec.run_id])}")
    best = tuning.best_trial([*made.values()])
    if best is None:
        raise RunFailed(f"{name}: every trial failed; {path} has the reasons.")
    log(f"{name}: chosen: {trial_label(best)}; {path}")


def run_trial(settings: Settings, spec: Spec, scale: Scale) -> Trial:
    """One trial; a run that its own loss ended is one without a score."""
    try:
        report = train(spec, scale)
    except Untrainable as error:
        return Trial(settings=settings, run=spec.run_id, failure=first_line(error))
    if scale.keep == "scores":
        delete_model(catalog.RUNS / spec.run_id)
    return Trial(settings=settings, run=spec.run_id, dev=report["best_dev"], model_sha256=report["model_sha256"])


def train(spec: Spec, scale: Scale, needs_model: bool = False) -> dict:
    """Train a run unless it is done, or, with `needs_model`, unless its model is there; returns its report."""
    folder = catalog.RUNS / spec.run_id
    if training_report(folder) is None or (needs_model and not has_model(folder)):
        with lock_run(folder), gpus.acquire_gpus():
            worker.train_and_score(spec, scale, [], runs_per_gpu=1)
    report = read_report(folder)
    assert report is not None, folder
    return report


def trial_label(trial: Trial) -> str:
    """`learning_rate 3e-05, temperature 0.05: 63.71 on STS-B dev`"""
    score = f"failed ({trial.failure})" if trial.dev is None else f"{100 * trial.dev:.2f} on STS-B dev"
    return f"{tuning.settings_text(trial.settings)}: {score}"
