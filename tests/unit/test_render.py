"""Pages: a pure function of the papers' tables and the scores. Golden bytes, and what a page must say."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from score_files import PROVENANCE, scored_by, write_score_file

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, targets
from csebench.plan.registry import evaluator_declaration
from csebench.plan.spec import Spec
from csebench.report import markdown, overview
from csebench.report.stats import NOT_COMPARABLE
from csebench.report.view import grid_view
from csebench.score import store

GOLDEN = Path(__file__).parent / "golden"
NONE = [None, None, None]
# Scores by table, scale, row and column: a list has one number a seed; bert is not trained, so that it has one run.
MEASURED = {
    # SimCSE and Mirror-BERT tie in the second column as printed; one seed of Mirror-BERT is missing in the first, CT
    # has nothing.
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
    ("table10", "tiny"): {  # the same runs again: a JSON holds every task of its evaluator
        "BERT (avg.)": [[0.5], [0.5], [0.5]],
        "SimCSE": [[0.70, 0.72, 0.74], [0.75], [0.60, 0.62, 0.64]],
        "Mirror-BERT": [[0.60, 0.61, None], [0.75], [0.63, 0.65, None]],
    },
    ("table10", "paper"): {
        "BERT (avg.)": [[0.47305], [0.47305], [0.39]],
        "SimCSE": [[0.70, 0.71, 0.72, 0.73, 0.74], [0.72, 0.73], [0.70, 0.71, 0.72, 0.73, 0.74]],
        "Mirror-BERT": [[0.70, 0.71, 0.72, 0.73, 0.74], [0.72, None], [0.73, 0.73, 0.73, 0.73, 0.73]],
    },
}
STALE = {"ESimCSE"}  # scored, but by an older version of the method
OLD = {"DiffCSE"}  # by an older version of an evaluator


def clear():
    caches.clear()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The golden paper at two scales, with a score JSON for every measured value."""
    files = {"table.yaml": "papers/golden.yaml", "scale.yaml": "config/tiny.yaml"}
    for source, target in (files | {"paper_scale.yaml": "config/paper.yaml"}).items():
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(GOLDEN / source, tmp_path / target)
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", tmp_path / "data" / "registry.yaml")
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    clear()
    for (name, scale), rows in MEASURED.items():
        measure(name, scale, rows)
    add_other_tasks("tiny")
    kept = targets.grid_path("golden", "table8", "tiny", "items.json")
    kept.parent.mkdir(parents=True)
    write_json(kept, with_digest(json.loads((GOLDEN / "items.json").read_text())))
    clear()
    yield tmp_path
    clear()


@pytest.fixture
def page(project):
    return targets.page("table7", "tiny", "golden")


def measure(name, scale, rows):
    """Score JSONs of a table's rows, from lists of values of its first columns."""
    for cells in grids.plan_grid("golden", name, scale):
        label = cells[0].row.label
        for cell, values in zip(cells, rows.get(label, []), strict=False):
            for spec, value in zip(cell.specs, values, strict=True):
                if value is not None:
                    write_score(spec, cell, value, scale, stale=label in STALE, old=label in OLD)
    clear()


def add_other_tasks(scale):
    """A JSON holds every task of its evaluator, also those that no golden table shows."""
    for path in (catalog.results_folder(scale) / "scores").glob("*.sts.json"):
        content = json.loads(path.read_text())
        scored = {score["task"] for score in content["scores"]}
        same = {"evaluator": "sts", "protocol": "p", "metric": "spearman", "value": 0.5}
        content["scores"] += [
            same | {"task": task, "subset": "printed" if task == "Avg." else "all"}
            for task in catalog.STS_COLUMNS
            if task not in scored
        ]
        write_score_file(path, content)


def write_score(spec, cell, value, scale, stale=False, old=False):
    """Adds a task's score to the JSON of a run."""
    if stale:
        spec = spec.model_copy(update={"method_version": spec.method_version - 1})
    path = targets.score_path(spec.run_id, cell.evaluator, scale)
    path.parent.mkdir(parents=True, exist_ok=True)
    version = evaluator_declaration(cell.evaluator).version - (old and cell.evaluator == "geometry")
    content = {"spec": spec.model_dump(), "training": {"provenance": PROVENANCE}, "provenance": PROVENANCE}
    content |= {"run": spec.run_id, "evaluations": [scored_by(cell.evaluator, version=version)]}
    content["scores"] = json.loads(path.read_text())["scores"] if path.exists() else []
    subset = "printed" if cell.task == "Avg." else "all"
    row = {"evaluator": cell.evaluator, "protocol": "p", "task": cell.task, "subset": subset, "metric": cell.metric}
    if row | {"value": value} not in content["scores"]:
        content["scores"].append(row | {"value": value})
    write_score_file(path, content)


GOLDENS = {
    "table.md": ("table7", "tiny"),  # missing seeds, ties
    "derived.md": (
        "table8",
        "tiny",
    ),  # a mean, a difference, less is better, stale cells, letters of ties, a control
    "settings.md": ("table9", "tiny"),
    "verdicts.md": ("table10", "paper"),  # every sign, with half-widths
}


@pytest.mark.parametrize("file", GOLDENS)
def test_golden_section(file, project):
    """To change it on purpose: write what `section` gives into tests/unit/golden/, and read the diff."""
    name, scale = GOLDENS[file]
    shown = markdown.grid_section(grid_view("golden", name, scale)) + "\n"
    assert shown == (GOLDEN / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "scale"), GOLDENS.values(), ids=GOLDENS)
def test_same_scores_same_bytes(name, scale, project):
    first = markdown.render_page(targets.page(name, scale, "golden"))
    clear()
    assert markdown.render_page(targets.page(name, scale, "golden")) == first


def test_the_page_says_what_it_is(page):
    text = markdown.render_page(page)
    for part in (
        "# Golden, Table 7, at scale tiny",
        "a page whose bytes are known",
        "Not comparable with the published numbers",
        "`encoders/bert-mini-wiki` @ 000000000000",
        "48, 49, 50 (100%: 48)",
        "steps 6",
        "ct: batch_size 16",
        "1% = 96, 100% = 400",
        "8 of 13 runs scored",
        "Commit: 0123456789; torch 9.9; hardware: a processor.",
        "snakemake -j4 results/tiny/golden/table7.md",
    ):
        assert part in text, part


def test_a_page_names_rows_whose_loss_was_zero(project):
    assert "training changes nothing" not in markdown.render_page(targets.page("table7", "tiny", "golden"))
    for path in (catalog.results_folder("tiny") / "scores").glob("simcse-*.sts.json"):
        content = json.loads(path.read_text())
        content["training"]["curve"] = [{"step": step, "loss": 0.0} for step in (3, 6)]
        write_score_file(path, content)
    clear()
    text = markdown.render_page(targets.page("table7", "tiny", "golden"))
    assert "- SimCSE: the loss is 0 from the first evaluation to the last in all 4 runs" in text
    assert text.count("training changes nothing") == 1


def test_a_page_names_the_columns_that_a_run_does_not_see_all_of():
    text = markdown.scale_warning("mini")
    assert "6,000 sentences in all" in text and "columns of more (1%, 10%, 100%) differ in which sentences" in text
    assert "A run sees" not in markdown.scale_warning("paper")


def test_a_page_of_the_papers_scale_says_how_it_judges(project):
    text = markdown.render_page(targets.page("table10", "paper", "golden"))
    assert "✓ reproduced, ≈ close, ↓ lower, ↑ higher, ? too few seeds" in text and "half-width" in text
    assert "Not comparable" not in text and "the papers' own settings" in text


def test_pages_of_scale_short_say_that_they_have_a_tenth_of_the_steps():
    text = markdown.render_page(targets.page("table3", "short", "msse"))
    assert "**Not comparable with the published numbers**: a tenth of the steps." in text
    assert "- **Settings of the scale**: 0.1 of the steps" in text


def test_other_scales_judge_nothing(project):
    for name in ("table7", "table8", "table10"):
        cells = [cell for row in grid_view("golden", name, "tiny").rows for cell in row]
        assert {cell.verdict.name for cell in cells if cell.verdict} <= {NOT_COMPARABLE}
        text = markdown.grid_section(grid_view("golden", name, "tiny"))
        assert not any(sign in text for sign in markdown.SIGNS.values())


def test_the_page_of_all_papers_is_the_papers_sections(page):
    everything = markdown.render_page(targets.page("table7", "tiny"))
    assert markdown.grid_section(grid_view("golden", "table7", "tiny")) in everything
    assert everything.count("## Somebody, somewhere · Table 7") == 1


def test_a_score_that_is_cut_short_is_named(page):
    path = next(Path("results/tiny/scores").iterdir())
    path.write_text(path.read_text()[:-10])
    clear()
    with pytest.raises(BadInput, match=path.name):
        markdown.render_page(page)


@pytest.mark.parametrize(("settings", "mark"), [({"batch_size": 128}, ""), ({"batch_size": 7}, "†"), ({}, "")])
def test_scores_of_other_settings_than_the_scale_has_are_marked(page, settings, mark):
    """Files of before a setting was recorded are not marked."""
    cell = grids.plan_grid("golden", "table7", "tiny")[1][0]
    for spec in cell.specs:
        path = targets.score_path(spec.run_id, "sts", "tiny")
        content = json.loads(path.read_text())
        content["evaluations"][0].update(settings)
        write_score_file(path, content)
    clear()
    assert grid_view("golden", "table7", "tiny").rows[1][0].stale == bool(mark)


def test_a_score_without_the_task_is_named(page):
    spec = grids.plan_grid("golden", "table7", "tiny")[1][0].specs[0]
    path = targets.score_path(spec.run_id, "sts", "tiny")
    content = json.loads(path.read_text())
    content["scores"] = [s for s in content["scores"] if s["task"] != "Avg."]
    write_score_file(path, content)
    clear()
    with pytest.raises(BadInput, match=rf"{spec.run_id}.*'Avg\.'"):
        markdown.render_page(page)


def cell_of(row, column, name="table8", scale="tiny"):
    shown = grid_view("golden", name, scale)
    return shown.rows[shown.grid.row(row)][shown.grid.column(column)]


def test_a_stale_score_gives_way_to_a_new_one(project):
    assert "| 61.00 ± 1.00† " in markdown.grid_section(grid_view("golden", "table8", "tiny"))
    cell = cell_of("ESimCSE", "dev").plan
    for spec in cell.specs:
        write_score(spec, cell, 0.77, "tiny")
    clear()
    assert "| **77.00 ± 0.00** " in markdown.grid_section(grid_view("golden", "table8", "tiny"))


def test_scores_of_older_code_are_known_by_what_was_run():
    """Whatever the version of the run that it starts from, and without a hyper-parameter that was declared later."""
    cells = grids.plan_grid("infocse", "table4", "smoke")
    spec = next(s for s in cells[0][0].specs if s.method == "infocse")
    before = "condenser-0123456789"
    content = json.loads(spec.model_dump_json()) | {"method_version": 0, "trainer_version": 0}
    content["encoder"] = {"name": f"runs/{before}/model", "revision": before}
    content["components"]["auxiliary_mlm"]["version"] = 0
    del content["components"]["auxiliary_mlm"]["params"]["upper"]
    assert store.unversioned(Spec.model_validate(content)) == store.unversioned(spec)
    other = content | {"params": content["params"] | {"steps": 1}}
    assert store.unversioned(Spec.model_validate(other)) != store.unversioned(spec)


def test_what_is_derived_of_stale_scores_is_stale(project):
    measure("table8", "tiny", {"ESimCSE": [[0.6, 0.6, 0.6]]})
    for column in ("STS12", "mean", "Δ STS12"):
        assert cell_of("ESimCSE", column).stale, column
    assert not cell_of("DiffCSE", "mean").stale, "its stale column comes behind the mean"


def test_what_is_derived_misses_the_runs_that_its_columns_miss(project):
    measure("table8", "tiny", {"PCL": [[0.7, 0.72, None]]})
    for column in ("STS12", "mean", "Δ STS12"):
        cell = cell_of("PCL", column)
        assert cell.seeds == [48, 49] and cell.absent, column


def test_a_control_is_the_best_of_no_column(project):
    measure("table8", "tiny", {"Random": [NONE, [0.9, 0.9, 0.9]]})
    assert cell_of("Random", "mean").ours.mean > cell_of("SimCSE", "mean").ours.mean
    assert not any(cell_of("Random", column).best for column in ("STS12", "dev", "mean", "alignment"))


def test_a_mean_without_randomness_is_one_for_every_seed(project):
    paper = project / "papers" / "golden.yaml"
    paper.write_text(paper.read_text(encoding="utf-8").replace('delta: "STS12"', 'delta: "mean"'), encoding="utf-8")
    clear()
    assert cell_of("BERT (avg.)", "Δ STS12").ours.mean == pytest.approx(55 - 66)


def test_retrieved_texts_stand_beside_the_printed_ones(project):
    retrieved, printed = {"SimCSE": [["A cat.", "A | b."]]}, {"MSSE": [["x", "y"]]}
    content = {"comparisons": {}, "texts": {"queries": ["A dog."], "retrieved": retrieved, "printed": printed}}
    write_json(targets.grid_path("golden", "table7", "tiny", "items.json"), with_digest(content))
    text = markdown.grid_section(grid_view("golden", "table7", "tiny"))
    assert "Query: A dog." in text
    assert "| #1 | A cat." in text and "A \\| b." in text and "MSSE (printed)" in text


def test_all_methods_are_sorted_by_their_average_with_controls_last(project):
    for cells in grids.plan_grid(catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, "tiny"):
        for spec in cells[0].specs:
            if (score := {"micse": 0.99, "bert": 0.5, "random": 1.0}.get(spec.method)) is not None:
                for cell in cells[:-1]:
                    write_score(spec, cell, score, "tiny")
    clear()
    view = grid_view(catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, "tiny")
    labels = [view.grid.rows[i].label for i in markdown.row_order(view)]
    assert labels[0] == "miCSE" and [label.startswith("Control: ") for label in labels[-3:]] == [False, True, True]
    gains = dict(zip((row.label for row in view.grid.rows), view.column("gain over untrained"), strict=True))
    assert gains["miCSE"].mean == pytest.approx(49)


def test_the_index_says_how_much_there_is(project):
    text = overview.index_page("tiny")
    assert "# Results at scale tiny" in text and "Not comparable" in text
    for part in (
        "[partial: 8 of 13 runs scored](golden/table7.md)",
        "[settings](golden/table9.md)",
        "(table10.md)",
        "[partial: 32 of 48 runs scored, 6 of them †](golden/table8.md)",
        "3 partial; 1 settings",
        "(methods.md)",
        "(claims.md)",
        "(audit.md)",
        "`csebench html --scale tiny` writes results/tiny/html/index.html",
    ):
        assert part in text, part
    clear()
    assert overview.index_page("tiny") == text


def test_rendering_imports_nothing_heavy(project):
    """At a small scale, with scores, stale ones and letters of ties."""
    code = f"""
import sys
from pathlib import Path
from csebench.plan import catalog, grids, targets
from csebench.report import markdown, overview
catalog.ROOT = Path({str(project)!r})
for page in targets.pages("tiny"):
    if page.name not in catalog.GENERATED:
        markdown.render_page(page)
overview.index_page("tiny")
heavy = ("torch", "transformers", "tokenizers", "mteb", "beir", "sentence_transformers", "scipy.stats", "sklearn")
print("HEAVY", [m for m in (*heavy, "matplotlib", "networkx") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "HEAVY []"
