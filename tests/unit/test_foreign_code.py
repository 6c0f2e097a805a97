"""A model runs no code: what asks for it is refused by file and entry, without a question, and a pickle is not run."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.plan.declarations import EncoderRef
from csebench.score import models

EVIL = """
from pathlib import Path
Path({ran!r}).touch()
from torch.nn import Tanh
from transformers import BertConfig as Config, BertModel as Model, BertTokenizer as Tokenizer
from sentence_transformers.sentence_transformer.modules import Transformer
"""
TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"


def save_sentence_transformer(encoder, folder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    model = SentenceTransformer(str(encoder), trust_remote_code=False)
    model.append(Dense(32, 8, activation_function=torch.nn.ReLU()))
    model.save(str(folder))
    return folder


def load(folder, revision="local", **more):
    return Encoder.load(EncoderRef(name=str(folder), revision=revision), **more)


def open_model(folder):
    return models.open_model(str(folder))


def edit(path, **changed):
    """Change keys of a JSON file; None deletes one."""
    content = (json.loads(path.read_text()) if path.exists() else {}) | changed
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


@pytest.fixture(scope="module")
def sentence_transformer(tiny_bert, tmp_path_factory):
    return save_sentence_transformer(tiny_bert, tmp_path_factory.mktemp("models") / "whole")


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """The file that code of a model would make. Whoever asks whether to run it hears yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    yield (ran := tmp_path / "ran")
    assert not ran.exists()


@pytest.fixture
def encoder(tiny_bert, tmp_path, ran):
    return with_code(tiny_bert, tmp_path / "encoder", ran)


@pytest.fixture
def model(sentence_transformer, tmp_path, ran):
    return with_code(sentence_transformer, tmp_path / "model", ran)


def with_code(source, folder, ran):
    shutil.copytree(source, folder)
    (folder / "evil.py").write_text(EVIL.format(ran=str(ran)))
    return folder


class Call:
    """Unpickled, it makes a file."""

    def __init__(self, ran):
        self.ran = ran

    def __reduce__(self):
        return open, (str(self.ran), "w")


def pickle_weights(folder, ran):
    torch.save(load_file(folder / "model.safetensors") | {"x": Call(ran)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


AUTO_MAP = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
OF_ENCODERS = [
    ("config.json", AUTO_MAP),
    ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "other/repository--evil.Config"}}),
    ("config.json", {"auto_map": {"AutoModelForMaskedLM": "evil.Model"}}),
    ("config.json", {"attn_implementation": "other/repository"}),
    ("config.json", {"use_kernels": True}),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}),
    ("tokenizer_config.json", {"tokenizer_class": "Evil", "auto_map": ["evil.Tokenizer", "evil.Tokenizer"]}),
]
OF_SENTENCE_TRANSFORMERS = [
    ("config.json", AUTO_MAP),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}),
    ("2_Dense/config.json", {"activation_function": "evil.Tanh"}),
    ("2_Dense/config.json", {"activation_function": "torchevil.Tanh"}),
    ("sentence_bert_config.json", {"model_args": {"attn_implementation": "other/repository"}}),
    ("sentence_bert_config.json", {"tokenizer_name_or_path": "other/repository"}),
    ("adapter_config.json", {"base_model_name_or_path": "other/repository"}),
    ("w/wordembedding_config.json", {"tokenizer_class": "evil.Tokenizer"}),
    ("router_config.json", {"types": {"query": "evil.Transformer"}}),
]
ASKS = r": \w+: ('evil\.|'torchevil|'other/repository|True)"


ASKING = [("encoder", *asks) for asks in OF_ENCODERS] + [("model", *asks) for asks in OF_SENTENCE_TRANSFORMERS]
OPENERS = {"encoder": load, "model": open_model}


@pytest.mark.parametrize(("kind", "file", "content"), ASKING, ids=str)
def test_what_asks_for_code_is_refused_by_file_and_entry(kind, file, content, request):
    folder = request.getfixturevalue(kind)
    (folder / file).parent.mkdir(exist_ok=True)
    edit(folder / file, **content)
    with pytest.raises(BadInput, match=file + ASKS):
        OPENERS[kind](folder)


def test_a_translator_that_asks_for_code_is_refused(encoder):
    from csebench.data.translate import Translator

    edit(encoder / "config.json", **AUTO_MAP)
    with pytest.raises(BadInput, match=f"config.json{ASKS}"):
        Translator(f"{encoder}@local", 1, 1, 1)


@pytest.mark.parametrize("name", ["evil.Transformer", "other/repository--evil.Transformer", "csebench.model.prompt.P"])
def test_a_module_that_is_not_of_sentence_transformers_is_refused(name, model):
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["type"] = name
    (model / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadInput, match=f"modules.json: type: '{name}'"):
        open_model(model)


def test_code_that_nothing_asks_for_is_no_reason_to_refuse(encoder, model):
    for folder in (encoder, model):
        edit(folder / "tokenizer_config.json", chat_template="{{ cycler.__init__.__globals__.os.system('touch x') }}")
    assert load(encoder).num_layers == 3
    assert open_model(model).embed(["a b"]).shape == (1, 8)


@pytest.mark.parametrize("kind", OPENERS)
def test_weights_that_call_functions_are_refused(kind, ran, request):
    folder = request.getfixturevalue(kind)
    pickle_weights(folder, ran)
    with pytest.raises(BadInput, match=r"\.bin file of weights .* could run code"):
        OPENERS[kind](folder)


@pytest.mark.parametrize("nested", [False, True])
def test_a_configuration_cannot_switch_off_the_check_of_weights(nested, model, ran, tiny_bert):
    transformer = model
    if nested:
        transformer = shutil.copytree(tiny_bert, model / "query")
        edit(model / "router_config.json", types={"query": TRANSFORMER}, structure={"query": ["query"]}, parameters={})
        modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.router.Router"}]
        (model / "modules.json").write_text(json.dumps(modules))
    pickle_weights(transformer, ran)
    edit(transformer / "config.json", dtype=None)  # so that transformers looks for it in the weights
    edit(transformer / "sentence_bert_config.json", model_args={"weights_only": False})
    with pytest.raises(BadInput, match=r"sentence_bert_config\.json: weights_only: False"):
        open_model(model)


def test_a_script_of_a_data_set_is_not_run(tmp_path, ran, monkeypatch):
    import mteb

    (folder := tmp_path / "evil").mkdir()
    (folder / "evil.py").write_text(EVIL.format(ran=str(ran)))
    task = mteb.get_task("Banking77Classification", languages=["eng"], eval_splits=["test"])
    monkeypatch.setattr(task.metadata, "dataset", {"path": str(folder), "revision": "0" * 40})
    with pytest.raises(RuntimeError, match=r"scripts are no longer supported.*evil\.py"):
        task.load_data()
