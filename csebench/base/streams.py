"""Standard streams that the caller has closed (`csebench methods >&-`)."""

import os
import sys


def open_closed_streams() -> None:
    """Let closed standard streams lead to nowhere, before anything is printed or opened.

    Python sets a closed stream to None, which nothing can be printed to. And the next file that is
    opened would take its number, so that what another program prints would end up in that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            mode = os.O_RDONLY if number == 0 else os.O_WRONLY
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            direction = "r" if number == 0 else "w"
            setattr(sys, name, open(number, direction, closefd=False))  # noqa: SIM115
