"""What tasks of SentEval share: sentences with classes, what is trained on what, and its quirks of
reading.

The classifier: evaluators/_probe.py. Official code: princeton-nlp/SimCSE
SentEval/senteval/{binary,sst,trec,mrpc}.py, tools/validation.py.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from csebench.base.errors import BadInput
from csebench.base.files import read_bytes
from csebench.data.sts import expected_counts
from csebench.model.embedder import Embedder
from csebench.score.score_types import sentence_ids
from evaluators._probe import SEED, Fold, fit, held_out, predict

REGULARISERS = [10.0**t for t in range(-5, -1)]


@dataclass
class Labelled:
    """Sentences, or pairs, with their classes, in the order in which SentEval cuts folds."""

    sentences: list[str]
    labels: np.ndarray
    others: list[str] | None = None  # second sentences of pairs


Row = tuple[str, "str | None", int]  # a sentence, the second one of a pair, the class
Settings = dict[str, "int | str"]  # `params` of the declaration
Arrays = dict[str, np.ndarray]  # features or labels, by split
Fit = Callable[..., "tuple[torch.Tensor, np.ndarray]"]  # evaluators/_probe.py: fit


def ids(split: Labelled) -> np.ndarray:
    """(N, 1) ids of the sentences; of pairs, (N, 2)."""
    return sentence_ids(split.sentences, *([] if split.others is None else [split.others]))


def embed(model: Embedder, task: str, name: str, split: Labelled) -> np.ndarray:
    """(N, D) features; of pairs, (N, 2D)."""
    if split.others is None:
        return model.embed(split.sentences, [f"{task} {label}" for label in split.labels])
    names = [f"{name} {i}" for i in range(len(split.labels))]
    left = model.embed(split.sentences, names)
    right = model.embed(
        split.others, [n if y else f"not {n}" for n, y in zip(names, split.labels, strict=True)]
    )
    return np.concatenate([np.abs(left - right), left * right], axis=1)


# ---------------------------------------------------------------- what is trained on what


def tensors(features: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Features and classes on the device, and the number of classes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)).to(device)
    return x, torch.from_numpy(labels).to(device), int(labels.max()) + 1


def folds_of(
    labels: np.ndarray, rows: np.ndarray, kfold: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stratified folds of some rows, as (train, rest) row numbers."""
    cut = StratifiedKFold(kfold, shuffle=True, random_state=SEED).split(rows, labels[rows])
    return [(rows[train], rows[rest]) for train, rest in cut]


def choose(accuracy: np.ndarray) -> tuple[int, float]:
    """The regulariser with the best mean over folds, (folds, R), rounded as SentEval rounds; the
    first of equals."""
    means = [round(100 * mean, 2) for mean in accuracy.mean(0)]
    return int(np.argmax(means)), max(means) / 100


def nested(
    features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit
) -> tuple[float, float, np.ndarray]:
    """Accuracy in validation and in test, and what is predicted for the test set, as of `kfold` and
    `dev_set`.

    MR, CR, SUBJ, MPQA: an inner k-fold chooses the regulariser of every outer fold.
    """
    y = labels["all"]
    x, targets, classes = tensors(features["all"], y)
    number_of_folds = int(settings["kfold"])
    outer = folds_of(y, np.arange(len(y)), number_of_folds)
    inner = [Fold(*cut) for train, _ in outer for cut in folds_of(y, train, number_of_folds)]
    _, accuracy = fit(x, targets, classes, inner, [REGULARISERS] * len(inner), settings)
    chosen = [choose(of_fold) for of_fold in accuracy.reshape(len(outer), -1, len(REGULARISERS))]
    decay = [[REGULARISERS[number]] for number, _ in chosen]
    weights, _ = fit(x, targets, classes, [held_out(train) for train, _ in outer], decay, settings)
    predicted, tested = np.empty(len(y), dtype=int), []
    for (_, test), (w,) in zip(outer, weights, strict=True):
        predicted[test] = predict(w, x[test]).cpu().numpy()
        tested.append(round(100 * np.mean(predicted[test] == y[test]), 2))
    dev = round(float(np.mean([100 * reached for _, reached in chosen])), 2) / 100
    return dev, round(float(np.mean(tested)), 2) / 100, predicted


def kfold(
    features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit
) -> tuple[float, float, np.ndarray]:
    """TREC, MRPC: k-fold on the training set chooses the regulariser."""
    x, targets, classes = tensors(features["train"], labels["train"])
    rows = np.arange(len(x))
    folds = [Fold(*cut) for cut in folds_of(labels["train"], rows, int(settings["kfold"]))]
    _, accuracy = fit(x, targets, classes, folds, [REGULARISERS] * len(folds), settings)
    number, dev = choose(accuracy)
    weights, _ = fit(x, targets, classes, [held_out(rows)], [[REGULARISERS[number]]], settings)
    return tested(weights[0, 0], features, labels, dev)


def dev_set(
    features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit
) -> tuple[float, float, np.ndarray]:
    """SST: its validation set chooses the regulariser, and stops the fit that is tested."""
    x, targets, classes = tensors(
        *(np.concatenate([arrays["train"], arrays["dev"]]) for arrays in (features, labels))
    )
    train, rest = np.split(np.arange(len(x)), [len(labels["train"])])
    weights, accuracy = fit(x, targets, classes, [Fold(train, rest)], [REGULARISERS], settings)
    number, dev = choose(accuracy)  # fitting it again, as SentEval does, gives the same weights
    return tested(weights[0, number], features, labels, dev)


def tested(
    weights: torch.Tensor, features: Arrays, labels: Arrays, dev: float
) -> tuple[float, float, np.ndarray]:
    x, _, _ = tensors(features["test"], labels["test"])
    predicted = predict(weights, x).cpu().numpy()
    return dev, round(100 * float(np.mean(predicted == labels["test"])), 2) / 100, predicted


# ---------------------------------------------------------------- reading


def read_parts(
    data_root: Path,
    task: str,
    folder: str,
    counts: dict[str, dict[str, int]],
    reader: Callable[[Path], list],
) -> list[list]:
    """What a reader makes of each file of a task.

    Args:
        folder: below `downstream/`; counts: lines of its files, by task and file.

    Raises:
        BadInput: a file is missing, is not encoded as SentEval reads it, a line has not the task's
            form, or there are not as many as published (not as in `counts.yaml`, where the data
            root ships its own).
    """
    parts = []
    for file, count in expected_counts(data_root, task, counts).items():
        path = data_root / f"downstream/{folder}/{file}"
        parts.append(reader(path))
        if len(parts[-1]) != count:
            raise BadInput(
                f"{path}: {len(parts[-1])} items, expected {count}: cut short or another release."
            )
    return parts


def ordered(rows: list[Row]) -> Labelled:
    """By number of words, then class, ties in the order of the files: SentEval sorts before it
    cuts folds."""
    rows = sorted(rows, key=lambda row: (len(row[0].split()), len((row[1] or "").split()), row[2]))
    left, right, labels = zip(*rows, strict=True)
    return Labelled(list(left), np.array(labels), None if right[0] is None else list(right))


def text_of(path: Path, encoding: str) -> str:
    try:
        return read_bytes(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as e:
        raise BadInput(f"{path}: byte {e.start}: not {encoding}.") from None


def clean(text: str) -> str:
    return " ".join(text.split())


def phrases(path: Path) -> list[tuple[str, None]]:
    """Read as latin-1; every line counts, blank ones and those behind a control character that
    ends a line, too."""
    if read_bytes(path).startswith(codecs.BOM_UTF8):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it without one.")
    return [(clean(line), None) for line in text_of(path, "latin-1").splitlines()]


def lines_of(path: Path, encoding: str, malformed: str, parse: Callable[[str], Row]) -> list[Row]:
    """What `parse` makes of every line; what it cannot read is refused by number."""
    text, rows = text_of(path, encoding), []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        try:
            rows.append(parse(line.strip()))
        except (ValueError, IndexError):
            raise BadInput(f"{path}: line {number}: {malformed} (got {line[:60]!r}).") from None
    return rows
