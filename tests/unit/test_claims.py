"""Claims: every form on a made-up paper, on its printed numbers and on made-up runs; and what the real papers say."""

from dataclasses import replace

import pytest
from made_up import SCALE, clear, made_up, table
from score_files import write_scores

from csebench.base.errors import BadInput
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog, targets
from csebench.plan.papers import Claim
from csebench.report import claims, printed_spread, stats
from csebench.report.others import Spread
from csebench.report.judging import (
    DIFFERENT,
    EQUAL,
    HOLDS,
    REVERSED,
    UNTESTABLE,
    UNTESTED,
    WEAK,
    WEAK_REVERSED,
    Judgement,
    judge_sentence,
)
from csebench.report.cells import grid_view

QUOTE = "better by far"
LIMIT = {"relation": "comparable"}
FEW_SHOT = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
X = {"label": "x", "task": "STS-B"}
# A single run's deviation over seeds is 0.40, so that a difference of two has the standard error 0.40 √2 = 0.57.
SPREAD = Spread(std=0.40, n=10**6, method="simcse", source="made-up")
PAPER = {
    "name": "made_up",
    "tables": {
        "1": table(
            {
                "Ours": ("simcse", ["70.00", "60.00"]),
                "B": ("ct", ["68.00", "59.50"]),
                "C": ("mirror_bert", ["69.50", "60.40"]),
                "D": (None, [None, None]),
            },
            [X, {"label": "y", "task": "SICK-R"}],
        ),
        "2": table(
            {"Ours": ("simcse", ["74.00±0.20", "75.00±0.40"]), "B": ("ct", ["70.00±1.00", "74.90±0.40"])},
            FEW_SHOT,
            seeds=5,
        ),
        "3": table({"Ours": ("simcse", ["70.00"]), "Chance": ("random", [None]), "BERT": ("bert", [None])}, [X]),
        "4": table({"Ours": ("simcse", ["74.00±0.20"]), "B": ("ct", ["70.00±1.00"])}, FEW_SHOT[:1], seeds=3),
        "5": table({"Ours": ("simcse", ["74.00±0.00"]), "B": ("ct", ["70.00±0.00"])}, FEW_SHOT[:1], seeds=5),
        "6": {"kind": "settings", "title": "Settings", "columns": [], "rows": []},
        "7": table(
            {"Ours": ("simcse", ["70.00", None]), "B": ("ct", ["68.00", None]), "C": ("mirror_bert", ["69.50", None])},
            [X, {"label": "change", "delta": "x"}],
            baseline="B",
        ),
    },
    "figures": {
        "1": table({"Ours": ("simcse", [None]), "B": ("ct", [None])}, [X], kind="bars", axis="Spearman"),
    },
}
# STS-B, SICK-R and the average of three runs.
MEASURED = {
    "simcse": [[0.700, 0.710, 0.720], [0.60, 0.61, 0.62], [0.70, 0.71, 0.72]],
    "ct": [[0.650, 0.660, 0.672], [0.61, 0.60, 0.61], [0.65, 0.66, 0.67]],
    "mirror_bert": [[0.700, 0.712, 0.715], [0.65, 0.66, 0.68], [0.70, 0.71, 0.72]],
    "random": [[0.010, 0.020, 0.030], [0.01, 0.02, 0.03], [0.01, 0.02, 0.03]],
    "bert": [[0.500], [0.50], [0.50]],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        made_up(tmp_path_factory.mktemp("project"), patch, PAPER)
        patch.setattr(printed_spread, "seed_spread", lambda *_: SPREAD)
        for name in targets.grid_names("made_up"):
            for spec in targets.page(name, SCALE, "made_up").runs().values():
                values = [own[max(0, spec.seed - 1)] for own in MEASURED[spec.method]]
                scores = zip(("STS-B", "SICK-R", "Avg."), ["spearman"] * 3, values, strict=True)
                write_scores(spec, "sts", SCALE, scores)
        clear()
        yield
    clear()


def judge(table="1", row="Ours", columns=("x",), **more):
    return claims.judge(
        "made_up", Claim(quote=QUOTE, section="1", table=table, row=row, columns=columns, **more), SCALE
    )


# ---------------------------------------------------------------- on the printed numbers


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"versus": ["B"]}, HOLDS),  # by 2.00
        ({"versus": ["C"]}, WEAK),  # by 0.50
        ({}, WEAK),  # by both
        ({"columns": ["y"]}, WEAK_REVERSED),  # C has 0.40 more
        ({"row": "B", "versus": ["Ours"]}, REVERSED),  # by 2.00
        ({"row": "B", "versus": ["Ours", "C"], "columns": ["x", "y"]}, REVERSED),  # p = 0.0004 of four comparisons
        ({"row": "B", "versus": ["C"]}, REVERSED),  # by 1.50: p = 0.008
        ({"columns": ["y"], "versus": ["C"], "lower": True}, WEAK),
        ({"row": "B", "versus": ["Ours"], "lower": True}, HOLDS),
        ({"versus": ["D"]}, UNTESTABLE),
        ({"row": "D"}, UNTESTABLE),
        ({"versus": ["B"], **LIMIT, "less_than": "3.2"}, HOLDS),  # 1.20 below it, 2.1 standard errors
        ({"versus": ["B"], **LIMIT, "less_than": "3.0"}, WEAK),  # 1.8
        ({"versus": ["B"], **LIMIT, "less_than": "2.0"}, WEAK_REVERSED),  # not less
        ({"versus": ["B"], **LIMIT, "less_than": "0.5"}, REVERSED),  # 1.50 above it
        ({"versus": ["Ours"], "versus_table": "3", **LIMIT, "less_than": "0.5"}, WEAK),
        ({"versus": ["B"], "relation": "comparable"}, DIFFERENT),
        ({"row": "B", "versus": ["Ours"], "relation": "comparable"}, DIFFERENT),  # either way
        ({"versus": ["C"], "relation": "comparable"}, EQUAL),
        ({"versus": ["B", "C"], "relation": "comparable"}, DIFFERENT),
        ({"versus": ["D"], "relation": "comparable"}, UNTESTABLE),
        ({"versus": ["B"], "relation": "not worse"}, HOLDS),
        ({"versus": ["C"], "relation": "not worse"}, WEAK),
        ({"columns": ["y"], "versus": ["C"], "relation": "not worse"}, EQUAL),  # 0.40 below, which shows nothing
        ({"row": "B", "versus": ["Ours"], "relation": "not worse"}, REVERSED),
        ({"row": "B", "versus": ["Ours"], "relation": "not worse", "lower": True}, HOLDS),
        ({"table": "2", "columns": ["1%"], "statistic": "std", "lower": True}, HOLDS),  # F = 25 on 4 and 4: p = 0.009
        ({"table": "2", "columns": ["10%"], "statistic": "std", "lower": True}, WEAK),  # a tie
        ({"versus": ["B"], "statistic": "std", "lower": True}, UNTESTABLE),
        ({"table": "4", "columns": ["1%"], "statistic": "std", "lower": True}, WEAK),  # on 2 and 2: p = 0.08
        ({"table": "5", "columns": ["1%"]}, HOLDS),
        ({"table": "2", "columns": ["10%"]}, WEAK),
        ({"table": "2", "columns": ["1%", "10%"]}, WEAK),
        ({"table": "2", "columns": ["1%", "10%"], "on_average": True}, HOLDS),
        ({"table": "2", "columns": ["10%"], "versus": ["Ours"], "versus_column": "1%"}, HOLDS),
        ({"table": "2", "columns": ["1%"], "versus": ["Ours"], "versus_column": "10%"}, REVERSED),  # p = 0.001
        ({"versus": ["B"], "versus_table": "2", "versus_column": "1%"}, WEAK),  # a tie
        ({"row": "C", "columns": ["y"], "versus": ["B"], "versus_table": "1", "versus_column": "x"}, REVERSED),
        ({"table": "2", "columns": ["10%"], "versus": ["B"], "versus_table": "1", "versus_column": "x"}, HOLDS),
    ],
)
def test_verdict_on_print(project, claim, verdict):
    assert judge(**claim).published.verdict == verdict


@pytest.mark.parametrize(
    ("claim", "stated"),
    [
        ({"by": "2.00"}, True),
        ({"by": "1.99"}, True),  # both numbers are rounded
        ({"by": "1.97"}, False),
        ({"by": "2"}, True),
        ({"by": "1"}, False),
        ({"row": "B", "versus": ["Ours"], "lower": True, "by": "2.00"}, True),
        ({"columns": ["x", "y"], "by": "2.00"}, False),  # 0.50 in y
        ({"columns": ["x", "y"], "up_to": "2.0"}, True),
        ({"columns": ["x", "y"], "up_to": "3.0"}, False),
        ({"columns": ["x", "y"], "at_least": "0.5"}, True),
        ({"columns": ["x", "y"], "at_least": "0.4"}, True),
        ({"columns": ["x", "y"], "at_least": "0.6"}, False),
        ({"columns": ["x", "y"], "on_average": True, "by": "1.25"}, True),
        ({}, None),
        ({**LIMIT, "less_than": "3"}, True),
        ({**LIMIT, "less_than": "2.0"}, False),  # less is strict
    ],
)
def test_size_on_print(project, claim, stated):
    assert judge(**{"versus": ["B"], **claim}).published.stated is stated


def test_several_comparisons(project):
    """`up_to` asks for one of them; else the p shown is that of the weakest, an average is one comparison."""
    claim = {"columns": ["x", "y"], "versus": ["B", "C"]}
    assert judge(**claim).published.verdict == WEAK_REVERSED
    assert judge(**claim).published.detail.startswith("3 of 4 comparisons agree; against: 0.40 below C in y, p = 0.48")
    found = judge(**claim, up_to="2.00").published
    assert (found.verdict, found.stated) == (HOLDS, True) and "+2.00 over B in x" in found.detail
    alone = judge(versus=["C"]).published.detail.split("p = ")[1]
    assert judge(versus=["B", "C"]).published.detail.endswith(f"weakest: +0.50 over C in x, p = {alone}")
    average = judge(table="2", columns=["1%", "10%"], on_average=True).published
    assert average.detail.startswith("+2.05 over B in average")


def test_what_nobody_published_seeds_of_is_named(project, monkeypatch):
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: None)
    judged = judge(versus=["B"]).published
    assert judged.verdict == UNTESTED
    assert judged.text.endswith("; the spread is not known; nobody has published seeds of sts STS-B on bert-base")
    assert judge(versus=["B"], relation="comparable").published.verdict == UNTESTABLE
    assert judge(row="B", versus=["Ours"]).published.verdict == WEAK_REVERSED


# ---------------------------------------------------------------- on our runs


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"versus": ["B"]}, HOLDS),  # by 5, 5 and 4.8
        ({"versus": ["C"]}, WEAK),  # by 0, -0.2 and 0.5
        ({"versus": ["C"], "columns": ["y"]}, REVERSED),  # by 5, 5 and 6
        ({"versus": ["B"], "columns": ["y"], "lower": True}, WEAK_REVERSED),  # by 1, -1 and -1
        ({"versus": ["C"], "columns": ["y"], "lower": True}, HOLDS),
        ({"versus": ["D"]}, UNTESTABLE),
        ({"table": "3", "versus": ["Chance"]}, UNTESTABLE),  # a control
        ({"table": "3", "versus": ["BERT"]}, HOLDS),  # one run stands for every seed
        ({"versus": ["BERT"], "versus_table": "3"}, HOLDS),
        ({"table": "2", "columns": ["1%"]}, UNTESTABLE),  # one seed
        ({"table": "2", "columns": ["1%"], "lower": True}, WEAK_REVERSED),  # and not even that
        ({"table": "2", "columns": ["10%"]}, HOLDS),
        ({"versus": ["B", "C"], "columns": ["x", "y"], "on_average": True}, REVERSED),
        ({"versus": ["B"], "columns": ["x", "y"], "on_average": True}, HOLDS),  # by 2, 3 and 2.9
        ({"versus": ["C"], "statistic": "std"}, WEAK),
        ({"table": "2", "columns": ["1%"], "statistic": "std"}, UNTESTABLE),
        ({"versus": ["C"], **LIMIT, "less_than": "1.5"}, HOLDS),  # a mean of 0.10, its standard error 0.21
        ({"versus": ["C"], **LIMIT, "less_than": "0.3"}, WEAK),
        ({"versus": ["C"], **LIMIT, "less_than": "0.05"}, WEAK_REVERSED),
        ({"versus": ["B"], **LIMIT, "less_than": "0.5"}, REVERSED),
        ({"versus": ["C"], **LIMIT, "less_than": "0.55"}, WEAK),  # t = 0.45 / 0.21 on 2 degrees: p = 0.17
        ({"versus": ["B"], "relation": "comparable"}, DIFFERENT),
        ({"versus": ["C"], "relation": "comparable"}, EQUAL),
        ({"versus": ["B", "D"], "relation": "comparable"}, DIFFERENT),  # one is shown, whatever the other is
        ({"versus": ["C", "D"], "relation": "comparable"}, UNTESTABLE),
        ({"versus": ["C"], "columns": ["y"], "relation": "not worse"}, REVERSED),
    ],
)
def test_verdict_on_runs(project, claim, verdict):
    assert judge(**claim).ours.verdict == verdict


def test_size_on_runs(project):
    assert judge(versus=["B"], by="4.9").ours.stated is True
    assert judge(versus=["B"], by="2.00").ours.stated is False


@pytest.fixture
def tested(project):
    """Table 1 has compared rows A and B over seeds and items; of their difference the seeds' values."""
    path = targets.grid_path("made_up", "table1", SCALE, "items.json")
    pair = {"a": 0, "b": 1, "mean": 14.8 / 3, "p": 0.4, "holm": 1.0, "seeds": 3, "item_variance": 0.04}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, with_digest({"comparisons": {"x": {"order": [0, 1], "pairs": [pair], "letters": {}}}}))
    clear()
    yield [a - b for a, b in zip((70, 71, 72), (65, 66, 67.2), strict=True)]
    path.unlink()
    clear()


def test_the_test_of_a_page_is_that_of_its_claims_and_of_figures_with_the_same_runs(tested):
    wanted = f"p = {stats.paired_difference(tested, 0.04).p:.2g}"
    assert judge(versus=["B"]).ours.detail.endswith(wanted)
    assert judge(table=None, figure="1", versus=["B"]).ours.detail.endswith(wanted)
    assert judge(versus=["B"], columns=["y"]).ours.detail.endswith("p = 0.67")  # by -1, 1 and 1


def test_items_count_where_no_table_has_tested_the_pair(project, monkeypatch):
    monkeypatch.setattr(claims, "item_variances", lambda a, b, scale: (0.04, 0.03))
    seeds = [a - b for a, b in zip((70, 71, 72), (65, 66, 67.2), strict=True)]
    assert judge(versus=["B"]).ours.detail.endswith(f"p = {stats.paired_difference(seeds, 0.04).p:.2g}")


def test_two_differences_to_one_baseline_have_the_p_of_their_rows(project):
    """What both subtract cancels, on print and in our runs."""
    rows = judge(table="7", row="Ours", versus=["C"], columns=["x"])
    changes = judge(table="7", row="Ours", versus=["C"], columns=["change"])
    for side in ("published", "ours"):
        p = [getattr(judged, side).detail.split("p = ")[1].split(";")[0] for judged in (rows, changes)]
        assert p[0] == p[1]


def test_the_same_runs_and_a_row_that_did_not_train_are_not_compared(project):
    view = grid_view("made_up", "table1", SCALE)
    claim = Claim(quote=QUOTE, section="1", table="1", row="Ours", columns=("x",))
    cell, other = view.rows[0][0], replace(view.rows[1][0], unchanged=True)
    for pair, reason in (((cell, cell), "the same runs at this scale"), ((cell, other), "training changes nothing")):
        assert claims.compare_runs(claim, view, "B", "x", [pair]) is None
        assert reason in claims.why([*pair])


# ---------------------------------------------------------------- one sentence, several rows


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([(HOLDS, None), (HOLDS, None)], HOLDS),
        ([(HOLDS, None), (WEAK, None)], WEAK),
        ([(HOLDS, None), (UNTESTABLE, None)], UNTESTABLE),
        ([(WEAK, None), (EQUAL, None)], EQUAL),
        ([(HOLDS, None), (WEAK_REVERSED, 0.3)], WEAK_REVERSED),
        ([(UNTESTABLE, None), (WEAK_REVERSED, None)], WEAK_REVERSED),
        ([(HOLDS, None), (REVERSED, 0.02)], REVERSED),
        ([(HOLDS, None), (REVERSED, 0.03)], WEAK_REVERSED),  # of two rows
        ([(EQUAL, None), (DIFFERENT, 0.02)], DIFFERENT),
        ([(EQUAL, None), (DIFFERENT, 0.03)], EQUAL),
        ([(UNTESTABLE, None), (DIFFERENT, 0.02)], DIFFERENT),
        ([(UNTESTABLE, None), (DIFFERENT, 0.03)], UNTESTABLE),
        ([(WEAK_REVERSED, 0.3), (DIFFERENT, 0.02)], REVERSED),
    ],
)
def test_a_sentence_has_one_verdict_over_its_rows(rows, verdict):
    judged = judge_sentence([Judgement(name, "", contrary_p=p) for name, p in rows])
    assert judged.verdict == verdict
    assert judged.detail.startswith("2 rows: ")


@pytest.mark.parametrize(("sizes", "stated"), [([None, True], True), ([True, False], False), ([None, None], None)])
def test_the_size_of_a_sentence_is_that_of_all_its_rows(sizes, stated):
    assert judge_sentence([Judgement(HOLDS, "", size) for size in sizes]).stated is stated


# ---------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    "claim",
    [
        {"row": "Nobody"},
        {"versus": ["Nobody"]},
        {"exclude": ["Nobody"]},
        {"columns": ["z"]},
        {"versus": ["B"], "versus_column": "z"},
        {"versus": ["Nobody"], "versus_table": "2", "versus_column": "1%"},
        {"table": "9"},
        {"versus_table": "9"},
        {"table": "6"},
    ],
)
def test_an_unknown_name_is_refused_by_file_and_claim(project, claim):
    with pytest.raises(BadInput, match=f"papers/made_up.yaml: claim '{QUOTE}'"):
        judge(**claim)


# ---------------------------------------------------------------- the papers


@pytest.fixture
def no_runs(tmp_path, monkeypatch):
    """The papers themselves, without a score on disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalog, "ROOT", ROOT)
    clear()
    yield
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize(
    ("paper", "words", "difference", "stated"),
    [
        ("micse", "average gain of (+3.94)", 1.98, False),
        ("micse", "up to (+5.91)", 5.91, True),
        ("micse", "up to (+15)", 15.11, True),
        ("micse", "SCD by (+0.44)", 0.44, True),
        ("micse", "PCL by (+0.87)", 0.87, True),
        ("informin_cl", "(+1.67%)", 1.67, True),
        ("informin_cl", "0.81% on RoBERTa_base", 0.81, True),
        ("informin_cl", "1.66% on RoBERTa_large", 1.66, True),
        ("msse", "to 80.15% (+3.90%)", 3.90, True),
        ("msse", "to 81.36% (+2.95%)", 2.95, True),
        ("msse", "on average 1.74%", 1.74, True),
    ],
)
def test_what_papers_say_of_their_numbers(no_runs, paper, words, difference, stated):
    (claim,) = [claim for claim in catalog.paper(paper).claims if words in claim.quote]
    found = claims.judge(paper, claim, SCALE)
    assert found.published.stated is stated and found.published.detail.startswith(f"{difference:+.2f} over ")
    assert found.ours.verdict == UNTESTABLE


def test_seven_tasks_are_no_more_certain_than_their_printed_average(no_runs):
    """MSSE's Table 3 says the same twice: 0.68 more than CLSEP, by the column of averages and by the tasks' mean."""
    of_table = [claim for claim in catalog.paper("msse").claims if claim.table == "3"]
    found = {claim.on_average: claims.judge("msse", claim, SCALE).published.verdict for claim in of_table}
    assert found[True] == found[False]


def test_sizes_that_no_run_sees_all_of_are_not_compared(no_runs):
    """A run of mini sees 6,000 sentences, so that columns of 10,000 and more train on equally many."""
    view = grid_view("micse", "table2", "mini")
    cells = dict(zip((column.label for column in view.score_grid.columns), view.rows[-1], strict=True))
    assert claims.differ_in_size_unseen(cells["1%"], cells["10%"])
    assert not claims.differ_in_size_unseen(cells["0.1%"], cells["1%"])
    assert claims.why([cells["1%"], cells["10%"]]) == "runs see fewer sentences than either column has"
