"""A damaged model is refused when it is loaded, by `csebench evaluate`, and in the folder of a
finished run."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Dense
from test_foreign_code import edit, load, open_model, save_sentence_transformer

from csebench.base.errors import BadInput
from csebench.base.files import sha256, with_digest, write_json
from csebench.base.models import model_sha256
from csebench.base.runs import is_done
from csebench.plan.catalog.registry import typed_params
from csebench.plan.schema.declarations import Evaluation
from csebench.score import models
from csebench.score.evaluate import evaluate_run
from csebench.train.run import load_encoder

CONFIG = "config.json"
TOKENIZER = "tokenizer_config.json"
FAST = "PreTrainedTokenizerFast"


def edit_weights(folder, left_out="nothing", **added):
    """Leave out the weights with a text in their names, and add others of given sizes."""
    path = folder / "model.safetensors"
    kept = {}
    for name, weight in load_file(path).items():
        if left_out not in name:
            kept[name] = weight.clone()
    for name, size in added.items():
        kept[name] = torch.ones(size)
    save_file(kept, path, {"format": "pt"})


def use_vocabulary_file(folder, tokenizer_class):
    """Replace the file of a fast tokenizer by the vocabulary that a slow one reads."""
    tokenizer = folder / "tokenizer.json"
    vocabulary = json.loads(tokenizer.read_text())["model"]["vocab"]
    tokenizer.unlink()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    edit(folder / TOKENIZER, tokenizer_class=tokenizer_class)


FEW = r"the tokenizer has \d tokens, but .* 600"
DAMAGE = {
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), FEW),
    "vocab.json without merges.txt": (
        lambda f: (f / "tokenizer.json").rename(f / "vocab.json"),
        FEW,
    ),
    "a layer less": (
        lambda f: edit_weights(f, "layer.1."),
        r"encoder\.layer\.1\..* not in its file of weights",
    ),
    "another size": (lambda f: edit(f / CONFIG, hidden_size=16), "of another shape"),
    "cut off": (lambda f: os.truncate(f / "model.safetensors", 5000), "cannot be read"),
    "LoRA": (lambda f: edit_weights(f, lora_A=2), "lora_A: not used"),
    "a part of the encoder": (
        lambda f: edit_weights(f, **{"bert.encoder.more": 2}),
        r"encoder\.more: not used",
    ),
    "no padding token": (
        lambda f: edit(f / TOKENIZER, tokenizer_class=FAST, pad_token=None),
        "padding token",
    ),
    "no tokenizer class": (
        lambda f: edit(f / TOKENIZER, tokenizer_class="BertModel"),
        "BertModel is no tokenizer",
    ),
    "an empty tokenizer": (lambda f: use_vocabulary_file(f, "RobertaTokenizer"), FEW),
    "a token more": (
        lambda f: edit(f / TOKENIZER, pad_token="[PADDING]"),
        "has 601 tokens, but .* 600",
    ),
}


@pytest.fixture
def encoder(tiny_bert, tmp_path):
    """A copy of an encoder of 3 layers, for a test to damage."""
    return shutil.copytree(tiny_bert, tmp_path / "encoder")


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_encoder_is_not_loaded(damage, message, encoder):
    damage(encoder)
    with pytest.raises(BadInput, match=message):
        load(encoder)


def test_heads_that_an_encoder_does_not_use_are_no_damage(encoder):
    heads = {"cls.predictions.bias": 3, "mlp.dense.weight": (2, 2), "bert.mlp.bias": 2}
    # saved by transformers before 4.31
    edit_weights(encoder, **heads, **{"embeddings.position_ids": (1, 128)})
    assert load(encoder).num_layers == 3


def test_a_pooler_is_new_only_where_it_is_trained(encoder):
    edit_weights(encoder, "pooler")
    with pytest.raises(BadInput, match=r"pooler\.dense\.\w+ and 1 more: not in its file"):
        load(encoder, with_pooler=True)
    assert load(encoder, with_pooler=True, new_pooler=True).model.pooler is not None
    assert load(encoder).model.pooler is None


@pytest.mark.parametrize(
    "use",
    [lambda encoder: encoder.tokenize(["a"], pooler="mask"), lambda encoder: encoder.masked_lm()],
    ids=["prompt", "masked LM"],
)
def test_prompts_and_masked_lm_need_a_mask_token(use, encoder):
    edit(encoder / TOKENIZER, tokenizer_class=FAST, mask_token=None)
    with pytest.raises(BadInput, match="no mask token"):
        use(load(encoder))


def start_encoder(spec):
    """Load the encoder that a run starts from."""
    return load_encoder(spec, typed_params(spec.method, spec.params))


def test_training_needs_a_tokenizer_that_can_be_exported(encoder, make_spec):
    use_vocabulary_file(encoder, "BertTokenizerLegacy")
    assert load(encoder).ids(["a"])
    with pytest.raises(BadInput, match="BertTokenizerLegacy is written in Python"):
        start_encoder(make_spec("simcse", encoder=encoder))


def test_an_encoder_is_pinned_by_the_sum_of_its_folder(encoder):
    folder_sum = model_sha256(encoder)
    assert load(encoder, revision=folder_sum).num_layers == 3
    assert load(encoder, revision="local").num_layers == 3

    with pytest.raises(BadInput, match="another encoder was expected"):
        load(encoder, revision="0" * 64)
    weights_sum = sha256(encoder / "model.safetensors")
    message = rf"model\.safetensors alone.* instead: {folder_sum}"
    with pytest.raises(BadInput, match=message):
        load(encoder, revision=weights_sum)


@pytest.mark.parametrize("revision", ["main", "local", "", "0" * 16, "A" * 64])
def test_a_run_starts_from_an_encoder_whose_revision_says_which_files_are_read(
    revision, encoder, make_spec
):
    spec = make_spec("simcse", encoder=encoder)
    assert start_encoder(spec) is not None

    ref = spec.encoder.model_copy(update={"revision": revision})
    message = f"the revision '{revision}' does not say which files are read"
    with pytest.raises(BadInput, match=message):
        start_encoder(spec.model_copy(update={"encoder": ref}))


def test_weights_in_shards_are_those_of_the_folder(encoder, tmp_path):
    """The revision would say nothing of shards elsewhere."""
    weights = load_file(encoder / "model.safetensors")

    def write_index(shard):
        index = {"metadata": {}, "weight_map": dict.fromkeys(weights, shard)}
        (encoder / "model.safetensors.index.json").write_text(json.dumps(index))

    write_index("all.safetensors")
    (encoder / "model.safetensors").rename(encoder / "all.safetensors")
    assert load(encoder, revision=model_sha256(encoder)).num_layers == 3

    write_index("../all.safetensors")
    (encoder / "all.safetensors").rename(tmp_path / "all.safetensors")
    with pytest.raises(BadInput, match=r"index\.json: names '\.\./all\.safetensors'"):
        load(encoder, revision=model_sha256(encoder))


@pytest.fixture(scope="module")
def sentence_transformer(tiny_bert, tmp_path_factory):
    return save_sentence_transformer(tiny_bert, tmp_path_factory.mktemp("models") / "whole")


OF_SENTENCE_TRANSFORMERS = {
    "no tokenizer": DAMAGE["no tokenizer"],
    "a layer less": DAMAGE["a layer less"],
    "no padding token": DAMAGE["no padding token"],
    "another size of a module": (lambda f: Dense(16, 8).save(str(f / "2_Dense")), "cannot be read"),
}


@pytest.mark.parametrize(
    ("damage", "message"), OF_SENTENCE_TRANSFORMERS.values(), ids=OF_SENTENCE_TRANSFORMERS
)
def test_a_damaged_folder_of_sentence_transformers_is_not_opened(
    damage, message, sentence_transformer, tmp_path
):
    folder = shutil.copytree(sentence_transformer, tmp_path / "st")
    damage(folder)
    with pytest.raises(BadInput, match=message):
        open_model(folder)


BAD_FACTS = {
    b'{"control": "simcse"}': "control: simcse is not a control",
    b'{"control": "random", "params": {"dimension": 3}}': "'dimensions'",
}


@pytest.mark.parametrize(("content", "message"), BAD_FACTS.items())
def test_a_model_with_facts_of_a_control_that_cannot_be_is_not_opened(content, message, encoder):
    (encoder / "csebench.json").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        models.open_model(str(encoder), "avg")


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run, for a test to damage."""
    return shutil.copytree(finished("simcse"), tmp_path / "run")


DIFFERENCES = {
    "edited": lambda model: edit(model / CONFIG, hidden_dropout_prob=0.3),
    "missing": lambda model: (model / "tokenizer.json").unlink(),
    "added": lambda model: (model / "more.json").touch(),
}


@pytest.mark.parametrize("damage", DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_run_whose_files_differ_is_not_used(damage, run, make_spec, smoke_data):
    """It is not done. It is not scored, even if its scores are kept. No other run starts from
    it."""
    uses = [
        lambda: is_done(run),
        lambda: evaluate_run(run, ["stsb_dev"], smoke_data, Evaluation()),
        lambda: load(run / "model", revision="simcse-0123456789"),
    ]
    for use in uses:
        assert use()

    damage(run / "model")

    message = f"files differ from those that training wrote.* Delete {run}"
    for use in uses:
        with pytest.raises(BadInput, match=message):
            use()


def test_what_is_not_of_the_model_is_no_damage(run, make_spec):
    """Such are an edited card, hidden files, and a report from before models had sums."""
    model = run / "model"
    (model / "README.md").write_text("# ours\n")
    (model / ".gitignore").touch()
    assert is_done(run)

    report = json.loads((model / "training.json").read_text())
    report["model_sha256"] = None
    write_json(model / "training.json", with_digest(report))
    edit(model / CONFIG, hidden_dropout_prob=0.3)
    assert is_done(run)
