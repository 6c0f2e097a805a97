"""Losses when processes are killed, disks are full or read-only, and runs have two workers.

A tiny project is disturbed at every stage, by a schedule that a seed decides. Then the same command
resumes it under other load. In the end, all of its files are compared with an undisturbed project
(tests/chaos/killer.py). Printed: kills of csebench, of jobs and of Snakemake; losses; files with
other bits. The exit code is 1 if anything was lost, or a file has other bits.

    python benchmarks/chaos.py --minutes 30 [--seed 0] [--quick]
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tabulate import tabulate

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[0] = str(TESTS.parent)  # else benchmarks/methods.py would shadow the package `methods`
sys.path += [str(TESTS), str(TESTS / "chaos")]

from killer import STAGES, TRAINING, Chaos  # noqa: E402

from csebench.base.terminal import bar  # noqa: E402


def acts(chaos):
    """Yield disturbances of the project, endlessly."""
    disks = [()]
    if chaos.mounted:
        disks += [("full",), ("read-only",)]

    def disturbance(stage):
        return partial(chaos.disturb, stage, chaos.random.randint(2, 6), chaos.random.choice(disks))

    while True:
        for stage in STAGES:
            yield disturbance(stage)
        yield chaos.two_workers
        yield disturbance(TRAINING)
        yield partial(chaos.snakemake, chaos.random.randint(3, 6))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the first stage, killed once")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(Path(folder) / "chaos", args.seed)
        end = time.monotonic() + 60 * args.minutes
        planned = [partial(chaos.disturb, TRAINING)] if args.quick else acts(chaos)
        try:
            with bar(planned, "disturbing", "act") as progress:
                for act in progress:
                    act()
                    counts = (
                        f"{chaos.kills.total()} kills, {len(chaos.losses)} losses,"
                        f" {len(chaos.unequal)} unequal"
                    )
                    progress.set_postfix_str(counts)
                    if time.monotonic() > end:
                        break
        except KeyboardInterrupt:
            print("stopped before its time")
        finally:
            chaos.close()
    print(tabulate(sorted((chaos.kills + chaos.events).items()), ["what", "times"]))
    print(f"seed {args.seed}: {chaos.kills.total()} kills")
    print(f"losses: {len(chaos.losses)}", *chaos.losses, sep="\n  ")
    print(f"files with other bits: {len(chaos.unequal)}", *chaos.unequal, sep="\n  ")
    sys.exit(bool(chaos.losses or chaos.unequal))


if __name__ == "__main__":
    main()
