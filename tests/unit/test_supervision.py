"""A command is done only if it says so itself. Signals reach the processes that it started, in a
terminal too."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pseudo_terminal import Terminal

from csebench.base import locks
from csebench.base.processes import PRESSED_TWICE
from csebench.base.project import ROOT
from csebench.base.supervision import NOT_FINISHED

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are watched on Linux only"
)
LONGEST = 30  # seconds
SUPERVISED = """\
import ctypes, os, signal, sys, threading, time
from csebench.base.supervision import announce_end, supervised
def work():
{}
sys.exit(supervised(work))
"""


def script(code, template=SUPERVISED):
    """Return the command of a program that does some work."""
    body = "\n".join(f"    {line}" for line in code.splitlines())
    return [sys.executable, "-c", template.format(body)]


def run(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)


# ---------------------------------------------------------------- the end of a command

PASSES_FOR_DONE = {
    "os._exit": "os._exit(0)",
    "the C library": "ctypes.CDLL(None)._exit(0)",
    "another program": "os.execv('/bin/true', ['true'])",
    "a thread": "threading.Thread(target=os._exit, args=[0]).start()\ntime.sleep(60)",
    "a fork that goes on": "if os.fork(): os.wait(); os._exit(0)\nreturn 0",
    "a fork that stays": "if os.fork() == 0: time.sleep(60)\nos._exit(0)",
    "a fork that announces": (
        "if os.fork() == 0: announce_end(); os._exit(0)\nos.wait(); os._exit(0)"
    ),
}


@pytest.mark.parametrize("code", PASSES_FOR_DONE.values(), ids=PASSES_FOR_DONE)
def test_what_code_of_others_ends_is_not_done(code):
    program = subprocess.Popen(
        script(code), cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert program.wait(LONGEST) == 1
        assert program.stderr.readline().strip() == NOT_FINISHED
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.stderr.close()


ENDS = {
    "return 0": 0,
    "return 2": 2,
    "return 130": 130,
    "raise ValueError": 1,
    "sys.exit(3)": 3,
    "os._exit(5)": 5,
    "os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
    "os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM,
    "announce_end(); os.execv('/bin/true', ['true'])": 0,  # as `work` becomes torchrun
}


@pytest.mark.parametrize(("code", "exit_code"), ENDS.items(), ids=ENDS)
def test_any_other_end_is_seen_as_it_is(code, exit_code):
    assert run(script(code)).returncode == exit_code


WAITS = """
def note(number, frame):
    print(signal.Signals(number).name, flush=True)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, note)
print("ready", flush=True)
begun = time.monotonic()
while time.monotonic() < begun + 60 and "x" not in sys.argv: time.sleep(0.05)
"""


@pytest.fixture
def start():
    """`start(command)`: a process whose lines can be read; it is killed at the end."""
    started = []

    def start(command):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on(number, start):
    process = start(script(WAITS))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"{number.name}\n"


def test_a_command_ends_with_its_supervisor(start):
    """Otherwise it would go on unnoticed by whoever killed it."""
    process = start(script(WAITS))
    assert process.stdout.readline() == "ready\n"
    process.kill()
    assert process.stdout.readline() == "SIGTERM\n"


# ---------------------------------------------------------------- a program with all that it starts

STARTER = """\
import os, sys
from pathlib import Path
from csebench.base.errors import Stopped
from csebench.base.locks import locked
from csebench.base.processes import run_program
from csebench.base.supervision import supervised
def work():
    try:
        with locked(Path("work")):
            return run_program([sys.executable, "program.py"], "work").returncode
    except Stopped as end:
        print(end)
        return 130 if end.interrupted else 1
os.chdir({folder!r})
sys.exit(supervised(work))
"""
PROGRAM = """\
import os, signal, sys, time
ROLE = "job" if len(sys.argv) > 1 else "program"
def note(number, frame):
    with open(ROLE + ".log", "a") as log:
        log.write(signal.Signals(number).name + " ")
    if os.path.exists("ends"): os._exit(3)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, note)
if ROLE == "program" and os.fork() == 0: os.execv(sys.executable, [sys.executable, "program.py", "job"])
open(ROLE + ".ready", "w").close()
for _ in range(1200): time.sleep(0.05)
"""  # noqa: E501


@pytest.fixture
def terminal(tmp_path):
    """A process in a terminal that runs a program, which has started a job; both log the signals
    that they get."""
    (tmp_path / "program.py").write_text(PROGRAM)
    opened = Terminal([sys.executable, "-c", STARTER.format(folder=str(tmp_path))])
    opened.wait_for((tmp_path / "program.ready").exists)
    opened.wait_for((tmp_path / "job.ready").exists)
    yield opened
    opened.kill()
    for process in programs(tmp_path):
        os.kill(process, signal.SIGKILL)


def programs(folder):
    """List the processes that still work in a folder."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        process = Path("/proc", name)
        with contextlib.suppress(OSError):  # it ends meanwhile, or is another user's
            words = (process / "cmdline").read_bytes().split(b"\0")
            if (process / "cwd").resolve() == folder and b"program.py" in words:
                found.append(int(name))
    return found


def child_of(process):
    """Return the first child of a process."""
    children = Path("/proc", str(process), "task", str(process), "children").read_text()
    return int(children.split()[0])


def logged(folder):
    """List the signals that the program and its job got."""
    logs = [folder / f"{role}.log" for role in ("program", "job")]
    return [log.read_text().split() for log in logs if log.exists()]


ASKS = {  # how the end is asked for, and the exit code
    "Ctrl-C": (lambda terminal: terminal.type("\x03"), 130),
    "kill -INT": (lambda terminal: os.kill(terminal.pid, signal.SIGINT), 130),
    "kill": (lambda terminal: os.kill(terminal.pid, signal.SIGTERM), 1),
    "kill -HUP": (lambda terminal: os.kill(terminal.pid, signal.SIGHUP), 1),
    "the terminal is closed": (Terminal.close, 1),
}


def state_of(process):
    """Return the letter that Linux gives for the state of a process, such as T for stopped."""
    facts = Path("/proc", str(process), "stat").read_text()
    after_the_name = facts.rpartition(")")[2]
    return after_the_name.split()[0]


@pytest.mark.parametrize(("ask", "code"), ASKS.values(), ids=ASKS)
def test_program_and_jobs_are_asked_once_and_waited_for(ask, code, terminal, tmp_path):
    (tmp_path / "ends").touch()

    ask(terminal)

    terminal.wait_for(terminal.has_ended)
    assert terminal.code == code
    assert logged(tmp_path) == [["SIGINT"], ["SIGINT"]]
    terminal.wait_for(lambda: not programs(tmp_path))
    terminal.read()
    if terminal.keyboard is not None:  # it was not closed
        assert "stopped by SIG" in terminal.printed


def test_a_program_ends_also_where_this_process_ignores_ctrl_c(tmp_path, start):
    """A process that a script starts with `&` does so."""
    (tmp_path / "program.py").write_text(
        "import time\nopen('program.ready', 'w').close()\ntime.sleep(600)"
    )
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    starter = start([sys.executable, "-c", ignoring + STARTER.format(folder=str(tmp_path))])
    end = time.monotonic() + LONGEST
    while not (tmp_path / "program.ready").exists():
        assert time.monotonic() < end
        time.sleep(0.05)

    starter.send_signal(signal.SIGTERM)

    assert starter.wait(LONGEST) == 1
    assert not programs(tmp_path)


def test_a_later_ctrl_c_kills_what_does_not_end(terminal, tmp_path):
    """A method may be in a loop without an end."""
    terminal.type("\x03\x03")
    terminal.wait_for(lambda: logged(tmp_path) == [["SIGINT"], ["SIGINT"]])
    time.sleep(PRESSED_TWICE)
    assert not terminal.has_ended()
    terminal.type("\x03")
    terminal.wait_for(terminal.has_ended)
    assert terminal.code == 130
    terminal.wait_for(lambda: not programs(tmp_path))


def test_signals_of_a_cluster_that_repeat_kill_nothing(terminal, tmp_path):
    for _ in range(3):
        os.kill(terminal.pid, signal.SIGTERM)
        time.sleep(0.1)
    terminal.wait_for(lambda: logged(tmp_path) == [["SIGINT"], ["SIGINT"]])
    assert not terminal.has_ended()
    assert len(programs(tmp_path)) == 2


def test_ctrl_backslash_kills_all(terminal, tmp_path):
    terminal.type("\x1c")
    terminal.wait_for(terminal.has_ended)
    assert terminal.code == -signal.SIGQUIT
    terminal.wait_for(lambda: not programs(tmp_path))


def test_ctrl_z_suspends_all_and_fg_continues_all(terminal, tmp_path):
    child = child_of(terminal.pid)

    def states():
        return {state_of(process) for process in (child, *programs(tmp_path))}

    # Ctrl-Z sends this signal, if a shell can continue what it stops.
    os.kill(child, signal.SIGTSTP)
    terminal.wait_for(lambda: states() == {"T"})

    os.kill(child, signal.SIGCONT)
    terminal.wait_for(lambda: "T" not in states())
    assert len(programs(tmp_path)) == 2


def test_the_lock_is_held_while_the_program_of_a_killed_process_works(terminal, tmp_path):
    """Otherwise a second process would begin the same work."""
    terminal.kill()
    lock = tmp_path / ".work.lock"
    assert locks.take(lock) is None
    for process in programs(tmp_path):
        os.kill(process, signal.SIGKILL)
    terminal.wait_for(lambda: locks.take(lock) is not None)
