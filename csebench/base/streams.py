"""Standard streams that the caller has closed (`csebench methods >&-`).

This runs before anything else, so it imports nothing of the project. What is printed, and where to:
base/terminal.py and base/outputs.py.
"""

import os
import sys


def open_closed_streams() -> None:
    """Let closed standard streams lead to /dev/null, before anything is printed or opened.

    Python sets a closed stream to None, and nothing can be printed to None. Also, the next file
    that is opened would take the number of the stream. Then the output of another program would end
    up in that file.
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
