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
from csebench.report.numbers.controls import why_not_judged
from csebench.report.words.comparisons import cannot_tell_text


def doubts_on_scales(files: Iterable[Path]) -> list[str]:
    """Word which of these score files are of a scale that cannot tell their methods apart."""
    doubts: dict[str, None] = {}
    for file in files:
        scale = scale_of_file(file)
        training = training_of_file(file) if scale is not None else None
        if scale is None or training is None:
            continue
        reason = why_not_judged(training, scale)
        if reason is not None:
            doubts[
                f"The verdict is about these models, not about their methods:"
                f" {cannot_tell_text(reason)}."
            ] = None
    return list(doubts)


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
