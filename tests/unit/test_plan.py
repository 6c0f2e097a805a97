"""Planning: papers to runs, shared over papers, without the heavy libraries; pins of what the project ships."""

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput, by_number
from csebench.base.files import sha256
from csebench.base.project import ROOT
from csebench.cli import plan
from csebench.plan import catalog, cost, grids, targets
from csebench.plan.papers import SettingsTable
from csebench.report import provenance

PAPERS = catalog.paper_names()
GRIDS = [(paper, name) for paper in PAPERS for name in targets.grid_names(paper)]
CELLS = [(paper, name) for paper, name in GRIDS if not isinstance(grids.find_grid(paper, name), SettingsTable)]
SCALES = catalog.scale_names()
HEAVY = ("torch", "transformers", "tokenizers", "mteb", "beir", "sentence_transformers", "scipy", "sklearn")


def row(paper, label, name="table2"):
    """Position of a table's row."""
    return grids.find_grid(paper, name).row(label)


def runs_by_size(paper, label, scale):
    """Run ids of a row, by the size of its column."""
    cells = grids.plan_grid(paper, "table2", scale)[row(paper, label)]
    return {cell.column.size: {s.run_id for s in cell.specs} for cell in cells}


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_runs_or_says_why_not(scale):
    for cell in (cell for grid in CELLS for cell in chain(*grids.plan_grid(*grid, scale))):
        if cell.column.task is None and cell.row.run is not None:
            assert not cell.specs and not cell.missing, "derived of other cells"
            continue
        assert bool(cell.specs) != bool(cell.missing), cell.row.label
        if cell.row.run is not None and not cell.specs:
            assert scale in cell.missing, "a row that could be run says at which scale it is not"


def test_rows_without_a_run_say_so():
    cells = grids.plan_grid("infocse", "table2", "paper")[row("infocse", "IS-BERTbase")]
    assert {c.missing for c in cells} == {"cited only"}
    large = grids.plan_grid("infocse", "table2", "smoke")[row("infocse", "SimCSE-BERTlarge")]
    assert {c.missing for c in large} == {"no bert-large at scale smoke"}


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_pretraining_is_one_run_that_comes_first(scale):
    """Every InfoCSE run of a scale and an encoder starts from the same run, which the page needs, too."""
    cells = [c for c in chain(*grids.plan_grid("infocse", "table2", scale)) if c.specs]
    started = [s for c in cells for s in c.specs if s.method == "infocse"]
    before = {s.run_id: s for c in cells for s in c.before}
    assert started and {s.run_before for s in started if s.run_before} == set(before)
    for run_id, spec in before.items():
        assert spec.method == "condenser" and targets.run(run_id, scale) == spec
        assert spec.corpus.size == max(catalog.scale(scale).sizes.values())
    needed = targets.page("table2", scale, "infocse")
    assert set(before) <= set(needed.available_runs()) and not set(before) & {run for run, _ in needed.scores()}


@pytest.mark.parametrize("scale", SCALES)
def test_msse_shares_the_runs_of_micse(scale):
    theirs, ours = runs_by_size("micse", "miCSE", scale), runs_by_size("msse", "miCSE", scale)
    assert len(theirs) == 4 and all(theirs.values())
    assert all(ours[size] and ours[size] <= theirs[size] for size in theirs)  # miCSE's table may have more seeds
    sizes = catalog.scale(scale).sizes
    shared = sizes["0.5%"] in {sizes[size] for size in theirs}  # as at smoke
    assert bool(ours["0.5%"] & set().union(*theirs.values())) == shared


def test_a_table_with_seeds_of_its_own(monkeypatch):
    at = catalog.scale("smoke").model_copy(update={"seeds_by_table": {"micse/table2": [7, 8, 9]}})
    for module, name in ((grids, "scale"), (provenance, "read_scale")):
        monkeypatch.setattr(module, name, lambda name: at)
    caches.clear()
    counts = {size: len(runs) for size, runs in runs_by_size("micse", "miCSE", "smoke").items()}
    assert counts == {"0.1%": 3, "1%": 3, "10%": 1, "100%": 1}
    conditions = dict(provenance.page_conditions(targets.page("table2", "smoke", "micse")))
    assert conditions["Seeds"] == "7, 8, 9 (10%: 48; 100%: 48)"
    assert {s.seed for s in targets.page("table3", "smoke", "micse").runs().values()} <= {48, 49}
    caches.clear()


@pytest.mark.parametrize(
    ("target", "scale", "path"),
    [
        ("table2", "mini", "results/mini/table2.md"),
        ("results/partial/micse/table2.md", "smoke", "results/micse/table2.md"),
        ("results/mini/micse/table2.md", "smoke", "results/mini/micse/table2.md"),
        ("micse/figure3", "smoke", "results/micse/figure3.svg"),
        ("results/mini/micse/figure3.svg", "smoke", "results/mini/micse/figure3.svg"),
        ("methods", "mini", "results/mini/methods.md"),
        ("results/mini/variants/micse.md", "smoke", "results/mini/variants/micse.md"),
    ],
)
def test_target(target, scale, path):
    (page,) = targets.parse_target(target, scale)
    assert str(page.path) == path


def test_target_all_is_every_page():
    """Tables over all papers first, by number."""
    paths = [str(page.path) for page in targets.parse_target("all", "smoke")]
    of_papers = {f"results/{p}/{n}.{'svg' if n.startswith('figure') else 'md'}" for p, n in GRIDS}
    numbers = sorted({n for _, n in GRIDS if n.startswith("table")}, key=by_number)
    assert paths[: len(numbers)] == [f"results/{n}.md" for n in numbers]
    assert {*paths[len(numbers) :]} == of_papers | {"results/methods.md", "results/variants.md"}


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("tabel2", "Did you mean 'table2'"),
        ("results/mini/tabel2.md", "Did you mean 'table2'"),
        ("table", r"Did you mean 'table\d'"),
        ("msse/figur4", "Did you mean 'msse/figure4'"),
        ("micsee/table2", "Did you mean 'micse/table2'"),
        ("micse/table99", "unknown table of micse '99'"),
        ("table99", "unknown table '99'"),
        ("infocse/figure3", "unknown figure of infocse '3'"),
        ("simcse", "unknown target 'simcse'.*`csebench show NAME` describes methods"),
        ("miCSE/Table2", "Did you mean 'micse/table2'"),
        ("figure4", "Did you mean 'msse/figure4'"),
        ("results/mnii/table2.md", "Did you mean 'mini/table2'"),
        *((target, "unknown target") for target in ("results", "", "results/", "a/b/table2", "all.md")),
    ],
)
def test_what_is_no_target_is_refused(target, near):
    with pytest.raises(BadInput, match=near):
        targets.parse_target(target, "smoke")


def test_a_run_is_shown_in_a_table_once():
    """The page of all papers' Table 9 is InfoCSE's Table 9 again, and is not counted beside it."""
    tables = plan.tables_of_runs("smoke")
    assert all(len({*of_run}) == len(of_run) for of_run in tables.values())
    for paper, name in GRIDS:
        assert all(f"{paper}/{name}" in tables[run] for run in targets.page(name, "smoke", paper).available_runs())


def test_plan_counts_what_sharing_saves(capsys, monkeypatch):
    """A table and a figure of the same four rows, and the figure's untrained line: the rows' runs count once."""
    monkeypatch.setenv("COLUMNS", "500")
    cli.main(["plan", "micse/table3"])
    alone = capsys.readouterr().out
    rows = int(alone.split(" ")[0])
    assert "Without sharing" not in alone and f"{rows} are shared with other tables." in alone
    cli.main(["plan", "micse/table3", "micse/figure4"])
    both = re.search(r"(\d+) runs at .* Without sharing between .* would be (\d+)\.", capsys.readouterr().out)
    assert (int(both.group(1)), int(both.group(2))) == (rows + 1, 2 * rows + 1)


def test_plan_forecasts_hours(capsys):
    """20,000 steps of miCSE at 0.27 s on miCSE's own device are 1.5 hours (data/step_times.yaml)."""
    cli.main(["plan", "micse/table2", "--scale", "paper"])
    shown = capsys.readouterr().out
    assert "Forecast on one NVIDIA V100, " in shown and "stated, not measured here" in shown
    (times,) = [t for t in cost.step_times() if t.device == "NVIDIA V100"]
    spec = grids.plan_grid("micse", "table2", "paper")[row("micse", "miCSE")][3].specs[0]
    assert cost.training(spec, times).seconds == pytest.approx(1.5 * 3600, abs=5)


@pytest.mark.slow
def test_the_workflow_plans_without_anything_heavy():
    """Snakemake's parsing and its whole DAG of Table 2, from Python's own list of imports."""
    command = [sys.executable, "-X", "importtime", "-m", "snakemake", "-n", "--nolock", "results/table2.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(re.findall(r"^import time:.*\|\s+(\S+)$", done.stderr, flags=re.M))
    assert "csebench.plan.targets" in imported
    assert not imported & set(HEAVY)


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
    """The pin of an encoder of the project is the hash of its weights, of one on the hub a commit."""
    for role, ref in catalog.scale(scale).encoders.items():
        if ref.name.startswith("encoders/"):
            assert sha256(ROOT / ref.name / "model.safetensors") == ref.revision, f"{scale}: {role}"
        else:
            assert re.fullmatch(r"[0-9a-f]{40}", ref.revision), f"{scale}: {role}: not a commit"
