"""The verbs `report`, `push` and `import`: send one's own results, and take those of others.

csebench/study/ writes the source of evidence, and checks the scores of others. It takes time to
load, so functions import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from csebench.base.errors import RunFailed
from csebench.base.files import OWN_FOLDER_HINT
from csebench.base.outputs import check_output
from csebench.base.project import REPOSITORY
from csebench.base.terminal import counted, print_table, print_text
from csebench.cli.options import output_file, parse_targets
from csebench.plan.catalog import files as catalog
from csebench.plan.targets import scores_folder

if TYPE_CHECKING:
    from csebench.study.score_import import FoundScore, ImportState

# ---------------------------------------------------------------- report


def source_file(text: str) -> Path:
    """Check the path of a new source of evidence. The argparse type of --out."""
    from csebench.study.evidence_file import check_source_output

    path = output_file(text)
    check_source_output(path)
    return path


def report_runs(args):
    """Write the runs of targets as a source of evidence, and say how to send it."""
    from csebench.study import evidence_file

    place = evidence_file.place_of_link(args.url)
    author = {"who": args.who}
    if args.licence:
        author["licence"] = args.licence
    reported = evidence_file.collect_reported_runs(parse_targets(args.target, args.scale))
    content = evidence_file.source_content(author, place, reported)
    evidence_file.write_source(args.out, content)

    experiments = counted(len(content["experiments"]), "experiment")
    print_text(f"{args.out}: {experiments} with {counted(len(reported.runs), 'run')}.")
    if reported.left_out:
        print_text(f"Left out: {evidence_file.reasons_text(reported)}.")
    print_text(
        f"\nTo send it, open a pull request on {REPOSITORY} with this file in evidence/, or an"
        f" issue with its text ({REPOSITORY}/issues/new)."
    )


# ---------------------------------------------------------------- push


def push_run(args):
    """Say what would be sent of a run to the hub. With --yes, send it."""
    from csebench.sharing.push import plan_push, push

    plan = plan_push(args.run_id, args.scale, args.to, is_private=not args.public)
    visibility = "private" if plan.is_private else "public"
    sizes = plan.sizes()
    rows = [[name, f"{size:,}"] for name, size in sizes.items()]
    print_text(f"{plan.repository} ({visibility} if it is new) gets the model of {plan.run_id}:\n")
    print_table(["file", "bytes"], rows)
    print_text(f"\n{counted(len(sizes), 'file')}, {sum(sizes.values()):,} bytes.")
    if not args.yes:
        print_text("Nothing is sent. With --yes it is.")
        return
    print(f"Sent: {push(plan)}")


# ---------------------------------------------------------------- import


def import_scores(args):
    """Copy the score JSONs of another checkout that pass all checks, and list all of them.

    Raises:
        RunFailed: some files are refused. The others are copied.
    """
    from csebench.study import score_import
    from csebench.study.score_import import ImportState

    catalog.scale(args.scale)  # refuses an unknown scale
    check_output(scores_folder(args.scale), is_folder=True, remedy=OWN_FOLDER_HINT)
    paths = score_import.find_scores(args.folder, args.scale)
    found = score_import.examine_scores(paths, args.scale)
    if not args.dry_run:
        score_import.copy_scores(found)

    for score in found:
        line = f"{score.state:13}  {score.path.name}"
        if score.reason:
            line += f": {score.reason}"
        print_text(line)
    counts = [f"{count_state(found, state)} {state}" for state in ImportState]
    print_text(f"\n{counted(len(found), 'file')}: {', '.join(counts)}.")
    if args.dry_run:
        print_text("Nothing is copied (--dry-run).")
    refused = count_state(found, ImportState.REFUSED)
    if refused:
        raise RunFailed(f"import: {counted(refused, 'file')} refused; the reasons are above.")


def count_state(found: list[FoundScore], state: ImportState) -> int:
    """Count the files with one result of the checks."""
    return sum(score.state is state for score in found)
