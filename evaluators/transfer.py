"""Transfer: a logistic regression on fixed sentence vectors, in the protocol of SentEval as SimCSE
runs it.

Idea: a linear classifier can read off a vector what its sentence is about, and how it is meant.
Score: accuracy on the test set. MR, CR, SUBJ, MPQA: nested stratified k-fold. TREC, MRPC: k-fold on
the training set chooses the regulariser. SST: its validation set does. The regulariser is the
optimiser's weight decay, from 1e-5 to 1e-2. A fit stops when more than `tenacity` looks at its
validation set, consecutive or not, brought no gain. MRPC's features are |u - v| and u * v.
Paper: Conneau & Kiela 2018, SentEval. Official code: princeton-nlp/SimCSE
SentEval/senteval/{binary,sst,trec,mrpc}.py, tools/validation.py, tools/classifier.py; settings:
evaluation.py:75-86.
Items: `TASK` (sentences,) bool, whether each was classified right, in SentEval's order. Their mean
is the accuracy, or nearly so if outer folds have unequal sizes. `sentences/TASK` (sentences, 1 or
2) ids, by which items with a common sentence are recognised: SST's test set is a part of MR.
Relations: evaluators/_senteval.py has what SentEval's tasks share; `mteb:Banking77Classification`
fits on few sentences of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sklearn.metrics import f1_score

from csebench.model.embedder import Embedder
from csebench.model.metrics import mean_scores
from csebench.score.score_types import Items, Score
from evaluators._senteval import (
    Labelled,
    ProbeResult,
    Row,
    clean,
    dev_set,
    embed,
    ids,
    kfold,
    lines_of,
    nested,
    ordered,
    phrases,
    read_parts,
)

DECLARATION = {
    "name": "transfer",
    "version": 1,
    "title": "Transfer tasks of SentEval",
    "protocol": "simcse-senteval-{optimizer}-{batch_size}-{kfold}fold",
    "tasks": ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"],
    "average": True,
    "published_as": "TransferAvg",
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
        "fasttest": {
            "kfold": 5,
            "optimizer": "rmsprop",
            "batch_size": 128,
            "tenacity": 3,
            "epoch_size": 2,
        },
    },
    "ordered": (
        "SentEval cuts folds in the order of its files among sentences of equal length and class"
    ),
    "best": {"accuracy": 1.0, "f1": 1.0},
    "chance": {"accuracy": (0.0, 0.75), "f1": (0.0, 0.85)},
    "items": {
        "values": "{task}",
        "score": "mean",
        "metric": "accuracy",
        "sentences": "sentences/{task}",
    },
    "source": "SimCSE evaluation.py:75-86; SentEval/senteval/tools/{validation,classifier}.py",
    "deviations": [
        (
            "all folds and regularisers of a task train at once; sums of products are in another"
            " order than one by one"
        ),
        (
            "dev (the mean over folds of the chosen regulariser's score) is optimistic, as in"
            " SentEval: the fold that stops a fit also scores it"
        ),
    ],
}
BINARY = ("MR", "CR", "SUBJ", "MPQA")  # two files each; the first has label 1, the second 0
FOLDERS = {"SST": "SST/binary"}
COUNTS = {  # lines of SentEval's files; blank lines count
    "MR": {"rt-polarity.pos": 5331, "rt-polarity.neg": 5331},
    "CR": {"custrev.pos": 2407, "custrev.neg": 1368},
    "SUBJ": {"subj.objective": 5000, "subj.subjective": 5000},
    "MPQA": {"mpqa.pos": 3312, "mpqa.neg": 7294},
    "SST": {"sentiment-train": 67349, "sentiment-dev": 872, "sentiment-test": 1821},
    "TREC": {"train_5500.label": 5452, "TREC_10.label": 500},
    "MRPC": {"msr_paraphrase_train.txt": 4076, "msr_paraphrase_test.txt": 1725},
}
TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def evaluate(model: Embedder, data_root: Path, **settings: int | str) -> tuple[list[Score], Items]:
    """Score a model.

    Args:
        data_root: in SentEval's layout.
        settings: of the protocol (`params` of the declaration).

    Returns:
        Rows and items (module docstring). The rows of a task are its accuracy on the test set
        (`all`) and in validation (`dev`), and F1 for MRPC. A task without a test set is tested on
        the outer folds. The average of the seven tasks comes last, exact (`all`) and as papers
        print it (`printed`).
    """
    rows: list[Score] = []
    items: Items = {}
    accuracies: list[float] = []
    # read everything first, so that bad data is refused before anything is embedded
    tasks = {task: read(data_root, task) for task in DECLARATION["tasks"]}
    for task, splits in tasks.items():
        features = {name: embed(model, task, name, split) for name, split in splits.items()}
        labels = {name: split.labels for name, split in splits.items()}
        result = probe(task)(features, labels, settings)
        test = splits.get("test") or splits["all"]
        accuracies.append(result.test)
        rows += [row(task, "all", result.test), row(task, "dev", result.dev)]
        if task == "MRPC":
            f1 = float(f1_score(test.labels, result.predicted))
            rows.append(Score(task, "all", "f1", f1))
        items[task] = result.predicted == test.labels
        items[f"sentences/{task}"] = ids(test)
    mean, printed = mean_scores(accuracies)
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def probe(task: str) -> Callable[..., ProbeResult]:
    """Choose the protocol of a task."""
    match task:
        case "SST":
            return dev_set
        case "TREC" | "MRPC":
            return kfold
        case _:
            return nested


def row(task: str, subset: str, value: float) -> Score:
    return Score(task, subset, "accuracy", float(value))


# ---------------------------------------------------------------- readers


def read(data_root: Path, task: str) -> dict[str, Labelled]:
    """Read the splits of a task; if it has none, all sentences as `all`.

    Raises:
        BadInput: a file cannot be used (`read_parts`).
    """
    parts = read_parts(data_root, task, FOLDERS.get(task, task), COUNTS, reader(task))
    if task in BINARY:
        positive, negative = parts
        rows = [(*texts, 1) for texts in positive]
        rows += [(*texts, 0) for texts in negative]
        return {"all": ordered(rows)}
    names = ("train", "dev", "test") if len(parts) == 3 else ("train", "test")
    return {name: ordered(part) for name, part in zip(names, parts, strict=True)}


def reader(task: str) -> Callable[[Path], list]:
    """Choose the function that reads a file of a task."""
    match task:
        case "SST":
            return sst
        case "TREC":
            return trec
        case "MRPC":
            return mrpc
        case _:
            return phrases


def sst(path: Path) -> list[Row]:
    """Read lines of a sentence, a tab, and 0 or 1."""

    def parse(line: str) -> Row:
        sentence, label, *_ = line.split("\t")
        if sentence.startswith("\ufeff"):
            raise ValueError("a byte-order mark")
        return clean(sentence), None, ("0", "1").index(label)

    return lines_of(path, "utf-8", "expected a sentence, a tab, 0 or 1", parse)


def trec(path: Path) -> list[Row]:
    """Read lines of a class with its kind, and a question."""

    def parse(line: str) -> Row:
        coarse, rest = line.split(":", 1)
        _, question = rest.split(" ", 1)
        return clean(question), None, TREC.index(coarse)

    expected = f"expected CLASS:kind and a question, CLASS one of {', '.join(TREC)}"
    return lines_of(path, "latin-1", expected, parse)


def mrpc(path: Path) -> list[Row]:
    """Read a header, then lines of label, two ids and two sentences. Quotes are text."""

    def parse(line: str) -> Row:
        label, _, _, left, right = line.split("\t")[:5]
        is_header = label.endswith("Quality")
        return clean(left), clean(right), -1 if is_header else ("0", "1").index(label)

    expected = "expected label, two ids and two sentences between tabs"
    return lines_of(path, "utf-8", expected, parse)[1:]
