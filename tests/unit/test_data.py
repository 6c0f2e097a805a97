"""STS data and corpora are read as they stand, some corpora are refused, and metrics are exact."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.data.corpus import draw_subset, read_corpus
from csebench.data.sts import PUBLISHED_COUNTS, read_sts
from csebench.model import metrics

REAL = Path(os.environ.get("CSEBENCH_DATA", ROOT.parent / "shared" / "data"))
REAL_TRIPLETS = REAL / "nli" / "nli_triplets.csv"
STS15 = "downstream/STS/STS15-en-test/STS"
STSB = "downstream/STS/STSBenchmark/sts"
SICK = "downstream/SICK/SICK"
# The files of a data root. They hold what Python's splitlines takes for line ends, quotes, and a
# pair that nobody scored.
FILES = {
    "counts.yaml": "STS15: {images: 3, belief: 1}\nSTS-B: {dev: 2}\nSICK-R: {test: 2, trial: 1}\n",
    f"{STS15}.input.images.txt": (
        'A  Man\tone "x\tmore\nnobody\tknows\n\x0bb\tc\r\nd\u2028e\u0085f\tg\x1ch'
    ),
    f"{STS15}.gs.images.txt": "5.00\n\n0\r\n0.25",
    f"{STS15}.input.belief.txt": "x\ty\n",
    f"{STS15}.gs.belief.txt": "3\n",
    f"{STSB}-dev.csv": 'a\tb\tc\td\t2.5\t"A  b\tc"\tmore\r\na\tb\tc\td\t1\te\u2028f\tg',
    f"{SICK}_test_annotated.txt": (
        'id\ta\tb\tscore\tx\n1\t"A  b\tc"\t2.5\tNEUTRAL\n2\te\u2028f\tg\t1\tNEUTRAL\n'
    ),
    f"{SICK}_trial.txt": "id\ta\tb\tscore\tx\r\n1\ta\tb\t3\tNEUTRAL\r\n",
}
PAIRS = {  # by task, split and subset
    ("STS15", "test"): {
        "images": [("A Man", 'one "x', 5.0), ("b", "c", 0.0), ("d e f", "g h", 0.25)],
        "belief": [("x", "y", 3.0)],
    },
    ("STS-B", "dev"): {"dev": [('"A b', 'c"', 2.5), ("e f", "g", 1.0)]},
    ("SICK-R", "test"): {"test": [('"A b', 'c"', 2.5), ("e f", "g", 1.0)]},
    ("SICK-R", "trial"): {"trial": [("a", "b", 3.0)]},
}


@pytest.fixture
def data_root(tmp_path):
    """A data root with small STS files."""
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return tmp_path


@pytest.mark.parametrize(("task", "split"), PAIRS)
def test_every_scored_pair_with_its_text(task, split, data_root):
    """Tokens are joined by single blanks. Case and quotes stay as they are."""
    read = {}
    for pairs in read_sts(data_root, task, split):
        read[pairs.subset] = list(zip(pairs.left, pairs.right, pairs.gold.tolist(), strict=True))
    assert read == PAIRS[task, split]


def test_a_split_whose_size_is_not_stated_is_refused(data_root):
    """Otherwise it would be compared with the size of another split, and get its name."""
    (data_root / "counts.yaml").write_text("STS-B: {test: 2}\n")
    with pytest.raises(BadInput, match=r"counts\.yaml: STS-B: dev: missing"):
        read_sts(data_root, "STS-B", "dev")


def test_published_totals():
    """The sizes that the papers' own sources print (SentEval's table; STS12 3108 ... STS16
    1186)."""
    totals = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}
    assert {task: sum(PUBLISHED_COUNTS[task].values()) for task in totals} == totals


def test_a_few_shot_subset_stays_as_it_was_published():
    """It is in the order of the corpus. Another release of NumPy must not silently draw other
    sentences."""
    corpus = range(1_000_000)

    drawn = draw_subset(corpus, 1000, 48)

    assert drawn == sorted(set(drawn))
    assert drawn != draw_subset(corpus, 1000, 49)
    digest = hashlib.sha256(str(drawn).encode()).hexdigest()
    assert digest.startswith("d82d458cb015b325")
    assert draw_subset(corpus, 10**6, 48) is corpus


def test_a_line_of_a_corpus_is_a_sentence_as_it_stands(tmp_path):
    """Only line feeds, with or without a carriage return, end one; there may be none behind the
    last."""
    sentences = ["x" * 10**6, "a\ufeffb", "", " é\u2028€\x0b ", "last"]
    (tmp_path / "corpus.txt").write_bytes("\r\n".join(sentences).encode())
    assert list(read_corpus(tmp_path / "corpus.txt").sentences) == sentences


TRIPLETS = b"sent0,sent1,hard_neg\na,b,d\na,b,c\n"
DAMAGED = [  # kind, content, and what the message holds
    ("sentences", b"  \n\t\n", "lines with text: 0;"),
    ("sentences", b"a\n\n", "lines with text: 1; at least 2"),
    ("sentences", b"a\nb\n", "holds 2 sentences, fewer than the size of the run, 3"),
    ("sentences", b"\xef\xbb\xbf" + TRIPLETS, "line 1: a byte-order mark"),
    ("sentences", b"a\ncaf\xe9\n", "line 2: not UTF-8"),
    ("sentences", TRIPLETS, "line 1: names the columns of pairs or triplets"),
    (
        "sentences",
        b"id,sent1,sent0\r\n1,a,b\r\n2,c,d\r\n",
        "line 1: names the columns of pairs or triplets",
    ),
    (
        "triplets",
        b"sent0,sent1\na,b\n",
        "line 1: columns are 'sent0,sent1', expected sent0,sent1,hard_neg. Pairs",
    ),
    ("triplets", b"a man,a person\na,b\n", "line 1: columns are 'a man,a person', expected"),
    (
        "triplets",
        b"sent0\tsent1\thard_neg\na\tb\tc\n",
        "line 1: columns are 'sent0\\tsent1\\thard_neg'",
    ),
    ("triplets", b"sent0,sent1,hard_neg,sent0\na,b,c,d\n", "line 1: columns are"),
    ("triplets", b"sent0, sent1, hard_neg\na,b,c\n", "line 1: columns are"),
    ("triplets", b"", "line 1: columns are none"),
    ("triplets", b"\n\n", "line 1: columns are none"),
    ("triplets", b"sent0,sent1,hard_neg\n", "holds no triplet"),
    ("triplets", b"sent0,sent1,hard_neg\r\n\r\n", "holds no triplet"),
    ("triplets", TRIPLETS + b"a\xff,b,c\n", "line 4: not UTF-8"),
    ("triplets", TRIPLETS + b'a,"b, b",c\na,b\n', "line 5: 2 fields for 3 columns"),
    ("triplets", TRIPLETS + b"A man, who is old, plays.,B,C\n", "line 4: 5 fields for 3 columns"),
    ("triplets", TRIPLETS + b'a, "b, b",c\n', "line 4: 4 fields for 3 columns"),
    ("triplets", b"id," + TRIPLETS + b"1,a,b,c,d\n", "line 2: 3 fields for 4 columns"),
    ("triplets", TRIPLETS + b'a,"b,c\na,b,c\n', "line 4: not a row of a CSV file: unexpected end"),
    (
        "triplets",
        TRIPLETS + b'a,"b,c\nd"e,f,g\n',
        "line 4: not a row of a CSV file: ',' expected after",
    ),
    (
        "triplets",
        TRIPLETS + b'a,"b,c\nd,e",f\n',
        "line 4: sent1 goes on in another line: 'b,c\\nd,e'",
    ),
    ("triplets", TRIPLETS + b'a,"b\rb",c\n', "line 4: sent1 goes on in another line"),
    ("triplets", TRIPLETS + b'a,"b"b,c\n', "line 4: not a row of a CSV file"),
    ("triplets", TRIPLETS + b"\na,,c\n", "line 5: sent1 is empty"),
    ("triplets", TRIPLETS + b'a," \t",c\n', "line 4: sent1 is empty"),
    ("triplets", TRIPLETS + "a,b,\u00a0\u200b\n".encode(), "line 4: hard_neg is empty"),
    ("triplets", TRIPLETS + b",,\n", "line 4: sent0 is empty"),
    ("triplets", TRIPLETS + TRIPLETS, "line 4: the column names again"),
    ("triplets", TRIPLETS + b"\xef\xbb\xbfa,b,c\n", "line 4: sent0 begins with a byte-order mark"),
    ("triplets", TRIPLETS + b"a,b\0b,c\n", "line 4: sent1 holds a NUL"),
    (
        "triplets",
        TRIPLETS + b"a," + b"b" * 140_000 + b",c\n",
        "line 4: not a row of a CSV file: field larger",
    ),
]


@pytest.mark.parametrize(
    ("kind", "content", "part"), DAMAGED, ids=[f"{kind}: {part}" for kind, _, part in DAMAGED]
)
def test_a_corpus_that_cannot_be_used(kind, content, part, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_corpus(corpus, kind=kind, size=3)
    assert str(caught.value).startswith(f"{corpus}: {part}") and "\n" not in str(caught.value)


def test_triplets_may_be_quoted_and_fewer_than_are_drawn(tmp_path):
    """Lines may end as on Windows, blank ones do not count, and other columns are not read."""
    corpus = tmp_path / "triplets.csv"
    rows = [
        "id,hard_neg,sent0,sent1",
        '1,c,"a, a","say ""b"""',
        "",
        "2,n/a,i,j",
        '3, d ,e "f" g,h',
        "",
    ]
    for end in ("\n", "\r\n", "\r"):
        corpus.write_bytes(end.join(rows).encode())
        triplets = read_corpus(corpus, kind="triplets", size=9).sentences
        assert triplets == [("a, a", 'say "b"', "c"), ("i", "j", "n/a"), ('e "f" g', "h", " d ")]


@pytest.mark.skipif(not REAL_TRIPLETS.exists(), reason=f"no {REAL_TRIPLETS}")
def test_real_triplets_stay_what_they_were():
    triplets = read_corpus(REAL_TRIPLETS, kind="triplets").sentences
    assert len(triplets) == 10_746
    assert hashlib.sha256(repr(triplets).encode()).hexdigest()[:16] == "e2098afccf538283"


@pytest.mark.parametrize("n", [2, 30, 1379])
def test_spearman_is_scipys_to_the_bit(n):
    rng = np.random.default_rng(n)
    for digits in (17, 1):  # the second with ties on both sides
        gold = rng.integers(0, 26, n) / 5
        double = np.round(rng.standard_normal(n), digits)
        for predicted in (double, double.astype(np.float32)):
            assert metrics.spearman(predicted, gold) == spearmanr(predicted, gold).statistic
    for constant in (np.ones(n), np.full(n, np.nan)):
        assert np.isnan(metrics.spearman(constant, gold))
        assert np.isnan(metrics.spearman(gold, constant))
