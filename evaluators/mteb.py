"""Tasks of MTEB through the real mteb package: MSSE's Figure 5, and STS with mteb's own texts.

Idea: the same vectors, scored by the package whose numbers others publish.
Score: mteb's main score of the task first, then others. mteb draws, fits, searches and scores. It
gets the vectors from us, and also the data if the data root has its files.
Paper: Muennighoff et al. 2023 (EACL); MSSE Figure 5. Official code: embeddings-benchmark/mteb
2.26.24.
Items: `TASK/SUBSET`: (pairs,) cosines; for a classification (sentences,) the share of draws that
got a sentence right; none for retrieval. No one rule makes the scores of all tasks from them, so
rows are compared over seeds alone. mteb's own result file, which its tools read, is written next to
the scores.
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
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import read_json, read_text
from csebench.data.fetch import load_task, mteb_task
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
        "BIOSSES",
        "STS17",
        "STS22-v2",
        "NanoArguAnaRetrieval",
        "NanoClimateFeverRetrieval",
        "NanoDBPediaRetrieval",
        "NanoFEVERRetrieval",
        "NanoFiQA2018Retrieval",
        "NanoHotpotQARetrieval",
        "NanoMSMARCORetrieval",
        "NanoNFCorpusRetrieval",
        "NanoNQRetrieval",
        "NanoQuoraRetrieval",
        "NanoSCIDOCSRetrieval",
        "NanoSciFactRetrieval",
        "NanoTouche2020Retrieval",
    ],
    "takes": "task",
    "hub": True,
    "example": "Banking77Classification",
    "ordered": "mteb draws the sentences of a class by seed and number of the line",
    "files": {  # a task comes from mteb's hub if it has no files here, or they are missing
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
        "the Hugging Face hub for MassiveIntentClassification, QuoraRetrieval,"
        " AskUbuntuDupQuestions, BIOSSES, STS17, STS22-v2 and NanoBEIR"
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
        "NanoBEIR has no test split; its only one is called train",
        (
            "STS22-v2 is mteb's STS22.v2: in names of score files, a dot separates evaluator and"
            " task"
        ),
        (
            "mteb's instructions are not put before a sentence: none of our encoders is trained"
            " with any"
        ),
    ],
}
METRICS = ("cosine_pearson", "f1")  # in addition to the main score
SPLITS = ("train", "test")
SICK = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]


def evaluate(model: Embedder, data_root: Path, task: str) -> tuple[list[Score], Items]:
    """Score a model on one task.

    Args:
        data_root: holds the files that the declaration names for the task, if any.
        task: mteb's name, with a dash for a dot.

    Returns:
        Rows of subset `all`, mteb's main score first, and of every subset if English has several;
        items (module docstring).

    Raises:
        BadInput: a file cannot be used, or mteb passes nothing from which the oracle could answer.
        RunFailed: the hub does not answer.
    """
    with warnings.catch_warnings(), TemporaryDirectory() as predictions:
        warnings.simplefilter("ignore")  # superseded tasks, fits that are cut off
        import datasets
        import mteb
        from threadpoolctl import threadpool_limits

        logging.getLogger("mteb").setLevel(logging.CRITICAL)
        datasets.disable_progress_bars()
        restricted = mteb_task(task)
        load(task, restricted, data_root)
        keeps_predictions = restricted.metadata.type not in ("Retrieval", "Reranking")
        try:
            encoder = wrap(model, task, classes_of_texts(restricted))
            # fits are cut off at 100 steps, so they depend on the number of threads
            with threadpool_limits(1, "blas"):
                (result,) = mteb.evaluate(
                    encoder,
                    restricted,
                    cache=None,  # a cache would give equal scores to models of the same name
                    co2_tracker=False,
                    prediction_folder=predictions if keeps_predictions else None,
                    # texts handed over at a time
                    encode_kwargs={"batch_size": 1024, "show_progress_bar": False},
                    show_progress_bar=False,
                ).task_results
        except NotImplementedError:  # from the oracle, which got no truth
            raise BadInput(
                f"mteb: {task}: mteb passes no labels of pairs or documents to a model, so the"
                " oracle cannot be scored."
            ) from None
        rows = rows_of(task, result, restricted.metadata.main_score)
        if model.artifacts_dir is not None:
            cache = mteb.ResultCache(model.artifacts_dir / "mteb")
            cache.save_to_cache(result, encoder.mteb_model_meta)
        return rows, items_of(task, Path(predictions), restricted)


def classes_of_texts(task: AbsTask) -> dict[str, str] | None:
    """Look up the class of every text of a classification; None for other tasks."""
    if task.metadata.type != "Classification":
        return None
    classes: dict[str, str] = {}
    for subset in task.hf_subsets:
        for split in splits_of(task, subset).values():
            for text, label in zip(split["text"], split["label"], strict=True):
                classes[text] = str(label)
    return classes


def wrap(model: Embedder, task: str, truth: dict[str, str] | None) -> Any:
    """Wrap a model in the class that mteb expects.

    The revision in its metadata is a hash of the vectors that it gives a few fixed sentences.

    Args:
        truth: class by text; None if the task has no classes.
    """
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from mteb.types import PromptType

    # the oracle has no fingerprint: it cannot embed sentences that are in no task
    revision = (model.fingerprint() or "none")[:40]
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
            if prompt_type == PromptType.document:  # too many to remember
                return np.concatenate(list(model.stream(texts, f"mteb-{task}-{next(corpora)}")))
            if prompt_type == PromptType.query:
                return model.embed_queries(texts)
            if truth is None:
                return model.embed(texts)
            return model.embed(texts, [truth[text] for text in texts])

    return Encoder()


def rows_of(task: str, result: TaskResult, main: str) -> list[Score]:
    """Turn mteb's result into rows.

    Args:
        task: name of the task in the rows.
        main: name of the main score.
    """
    (of_split,) = result.scores.values()  # a task is restricted to one split
    by_subset = {values["hf_subset"]: values for values in of_split}
    subsets = {"all": by_subset[main_subset(by_subset)]}
    if len(by_subset) > 1:
        subsets.update(by_subset)
    rows: list[Score] = []
    for subset, values in subsets.items():
        for metric in (main, *METRICS):
            if metric in values:
                rows.append(Score(task, subset, metric, float(values[metric])))
    return rows


def main_subset(subsets: Collection[str]) -> str:
    """Choose the subset whose scores stand for the task: its only subset, or `en`."""
    if len(subsets) == 1:
        return next(iter(subsets))
    return "en"


def splits_of(task: AbsTask, subset: str) -> dict[str, Dataset]:
    """Look up the splits of a task's data. A task without subsets has the subset `default`."""
    dataset = cast(Any, task.dataset)
    return dataset if subset == "default" else dataset[subset]


def items_of(name: str, folder: Path, task: AbsTask) -> Items:
    """Read the predictions that mteb left in a folder.

    Args:
        name: name of the task in the items.
    """
    items = {}
    (split,) = task.eval_splits
    for file in folder.glob("*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        for subset in task.hf_subsets:
            predictions = content[subset][split]
            if isinstance(predictions, dict):
                values = np.array(predictions["cosine_scores"])
            else:  # of a classification: a list for every draw
                labels = np.array(splits_of(task, subset)[split]["label"])
                values = (np.array(predictions) == labels).mean(0)
            shown_as = "all" if subset == main_subset(task.hf_subsets) else subset
            items[f"{name}/{shown_as}"] = values.astype(np.float32)
    return items


# ---------------------------------------------------------------- data


def load(name: str, task: AbsTask, data_root: Path) -> None:
    """Give a task its data as the hub would: the same order of rows, the same class numbers.

    The data comes from the data root if it has the files of the task, else from the hub.

    Args:
        name: name of the task here, with a dash for a dot.
    """
    from datasets import Dataset, DatasetDict

    if from_hub(protocol(f"mteb:{name}"), data_root):
        return load_task(task)
    columns = ("sentence1", "sentence2", "score")
    if task.metadata.type == "Classification":
        columns = ("text", "label")
    is_published_data = not (data_root / "counts.yaml").exists()
    data = {}
    for (subset, split), rows in read(data_root, name).items():
        facts = cast(Any, task.metadata.descriptive_stats)[split]
        by_subset = facts.get("hf_subset_descriptive_stats", {subset: facts})
        expected = by_subset[subset]["num_samples"]
        if len(rows) != expected and is_published_data:
            raise BadInput(
                f"{data_root}: {name} {subset} {split}: {len(rows)} examples, mteb has {expected}:"
                " a file is cut short or another release."
            )
        by_column = dict(zip(columns, zip(*rows, strict=True), strict=True))
        data.setdefault(subset, DatasetDict())[split] = Dataset.from_dict(by_column)
    task.dataset = data.get("default", data)
    task.data_loaded = True


def read(data_root: Path, task: str) -> dict[tuple[str, str], list[tuple]]:
    """Read the data of a task.

    Returns:
        `{(subset, split): rows}`; a row has the values of mteb's columns.

    Raises:
        BadInput: a file is missing or malformed.
    """
    match task:
        case "AmazonCounterfactualClassification":
            return read_amazon(data_root)
        case "Banking77Classification":
            return read_banking(data_root)
        case "STSBenchmark":
            rows = read_table(
                data_root / "misc/sts_raw/STSBenchmark/sts-test.csv",
                None,
                graded(left=5, right=6, score=4),
                delimiter="\t",
                quoting=csv.QUOTE_NONE,
            )
        case "SICK-R":
            rows = []
            for part in ("train", "trial", "test_annotated"):
                rows += read_table(
                    data_root / f"misc/sts_raw/SICK/SICK_{part}.txt",
                    SICK,
                    graded(left=1, right=2, score=3),
                    delimiter="\t",
                    quoting=csv.QUOTE_NONE,
                )
        case _:
            rows = []
            for pairs in read_sts(data_root, task):
                rows += zip(pairs.left, pairs.right, pairs.gold, strict=True)
    return {("default", "test"): rows}


def read_amazon(data_root: Path) -> dict[tuple[str, str], list[tuple]]:
    """Read AmazonCounterfactualClassification."""
    form = labelled(["0", "1"])
    columns = ["sentence", "is_counterfactual"]
    tables = {}
    for subset in ("en-ext", "en"):
        for split in SPLITS:
            file = f"{subset.replace('en', 'EN')}_{split}.tsv"
            path = data_root / f"misc/amazon_counterfactual/{file}"
            tables[subset, split] = read_table(path, columns, form, delimiter="\t")
    return tables


def read_banking(data_root: Path) -> dict[tuple[str, str], list[tuple]]:
    """Read Banking77Classification."""
    path = data_root / "misc/banking77/categories.json"
    try:
        form = labelled(sorted(read_json(path), key=str.lower))  # the order of the hub's classes
    except TypeError as e:
        raise BadInput(f"{path}: not a list of names: {e}.") from None
    tables = {}
    for split in SPLITS:
        file = data_root / f"misc/banking77/{split}.csv"
        tables["default", split] = read_table(file, ["text", "category"], form)
    return tables


@dataclass(frozen=True)
class RowForm:
    """The form of the rows of a table."""

    parse: Callable[[list[str]], tuple]  # raises ValueError or LookupError for a malformed row
    expected: str  # what a row holds, for messages


def labelled(names: list[str]) -> RowForm:
    """Describe rows of a sentence and its class. Classes are numbered in the order of `names`."""
    numbers = {name: number for number, name in enumerate(names)}

    def parse(row: list[str]) -> tuple[str, int]:
        text, label = row
        return text, numbers[label]

    return RowForm(parse, "a sentence and its class")


def graded(left: int, right: int, score: int) -> RowForm:
    """Describe rows of a graded pair, by the numbers of its columns."""

    def parse(row: list[str]) -> tuple[str, str, float]:
        if not 0 <= float(row[score]) <= 5:
            raise ValueError
        return row[left], row[right], float(row[score])

    return RowForm(parse, "two sentences and their score, 0 to 5")


def read_table(path: Path, header: list[str] | None, form: RowForm, **dialect: Any) -> list[tuple]:
    """Parse every row of a csv file. Texts are kept as they are.

    Args:
        header: that the first row must be; None if the file has no header.
        dialect: for `csv.reader`.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, **dialect)
    row: list[str] = []
    parsed: list[tuple] = []
    try:
        if header:
            row = next(reader, [])
            if row != header:
                columns = shortened(", ".join(row) or "none")
                raise BadInput(
                    f"{path}: line 1: columns are {columns}, expected {', '.join(header)}."
                )
        for row in reader:
            parsed.append(form.parse(row))
    except (csv.Error, LookupError, ValueError) as e:
        got = e if isinstance(e, csv.Error) else repr(" | ".join(row)[:60])
        raise BadInput(
            f"{path}: line {reader.line_num}: expected {form.expected} (got {got})."
        ) from None
    if not parsed:
        raise BadInput(f"{path}: holds no example.")
    return parsed
