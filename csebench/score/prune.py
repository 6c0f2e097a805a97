"""Delete models that nothing needs any more, because all scores of their runs are published.

Pages are made from scores, so they do not need models. Never imports torch.
"""

import contextlib
from pathlib import Path

from csebench.base.errors import BadInput, MissingFile
from csebench.base.files import read_typed
from csebench.base.models import Report, train_again
from csebench.base.runs import delete_model, lock_run, training_report
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.score.score_file import REMEDY, ScoreContent, is_other_code, settings

UNFINISHED = "it is not finished"


def prune(run_id: str, scale_name: str) -> None:
    """Delete the model of a run unless something needs it.

    If another process works on the run, this one waits.
    """
    # another job may have deleted the model at the same time
    with contextlib.suppress(FileNotFoundError, MissingFile):
        delete_unneeded(run_id, scale_name)


def prune_all(pages: list[targets.Page]) -> tuple[list[str], dict[str, str]]:
    """Delete the models of the runs of pages that nothing needs.

    Returns:
        The runs whose models were deleted, and by run the reason why its model stays.
    """
    deleted: list[str] = []
    kept: dict[str, str] = {}
    runs = {(run_id, page.scale) for page in pages for run_id in page.runs()}
    for run_id, scale_name in sorted(runs):
        folder = catalog.RUNS / run_id
        if training_report(folder) is None or not (folder / "model").exists():
            continue
        try:
            reason = delete_unneeded(run_id, scale_name)
        except BadInput as error:  # a damaged run does not stop the others
            reason = str(error)
        if reason is None:
            deleted.append(run_id)
        else:
            kept[run_id] = reason
    return deleted, kept


def delete_unneeded(run_id: str, scale_name: str) -> str | None:
    """Delete the model of a run unless something needs it.

    Returns:
        Why the model stays, or None if it was deleted.
    """
    if training_report(catalog.RUNS / run_id) is None:
        return UNFINISHED
    with lock_run(catalog.RUNS / run_id):
        reason = reason_to_keep(run_id, scale_name)
        if reason is None:
            delete_model(catalog.RUNS / run_id)
    return reason


def reason_to_keep(run_id: str, scale_name: str) -> str | None:
    """Say what the model of a finished run is needed for.

    Returns:
        None if no other run starts from its model, and every score of the run that pages of the
        scale show is published.
    """
    report = training_report(catalog.RUNS / run_id)
    if report is None:
        return UNFINISHED
    starting_points = {spec.run_before for spec in targets.runs(scale_name).values()}
    if run_id in starting_points:
        return "other runs start from it"
    evaluation = catalog.scale(scale_name).evaluation
    evaluators = sorted(targets.evaluators(run_id, scale_name))
    required = [e for e in evaluators if targets.unavailable(e, scale_name) is None]
    if not required:
        return "no page shows a score of it"
    missing = [e for e in required if not is_published(run_id, e, scale_name, evaluation, report)]
    if missing:
        return f"no score of {', '.join(missing)} yet"
    return None


def is_published(
    run_id: str, evaluator: str, scale_name: str, evaluation: Evaluation, report: Path
) -> bool:
    """Whether results/ has a score of a run's present weights, with today's code and settings.

    Args:
        report: file of the training report. A score file that is older belongs to earlier weights.
    """
    path = targets.score_path(run_id, evaluator, scale_name)
    if not path.exists() or path.stat().st_mtime < report.stat().st_mtime:
        return False
    content, _ = read_typed(path, ScoreContent, REMEDY)
    stated = content["evaluations"][0]
    training, _ = read_typed(report, Report, train_again(report.parent))
    # an older report does not state its weights; then assume that the score belongs to them
    weights = training.get("model_sha256", stated.get("model_sha256"))
    required = settings(protocol(evaluator), evaluation)
    if weights:
        required["model_sha256"] = weights
    if is_other_code(stated, required):
        return False
    return required.items() <= stated.items()
