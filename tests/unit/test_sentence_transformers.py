"""A folder of sentence-transformers is scored as what it says it is: with its own prompts, routes,
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
NO_PROMPTS = {"sentence": "", "query": "", "document": ""}
VERY_LONG = ["a sentence that goes on " * 100]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Folders of tiny encoders by `model_type`."""
    folder = tmp_path_factory.mktemp("encoders")
    return {name: save_tiny(name, folder / name) for name in ("bert", "roberta", "mpnet", "fnet")}


def save(folder, *parts):
    """Save these modules as a folder of sentence-transformers, and return the folder."""
    model = SentenceTransformer(modules=list(parts), device="cpu", trust_remote_code=False)
    model.save(str(folder))
    return folder


def mean_of(encoder):
    """Make the modules that average an encoder's last hidden states."""
    return [modules.Transformer(str(encoder)), modules.Pooling(16)]


def library(folder):
    """Open a folder with sentence-transformers itself."""
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=False)


@pytest.fixture
def plain(encoders, tmp_path):
    return save(tmp_path / "plain", *mean_of(encoders["bert"]))


# ---------------------------------------------------------------- kinds


def parameter_types(embedder):
    """Return the data types of a model's parameters."""
    return {parameter.dtype for parameter in embedder.model.parameters()}


def test_a_sparse_encoder_and_a_cross_encoder_are_refused(encoders, tmp_path):
    masked_lm = save_tiny("bert", tmp_path / "mlm", AutoModelForMaskedLM)
    sparse = SparseEncoder(str(masked_lm), device="cpu", trust_remote_code=False)
    sparse.save(str(tmp_path / "SparseEncoder"))
    cross = CrossEncoder(str(encoders["bert"]), device="cpu", trust_remote_code=False)
    cross.save(str(tmp_path / "CrossEncoder"))

    for kind in ("SparseEncoder", "CrossEncoder"):
        folder = str(tmp_path / kind)
        message = f"{KIND}: model_type: '{kind}' gives .* --pooler takes its encoder alone"
        with pytest.raises(BadInput, match=message):
            open_model(folder)
        assert open_model(folder, "avg").embed(TEXTS).shape == (3, 16)


@pytest.mark.parametrize(
    "kind", ["MultiVectorEncoder", "ColBERT", "sentencetransformer", "", None, 3, ["x"]]
)
def test_every_other_kind_is_refused(kind, plain):
    content = json.loads((plain / KIND).read_text())
    content["model_type"] = kind
    (plain / KIND).write_text(json.dumps(content))

    with pytest.raises(BadInput, match=f"{KIND}: model_type"):
        open_model(str(plain))


@pytest.mark.parametrize("older", ["no file", "no key"])
def test_an_older_folder_states_no_kind(older, plain):
    expected = library(plain).encode(TEXTS)
    if older == "no file":
        (plain / KIND).unlink()
    else:
        edit(plain / KIND, model_type=None)

    vectors = open_model(str(plain)).embed(TEXTS)

    assert np.array_equal(vectors, expected)


def test_modules_without_a_pooling_are_refused(plain):
    listed = json.loads((plain / "modules.json").read_text())
    (plain / "modules.json").write_text(json.dumps(listed[:1]))
    with pytest.raises(BadInput, match=r"modules\.json: no module pools"):
        open_model(str(plain))


def test_a_model_whose_vectors_depend_on_other_sentences_is_refused(encoders, tmp_path):
    folder = save(tmp_path / "fnet", *mean_of(encoders["fnet"]))

    with pytest.raises(BadInput, match="padding changes its vectors"):
        open_model(str(folder))

    vectors = open_model(str(folder), "avg").embed(TEXTS)
    assert vectors.shape == (3, 16)


# ---------------------------------------------------------------- prompts and routes


@pytest.mark.parametrize(
    ("stated", "prompts"),
    [
        ({"prompts": {"query": "text : "}}, NO_PROMPTS | {"query": "text : "}),
        ({"prompts": {"document": "here : "}}, NO_PROMPTS | {"document": "here : "}),
        (
            {"prompts": {"other": "we read "}, "default_prompt_name": "other"},
            NO_PROMPTS | {"sentence": "we read "},
        ),
        ({"prompts": {"unused": "we read "}}, {}),
        ({}, {}),
    ],
)
def test_prompts_are_those_of_the_library_by_role(stated, prompts, plain):
    edit(plain / KIND, **stated)
    ours = open_model(str(plain))
    theirs = library(plain)

    assert ours.prompts == prompts
    assert ours.has_roles == bool(prompts)
    assert np.array_equal(ours.embed(TEXTS), theirs.encode(TEXTS))
    assert np.array_equal(ours.embed_queries(TEXTS), theirs.encode_query(TEXTS))
    documents = theirs.encode_document(TEXTS)
    assert np.array_equal(ours.embed_documents(TEXTS), documents)
    shards = list(ours.stream(TEXTS, "corpus"))
    assert np.array_equal(np.concatenate(shards), documents)


def test_prompts_stand_in_the_identity_of_models_that_have_some(plain, smoke_data, tmp_path):
    without = evaluate_model(str(plain), ["geometry"], smoke_data, tmp_path / "1.json")
    edit(plain / KIND, prompts={"query": "text : "})
    with_prompt = evaluate_model(str(plain), ["geometry"], smoke_data, tmp_path / "2.json")

    assert "prompts" not in without["evaluations"][0]
    assert with_prompt["evaluations"][0]["prompts"] == NO_PROMPTS | {"query": "text : "}


def test_a_router_embeds_queries_and_documents_by_their_modules(encoders, tmp_path):
    routes = {"query": mean_of(encoders["bert"]), "document": mean_of(encoders["roberta"])}
    folder = save(tmp_path / "router", Router(routes, default_route="document"))
    ours = open_model(str(folder))
    theirs = library(folder)

    queries = ours.embed_queries(TEXTS)
    documents = ours.embed_documents(TEXTS)

    assert np.array_equal(ours.embed(TEXTS), theirs.encode(TEXTS))
    assert np.array_equal(queries, theirs.encode_query(TEXTS))
    assert np.array_equal(documents, theirs.encode_document(TEXTS))
    assert not np.array_equal(queries, documents)
    assert ours.embed_documents(VERY_LONG).shape == (1, 16)
    assert ours.embed_queries(VERY_LONG).shape == (1, 16)


def test_a_router_without_a_route_is_refused_with_the_reason(encoders, tmp_path):
    query = mean_of(encoders["bert"])
    document = mean_of(encoders["bert"])

    strict = Router({"query": query, "document": document}, allow_empty_key=False)
    folder = save(tmp_path / "strict", strict)
    with pytest.raises(BadInput, match=r"router_config\.json: .* neither query nor document"):
        open_model(str(folder))

    folder = save(tmp_path / "named", Router({"left": query, "right": document}))
    message = "its Router cannot embed these texts: No route found for task type 'query'"
    with pytest.raises(BadInput, match=message):
        open_model(str(folder)).embed_queries(TEXTS)


class Roles(Embedder):
    """An embedder that gives a text another vector as a query than as a document."""

    has_roles = True

    def vectors(self, sentences):
        raise AssertionError("a search asks for queries or documents")

    def query_vectors(self, queries):
        return np.stack([self.vector("query", text) for text in queries])

    def document_vectors(self, documents):
        return np.stack([self.vector("document", text) for text in documents])

    def vector(self, role, text):
        digest = hashlib.sha256(f"{role} {text}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
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
    batches = [{"text": TEXTS}]

    queries = encoder.encode(batches, prompt_type=PromptType.query)
    documents = encoder.encode(batches, prompt_type=PromptType.document)

    assert np.array_equal(queries, model.query_vectors(TEXTS))
    assert np.array_equal(documents, model.document_vectors(TEXTS))


def test_an_object_with_both_calls_is_asked_for_queries_and_documents(smoke_data):
    class Model:
        def encode(self, sentences):
            raise AssertionError("a search asks for queries or documents")

        def encode_query(self, queries):
            return Roles().query_vectors(queries)

        def encode_document(self, documents):
            return Roles().document_vectors(documents)

    frame = csebench.evaluate(Model(), "stsb_retrieval", data=smoke_data)

    rows, _ = run_evaluator("stsb_retrieval", Roles(), smoke_data)
    assert frame["value"].tolist() == [row.value for row in rows]


def test_a_text_is_remembered_by_its_role():
    model = Roles()
    queries = model.embed_queries(["a", "b", "a"])
    documents = model.embed_documents(["a"])
    assert model.embedded == 3
    assert not np.array_equal(queries[0], documents[0])

    again = model.embed_queries(["a"])
    assert np.array_equal(again, queries[:1])
    assert model.embedded == 3


# ---------------------------------------------------------------- length


@pytest.mark.parametrize(("stated", "read"), [(None, 40), (41, 40), (600, 40), (10**9, 40), (8, 8)])
@pytest.mark.parametrize("model_type", ["bert", "roberta", "mpnet"])
def test_no_more_tokens_are_read_than_there_are_positions(
    stated, read, model_type, encoders, tmp_path
):
    folder = save(tmp_path / "model", *mean_of(encoders[model_type]))
    edit(folder / STATED, max_seq_length=stated)

    model = open_model(str(folder))

    assert model.model.max_seq_length == read
    assert model.embed(VERY_LONG).shape == (1, 16)
    shards = list(model.stream(TEXTS, "corpus"))
    assert len(shards) == 1


def test_a_probe_that_fails_fails_no_search(tmp_path):
    class Short(Embedder):
        def vectors(self, sentences):
            if any(len(sentence) > 100 for sentence in sentences):
                raise IndexError("index out of range in self")
            return np.eye(len(sentences), 2, dtype=np.float32)

    model = Short()
    model.cache_dir = tmp_path

    assert model.fingerprint() is None
    shapes = [shard.shape for shard in model.stream(["a", "b"], "corpus")]
    assert shapes == [(2, 2)]
    assert not list(tmp_path.iterdir())  # another model could not be told from it


def test_max_length_of_a_model_without_a_transformer_is_refused(tmp_path):
    static = modules.StaticEmbedding(make_tokenizer(BERT), embedding_dim=8)
    folder = str(save(tmp_path / "static", static))

    assert open_model(folder).embed(["", *TEXTS]).shape == (4, 8)
    with pytest.raises(BadInput, match=r"--max-length 8: .* has no transformer"):
        open_model(folder, evaluation=Evaluation(max_length=8))
    with pytest.raises(BadInput, match="--pooler avg: the folder has no encoder"):
        open_model(folder, "avg")


# ---------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_folder_in_half_precision_is_computed_in_single(dtype, encoders, tmp_path):
    parts = [*mean_of(encoders["bert"]), modules.Dense(16, 4)]
    half = SentenceTransformer(modules=parts, device="cpu").to(dtype)
    folder = str(tmp_path / "half")
    half.save(folder)

    opened = open_model(folder)
    vectors = opened.embed(TEXTS)
    assert parameter_types(opened) == {torch.float32}
    np.testing.assert_allclose(vectors, half.float().encode(TEXTS), atol=1e-6)

    in_bf16 = open_model(folder, evaluation=Evaluation(precision="bf16")).embed(TEXTS)
    assert in_bf16.dtype == np.float32
    assert not np.array_equal(in_bf16, vectors)


def test_weights_in_single_precision_are_not_rounded_where_the_configuration_says_half(plain):
    expected = library(plain).encode(TEXTS)
    edit(plain / "config.json", dtype="float16")

    vectors = open_model(str(plain)).embed(TEXTS)

    assert np.array_equal(vectors, expected)


def test_static_embeddings_in_half_precision(tmp_path):
    static = modules.StaticEmbedding(make_tokenizer(BERT), embedding_dim=8)
    half = SentenceTransformer(modules=[static], device="cpu").half()
    half.save(str(tmp_path / "static"))

    opened = open_model(str(tmp_path / "static"))

    assert opened.embed(TEXTS).dtype == np.float32
    assert parameter_types(opened) == {torch.float32}


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
