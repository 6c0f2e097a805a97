"""Kills csebench at seeded moments, resumes it by the same command, and compares all that is left
with what an undisturbed project holds. For test_chaos.py and benchmarks/chaos.py.

A kill comes before a seeded write operation. Commands run in forked processes (forking.py);
Snakemake and its jobs run as users start them.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import psutil
from project import one_row_project

from csebench.base.models import model_sha256

PAGE = "results/tiny/table2.md"
SNAKEMAKE = [sys.executable, "-m", "snakemake", "-j2", PAGE]
LONGEST = 600  # seconds: what takes longer counts as lost
# keys of JSON files
VOLATILE = {"provenance", "timings", "seconds", "seconds_per_step", "resumed_at"}
# the last stay for a day
NOT_COMPARED = re.compile(r"\.log$|/\.(logs/|html\.)|/\.[^/]*\.lock$|\.[0-9a-f]{12}$")
STAGES = {  # what each command makes; RUN stands for the id of a run
    "work RUN": ["runs/RUN"],  # trains and scores
    "work RUN --scale smoke": ["runs/RUN/scores"],  # scores only
    "publish RUN sts": ["results/scores/RUN.sts.json"],
    f"render tiny/table2 --out {PAGE}": [PAGE],
    "csv": ["results/scores.csv", "results/cells.csv"],
    "html": ["results/html"],
}
TRAINING = "work RUN"


class Chaos:
    """A tiny project, on a disk of its own where this user may mount one, and what came of all
    that was done to it."""

    def __init__(self, folder: Path, seed: int):
        self.random = random.Random(seed)
        self.disk, self.reference, self.log = folder / "disk", folder / "reference", folder / "log"
        # kills by victim and signal; spoilt disks and second workers
        self.kills, self.events = Counter(), Counter()
        # wrong ends of commands, models trained twice; files with other bits
        self.losses, self.unequal = [], []
        self.disk.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", self.disk]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        self.project = one_row_project(self.disk / "csebench")
        self.folder, self.project.env["OMP_NUM_THREADS"] = self.project.folder, "1"
        command, env = [sys.executable, Path(__file__).with_name("forking.py")], self.project.env
        self.server = subprocess.Popen(
            command, cwd=self.folder, env=env, stdin=-1, stdout=-1, text=True
        )
        assert self.server.stdout.readline() == "ready\n"
        encoder, smoke = (
            model_sha256(self.folder / "encoders/tiny"),
            self.folder / "config" / "smoke.yaml",
        )
        text = smoke.read_text().replace("steps: 6", "steps: 12")
        smoke.write_text(
            re.sub(
                "bert-base: .*", f"bert-base: {{name: encoders/tiny, revision: {encoder}}}", text
            )
        )
        for page in (*self.folder.glob("*.md"), *self.folder.glob("docs/*.md")):
            # for the site: theirs link to results that are not there
            page.write_text(f"# {page.stem}\n")
        assert self.run("plan tiny/table2 --runs") == 0, self.printed()
        self.runs = sorted(set(re.findall(r"simcse-\w{10}", self.printed())))
        self.writes = {}
        for stage in (f"work {self.runs[1]}", f"publish {self.runs[1]} sts", *STAGES):
            self.remove(*STAGES.get(stage, ()))
            assert self.run(stage) == 0, self.printed()
            self.writes[stage] = int(self.printed().split()[-1])
        for name in ("runs", "results"):
            shutil.copytree(self.folder / name, self.reference / name)
        self.digests = digests(self.folder)

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        if self.mounted:
            subprocess.run(["umount", "-l", self.disk], check=True)

    def remove(self, *names: str) -> None:
        for path in (self.folder / name.replace("RUN", self.runs[0]) for name in names):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def restore(self) -> None:
        """What the undisturbed project holds."""
        self.remove("runs", "results", ".snakemake")
        shutil.copytree(self.reference, self.folder, dirs_exist_ok=True)

    def _ask(self, order: dict) -> int:
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def start(self, stage: str, **order) -> int:
        arguments = [
            word.replace("RUN", self.runs[0]) if "RUN" in word else word for word in stage.split()
        ]
        return self._ask({"arguments": arguments, "log": str(self.log), **order})

    def run(self, stage: str, **order) -> int:
        return self._ask({"wait": self.start(stage, **order)})

    def printed(self) -> str:
        return self.log.read_text(errors="replace")

    def note_loss(self, what: str) -> None:
        self.losses.append(f"{what}: {self.printed()[-1500:]}")

    def kill(self, stage: str) -> None:
        """Kill a command before a seeded write operation; of a command that goes on from an
        earlier kill, which makes fewer, it may be after the last."""
        number = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        code = self.run(stage, strike=(self.random.randint(1, self.writes[stage]), number))
        if code == -number or "stopped by SIGTERM" in self.printed():
            self.kills[f"csebench {stage.split()[0]}, {number.name}"] += 1
        elif code != 0:
            self.note_loss(f"{stage}, {number.name}: exit {code}")

    def spoil_disk(self, stage: str, kind: str) -> None:
        """Run a command on a disk that is soon full ("full"), or that cannot be written
        ("read-only")."""
        disk = os.statvfs(self.disk)
        size = (disk.f_blocks - disk.f_bfree) * disk.f_frsize + int(
            2 ** self.random.uniform(12, 21)
        )
        self.remount(f"size={size}" if kind == "full" else "ro")
        code = self.run(stage)
        self.events[f"{kind} disk"] += code != 0  # else the files fitted on it
        if code not in (0, 1, 2) or "Traceback" in self.printed():
            self.note_loss(f"{stage}, {kind} disk: exit {code}")
        self.remount("rw,size=1g")

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.disk], check=True)

    def disturb(self, stage: str, kills: int = 1, disks: tuple[str, ...] = ()) -> None:
        """One round of a stage: kills, then spoilt disks, then the same command to its end."""
        self.restore()
        self.remove(*STAGES[stage])
        trained = self.trained()
        for act in [*[self.kill] * kills, *(partial(self.spoil_disk, kind=kind) for kind in disks)]:
            act(stage)
            trained = self.trained() | trained
        if (code := self.run(stage)) != 0:
            self.note_loss(f"{stage}, resumed: exit {code}")
        self.compare(stage, trained)

    def two_workers(self) -> None:
        """Two processes for one run; the first is killed, if its moment comes before its end."""
        self.restore()
        self.remove(*STAGES[TRAINING])
        moment = self.random.randint(1, 2 * self.writes[TRAINING])
        first = self.start(TRAINING, strike=(moment, signal.SIGKILL))
        second = self.start(TRAINING, log=str(self.log.with_suffix(".second")))
        codes = [self._ask({"wait": pid}) for pid in (first, second)]
        self.events["two workers"] += 1
        self.kills["csebench work, SIGKILL"] += codes[0] == -signal.SIGKILL
        if codes[0] not in (0, -signal.SIGKILL) or codes[1] != 0:
            self.note_loss(f"two workers: exits {codes}")
        self.compare("two workers", {})

    def snakemake(self, kills: int) -> None:
        """A page from nothing, while a job of Snakemake and Snakemake itself are killed in turn;
        then undisturbed."""
        self.restore()
        self.remove("results", *(f"runs/{run}" for run in self.runs))
        process, trained = self.start_snakemake(), {}
        for victim in islice(cycle(["a job", "snakemake"]), kills):
            if process.poll() is not None:
                process = self.start_snakemake()
            while process.poll() is None and not self.jobs():
                time.sleep(0.2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.random.uniform(0.1, 6))
            number = (
                self.random.choice([signal.SIGKILL, signal.SIGTERM])
                if victim == "a job"
                else signal.SIGKILL
            )
            with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # all have ended
                running = self.jobs() if victim == "a job" else [psutil.Process(process.pid)]
                self.random.choice(running).send_signal(number)
                self.kills[f"{victim}, {number.name}"] += 1
            if victim == "snakemake":
                process.wait(LONGEST)
            trained = self.trained() | trained
        process.wait(LONGEST)
        if (
            code := self.start_snakemake(OMP_NUM_THREADS="2", MKL_NUM_THREADS="2").wait(LONGEST)
        ) != 0:
            self.note_loss(f"snakemake, resumed: exit {code}")
        if psutil.wait_procs(self.jobs(), timeout=LONGEST)[1]:
            self.note_loss("a job that nobody waits for")
        self.compare(
            "snakemake", trained, r"runs/simcse-\w+/(?!scores/beir)|results/scores/|" + PAGE
        )

    def jobs(self) -> list[psutil.Process]:
        """Jobs of Snakemake, also of one that has ended."""
        running, command = psutil.process_iter(["cwd", "cmdline"]), ["-m", "csebench"]
        here = [process for process in running if process.info["cwd"] == str(self.folder)]
        return [process for process in here if (process.info["cmdline"] or [])[1:3] == command]

    def start_snakemake(self, **env: str) -> subprocess.Popen:
        with open(self.log, "w") as log:
            return subprocess.Popen(
                SNAKEMAKE, cwd=self.folder, env=self.project.env | env, stdout=log, stderr=log
            )

    def trained(self) -> dict[str, int]:
        """When the finished models were finished: none may be trained anew."""
        return {
            str(path): path.stat().st_mtime_ns
            for path in self.folder.glob("runs/*/model/training.json")
        }

    def compare(self, what: str, trained: dict[str, int], only: str = "") -> None:
        if not trained.items() <= self.trained().items():
            self.note_loss(f"{what}: a finished model was trained again")
        changed = {
            name
            for name, _ in digests(self.folder).items() ^ self.digests.items()
            if re.match(only, name)
        }
        self.unequal += [f"{what}: {name}" for name in sorted(changed)]


def digests(folder: Path) -> dict[str, str]:
    """sha256 by name of all that is made, JSON without times and provenance."""
    files = [*(folder / "runs").rglob("*"), *(folder / "results").rglob("*")]
    names = {str(path.relative_to(folder)): path for path in files if path.is_file()}
    return {name: digest(path) for name, path in names.items() if not NOT_COMPARED.search(name)}


def digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name in ("train.json", "training.json") or (
        path.suffix == ".json" and path.parent.name == "scores"
    ):
        values = json.loads(
            content, object_hook=lambda inner: {k: inner[k] for k in inner if k not in VOLATILE}
        )
        values.pop("sha256", None)  # of the whole
        content = json.dumps(values, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()
