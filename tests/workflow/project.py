"""A copy of the project to run Snakemake in."""

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from csebench import ROOT
from csebench.plan.evidence import NOT_SOURCES


class Project:
    """A copy of the project, run as a user would: with its own code, methods and results."""

    def __init__(self, folder: Path, paper: str):
        """`paper` takes the place of the project's papers."""
        ignored = shutil.ignore_patterns(".git", ".venv", "runs", "results", ".snakemake", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for file in (folder / "papers").glob("*.yaml"):
            file.unlink()
        (folder / "papers" / "tiny.yaml").write_text(paper)
        for file in (folder / "evidence").glob("*.yaml"):
            if file.stem not in NOT_SOURCES:
                file.unlink()  # sources name papers that are not there
        study = folder / "config" / "variance.yaml"  # at no scale, of no method: tests delete some of either
        study.write_text(study.read_text().replace("[mini]", "[]").replace("[simcse, micse]", "[]"))
        self._work_in(folder)

    def _work_in(self, folder: Path):
        self.folder = folder
        self.env = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
        self.env.pop("CSEBENCH_DATA", None)

    def copy_to(self, folder: Path) -> "Project":
        """With all that was made, and the times of files: `cp -a`."""
        shutil.copytree(self.folder, folder, symlinks=True)
        project = copy.copy(self)
        project._work_in(folder)
        return project

    def run(self, *command, module="snakemake", **more):
        command = [sys.executable, "-m", module, *command]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, **more)

    def snakemake(self, *arguments):
        return self.run(*arguments, "-j2")

    def started(self, done) -> set[str]:
        """Rules that a call of Snakemake ran."""
        return set(re.findall(r"\(Rule: (\w+)\)", done.stdout + done.stderr))

    def jobs(self, done, rule) -> int:
        return len(set(re.findall(rf"jobid: (\d+) \(Rule: {rule}\)", done.stdout + done.stderr)))

    def read(self, name) -> str:
        return (self.folder / "results" / name).read_text(encoding="utf-8")
