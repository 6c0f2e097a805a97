"""`csebench`: every step of the harness as a verb, usable without Snakemake. Here are the command
and its exit codes; the verbs are in verbs.py, and what each does in the module of its group. A
command works in a child process, which only the command itself can end with 0
(csebench/base/supervision.py).

Exit codes: 0 done; 1 a run failed; 2 bad input, with one clear message and nothing written; 130
interrupted (Ctrl-C); 141 the reader of a pipe went away, as `head` does.
"""

import argparse
import contextlib
import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from csebench.base.streams import open_closed_streams
from csebench.base.supervision import supervised


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; that of the command line in a child process, which
    is watched."""
    open_closed_streams()
    if argv is None and is_supervised():
        return supervised(partial(run_command, argv))
    return run_command(argv)


def is_supervised() -> bool:
    """Whether a command is watched: on Linux, and not where a shell asks it for completions."""
    return sys.platform == "linux" and "_ARGCOMPLETE" not in os.environ


def run_command(argv: list[str] | None) -> int:
    """Run a command in this process; returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # characters that a terminal lacks, as stderr does by itself
        sys.stdout.reconfigure(errors="replace")
    # importing torch makes 640,000 objects and frees none; collecting them is wasted time
    gc.set_threshold(1_000_000)
    try:
        with noted_interrupts() as received:
            return run_verb(argv)
    except KeyboardInterrupt as error:
        if not received:
            print(f"csebench: {raised_by_code(error)}", file=sys.stderr)
            return 1
        print("csebench: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # what Python still has to write at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SystemExit as end:  # of argparse, which printed help or the version
        return int(end.code or 0)


@contextlib.contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """The interrupts that this process has received: code of a method may raise a
    KeyboardInterrupt, too."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.default_int_handler(number, frame)

    # it is ignored, or another's
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield received
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def raised_by_code(error: BaseException) -> str:
    """The message of a run that ended by what is no error in Python, as by SystemExit."""
    from csebench.base.errors import place

    return f"{place(error)}: ends the process ({type(error).__name__}); raise an error instead."


def run_verb(argv: list[str] | None) -> int:
    """Run a verb, and turn its errors into a message and an exit code.

    What a verb needs is imported here, so that Ctrl-C is caught while it loads, too.
    """
    from csebench.base.errors import BadInput, RunFailed
    from csebench.base.shown import visible_lines

    try:
        do_verb(sys.argv[1:] if argv is None else argv)
    except (BadInput, RunFailed) as error:
        print(f"csebench: {visible_lines(str(error))}", file=sys.stderr)
        return exit_code(error)
    except OSError as error:
        # a full or read-only disk, a folder of another user: nothing that code can mend
        if error.strerror is None or isinstance(error, BrokenPipeError):
            raise
        print(f"csebench: {system_message(error)}", file=sys.stderr)
        has_impossible_name = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
        return 2 if has_impossible_name else 1
    return 0


def do_verb(words: list[str]) -> None:
    """Parse the words of a command line, and do what they say."""
    from csebench.base.errors import BadInput, RunFailed
    from csebench.base.shown import visible_lines
    from csebench.plan import targets

    for word in words:
        # the JSON of results has the command line
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise BadInput(f"{word!r}: not UTF-8; rename the file.")
    args = parse(words)
    if getattr(args, "device", None) == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported
    try:
        args.run(args)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        # of a method or evaluator: with exit code 0 it would pass for a finished run
        raise RunFailed(raised_by_code(error)) from None
    sys.stdout.flush()
    if "all" in getattr(args, "target", ()):
        for broken in targets.left_out(args.scale):
            print(f"csebench: left out: {visible_lines(broken)}", file=sys.stderr)


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with an error of the project."""
    from csebench.base.errors import BadInput, Stopped

    if isinstance(error, Stopped) and error.interrupted:
        return 130
    return 2 if isinstance(error, BadInput) else 1


def system_message(error: OSError) -> str:
    """Word an error of the system, with the notes on it: the run, and whether it can be resumed."""
    from csebench.base.errors import shortened
    from csebench.base.shown import visible

    file = shortened(str(error.filename or "a file"))
    notes = " ".join(getattr(error, "__notes__", ()))
    return visible(f"{file}: {error.strerror}. {notes}".rstrip())


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The arguments of a verb, in the folder that results are written to: the last one that
    joins the project. Paths among the arguments are those of the folder before."""
    from csebench.base.errors import BadInput
    from csebench.base.hub import names_commit
    from csebench.base.project import ROOT, VARIABLE, folders, join

    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--project", action="append", default=[])
    known, rest = first.parse_known_args(argv)
    joined = known.project or [*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))]
    if missing := [name for name in joined if not Path(name).is_dir()]:
        given = "--project" if known.project else VARIABLE
        raise BadInput(
            f"{given}: {missing[0]}: no such folder; `csebench init {missing[0]}` makes it."
        )
    if known.project:
        join(known.project)
    from csebench.cli.verbs import parser  # what it offers depends on the folders

    args = parser().parse_args(rest)
    if (folder := folders()[-1]) not in (ROOT, Path.cwd()):
        for key, value in vars(args).items():
            may_be_file = key in ("encoder", "model", "spec") and value and not names_commit(value)
            if isinstance(value, Path) or (may_be_file and Path(value).exists()):
                setattr(args, key, type(value)(Path(value).absolute()))
        os.chdir(folder)
    return args
