"""A sentence-transformers folder is scored as what it says it is, with its own prompts, routes,
length and weights."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer import modules
from test_foreign_code import edit
from tiny_encoders import BERT, TEXTS, make_tokenizer, save_tiny
from transformers import AutoModelForMaskedLM

import csebench
from csebench.base.errors import BadInput
from csebench.model.embedder import Embedder
from csebench.plan.schema.declarations import Evaluation
from csebench.score.evaluate import evaluate_model, run_evaluator
from csebench.score.models import open_model
from evaluators import mteb, stsb_retrieval

KIND = "config_sentence_transformers.json"
STATED = "sentence_bert_config.json"
VERY_LONG = ["a sentence that goes on " * 100]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Folders of tiny encoders by `model_type`."""
    folder = tmp_path_factory.mktemp("encoders")
    return {name: save_tiny(name, folder / name) for name in ("bert", "roberta", "mpnet", "fnet")}


def save(folder, *parts):
    SentenceTransformer(modules=list(parts), device="cpu", trust_remote_code=False).save(
        str(folder)
    )
    return folder


def mean_of(encoder):
    return [modules.Transformer(str(encoder)), modules.Pooling(16)]


def library(folder):
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=False)


@pytest.fixture
def plain(encoders, tmp_path):
    return save(tmp_path / "plain", *mean_of(encoders["bert"]))


# ---------------------------------------------------------------- kinds


def test_a_sparse_encoder_and_a_cross_encoder_are_refused(encoders, tmp_path):
    masked_lm = save_tiny("bert", tmp_path / "mlm", AutoModelForMaskedLM)
    SparseEncoder(str(masked_lm), device="cpu", trust_remote_code=False).save(
        str(tmp_path / "SparseEncoder")
    )
    CrossEncoder(str(encoders["bert"]), device="cpu", trust_remote_code=False).save(
        str(tmp_path / "CrossEncoder")
    )
    for kind in ("SparseEncoder", "CrossEncoder"):
        with pytest.raises(
            BadInput,
            match=f"{KIND}: model_type: '{kind}' gives .* --pooler takes its encoder alone",
        ):
            open_model(str(tmp_path / kind))
        assert open_model(str(tmp_path / kind), "avg").embed(TEXTS).shape == (3, 16)


@pytest.mark.parametrize(
    "kind", ["MultiVectorEncoder", "ColBERT", "sentencetransformer", "", None, 3, ["x"]]
)
def test_every_other_kind_is_refused(kind, plain):
    content = json.loads((plain / KIND).read_text())
    (plain / KIND).write_text(json.dumps(content | {"model_type": kind}))
    with pytest.raises(BadInput, match=f"{KIND}: model_type"):
        open_model(str(plain))


@pytest.mark.parametrize("older", ["no file", "no key"])
def test_an_older_folder_states_no_kind(older, plain):
    wanted = library(plain).encode(TEXTS)
    if older == "no file":
        (plain / KIND).unlink()
    else:
        edit(plain / KIND, model_type=None)
    assert np.array_equal(open_model(str(plain)).embed(TEXTS), wanted)


def test_modules_without_a_pooling_are_refused(plain):
    listed = json.loads((plain / "modules.json").read_text())
    (plain / "modules.json").write_text(json.dumps(listed[:1]))
    with pytest.raises(BadInput, match=r"modules\.json: no module pools"):
        open_model(str(plain))


def test_a_model_whose_vectors_depend_on_other_sentences_is_refused(encoders, tmp_path):
    folder = save(tmp_path / "fnet", *mean_of(encoders["fnet"]))
    with pytest.raises(BadInput, match="padding changes its vectors"):
        open_model(str(folder))
    assert open_model(str(folder), "avg").embed(TEXTS).shape == (3, 16)


# ---------------------------------------------------------------- prompts and routes


@pytest.mark.parametrize(
    ("stated", "prompts"),
    [
        ({"prompts": {"query": "text : "}}, {"sentence": "", "query": "text : ", "document": ""}),
        (
            {"prompts": {"document": "here : "}},
            {"sentence": "", "query": "", "document": "here : "},
        ),
        (
            {"prompts": {"other": "we read "}, "default_prompt_name": "other"},
            {"sentence": "we read ", "query": "", "document": ""},
        ),
        ({"prompts": {"unused": "we read "}}, {}),
        ({}, {}),
    ],
)
def test_prompts_are_those_of_the_library_by_role(stated, prompts, plain):
    edit(plain / KIND, **stated)
    model, own = open_model(str(plain)), library(plain)
    assert model.prompts == prompts and model.has_roles == bool(prompts)
    assert np.array_equal(model.embed(TEXTS), own.encode(TEXTS))
    assert np.array_equal(model.embed_queries(TEXTS), own.encode_query(TEXTS))
    assert np.array_equal(model.embed_documents(TEXTS), own.encode_document(TEXTS))
    assert np.array_equal(
        np.concatenate(list(model.stream(TEXTS, "corpus"))), own.encode_document(TEXTS)
    )


def test_prompts_stand_in_the_identity_of_models_that_have_some(plain, smoke_data, tmp_path):
    without = evaluate_model(str(plain), ["geometry"], smoke_data, tmp_path / "1.json")[
        "evaluations"
    ][0]
    edit(plain / KIND, prompts={"query": "text : "})
    stated = evaluate_model(str(plain), ["geometry"], smoke_data, tmp_path / "2.json")[
        "evaluations"
    ][0]
    assert "prompts" not in without
    assert stated["prompts"] == {"sentence": "", "query": "text : ", "document": ""}


def test_a_router_embeds_queries_and_documents_by_their_modules(encoders, tmp_path):
    routes = {"query": mean_of(encoders["bert"]), "document": mean_of(encoders["roberta"])}
    folder = save(tmp_path / "router", Router(routes, default_route="document"))
    model, own = open_model(str(folder)), library(folder)
    assert np.array_equal(model.embed(TEXTS), own.encode(TEXTS))
    assert np.array_equal(model.embed_queries(TEXTS), own.encode_query(TEXTS))
    assert np.array_equal(model.embed_documents(TEXTS), own.encode_document(TEXTS))
    assert not np.array_equal(model.embed_queries(TEXTS), model.embed_documents(TEXTS))
    assert model.embed_documents(VERY_LONG).shape == model.embed_queries(VERY_LONG).shape == (1, 16)


def test_a_router_without_a_route_is_refused_with_the_reason(encoders, tmp_path):
    routes = {"query": mean_of(encoders["bert"]), "document": mean_of(encoders["bert"])}
    folder = save(tmp_path / "strict", Router(routes, allow_empty_key=False))
    with pytest.raises(BadInput, match=r"router_config\.json: .* neither query nor document"):
        open_model(str(folder))
    folder = save(
        tmp_path / "named", Router({"left": routes["query"], "right": routes["document"]})
    )
    with pytest.raises(
        BadInput, match="its Router cannot embed these texts: No route found for task type 'query'"
    ):
        open_model(str(folder)).embed_queries(TEXTS)


class Roles(Embedder):
    """Gives every text another vector as a query than as a document."""

    has_roles = True

    def vectors(self, sentences):
        raise AssertionError("a search asks for queries or documents")

    def query_vectors(self, queries):
        return np.stack([self.vector("query", text) for text in queries])

    def document_vectors(self, documents):
        return np.stack([self.vector("document", text) for text in documents])

    def vector(self, role, text):
        seed = int.from_bytes(hashlib.sha256(f"{role} {text}".encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=8).astype(np.float32)


@pytest.mark.parametrize("evaluator", ["stsb_retrieval", "beir:smoke", "neighbours"])
def test_every_search_asks_for_queries_and_documents(evaluator, smoke_data):
    rows, _ = run_evaluator(evaluator, Roles(), smoke_data)
    assert rows


def test_mteb_asks_for_queries_and_documents():
    pytest.importorskip("mteb")
    from mteb.types import PromptType

    model = Roles()
    encoder = mteb.wrap(model, "QuoraRetrieval", None)
    for role, vectors in (
        (PromptType.query, model.query_vectors),
        (PromptType.document, model.document_vectors),
    ):
        assert np.array_equal(encoder.encode([{"text": TEXTS}], prompt_type=role), vectors(TEXTS))


def test_an_object_with_both_calls_is_asked_for_queries_and_documents(smoke_data):
    class Model:
        def encode(self, sentences):
            raise AssertionError("a search asks for queries or documents")

        def encode_query(self, queries):
            return Roles().query_vectors(queries)

        def encode_document(self, documents):
            return Roles().document_vectors(documents)

    ours = csebench.evaluate(Model(), "stsb_retrieval", data=smoke_data)
    rows, _ = run_evaluator("stsb_retrieval", Roles(), smoke_data)
    assert ours["value"].tolist() == [row.value for row in rows]


def test_a_text_is_remembered_by_its_role():
    model = Roles()
    first = model.embed_queries(["a", "b", "a"]), model.embed_documents(["a"])
    assert model.embedded == 3 and not np.array_equal(first[0][0], first[1][0])
    assert np.array_equal(model.embed_queries(["a"]), first[0][:1]) and model.embedded == 3


# ---------------------------------------------------------------- length


@pytest.mark.parametrize("stated", [None, 41, 600, 10**9, 8])
@pytest.mark.parametrize("model_type", ["bert", "roberta", "mpnet"])
def test_no_more_tokens_are_read_than_there_are_positions(stated, model_type, encoders, tmp_path):
    folder = save(tmp_path / "model", *mean_of(encoders[model_type]))
    edit(folder / STATED, max_seq_length=stated)
    model = open_model(str(folder))
    assert model.model.max_seq_length == min(stated or 40, 40)
    assert model.embed(VERY_LONG).shape == (1, 16)
    assert len(list(model.stream(TEXTS, "corpus"))) == 1


def test_a_probe_that_fails_fails_no_search(tmp_path):
    class Short(Embedder):
        def vectors(self, sentences):
            if any(len(sentence) > 100 for sentence in sentences):
                raise IndexError("index out of range in self")
            return np.eye(len(sentences), 2, dtype=np.float32)

    model = Short()
    model.cache_dir = tmp_path
    assert model.fingerprint() is None
    assert [shard.shape for shard in model.stream(["a", "b"], "corpus")] == [(2, 2)]
    assert not list(tmp_path.iterdir())  # another model could not be told from it


def test_max_length_of_a_model_without_a_transformer_is_refused(tmp_path):
    folder = save(
        tmp_path / "static", modules.StaticEmbedding(make_tokenizer(BERT), embedding_dim=8)
    )
    assert open_model(str(folder)).embed(["", *TEXTS]).shape == (4, 8)
    with pytest.raises(BadInput, match=r"--max-length 8: .* has no transformer"):
        open_model(str(folder), evaluation=Evaluation(max_length=8))
    with pytest.raises(BadInput, match="--pooler avg: the folder has no encoder"):
        open_model(str(folder), "avg")


# ---------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_folder_in_half_precision_is_computed_in_single(dtype, encoders, tmp_path):
    model = SentenceTransformer(
        modules=[*mean_of(encoders["bert"]), modules.Dense(16, 4)], device="cpu"
    ).to(dtype)
    model.save(str(tmp_path / "half"))
    opened = open_model(str(tmp_path / "half"))
    assert {parameter.dtype for parameter in opened.model.parameters()} == {torch.float32}
    np.testing.assert_allclose(opened.embed(TEXTS), model.float().encode(TEXTS), atol=1e-6)
    in_bf16 = open_model(str(tmp_path / "half"), evaluation=Evaluation(precision="bf16")).embed(
        TEXTS
    )
    assert in_bf16.dtype == np.float32 and not np.array_equal(in_bf16, opened.embed(TEXTS))


def test_weights_in_single_precision_are_not_rounded_where_the_configuration_says_half(plain):
    wanted = library(plain).encode(TEXTS)
    edit(plain / "config.json", dtype="float16")
    assert np.array_equal(open_model(str(plain)).embed(TEXTS), wanted)


def test_static_embeddings_in_half_precision(tmp_path):
    static = modules.StaticEmbedding(make_tokenizer(BERT), embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").half().save(str(tmp_path / "static"))
    opened = open_model(str(tmp_path / "static"))
    assert opened.embed(TEXTS).dtype == np.float32
    assert {parameter.dtype for parameter in opened.model.parameters()} == {torch.float32}


def test_a_quantised_folder_is_refused(plain, tmp_path):
    folder = shutil.copytree(plain, tmp_path / "quantised")
    edit(folder / "config.json", quantization_config={"quant_method": "fp8"})
    with pytest.raises(BadInput, match=r"config\.json: quantization_config"):
        open_model(str(folder))


def test_queries_of_stsb_are_found_as_before_without_roles(finished, smoke_data):
    """A model without prompts embeds a sentence once."""
    model = open_model(str(finished("random") / "model"))
    stsb_retrieval.evaluate(model, smoke_data, "removed")
    assert model.embedded == len(model.known)
