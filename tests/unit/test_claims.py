"""Claims: every form of a claim on a made-up paper, judged on its printed numbers and on made-up
runs, and claims of the real papers."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from made_up import SCALE, clear, made_up, table
from pydantic import ValidationError
from score_files import write_scores

from csebench.base.project import ROOT
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.paper import Claim, Paper, Published
from csebench.report.csv_tables import claim_record
from csebench.report.numbers import claims, estimates, printed_spread
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.claims import (
    ClaimOutcome,
    ClaimVerdict,
    Direction,
    Significance,
    StatedSize,
)
from csebench.report.numbers.contrasts import (
    Contrast,
    NoContrast,
    Obstacle,
    Pairing,
    contrast_deviations,
    contrast_printed,
    differ_in_size_unseen,
    varying_cells,
)
from csebench.report.numbers.others import Spread
from csebench.report.numbers.row_settings import Setting
from csebench.report.numbers.stats import Summary
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.claims import (
    DEPENDS,
    claim_formula,
    detail_text,
    judgement_text,
    no_test,
    on_print_text,
    other_verdicts_text,
    verdict_range,
    why_not_all,
)

QUOTE = "better by far"
LIMIT = {"relation": "comparable"}
FEW_SHOT = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
X = {"label": "x", "task": "STS-B"}
Y = {"label": "y", "task": "SICK-R"}
# A single run has a deviation of 0.40 over seeds, so a difference of two runs has the standard
# error 0.40 √2 = 0.57.
SPREAD = Spread(std=0.40, n=10**6, method="simcse", source="made-up")
PAPER = {
    "name": "made_up",
    "tables": {
        "1": table(
            {
                "Ours": ("simcse", ["70.00", "60.00", None]),
                "B": ("ct", ["68.00", "59.50", None]),
                "C": ("mirror_bert", ["69.50", "60.40", None]),
                "D": (None, [None, None, None]),
            },
            [X, Y, {"label": "change", "delta": "x"}],
            baseline="B",
        ),
        "2": table(
            {
                "Ours": ("simcse", ["74.00±0.20", "75.00±0.40"]),
                "B": ("ct", ["70.00±1.00", "74.90±0.40"]),
            },
            FEW_SHOT,
            seeds=5,
        ),
        "3": table(
            {
                "Ours": ("simcse", ["70.00"]),
                "Chance": ("random", [None]),
                "BERT": ("bert", ["69.00"]),
            },
            [X],
        ),
        "4": table(
            {"Ours": ("simcse", ["94.00±0.20"]), "B": ("ct", ["70.00±1.00"])}, FEW_SHOT[:1], seeds=2
        ),
        "5": table(
            {"Ours": ("simcse", ["74.00±0.00"]), "B": ("ct", ["70.00±0.00"])}, FEW_SHOT[:1], seeds=5
        ),
        "6": {"kind": "settings", "title": "Settings", "columns": [], "rows": []},
        "7": table({"Ours": ("simcse", ["74.00"]), "B": ("ct", ["70.00"])}, FEW_SHOT[:1]),
        "8": table(
            {
                "Ours": ("simcse", ["70.00"]),
                "B": ("ct", ["68.00"]),
                "C": ("mirror_bert", ["69.50"]),
                "BERT": ("bert", ["69.00"]),
            },
            [X],
        ),
    },
    "figures": {
        "1": table(
            {"Ours": ("simcse", [None]), "B": ("ct", [None])}, [X], kind="bars", axis="Spearman"
        )
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
    """Make the project with the made-up paper, its runs scored and a known spread over seeds."""
    with pytest.MonkeyPatch.context() as patch:
        made_up(tmp_path_factory.mktemp("project"), patch, PAPER)
        patch.setattr(printed_spread, "seed_spread", lambda *_: SPREAD)
        for name in targets.grid_names("made_up"):
            for spec in targets.page(name, SCALE, "made_up").runs().values():
                write_measured(spec)
        clear()
        yield
    clear()


def write_measured(spec):
    """Write the scores that `MEASURED` has for a run."""
    run_index = max(0, spec.seed - 1)  # an untrained encoder has the seed 0
    scores = []
    for task, values in zip(("STS-B", "SICK-R", "Avg."), MEASURED[spec.method], strict=True):
        scores.append((task, "spearman", values[run_index]))
    write_scores(spec, "sts", SCALE, scores)


def claim_of(**settings):
    """Make a claim about column x of Table 1, with other settings."""
    defaults = {"quote": QUOTE, "section": "1", "table": "1", "row": "Ours", "columns": ["x"]}
    return Claim(**defaults | settings)


def judge(**settings):
    """Judge the claim that these settings make."""
    return claims.judge("made_up", claim_of(**settings), SCALE)


# ---------------- one claim, on the printed numbers and on our runs


SUPPORTED = ClaimOutcome.SUPPORTED
NOT_SHOWN = ClaimOutcome.NOT_SHOWN
AGAINST = ClaimOutcome.AGAINST
OTHER_WAY = ClaimOutcome.OTHER_WAY
UNPROVEN = ClaimOutcome.UNPROVEN_SIGNIFICANCE
UNTESTABLE = ClaimOutcome.UNTESTABLE

ABOVE = [  # claim, verdict on print, verdict on our runs. Comments have the differences of both.
    # by 2.00; by 5, 5 and 4.8
    ({"versus": ["B"]}, SUPPORTED, SUPPORTED),
    # by 0.50; by 0, -0.2 and 0.5
    ({"versus": ["C"]}, NOT_SHOWN, NOT_SHOWN),
    ({"versus": ["C"], "quote": "significantly better"}, UNPROVEN, NOT_SHOWN),
    # below by 0.40; by 5, 5 and 6
    ({"versus": ["C"], "columns": ["y"]}, OTHER_WAY, AGAINST),
    # above by 0.50; by 1, -1 and -1
    ({"versus": ["B"], "columns": ["y"], "lower": True}, OTHER_WAY, NOT_SHOWN),
    # the other rows: on print those that have numbers
    ({}, NOT_SHOWN, UNTESTABLE),
    ({"versus": ["D"]}, UNTESTABLE, UNTESTABLE),
    ({"row": "D"}, UNTESTABLE, UNTESTABLE),
    ({"versus": ["B"], "relation": "not worse"}, SUPPORTED, SUPPORTED),
    # worse by 0.40; by 5.33
    ({"versus": ["C"], "columns": ["y"], "relation": "not worse"}, NOT_SHOWN, AGAINST),
    # two seeds have a deviation, one has none
    ({"table": "4", "columns": ["1%"]}, SUPPORTED, UNTESTABLE),
    # below by 4.00; our one seed shows nothing
    ({"table": "2", "columns": ["1%"], "lower": True}, AGAINST, NOT_SHOWN),
    # the printed deviation is 0
    ({"table": "5", "columns": ["1%"]}, SUPPORTED, UNTESTABLE),
    ({"table": "2", "columns": ["1%", "10%"], "on_average": True}, SUPPORTED, UNTESTABLE),
    # by 1.25; by 2, 3, 2.9
    ({"versus": ["B"], "columns": ["x", "y"], "on_average": True}, SUPPORTED, SUPPORTED),
    (
        {"table": "2", "columns": ["10%"], "versus": ["Ours"], "versus_column": "1%"},
        SUPPORTED,
        UNTESTABLE,
    ),
    # by 1.00; nothing trains BERT: p = 0.01
    ({"versus": ["BERT"], "versus_table": "3"}, SUPPORTED, SUPPORTED),
    # the other row is a control
    ({"table": "3", "versus": ["Chance"]}, UNTESTABLE, UNTESTABLE),
    # nobody published a deviation on few sentences
    ({"table": "7", "columns": ["1%"]}, UNTESTABLE, UNTESTABLE),
]
COMPARABLE_WITHIN = [  # claim of a limit, verdict on print, verdict on our runs
    # 2.1 standard errors below it
    ({"versus": ["B"], "less_than": "3.2"}, SUPPORTED, AGAINST),
    # 1.8 standard errors below it
    ({"versus": ["B"], "less_than": "3.0"}, NOT_SHOWN, AGAINST),
    # not less
    ({"versus": ["B"], "less_than": "2.0"}, OTHER_WAY, AGAINST),
    # our mean is 0.10, its error 0.21
    ({"versus": ["C"], "less_than": "1.5"}, NOT_SHOWN, SUPPORTED),
    ({"versus": ["C"], "less_than": "0.05"}, OTHER_WAY, NOT_SHOWN),
    # t = 2.1 on 2 degrees: p = 0.16
    ({"versus": ["C"], "less_than": "0.55"}, NOT_SHOWN, NOT_SHOWN),
    ({"versus": ["C"]}, NOT_SHOWN, NOT_SHOWN),
    # the row is below, which counts as well
    ({"row": "B", "versus": ["Ours"]}, AGAINST, AGAINST),
    # one difference is shown, whatever the other is
    ({"versus": ["B", "D"]}, AGAINST, AGAINST),
    ({"versus": ["C", "D"]}, NOT_SHOWN, UNTESTABLE),
]
OF_DEVIATIONS = [  # claim about a deviation, verdict on print, verdict on our runs
    ({"versus": ["C"]}, UNTESTABLE, NOT_SHOWN),
    # F = 25
    ({"table": "2", "columns": ["1%"], "lower": True}, SUPPORTED, UNTESTABLE),
    # a tie
    ({"table": "2", "columns": ["10%"], "lower": True}, NOT_SHOWN, NOT_SHOWN),
    # on 1 and 1 degrees of freedom
    ({"table": "4", "columns": ["1%"], "lower": True}, NOT_SHOWN, UNTESTABLE),
]


def verdicts(**claim):
    """Judge a claim on the printed numbers and on our runs."""
    judged = judge(**claim)
    return judged.published.outcome, judged.ours.outcome


@pytest.mark.parametrize(("claim", "on_print", "on_runs"), ABOVE)
def test_verdict_on_a_claim_that_a_row_is_above(project, claim, on_print, on_runs):
    assert verdicts(**claim) == (on_print, on_runs)


@pytest.mark.parametrize(("claim", "on_print", "on_runs"), COMPARABLE_WITHIN)
def test_verdict_on_a_claim_that_rows_are_comparable(project, claim, on_print, on_runs):
    assert verdicts(**claim, relation="comparable") == (on_print, on_runs)


@pytest.mark.parametrize(("claim", "on_print", "on_runs"), OF_DEVIATIONS)
def test_verdict_on_a_claim_about_deviations(project, claim, on_print, on_runs):
    assert verdicts(**claim, statistic="std") == (on_print, on_runs)


@pytest.fixture
def wide_spread(project, monkeypatch):
    """Let single runs deviate by 0.84, so that a smaller deviation may be assumed."""
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: SPREAD._replace(std=0.84))


OF_BERT_BASE = "in the STS average of BERT-base"


@pytest.mark.parametrize(
    ("claim", "verdict", "text"),
    [
        # by 2.00, whose standard error is 1.19, 0.71 or 0.49
        (
            {"versus": ["B"]},
            NOT_SHOWN,
            f"*supported* if seeds deviate by 0.5 or less {OF_BERT_BASE} (p = 0.0047 at 0.5)",
        ),
        (
            {"versus": ["B"], "quote": "significant"},
            UNPROVEN,
            f"*supported* if seeds deviate by 0.5 or less {OF_BERT_BASE} (p = 0.0047 at 0.5)",
        ),
        (
            {"row": "B", "versus": ["Ours"]},
            OTHER_WAY,
            f"*against* if seeds deviate by 0.5 or less {OF_BERT_BASE} (p = 0.0047 at 0.5)",
        ),
        # by 1.25
        (
            {"versus": ["B"], "columns": ["x", "y"], "on_average": True},
            NOT_SHOWN,
            f"*supported* if seeds deviate by 0.35 or less {OF_BERT_BASE} (p = 0.012 at 0.35)",
        ),
        # by 0.50
        ({"versus": ["C"]}, NOT_SHOWN, ""),
        # the paper prints the deviations
        ({"table": "2", "columns": ["10%"]}, NOT_SHOWN, ""),
        # nobody published a deviation
        ({"table": "7", "columns": ["1%"]}, UNTESTABLE, ""),
    ],
)
def test_the_verdict_on_print_is_given_at_smaller_deviations(wide_spread, claim, verdict, text):
    judged = judge(**claim)
    assert judged.published.outcome == verdict
    assert other_verdicts_text(judged.printed_verdicts) == text
    is_marked = on_print_text(judged).startswith(f"{DEPENDS} *")
    assert judged.depends_on_deviation == is_marked == (text != "")
    assert (claim_record(judged)["if seeds vary less"] != "") == is_marked


def test_the_list_of_claims_has_the_verdict_at_smaller_deviations(wide_spread):
    record = claim_record(judge(versus=["B"]))
    assert record["if seeds vary less"] == "supported at 0.5 or less"


def test_no_larger_deviation_than_the_published_one_is_assumed(project):
    """The sweep's 0.40 stays under the assumption of 0.5."""
    at_half, at_less = judge(versus=["B"]).assumed
    assert at_half.judgement == judge(versus=["B"]).published
    assert at_less.judgement != judge(versus=["B"]).published


def test_a_sentence_is_judged_at_smaller_deviations_over_its_rows(wide_spread, monkeypatch):
    rows = [claim_of(versus=["B"]), claim_of(versus=["B"], columns=["x", "y"], on_average=True)]
    monkeypatch.setattr(Paper, "claims_by_quote", lambda _: {QUOTE: rows})
    sentence = claims.judge_quote.__wrapped__("made_up", QUOTE, SCALE)
    verdicts = [(at.deviation, at.verdict) for at in sentence.printed_verdicts]
    left_open = ClaimVerdict.OPEN
    supported = ClaimVerdict.SUPPORTED
    assert verdicts == [(None, left_open), (0.5, left_open), (0.35, supported)]
    assert verdict_range([sentence, sentence], supported) == "0 to 2"
    assert verdict_range([sentence], left_open, supported) == "1"


@pytest.mark.parametrize(
    ("claim", "on_print", "on_runs"),
    [
        ({}, StatedSize.NONE, StatedSize.NONE),
        ({"by": "2.00"}, StatedSize.AS_STATED, StatedSize.OTHER),
        ({"by": "1.99"}, StatedSize.AS_STATED, StatedSize.OTHER),  # both numbers are rounded
        ({"by": "1.97"}, StatedSize.OTHER, StatedSize.OTHER),
        ({"by": "4.9"}, StatedSize.OTHER, StatedSize.AS_STATED),  # 4.93
        ({"columns": ["y"], "by": "1"}, StatedSize.AS_STATED, StatedSize.OTHER),  # 0.50; 0.33
        (
            {"row": "B", "versus": ["Ours"], "lower": True, "by": "2.00"},
            StatedSize.AS_STATED,
            StatedSize.OTHER,
        ),
        ({"columns": ["x", "y"], "by": "2.00"}, StatedSize.OTHER, StatedSize.OTHER),  # 0.50 in y
        ({"columns": ["x", "y"], "up_to": "2.0"}, StatedSize.AS_STATED, StatedSize.OTHER),
        ({"columns": ["x", "y"], "up_to": "3.0"}, StatedSize.OTHER, StatedSize.OTHER),
        ({**LIMIT, "less_than": "3"}, StatedSize.AS_STATED, StatedSize.OTHER),
    ],
)
def test_size(project, claim, on_print, on_runs):
    judged = judge(**{"versus": ["B"], **claim})
    assert (judged.published.size, judged.ours.size) == (on_print, on_runs)


def test_the_comparison_that_goes_against_a_claim_is_shown(project):
    judged = judge(columns=["x", "y"], versus=["B", "C"]).published
    assert judged.outcome == OTHER_WAY
    assert detail_text(judged).endswith(
        "1 of 4 comparisons goes the other way (not significant): Ours is 0.40 below C in column y,"
        " p = 1 (corrected for 4 comparisons)"
    )


def test_up_to_asks_for_one_of_several_comparisons(project):
    judged = judge(columns=["x", "y"], versus=["B", "C"], up_to="2.00").published
    assert judged.outcome == SUPPORTED
    assert judged.size == StatedSize.AS_STATED
    assert "Ours is 2.00 above B in column x" in detail_text(judged)


def test_the_p_of_several_comparisons_is_that_of_the_weakest(project):
    p_of_weakest = detail_text(judge(versus=["C"]).published).split("p = ")[1]
    text = detail_text(judge(versus=["B", "C"]).published)
    assert text.endswith(f"weakest, Ours is 0.50 above C in column x, p = {p_of_weakest}")


def test_an_average_is_one_comparison(project):
    judged = judge(table="2", columns=["1%", "10%"], on_average=True).published
    assert detail_text(judged).startswith("Ours is 2.05 above B in the mean of the columns")


@pytest.mark.parametrize(
    ("claim", "differences", "direction", "shown"),
    [
        ({"up_to": "2.0"}, [(2.0, 0.02), (1.0, 0.5)], Direction.AGREES, Significance.YES),
        ({"up_to": "2.0"}, [(2.0, 0.03), (1.0, 0.5)], Direction.AGREES, Significance.NO),
        ({}, [(-2.0, 0.02), (1.0, 0.5)], Direction.MIXED, Significance.YES),
        ({}, [(-2.0, 0.03), (1.0, 0.5)], Direction.MIXED, Significance.NO),
        (LIMIT, [(2.0, 0.02), (1.0, 0.5)], Direction.OPPOSES, Significance.YES),
        (LIMIT, [(2.0, 0.03), (1.0, 0.5)], Direction.AGREES, Significance.NO),
        # a limit is one either way
        (LIMIT | {"less_than": "0.5"}, [(-2.0, None)], Direction.OPPOSES, Significance.YES),
    ],
)
def test_what_one_of_two_shows_is_corrected(claim, differences, direction, shown):
    contrasts = []
    for difference, p in differences:
        contrasts.append(Contrast("B", "x", difference, error=0.5, p=p))
    judged = claims.judge_row(claim_of(**claim), contrasts, 2)
    assert judged.direction == direction
    assert judged.significance == shown


def test_what_nobody_published_seeds_of_cannot_be_tested(project, monkeypatch):
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: None)
    judged = judge(versus=["B"]).published
    assert judged.outcome == UNTESTABLE
    assert judgement_text(judged).endswith("; the deviation over seeds is not known")
    assert judge(versus=["B"], **LIMIT).published.outcome == UNTESTABLE
    assert judge(row="B", versus=["Ours"]).published.outcome == OTHER_WAY


@pytest.mark.parametrize("grid", [{"table": "1"}, {"table": None, "figure": "1"}])
def test_the_test_of_a_claim_counts_seeds_and_items(grid, project, monkeypatch):
    """The same in a table and in a figure with the same runs."""
    changes_by_items = {"": np.array([-0.2, 0.2])}
    monkeypatch.setattr(estimates, "item_effects", lambda terms, scale: changes_by_items)

    differences = [5, 5, 4.8]
    std = np.std(differences, ddof=1)
    estimate = estimates.Estimate(14.8 / 3, 3, std, 0.2)
    text = detail_text(judge(**grid, versus=["B"]).ours)
    assert text.endswith(f"p = {estimate.p():.2g}")


def test_two_differences_to_one_baseline_have_the_p_of_their_rows(project):
    """Both differences subtract the same row, which cancels, on print and in our runs."""
    rows = judge(versus=["C"], columns=["x"])
    changes = judge(versus=["C"], columns=["change"])
    assert p_text(rows.published) == p_text(changes.published)
    assert p_text(rows.ours) == p_text(changes.ours)


# gains of 2.00 and 0.50 on print, of 4.9 and 20.9 in our runs
def test_a_claim_may_compare_two_columns_of_a_row(project):
    columns = {"columns": ["10%"], "versus": ["Ours"], "versus_column": "1%"}
    judged = judge(table="2", **columns).published
    assert detail_text(judged).startswith("Ours is 1.00 higher in column 10% than in column 1%, ")
    assert claim_formula(claim_of(table="2", **columns)) == "Ours: column 10% > column 1%"


def test_a_difference_is_said_not_to_be_shown_to_be_below_a_stated_limit(project):
    judged = judge(versus=["B"], **LIMIT | {"less_than": "2.5"}).published
    test = "; it is not shown that the difference is smaller than 2.5 (test against the limit, p = "
    assert test in detail_text(judged)


GAINS = {
    "table": "8",
    "versus": ["C"],
    "gains_over": {"Ours": "B", "C": "BERT"},
}


def test_a_claim_may_compare_the_gains_of_rows_over_others(project):
    judged = judge(**GAINS)
    assert (judged.published.outcome, judged.ours.outcome) == (SUPPORTED, AGAINST)
    # three trained rows have a deviation of 0.40; nothing trains BERT
    p = 2 * scipy.stats.norm.sf(1.50 / (0.40 * 3**0.5))
    difference = "the gain of Ours is larger by 1.50 than that of C in column x"
    assert detail_text(judged.published) == f"{difference}, p = {p:.2g}"
    assert claim_formula(claim_of(**GAINS)) == "Ours − B > C − BERT; column x"


def test_two_gains_over_one_row_have_the_p_of_their_rows(project):
    rows = judge(versus=["C"])
    gains = judge(versus=["C"], gains_over={"Ours": "B", "C": "B"})
    assert p_text(rows.published) == p_text(gains.published)
    assert p_text(rows.ours) == p_text(gains.ours)


def test_a_gain_is_matched_if_its_own_two_rows_are(project):
    """The rows of different gains may have different settings."""
    rows = judge(table="8", versus=["BERT"])
    gains = judge(**GAINS)
    settings = {setting.name for setting in rows.ours.differs}
    assert settings
    assert gains.ours.differs == judge(table="8", versus=["B"]).ours.differs


@pytest.mark.parametrize(
    ("quote", "states"),
    [
        ("significantly better", True),
        ("a Significant drop", True),
        ("the most significant boost", False),
        ("the most significant boost, which is significant", True),
        ("better", False),
    ],
)
def test_most_significant_does_not_say_that_a_difference_is_significant(quote, states):
    assert claim_of(quote=quote).states_significance == states


def p_text(judged):
    """Read p from the details of a judgement."""
    return detail_text(judged).split("p = ")[1].split(";")[0]


NEAR = Contrast("B", "x", -0.1, error=0.2, p=0.6)
FAR = Contrast("C", "x", 0.3, error=0.2, p=0.13)
FAR_BELOW = Contrast("C", "x", -0.3, error=0.2, p=0.13)
HALF_OF_TWO = 0.2 * scipy.stats.norm.ppf(1 - 0.05 / 4)  # 95 % intervals of two at once


def test_of_all_that_a_row_is_above_some_gain_is_no_larger_than_what_is_excluded():
    judged = claims.judge_above(claim_of(versus=["B", "C"]), [NEAR, FAR])
    assert judged.excludes == pytest.approx(-0.1 + HALF_OF_TWO)


def test_of_the_largest_picked_gain_no_gain_is_larger_than_what_is_excluded():
    picked = claim_of(versus=["B", "C"]).model_copy(
        update={"up_to": Published(value=1.0, text="1.0")}
    )
    judged = claims.judge_above(picked, [NEAR, FAR])
    assert judged.excludes == pytest.approx(0.3 + HALF_OF_TWO)


def test_of_comparable_rows_none_is_further_in_either_direction_than_what_is_excluded():
    judged = claims.judge_comparable([NEAR, FAR_BELOW])
    assert judged.excludes == pytest.approx(0.3 + HALF_OF_TWO)


# ---------------------------------------------------------------- one claim, from its contrasts


def contrast(difference, p=None, **fields):
    """Make a contrast with a row B in column x, whose standard error is 0.5."""
    return Contrast("B", "x", difference, p=p, **{"error": 0.5, **fields})


def judge_contrasts(*contrasts, **claim):
    """Judge the claim that these settings make by contrasts."""
    return claims.judge_row(claim_of(**claim), contrasts, 2)


def outcome(judgement):
    return judgement.direction, judgement.significance


@pytest.mark.parametrize(
    ("contrasts", "direction", "significance"),
    [
        # every contrast has to be significant
        ([(2.0, 0.01), (1.0, 0.04)], Direction.AGREES, Significance.YES),
        ([(2.0, 0.01), (1.0, 0.06)], Direction.AGREES, Significance.NO),
        ([(2.0, 0.01), (1.0, None)], Direction.AGREES, Significance.INCOMPLETE),
        ([(2.0, 0.06), (1.0, None)], Direction.AGREES, Significance.NO),
        ([(2.0, None), (1.0, None)], Direction.AGREES, Significance.UNTESTED),
        ([(1.0, 0.05)], Direction.AGREES, Significance.NO),  # 0.05 itself is not significant
        ([(0.0, 1.0)], Direction.AGREES, Significance.NO),
        ([(-2.0, 0.01), (-1.0, 0.5)], Direction.OPPOSES, Significance.YES),
        ([(-2.0, None)], Direction.OPPOSES, Significance.UNTESTED),
        ([(-2.0, None), (1.0, 0.01)], Direction.MIXED, Significance.INCOMPLETE),
        # a test that is not known does not hide one that is
        ([(-2.0, None), (-1.0, 0.01)], Direction.OPPOSES, Significance.YES),
    ],
)
def test_a_row_is_above_others_if_every_contrast_shows_it(contrasts, direction, significance):
    judged = judge_contrasts(*[contrast(*values) for values in contrasts])
    assert outcome(judged) == (direction, significance)


def test_the_weakest_contrast_decides_and_of_equally_weak_ones_the_smallest():
    judged = judge_contrasts(contrast(3.0, 0.02), contrast(1.0, 0.03), contrast(0.5, 0.03))
    assert judged.basis.contrast.difference == 0.5
    assert judged.basis.pick == claims.Pick.WEAKEST
    assert judged.basis.tests == 1


def test_without_a_test_the_smallest_difference_is_shown():
    judged = judge_contrasts(contrast(3.0), contrast(1.0), contrast(2.0))
    assert judged.significance == Significance.UNTESTED
    assert judged.basis.contrast.difference == 1.0
    assert judged.basis.pick == claims.Pick.SMALLEST


def test_of_contrasts_with_a_test_the_weakest_is_shown():
    judged = judge_contrasts(contrast(1.0), contrast(2.0, 0.5), contrast(3.0, 0.01))
    assert judged.basis.contrast.difference == 2.0
    assert "1 of the 3 comparisons has no test: " in detail_text(judged)


def test_of_contrasts_against_a_claim_the_clearest_is_shown_and_the_largest_is_stated():
    judged = judge_contrasts(
        contrast(1.0, 0.001), contrast(-3.0, 0.04), contrast(-1.0, 0.01), contrast(-2.0, 0.01)
    )
    assert judged.basis.contrast.difference == -2.0
    assert (judged.basis.agreeing, judged.basis.compared) == (1, 4)
    assert judged.contrary == 3.0
    assert judged.contrary_p == pytest.approx(0.04)


def test_equal_values_do_not_go_against_a_claim():
    judged = judge_contrasts(contrast(0.0, 1.0), contrast(-1.0, 0.01))
    assert judged.direction == Direction.MIXED
    assert judged.basis.agreeing == 1


def test_a_corrected_p_is_at_most_1():
    judged = judge_contrasts(contrast(-1.0, 0.6), contrast(1.0, 0.6))
    assert judged.contrary_p == 1.0


NOT_MADE = NoContrast(Obstacle.CONTROL)


def test_what_could_not_be_compared_supports_nothing():
    judged = judge_contrasts(contrast(2.0, 0.01), NOT_MADE)
    assert (judged.verdict, judged.word) == (ClaimVerdict.OPEN, VerdictWord.NOT_TESTED)
    assert (len(judged.contrasts), judged.contrasts_asked) == (1, 2)


def test_what_could_not_be_compared_hides_no_opposition():
    judged = judge_contrasts(contrast(-2.0, 0.01), NOT_MADE)
    assert outcome(judged) == (Direction.OPPOSES, Significance.YES)


def test_if_nothing_could_be_compared_the_first_reason_is_given():
    judged = judge_contrasts(NOT_MADE, NoContrast(Obstacle.ONE_SEED))
    assert outcome(judged) == (None, Significance.UNTESTED)
    assert judged.basis == NOT_MADE


def test_if_controls_fail_for_any_contrast_the_scale_cannot_tell():
    fails = NoContrast(Obstacle.CANNOT_TELL)
    judged = judge_contrasts(NOT_MADE, fails)
    assert (judged.word, judged.basis) == (VerdictWord.CANNOT_TELL, fails)
    in_part = judge_contrasts(contrast(2.0, 0.01), fails)
    assert in_part.word == VerdictWord.CANNOT_TELL
    reason = "only 1 of 2 comparisons was judged, because for others controls of the scale fail"
    assert why_not_all(in_part) == reason


@pytest.mark.parametrize(
    ("contrasts", "direction", "significance", "lacks_limit"),
    [
        ([(1.0, 0.5)], Direction.AGREES, Significance.NO, False),
        ([(-1.0, 0.01)], Direction.OPPOSES, Significance.YES, False),
        # lower, but not shown to be worse: that may be on par
        ([(-1.0, 0.5)], Direction.AGREES, Significance.NO, True),
        ([(-1.0, 0.5), (1.0, None)], Direction.AGREES, Significance.NO, True),
        ([(-1.0, None), (1.0, None)], None, Significance.UNTESTED, True),
    ],
)
def test_only_a_row_that_is_shown_to_be_worse_is_not_on_par_or_better(
    contrasts, direction, significance, lacks_limit
):
    made = [contrast(*values) for values in contrasts]
    judged = judge_contrasts(*made, relation="not worse")
    assert outcome(judged) == (direction, significance)
    assert judged.lacks_limit == lacks_limit


@pytest.mark.parametrize(
    ("contrasts", "clearest"),
    [
        ([(1.0, 0.5), (-0.5, 0.3)], -0.5),  # the lowest p
        ([(1.0, 0.3), (-2.0, 0.3)], -2.0),  # of equal p, the largest
        ([(1.0, None), (-2.0, None)], -2.0),  # without any p, the largest
        ([(5.0, None), (-2.0, 0.3)], -2.0),
    ],
)
def test_the_clearest_contrast_speaks_against_comparable_rows(contrasts, clearest):
    judged = judge_contrasts(*[contrast(*values) for values in contrasts], **LIMIT)
    assert judged.basis.contrast.difference == clearest


def test_one_test_leaves_it_open_whether_rows_are_comparable():
    judged = judge_contrasts(contrast(1.0, 0.5), contrast(1.0, None), **LIMIT)
    assert outcome(judged) == (Direction.AGREES, Significance.NO)
    assert "1 of the 2 comparisons has no test: " in detail_text(judged)


def test_without_a_test_nothing_tells_whether_rows_are_comparable():
    judged = judge_contrasts(contrast(1.0, None), contrast(1.0, None), **LIMIT)
    assert outcome(judged) == (None, Significance.UNTESTED)


@pytest.mark.parametrize("p", [0.01, 0.5, None])
def test_a_claim_that_rows_are_comparable_is_told_to_lack_a_limit(p):
    text = detail_text(judge_contrasts(contrast(0.3, p), **LIMIT))
    assert text.startswith("the sentence says that rows are alike, but states no limit; ")


def test_rows_that_are_shown_to_differ_are_not_comparable_by_the_clearest_difference():
    judged = judge_contrasts(contrast(-1.5, 0.01), contrast(3.0, 0.5), **LIMIT)
    assert outcome(judged) == (Direction.OPPOSES, Significance.YES)
    assert (judged.contrary, judged.contrary_p) == (1.5, pytest.approx(0.02))


WITHIN_1 = LIMIT | {"less_than": "1.0"}


@pytest.mark.parametrize(
    ("differences", "direction", "contrary"),
    [
        ([0.99, -0.5], Direction.AGREES, None),
        ([1.0], Direction.OPPOSES, 0.0),  # less than 1.0 is claimed
        ([0.5, -1.25], Direction.OPPOSES, 0.25),
    ],
)
def test_all_differences_have_to_be_below_a_limit(differences, direction, contrary):
    made = [contrast(difference) for difference in differences]
    judged = judge_contrasts(*made, **WITHIN_1)
    assert (judged.direction, judged.contrary) == (direction, contrary)


def test_the_p_below_a_limit_is_that_of_the_contrast_nearest_to_it():
    """The distance to the limit is tested in either direction. Errors may differ."""
    judged = judge_contrasts(contrast(0.1, error=0.5), contrast(-0.4, error=0.2), **WITHIN_1)
    assert judged.basis.p == pytest.approx(2 * scipy.stats.norm.sf(0.9 / 0.5))
    assert judged.basis.largest.difference == -0.4
    assert judged.basis.tests == 1
    assert judged.contrary_p is None


def test_the_p_above_a_limit_is_that_of_the_largest_and_corrected():
    largest = contrast(1.6, error=0.2, over_seeds_only=True)
    judged = judge_contrasts(contrast(0.1, error=0.5), largest, **WITHIN_1)
    assert judged.basis.p == pytest.approx(2 * scipy.stats.norm.sf(3))
    assert judged.contrary_p == pytest.approx(2 * judged.basis.p)
    assert judged.basis.over_seeds_only


def test_a_limit_is_tested_over_seeds_only_if_one_contrast_is():
    over_seeds = contrast(0.1, over_seeds_only=True)
    assert judge_contrasts(over_seeds, contrast(-0.4), **WITHIN_1).basis.over_seeds_only
    assert not judge_contrasts(contrast(0.1), contrast(-0.4), **WITHIN_1).basis.over_seeds_only


@pytest.mark.parametrize(
    ("known", "significance"),
    [
        (0.1, Significance.INCOMPLETE),  # shown to be smaller than the limit
        (0.9, Significance.NO),
        (None, Significance.UNTESTED),
    ],
)
def test_an_unknown_error_leaves_it_open_whether_all_are_within_a_limit(known, significance):
    contrasts = [contrast(0.1, error=None)]
    if known is not None:
        contrasts.append(contrast(known, error=0.1))
    judged = judge_contrasts(*contrasts, **WITHIN_1)
    assert outcome(judged) == (Direction.AGREES, significance)


def test_a_difference_above_the_limit_is_shown_whatever_the_error_of_another_is():
    judged = judge_contrasts(contrast(3.0, error=0.1), contrast(0.1, error=None), **WITHIN_1)
    assert outcome(judged) == (Direction.OPPOSES, Significance.YES)


def test_a_missing_test_is_no_test_that_fails():
    """A sentence that says “significantly” is not accused where the only test is significant."""
    judged = judge_contrasts(contrast(2.0, 0.001), contrast(1.0, None), quote="significantly")
    assert judged.outcome == NOT_SHOWN


@pytest.mark.parametrize(
    ("difference", "size"),
    [
        (2.015, StatedSize.AS_STATED),
        (2.016, StatedSize.OTHER),
        (1.985, StatedSize.AS_STATED),
        (1.984, StatedSize.OTHER),
    ],
)
def test_a_stated_size_may_be_off_by_half_its_unit_and_a_unit_of_the_difference(difference, size):
    """Both values of a printed difference are rounded."""
    assert judge_contrasts(contrast(difference, unit=0.01), by="2.00").size == size


def test_of_several_units_the_coarsest_is_allowed():
    fine = contrast(2.0, unit=0.01)
    coarse = contrast(2.1, unit=0.1)
    assert judge_contrasts(fine, coarse, by="2.00").size == StatedSize.AS_STATED


def test_a_difference_of_printed_values_is_as_coarse_as_the_coarser_one(project):
    own, other = grid_view("made_up", "table1", SCALE).rows[:2]
    coarse = replace(own[0], published=Published(value=70.0, text="70.0"))
    for pair in ((coarse, other[0]), (other[0], coarse)):
        compared = contrast_printed(claim_of(), Pairing("B", "x", [pair]))
        assert compared.unit == pytest.approx(0.1)


def test_a_baseline_cancels_only_between_two_differences_to_it(project):
    """The baseline's own cell in a column of differences is computed from nothing."""
    ours, baseline, third, _ = [row[2] for row in grid_view("made_up", "table1", SCALE).rows]
    assert varying_cells(ours, third) == (ours.parts[0], third.parts[0])
    assert varying_cells(ours, baseline) == (ours, baseline)
    assert varying_cells(baseline, ours) == (baseline, ours)


def test_a_setting_in_which_several_rows_differ_is_listed_once():
    batch = Setting("batch", "64", "128")
    length = Setting("length", "32", "64")
    made = [contrast(1.0, differs=(batch,)), contrast(1.0, differs=(batch, length))]
    assert judge_contrasts(*made).differs == (batch, length)


PAIR = Pairing("B", "x", [])


def test_deviations_are_compared_by_an_f_test():
    own = Summary(70.0, 0.3, 4)
    other = Summary(71.0, 0.6, 6)
    compared = contrast_deviations(PAIR, 1, [own, other], 0.01)
    assert compared.difference == pytest.approx(-0.3)
    assert compared.p == pytest.approx(2 * scipy.stats.f.cdf(0.25, 3, 5))
    swapped = contrast_deviations(PAIR, 1, [other, own], 0.01)
    assert swapped.p == pytest.approx(compared.p)
    assert contrast_deviations(PAIR, -1, [own, other], 0.01).difference == pytest.approx(0.3)


KNOWN = Summary(70.0, 0.3, 4)


@pytest.mark.parametrize(
    "sides", [(KNOWN, Summary(70.0, None, 4)), (Summary(70.0, None, 4), KNOWN)]
)
def test_a_deviation_that_is_not_known_is_not_compared(sides):
    assert contrast_deviations(PAIR, 1, sides, 0.01) is None


@pytest.mark.parametrize("sides", [(KNOWN, Summary(70.0, 0.0, 4)), (KNOWN, Summary(70.0, 0.4, 1))])
def test_a_deviation_of_0_or_of_one_run_is_not_tested(sides):
    for pair in (sides, sides[::-1]):
        assert contrast_deviations(PAIR, 1, pair, 0.01).p is None


@pytest.mark.parametrize(
    ("unit", "reason"), [(0.01, "the deviation over seeds is not known"), (0.0, "one seed")]
)
def test_only_our_deviations_are_said_to_be_of_one_seed(unit, reason):
    """The unit is that of the last printed digit, and 0 for our runs."""
    untested = contrast_deviations(PAIR, 1, [KNOWN, Summary(70.0, 0.4, 1)], unit)
    assert no_test(untested) == reason


def test_a_deviation_of_0_is_not_called_one_seed():
    without_spread = contrast_deviations(PAIR, 1, [KNOWN, Summary(70.0, 0.0, 4)], 0.0)
    assert no_test(without_spread) == "a deviation is 0"
    assert no_test(contrast(1.0, None)) == "one seed"


@pytest.mark.parametrize(
    ("claim", "difference", "p", "word"),
    [
        ({}, 0.18, None, VerdictWord.NOT_TESTED),
        ({}, 0.18, 0.01, VerdictWord.HIGHER),
        ({}, 0.18, 0.5, VerdictWord.UNCLEAR),
        ({}, -0.18, 0.5, VerdictWord.UNCLEAR),
        ({}, -0.18, 0.01, VerdictWord.LOWER),
        # a difference is positive if it agrees with a claim
        ({"lower": True}, 0.18, 0.01, VerdictWord.LOWER),
        ({"lower": True}, -0.18, 0.01, VerdictWord.HIGHER),
        (LIMIT, 2.0, 0.01, VerdictWord.HIGHER),
        (LIMIT, -2.0, 0.01, VerdictWord.LOWER),
        (LIMIT | {"less_than": "5"}, 0.18, 0.5, VerdictWord.SAME),
        (LIMIT | {"less_than": "5"}, -9.0, 0.01, VerdictWord.LOWER),
    ],
)
def test_runs_on_another_encoder_only_compare_rows(claim, difference, p, word):
    judged = judge_contrasts(contrast(difference, p), **claim)
    assert replace(judged, strict=False).word == word


def test_rows_that_differ_by_next_to_nothing_are_the_same():
    judged = judge_contrasts(contrast(0.01, 1.0, is_inactive=True))
    assert judged.word == VerdictWord.SAME


def test_without_a_contrast_nothing_is_tested():
    assert judge_contrasts(NOT_MADE).word == VerdictWord.NOT_TESTED
    assert judge_contrasts(NoContrast(Obstacle.CANNOT_TELL)).word == VerdictWord.CANNOT_TELL


@pytest.mark.parametrize(
    ("claim", "difference", "p", "verdict"),
    [
        ({}, 1.0, 0.01, ClaimVerdict.SUPPORTED),
        ({}, 1.0, 0.5, ClaimVerdict.OPEN),
        ({}, -1.0, 0.5, ClaimVerdict.OPEN),
        ({}, -1.0, 0.01, ClaimVerdict.AGAINST),
        ({"quote": "significantly better"}, 1.0, 0.5, ClaimVerdict.OPEN),
        ({}, 1.0, None, ClaimVerdict.CANNOT_TELL),
        ({}, -1.0, None, ClaimVerdict.CANNOT_TELL),
        ({"by": "1.00"}, 1.0, 0.01, ClaimVerdict.SUPPORTED),
        ({"by": "2.60"}, 0.18, 0.01, ClaimVerdict.MISPRINT),
        ({"by": "2.60"}, 0.18, 0.5, ClaimVerdict.MISPRINT),
        ({"by": "2.60"}, 0.18, None, ClaimVerdict.MISPRINT),  # sizes are compared without a test
        ({"by": "2.60"}, -2.6, 0.01, ClaimVerdict.AGAINST),
        (LIMIT | {"less_than": "0.4"}, 0.4, 0.5, ClaimVerdict.MISPRINT),
    ],
)
def test_a_claim_has_one_of_five_verdicts_on_print(claim, difference, p, verdict):
    assert judge_contrasts(contrast(difference, p, unit=0.01), **claim).verdict == verdict


@pytest.mark.parametrize(
    ("difference", "verdict"), [(0.18, ClaimVerdict.OPEN), (2.2, ClaimVerdict.SUPPORTED)]
)
def test_our_runs_support_no_claim_whose_size_they_exclude(difference, verdict):
    """Intervals are ± 0.98."""
    judged = judge_contrasts(contrast(difference, 0.01), by="2.60")
    assert replace(judged, strict=False).verdict == verdict
    sentence = claims.judge_sentence([replace(judged, strict=False)] * 2)
    assert sentence.verdict == verdict


def test_a_verdict_has_the_stated_size_beside_that_of_the_table():
    text = judgement_text(judge_contrasts(contrast(0.18, 0.01, unit=0.01), by="2.60"))
    assert text == "*misprint*: Ours is 0.18 above B in column x (the sentence says +2.60)"


def test_sentences_about_a_table_that_cannot_be_planned_are_left_out(tmp_path, monkeypatch):
    """No scale has the encoder of Table 2."""
    rows = {"Ours": ("simcse", ["70.00"]), "B": ("ct", ["69.00"])}
    tables = {"1": table(rows, [X]), "2": table(rows, [X], encoder="nobody's")}
    stated = []
    for place in ({"table": "1"}, {"table": "2"}, {"table": "1", "versus_table": "2"}):
        claim = {"quote": f"quote {len(stated)}", "section": "1", "row": "Ours", "columns": ["x"]}
        stated.append(claim | place)
    made_up(tmp_path, monkeypatch, {"name": "made_up", "tables": tables, "claims": stated})

    sentences = claims.stated_quotes(SCALE, ["made_up"])
    monkeypatch.undo()
    clear()
    assert [parts[0].quote for _, parts in sentences] == ["quote 0"]


# ---------------------------------------------------------------- one sentence, several rows


def row_judged(direction, significance, p=None):
    """Make the judgement on one row of a sentence.

    Args:
        p: of the numbers that go against the claim.
    """
    return claims.Judgement(
        direction, significance, StatedSize.NONE, claims.RowVerdicts(()), contrary_p=p
    )


def opposing(significance, p):
    """Make the judgement on a row whose numbers go against the claim."""
    return row_judged(Direction.OPPOSES, significance, p)


HOLDS = row_judged(Direction.AGREES, Significance.YES)
WEAK = row_judged(Direction.AGREES, Significance.NO)
OPEN = row_judged(None, Significance.UNTESTED)
UNTESTED_GAIN = row_judged(Direction.AGREES, Significance.UNTESTED)


@pytest.mark.parametrize(
    ("rows", "printed", "runs"),
    [
        ([HOLDS, HOLDS], SUPPORTED, SUPPORTED),
        ([HOLDS, WEAK], NOT_SHOWN, NOT_SHOWN),
        # a claim without a test leaves the sentence open
        ([HOLDS, OPEN], NOT_SHOWN, NOT_SHOWN),
        ([HOLDS, WEAK, OPEN], NOT_SHOWN, NOT_SHOWN),
        ([OPEN, UNTESTED_GAIN], UNTESTABLE, UNTESTABLE),
        ([WEAK, UNTESTED_GAIN], NOT_SHOWN, NOT_SHOWN),
        ([WEAK, opposing(Significance.UNTESTED, p=None)], OTHER_WAY, NOT_SHOWN),
        ([HOLDS, opposing(Significance.NO, p=0.3)], OTHER_WAY, NOT_SHOWN),
        ([OPEN, opposing(Significance.UNTESTED, p=None)], OTHER_WAY, NOT_SHOWN),
        ([HOLDS, opposing(Significance.YES, p=0.02)], AGAINST, AGAINST),
        # not significant over two rows
        ([HOLDS, opposing(Significance.YES, p=0.03)], OTHER_WAY, NOT_SHOWN),
    ],
)
def test_a_sentence_has_one_verdict_over_its_rows(rows, printed, runs):
    """On printed numbers a row that opposes decides even if it is not significant."""
    on_print = [replace(row, strict=True) for row in rows]
    assert claims.judge_sentence(on_print).outcome == printed
    on_runs = [replace(row, strict=False) for row in rows]
    assert claims.judge_sentence(on_runs).outcome == runs


def test_one_part_that_is_not_significant_decides_on_a_sentence_that_says_significantly():
    significantly = [replace(row, claims_significance=True) for row in (HOLDS, WEAK, UNTESTED_GAIN)]
    assert claims.judge_sentence(significantly).outcome == UNPROVEN
    on_runs = [replace(row, strict=False) for row in significantly]
    assert claims.judge_sentence(on_runs).outcome == NOT_SHOWN


@pytest.mark.parametrize(
    ("rows", "direction"),
    [
        ([opposing(Significance.NO, p=0.3)] * 2, Direction.OPPOSES),
        ([HOLDS, opposing(Significance.NO, p=0.3)], Direction.MIXED),
        ([HOLDS, row_judged(Direction.MIXED, Significance.NO, p=0.3)], Direction.MIXED),
    ],
)
def test_a_sentence_is_opposed_as_a_whole_only_if_each_of_its_rows_is(rows, direction):
    assert claims.judge_sentence(rows).direction == direction


def test_a_sentence_states_the_largest_contrary_difference_and_the_clearest_p():
    rows = [
        replace(opposing(Significance.NO, p=0.3), contrary=2.0),
        replace(opposing(Significance.YES, p=0.01), contrary=1.0),
        HOLDS,
    ]
    judged = claims.judge_sentence(rows)
    assert judged.contrary == 2.0
    assert judged.contrary_p == pytest.approx(0.03)


def test_a_sentence_claims_significance_if_one_of_its_rows_does():
    rows = [HOLDS, replace(WEAK, claims_significance=True)]
    assert claims.judge_sentence(rows).claims_significance
    assert not claims.judge_sentence([HOLDS, WEAK]).claims_significance


def test_a_sentence_of_one_row_is_judged_as_this_row():
    assert claims.judge_sentence([HOLDS]) == HOLDS


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ([StatedSize.NONE] * 2, StatedSize.NONE),
        ([StatedSize.NONE, StatedSize.AS_STATED], StatedSize.AS_STATED),
        ([StatedSize.AS_STATED, StatedSize.OTHER], StatedSize.OTHER),
    ],
)
def test_the_size_of_a_sentence_is_that_of_all_its_rows(sizes, size):
    rows = [replace(HOLDS, size=stated) for stated in sizes]
    assert claims.judge_sentence(rows).size == size


# ---------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    "claim",
    [
        {"row": "Nobody"},
        {"versus": ["Nobody"]},
        {"exclude": ["Nobody"]},
        {"columns": ["z"]},
        {"versus": ["B"], "versus_column": "z"},
        {"versus": ["C"], "versus_table": "2", "versus_column": "1%"},  # C is in Table 1 only
        {"table": "99"},
        {"table": "6"},
        {"versus": ["B"], "gains_over": {"Ours": "Nobody", "B": "C"}},
    ],
)
def test_an_unknown_name_is_refused_with_its_claim(claim):
    stated = {"quote": QUOTE, "section": "4", "table": "1", "row": "Ours", "columns": ["x"]} | claim
    paper = PAPER | {"title": "A paper", "reference": "Somebody", "claims": [stated]}
    with pytest.raises(ValidationError, match=rf"claims\.0\s.*'{QUOTE}': "):
        Paper.model_validate(paper)


# ---------------------------------------------------------------- the papers


@pytest.fixture
def no_runs(tmp_path, monkeypatch):
    """Use the project's own papers, without a score on disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("csebench.base.project.ROOT", ROOT)
    clear()
    yield
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize(
    ("paper", "words", "difference", "stated"),
    [
        ("micse", "average gain of (+3.94)", 1.98, StatedSize.OTHER),
        ("micse", "up to (+5.91)", 5.91, StatedSize.AS_STATED),
        ("informin_cl", "(+1.67%)", 1.67, StatedSize.AS_STATED),
        ("msse", "to 80.15% (+3.90%)", 3.90, StatedSize.AS_STATED),
    ],
)
def test_what_papers_say_of_their_numbers(no_runs, paper, words, difference, stated):
    (claim,) = [claim for claim in catalog.paper(paper).claims if words in claim.quote]
    judged = claims.judge(paper, claim, SCALE)
    assert judged.published.size == stated
    assert f" is {difference:.2f} above SimCSE" in detail_text(judged.published)
    assert judged.ours.outcome == UNTESTABLE


def test_seven_tasks_are_no_more_certain_than_their_printed_average(no_runs):
    """MSSE's Table 3 says the same twice: 0.68 more than CLSEP, by the column of averages and by
    the tasks' mean."""
    verdicts = {}
    for claim in catalog.paper("msse").claims:
        if claim.table == "3":
            judged = claims.judge("msse", claim, SCALE)
            verdicts[claim.on_average] = judged.published.outcome
    assert verdicts[True] == verdicts[False]


def test_sizes_that_no_run_sees_all_of_are_not_compared(no_runs):
    """A run of mini sees 6,000 sentences, so columns of 10,000 and more train on equally many."""
    view = grid_view("micse", "table2", "mini")
    labels = [column.label for column in view.score_grid.columns]
    cells = dict(zip(labels, view.rows[-1], strict=True))
    assert differ_in_size_unseen(cells["1%"], cells["10%"])
    assert not differ_in_size_unseen(cells["0.1%"], cells["1%"])
