"""Pages: golden bytes, what a table shows, and its formats."""

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_up import clear, use_project
from matplotlib.figure import Figure
from score_files import edit_score_file, write_scores

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import grids, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import evaluator_declaration
from csebench.plan.schema.spec import Spec
from csebench.report.figures.forest import draw_comparison
from csebench.report.numbers.cells import grid_view
from csebench.report.pages import draw_page
from csebench.report.pages.page import Fold, PageContent, TextTable
from csebench.report.pages.table import grid_section
from csebench.score import store

GOLDEN = Path(__file__).parent / "golden"
NONE = [None, None, None]
# Scores by table, scale, row and column: a list has one number a seed; bert is not trained, so that
# it has one run.
MEASURED = {
    # SimCSE and Mirror-BERT tie in the second column as printed.
    ("table7", "tiny"): {
        "BERT (avg.)": [[0.5], [0.7012]],
        "SimCSE": [[0.70, 0.72, 0.74], [0.75001]],
        "Mirror-BERT": [[0.60, 0.61, None], [0.75004]],
    },
    # The control is above all and never bold.
    ("table8", "tiny"): {
        "BERT (avg.)": [[0.5], [0.6], [], [0.1]],
        "SimCSE": [[0.60, 0.62, 0.64], [0.70, 0.70, 0.70], [], [0.25, 0.26, 0.27]],
        "PCL": [NONE, [0.70, 0.74, None]],
        "ESimCSE": [NONE, [0.60, 0.61, 0.62]],
        "DiffCSE": [[0.59, 0.60, 0.61], [0.71, 0.71, 0.71], [], [0.30, 0.30, 0.30]],
        "Random": [[0.90, 0.91, 0.92], NONE, [], [0.01, 0.01, 0.01]],
    },
    ("table10", "paper"): {
        "BERT (avg.)": [[0.47305], [0.47305], [0.39]],
        "SimCSE": [[0.70, 0.71, 0.72, 0.73, 0.74], [0.72, 0.73], [0.70, 0.71, 0.72, 0.73, 0.74]],
        "Mirror-BERT": [
            [0.70, 0.71, 0.72, 0.73, 0.74],
            [0.72, None],
            [0.73, 0.73, 0.73, 0.73, 0.73],
        ],
    },
}
STALE = {"ESimCSE"}  # scored, but by an older version of the method
OLD = {"DiffCSE"}  # by an older version of an evaluator


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The golden paper at two scales, with a score JSON for every measured value."""
    files = {"table.yaml": "papers/golden.yaml", "scale.yaml": "config/tiny.yaml"}
    for source, target in (files | {"paper_scale.yaml": "config/paper.yaml"}).items():
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(GOLDEN / source, tmp_path / target)
    large = (GOLDEN / "scale.yaml").read_text().replace("scale: tiny", "scale: large")
    (tmp_path / "config" / "large.yaml").write_text(large.replace("bert-base", "bert-large"))
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", tmp_path / "data" / "registry.yaml")
    use_project(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    for (name, scale), rows in MEASURED.items():
        measure(name, scale, rows)
    for path in (catalog.results_folder("tiny") / "scores").glob("*.sts.json"):
        edit_score_file(path, add_other_tasks)
    clear()
    yield tmp_path
    clear()


def add_other_tasks(content):
    """A JSON holds every task of its evaluator, also those that no golden table shows."""
    same = {"evaluator": "sts", "metric": "spearman", "value": 0.5}
    for task in {*catalog.STS_COLUMNS} - {row["task"] for row in content["scores"]}:
        content["scores"].append(
            same | {"task": task, "subset": "printed" if task == "Avg." else "all"}
        )


def measure(name, scale, rows):
    """Score JSONs of a table's rows, from lists of values of its first columns."""
    for cells in grids.plan_grid("golden", name, scale):
        label = cells[0].row.label
        for cell, values in zip(cells, rows.get(label, []), strict=False):
            for spec, value in zip(cell.specs, values, strict=True):
                if value is not None:
                    write_score(spec, cell, value, scale)
    clear()


def write_score(spec, cell, value, scale, stale=STALE):
    if cell.row.label in stale:
        spec = spec.model_copy(update={"method_version": spec.method_version - 1})
    old = cell.row.label in OLD and cell.evaluator == "geometry"
    made_by = {"version": evaluator_declaration(cell.evaluator).version - 1} if old else {}
    write_scores(spec, cell.evaluator, scale, [(cell.task, cell.metric, value)], **made_by)


@pytest.mark.parametrize(
    ("file", "name", "scale"),
    [
        ("table.md", "table7", "tiny"),  # missing seeds, ties
        # a mean, a difference, less is better, stale cells, a control
        ("derived.md", "table8", "tiny"),
        ("settings.md", "table9", "tiny"),
        ("verdicts.md", "table10", "paper"),  # every sign
    ],
)
def test_golden_section(file, name, scale, project, golden):
    folder = catalog.results_folder(scale) / "golden"
    section = grid_section(grid_view("golden", name, scale), folder)
    golden(GOLDEN / file, PageContent("A title", "", [*chain(*section)]).write("markdown"))


def forest_plot():
    """The SVG of the comparisons of Table 10."""
    clear()
    (page,) = targets.parse_target("golden/table10", "paper")
    return next(path for path in draw_page(page) if path.suffix == ".svg").read_text(
        encoding="utf-8"
    )


def test_a_forest_plot_marks_the_printed_difference_where_it_judges_ours(project):
    """By its number where it lies outside."""
    text = forest_plot()
    assert "|: printed" in text and ">+24.69, other pooler<" in text
    paper = project / "papers" / "golden.yaml"
    paper.write_text(
        paper.read_text(encoding="utf-8").replace('"73.00±1.16"', '"13.00±1.16"'), encoding="utf-8"
    )
    assert ">+24.69, printed -34.30, other pooler<" in forest_plot()


def test_an_arrow_shows_that_an_interval_goes_beyond_the_axis():
    axes = Figure().add_subplot(xlim=(-1, 1))
    wide = SimpleNamespace(
        estimate=SimpleNamespace(gain=0.5), family_low=-0.2, family_high=1.5, differs=()
    )
    draw_comparison(axes, 0, wide, None)
    assert {line.get_marker() for line in axes.lines} & {"<", ">"} == {">"}


def test_tables_of_a_page_are_written_in_other_formats():
    """As they are, but those that are folded."""
    table = TextTable(["a", "b|c"], [["<img src=x>", "1"], ["[x](javascript:y)", "_2_"]])
    page = PageContent("A title", "Scale tiny", ["**An answer.**", table, Fold("More", [table])])
    assert page.write("csv").splitlines() == ["a,b|c", "<img src=x>,1", "[x](javascript:y),_2_"]
    assert json.loads(page.write("json"))["tables"][0]["rows"][1] == {
        "a": "[x](javascript:y)",
        "b|c": "_2_",
    }
    assert "\\toprule" in page.write("latex") and page.write("latex").count("tabular") == 2


@pytest.fixture
def score_file(project):
    """The file of a run of Table 7."""
    return targets.score_path(
        grids.plan_grid("golden", "table7", "tiny")[1][0].specs[0].run_id, "sts", "tiny"
    )


@pytest.mark.parametrize("batch_size", [128, 7])
def test_scores_of_other_settings_than_the_scale_has_are_marked(score_file, batch_size):
    edit_score_file(
        score_file, lambda content: content["evaluations"][0].update(batch_size=batch_size)
    )
    clear()
    assert grid_view("golden", "table7", "tiny").rows[1][0].stale == (batch_size == 7)


def test_a_score_file_that_lacks_the_task_is_named(score_file):
    def remove_the_average(content):
        content["scores"] = [row for row in content["scores"] if row["task"] != "Avg."]

    edit_score_file(score_file, remove_the_average)
    clear()
    with pytest.raises(BadInput, match=rf"{score_file.name.partition('.')[0]}.*'Avg\.'"):
        grid_view("golden", "table7", "tiny")


def cell_of(row, column):
    view = grid_view("golden", "table8", "tiny")
    return view.rows[view.grid.row(row)][view.grid.column(column)]


def test_a_stale_score_gives_way_to_a_new_one(project):
    cell = cell_of("ESimCSE", "dev")
    for spec in cell.plan.specs:
        write_score(spec, cell.plan, 0.77, "tiny", stale=())
    clear()
    assert cell.stale and cell_of("ESimCSE", "dev").text == "77.00 ± 0.00"


def test_scores_of_older_code_are_known_by_what_was_run():
    """Whatever the version of the run that it starts from, and without a hyper-parameter that
    was declared later."""
    spec = grids.plan_grid("infocse", "table4", "smoke")[0][0].specs[0]
    before = "condenser-0123456789"
    content = json.loads(spec.model_dump_json()) | {"method_version": 0, "trainer_version": 0}
    content["encoder"] = {"name": f"runs/{before}/model", "revision": before}
    content["components"]["auxiliary_mlm"]["version"] = 0
    del content["components"]["auxiliary_mlm"]["params"]["upper"]
    assert store.unversioned(Spec.model_validate(content)) == store.unversioned(spec)


def test_what_is_derived_is_stale_misses_runs_and_leaves_controls_out_as_its_columns_do(project):
    changed = {
        "ESimCSE": [[0.6, 0.6, 0.6]],
        "PCL": [[0.7, 0.72, None]],
        "Random": [NONE, [0.9, 0.9, 0.9]],
    }
    measure("table8", "tiny", changed)
    for column in ("STS12", "mean", "Δ STS12"):
        assert cell_of("ESimCSE", column).stale, column
        cell = cell_of("PCL", column)
        assert sorted(cell.values) == [48, 49] and cell.absent, column
    assert not cell_of("DiffCSE", "mean").stale, "its stale column comes behind the mean"
    assert cell_of("Random", "mean").ours.mean > cell_of("SimCSE", "mean").ours.mean


def test_rendering_imports_nothing_heavy():
    render = "cli.main(['render', 'methods', '--scale', 'mini'])"
    code = f"import sys; from csebench import cli; assert {render} == 0; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    heavy = {
        "torch",
        "transformers",
        "tokenizers",
        "mteb",
        "beir",
        "sentence_transformers",
        "matplotlib",
        "networkx",
    }
    assert not {*heavy, "scipy.stats", "sklearn"} & {*done.stdout.splitlines()[-1].split()}
