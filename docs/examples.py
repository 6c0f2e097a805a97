"""Run the commands that README.md and docs/*.md show, and rewrite their output.

    python docs/examples.py          # rewrite
    python docs/examples.py --check  # exit code 1 if an output is stale

An example is a block below a marker. A line that begins with `$ ` is a command, and the lines below
it are its output:

    <!-- example: 6 lines -->
    ```console
    $ csebench show sts
    ```

Only `csebench` is run, in a copy of the files that git tracks and without data, so that outputs do
not depend on other files in results/ or runs/. The inputs of docs/judge.md are made up there. The
first lines of an output are shown, 20 if the marker states no number. They are cut at 170
characters, and `…` stands for the rest. Blocks without the marker are kept, for example those that
need training.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT

EXAMPLE = re.compile(
    r"(<!-- example(?:: (\d+) lines)? -->\n```console\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE
)
LINES = 20  # of an output
WIDTH = 170  # characters of a line

# A function that gets the arguments of csebench as typed, and returns the output. None keeps the
# output that the text shows.
Run = Callable[[str], str | None]


def main(arguments: list[str]) -> int:
    """Rewrite the texts, or with `--check` name the stale ones.

    Returns:
        The exit code: 1 if a checked text is stale.
    """
    is_check = "--check" in arguments
    stale = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder)
        make_inputs(folder / "inputs")
        run = run_in(folder)
        for path in texts():
            text = read_text(path)
            new_text = rewrite(text, run)
            if new_text == text:
                continue
            stale.append(str(path.relative_to(ROOT)))
            if not is_check:
                write_text(path, new_text)
    if is_check and stale:
        remedy = "run `python docs/examples.py`."
        print(f"stale outputs in {', '.join(stale)}: {remedy}", file=sys.stderr)
        return 1
    return 0


def texts() -> list[Path]:
    """List the files with examples."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# ---------------------------------------------------------------- running commands


def copy_project(folder: Path) -> None:
    """Copy the files of the working tree that git tracks."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if not (ROOT / name).is_file():  # a deleted file, or the empty text after the last name
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)


def make_inputs(folder: Path) -> None:
    """Make the files that docs/judge.md judges."""
    script = runpy.run_path(str(ROOT / "docs" / "judge_inputs.py"))
    script["write_inputs"](folder)


def run_in(folder: Path) -> Run:
    """Make the function that runs csebench as in a clone, without data and network."""
    env = {name: value for name, value in os.environ.items() if name != "CSEBENCH_DATA"}
    env |= {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}

    @cache
    def run(arguments: str) -> str:
        command = [sys.executable, "-m", "csebench", *shlex.split(arguments)]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
        return done.stdout + done.stderr

    return run


# ---------------------------------------------------------------- rewriting texts


def rewrite(text: str, run: Run) -> str:
    """Give a text with the outputs of its examples as they are now."""

    def rewritten(match: re.Match) -> str:
        head, lines, body, end = match.groups()
        new_body = []
        for arguments in re.findall(r"^\$ csebench (.+)$", body, re.MULTILINE):
            output = run(arguments)
            if output is None:
                return match[0]
            new_body.append(f"$ csebench {arguments}")
            new_body += shorten(output, int(lines or LINES))
        return head + "\n".join(new_body) + "\n" + end

    return EXAMPLE.sub(rewritten, text)


def shorten(output: str, line_count: int) -> list[str]:
    """Keep the first lines of an output, each cut to the width of a page."""
    lines = output.strip("\n").splitlines()
    kept = [cut(line.rstrip()) for line in lines[:line_count]]
    if len(lines) > line_count:
        kept.append("…")
    return kept


def cut(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    return line[: WIDTH - 1].rstrip() + "…"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
