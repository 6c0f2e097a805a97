"""Tasks of MTEB through the real mteb package: MSSE's Figure 5, and STS with mteb's own texts.

Idea: the same vectors, scored by the package whose numbers others publish.
Score: mteb's main score of the task first, then others. mteb draws, fits, searches and scores; from
us it gets vectors, and the data where the data root has them.
Paper: Muennighoff et al. 2023 (EACL); MSSE Figure 5. Official code: embeddings-benchmark/mteb
2.26.24.
Items: `TASK/SUBSET` (pairs,) cosines, of a classification (sentences,) the share of draws that got
a sentence right, of retrieval none. No one rule makes every task's score of them, so rows are
compared over seeds alone. mteb's own result file, which its tools read, is left next to the scores.
Relations: `sts` reads SentEval's texts, `transfer` fits on whole training sets, `beir` searches in
larger corpora.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import read_json, read_text
from csebench.data.fetch import load_task
from csebench.data.sts import read_sts
from csebench.model.embedder import Embedder
from csebench.plan.catalog.data_sources import from_hub
from csebench.plan.catalog.registry import protocol
from csebench.score.score_types import Items, Score

if TYPE_CHECKING:
    from datasets import Dataset
    from mteb.abstasks import AbsTask
    from mteb.results import TaskResult

DECLARATION = {
    "name": "mteb",
    "version": 1,
    "title": "Tasks of MTEB",
    "protocol": "mteb-{task}",
    "tasks": [
        "AmazonCounterfactualClassification",
        "Banking77Classification",
        "MassiveIntentClassification",
        "QuoraRetrieval",
        "AskUbuntuDupQuestions",
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STSBenchmark",
        "SICK-R",
    ],
    "takes": "task",
    "hub": True,
    "example": "Banking77Classification",
    "ordered": "mteb draws the sentences of a class by seed and number of the line",
    "files": {  # a task comes from mteb's hub where it has no files, or they are not there
        "AmazonCounterfactualClassification": ["misc/amazon_counterfactual/EN*_t*.tsv"],
        "Banking77Classification": ["misc/banking77/categories.json", "misc/banking77/t*.csv"],
        "STS12": ["downstream/STS/STS12-en-test/STS.*.txt"],
        "STS13": ["downstream/STS/STS13-en-test/STS.*.txt"],
        "STS14": ["downstream/STS/STS14-en-test/STS.*.txt"],
        "STS15": ["downstream/STS/STS15-en-test/STS.*.txt"],
        "STS16": ["downstream/STS/STS16-en-test/STS.*.txt"],
        "STSBenchmark": ["misc/sts_raw/STSBenchmark/sts-test.csv"],
        "SICK-R": ["misc/sts_raw/SICK/SICK_t*.txt"],
    },
    "metric": "main score",
    "best": {"accuracy": 1.0, "f1": 1.0},  # and of every other metric
    "bounds": {"cosine_spearman": (-1.0, 1.0), "cosine_pearson": (-1.0, 1.0)},
    "chance": {"accuracy": (0.0, 0.6), "f1": (0.0, 0.6)},
    "needs": (
        "the Hugging Face hub for MassiveIntentClassification, QuoraRetrieval and"
        " AskUbuntuDupQuestions"
    ),
    "source": "mteb 2.26.24; MSSE Figure 5",
    "deviations": [
        (
            "STS12-STS16: mteb's texts are SentEval's (Moses-tokenised, lower-case), so those are"
            " read, and the score is that of `sts`; character counts agree with mteb's own but for"
            " one double blank in STS14"
        ),
        "STSBenchmark: mteb's texts are true-case and untokenised; the pairs are those of `sts`",
        (
            "SICK-R: mteb's test set is all 9,927 pairs, untokenised; that of `sts` is SICK's own"
            " 4,927, tokenised; both are true-case"
        ),
        (
            "STSBenchmark, Banking77Classification: mteb has a mended .v2 of either; these are the"
            " ones of the papers"
        ),
        (
            "classification: mteb fits a logistic regression to 8 (AmazonCounterfactual: 32)"
            " sentences of each class, ten times, seed 42, cut off at 100 steps: not comparable"
            " with `transfer`; on one BLAS thread: accuracy goes by their number (0.0002 on"
            " Banking77)"
        ),
        (
            "AmazonCounterfactualClassification: `all` is the subset en, as the papers print;"
            " en-ext is a row of its own"
        ),
        (
            "the test split and English only; mteb's mean over all splits and languages is another"
            " number"
        ),
        (
            "mteb's instructions are not put before a sentence: none of our encoders is trained"
            " with any"
        ),
    ],
}
METRICS = ("cosine_pearson", "f1")  # besides the main score
SPLITS = ("train", "test")
SICK = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]


def evaluate(model: Embedder, data_root: Path, task: str) -> tuple[list[Score], Items]:
    """Scores of a model on one task.

    Args:
        data_root: holds the files that the declaration names for the task, if any.
        task: mteb's name.

    Returns:
        rows, mteb's main score first, as `all`, then others, and those of every subset where
        English has several; items (module docstring).

    Raises:
        BadInput: a file that cannot be used, or the oracle where mteb has no classes.
        RunFailed: the hub cannot be reached.
    """
    with warnings.catch_warnings(), TemporaryDirectory() as predictions:
        warnings.simplefilter("ignore")  # superseded tasks, fits that are cut off
        import datasets
        import mteb
        from threadpoolctl import threadpool_limits

        logging.getLogger("mteb").setLevel(logging.CRITICAL)
        datasets.disable_progress_bars()
        wanted = mteb.get_task(task, languages=["eng"], eval_splits=["test"])
        load(wanted, data_root)
        truth = None
        if wanted.metadata.type == "Classification":
            splits = [
                split
                for subset in wanted.hf_subsets
                for split in splits_of(wanted, subset).values()
            ]
            truth = {
                text: str(label)
                for split in splits
                for text, label in zip(split["text"], split["label"], strict=True)
            }
        try:
            encoder = wrap(model, task, truth)
            # fits, cut off at 100 steps, go by threads, and slowly
            with threadpool_limits(1, "blas"):
                (result,) = mteb.evaluate(
                    encoder,
                    wanted,
                    cache=None,  # which would give a model the scores of another of the same name
                    co2_tracker=False,
                    prediction_folder=(
                        None if wanted.metadata.type in ("Retrieval", "Reranking") else predictions
                    ),
                    # texts handed over at a time
                    encode_kwargs={"batch_size": 1024, "show_progress_bar": False},
                    show_progress_bar=False,
                ).task_results
        except NotImplementedError:
            raise BadInput(
                f"mteb: {task}: mteb tells no model what is true of a pair, nor of a document."
            ) from None
        rows = rows_of(result, wanted.metadata.main_score)
        if model.artifacts_dir is not None:
            mteb.ResultCache(model.artifacts_dir / "mteb").save_to_cache(
                result, encoder.mteb_model_meta
            )
        return rows, items_of(Path(predictions), wanted)


def wrap(model: Embedder, task: str, truth: dict[str, str] | None) -> Any:
    """The model as mteb takes it; its revision is a hash of what it makes of PROBE. `truth`: the
    class of a text."""
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from mteb.types import PromptType

    revision = (model.fingerprint() or "none")[:40]  # the oracle knows the tasks' sentences only
    facts = {
        "name": "csebench/encoder",
        "revision": revision,
        "similarity_fn_name": ScoringFunction.COSINE,
    }
    corpora = itertools.count()

    class Encoder(AbsEncoder):
        mteb_model_meta = ModelMeta.create_empty(facts)

        def encode(
            self, inputs: Any, *, prompt_type: PromptType | None = None, **_: Any
        ) -> np.ndarray:
            texts = [text for batch in inputs for text in batch["text"]]
            if prompt_type == PromptType.document:  # of which there are too many to remember
                vectors = np.concatenate(list(model.stream(texts, f"mteb-{task}-{next(corpora)}")))
            elif prompt_type == PromptType.query:
                vectors = model.embed_queries(texts)
            else:
                vectors = model.embed(
                    texts, None if truth is None else [truth[text] for text in texts]
                )
            return vectors

    return Encoder()


def rows_of(result: TaskResult, main: str) -> list[Score]:
    scores = {values["hf_subset"]: values for values in result.scores["test"]}
    subsets = {
        "all": scores["en" if "en" in scores else "default"],
        **(scores if len(scores) > 1 else {}),
    }
    return [
        Score(result.task_name, subset, metric, float(values[metric]))
        for subset, values in subsets.items()
        for metric in (main, *METRICS)
        if metric in values
    ]


def splits_of(task: AbsTask, subset: str) -> dict[str, Dataset]:
    dataset = cast(Any, task.dataset)
    return dataset if subset == "default" else dataset[subset]


def items_of(folder: Path, task: AbsTask) -> Items:
    """Of the predictions that mteb left in a folder."""
    items = {}
    for file in folder.glob("*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        for subset in task.hf_subsets:
            predictions = content[subset]["test"]
            if isinstance(predictions, dict):
                values = np.array(predictions["cosine_scores"])
            else:
                values = (
                    np.array(predictions) == np.array(splits_of(task, subset)["test"]["label"])
                ).mean(0)
            name = "all" if subset in ("default", "en") else subset
            items[f"{task.metadata.name}/{name}"] = values.astype(np.float32)
    return items


# ---------------------------------------------------------------- data


def load(task: AbsTask, data_root: Path) -> None:
    """Gives a task the data root's data as the hub would: rows in its order, classes by its
    numbers."""
    from datasets import Dataset, DatasetDict

    name = task.metadata.name
    if from_hub(protocol(f"mteb:{name}"), data_root):
        return load_task(task)
    columns = (
        ("text", "label")
        if task.metadata.type == "Classification"
        else ("sentence1", "sentence2", "score")
    )
    data = {}
    for (subset, split), rows in read(data_root, name).items():
        facts = cast(Any, task.metadata.descriptive_stats)[split]
        wanted = facts.get("hf_subset_descriptive_stats", {subset: facts})[subset]["num_samples"]
        # which says: not the published data
        if len(rows) != wanted and not (data_root / "counts.yaml").exists():
            raise BadInput(
                f"{data_root}: {name} {subset} {split}: {len(rows)} examples, mteb has {wanted}: a"
                " file is cut short or another release."
            )
        by_column = dict(zip(columns, zip(*rows, strict=True), strict=True))
        data.setdefault(subset, DatasetDict())[split] = Dataset.from_dict(by_column)
    task.dataset, task.data_loaded = data.get("default", data), True


def read(data_root: Path, task: str) -> dict[tuple[str, str], list[tuple]]:
    """`{(subset, split): rows}` of a task, rows tuples of what mteb's columns hold.

    Raises:
        BadInput: a file is missing or malformed.
    """
    tabs: dict = {"delimiter": "\t"}
    if task == "AmazonCounterfactualClassification":
        files = {
            (s, split): s.replace("en", "EN") + f"_{split}.tsv"
            for s in ("en-ext", "en")
            for split in SPLITS
        }
        form, folder = labelled(["0", "1"]), "misc/amazon_counterfactual"
        columns = ["sentence", "is_counterfactual"]
        return {
            k: table(data_root / f"{folder}/{f}", columns, *form, **tabs) for k, f in files.items()
        }
    if task == "Banking77Classification":
        path = data_root / "misc/banking77/categories.json"
        try:
            form = labelled(sorted(read_json(path), key=str.lower))  # the hub's order
        except TypeError as e:
            raise BadInput(f"{path}: not a list of names: {e}.") from None
        files = {split: data_root / f"misc/banking77/{split}.csv" for split in SPLITS}
        return {
            ("default", split): table(file, ["text", "category"], *form)
            for split, file in files.items()
        }
    tabs["quoting"] = csv.QUOTE_NONE
    if task == "STSBenchmark":
        rows = table(
            data_root / "misc/sts_raw/STSBenchmark/sts-test.csv", None, *graded(5, 6, 4), **tabs
        )
    elif task == "SICK-R":
        files = [
            data_root / f"misc/sts_raw/SICK/SICK_{part}.txt"
            for part in ("train", "trial", "test_annotated")
        ]
        rows = [row for path in files for row in table(path, SICK, *graded(1, 2, 3), **tabs)]
    else:
        rows = [
            row
            for p in read_sts(data_root, task)
            for row in zip(p.left, p.right, p.gold, strict=True)
        ]
    return {("default", "test"): rows}


def labelled(names: list[str]) -> tuple[Callable[[list[str]], tuple], str]:
    """How a row of a sentence and its class is read, and how such a row is called in a message."""
    numbers = {name: number for number, name in enumerate(names)}

    def parse(row: list[str]) -> tuple[str, int]:
        text, label = row
        return text, numbers[label]

    return parse, "a sentence and its class"


def graded(left: int, right: int, score: int) -> tuple[Callable[[list[str]], tuple], str]:
    """The same for a graded pair, by the numbers of its columns."""

    def parse(row: list[str]) -> tuple[str, str, float]:
        if not 0 <= float(row[score]) <= 5:
            raise ValueError
        return row[left], row[right], float(row[score])

    return parse, "two sentences and their score, 0 to 5"


def table(
    path: Path,
    header: list[str] | None,
    parse: Callable[[list[str]], tuple],
    wanted: str,
    **dialect: Any,
) -> list[tuple]:
    """What `parse` makes of every row of a csv file, texts as they are."""
    rows, row, parsed = (
        csv.reader(io.StringIO(read_text(path), newline=""), strict=True, **dialect),
        [],
        [],
    )
    try:
        if header and (row := next(rows, [])) != header:
            columns = shortened(", ".join(row) or "none")
            raise BadInput(f"{path}: line 1: columns are {columns}, expected {', '.join(header)}.")
        for row in rows:
            parsed.append(parse(row))
    except (csv.Error, LookupError, ValueError) as e:
        got = e if isinstance(e, csv.Error) else repr(" | ".join(row)[:60])
        raise BadInput(f"{path}: line {rows.line_num}: expected {wanted} (got {got}).") from None
    if not parsed:
        raise BadInput(f"{path}: holds no example.")
    return parsed
