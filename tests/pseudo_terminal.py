"""A command in a terminal, which a test starts, reads and interrupts as a person does."""

import contextlib
import os
import pty
import select
import signal
import time

from csebench.base.project import ROOT

LONGEST = 240  # seconds that something may take on a machine with other work


class Terminal:
    """A command in a pseudo-terminal, which is its controlling terminal."""

    def __init__(self, command, folder=ROOT):
        self.printed = ""  # what was read so far
        self.code = None  # exit code; None while the command runs
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            # a script or nohup that started the test may have made it ignore these
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            os.execv(command[0], command)

    def type(self, keys):
        """Press keys, such as "\\x03" for Ctrl-C."""
        assert self.keyboard is not None, "the terminal is closed"
        os.write(self.keyboard, keys.encode())

    def wait_for(self, condition):
        """Read what the command prints until `condition()` is true."""
        end = time.monotonic() + LONGEST
        while not condition():
            assert time.monotonic() < end, self.printed
            self.read()
            time.sleep(0.01)

    def read(self):
        """Add what the command has printed to `printed`; wait a moment if there is nothing."""
        if self.keyboard is None:
            return
        readable, _, _ = select.select([self.keyboard], [], [], 0.05)
        if not readable:
            return
        with contextlib.suppress(OSError):  # the command has ended
            self.printed += os.read(self.keyboard, 65536).decode()

    def has_ended(self):
        """Whether the command has ended; then `code` is its exit code."""
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def close(self):
        """Close the terminal, as a person closes its window."""
        if self.keyboard is not None:
            os.close(self.keyboard)
            self.keyboard = None

    def kill(self):
        """Kill the command if it still runs, and close the terminal."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
        self.close()
