"""Pages: golden bytes, what a table shows, and its formats."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
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
from csebench.report.numbers import stats
from csebench.report.numbers.cells import grid_view
from csebench.report.pages import draw_page
from csebench.report.pages.index import state
from csebench.report.pages.page import Command, Fold, PageContent, TextTable
from csebench.report.pages.row_by_row import row_by_row_table, verdict_text
from csebench.report.pages.score_table import best_by_column
from csebench.report.pages.settings import is_equal
from csebench.report.pages.table import grid_section
from csebench.score import store

GOLDEN = Path(__file__).parent / "golden"
NONE = [None, None, None]
# Scores by table, scale, row and column. A list has one number a seed. BERT is not trained, so it
# has one run.
MEASURED = {
    # SimCSE and Mirror-BERT tie in the second column as printed.
    ("table7", "tiny"): {
        "BERT (avg.)": [[0.5], [0.7012]],
        "SimCSE": [[0.70, 0.72, 0.74], [0.75001]],
        "Mirror-BERT": [[0.60, 0.61, None], [0.75004]],
    },
    # The control is above all other rows and never bold.
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
OUTDATED = {"ESimCSE"}  # trained by an older version of the method
OLD = {"DiffCSE"}  # scored by an older version of an evaluator


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project of the golden paper, with a score JSON for every measured value."""
    files = {
        "table.yaml": "papers/golden.yaml",
        "scale.yaml": "config/tiny.yaml",
        "paper_scale.yaml": "config/paper.yaml",
    }
    for source, target in files.items():
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(GOLDEN / source, tmp_path / target)
    large = (GOLDEN / "scale.yaml").read_text()
    large = large.replace("scale: tiny", "scale: large").replace("bert-base", "bert-large")
    (tmp_path / "config" / "large.yaml").write_text(large)
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


def test_a_table_of_texts_shows_what_is_printed_and_nothing_is_run():
    clear()
    view = grid_view("informin_cl", "table1", "mini")
    section = grid_section(view, Path("results/mini/informin_cl"))
    (table,) = [part for part in section.visible if isinstance(part, TextTable)]
    assert ["Hyphen", "Where-is-the-party, it-sounds-great."] in table.rows
    assert len(table.rows) == 5
    assert not view.cells
    assert state(view) == "texts"


def test_a_table_begins_with_the_column_that_sums_it_up():
    """Where our encoder is not the papers', the verdict is on the runs of others."""
    view = grid_view("infocse", "table2", "mini")
    table = row_by_row_table(view, best_by_column(view))
    shown = [
        "printed (Avg.)",
        "here (mini)",
        "others' runs",
        "verdict on the printed value",
        "command",
    ]
    assert table.head[1:] == shown
    (simcse,) = [row for row in table.rows if row[0] == "SimCSE-BERTbase"]
    assert simcse[1] == "76.25"
    assert simcse[3].endswith(" sources")
    assert simcse[4].startswith("inconclusive")


def test_a_cited_row_has_its_printed_number_alone():
    view = grid_view("micse", "table1", "mini")
    table = row_by_row_table(view, best_by_column(view))
    (cited,) = [row for row in table.rows if row[0].startswith("ArcCSE")]
    assert cited[2:] == ["–", "–", "–", "–"]


def test_our_runs_judge_a_printed_value_where_they_can(project):
    view = grid_view("golden", "table10", "paper")
    table = row_by_row_table(view, best_by_column(view))
    verdicts = {row[0]: row[table.head.index("verdict on the printed value")] for row in table.rows}
    assert verdicts["SimCSE"] == "differs: 6.00 below an average run"


def test_runs_of_others_judge_a_printed_value_that_too_few_of_ours_test():
    view = grid_view("infocse", "table2", "mini")
    cell = view.column("Avg.")[view.score_grid.row("SimCSE-BERTbase")]
    few = replace(cell, judged=True, values={1: 75.0, 2: 75.5})
    assert few.verdict == stats.TOO_FEW
    assert verdict_text(few).startswith("inconclusive")


@pytest.mark.parametrize(
    ("printed", "ours", "equal"),
    [
        ("128", 128, True),
        ("3e-5", 3e-05, True),
        ("cls", "cls", True),
        ("1e-5 / 3e-5", 1e-05, False),
    ],
)
def test_a_printed_setting_may_be_any_text(printed, ours, equal):
    assert is_equal(printed, ours) == equal


def test_a_row_with_runs_has_a_command_and_a_cited_row_has_none():
    view = grid_view("micse", "table1", "mini")
    table = row_by_row_table(view, best_by_column(view))
    commands = {row[0]: row[-1] for row in table.rows}
    assert commands["miCSE"] == "snakemake -j4 results/mini/micse/table1/micse.csv"
    (cited,) = [label for label in commands if label.startswith("ArcCSE")]
    assert commands[cited] == "–"


def test_a_command_is_folded_on_a_page_and_left_out_of_latex():
    table = TextTable(["Model", "command"], [["A", Command("snakemake a")], ["B", "–"]])
    page = PageContent("Title", "", [table])
    folded = "| A | <details><summary>run</summary>`snakemake a`</details> |"
    assert folded in page.write("markdown")
    assert "snakemake" not in page.write("latex")
    assert json.loads(page.write("json"))["tables"][0]["rows"][0]["command"] == "snakemake a"


def add_other_tasks(content):
    """Score the tasks of the evaluator that no golden table shows, as a JSON holds all of them."""
    tasks_with_scores = {row["task"] for row in content["scores"]}
    for task in set(catalog.STS_COLUMNS) - tasks_with_scores:
        subset = "all"
        if task == "Avg.":
            subset = "printed"
        row = {"evaluator": "sts", "metric": "spearman", "value": 0.5}
        content["scores"].append(row | {"task": task, "subset": subset})


def measure(name, scale, rows):
    """Write score JSONs of a table's rows.

    Args:
        rows: {label: values of its first columns, one for each seed, or None if not scored}.
    """
    for cells in grids.plan_grid("golden", name, scale):
        values_of_row = rows.get(cells[0].row.label, [])
        for cell, values in zip(cells, values_of_row, strict=False):
            for spec, value in zip(cell.specs, values, strict=True):
                if value is not None:
                    write_score(spec, cell, value, scale)
    clear()


def write_score(spec, cell, value, scale, outdated=OUTDATED):
    """Score a run of a cell.

    Args:
        outdated: labels of the rows whose runs an older version of the method trained.
    """
    if cell.row.label in outdated:
        spec = spec.model_copy(update={"method_version": spec.method_version - 1})
    made_by = {}
    if cell.row.label in OLD and cell.evaluator == "geometry":
        made_by["version"] = evaluator_declaration(cell.evaluator).version - 1
    write_scores(spec, cell.evaluator, scale, [(cell.task, cell.metric, value)], **made_by)


@pytest.mark.parametrize(
    ("file", "name", "scale"),
    [
        ("table.md", "table7", "tiny"),  # missing seeds, ties
        # a mean, a difference, less is better, outdated cells, a control
        ("derived.md", "table8", "tiny"),
        ("settings.md", "table9", "tiny"),
        ("verdicts.md", "table10", "paper"),  # every sign
    ],
)
def test_golden_section(file, name, scale, project, golden):
    folder = catalog.results_folder(scale) / "golden"
    section = grid_section(grid_view("golden", name, scale), folder)
    page = PageContent("A title", "", list(chain(*section)))
    golden(GOLDEN / file, page.write("markdown"))


def forest_plot():
    """Draw the comparisons of Table 10 and return the SVG."""
    clear()
    (page,) = targets.parse_target("golden/table10", "paper")
    (svg,) = [path for path in draw_page(page) if path.suffix == ".svg"]
    return svg.read_text(encoding="utf-8")


def test_a_forest_plot_marks_the_printed_difference_where_it_judges_ours(project):
    """A difference beyond the axis is marked by its number."""
    text = forest_plot()
    words = " ".join(re.findall("<text .*?>(.*?)</text>", text)).split()
    assert "Grey stroke: difference in print" in " ".join(words)
    assert ">other pooler<" in text

    paper = project / "papers" / "golden.yaml"
    beyond_the_axis = paper.read_text(encoding="utf-8").replace('"73.00±1.16"', '"13.00±1.16"')
    paper.write_text(beyond_the_axis, encoding="utf-8")
    assert ">printed -34.30; other pooler<" in forest_plot()


def test_a_forest_plot_has_every_difference_and_interval_as_numbers(project):
    assert re.search(r">\+24\.69 \([+-]\d+\.\d\d to [+-]\d+\.\d\d\)<", forest_plot())


def test_an_arrow_shows_that_an_interval_goes_beyond_the_axis():
    axes = Figure().add_subplot(xlim=(-1, 1))
    wide = SimpleNamespace(
        estimate=SimpleNamespace(gain=0.5),
        family_low=-0.2,
        family_high=1.5,
        differs=(),
        is_judged=False,
    )
    draw_comparison(axes, 0, wide)
    markers = {line.get_marker() for line in axes.lines}
    assert ">" in markers
    assert "<" not in markers


def test_tables_of_a_page_are_written_in_other_formats():
    """Texts stay as they are. Folded tables are left out."""
    table = TextTable(["a", "b|c"], [["<img src=x>", "1"], ["[x](javascript:y)", "_2_"]])
    page = PageContent("A title", "Scale tiny", ["**An answer.**", table, Fold("More", [table])])
    assert page.write("csv").splitlines() == ["a,b|c", "<img src=x>,1", "[x](javascript:y),_2_"]
    second_row = json.loads(page.write("json"))["tables"][0]["rows"][1]
    assert second_row == {"a": "[x](javascript:y)", "b|c": "_2_"}
    latex = page.write("latex")
    assert "\\toprule" in latex
    assert latex.count("tabular") == 2, "the beginning and the end of one table"


@pytest.fixture
def score_file(project):
    """The file of a run of Table 7."""
    cell = grids.plan_grid("golden", "table7", "tiny")[1][0]
    return targets.score_path(cell.specs[0].run_id, "sts", "tiny")


@pytest.mark.parametrize(("batch_size", "is_outdated"), [(128, False), (7, True)])
def test_scores_of_other_settings_than_the_scale_has_are_marked(
    score_file, batch_size, is_outdated
):
    def change_the_batch_size(content):
        content["evaluations"][0]["batch_size"] = batch_size

    edit_score_file(score_file, change_the_batch_size)
    clear()
    assert grid_view("golden", "table7", "tiny").rows[1][0].is_outdated == is_outdated


def test_a_score_file_that_lacks_the_task_is_named(score_file):
    def remove_the_average(content):
        content["scores"] = [row for row in content["scores"] if row["task"] != "Avg."]

    edit_score_file(score_file, remove_the_average)
    clear()
    run_id = score_file.name.partition(".")[0]
    with pytest.raises(BadInput, match=rf"{run_id}.*'Avg\.'"):
        grid_view("golden", "table7", "tiny")


def cell_of(row, column):
    """Find a cell of Table 8 by its labels."""
    view = grid_view("golden", "table8", "tiny")
    return view.rows[view.grid.row(row)][view.grid.column(column)]


def test_an_outdated_score_gives_way_to_a_new_one(project):
    before = cell_of("ESimCSE", "dev")
    assert before.is_outdated
    for spec in before.plan.specs:
        write_score(spec, before.plan, 0.77, "tiny", outdated=())
    clear()
    assert cell_of("ESimCSE", "dev").text == "77.00 ± 0.00"


def test_scores_of_older_code_are_known_by_what_was_run():
    """The version of the run that it starts from does not matter, nor does a hyper-parameter that
    was declared later."""
    spec = grids.plan_grid("infocse", "table4", "smoke")[0][0].specs[0]
    older = json.loads(spec.model_dump_json())
    older["method_version"] = 0
    older["trainer_version"] = 0
    older_start = "condenser-0123456789"
    older["encoder"] = {"name": f"runs/{older_start}/model", "revision": older_start}
    older["components"]["auxiliary_mlm"]["version"] = 0
    del older["components"]["auxiliary_mlm"]["params"]["upper"]
    assert store.unversioned(Spec.model_validate(older)) == store.unversioned(spec)


def test_what_is_derived_is_outdated_misses_runs_and_leaves_controls_out_as_its_columns_do(project):
    changed = {
        "ESimCSE": [[0.6, 0.6, 0.6]],
        "PCL": [[0.7, 0.72, None]],
        "Random": [NONE, [0.9, 0.9, 0.9]],
    }
    measure("table8", "tiny", changed)
    for column in ("STS12", "mean", "Δ STS12"):
        assert cell_of("ESimCSE", column).is_outdated, column
        incomplete = cell_of("PCL", column)
        assert sorted(incomplete.values) == [48, 49], column
        assert incomplete.absent, column
    assert not cell_of("DiffCSE", "mean").is_outdated, "its outdated column comes after the mean"
    assert cell_of("Random", "mean").ours.mean > cell_of("SimCSE", "mean").ours.mean


def test_rendering_imports_nothing_heavy():
    heavy = {
        "torch",
        "transformers",
        "tokenizers",
        "mteb",
        "beir",
        "sentence_transformers",
        "matplotlib",
        "networkx",
        "scipy.stats",
        "sklearn",
    }
    render = "cli.main(['render', 'methods', '--scale', 'mini'])"
    code = f"import sys; from csebench import cli; assert {render} == 0; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    last_line = done.stdout.splitlines()[-1]
    imported = set(last_line.split())
    assert not heavy & imported
