"""The papers' figures from made-up scores: what is plotted, what is said to be missing, the same
bytes."""

import csv
import re

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
    """Scores every cell by `value(row, column, seed)`, where that is not None; cells share runs
    and tasks."""
    done = set()
    for i, cells in enumerate(grids.plan_grid(paper, name, scale)):
        for j, cell in enumerate(cells):
            for spec in cell.specs:
                key, scored = (
                    (spec.run_id, cell.evaluator, cell.task, cell.metric),
                    value(i, j, spec.seed),
                )
                if scored is not None and key not in done:
                    done.add(key)
                    write_scores(spec, cell.evaluator, scale, [(cell.task, cell.metric, scored)])


def drawn(paper, name, scale):
    """The rows of a figure's table, and all its texts."""
    paths = {path.suffix: path for path in draw_figure(grid_view(paper, name, scale))}
    assert set(paths) == {".svg", ".csv"} and set(paths.values()) == set(
        paths[".svg"].parent.iterdir()
    )
    texts = re.findall("<text .*?>(.*?)</text>", paths[".svg"].read_text("utf-8"))
    with open(paths[".csv"], newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file)), " ".join(texts)


@pytest.mark.parametrize(
    ("paper", "name"), [("micse", "figure4"), ("msse", "figure6"), ("micse", "figure7")]
)
def test_without_scores(paper, name):
    rows, texts = drawn(paper, name, "smoke")
    labels = [row.label for row in grids.find_grid(paper, name).rows]
    assert list(dict.fromkeys(row.get("row") or row["model"] for row in rows)) == labels
    assert not any(row.get("ours") or row.get("runs") for row in rows)
    assert "nothing to draw: no scores" in texts and "0.2" not in texts  # no axes


def test_curves():
    """SimCSE lacks seed 50, AMI+SimCSE seed 48; differences are of the seeds that both have."""
    values = {0: {48: 0.5, 49: 0.6}, 1: {49: 0.7, 50: 0.9}, 2: {}, 3: {48: 0.4, 49: 0.45, 50: 0.5}}
    score_cells(
        "micse", "figure4", "mini", lambda i, j, seed: values[i].get(seed) if j in (3, 5) else None
    )
    rows, texts = drawn("micse", "figure4", "mini")
    found = {(row["row"], row["column"]): row for row in rows}
    simcse, ami, micse = (found[label, "0.1%"] for label in ("SimCSE", "AMI+SimCSE", "miCSE"))
    assert len(rows) == 32 and (simcse["metric"], simcse["factor"]) == ("spearman", "100")
    assert (simcse["ours"], simcse["n"], len(simcse["runs"].split())) == ("55", "2", 2)
    assert float(simcse["std"]) == pytest.approx(7.07107)
    assert (ami["ours"], micse["ours"]) == ("80", "45")
    assert found["MoCo+SimCSE", "0.1%"]["ours"] == found["miCSE", "10%"]["ours"] == ""
    assert "MoCo+SimCSE" not in texts
    changes = [
        cells[3].ours for cells in baseline_differences(grid_view("micse", "figure4", "mini"))
    ]
    assert [change and (change.mean, change.n) for change in changes] == [
        None,
        (10, 1),
        None,
        (-12.5, 2),
    ]


def test_the_untrained_encoder_is_a_line_and_part_of_the_plan():
    score_cells("micse", "figure9", "smoke", lambda i, j, seed: 0.5 + seed / 1000)
    cell = grids.untrained_cell("micse", "figure9", "smoke")
    assert cell.specs[0].run_id in targets.page("figure9", "smoke", "micse").runs()
    write_scores(cell.specs[0], cell.evaluator, "smoke", [(cell.task, cell.metric, 0.4567)])
    text = drawn("micse", "figure9", "smoke")[1]
    assert re.search(r"untrained encoder, avg_first_last_\d+: 45.67", text), (
        "its pooler, as the rows have another"
    )
    assert grids.untrained_cell("msse", "figure5", "smoke") is None  # bars of differences


@pytest.mark.parametrize("scale", ["mini", "paper"])
def test_published_values_are_drawn_at_the_scale_of_the_paper(scale):
    score_cells(
        "informin_cl",
        "figure3",
        scale,
        lambda i, j, seed: (1 if j else -1) * (0.1 * (i + j) + seed / 1000),
    )
    rows, texts = drawn("informin_cl", "figure3", scale)
    assert [row["published"] for row in rows if row["column"] == "alignment"] == [""] * 6 + [
        "0.143"
    ]
    assert ("InforMin-CL-BERT_base, published" in texts) == (scale == "paper")


def test_no_two_methods_declare_the_same_colour():
    declared = [
        c
        for name in registry.adapter_names(registry.METHODS)
        for c in declaration(name).colours.values()
    ]
    assert len({*declared}) == len(declared) > 20


def test_training():
    """The mean over seeds at every step, of the encoder that was kept; a run that has none is
    named."""
    (msse, *_), _ = grids.plan_grid("msse", "figure6", "mini")
    for spec in msse.specs[:2]:
        of = spec.seed - 48
        scored = {"alignment": 0.1 + of / 10, "uniformity": -2.0, "spearman": 0.5 + of / 10}
        point = {"step": 50, "encoder": 0, "loss": 0.3} | scored
        curve = [point, point | {"encoder": 1, "uniformity": 9}, point | {"step": 100}]
        write_scores(
            spec,
            "geometry",
            "mini",
            [("STS-B", "alignment", 0.5), ("STS-B", "uniformity", -0.5)],
            curve,
        )
    rows, texts = drawn("msse", "figure6", "mini")
    assert [(row["row"], row["step"]) for row in rows] == [
        ("MSSE", "50"),
        ("MSSE", "100"),
        ("SimCSE", ""),
    ]
    assert (rows[0]["alignment"], rows[0]["uniformity"], rows[0]["n"]) == ("0.15", "-2", "2")
    assert "MSSE: 55.00" in texts and "means of 2 seeds" in texts


def test_a_figure_that_two_evaluators_draw_is_refused(monkeypatch):
    """Figures of other kinds are not."""
    declared = valid_evaluators() | {"mine": evaluator_declaration("clusters")}
    monkeypatch.setattr(registry, "valid_evaluators", lambda: declared)
    with pytest.raises(BadInput, match=r"figures\.4\.kind: clusters and mine both draw 'clusters'"):
        grids.plan_grid("msse", "figure4", "smoke")
    assert grids.plan_grid("micse", "figure7", "smoke")


def test_scores_whose_items_are_gone():
    for cell, *_ in grids.plan_grid("micse", "figure5", "smoke"):
        write_scores(cell.specs[0], cell.evaluator, "smoke", [(cell.task, cell.metric, 0.5)])
    _, texts = drawn("micse", "figure5", "smoke")
    assert "nothing to draw" in texts
