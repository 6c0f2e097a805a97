"""The page of variants has papers and released code side by side."""

import pytest
from pydantic import ValidationError

from csebench.plan import grids
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import declaration
from csebench.plan.schema.declarations import Declaration

LITERAL = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}


@pytest.mark.parametrize("method", sorted(catalog.variants().tables))
def test_a_table_has_every_reading_of_a_method_and_no_runs_twice(method):
    rows = grids.plan_grid(catalog.VARIANTS, method, "paper")
    run_ids = []
    for cells in rows:
        run_ids.append(tuple(spec.run_id for spec in cells[0].specs))

    variants = declaration(method).variants.values()
    readings = [variant.reading for variant in variants if variant.reading]

    assert len(run_ids) == len(readings)
    assert len(set(run_ids)) == len(run_ids)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (("released", "another loss", {}), "'as printed', 'as released' or 'released, repaired'"),
        ({"like": "msse:no"}, "`like: .*` must name"),
        ({"like": "code"}, "`like: .*` must name"),
        ({"like": ["code"]}, "`like: .*` must name"),
    ],
)
def test_a_variant_has_a_reading_that_there_is_or_is_like_one_that_states_its_own_parameters(
    code, message
):
    content = {**LITERAL, "variants": {"code": code}}
    with pytest.raises(ValidationError, match=message):
        Declaration.model_validate(content, context=declaration)
