"""Re-runs the commands that README.md and docs/*.md show, and rewrites their output.

    python docs/examples.py          # rewrite
    python docs/examples.py --check  # exit code 1 where an output is stale

An example is a block of which each line with `$ ` in front is a command, and the lines below it its
output:

    <!-- example: 6 lines -->
    ```console
    $ csebench show sts
    ```

Only `csebench` is run, in a copy of the files of the commit, without data, so that outputs do not
depend on what is in results/ or runs/. Of an output the first lines are shown (20 where the marker
states no number), cut at 170 characters; `…` stands for the rest. Blocks with another marker or
none, as those that need training, are kept.
"""

from __future__ import annotations

import os
import re
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
LINES, WIDTH = 20, 170

# arguments of csebench, as typed -> its output; None keeps what is shown
Run = Callable[[str], str | None]


def rewrite(text: str, run: Run) -> str:
    """A text with the outputs of its examples as they are now."""

    def rewritten(match: re.Match) -> str:
        head, lines, body, end = match.groups()
        shown = []
        for arguments in re.findall(r"^\$ csebench (.+)$", body, re.MULTILINE):
            if (output := run(arguments)) is None:
                return match[0]
            shown += [f"$ csebench {arguments}", *shorten(output, int(lines or LINES))]
        return head + "\n".join(shown) + "\n" + end

    return EXAMPLE.sub(rewritten, text)


def shorten(output: str, lines: int) -> list[str]:
    """The first lines of an output, each cut to the width of a page."""
    printed = [line.rstrip() for line in output.strip("\n").splitlines()]
    kept = printed if len(printed) <= lines else [*printed[:lines], "…"]
    return [line if len(line) <= WIDTH else line[: WIDTH - 1].rstrip() + "…" for line in kept]


def texts() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def copy_project(folder: Path) -> None:
    """Copies the files of the working tree that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def run_in(folder: Path) -> Run:
    """Runs csebench as a user would in a clone, without data and without a network."""
    env = {name: value for name, value in os.environ.items() if name != "CSEBENCH_DATA"}
    env |= {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}

    @cache
    def run(arguments: str) -> str:
        command = [sys.executable, "-m", "csebench", *shlex.split(arguments)]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        return done.stdout + (done.stderr if done.returncode else "")

    return run


def main(arguments: list[str]) -> int:
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        copy_project(Path(folder))
        run = run_in(Path(folder))
        for path in texts():
            text = read_text(path)
            if (now := rewrite(text, run)) == text:
                continue
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in arguments:
                write_text(path, now)
    if "--check" in arguments and stale:
        print(
            f"stale outputs in {', '.join(stale)}: run `python docs/examples.py`.", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
