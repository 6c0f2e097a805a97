"""The page of papers and released code side by side."""

import pytest
from pydantic import ValidationError

from csebench.plan import catalog, grids
from csebench.plan.declarations import Declaration
from csebench.plan.registry import declaration

LITERAL = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}
METHODS_SHOWN = sorted(catalog.variants().tables)
SHIPPED = ("esimcse", "infocse", "informin_cl", "micse", "mirror_bert", "msse", "msse_sup", "pcl", "rankcse", "simcse")


def rows(method, scale="paper"):
    return grids.plan_grid(catalog.VARIANTS, method, scale)


@pytest.mark.parametrize("method", METHODS_SHOWN)
def test_a_table_has_the_paper_and_its_code_and_no_runs_twice(method):
    shown, variants = rows(method), declaration(method).variants.values()
    ids = [tuple(spec.run_id for spec in row[0].specs) for row in shown]
    assert len(set(ids)) == len(ids) == sum(variant.reading is not None for variant in variants)
    assert method not in SHIPPED or {"as printed"} < {variant.reading for variant in variants}


def test_a_reading_is_one_of_three():
    with pytest.raises(ValidationError, match="'as printed', 'as released' or 'released, repaired'"):
        Declaration.model_validate({**LITERAL, "variants": {"code": ("released", "another loss", {})}})


def test_a_variant_like_another_has_its_parameters_and_its_own():
    code, released = (declaration("msse").variant_params[name] for name in ("code", "released"))
    assert released == {**code, "released_pairing": True}
    assert declaration("msse_sup").variant_params["code"] == code


@pytest.mark.parametrize("like", ["code", "msse:no", "self", ["self"]])
def test_a_variant_is_like_one_that_there_is(like):
    variants = {"self": {"like": like}, "released": {"like": "self"}}
    with pytest.raises(ValidationError, match=r"`like: .*` must name a variant that states its own parameters"):
        Declaration.model_validate({**LITERAL, "variants": variants}, context=declaration)
