"""Parts that the tasks of SentEval share: reading its files, and choosing rows to train and test
on.

The reading follows SentEval's quirks. The classifier: evaluators/_probe.py. Official code:
princeton-nlp/SimCSE SentEval/senteval/{binary,sst,trec,mrpc}.py, tools/validation.py.
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
    """Sentences or pairs with their classes, in the order in which SentEval cuts folds."""

    sentences: list[str]
    labels: np.ndarray
    others: list[str] | None = None  # second sentences of pairs


@dataclass(frozen=True)
class ProbeResult:
    """The accuracy of a classifier on one task."""

    dev: float  # accuracy in validation, with the chosen regulariser
    test: float
    predicted: np.ndarray  # (test rows,) class numbers


Row = tuple[str, "str | None", int]  # a sentence, the second sentence of a pair, the class
Settings = dict[str, "int | str"]  # `params` of the declaration
Arrays = dict[str, np.ndarray]  # features or labels, by split
Fit = Callable[..., "tuple[torch.Tensor, np.ndarray]"]  # evaluators/_probe.py: fit


def ids(split: Labelled) -> np.ndarray:
    """Hash sentences to (N, 1) ids, or pairs to (N, 2) ids."""
    if split.others is None:
        return sentence_ids(split.sentences)
    return sentence_ids(split.sentences, split.others)


def embed(model: Embedder, task: str, name: str, split: Labelled) -> np.ndarray:
    """Compute (N, D) features of sentences, or (N, 2D) features of pairs.

    Args:
        name: name of the split.
    """
    if split.others is None:
        return model.embed(split.sentences, [f"{task} {label}" for label in split.labels])
    # what the oracle is told of a sentence: both sentences of a paraphrase have the same name
    names = [f"{name} {number}" for number in range(len(split.labels))]
    names_of_others = []
    for pair, is_paraphrase in zip(names, split.labels, strict=True):
        names_of_others.append(pair if is_paraphrase else f"not {pair}")
    left = model.embed(split.sentences, names)
    right = model.embed(split.others, names_of_others)
    return np.concatenate([np.abs(left - right), left * right], axis=1)


# ---------------------------------------------------------------- rows to train and test on


def nested(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> ProbeResult:
    """Test on outer folds: an inner k-fold chooses the regulariser of each (MR, CR, SUBJ, MPQA)."""
    y = labels["all"]
    x, targets, classes = tensors(features["all"], y)
    number_of_folds = int(settings["kfold"])
    outer = folds_of(y, np.arange(len(y)), number_of_folds)

    # choose a regulariser for every outer fold
    inner: list[Fold] = []
    for train, _ in outer:
        inner += [Fold(*cut) for cut in folds_of(y, train, number_of_folds)]
    _, accuracy = fit(x, targets, classes, inner, [REGULARISERS] * len(inner), settings)
    by_outer_fold = accuracy.reshape(len(outer), -1, len(REGULARISERS))
    chosen = [choose(accuracy_of_fold) for accuracy_of_fold in by_outer_fold]

    # fit it on the outer folds, and test
    decay = [[REGULARISERS[number]] for number, _ in chosen]
    held_out_folds = [held_out(train) for train, _ in outer]
    weights, _ = fit(x, targets, classes, held_out_folds, decay, settings)
    predicted = np.empty(len(y), dtype=int)
    tests = []
    for (_, test), (w,) in zip(outer, weights, strict=True):
        predicted[test] = predict(w, x[test]).cpu().numpy()
        tests.append(round(100 * np.mean(predicted[test] == y[test]), 2))
    dev = round(float(np.mean([100 * reached for _, reached in chosen])), 2) / 100
    return ProbeResult(dev, round(float(np.mean(tests)), 2) / 100, predicted)


def kfold(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> ProbeResult:
    """Choose the regulariser by k-fold on the training set (TREC, MRPC)."""
    x, targets, classes = tensors(features["train"], labels["train"])
    rows = np.arange(len(x))
    folds = [Fold(*cut) for cut in folds_of(labels["train"], rows, int(settings["kfold"]))]
    _, accuracy = fit(x, targets, classes, folds, [REGULARISERS] * len(folds), settings)
    number, dev = choose(accuracy)
    weights, _ = fit(x, targets, classes, [held_out(rows)], [[REGULARISERS[number]]], settings)
    return tested(weights[0, 0], features, labels, dev)


def dev_set(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> ProbeResult:
    """Choose the regulariser on the validation set, which also stops the tested fit (SST)."""
    x, targets, classes = tensors(
        np.concatenate([features["train"], features["dev"]]),
        np.concatenate([labels["train"], labels["dev"]]),
    )
    train, rest = np.split(np.arange(len(x)), [len(labels["train"])])
    weights, accuracy = fit(x, targets, classes, [Fold(train, rest)], [REGULARISERS], settings)
    number, dev = choose(accuracy)
    # SentEval fits it again, which gives the same weights
    return tested(weights[0, number], features, labels, dev)


def tested(weights: torch.Tensor, features: Arrays, labels: Arrays, dev: float) -> ProbeResult:
    """Classify the test set by fitted weights."""
    x, _, _ = tensors(features["test"], labels["test"])
    predicted = predict(weights, x).cpu().numpy()
    test = round(100 * float(np.mean(predicted == labels["test"])), 2) / 100
    return ProbeResult(dev, test, predicted)


def tensors(features: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Move features and classes to the device; also return the number of classes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)).to(device)
    return x, torch.from_numpy(labels).to(device), int(labels.max()) + 1


def folds_of(
    labels: np.ndarray, rows: np.ndarray, kfold: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut rows into stratified folds: (train, rest) row numbers of each."""
    cut = StratifiedKFold(kfold, shuffle=True, random_state=SEED).split(rows, labels[rows])
    return [(rows[train], rows[rest]) for train, rest in cut]


def choose(accuracy: np.ndarray) -> tuple[int, float]:
    """Choose the regulariser with the best mean over folds, the first of equals.

    Args:
        accuracy: (folds, R). Means are rounded as SentEval rounds them.

    Returns:
        The number of the regulariser, and its mean.
    """
    means = [round(100 * mean, 2) for mean in accuracy.mean(0)]
    return int(np.argmax(means)), max(means) / 100


# ---------------------------------------------------------------- reading


def read_parts(
    data_root: Path,
    task: str,
    folder: str,
    counts: dict[str, dict[str, int]],
    reader: Callable[[Path], list],
) -> list[list]:
    """Read every file of a task.

    Args:
        folder: below `downstream/`.
        counts: lines of the published files, by task and file. If the data root has a
            `counts.yaml`, its counts are used instead.
        reader: reads one file.

    Raises:
        BadInput: a file is missing, has another encoding than SentEval reads, has a malformed line,
            or another number of lines than expected.
    """
    parts = []
    for file, count in expected_counts(data_root, task, counts).items():
        path = data_root / f"downstream/{folder}/{file}"
        part = reader(path)
        if len(part) != count:
            raise BadInput(
                f"{path}: {len(part)} items, expected {count}: cut short or another release."
            )
        parts.append(part)
    return parts


def ordered(rows: list[Row]) -> Labelled:
    """Sort rows as SentEval does before it cuts folds.

    Rows with equal lengths and class stay in the order of the files.
    """

    def by_words_then_class(row: Row) -> tuple[int, int, int]:
        sentence, other, label = row
        return len(sentence.split()), len((other or "").split()), label

    left, right, labels = zip(*sorted(rows, key=by_words_then_class), strict=True)
    others = None if right[0] is None else list(right)
    return Labelled(list(left), np.array(labels), others)


def text_of(path: Path, encoding: str) -> str:
    """Read a file, and write the line ends of every system as newlines."""
    try:
        return read_bytes(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as e:
        raise BadInput(f"{path}: byte {e.start}: not {encoding}.") from None


def clean(text: str) -> str:
    """Join words by single blanks."""
    return " ".join(text.split())


def phrases(path: Path) -> list[tuple[str, None]]:
    """Read a file with one sentence a line, in latin-1.

    Every line counts, blank ones too. As in SentEval, `splitlines` decides where a line ends, which
    also cuts at some control characters.
    """
    if read_bytes(path).startswith(codecs.BOM_UTF8):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it without one.")
    return [(clean(line), None) for line in text_of(path, "latin-1").splitlines()]


def lines_of(path: Path, encoding: str, malformed: str, parse: Callable[[str], Row]) -> list[Row]:
    """Parse every line of a file.

    Args:
        malformed: message for a line at which `parse` raises ValueError or IndexError.
    """
    rows: list[Row] = []
    lines = text_of(path, encoding).removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            rows.append(parse(line.strip()))
        except (ValueError, IndexError):
            raise BadInput(f"{path}: line {number}: {malformed} (got {line[:60]!r}).") from None
    return rows
