"""Say what a verdict on published scores of a scale does not mean.

A verdict of the judge is about models. Whether it holds for the methods that trained them is
another question. A scale whose controls fail cannot answer it.
"""

from collections.abc import Iterable
from pathlib import Path

from csebench.base.files import read_json
from csebench.plan.catalog.files import results_folder, scale_names
from csebench.plan.catalog.registry import METHODS, adapter_names, declaration
from csebench.plan.schema.declarations import Training
from csebench.report.numbers.controls import most_labelled, why_not_judged
from csebench.report.words.comparisons import cannot_tell_text
from csebench.report.words.controls import unscored_sentences


def doubts_on_scales(files: Iterable[Path]) -> list[str]:
    """Word which scales of these score files cannot tell the methods of the files apart.

    As in a table, methods are compared as trained with labels if one of them is.
    """
    trainings_at: dict[str, set[Training | None]] = {}
    for file in files:
        scale = scale_of_file(file)
        if scale is not None:
            trainings_at.setdefault(scale, set()).add(training_of_file(file))

    doubts = []
    for scale, trainings in trainings_at.items():
        training = most_labelled(trainings)
        if training is None:
            continue
        reason = why_not_judged(training, scale)
        if reason is None:
            doubts += unscored_sentences(training, scale)
            continue
        about_models = "The verdict is about these models, not about their methods"
        doubts.append(f"{about_models}: {cannot_tell_text(reason)}.")
    return doubts


def scale_of_file(file: Path) -> str | None:
    """Name the scale whose published scores a file is among; None if it is elsewhere."""
    folder = file.resolve().parent
    for scale in scale_names():
        if folder == (results_folder(scale) / "scores").resolve():
            return scale
    return None


def training_of_file(file: Path) -> Training | None:
    """Say how the method of a score file is trained; None if it is not, or is unknown here."""
    spec = read_json(file).get("spec") or {}
    method = spec.get("method")
    if method not in adapter_names(METHODS):
        return None
    return declaration(method).training
