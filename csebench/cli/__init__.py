"""The command `csebench`: parse a command line, run its verb, and choose the exit code.

The verbs are declared in verbs.py, and each does its work in the module of its group. A command
line runs in a watched child process, so that the exit code is 0 only if the command itself finished
(csebench/base/supervision.py).

Exit codes:
    0: done
    1: a run failed
    2: bad input, with one clear message and nothing written
    130: interrupted (Ctrl-C)
    141: the reader of a pipe went away, as `head` does
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
    """Run a command and return its exit code.

    Args:
        argv: the words after `csebench`. None means the command line, which is run in a watched
            child process.
    """
    open_closed_streams()
    if argv is not None or not is_supervised():
        return run_command(argv)
    code = None
    if "CSEBENCH_JOB_SERVER" in os.environ:  # else the import would be in vain
        from csebench.base.job_server import run_in_fork

        code = run_in_fork()
    if code is None:
        code = supervised(partial(run_command, None))
    return code


def is_supervised() -> bool:
    """Whether a command line is watched: on Linux, unless a shell asks for completions."""
    return sys.platform == "linux" and "_ARGCOMPLETE" not in os.environ


def run_command(argv: list[str] | None) -> int:
    """Run a command in this process, and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # replace characters that a terminal lacks; stderr does so by itself
        sys.stdout.reconfigure(errors="replace")
    # importing torch makes 640,000 objects and frees none; collecting them is wasted time
    gc.set_threshold(1_000_000)
    try:
        with noted_interrupts() as received:
            return run_and_report_errors(argv)
    except KeyboardInterrupt as error:
        if not received:
            print(f"csebench: {raised_by_code(error)}", file=sys.stderr)
            return 1
        print("csebench: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # discard what Python still writes when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SystemExit as end:  # of argparse, which printed help or the version
        return int(end.code or 0)


@contextlib.contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Collect the interrupts (Ctrl-C) that this process receives.

    The code of a method can raise KeyboardInterrupt, too. Then the list is empty.
    """
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield received  # the signal is ignored, or somebody else handles it
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def raised_by_code(error: BaseException) -> str:
    """Word the message for code that ends the process by an exception such as SystemExit."""
    from csebench.base.errors import place

    return f"{place(error)}: ends the process ({type(error).__name__}); raise an error instead."


def run_and_report_errors(argv: list[str] | None) -> int:
    """Run a verb, and turn its errors into a message and an exit code.

    Imports are inside the function, so that Ctrl-C is caught while they load, too.
    """
    from csebench.base.errors import BadInput, RunFailed
    from csebench.base.shown import visible_lines

    if argv is None:
        argv = sys.argv[1:]
    try:
        parse_and_run(argv)
    except (BadInput, RunFailed) as error:
        print(f"csebench: {visible_lines(str(error))}", file=sys.stderr)
        return exit_code(error)
    except OSError as error:
        # such as a full disk, or a folder of another user: the code is not at fault
        if error.strerror is None or isinstance(error, BrokenPipeError):
            raise
        print(f"csebench: {system_message(error)}", file=sys.stderr)
        has_impossible_name = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
        return 2 if has_impossible_name else 1
    return 0


def parse_and_run(words: list[str]) -> None:
    """Parse the words of a command line, and run the verb."""
    from csebench.base.errors import BadInput, RunFailed
    from csebench.base.extras import check_run_modules
    from csebench.base.shown import visible_lines
    from csebench.plan import targets

    for word in words:
        # Python reads bytes that are not UTF-8 as surrogates; the JSON of results cannot state them
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise BadInput(f"{word!r}: not UTF-8; rename the file.")
    args = parse(words)
    if args.runs_models:
        check_run_modules(args.verb)
    if getattr(args, "device", None) == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported
    try:
        args.run(args)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        # code of a method ends the process: with exit code 0, the run would pass for finished
        raise RunFailed(raised_by_code(error)) from None
    sys.stdout.flush()
    target = getattr(args, "target", [])
    if target == "all" or (isinstance(target, list) and "all" in target):
        for broken in targets.left_out(args.scale):
            print(f"csebench: left out: {visible_lines(broken)}", file=sys.stderr)


def exit_code(error: Exception) -> int:
    """Choose the exit code of a command that ends with an error of the project."""
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


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse the arguments of a verb, and change to the folder that results are written to.

    Results go to the last folder that joins the project. Before the change, paths among the
    arguments become absolute, because the user meant them from the current folder.
    """
    from csebench.base.project import ROOT, folders

    rest = join_folders(argv)
    from csebench.cli.verbs import parser  # after joining: what it offers depends on the folders

    args = parser().parse_args(rest)
    results_folder = folders()[-1]
    if results_folder not in (ROOT, Path.cwd()):
        make_paths_absolute(args)
        os.chdir(results_folder)
    return args


def join_folders(argv: list[str]) -> list[str]:
    """Join the folders of --project to the project, and return the other words.

    Raises:
        BadInput: a folder of --project, or of the environment variable, does not exist.
    """
    from csebench.base.errors import BadInput
    from csebench.base.project import VARIABLE, join

    only_project = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only_project.add_argument("--project", action="append", default=[])
    options, rest = only_project.parse_known_args(argv)
    source = "--project"
    names = options.project
    if not names:
        source = VARIABLE
        names = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    for name in names:
        if not Path(name).is_dir():
            raise BadInput(f"{source}: {name}: no such folder; `csebench init {name}` makes it.")
    if names:
        join(names)  # absolute paths, because the current folder changes later
    return rest


def make_paths_absolute(args: argparse.Namespace) -> None:
    """Make paths among the arguments absolute, and names for which there is a file or folder."""
    for key, value in vars(args).items():
        if isinstance(value, Path):
            setattr(args, key, value.absolute())
        # for ro-crate, `scores` names a page below results/, and no file of the current folder
        elif key == "scores" and args.what != "ro-crate":
            setattr(args, key, [path.absolute() for path in value])
        elif key == "translators":
            names = [absolute_if_there(name) for name in value.split()]
            setattr(args, key, " ".join(names))
        elif key in ("encoder", "model", "spec") and value:
            setattr(args, key, absolute_if_there(value))


def absolute_if_there(name: str) -> str:
    """Make a name absolute if there is a file or folder of it."""
    from csebench.base.hub import names_commit

    if names_commit(name) or not names_a_file(name):
        return name
    return str(Path(name).absolute())


def names_a_file(name: str) -> bool:
    """Whether there is a file or folder of a name. A spec as JSON text is too long for a name."""
    try:
        return Path(name).exists()
    except OSError:
        return False
