"""Controls of a scale: differences that it must see before it judges methods of a kind."""

from math import isnan

import pytest
from made_up import clear, made_up, table
from score_files import write_scores

from csebench.base.errors import BadInput
from csebench.plan import grids
from csebench.plan.controls import control_scores
from csebench.plan.targets import parse_target
from csebench.report.numbers import compare
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.claims import judge_all
from csebench.report.numbers.controls import control_results, why_not_judged
from csebench.report.numbers.rank_agreement import (
    DifferencePair,
    difference_pairs,
    rank_agreement,
    rank_correlation,
)
from csebench.report.numbers.refusals import Relation
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.pages.index import index_page
from csebench.report.pages.table import table_page
from csebench.report.words.claims import here_text
from csebench.report.words.comparisons import family_sentence, sentence
from csebench.report.words.controls import scale_doubt

METHODS = {
    "SimCSE": "simcse",
    "CT": "ct",
    "Untrained": "bert",
    "Whitening": "whitening",
    "With labels": "simcse_sup",
}
PRINTED = {
    "SimCSE": 76.25,
    "CT": 72.05,
    "Untrained": 56.70,
    "Whitening": 66.28,
    "With labels": 81.57,
}
SEEDS = (1, 2, 3)
WORKS = {"SimCSE": 60, "CT": 50, "Untrained": 40, "Whitening": 45, "With labels": 70}


def paper():
    """Declare a paper with one table of averages, and the questions that it asks."""
    rows = {label: (method, [str(PRINTED[label])]) for label, method in METHODS.items()}
    compare_rows = [
        {"question": "Is SimCSE better than CT?", "primary": True, "rows": [["SimCSE", "CT"]]},
        {"question": "Does training help?", "rows": [["SimCSE", "Untrained"], ["CT", "Untrained"]]},
        {"question": "Does a map help?", "rows": [["Whitening", "Untrained"]]},
        {"question": "Do labels help?", "rows": [["With labels", "SimCSE"]]},
    ]
    columns = [{"label": "Avg.", "task": "Avg."}]
    claims = [
        {"quote": "SimCSE wins", "section": "1", "table": "1", "row": "SimCSE", "versus": ["CT"]},
        {"quote": "labels win", "section": "1", "table": "1", "row": "With labels"},
    ]
    claims[1]["versus"] = ["SimCSE"]
    for claim in claims:
        claim["columns"] = ["Avg."]
    return {
        "name": "made_up",
        "tables": {"1": table(rows, columns, compare=compare_rows)},
        "claims": claims,
    }


def control(row, against, judges, least=2):
    return {
        "name": f"{row} above {against}",
        "table": "made_up/table1",
        "row": row,
        "against": against,
        "column": "Avg.",
        "least": least,
        "judges": [judges],
    }


CONTROLS = [
    control("SimCSE", "Untrained", "unlabelled"),
    control("With labels", "SimCSE", "labelled", least=0),
]


@pytest.fixture
def scale(tmp_path, monkeypatch):
    """Make a project whose scale has controls, and write scores: `scale(averages)`.

    Args of the function:
        averages: of all seeds by row, in percent. Rows that are left out have no scores.
    """

    def make(averages, controls=CONTROLS, name="mine"):
        triplets = {"triplets": "nli-smoke", "seeds": list(SEEDS), "seeds_by_size": {}}
        made_up(tmp_path, monkeypatch, paper(), name=name, controls=controls, **triplets)
        grid = grids.find_grid("made_up", "table1")
        for label, average in averages.items():
            (cell,) = grids.plan_grid("made_up", "table1", name)[grid.row(label)]
            for spec in cell.specs:
                value = (average + 0.01 * spec.seed) / 100
                write_scores(spec, "sts", name, [("Avg.", "spearman", value)])
        clear()
        return name

    yield make
    clear()


def relations(scale_name):
    """Return what every comparison of the table shows, by its rows."""
    shown = {}
    for answer in compare.answers(grid_view("made_up", "table1", scale_name)):
        for comparison in answer.comparisons:
            shown[comparison.row, comparison.against] = comparison.relation
    return shown


def test_a_scale_whose_controls_hold_judges(scale):
    name = scale(WORKS)

    assert [result.holds for result in control_results(name)] == [True, True]
    assert set(relations(name).values()) == {Relation.BETTER}


def test_a_control_that_fails_takes_the_verdicts_on_its_kind_and_leaves_the_numbers(scale):
    """What trains nothing, or with labels, keeps its verdict."""
    name = scale(WORKS | {"Untrained": 58.5})

    assert [result.holds for result in control_results(name)] == [False, True]
    assert relations(name) == {
        ("SimCSE", "CT"): Relation.CANNOT_TELL,
        ("SimCSE", "Untrained"): Relation.CANNOT_TELL,
        ("CT", "Untrained"): Relation.CANNOT_TELL,
        ("Whitening", "Untrained"): Relation.WORSE,
        ("With labels", "SimCSE"): Relation.BETTER,
    }
    primary, *_ = compare.answers(grid_view("made_up", "table1", name))
    (comparison,) = primary.comparisons
    assert comparison.estimate.gain == pytest.approx(10)
    assert comparison.low == pytest.approx(10)


def test_a_failed_control_of_methods_with_labels_leaves_those_without(scale):
    name = scale(WORKS | {"With labels": 59})

    assert why_not_judged("unlabelled", name) is None
    assert why_not_judged("labelled", name) is not None
    assert relations(name)["With labels", "SimCSE"] == Relation.CANNOT_TELL
    assert relations(name)["SimCSE", "CT"] == Relation.BETTER


def test_a_difference_of_exactly_what_is_needed_does_not_hold(scale):
    name = scale(WORKS | {"Untrained": 58})

    assert control_results(name)[0].holds is False


def test_a_control_without_scores_says_nothing(scale):
    without_untrained = {row: average for row, average in WORKS.items() if row != "Untrained"}
    name = scale(without_untrained)

    assert [result.holds for result in control_results(name)] == [None, True]
    assert relations(name)["SimCSE", "CT"] == Relation.BETTER
    warning = scale_doubt("unlabelled", name, "no verdict: {reason}")
    assert "is not known yet: no control for them has scores" in warning
    assert not scale_doubt("labelled", name, "no verdict: {reason}")


def test_no_score_is_bold_that_the_scale_cannot_tell_from_others(scale):
    name = scale(WORKS | {"Untrained": 58.5})
    view = grid_view("made_up", "table1", name)

    best = compare.best_rows(view, view.score_grid.columns[0])

    rows = set().union(*best)
    assert view.score_grid.row("SimCSE") not in rows


def test_the_sentence_says_why_and_a_question_of_several_rows_is_short(scale):
    name = scale(WORKS | {"Untrained": 58.5})
    primary, training, *_ = compare.answers(grid_view("made_up", "table1", name))

    assert sentence(primary.comparisons[0]) == (
        "Cannot tell SimCSE from CT: scale mine does not tell methods trained without labels apart"
        " (1 of its 2 controls fails); the difference is +10.00 (95 % +10.00 to +10.00)."
    )
    assert family_sentence(training) == "Cannot tell."


def test_a_page_says_why_it_has_no_verdict(scale):
    name = scale(WORKS | {"Untrained": 58.5})

    (page,) = parse_target("made_up/table1", name)
    text = table_page(page).write("markdown")
    assert "**Cannot tell SimCSE from CT: scale mine" in text


def test_the_first_page_has_the_controls_beside_print(scale):
    name = scale(WORKS | {"Untrained": 58.5})

    text = index_page(name).write("markdown")
    cells = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = {line[0].removeprefix("| "): line for line in cells}
    failed = rows["SimCSE above Untrained"]
    assert failed[1:3] == ["+19.55 (Somebody Table 1)", "+1.52"]
    assert failed[4:] == ["above 2", "**no** |"]
    assert rows["With labels above SimCSE"][5] == "yes |"
    assert "No verdict: scale" in text and "methods trained without labels apart" in text
    assert "Methods trained with labels are judged." in text


def test_a_claim_about_methods_that_the_scale_cannot_tell_apart_is_not_judged(scale):
    name = scale(WORKS | {"Untrained": 58.5})

    without_labels, with_labels = judge_all(name, ["made_up"])

    assert without_labels.ours.word == VerdictWord.CANNOT_TELL
    assert here_text(without_labels) == "*cannot tell*: controls of the scale fail"
    assert with_labels.ours.word == VerdictWord.HIGHER


def test_a_page_is_made_from_the_scores_of_the_controls(scale):
    name = scale(WORKS)

    names = {path.name for path in control_scores(name)}
    grid = grids.find_grid("made_up", "table1")
    for label in ("SimCSE", "Untrained", "With labels"):
        (cell,) = grids.plan_grid("made_up", "table1", name)[grid.row(label)]
        assert {f"{spec.run_id}.sts.json" for spec in cell.specs} <= names


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"row": "SimCES"}, "config/mine.yaml: controls: .*0 rows have the label 'SimCES'"),
        ({"column": "Average"}, "controls: .*0 columns have the label 'Average'"),
        ({"table": "made_up/table9"}, "controls: .*: made_up/table9: unknown table of made_up '9'"),
    ],
)
def test_a_control_names_what_exists(changed, message, scale):
    name = scale({}, controls=[CONTROLS[0] | changed])

    with pytest.raises(BadInput, match=message):
        control_results(name)


# ---------------------------------------------------------------- agreement with the papers


def pairs_of(table_name, printed):
    """Pair the differences 1, 2, 3, … here with printed ones."""
    return [DifferencePair(table_name, here, value) for here, value in enumerate(printed, 1)]


@pytest.fixture
def agreement(monkeypatch):
    """Correlate given pairs: `agreement(pairs)`."""

    def correlate(pairs):
        path = "csebench.report.numbers.rank_agreement.difference_pairs"
        monkeypatch.setattr(path, lambda views, training: pairs)
        return rank_agreement([], "unlabelled")

    return correlate


def test_agreement_with_the_papers_is_one_of_ranks():
    """Two of four ranks are swapped: 1 - 6 · (1 + 1) / (4 · 15)."""
    assert rank_correlation(pairs_of("a", [1, 3, 2, 90])) == pytest.approx(0.8)


@pytest.mark.parametrize(("here", "printed"), [((1, 1), (1, 2)), ((1, 2), (1, 1))])
def test_equal_differences_have_no_rank_correlation(here, printed):
    pairs = [DifferencePair("a", *values) for values in zip(here, printed, strict=True)]
    assert isnan(rank_correlation(pairs))


def test_agreement_is_as_unsure_as_its_tables_are_few(agreement):
    """One of the two tables agrees entirely, the other not at all. A quarter of the resamples has
    the first table twice, and a quarter the second."""
    found = agreement(pairs_of("a", range(5)) + pairs_of("b", range(5)[::-1]))
    assert (found.low, found.high) == pytest.approx((-1, 1))
    assert found.correlation == pytest.approx(0)
    assert (found.differences, found.tables) == (10, 2)


def test_agreement_within_every_table_is_sure(agreement):
    found = agreement(pairs_of("a", range(5)) + pairs_of("b", range(5)))
    assert (found.low, found.high) == pytest.approx((1, 1))


def test_a_resample_without_any_order_is_left_out(agreement):
    """All differences of the second table are equal, so twice this table has no correlation."""
    equal = [DifferencePair("b", 1, 1)] * 5
    found = agreement(pairs_of("a", range(1, 6)) + equal)
    assert found.low > 0
    assert found.high == pytest.approx(1)


def test_fewer_than_ten_differences_have_no_agreement(agreement):
    assert agreement(pairs_of("a", range(9))) is None


def test_agreement_is_about_one_kind_of_training(scale):
    """What trains nothing, or with labels, does not count."""
    view = grid_view("made_up", "table1", scale(WORKS))
    pairs = [
        (pair.table, pair.here, pair.printed) for pair in difference_pairs([view], "unlabelled")
    ]
    # a run's score has 0.01 for each number of its seed
    assert pairs == [
        ("made_up/table1", pytest.approx(10), pytest.approx(76.25 - 72.05)),
        ("made_up/table1", pytest.approx(20, abs=0.05), pytest.approx(76.25 - 56.70)),
        ("made_up/table1", pytest.approx(10, abs=0.05), pytest.approx(72.05 - 56.70)),
    ]
