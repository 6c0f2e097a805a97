"""The verb `export`, which writes claims, scores and pages in the formats of other tools."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from csebench.base.errors import BadInput
from csebench.base.extras import check_run_modules
from csebench.base.models import refuse_model_folder
from csebench.base.outputs import check_output, followed
from csebench.plan.catalog.files import DEFAULT_SCALE, RESULTS
from csebench.plan.targets import Page, parse_target

if TYPE_CHECKING:
    from csebench.sharing.score_files import SharedScores


def output_path(text: str) -> Path:
    """Keep the place of an output, and follow its links. The argparse type of `--out`.

    Whether it is a file or a folder depends on what is written.

    Raises:
        ArgumentTypeError: the path is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return followed(Path(text))


def export(args):
    """Write what the user named, and print the names of the files."""
    if args.what == "claims" and args.scores:
        raise BadInput("export claims: takes no score JSONs; it writes the claims of all papers.")
    if args.what not in ("claims", "ro-crate") and not args.scores:
        raise BadInput(f"export {args.what}: give the score JSONs to write, before --out.")
    match args.what:
        case "claims":
            export_claims(args.out)
        case "mteb":
            export_mteb(args.scores, args.out)
        case "model-index":
            export_model_index(args.scores, args.out)
        case "eval-results":
            export_eval_results(args.scores, args.out)
        case "ro-crate":
            export_ro_crate(args.scores, args.out)


def check_folder(out: Path) -> None:
    """Refuse a folder of outputs that cannot be written, or is in the folder of a model."""
    check_output(out, is_folder=True)
    refuse_model_folder(out.absolute())


def export_claims(out: Path) -> None:
    """Write the judged claims as a data set."""
    from csebench.report.claims_data import write_claims_data

    check_folder(out)
    files = write_claims_data(out)
    for file in files:
        print(file)
    missing = out / "claims.parquet"
    if missing not in files:
        print(f"{missing}: not written, because it needs pip install pyarrow.", file=sys.stderr)


def export_mteb(paths: list[Path], out: Path) -> None:
    """Write scores as a folder of results of mteb, and say which scores are left out."""
    from csebench.sharing.mteb_folder import write_mteb_results

    check_run_modules("export mteb")
    check_folder(out)
    selected = select_scores_of_mteb(paths)
    for file in write_mteb_results(selected.of_mteb, out):
        print(file)
    say_what_is_left_out(selected)


def export_eval_results(paths: list[Path], out: Path) -> None:
    """Write scores as the hub's results of a repository, and say which scores are left out."""
    from csebench.sharing.eval_results import write_eval_results

    check_run_modules("export eval-results")
    selected = select_scores_of_mteb(paths)
    for file in write_eval_results(selected.of_mteb, out):
        print(file)
    say_what_is_left_out(selected)


@dataclass(frozen=True)
class SelectedScores:
    """Scores, by whether mteb computed them."""

    of_mteb: "list[SharedScores]"
    of_others: "list[SharedScores]"


def select_scores_of_mteb(paths: list[Path]) -> SelectedScores:
    """Read score JSONs, and select the scores that mteb computed.

    Raises:
        BadInput: a file has no such score.
    """
    from csebench.sharing.mteb_folder import MTEB, WHY_OTHERS_ARE_NO_RESULTS
    from csebench.sharing.score_files import read_shared_scores

    all_of_mteb: list[SharedScores] = []
    all_of_others: list[SharedScores] = []
    for path in paths:
        of_mteb = []
        of_others = []
        for scores in read_shared_scores(path):
            if scores.evaluator.declaration.name == MTEB:
                of_mteb.append(scores)
            else:
                of_others.append(scores)
        if not of_mteb:
            raise BadInput(
                f"{path}: scored by {of_others[-1].evaluator.text}: {WHY_OTHERS_ARE_NO_RESULTS}."
                " Evaluate the model with mteb:TASK."
            )
        all_of_mteb += of_mteb
        all_of_others += of_others
    return SelectedScores(all_of_mteb, all_of_others)


def say_what_is_left_out(selected: SelectedScores) -> None:
    """Say on stderr which scores of a file are no results of mteb."""
    from csebench.sharing.mteb_folder import WHY_OTHERS_ARE_NO_RESULTS

    for scores in selected.of_others:
        print(
            f"{scores.path}: {scores.evaluator.text} is left out: {WHY_OTHERS_ARE_NO_RESULTS}.",
            file=sys.stderr,
        )


def export_model_index(paths: list[Path], out: Path) -> None:
    """Write scores of a model into its card."""
    from csebench.sharing.model_index import write_model_index
    from csebench.sharing.score_files import read_shared_scores

    all_scores: list[SharedScores] = []
    for path in paths:
        all_scores += read_shared_scores(path)
    write_model_index(all_scores, out)
    print(out)


def export_ro_crate(names: list[Path], out: Path) -> None:
    """Write a page, with its cells and scores, as an RO-Crate.

    Args:
        names: the path of one page below results/. It need not exist.
    """
    from csebench.sharing.ro_crate import write_ro_crate

    pages: list[Page] = []
    for name in names:
        if name.suffix == ".md" and name.is_relative_to(RESULTS):
            pages += parse_target(str(name), DEFAULT_SCALE)
    if len(names) != 1 or len(pages) != 1:
        raise BadInput(
            "export ro-crate: give the path of one page, such as results/mini/micse/table2.md."
        )
    for file in write_ro_crate(pages[0], out):
        print(file)
