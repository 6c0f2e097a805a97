"""Pages: a pure function of the papers' tables and the scores. Golden bytes, and what a page must say."""

import json
import shutil
from pathlib import Path

import pytest

from csebench import ROOT, plan, render, store
from csebench.errors import BadInput

GOLDEN = Path(__file__).parent / "golden"
CACHED = (plan.scale, plan.datasets, plan.paper, plan.plan_table, plan.runs, store.read)
PROVENANCE = {
    "commit": "0123456789abcdef",
    "dirty_diff_sha256": None,
    "packages": {"torch": "9.9"},
    "gpu": None,
    "processor": "a processor",
}
# Values by row and column: a list has one number a seed; bert is not trained, so that it has one run. SimCSE and
# Mirror-BERT tie in the second column as printed; one seed of Mirror-BERT is missing in the first, CT has nothing.
MEASURED = {
    "BERT (avg.)": [[0.5], [0.7012]],
    "SimCSE": [[0.70, 0.72, 0.74], [0.75001]],
    "Mirror-BERT": [[0.60, 0.61, None], [0.75004]],
    "CT": [[None, None, None], [None]],
}


def clear():
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The golden paper's page at the golden scale, with a score JSON for every measured value."""
    for source, target in (("table", "papers/golden"), ("scale", "config/golden")):
        (tmp_path / target).parent.mkdir()
        shutil.copy(GOLDEN / f"{source}.yaml", tmp_path / f"{target}.yaml")
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", tmp_path / "data" / "registry.yaml")
    monkeypatch.setattr(plan, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    clear()
    for cells in plan.plan_table("golden", "7", "golden"):
        for cell, values in zip(cells, MEASURED.get(cells[0].row.label, [[], []]), strict=True):
            for spec, value in zip(cell.specs, values, strict=True):
                if value is not None:
                    write_score(spec, cell.column.task, value)
    yield plan.page("7", "golden", "golden")
    clear()


def write_score(spec, task, value):
    """Adds a task's score to the JSON of a run."""
    path = plan.score_path(spec.run_id, "sts", "golden")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"spec": spec.model_dump(), "training": {"provenance": PROVENANCE}, "provenance": PROVENANCE}
    content["scores"] = json.loads(path.read_text())["scores"] if path.exists() else []
    subset = "printed" if task == "Avg." else "all"
    row = {"evaluator": "sts", "protocol": "p", "task": task, "subset": subset, "metric": "spearman", "value": value}
    content["scores"].append(row)
    path.write_text(json.dumps(content))


def test_golden_table(page):
    """To change it on purpose: write what `table_section` gives into tests/golden/table.md, and read the diff."""
    assert render.table_section("golden", "7", "golden") + "\n" == (GOLDEN / "table.md").read_text(encoding="utf-8")


def test_same_scores_same_bytes(page):
    first = render.render(page)
    clear()
    assert render.render(page) == first


def test_the_page_says_what_it_is(page):
    text = render.render(page)
    for part in (
        "# Table 7 at scale golden",
        "a page whose bytes are known",
        "Not comparable with the published numbers",
        "`encoders/bert-mini-wiki` @ 000000000000",
        "48, 49, 50 (100%: 48)",
        "steps 6",
        "ct: batch_size 16",
        "1% = 96, 100% = 400",
        "Runs: 8 of 13 scored",
        "Commit: 0123456789; torch 9.9; hardware: a processor.",
        "snakemake -j4 results/golden/golden/table7.md",
    ):
        assert part in text, part


def test_a_score_that_is_cut_short_is_named(page):
    path = next(Path("results/golden/scores").iterdir())
    path.write_text(path.read_text()[:-10])
    clear()
    with pytest.raises(BadInput, match=path.name):
        render.render(page)


def test_scores_csv_is_derived(page):
    path = store.write_csv("golden")
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(store.COLUMNS)
    assert len(lines) == 1 + 9  # bert's one run has two scores
    assert sum(",simcse," in f",{line}" for line in lines) == 4
    before = path.read_bytes()
    path.unlink()
    assert store.write_csv("golden").read_bytes() == before
