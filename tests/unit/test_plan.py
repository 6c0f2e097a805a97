"""Planning: papers to runs, shared over papers, without the heavy libraries; pins of what the
project ships."""

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

GRIDS = [(paper, name) for paper in catalog.paper_names() for name in targets.grid_names(paper)]
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
    """The cells of miCSE in the Table 2 of a paper."""
    return grids.plan_grid(paper, "table2", scale)[grids.find_grid(paper, "table2").row("miCSE")]


def runs_by_size(paper, scale):
    """Ids of those runs, by the size of their column."""
    return {cell.column.size: {s.run_id for s in cell.specs} for cell in micse_cells(paper, scale)}


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_runs_or_says_why_not(scale):
    for cell in (cell for grid in GRIDS for cell in chain(*grids.plan_grid(*grid, scale))):
        if cell.column.task is None and cell.row.run is not None:
            assert not cell.specs and not cell.missing, "derived of other cells"
            continue
        assert bool(cell.specs) != bool(cell.missing), cell.row.label
        if cell.row.run is not None and not cell.specs:
            assert scale in cell.missing, "a row that could be run says at which scale it is not"


@pytest.mark.parametrize("scale", SCALES)
def test_msse_shares_the_runs_of_micse(scale):
    theirs, ours = runs_by_size("micse", scale), runs_by_size("msse", scale)
    assert len(theirs) == 4 and all(theirs.values())
    # miCSE's table may have more seeds
    assert all(ours[size] and ours[size] <= theirs[size] for size in theirs)


def test_a_table_may_have_seeds_of_its_own_but_for_some_sizes(monkeypatch):
    scale = catalog.scale("smoke").model_copy(
        update={"seeds_by_table": {"micse/table2": [7, 8, 9]}}
    )
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
        *((target, "unknown target") for target in ("", "results/", "a/b/table2", "all.md")),
    ],
)
def test_what_is_no_target_is_refused(target, near):
    with pytest.raises(BadInput, match=near):
        targets.parse_target(target, "smoke")


def test_plan_counts_shared_runs_once(capsys):
    """A table and a figure of the same four rows, and the figure's untrained line."""
    for more, added in ((), 0), (("micse/figure4",), 1):
        cli.main(["plan", "micse/table3", *more])
        printed = capsys.readouterr().out
        rows = int(printed.split(" ")[0]) - added
        assert f"{rows} are shared with other tables." in " ".join(printed.split()) or added


def test_a_forecast_has_the_hours_that_a_paper_states():
    """20,000 steps of miCSE at 0.27 s on miCSE's own device are 1.5 hours
    (data/step_times.yaml)."""
    (times,) = [times for times in forecast.step_times() if times.device == "NVIDIA V100"]
    assert forecast.training_estimate(
        micse_cells("micse", "paper")[3].specs[0], times
    ).seconds == pytest.approx(1.5 * 3600, abs=5)


def test_planning_imports_nothing_heavy(monkeypatch, tmp_path):
    """Neither the verb nor what the rules compute; what their modules load: test_rooms.py."""
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
    path = (ROOT / "data" / "smoke" if name in SHIPPED else REAL) / dataset.path
    if name not in SHIPPED and not path.exists():
        pytest.skip(f"no {dataset.path} (set CSEBENCH_DATA)")
    assert sha256(path) == dataset.sha256


@pytest.mark.parametrize("scale", SCALES)
def test_a_shipped_encoder_is_what_the_scale_says(scale):
    """The pin of an encoder of the project stands for its whole folder, of one on the hub is a
    commit."""
    for role, ref in catalog.scale(scale).encoders.items():
        if ref.name.startswith("encoders/"):
            models.check_revision(ROOT / ref.name, ref.revision)
            assert models.pinned_folder(ref.revision) == models.model_sha256(ROOT / ref.name), (
                f"{scale}: {role}"
            )
        else:
            assert re.fullmatch(r"[0-9a-f]{40}", ref.revision), f"{scale}: {role}: not a commit"
