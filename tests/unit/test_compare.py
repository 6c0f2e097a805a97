"""Comparisons of rows: the test items that a score is computed from, and a made-up project whose
score files are compared."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import scipy.stats
from made_up import SCALE, clear, made_up, table
from score_files import edit_score_file, write_scores

from csebench.base.project import ROOT
from csebench.data.sts import read_sts
from csebench.model.metrics import mean_scores
from csebench.plan import grids, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import evaluator_declaration
from csebench.plan.schema.paper import Family, Premise
from csebench.report.numbers import compare, estimates
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.claims import Seen, judge_all
from csebench.report.numbers.refusals import Relation
from csebench.report.words.claims import here_text
from csebench.report.words.comparisons import reason_text
from csebench.score.replicates import read_replicates
from csebench.score.score_types import sample, sentence_ids

SMOKE = ROOT / "data" / "smoke"
STS = [task for task in catalog.STS_COLUMNS if task != "Avg."]
ROWS = {
    "Good": "simcse",
    "As good": "mirror_bert",
    "Bad": "ct",
    "Untrained": "bert",
    "Chance": "random",
}


# ---------------------------------------------------------------- items of a score


ITEMS_AS_LISTS = {
    "STS12/a": [1, 2],
    "STS12/b": [3],
    "gold/STS12/a": [4, 5],
    "gold/STS12/b": [6],
    "sentences/STS12/a": [[1, 2], [2, 3]],
    "sentences/STS12/b": [[4, 5]],
    "STS1/a": [7],
    "MR": [8],
    "sentences/MR": [[1]],
    "CR": [1],
    "recall@1": [0, 1],
    "x/recall@1": [9, 9, 9, 9],
    "x/y/recall@1": [9],
}
ITEMS = {name: np.array(values) for name, values in ITEMS_AS_LISTS.items()}


def test_a_rank_correlation_concatenates_its_items():
    items = sample(ITEMS, evaluator_declaration("sts").items, "STS12", "spearman")
    assert items.values.tolist() == [1, 2, 3]
    assert items.gold.tolist() == [4, 5, 6]
    assert items.sentences.tolist() == [[1, 2], [2, 3], [4, 5]]


def test_a_mean_weighs_arrays_the_same():
    """The arrays are forums of 2, 4 and 1 queries."""
    items = sample(ITEMS, evaluator_declaration("beir").items, "any", "recall@1")
    assert len(items.values) == 7
    assert items.values.mean() == pytest.approx((0.5 + 9 + 9) / 3)


@pytest.mark.parametrize(
    ("evaluator", "task", "metric"),
    [
        ("transfer", "MR", "f1"),  # f1 is no mean over sentences
        ("transfer", "CR", "accuracy"),  # an older version kept no ids of sentences
        ("sts", "STS1", "spearman"),  # there are no gold values
    ],
)
def test_a_score_that_its_items_do_not_make_has_none(evaluator, task, metric):
    assert sample(ITEMS, evaluator_declaration(evaluator).items, task, metric) is None


# ---------------------------------------------------------------- from score files to comparisons


def columns(*tasks, **settings):
    """Declare a column for each task, with the same settings."""
    return [{"label": task, "task": task, **settings} for task in tasks]


def rows_of(methods, columns, **settings):
    """Declare a table that prints no value, with a row for each method.

    Args:
        methods: {label of the row: method}.
        settings: further keys of the table.
    """
    nothing_printed = [None] * len(columns)
    rows = {label: (method, nothing_printed) for label, method in methods.items()}
    return table(rows, columns, **settings)


PAPER = {
    "name": "made_up",
    "tables": {
        "1": rows_of(
            ROWS,
            columns("STS12", "Avg."),
            compare=[
                {"question": "Which differ from the good one?", "rows": [["others", "Good"]]},
                {"question": "Is it better?", "primary": True, "rows": [["Good", "Bad"]]},
            ],
        ),
        "2": rows_of(
            {"A": "simcse", "B": "ct"},
            [*columns("MR", "CR", size="1%"), {"label": "mean", "mean": True}],
            evaluator="transfer",
        ),
        "3": rows_of(dict.fromkeys(("Good", "Again", "Batch 32"), "simcse"), columns("Avg.")),
    },
}
PAPER["tables"]["3"]["rows"][2]["run"]["params"] = {"batch_size": 32}


@pytest.fixture
def project(tmp_path, monkeypatch):
    made_up(tmp_path, monkeypatch, PAPER)
    yield
    clear()


def specs(number, label):
    """Plan the runs of a row's first cell, one for each seed."""
    name = f"table{number}"
    row = grids.find_grid("made_up", name).row(label)
    return grids.plan_grid("made_up", name, SCALE)[row][0].specs


def publish(spec, evaluator, values, items):
    """Write the scores of a run, with the replicates that its items give.

    Args:
        values: {(task, metric): value}.
    """
    scores = [(task, metric, value) for (task, metric), value in values.items()]
    write_scores(spec, evaluator, SCALE, scores, items=items, replicates=True)


def edit(label, change, runs=slice(None)):
    """Change the published scores of some runs of a row of Table 1."""
    for spec in specs(1, label)[runs]:
        edit_score_file(targets.score_path(spec.run_id, "sts", SCALE), change)


def write_sts(spec, noise, seed):
    """Write cosines that follow the gold scores, and the scores that they give.

    Returns:
        The average over the test sets, in percent.
    """
    rng = np.random.default_rng(seed)
    items = {}
    values = {}
    for task in STS:
        subsets = read_sts(SMOKE, task)
        cosines = {}
        for pairs in subsets:
            near_gold = pairs.gold / 5 + rng.normal(0, noise, len(pairs))
            cosines[f"{task}/{pairs.subset}"] = near_gold.astype(np.float32)
            items[f"gold/{task}/{pairs.subset}"] = pairs.gold
            items[f"sentences/{task}/{pairs.subset}"] = sentence_ids(pairs.left, pairs.right)
        items |= cosines

        all_cosines = np.concatenate(list(cosines.values()))
        all_gold = np.concatenate([pairs.gold for pairs in subsets])
        values[task, "spearman"] = scipy.stats.spearmanr(all_cosines, all_gold).statistic

    average = mean_scores(list(values.values()))[1]
    values["Avg.", "spearman"] = average
    publish(spec, "sts", values, items)
    return 100 * average


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Score Table 1: two good rows, a bad one, an untrained one and a control.

    Returns:
        The folder of the scores, and the averages of the runs of each row.
    """
    folder = tmp_path_factory.mktemp("scored")
    noises = dict(zip(ROWS, (0.1, 0.1, 1.5, 3, 9), strict=True))
    averages = {}
    with pytest.MonkeyPatch.context() as patch:
        made_up(folder, patch, PAPER)
        for row, label in enumerate(ROWS):
            averages[label] = []
            for run, spec in enumerate(specs(1, label)):
                averages[label].append(write_sts(spec, noises[label], seed=100 * row + run))
    clear()
    return folder / "results", averages


@pytest.fixture
def sts(scored, project):
    """Copy the scores of Table 1 into a project, and return the averages of its runs by row."""
    folder, averages = scored
    shutil.copytree(folder, "results")
    return averages


def pair(row="Good", against="Bad", number=1):
    """Compare two rows over the columns that sum up a table."""
    clear()
    view = grid_view("made_up", f"table{number}", SCALE)
    row_index = view.score_grid.row(row)
    against_index = view.score_grid.row(against)
    return compare.compare(view, row_index, against_index, compare.summary_columns(view))


def test_the_primary_question_comes_first_and_is_not_corrected(sts):
    primary_answer, _ = compare.answers(grid_view("made_up", "table1", SCALE))
    (primary,) = primary_answer.comparisons
    assert primary.relation == Relation.BETTER
    assert primary.p_family == primary.p


def test_the_other_rows_are_compared_with_holms_correction(sts):
    """`others` are the rows of a row's kind: no control."""
    _, other_answer = compare.answers(grid_view("made_up", "table1", SCALE))
    family = other_answer.comparisons
    assert [(c.row, c.against) for c in family] == [
        ("As good", "Good"),
        ("Bad", "Good"),
        ("Untrained", "Good"),
    ]

    smallest, middle, largest = sorted(c.p for c in family)
    adjusted = sorted(c.p_family for c in family)
    assert adjusted == pytest.approx(
        [min(1, 3 * smallest), max(3 * smallest, 2 * middle), max(2 * middle, largest)], rel=1e-6
    )
    for comparison in family:
        assert comparison.family_low < comparison.low
        assert comparison.low < comparison.high
        assert comparison.high < comparison.family_high


def test_a_difference_is_in_points_and_one_untrained_run_stands_for_every_seed(sts):
    comparison = pair(against="Untrained")
    assert comparison.estimate.gain == pytest.approx(np.mean(sts["Good"]) - sts["Untrained"][0])
    assert (comparison.columns, comparison.estimate.seeds) == ("Avg.", 3)


def test_p_is_of_seeds_and_items(sts):
    comparison = pair()

    differences = np.subtract(sts["Good"], sts["Bad"])
    mean = differences.mean()
    seed_variance = differences.var(ddof=1) / 3
    variance = seed_variance + comparison.estimate.item_se**2
    error = np.sqrt(variance)
    df = variance**2 / (seed_variance**2 / 2)
    assert comparison.p == pytest.approx(2 * scipy.stats.t.sf(mean / error, df))
    half = scipy.stats.t.ppf(0.975, df) * error
    assert (comparison.low, comparison.high) == pytest.approx((mean - half, mean + half))


def test_an_average_resamples_its_test_sets_together(sts):
    """The variance of the mean of seven tasks' replicates, not of tasks that are drawn apart."""
    good = mean_replicate("Good")
    bad = mean_replicate("Bad")
    assert pair().estimate.item_se == pytest.approx(100 * np.std(good - bad))


def mean_replicate(label):
    """Average the replicates of a row of Table 1 over its runs and tasks."""
    replicates = []
    for spec in specs(1, label):
        content = json.loads(targets.score_path(spec.run_id, "sts", SCALE).read_text())
        for task in STS:
            replicates.append(read_replicates(content, task, "spearman").clustered)
    return np.mean(replicates, axis=0)


def remove_replicates(content):
    content.pop("replicates")


def resample_other_items(content):
    content["replicates"]["items"] = "0" * 16


def resample_in_another_way(content):
    content["replicates"]["version"] = 0


def score_with_another_version(content):
    content["evaluations"][0]["version"] = 9


@pytest.mark.parametrize(
    ("change", "relation"),
    [
        pytest.param(remove_replicates, Relation.UNPAIRED, id="without replicates"),
        pytest.param(resample_other_items, Relation.OTHER_DATA, id="of other test items"),
        pytest.param(resample_in_another_way, Relation.UNPAIRED, id="made in another way"),
    ],
)
def test_rows_whose_replicates_cannot_be_paired_are_not_compared(change, relation, sts):
    edit("Bad", change)
    assert pair().relation == relation
    assert pair().estimate is None
    assert pair(against="As good").estimate.item_se is not None


def test_rows_of_which_none_has_replicates_are_compared_over_seeds(sts):
    for label in ("Good", "Bad"):
        edit(label, remove_replicates)

    comparison = pair()
    assert comparison.estimate.item_se is None
    assert comparison.over_seeds_only
    expected = scipy.stats.ttest_rel(sts["Good"], sts["Bad"]).pvalue
    assert comparison.p == pytest.approx(expected)


def test_what_is_missing_old_or_the_same_has_no_answer(sts):
    first_run = specs(1, "As good")[0]
    targets.score_path(first_run.run_id, "sts", SCALE).unlink()
    edit("Bad", score_with_another_version, runs=slice(1))

    incomplete = pair(against="As good")
    assert incomplete.relation == Relation.PARTIAL
    assert incomplete.scored == (5, 6)
    assert pair(against="Bad").relation == Relation.OUTDATED
    assert pair(against="Again", number=3).relation == Relation.SAME_RUNS


def test_what_else_differs_is_derived_from_the_runs(sts):
    """A setting that rows of one method state themselves is left out, because the comparison is
    about it. So is a setting that belongs to a method."""
    settings = pair("Good", "Bad").differs
    assert ("steps", "15625", "5000") in settings
    assert "batch" not in {setting.name for setting in settings}
    assert not pair("Good", "Batch 32", number=3).differs


def test_an_interval_does_not_contain_0_where_holms_test_shows_a_difference():
    above = estimates.Estimate(0.5, 5, 0.4, 0.1)
    assert above.interval(0.05 / 10)[0] < 0, "the interval that is corrected for ten comparisons"
    row_above = compare.Comparison("A", "B", "Avg.", Relation.NOT_SHOWN, above, above.p())

    better = compare.judged(row_above, 0.04, 10)
    assert better.relation == Relation.BETTER
    assert better.family_low == 0.0
    not_shown = compare.judged(row_above, 0.06, 10)
    assert not_shown.relation == Relation.NOT_SHOWN
    assert not_shown.family_low < 0

    below = estimates.Estimate(-0.5, 5, 0.4, 0.1)
    worse = compare.judged(dataclasses.replace(row_above, estimate=below), 0.04, 10)
    assert worse.relation == Relation.WORSE
    assert worse.family_high == 0.0


def test_equality_of_one_in_a_family_needs_its_share_of_the_level():
    """The 90 % interval of one comparison lies within 0.02 points, the simultaneous one of 21 does
    not."""
    small = estimates.Estimate(0.001, 5, None, 0.008)
    assert small.interval(0.1)[1] < compare.INACTIVE < small.interval(0.1 / 21)[1]
    comparison = compare.Comparison("A", "B", "Avg.", Relation.NOT_SHOWN, small, small.p())
    assert compare.judged(comparison, 1.0, 1).relation == Relation.INACTIVE
    assert compare.judged(comparison, 1.0, 21).relation == Relation.NOT_SHOWN


def families_called_equal(count):
    """Simulate 1,000 families of 10 differences that are exactly as large as the limit.

    Args:
        count: number of comparisons that each test is corrected for.

    Returns:
        The share of families in which some difference is called equal.
    """
    rng = np.random.default_rng(0)
    differences = rng.normal(compare.INACTIVE, 0.004, (1_000, 10, 5))
    found = 0
    for family in differences:
        found += any(
            estimates.Estimate(d.mean(), 5, d.std(ddof=1), None).is_within(compare.INACTIVE, count)
            for d in family
        )
    return found / len(differences)


def test_equality_is_wrong_in_one_of_twenty_families():
    assert families_called_equal(count=1) > 0.3
    assert families_called_equal(count=10) == pytest.approx(0.05, abs=0.02)


def test_what_is_within_the_limit_in_the_table_is_not_seen_in_the_claim():
    """MSSE without its contrastive loss scores the same. The claim that it drops is asked and
    answered."""
    view = grid_view("msse", "table4", "mini")
    compared = []
    for answer in compare.answers(view):
        compared += [c for c in answer.comparisons if c.against == "w/o L_NCE"]
    assert {c.relation for c in compared} == {Relation.INACTIVE}

    (judged,) = [j for j in judge_all("mini", ["msse"], "table4") if "4.01%" in j.claims[0].quote]
    (row,) = [row for row in judged.rows if row.claims[0].versus == ["w/o L_NCE"]]
    (contrast,) = row.ours.contrasts
    assert contrast.is_inactive
    assert contrast.p == 1.0
    assert row.ours.seen == Seen.NOT_SEEN
    assert "within 0.02 points" in here_text(row)


def test_the_best_rows_are_those_that_no_other_is_shown_to_beat(sts):
    view = grid_view("made_up", "table1", SCALE)
    (best,) = compare.best_rows(view, view.score_grid.columns[-1])
    assert best == {0, 1}


def test_accuracies_of_one_seed_are_compared_by_mcnemars_test(project):
    """In their mean; the signs of items' differences may be permuted."""
    tasks = ("MR", "CR")
    rng = np.random.default_rng(0)
    right_in_a = {task: rng.random(200) < 0.8 for task in tasks}
    right_in_b = {task: rng.random(200) < 0.7 for task in tasks}
    sentences = {f"sentences/{task}": rng.integers(0, 2**62, (200, 1)) for task in tasks}
    for label, right in (("A", right_in_a), ("B", right_in_b)):
        accuracies = {(task, "accuracy"): right[task].mean() for task in tasks}
        publish(specs(2, label)[0], "transfer", accuracies, right | sentences)

    comparison = pair("A", "B", number=2)
    assert comparison.relation == Relation.ONE_SEED
    assert comparison.columns == "mean"
    differences = np.array([right_in_a[task].astype(float) - right_in_b[task] for task in tasks])
    mean = differences.mean()
    assert comparison.estimate.gain == pytest.approx(100 * mean)
    error = np.sqrt(np.square(differences).sum()) / differences.size
    expected = 2 * scipy.stats.norm.sf(abs(mean) / error)
    assert comparison.estimate.p() == pytest.approx(expected, rel=0.01)


SIMCSE_IN_MICSE = "SimCSE (Gao et al., 2021)"


def premise_of(higher, lower):
    """State that SimCSE scores less in the column `lower` than in the column `higher`."""
    return Premise(row=SIMCSE_IN_MICSE, most=higher, less=[lower], least=0, printed="9.9")


def test_a_question_whose_premise_is_not_shown_cannot_be_asked():
    """In the published study STS12 is harder for SimCSE than STS15, and not the other way."""
    view = grid_view("micse", "table1", "mini")
    question = Family(question="?", rows=[("miCSE", SIMCSE_IN_MICSE)])
    with_true_premise = question.model_copy(update={"premise": premise_of("STS15", "STS12")})
    with_false_premise = question.model_copy(update={"premise": premise_of("STS12", "STS15")})

    without_premise = compare.answer(view, question)
    assert compare.answer(view, with_true_premise).comparisons == without_premise.comparisons
    (refused,) = compare.answer(view, with_false_premise).comparisons
    assert refused.relation == Relation.NOT_ASKED
    assert refused.estimate is None
    assert "(in the paper 9.9)" in reason_text(refused.reason)
