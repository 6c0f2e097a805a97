"""Ctrl-C in any stage of `csebench try` leaves a checkpoint, and the same command goes on from
there."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from pseudo_terminal import LONGEST, Terminal
from tiny_runs import weights

from csebench import cli
from csebench.base import caches
from csebench.base.locks import locked
from csebench.base.project import ROOT
from csebench.base.runs import CHECKPOINT
from csebench.base.supervision import NOT_FINISHED
from csebench.plan import recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.study import attempt_paper, workflow
from csebench.study.work import train_spec
from csebench.train.inputs import read_corpus_of, read_inputs

SETTINGS = {"against": ("simcse",), "scale": "smoke", "evaluators": ("sts",), "seeds": 1}
SLOW_STEP = """        if os.path.exists("slow"):
            time.sleep(1)
        return info_nce"""
WITHOUT_CHECK = """\
import sys
from csebench import cli
from csebench.study import attempt
attempt.check_two_steps = lambda tried: None  # two trainings, each with an import of torch
sys.exit(cli.main())
"""


EDITS = {  # of the template of a method
    '"name": "template"': '"name": "slow"',
    "        return info_nce": SLOW_STEP,
    "\nfrom torch": "\nimport os\nimport time\n\nfrom torch",
    '    # "search": {"weight": (0.1, 1.0)}': '    "search": {"weight": (0.1, 1.0)}',
    '(0.05, "sec. 3"),': '(0.05, "sec. 3"),\n        "weight": (0.1, "ours"),',
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a method whose steps take a second, and a scale that takes settings from
    searches."""
    code = (ROOT / "methods" / "_template.py").read_text()
    for old, new in EDITS.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "slow.py").write_text(code)

    scale = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    scale |= {"scale": "tuned", "tuned": True, "data_root": str(ROOT / "data" / "smoke")}
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "tuned.yaml").write_text(yaml.safe_dump(scale))

    (tmp_path / "slow").touch()  # while this file is there, a step takes a second
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path
    caches.clear()


def try_slow(scale):
    """Start `csebench try` of the method in a terminal."""
    options = ["try", "methods/slow.py", "--scale", scale, "--settings", "1", "--seeds", "1"]
    return Terminal([sys.executable, "-c", WITHOUT_CHECK, *options], Path.cwd())


def interrupt_training(terminal, act):
    """Interrupt the first run of the method after its second step, and return its folder."""

    def run():
        for file in Path("runs").glob("slow-*/progress.json"):
            if json.loads(file.read_text())["step"] >= 2:
                return file.parent
        return None

    terminal.wait_for(lambda: run() or terminal.has_ended())
    folder = run()
    assert folder is not None, terminal.printed
    act(terminal)
    terminal.wait_for(terminal.has_ended)
    terminal.read()
    return folder


def ctrl_c(terminal):
    terminal.type("\x03")


def assert_stopped(terminal, folder, code):
    """Assert that a command has ended with this code and left the checkpoint of a run."""
    assert terminal.code == code, terminal.printed
    assert json.loads((folder / CHECKPOINT).read_text())["run"] == folder.name
    assert not (folder / "model").exists()
    assert not list(Path().glob(".snakemake/locks/*"))


@pytest.mark.slow
def test_ctrl_c_in_the_search(own):
    """The trial goes on from its checkpoint."""
    # Other searches start from this one.
    assert cli.main(["tune", "simcse", "--scale", "tuned", "--trials", "1"]) == 0
    terminal = try_slow("tuned")
    folder = interrupt_training(terminal, ctrl_c)
    assert_stopped(terminal, folder, 130)
    assert "the same command goes on" in terminal.printed
    assert "Traceback" not in terminal.printed

    os.unlink("slow")
    assert cli.main(["tune", "slow", "--scale", "tuned", "--trials", "1"]) == 0  # as `try` calls it
    assert json.loads((folder / "train.json").read_text())["resumed_at"] >= 2


@pytest.mark.slow
def test_a_closed_terminal_leaves_a_checkpoint(own):
    terminal = try_slow("smoke")
    folder = interrupt_training(terminal, Terminal.close)
    assert_stopped(terminal, folder, 1)


@pytest.mark.slow
def test_after_ctrl_c_in_the_training_the_same_command_goes_on(own):
    """It ends with the bits of a run that was left alone."""
    terminal = try_slow("smoke")
    folder = interrupt_training(terminal, ctrl_c)
    assert_stopped(terminal, folder, 130)

    os.unlink("slow")
    again = try_slow("smoke")
    again.wait_for(again.has_ended)
    assert again.code == 0, again.printed
    assert json.loads((folder / "train.json").read_text())["resumed_at"] >= 2

    caches.clear()
    spec = targets.run(folder.name, "smoke")
    scale = catalog.scale("smoke")
    corpus = read_corpus_of(spec, recipe.corpus_path(spec, scale))
    train_spec(spec, own / "alone", read_inputs(spec, corpus, catalog.data_root(scale)))
    assert weights(own / "alone") == weights(folder)


def test_a_second_try_of_a_name_waits(own):
    """Otherwise it would rewrite the paper that the first one's runs are planned from."""
    tried = attempt_paper.open_attempt(own / "methods" / "slow.py", **SETTINGS)
    options = ["methods/slow.py", "--scale", "smoke", "--plan"]
    command = [sys.executable, "-m", "csebench", "try", *options]
    waiting = "try_slow.yaml: another process works on it; waiting"

    with locked(tried.paper_file):
        second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert second.stderr.readline().startswith(waiting)
        assert not tried.paper_file.exists()
        assert second.poll() is None

    _, messages = second.communicate(timeout=LONGEST)
    assert "Forecast" in messages
    assert second.returncode == 0
    assert tried.paper_file.exists()


# ---------------------------------------------------------------- the lock that Snakemake leaves


@pytest.fixture
def left_lock(tmp_path, monkeypatch):
    """The lock of a Snakemake that was killed."""
    monkeypatch.chdir(tmp_path)
    lock = tmp_path / ".snakemake" / "locks" / "0.output.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    return lock


def in_a_process(function):
    """Call a function in a process that ends after it, and return the exit code."""
    process = os.fork()
    if process == 0:
        function()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def test_the_lock_of_a_killed_snakemake_is_removed(left_lock):
    assert in_a_process(workflow.hold_folder) == 0
    assert not left_lock.exists()


def test_the_lock_of_a_snakemake_at_work_stays(left_lock):
    at_work, ready = os.pipe()

    def work():
        workflow.hold_folder()
        left_lock.touch()
        os.write(ready, b"x")
        time.sleep(LONGEST)

    process = os.fork()
    if process == 0:
        work()
        os._exit(0)
    os.read(at_work, 1)
    try:
        for _ in range(2):  # several may work beside one another
            assert in_a_process(workflow.hold_folder) == 0
            assert left_lock.exists()
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)

    assert in_a_process(workflow.hold_folder) == 0
    assert not left_lock.exists()


@pytest.mark.parametrize("reason", ["no locks", "read-only"])
def test_where_nothing_can_be_locked_nothing_is_removed(reason, left_lock, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if reason == "no locks":
        monkeypatch.setattr(workflow.fcntl, "flock", fail)
    else:
        monkeypatch.setattr(workflow.os, "open", fail)

    workflow.hold_folder()

    assert left_lock.exists()


# ---------------------------------------------------------------- code that ends the process

PASSES_FOR_DONE = {
    "ends": "os._exit(0)",
    "is ended by its fork": "if os.fork():\n            os.wait()\n            os._exit(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("code", PASSES_FOR_DONE.values(), ids=PASSES_FOR_DONE)
def test_a_training_that_code_of_a_method_ends_is_a_failed_command(code, own):
    file = own / "methods" / "slow.py"
    file.write_text(file.read_text().replace(SLOW_STEP, f"        {code}\n        return info_nce"))
    words = "--method slow --encoder bert-mini-wiki --set steps=2 batch_size=8 --device cpu"
    files = ["--corpus", ROOT / "data/smoke/wiki/smoke.txt", "--data", ROOT / "data/smoke"]
    command = [sys.executable, "-m", "csebench", "train", *words.split(), *files, "--out", "out"]

    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 1
    assert NOT_FINISHED in done.stderr
    assert not (own / "out" / "model").exists()
    assert not (own / "out" / "train.json").exists()
