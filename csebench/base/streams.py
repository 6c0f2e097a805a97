"""Standard streams that the caller has closed (`csebench methods >&-`).

This module runs before all others, so it imports nothing of the project. Printing is in
base/terminal.py, and the places that a command may write to are in base/outputs.py.
"""

import os
import sys


def open_closed_streams() -> None:
    """Let closed standard streams lead to /dev/null, before anything is printed or opened.

    Two things would go wrong otherwise. Python sets a closed stream to None, and printing to None
    fails. The next opened file would take the number of the closed stream, and the output of
    programs that this process starts would end up in that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            flags = os.O_RDONLY if name == "stdin" else os.O_WRONLY
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
