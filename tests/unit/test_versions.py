"""The version lock: a change of code must be declared if it can change a number, and only then."""

import re
from typing import NamedTuple

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
    """A new file may wait for its first note. All code that is noted must be as it was noted."""
    changed = [unit for unit, noted in code_versions.read_lock().items() if noted != now.get(unit)]
    assert not changed, (
        "bump their versions, or run: python -m csebench.plan.code_versions --bless UNIT …"
    )
    assert "trainer" in code_versions.read_lock()


class Edit(NamedTuple):
    """An edit of a file."""

    file: str
    old: str  # pattern of what is there
    new: str


CHANGES = {  # an edit that can change a number, and the units that must be asked
    "a sum over processes for a mean": (
        Edit("csebench/train/parallel.py", r"total / \w+\(\)", "total"),
        ["trainer"],
    ),
    "a token less": (
        Edit("csebench/model/encoder.py", r"(truncation=True, max_length=[\w.]+)", r"\1 - 1"),
        ["trainer"],
    ),
    "lines that end elsewhere": (
        Edit("csebench/data/corpus.py", r'split\("..?"\)', 'split(" ")'),
        ["trainer"],
    ),
    "a default value": (
        Edit("methods/simcse.py", r'"temperature": \(0.05,', '"temperature": (0.06,'),
        ["methods/simcse"],
    ),
    "what an evaluator imports": (
        Edit("evaluators/_probe.py", "SEED = 1111", "SEED = 1112"),
        ["evaluators/transfer"],
    ),
    "other signs": (
        Edit("csebench/score/replicates.py", r"PCG64\(0\)", "PCG64(1)"),
        ["replicates"],
    ),
    "other ids of sentences": (
        Edit("csebench/score/score_types.py", r"text\.lower\(\)", "text"),
        ["replicates"],
    ),
    "another search": (
        Edit("csebench/data/translate.py", r"num_beams=\S+?([,)])", r"num_beams=1\1"),
        ["translate"],
    ),
    "what others extend": (
        Edit("methods/msse.py", r"def loss\(", "def other("),
        ["methods/msse", "methods/msse_sup"],
    ),
}
NO_CHANGES = {  # an edit that can change no number
    "a value that tuning tries": Edit("methods/simcse.py", r"\(0\.02, 0\.05", "(0.01, 0.05"),
    "where a value comes from": Edit(
        "methods/simcse.py", "README table, BERT", "the README's table, BERT"
    ),
    "an evaluator's figure": Edit("evaluators/sts.py", "dot: median", "dot: middle"),
    "the difference of a variant": Edit(
        "methods/pcl.py", "as the README says", "according to the README"
    ),
    "an error message": Edit(
        "csebench/data/corpus.py", r'raise BadInput\(\s*f"', 'raise BadInput(f"Sorry: '
    ),
    "a docstring": Edit("csebench/train/losses.py", '"""', '"""Losses. '),
    "the type of an argument": Edit(
        "csebench/data/corpus.py", r"def read_lines\(path: Path\)", "def read_lines(path)"
    ),
    "how a model is downloaded": Edit("csebench/base/hub.py", r"return ", "return None or "),
    "a room that computes no score": Edit(
        "csebench/report/words/comparisons.py", "Cannot tell", "No way to tell"
    ),
}


def changed_units(edit, now, folder):
    """List the units whose code is another one after an edit.

    Args:
        folder: for the edited copy of the file.
    """
    source = ROOT / edit.file
    edited, count = re.subn(edit.old, edit.new, source.read_text(), count=1)
    assert count == 1, f"{edit.file}: nothing there is {edit.old}"
    copy = folder / edit.file
    copy.parent.mkdir(parents=True)
    copy.write_text(edited)

    lock = code_versions.read_lock()
    changed = []
    for unit, unit_now in code_versions.units().items():
        if source not in unit_now.files or unit not in lock:  # the lock lacks files of one's own
            continue
        paths_after = list(unit_now.files)
        paths_after[paths_after.index(source)] = copy
        if code_versions.code_hash(*paths_after) != now[unit]["code"]:
            changed.append(unit)
    return changed


@pytest.mark.parametrize(("edit", "units"), CHANGES.values(), ids=CHANGES)
def test_an_edit_that_can_change_a_number_needs_a_version(now, tmp_path, edit, units):
    assert changed_units(edit, now, tmp_path) == units


@pytest.mark.parametrize("edit", NO_CHANGES.values(), ids=NO_CHANGES)
def test_an_edit_that_can_change_no_number_needs_no_version(now, tmp_path, edit):
    assert changed_units(edit, now, tmp_path) == []


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """Make a unit of one file, with a lock that has it noted. Its version is the number of times
    that the file says `version`."""
    file = tmp_path / "unit.py"
    file.write_text("x = 1\n")

    def unit_now(*_):
        return code_versions.Unit(file.read_text().count("version"), [file])

    monkeypatch.setattr(code_versions, "LOCK", tmp_path / "lock.json")
    monkeypatch.setattr(code_versions, "read_unit", unit_now)
    monkeypatch.setattr(code_versions, "units", lambda: {"unit": unit_now()})
    code_versions.main([])
    caches.clear()
    code_versions.imported_unversioned.cache_clear()
    yield file
    caches.clear()  # of what was planned with this lock
    code_versions.imported_unversioned.cache_clear()


def test_changed_code_is_refused_until_a_blessing_or_a_new_version_settles_it(unit):
    before = code_versions.LOCK.read_text()
    unit.write_text("x = 2\n")
    with pytest.raises(BadInput, match=r"^unit: "):
        code_versions.main([])
    assert code_versions.LOCK.read_text() == before
    with pytest.raises(BadInput, match="Did you mean 'unit'"):
        code_versions.main(["--bless", "units"])
    assert code_versions.LOCK.read_text() == before

    code_versions.main(["--bless", "unit"])
    assert not code_versions.changed_without_bump()

    unit.write_text("x = 3  # version\n")
    code_versions.main([])
    assert not code_versions.changed_without_bump()


def test_an_edit_between_planning_and_work_is_marked(unit):
    """A job may begin hours after it was planned, and then imports the edited file."""
    assert not code_versions.changed_without_bump()  # planning reads the code
    unit.write_text("x = 2\n")
    assert code_versions.mark(["unit"]) == {"unversioned_code": ["unit"]}


def test_a_unit_that_the_lock_lacks_needs_no_blessing(unit):
    """A new file of the project is such a unit. Until it is noted, its code identifies its
    results."""
    write_json(code_versions.LOCK, {})
    unit.write_text("x = 2\n")
    assert not code_versions.changed_without_bump()
    code_versions.main([])
    assert list(code_versions.read_lock()) == ["unit"]


def test_results_of_changed_code_are_marked_and_pages_name_it(unit, capsys):
    unit.write_text("x = 2\n")
    marked = code_versions.mark(["unit", "other"])
    assert marked == {"unversioned_code": ["unit"]}
    assert code_versions.mark(["other"]) == {}
    assert code_versions.mark([]) == {}

    workflow.report_defects("smoke")
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("csebench: unit: ")
    assert warning.endswith("python -m csebench.plan.code_versions --bless unit")

    scores = [{"provenance": mark, "training": {"provenance": {}}} for mark in (marked, {}, {})]
    (line,) = provenance.unversioned_lines(scores)
    assert "unit" in line
    assert "1 of 3 scores" in line


def test_a_result_is_of_all_units_that_make_it():
    spec = Spec.model_validate(
        {
            "method": "msse",
            "method_version": 1,
            "encoder": {"name": "e", "revision": "main"},
            "seed": 1,
            "precision": "fp32",
            "threads": 1,
            "params": {"augmentation": "back_translation"},
            "components": {"ami": {"version": 1, "params": {}}},
        }
    )
    units_of_run = list(code_versions.units_of_run(spec))
    assert units_of_run == ["trainer", "methods/msse", "methods/components/ami", "translate"]
    units_of_score = set(code_versions.units_of_score("sts"))
    assert units_of_score == {"trainer", "replicates", "evaluators/sts"}
    assert units_of_score.union(units_of_run) <= set(code_versions.units())
