"""Deletes the models of runs whose scores are all published: pages are made from scores. Never
imports torch."""

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
    """Delete the model of a run unless something needs it; waits while another process works on
    the run."""
    # another job of the run did it at the same time
    with contextlib.suppress(FileNotFoundError, MissingFile):
        delete_unneeded(run_id, scale_name)


def delete_unneeded(run_id: str, scale_name: str) -> str | None:
    """Delete the model of a run unless something needs it.

    Returns:
        why the model stays, or None where it was deleted.
    """
    if training_report(catalog.RUNS / run_id) is None:
        return UNFINISHED
    with lock_run(catalog.RUNS / run_id):
        reason = reason_to_keep(run_id, scale_name)
        if reason is None:
            delete_model(catalog.RUNS / run_id)
    return reason


def reason_to_keep(run_id: str, scale_name: str) -> str | None:
    """What the model of a finished run is needed for; None where every score that pages of the
    scale show of it is published, and no other run starts from it."""
    if (done := training_report(catalog.RUNS / run_id)) is None:
        return UNFINISHED
    if run_id in {spec.encoder.revision for spec in targets.runs(scale_name).values()}:
        return "other runs start from it"
    scale, evaluators = catalog.scale(scale_name), targets.evaluators(scale_name)[run_id]
    wanted = [e for e in sorted(evaluators) if targets.unavailable(e, scale_name) is None]
    missing = [e for e in wanted if not is_published(run_id, e, scale_name, scale.evaluation, done)]
    if missing or not wanted:
        return f"no score of {', '.join(missing)} yet" if missing else "no page shows a score of it"
    return None


def is_published(
    run_id: str, evaluator: str, scale_name: str, evaluation: Evaluation, done: Path
) -> bool:
    """Whether a score is in results/, was made after the run was, of its weights, by today's
    version and settings."""
    path = targets.score_path(run_id, evaluator, scale_name)
    if not path.exists() or path.stat().st_mtime < done.stat().st_mtime:
        return False
    made_by = read_typed(path, ScoreContent, REMEDY)[0]["evaluations"][0]
    weights = read_typed(done, Report, train_again(done.parent))[0].get(
        "model_sha256", made_by.get("model_sha256")
    )
    wanted = settings(protocol(evaluator), evaluation) | (
        {"model_sha256": weights} if weights else {}
    )
    if is_other_code(made_by, wanted):
        return False
    return wanted.items() <= made_by.items()


def prune_all(pages: list[targets.Page]) -> tuple[list[str], dict[str, str]]:
    """Delete the models of the runs of pages that nothing needs; returns these runs, and by run
    why others stay."""
    deleted, kept = [], {}
    for run_id, scale_name in sorted({(run, page.scale) for page in pages for run in page.runs()}):
        folder = catalog.RUNS / run_id
        if training_report(folder) is None or not (folder / "model").exists():
            continue
        try:
            reason = delete_unneeded(run_id, scale_name)
        except BadInput as error:  # damage, which the others need not wait for
            reason = str(error)
        if reason is None:
            deleted.append(run_id)
        else:
            kept[run_id] = reason
    return deleted, kept
