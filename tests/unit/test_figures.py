"""The papers' figures from made-up scores: what is plotted, and what is said to be missing."""

import csv
import re
from typing import NamedTuple

import pytest
from score_files import write_scores

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.plan import grids, targets
from csebench.plan.catalog import registry
from csebench.plan.catalog.registry import declaration, evaluator_declaration, valid_evaluators
from csebench.report.figures.parts import baseline_differences
from csebench.report.figures.scores import draw_figure
from csebench.report.numbers.cells import grid_view


@pytest.fixture(autouse=True)
def nothing_scored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield
    caches.clear()


def score_cells(paper, name, scale, value):
    """Score the cells of a figure.

    Args:
        value: `value(row, column, seed)` is the score of a run, or None if it has none. If cells
            share runs and tasks, the first cell counts.
    """
    scored = set()
    for row, cells in enumerate(grids.plan_grid(paper, name, scale)):
        for column, cell in enumerate(cells):
            for spec in cell.specs:
                key = (spec.run_id, cell.evaluator, cell.task, cell.metric)
                score = value(row, column, spec.seed)
                if score is None or key in scored:
                    continue
                scored.add(key)
                write_scores(spec, cell.evaluator, scale, [(cell.task, cell.metric, score)])


class Drawn(NamedTuple):
    """The two files of a figure."""

    rows: list[dict[str, str]]  # of its CSV file
    texts: str  # all texts of the SVG file


def drawn(paper, name, scale):
    """Draw a figure and read its files."""
    written = draw_figure(grid_view(paper, name, scale))
    paths = {path.suffix: path for path in written}
    assert set(paths) == {".svg", ".csv"}
    folder = paths[".svg"].parent
    assert set(paths.values()) == set(folder.iterdir())

    texts = re.findall("<text .*?>(.*?)</text>", paths[".svg"].read_text("utf-8"))
    with open(paths[".csv"], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return Drawn(rows, " ".join(texts))


@pytest.mark.parametrize(
    ("paper", "name"), [("micse", "figure4"), ("msse", "figure6"), ("micse", "figure7")]
)
def test_without_scores(paper, name):
    figure = drawn(paper, name, "smoke")
    labels = []
    for row in figure.rows:
        labels.append(row.get("row") or row["model"])
        assert not row.get("ours")
        assert not row.get("runs")
    expected = [row.label for row in grids.find_grid(paper, name).rows]
    assert list(dict.fromkeys(labels)) == expected
    assert "Nothing to draw: no scores" in figure.texts
    assert "0.2" not in figure.texts, "there are no axes"


# Scores at 0.1% and at 1% of the sentences, by row and seed.
SCORES_OF_CURVES = {
    "SimCSE": {48: 0.5, 49: 0.6},
    "AMI+SimCSE": {49: 0.7, 50: 0.9},
    "MoCo+SimCSE": {},
    "miCSE": {48: 0.4, 49: 0.45, 50: 0.5},
}


def score_of_curve(row, column, seed):
    if column not in (3, 5):
        return None
    return list(SCORES_OF_CURVES.values())[row].get(seed)


@pytest.fixture
def curves():
    """Score some runs of miCSE's figure of curves."""
    score_cells("micse", "figure4", "mini", score_of_curve)


def test_curves(curves):
    """SimCSE lacks seed 50, AMI+SimCSE lacks seed 48."""
    figure = drawn("micse", "figure4", "mini")
    assert len(figure.rows) == 32
    rows = {(row["row"], row["column"]): row for row in figure.rows}
    simcse = rows["SimCSE", "0.1%"]
    assert (simcse["metric"], simcse["factor"]) == ("spearman", "100")
    assert simcse["ours"] == "55"
    assert simcse["n"] == "2"
    assert len(simcse["runs"].split()) == 2
    assert float(simcse["std"]) == pytest.approx(7.07107)
    assert rows["AMI+SimCSE", "0.1%"]["ours"] == "80"
    assert rows["miCSE", "0.1%"]["ours"] == "45"
    assert rows["MoCo+SimCSE", "0.1%"]["ours"] == ""
    assert rows["miCSE", "10%"]["ours"] == ""
    assert "MoCo+SimCSE" not in figure.texts


def test_differences_of_curves_are_of_the_seeds_that_both_have(curves):
    changes = []
    for cells in baseline_differences(grid_view("micse", "figure4", "mini")):
        change = cells[3].ours
        changes.append(change and (change.mean, change.n))
    simcse, ami, moco, micse = changes
    assert simcse is None
    assert ami == (10, 1)
    assert moco is None
    assert micse == (-12.5, 2)


def test_the_untrained_encoder_is_a_line_and_part_of_the_plan():
    score_cells("micse", "figure9", "smoke", lambda row, column, seed: 0.5 + seed / 1000)
    cell = grids.untrained_cell("micse", "figure9", "smoke")
    assert cell.specs[0].run_id in targets.page("figure9", "smoke", "micse").runs()

    write_scores(cell.specs[0], cell.evaluator, "smoke", [(cell.task, cell.metric, 0.4567)])
    texts = drawn("micse", "figure9", "smoke").texts
    line = re.search(r"untrained encoder, avg_first_last_\d+: 45.67", texts)
    assert line, "its pooler, as the rows have another"


def test_bars_of_differences_have_no_untrained_encoder():
    assert grids.untrained_cell("msse", "figure5", "smoke") is None


def uniformity_or_other_score(row, column, seed):
    """Score uniformity, the first column, below 0, and the other columns above 0."""
    size = 0.1 * (row + column) + seed / 1000
    if column == 0:
        return -size
    return size


@pytest.mark.parametrize(("scale", "is_drawn"), [("mini", False), ("paper", True)])
def test_published_values_are_drawn_at_the_scale_of_the_paper(scale, is_drawn):
    score_cells("informin_cl", "figure3", scale, uniformity_or_other_score)
    figure = drawn("informin_cl", "figure3", scale)
    published = [row["published"] for row in figure.rows if row["column"] == "alignment"]
    assert published == [""] * 6 + ["0.143"]
    assert ("InforMin-CL-BERT_base, published" in figure.texts) == is_drawn


def test_no_two_methods_declare_the_same_colour():
    colours = []
    for name in registry.adapter_names(registry.METHODS):
        colours += declaration(name).colours.values()
    assert len(set(colours)) == len(colours)
    assert len(colours) > 20


def write_training(spec):
    """Write the curve of a run that trained two encoders and kept the first."""
    offset = (spec.seed - 48) / 10
    kept = {"step": 50, "encoder": 0, "loss": 0.3}
    kept |= {"alignment": 0.1 + offset, "uniformity": -2.0, "spearman": 0.5 + offset}
    other_encoder = kept | {"encoder": 1, "uniformity": 9}
    curve = [kept, other_encoder, kept | {"step": 100}]
    scores = [("STS-B", "alignment", 0.5), ("STS-B", "uniformity", -0.5)]
    write_scores(spec, "geometry", "mini", scores, curve)


def test_training():
    """The curve is the mean over seeds at every step, of the encoder that was kept. A row without
    runs is named."""
    msse_row, _ = grids.plan_grid("msse", "figure6", "mini")
    for spec in msse_row[0].specs[:2]:
        write_training(spec)

    figure = drawn("msse", "figure6", "mini")
    steps = [(row["row"], row["step"]) for row in figure.rows]
    assert steps == [("MSSE", "50"), ("MSSE", "100"), ("SimCSE", "")]
    first = figure.rows[0]
    assert (first["alignment"], first["uniformity"]) == ("0.15", "-2")
    assert first["n"] == "2"
    assert "MSSE, step 100: 55.00" in figure.texts
    assert "means of n = 2 seeds" in figure.texts


def test_a_figure_that_two_evaluators_draw_is_refused(monkeypatch):
    declared = valid_evaluators() | {"mine": evaluator_declaration("clusters")}
    monkeypatch.setattr(registry, "valid_evaluators", lambda: declared)
    with pytest.raises(BadInput, match=r"figures\.4\.kind: clusters and mine both draw 'clusters'"):
        grids.plan_grid("msse", "figure4", "smoke")
    assert grids.plan_grid("micse", "figure7", "smoke"), "a figure of another kind"


def test_scores_whose_items_are_gone():
    for row in grids.plan_grid("micse", "figure5", "smoke"):
        cell = row[0]
        write_scores(cell.specs[0], cell.evaluator, "smoke", [(cell.task, cell.metric, 0.5)])
    assert "Nothing to draw" in drawn("micse", "figure5", "smoke").texts


def test_a_figure_whose_items_are_gone_is_drawn_from_its_numbers():
    for row in grids.plan_grid("micse", "figure7", "smoke"):
        cell = row[0]
        write_scores(cell.specs[0], cell.evaluator, "smoke", [(cell.task, cell.metric, 0.5)])
    table = targets.grid_path("micse", "figure7", "smoke", "csv")
    table.parent.mkdir(parents=True)
    numbers = "model,gold,cosine\n"
    for gold in range(6):
        numbers += f"SimCSE,{gold},0.{gold}\n"
    table.write_text(numbers + "miCSE,,\n")

    figure = drawn("micse", "figure7", "smoke")

    assert "SimCSE: Spearman x 100 = 100.00" in figure.texts
    assert "miCSE: Spearman" not in figure.texts
    assert table.read_text() == numbers + "miCSE,,\n"
