"""`csebench`: every step of the harness as a verb, usable without Snakemake.

The command and its exit codes; the verbs are in verbs.py, and what each does in the module of its group.

Exit codes: 0 done; 1 a run failed; 2 bad input, with one clear message and nothing written; 130 interrupted (Ctrl-C);
141 the reader of a pipe went away, as `head` does.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys


def main(argv: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # characters that a terminal lacks, as stderr does by itself
    gc.set_threshold(1_000_000)  # importing torch makes 640,000 objects and frees none; collecting them is wasted time
    try:
        return run_verb(argv)
    except KeyboardInterrupt:
        print("csebench: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what Python still has to write at its end
        return 141


def run_verb(argv: list[str] | None) -> int:
    """Imports here, so that Ctrl-C while they load is caught, too."""
    from csebench.base.errors import BadInput, RunFailed, Stopped, place, shortened
    from csebench.cli.verbs import parser
    from csebench.plan import catalog, targets

    try:
        for word in sys.argv[1:] if argv is None else argv:
            if any("\ud800" <= letter <= "\udfff" for letter in word):  # the JSON of results has the command line
                raise BadInput(f"{word!r}: not UTF-8; rename the file.")
        args = parser().parse_args(argv)
        catalog.require_checkout()
        try:
            args.run(args)
        except SystemExit as e:  # of a method or evaluator: with exit code 0 it would pass for a finished run
            raise RunFailed(f"{place(e)}: ends the process (exit); raise an error instead.") from None
        sys.stdout.flush()
        if "all" in getattr(args, "target", ()):
            for broken in targets.left_out(args.scale):
                print(f"csebench: left out: {broken}", file=sys.stderr)
    except BadInput as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 2
    except RunFailed as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 130 if isinstance(e, Stopped) and e.interrupted else 1
    except BrokenPipeError:
        raise
    except OSError as e:  # a full or read-only disk, a folder of another user: nothing that code can mend
        if e.strerror is None:
            raise
        notes = " ".join(getattr(e, "__notes__", ()))  # the run, and whether it can be resumed
        print(f"csebench: {shortened(str(e.filename or 'a file'))}: {e.strerror}. {notes}".rstrip(), file=sys.stderr)
        return 2 if e.errno in (errno.ENAMETOOLONG, errno.ELOOP) else 1  # a name that no file can have
    return 0
