"""A row of a table can be a published model as it is, with its own pooling."""

import json

import numpy as np
import pytest
from made_up import SCALE, clear, made_up
from sentence_transformers import SentenceTransformer
from word_vectors import write_word_vectors

from csebench import cli
from csebench.base.errors import BadInput
from csebench.base.models import model_sha256
from csebench.base.project import ROOT
from csebench.data import preflight
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.files import SIDE_BY_SIDE
from csebench.plan.grids import find_grid, plan_grid
from csebench.report.numbers.cells import grid_view
from csebench.score.models import open_model

GLOVE = "DataikuNLP/average_word_embeddings_glove.6B.300d"
TEXTS = ["A cat, of all animals, sat.", "the of a", "words that nobody knows: qzx"]
ENCODER = ROOT / "encoders" / "bert-mini-wiki"
PAPER = {
    "name": "own",
    "tables": {
        "1": {
            "title": "A table",
            "columns": [{"label": "Avg.", "task": "Avg."}],
            "rows": [
                {
                    "label": "Words",
                    "run": {"method": "released", "encoder": "words"},
                    "source": "measured",
                    "values": ["50.00"],
                }
            ],
        }
    },
}


@pytest.fixture
def words(tmp_path, sentences):
    """A published model in a folder."""
    return write_word_vectors(tmp_path / "words", sentences)


@pytest.fixture
def run_id(words, tmp_path, monkeypatch):
    """The only run of a project whose paper has this model as a row."""
    encoder = {"name": str(words), "revision": model_sha256(words)}
    encoders = {"bert-base": encoder, "words": encoder}
    made_up(tmp_path, monkeypatch, PAPER, encoders=encoders, keep="model")
    ((cell,),) = plan_grid("own", "table1", SCALE)
    (spec,) = cell.specs
    yield spec.run_id
    monkeypatch.undo()
    clear()


def glove_cells(scale):
    """Plan the cells of GloVe in miCSE's Table 1."""
    row = find_grid("micse", "table1").row("GloVe (avg.)")
    return plan_grid("micse", "table1", scale)[row]


def test_glove_is_one_run_for_all_seeds_that_names_the_published_model():
    specs = {}
    for cell in glove_cells("paper"):
        specs |= {spec.run_id: spec for spec in cell.specs}
    (spec,) = specs.values()
    assert spec.encoder == catalog.scale("paper").encoders["glove"]
    assert spec.encoder.name == GLOVE
    assert spec.params == {}
    assert spec.corpus is None


def test_a_scale_without_the_model_says_so():
    assert {cell.missing for cell in glove_cells("mini")} == {"no glove at scale mini"}


def test_the_model_is_a_need_of_its_page():
    needs = preflight.needs(targets.parse_target("micse/table1", "paper"))
    assert GLOVE in {need.name for need in needs if need.kind == "encoder"}


def test_a_released_model_is_no_row_of_the_table_of_all_methods():
    methods = [row.run.method for row in find_grid(SIDE_BY_SIDE, SIDE_BY_SIDE).rows]
    assert "bert" in methods
    assert "released" not in methods


def test_a_released_model_is_scored_as_a_row_and_none_of_its_files_is_copied(words, run_id):
    assert cli.main(["work", run_id, "--scale", SCALE]) == 0
    assert cli.main(["publish", run_id, "sts", "--scale", SCALE]) == 0

    model = catalog.RUNS / run_id / "model"
    names = sorted(path.name for path in model.iterdir())
    assert names == ["README.md", "csebench.json", "training.json"]
    library = SentenceTransformer(str(words), device="cpu")
    assert np.array_equal(open_model(str(model)).embed(TEXTS), library.encode(TEXTS))
    (shown,) = grid_view("own", "table1", SCALE).cells
    assert shown.is_deterministic
    assert shown.is_comparable


def folder_of_run(folder, encoder, revision):
    """Write the folder of a run that is a released model, and return its name."""
    folder.mkdir()
    released = {"name": str(encoder), "revision": revision}
    (folder / "csebench.json").write_text(json.dumps({"released": released}))
    return str(folder)


def test_a_model_without_a_pooling_of_its_own_is_refused(tmp_path):
    run = folder_of_run(tmp_path / "run", ENCODER, model_sha256(ENCODER))
    with pytest.raises(BadInput, match=r"states no pooling.* method bert with a pooler"):
        open_model(run)


def test_a_model_that_has_changed_is_refused(words, tmp_path):
    run = folder_of_run(tmp_path / "run", words, model_sha256(words))
    open_model(run)
    (words / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(BadInput, match="another encoder was expected"):
        open_model(run)


def test_a_revision_that_moves_is_refused(words, tmp_path):
    run = folder_of_run(tmp_path / "run", words, "main")
    with pytest.raises(BadInput, match=r"released: the revision 'main' does not say which files"):
        open_model(run)


def test_another_pooling_than_its_own_is_refused(words, tmp_path):
    run = folder_of_run(tmp_path / "run", words, model_sha256(words))
    with pytest.raises(BadInput, match=r"--pooler avg: .* its own pooling; leave --pooler out"):
        open_model(run, "avg")
