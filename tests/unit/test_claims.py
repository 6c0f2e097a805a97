"""Claims: every form on a made-up paper, on its printed numbers and on made-up runs; and what the real papers say."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from made_up import SCALE, clear, made_up, table
from pydantic import ValidationError
from score_files import write_scores

from csebench.base.project import ROOT
from csebench.plan import catalog, targets
from csebench.plan.papers import Claim, Paper, Published
from csebench.report import claims, compare, printed_spread
from csebench.report.cells import grid_view
from csebench.report.claims import (
    AGREES,
    AS_STATED,
    CONTRADICTED,
    MIXED,
    NO,
    NO_SIZE,
    NOT_SHOWN,
    OPPOSES,
    OTHER,
    SUPPORTED,
    UNTESTABLE,
    UNTESTED,
    YES,
    Contrast,
    Judged,
    Judgement,
    judge_row,
    judge_sentence,
)
from csebench.report.others import Spread

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
        "8": table(
            {
                "Ours": ("simcse", ["74.00", "70.00"]),
                "B": ("ct", ["70.00", "69.00"]),
                "BERT": ("bert", [None, "69.00"]),
                "Supervised": ("simcse_sup", [None, "60.00"]),
            },
            [FEW_SHOT[0], X],
        ),
        "9": table({"Ours": ("simcse", ["70.30±0.01"]), "B": ("ct", ["70.00±0.01"])}, FEW_SHOT[:1], seeds=2),
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
    "simcse_sup": [[0.600] * 3] * 3,
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
        ({"versus": ["B"]}, SUPPORTED),  # by 2.00
        ({"versus": ["C"]}, NOT_SHOWN),  # by 0.50
        ({}, NOT_SHOWN),  # by both
        ({"columns": ["y"]}, CONTRADICTED),  # C has 0.40 more
        ({"row": "B", "versus": ["Ours"]}, CONTRADICTED),  # by 2.00
        ({"row": "B", "versus": ["Ours", "C"], "columns": ["x", "y"]}, CONTRADICTED),  # p = 0.0004 of four comparisons
        ({"versus": ["D"]}, UNTESTABLE),
        ({"row": "D"}, UNTESTABLE),
        ({"versus": ["B"], **LIMIT, "less_than": "3.2"}, SUPPORTED),  # 1.20 below it, 2.1 standard errors
        ({"versus": ["B"], **LIMIT, "less_than": "3.0"}, NOT_SHOWN),  # 1.8
        ({"versus": ["B"], **LIMIT, "less_than": "2.0"}, CONTRADICTED),  # not less
        ({"versus": ["B"], **LIMIT, "less_than": "0.5"}, CONTRADICTED),  # 1.50 above it
        ({"versus": ["B"], "relation": "comparable"}, CONTRADICTED),
        ({"row": "B", "versus": ["Ours"], "relation": "comparable"}, CONTRADICTED),  # either way
        ({"versus": ["C"], "relation": "comparable"}, NOT_SHOWN),
        ({"versus": ["B"], "relation": "not worse"}, SUPPORTED),
        ({"versus": ["C"], "relation": "not worse"}, NOT_SHOWN),
        ({"row": "B", "versus": ["Ours"], "relation": "not worse"}, CONTRADICTED),
        ({"row": "B", "versus": ["Ours"], "relation": "not worse", "lower": True}, SUPPORTED),
        ({"table": "2", "columns": ["1%"], "statistic": "std", "lower": True}, SUPPORTED),  # F = 25: p = 0.009
        ({"table": "2", "columns": ["10%"], "statistic": "std", "lower": True}, NOT_SHOWN),  # a tie
        ({"versus": ["B"], "statistic": "std", "lower": True}, UNTESTABLE),
        ({"table": "4", "columns": ["1%"], "statistic": "std", "lower": True}, NOT_SHOWN),  # on 2 and 2: p = 0.08
        ({"table": "5", "columns": ["1%"]}, SUPPORTED),
        ({"table": "2", "columns": ["10%"]}, NOT_SHOWN),
        ({"table": "2", "columns": ["1%", "10%"], "on_average": True}, SUPPORTED),
        ({"table": "2", "columns": ["10%"], "versus": ["Ours"], "versus_column": "1%"}, SUPPORTED),
        ({"table": "2", "columns": ["1%"], "versus": ["Ours"], "versus_column": "10%"}, CONTRADICTED),  # p = 0.001
        ({"table": "8", "versus": ["B"]}, NOT_SHOWN),  # by 1.00: p = 0.08
        ({"table": "8", "versus": ["BERT"]}, SUPPORTED),  # which nothing trains: p = 0.01
        ({"table": "8", "columns": ["1%"], "versus": ["B"]}, UNTESTABLE),  # as do those of few sentences
        ({"table": "9", "columns": ["1%"]}, SUPPORTED),  # two seeds have a deviation
        ({"row": "C", "columns": ["y"], "versus": ["B"], "versus_table": "1", "versus_column": "x"}, CONTRADICTED),
        ({"table": "2", "columns": ["10%"], "versus": ["B"], "versus_table": "1", "versus_column": "x"}, SUPPORTED),
    ],
)
def test_verdict_on_print(project, claim, verdict):
    assert judge(**claim).published.verdict == verdict


@pytest.mark.parametrize(
    ("claim", "stated"),
    [
        ({"by": "2.00"}, AS_STATED),
        ({"by": "1.99"}, AS_STATED),  # both numbers are rounded
        ({"by": "1.97"}, OTHER),
        ({"columns": ["y"], "by": "1"}, AS_STATED),  # 0.50
        ({"by": "1"}, OTHER),
        ({"row": "B", "versus": ["Ours"], "lower": True, "by": "2.00"}, AS_STATED),
        ({"columns": ["x", "y"], "by": "2.00"}, OTHER),  # 0.50 in y
        ({"columns": ["x", "y"], "up_to": "2.0"}, AS_STATED),
        ({"columns": ["x", "y"], "up_to": "3.0"}, OTHER),
        ({"columns": ["x", "y"], "on_average": True, "by": "1.25"}, AS_STATED),
        ({}, NO_SIZE),
        ({**LIMIT, "less_than": "3"}, AS_STATED),
        ({**LIMIT, "less_than": "2.0"}, OTHER),  # less is strict
    ],
)
def test_size_on_print(project, claim, stated):
    assert judge(**{"versus": ["B"], **claim}).published.size == stated


def test_several_comparisons(project):
    """`up_to` asks for one of them; else the p shown is that of the weakest, an average is one comparison."""
    claim = {"columns": ["x", "y"], "versus": ["B", "C"]}
    assert judge(**claim).published.verdict == CONTRADICTED
    assert judge(**claim).published.detail.startswith(
        "3 of 4 comparisons agree; against: 0.40 below C in y, p = 1 for 4 "
    )
    found = judge(**claim, up_to="2.00").published
    assert (found.verdict, found.size) == (SUPPORTED, AS_STATED) and "+2.00 over B in x" in found.detail
    alone = judge(versus=["C"]).published.detail.split("p = ")[1]
    assert judge(versus=["B", "C"]).published.detail.endswith(f"weakest: +0.50 over C in x, p = {alone}")
    average = judge(table="2", columns=["1%", "10%"], on_average=True).published
    assert average.detail.startswith("+2.05 over B in average")


def test_a_missing_limit_is_said_only_of_a_row_that_is_below(project):
    for column, is_below in (("x", False), ("y", True)):
        detail = judge(columns=[column], versus=["C"], relation="not worse").published.detail
        assert ("no limit is stated" in detail) == is_below


@pytest.mark.parametrize(
    ("claim", "differences", "direction", "shown"),
    [
        ({"up_to": "2.0"}, [(2.0, 0.02), (1.0, 0.5)], AGREES, YES),
        ({"up_to": "2.0"}, [(2.0, 0.03), (1.0, 0.5)], AGREES, NO),
        ({}, [(-2.0, 0.02), (1.0, 0.5)], MIXED, YES),
        ({}, [(-2.0, 0.03), (1.0, 0.5)], MIXED, NO),
        (LIMIT, [(2.0, 0.02), (1.0, 0.5)], OPPOSES, YES),
        (LIMIT, [(2.0, 0.03), (1.0, 0.5)], AGREES, NO),
        (LIMIT | {"less_than": "0.5"}, [(-2.0, None)], OPPOSES, YES),  # a limit is one either way
    ],
)
def test_what_one_of_two_shows_is_corrected(claim, differences, direction, shown):
    contrasts = [Contrast("B", "x", difference, error=0.5, p=p) for difference, p in differences]
    made = Claim(quote=QUOTE, section="1", table="1", row="Ours", columns=("x",), **claim)
    judged = judge_row(made, contrasts, 2)
    assert (judged.direction, judged.shown) == (direction, shown)


def test_what_nobody_published_seeds_of_is_named(project, monkeypatch):
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: None)
    judged = judge(versus=["B"]).published
    assert judged.verdict == UNTESTABLE
    assert judged.text.endswith("; the spread is not known; nobody has published seeds of sts STS-B on bert-base")
    assert judge(versus=["B"], relation="comparable").published.verdict == UNTESTABLE
    assert judge(row="B", versus=["Ours"]).published.verdict == CONTRADICTED


# ---------------------------------------------------------------- on our runs


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"versus": ["B"]}, SUPPORTED),  # by 5, 5 and 4.8
        ({"versus": ["C"]}, NOT_SHOWN),  # by 0, -0.2 and 0.5
        ({"versus": ["C"], "columns": ["y"]}, CONTRADICTED),  # by 5, 5 and 6
        ({"versus": ["B"], "columns": ["y"], "lower": True}, NOT_SHOWN),  # by 1, -1 and -1
        ({"versus": ["C"], "columns": ["y"], "lower": True}, SUPPORTED),
        ({"versus": ["D"]}, UNTESTABLE),
        ({"table": "3", "versus": ["Chance"]}, UNTESTABLE),  # a control
        ({"table": "3", "versus": ["BERT"]}, SUPPORTED),  # one run stands for every seed
        ({"versus": ["BERT"], "versus_table": "3"}, SUPPORTED),
        ({"table": "2", "columns": ["1%"]}, UNTESTABLE),  # one seed
        ({"table": "2", "columns": ["1%"], "lower": True}, NOT_SHOWN),  # and not even that
        ({"table": "2", "columns": ["10%"]}, SUPPORTED),
        ({"versus": ["B", "C"], "columns": ["x", "y"], "on_average": True}, CONTRADICTED),
        ({"versus": ["B"], "columns": ["x", "y"], "on_average": True}, SUPPORTED),  # by 2, 3 and 2.9
        ({"versus": ["C"], "statistic": "std"}, NOT_SHOWN),
        ({"table": "2", "columns": ["1%"], "statistic": "std"}, UNTESTABLE),
        ({"versus": ["C"], **LIMIT, "less_than": "1.5"}, SUPPORTED),  # a mean of 0.10, its standard error 0.21
        ({"versus": ["C"], **LIMIT, "less_than": "0.3"}, NOT_SHOWN),
        ({"versus": ["C"], **LIMIT, "less_than": "0.05"}, NOT_SHOWN),
        ({"versus": ["B"], **LIMIT, "less_than": "0.5"}, CONTRADICTED),
        ({"versus": ["C"], **LIMIT, "less_than": "0.55"}, NOT_SHOWN),  # t = 0.45 / 0.21 on 2 degrees: p = 0.17
        ({"versus": ["B"], "relation": "comparable"}, CONTRADICTED),
        ({"versus": ["C"], "relation": "comparable"}, NOT_SHOWN),
        ({"versus": ["B", "D"], "relation": "comparable"}, CONTRADICTED),  # one is shown, whatever the other is
        ({"versus": ["C", "D"], "relation": "comparable"}, UNTESTABLE),
        ({"versus": ["C"], "columns": ["y"], "relation": "not worse"}, CONTRADICTED),
    ],
)
def test_verdict_on_runs(project, claim, verdict):
    assert judge(**claim).ours.verdict == verdict


def test_size_on_runs(project):
    assert judge(versus=["B"], by="4.9").ours.size == AS_STATED
    assert judge(versus=["B"], by="2.00").ours.size == OTHER


def test_the_test_of_a_claim_counts_seeds_and_items(project, monkeypatch):
    """The same in a table and in a figure with the same runs."""
    monkeypatch.setattr(compare, "item_variance", lambda terms, scale: 0.04)
    estimate = compare.Estimate(14.8 / 3, 3, np.std([5, 5, 4.8], ddof=1), 0.2)
    for place in ({"table": "1"}, {"table": None, "figure": "1"}):
        assert judge(**place, versus=["B"]).ours.detail.endswith(f"p = {estimate.p():.2g}")


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
        assert reason in claims.contrast_runs(claim, view, "B", "x", [pair])


def test_a_study_elsewhere_contradicts_no_sentence(project):
    """What is not seen has a bound; what differs between the rows is named."""
    assert judge(versus=["B"]).here.startswith("*seen here*: +4.93 over B in x")
    assert judge(versus=["C"], columns=["y"]).here.startswith("*the opposite is seen here*: 5.33 below C in y")
    bound = "*not seen*: +0.10 over C in x, p = 0.68; above 1.0 is excluded; not matched: "
    assert judge(versus=["C"]).here.startswith(bound)
    assert judge(versus=["D"]).here == "cannot be asked here: not here"


def test_the_word_significantly_is_judged(project):
    """On print, where the direction alone is no support."""
    claim = {"section": "1", "table": "1", "row": "Ours", "columns": ("x",), "versus": ["C"]}
    for quote, verdict in (("better", NOT_SHOWN), ("significantly better", CONTRADICTED)):
        judged = claims.judge("made_up", Claim(quote=quote, **claim), SCALE)
        assert (judged.published.verdict, judged.ours.verdict) == (verdict, NOT_SHOWN)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"columns": ["y"], "versus": ["C"]}, "contradicted, by 0.4 (not significant)"),
        ({"row": "B", "versus": ["Ours", "C"]}, "contradicted, by 2"),  # the larger of two, which is significant
        ({"versus": ["B"], **LIMIT, "less_than": "2.0"}, "contradicted, by less than rounding (not significant), of "),
        ({"versus": ["B"], "relation": "comparable"}, "contradicted, by 2"),
        ({"quote": "significantly better", "versus": ["C"]}, "contradicted, as not significant"),
    ],
)
def test_a_contradiction_says_by_how_much(project, claim, words):
    made = Claim(**{"quote": QUOTE, "section": "1", "table": "1", "row": "Ours", "columns": ("x",)} | claim)
    text = claims.judge("made_up", made, SCALE).published.verdict_and_size
    assert text.startswith(words) and ("(not" in words) == ("(not" in text)


def test_what_95_percent_exclude_holds_for_all_comparisons_at_once():
    """Of all that a row is above, some gain is no larger; of the largest picked, none is; of comparable rows, none in
    either direction."""
    near, far = Contrast("B", "x", -0.1, 0.2, p=0.6), Contrast("C", "x", 0.3, 0.2, p=0.13)
    half = 0.2 * scipy.stats.norm.ppf(1 - 0.05 / 4)
    claim = Claim(quote=QUOTE, section="1", table="1", row="Ours", columns=["x"], versus=["B", "C"])
    picked = claim.model_copy(update={"up_to": Published(value=1.0, text="1.0")})
    assert claims.judge_above(claim, [near, far], 2).excludes == pytest.approx(-0.1 + half)
    assert claims.judge_above(picked, [near, far], 2).excludes == pytest.approx(0.3 + half)
    either = claims.judge_comparable(claim, [near, Contrast("C", "x", -0.3, 0.2, p=0.13)], 2)
    assert either.excludes == pytest.approx(0.3 + half)


# ---------------------------------------------------------------- one sentence, several rows

HOLDS, WEAK, OPEN = (AGREES, YES, None), (AGREES, NO, None), (None, UNTESTED, None)


@pytest.mark.parametrize(
    ("rows", "printed", "runs"),
    [
        ([HOLDS, HOLDS], SUPPORTED, SUPPORTED),
        ([HOLDS, WEAK], NOT_SHOWN, NOT_SHOWN),
        ([HOLDS, OPEN], UNTESTABLE, UNTESTABLE),
        ([HOLDS, (OPPOSES, NO, 0.3)], CONTRADICTED, NOT_SHOWN),
        ([OPEN, (OPPOSES, UNTESTED, None)], CONTRADICTED, NOT_SHOWN),
        ([HOLDS, (OPPOSES, YES, 0.02)], CONTRADICTED, CONTRADICTED),
        ([HOLDS, (OPPOSES, YES, 0.03)], CONTRADICTED, NOT_SHOWN),  # of two rows
    ],
)
def test_a_sentence_has_one_verdict_over_its_rows(rows, printed, runs):
    for strict, verdict in ((True, printed), (False, runs)):
        judged = judge_sentence([Judgement(d, s, NO_SIZE, "", contrary_p=p, strict=strict) for d, s, p in rows])
        assert judged.verdict == verdict and judged.detail.startswith("2 parts")


def test_on_another_encoder_a_sentence_says_what_was_seen_of_its_parts():
    parts = [Judgement(AGREES, YES, NO_SIZE, "x", strict=False), Judgement(None, UNTESTED, NO_SIZE, "y", strict=False)]
    whole, rows = judge_sentence(parts), [Judged("made_up", "mini", [], part, part, []) for part in parts]
    said = Judged("made_up", "mini", [], whole, whole, rows).here
    assert said == "cannot be asked here: 2 parts: 1 seen here, 1 cannot be asked here"


@pytest.mark.parametrize(
    ("sizes", "size"),
    [([NO_SIZE, AS_STATED], AS_STATED), ([AS_STATED, OTHER], OTHER), ([NO_SIZE, NO_SIZE], NO_SIZE)],
)
def test_the_size_of_a_sentence_is_that_of_all_its_rows(sizes, size):
    assert judge_sentence([Judgement(AGREES, YES, one, "") for one in sizes]).size == size


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
        {"table": "99"},
        {"versus_table": "99"},
        {"table": "6"},
    ],
)
def test_an_unknown_name_is_refused_with_its_claim(claim):
    about = {"quote": QUOTE, "section": "4", "row": "Ours", "columns": ["x"]}
    about |= {"table": "1"} | claim
    with pytest.raises(ValidationError, match=rf"claims\.0\s.*'{QUOTE}': "):
        Paper.model_validate(PAPER | {"title": "A paper", "reference": "Somebody", "claims": [about]})


# ---------------------------------------------------------------- the papers


@pytest.fixture
def no_runs(tmp_path, monkeypatch):
    """The papers themselves, without a score on disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("csebench.base.project.ROOT", ROOT)
    clear()
    yield
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize(
    ("paper", "words", "difference", "stated"),
    [
        ("micse", "average gain of (+3.94)", 1.98, OTHER),
        ("micse", "up to (+5.91)", 5.91, AS_STATED),
        ("micse", "up to (+15)", 15.11, AS_STATED),
        ("micse", "SCD by (+0.44)", 0.44, AS_STATED),
        ("micse", "PCL by (+0.87)", 0.87, AS_STATED),
        ("informin_cl", "(+1.67%)", 1.67, AS_STATED),
        ("informin_cl", "0.81% on RoBERTa_base", 0.81, AS_STATED),
        ("informin_cl", "1.66% on RoBERTa_large", 1.66, AS_STATED),
        ("msse", "to 80.15% (+3.90%)", 3.90, AS_STATED),
        ("msse", "to 81.36% (+2.95%)", 2.95, AS_STATED),
        ("msse", "on average 1.74%", 1.74, AS_STATED),
    ],
)
def test_what_papers_say_of_their_numbers(no_runs, paper, words, difference, stated):
    (claim,) = [claim for claim in catalog.paper(paper).claims if words in claim.quote]
    found = claims.judge(paper, claim, SCALE)
    assert found.published.size == stated and found.published.detail.startswith(f"{difference:+.2f} over ")
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
