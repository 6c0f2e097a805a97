"""Copies of the project, in which tests run commands and Snakemake.

`copy_of_project` copies it as it is. `new_project` and `one_row_project` leave only a small paper
and what it needs.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from csebench.base.project import ROOT

LEFT_OUT = (".git", ".venv", ".snakemake", "__pycache__", "*.egg-info", "runs", "html", ".logs")


class Project:
    """A copy of the project, run as a user would: with its own code, methods and results."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.env = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
        self.env.pop("CSEBENCH_DATA", None)

    def copy_to(self, folder: Path) -> "Project":
        """Copy the project with all that was made, and with the times of files, as `cp -a` does."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def run(self, *arguments, module="snakemake", **env) -> subprocess.CompletedProcess:
        """Run `python -m MODULE ARGUMENTS` in the copy, with changes of the environment."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
        )

    def csebench(self, *arguments) -> subprocess.CompletedProcess:
        """Run a csebench command."""
        return self.run(*arguments, module="csebench")

    def snakemake(self, *arguments, **env) -> subprocess.CompletedProcess:
        """Run Snakemake with two jobs at a time."""
        return self.run("-j2", *arguments, **env)

    def make(self, *targets) -> subprocess.CompletedProcess:
        """Run Snakemake and require that it ends well."""
        done = self.snakemake(*targets)
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    def planned(self, *targets) -> set[str]:
        """Return the rules that Snakemake would run for targets."""
        done = self.run("-n", *targets)
        assert done.returncode == 0, done.stderr
        return planned_rules(done.stdout + done.stderr)

    def started(self, done) -> set[str]:
        """Return the rules that a call of Snakemake ran."""
        return set(re.findall(r"\(Rule: (\w+)\)", done.stdout + done.stderr))

    def jobs(self, done, rule) -> int:
        """Count the jobs of a rule that a call of Snakemake ran."""
        ids = re.findall(rf"jobid: (\d+) \(Rule: {rule}\)", done.stdout + done.stderr)
        return len(set(ids))

    def read(self, name) -> str:
        """Read a file of results/."""
        return (self.folder / "results" / name).read_text(encoding="utf-8")

    def edit(self, name, old: str, new: str) -> None:
        """Replace a text in a file of the project, which must have it."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


def planned_rules(printed: str) -> set[str]:
    """Read the rules that run from the table of jobs that Snakemake prints."""
    return set(re.findall(r"^(\w+) +\d+$", printed, re.M)) - {"total", "all"}


def copy_of_project(folder: Path, *left_out: str, **options) -> Project:
    """Copy the project as it is, without what runs and tools leave in it.

    Args:
        left_out: names or patterns of further files and folders that are left out.
        options: of `shutil.copytree`.
    """
    ignored = shutil.ignore_patterns(*LEFT_OUT, *left_out)
    shutil.copytree(ROOT, folder, ignore=ignored, **options)
    return Project(folder)


def new_project(folder: Path, paper: str, methods: str = "", scales: str = "") -> Project:
    """Copy the project without results and with one paper only.

    Args:
        paper: content of the paper's YAML file.
        methods: names of the methods that stay, with a blank between them; empty: all. If only some
            stay, scale smoke substitutes nothing, because only other methods have what it
            substitutes.
        scales: names of the scales that stay; empty: all. Others may name methods that are gone.
    """
    project = copy_of_project(folder, "results")
    for file in (folder / "papers").glob("*.yaml"):
        file.unlink()
    (folder / "papers" / "tiny.yaml").write_text(paper)
    keep_only(folder, "evidence/*.yaml", "methods")  # sources name papers that are gone

    # the searches of mini are among the results, and its tables are gone
    mini = folder / "config" / "mini.yaml"
    searches_and_seeds = r"^(tuned:.*\n|seeds_by_table:.*\n(  .*\n)+)"
    mini.write_text(re.sub(searches_and_seeds, "", mini.read_text(), flags=re.M))

    if scales:
        keep_only(folder, "config/*.yaml", scales)
    if methods:
        keep_only(folder, "methods/[!_]*.py", methods)
        smoke = folder / "config" / "smoke.yaml"
        before_substitutes, _, _ = smoke.read_text().partition("substitutes:")
        smoke.write_text(before_substitutes)
    return project


def keep_only(folder: Path, pattern: str, names: str) -> None:
    """Delete the files that match a pattern, except those with the given names."""
    for path in folder.glob(pattern):
        if path.stem not in names.split():
            path.unlink()


ONE_ROW = """
name: tiny
label: Tiny
title: A paper of one row
reference: "Nobody 2026"
tables:
  "2":
    title: one row
    columns: [{label: "1%", size: "1%", task: Avg.}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["67.94±1.16"]}
  "3":
    title: the same runs, retrieval
    evaluator: "beir:smoke"
    columns: [{label: smoke, size: "1%", task: smoke}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["24.92"]}
"""


def one_row_project(folder: Path) -> Project:
    """Make a project of one method, SimCSE, and one scale, smoke, with two tables of its runs."""
    return new_project(folder, ONE_ROW, "simcse", "smoke")
