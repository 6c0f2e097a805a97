"""Reading of STS data and corpora, which corpora are refused, and metrics."""

import hashlib

import numpy as np
import pytest
import yaml
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.data.corpus import draw_subset, read_corpus
from csebench.data.sts import PUBLISHED_COUNTS, read_sts
from csebench.model import metrics

SMOKE = ROOT / "data" / "smoke"
COUNTS = yaml.safe_load((SMOKE / "counts.yaml").read_text())
YEARS = ["STS12", "STS13", "STS14", "STS15", "STS16"]
TASKS = [*YEARS, "STS-B", "SICK-R"]


def subsets(task):
    """(split to ask for, subset) of every part of a task."""
    return [("test" if task in YEARS else part, part) for part in COUNTS[task]]


def files(root, task, subset):
    """Where a task's pairs and scores lie, written down once more."""
    if task == "STS-B":
        return (root / "downstream/STS/STSBenchmark" / f"sts-{subset}.csv",)
    if task == "SICK-R":
        name = "SICK_test_annotated" if subset == "test" else f"SICK_{subset}"
        return (root / "downstream/SICK" / f"{name}.txt",)
    folder = root / "downstream/STS" / f"{task}-en-test"
    return folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"


def raw(path):
    """Lines of a file, by its bytes."""
    return [line.rstrip(b"\r").decode() for line in path.read_bytes().removesuffix(b"\n").split(b"\n")]


def plain_pairs(root, task, subset):
    """(left, right, score) of every scored pair: an own reading of the files, for comparison."""
    text, *scores = map(raw, files(root, task, subset))
    if task in YEARS:
        rows = [(*line.split("\t")[:2], score) for line, score in zip(text, *scores, strict=True) if score]
    else:
        left, right, gold = (5, 6, 4) if task == "STS-B" else (1, 2, 3)
        fields = [line.split("\t") for line in (text if task == "STS-B" else text[1:])]
        rows = [(f[left], f[right], f[gold]) for f in fields]
    return [(" ".join(a.split()), " ".join(b.split()), float(gold)) for a, b, gold in rows]


def content(pairs):
    return list(zip(pairs.left, pairs.right, pairs.gold.tolist(), strict=True))


@pytest.mark.parametrize("task", TASKS)
def test_every_scored_pair_with_its_text(task):
    """Tokens joined by single blanks, nothing else changed: no case folding, no quoting."""
    for split, subset in subsets(task):
        (pairs,) = [pairs for pairs in read_sts(SMOKE, task, split) if pairs.subset == subset]
        assert content(pairs) == plain_pairs(SMOKE, task, subset)
        assert len(pairs) == COUNTS[task][subset]


def test_the_smoke_data_has_what_is_read_wrongly():
    assert "" in raw(files(SMOKE, "STS15", "answers-forums")[1])  # a pair that nobody scored
    assert any(s.startswith('"') and s.count('"') == 1 for p in read_sts(SMOKE, "STS-B") for s in (*p.left, *p.right))


LAYOUTS = {
    "several blanks": lambda content: content.replace(b" ", b"   ", 5),
    "line ends of Windows": lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "no last line feed": lambda content: content.removesuffix(b"\n"),
    **{  # Python's splitlines would cut a sentence in two here, and shift every score behind it
        f"{mark!a} for a blank": lambda content, mark=mark: content.replace(b" ", mark.encode(), 1)
        for mark in "\u2028\u0085\x0b\x1c"
    },
}


@pytest.mark.parametrize("task", ["STS12", "STS-B", "SICK-R"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_another_layout_is_the_same_text(layout, task, data):
    for path in (path for _, subset in subsets(task) for path in files(data, task, subset)):
        path.write_bytes(layout(path.read_bytes()))
    assert list(map(content, read_sts(data, task))) == list(map(content, read_sts(SMOKE, task)))


def test_published_totals():
    """The sizes that the papers' own sources print (SentEval's table; STS12 3108 ... STS16 1186)."""
    totals = {task: sum(PUBLISHED_COUNTS[task].values()) for task in YEARS}
    assert totals == {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}


# ---------------------------------------------------------------- corpora


@pytest.fixture
def corpus(tmp_path):
    return tmp_path / "corpus.txt"


def test_few_shot_subsets_are_reproducible_and_in_order():
    numbers = [f"sentence {i}" for i in range(1000)]
    one = draw_subset(numbers, 100, 48)
    assert one == draw_subset(numbers, 100, 48) != draw_subset(numbers, 100, 49)
    assert one == sorted(set(one), key=numbers.index) and len(one) == 100
    assert draw_subset(numbers, 1000, 48) is numbers and draw_subset(numbers, 10**9, 49) is numbers


def test_a_few_shot_subset_stays_as_it_was_published():
    """Another release of NumPy must not silently draw other sentences."""
    drawn = draw_subset(list(range(1_000_000)), 1000, 48)
    assert hashlib.sha256(str([int(i) for i in drawn]).encode()).hexdigest()[:16] == "d82d458cb015b325"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_large_corpus_is_decoded_line_by_line(end, corpus):
    """Letters of several bytes lie across the pieces that are checked; there is no line end behind the last line."""
    sentences = [f"{'é€' * (i % 50)}\u2028 {i}" for i in range(5000)]
    corpus.write_text(end.join(sentences), encoding="utf-8", newline="")
    found = read_corpus(corpus)
    assert [*found] == sentences and found[-1] == sentences[-1] and found[7:9] == sentences[7:9]
    corpus.write_bytes(corpus.read_bytes()[: -len(sentences[-1].encode())] + b"\xc3")
    with pytest.raises(BadInput, match="line 5000: not UTF-8"):
        read_corpus(corpus)


def test_a_line_of_1_MB_and_a_mark_inside_a_line_are_text(corpus):
    corpus.write_text(f"{'x' * 10**6}\na\ufeffb", encoding="utf-8")
    assert list(read_corpus(corpus)) == ["x" * 10**6, "a\ufeffb"]


TRIPLETS = b"sent0,sent1,hard_neg\na,b,d\na,b,c\n"
NO_CORPUS = {  # content, and what the message holds
    "empty": (b"", "holds no sentence"),
    "blank lines": (b"  \n\t\n", "holds no sentence"),
    "one sentence": (b"a\n\n", "holds only one sentence"),
    "carriage returns": (b"one sentence\rtwo sentences\r", "its lines end with carriage returns alone"),
    "fewer than are drawn": (b"a\nb\n", "holds 2 sentences, fewer than the size of the run, 3"),
    "byte-order mark": (b"\xef\xbb\xbf" + TRIPLETS, "line 1: a byte-order mark"),
    "NUL": (TRIPLETS[:-2] + b"\0" + TRIPLETS[-2:], "line 3: a NUL byte"),
    "UTF-16, ASCII alone": (TRIPLETS.decode().encode("utf-16-le"), "line 1: a NUL byte"),
    "holes of a disk that was full": (TRIPLETS + bytes(4096), "line 4: a NUL byte"),
    "long line": (TRIPLETS.replace(b"d\n", b"d" * (10**6 + 1) + b"\n"), "line 2: over 1 MB"),
    "long last line": (TRIPLETS + b"x" * (10**6 + 1), "line 4: over 1 MB"),
}
NO_TRIPLETS = {
    "NUL": NO_CORPUS["NUL"],  # lines are read before the kind is looked at
    "a column is missing": (b"sent0,sent1\na,b\n", "line 1: columns are sent0, sent1, expected sent0, sent1,"),
    "a column twice": (b"sent0,sent1,hard_neg,sent0\na,b,c,d\n", "line 1: columns are"),
    "empty": (b"", "line 1: columns are none"),
    "no row": (b"sent0,sent1,hard_neg\n", "row 2: fewer than 3 columns"),
    "a short row": (b'sent0,sent1,hard_neg\na,"b, b",c\na,b\n', "row 3: fewer than 3 columns"),
}


DAMAGED = [("sentences", *damage) for damage in NO_CORPUS.values()]
DAMAGED += [("triplets", *damage) for damage in NO_TRIPLETS.values()]


@pytest.mark.parametrize(("kind", "content", "part"), DAMAGED, ids=[f"{kind}: {part}" for kind, _, part in DAMAGED])
def test_a_corpus_that_cannot_be_used(kind, content, part, corpus):
    corpus.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_corpus(corpus, kind=kind, size=3)
    assert str(caught.value).startswith(f"{corpus}: {part}") and "\n" not in str(caught.value)


def test_triplets_may_be_quoted_and_fewer_than_are_drawn(corpus):
    corpus.write_text('sent0,sent1,hard_neg\n"a, a","say ""b""",c\n')
    assert read_corpus(corpus, kind="triplets", size=3) == [("a, a", 'say "b"', "c")]


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("n", [2, 30, 1379])
def test_spearman_is_scipys_to_the_bit(n):
    rng = np.random.default_rng(n)
    for digits in (17, 1):  # the second with ties on both sides
        gold = rng.integers(0, 26, n) / 5
        for predicted in (wide := np.round(rng.standard_normal(n), digits), wide.astype(np.float32)):
            assert metrics.spearman(predicted, gold) == spearmanr(predicted, gold).statistic
    for constant in (np.ones(n), np.full(n, np.nan)):
        assert np.isnan(metrics.spearman(constant, gold)) and np.isnan(metrics.spearman(gold, constant))


@pytest.mark.parametrize("block", [4096, 8])
def test_uniformity_is_that_of_all_pairs(block, monkeypatch):
    monkeypatch.setattr(metrics, "BLOCK", block)
    vectors = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    vectors[3] = 0
    wanted = np.log(np.exp(-2 * pdist(metrics.unit(vectors), "sqeuclidean")).mean())
    assert metrics.uniformity(vectors) == pytest.approx(wanted, abs=1e-13)
