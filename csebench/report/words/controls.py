"""Words for the controls of a scale, on its first page and in `csebench try`."""

from csebench.plan.catalog.files import paper
from csebench.plan.schema.declarations import Control, Training
from csebench.plan.targets import grid_label
from csebench.report.numbers.controls import ControlResult, controls_for, why_not_judged
from csebench.report.numbers.rank_agreement import RankAgreement
from csebench.report.words.comparisons import HOW_TRAINED, cannot_tell_text

CONTROL_HEAD = ["control", "in print", "here", "95 % interval", "needed (points)", "holds"]


def control_row(result: ControlResult) -> list[str]:
    """Write the row of a control, with a cell for each of CONTROL_HEAD."""
    control = result.control
    printed = "–"
    if result.printed is not None:
        printed = f"{result.printed:+.2f} ({places_text(control)})"
    needed = f"above {control.least:g}"
    if result.estimate is None:
        return [control.name, printed, "–", "–", needed, "not scored yet"]
    low, high = result.estimate.interval()
    holds = "yes" if result.holds else "**no**"
    interval = f"{low:+.2f} to {high:+.2f}"
    return [control.name, printed, f"{result.estimate.gain:+.2f}", interval, needed, holds]


def places_text(control: Control) -> str:
    """Name the tables of a control: `InfoCSE Table 2`, or `MSSE Table 3, InfoCSE Table 2`."""
    texts = []
    for table in (control.table, control.against_table or control.table):
        paper_name, _, name = table.partition("/")
        source = paper(paper_name)
        texts.append(f"{source.label or source.reference} {grid_label(name)}")
    return ", ".join(dict.fromkeys(texts))


def consequence_text(scale: str) -> str:
    """Say which kinds of methods get verdicts at a scale."""
    sentences = []
    for training, how in HOW_TRAINED.items():
        doubt = scale_doubt(training, scale, "**No verdict: {reason}.**")
        sentences.append(doubt or f"Methods trained {how} are judged.")
    return " ".join(sentences)


def scale_doubt(training: Training, scale: str, no_verdict: str) -> str:
    """Say that a scale does not tell methods of a kind apart, or that this is not known yet.

    Args:
        no_verdict: the sentence for a scale whose controls fail. `{reason}` stands for
            `scale mini does not tell methods trained without labels apart (2 of …)`.

    Returns:
        An empty text if all controls for these methods are scored and none fails.
    """
    reason = why_not_judged(training, scale)
    if reason is not None:
        return no_verdict.format(reason=cannot_tell_text(reason))
    controls = controls_for(training, scale)
    scored = [control for control in controls if control.holds is not None]
    if len(scored) == len(controls):
        return ""
    text = f"Whether scale {scale} tells methods trained {HOW_TRAINED[training]} apart is not known"
    if not scored:
        return f"{text} yet: no control for them has scores."
    return f"{text} yet: only {len(scored)} of {len(controls)} controls for them have scores."


def agreement_text(agreement: RankAgreement) -> str:
    """Word the rank correlation between the differences of a scale and the printed ones."""
    return (
        "Do differences between methods trained without labels resemble the printed ones? Over"
        f" {agreement.differences} comparisons in {agreement.tables} tables, the rank correlation"
        f" of our differences and the printed ones is {agreement.correlation:+z.2f} (95 %"
        f" {agreement.low:+z.2f} to {agreement.high:+z.2f}, by resampling tables)."
    )
