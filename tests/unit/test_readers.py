"""Whatever a file holds, its reader returns or says what is wrong: damage and wrong values are drawn by Hypothesis."""

import io
import json

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import parse_json, read_object, read_with_lines, read_yaml, with_digest
from csebench.base.models import check_model, read_facts
from csebench.base.progress import read_progress
from csebench.base.project import ROOT
from csebench.base.runs import is_done
from csebench.data.corpus import read_corpus, read_positives
from csebench.data.sts import read_sts
from csebench.model.embedder import EmbeddingFile
from csebench.plan import cli_spec, targets, tuning
from csebench.plan.declarations import Scale
from csebench.plan.evidence import Source
from csebench.plan.papers import Paper
from csebench.plan.where_data_is import Download, SourcesFile
from csebench.report.cells import ItemsFile
from csebench.report.status import read_training
from csebench.score.score_file import read_published
from csebench.score.store import Note, items
from evaluators.beir import distinct_ids

SMOKE = ROOT / "data" / "smoke"
STSB = "downstream/STS/STSBenchmark/sts-dev.csv"
BOUNDED = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def spec():
    return next(iter(targets.runs("smoke").values()))


def spec_json():
    return json.dumps(spec().model_dump()).encode()


def scores_json():
    return sealed(SCORES | {"run": "x", "spec": spec().model_dump(), "replicates": REPLICATES}).encode()


def search_json():
    settings, run = tuning.plan_trials("simcse", "smoke", 1)[0]
    trial = {"settings": settings, "run": run.run_id, "dev": 0.5}
    search = {"name": "simcse", "planned": 2, "spec": run.model_dump(), "trials": [trial], "chosen": settings}
    return sealed(search).encode()


def sealed(content):
    """A file as JSON with a digest that fits."""
    try:
        return json.dumps(with_digest(content), default=str)
    except (AttributeError, UnicodeEncodeError):  # no object; no text
        return json.dumps(content, default=str)


def npz():
    content = io.BytesIO()
    np.savez(content, sentences=np.array(["a", "b"]), vectors=np.ones((2, 3), np.float32))
    return content.getvalue()


def project_file(name):
    return lambda: (ROOT / name).read_bytes()


def read_positives_of(path):
    path.with_name("positives.txt").write_text("one\ntwo\n")
    return read_positives(path.with_name("positives.txt"), "0" * 64, "there back", 2)


POSITIVES = {"corpus_sha256": "0" * 64, "translators": "there back", "beams": 5, "longest": 128, "version": 1}
PROGRESS = {"state": "running", "step": 3, "steps": 9, "host": "here", "pid": 1, "updated": 1.5, "left": None}
REPORT = {"losses": [1.0], "resumed_at": None, "provenance": {"seconds": 3.5, "gpu": None, "processor": "x"}}
SCORED = {"evaluator": "sts", "version": 1, "model_sha256": "0" * 64}
ROW = {"evaluator": "sts", "task": "STS12", "subset": "all", "metric": "spearman", "value": 0.5}
SCORES = {"evaluations": [SCORED], "scores": [ROW], "items": "x.npz"}
CHANGES = {"unit": 1e-5, "values": "AAAA"}
REPLICATES = {"items": "0" * 16, "scores": {"STS12": {"spearman": {"clustered": CHANGES, "naive": CHANGES}}}}
PAIR = {"a": 0, "b": 1, "mean": 4.9, "p": 0.4, "holm": 1.0, "seeds": 3, "item_variance": 0.04}
COMPARED = {"Avg.": {"order": [0, 1], "pairs": [PAIR], "letters": {"0": "a"}}}
JSON_READERS = {  # name of the file: its content, how it is read
    "spec.json": (spec_json, lambda path: cli_spec.read_spec(str(path))),
    "saved/spec.json": (spec_json, lambda path: is_done(path.parent, spec())),
    "progress.json": (lambda: json.dumps(PROGRESS).encode(), read_progress),
    "sts.failed.json": (lambda: b'{"evaluator": "sts", "reason": "no data"}', lambda path: read_object(path, Note)),
    "train.json": (lambda: json.dumps(REPORT).encode(), lambda path: read_training(path.parent)),
    "model/training.json": (lambda: json.dumps(REPORT).encode(), lambda path: check_model(path.parent)),
    "model/csebench.json": (lambda: b'{"run": "x", "pooler": "cls"}', lambda path: read_facts(path.parent)),
    "x.sts.json": (scores_json, read_published),
    "simcse.json": (search_json, tuning.read_search),
    "table2.items.json": (
        lambda: sealed({"comparisons": COMPARED, "texts": None}).encode(),
        lambda path: read_object(path, ItemsFile),
    ),
    "positives.txt.json": (lambda: json.dumps(POSITIVES).encode(), read_positives_of),
}
YAML_READERS = {
    "smoke.yaml": (project_file("config/smoke.yaml"), lambda path: read_yaml(path, Scale)),
    "micse.yaml": (project_file("papers/micse.yaml"), lambda path: read_yaml(path, Paper)),
    "sources.yaml": (project_file("data/sources.yaml"), lambda path: read_yaml(path, SourcesFile)),
    "Echo.yaml": (project_file("evidence/Echo.yaml"), lambda path: read_with_lines(path, Source, as_written=True)),
}
OTHER_READERS = {
    "corpus.txt": (project_file("data/smoke/wiki/smoke.txt"), read_corpus),
    "triplets.csv": (project_file("data/smoke/nli/smoke.csv"), lambda path: read_corpus(path, kind="triplets")),
    STSB: (project_file(f"data/smoke/{STSB}"), lambda path: read_sts(path.parents[3], "STS-B", "dev")),
    "corpus.jsonl": (project_file("data/smoke/beir/smoke/corpus.jsonl"), distinct_ids),
    "vectors.npz": (npz, EmbeddingFile),
    "x.items.npz": (npz, lambda path: items({}, path.with_name("x.json"))),
}
READERS = JSON_READERS | YAML_READERS | OTHER_READERS


def reads_or_refuses(read, path):
    """The reader returns, or raises what ends a command with one message about this file."""
    try:
        read(path)
    except (BadInput, RunFailed) as error:
        assert 0 < len(str(error)) < 8000


@st.composite
def damage(draw, content):
    """The bytes of a file after it was cut short, some of its bits flipped, or some bytes put into it."""
    kind = draw(st.sampled_from(["cut", "flip", "insert"]))
    place = draw(st.integers(0, len(content)))
    if kind == "cut":
        return content[:place]
    if kind == "insert":
        return content[:place] + draw(st.binary(min_size=1, max_size=20)) + content[place:]
    damaged = bytearray(content)
    for position in draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=5)):
        damaged[position] ^= draw(st.integers(1, 255))
    return bytes(damaged)


@pytest.mark.parametrize("name", READERS)
@BOUNDED
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name, data, tmp_path):
    content, read = READERS[name]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.draw(damage(content())))
    reads_or_refuses(read, path)


WRONG = [None, True, -1, 0, 2**70, 1.5, float("inf"), float("nan"), "", "x" * 999, "\ud800", "9" * 400, [], {}, [[]]]


def places(content, place=()):
    """Every place in a value of dicts and lists, as a path of keys and positions."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [place, *(inner for key, value in items for inner in places(value, (*place, key)))]


def replaced(content, place, value):
    if not place:
        return value
    copy = content.copy()
    copy[place[0]] = replaced(content[place[0]], place[1:], value)
    return copy


@pytest.mark.parametrize("name", [*JSON_READERS, *YAML_READERS])
@BOUNDED
@given(data=st.data())
def test_a_wrong_value_is_read_or_refused(name, data, tmp_path):
    """A value of the file is of another type, out of range, or not to be printed."""
    content, read = READERS[name]
    parsed = json.loads(content()) if name in JSON_READERS else yaml.safe_load(content())
    place = data.draw(st.sampled_from(places(parsed)))
    wrong = replaced(parsed, place, data.draw(st.sampled_from(WRONG)))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = sealed(wrong) if "sha256" in parsed else json.dumps(wrong, default=str)  # YAML, too, but for these
    path.write_text(text if name in JSON_READERS else text.replace("NaN", ".nan").replace("Infinity", ".inf"))
    reads_or_refuses(read, path)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[-Infinity]",
        '"\\ud800"',
        '{"\\udfff": 1}',
        b'"caf\xe9"',
        '"\udcff"',
        "[" * 100_000,
        "9" * 5000,
        "",
    ],
    ids=len,
)
def test_json_that_other_readers_take_is_refused(text):
    with pytest.raises(BadInput, match=r"file: .*not valid JSON"):
        parse_json(text, "file")


def test_json_keeps_what_it_means():
    assert parse_json('{"a": [1, 2.5e-3, "\\ud83d\\ude00", null, true]}', "file") == {
        "a": [1, 0.0025, "\N{GRINNING FACE}", None, True]
    }


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name: x\nname: y\n", r"line 2: .*'name' occurs twice"),
        ("name: 2020-13-45\n", "not valid YAML"),
        ("name: &a [*a]\n", "name"),
        ("[" * 5000, "not valid YAML"),
        ("name: " + "9" * 5000, "not valid YAML"),
        ('name: "a\\0b"\n', r"line 1: the character '\\x00' cannot be printed"),
        ('name: "\\uD800"\n', "not valid YAML"),
        ("? [1]\n: 2\n", "not valid YAML"),
        ("name: !!bool x\n", "not valid YAML"),
        ("name: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
    ids=["key twice", "date", "itself", "deep", "digits", "NUL", "surrogate", "list as key", "tag", "command"],
)
def test_yaml_that_cannot_be_meant_is_refused(text, part, tmp_path):
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(BadInput, match=part) as caught:
        read_yaml(tmp_path / "file.yaml", Download)
    assert str(tmp_path / "file.yaml") in str(caught.value)


def test_aliases_of_aliases_do_not_grow(tmp_path):
    """A billion values from ten lines: refused as keys that the file must not have, in no time."""
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 10))
    (tmp_path / "file.yaml").write_text("l0: &l0 [x]\n" + levels)
    with pytest.raises(BadInput, match="line 10: l9: unknown key"):
        read_yaml(tmp_path / "file.yaml", Download)
