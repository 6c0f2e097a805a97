"""The page of papers and released code side by side."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from csebench.base.project import ROOT
from csebench.plan import catalog, grids, targets
from csebench.plan.declarations import Declaration
from csebench.plan.registry import METHODS, declaration, names
from csebench.plan.versions import normalised
from csebench.report import markdown

METHODS_SHOWN = sorted(catalog.variants().tables)


def rows(method, scale="paper"):
    return grids.plan_grid(catalog.VARIANTS, method, scale)


@pytest.mark.parametrize("method", METHODS_SHOWN)
def test_no_two_rows_are_the_same_runs_at_scale_paper(method):
    ids = [tuple(spec.run_id for spec in row[0].specs) for row in rows(method)]
    assert len(set(ids)) == len(ids) > 1


@pytest.mark.parametrize("method", METHODS_SHOWN)
def test_a_table_has_the_paper_and_its_code(method):
    readings = [variant.reading for variant in declaration(method).variants.values()]
    assert "as printed" in readings
    assert {"as released", "released, repaired"} & set(readings)


def test_the_page_states_every_difference():
    text = markdown.render_page(targets.page(catalog.VARIANTS, "smoke"))
    for method in METHODS_SHOWN:
        for variant in declaration(method).variants.values():
            assert not variant.reading or f": {variant.difference}." in text
    for method in set(names(METHODS)) - set(METHODS_SHOWN):
        assert method in markdown.variants_legend()


def test_rows_that_a_scale_makes_equal_are_named():
    """Scale smoke sets the batch and the steps, in which PCL's script differs."""
    text = markdown.render_page(targets.page("pcl", "smoke", catalog.VARIANTS))
    assert "as printed (default) and as released (script): the same runs here" in text


def test_the_released_micse_has_ami_and_no_queue():
    by_label = {row[0].row.label: row[0].specs[0] for row in rows("micse")}
    assert sorted(by_label["as released (released)"].components) == ["ami"]
    assert sorted(by_label["as printed (default)"].components) == ["ami", "moco"]


def test_a_reading_is_one_of_three():
    literal = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}
    with pytest.raises(ValidationError, match="'as printed', 'as released' or 'released, repaired'"):
        Declaration.model_validate({**literal, "variants": {"code": ("released", "another loss", {})}})


def test_the_text_of_a_difference_is_not_locked(tmp_path):
    """The version lock is about code; a sentence for readers may be improved."""
    path = Path(tmp_path) / "methods" / "pcl.py"
    path.parent.mkdir()
    text = (ROOT / "methods" / "pcl.py").read_text()
    path.write_text(text)
    before = normalised(path)
    path.write_text(text.replace("as the README says", "according to the README"))
    assert path.read_text() != text
    assert normalised(path) == before


def test_a_variant_like_another_has_its_parameters_and_its_own():
    code, released = (declaration("msse").variant_params[name] for name in ("code", "released"))
    assert released == {**code, "released_pairing": True}


def test_a_variant_is_like_one_that_there_is():
    with pytest.raises(ValueError, match="`like: code` must name a variant that states its own parameters"):
        Declaration.complete_variants({"released": {"like": "code"}})
