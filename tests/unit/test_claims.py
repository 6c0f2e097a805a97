"""Claims: every form on a made-up paper, on its printed numbers and on made-up runs; and what
the real papers say."""

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
from csebench.report.numbers import claims, estimates, printed_spread
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.claims import ClaimVerdict, Direction, Significance, StatedSize
from csebench.report.numbers.contrasts import Contrast, differ_in_size_unseen
from csebench.report.numbers.others import Spread
from csebench.report.words.claims import detail_text, judgement_text

QUOTE = "better by far"
LIMIT = {"relation": "comparable"}
FEW_SHOT = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
X, Y = {"label": "x", "task": "STS-B"}, {"label": "y", "task": "SICK-R"}
# A single run's deviation over seeds is 0.40, so that a difference of two has the standard error
# 0.40 √2 = 0.57.
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


def claim_of(**more):
    return Claim(
        **{"quote": QUOTE, "section": "1", "table": "1", "row": "Ours", "columns": ["x"]} | more
    )


def judge(**more):
    return claims.judge("made_up", claim_of(**more), SCALE)


# ---------------- one claim, on the printed numbers and on our runs


@pytest.mark.parametrize(
    ("claim", "on_print", "on_runs"),
    [
        (
            {"versus": ["B"]},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.SUPPORTED,
        ),  # by 2.00; by 5, 5 and 4.8
        (
            {"versus": ["C"]},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.NOT_SHOWN,
        ),  # by 0.50; by 0, -0.2 and 0.5
        (
            {"versus": ["C"], "quote": "significantly better"},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        (
            {"versus": ["C"], "columns": ["y"]},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.CONTRADICTED,
        ),  # by 0.40; by 5, 5 and 6
        # by 0.50; by 1, -1 and -1
        (
            {"versus": ["B"], "columns": ["y"], "lower": True},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        (
            {},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.UNTESTABLE,
        ),  # others: of printed rows, those with numbers
        ({"versus": ["D"]}, ClaimVerdict.UNTESTABLE, ClaimVerdict.UNTESTABLE),
        ({"row": "D"}, ClaimVerdict.UNTESTABLE, ClaimVerdict.UNTESTABLE),
        # 2.1 standard errors below it
        (
            {"versus": ["B"], **LIMIT, "less_than": "3.2"},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.CONTRADICTED,
        ),
        (
            {"versus": ["B"], **LIMIT, "less_than": "3.0"},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.CONTRADICTED,
        ),  # 1.8
        (
            {"versus": ["B"], **LIMIT, "less_than": "2.0"},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.CONTRADICTED,
        ),  # not less
        # our mean is 0.10, its error 0.21
        (
            {"versus": ["C"], **LIMIT, "less_than": "1.5"},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.SUPPORTED,
        ),
        (
            {"versus": ["C"], **LIMIT, "less_than": "0.05"},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        # t = 2.1 on 2 degrees: p = 0.16
        (
            {"versus": ["C"], **LIMIT, "less_than": "0.55"},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.NOT_SHOWN,
        ),
        ({"versus": ["C"], **LIMIT}, ClaimVerdict.NOT_SHOWN, ClaimVerdict.NOT_SHOWN),
        (
            {"row": "B", "versus": ["Ours"], **LIMIT},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.CONTRADICTED,
        ),  # either way
        # one is shown, whatever the other is
        ({"versus": ["B", "D"], **LIMIT}, ClaimVerdict.CONTRADICTED, ClaimVerdict.CONTRADICTED),
        ({"versus": ["C", "D"], **LIMIT}, ClaimVerdict.UNTESTABLE, ClaimVerdict.UNTESTABLE),
        (
            {"versus": ["B"], "relation": "not worse"},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.SUPPORTED,
        ),
        # worse by 0.40, 5.33
        (
            {"versus": ["C"], "columns": ["y"], "relation": "not worse"},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.CONTRADICTED,
        ),
        ({"versus": ["C"], "statistic": "std"}, ClaimVerdict.UNTESTABLE, ClaimVerdict.NOT_SHOWN),
        # F = 25
        (
            {"table": "2", "columns": ["1%"], "statistic": "std", "lower": True},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.UNTESTABLE,
        ),
        # a tie
        (
            {"table": "2", "columns": ["10%"], "statistic": "std", "lower": True},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.NOT_SHOWN,
        ),
        # on 1 and 1
        (
            {"table": "4", "columns": ["1%"], "statistic": "std", "lower": True},
            ClaimVerdict.NOT_SHOWN,
            ClaimVerdict.UNTESTABLE,
        ),
        # two seeds have a deviation, one has none
        ({"table": "4", "columns": ["1%"]}, ClaimVerdict.SUPPORTED, ClaimVerdict.UNTESTABLE),
        # one seed shows nothing
        (
            {"table": "2", "columns": ["1%"], "lower": True},
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        (
            {"table": "5", "columns": ["1%"]},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.UNTESTABLE,
        ),  # a deviation of 0
        (
            {"table": "2", "columns": ["1%", "10%"], "on_average": True},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.UNTESTABLE,
        ),
        # by 1.25; by 2, 3, 2.9
        (
            {"versus": ["B"], "columns": ["x", "y"], "on_average": True},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.SUPPORTED,
        ),
        (
            {"table": "2", "columns": ["10%"], "versus": ["Ours"], "versus_column": "1%"},
            ClaimVerdict.SUPPORTED,
            ClaimVerdict.UNTESTABLE,
        ),
        # by 1.00; nothing trains BERT: p = 0.01
        ({"versus": ["BERT"], "versus_table": "3"}, ClaimVerdict.SUPPORTED, ClaimVerdict.SUPPORTED),
        (
            {"table": "3", "versus": ["Chance"]},
            ClaimVerdict.UNTESTABLE,
            ClaimVerdict.UNTESTABLE,
        ),  # a control
        # no deviation of few sentences
        ({"table": "7", "columns": ["1%"]}, ClaimVerdict.UNTESTABLE, ClaimVerdict.UNTESTABLE),
    ],
)
def test_verdict(project, claim, on_print, on_runs):
    judged = judge(**claim)
    assert (judged.published.verdict, judged.ours.verdict) == (on_print, on_runs)


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


def test_several_comparisons(project):
    """`up_to` asks for one of them; else the p shown is that of the weakest; an average is one
    comparison."""
    claim = {"columns": ["x", "y"], "versus": ["B", "C"]}
    mixed, largest = judge(**claim).published, judge(**claim, up_to="2.00").published
    assert (
        mixed.verdict == ClaimVerdict.CONTRADICTED
        and "against: 0.40 below C in y, p = 1 for 4 " in detail_text(mixed)
    )
    assert (largest.verdict, largest.size) == (
        ClaimVerdict.SUPPORTED,
        StatedSize.AS_STATED,
    ) and "+2.00 over B in x" in detail_text(largest)
    alone = detail_text(judge(versus=["C"]).published).split("p = ")[1]
    assert detail_text(judge(versus=["B", "C"]).published).endswith(
        f"weakest: +0.50 over C in x, p = {alone}"
    )
    average = judge(table="2", columns=["1%", "10%"], on_average=True).published
    assert detail_text(average).startswith("+2.05 over B in average")


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
    contrasts = [Contrast("B", "x", difference, error=0.5, p=p) for difference, p in differences]
    judged = claims.judge_row(claim_of(**claim), contrasts, 2)
    assert (judged.direction, judged.significance) == (direction, shown)


def test_what_nobody_published_seeds_of_cannot_be_tested(project, monkeypatch):
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: None)
    judged = judge(versus=["B"]).published
    assert judged.verdict == ClaimVerdict.UNTESTABLE
    assert judgement_text(judged).endswith("; the spread is not known")
    assert judge(versus=["B"], **LIMIT).published.verdict == ClaimVerdict.UNTESTABLE
    assert judge(row="B", versus=["Ours"]).published.verdict == ClaimVerdict.CONTRADICTED


def test_the_test_of_a_claim_counts_seeds_and_items(project, monkeypatch):
    """The same in a table and in a figure with the same runs."""
    monkeypatch.setattr(estimates, "item_effects", lambda terms, scale: {"": np.array([-0.2, 0.2])})
    estimate = estimates.Estimate(14.8 / 3, 3, np.std([5, 5, 4.8], ddof=1), 0.2)
    for place in ({"table": "1"}, {"table": None, "figure": "1"}):
        assert detail_text(judge(**place, versus=["B"]).ours).endswith(f"p = {estimate.p():.2g}")


def test_two_differences_to_one_baseline_have_the_p_of_their_rows(project):
    """What both subtract cancels, on print and in our runs."""
    rows, changes = (judge(versus=["C"], columns=[column]) for column in ("x", "change"))
    for side in ("published", "ours"):
        p = [
            detail_text(getattr(judged, side)).split("p = ")[1].split(";")[0]
            for judged in (rows, changes)
        ]
        assert p[0] == p[1]


def test_what_95_percent_exclude_holds_for_all_comparisons_at_once():
    """Of all that a row is above, some gain is no larger; of the largest picked, none is; of
    comparable rows, none in either direction."""
    near, far = (
        Contrast("B", "x", -0.1, 0.2, p=0.6),
        Contrast("C", "x", 0.3, 0.2, p=0.13),
    )
    half = 0.2 * scipy.stats.norm.ppf(1 - 0.05 / 4)
    claim = claim_of(versus=["B", "C"])
    picked = claim.model_copy(update={"up_to": Published(value=1.0, text="1.0")})
    assert claims.judge_above(claim, [near, far]).excludes == pytest.approx(-0.1 + half)
    assert claims.judge_above(picked, [near, far]).excludes == pytest.approx(0.3 + half)
    either = claims.judge_comparable([near, Contrast("C", "x", -0.3, 0.2, p=0.13)])
    assert either.excludes == pytest.approx(0.3 + half)


# ---------------------------------------------------------------- one sentence, several rows

HOLDS, WEAK, OPEN = (
    (Direction.AGREES, Significance.YES, None),
    (Direction.AGREES, Significance.NO, None),
    (None, Significance.UNTESTED, None),
)


@pytest.mark.parametrize(
    ("rows", "printed", "runs"),
    [
        ([HOLDS, HOLDS], ClaimVerdict.SUPPORTED, ClaimVerdict.SUPPORTED),
        ([HOLDS, WEAK], ClaimVerdict.NOT_SHOWN, ClaimVerdict.NOT_SHOWN),
        ([HOLDS, OPEN], ClaimVerdict.UNTESTABLE, ClaimVerdict.UNTESTABLE),
        (
            [HOLDS, (Direction.OPPOSES, Significance.NO, 0.3)],
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        (
            [OPEN, (Direction.OPPOSES, Significance.UNTESTED, None)],
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),
        (
            [HOLDS, (Direction.OPPOSES, Significance.YES, 0.02)],
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.CONTRADICTED,
        ),
        (
            [HOLDS, (Direction.OPPOSES, Significance.YES, 0.03)],
            ClaimVerdict.CONTRADICTED,
            ClaimVerdict.NOT_SHOWN,
        ),  # of two rows
    ],
)
def test_a_sentence_has_one_verdict_over_its_rows(rows, printed, runs):
    for strict, verdict in ((True, printed), (False, runs)):
        judgements = [
            claims.Judgement(
                d, s, StatedSize.NONE, claims.RowVerdicts(()), contrary_p=p, strict=strict
            )
            for d, s, p in rows
        ]
        assert claims.judge_sentence(judgements).verdict == verdict


def test_the_size_of_a_sentence_is_that_of_all_its_rows():
    for sizes, size in (
        ([StatedSize.NONE, StatedSize.AS_STATED], StatedSize.AS_STATED),
        ([StatedSize.AS_STATED, StatedSize.OTHER], StatedSize.OTHER),
    ):
        rows = [
            claims.Judgement(Direction.AGREES, Significance.YES, stated, claims.RowVerdicts(()))
            for stated in sizes
        ]
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
    ],
)
def test_an_unknown_name_is_refused_with_its_claim(claim):
    stated = {"quote": QUOTE, "section": "4", "table": "1", "row": "Ours", "columns": ["x"]} | claim
    with pytest.raises(ValidationError, match=rf"claims\.0\s.*'{QUOTE}': "):
        Paper.model_validate(
            PAPER | {"title": "A paper", "reference": "Somebody", "claims": [stated]}
        )


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
        ("micse", "average gain of (+3.94)", 1.98, StatedSize.OTHER),
        ("micse", "up to (+5.91)", 5.91, StatedSize.AS_STATED),
        ("informin_cl", "(+1.67%)", 1.67, StatedSize.AS_STATED),
        ("msse", "to 80.15% (+3.90%)", 3.90, StatedSize.AS_STATED),
    ],
)
def test_what_papers_say_of_their_numbers(no_runs, paper, words, difference, stated):
    (claim,) = [claim for claim in catalog.paper(paper).claims if words in claim.quote]
    found = claims.judge(paper, claim, SCALE)
    assert found.published.size == stated and detail_text(found.published).startswith(
        f"{difference:+.2f} over "
    )
    assert found.ours.verdict == ClaimVerdict.UNTESTABLE


def test_seven_tasks_are_no_more_certain_than_their_printed_average(no_runs):
    """MSSE's Table 3 says the same twice: 0.68 more than CLSEP, by the column of averages and by
    the tasks' mean."""
    of_table = [claim for claim in catalog.paper("msse").claims if claim.table == "3"]
    found = {
        claim.on_average: claims.judge("msse", claim, SCALE).published.verdict for claim in of_table
    }
    assert found[True] == found[False]


def test_sizes_that_no_run_sees_all_of_are_not_compared(no_runs):
    """A run of mini sees 6,000 sentences, so that columns of 10,000 and more train on equally
    many."""
    view = grid_view("micse", "table2", "mini")
    cells = dict(
        zip((column.label for column in view.score_grid.columns), view.rows[-1], strict=True)
    )
    assert differ_in_size_unseen(cells["1%"], cells["10%"])
    assert not differ_in_size_unseen(cells["0.1%"], cells["1%"])
