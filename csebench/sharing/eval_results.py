"""Write scores as `.eval_results/TASK.yaml`, which the hub reads from the repository of a model.

A result names a data set of the hub, and a task as the `eval.yaml` of this data set names it. mteb
defines these names for its tasks, so only scores of the evaluator `mteb` are written. Values are
percentages with five decimals, as mteb states them. The hub's `EvalResultEntry` checks each result.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.constants import EVAL_RESULTS_FOLDER

from csebench.base.errors import BadInput
from csebench.base.files import write_text
from csebench.base.models import is_model_folder, refuse_model_folder
from csebench.base.outputs import check_output
from csebench.sharing.mteb_folder import MtebResult, mteb_result
from csebench.sharing.score_files import (
    SharedModel,
    SharedScores,
    check_is_scored_model,
    link_to_scores,
    only_model,
    source_name,
)

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata


def write_eval_results(all_scores: Sequence[SharedScores], folder: Path) -> list[Path]:
    """Write scores of the evaluator `mteb` into a folder that becomes a repository of the hub.

    Args:
        all_scores: at least one.
        folder: of the repository; it may be the folder of the model, whose hash stays the same.

    Returns:
        The files, one for each task.

    Raises:
        BadInput: a score cannot be a result of mteb, the scores are of several models, the folder
            holds another model, or a task already has results in it. Nothing is written.
    """
    model = only_model(all_scores)
    check_repository_folder(folder, model)
    texts: dict[Path, str] = {}
    for scores in all_scores:
        result = mteb_result(scores)
        path = folder / EVAL_RESULTS_FOLDER / f"{result.task.task_name}.yaml"
        if path.exists():
            raise BadInput(f"{path}: exists; delete it, or choose another --out.")
        entries = eval_result_entries_to_yaml(eval_result_entries(result))
        texts[path] = yaml.safe_dump(entries, sort_keys=False)
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def check_repository_folder(folder: Path, model: SharedModel) -> None:
    """Check that results can be written, and that a model in the folder is the one that was scored.

    No hash of a model covers the results, because their folder is hidden.
    """
    check_output(folder, is_folder=True)
    if is_model_folder(folder):
        check_is_scored_model(folder / EVAL_RESULTS_FOLDER, folder, model)
    else:
        refuse_model_folder(folder.absolute())


def eval_result_entries(result: MtebResult) -> list[EvalResultEntry]:
    """Turn the result of a task into entries: one for each subset, and one for the whole task.

    There is no entry for the whole task if only a part of it was scored, such as its English
    subsets.
    """
    import mteb

    whole_task = mteb.get_task(result.task.task_name).metadata
    ((split, of_subsets),) = result.task.scores.items()
    entries = []
    for values in of_subsets:
        task_id = f"{whole_task.name}_{values['hf_subset']}_{split}"
        entries.append(eval_result_entry(result, whole_task, task_id, values["main_score"]))
    has_all_splits = whole_task.eval_splits == [split]
    has_all_subsets = len(of_subsets) == len(whole_task.hf_subsets)
    if has_all_splits and has_all_subsets:
        average = result.task.get_score()
        entries.append(eval_result_entry(result, whole_task, whole_task.name, average))
    return entries


def eval_result_entry(
    result: MtebResult, task: "TaskMetadata", task_id: str, fraction: float
) -> EvalResultEntry:
    """State a score with its data set, its date, its source and how the model was used.

    Args:
        task_id: as the `eval.yaml` of the data set names the task, or a subset of it.
    """
    scores = result.scores
    return EvalResultEntry(
        dataset_id=task.dataset["path"],
        task_id=task_id,
        value=round(100 * float(fraction), 5),
        dataset_revision=task.dataset["revision"],
        date=scores.provenance.started.date().isoformat(),
        source_url=link_to_scores(scores.path),
        source_name=source_name(scores.model),
        notes=notes_of(result),
    )


def notes_of(result: MtebResult) -> str:
    """Say in a line how a model was scored: version of mteb, pooler, precision, length, seed."""
    scores = result.scores
    evaluation = scores.evaluation
    notes = [
        f"mteb {result.task.mteb_version}",
        f"pooler {evaluation.pooler}",
        f"precision {evaluation.precision}",
    ]
    if evaluation.max_length is not None:
        notes.append(f"at most {evaluation.max_length} tokens")
    if scores.model.seed is not None:
        notes.append(f"seed {scores.model.seed}")
    return ", ".join(notes)
