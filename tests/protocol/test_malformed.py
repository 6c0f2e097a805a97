"""Malformed benchmark data: every evaluator refuses the file by its name and line.

tests/conformance/test_evaluators.py has the damage that any file can have: it is missing, empty or
garbage.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from controls import random_model

from csebench.base.errors import BadInput
from csebench.score.evaluate import run_evaluator

MARK = "\ufeff"  # a byte-order mark

STS = "downstream/STS/STS"
MSRPAR = f"{STS}12-en-test/STS.input.MSRpar.txt"
IMAGES = f"{STS}14-en-test/STS.gs.images.txt"
HEADLINES = f"{STS}16-en-test/STS.gs.headlines.txt"
STSB_TEST = f"{STS}Benchmark/sts-test.csv"
STSB_DEV = f"{STS}Benchmark/sts-dev.csv"
SICK = "misc/sts_raw/SICK/SICK_trial.txt"

MR_POSITIVE = "downstream/MR/rt-polarity.pos"
MR_NEGATIVE = "downstream/MR/rt-polarity.neg"
SST_DEV = "downstream/SST/binary/sentiment-dev"
SST_TEST = "downstream/SST/binary/sentiment-test"
TREC = "downstream/TREC/TREC_10.label"
MRPC = "downstream/MRPC/msr_paraphrase_test.txt"

BANKING77 = "mteb:Banking77Classification"
BANKING = "misc/banking77/train.csv"
CATEGORIES = "misc/banking77/categories.json"

BEIR = "beir:smoke"
CORPUS = "beir/smoke/corpus.jsonl"
QUERIES = "beir/smoke/queries.jsonl"
QRELS = "beir/smoke/qrels/test.tsv"

FLICKR = "misc/flickr30k/captions.token"
STACKOVERFLOW = "clusters:stackoverflow"
TITLES = "misc/stackoverflow/label_StackOverflow.txt"
IMDB = "misc/imdb/train.tsv"
PARAPHRASES = "misc/evalrank/pos_pair.txt"
BACKGROUND = "misc/evalrank/background_sent.txt"


# ---------------------------------------------------------------- damage: lines to other lines


def put(number, text):
    """Put another text in the place of a line, counted from 1."""

    def damage(lines):
        return [*lines[: number - 1], text, *lines[number:]]

    return damage


def whole(*new_lines):
    """Put other lines in the place of all lines."""

    def damage(lines):
        return list(new_lines)

    return damage


def append(*more_lines):
    """Add lines at the end."""

    def damage(lines):
        return [*lines, *more_lines]

    return damage


def keep_first(lines):
    return lines[:1]


def drop_first(lines):
    return lines[1:]


def drop_last(lines):
    return lines[:-1]


def repeat_first(lines):
    return [lines[0], *lines]


def mark_first(lines):
    """Put a byte-order mark before the first line."""
    return [MARK + lines[0], *lines[1:]]


def add_column(lines):
    """Add a second column of zeros, as TREC's judgements have one."""
    return [line.replace("\t", "\t0\t", 1) for line in lines]


def as_trec(lines):
    """Write judgements as TREC does: with a column of zeros and without a header."""
    return add_column(lines[1:])


def separate_by_blanks(lines):
    return [line.replace("\t", " ") for line in lines]


def swap_columns(lines):
    """Swap query and document of all judgements, but not in the header."""
    swapped = [lines[0]]
    for line in lines[1:]:
        query, document, grade = line.split("\t")
        swapped.append(f"{document}\t{query}\t{grade}")
    return swapped


def grade_all_0(lines):
    return [re.sub("[0-9]+$", "0", line) for line in lines]


def one_huge_grade(lines):
    """Keep the header and the first judgement, with five more digits of its grade."""
    return [lines[0], f"{lines[1]}00000"]


def judge_only_a_missing_document(lines):
    return [lines[0], "q01\tno\t1"]


# ---------------------------------------------------------------- cases


class Case(NamedTuple):
    """A damaged file, and how the evaluator that reads it refuses it."""

    evaluator: str
    file: str
    damage: Callable[[list[str]], list[str]]
    message: str  # a pattern


CASES = [
    # STS
    Case("sts", IMAGES, drop_last, "STS.input.images.txt: 6 lines, but STS.gs.images.txt has 5"),
    Case(
        "sts",
        IMAGES,
        put(1, ""),
        "STS.input.images.txt: STS14 images: 5 scored pairs, expected 6",
    ),
    Case("sts", HEADLINES, put(3, "four"), "headlines.txt: line 3: .*'four'"),
    Case("sts", HEADLINES, put(1, "nan"), "headlines.txt: line 1"),
    Case("sts", MSRPAR, put(2, "one sentence"), "STS.input.MSRpar.txt: line 2"),
    Case("sts", MSRPAR, put(1, f"{MARK}a\tb"), "MSRpar.txt: line 1: a byte-order"),
    Case("sts", STSB_TEST, put(2, "a\tb\tc\td\t2.5\tone"), "sts-test.csv: line 2: 6 columns"),
    Case("stsb_dev", STSB_DEV, put(1, f"{MARK}a"), "sts-dev.csv: line 1: a byte-order mark"),
    Case("mteb:SICK-R", SICK, mark_first, "trial.txt: line 1: columns are"),
    Case(
        "mteb:SICK-R",
        SICK,
        put(2, "1\tone\ttwo\t7\tNEUTRAL"),
        "trial.txt: line 2: expected two sentences",
    ),
    Case(
        "mteb:SICK-R",
        SICK,
        put(2, "1\tone\ttwo\tnan\tNEUTRAL"),
        "trial.txt: line 2: expected two sentences",
    ),
    # transfer
    Case(
        "transfer",
        MR_NEGATIVE,
        put(1, f"{MARK}bad"),
        "rt-polarity.neg: line 1: a byte-order mark",
    ),
    Case("transfer", MR_POSITIVE, whole("one"), "rt-polarity.pos: 1 items, expected 36"),
    Case("transfer", SST_TEST, put(1, f"{MARK}bad\t0"), "sentiment-test: line 1: expected"),
    Case("transfer", SST_DEV, put(1, "good\t2"), "sentiment-dev: line 1: expected"),
    Case(
        "transfer",
        TREC,
        put(1, f"{MARK}HUM:ind Who ?"),
        "TREC_10.label: line 1: expected CLASS:kind",
    ),
    Case("transfer", TREC, put(1, "WHAT:x Who ?"), "TREC_10.label: line 1: expected CLASS:kind"),
    Case("transfer", MRPC, put(2, "1\t2\t3\tone"), "test.txt: line 2: .*two sentences"),
    # classification
    Case(BANKING77, BANKING, put(3, "hm?,nonsense"), r"train.csv: line 3: .*'hm\? | nonsense'"),
    Case(
        BANKING77,
        BANKING,
        put(1, "text"),
        "train.csv: line 1: columns are text, expected text, cat",
    ),
    Case(BANKING77, BANKING, whole("text,category", '"hm?'), "line 2: .*unexpected end of data"),
    Case(BANKING77, BANKING, whole("text,category"), "train.csv: holds no example"),
    Case(BANKING77, CATEGORIES, whole("[1]"), "not a list of names"),
    # retrieval: documents and queries
    Case(BEIR, CORPUS, put(2, '{"_id": 2'), "corpus.jsonl: line 2: not valid JSON"),
    Case(BEIR, CORPUS, repeat_first, "corpus.jsonl: line 2: `_id` .* is that of line 1, too"),
    Case(
        BEIR,
        CORPUS,
        put(1, '{"_id": "1", "title": 3, "text": "x"}'),
        "corpus.jsonl: line 1: `title` is 3",
    ),
    Case(BEIR, QUERIES, put(1, '{"text": "x"}'), "queries.jsonl: line 1: not a JSON object"),
    # retrieval: form of the judgements
    Case(BEIR, QRELS, whole(), "qrels/test.tsv: is empty"),
    Case(BEIR, QRELS, keep_first, "qrels/test.tsv: holds no judgement"),
    Case(BEIR, QRELS, drop_first, "qrels/test.tsv: line 1: is a judgement, no header"),
    Case(BEIR, QRELS, as_trec, "line 1: is a judg"),
    Case(BEIR, QRELS, add_column, "line 2: 4 .* TREC's"),
    Case(BEIR, QRELS, separate_by_blanks, "line 2: 1 fields"),
    Case(
        BEIR,
        QRELS,
        put(2, "q1\ta"),
        "qrels/test.tsv: line 2: 2 fields; expected a header, then query",
    ),
    Case(
        BEIR,
        QRELS,
        put(1, "corpus-id\tquery-id\tscore"),
        "line 1: the columns are corpus-id, query-id, score",
    ),
    Case(BEIR, QRELS, put(1, "qid\trel\tdocid"), "line 1: the columns are qid, rel, docid"),
    Case(BEIR, QRELS, swap_columns, "line 2: .*Query and document are swapped"),
    Case(BEIR, QRELS, append('q01\t"d01\t1', "q01\td02\t1"), "line 32: expected a header"),
    # retrieval: content of the judgements
    Case(BEIR, QRELS, put(2, "nobody\ta\t1"), "'nobody' that queries.jsonl has not"),
    Case(BEIR, QRELS, append("q01\td01 \t1"), "line 32: the document 'd01 ' is 'd01' in"),
    Case(
        BEIR,
        QRELS,
        append("\u00a0q01\td01\t1"),
        "line 32: the query .* is 'q01' in queries",
    ),
    Case(
        BEIR,
        QRELS,
        append("q01\t\ufeffd01\t1"),
        "line 32: the document .* is 'd01' in corpus",
    ),
    Case(
        BEIR,
        QRELS,
        judge_only_a_missing_document,
        "has none of the documents that it judges",
    ),
    Case(BEIR, QRELS, one_huge_grade, "line 2: the grade 200000 is out of range"),
    Case(
        BEIR,
        QRELS,
        append("q01\td01\t1.0"),
        "line 32: the grade '1.0' is no whole number",
    ),
    Case(BEIR, QRELS, grade_all_0, "qrels/test.tsv: judges no document as relevant"),
    # neighbours, EvalRank and clusters
    Case("neighbours", FLICKR, mark_first, "captions.token: line 1: a byte-order mark"),
    Case(
        "neighbours",
        FLICKR,
        put(1, "1.jpg#0 no tab"),
        "captions.token: line 1: expected IMAGE#NUMBER",
    ),
    Case(
        "neighbours",
        FLICKR,
        whole("1.jpg#0\tA man .", "1.jpg#1\tA man ."),
        "too few captions to find 3",
    ),
    Case(
        STACKOVERFLOW,
        TITLES,
        whole("3"),
        "label_StackOverflow.txt: 1 labels for 40 titles",
    ),
    Case(
        STACKOVERFLOW,
        TITLES,
        put(40, "21"),
        "label_StackOverflow.txt: line 40: expected a title",
    ),
    Case(
        "evalrank",
        PARAPHRASES,
        put(3, "no tab"),
        "pos_pair.txt: line 3: expected a sentence, a tab, its paraphrase",
    ),
    Case("evalrank", BACKGROUND, put(2, " "), "background_sent.txt: line 2: is blank"),
    Case("clusters:imdb", IMDB, put(2, "2\t1\t1\tgood"), "train.tsv: line 2: expected 0 or 1"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.evaluator}: {case.message}")
def test_a_malformed_file_is_named(case, data):
    path = data / case.file
    lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    damaged = [f"{line}\n" for line in case.damage(lines)]
    path.write_text("".join(damaged), encoding="utf-8")
    model = random_model(8)

    with pytest.raises(BadInput) as refused:
        run_evaluator(case.evaluator, model, data)

    message = str(refused.value)
    assert str(data) in message
    assert "\n" not in message
    assert re.search(case.message, message), message
