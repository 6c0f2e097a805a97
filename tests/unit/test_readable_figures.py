"""Figures can be read: in light and dark themes, without an axis, and with all labels visible."""

import itertools
import re

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

from csebench.report.figures.evidence import draw_runs
from csebench.report.figures.lines import ChartLine, draw_chart_lines
from csebench.report.figures.parts import interval_text
from csebench.report.figures.point_labels import PointLabel, write_point_labels
from csebench.report.figures.scores import draw_by_kind
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.stats import summarise
from csebench.score.drawing import COLOURS, STYLE, add_heading, write_figure
from csebench.score.end_labels import spread_labels
from csebench.score.themes import GREY, INK, contrast, on_both, on_white

LIGHT = "#ffffff"
DARK = "#0d1117"


@pytest.fixture
def svg(tmp_path):
    """Write a figure with a text and a line in every colour, and return its SVG."""
    with rc_context(STYLE):
        figure = Figure(figsize=(7, 3))
        axes = figure.subplots()
        for place, colour in enumerate([*COLOURS, INK, GREY]):
            axes.plot([0, 1], [place, place], color=on_white(colour))
            axes.text(1, place, "a label", color=on_white(colour))
        add_heading(figure, "A finding", "In points, with a 95 % interval.")
        write_figure(tmp_path / "figure.svg", figure)
    return (tmp_path / "figure.svg").read_text()


def test_every_colour_of_a_text_is_readable_in_a_light_theme(svg):
    colours = set(re.findall(r"<text [^>]*fill: (#[0-9a-f]{6})", svg))
    assert len(colours) > len(COLOURS)
    for colour in colours:
        assert contrast(colour, LIGHT) >= 4.5


def test_every_colour_of_a_text_is_readable_in_a_dark_theme(svg):
    dark_versions = dict(re.findall(r'"fill: (#[0-9a-f]{6})"\]{fill:(#[0-9a-f]{6})', svg))
    assert dark_versions[LIGHT] == DARK
    for colour in set(re.findall(r"<text [^>]*fill: (#[0-9a-f]{6})", svg)):
        assert contrast(dark_versions[colour], DARK) >= 4.5


@pytest.mark.parametrize("colour", COLOURS)
def test_pixels_stand_out_from_both_grounds(colour):
    assert contrast(on_both(colour), LIGHT) >= 3
    assert contrast(on_both(colour), DARK) >= 3


def test_a_long_label_is_wrapped_and_not_cut():
    label = "InforMin-CL-BERT_base (a long name) − SimCSE-BERT_base (another name)"
    line = ChartLine(label, "+0.02 (-0.04 to +0.09)")
    axes, _ = draw_chart_lines(Figure(), [line])
    written = [text.get_text() for text in axes.texts]
    assert " ".join(written[:-1]) == label
    assert written[-1] == line.number


def test_a_number_that_rounds_to_zero_has_no_minus():
    assert interval_text(summarise([-0.001, -0.002, -0.001]), 2).startswith("0.00 (")
    assert "-0.00" not in interval_text(summarise([-0.001, 0.001]), 2)


def test_an_interval_over_seeds_is_that_of_student():
    assert interval_text(summarise([1, 2, 3]), 2, "+") == "+2.00 (-0.48 to +4.48)"


def test_one_seed_has_no_interval():
    assert interval_text(summarise([54.321]), 2) == "54.32"


def test_labels_at_one_height_are_moved_apart_around_it():
    assert spread_labels([5, 1, 5], 2) == [4, 1, 6]


def test_labels_with_room_stay_where_they_are():
    assert spread_labels([9, 1, 5], 2) == [9, 1, 5]


def test_labels_of_equal_points_do_not_cover_one_another():
    figure = Figure(figsize=(7, 4))
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 1], "o")
    labels = [PointLabel(f"row {number}", 1, 1, INK) for number in range(4)]
    write_point_labels(axes, labels)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 4
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)


def test_the_figure_of_others_runs_fits_into_a_phone(tmp_path):
    svg, _ = draw_runs(tmp_path)
    width = re.search(r'width="([\d.]+)pt"', svg.read_text(encoding="utf-8"))
    assert width is not None
    assert float(width[1]) * 96 / 72 <= 358


NARROW_FIGURES = [
    ("micse", "figure3"),  # lines
    ("micse", "figure4"),  # many sizes, and differences below
    ("informin_cl", "figure3"),  # points
    ("msse", "figure6"),  # paths
]


@pytest.mark.parametrize(("paper", "name"), NARROW_FIGURES)
def test_lines_and_points_fit_into_a_phone_with_all_their_texts(paper, name):
    """No text is cut, none is smaller than 10 pixels, and no line of the key covers another."""
    with rc_context(STYLE):
        figure = Figure()
        draw_by_kind(figure, grid_view(paper, name, "mini"))
        add_heading(figure, "A question that has a rather long text?", "What is shown. " * 12)
        figure.draw_without_rendering()
    assert 96 * figure.get_figwidth() <= 358
    everything = figure.get_tightbbox()  # in inches
    assert 0 <= everything.x0 < everything.x1 <= figure.get_figwidth()
    for text in figure.findobj(Text):
        assert text.get_fontsize() * 96 / 72 >= 10
    for axes in figure.axes:
        for first, second in itertools.combinations(axes.get_legend().get_texts(), 2):
            assert not first.get_window_extent().overlaps(second.get_window_extent())
