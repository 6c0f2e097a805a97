"""Whatever a file holds, its reader returns or says what is wrong: damage and wrong values are
drawn by Hypothesis."""

import functools
import io
import json

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import parse_json, with_digest
from csebench.base.models import check_model, read_facts
from csebench.base.project import ROOT
from csebench.base.runs import read_progress, read_report, refuse_other_run
from csebench.base.yaml_lines import read_with_lines, read_yaml
from csebench.cli import train_options
from csebench.data.corpus import read_corpus, read_positives
from csebench.data.sts import read_sts
from csebench.plan import targets, tuning
from csebench.plan.catalog.data_sources import Download, SourcesFile
from csebench.plan.catalog.evidence import EvidenceSource
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.paper import Paper
from csebench.score.score_file import read_published
from csebench.score.store import items
from evaluators.beir import distinct_ids

UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
BOUNDED = settings(
    max_examples=40, derandomize=True, deadline=None, suppress_health_check=UNCHECKED
)


def spec():
    """Return a planned run."""
    return next(iter(targets.runs("smoke").values()))


def scores():
    """Return the content of a score file."""
    evaluation = {"evaluator": "sts", "version": 1, "model_sha256": "0" * 64}
    row = {"evaluator": "sts", "task": "STS12", "subset": "all", "metric": "spearman", "value": 0.5}
    provenance = {
        "commit": None,
        "dirty_diff_sha256": None,
        "packages": {"torch": "9"},
        "gpu": None,
        "processor": "x",
    }
    curve = [{"step": 1, "loss": 0.5, "alignment": 1.0, "uniformity": -1.0, "spearman": None}]
    content = {
        "evaluations": [evaluation],
        "scores": [row],
        "items": "x.npz",
        "run": "x",
        "spec": spec().model_dump(),
        "provenance": provenance,
        "training": {"provenance": provenance, "curve": curve},
    }
    return with_digest(content)


def search():
    """Return the content of the file of a search."""
    (planned,) = tuning.plan_trials("simcse", "smoke", 1)
    trial = {
        "settings": planned.settings,
        "runs": [{"run": run.run_id, "seed": run.seed, "dev": 0.5} for run in planned.specs],
    }
    content = {
        "name": "simcse",
        "planned": 2,
        "spec": planned.specs[0].model_dump(),
        "trials": [trial],
        "chosen": planned.settings,
    }
    return with_digest(content)


POSITIVES = {
    "corpus_sha256": "0" * 64,
    "translators": "a b",
    "beams": 5,
    "longest": 128,
    "version": 1,
}
PROGRESS = {"state": "running", "step": 3, "steps": 9, "host": "here", "pid": 1, "updated": 1.5}
REPORT = {
    "losses": [1.0],
    "resumed_at": None,
    "provenance": {"seconds": 3.5, "gpu": None, "processor": "x"},
}
JSON_READERS = {  # name of the file: its content, how it is read
    "spec.json": (lambda: spec().model_dump(), lambda path: train_options.read_spec(str(path))),
    "saved/spec.json": (
        lambda: spec().model_dump(),
        lambda path: refuse_other_run(path.parent, spec()),
    ),
    "progress.json": (lambda: PROGRESS, lambda path: read_progress(path.parent)),
    "train.json": (lambda: REPORT, lambda path: read_report(path.parent)),
    "model/training.json": (lambda: REPORT, lambda path: check_model(path.parent)),
    "model/csebench.json": (
        lambda: {"run": "x", "pooler": "cls"},
        lambda path: read_facts(path.parent),
    ),
    "x.sts.json": (scores, read_published),
    "simcse.json": (search, tuning.read_search),
    "positives.txt.json": (
        lambda: POSITIVES,
        lambda path: read_positives(path.with_suffix(""), "0" * 64, "a b", 2),
    ),
}
OTHER_READERS = {  # name of the file: where its content is, how it is read
    "config/smoke.yaml": lambda path: read_yaml(path, Scale),
    "papers/informin_cl.yaml": lambda path: read_yaml(path, Paper),
    "data/sources.yaml": lambda path: read_yaml(path, SourcesFile),
    "evidence/Echo.yaml": lambda path: read_with_lines(path, EvidenceSource, as_written=True),
    "data/smoke/wiki/smoke.txt": read_corpus,
    "data/smoke/nli/smoke.csv": lambda path: read_corpus(path, kind="triplets"),
    "data/smoke/downstream/STS/STSBenchmark/sts-dev.csv": lambda path: read_sts(
        path.parents[3], "STS-B", "dev"
    ),
    "data/smoke/beir/smoke/corpus.jsonl": distinct_ids,
    "x.items.npz": lambda path: items({}, path.with_name("x.json")),
}


def reads_or_refuses(name, content, tmp_path):
    """Read a file. Its reader returns, or raises an error that ends a command with one message."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if name in JSON_READERS:
        _, read = JSON_READERS[name]
    else:
        read = OTHER_READERS[name]
    try:
        read(path)
    except (BadInput, RunFailed) as error:
        assert 0 < len(str(error)) < 8000


@functools.cache
def content_of(name):
    """Return a file as bytes, and its value, or None if it is neither JSON nor YAML."""
    if name in JSON_READERS:
        make_value, _ = JSON_READERS[name]
        value = make_value()
        return json.dumps(value).encode(), value
    if name.endswith(".npz"):
        file = io.BytesIO()
        np.savez(file, sentences=np.array(["a", "b"]), vectors=np.ones((2, 3), np.float32))
        return file.getvalue(), None
    content = (ROOT / name).read_bytes()
    if name.endswith(".yaml"):
        return content, yaml.safe_load(content)
    return content, None


@st.composite
def damage(draw, content):
    """Draw the bytes of a file after some were inserted, or replaced some others, or replaced the
    rest."""
    start = draw(st.integers(0, len(content)))
    new = draw(st.binary(max_size=20))
    end = draw(st.sampled_from([start, start + len(new), len(content)]))
    return content[:start] + new + content[end:]


WRONG = [
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "x" * 999,
    "\ud800",
    "9" * 400,
    [],
    {},
    [[]],
]


@st.composite
def with_a_wrong_value(draw, content):
    """Draw a copy of some content with one wrong value: in the place of the whole, or of a part."""
    if not isinstance(content, dict | list) or not content:
        return draw(st.sampled_from(WRONG))
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(WRONG))
    copy = content.copy()
    places = list(content) if isinstance(content, dict) else range(len(content))
    place = draw(st.sampled_from(places))
    copy[place] = draw(with_a_wrong_value(content[place]))
    return copy


@pytest.mark.parametrize("name", [*JSON_READERS, *OTHER_READERS])
@BOUNDED
@given(data=st.data())
def test_whatever_a_file_holds_it_is_read_or_refused(name, data, tmp_path):
    """Its bytes are damaged. Or a value is of another type, out of range or unprintable, and the
    digest fits."""
    content, value = content_of(name)
    reads_or_refuses(name, data.draw(damage(content)), tmp_path)
    if value is None:
        return

    wrong = data.draw(with_a_wrong_value(value))
    had_digest = "sha256" in value
    if had_digest and isinstance(wrong, dict) and "\\ud800" not in json.dumps(wrong):
        wrong = with_digest(wrong)
    text = json.dumps(wrong, default=str)
    if name not in JSON_READERS:  # JSON is YAML, apart from these
        text = text.replace("NaN", ".nan").replace("Infinity", ".inf")
    reads_or_refuses(name, text.encode(), tmp_path)


NO_JSON = [
    "NaN",
    "[-Infinity]",
    '"\\ud800"',
    '{"\\udfff": 1}',
    b'"caf\xe9"',
    '"\udcff"',
    "[" * 10**5,
    "9" * 5000,
    "",
]


@pytest.mark.parametrize("text", NO_JSON, ids=len)
def test_json_that_other_readers_take_is_refused(text):
    with pytest.raises(BadInput, match=r"file: .*not valid JSON"):
        parse_json(text, "file")


def deep_aliases():
    """Return YAML of nine lists, each of which has the one before nine times: a billion values."""
    lines = ["l0: &l0 [x]"]
    for number in range(1, 10):
        aliases = ", ".join([f"*l{number - 1}"] * 9)
        lines.append(f"l{number}: &l{number} [{aliases}]")
    return "\n".join(lines) + "\n"


MANY_KEYS = "".join(f"k{number}: 1\n" for number in range(30))
REFUSED_YAML = {
    "aliases": (deep_aliases(), "line 10: l9: unknown key"),
    "twice": ("name: x\nname: y\n", r"line 2: .*'name' occurs twice"),
    "date": ("name: 2020-13-45\n", "not valid YAML"),
    "itself": ("name: &a [*a]\n", "name"),
    "deep": ("[" * 5000, "not valid YAML"),
    "digits": ("name: " + "9" * 5000, "not valid YAML"),
    "NUL": ('name: "a\\0b"\n', r"line 1: the character '\\x00' cannot be printed"),
    "list": ("? [1]\n: 2\n", "not valid YAML"),
    "tag": ("name: !!bool x\n", "not valid YAML"),
    "command": ("name: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    "many": (MANY_KEYS, r"line 18: k17: unknown key\.\n.*: and 12 more\.$"),
    "empty": ("", "top level"),
}


@pytest.mark.parametrize(("text", "part"), REFUSED_YAML.values(), ids=REFUSED_YAML)
def test_yaml_that_cannot_be_meant_is_refused(text, part, tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=part) as caught:
        read_yaml(path, Download)
    assert str(path) in str(caught.value)
