"""Copies of the project to run commands and Snakemake in."""

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
        """With all that was made, and the times of files: `cp -a`."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def run(self, *command, module="snakemake", **env):
        """`python -m MODULE COMMAND` in the copy, with changes of the environment."""
        command = [sys.executable, "-m", module, *command]
        return subprocess.run(
            command, cwd=self.folder, env=self.env | env, capture_output=True, text=True
        )

    def csebench(self, *command):
        return self.run(*command, module="csebench")

    def snakemake(self, *arguments, **env):
        return self.run("-j2", *arguments, **env)

    def make(self, *targets):
        """Run Snakemake, which must end well; returns what it prints."""
        done = self.snakemake(*targets)
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    def planned(self, *targets) -> set[str]:
        """Rules that Snakemake would run for targets."""
        done = self.run("-n", *targets)
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"^(\w+) +\d+$", done.stdout + done.stderr, re.M)) - {"total", "all"}

    def started(self, done) -> set[str]:
        """Rules that a call of Snakemake ran."""
        return set(re.findall(r"\(Rule: (\w+)\)", done.stdout + done.stderr))

    def jobs(self, done, rule) -> int:
        return len(set(re.findall(rf"jobid: (\d+) \(Rule: {rule}\)", done.stdout + done.stderr)))

    def read(self, name) -> str:
        return (self.folder / "results" / name).read_text(encoding="utf-8")

    def edit(self, name, old: str, new: str) -> None:
        """Replace a text in a file."""
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text
        (self.folder / name).write_text(text.replace(old, new), encoding="utf-8")


def copied(folder: Path, *left_out: str, **more) -> Project:
    """The project as it is, without what runs and tools leave, and without some names."""
    return Project(
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT, *left_out), **more)
    )


def new_project(folder: Path, paper: str, methods: str = "", scales: str = "") -> Project:
    """The project without results in a new folder; `paper` takes the place of its papers.

    Args:
        methods: names of those that are kept; then scale smoke substitutes nothing, as others have
            what it does.
        scales: names of those that are kept: others may name methods that are not there.
    """
    project = copied(folder, "results")
    for file in (folder / "papers").glob("*.yaml"):
        file.unlink()
    (folder / "papers" / "tiny.yaml").write_text(paper)
    for file in (folder / "evidence").glob("*.yaml"):
        if file.stem != "methods":
            file.unlink()  # sources name papers that are not there
    mini = folder / "config" / "mini.yaml"
    # of mini, without its searches, which are among the results, and the seeds of tables that are
    # not there
    mini.write_text(
        re.sub(r"^(tuned:.*\n|seeds_by_table:.*\n(  .*\n)+)", "", mini.read_text(), flags=re.M)
    )
    for kept, files in ((methods, "methods/[!_]*.py"), (scales, "config/*.yaml")):
        for path in folder.glob(files):
            if kept and path.stem not in kept.split():
                path.unlink()
    if methods:
        smoke = folder / "config" / "smoke.yaml"
        smoke.write_text(smoke.read_text().partition("substitutes:")[0])
    return project


RETRIEVAL = """\
  "3":
    title: the same runs, retrieval
    evaluator: "beir:smoke"
    columns: [{label: smoke, size: "1%", task: smoke}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["24.92"]}
"""
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
"""
ONE_ROW += RETRIEVAL


def one_row_project(folder: Path) -> Project:
    """A project of one method, SimCSE, and one scale, smoke, with two tables of the same runs."""
    return new_project(folder, ONE_ROW, "simcse", "smoke")
