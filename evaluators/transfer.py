"""Transfer: a logistic regression on fixed sentence vectors, in the protocol of SentEval as SimCSE runs it.

Idea: what a sentence is about, and how it is meant, can be read off its vector by a linear classifier.
Score: accuracy on the test set. MR, CR, SUBJ, MPQA: nested stratified k-fold. TREC, MRPC: k-fold on the training set
chooses the regulariser. SST: its validation set does. The regulariser is the optimiser's weight decay, from 1e-5 to
1e-2; a fit stops after `tenacity` looks without a gain in all. MRPC's features are |u - v| and u * v.
Paper: Conneau & Kiela 2018, SentEval. Official code: princeton-nlp/SimCSE SentEval/senteval/{binary,sst,trec,mrpc}.py,
tools/validation.py, tools/classifier.py; settings: evaluation.py:75-86.
Items: `TASK` (sentences,) bool, whether each was classified right, in SentEval's order; their mean is the accuracy
(where there are outer folds, up to the mean over folds of unequal size); `sentences/TASK` (sentences, 1 or 2) ids, by
which items of the same sentence are known: SST's test set is a part of MR.
Relations: the classifier is evaluators/_probe.py; `mteb:Banking77Classification` fits on few sentences of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from csebench.base.errors import BadInput
from csebench.base.files import read_bytes
from csebench.data.sts import expected_counts
from csebench.model.embedder import Embedder
from csebench.model.metrics import averages
from csebench.score.rows import Items, Score, sentence_ids
from evaluators._probe import SEED, Fold, fit, held_out, predict

DECLARATION = {
    "name": "transfer",
    "version": 1,
    "title": "Transfer tasks of SentEval",
    "protocol": "simcse-senteval-{optimizer}-{batch_size}-{kfold}fold",
    "tasks": ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"],
    "average": True,
    "counts": {"SST": 1821, "TREC": 500, "MRPC": 1725},
    "files": [
        "downstream/MR/rt-polarity.*",
        "downstream/CR/custrev.*",
        "downstream/SUBJ/subj.*",
        "downstream/MPQA/mpqa.*",
        "downstream/SST/binary/sentiment-*",
        "downstream/TREC/train_5500.label",
        "downstream/TREC/TREC_10.label",
        "downstream/MRPC/msr_paraphrase_*.txt",
    ],
    "params": {"kfold": 10, "optimizer": "adam", "batch_size": 64, "tenacity": 5, "epoch_size": 4},
    "variants": {
        "fasttest": {"kfold": 5, "optimizer": "rmsprop", "batch_size": 128, "tenacity": 3, "epoch_size": 2},
    },
    "ordered": "SentEval cuts folds in the order of its files among sentences of equal length and class",
    "best": {"accuracy": 1.0, "f1": 1.0},
    "chance": {"accuracy": (0.0, 0.75), "f1": (0.0, 0.85)},
    "items": {"values": "{task}", "score": "mean", "metric": "accuracy", "sentences": "sentences/{task}"},
    "source": "SimCSE evaluation.py:75-86; SentEval/senteval/tools/{validation,classifier}.py",
    "deviations": [
        "all folds and regularisers of a task train at once; sums of products are in another order than one by one",
        "dev (the mean over folds of the chosen regulariser's score) is optimistic, as in SentEval: the fold that"
        " stops a fit also scores it",
    ],
}
REGULARISERS = [10.0**t for t in range(-5, -1)]
BINARY = ("MR", "CR", "SUBJ", "MPQA")  # of whose two files the first has label 1
FOLDERS = {"SST": "SST/binary"}
COUNTS = {  # SentEval's files; blank lines count
    "MR": {"rt-polarity.pos": 5331, "rt-polarity.neg": 5331},
    "CR": {"custrev.pos": 2407, "custrev.neg": 1368},
    "SUBJ": {"subj.objective": 5000, "subj.subjective": 5000},
    "MPQA": {"mpqa.pos": 3312, "mpqa.neg": 7294},
    "SST": {"sentiment-train": 67349, "sentiment-dev": 872, "sentiment-test": 1821},
    "TREC": {"train_5500.label": 5452, "TREC_10.label": 500},
    "MRPC": {"msr_paraphrase_train.txt": 4076, "msr_paraphrase_test.txt": 1725},
}
TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


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


def evaluate(model: Embedder, data_root: Path, **settings: int | str) -> tuple[list[Score], Items]:
    """Scores of a model.

    Args:
        data_root: in SentEval's layout.
        settings: of the protocol (`params` of the declaration).

    Returns:
        rows: per task accuracy on the test set (`all`; of a task without one, over the outer folds) and in validation
        (`dev`), MRPC's F1, the average of the seven as it is and as printed; items (module docstring).
    """
    rows, items = [], {}
    tasks = {task: read(data_root, task) for task in DECLARATION["tasks"]}
    for task, splits in tasks.items():
        features = {name: embed(model, task, name, split) for name, split in splits.items()}
        labels = {name: split.labels for name, split in splits.items()}
        dev, accuracy, predicted = SOLVERS[task](features, labels, settings)
        test = labels.get("test", labels.get("all"))
        rows += [row(task, "all", accuracy), row(task, "dev", dev)]
        rows += [Score(task, "all", "f1", float(f1_score(test, predicted)))] if task == "MRPC" else []
        items |= {task: predicted == test, f"sentences/{task}": ids(splits.get("test", splits.get("all")))}
    mean, printed = averages([r.value for r in rows if (r.subset, r.metric) == ("all", "accuracy")])
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def row(task: str, subset: str, value: float) -> Score:
    return Score(task, subset, "accuracy", float(value))


def ids(split: Labelled) -> np.ndarray:
    """(N, 1) ids of the sentences; of pairs, (N, 2)."""
    return sentence_ids(split.sentences, *([] if split.others is None else [split.others]))


def embed(model: Embedder, task: str, name: str, split: Labelled) -> np.ndarray:
    """(N, D) features; of pairs, (N, 2D)."""
    if split.others is None:
        return model.embed(split.sentences, [f"{task} {label}" for label in split.labels])
    names = [f"{name} {i}" for i in range(len(split.labels))]
    left = model.embed(split.sentences, names)
    right = model.embed(split.others, [n if y else f"not {n}" for n, y in zip(names, split.labels, strict=True)])
    return np.concatenate([np.abs(left - right), left * right], axis=1)


# ---------------------------------------------------------------- what is trained on what


def tensors(features: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Features and classes on the device, and the number of classes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)).to(device)
    return x, torch.from_numpy(labels).to(device), int(labels.max()) + 1


def folds_of(labels: np.ndarray, rows: np.ndarray, kfold: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stratified folds of some rows, as (train, rest) row numbers."""
    cut = StratifiedKFold(kfold, shuffle=True, random_state=SEED).split(rows, labels[rows])
    return [(rows[train], rows[rest]) for train, rest in cut]


def choose(accuracy: np.ndarray) -> tuple[int, float]:
    """The regulariser with the best mean over folds, (folds, R), rounded as SentEval rounds; the first of equals."""
    means = [round(100 * mean, 2) for mean in accuracy.mean(0)]
    return int(np.argmax(means)), max(means) / 100


def nested(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> tuple[float, float, np.ndarray]:
    """Accuracy in validation and in test, and what is predicted for the test set, as of `kfold` and `dev_set`.

    MR, CR, SUBJ, MPQA: an inner k-fold chooses the regulariser of every outer fold.
    """
    y = labels["all"]
    x, targets, classes = tensors(features["all"], y)
    outer = folds_of(y, np.arange(len(y)), settings["kfold"])
    inner = [Fold(*cut) for train, _ in outer for cut in folds_of(y, train, settings["kfold"])]
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


def kfold(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> tuple[float, float, np.ndarray]:
    """TREC, MRPC: k-fold on the training set chooses the regulariser."""
    x, targets, classes = tensors(features["train"], labels["train"])
    rows = np.arange(len(x))
    folds = [Fold(*cut) for cut in folds_of(labels["train"], rows, settings["kfold"])]
    _, accuracy = fit(x, targets, classes, folds, [REGULARISERS] * len(folds), settings)
    number, dev = choose(accuracy)
    weights, _ = fit(x, targets, classes, [held_out(rows)], [[REGULARISERS[number]]], settings)
    return tested(weights[0, 0], features, labels, dev)


def dev_set(features: Arrays, labels: Arrays, settings: Settings, fit: Fit = fit) -> tuple[float, float, np.ndarray]:
    """SST: its validation set chooses the regulariser, and stops the fit that is tested."""
    x, targets, classes = tensors(*(np.concatenate([arrays["train"], arrays["dev"]]) for arrays in (features, labels)))
    fold = Fold(*np.split(np.arange(len(x)), [len(labels["train"])]))
    weights, accuracy = fit(x, targets, classes, [fold], [REGULARISERS], settings)
    number, dev = choose(accuracy)  # fitting it again, as SentEval does, gives the same weights
    return tested(weights[0, number], features, labels, dev)


def tested(weights: torch.Tensor, features: Arrays, labels: Arrays, dev: float) -> tuple[float, float, np.ndarray]:
    x, _, _ = tensors(features["test"], labels["test"])
    predicted = predict(weights, x).cpu().numpy()
    return dev, round(100 * float(np.mean(predicted == labels["test"])), 2) / 100, predicted


SOLVERS = {**dict.fromkeys(BINARY, nested), "SST": dev_set, "TREC": kfold, "MRPC": kfold}


# ---------------------------------------------------------------- SentEval's readers, quirks included


def read(data_root: Path, task: str) -> dict[str, Labelled]:
    """The splits of a task; one that has none is `all`.

    Raises:
        BadInput: a file is missing, is not encoded as SentEval reads it, a line has not the task's form, or there
            are not as many as published (not as in `counts.yaml`, where the data root ships its own).
    """
    folder, reader = f"downstream/{FOLDERS.get(task, task)}", READERS.get(task, phrases)
    parts = []
    for file, count in expected_counts(data_root, task, COUNTS).items():
        path = data_root / f"{folder}/{file}"
        parts.append(reader(path))
        if len(parts[-1]) != count:
            raise BadInput(f"{path}: {len(parts[-1])} items, expected {count}: cut short or another release.")
    if task in BINARY:
        parts = [[(*text, label) for text in part] for part, label in zip(parts, (1, 0), strict=True)]
        return {"all": ordered(parts[0] + parts[1])}
    names = ("train", "dev", "test") if len(parts) == 3 else ("train", "test")
    return {name: ordered(part) for name, part in zip(names, parts, strict=True)}


def ordered(rows: list[Row]) -> Labelled:
    """By number of words, then class, ties in the order of the files: SentEval sorts before it cuts folds."""
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
    """Read as latin-1; every line counts, blank ones and those behind a control character that ends a line, too."""
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


def sst(path: Path) -> list[Row]:
    def parse(line: str) -> Row:
        sentence, label, *_ = line.split("\t")
        return clean(sentence), None, ("0", "1").index(label)

    return lines_of(path, "utf-8", "expected a sentence, a tab, 0 or 1", parse)


def trec(path: Path) -> list[Row]:
    def parse(line: str) -> Row:
        coarse, rest = line.split(":", 1)
        return clean(rest.split(" ", 1)[1]), None, TREC.index(coarse)

    return lines_of(path, "latin-1", f"expected CLASS:kind and a question, CLASS one of {', '.join(TREC)}", parse)


def mrpc(path: Path) -> list[Row]:
    """A header, then label, two ids and two sentences; quotes are text."""

    def parse(line: str) -> Row:
        label, _, _, left, right = line.split("\t")[:5]
        return clean(left), clean(right), -1 if label.endswith("Quality") else ("0", "1").index(label)

    return lines_of(path, "utf-8", "expected label, two ids and two sentences between tabs", parse)[1:]


READERS = {"SST": sst, "TREC": trec, "MRPC": mrpc}
