"""Collect the results of `csebench try` as plain values, and word them.

The statistics and the sentence of a comparison come from csebench/report/.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

from csebench.base.runs import read_report
from csebench.base.terminal import counted
from csebench.plan import tuning
from csebench.plan.catalog import files as catalog
from csebench.score.store import stored_score
from csebench.study.attempt_paper import Attempt

if TYPE_CHECKING:
    from csebench.report.numbers.cells import GridView
    from csebench.report.numbers.compare import Comparison

MOST_SEEDS = 100  # seeds, or settings, that `csebench try` takes
OTHER_SCALE = (
    "More runs do not help, because this scale cannot tell such methods apart. Use --scale small,"
    " which trains small BERTs of the Hugging Face hub."
)
SAME_TRAINING = "Both have the same losses, bit for bit: what is new has no effect."


def results(attempt: Attempt) -> list[dict]:
    """Compare the rows of an attempt, and return the comparisons as plain values.

    Returns:
        The keys of `csebench compare --json`, with the page, the seconds of training on this
        machine, what to do next, and the command that repeats the attempt.
    """
    from csebench.report.csv_tables import comparison_record
    from csebench.report.numbers.cells import grid_view
    from csebench.report.numbers.compare import answers
    from csebench.report.words.comparisons import SMOKE
    from csebench.report.words.over_settings import settings_sentences

    seconds = training_seconds(attempt)
    command = command_of(attempt)
    is_smoke = attempt.scale == catalog.DEFAULT_SCALE
    records = []
    for page in attempt.pages:
        view = grid_view(attempt.paper, page.name, attempt.scale)
        for answer in answers(view):
            (comparison,) = answer.comparisons  # the paper of an attempt has one per question
            record = {"question": answer.family.question, **comparison_record(comparison)}
            if is_smoke:
                record["sentence"] = SMOKE
            record["over_settings"] = settings_record(comparison)
            record["settings_sentences"] = settings_sentences(comparison)
            record["page"] = str(page.path)
            record["training_seconds"] = seconds
            record["next"] = next_step(view, comparison)
            record["command"] = command
            records.append(record)
    return records


def settings_record(comparison: "Comparison") -> dict:
    """Describe a comparison over random settings; empty if it is none, or has no result."""
    over = comparison.over_settings
    if over is None:
        return {}
    record = {
        "settings": len(over.draws),
        "higher": over.higher,
        "diverged": over.diverged,
        "draws": [asdict(draw) for draw in over.draws],
    }
    if over.best is not None:
        low, high = over.best.estimate.interval()
        record["best_of"] = {
            "settings": over.best.settings,
            "gain": over.best.estimate.gain,
            "low": low,
            "high": high,
        }
    return record


def training_seconds(attempt: Attempt) -> float:
    """Add up the training time of the runs on this machine, also of the runs of searches."""
    runs = set()
    for name in attempt.searches():
        search = tuning.made_search(name, attempt.scale)
        if search is not None:
            for trial in search.trials:
                runs |= {run.run for run in trial.runs}
    for page in attempt.pages:
        runs |= {*page.runs()}
    reports = [read_report(catalog.RUNS / run) for run in runs]
    return sum(report["provenance"]["seconds"] for report in reports if report is not None)


def command_of(attempt: Attempt) -> str:
    """Word the command that repeats an attempt."""
    command = f"csebench try {attempt.unit}.py"
    if attempt.is_component:
        command += " --component"
    command += f" --against {','.join(attempt.against)}"
    command += f" --evaluators {','.join(attempt.evaluators)}"
    command += f" --scale {attempt.scale} --settings {attempt.settings}"
    if not attempt.has_random_settings:
        command += f" --seeds {attempt.seeds}"
    return command


def next_step(view: "GridView", comparison: "Comparison") -> str:
    """Say what to do after a comparison. Empty if there is nothing to say."""
    own_curves = training_curves(view, comparison.row)
    if own_curves and own_curves == training_curves(view, comparison.against):
        return SAME_TRAINING
    if view.scale == catalog.DEFAULT_SCALE:
        return ""
    return advice_on_runs(comparison)


def training_curves(view: "GridView", label: str) -> list:
    """Read the training curve of each scored run of a row: losses and scores on STS-B dev."""
    cell, *_ = view.rows[view.score_grid.row(label)]  # all cells of the row have the same runs
    curves = []
    for spec in cell.plan.specs:
        content, _ = stored_score(spec, cell.plan.evaluator, view.scale)
        curve = content["training"].get("curve") if content is not None else None
        if curve is not None:  # an untrained row has none
            curves.append(curve)
    return curves


def advice_on_runs(comparison: "Comparison") -> str:
    """Say whether more seeds, or settings, could make a difference of this size significant."""
    from csebench.report.numbers.power import seeds_needed
    from csebench.report.numbers.refusals import Relation
    from csebench.report.numbers.stats import LEVEL

    seen = comparison.estimate
    if seen is None:
        return ""
    if comparison.relation == Relation.CANNOT_TELL:
        return OTHER_SCALE
    if comparison.p is None:
        if seen.seeds > 1:
            return ""
        return "With more than one seed, chance can be excluded: --seeds 3."
    if comparison.differs:
        return "Give both rows the same settings first: what differs may be the reason."
    unit = "seed"
    if comparison.over_settings is not None:
        unit = "setting"
    needed = seeds_needed(abs(seen.gain), seen)
    is_shown = comparison.p_family is not None and comparison.p_family < LEVEL
    if is_shown or seen.gain == 0 or needed <= seen.seeds:
        return f"More {unit}s would change little; try another scale or other test sets."
    difference = f"a difference of {abs(seen.gain):.2f}"
    if needed == float("inf"):
        return f"More {unit}s cannot show {difference}: the test items alone vary too much."
    runs = f"about {needed:,.0f} {unit}s"
    if needed > MOST_SEEDS:
        return f"To show {difference} would take {runs}, which is out of reach."
    return f"To show {difference} would take {runs}: --{unit}s {needed:.0f}."


def comparison_lines(record: dict) -> list[str]:
    """Word the numbers, the cost and the next step of a comparison, for below its sentence."""
    lines = []
    if record["differs"]:
        lines.append(f"Besides what is compared, these settings differ: {record['differs']}.")
    if record["tuned_away"]:
        lines.append(f"A search found no effect of these terms: {record['tuned_away']}.")
    if record["settings_sentences"]:
        lines += record["settings_sentences"]
    elif record["gain"] != "":
        lines.append(difference_line(record))
    lines.append(f"Training took {record['training_seconds'] / 60:.1f} minutes here.")
    if record["next"]:
        lines.append(record["next"])
    lines.append(f"Page: {record['page']}")
    lines.append(f"Again: {record['command']}")
    return lines


def difference_line(record: dict) -> str:
    """Word the difference in points, with its interval and spreads if they are known."""
    line = f"Difference {record['gain']:+z.2f} points"
    if record["low"] != "":
        line += f", 95 % interval {record['low']:+z.2f} to {record['high']:+z.2f}"
    line += f"; {counted(record['seeds'], 'seed')}"
    spreads = []
    if record["seed_sd"] != "":
        spreads.append(f"deviation over seeds {record['seed_sd']:.2f}")
    if record["item_se"] != "":
        spreads.append(f"error of test items {record['item_se']:.2f}")
    if spreads:
        line += f" ({', '.join(spreads)})"
    return f"{line}."
