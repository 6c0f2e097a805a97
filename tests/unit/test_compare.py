"""Comparisons of rows: which items make a score, and a made-up project from score files to letters."""

import json
import shutil

import numpy as np
import pytest
import scipy.stats
from made_up import SCALE, clear, made_up, table
from score_files import edit_score_file, write_scores

from csebench.base.errors import BadInput
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.data.sts import read_sts
from csebench.model.metrics import averages
from csebench.plan import catalog, grids, targets
from csebench.plan.registry import evaluator_declaration
from csebench.report import compare
from csebench.report.markdown import reading_key
from csebench.report.cells import grid_view
from csebench.score.replicates import read_replicates
from csebench.score.score_types import sample, sentence_ids

SMOKE = ROOT / "data" / "smoke"
STS = [task for task in catalog.STS_COLUMNS if task != "Avg."]
ROWS = {"Good": "simcse", "As good": "mirror_bert", "Bad": "ct", "Untrained": "bert", "Chance": "random"}


# ---------------------------------------------------------------- which items make a score


ITEMS = {"STS12/a": [1, 2], "STS12/b": [3], "gold/STS12/a": [4, 5], "gold/STS12/b": [6], "STS1/a": [7], "MR": [8]}
ITEMS |= {"recall@1": [0, 1], "x/recall@1": [9, 9, 9, 9], "x/y/recall@1": [9]}
ITEMS |= {"sentences/STS12/a": [[1, 2], [2, 3]], "sentences/STS12/b": [[4, 5]], "sentences/MR": [[1]], "CR": [1]}
ITEMS = {name: np.array(values) for name, values in ITEMS.items()}


def test_a_rank_correlation_concatenates_its_items_and_a_mean_weighs_arrays_the_same():
    found = sample(ITEMS, evaluator_declaration("sts").items, "STS12", "spearman")
    assert (found.values.tolist(), found.gold.tolist()) == ([1, 2, 3], [4, 5, 6])
    assert found.sentences.tolist() == [[1, 2], [2, 3], [4, 5]]
    found = sample(ITEMS, evaluator_declaration("beir").items, "any", "recall@1")  # forums of 2, 4 and 1 queries
    assert found.values.mean() == pytest.approx((0.5 + 9 + 9) / 3) and len(found.values) == 7


@pytest.mark.parametrize(
    ("evaluator", "task", "metric", "values"),
    [
        ("transfer", "MR", "accuracy", [8]),
        ("transfer", "MR", "f1", None),  # which is no mean over sentences
        ("transfer", "CR", "accuracy", None),  # of an older version: without ids of sentences
        ("stsb_retrieval", "STS-B", "recall@1", [0, 1]),
        ("sts", "STS1", "spearman", None),  # without gold values
        ("geometry", "STS-B", "alignment", None),
    ],
)
def test_items_behind_a_score(evaluator, task, metric, values):
    found = sample(ITEMS, evaluator_declaration(evaluator).items, task, metric)
    assert (found and found.values.tolist()) == values


# ---------------------------------------------------------------- from score files to letters


def columns(*tasks, **more):
    return [{"label": task, "task": task, **more} for task in tasks]


def rows_of(methods, columns, **more):
    return table({label: (method, [None] * len(columns)) for label, method in methods.items()}, columns, **more)


def pair_of_rows(columns, **more):
    return rows_of({"A": "simcse", "B": "ct"}, columns, **more)


PAPER = {
    "name": "made_up",
    "tables": {
        "1": rows_of(ROWS, columns("STS12", "Avg.")),
        "2": pair_of_rows([*columns("MR", "CR", size="1%"), {"label": "mean", "mean": True}], evaluator="transfer"),
        "4": pair_of_rows(
            [{"label": t, "task": t, "evaluator": f"beir:{t}", "size": "1%"} for t in ("smoke", "cqadupstack")],
            factor=1,
        ),
        "5": rows_of(
            {label: method for label, method in ROWS.items() if label != "As good"},
            [*columns("MR", "CR"), {"label": "mean", "mean": True}],
            evaluator="transfer",
        ),
        "6": pair_of_rows(columns("Banking77Classification", size="1%"), evaluator="mteb:Banking77Classification"),
        "7": pair_of_rows(
            [
                *({"label": t, "task": t, "evaluator": f"beir:{t}", "size": "1%"} for t in ("smoke", "nq")),
                {"label": "mean", "mean": True},
            ]
        ),
    },
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    made_up(tmp_path, monkeypatch, PAPER, evaluators={"beir:nq": None})
    yield
    clear()


def specs(number, label):
    """Runs of a row's first cell, one a seed."""
    name = f"table{number}"
    row = grids.find_grid("made_up", name).row(label)
    return grids.plan_grid("made_up", name, SCALE)[row][0].specs


def publish(spec, evaluator, values, items=None):
    """Scores {(task, metric): value} of a run, with the replicates that its items give."""
    scores = [(task, metric, value) for (task, metric), value in values.items()]
    write_scores(spec, evaluator, SCALE, scores, items=items, replicates=items is not None)


def edit(label, change, runs=slice(None)):
    """Changes the published scores of runs of a row of Table 1."""
    for spec in specs(1, label)[runs]:
        edit_score_file(targets.score_path(spec.run_id, "sts", SCALE), change)


def compared(number):
    clear()
    return json.loads(compare.compare("made_up", f"table{number}", SCALE).read_text())["comparisons"]


def write_sts(spec, noise, seed):
    """Cosines that follow the gold scores, and what they score."""
    rng, items, values = np.random.default_rng(seed), {}, {}
    for task in STS:
        pairs = read_sts(SMOKE, task)
        own = {f"{task}/{p.subset}": (p.gold / 5 + rng.normal(0, noise, len(p))).astype(np.float32) for p in pairs}
        gold, cosines = np.concatenate([p.gold for p in pairs]), np.concatenate(list(own.values()))
        values[task, "spearman"] = scipy.stats.spearmanr(cosines, gold).statistic
        items |= own | {f"gold/{task}/{p.subset}": p.gold for p in pairs}
        items |= {f"sentences/{task}/{p.subset}": sentence_ids(p.left, p.right) for p in pairs}
    values["Avg.", "spearman"] = averages(list(values.values()))[1]
    publish(spec, "sts", values, items)
    return 100 * values["Avg.", "spearman"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with the scores of Table 1, two good rows, a bad one, one that is not trained and a control, and their
    averages by row."""
    folder, noises = tmp_path_factory.mktemp("scored"), dict(zip(ROWS, (0.1, 0.1, 1.5, 3, 9), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        made_up(folder, patch, PAPER)
        averages = {
            label: [write_sts(spec, noises[label], 100 * i + j) for j, spec in enumerate(specs(1, label))]
            for i, label in enumerate(ROWS)
        }
    clear()
    return folder / "results", averages


@pytest.fixture
def sts(scored, project):
    """Averages of Table 1, by row, in a project with its scores."""
    shutil.copytree(scored[0], "results")
    return scored[1]


def test_letters_of_rows(sts):
    found = compared(1)
    assert list(found) == ["Avg."]  # that is what papers compare, where there is one
    own = found["Avg."]
    assert {*own["order"][:2]} == {0, 1} and own["order"][2:] == [2, 3]  # no control
    assert own["letters"]["0"] == own["letters"]["1"] == "a" and "a" not in own["letters"]["2"] + own["letters"]["3"]
    assert len(own["pairs"]) == 6 and all(
        pair["item_variance"] is not None and pair["seeds"] == 3 for pair in own["pairs"]
    )
    assert all(pair["p"] <= pair["holm"] for pair in own["pairs"])
    (pair,) = [pair for pair in own["pairs"] if {pair["a"], pair["b"]} == {0, 3}]
    assert pair["mean"] == pytest.approx(np.mean(sts["Good"]) - sts["Untrained"][0])  # whose one run stands for all


def test_p_is_of_seeds_and_items(sts):
    (pair,) = [p for p in compared(1)["Avg."]["pairs"] if {p["a"], p["b"]} == {0, 2}]
    d = np.subtract(sts["Good"], sts["Bad"])
    seeds, items = d.var(ddof=1) / 3, pair["item_variance"]
    df = (seeds + items) ** 2 / (seeds**2 / 2)
    assert pair["p"] == pytest.approx(2 * scipy.stats.t.sf(d.mean() / np.sqrt(seeds + items), df))


def test_an_average_resamples_its_test_sets_together(sts):
    """The variance of the mean of seven tasks' replicates, not of tasks that are drawn apart."""
    means = {}
    for label in ("Good", "Bad"):
        contents = [json.loads(targets.score_path(s.run_id, "sts", SCALE).read_text()) for s in specs(1, label)]
        means[label] = np.mean([read_replicates(c, t, "spearman").clustered for c in contents for t in STS], 0)
    (pair,) = [p for p in compared(1)["Avg."]["pairs"] if {p["a"], p["b"]} == {0, 2}]
    assert pair["item_variance"] == pytest.approx(100**2 * np.var(means["Good"] - means["Bad"]))


def test_without_replicates_seeds_are_compared(sts):
    for label in ("Good", "Bad"):
        edit(label, lambda content: content.pop("replicates"))
    (pair,) = [p for p in compared(1)["Avg."]["pairs"] if {p["a"], p["b"]} == {0, 2}]
    assert pair["item_variance"] is None
    assert pair["p"] == pytest.approx(scipy.stats.ttest_rel(sts["Good"], sts["Bad"]).pvalue)


@pytest.mark.parametrize("change", [{"items": "0" * 16}, {"version": 0}], ids=str)
def test_rows_of_other_test_items_or_versions_are_compared_over_seeds(change, sts):
    """A digest shows that one row was scored on other data, a version that its replicates were made in another way."""
    edit("Bad", lambda content: content["replicates"].update(change))
    variances = {frozenset((p["a"], p["b"])): p["item_variance"] for p in compared(1)["Avg."]["pairs"]}
    assert {pair for pair, variance in variances.items() if variance is None} == {p for p in variances if 2 in p}


# ---------------------------------------------------------------- a comparison that knew more


def forget_replicates():
    """Scores as they were published before replicates."""
    for label in ROWS:
        edit(label, lambda content: content.pop("replicates"))


def test_tests_over_items_stay_where_the_scores_are_the_same(sts):
    before = compared(1)
    forget_replicates()
    assert compared(1) == before


def test_tests_over_items_stay_where_an_evaluator_has_a_newer_version(sts):
    """The page shows the scores with a mark; nothing about them has changed."""
    before = compared(1)
    forget_replicates()
    for label in ROWS:
        edit(label, lambda content: content["evaluations"][0].update(version=0))
    assert compared(1) == before


def test_tests_over_items_are_not_replaced_by_weaker_ones(sts):
    compared(1)
    path = targets.grid_path("made_up", "table1", SCALE, "items.json")
    before = path.read_bytes()
    forget_replicates()
    edit("Bad", improve)
    clear()
    with pytest.raises(BadInput, match=r"table1.items.json: Avg.: .*Bad.* or delete the file"):
        compare.compare("made_up", "table1", SCALE)
    assert path.read_bytes() == before
    path.unlink()
    assert {pair["item_variance"] for pair in compared(1)["Avg."]["pairs"]} == {None}


def improve(content):
    for row in content["scores"]:
        row["value"] += 0.001


def test_letters_of_other_scores_are_not_shown(sts):
    """Until the rows are compared again."""
    compared(1)
    edit("Bad", improve)
    clear()
    view = grid_view("made_up", "table1", SCALE)
    assert not view.comparisons and "No letters: scores have changed" in reading_key(view)
    compared(1)
    assert grid_view("made_up", "table1", SCALE).comparisons


def test_replicates_replace_what_was_there(sts):
    first = compared(1)
    path = targets.grid_path("made_up", "table1", SCALE, "items.json")
    content = json.loads(path.read_text().replace('"seeds": 3', '"seeds": 7'))
    write_json(path, with_digest(content))
    assert compared(1) == first


def test_a_comparison_that_was_edited_is_refused(sts):
    compared(1)
    path = targets.grid_path("made_up", "table1", SCALE, "items.json")
    path.write_text(path.read_text().replace('"seeds": 3', '"seeds": 7'))
    clear()
    with pytest.raises(BadInput, match=r"edited since it was written.* `csebench compare made_up/table1"):
        grid_view("made_up", "table1", SCALE)


def test_runs_that_are_missing_or_old_are_left_out(sts):
    """One seed of a row has no scores, those of another are of an older version of its evaluator."""
    missing, *_ = specs(1, "As good")
    targets.score_path(missing.run_id, "sts", SCALE).unlink()
    edit("Bad", lambda content: content["evaluations"][0].update(version=9), slice(1))
    assert compared(1)["Avg."]["order"] == [0, 3]


def z_test(*differences):
    """Two-sided p of the mean of means, where the signs of items' differences may be permuted."""
    mean = np.mean([d.mean() for d in differences])
    variance = sum(np.square(d).sum() / len(d) ** 2 for d in differences) / len(differences) ** 2
    return 2 * scipy.stats.norm.sf(abs(mean) / np.sqrt(variance))


def write_pair(number, evaluator, *rows):
    """The one run of row A and of row B, each ({(task, metric): items' values}, items)."""
    for label, (values, items) in zip("AB", rows, strict=True):
        means = {key: own.mean() for key, own in values.items()}
        publish(specs(number, label)[0], evaluator, means, items)


def test_a_task_of_mteb_shows_its_main_score(project):
    """Which is called otherwise in every task, and comes first."""
    task, evaluator = "Banking77Classification", "mteb:Banking77Classification"
    for label in "AB":
        publish(specs(6, label)[0], evaluator, {(task, "accuracy"): 0.54, (task, "f1"): 0.5})
    clear()
    assert [cell.values for (cell,) in grid_view("made_up", "table6", SCALE).rows] == [{1: pytest.approx(54)}] * 2


def test_accuracies_of_one_seed_are_compared_by_mcnemars_test(project):
    rng = np.random.default_rng(0)
    rows = [{task: rng.random(200) < share for task in ("MR", "CR")} for share in (0.8, 0.7)]
    apart = {f"sentences/{task}": rng.integers(0, 2**62, (200, 1)) for task in ("MR", "CR")}
    write_pair(2, "transfer", *(({(task, "accuracy"): own for task, own in row.items()}, row | apart) for row in rows))
    d = [a.astype(float) - b for a, b in zip(*(row.values() for row in rows), strict=True)]
    (pair,) = compared(2)["mean"]["pairs"]
    assert pair["seeds"] == 1 and pair["p"] == pytest.approx(z_test(*d), rel=0.01)
    assert pair["holm"] == pair["p"] and pair["mean"] == pytest.approx(100 * np.mean(d))


def test_a_mean_of_columns_is_of_what_its_columns_are_of(project):
    """Without controls and rows with a missing run; one run of a row without randomness stands for all."""
    rng = np.random.default_rng(3)
    shares = {"Good": 0.8, "Bad": 0.6, "Untrained": 0.5, "Chance": 0.1}
    for label, share in shares.items():
        for spec in specs(5, label)[label == "Bad" :]:
            items = {task: rng.random(100) < share for task in ("MR", "CR")}
            values = {(task, "accuracy"): own.mean() for task, own in items.items()}
            apart = {f"sentences/{task}": np.arange(100)[:, None] + 1000 * (task == "CR") for task in items}
            publish(spec, "transfer", values, items | apart)
    own = compared(5)["mean"]
    assert own["order"] == [0, 2] and [(pair["seeds"], pair["item_variance"] > 0) for pair in own["pairs"]] == [
        (3, True)
    ]


def test_scores_are_compared_where_no_row_can_have_their_mean(project):
    """Of two datasets the scale has one."""
    rng = np.random.default_rng(4)
    rows = [{"ndcg@10": rng.beta(2, other, 40)} for other in (1, 2)]
    write_pair(7, "beir:smoke", *(({("smoke", "ndcg@10"): row["ndcg@10"]}, row) for row in rows))
    assert [*compared(7)] == ["smoke"]


@pytest.mark.parametrize(("dataset", "forums"), [("smoke", [""]), ("cqadupstack", ["android/", "english/"])])
def test_ndcg_is_compared_over_queries(project, dataset, forums):
    """Items are named by metric, of a dataset of forums by forum and metric (evaluators/beir.py)."""
    rng = np.random.default_rng(2)
    rows = [{f"{f}ndcg@10": rng.beta(2, other, 40 - 9 * i) for i, f in enumerate(forums)} for other in (1, 2)]
    values = [{(dataset, "ndcg@10"): np.array([own.mean() for own in row.values()])} for row in rows]
    write_pair(4, f"beir:{dataset}", *zip(values, rows, strict=True))
    d = [a - b for a, b in zip(*(row.values() for row in rows), strict=True)]
    p = compared(4)[dataset]["pairs"][0]["p"]
    assert p == pytest.approx(z_test(*d), rel=0.01)
