"""Planning turns papers into runs, shares runs over papers, and loads no heavy library. What the
project ships is pinned."""

import os
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from csebench import cli
from csebench.base import caches, models
from csebench.base.errors import BadInput
from csebench.base.files import sha256
from csebench.base.project import ROOT
from csebench.plan import forecast, grids, targets
from csebench.plan.catalog import files as catalog
from csebench.study import workflow

SCALES = catalog.scale_names()
HEAVY = (
    "torch",
    "transformers",
    "tokenizers",
    "mteb",
    "beir",
    "sentence_transformers",
    "scipy",
    "sklearn",
)


def micse_cells(paper, scale):
    """Return the cells of miCSE in the Table 2 of a paper."""
    row = grids.find_grid(paper, "table2").row("miCSE")
    return grids.plan_grid(paper, "table2", scale)[row]


def runs_by_size(paper, scale):
    """Return the ids of the runs of miCSE in the Table 2 of a paper, by the size of their
    column."""
    runs = {}
    for cell in micse_cells(paper, scale):
        runs[cell.column.size] = {spec.run_id for spec in cell.specs}
    return runs


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_runs_or_says_why_not(scale):
    for paper in catalog.paper_names():
        for name in targets.grid_names(paper):
            for cell in chain(*grids.plan_grid(paper, name, scale)):
                assert_runs_or_reason(cell, scale)


def assert_runs_or_reason(cell, scale):
    """Assert that a cell has runs or a reason for having none."""
    can_be_run = cell.row.run is not None
    if cell.column.task is None and can_be_run:
        assert not cell.specs, "derived of other cells"
        assert not cell.missing, "derived of other cells"
        return
    assert bool(cell.specs) != bool(cell.missing), cell.row.label
    if can_be_run and not cell.specs:
        assert scale in cell.missing, "a row that could be run says at which scale it is not"


@pytest.mark.parametrize("scale", SCALES)
def test_msse_shares_the_runs_of_micse(scale):
    of_micse = runs_by_size("micse", scale)
    of_msse = runs_by_size("msse", scale)

    assert len(of_micse) == 4
    for size, runs in of_micse.items():
        assert runs
        assert of_msse[size]
        assert of_msse[size] <= runs  # miCSE's table may have more seeds


def test_a_table_may_have_seeds_of_its_own_but_for_some_sizes(monkeypatch):
    seeds = {"micse/table2": [7, 8, 9]}
    scale = catalog.scale("smoke").model_copy(update={"seeds_by_table": seeds})
    monkeypatch.setattr(grids, "scale", lambda name: scale)
    caches.clear()

    counts = {size: len(runs) for size, runs in runs_by_size("micse", "smoke").items()}

    caches.clear()
    assert counts == {"0.1%": 3, "1%": 3, "10%": 1, "100%": 1}


PATHS = {
    "table2": "results/table2.md",
    "mini/methods": "results/mini/methods.md",
    "results/partial/micse/table2.md": "results/micse/table2.md",
    "results/mini/micse/figure3.svg": "results/mini/micse/figure3.svg",
    "results/mini/variants/micse.md": "results/mini/variants/micse.md",
}


@pytest.mark.parametrize(("target", "path"), PATHS.items())
def test_target(target, path):
    (page,) = targets.parse_target(target, "smoke")
    assert str(page.path) == path


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("tabel2", "Did you mean 'table2'"),
        ("table99", "unknown table '99'"),
        ("infocse/figure3", "unknown figure of infocse '3'"),
        ("simcse", "unknown target 'simcse'.*`csebench show NAME` describes methods"),
        ("miCSE/Table2", "Did you mean 'micse/table2'"),
        ("figure4", "Did you mean 'msse/figure4'"),
        ("", "unknown target"),
        ("results/", "unknown target"),
        ("a/b/table2", "unknown target"),
        ("all.md", "unknown target"),
    ],
)
def test_what_is_no_target_is_refused(target, near):
    with pytest.raises(BadInput, match=near):
        targets.parse_target(target, "smoke")


def planned(capsys, *pages):
    """Return what `csebench plan` prints for pages, in one line."""
    cli.main(["plan", *pages])
    return " ".join(capsys.readouterr().out.split())


def test_plan_counts_shared_runs_once(capsys):
    """The figure has the four rows of the table, and an untrained line."""
    table = planned(capsys, "micse/table3")
    table_runs = int(table.split(" ")[0])
    assert f"{table_runs} are shared with other tables." in table

    both_runs = int(planned(capsys, "micse/table3", "micse/figure4").split(" ")[0])
    assert both_runs == table_runs + 1


def test_a_forecast_has_the_hours_that_a_paper_states():
    """20,000 steps of miCSE at 0.27 s on miCSE's own device are 1.5 hours
    (data/step_times.yaml)."""
    (times,) = [times for times in forecast.step_times() if times.device == "NVIDIA V100"]
    spec = micse_cells("micse", "paper")[3].specs[0]

    estimate = forecast.training_estimate(spec, times)

    assert estimate.seconds == pytest.approx(1.5 * 3600, abs=5)


def test_planning_imports_nothing_heavy(monkeypatch, tmp_path):
    """Neither the verb nor what the rules compute does. test_rooms.py checks what their modules
    load."""
    monkeypatch.chdir(tmp_path)
    for module in HEAVY:
        monkeypatch.setitem(sys.modules, module, None)
    caches.clear()
    assert cli.main(["plan", "table2"]) == 0
    for run in targets.page("table2", "smoke").runs():
        workflow.run_data(run, "smoke")
    assert workflow.inputs_of("results/table2.md")


SHIPPED = ["smoke", "stsb-dev-smoke"]
REAL = Path(os.environ.get("CSEBENCH_DATA", ROOT.parent / "shared" / "data"))


@pytest.mark.parametrize("name", catalog.datasets())
def test_data_is_what_the_registry_says(name):
    dataset = catalog.dataset(name)
    if name in SHIPPED:
        path = ROOT / "data" / "smoke" / dataset.path
    else:
        path = REAL / dataset.path
        if not path.exists():
            pytest.skip(f"no {dataset.path} (set CSEBENCH_DATA)")
    assert sha256(path) == dataset.sha256


@pytest.mark.parametrize("scale", SCALES)
def test_a_shipped_encoder_is_what_the_scale_says(scale):
    """The pin of a shipped encoder stands for its whole folder. The pin of one on the hub is a
    commit."""
    for role, ref in catalog.scale(scale).encoders.items():
        if not ref.name.startswith("encoders/"):
            assert re.fullmatch(r"[0-9a-f]{40}", ref.revision), f"{scale}: {role}: not a commit"
            continue
        folder = ROOT / ref.name
        models.check_revision(folder, ref.revision)
        pinned = models.pinned_folder(ref.revision)
        assert pinned == models.model_sha256(folder), f"{scale}: {role}"
