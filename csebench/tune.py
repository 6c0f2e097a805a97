"""`csebench tune`: runs the trials of a search, each an ordinary run in runs/, and keeps what they give.

Which trials, and the file of a search: csebench/plan/tuning.py.
"""

from __future__ import annotations

from collections.abc import Callable

from csebench import worker
from csebench.base import gpus
from csebench.base.errors import RunFailed, Stopped, first_line
from csebench.base.run_dir import delete_model, has_model, lock_run, read_report, training_report
from csebench.plan import catalog, tuning
from csebench.plan.recipe import conditions, pretraining
from csebench.plan.schema import Scale
from csebench.plan.spec import Spec
from csebench.plan.tuning import Settings, Trial


def tune(names: list[str], scale_name: str, number: int, log: Callable[[str], None]) -> None:
    """Search for the settings of methods, with the same number of trials for each. Trials that are done are kept, so
    a search that was stopped goes on where it was.

    Raises:
        BadInput: a method has no search space or too small a one; nothing is trained then.
        RunFailed: every trial of a method failed, or a pre-training run that its trials start from.
        Stopped: SIGTERM or SIGINT asked for an end.
    """
    planned = {name: tuning.plan_trials(name, scale_name, number) for name in dict.fromkeys(names)}
    for name, trials in planned.items():
        search(name, scale_name, trials, log)


def search(name: str, scale_name: str, planned: list[tuple[Settings, Spec]], log: Callable[[str], None]) -> None:
    """Run the trials of one search; its file is written after each."""
    scale, made, untuned = catalog.scale(scale_name), [], planned[0][1]
    if stage := pretraining(untuned.params, scale.encoders[tuning.ENCODER], conditions(scale), name):
        train(stage, scale, needs_model=True)
    for settings, spec in planned:
        made.append(run_trial(settings, spec, scale))
        content = tuning.Search(
            name=name, planned=len(planned), spec=untuned, trials=made, chosen=tuning.chosen_settings(made)
        )
        path = tuning.write_search(content, scale_name)
        log(f"{name}: trial {len(made)} of {len(planned)}: {trial_label(made[-1])}")
    best = tuning.best_trial(made)
    if best is None:
        raise RunFailed(f"{name}: every trial failed; {path} has the reasons.")
    log(f"{name}: chosen: {trial_label(best)}; {path}")


def run_trial(settings: Settings, spec: Spec, scale: Scale) -> Trial:
    """One trial; a run that failed, as by a loss that is not finite, is one without a score."""
    try:
        report = train(spec, scale)
    except Stopped:
        raise
    except RunFailed as error:
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
