"""What people see of Snakemake: the message of a job, the answer to a target that no rule makes, and failures."""

import re

import pytest

from csebench import workflow
from csebench.base.project import ROOT
from csebench.plan import targets

FILES = "".join(path.read_text() for path in sorted((ROOT / "rules").glob("*.smk")))
RULES = dict(re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", FILES, re.M))


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """Ending the workflow raises SystemExit."""
    monkeypatch.setattr(workflow.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))


def refused(capsys, function, *arguments):
    with pytest.raises(SystemExit) as end:
        function(*arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("rule", RULES)
def test_every_job_names_what_it_does_and_quotes_what_its_shell_reads(rule):
    head, _, shell = RULES[rule].partition("\n    shell:\n")
    assert "\n    message:\n" in head
    assert all(name.endswith(":q}") for name in re.findall(r"\{.*?\}", shell))


TARGETS = {
    "results/tabel2.md": "Did you mean 'table2'",
    "tabel2": "Did you mean 'table2'",
    "micse/table2": "Snakemake takes the path of a page: snakemake -j4 results/micse/table2.md",
}
REFUSED = [(workflow.start, (scale,), "unknown scale") for scale in (3, "smokee")]
REFUSED += [(workflow.scale_of_folder, ("smokee/",), "unknown scale")]
REFUSED += [(workflow.inputs_of, ("results/micse/table2.md", "mini"), "not a page of scale mini")]
REFUSED += [(workflow.check_targets, (["-j4", name], ["all"], "smoke"), message) for name, message in TARGETS.items()]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_a_scale_or_a_page_that_is_none_ends_the_workflow(function, arguments, message, tmp_path, monkeypatch, capsys):
    """Before Snakemake looks for a rule."""
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, function, *arguments)


def test_a_target_of_a_rule_is_let_through():
    made = ("table2.md", "mini/micse/figure3.svg", "partial/index.md", "evidence.md", "html", "scores.csv")
    for target in ("all", "runs/simcse-0123456789/train.json", *(f"results/{name}" for name in made)):
        workflow.check_targets(["-j", "4", target, "--config", "scale=smoke"], ["all"], "smoke")


def test_braces_in_the_path_of_a_checkout_end_the_workflow(monkeypatch, capsys):
    """Not in a traceback of Snakemake, which takes them for wildcards."""
    monkeypatch.setattr(workflow, "ROOT", "csebench/}")
    assert "}: Snakemake takes braces" in refused(capsys, workflow.start, "smoke")


def test_jobs_of_a_cluster_get_more_time_with_each_attempt():
    run_id = next(iter(targets.page("table2", "paper", "micse").runs()))
    assert workflow.training_minutes(run_id, "paper", 1) < workflow.training_minutes(run_id, "paper", 2)


def test_a_page_without_its_data_names_the_partial_one(monkeypatch, capsys):
    @workflow.refusing
    def needs_data():
        raise workflow.MissingFile("wiki.txt: no such file.")

    monkeypatch.setattr("sys.argv", ["snakemake", "-j4", "results/micse/table2.md"])
    printed = refused(capsys, needs_data)
    assert "wiki.txt: no such file. " in printed and "snakemake -j1 results/partial/micse/table2.md" in printed


def test_a_failure_is_a_line_with_its_reason_and_log(tmp_path, capsys):
    log, none = tmp_path / "train.log", tmp_path / "killed.log"
    log.write_text("step 1\nTraceback (most recent call last):\nValueError: no\nsimcse failed after step 1 of 3.\n")
    workflow.report_failures(map(str, [log, none, log]))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"csebench: failed: ValueError: no ({log})" and str(none) in lines[1] and len(lines) == 2
