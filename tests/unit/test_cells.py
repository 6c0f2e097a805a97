"""Cells of a table: what they are computed from, how they are written, and what counts of their
runs. Golden files of pages are in test_pages.py, other test data is in test_other_data.py."""

from dataclasses import replace

import pytest
from made_up import SCALE, clear, made_up, table
from score_files import curve_point, write_scores

from csebench.plan.grids import untrained_cell
from csebench.plan.schema.paper import EvidenceKey
from csebench.report.numbers.cells import combine_by_seed, combine_parts, grid_view, printed_view
from csebench.report.numbers.contrasts import differ_in_size_unseen
from csebench.report.numbers.losses import row_losses

COLUMNS = [
    {"label": "x", "task": "STS-B"},
    {"label": "y", "task": "SICK-R"},
    {"label": "mean", "mean": True},
    {"label": "gain", "delta": "mean"},
]
ONE_SCORE = COLUMNS[:1]
ROWS = {
    "A": ("simcse", ["71.00", "73.00", "72.00", None]),
    "B": ("ct", ["70.00", "70.50", "70.25", None]),
    "BERT": ("bert", ["50.00", "50.00", "50.00", None]),
    "Chance": ("random", [None] * 4),
    "D": (None, [None] * 4),
}


@pytest.fixture
def view_of(tmp_path, monkeypatch):
    """Make Table 1 of a made-up paper, with the scores that exist by then."""

    def view(columns=COLUMNS, name=SCALE, recipes=None, **changed):
        rows = {label: (method, values[: len(columns)]) for label, (method, values) in ROWS.items()}
        content = table(rows, columns, baseline="B")
        for row in content["rows"]:
            row |= (recipes or {}).get(row["label"], {})
        paper = {"name": "m", "tables": {"1": content}}
        made_up(tmp_path, monkeypatch, paper, name=name, **changed)
        return grid_view("m", "table1", name)

    yield view
    monkeypatch.undo()
    clear()


def cells_of(view, label):
    return view.rows[view.score_grid.row(label)]


def with_values(cell, *values):
    """Give a cell these values, of the seeds from 1 on."""
    return replace(cell, values=dict(enumerate(values, 1)))


# ---------------------------------------------------------------- values of several cells


def total(*values):
    return sum(values)


def test_only_seeds_that_all_cells_have_are_combined(view_of):
    first, second, *_ = cells_of(view_of(), "A")
    first = replace(first, values={1: 10.0, 2: 20.0})
    second = replace(second, values={3: 1.0, 2: 2.0})
    assert combine_by_seed(total, first, second) == {2: 22.0}


def test_the_only_run_of_an_untrained_row_counts_for_every_seed(view_of):
    view = view_of()
    trained = with_values(cells_of(view, "A")[0], 10.0, 20.0)
    untrained = replace(cells_of(view, "BERT")[0], values={0: 5.0})
    assert combine_by_seed(total, trained, untrained) == {1: 15.0, 2: 25.0}
    assert combine_by_seed(total, untrained, untrained) == {0: 10.0}


def test_a_cell_misses_as_many_runs_as_the_part_that_misses_most(view_of):
    first, second, mean, _ = cells_of(view_of(), "A")
    parts = [
        replace(with_values(first, 1.0), absent=1),
        replace(with_values(second, 1.0), absent=2),
    ]
    assert combine_parts(mean, parts, total).absent == 2


@pytest.mark.parametrize("mark", ["is_outdated", "unchanged"])
def test_a_cell_has_the_marks_of_any_part(mark, view_of):
    first, second, mean, _ = cells_of(view_of(), "A")
    parts = [with_values(first, 1.0), with_values(second, 2.0)]
    assert not getattr(combine_parts(mean, parts, total), mark)
    parts[0] = replace(parts[0], **{mark: True})
    assert getattr(combine_parts(mean, parts, total), mark)


def test_a_cell_is_standard_if_all_its_parts_are(view_of):
    first, second, mean, _ = cells_of(view_of(), "A")
    mean = replace(mean, judged=True)
    assert combine_parts(mean, [first, second], total).judged
    combined = combine_parts(mean, [first, replace(second, is_standard=False)], total)
    assert (combined.is_standard, combined.judged) == (False, False)


def test_nothing_is_computed_from_a_part_without_values(view_of):
    first, second, mean, _ = cells_of(view_of(), "A")
    combined = combine_parts(mean, [with_values(first, 1.0), second], total)
    assert combined.values == {}
    assert len(combined.parts) == 2


def test_a_difference_of_means_is_a_weighted_sum_of_scores(view_of):
    *_, gain = cells_of(view_of(), "A")
    leaves = gain.weighted_leaves(2.0)
    labels = [(leaf.plan.row.label, leaf.plan.column.label, weight) for weight, leaf in leaves]
    assert labels == [("A", "x", 1.0), ("A", "y", 1.0), ("B", "x", -1.0), ("B", "y", -1.0)]


def test_a_difference_that_is_not_printed_is_that_of_printed_values(view_of):
    view = view_of()
    *_, gain = cells_of(view, "A")
    assert gain.published.value == pytest.approx(1.75)
    assert gain.published.text == "+1.75"
    *_, of_baseline = cells_of(view, "B")
    assert of_baseline.published is None


# ---------------------------------------------------------------- how a cell is written


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        (0, [70.0, 71.0], "70.50 ± 0.71"),
        (0, [70.0], "70.00"),
        (3, [1.0], "+1.00"),
        (3, [-0.001], "0.00"),  # no minus sign before a zero
        (3, [0.0], "+0.00"),
        (3, [-1.0, -2.0], "-1.50 ± 0.71"),
    ],
)
def test_a_cell_is_written_as_mean_and_deviation(column, values, text, view_of):
    cell = with_values(cells_of(view_of(), "A")[column], *values)
    assert cell.text == text


def test_a_cell_without_a_value_says_whether_runs_are_missing(view_of):
    cell = replace(cells_of(view_of(), "A")[0], absent=0)
    assert cell.text == "–"
    assert replace(cell, absent=1).text == "missing"


# ---------------------------------------------------------------- runs of a cell


def test_controls_and_incomplete_or_outdated_rows_are_not_ranked(view_of):
    view = view_of()
    complete = replace(with_values(cells_of(view, "A")[0], 70.0), absent=0)
    assert complete.is_comparable
    assert not replace(complete, absent=1).is_comparable
    assert not replace(complete, is_outdated=True).is_comparable
    assert not replace(complete, values={}).is_comparable
    control = replace(with_values(cells_of(view, "Chance")[0], 70.0), absent=0)
    assert not control.is_comparable


def test_only_untrained_rows_are_deterministic(view_of):
    view = view_of()
    assert cells_of(view, "BERT")[2].is_deterministic
    assert not cells_of(view, "A")[2].is_deterministic
    assert not replace(cells_of(view, "BERT")[3]).is_deterministic, "the baseline is trained"


def write(view, label, values, column=0, **more):
    """Write the scores of a row's runs in a column, from fractions by run."""
    plan = cells_of(view, label)[column].plan
    for spec, value in zip(plan.specs, values, strict=False):
        write_scores(spec, plan.evaluator, view.scale, [(plan.task, plan.metric, value)], **more)


def read_again(view):
    clear()
    return grid_view("m", "table1", view.scale)


def test_scores_are_shown_in_printed_units_and_runs_without_one_are_counted(view_of):
    view = view_of(ONE_SCORE)
    write(view, "A", [0.70, 0.71])
    (cell,) = cells_of(read_again(view), "A")
    assert cell.values == pytest.approx({1: 70.0, 2: 71.0})
    assert cell.absent == 1


def curve_of(*losses):
    """Make the training curve of a run with these losses."""
    return [curve_point("run", step) | {"loss": loss} for step, loss in enumerate(losses)]


NO_LOSS = curve_of(0.0, 0.0)
A_LOSS = curve_of(0.5, 0.0)


@pytest.mark.parametrize(
    ("curve", "unchanged"),
    [(NO_LOSS, True), (A_LOSS, False), (None, False)],
    ids=["no loss", "a loss", "unknown"],
)
def test_training_without_a_loss_changes_nothing(curve, unchanged, view_of):
    view = view_of(ONE_SCORE)
    write(view, "A", [0.70, 0.71, 0.72], curve=curve)
    assert cells_of(read_again(view), "A")[0].unchanged == unchanged


def test_one_run_with_a_loss_has_changed_something(view_of):
    view = view_of(ONE_SCORE)
    write(view, "A", [0.70], curve=A_LOSS)
    _, *others = cells_of(view, "A")[0].plan.specs
    for spec in others:
        scores = [("STS-B", "spearman", 0.7)]
        write_scores(spec, "sts", view.scale, scores, curve=NO_LOSS)
    assert not cells_of(read_again(view), "A")[0].unchanged


def write_curves(view, label, *curves):
    """Write the training curves of a row's first runs: losses by step."""
    for spec, curve in zip(cells_of(view, label)[0].plan.specs, curves, strict=False):
        points = [curve_point("run", step) | {"loss": loss} for step, loss in curve.items()]
        scores = [("STS-B", "spearman", 0.7), ("SICK-R", "spearman", 0.7)]
        write_scores(spec, "sts", view.scale, scores, curve=points)


def test_the_loss_of_a_row_is_a_mean_over_its_runs_at_both_ends_of_training(view_of):
    """0.6 of 0.5 and 0.7, then 0.2 of 0.1 and 0.3. The third run has no score."""
    view = view_of(ONE_SCORE)
    write_curves(view, "A", {10: 0.5, 20: 9.0, 30: 0.1}, {5: 0.7, 25: 0.3})
    (loss,) = row_losses(read_again(view))
    assert (loss.row, loss.runs) == ("A", 2)
    assert (loss.first_step, loss.last_step) == (5, 30)
    assert (loss.first, loss.last) == pytest.approx((0.6, 0.2))


def test_the_loss_of_a_row_leaves_out_the_runs_that_are_subtracted_from_it(view_of):
    """The last column is a difference to row B."""
    view = view_of()
    write_curves(view, "A", {1: 0.5})
    write_curves(view, "B", {1: 4.0}, {1: 6.0})
    losses = [(loss.row, loss.runs, loss.first) for loss in row_losses(read_again(view))]
    assert losses == [("A", 1, 0.5), ("B", 2, 5.0)]


def test_a_run_without_a_training_curve_has_no_loss(view_of):
    view = view_of(ONE_SCORE)
    write(view, "BERT", [0.50])
    assert row_losses(read_again(view)) == []


def test_progress_counts_runs_that_have_the_score(view_of):
    """Nine runs of three trained rows and one that is not trained."""
    view = view_of(ONE_SCORE)
    assert view.progress == (0, 10)
    write(view, "A", [0.70, 0.71])
    assert read_again(view).progress == (2, 10)


# ---------------------------------------------------------------- printed values


NAMES = """\
encoders: {bert-base: BERT, bert-large: BERT-large, roberta-base: RoBERTa}
methods: {ct: {title: CT}}
"""


def test_the_encoder_of_printed_values_is_that_of_the_row_before_that_of_the_table(
    view_of, tmp_path
):
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "methods.yaml").write_text(NAMES)
    recipes = {
        "A": {"run": {"method": "simcse", "encoder": "bert-large"}},
        "B": {"evidence": EvidenceKey(method="ct", encoder="roberta-base").model_dump()},
    }
    mini = {"name": "encoders/bert-mini-wiki", "revision": "0" * 16}
    encoders = {"bert-base": mini, "bert-large": mini}
    view = view_of(recipes=recipes, encoders=encoders)
    roles = {row[0].plan.row.label: row[0].published_encoder for row in view.rows}
    assert roles == {
        "A": "bert-large",
        "B": "roberta-base",
        "BERT": "bert-base",
        "Chance": "bert-base",
        "D": "bert-base",
    }


@pytest.mark.parametrize(
    ("differs", "judged"), [("", True), ("fewer steps", False)], ids=["the same", "another"]
)
def test_printed_values_are_judged_at_a_scale_with_the_papers_settings(differs, judged, view_of):
    view = view_of(name="paper", differs=differs)
    assert cells_of(view, "A")[0].judged == judged
    assert view.judged == judged


def test_a_verdict_needs_all_runs_scored_by_todays_code(view_of):
    view = view_of(name="paper", differs="")
    cell = replace(with_values(cells_of(view, "A")[0], 70.0, 71.0, 72.0), absent=0)
    assert cell.verdict == "inconclusive"
    for change in ({"absent": 1}, {"is_outdated": True}, {"judged": False}):
        assert replace(cell, **change).verdict == "not comparable"
    assert replace(cell, published=None).verdict == ""
    assert replace(cell, values={}).verdict == ""


def test_a_printed_mean_is_judged_as_the_mean_of_its_seeds(view_of):
    """The interval for one more run reaches 68.42, that for a mean of a hundred 67.96."""
    view = view_of(name="paper", differs="")
    cell = replace(with_values(cells_of(view, "A")[0], 66.0, 66.2, 66.4), absent=0)
    off = replace(cell, published=cell.published.model_copy(update={"value": 67.0}))
    assert off.verdict == "agrees"
    assert replace(off, published_seeds=100).verdict == "close"


def test_a_column_may_print_means_of_more_seeds_than_its_table(view_of):
    columns = [{"label": "x", "task": "STS-B", "seeds": 5}, {"label": "y", "task": "SICK-R"}]
    of_five, of_one = cells_of(view_of(columns), "A")
    assert (of_five.published_seeds, of_one.published_seeds) == (5, 1)


# ---------------------------------------------------------------- how much runs see


SIZES = [{"label": size, "task": "STS-B", "size": size} for size in ("1%", "100%")]


@pytest.mark.parametrize(
    ("columns", "batch_size", "seen"),
    [
        (SIZES, 1_000, 100_000),
        (SIZES, 9_999, 999_900),
        (SIZES, 10_000, None),  # every sentence is seen
        (SIZES[1:], 1_000, None),  # there are no sizes to compare
    ],
)
def test_sentences_seen_are_told_if_a_larger_corpus_makes_no_difference(
    columns, batch_size, seen, view_of
):
    override = {"steps": 100, "batch_size": batch_size}
    assert view_of(columns, override=override).sentences_seen == seen


@pytest.mark.parametrize("override", [{}, {"steps": 10}, {"batch_size": 64}])
def test_what_runs_see_is_not_known_if_the_scale_leaves_it_to_methods(override, view_of):
    assert view_of(SIZES, override=override).sentences_seen is None


def corpora_look_the_same(view, first, second, row="A", other="B"):
    """Whether the sizes of the corpora of two columns differ without a difference for the runs."""
    cells = {}
    for label in (row, other):
        labels = [column.label for column in view.score_grid.columns]
        cells[label] = dict(zip(labels, cells_of(view, label), strict=True))
    return differ_in_size_unseen(cells[row][first], cells[other][second])


@pytest.mark.parametrize(("batch_size", "is_unseen"), [(64, True), (100, True), (101, False)])
def test_sizes_differ_for_runs_that_see_the_end_of_a_corpus(batch_size, is_unseen, view_of):
    """The smaller one has 10,000 sentences, and runs have 100 steps."""
    view = view_of(SIZES, override={"steps": 100, "batch_size": batch_size})
    assert corpora_look_the_same(view, "1%", "100%") == is_unseen
    assert corpora_look_the_same(view, "100%", "1%") == is_unseen


def test_rows_on_one_corpus_do_not_differ_in_its_size(view_of):
    view = view_of(SIZES, override={"steps": 100, "batch_size": 64})
    assert not corpora_look_the_same(view, "1%", "1%")


@pytest.mark.parametrize("rows", [("A", "BERT"), ("BERT", "A")])
def test_a_row_without_a_corpus_has_no_size_of_it(rows, view_of):
    view = view_of(SIZES, override={"steps": 100, "batch_size": 64})
    assert not corpora_look_the_same(view, "1%", "100%", *rows)


def test_printed_values_need_no_score(view_of):
    view = view_of()
    write(view, "A", [0.70, 0.71, 0.72])
    assert not any(cell.values for cell in printed_view("m", "table1", SCALE).cells)


def test_the_untrained_line_of_a_figure_is_one_of_its_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clear()
    (spec,) = untrained_cell("micse", "figure3", SCALE).specs
    view = printed_view("micse", "figure3", SCALE)
    assert spec.run_id in {run for run, _ in view.runs}
    assert spec not in [shown for cell in view.cells for shown in cell.plan.specs]
