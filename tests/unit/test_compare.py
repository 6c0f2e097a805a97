"""Comparisons of rows: which items make a score, and a made-up project from score files to
comparisons."""

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
from csebench.report.numbers.refusals import Relation
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


# ---------------------------------------------------------------- which items make a score


ITEMS = {
    "STS12/a": [1, 2],
    "STS12/b": [3],
    "gold/STS12/a": [4, 5],
    "gold/STS12/b": [6],
    "STS1/a": [7],
    "MR": [8],
}
ITEMS |= {"recall@1": [0, 1], "x/recall@1": [9, 9, 9, 9], "x/y/recall@1": [9]}
ITEMS |= {
    "sentences/STS12/a": [[1, 2], [2, 3]],
    "sentences/STS12/b": [[4, 5]],
    "sentences/MR": [[1]],
    "CR": [1],
}
ITEMS = {name: np.array(values) for name, values in ITEMS.items()}


def test_a_rank_correlation_concatenates_its_items_and_a_mean_weighs_arrays_the_same():
    items = sample(ITEMS, evaluator_declaration("sts").items, "STS12", "spearman")
    assert (items.values.tolist(), items.gold.tolist()) == ([1, 2, 3], [4, 5, 6])
    assert items.sentences.tolist() == [[1, 2], [2, 3], [4, 5]]
    # forums of 2, 4 and 1 queries
    items = sample(ITEMS, evaluator_declaration("beir").items, "any", "recall@1")
    assert items.values.mean() == pytest.approx((0.5 + 9 + 9) / 3) and len(items.values) == 7


@pytest.mark.parametrize(
    ("evaluator", "task", "metric"),
    [
        ("transfer", "MR", "f1"),  # which is no mean over sentences
        ("transfer", "CR", "accuracy"),  # of an older version: without ids of sentences
        ("sts", "STS1", "spearman"),  # without gold values
    ],
)
def test_a_score_that_its_items_do_not_make_has_none(evaluator, task, metric):
    assert sample(ITEMS, evaluator_declaration(evaluator).items, task, metric) is None


# ---------------------------------------------------------------- from score files to comparisons


def columns(*tasks, **more):
    return [{"label": task, "task": task, **more} for task in tasks]


def rows_of(methods, columns, **more):
    return table(
        {label: (method, [None] * len(columns)) for label, method in methods.items()},
        columns,
        **more,
    )


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
    """Runs of a row's first cell, one a seed."""
    name = f"table{number}"
    row = grids.find_grid("made_up", name).row(label)
    return grids.plan_grid("made_up", name, SCALE)[row][0].specs


def publish(spec, evaluator, values, items):
    """Scores {(task, metric): value} of a run, with the replicates that its items give."""
    write_scores(
        spec,
        evaluator,
        SCALE,
        [(*key, value) for key, value in values.items()],
        items=items,
        replicates=True,
    )


def edit(label, change, runs=slice(None)):
    """Changes the published scores of runs of a row of Table 1."""
    for spec in specs(1, label)[runs]:
        edit_score_file(targets.score_path(spec.run_id, "sts", SCALE), change)


def write_sts(spec, noise, seed):
    """Cosines that follow the gold scores, and what they score."""
    rng, items, values = np.random.default_rng(seed), {}, {}
    for task in STS:
        pairs = read_sts(SMOKE, task)
        own = {
            f"{task}/{p.subset}": (p.gold / 5 + rng.normal(0, noise, len(p))).astype(np.float32)
            for p in pairs
        }
        gold, cosines = np.concatenate([p.gold for p in pairs]), np.concatenate(list(own.values()))
        values[task, "spearman"] = scipy.stats.spearmanr(cosines, gold).statistic
        items |= own | {f"gold/{task}/{p.subset}": p.gold for p in pairs}
        items |= {f"sentences/{task}/{p.subset}": sentence_ids(p.left, p.right) for p in pairs}
    values["Avg.", "spearman"] = mean_scores(list(values.values()))[1]
    publish(spec, "sts", values, items)
    return 100 * values["Avg.", "spearman"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with the scores of Table 1 (two good rows, a bad, an untrained, a control), and
    averages by row."""
    folder, noises = (
        tmp_path_factory.mktemp("scored"),
        dict(zip(ROWS, (0.1, 0.1, 1.5, 3, 9), strict=True)),
    )
    with pytest.MonkeyPatch.context() as patch:
        made_up(folder, patch, PAPER)
        averages = {
            label: [
                write_sts(spec, noises[label], 100 * i + j)
                for j, spec in enumerate(specs(1, label))
            ]
            for i, label in enumerate(ROWS)
        }
    clear()
    return folder / "results", averages


@pytest.fixture
def sts(scored, project):
    """Averages of Table 1, by row, in a project with its scores."""
    shutil.copytree(scored[0], "results")
    return scored[1]


def pair(row="Good", against="Bad", number=1):
    """Two rows over the columns that sum up a table."""
    clear()
    view = grid_view("made_up", f"table{number}", SCALE)
    rows = [view.score_grid.row(label) for label in (row, against)]
    return compare.compare(view, *rows, compare.summary_columns(view))


def test_the_primary_question_comes_first_and_is_not_corrected(sts):
    """`others` are those of a row's kind: no control."""
    first, second = compare.answers(grid_view("made_up", "table1", SCALE))
    (primary,), family = first.comparisons, second.comparisons
    assert (primary.relation, primary.p_family) == (Relation.BETTER, primary.p)
    assert [(c.row, c.against) for c in family] == [
        (row, "Good") for row in ("As good", "Bad", "Untrained")
    ]
    p, adjusted = sorted(c.p for c in family), sorted(c.p_family for c in family)
    assert adjusted == pytest.approx(
        [min(1, 3 * p[0]), max(3 * p[0], 2 * p[1]), max(2 * p[1], p[2])], rel=1e-6
    )
    assert all(c.family_low < c.low < c.high < c.family_high for c in family)


def test_a_difference_is_in_points_and_one_untrained_run_stands_for_every_seed(sts):
    comparison = pair(against="Untrained")
    assert comparison.estimate.gain == pytest.approx(np.mean(sts["Good"]) - sts["Untrained"][0])
    assert (comparison.columns, comparison.estimate.seeds) == ("Avg.", 3)


def test_p_is_of_seeds_and_items(sts):
    comparison, d = pair(), np.subtract(sts["Good"], sts["Bad"])
    seeds, items = d.var(ddof=1) / 3, comparison.estimate.item_se**2
    df = (seeds + items) ** 2 / (seeds**2 / 2)
    assert comparison.p == pytest.approx(
        2 * scipy.stats.t.sf(d.mean() / np.sqrt(seeds + items), df)
    )
    half = scipy.stats.t.ppf(0.975, df) * np.sqrt(seeds + items)
    assert (comparison.low, comparison.high) == pytest.approx((d.mean() - half, d.mean() + half))


def test_an_average_resamples_its_test_sets_together(sts):
    """The variance of the mean of seven tasks' replicates, not of tasks that are drawn apart."""
    means = {}
    for label in ("Good", "Bad"):
        contents = [
            json.loads(targets.score_path(s.run_id, "sts", SCALE).read_text())
            for s in specs(1, label)
        ]
        means[label] = np.mean(
            [read_replicates(c, t, "spearman").clustered for c in contents for t in STS], 0
        )
    assert pair().estimate.item_se == pytest.approx(100 * np.std(means["Good"] - means["Bad"]))


UNPAIRED = {
    "without replicates": (Relation.UNPAIRED, lambda content: content.pop("replicates")),
    "of other test items": (
        Relation.OTHER_DATA,
        lambda content: content["replicates"].update(items="0" * 16),
    ),
    "made in another way": (
        Relation.UNPAIRED,
        lambda content: content["replicates"].update(version=0),
    ),
}


@pytest.mark.parametrize(("relation", "change"), UNPAIRED.values(), ids=UNPAIRED)
def test_rows_whose_replicates_cannot_be_paired_are_not_compared(relation, change, sts):
    edit("Bad", change)
    assert (pair().relation, pair().estimate) == (relation, None)
    assert pair(against="As good").estimate.item_se is not None


def test_rows_of_which_none_has_replicates_are_compared_over_seeds(sts):
    for label in ("Good", "Bad"):
        edit(label, lambda content: content.pop("replicates"))
    assert pair().estimate.item_se is None and pair().over_seeds_only
    assert pair().p == pytest.approx(scipy.stats.ttest_rel(sts["Good"], sts["Bad"]).pvalue)


def test_what_is_missing_old_or_the_same_has_no_answer(sts):
    missing, *_ = specs(1, "As good")
    targets.score_path(missing.run_id, "sts", SCALE).unlink()
    edit("Bad", lambda content: content["evaluations"][0].update(version=9), slice(1))
    assert (pair(against="As good").relation, pair(against="As good").scored) == (
        Relation.PARTIAL,
        (5, 6),
    )
    assert pair(against="Bad").relation == Relation.OUTDATED
    assert pair(against="Again", number=3).relation == Relation.SAME_RUNS


def test_what_else_differs_is_derived_from_the_runs(sts):
    """But not what the rows of one method state themselves, as it is what they are about, nor
    what a method keeps."""
    different = pair("Good", "Bad").differs
    assert ("steps", "15625", "5000") in different and "batch" not in {
        setting.name for setting in different
    }
    assert not pair("Good", "Batch 32", number=3).differs


def test_an_interval_does_not_contain_0_where_holms_test_shows_a_difference():
    estimate = estimates.Estimate(0.5, 5, 0.4, 0.1)
    given = compare.Comparison("A", "B", "Avg.", Relation.NOT_SHOWN, estimate, estimate.p())
    assert estimate.interval(0.05 / 10)[0] < 0
    better, open_one = (compare.judged(given, p, 10) for p in (0.04, 0.06))
    assert (better.relation, better.family_low) == (Relation.BETTER, 0.0)
    assert open_one.relation == Relation.NOT_SHOWN and open_one.family_low < 0
    worse = compare.judged(
        compare.replace(given, estimate=estimates.Estimate(-0.5, 5, 0.4, 0.1)), 0.04, 10
    )
    assert (worse.relation, worse.family_high) == (Relation.WORSE, 0.0)


def test_the_best_rows_are_those_that_no_other_is_shown_to_beat(sts):
    view = grid_view("made_up", "table1", SCALE)
    (best,) = compare.best_rows(view, view.score_grid.columns[-1])
    assert best == {0, 1}


def test_accuracies_of_one_seed_are_compared_by_mcnemars_test(project):
    """In their mean; the signs of items' differences may be permuted."""
    rng = np.random.default_rng(0)
    rows = [{task: rng.random(200) < share for task in ("MR", "CR")} for share in (0.8, 0.7)]
    sentences = {f"sentences/{task}": rng.integers(0, 2**62, (200, 1)) for task in ("MR", "CR")}
    for label, row in zip("AB", rows, strict=True):
        accuracies = {(task, "accuracy"): right.mean() for task, right in row.items()}
        publish(specs(2, label)[0], "transfer", accuracies, row | sentences)
    d = np.array([rows[0][task].astype(float) - rows[1][task] for task in ("MR", "CR")])
    comparison = pair("A", "B", number=2)
    assert (comparison.relation, comparison.columns) == (Relation.ONE_SEED, "mean")
    assert comparison.estimate.gain == pytest.approx(100 * d.mean())
    z = abs(d.mean()) / np.sqrt(np.square(d).sum() / d.size**2)
    assert comparison.estimate.p() == pytest.approx(2 * scipy.stats.norm.sf(z), rel=0.01)


def test_a_question_whose_premise_is_not_shown_cannot_be_asked():
    """Of the published study: STS12 is harder for SimCSE than STS15, and not the other way."""
    view, simcse = grid_view("micse", "table1", "mini"), "SimCSE (Gao et al., 2021)"
    family = Family(question="?", rows=[("miCSE", simcse)])

    def premised(most, less):
        premise = Premise(row=simcse, most=most, less=[less], least=0, printed="9.9")
        return compare.answer(view, family.model_copy(update={"premise": premise})).comparisons

    assert premised("STS15", "STS12") == compare.answer(view, family).comparisons
    (refused,) = premised("STS12", "STS15")
    assert (refused.relation, refused.estimate) == (
        Relation.NOT_ASKED,
        None,
    ) and "(in the paper 9.9)" in reason_text(refused.reason)
