"""Say what a verdict on published scores of a scale does not mean.

A verdict of the judge is about models. Whether it holds for the methods that trained them is
another question. A scale whose controls fail cannot answer it.
"""

from collections.abc import Iterable
from pathlib import Path

from csebench.plan.catalog.files import results_folder, scale_names
from csebench.plan.catalog.registry import METHODS, adapter_names, declaration
from csebench.plan.schema.declarations import Training
from csebench.plan.targets import method_of
from csebench.report.numbers.controls import most_labelled
from csebench.report.words.controls import scale_doubt

ONLY_MODELS = "The verdict is about these models, not about their methods: {reason}."


def doubts_on_scales(files: Iterable[Path]) -> list[str]:
    """Word which scales of these score files cannot tell the methods of the files apart.

    As in a table, methods are compared as trained with labels if one of them is.
    """
    scale_of_folder = {(results_folder(name) / "scores").resolve(): name for name in scale_names()}
    trainings_at: dict[str, set[Training | None]] = {}
    for file in files:
        scale = scale_of_folder.get(file.resolve().parent)
        if scale is not None:
            trainings_at.setdefault(scale, set()).add(training_of_file(file))

    doubts = []
    for scale, trainings in trainings_at.items():
        training = most_labelled(trainings)
        if training is None:
            continue
        doubt = scale_doubt(training, scale, ONLY_MODELS)
        if doubt:
            doubts.append(doubt)
    return doubts


def training_of_file(file: Path) -> Training | None:
    """Say how the method of a published score is trained; None if it is not, or is unknown here.

    Args:
        file: `results/mini/scores/RUN.EVALUATOR.json`.
    """
    run_id, _, _ = file.name.partition(".")
    method = method_of(run_id)
    if method not in adapter_names(METHODS):
        return None
    return declaration(method).training
