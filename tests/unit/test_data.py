"""Reading of STS data, what is refused and how, and parity of the STS protocol with a plain re-computation."""

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.distance import cosine as cosine_distance
from scipy.stats import spearmanr

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.data.corpus import draw_subset, read_corpus
from csebench.data.sts import PUBLISHED_COUNTS, read_sts
from evaluators import sts

SMOKE = ROOT / "data" / "smoke"
COUNTS = yaml.safe_load((SMOKE / "counts.yaml").read_text())
YEARS = ["STS12", "STS13", "STS14", "STS15", "STS16"]
TASKS = [*YEARS, "STS-B", "SICK-R"]
REAL = Path(os.environ.get("CSEBENCH_DATA", ROOT.parent / "shared" / "data"))

needs_real_data = pytest.mark.skipif(
    not (REAL / "downstream" / "STS").is_dir(), reason=f"no SentEval data at {REAL} (set CSEBENCH_DATA)"
)


def splits(task):
    return {"STS-B": ["train", "dev", "test"], "SICK-R": ["train", "trial", "test"]}.get(task, ["test"])


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
    found = files(root, task, subset)
    if task == "STS-B":
        return [(f[5], f[6], float(f[4])) for f in (line.split("\t") for line in raw(found[0]))]
    if task == "SICK-R":
        return [(f[1], f[2], float(f[3])) for f in (line.split("\t") for line in raw(found[0])[1:])]
    both = zip(raw(found[0]), raw(found[1]), strict=True)
    return [(*text.split("\t")[:2], float(score)) for text, score in both if score]


@pytest.fixture
def data(tmp_path):
    """A copy of the smoke data to damage."""
    return shutil.copytree(SMOKE, tmp_path / "data")


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize("task", TASKS)
def test_counts(task):
    for split in splits(task):
        found = {p.subset: len(p) for p in read_sts(SMOKE, task, split)}
        assert found == (COUNTS[task] if task in YEARS else {split: COUNTS[task][split]})


@pytest.mark.parametrize("task", TASKS)
def test_text_is_the_files_text(task):
    """Tokens joined by single blanks, nothing else changed: no case folding, no quoting."""
    for pairs in read_sts(SMOKE, task):
        plain = plain_pairs(SMOKE, task, pairs.subset)
        assert pairs.left == [" ".join(left.split()) for left, _, _ in plain]
        assert pairs.right == [" ".join(right.split()) for _, right, _ in plain]
        assert pairs.gold.tolist() == [gold for _, _, gold in plain]


def test_unscored_pairs_are_dropped():
    scores = raw(files(SMOKE, "STS15", "answers-forums")[1])
    assert "" in scores, "the smoke data has an unscored pair here"
    (pairs,) = [p for p in read_sts(SMOKE, "STS15") if p.subset == "answers-forums"]
    assert len(pairs) == sum(map(bool, scores)) < len(scores)


def test_lone_quotes_are_text():
    sentences = [s for p in read_sts(SMOKE, "STS-B") for s in (*p.left, *p.right)]
    assert any(s.startswith('"') and s.count('"') == 1 for s in sentences)


def test_blanks_are_joined(data):
    path, _ = files(data, "STS12", "MSRpar")
    text = path.read_text()
    path.write_text(text.replace(" ", "   ", 5))
    one, two = read_sts(data, "STS12")[0], read_sts(SMOKE, "STS12")[0]
    assert (one.left, one.right) == (two.left, two.right)
    assert path.read_text() != text


@pytest.mark.parametrize("task", TASKS)
def test_windows_line_ends_are_fine(data, task):
    for subset in COUNTS[task] if task in YEARS else ["test"]:
        for path in files(data, task, subset):
            path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    for one, two in zip(read_sts(data, task), read_sts(SMOKE, task), strict=True):
        assert (one.left, one.right, one.gold.tolist()) == (two.left, two.right, two.gold.tolist())


def test_a_large_corpus_is_decoded_line_by_line(tmp_path):
    """Letters of several bytes lie across the pieces that are checked; either line end, and none behind the last."""
    sentences = [f"{'é€' * (i % 50)} {i}" for i in range(5000)]
    corpus = tmp_path / "corpus.txt"
    for end in ("\n", "\r\n"):
        corpus.write_text(end.join(sentences), encoding="utf-8", newline="")
        found = read_corpus(corpus)
        assert [*found] == sentences and found[-1] == sentences[-1] and len(found) == 5000
    corpus.write_bytes(corpus.read_bytes()[: -len(sentences[-1])] + b"\xc3")
    with pytest.raises(BadInput, match="line 5000: not UTF-8"):
        read_corpus(corpus)


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x0b", "\x1c"])
def test_only_line_feeds_end_a_line(data, mark):
    """Python's splitlines would cut a sentence in two here, and shift every score behind it."""
    path, _ = files(data, "STS12", "MSRpar")
    path.write_text(path.read_text().replace(" ", mark, 1), newline="\n")
    pairs = read_sts(data, "STS12")[0]
    assert len(pairs) == COUNTS["STS12"]["MSRpar"]
    assert pairs.left == read_sts(SMOKE, "STS12")[0].left  # they count as blanks between tokens
    corpus = data / "corpus.txt"
    corpus.write_text(f"one{mark}sentence\nanother\n")
    assert [*read_corpus(corpus)] == [f"one{mark}sentence", "another"]


def test_a_missing_last_line_feed_is_fine(data):
    for path in files(data, "STS12", "MSRpar"):
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert len(read_sts(data, "STS12")[0]) == COUNTS["STS12"]["MSRpar"]


# ---------------------------------------------------------------- what is refused


def rewrite(path, edit):
    """Replace a file's lines by `edit(lines)`."""
    path.write_bytes("".join(f"{line}\n" for line in edit(raw(path))).encode())


def refused(data, task, *parts, split="test"):
    """The message, which must be one line and hold all parts."""
    with pytest.raises(BadInput) as caught:
        read_sts(data, task, split)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert str(part) in message, f"{part!r} not in {message!r}"


def test_truncated_input_file(data):
    inputs, scores = files(data, "STS14", "images")
    rewrite(inputs, lambda lines: lines[:-1])
    refused(data, "STS14", inputs, scores.name, 5, 6)


def test_too_many_scores(data):
    inputs, scores = files(data, "STS14", "images")
    rewrite(scores, lambda lines: [*lines, "3.0"])
    refused(data, "STS14", inputs, scores.name, 6, 7)


def test_both_files_cut_alike(data):
    for path in files(data, "STS14", "images"):
        rewrite(path, lambda lines: lines[:-1])
    refused(data, "STS14", "STS14", "images", "5 scored pairs", "expected 6")


def test_both_files_cut_alike_names_the_file(data):
    for path in files(data, "STS14", "images"):
        rewrite(path, lambda lines: lines[:-1])
    refused(data, "STS14", files(data, "STS14", "images")[0])


@pytest.mark.parametrize(("task", "subset"), [("STS-B", "dev"), ("STS-B", "test"), ("SICK-R", "test")])
def test_a_missing_pair(data, task, subset):
    rewrite(files(data, task, subset)[0], lambda lines: lines[:-1])
    expected = COUNTS[task][subset]
    refused(data, task, task, subset, f"{expected - 1} scored pairs", f"expected {expected}", split=subset)


@pytest.mark.parametrize(
    ("task", "subset", "file", "column", "line"),
    [("STS16", "headlines", 1, 0, 3), ("STS-B", "test", 0, 4, 7), ("SICK-R", "test", 0, 3, 2)],
)
def test_a_score_that_is_no_number(data, task, subset, file, column, line):
    path = files(data, task, subset)[file]

    def edit(lines):
        fields = lines[line - 1].split("\t")
        fields[column] = "four"
        return [*lines[: line - 1], "\t".join(fields), *lines[line:]]

    rewrite(path, edit)
    refused(data, task, path, f"line {line}", "'four'", "not a number")


@pytest.mark.parametrize("score", ["nan", "inf"])
def test_a_score_that_is_not_finite(data, score):
    path = files(data, "STS16", "headlines")[1]
    rewrite(path, lambda lines: [score, *lines[1:]])
    refused(data, "STS16", path, "line 1")


@pytest.mark.parametrize(("task", "subset"), [("STS13", "FNWN"), ("STS-B", "test"), ("SICK-R", "test")])
def test_a_byte_that_is_not_utf8(data, task, subset):
    path = files(data, task, subset)[0]
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"e", b"\xe9", 1)
    path.write_bytes(b"\n".join(lines))
    refused(data, task, path, "line 3", "not UTF-8", "0xe9")


@pytest.mark.parametrize("file", [0, 1])
def test_a_missing_file(data, file):
    path = files(data, "STS13", "OnWN")[file]
    path.unlink()
    refused(data, "STS13", path, "no such file")


@pytest.mark.parametrize(("task", "file"), [("STS12", "MSRpar"), ("STS-B", "test"), ("SICK-R", "test")])
def test_a_line_without_two_sentences(data, task, file):
    path = files(data, task, file)[0]
    rewrite(path, lambda lines: [lines[0], "only one sentence", *lines[2:]])
    refused(data, task, path, "line 2")


def test_an_empty_file(data):
    path = files(data, "STS-B", "test")[0]
    path.write_text("")
    refused(data, "STS-B", path)


def test_a_folder_without_data(tmp_path):
    for task in TASKS:
        refused(tmp_path, task, tmp_path, "no such file")


# ---------------------------------------------------------------- corpora


def test_few_shot_subsets_are_reproducible_and_in_order():
    corpus = [f"sentence {i}" for i in range(1000)]
    one = draw_subset(corpus, 100, 48)
    assert one == draw_subset(corpus, 100, 48) != draw_subset(corpus, 100, 49)
    assert len(set(one)) == 100
    assert one == sorted(one, key=corpus.index)
    assert draw_subset(corpus, 1000, 48) == draw_subset(corpus, 10**9, 49) == corpus


def test_a_few_shot_subset_stays_as_it_was_published():
    """Another release of NumPy must not silently draw other sentences."""
    drawn = draw_subset(list(range(1_000_000)), 1000, 48)
    assert hashlib.sha256(str([int(i) for i in drawn]).encode()).hexdigest()[:16] == "d82d458cb015b325"


def test_a_corpus_that_is_not_the_pinned_one(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a sentence\nanother\n")
    with pytest.raises(BadInput, match="sha256") as caught:
        read_corpus(corpus, "0" * 64)
    assert str(corpus) in str(caught.value)
    assert [*read_corpus(corpus, hashlib.sha256(corpus.read_bytes()).hexdigest())] == ["a sentence", "another"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \n\t\n"])
def test_an_empty_corpus(tmp_path, content):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    with pytest.raises(BadInput, match="no sentence") as caught:
        read_corpus(corpus)
    assert str(corpus) in str(caught.value)


DAMAGE = {
    "byte-order mark": (lambda text: b"\xef\xbb\xbf" + text, 1, "byte-order mark"),
    "NUL": (lambda text: text[:-2] + b"\0" + text[-2:], 3, "NUL"),
    "UTF-16, ASCII alone": (lambda text: text.decode().encode("utf-16-le"), 1, "NUL"),
    "holes of a disk that was full": (lambda text: text + bytes(4096), 4, "NUL"),
    "long line": (lambda text: text.replace(b"d\n", b"d" * (10**6 + 1) + b"\n"), 2, "1 MB"),
    "long last line": (lambda text: text + b"x" * (10**6 + 1), 4, "1 MB"),
}


@pytest.mark.parametrize("kind", ["sentences", "triplets"])
@pytest.mark.parametrize(("damage", "line", "part"), DAMAGE.values(), ids=DAMAGE)
def test_a_corpus_that_is_no_text(damage, line, part, kind, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(damage(b"sent0,sent1,hard_neg\na,b,d\na,b,c\n"))
    with pytest.raises(BadInput, match=part) as caught:
        read_corpus(corpus, kind=kind)
    assert str(caught.value).startswith(f"{corpus}: line {line}: ") and "\n" not in str(caught.value)


def test_a_line_of_1_MB_and_a_mark_inside_a_line_are_text(tmp_path):
    corpus = tmp_path / "corpus.txt"
    sentences = ["x" * 10**6, "a\ufeffb"]
    corpus.write_text("\n".join(sentences), encoding="utf-8")
    assert list(read_corpus(corpus)) == sentences


# ---------------------------------------------------------------- real data


@needs_real_data
@pytest.mark.parametrize(
    ("file", "kind", "count"),
    [("wiki/wiki1m_github.txt", "sentences", 1_000_000), ("nli/nli_triplets.csv", "triplets", 10_746)],
)
def test_the_public_corpora_are_read(file, kind, count):
    assert len(read_corpus(REAL / file, kind=kind)) == count


@needs_real_data
@pytest.mark.parametrize("task", TASKS)
def test_published_counts_hold(task):
    for split in splits(task):
        found = {p.subset: len(p) for p in read_sts(REAL, task, split)}
        published = PUBLISHED_COUNTS[task]
        assert found == (published if task in YEARS else {split: published[split]})


def test_published_totals():
    """The sizes that the papers' own sources print (SentEval's table; STS12 3108 ... STS16 1186)."""
    totals = {task: sum(PUBLISHED_COUNTS[task].values()) for task in YEARS}
    assert totals == {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}


# ---------------------------------------------------------------- the protocol


class Plane:
    """A model whose cosine for a pair is known: overlap of words, told apart by a hash of the pair."""

    @staticmethod
    def angle(left, right):
        one, two = set(left.lower().split()), set(right.lower().split())
        overlap = len(one & two) / len(one | two)
        noise = int(hashlib.sha256(f"{left}\n{right}".encode()).hexdigest()[:8], 16) / 2**32
        return 0.1 + 1.2 * (1 - overlap) + 0.2 * noise

    def pairs(self, pairs):
        angles = np.array([self.angle(*both) for both in zip(pairs.left, pairs.right, strict=True)])
        left = np.stack([np.full(len(angles), 3.0), np.zeros(len(angles))], 1)
        return left, 0.5 * np.stack([np.cos(angles), np.sin(angles)], 1)


def plain_scores(root, counts):
    """`{(task, subset): value}` by loops: SimCSE's "all" is one correlation over the concatenated subsets."""
    found = {}
    for task in TASKS:
        every_cosine, every_gold, each = [], [], []
        for subset in counts[task] if task in YEARS else ["test"]:
            cosines, golds = [], []
            for left, right, gold in plain_pairs(root, task, subset):
                angle = Plane.angle(" ".join(left.split()), " ".join(right.split()))
                cosines.append(1 - cosine_distance([1, 0], [np.cos(angle), np.sin(angle)]))
                golds.append(gold)
            found[task, subset] = spearmanr(cosines, golds)[0]
            each.append(found[task, subset])
            every_cosine += cosines
            every_gold += golds
        found[task, "mean"] = sum(each) / len(each)
        found[task, "all"] = spearmanr(every_cosine, every_gold)[0]
    of_tasks = [found[task, "all"] for task in TASKS]
    found["Avg.", "all"] = sum(of_tasks) / 7
    found["Avg.", "printed"] = sum(float(f"{100 * v:.2f}") for v in of_tasks) / 7 / 100
    return found


def parity(root, counts):
    rows, items = sts.evaluate(Plane(), root)
    ours = {(row.task, row.subset): row.value for row in rows}
    plain = plain_scores(root, counts)
    assert ours.keys() == plain.keys()
    assert {k: ours[k] for k in plain} == pytest.approx(plain, abs=2e-6)  # ours are cosines in float32
    assert {row.metric for row in rows} == {"spearman"}
    assert 0.1 < ours["Avg.", "all"] < 0.999, "a comparison of correlations that say something"
    assert any(abs(ours[t, "all"] - ours[t, "mean"]) > 1e-3 for t in YEARS), (
        "all and mean must differ to be told apart"
    )
    for task in TASKS:
        for subset in counts[task] if task in YEARS else ["test"]:
            expected = [
                np.cos(Plane.angle(*map(" ".join, (left.split(), right.split()))))
                for left, right, _ in plain_pairs(root, task, subset)
            ]
            assert items[f"{task}/{subset}"] == pytest.approx(expected, abs=1e-6)
            assert items[f"gold/{task}/{subset}"].tolist() == [gold for *_, gold in plain_pairs(root, task, subset)]


def test_protocol_parity_on_smoke_data():
    parity(SMOKE, COUNTS)


@needs_real_data
def test_protocol_parity_on_real_data():
    parity(REAL, PUBLISHED_COUNTS)


# ---------------------------------------------------------------- triplets


def test_triplets_of_the_project(smoke_data):
    found = read_corpus(smoke_data / "nli" / "smoke.csv", kind="triplets")
    assert len(found) == len(set(found)) == 40
    assert all(len(set(triplet)) == 3 and all(triplet) for triplet in found)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("sent0,sent1\na,b\n", "line 1: columns are sent0, sent1, expected sent0, sent1, hard_neg"),
        ("", "line 1: columns are none"),
        ("sent0,sent1,hard_neg\n", "row 2: fewer than 3 columns"),
        ('sent0,sent1,hard_neg\na,"b, b",c\na,b\n', "row 3: fewer than 3 columns"),
    ],
)
def test_triplets_that_cannot_be_read(content, part, tmp_path):
    (tmp_path / "nli.csv").write_text(content)
    with pytest.raises(BadInput, match=part) as caught:
        read_corpus(tmp_path / "nli.csv", kind="triplets")
    assert str(tmp_path / "nli.csv") in str(caught.value)


def test_triplets_may_be_quoted(tmp_path):
    (tmp_path / "nli.csv").write_text('sent0,sent1,hard_neg\n"a, a","say ""b""",c\n')
    assert read_corpus(tmp_path / "nli.csv", kind="triplets") == [("a, a", 'say "b"', "c")]


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("n", [2, 30, 1379])
def test_spearman_is_scipys_to_the_bit(n):
    from csebench.model.metrics import spearman

    rng = np.random.default_rng(n)
    for digits in (17, 1):  # the second with ties on both sides
        predicted, gold = np.round(rng.standard_normal(n), digits), rng.integers(0, 26, n) / 5
        assert spearman(predicted, gold) == spearmanr(predicted, gold).statistic
        assert spearman(predicted.astype(np.float32), gold) == spearmanr(predicted.astype(np.float32), gold).statistic
    for constant in (np.ones(n), np.full(n, np.nan)):
        assert np.isnan(spearman(constant, gold)) and np.isnan(spearman(gold, constant))


def test_uniformity_is_that_of_all_pairs(monkeypatch):
    from scipy.spatial.distance import pdist

    from csebench.model import metrics

    vectors = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    vectors[3] = 0
    wanted = np.log(np.exp(-2 * pdist(metrics.unit(vectors), "sqeuclidean")).mean())
    for block in (4096, 8):
        monkeypatch.setattr(metrics, "BLOCK", block)
        assert metrics.uniformity(vectors) == pytest.approx(wanted, abs=1e-13)
