"""What people see of Snakemake: the message of a job, the answer to a target that no rule makes, and failures."""

import re

import pytest

from csebench import workflow
from csebench.base.project import ROOT
from csebench.plan import targets, versions

RULES = {
    name: text
    for path in sorted((ROOT / "rules").glob("*.smk"))
    for name, text in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", path.read_text(), re.M)
}


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """Ending the workflow raises SystemExit."""
    monkeypatch.setattr(workflow.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))


def refused(capsys, function, *arguments):
    """What a function prints that ends the workflow."""
    with pytest.raises(SystemExit) as end:
        function(*arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("rule", RULES)
def test_every_job_names_what_it_does_and_quotes_what_its_shell_reads(rule):
    head, _, shell = RULES[rule].partition("\n    shell:\n")
    assert "\n    message:\n" in head
    assert all(name.endswith(":q}") for name in re.findall(r"\{.*?\}", shell))


def test_a_run_is_named_by_its_method_data_and_first_table():
    run_id, spec = next(iter(targets.page("table2", "smoke", "micse").runs().items()))
    of_papers = (page for page in targets.pages("smoke") if len(page.papers) == 1 and page.name not in page.papers)
    first = next(page for page in of_papers if run_id in page.runs())
    data, place = f"{spec.corpus.size} sentences, seed {spec.seed}", f"{first.papers[0]}/{first.name}"
    assert f"{workflow.RunTitle('smoke'):{run_id}}".endswith(f", {data} ({place})")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/tabel2.md", "Did you mean 'table2'"),
        ("results/partial/mnii/micse/table2.md", "Did you mean 'mini/micse/table2'"),
        ("results/micse/table99.md", "unknown table of micse '99'"),
        ("tabel2", "Did you mean 'table2'"),
        ("micse/table2", "Snakemake takes the path of a page: snakemake -j4 results/micse/table2.md"),
    ],
)
def test_a_mistyped_target_is_answered_before_snakemake_looks_for_a_rule(target, message, capsys):
    words = ["-j", "4", target, "--config", "scale=smoke"]
    assert message in refused(capsys, workflow.check_targets, words, ["all"], "smoke")


MADE = ["table2.md", "mini/micse/figure3.svg", "partial/index.md", "evidence.md", "html", "scores.csv"]


def test_a_target_of_a_rule_is_let_through():
    for target in ("all", "runs/simcse-0123456789/train.json", *(f"results/{name}" for name in MADE)):
        workflow.check_targets(["-j4", target], ["all"], "smoke")


def test_braces_in_the_path_of_a_checkout_end_the_workflow(monkeypatch, capsys):
    """Not in a traceback of Snakemake, which takes them for wildcards."""
    monkeypatch.setattr(workflow, "ROOT", "csebench/}")
    assert "}: Snakemake takes braces" in refused(capsys, workflow.start, "smoke")


@pytest.mark.parametrize("scale", [3, "smokee"])
def test_a_scale_that_is_none_ends_the_workflow(scale, capsys):
    assert "unknown scale" in refused(capsys, workflow.start, scale)
    assert "unknown scale" in refused(capsys, workflow.scale_of_folder, f"{scale}/")


def test_a_page_of_another_scale_than_the_configured_ends_the_workflow(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "not a page of scale mini" in refused(capsys, workflow.inputs_of, "results/micse/table2.md", "mini")


def test_jobs_of_a_cluster_get_more_time_with_each_attempt():
    run_id = next(iter(targets.page("table2", "paper", "micse").runs()))
    first, second = (workflow.training_minutes(run_id, "paper", attempt) for attempt in (1, 2))
    assert first < second


def test_a_damaged_version_lock_ends_the_workflow(tmp_path, monkeypatch, capsys):
    """Such as one with the marks of a merge."""
    (tmp_path / "lock.json").write_text("<<<<<<< HEAD\n{}")
    monkeypatch.setattr(versions, "LOCK", tmp_path / "lock.json")
    versions.unversioned_code.cache_clear()
    assert "lock.json: not valid JSON" in refused(capsys, workflow.report_unversioned_code)


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
