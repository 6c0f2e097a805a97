"""Kill csebench at seeded moments, resume it by the same command, and compare what is left.

It is compared with what an undisturbed project holds. test_chaos.py and benchmarks/chaos.py use
this module. A kill comes before a seeded write operation. Commands run in forked processes
(forking.py). Snakemake and its jobs run as users start them.
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
from itertools import cycle, islice
from pathlib import Path

import psutil
from project import one_row_project

from csebench.base.models import model_sha256
from csebench.base.training_log import LOG

PAGE = "results/tiny/table2.md"
SNAKEMAKE = [sys.executable, "-m", "snakemake", "-j2", PAGE]
LONGEST = 600  # seconds: what takes longer counts as lost
STAGES = {  # what each command makes; RUN stands for the id of a run
    "work RUN": ["runs/RUN"],  # trains and scores
    "work RUN --scale smoke": ["runs/RUN/scores"],  # scores only
    "publish RUN sts": ["results/scores/RUN.sts.json"],
    f"render tiny/table2 --out {PAGE}": [PAGE],
    "csv": ["results/scores.csv", "results/cells.csv"],
    "html": ["results/html"],
}
TRAINING = "work RUN"
# how the processes of jobs were started: by a rule, and as the server that forks for them
JOBS = (["-m", "csebench"], ["-m", "csebench.base.job_server"])


class Chaos:
    """A tiny project that is disturbed, and what came of it.

    The project is on a disk of its own if this user may mount one.
    """

    def __init__(self, folder: Path, seed: int):
        self.random = random.Random(seed)
        self.kills: Counter[str] = Counter()  # by victim and signal
        self.events: Counter[str] = Counter()  # spoilt disks and second workers
        self.losses: list[str] = []  # wrong ends of commands, models that were trained twice
        self.unequal: list[str] = []  # files with other bits

        self.disk = folder / "disk"
        self.disk.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", self.disk]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        self.project = one_row_project(self.disk / "csebench")
        self.project.env["OMP_NUM_THREADS"] = "1"
        self.folder = self.project.folder
        self.log = folder / "log"
        self.server = self.start_server()
        self.make_smaller()

        assert self.run("plan tiny/table2 --runs") == 0, self.printed()
        self.runs = sorted(set(re.findall(r"simcse-\w{10}", self.printed())))
        self.writes = self.make_undisturbed()  # write operations by command
        self.reference = folder / "reference"
        for name in ("runs", "results"):
            shutil.copytree(self.folder / name, self.reference / name)
        self.digests = digests(self.folder)

    def start_server(self) -> subprocess.Popen:
        """Start the process that forks commands, which also makes the encoder encoders/tiny."""
        server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forking.py")],
            cwd=self.folder,
            env=self.project.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout.readline() == "ready\n"
        return server

    def make_smaller(self) -> None:
        """Let runs use the tiny encoder for more steps, and leave nearly nothing in the texts."""
        smoke = self.folder / "config" / "smoke.yaml"
        text = smoke.read_text().replace("steps: 6", "steps: 12")
        revision = model_sha256(self.folder / "encoders/tiny")
        encoder = f"bert-base: {{name: encoders/tiny, revision: {revision}}}"
        smoke.write_text(re.sub("bert-base: .*", encoder, text))
        # the site has these pages, which link to results that are not there
        for page in (*self.folder.glob("*.md"), *self.folder.glob("docs/*.md")):
            page.write_text(f"# {page.stem}\n")

    def make_undisturbed(self) -> dict[str, int]:
        """Run every command to its end, and return the number of its write operations."""
        other_run = self.runs[1]  # the page needs two runs
        writes = {}
        for stage in (f"work {other_run}", f"publish {other_run} sts", *STAGES):
            self.remove(*STAGES.get(stage, []))
            assert self.run(stage) == 0, self.printed()
            writes[stage] = int(self.printed().split()[-1])
        return writes

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        if self.mounted:
            subprocess.run(["umount", "-l", self.disk], check=True)

    # ---------------------------------------------------------------- disturbances

    def disturb(self, stage: str, kills: int = 1, disks: tuple[str, ...] = ()) -> None:
        """Disturb a command: kills, then spoilt disks. Then run it to its end, and compare."""
        self.restore()
        self.remove(*STAGES[stage])
        trained = self.trained()
        for _ in range(kills):
            self.kill(stage)
            trained = self.trained() | trained
        for kind in disks:
            self.spoil_disk(stage, kind)
            trained = self.trained() | trained

        code = self.run(stage)
        if code != 0:
            self.note_loss(f"{stage}, resumed: exit {code}")
        self.compare(stage, trained)

    def kill(self, stage: str) -> None:
        """Kill a command before a seeded write operation.

        A command that goes on from an earlier kill makes fewer operations, and may end before.
        """
        sent = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        moment = self.random.randint(1, self.writes[stage])
        code = self.run(stage, strike=(moment, sent))
        if code == -sent or "stopped by SIGTERM" in self.printed():
            verb = stage.split()[0]
            self.kills[f"csebench {verb}, {sent.name}"] += 1
        elif code != 0:
            self.note_loss(f"{stage}, {sent.name}: exit {code}")

    def spoil_disk(self, stage: str, kind: str) -> None:
        """Run a command on a disk that is soon full ("full") or cannot be written ("read-only")."""
        disk = os.statvfs(self.disk)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        free = int(2 ** self.random.uniform(12, 21))
        self.remount(f"size={used + free}" if kind == "full" else "ro")

        code = self.run(stage)
        if code != 0:  # else the files fitted on the disk
            self.events[f"{kind} disk"] += 1
        if code not in (0, 1, 2) or "Traceback" in self.printed():
            self.note_loss(f"{stage}, {kind} disk: exit {code}")
        self.remount("rw,size=1g")

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.disk], check=True)

    def two_workers(self) -> None:
        """Let two processes make one run. The first is killed, unless it ends before its moment."""
        self.restore()
        self.remove(*STAGES[TRAINING])
        moment = self.random.randint(1, 2 * self.writes[TRAINING])
        first = self.start(TRAINING, self.log, strike=(moment, signal.SIGKILL))
        second = self.start(TRAINING, self.log.with_suffix(".second"))
        first_code = self.wait(first)
        second_code = self.wait(second)

        self.events["two workers"] += 1
        if first_code == -signal.SIGKILL:
            self.kills["csebench work, SIGKILL"] += 1
        if first_code not in (0, -signal.SIGKILL) or second_code != 0:
            self.note_loss(f"two workers: exits {[first_code, second_code]}")
        self.compare("two workers", {})

    def snakemake(self, kills: int) -> None:
        """Make a page from nothing, while jobs of Snakemake and Snakemake itself are killed in
        turn. Then make it undisturbed, and compare."""
        self.restore()
        self.remove("results", *(f"runs/{run}" for run in self.runs))
        trained: dict[str, int] = {}
        process = self.start_snakemake()
        for victim in islice(cycle(["a job", "snakemake"]), kills):
            if process.poll() is not None:
                process = self.start_snakemake()
            while process.poll() is None and not self.jobs():
                time.sleep(0.2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.random.uniform(0.1, 6))
            if victim == "a job":
                self.kill_job()
            else:
                self.kill_snakemake(process)
                process.wait(LONGEST)
            trained = self.trained() | trained
        process.wait(LONGEST)

        resumed = self.start_snakemake(OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
        code = resumed.wait(LONGEST)
        if code != 0:
            self.note_loss(f"snakemake, resumed: exit {code}")
        _, still_running = psutil.wait_procs(self.jobs(), timeout=LONGEST)
        if still_running:
            self.note_loss("a job that nobody waits for")
        # the page needs no score of beir, and no other page was made
        made = r"runs/simcse-\w+/(?!scores/beir)|results/scores/|" + PAGE
        self.compare("snakemake", trained, made)

    def start_snakemake(self, **env: str) -> subprocess.Popen:
        with open(self.log, "w") as log:
            return subprocess.Popen(
                SNAKEMAKE, cwd=self.folder, env=self.project.env | env, stdout=log, stderr=log
            )

    def kill_job(self) -> None:
        """Kill one of Snakemake's jobs, if one runs."""
        sent = self.random.choice([signal.SIGKILL, signal.SIGTERM])
        running = self.jobs()
        if not running:
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            self.random.choice(running).send_signal(sent)
            self.kills[f"a job, {sent.name}"] += 1

    def kill_snakemake(self, process: subprocess.Popen) -> None:
        """Kill Snakemake itself, if it runs."""
        if process.poll() is None:
            process.kill()
            self.kills["snakemake, SIGKILL"] += 1

    def jobs(self) -> list[psutil.Process]:
        """Find the jobs of Snakemake, also of a Snakemake that has ended, and their server."""
        jobs = []
        for process in psutil.process_iter(["cwd", "cmdline"]):
            command = process.info["cmdline"] or []
            is_csebench = command[1:3] in JOBS
            if is_csebench and process.info["cwd"] == str(self.folder):
                jobs.append(process)
        return jobs

    # ---------------------------------------------------------------- commands

    def run(self, stage: str, **options) -> int:
        """Run a command to its end, and return its exit code, negative after a signal."""
        return self.wait(self.start(stage, self.log, **options))

    def start(self, stage: str, log: Path, **options) -> int:
        """Start a command, and return the id of its process.

        Args:
            options: of `forking.run_command`.
        """
        arguments = [self.with_run(word) for word in stage.split()]
        return self.ask({"arguments": arguments, "log": str(log), **options})

    def wait(self, process: int) -> int:
        """Return the exit code of a process when it has ended, negative after a signal."""
        return self.ask({"wait": process})

    def ask(self, order: dict) -> int:
        """Give the server an order, and return its answer."""
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def printed(self) -> str:
        """Read what the last command has printed."""
        return self.log.read_text(errors="replace")

    def with_run(self, text: str) -> str:
        return text.replace("RUN", self.runs[0]) if "RUN" in text else text

    # ---------------------------------------------------------------- state of the project

    def remove(self, *names: str) -> None:
        """Delete files and folders of the project; RUN in a name stands for the id of the run."""
        for name in names:
            path = self.folder / self.with_run(name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def restore(self) -> None:
        """Bring the project back to what it was undisturbed."""
        self.remove("runs", "results", ".snakemake")
        shutil.copytree(self.reference, self.folder, dirs_exist_ok=True)

    def trained(self) -> dict[str, int]:
        """Note when each finished model was finished, because none may be trained again."""
        finished = self.folder.glob("runs/*/model/training.json")
        return {str(path): path.stat().st_mtime_ns for path in finished}

    def compare(self, what: str, trained: dict[str, int], only: str = "") -> None:
        """Note models that were trained again, and files with other bits.

        Args:
            what: the disturbance, for the note.
            trained: models that were finished before, as `trained` returns them.
            only: regular expression of the files that count; empty: all.
        """
        if not trained.items() <= self.trained().items():
            self.note_loss(f"{what}: a finished model was trained again")
        differences = digests(self.folder).items() ^ self.digests.items()
        names = {name for name, _ in differences}
        for name in sorted(names):
            if re.match(only, name):
                self.unequal.append(f"{what}: {name}")

    def note_loss(self, what: str) -> None:
        self.losses.append(f"{what}: {self.printed()[-1500:]}")


# ---------------------------------------------------------------- bits of files

VOLATILE = {"provenance", "timings", "seconds", "seconds_per_step", "resumed_at"}  # keys of JSON
# logs, locks, and temporary files, which stay for a day
NOT_COMPARED = re.compile(r"\.log$|/\.(logs/|html\.)|/\.[^/]*\.lock$|\.[0-9a-f]{12}$")


def digests(folder: Path) -> dict[str, str]:
    """Hash all files that csebench made in a project, by name."""
    by_name = {}
    for path in (*(folder / "runs").rglob("*"), *(folder / "results").rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not NOT_COMPARED.search(name):
            by_name[name] = digest(path)
    return by_name


def digest(path: Path) -> str:
    """Hash a file, without times and provenance if it is a JSON that has them."""
    content = path.read_bytes()
    if path.name == LOG:
        lines = [json.loads(line, object_hook=without_volatile) for line in content.splitlines()]
        content = json.dumps(lines).encode()
    is_report = path.name in ("train.json", "training.json")
    is_score = path.suffix == ".json" and path.parent.name == "scores"
    if is_report or is_score:
        values = json.loads(content, object_hook=without_volatile)
        values.pop("sha256", None)  # the hash of the whole content
        content = json.dumps(values, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


def without_volatile(values: dict) -> dict:
    return {key: value for key, value in values.items() if key not in VOLATILE}
