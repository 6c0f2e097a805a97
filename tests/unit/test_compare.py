"""Comparisons of rows: the test items that a score is computed from, and a made-up project whose
score files are compared."""

import dataclasses
import itertools
import json
import shutil

import numpy as np
import pytest
import scipy.stats
from made_up import SCALE, clear, made_up, table, unprinted_table
from score_files import edit_score_file, write_scores

from csebench.base.project import ROOT
from csebench.data.sts import read_sts
from csebench.model.metrics import mean_scores
from csebench.plan import grids, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import evaluator_declaration
from csebench.plan.schema.paper import Family, Premise
from csebench.report.numbers import compare, estimates
from csebench.report.numbers.cells import ScoresElsewhere, grid_view, printed_view
from csebench.report.numbers.claims import judge_all
from csebench.report.numbers.refusals import (
    EqualScores,
    NoRuns,
    Relation,
    ReplicatesMissing,
    same_runs,
    why_not,
)
from csebench.report.numbers.row_settings import Setting, setting_differences, setting_text
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.claims import here_text
from csebench.report.words.comparisons import reason_text
from csebench.score.data_of_scores import EvaluationData
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


PAPER = {
    "name": "made_up",
    "tables": {
        "1": unprinted_table(
            ROWS,
            columns("STS12", "Avg."),
            compare=[
                {"question": "Which differ from the good one?", "rows": [["others", "Good"]]},
                {"question": "Is it better?", "primary": True, "rows": [["Good", "Bad"]]},
            ],
        ),
        "2": unprinted_table(
            {"A": "simcse", "B": "ct"},
            [*columns("MR", "CR", size="1%"), {"label": "mean", "mean": True}],
            evaluator="transfer",
        ),
        "3": unprinted_table(
            dict.fromkeys(("Good", "Again", "Batch 32"), "simcse"), columns("Avg.")
        ),
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


def test_rows_with_replicates_are_not_said_to_lack_them(sts):
    assert not pair().over_seeds_only


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
    assert Setting("steps", "15625", "5000") in settings
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


@pytest.mark.parametrize(("p", "relation"), [(0.0499, Relation.BETTER), (0.05, Relation.NOT_SHOWN)])
def test_a_p_of_5_percent_shows_no_difference(p, relation):
    above = estimates.Estimate(0.5, 5, 0.4, 0.1)
    comparison = compare.Comparison("A", "B", "Avg.", Relation.NOT_SHOWN, above, above.p())
    assert compare.judged(comparison, p, 1).relation == relation


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


def test_what_is_within_the_limit_in_the_table_is_not_seen_in_the_claim(controls_hold):
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
    assert row.ours.word == VerdictWord.SAME
    assert "within 0.02 points" in here_text(row)


def test_the_best_rows_are_those_that_no_other_is_shown_to_beat(sts):
    view = grid_view("made_up", "table1", SCALE)
    (best,) = compare.best_rows(view, view.score_grid.columns[-1])
    assert best == {0, 1}


def test_accuracies_of_one_seed_are_compared_by_mcnemars_test(project):
    """The rows are compared in the mean of two tasks. If they were equally good, the difference on
    an item could as well have the other sign."""
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
    text = reason_text(refused.reason)
    assert text.startswith("the question presumes that SimCSE (Gao et al., 2021) loses ")
    assert text.endswith("; here it loses only -16.1 points (in the paper: 9.9)")


# ---------------------------------------------------------------- what a question compares


@pytest.fixture
def view_of(tmp_path, monkeypatch):
    """Make Table 1 of a made-up paper, without a score."""

    def view(rows, columns, scale=None, recipes=None, **settings):
        """Make the view.

        Args:
            scale: keys of the scale that get another value.
            recipes: further keys of the recipe of a row, by its label.
        """
        content = table(rows, columns, **settings)
        for row in content["rows"]:
            if recipes and row["label"] in recipes:
                row["run"] |= recipes[row["label"]]
        paper = {"name": "made_up", "tables": {"1": content}}
        made_up(tmp_path, monkeypatch, paper, **(scale or {}))
        return printed_view("made_up", "table1", SCALE)

    yield view
    monkeypatch.undo()
    clear()


def question(**settings):
    return Family(question="?", **{"rows": [("A", "B")], **settings})


FIVE_COLUMNS = [
    *columns("STS12", "SICK-R", "Avg."),
    {"label": "mean", "mean": True},
    {"label": "gain", "delta": "STS12"},
]
TWO_ROWS = {"A": ("simcse", [None] * 5), "B": ("ct", [None] * 5)}


@pytest.mark.parametrize(
    ("asked", "groups"),
    [("each", [[0], [1]]), ("average", [[2, 3]]), (["SICK-R", "STS12"], [[1, 0]])],
)
def test_columns_that_a_question_compares(asked, groups, view_of):
    view = view_of(TWO_ROWS, FIVE_COLUMNS, baseline="B")
    assert compare.column_groups(view, question(columns=asked)) == groups


def test_a_column_that_another_page_compares_can_be_left_out(view_of):
    view = view_of({"A": ("simcse", [None] * 3)}, columns("STS12", "STS13", "STS14"))
    asked = question(columns="each", left_out=["STS13"])
    assert compare.column_groups(view, asked) == [[0], [2]]


@pytest.mark.parametrize("asked", ["each", "average"])
def test_a_table_of_averages_is_compared_in_these(asked, view_of):
    only_averages = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
    view = view_of({"A": ("simcse", [None] * 2), "B": ("ct", [None] * 2)}, only_averages)
    groups = {"each": [[0], [1]], "average": [[0, 1]]}
    assert compare.column_groups(view, question(columns=asked)) == groups[asked]


def test_scores_stand_for_an_average_that_cannot_be_run(view_of):
    scores = [*columns("STS12", "SICK-R"), *columns("Avg.", evaluator="transfer")]
    rows = {"A": ("simcse", [None] * 3), "B": ("ct", [None] * 3)}
    view = view_of(rows, scores, scale={"evaluators": {"transfer": None}})
    assert compare.summary_columns(view) == [0, 1]


@pytest.mark.parametrize(
    ("indices", "text"),
    [([1], "SICK-R"), ([0, 1], "STS12, SICK-R"), ([0, 1, 2], "STS12 to Avg.")],
)
def test_compared_columns_are_named(indices, text, view_of):
    view = view_of(TWO_ROWS, FIVE_COLUMNS, baseline="B")
    assert compare.compare(view, 0, 1, indices).columns == text


def test_columns_in_which_one_row_cannot_be_run_are_left_out(view_of):
    scores = [*columns("STS12"), *columns("MR", evaluator="transfer")]
    rows = {"A": ("simcse", [None] * 2), "B": ("ct", [None] * 2)}
    view = view_of(rows, scores, scale={"evaluators": {"transfer": None}})
    assert compare.compare(view, 0, 1, [0, 1]).columns == "STS12"


@pytest.mark.parametrize("row", [0, 1])
def test_a_column_that_one_row_lacks_is_left_out(row, view_of):
    rows = {"A": ("simcse", [None] * 2), "B": ("ct", [None] * 2)}
    view = view_of(rows, columns("STS12", "STS13"))
    cell = view.rows[row][1]
    view.rows[row][1] = dataclasses.replace(cell, plan=dataclasses.replace(cell.plan, specs=()))
    assert compare.compare(view, 0, 1, [0, 1]).columns == "STS12"


def test_rows_are_ranked_with_rows_on_their_encoder(view_of):
    methods = {"A": "simcse", "B": "ct", "C": "mirror_bert", "D": None}
    rows = {label: (method, [None]) for label, method in methods.items()}
    mini = {"name": "encoders/bert-mini-wiki", "revision": "0" * 16}
    roles = {"encoders": {"bert-base": mini, "bert-large": mini | {"revision": "1" * 16}}}
    recipes = {"C": {"encoder": "bert-large"}}
    view = view_of(rows, columns("STS12"), scale=roles, recipes=recipes)
    assert compare.row_pairs(view, question(rows=[("others", "A")])) == [(1, 0)]


def test_a_row_that_states_the_tables_encoder_is_ranked_with_those_that_state_none(view_of):
    rows = {"A": ("simcse", [None]), "B": ("ct", [None])}
    view = view_of(rows, columns("STS12"), recipes={"B": {"encoder": "bert-base"}})
    assert compare.row_pairs(view, question(rows=[("others", "A")])) == [(1, 0)]


def printed_gain(view_of, values, scores, indices, **settings):
    """Take the printed difference of two rows over some columns."""
    rows = {"A": ("simcse", values[0]), "B": ("ct", values[1])}
    return compare.compare(view_of(rows, scores, **settings), 0, 1, indices).printed


def test_a_printed_difference_is_the_mean_over_columns(view_of):
    values = [["71.00", "75.00"], ["70.00", "72.00"]]
    gain = printed_gain(view_of, values, columns("STS12", "SICK-R"), [0, 1])
    assert gain == pytest.approx(2.0)


def test_a_printed_difference_is_in_points_and_positive_if_better(view_of):
    """The table prints fractions, of which less is better."""
    gain = printed_gain(view_of, [["0.20"], ["0.25"]], columns("STS12", lower=True), [0], factor=1)
    assert gain == pytest.approx(5.0)


@pytest.mark.parametrize(
    "values", [[["71.00", None], ["70.00", "70.00"]], [["71.00", "71.00"], ["70.00", None]]]
)
def test_a_printed_difference_needs_every_value(values, view_of):
    assert printed_gain(view_of, values, columns("STS12", "SICK-R"), [0, 1]) is None


@pytest.mark.parametrize("rows", [("A", "D"), ("D", "A")])
def test_a_row_that_is_not_run_is_named_with_its_reason(rows, view_of):
    view = view_of({"A": ("simcse", [None]), "D": (None, [None])}, columns("STS12"))
    indices = [view.score_grid.row(label) for label in rows]
    compared = compare.compare(view, *indices, [0])
    assert compared.relation == Relation.NOT_RUN
    assert compared.reason == NoRuns("D", "not here")


# ---------------------------------------------------------------- why rows are not compared


DATA = EvaluationData("d" * 64)
OTHER_DATA = EvaluationData("e" * 64)
ALL_RUNS = frozenset({1, 2, 3})


@pytest.fixture
def complete(view_of):
    """A function that gives a cell of A or B whose runs all have scores, with some changes."""
    scores = [*columns("STS12", "SICK-R"), *columns("MR", evaluator="transfer")]
    rows = {"A": ("simcse", [None] * 3), "B": ("ct", [None] * 3), "D": (None, [None] * 3)}
    view = view_of(rows, scores)

    def cell(label, column=0, **changes):
        planned = view.rows[view.score_grid.row(label)][column]
        complete = {"values": {1: 70.0, 2: 71.0, 3: 72.0}, "absent": 0, "data": DATA}
        return dataclasses.replace(planned, **complete | changes)

    return cell


@pytest.mark.parametrize("changed", ["A", "B"])
@pytest.mark.parametrize(
    ("changes", "relation"),
    [
        ({"absent": 1}, Relation.PARTIAL),
        ({"values": {}}, Relation.NOT_RUN),
        ({"is_outdated": True}, Relation.OUTDATED),
        ({"unchanged": True}, Relation.NOT_ASKED),
        ({"elsewhere": (ScoresElsewhere(OTHER_DATA, DATA, {1: 70.0}),)}, Relation.OTHER_DATA),
        ({"data": OTHER_DATA}, Relation.OTHER_DATA),
        ({"without_replicates": frozenset({1})}, Relation.UNPAIRED),
        ({"without_replicates": ALL_RUNS}, Relation.UNPAIRED),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_rows_are_not_compared_unless_all_runs_of_both_are_scored_alike(
    changes, relation, changed, complete
):
    cells = [complete(label, **(changes if label == changed else {})) for label in "AB"]
    assert why_not([tuple(cells)]).relation == relation


def test_rows_that_are_scored_alike_are_compared(complete):
    assert why_not([(complete("A"), complete("B"))]) is None
    without = {"without_replicates": ALL_RUNS}
    assert why_not([(complete("A", **without), complete("B", **without))]) is None


def test_made_up_values_need_no_runs(complete):
    """As those of benchmarks/judge.py."""
    assert why_not([(complete("A"), complete("D"))]) is None
    assert why_not([(complete("A"), complete("D", values={}))]).relation == Relation.NOT_RUN


def test_data_are_compared_within_an_evaluator(complete):
    of_sts = (complete("A"), complete("B"))
    of_transfer = [complete(label, column=2, data=OTHER_DATA) for label in "AB"]
    assert why_not([of_sts, tuple(of_transfer)]) is None


def test_replicates_are_compared_within_a_score(complete):
    """No run has replicates of SICK-R."""
    of_sick = [complete(label, column=1, without_replicates=ALL_RUNS) for label in "AB"]
    assert why_not([(complete("A"), complete("B")), tuple(of_sick)]) is None


def test_runs_without_replicates_are_counted(complete):
    refusal = why_not([(complete("A"), complete("B", without_replicates=frozenset({1, 3})))])
    assert refusal.reason == ReplicatesMissing(row="B", evaluator="sts", lacking=2, runs=3)


def test_derived_cells_of_the_same_runs_are_the_same(view_of):
    view = view_of(TWO_ROWS, FIVE_COLUMNS, baseline="B")
    first, second = (row[3] for row in view.rows)
    assert same_runs(first, first)
    assert not same_runs(first, second)


def test_rows_without_runs_are_not_the_same_runs(view_of):
    view = view_of({"D": (None, [None]), "E": (None, [None])}, columns("STS12"))
    assert not same_runs(view.rows[0][0], view.rows[1][0])


def test_a_row_beside_itself_is_the_same_runs_in_one_score_only(complete):
    assert why_not([(complete("A"), complete("A"))]).relation == Relation.SAME_RUNS
    assert why_not([(complete("A"), complete("A", column=1))]) is None
    assert why_not([(complete("A"), complete("A")), (complete("A"), complete("B"))]) is None


def write_average(number, label, values):
    """Write the average of each run of a row, without replicates."""
    for spec, value in zip(specs(number, label), values, strict=True):
        write_scores(spec, "sts", SCALE, [("Avg.", "spearman", value)])


def test_rows_with_the_same_score_in_every_run_cannot_be_compared(project):
    for label in ("Good", "Batch 32"):
        write_average(3, label, [0.70, 0.71, 0.72])
    compared = pair("Good", "Batch 32", number=3)
    assert (compared.relation, compared.reason) == (Relation.NOT_ASKED, EqualScores())
    assert compared.estimate is None


def test_a_difference_that_is_shown_to_be_next_to_nothing_is_no_gain(project):
    """It is 0.0100, 0.0101 and 0.0102 points: significant, and below 0.02."""
    write_average(3, "Batch 32", [0.70, 0.71, 0.72])
    write_average(3, "Good", [0.700100, 0.710101, 0.720102])
    compared = pair("Good", "Batch 32", number=3)
    assert compared.p < 0.05
    assert compared.relation == Relation.INACTIVE
    assert compare.judged(compared, compared.p, 5).relation == Relation.INACTIVE


def test_a_row_that_cannot_be_compared_with_a_better_one_may_be_best(sts):
    edit("Bad", remove_replicates)
    view = grid_view("made_up", "table1", SCALE)
    (best,) = compare.best_rows(view, view.score_grid.columns[-1])
    assert best == {0, 1, 2}


def test_untrained_rows_are_compared_over_test_items_alone(project):
    """Nothing in them is random but the test items."""
    estimate = estimates.Estimate(1.0, 1, None, 0.2)
    untrained = pair("Untrained", "Untrained", number=1).pairs
    trained = pair("Good", "Untrained", number=1).pairs
    assert compare.can_be_tested(estimate, untrained)
    assert not compare.can_be_tested(estimate, trained)
    assert not compare.can_be_tested(dataclasses.replace(estimate, item_se=None), untrained)


# ---------------------------------------------------------------- one page owns each comparison


# Pages that make the same comparison at scale mini. The page of all methods asks one question about
# every method, so it repeats comparisons that papers make.
REPEATED = {
    frozenset({("methods", "methods"), ("micse", "figure3")}),
    frozenset({("methods", "methods"), ("msse", "table2")}),
}


def compared_scores(pairs):
    """Collect the scores of two compared rows. The order of the rows does not count."""
    sides = []
    for cells in zip(*pairs, strict=True):
        scores = set()
        for leaf in itertools.chain.from_iterable(cell.leaves for cell in cells):
            column = leaf.plan.column
            for spec in leaf.plan.specs:
                scores.add((spec.run_id, leaf.plan.evaluator, column.task, column.metric))
        sides.append(frozenset(scores))
    return frozenset(sides)


def test_one_page_compares_the_same_scores_unless_there_is_a_reason():
    pages_by_scores = {}
    grids_of_scale = {grid for page in targets.pages("mini") for grid in page.grids()}
    for paper_name, name in sorted(grids_of_scale):
        view = printed_view(paper_name, name, "mini")
        for family in view.grid.compare:
            for row, against in compare.row_pairs(view, family):
                for group in compare.column_groups(view, family):
                    pairs = compare.runnable_pairs(view, row, against, group)
                    if all(cell.can_be_run for cell in itertools.chain.from_iterable(pairs)):
                        scores = compared_scores(pairs)
                        pages_by_scores.setdefault(scores, set()).add((paper_name, name))

    repeated = {frozenset(pages) for pages in pages_by_scores.values() if len(pages) > 1}
    assert repeated == REPEATED


# ---------------------------------------------------------------- settings of two rows


@pytest.fixture
def differing(view_of):
    """A function that gives the values of two rows by the settings in which they differ."""
    methods = {
        "IS-CSE": "iscse",
        "large": "iscse",
        "SimCSE": "simcse",
        "warm": "simcse",
        "on another": "simcse",
        "InfoCSE": "infocse",
        "BERT": "bert",
        "D": None,
    }
    rows = {label: (method, [None, None]) for label, method in methods.items()}
    on_sizes = [{"label": size, "task": "STS12", "size": size} for size in ("100%", "1%")]
    recipes = {
        "large": {"variant": "large"},
        "warm": {"params": {"temperature": 0.1}},
        "on another": {"encoder": "bert-large"},
    }
    roles = {role: {"name": role, "revision": "0" * 16} for role in ("bert-base", "bert-large")}
    view = view_of(rows, on_sizes, recipes=recipes, scale={"encoders": roles})

    def differences(first, second, other_column=0):
        here = view.rows[view.score_grid.row(first)][0]
        there = view.rows[view.score_grid.row(second)][other_column]
        return {setting.name: setting[1:] for setting in setting_differences([(here, there)])}

    return differences


def test_a_setting_of_two_methods_is_compared(differing):
    assert differing("large", "SimCSE")["learning rate"] == ("1e-5", "3e-5")
    assert differing("warm", "IS-CSE")["temperature"] == ("0.1", "0.05")
    assert "learning rate" not in differing("IS-CSE", "SimCSE")


def test_a_setting_that_rows_of_one_method_state_is_what_they_are_about(differing):
    """Whether a row states it, or its variant."""
    assert "temperature" not in differing("warm", "SimCSE")
    assert "learning rate" not in differing("large", "IS-CSE")


def test_a_row_without_runs_has_no_settings(differing):
    assert differing("D", "SimCSE") == differing("SimCSE", "D") == {}


def test_encoders_of_rows_are_compared(differing):
    assert differing("on another", "SimCSE")["start encoder"] == ("bert-large", "bert-base")


@pytest.mark.parametrize("rows", [("InfoCSE", "SimCSE"), ("SimCSE", "InfoCSE")])
def test_a_row_that_starts_from_a_pretraining_run_has_another_start_encoder(rows, differing):
    assert "start encoder" in differing(*rows)


@pytest.mark.parametrize("rows", [("BERT", "SimCSE"), ("SimCSE", "BERT")])
def test_a_row_that_trains_on_nothing_has_no_corpus(rows, differing):
    assert not {"corpus", "sentences"} & set(differing(*rows))


def test_how_many_sentences_rows_train_on_is_compared(differing):
    assert differing("SimCSE", "SimCSE", other_column=1)["sentences"] == ("1,000,000", "10,000")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3e-5, "3e-5"),
        (1.5e-5, "1.5e-5"),
        (0.001, "0.001"),
        (0.05, "0.05"),
        (0.0, "0"),
        (64, "64"),
        ("avg", "avg"),
    ],
)
def test_settings_are_written_as_people_do(value, text):
    assert setting_text(value) == text
