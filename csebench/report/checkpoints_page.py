"""The page of released checkpoints (`results/paper/checkpoints.md`): the authors' files, scored by this project.

Its runs: csebench/plan/checkpoints.py. What others got by training again: csebench/report/evidence_page.py.
"""

from __future__ import annotations

from csebench.plan import evidence, targets
from csebench.plan.catalog import STS_COLUMNS
from csebench.plan.checkpoints import COMMAND, LOCK, NAME, SCALE, locked
from csebench.plan.evidence import AVERAGE, Checkpoint
from csebench.report.evidence import SLACK, printed_by_authors
from csebench.report.evidence_words import as_list, encoder_title, method_title, signed, value_text
from csebench.report.markdown import made_sections, markdown_table
from csebench.report.view import Cell, grid_view

TOLERANCE = 0.02  # points: what precision and library versions change in an average
AS_RELEASED, DIFFERS = "as released", "protocol or file differs"
HEAD = ["method, encoder", "checkpoint", "commit", "pooler", "paper", "README", "ours", "difference", "verdict"]


def page() -> str:
    """The whole page as Markdown."""
    view = grid_view(NAME, NAME, SCALE)
    rows = list(zip(evidence.checkpoints(), view.rows, strict=True))
    scored = [(checkpoint, cells) for checkpoint, cells in rows if cells[-1].values]
    verdicts = [verdict(checkpoint, cells[-1]) for checkpoint, cells in scored]
    parts = [
        "# Released checkpoints, scored again",
        "**Nothing on this page is a training run.** A row is a model that the authors of a method released, scored on"
        " the seven STS test sets by the protocol of this project (Spearman x 100). Whether a new training gives the"
        " printed number is another question: [Does it reproduce?](../evidence.md)",
        f"{len(scored)} of {len(rows)} checkpoints are scored: {verdicts.count(AS_RELEASED)} {AS_RELEASED},"
        f" {verdicts.count(DIFFERS)} with another number. *{AS_RELEASED}*: ours is within {TOLERANCE} of the README's"
        " average, or of the paper's where the README has none. A larger difference comes from the protocol (pooler,"
        " tokenizer, copy of a test set) or from the file, not from training.",
    ]
    if not locked():
        parts.append(f"evidence/{LOCK} is empty: no commit has been looked up yet. `{COMMAND}` does it.")
    if scored:
        labels = [column for column in STS_COLUMNS if column != AVERAGE]
        parts += [
            markdown_table(HEAD, [summary_row(checkpoint, cells[-1]) for checkpoint, cells in scored]),
            "## Test set by test set",
            markdown_table(
                ["checkpoint", *labels],
                [[checkpoint.hub, *(cell.text for cell in cells[:-1])] for checkpoint, cells in scored],
            ),
        ]
    missing: dict[str, list[str]] = {}
    for checkpoint, cells in rows:
        if not cells[-1].values:
            missing.setdefault(missing_reason(cells[-1]), []).append(checkpoint.hub)
    if missing:
        parts += ["## Not scored", as_list([f"{', '.join(hubs)}: {reason}." for reason, hubs in missing.items()])]
    parts += made_sections(targets.page(NAME, SCALE))
    return "\n\n".join(parts) + "\n"


def missing_reason(average: Cell) -> str:
    """Why a checkpoint has no score: it is not scored at all, or its run or its evaluation failed."""
    reason = average.plan.missing or "; ".join(average.reasons) or "no score yet"
    return reason.rstrip(".")


def summary_row(checkpoint: Checkpoint, average: Cell) -> list[str]:
    """A checkpoint's printed, stated and scored averages."""
    entry, printed = locked()[checkpoint.hub], printed_average(checkpoint)
    stated, off = checkpoint.stated.get(AVERAGE), difference(checkpoint, average)
    return [
        f"{method_title(checkpoint)}{f' ({checkpoint.setting})' if checkpoint.setting else ''},"
        f" {encoder_title(checkpoint)}",
        f"[{checkpoint.hub}](https://huggingface.co/{checkpoint.hub})",
        f"`{(entry.commit or '')[:10]}` ({entry.date})",
        checkpoint.pooler or "",
        "–" if printed is None else value_text(printed),
        "–" if stated is None else value_text(stated),
        average.text,
        "" if off is None else signed(off),
        verdict(checkpoint, average),
    ]


def printed_average(checkpoint: Checkpoint):
    """The average that the method's paper prints; None for another setting of the method, or where it is not known."""
    printed = None if checkpoint.setting else printed_by_authors(evidence.key_of(checkpoint))
    return None if printed is None else printed.value


def difference(checkpoint: Checkpoint, average: Cell) -> float | None:
    """Our average minus the README's, else minus the paper's; None where neither has one."""
    reference = checkpoint.stated.get(AVERAGE) or printed_average(checkpoint)
    return None if reference is None else round(average.mean, average.digits) - reference.value


def verdict(checkpoint: Checkpoint, average: Cell) -> str:
    """Whether the file gives the number that was released with it; empty where none was."""
    off = difference(checkpoint, average)
    if off is None:
        return ""
    return AS_RELEASED if abs(off) <= TOLERANCE + SLACK else DIFFERS
