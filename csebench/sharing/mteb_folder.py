"""Write scores as a folder of results that mteb reads: `mteb.ResultCache(FOLDER).load_results()`.

Only scores of the evaluator `mteb` are written, because mteb itself computed them. Another
evaluator may score other texts under the name of a task: `sts` reads SentEval's. Values are written
with six decimals, as mteb does.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from csebench.base.errors import BadInput
from csebench.base.files import matches, replacing, sha256, sha256_of_files, write_json, write_text
from csebench.base.project import ROOT, name_of
from csebench.data.fetch import mteb_task
from csebench.score.score_file import REMEDY
from csebench.sharing.score_files import SharedModel, SharedScores

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask
    from mteb.models import ModelMeta
    from mteb.results import TaskResult

MTEB = "mteb"
WHY_OTHERS_ARE_NO_RESULTS = (
    "mteb did not compute it, and may have other texts in a task of the same name"
)
TOY_DATA = ROOT / "data" / "smoke"
# the packages whose versions mteb states in `run_settings.jsonl`
STATED_PACKAGES = ("mteb", "torch", "sentence-transformers", "flash-attn", "transformers")


@dataclass(frozen=True)
class MtebResult:
    """The result of a task, and the scores that it is made from."""

    scores: SharedScores
    task: "TaskResult"


def write_mteb_results(all_scores: Iterable[SharedScores], folder: Path) -> list[Path]:
    """Write scores of the evaluator `mteb`, with `model_meta.json` and `run_settings.jsonl`.

    Returns:
        The files.

    Raises:
        BadInput: a score cannot be a result of mteb, two scores of a model contradict each other,
            or the folder already has results of a model. Nothing is written.
    """
    by_model: dict[SharedModel, list[MtebResult]] = {}
    for scores in all_scores:
        result = mteb_result(scores)
        of_model = by_model.setdefault(scores.model, [])
        for earlier in of_model:
            refuse_contradiction(earlier, result)
        of_model.append(result)
    for model in by_model:
        taken = model_folder(folder, model)
        if taken.exists():
            raise BadInput(f"{taken}: exists; choose another --out, or delete it.")

    files = []
    for model, results in by_model.items():
        files += write_model(model_folder(folder, model), model, results)
    return files


def write_model(folder: Path, model: SharedModel, results: list[MtebResult]) -> list[Path]:
    """Write the results of a model, and return the files."""
    files = []
    for result in results:
        path = folder / f"{result.task.task_name}.json"
        with replacing(path) as temporary:
            result.task.to_disk(temporary)
        files.append(path)
    settings_file = folder / "run_settings.jsonl"
    settings = [json.dumps(run_settings(result)) + "\n" for result in results]
    write_text(settings_file, "".join(settings))
    meta_file = folder / "model_meta.json"
    write_json(meta_file, model_meta(model).to_dict())
    return [*files, settings_file, meta_file]


def model_folder(folder: Path, model: SharedModel) -> Path:
    """Return the folder of a model's results, as `ResultCache.get_task_result_path` names it."""
    return folder / "results" / model_meta(model).model_name_as_path() / model.revision


def model_meta(model: SharedModel) -> "ModelMeta":
    """Describe a model for mteb."""
    from mteb.models import ModelMeta
    from mteb.models.model_meta import ScoringFunction

    facts = {
        "name": model.name,
        "revision": model.revision,
        "similarity_fn_name": ScoringFunction.COSINE,
    }
    return ModelMeta.create_empty(facts)


def run_settings(result: MtebResult) -> dict:
    """State how a task was run, under the keys that `ResultCache.save_to_cache` writes.

    The versions are those that scored the model, not those that are installed now.
    """
    ((split, of_subsets),) = result.task.scores.items()
    packages = result.scores.provenance.packages
    evaluation = result.scores.evaluation
    return {
        "task": result.task.task_name,
        "splits": [split],
        "version": {name: packages.get(name) for name in STATED_PACKAGES},
        "encode_kwargs": {
            "batch_size": evaluation.batch_size,
            "max_length": evaluation.max_length,
            "precision": evaluation.precision,
        },
        "subsets": sorted(values["hf_subset"] for values in of_subsets),
    }


# ---------------------------------------------------------------- from scores to a result


def mteb_result(scores: SharedScores) -> MtebResult:
    """Turn the scores of a task into a result of mteb.

    Raises:
        BadInput: they are not of mteb's data and code, or mteb's main score or a subset is missing.
    """
    from mteb.results import TaskResult

    refuse_other_code(scores)
    refuse_toy_data(scores)
    task = mteb_task(scores.evaluator.taken)
    main_metric = task.metadata.main_score
    languages = task.metadata.hf_subsets_to_langscripts
    of_subsets = []
    for subset, values in values_of_subsets(scores, task).items():
        if main_metric not in values:
            raise BadInput(
                f"{scores.path}: scores: {task.metadata.name}, {subset}: no {main_metric}, which is"
                f" mteb's main score. {REMEDY}"
            )
        keys = {"main_score": values[main_metric], "hf_subset": subset}
        of_subsets.append({**values, **keys, "languages": languages[subset]})
    (split,) = task.eval_splits
    result = TaskResult(
        dataset_revision=task.metadata.revision,
        task_name=task.metadata.name,
        mteb_version=scores.provenance.packages[MTEB],
        scores={split: of_subsets},
        evaluation_time=None,
        date=scores.provenance.started,
    )
    return MtebResult(scores, result)


def refuse_contradiction(first: MtebResult, second: MtebResult) -> None:
    """Refuse two results of a model that are of the same task, or of different sentence vectors."""
    paths = f"{second.scores.path} and {first.scores.path}"
    name = second.scores.model.name
    if first.task.task_name == second.task.task_name:
        raise BadInput(f"{paths}: both have {first.task.task_name} of {name}; give one of them.")
    if first.scores.evaluation.pooler != second.scores.evaluation.pooler:
        raise BadInput(
            f"{paths}: scored {name} with different poolers, which mteb cannot tell apart; export"
            " them to different folders."
        )


def refuse_other_code(scores: SharedScores) -> None:
    """Refuse scores of another version of mteb or of the evaluator.

    The installed mteb says which revision of the data a task has. Other versions may have others.
    """
    import mteb

    evaluation = scores.evaluation
    current = scores.evaluator.declaration.version
    if evaluation.code is not None or evaluation.version != current:
        raise BadInput(
            f"{scores.path}: {scores.evaluator.text}: scored by other code than version {current}"
            " of the evaluator; evaluate the model again."
        )
    scored_with = scores.provenance.packages.get(MTEB)
    if scored_with != mteb.__version__:
        raise BadInput(
            f"{scores.path}: provenance.packages.mteb: scored with mteb {scored_with}, but"
            f" {mteb.__version__} is installed, whose data may be of another revision; install"
            f" mteb=={scored_with}."
        )


def refuse_toy_data(scores: SharedScores) -> None:
    """Refuse scores on the toy data of the project, which are no results of a task of mteb."""
    sums = []
    for pattern in scores.evaluator.files:
        sums += [(name, sha256(path)) for name, path in matches(TOY_DATA, pattern).items()]
    if sums and scores.evaluation.data_sha256 == sha256_of_files(sums):
        raise BadInput(
            f"{scores.path}: {scores.evaluator.text}: scored on the toy data in"
            f" {name_of(TOY_DATA)}/, not on the data of mteb; evaluate the model on real data."
        )


def values_of_subsets(scores: SharedScores, task: "AbsTask") -> dict[str, dict[str, float]]:
    """Group the values of a task by mteb's names of subsets, then by metric.

    Rows of subset `all` stand for the only subset of a task, or repeat one of several.
    """
    by_subset: dict[str, dict[str, float]] = {}
    for row in scores.rows:
        by_subset.setdefault(row.subset, {})[row.metric] = row.value
    found = ", ".join(sorted(by_subset)) or "none"
    of_all = by_subset.pop("all", {})
    if len(task.hf_subsets) == 1 and not by_subset:
        by_subset = {task.hf_subsets[0]: of_all}
    if set(by_subset) != set(task.hf_subsets):
        raise BadInput(
            f"{scores.path}: scores: {task.metadata.name} has the subsets"
            f" {', '.join(task.hf_subsets)}, but the file has {found}."
            f" {REMEDY}"
        )
    return by_subset
