"""The version lock: a change of code that can change a number must be declared, and no other
change must."""

import re

import pytest

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.files import write_json
from csebench.base.project import ROOT
from csebench.plan import code_versions
from csebench.plan.schema.spec import Spec
from csebench.report import provenance
from csebench.study import workflow


@pytest.fixture(scope="module")
def now():
    return code_versions.current()


def test_lock_is_up_to_date(now):
    """A new file may wait for its first note; what is noted must be as it is."""
    changed = [unit for unit, noted in code_versions.read_lock().items() if noted != now.get(unit)]
    assert not changed, (
        "bump their versions, or run: python -m csebench.plan.code_versions --bless UNIT …"
    )
    assert "trainer" in code_versions.read_lock()


EDITS = {  # file, what is there (a pattern), what it becomes, the units that must be asked
    "a sum over processes for a mean": (
        "csebench/train/parallel.py",
        r"total / \w+\(\)",
        "total",
        ["trainer"],
    ),
    "a token less": (
        "csebench/model/encoder.py",
        r"(truncation=True, max_length=[\w.]+)",
        r"\1 - 1",
        ["trainer"],
    ),
    "lines that end elsewhere": (
        "csebench/data/corpus.py",
        r'split\("..?"\)',
        'split(" ")',
        ["trainer"],
    ),
    "a default value": (
        "methods/simcse.py",
        r'"temperature": \(0.05,',
        '"temperature": (0.06,',
        ["methods/simcse"],
    ),
    "what an evaluator imports": (
        "evaluators/_probe.py",
        "SEED = 1111",
        "SEED = 1112",
        ["evaluators/transfer"],
    ),
    "other signs": ("csebench/score/replicates.py", r"PCG64\(0\)", "PCG64(1)", ["replicates"]),
    "other ids of sentences": (
        "csebench/score/score_types.py",
        r"text\.lower\(\)",
        "text",
        ["replicates"],
    ),
    "another search": (
        "csebench/data/translate.py",
        r"num_beams=\S+?([,)])",
        r"num_beams=1\1",
        ["translate"],
    ),
    "what others extend": (
        "methods/msse.py",
        r"def loss\(",
        "def other(",
        ["methods/msse", "methods/msse_sup"],
    ),
    "a value that tuning tries": ("methods/simcse.py", r"\(0\.02, 0\.05", "(0.01, 0.05", []),
    "where a value comes from": (
        "methods/simcse.py",
        "README table, BERT",
        "the README's table, BERT",
        [],
    ),
    "an evaluator's figure": ("evaluators/sts.py", "gold score of the pair", "gold score", []),
    "the difference of a variant": (
        "methods/pcl.py",
        "as the README says",
        "according to the README",
        [],
    ),
    "an error message": (
        "csebench/data/corpus.py",
        r'raise BadInput\(\s*f"',
        'raise BadInput(f"Sorry: ',
        [],
    ),
    "a docstring": ("csebench/train/losses.py", '"""', '"""Losses. ', []),
    "the type of an argument": (
        "csebench/data/corpus.py",
        r"def read_lines\(path: Path\)",
        "def read_lines(path)",
        [],
    ),
    "how a model is downloaded": ("csebench/base/hub.py", r"return ", "return None or ", []),
    "a room that computes no score": ("csebench/report/words/comparisons.py", "beats", "wins", []),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_can_change_a_number_needs_a_version(now, tmp_path, edit):
    file, old, new, units = EDITS[edit]
    text, copy = (ROOT / file).read_text(), tmp_path / file
    edited, count = re.subn(old, new, text, count=1)
    assert count == 1, f"{file}: nothing there is {old}"
    copy.parent.mkdir(parents=True)
    copy.write_text(edited)
    made_of = {
        unit: paths for unit, (_, paths) in code_versions.units().items() if ROOT / file in paths
    }
    # no file of one's own
    made_of = {unit: paths for unit, paths in made_of.items() if unit in code_versions.read_lock()}
    after = {
        unit: [copy if path == ROOT / file else path for path in paths]
        for unit, paths in made_of.items()
    }
    assert [
        unit for unit in made_of if code_versions.code_hash(*after[unit]) != now[unit]["code"]
    ] == units


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """A unit of one file, with a lock that has it noted."""
    file = tmp_path / "unit.py"
    file.write_text("x = 1\n")
    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    monkeypatch.setattr(
        code_versions, "units", lambda *_: {"unit": (file.read_text().count("version"), [file])}
    )
    code_versions.main([])
    caches.clear()
    yield file
    caches.clear()  # of what was planned with this lock


def test_changed_code_is_refused_until_a_blessing_or_a_new_version_settles_it(unit):
    before = code_versions.LOCK.read_text()
    unit.write_text("x = 2\n")
    for arguments, message in (([], r"^unit: "), (["--bless", "units"], "Did you mean 'unit'")):
        with pytest.raises(BadInput, match=message):
            code_versions.main(arguments)
        assert code_versions.LOCK.read_text() == before
    for text, arguments in (("x = 2\n", ["--bless", "unit"]), ("x = 3  # version\n", [])):
        unit.write_text(text)
        code_versions.main(arguments)
        assert not code_versions.changed_without_bump()


def test_a_unit_that_the_lock_lacks_needs_no_blessing(unit):
    """As a new file of the project; until it is noted, its code identifies its results."""
    write_json(code_versions.LOCK, {})
    unit.write_text("x = 2\n")
    assert not code_versions.changed_without_bump()
    code_versions.main([])
    assert [*code_versions.read_lock()] == ["unit"]


def test_results_of_changed_code_are_marked_and_pages_name_it(unit, capsys):
    unit.write_text("x = 2\n")
    code_versions.unversioned_code.cache_clear()
    marks = [code_versions.mark(units) for units in (["unit", "other"], ["other"], [])]
    assert marks == [{"unversioned_code": ["unit"]}, {}, {}]
    workflow.report_defects("smoke")
    code_versions.unversioned_code.cache_clear()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("csebench: unit: ") and line.endswith(
        "python -m csebench.plan.code_versions --bless unit"
    )
    (line,) = provenance.unversioned_lines(
        [{"provenance": m, "training": {"provenance": {}}} for m in marks]
    )
    assert "unit" in line and "1 of 3 scores" in line


def test_a_result_is_of_all_units_that_make_it():
    content = {
        "encoder": {"name": "e", "revision": "main"},
        "seed": 1,
        "precision": "fp32",
        "threads": 1,
    }
    content |= {
        "params": {"augmentation": "back_translation"},
        "components": {"ami": {"version": 1, "params": {}}},
    }
    spec = Spec.model_validate({"method": "msse", "method_version": 1, **content})
    made = ["trainer", "methods/msse", "methods/components/ami", "translate"]
    assert [*code_versions.units_of_run(spec)] == made
    assert {*code_versions.units_of_score("sts")} == {"trainer", "replicates", "evaluators/sts"}
    assert {*made, *code_versions.units_of_score("sts")} <= {*code_versions.units()}
