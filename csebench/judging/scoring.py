"""Scores of models that are judged: they are scored as by `csebench evaluate`, and nothing is kept.

Modules that load torch are imported only when a model is scored.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import DataRoot
from csebench.base.gpus import acquire_gpus
from csebench.base.hub import folder_of
from csebench.judging.own_scores import (
    name_of_data,
    own_task_scores,
    read_own_scores,
    replicates_of_rows,
)
from csebench.judging.task_scores import TaskScore
from csebench.model.embedder import Embedder
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.declarations import EncoderRef
from csebench.score.score_file import ScoredBy


def score_judged_model(
    model: str, evaluators: Sequence[str], data_root: Path | DataRoot, metric: str | None
) -> dict[str, TaskScore]:
    """Score a model.

    Args:
        model: folder or hub id.

    Raises:
        BadInput: there is no such model or data, or the model states no pooling.
        RunFailed: an evaluator failed.
    """
    if folder_of(model) is None and "/" not in model:
        raise BadInput(f"{model}: no such file or folder; a model of the hub is ORG/NAME.")
    acquire_gpus()
    from csebench.score.evaluate import evaluate_model
    from csebench.score.models import states_pooling

    if not states_pooling(EncoderRef.parse(model)):
        raise BadInput(
            f"{model}: states no pooling; score it with `csebench evaluate --pooler`, and judge the"
            " file of scores."
        )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "scores.json"
        evaluate_model(model, list(evaluators), data_root, out)
        return read_own_scores(out, metric)


def score_embedder(
    model: Embedder, evaluators: Sequence[str], data_root: Path | DataRoot, metric: str | None
) -> dict[str, TaskScore]:
    """Score a model that is open.

    Raises:
        BadInput: data is missing, or an evaluator cannot use this kind of model.
        RunFailed: an evaluator failed.
    """
    from csebench.score.evaluate import data_sha256, run_evaluator

    scores: dict[str, TaskScore] = {}
    for name in evaluators:
        known = protocol(name)
        version = known.declaration.version
        data = data_sha256(known, data_root)
        evaluated = ScoredBy(
            evaluator=known.declaration.name,
            version=version,
            params=known.params,
            data_sha256=data,
        )
        rows, items = run_evaluator(name, model, data_root)
        replicates = replicates_of_rows(known, rows, items)
        data_name = name_of_data(evaluated)
        scores |= own_task_scores(known, rows, items, replicates, data_name, metric)
    return scores
