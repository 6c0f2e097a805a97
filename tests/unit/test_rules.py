"""What people see of Snakemake: the message of a job, the answer to a target that no rule makes, and failures."""

import re

import pytest

from csebench import workflow
from csebench.base.project import ROOT
from csebench.plan import catalog, targets, versions

RULES = [
    pytest.param(text, id=name)
    for path in sorted((ROOT / "rules").glob("*.smk"))
    for name, text in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", path.read_text(), re.M)
]


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """Ending the workflow raises SystemExit."""
    monkeypatch.setattr(workflow.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))


def refused(capsys, *words):
    with pytest.raises(SystemExit) as end:
        workflow.check_targets([*words], ["all"], "smoke")
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("text", RULES)
def test_every_job_names_what_it_does(text):
    assert "\n    message:\n" in text


def test_a_run_is_named_by_its_method_data_and_table():
    run_id, spec = next(iter(targets.page("table2", "smoke", "micse").runs().items()))
    title = f"{workflow.RunTitle('smoke'):{run_id}}"
    assert re.fullmatch(rf".+, {spec.corpus.size} sentences, seed {spec.seed} \(\w+/table\d+\)", title)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/tabel2.md", "Did you mean 'table2'"),
        ("results/partial/mini/micse/tabel2.md", "Did you mean 'micse/table2'"),
        ("results/partial/mnii/micse/table2.md", "Did you mean 'mini/micse/table2'"),
        ("results/micse/table99.md", "unknown table of micse '99'"),
        ("tabel2", "Did you mean 'table2'"),
        ("micse/table2", "Snakemake takes the path of a page: snakemake -j4 results/micse/table2.md"),
    ],
)
def test_a_mistyped_target_is_answered_before_snakemake_looks_for_a_rule(target, message, capsys):
    assert message in refused(capsys, "-j4", target, "--config", "scale=smoke")


@pytest.mark.parametrize("name", ["{run}", "a{b", "}"])
def test_braces_in_the_path_of_a_checkout_end_the_workflow(name, monkeypatch, capsys):
    """Not in a traceback of Snakemake, which takes them for wildcards."""
    monkeypatch.setattr(catalog, "ROOT", catalog.ROOT / name)
    monkeypatch.setattr(catalog, "require_checkout", lambda: None)
    with pytest.raises(SystemExit) as end:
        workflow.start("smoke")
    assert end.value.code == 2 and f"{name}: Snakemake takes braces" in capsys.readouterr().err


@pytest.mark.parametrize("scale", [3, None, ["smoke"], "smokee"])
def test_a_scale_that_is_none_ends_the_workflow(scale, capsys):
    with pytest.raises(SystemExit) as end:
        workflow.start(scale)
    assert end.value.code == 2 and "unknown scale" in capsys.readouterr().err


def test_a_page_of_no_scale_ends_the_workflow(capsys):
    """Such as results/smokee/tuning.md, which needs no score."""
    with pytest.raises(SystemExit) as end:
        workflow.scale_of_folder("smokee/")
    assert end.value.code == 2 and "Did you mean 'smoke'" in capsys.readouterr().err


def test_a_damaged_version_lock_ends_the_workflow(tmp_path, monkeypatch, capsys):
    """Such as one with the marks of a merge."""
    (tmp_path / "lock.json").write_text("<<<<<<< HEAD\n{}")
    monkeypatch.setattr(versions, "LOCK", tmp_path / "lock.json")
    versions.unversioned_code.cache_clear()
    with pytest.raises(SystemExit) as end:
        workflow.report_unversioned_code()
    assert end.value.code == 2 and "lock.json: not valid JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    "target",
    [
        "all",
        "results/table2.md",
        "results/mini/micse/figure3.svg",
        "results/partial/index.md",
        "results/evidence.md",
        "results/html",
        "results/scores.csv",
        "runs/simcse-0123456789/train.json",
    ],
)
def test_a_target_of_a_rule_is_let_through(target):
    workflow.check_targets(["-j4", target], ["all"], "smoke")


def test_a_page_without_its_data_names_the_partial_one(monkeypatch, capsys):
    @workflow.refusing
    def needs_data():
        raise workflow.MissingFile("wiki.txt: no such file.")

    monkeypatch.setattr("sys.argv", ["snakemake", "-j4", "results/micse/table2.md"])
    with pytest.raises(SystemExit):
        needs_data()
    assert "wiki.txt: no such file. " in (err := capsys.readouterr().err)
    assert "snakemake -j1 results/partial/micse/table2.md" in err


def test_a_failure_is_a_line_with_its_reason_and_log(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text("step 1\nTraceback (most recent call last):\nValueError: no\nsimcse failed after step 1 of 3.\n")
    none = tmp_path / "killed.log"
    workflow.report_failures(map(str, [log, none, log]))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"csebench: failed: ValueError: no ({log})" and str(none) in lines[1] and len(lines) == 2
