"""A command in a terminal, as a person starts and interrupts it."""

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
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            # which a test may ignore that a script or nohup started
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            os.execv(command[0], command)
        self.printed = ""
        self.code = None

    def type(self, keys):
        assert self.keyboard is not None, "it is closed"
        os.write(self.keyboard, keys.encode())

    def close(self):
        if self.keyboard is not None:
            os.close(self.keyboard)
            self.keyboard = None

    def read(self):
        """What was printed until now; waits a moment for more."""
        if self.keyboard is None or not select.select([self.keyboard], [], [], 0.05)[0]:
            return
        with contextlib.suppress(OSError):  # its end
            self.printed += os.read(self.keyboard, 65536).decode()

    def wait_for(self, condition):
        end = time.monotonic() + LONGEST
        while not condition():
            assert time.monotonic() < end, self.printed
            self.read()
            time.sleep(0.01)

    def has_ended(self):
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def kill(self):
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.close()
