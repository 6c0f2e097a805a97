"""Write scores into the front matter of a model card, as the `model-index` that the hub reads.

The hub's `huggingface_hub.ModelCard` reads and writes the card. Values are fractions, as score
JSONs state them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from csebench.base.errors import BadInput, first_line
from csebench.base.files import read_text, write_text
from csebench.base.models import CARD, is_model_folder, refuse_model_folder
from csebench.base.outputs import check_output, is_taken
from csebench.base.project import REPOSITORY
from csebench.score.score_file import ScoreRow
from csebench.sharing.score_files import (
    NO_FILES,
    SOURCE,
    SharedModel,
    SharedScores,
    check_is_scored_model,
    link_to_scores,
    only_model,
    source_name,
)

TASK_TYPE = "feature-extraction"  # the hub's name for models that give vectors
NO_METADATA = "---\n{}\n---\n"


def write_model_index(all_scores: Sequence[SharedScores], path: Path) -> None:
    """Write the scores of a model into a model card, which is made if there is none.

    The text of a card, its other metadata and results of other tools stay. Results that csebench
    wrote earlier are replaced, also those of other evaluators. So give all scores of a model in one
    call.

    Args:
        all_scores: at least one.
        path: of the card; it may be the README.md in the folder of the model.

    Raises:
        BadInput: the scores are of several models, an evaluator occurs twice, the card cannot be
            read, or its folder holds another model. Nothing is written.
    """
    model = only_model(all_scores)
    check_card_place(path, model)
    write_text(path, card_with_scores(read_card(path, model), all_scores))


def card_with_scores(card: ModelCard, all_scores: Sequence[SharedScores]) -> str:
    """Write a model card with the scores of its model, instead of those that it had from csebench.

    Raises:
        BadInput: the scores are of several models, or an evaluator occurs twice.
    """
    model = only_model(all_scores)
    data = cast(ModelCardData, card.data)
    results = [result for result in data.eval_results or [] if not is_ours(result)]
    for scores in all_scores:
        results += eval_results(scores)
    data.model_name = data.model_name or name_on_card(model)
    data.eval_results = results
    return str(card)


def name_on_card(model: SharedModel) -> str:
    """Name a model on its card: the id of the run if it has one."""
    return model.run or model.name


def is_ours(result: EvalResult) -> bool:
    """Whether csebench has written a result of a card."""
    return (result.source_name or "").startswith(SOURCE)


# ---------------------------------------------------------------- the card


def check_card_place(path: Path, model: SharedModel) -> None:
    """Check that a card can be written, and that a model in its folder is the one that was scored.

    A model's card is the one file of its folder that may change, because no hash covers it.
    """
    check_output(path)
    folder = path.absolute().parent
    is_card_of_model = path.name == CARD and is_model_folder(folder)
    if not is_card_of_model:
        refuse_model_folder(path.absolute())
    else:
        check_is_scored_model(path, folder, model)


def read_card(path: Path, model: SharedModel) -> ModelCard:
    """Read a model card. If there is none, make one that says what the front matter holds.

    Raises:
        BadInput: the front matter of the card is not valid.
    """
    if not is_taken(path):
        scored_by = (
            f"Scored by [csebench]({REPOSITORY}). The front matter of this file has the scores."
        )
        return ModelCard(f"{NO_METADATA}\n# {name_on_card(model)}\n\n{scored_by}\n")
    content = read_text(path)
    if not content.lstrip().startswith("---"):  # the card that csebench writes beside a model
        content = f"{NO_METADATA}\n{content}"
    try:
        return ModelCard(content)
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise BadInput(
            f"{path}: its front matter is not that of a model card: {first_line(error)}. Correct"
            " it, or choose another --out."
        ) from None


# ---------------------------------------------------------------- from scores to results


def eval_results(scores: SharedScores) -> list[EvalResult]:
    """Turn the scores of whole tasks into results of a model card. Parts of tasks are left out."""
    results = [eval_result(row, scores) for row in scores.rows if row.subset == "all"]
    if not results:
        raise BadInput(f"{scores.path}: {scores.evaluator.text}: has no score of a whole task.")
    return results


def eval_result(row: ScoreRow, scores: SharedScores) -> EvalResult:
    """Turn a score into a result of a model card.

    The hash of the test data stands for its revision.
    """
    evaluation = scores.evaluation
    data = evaluation.data_sha256
    return EvalResult(
        task_type=TASK_TYPE,
        task_name=scores.evaluator.declaration.title,
        dataset_type=scores.evaluator.text,
        dataset_name=row.task,
        dataset_config=row.task,
        dataset_revision=None if data == NO_FILES else data,
        metric_type=row.metric,
        metric_name=row.metric,
        metric_value=row.value,
        metric_args={
            "seed": scores.model.seed,
            "seeds": 1,  # a card is of one run
            "protocol": row.protocol,
            "evaluator_version": evaluation.version,
            "pooler": evaluation.pooler,
            "precision": evaluation.precision,
            "max_length": evaluation.max_length,
        },
        source_name=source_name(scores.model),
        source_url=link_to_scores(scores.path),
    )
