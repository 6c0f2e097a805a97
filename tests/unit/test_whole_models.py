"""A damaged model is refused: when it is loaded, by `csebench evaluate`, and in the folder of a finished run."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from csebench.base.errors import BadInput
from csebench.base.runs import is_done
from csebench.cli import main
from csebench.model.encoder import Encoder
from csebench.plan.declarations import EncoderRef, Evaluation
from csebench.score.evaluate import evaluate_run
from csebench.score.models import open_model
from csebench.train.run import load_encoder

# ---------------------------------------------------------------- damage


def edit_config(folder, **changed):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changed))


def edit_tokenizer(folder, **changed):
    config = json.loads((folder / "tokenizer_config.json").read_text()) | changed
    (folder / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def edit_weights(folder, change):
    weights = {name: weight.clone() for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(change(weights), folder / "model.safetensors", {"format": "pt"})


def delete_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


def delete_layer(folder):
    edit_weights(folder, lambda weights: {name: w for name, w in weights.items() if "layer.1." not in name})


def delete_last_layer_from_config(folder):
    edit_config(folder, num_hidden_layers=2)


def add_layer_to_config(folder):
    edit_config(folder, num_hidden_layers=4)


def change_model_type(folder):
    edit_config(folder, model_type="roberta")


def change_hidden_size(folder):
    edit_config(folder, hidden_size=16)


def truncate_weights(folder):
    os.truncate(folder / "model.safetensors", 5000)


def add_lora(folder):
    edit_weights(folder, lambda weights: weights | {"encoder.layer.0.attention.self.query.lora_A": torch.ones(2, 32)})


def delete_padding_token(folder):
    edit_tokenizer(folder, tokenizer_class="PreTrainedTokenizerFast", pad_token=None)


def name_a_model_as_tokenizer(folder):
    edit_tokenizer(folder, tokenizer_class="BertModel")


def name_a_tokenizer_that_lacks_its_files(folder):
    """RobertaTokenizer, which would make every sentence empty."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    delete_tokenizer(folder)
    edit_tokenizer(folder, tokenizer_class="RobertaTokenizer")


def add_a_token(folder):
    edit_tokenizer(folder, pad_token="[PADDING]")


DAMAGE = {
    delete_tokenizer: "no tokenizer in",
    delete_layer: r"encoder\.layer\.1\..* not in its file of weights",
    delete_last_layer_from_config: r"encoder\.layer\.2\..* not used, but in its file",
    add_layer_to_config: r"encoder\.layer\.3\..* not in its file",
    change_model_type: "model_type is roberta, but architectures has BertModel",
    change_hidden_size: "of another shape",
    truncate_weights: "cannot be read",
    add_lora: "lora_A: not used",
    delete_padding_token: "no padding token; name one",
    name_a_model_as_tokenizer: "BertModel is no tokenizer",
    name_a_tokenizer_that_lacks_its_files: r"has \d tokens, but config.json has vocab_size 600",
    add_a_token: "has 601 tokens, but config.json has vocab_size 600",
}
damages = pytest.mark.parametrize(("damage", "message"), DAMAGE.items(), ids=[damage.__name__ for damage in DAMAGE])


@pytest.fixture
def encoder(tiny_bert, tmp_path):
    """A copy of an encoder of 3 layers, for a test to damage."""
    return shutil.copytree(tiny_bert, tmp_path / "encoder")


def load(folder, revision="local", **more):
    return Encoder.load(EncoderRef(name=str(folder), revision=revision), **more)


# ---------------------------------------------------------------- any encoder


@damages
def test_a_damaged_encoder_is_not_loaded(damage, message, encoder):
    damage(encoder)
    with pytest.raises(BadInput, match=message):
        load(encoder)


@damages
def test_a_damaged_encoder_is_not_scored(damage, message, encoder, smoke_data, tmp_path, capsys):
    """Exit code 2, one message, nothing written."""
    damage(encoder)
    out = tmp_path / "out" / "scores.json"
    options = ["--model", encoder, "--pooler", "avg", "--data", smoke_data, "--out", out]
    assert main(["evaluate", *map(str, options)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.parent.exists()


def test_heads_that_an_encoder_does_not_use_are_no_damage(encoder):
    heads = {"cls.predictions.bias": torch.ones(3), "mlp.dense.weight": torch.ones(2, 2)}
    heads |= {"embeddings.position_ids": torch.arange(128)[None]}  # saved by transformers before 4.31
    edit_weights(encoder, lambda weights: weights | heads)
    assert load(encoder).num_layers == 3


def test_a_pooler_is_new_only_where_it_is_trained(encoder):
    edit_weights(encoder, lambda weights: {name: w for name, w in weights.items() if "pooler" not in name})
    with pytest.raises(BadInput, match=r"pooler\.dense\.\w+ and 1 more: not in its file"):
        load(encoder, with_pooler=True)
    assert load(encoder, with_pooler=True, new_pooler=True).model.pooler is not None
    assert load(encoder).model.pooler is None


def test_prompts_and_masked_lm_need_a_mask_token(encoder):
    edit_tokenizer(encoder, tokenizer_class="PreTrainedTokenizerFast", mask_token=None)
    with pytest.raises(BadInput, match="no mask token"):
        load(encoder).tokenize(["a"], pooler="mask")
    with pytest.raises(BadInput, match="no mask token"):
        load(encoder).masked_lm()


def test_training_needs_a_tokenizer_that_can_be_exported(encoder, make_spec):
    vocabulary = json.loads((encoder / "tokenizer.json").read_text())["model"]["vocab"]
    (encoder / "vocab.txt").write_text("\n".join(vocabulary))
    edit_tokenizer(encoder, tokenizer_class="BertTokenizerLegacy")
    delete_tokenizer(encoder)
    assert load(encoder).ids(["a"])
    with pytest.raises(BadInput, match="BertTokenizerLegacy is written in Python"):
        load_encoder(make_spec("simcse", encoder=encoder))


def replace_dense(folder):
    Dense(16, 8).save(str(folder / "2_Dense"))


def empty_modules(folder):
    (folder / "modules.json").write_text("[]")


@pytest.mark.parametrize(
    "damage", [delete_tokenizer, delete_layer, truncate_weights, delete_padding_token, replace_dense, empty_modules]
)
def test_a_damaged_folder_of_sentence_transformers_is_not_opened(damage, encoder, tmp_path):
    folder, model = tmp_path / "st", SentenceTransformer(str(encoder))
    model.append(Dense(32, 8))
    model.save(str(folder))
    assert open_model(str(folder))
    damage(folder)
    with pytest.raises(BadInput, match=r"no tokenizer|not in its file|cannot be read|padding token"):
        open_model(str(folder))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        save({"a": np.zeros(3)}),
        save({"shift": np.zeros(3), "matrix": np.eye(3)}),
        save({"shift": np.full(32, np.nan), "matrix": np.eye(32)}),
    ],
    ids=["empty", "text", "other keys", "another size", "not finite"],
)
def test_a_damaged_fitted_map_is_not_opened(content, encoder):
    (encoder / "transform.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match="fitted map"):
        open_model(str(encoder), "avg")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"control": "simcse"}, "control: simcse is none"),
        ({"control": "random", "params": {"dimension": 3}}, "'dimensions'"),
        ({"control": "random", "seed": -1}, "seed: "),
    ],
    ids=str,
)
def test_a_control_that_cannot_be_is_not_opened(facts, message, tmp_path):
    (tmp_path / "csebench.json").write_text(json.dumps(facts))
    with pytest.raises(BadInput, match=message):
        open_model(str(tmp_path))


# ---------------------------------------------------------------- finished runs


def reset_dropout(folder):
    edit_config(folder, hidden_dropout_prob=0.3)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run, for a test to damage."""
    return shutil.copytree(finished("simcse"), tmp_path / "run")


@pytest.mark.parametrize("damage", [*DAMAGE, reset_dropout])
def test_a_damaged_run_is_not_done(damage, run, make_spec):
    spec = make_spec("simcse")
    assert is_done(run, spec)
    damage(run / "model")
    with pytest.raises(BadInput, match=f"files differ from those that training wrote.* Delete {run}"):
        is_done(run, spec)


def test_a_damaged_run_is_not_scored_even_where_its_scores_are_kept(run, smoke_data):
    evaluate_run(run, ["sts"], smoke_data, Evaluation())
    reset_dropout(run / "model")
    with pytest.raises(BadInput, match="files differ from those that training wrote"):
        evaluate_run(run, ["sts"], smoke_data, Evaluation())


def test_a_damaged_run_is_no_start_of_another(run):
    reset_dropout(run / "model")
    with pytest.raises(BadInput, match="files differ from those that training wrote"):
        load(run / "model", revision="simcse-0123456789")


def test_a_card_that_is_edited_is_no_damage(run, make_spec):
    (run / "model" / "README.md").write_text("# ours\n")
    assert is_done(run, make_spec("simcse"))
