"""Every architecture is evaluated, trained or refused as the table of encoders says, with the
vectors that its own code computes."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from test_foreign_code import edit, load
from tiny_encoders import MODELS, OTHERS, TEXTS, save_tiny
from transformers import AutoModel, AutoModelForTextEncoding, AutoTokenizer, T5EncoderModel

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.model import families
from csebench.model.encoder import SpecialTokens
from csebench.model.export import save_encoder
from csebench.model.families import FAMILIES, family_of
from csebench.plan.catalog.registry import typed_params
from csebench.plan.schema.declarations import POOLERS
from csebench.score.models import open_model
from csebench.train.run import checked_map, load_encoder

TRAINED = [name for name in MODELS if family_of(name).dropout]
LAID_OUT_LIKE_BERT = [name for name in MODELS if family_of(name).bert_layers]
ONLY_EVALUATED = [name for name in MODELS if not family_of(name).dropout]


def own_vectors(folder, texts, loader=AutoModel, **truncation):
    """Return the mean of the last hidden states that transformers gives for each text alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    model = loader.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False).eval()
    rows = []
    for text in texts:
        batch = tokenizer([text], return_tensors="pt", truncation=bool(truncation), **truncation)
        batch.pop("token_type_ids", None)
        with torch.no_grad():
            rows.append(model(**batch).last_hidden_state[0].mean(0).numpy())
    return np.stack(rows)


def library_vectors(folder, texts):
    """Return the vectors that sentence-transformers gives."""
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=False)
    return model.encode(texts)


def test_the_documentation_shows_the_table():
    page = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
    assert families.encoder_table() in page


def test_every_architecture_of_the_table_is_tried_here():
    in_table = set()
    for family in FAMILIES:
        in_table.update(family.model_types)
    assert in_table == set(MODELS)


@pytest.mark.parametrize("model_type", [*MODELS, "fnet", "convbert", "eurobert", "big_bird"])
def test_avg_is_the_mean_of_its_own_hidden_states(model_type, tiny):
    """This also holds next to longer sentences, and if padding changes the vectors of an
    architecture."""
    if family_of(model_type).encoder_only:
        loader = AutoModelForTextEncoding
    else:
        loader = AutoModel
    folder = tiny(model_type)

    vectors = open_model(str(folder), "avg").embed(TEXTS)

    np.testing.assert_allclose(vectors, own_vectors(folder, TEXTS, loader), atol=1e-5)


@pytest.mark.parametrize("model_type", MODELS)
def test_the_poolers_are_those_of_the_table(model_type, tiny):
    folder = str(tiny(model_type))
    for pooler in POOLERS:
        if pooler in family_of(model_type).poolers:
            assert np.isfinite(open_model(folder, pooler).embed(TEXTS)).all()
            continue
        message = rf"\({model_type}\): pooler {pooler}: .* Use another: avg"
        with pytest.raises(BadInput, match=message):
            open_model(folder, pooler)


@pytest.mark.parametrize("model_type", TRAINED)
def test_a_trained_architecture_has_dropout_and_is_exported_with_equal_vectors(
    model_type, tiny, tmp_path
):
    encoder = load(tiny(model_type), dropout=0.3, new_pooler=True)
    encoder.check_trainable("avg", "encoder")
    batch = encoder.tokenize(TEXTS)

    def states_in_training():
        return encoder.train()(batch, "avg").output.last_hidden_state

    assert not torch.allclose(states_in_training(), states_in_training())
    encoder.set_dropout(0.0)
    assert torch.equal(states_in_training(), states_in_training())

    exported = tmp_path / "model"
    save_encoder(exported, encoder.eval(), "avg", None, {})
    vectors = open_model(str(exported), "avg").embed(TEXTS)
    np.testing.assert_allclose(library_vectors(exported, TEXTS), vectors, atol=1e-5)
    np.testing.assert_allclose(own_vectors(exported, TEXTS), vectors, atol=1e-5)


@pytest.mark.parametrize("model_type", TRAINED)
def test_the_embeddings_of_a_row_can_be_scaled(model_type, tiny):
    encoder = load(tiny(model_type), dropout=0.0, new_pooler=True).eval()
    batch = encoder.tokenize(TEXTS)
    factors = torch.ones(len(TEXTS), 1, encoder.embedding_size)

    def states(scale=None):
        return encoder(batch, "avg", scale=scale).output.last_hidden_state

    plain = states()
    assert torch.equal(states(factors), plain)
    factors[0, 0, :2] = 0
    torch.testing.assert_close(states(factors)[1:], plain[1:])
    assert not torch.allclose(states(factors)[0], plain[0])


@pytest.mark.parametrize("model_type", LAID_OUT_LIKE_BERT)
def test_states_and_attention_maps_computed_layer_by_layer_are_its_own(model_type, tiny):
    encoder = load(tiny(model_type), new_pooler=True).eval()
    encoder.attention_layers = {0, 1}
    batch = encoder.tokenize(TEXTS)

    with torch.no_grad():
        ours = encoder(batch)
        own = encoder.model(**batch, output_hidden_states=True, output_attentions=True)

    for ours_of_layer, own_of_layer in zip(
        ours.output.hidden_states, own.hidden_states, strict=True
    ):
        assert torch.equal(ours_of_layer, own_of_layer)
    for ours_of_layer, own_of_layer in zip(ours.attention.values(), own.attentions, strict=True):
        assert torch.equal(ours_of_layer, own_of_layer)


@pytest.mark.parametrize("model_type", LAID_OUT_LIKE_BERT)
def test_the_word_vectors_of_a_row_can_be_changed(model_type, tiny):
    encoder = load(tiny(model_type), dropout=0.0, new_pooler=True).eval()
    batch = encoder.tokenize(TEXTS)

    def states(words=None):
        return encoder(batch, "avg", words=words).output.last_hidden_state

    plain = states()
    words = encoder.word_vectors(batch).detach()
    assert torch.equal(states(words), plain)
    words[0, 1] += torch.arange(float(encoder.embedding_size))
    torch.testing.assert_close(states(words)[1:], plain[1:])
    assert not torch.allclose(states(words)[0], plain[0])


@pytest.mark.parametrize("model_type", ["distilbert", "modernbert"])
def test_a_method_trains_where_dropout_has_other_names(
    model_type, tiny, make_spec, train, tmp_path
):
    encoder = tiny(model_type)
    spec = make_spec("simcse", encoder=encoder, params={"steps": 2})

    report = train(spec, tmp_path)

    assert report["run"] == spec.run_id
    untrained = own_vectors(encoder, TEXTS)
    trained = own_vectors(tmp_path / "model", TEXTS)
    assert not np.allclose(trained, untrained, atol=1e-6)


@pytest.mark.parametrize("model_type", ["xlnet", "gpt2", "t5"])
@pytest.mark.parametrize("method", ["simcse", "bert", "whitening"])
def test_no_run_starts_from_what_is_only_evaluated(method, model_type, tiny, make_spec):
    spec = make_spec(method, encoder=tiny(model_type))
    with pytest.raises(BadInput, match=f"{model_type} is not trained"):
        load_encoder(spec, typed_params(spec.method, spec.params))


@pytest.mark.parametrize("model_type", [*ONLY_EVALUATED, "fnet", "big_bird"])
def test_an_architecture_that_is_not_trained_is_refused_in_one_sentence(model_type, tiny):
    message = rf"^encoder [^\n]*: {model_type} is not trained, only evaluated: [^\n.]*\("
    with pytest.raises(BadInput, match=message):
        load(tiny(model_type), dropout=0.1, new_pooler=True)


@pytest.mark.parametrize("model_type", ["longt5", "pegasus"])
def test_an_architecture_without_hidden_states_of_a_text_is_refused(model_type, tiny):
    message = f"{model_type} gives no hidden state for every token of a text"
    with pytest.raises(BadInput, match=message):
        open_model(str(tiny(model_type)), "avg")


def test_an_encoder_half_alone_is_a_whole_model(tiny, tmp_path):
    half = save_tiny("t5", tmp_path / "half", T5EncoderModel)
    vectors = open_model(str(half), "avg").embed(TEXTS)
    np.testing.assert_allclose(vectors, own_vectors(half, TEXTS, T5EncoderModel), atol=1e-5)


@pytest.mark.parametrize("pooler", ["avg", "last"])
def test_a_text_without_tokens_has_a_vector(pooler, tiny):
    empty, *_ = open_model(str(tiny("gpt2")), pooler).embed(["", *TEXTS])
    assert (empty == 0).all()


@pytest.mark.parametrize(
    ("model_type", "padding_side"), [("gpt2", "right"), ("qwen3", "left"), ("qwen3", "right")]
)
def test_the_last_token_of_a_decoder_is_pooled(model_type, padding_side, tiny):
    """sentence-transformers calls this pooling `lasttoken`, and also pads on the left."""
    folder = str(tiny(model_type))
    transformer = Transformer(folder)
    transformer.tokenizer.pad_token = transformer.tokenizer.convert_ids_to_tokens(0)
    transformer.tokenizer.padding_side = padding_side
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="lasttoken")
    library = SentenceTransformer(modules=[transformer, pooling], device="cpu")

    vectors = open_model(folder, "last").embed(TEXTS)

    np.testing.assert_allclose(vectors, library.encode(TEXTS), atol=1e-5)


def test_a_decoder_is_asked_for_one_word(tiny):
    folder = str(tiny("gpt2"))
    in_template = [f'This sentence : "{text}" means in one word:"' for text in TEXTS]

    vectors = open_model(folder, "last_eol").embed(TEXTS)

    expected = open_model(folder, "last").embed(in_template)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_a_sentence_that_is_too_long_leaves_room_for_its_template(tiny):
    encoder = load(tiny("gpt2"))
    short, long = encoder.ids_in_text(["a dog", "a dog " * 1000], "last_eol")
    ending = encoder.tokenizer(' means in one word:"')["input_ids"]
    assert len(short) < len(long) <= encoder.max_seq_length
    assert short[-len(ending) :] == long[-len(ending) :] == ending


def read_attention_maps(encoder):
    encoder.attention_layers.add(0)
    encoder(encoder.tokenize(TEXTS), "avg")


def read_word_vectors(encoder):
    batch = encoder.tokenize(TEXTS)
    encoder(batch, "avg", words=encoder.word_vectors(batch))


LAYERS_ONE_BY_ONE = {
    "attention maps": read_attention_maps,
    "new layers": lambda encoder: encoder.new_layers(1),
    "the lowest layers": lambda encoder: encoder.copy(1),
    "a prefix": lambda encoder: encoder.add_prefix(3),
    "word vectors": read_word_vectors,
}


@pytest.mark.parametrize("use", LAYERS_ONE_BY_ONE.values(), ids=LAYERS_ONE_BY_ONE)
@pytest.mark.parametrize("model_type", ["distilbert", "modernbert"])
def test_what_needs_single_layers_says_so(use, model_type, tiny):
    encoder = load(tiny(model_type))
    message = "single layers, prefixes and word vectors only in an encoder laid out like BERT"
    with pytest.raises(BadInput, match=message):
        use(encoder)


# ---------------------------------------------------------------- what a folder states


@pytest.mark.parametrize("model_type", ["bert", "roberta", "electra", "ernie"])
def test_a_model_that_is_a_decoder_reads_from_left_to_right(model_type, tmp_path):
    folder = save_tiny(model_type, tmp_path / "model", is_decoder=True)

    vectors = open_model(str(folder), "avg").embed(TEXTS)

    np.testing.assert_allclose(vectors, own_vectors(folder, TEXTS), atol=1e-5)
    with pytest.raises(BadInput, match="reads from left to right"):
        open_model(str(folder), "cls_before_pooler")
    with pytest.raises(BadInput, match="is_decoder is true"):
        load(folder).check_trainable("avg", "encoder")


LONG = [*TEXTS, "a sentence that goes on " * 30]


@pytest.mark.parametrize(
    "stated", [{}, {"model_max_length": 7}, {"model_max_length": 7, "truncation_side": "left"}]
)
@pytest.mark.parametrize("model_type", ["bert", "roberta", "gpt2", "t5"])
def test_length_and_side_of_truncation_are_those_of_the_tokenizer(stated, model_type, tmp_path):
    folder = save_tiny(model_type, tmp_path / "model")
    edit(folder / "tokenizer_config.json", **stated)
    loader = AutoModel
    truncation = {"max_length": stated.get("model_max_length", 40)}
    if model_type == "t5":
        loader = T5EncoderModel
        if not stated:
            truncation = {}  # T5 itself has no limit

    vectors = open_model(str(folder), "avg").embed(LONG)

    expected = own_vectors(folder, LONG, loader, **truncation)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)

    encoder = load(folder)
    lengths = (4, 6, None)
    ids = [encoder.ids(LONG, length) for length in lengths]
    encoder.known_ids = {}  # as in training
    assert [encoder.ids(LONG, length) for length in lengths] == ids


def test_an_export_reads_as_much_as_its_encoder(tmp_path):
    folder = save_tiny("bert", tmp_path / "bert")
    edit(
        folder / "tokenizer_config.json",
        model_max_length=7,
        truncation_side="left",
        padding_side="left",
    )
    exported = tmp_path / "model"

    save_encoder(exported, load(folder), "avg", None, {})

    vectors = open_model(str(folder), "avg").embed(LONG)
    np.testing.assert_allclose(library_vectors(exported, LONG), vectors, atol=1e-5)
    np.testing.assert_allclose(own_vectors(exported, LONG, max_length=7), vectors, atol=1e-5)


@pytest.mark.parametrize("value", [0, -1, 2, "20", 4.5])
def test_a_length_that_leaves_no_room_is_refused(value, tmp_path):
    folder = save_tiny("bert", tmp_path / "model")
    edit(folder / "tokenizer_config.json", model_max_length=value)
    with pytest.raises(BadInput, match=r"tokenizer_config\.json: model_max_length: .* correct it"):
        open_model(str(folder), "avg")


def test_a_tokenizer_without_special_tokens(tmp_path):
    """Every word counts for the mean. There is no first token to read, and nothing to train
    with."""
    folder = save_tiny("bert", tmp_path / "model")
    edit(folder / "tokenizer.json", post_processor=None)
    encoder = load(folder)
    assert encoder.special_tokens == SpecialTokens(0, 0)
    ours = open_model(str(folder), "avg").embed(LONG)
    np.testing.assert_allclose(ours, own_vectors(folder, LONG, max_length=40), atol=1e-5)
    (row,) = encoder.in_template(encoder.ids(["a sentence"]), "mask_bare")
    assert encoder.tokenizer.convert_ids_to_tokens(row)[:2] == ["a", "sentence"]
    for pooler in ("cls", "cls_before_pooler"):
        with pytest.raises(BadInput, match="no special token before a sentence"):
            open_model(str(folder), pooler)
    with pytest.raises(BadInput, match="methods need one on each side"):
        encoder.check_trainable("avg", "encoder")


def test_a_map_is_used_with_the_pooler_that_it_was_fitted_to(tmp_path):
    folder = save_tiny("bert", tmp_path / "model")
    matrix = 2 * torch.eye(16)
    save_file({"shift": torch.zeros(16), "matrix": matrix}, folder / "transform.safetensors")
    with pytest.raises(BadInput, match="does not state"):
        open_model(str(folder), "avg")

    (folder / "csebench.json").write_text(json.dumps({"pooler": "avg_top2"}))
    by_default = open_model(str(folder)).embed(TEXTS)
    by_name = open_model(str(folder), "avg_top2").embed(TEXTS)
    assert np.array_equal(by_default, by_name)
    with pytest.raises(BadInput, match="fitted to vectors of avg_top2"):
        open_model(str(folder), "avg")


@pytest.mark.parametrize("facts", [{}, {"method": "no_such_method"}])
def test_a_map_that_only_its_method_computes_needs_the_method(facts, tmp_path):
    folder = save_tiny("bert", tmp_path / "model")
    save_file({"levels.0": torch.zeros(16)}, folder / "transform.safetensors")
    (folder / "csebench.json").write_text(json.dumps({"pooler": "avg"} | facts))
    with pytest.raises(BadInput, match="this project does not have the method"):
        open_model(str(folder))


class WithoutApply:
    """A method that cannot compute the map that it fitted."""


@pytest.mark.parametrize(
    ("fitted", "reason"),
    [
        (np.zeros(3), "must return"),
        ({"shift": np.zeros(3), "matrix": np.eye(3)}, "names of csebench's own maps"),
        ({"weights": np.eye(3)}, "needs `apply`"),
    ],
)
def test_what_fit_returns_is_a_map_or_refused_by_the_name_of_the_method(fitted, reason):
    with pytest.raises(BadInput, match=f"^mine: fit.*{reason}"):
        checked_map("mine", WithoutApply, fitted)


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_a_checkpoint_of_simcse_is_told_how_to_convert(prefix, tmp_path):
    folder = save_tiny("bert", tmp_path / "model")
    weights = {"mlp.dense.weight": torch.ones(16, 16), "mlp.dense.bias": torch.ones(16)}
    for name, weight in load_file(folder / "model.safetensors").items():
        if "pooler" not in name:
            weights[f"{prefix}{name}"] = weight.clone()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})

    assert open_model(str(folder), "cls_before_pooler").embed(TEXTS).shape == (3, 16)
    with pytest.raises(BadInput, match=r"mlp\.dense.*simcse_to_huggingface\.py"):
        open_model(str(folder), "cls")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_encoder_in_half_precision_is_computed_in_single(dtype, tmp_path):
    folder = save_tiny("distilbert", tmp_path / "model")
    AutoModel.from_pretrained(folder, dtype=dtype).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    assert f"torch.{config['dtype']}" == str(dtype)

    model = open_model(str(folder), "avg")

    assert {parameter.dtype for parameter in model.encoder.model.parameters()} == {torch.float32}
    np.testing.assert_allclose(model.embed(TEXTS), own_vectors(folder, TEXTS), atol=1e-5)


def test_a_quantised_encoder_is_refused(tmp_path):
    folder = save_tiny("bert", tmp_path / "model")
    edit(folder / "config.json", quantization_config={"quant_method": "fp8"})
    with pytest.raises(BadInput, match="quantization_config"):
        open_model(str(folder), "avg")


def test_the_others_are_not_in_the_table():
    for name in OTHERS:
        assert not family_of(name).model_types
