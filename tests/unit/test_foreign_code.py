"""A model runs no code. A file that asks for it is refused by file and entry, without a question,
and no pickle is run."""

import json
import shutil

import datasets
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from csebench.base.errors import BadInput
from csebench.data.translate import Translator
from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import EncoderRef
from csebench.score import models

TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"


def save_sentence_transformer(encoder, folder):
    """Save an encoder with its pooling and a layer above as a folder of sentence-transformers."""
    model = SentenceTransformer(str(encoder), trust_remote_code=False)
    model.append(Dense(32, 8, activation_function=torch.nn.ReLU()))
    model.save(str(folder))
    return folder


def load(folder, revision="local", **more):
    return Encoder.load(EncoderRef(name=str(folder), revision=revision), **more)


def open_model(folder):
    return models.open_model(str(folder))


def edit(path, **changed):
    """Change keys of a JSON file, which is made if it is missing; None deletes one."""
    content = {}
    if path.exists():
        content = json.loads(path.read_text())
    content |= changed
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(kept))


@pytest.fixture(scope="module")
def sentence_transformer(tiny_bert, tmp_path_factory):
    return save_sentence_transformer(tiny_bert, tmp_path_factory.mktemp("models") / "whole")


@pytest.fixture
def copied(tiny_bert, sentence_transformer, tmp_path, monkeypatch):
    """`copied("model")` copies a folder of sentence-transformers, other kinds an encoder. The copy
    has code that would make a file."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # where one is asked whether to run it
    ran = tmp_path / "ran"

    def copy(kind):
        original = sentence_transformer if kind == "model" else tiny_bert
        folder = shutil.copytree(original, tmp_path / kind)
        code = f"from pathlib import Path\nPath({str(ran)!r}).touch()\n"
        (folder / "evil.py").write_text(code)
        return folder

    yield copy
    assert not ran.exists()


def pickle_weights(folder, ran):
    """Replace weights by those that make a file where they are unpickled."""

    class Call:
        def __reduce__(self):
            return open, (str(ran), "w")

    weights = load_file(folder / "model.safetensors")
    torch.save(weights | {"x": Call()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


OPENERS = {
    "encoder": load,
    "model": open_model,
    "translator": lambda folder: Translator(str(folder), 1, 1, 1),
}
AUTO_MAP = {
    "model_type": "evil",
    "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"},
}
ASKING = [
    ("translator", "config.json", AUTO_MAP),
    ("encoder", "config.json", AUTO_MAP),
    (
        "encoder",
        "config.json",
        {"model_type": "evil", "auto_map": {"AutoConfig": "other/repository--evil.Config"}},
    ),
    ("encoder", "config.json", {"attn_implementation": "other/repository"}),
    ("encoder", "config.json", {"use_kernels": True}),
    ("encoder", "tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}),
    ("model", "config.json", AUTO_MAP),
    ("model", "2_Dense/config.json", {"activation_function": "evil.Tanh"}),
    ("model", "2_Dense/config.json", {"activation_function": "torchevil.Tanh"}),
    (
        "model",
        "sentence_bert_config.json",
        {"model_args": {"attn_implementation": "other/repository"}},
    ),
    ("model", "sentence_bert_config.json", {"tokenizer_name_or_path": "other/repository"}),
    ("model", "adapter_config.json", {"base_model_name_or_path": "other/repository"}),
    ("model", "w/wordembedding_config.json", {"tokenizer_class": "evil.Tokenizer"}),
    ("model", "router_config.json", {"types": {"query": "evil.Transformer"}}),
]
ASKS = r": \w+: ('evil\.|'torchevil|'other/repository|True)"


@pytest.mark.parametrize(("kind", "file", "content"), ASKING, ids=str)
def test_what_asks_for_code_is_refused_by_file_and_entry(kind, file, content, copied):
    folder = copied(kind)
    (folder / file).parent.mkdir(exist_ok=True)
    edit(folder / file, **content)
    with pytest.raises(BadInput, match=file + ASKS):
        OPENERS[kind](folder)


@pytest.mark.parametrize(
    "name", ["evil.Transformer", "other/repository--evil.Transformer", "csebench.model.prompt.P"]
)
def test_a_module_that_is_not_of_sentence_transformers_is_refused(name, copied):
    file = copied("model") / "modules.json"
    modules = json.loads(file.read_text())
    modules[1]["type"] = name
    file.write_text(json.dumps(modules))
    with pytest.raises(BadInput, match=f"modules.json: type: '{name}'"):
        open_model(file.parent)


def test_code_that_nothing_asks_for_is_no_reason_to_refuse(copied):
    encoder = copied("encoder")
    model = copied("model")
    template = "{{ cycler.__init__.__globals__.os.system('touch x') }}"
    edit(encoder / "tokenizer_config.json", chat_template=template)
    edit(model / "tokenizer_config.json", chat_template=template)

    assert load(encoder).num_layers == 3
    assert open_model(model).embed(["a b"]).shape == (1, 8)


@pytest.mark.parametrize("kind", ["encoder", "model"])
def test_weights_that_call_functions_are_refused(kind, copied, tmp_path):
    folder = copied(kind)
    pickle_weights(folder, tmp_path / "ran")
    with pytest.raises(BadInput, match=r"\.bin file of weights .* could run code"):
        OPENERS[kind](folder)


ROUTER = "sentence_transformers.base.modules.router.Router"


def put_below_router(encoder, model):
    """Let a model be a router whose only route is an encoder, and return the route's folder."""
    route = shutil.copytree(encoder, model / "query")
    edit(
        model / "router_config.json",
        types={"query": TRANSFORMER},
        structure={"query": ["query"]},
        parameters={},
    )
    modules = [{"idx": 0, "name": "0", "path": "", "type": ROUTER}]
    (model / "modules.json").write_text(json.dumps(modules))
    return route


@pytest.mark.parametrize("nested", [False, True])
def test_a_configuration_cannot_switch_off_the_check_of_weights(
    nested, copied, tmp_path, tiny_bert
):
    model = copied("model")
    transformer = put_below_router(tiny_bert, model) if nested else model
    pickle_weights(transformer, tmp_path / "ran")
    # Without a type in the configuration, transformers looks for it in the weights.
    edit(transformer / "config.json", dtype=None)
    edit(transformer / "sentence_bert_config.json", model_args={"weights_only": False})

    with pytest.raises(BadInput, match=r"sentence_bert_config\.json: weights_only: False"):
        open_model(model)


def test_a_script_of_a_data_set_is_not_run(copied):
    with pytest.raises(RuntimeError, match=r"scripts are no longer supported.*evil\.py"):
        datasets.load_dataset(str(copied("encoder") / "evil.py"))
