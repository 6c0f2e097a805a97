"""Word the notices of `csebench try`: which results it makes again, and the forecast.

Nothing is trained or written here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from csebench.base.files import read_json
from csebench.base.models import train_again
from csebench.base.terminal import counted
from csebench.plan import forecast, targets, tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import EVALUATORS, declaration, protocol
from csebench.plan.code_versions import draft_code
from csebench.plan.forecast import TimeEstimate
from csebench.plan.schema.spec import Spec
from csebench.score.store import read_scores
from csebench.study.attempt_paper import Attempt

ONLY_NUMBERS = (
    "There will be numbers and no verdict: {reason}. --scale small trains BERTs of the hub."
)


def restart_notices(attempt: Attempt) -> list[str]:
    """Say which results are made again because the code that makes them changed."""
    notices = []
    code_now = draft_code(attempt.name, attempt.folder)
    if is_changed(code_now, codes_of_runs(attempt)):
        made_again = "its search and its runs" if attempt.searches() else "its runs"
        notices.append(
            f"{attempt.unit}.py: its code changed since its last runs, so {made_again} start again."
            f" The old runs stay in {catalog.RUNS}/."
        )
    for evaluator in attempt.evaluators:
        code_now = draft_code(protocol(evaluator).declaration.name, EVALUATORS)
        if is_changed(code_now, codes_of_scores(attempt, evaluator)):
            notices.append(f"{evaluator}: its code changed, so its scores are made again.")
    return notices


def scale_notice(attempt: Attempt) -> list[str]:
    """Warn if the scale cannot judge methods of this kind, or if that is not known yet."""
    from csebench.report.words.controls import scale_doubt

    first_recipe, *_ = attempt.recipes().values()
    training = declaration(first_recipe.method).training
    if training is None:
        return []
    doubt = scale_doubt(training, attempt.scale, ONLY_NUMBERS)
    if not doubt:
        return []
    return [doubt]


def is_changed(code_now: str | None, codes: set[str | None]) -> bool:
    """Whether a draft has results from older code, and none from its current code.

    Args:
        code_now: hash of the current code. None if the file is no draft.
        codes: hashes of the code that made the results. None stands for code that was no draft.
    """
    draft_codes = codes - {None}
    return code_now is not None and bool(draft_codes) and code_now not in draft_codes


def codes_of_runs(attempt: Attempt) -> set[str | None]:
    """Read from the runs in runs/ the hashes of one's own file that they were made with."""
    codes: set[str | None] = set()
    for recipe in attempt.recipes().values():
        for file in catalog.RUNS.glob(f"{recipe.method}-*/spec.json"):
            spec = read_json(file, train_again(file.parent))
            codes.add(spec.get("code", {}).get(attempt.unit))
    return codes


def codes_of_scores(attempt: Attempt, evaluator: str) -> set[str | None]:
    """Read from the scores of the attempt's pages the hashes of the evaluator's code."""
    codes: set[str | None] = set()
    for page in attempt.pages:
        for run in page.runs():
            content = read_scores(targets.score_path(run, evaluator, attempt.scale))
            if content is not None:
                codes.add(content["evaluations"][0].get("code"))
    return codes


@dataclass(frozen=True)
class RemainingWork:
    """The work that an attempt still needs, and its forecast."""

    search_runs: int
    runs: int
    scores: int
    estimate: TimeEstimate
    unmeasured: int  # runs and scores that nobody has measured; the estimate lacks them
    device: str | None  # None if no device was measured


def forecast_lines(attempt: Attempt, trials: int) -> list[str]:
    """Say what is left to do, and how many hours it takes.

    Args:
        trials: number of trials of each search.
    """
    work = forecast.Work(attempt.pages)
    remaining = remaining_work(work, attempt, trials)
    counts = [
        counted(remaining.search_runs, "search run"),
        counted(remaining.runs, "run"),
        counted(remaining.scores, "score"),
    ]
    device = "on a device that nobody has measured"
    if remaining.device:
        device = f"on one {remaining.device}"
    unmeasured = ""
    if remaining.unmeasured:
        parts = counted(remaining.unmeasured, "part")
        unmeasured = f", without {parts} that nobody has measured"
    lines = [
        f"Left to make: {', '.join(counts)}.",
        f"Forecast: {remaining.estimate.hours} {device}{unmeasured}.",
    ]
    return lines


def remaining_work(work: forecast.Work, attempt: Attempt, trials: int) -> RemainingWork:
    """Count and forecast the runs and scores that are missing, also the runs of searches.

    If the step of a method was not measured, the first method of `against` stands in for it.
    """
    steps = work.steps(work.missing)
    scores = [step for step in steps if step.kind == "score"]
    runs = [work.specs[step.run] for step in steps if step.kind == "train"]
    search_runs = missing_search_runs(attempt, trials)
    estimate, unmeasured = work.cost(scores)
    times = work.times.get(work.scale.encoders[tuning.ENCODER].name)
    for spec in [*runs, *search_runs]:
        price = None
        if times is not None:
            stand_in = spec.model_copy(update={"method": attempt.against[0], "components": {}})
            price = first_estimate([spec, stand_in], times)
        if price is None:
            unmeasured += 1
        else:
            estimate += price
    return RemainingWork(
        search_runs=len(search_runs),
        runs=len(runs),
        scores=len(scores),
        estimate=estimate,
        unmeasured=unmeasured,
        device=work.device,
    )


def missing_search_runs(attempt: Attempt, trials: int) -> list[Spec]:
    """List the runs of the trials that the searches for the attempt still lack."""
    specs = []
    for name in attempt.searches():
        planned = tuning.plan_trials(name, attempt.scale, trials)
        made_trials = tuning.kept_trials(tuning.made_search(name, attempt.scale), planned)
        made_settings = [trial.settings for trial in made_trials]
        for trial in planned:
            if trial.settings not in made_settings:
                specs += trial.specs
    return specs


def first_estimate(specs: Iterable[Spec], times: forecast.StepTimes) -> TimeEstimate | None:
    """Forecast the training of the first run whose step time can be derived from measured ones."""
    for spec in specs:
        estimate = forecast.training_estimate(spec, times)
        if estimate is not None:
            return estimate
    return None
