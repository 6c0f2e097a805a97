"""Fixtures: tiny encoders made on the spot, the project's smoke data, and specs of runs of a few
steps."""

import gc
import os
import shutil

import pytest
from tiny_runs import TINY, TINY_PARAMS, TINY_SUBSTITUTES

from csebench.base import caches
from csebench.base.project import ROOT, VARIABLE

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: pytest's workers share the cores


@pytest.fixture(autouse=True)
def no_joined_folder_left():
    """Undo what a command of a test did to this process: folders that joined, another current
    folder."""
    joined, here = os.environ.get(VARIABLE), os.getcwd()
    yield
    if (os.environ.get(VARIABLE), os.getcwd()) == (joined, here):
        return
    os.environ.pop(VARIABLE, None)
    if joined is not None:
        os.environ[VARIABLE] = joined
    os.chdir(here)
    caches.clear()


@pytest.fixture(scope="session")
def smoke_data():
    return ROOT / "data" / "smoke"


@pytest.fixture
def data(smoke_data, tmp_path):
    """A copy of the smoke data to damage."""
    return shutil.copytree(smoke_data, tmp_path / "data")


@pytest.fixture(scope="session")
def corpus(smoke_data):
    return smoke_data / "wiki" / "smoke.txt"


@pytest.fixture(scope="session")
def sentences(corpus):
    return corpus.read_text(encoding="utf-8").splitlines()


SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
SHAPE["initializer_range"] = 0.1  # larger than BERT's, so that attention is not uniform


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory, sentences):
    """Folder of a BERT of 3 layers with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    from encoders.pretrain import train_tokenizer

    folder = tmp_path_factory.mktemp("encoders") / "tiny-bert"
    tokenizer = train_tokenizer(sentences, 600)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **SHAPE)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory, sentences):
    """Folder of a RoBERTa of 3 layers with random weights and a byte-level BPE."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("encoders") / "tiny-roberta"
    folder.mkdir()
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(sentences, vocab_size=600, special_tokens=special, show_progress=False)
    bpe.save_model(str(folder))
    tokenizer = RobertaTokenizerFast.from_pretrained(folder)
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "type_vocab_size": 1}
    positions = 130  # 128 tokens: RoBERTa's positions start at 2
    config = RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=positions, **ids, **SHAPE
    )
    torch.manual_seed(0)
    RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def make_spec(tiny_bert):
    """Specs of tiny runs: `make_spec("simcse", components={"ami": {}}, params={"steps": 2},
    seed=1)`."""
    from csebench.base.files import sha256
    from csebench.base.models import model_sha256
    from csebench.plan.catalog import files as catalog
    from csebench.plan.recipe import Conditions
    from csebench.plan.recipe import make_spec as build
    from csebench.plan.schema.declarations import Dataset, EncoderRef, RunSettings
    from csebench.plan.schema.paper import Recipe

    def make(
        method,
        variant=None,
        components=None,
        params=None,
        seed=1,
        size=None,
        encoder=tiny_bert,
        file=None,
    ):
        params = {**TINY, **TINY_PARAMS.get(method, {}), **(params or {})}
        recipe = Recipe(method=method, variant=variant, params=params, components=components or {})
        corpora = {"sentences": catalog.dataset("smoke"), "triplets": catalog.dataset("nli-smoke")}
        if file is not None:
            corpora = dict.fromkeys(corpora, Dataset(path=file.name, sha256=sha256(file)))
        dev = catalog.dataset("stsb-dev-smoke").sha256
        given = Conditions(corpora, dev, RunSettings(substitutes=TINY_SUBSTITUTES))
        ref = EncoderRef(name=str(encoder), revision=model_sha256(encoder))
        whole = 400 if file is None else file.read_bytes().count(b"\n")
        return build(recipe, ref, size or whole, seed, given, "tests")

    return make


def corpus_of(spec):
    """The file of the smoke data that a run trains on."""
    from csebench.plan import recipe
    from csebench.plan.catalog import files as catalog

    return recipe.corpus_path(spec, catalog.scale("smoke"))


def train_run(spec, out, corpus, data_root, positives=None, chunk_size=None):
    """Train a run in the folder `out`, as `csebench train` does, but for its choice of a GPU."""
    from csebench.base.runs import work_on
    from csebench.study.work import make_model_once
    from csebench.train.inputs import read_corpus_of, read_inputs

    inputs = read_inputs(spec, read_corpus_of(spec, corpus), data_root, positives)
    with work_on(out, spec, spec.run_id) as progress:
        make_model_once(spec, lambda: inputs, progress, chunk_size)


@pytest.fixture
def train(smoke_data, monkeypatch):
    """Trains a spec into a folder and returns its report; `train(spec, out, file=…)` for another
    corpus."""
    import json

    def run(spec, out, file=..., checkpoint_seconds=60, **settings):
        monkeypatch.setattr("csebench.train.loop.CHECKPOINT_SECONDS", checkpoint_seconds)
        train_run(spec, out, corpus_of(spec) if file is ... else file, smoke_data, **settings)
        return json.loads((out / "train.json").read_text())

    return run


@pytest.fixture
def kill_at(monkeypatch):
    """`kill_at(step)`: training dies when it assembles the batch of this step; None: it does
    not."""
    from csebench.train import trainer

    batch_at = trainer.batch_at

    def arm(step):
        def killed(current, *args):
            if current == step:
                raise KeyboardInterrupt
            return batch_at(current, *args)

        monkeypatch.setattr(trainer, "batch_at", killed)

    return arm


@pytest.fixture(scope="session")
def finished(tmp_path_factory, make_spec, smoke_data):
    """Folder of a finished tiny run, made once for all tests that only read it: `finished("ct",
    components=…)`."""
    kept = {}

    def run(*args, **kwargs):
        spec = make_spec(*args, **kwargs)
        if spec.run_id not in kept:
            kept[spec.run_id] = tmp_path_factory.mktemp("runs") / spec.run_id
            train_run(spec, kept[spec.run_id], corpus_of(spec), smoke_data)
        return kept[spec.run_id]

    yield run
    for folder in kept.values():
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_modifyitems(items):
    """End-to-end runs first, so that none of them is left for one worker at the end: of two
    workers, each begins with one half of the tests. Those of the workflow share what one of them
    makes."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    of_workflow = [item for item in slow if "workflow" in item.path.parts]
    middle = max(0, len(items) // 2 - len(of_workflow))
    others = [item for item in slow if item not in of_workflow]
    items[:] = [*of_workflow, *quick[:middle], *others, *quick[middle:]]
    gc.freeze()  # all that was imported, so that no collection of garbage goes through it again


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files anew; read the diff"
    )


@pytest.fixture
def golden(request):
    """Compares a text with a golden file, or writes it with --update-golden."""

    def check(path, text):
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
