"""What people see of Snakemake: the message of a job, the answer to a page that does not exist,
and failures."""

import re

import pytest

from csebench.base.project import ROOT
from csebench.plan import targets
from csebench.study import workflow


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """Ending the workflow raises SystemExit."""
    monkeypatch.setattr(workflow.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))


def refused(capsys, function, *arguments):
    with pytest.raises(SystemExit) as end:
        function(*arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


REFUSED = [(workflow.start, (scale,), "unknown scale") for scale in (3, None, "smokee")]
REFUSED += [(workflow.inputs_of, ("results/micse/table2.md", "mini"), "not a page of scale mini")]
REFUSED += [(workflow.inputs_of, ("results/partial/tabel2.md",), "Did you mean 'table2'")]
REFUSED += [(workflow.refusing(workflow.evaluator_data), ("sts", "smokee"), "unknown scale")]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_a_scale_or_a_page_that_is_none_ends_the_workflow(
    function, arguments, message, tmp_path, monkeypatch, capsys
):
    """Before Snakemake looks for a rule."""
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, function, *arguments)


def test_the_rule_page_takes_mistyped_pages_too_and_none_of_other_rules():
    pages = {"table2", "tabel2", "index", "micse/table2", "mini/variants/micse"}
    assert {
        name for name in (*pages, "evidence", "partial/table2") if re.fullmatch(workflow.PAGE, name)
    } == pages


def test_a_failure_is_a_line_with_its_reason_and_log(tmp_path, capsys):
    log, none = tmp_path / "train.log", tmp_path / "killed.log"
    log.write_text(
        "step 1\nTraceback (most recent call last):\nValueError: no\nsimcse failed after step 1 of"
        " 3.\n"
    )
    workflow.report_failures(map(str, [log, none, log]))
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0] == f"csebench: failed: ValueError: no ({log})"
        and str(none) in lines[1]
        and len(lines) == 2
    )


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch):
    """Of csebench's own; a page whose record would be renewed is planned because of a new file
    elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CSEBENCH_DATA", str(ROOT / "data" / "smoke"))
    for page in (
        "results/table2.md",
        "results/evidence.md",
        "results/partial/table2.md",
        "results/scores.csv",
    ):
        *_, record = workflow.inputs_of(page, None, is_dry_run=True)
        assert record.exists() and not record.is_relative_to(tmp_path)
    targets.runs("paper")
    assert not list(tmp_path.iterdir())
    *_, record = workflow.inputs_of("results/partial/table2.md")
    assert record.resolve().is_relative_to(tmp_path)
    # up to date
    assert workflow.inputs_of("results/partial/table2.md", None, is_dry_run=True)[-1] == record
