"""Planning turns papers into runs, shares runs over papers, and loads no heavy library. What the
project ships is pinned."""

import os
import re
import sys
from itertools import chain
from pathlib import Path

import pytest
from made_up import SCALE, made_up, table

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


# of the scale, and of one table; these are not in order
SEEDS = {"seeds": [48, 49], "seeds_by_table": {"micse/table2": [52, 48, 49]}}


@pytest.mark.parametrize(
    ("table", "stated", "seeds"),
    [
        ("micse/table1", None, [48, 49]),
        ("micse/table2", None, [52, 48, 49]),
        ("micse/table1", 2, [52, 48]),
        ("micse/table1", 3, [52, 48, 49]),
        ("micse/table2", 5, [52, 48, 49, 53, 54]),
    ],
)
def test_a_table_that_states_a_number_of_seeds_takes_the_longest_list_and_goes_on(
    table, stated, seeds
):
    """So that it shares scores with other tables. Without a number it has the scale's seeds."""
    scale = catalog.scale("smoke").model_copy(update=SEEDS)
    assert scale.seeds_of(table, stated) == seeds


@pytest.fixture
def plan_made_up(tmp_path, monkeypatch):
    """Plan Table 1 of a made-up paper from its rows and columns."""

    def plan(rows, columns, **settings):
        made_up(
            tmp_path, monkeypatch, {"name": "m", "tables": {"1": table(rows, columns, **settings)}}
        )
        return grids.find_grid("m", "table1"), grids.plan_grid("m", "table1", SCALE)

    yield plan
    monkeypatch.undo()
    caches.clear()


def test_every_value_of_a_swept_table_has_the_seeds_that_the_table_states(plan_made_up):
    temperatures = (0.02, 0.1)
    columns = [
        {"label": f"{t}", "task": "STS-B", "sweep": {"temperature": t}} for t in temperatures
    ]
    _, (cells,) = plan_made_up({"A": ("simcse", [None, None])}, columns, run_seeds=4)

    for cell, temperature in zip(cells, temperatures, strict=True):
        assert [spec.seed for spec in cell.specs] == [1, 2, 3, 4]
        assert {spec.params["temperature"] for spec in cell.specs} == {temperature}


DERIVED = [
    {"label": "x", "task": "STS-B"},
    {"label": "y", "task": "SICK-R"},
    {"label": "mean", "mean": True},
    {"label": "gain", "delta": "mean"},
]


@pytest.mark.parametrize(
    ("row", "column", "parts"),
    [
        (0, 1, [("A", "y")]),
        (0, 2, [("A", "x"), ("A", "y")]),
        (0, 3, [("A", "x"), ("A", "y"), ("B", "x"), ("B", "y")]),
        (1, 3, []),
    ],
    ids=["a score", "a mean", "a difference of means", "the baseline"],
)
def test_a_cell_is_computed_from_the_cells_with_runs(row, column, parts, plan_made_up):
    rows = {"A": ("simcse", [None] * 4), "B": ("ct", [None] * 4)}
    grid, cells = plan_made_up(rows, DERIVED, baseline="B")
    found = grids.parts_of_cell(grid, cells, row, column)
    assert [(cell.row.label, cell.column.label) for cell in found] == parts


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


def test_all_pages_of_a_scale_are_a_target():
    assert targets.parse_target("mini/all", "smoke") == list(targets.pages("mini"))


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_a_job_finds_its_run_and_evaluators_as_the_pages_have_them(scale):
    """A job plans the rows of its method alone."""
    shown = {run_id: set() for run_id in targets.runs(scale)}
    for page in targets.pages(scale):
        for run_id, evaluator in page.scores():
            shown[run_id].add(evaluator)

    found = {run_id: targets.run(run_id, scale) for run_id in shown}
    evaluators = {run_id: targets.evaluators(run_id, scale) for run_id in shown}

    assert found == targets.runs(scale)
    assert evaluators == shown
