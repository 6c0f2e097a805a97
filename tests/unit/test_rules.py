"""People see messages of Snakemake's jobs, answers to pages that do not exist, and failures."""

import re
import sys

import pytest

from csebench.base.project import ROOT
from csebench.plan import targets
from csebench.study import workflow


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """Let the end of the workflow raise SystemExit."""
    monkeypatch.setattr(workflow.os, "_exit", sys.exit)


def refused(capsys, function, *arguments):
    """Return the message with which a call ends the workflow."""
    with pytest.raises(SystemExit) as end:
        function(*arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


REFUSED = [
    (workflow.start, (3,), "unknown scale"),
    (workflow.start, (None,), "unknown scale"),
    (workflow.start, ("smokee",), "unknown scale"),
    (workflow.inputs_of, ("results/micse/table2.md", "mini"), "not a page of scale mini"),
    (workflow.inputs_of, ("results/partial/tabel2.md",), "Did you mean 'table2'"),
    (workflow.refusing(workflow.evaluator_data), ("sts", "smokee"), "unknown scale"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_a_scale_or_a_page_that_is_none_ends_the_workflow(
    function, arguments, message, tmp_path, monkeypatch, capsys
):
    """This happens before Snakemake looks for a rule."""
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, function, *arguments)


@pytest.mark.parametrize(
    "name", ["table2", "tabel2", "index", "micse/table2", "mini/variants/micse"]
)
def test_the_rule_page_takes_mistyped_pages_too(name):
    assert re.fullmatch(workflow.PAGE, name)


@pytest.mark.parametrize("name", ["evidence", "partial/table2"])
def test_the_rule_page_takes_none_of_other_rules(name):
    assert not re.fullmatch(workflow.PAGE, name)


def test_a_finished_smoke_page_says_what_it_shows_and_what_to_run_next(capsys):
    workflow.report_success(["results/table2.md"], "smoke")
    message = capsys.readouterr().err
    assert "say nothing about a method" in message
    assert "csebench claims micse" in message


@pytest.mark.parametrize("target", ["results/evidence.md", "results/mini/micse/table2.md"])
def test_a_page_without_runs_of_scale_smoke_says_nothing_of_them(target, capsys):
    workflow.report_success([target], "smoke")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wanted", [[], ["all"]])
@pytest.mark.parametrize(("scale", "is_said"), [("smoke", True), ("mini", False)])
def test_all_pages_are_those_of_the_scale_of_the_workflow(wanted, scale, is_said, capsys):
    workflow.report_success(wanted, scale)
    assert ("say nothing about a method" in capsys.readouterr().err) == is_said


def test_a_failure_is_a_line_with_its_reason_and_log(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text(
        "step 1\n"
        "Traceback (most recent call last):\n"
        "ValueError: no\n"
        "simcse failed after step 1 of 3.\n"
    )
    missing_log = tmp_path / "killed.log"

    workflow.report_failures([str(log), str(missing_log), str(log)])

    failed, killed = capsys.readouterr().err.splitlines()
    assert failed == f"csebench: failed: ValueError: no ({log})"
    assert str(missing_log) in killed


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch):
    """csebench writes nothing of its own. A page whose record would be renewed is planned because
    of a new file elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CSEBENCH_DATA", str(ROOT / "data" / "smoke"))
    for page in (
        "results/table2.md",
        "results/evidence.md",
        "results/partial/table2.md",
        "results/scores.csv",
    ):
        *_, record = workflow.inputs_of(page, None, is_dry_run=True)
        assert record.exists()
        assert not record.is_relative_to(tmp_path)
    targets.runs("paper")
    assert not list(tmp_path.iterdir())

    *_, record = workflow.inputs_of("results/partial/table2.md")
    assert record.resolve().is_relative_to(tmp_path)
    *_, up_to_date = workflow.inputs_of("results/partial/table2.md", None, is_dry_run=True)
    assert up_to_date == record
