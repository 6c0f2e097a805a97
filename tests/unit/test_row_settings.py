"""Settings in which two rows differ although their comparison is about something else: every part
of two specs is compared."""

import pytest

from csebench.plan.grids import plan_grid
from csebench.plan.schema.spec import Spec
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.compare import answers
from csebench.report.numbers.row_settings import shared_parts

START = ("start encoder", "one that condenser trained", "bert-mini-wiki")
# another value of each part of a spec
CHANGES = {
    "method_version": 99,
    "params": {"clip": 0.5},
    "components": {"ami": {"version": 99, "params": {"weight": 0.5}}},
    "encoder": {"name": "other/encoder", "revision": "1"},
    "corpus": {"name": "other.txt", "sha256": "0" * 64, "size": 3, "subset_seed": 1},
    "dev_sha256": "0" * 64,
    "seeds": {"order": 3},
    "precision": "fp32",
    "threads": 7,
    "trainer_version": 99,
    "code": {"methods/micse": "1" * 64},
    "if_diverged": "untrained",
}
NOT_COMPARED = {"method", "seed"}  # what a comparison is about, and what its pairs share


@pytest.fixture(scope="module")
def spec():
    """Take the first run of miCSE in its Table 1."""
    cells = plan_grid("micse", "table1", "mini")
    return next(row[0].specs[0] for row in cells if row[0].specs and row[0].row.label == "miCSE")


def test_every_part_of_a_spec_has_a_change_here():
    assert CHANGES.keys() | NOT_COMPARED == set(Spec.model_fields)


@pytest.mark.parametrize("part", CHANGES)
def test_every_part_of_two_specs_is_compared(part, spec):
    if part == "code":
        spec = spec.model_copy(update={"code": {"methods/micse": "0" * 64}})
    content = spec.model_dump()
    change = CHANGES[part]
    if part in ("params", "components"):
        change = content[part] | change
    content[part] = change
    other = Spec.model_validate(content)
    assert shared_parts(spec, other) != shared_parts(other, spec)


def test_equal_specs_have_equal_parts(spec):
    assert shared_parts(spec, spec) == shared_parts(spec, spec.with_seed(spec.seed + 1))


def differing(paper, name, row, against):
    """Read the settings in which two rows of a table of the study are not matched."""
    for answer in answers(grid_view(paper, name, "mini")):
        for comparison in answer.comparisons:
            if (comparison.row, comparison.against) == (row, against):
                return comparison.differs
    raise AssertionError("the comparison is missing")


@pytest.mark.parametrize(
    ("name", "row", "against"),
    [
        ("table2", "InfoCSE-BERTbase", "SimCSE-BERTbase"),
        ("table8", "λ = 1e-5", "λ = 0"),
        ("table12", "w/ MLM (InfoCSE)", "SimCSE"),
    ],
)
def test_the_encoder_that_a_run_starts_from_is_compared(name, row, against):
    assert START in differing("infocse", name, row, against)


def test_the_projector_is_compared_as_training_has_it():
    """SimCSE's head belongs to another pooler than the one that the study's search chose."""
    projector = ("projector", "batchnorm", "none")
    assert projector in differing("infocse", "table12", "w/ RTD (DiffCSE)", "SimCSE")


def test_what_a_row_states_is_left_out_with_what_follows_from_it():
    """Without pre-training, InfoCSE starts from another encoder: the comparison is about it."""
    assert not differing("infocse", "table4", "InfoCSE", "w/o pre-training")
