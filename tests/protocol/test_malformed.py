"""Malformed benchmark data: every evaluator refuses the file by its name and line; more:
test_evaluators.py."""

import re

import pytest

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import load
from csebench.score.evaluate import run_evaluator

STS, SICK = "downstream/STS/STS", "misc/sts_raw/SICK/SICK_trial.txt"
IMAGES, HEADLINES = f"{STS}14-en-test/STS.gs.images.txt", f"{STS}16-en-test/STS.gs.headlines.txt"
TREC, MRPC = "downstream/TREC/TREC_10.label", "downstream/MRPC/msr_paraphrase_test.txt"
BANKING77, BANKING = "mteb:Banking77Classification", "misc/banking77/train.csv"
CORPUS, QUERIES, QRELS = (
    f"beir/smoke/{name}" for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
)
FLICKR, TITLES = "misc/flickr30k/captions.token", "misc/stackoverflow/label_StackOverflow.txt"


def put(number, text):
    """Another text in a line."""
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


def whole(*lines):
    return lambda _: lines


def swap(line):
    query, document, grade = line.split("\t")
    return f"{document}\t{query}\t{grade}"


MARK = "\ufeff"
CASES = [  # evaluator, file, its damage, and what the message says
    (
        "sts",
        IMAGES,
        lambda lines: lines[:-1],
        "STS.input.images.txt: 6 lines, but STS.gs.images.txt has 5",
    ),
    ("sts", IMAGES, put(1, ""), "STS.input.images.txt: STS14 images: 5 scored pairs, expected 6"),
    ("sts", HEADLINES, put(3, "four"), "headlines.txt: line 3: .*'four'"),
    ("sts", HEADLINES, put(1, "nan"), "headlines.txt: line 1"),
    (
        "sts",
        f"{STS}12-en-test/STS.input.MSRpar.txt",
        put(2, "one sentence"),
        "STS.input.MSRpar.txt: line 2",
    ),
    (
        "sts",
        f"{STS}Benchmark/sts-test.csv",
        put(2, "a\tb\tc\td\t2.5\tone"),
        "sts-test.csv: line 2: 6 columns",
    ),
    (
        "sts",
        f"{STS}12-en-test/STS.input.MSRpar.txt",
        put(1, f"{MARK}a\tb"),
        "MSRpar.txt: line 1: a byte-order",
    ),
    (
        "stsb_dev",
        f"{STS}Benchmark/sts-dev.csv",
        put(1, f"{MARK}a"),
        "sts-dev.csv: line 1: a byte-order mark",
    ),
    (
        "transfer",
        "downstream/MR/rt-polarity.neg",
        put(1, f"{MARK}bad"),
        "rt-polarity.neg: line 1: a byte-order mark",
    ),
    (
        "transfer",
        "downstream/SST/binary/sentiment-test",
        put(1, f"{MARK}bad\t0"),
        "sentiment-test: line 1: expected",
    ),
    (
        "transfer",
        TREC,
        put(1, f"{MARK}HUM:ind Who ?"),
        "TREC_10.label: line 1: expected CLASS:kind",
    ),
    (
        "mteb:SICK-R",
        SICK,
        lambda lines: [MARK + lines[0], *lines[1:]],
        "trial.txt: line 1: columns are",
    ),
    (
        "neighbours",
        FLICKR,
        lambda lines: [MARK + lines[0], *lines[1:]],
        "captions.token: line 1: a byte-order mark",
    ),
    (
        "transfer",
        "downstream/SST/binary/sentiment-dev",
        put(1, "good\t2"),
        "sentiment-dev: line 1: expected",
    ),
    ("transfer", TREC, put(1, "WHAT:x Who ?"), "TREC_10.label: line 1: expected CLASS:kind"),
    ("transfer", MRPC, put(2, "1\t2\t3\tone"), "test.txt: line 2: .*two sentences"),
    (
        "transfer",
        "downstream/MR/rt-polarity.pos",
        whole("one"),
        "rt-polarity.pos: 1 items, expected 36",
    ),
    (BANKING77, BANKING, put(3, "hm?,nonsense"), r"train.csv: line 3: .*'hm\? | nonsense'"),
    (BANKING77, BANKING, put(1, "text"), "train.csv: line 1: columns are text, expected text, cat"),
    (BANKING77, BANKING, whole("text,category", '"hm?'), "line 2: .*unexpected end of data"),
    (BANKING77, BANKING, whole("text,category"), "train.csv: holds no example"),
    (BANKING77, "misc/banking77/categories.json", whole("[1]"), "not a list of names"),
    (
        "mteb:SICK-R",
        SICK,
        put(2, "1\tone\ttwo\t7\tNEUTRAL"),
        "trial.txt: line 2: expected two sentences",
    ),
    (
        "mteb:SICK-R",
        SICK,
        put(2, "1\tone\ttwo\tnan\tNEUTRAL"),
        "trial.txt: line 2: expected two sentences",
    ),
    ("beir:smoke", CORPUS, put(2, '{"_id": 2'), "corpus.jsonl: line 2: not valid JSON"),
    (
        "beir:smoke",
        CORPUS,
        lambda lines: [lines[0], *lines],
        "corpus.jsonl: line 2: `_id` .* is that of line 1, too",
    ),
    (
        "beir:smoke",
        CORPUS,
        put(1, '{"_id": "1", "title": 3, "text": "x"}'),
        "corpus.jsonl: line 1: `title` is 3",
    ),
    ("beir:smoke", QUERIES, put(1, '{"text": "x"}'), "queries.jsonl: line 1: not a JSON object"),
    ("beir:smoke", QRELS, put(2, "nobody\ta\t1"), "'nobody' that queries.jsonl has not"),
    (
        "beir:smoke",
        QRELS,
        put(2, "q1\ta"),
        "qrels/test.tsv: line 2: 2 fields; expected a header, then query",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [lines[0], f"{lines[1]}00000"],
        "line 2: the grade 200000 is out of range",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: lines[1:],
        "qrels/test.tsv: line 1: is a judgement, no header",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [line.replace("\t", "\t0\t", 1) for line in lines[1:]],
        "line 1: is a judg",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [line.replace("\t", "\t0\t", 1) for line in lines],
        "line 2: 4 .* TREC's",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [line.replace("\t", " ") for line in lines],
        "line 2: 1 fields",
    ),
    (
        "beir:smoke",
        QRELS,
        put(1, "corpus-id\tquery-id\tscore"),
        "line 1: the columns are corpus-id, query-id, score",
    ),
    ("beir:smoke", QRELS, put(1, "qid\trel\tdocid"), "line 1: the columns are qid, rel, docid"),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [lines[0], *map(swap, lines[1:])],
        "line 2: .*Query and document are swapped",
    ),
    ("beir:smoke", QRELS, lambda lines: lines[:1], "qrels/test.tsv: holds no judgement"),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [re.sub("[0-9]+$", "0", line) for line in lines],
        "qrels/test.tsv: judges no document as relevant",
    ),
    ("beir:smoke", QRELS, lambda lines: [], "qrels/test.tsv: is empty"),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines, "q01\td01 \t1"],
        "line 32: the document 'd01 ' is 'd01' in",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines, "\u00a0q01\td01\t1"],
        "line 32: the query .* is 'q01' in queries",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines, "q01\t\ufeffd01\t1"],
        "line 32: the document .* is 'd01' in corpus",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines, "q01\td01\t1.0"],
        "line 32: the grade '1.0' is no whole number",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines, 'q01\t"d01\t1', "q01\td02\t1"],
        "line 32: expected a header",
    ),
    (
        "beir:smoke",
        QRELS,
        lambda lines: [*lines[:1], "q01\tno\t1"],
        "has none of the documents that it judges",
    ),
    (
        "neighbours",
        FLICKR,
        put(1, "1.jpg#0 no tab"),
        "captions.token: line 1: expected IMAGE#NUMBER",
    ),
    (
        "neighbours",
        FLICKR,
        whole("1.jpg#0\tA man .", "1.jpg#1\tA man ."),
        "too few captions to find 3",
    ),
    (
        "clusters:stackoverflow",
        TITLES,
        whole("3"),
        "label_StackOverflow.txt: 1 labels for 40 titles",
    ),
    (
        "clusters:stackoverflow",
        TITLES,
        put(40, "21"),
        "label_StackOverflow.txt: line 40: expected a title",
    ),
    (
        "clusters:imdb",
        "misc/imdb/train.tsv",
        put(2, "2\t1\t1\tgood"),
        "train.tsv: line 2: expected 0 or 1",
    ),
]


@pytest.mark.parametrize(("evaluator", "file", "damage", "message"), CASES)
def test_a_malformed_file_is_named(evaluator, file, damage, message, data):
    path = data / file
    lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    path.write_text("".join(f"{line}\n" for line in damage(lines)), encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        run_evaluator(evaluator, load("random")({"dimensions": 8}, 1), data)
    assert str(data) in str(refused.value) and "\n" not in str(refused.value)
    assert re.search(message, str(refused.value)), refused.value
