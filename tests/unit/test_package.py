"""The package: what it says of itself, and what it does where it is installed without its checkout."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml

import csebench
from csebench import cli
from csebench.base.project import REPOSITORY, ROOT
from csebench.cli import verbs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("checkout, suffix", [(True, " (commit 0123456789, with changes)"), (False, "")])
def test_version_names_the_commit_of_a_checkout(checkout, suffix, capsys, monkeypatch):
    monkeypatch.setattr(verbs, "code_state", lambda: {"commit": "0123456789abcdef", "dirty_diff_sha256": "ab"})
    monkeypatch.setattr(verbs, "IS_INSTALLED", not checkout)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"csebench {csebench.__version__}{suffix}\n"


def test_citation_and_changelog_fit_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (csebench.__version__, PROJECT["license"])
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == REPOSITORY
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[:2] == ["Unreleased", csebench.__version__]


def test_a_wheel_has_all_tables_of_data():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {f"data/{path.name}" for path in (ROOT / "data").glob("*.yaml")} <= {*included["force-include"]}


def test_before_a_commit_runs_checks_of_ci():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    checks = (ROOT / ".ci" / "run").read_text()
    assert all(f"\n{hook['entry']} " in checks for hook in local["hooks"])


@pytest.mark.slow
def test_a_wheel_is_enough_for_a_folder_of_ones_own(tmp_path):
    """Without a clone: a table from the published scores, a method that is tried, its page, and a scored model."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site := tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    before, work = {*site.rglob("*")}, tmp_path / "work"

    def run(*command, folder=work):
        return subprocess.run(
            [sys.executable, "-B", "-m", *command], cwd=folder, env=env, capture_output=True, text=True
        )

    assert run("csebench", "init", "work", folder=tmp_path).returncode == 0
    done = run("csebench", "render", "micse/table2", "--scale", "mini")
    committed = (ROOT / "results" / "mini" / "micse" / "table2.md").read_text()
    elsewhere = committed.replace("../../../docs/", f"{REPOSITORY}/blob/main/docs/")
    elsewhere = elsewhere.replace("`snakemake -j4", "`snakemake -s $(csebench snakefile) -j4")
    assert done.stdout.rstrip() == elsewhere.rstrip(), done.stderr
    assert run("csebench", "new", "method", "mine").returncode == 0
    done = run("csebench", "try", "methods/mine.py", "--scale", "smoke", "--seeds", "2")
    assert done.returncode == 0 and "Page: results/try_mine/table1.md" in done.stdout, done.stderr
    snakefile = run("csebench", "snakefile").stdout.strip()
    (work / "results" / "try_mine" / "table1.md").unlink()
    done = run("snakemake", "-s", snakefile, "-j2", "results/try_mine/table1.md")
    assert done.returncode == 0 and (work / "results" / "try_mine" / "table1.md").exists(), done.stderr
    data = str(site / "csebench" / "_project" / "data" / "smoke")
    scored = ("--model", "bert-mini-wiki", "--pooler", "avg", "--evaluators", "sts", "--data", data)
    done = run("csebench", "evaluate", *scored, "--out", "scores.json")
    assert done.returncode == 0 and (work / "scores.json").exists(), done.stderr
    assert {path for path in site.rglob("*") if "__pycache__" not in path.parts} <= before
