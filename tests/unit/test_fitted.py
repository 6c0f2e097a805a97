"""A method that is fitted draws its sentences by seed: it has a run for every seed, and a spread."""

import pytest
from made_up import clear, made_up, table
from score_files import write_scores

from csebench.plan import targets
from csebench.report.cells import grid_view

ROWS = {"whitening": ("whitening", ["66.00"]), "untrained": ("bert", ["66.00"])}
PAPER = {"name": "tiny", "tables": {"1": table(ROWS, [{"label": "Avg.", "task": "Avg."}])}}
VALUES = {1: 0.64, 2: 0.66, 3: 0.68}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The cells of a row of whitening and of one that is not fitted, whose runs are scored by seed."""
    made_up(tmp_path, monkeypatch, PAPER, name="paper", differs="")
    for spec in targets.page("table1", "paper", "tiny").runs().values():
        write_scores(spec, "sts", "paper", [("Avg.", "spearman", VALUES.get(spec.seed, 0.66))])
    yield [cells[0] for cells in grid_view("tiny", "table1", "paper").rows]
    clear()


def test_it_has_a_run_a_mean_and_a_spread_for_its_seeds(rows):
    """A row without randomness has one run, and an interval of a printed unit, 0.01."""
    fitted, untrained = rows
    assert [spec.seed for spec in fitted.plan.specs] == [spec.corpus.subset_seed for spec in fitted.plan.specs]
    assert [spec.seed for spec in fitted.plan.specs] == [1, 2, 3] and len(untrained.plan.specs) == 1
    assert [cell.text for cell in rows] == ["66.00 ± 2.00", "66.00"]
    widths = [cell.verdict.high - cell.verdict.low for cell in rows]
    assert widths[0] > 4 and widths[1] == pytest.approx(0.02)
