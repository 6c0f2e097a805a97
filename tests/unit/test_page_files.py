"""Edits of outputs by hand are noticed, each once."""

import pytest

from csebench.base.files import write_text
from csebench.cli import report
from csebench.plan.catalog import RESULTS
from csebench.plan.page_files import checksum_path, count_edits, note_checksum, write_page
from csebench.score.drawing import write_files


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["table2.md", "mini/micse/table2.md", "partial/index.md", "cells.csv"])
def test_an_edit_is_counted_once(name):
    page = RESULTS / name
    write_page(page, "# A page ±\n")
    assert count_edits(page) == 0
    page.write_text("# Another\n")
    assert [count_edits(page), count_edits(page)] == [1, 1]
    write_page(page, "# A page ±\n")
    assert count_edits(page) == 1  # as when it was made
    page.write_text("# Another\n")
    assert count_edits(page) == 2


def test_an_edit_of_a_figure_is_counted_in_the_sum_of_its_files():
    paths = write_files(RESULTS / "micse" / "figure1", {".svg": b"<svg/>", ".csv": b"seed,value\n"})
    assert count_edits(*paths) == 0
    paths[1].write_text("seed,value\n1,99.99\n")
    assert count_edits(*paths) == 1


@pytest.mark.parametrize("edit", ["changed", "added", "deleted"])
def test_an_edit_within_a_folder_is_counted(edit):
    site = RESULTS / "html"
    write_text(site / "figures" / "one.svg", "<svg/>")
    note_checksum(site)
    assert count_edits(site) == 0
    if edit == "deleted":
        (site / "figures" / "one.svg").unlink()
    else:
        write_text(site / "figures" / f"{'one' if edit == 'changed' else 'two'}.svg", "<svg>99.99</svg>")
    assert [count_edits(site), count_edits(site)] == [1, 1]


def test_a_page_that_was_not_written_here_is_left_alone():
    """As those of the repository in a fresh clone; and one that is not there yet."""
    page = RESULTS / "mini" / "table2.md"
    assert count_edits(page) == 0
    page.parent.mkdir(parents=True)
    page.write_text("# A page\n")
    assert count_edits(page) == 0


@pytest.mark.parametrize("content", ["", "one two", "\udcff", "a b c"])
def test_a_damaged_checksum_counts_nothing(content):
    page = RESULTS / "table2.md"
    write_page(page, "# A page\n")
    checksum_path(page).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert count_edits(page) == 0


def test_rendering_leaves_a_checksum_below_results_only(tmp_path):
    for out in ("results/evidence.md", "elsewhere/evidence.md"):
        report.show_or_write("text", tmp_path / out)
    assert [path.name for path in tmp_path.rglob("*.sha256")] == ["evidence.md.sha256"]
