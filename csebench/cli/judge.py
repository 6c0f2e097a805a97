"""The verb that judges any two or more systems."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from csebench.base.errors import RunFailed, unknown
from csebench.base.terminal import json_text, print_table, print_text
from csebench.cli.options import output_file
from csebench.cli.train_options import data_root_or_default
from csebench.judging.arguments import SystemArgument, sources_of_arguments
from csebench.plan.catalog.registry import distinct_names
from csebench.report.numbers.verdict_words import VerdictWord

if TYPE_CHECKING:
    from csebench.judging.comparison import JudgedComparisons

# "cannot tell" is about a scale of this project
JUDGED_WORDS = [word for word in VerdictWord if word != VerdictWord.CANNOT_TELL]


def system_argument(text: str) -> SystemArgument:
    """Keep the folder in which a system was named. The argparse type of systems."""
    return SystemArgument(text, Path.cwd())


def svg_file(text: str) -> Path:
    """Check the file of the picture. The argparse type of --figure.

    Raises:
        ArgumentTypeError: the name does not end in .svg.
    """
    path = output_file(text)
    if path.suffix != ".svg":
        raise argparse.ArgumentTypeError(f"{text}: must end in .svg")
    return path


def verdict_words(text: str) -> list[VerdictWord]:
    """Read verdicts that are separated by commas. The argparse type of --fail-if.

    Raises:
        BadInput: there is no such verdict.
    """
    words = []
    for name in text.split(","):
        if name not in JUDGED_WORDS:
            raise unknown("verdict", name, JUDGED_WORDS, "--fail-if")
        words.append(VerdictWord(name))
    return words


def print_judgement(args):
    """Judge systems, print what is shown, and fail if the first one has a verdict of --fail-if."""
    from csebench.judging.comparison import judge_systems
    from csebench.judging.systems import ReadingOptions, read_systems

    sources = sources_of_arguments(args.systems)
    options = ReadingOptions(
        evaluators=distinct_names(args.evaluators),
        data_root=data_root_or_default(args.data),
        metric=args.metric,
    )
    judged = judge_systems(read_systems(sources, options), args.within)
    if args.figure is not None:
        from csebench.judging.figure import draw_judgement

        if not draw_judgement(judged, args.figure):
            print(
                "csebench: --figure: none of its differences is tested, so it is not drawn.",
                file=sys.stderr,
            )
    if args.json:
        from csebench.judging.words import judgement_content

        print(json_text(judgement_content(judged)))
    else:
        show_judgement(judged)
    refuse_verdicts(judged, args.fail_if)


def show_judgement(judged: "JudgedComparisons") -> None:
    """Print the sentence, the table and the notes."""
    from csebench.judging.words import judgement_in_words

    words = judgement_in_words(judged)
    print_text(f"{words.sentence}\n")
    print_table(words.head, words.rows)
    print_text("\n" + "\n".join(words.notes))


def refuse_verdicts(judged: "JudgedComparisons", refused: list[VerdictWord]) -> None:
    """Fail if the first system has one of these verdicts against any other system.

    Raises:
        RunFailed: it has one, so that the exit code is 1.
    """
    from csebench.judging.words import as_seen_from, verdict_with_interval

    first, *others = judged.compared.systems
    for other in others:
        comparison = as_seen_from(first.name, judged.pair(first.name, other.name))
        if comparison.relation.word in refused:
            text = verdict_with_interval(comparison)
            raise RunFailed(f"judge: --fail-if: {first.name} against {other.name}: {text}.")
