"""Transfer: a logistic regression on fixed sentence vectors, in the protocol of SentEval as SimCSE
runs it.

Idea: what a sentence is about, and how it is meant, can be read off its vector by a linear
classifier.
Score: accuracy on the test set. MR, CR, SUBJ, MPQA: nested stratified k-fold. TREC, MRPC: k-fold on
the training set chooses the regulariser. SST: its validation set does. The regulariser is the
optimiser's weight decay, from 1e-5 to 1e-2; a fit stops after `tenacity` looks without a gain in
all. MRPC's features are |u - v| and u * v.
Paper: Conneau & Kiela 2018, SentEval. Official code: princeton-nlp/SimCSE
SentEval/senteval/{binary,sst,trec,mrpc}.py, tools/validation.py, tools/classifier.py; settings:
evaluation.py:75-86.
Items: `TASK` (sentences,) bool, whether each was classified right, in SentEval's order; their mean
is the accuracy (where there are outer folds, up to the mean over folds of unequal size);
`sentences/TASK` (sentences, 1 or 2) ids, by which items of the same sentence are known: SST's test
set is a part of MR.
Relations: what SentEval's tasks share is in evaluators/_senteval.py; `mteb:Banking77Classification`
fits on few sentences of each class.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.metrics import f1_score

from csebench.model.embedder import Embedder
from csebench.model.metrics import mean_scores
from csebench.score.score_types import Items, Score
from evaluators._senteval import (
    Labelled,
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


def evaluate(model: Embedder, data_root: Path, **settings: int | str) -> tuple[list[Score], Items]:
    """Scores of a model.

    Args:
        data_root: in SentEval's layout.
        settings: of the protocol (`params` of the declaration).

    Returns:
        rows: per task accuracy on the test set (`all`; of a task without one, over the outer folds)
        and in validation (`dev`), MRPC's F1, the average of the seven as it is and as printed;
        items (module docstring).
    """
    rows, items = [], {}
    tasks = {task: read(data_root, task) for task in DECLARATION["tasks"]}
    for task, splits in tasks.items():
        features = {name: embed(model, task, name, split) for name, split in splits.items()}
        labels = {name: split.labels for name, split in splits.items()}
        dev, accuracy, predicted = SOLVERS[task](features, labels, settings)
        test = splits.get("test") or splits["all"]
        rows += [row(task, "all", accuracy), row(task, "dev", dev)]
        rows += (
            [Score(task, "all", "f1", float(f1_score(test.labels, predicted)))]
            if task == "MRPC"
            else []
        )
        items |= {task: predicted == test.labels, f"sentences/{task}": ids(test)}
    mean, printed = mean_scores(
        [r.value for r in rows if (r.subset, r.metric) == ("all", "accuracy")]
    )
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def row(task: str, subset: str, value: float) -> Score:
    return Score(task, subset, "accuracy", float(value))


SOLVERS = {**dict.fromkeys(BINARY, nested), "SST": dev_set, "TREC": kfold, "MRPC": kfold}


# ---------------------------------------------------------------- readers


def read(data_root: Path, task: str) -> dict[str, Labelled]:
    """The splits of a task; one that has none is `all`. Raises BadInput as `read_parts` does."""
    parts = read_parts(data_root, task, FOLDERS.get(task, task), COUNTS, READERS.get(task, phrases))
    if task in BINARY:
        parts = [
            [(*text, label) for text in part] for part, label in zip(parts, (1, 0), strict=True)
        ]
        return {"all": ordered(parts[0] + parts[1])}
    names = ("train", "dev", "test") if len(parts) == 3 else ("train", "test")
    return {name: ordered(part) for name, part in zip(names, parts, strict=True)}


def sst(path: Path) -> list[Row]:
    def parse(line: str) -> Row:
        sentence, label, *_ = line.split("\t")
        if sentence.startswith("\ufeff"):
            raise ValueError("a byte-order mark")
        return clean(sentence), None, ("0", "1").index(label)

    return lines_of(path, "utf-8", "expected a sentence, a tab, 0 or 1", parse)


def trec(path: Path) -> list[Row]:
    def parse(line: str) -> Row:
        coarse, rest = line.split(":", 1)
        return clean(rest.split(" ", 1)[1]), None, TREC.index(coarse)

    return lines_of(
        path,
        "latin-1",
        f"expected CLASS:kind and a question, CLASS one of {', '.join(TREC)}",
        parse,
    )


def mrpc(path: Path) -> list[Row]:
    """A header, then label, two ids and two sentences; quotes are text."""

    def parse(line: str) -> Row:
        label, _, _, left, right = line.split("\t")[:5]
        return (
            clean(left),
            clean(right),
            -1 if label.endswith("Quality") else ("0", "1").index(label),
        )

    return lines_of(path, "utf-8", "expected label, two ids and two sentences between tabs", parse)[
        1:
    ]


READERS = {"SST": sst, "TREC": trec, "MRPC": mrpc}
