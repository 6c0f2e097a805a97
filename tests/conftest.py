"""Fixtures that many folders of tests use: smoke data, tiny encoders, and runs of a few steps.

torch is imported inside the fixtures, so that tests without a model start fast.
"""

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
    """Undo what a command did to this process: joined folders, and another current folder."""
    joined_folders = os.environ.get(VARIABLE)
    current_folder = os.getcwd()
    yield
    if os.environ.get(VARIABLE) == joined_folders and os.getcwd() == current_folder:
        return
    os.environ.pop(VARIABLE, None)
    if joined_folders is not None:
        os.environ[VARIABLE] = joined_folders
    os.chdir(current_folder)
    caches.clear()


# ---------------------------------------------------------------- data and encoders


@pytest.fixture(scope="session")
def smoke_data():
    """The folder of the project's smoke data."""
    return ROOT / "data" / "smoke"


@pytest.fixture
def data(smoke_data, tmp_path):
    """A copy of the smoke data, which a test may damage."""
    return shutil.copytree(smoke_data, tmp_path / "data")


@pytest.fixture(scope="session")
def corpus(smoke_data):
    """The file of the training sentences in the smoke data."""
    return smoke_data / "wiki" / "smoke.txt"


@pytest.fixture(scope="session")
def sentences(corpus):
    """The training sentences in the smoke data."""
    return corpus.read_text(encoding="utf-8").splitlines()


SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.1,  # larger than BERT's, so that attention is not uniform
}


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory, sentences):
    """The folder of a BERT of 3 layers with random weights."""
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
    """The folder of a RoBERTa of 3 layers with random weights and a byte-level BPE."""
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
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=130,  # 128 tokens: RoBERTa's positions start at 2
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        type_vocab_size=1,
        **SHAPE,
    )
    torch.manual_seed(0)
    RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# ---------------------------------------------------------------- successors/


@pytest.fixture
def successors(monkeypatch):
    """Let the folder successors/ join the project. It is not the current folder."""
    from csebench.base import caches
    from csebench.base.project import ROOT

    monkeypatch.setenv("CSEBENCH_PROJECT", str(ROOT / "successors"))
    caches.clear()
    yield
    caches.clear()


# ---------------------------------------------------------------- tiny runs


@pytest.fixture(scope="session")
def make_spec(tiny_bert):
    """Make the spec of a tiny run: `make_spec("simcse", components={"ami": {}}, seed=2)`.

    Args of the function:
        params: changes of the parameters that make a run tiny.
        size: number of sentences; None: the whole corpus.
        encoder: folder of the model that the run starts from.
        file: a corpus of the test; None: the smoke data.
    """
    from csebench.base.files import sha256
    from csebench.base.models import model_sha256
    from csebench.plan import recipe
    from csebench.plan.catalog import files as catalog
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
        tiny_params = TINY | TINY_PARAMS.get(method, {}) | (params or {})
        wanted_run = Recipe(
            method=method, variant=variant, params=tiny_params, components=components or {}
        )

        if file is None:
            corpora = {
                "sentences": catalog.dataset("smoke"),
                "triplets": catalog.dataset("nli-smoke"),
            }
            corpus_size = 400
        else:
            dataset = Dataset(path=file.name, sha256=sha256(file))
            corpora = {"sentences": dataset, "triplets": dataset}
            corpus_size = file.read_bytes().count(b"\n")

        dev_sha256 = catalog.dataset("stsb-dev-smoke").sha256
        conditions = recipe.Conditions(
            corpora, dev_sha256, RunSettings(substitutes=TINY_SUBSTITUTES)
        )
        start = EncoderRef(name=str(encoder), revision=model_sha256(encoder))
        return recipe.make_spec(wanted_run, start, size or corpus_size, seed, conditions, "tests")

    return make


def corpus_of(spec):
    """Find the file of the smoke data that a run trains on."""
    from csebench.plan import recipe
    from csebench.plan.catalog import files as catalog

    return recipe.corpus_path(spec, catalog.scale("smoke"))


def train_run(spec, out, corpus, data_root, positives=None, chunk_size=None, log_to=None):
    """Train a run in the folder `out`, as `csebench train` does, but for its choice of a GPU."""
    from csebench.base.runs import work_on
    from csebench.study.work import make_model_once
    from csebench.train.inputs import read_corpus_of, read_inputs

    inputs = read_inputs(spec, read_corpus_of(spec, corpus), data_root, positives)
    with work_on(out, spec, spec.run_id, log_to) as progress:
        make_model_once(spec, lambda: inputs, progress, chunk_size)


@pytest.fixture
def train(smoke_data, monkeypatch):
    """Train a run into a folder and return its report: `train(spec, folder)`.

    Args of the function:
        file: another corpus than the spec's file of the smoke data.
        checkpoint_seconds: the time between two checkpoints.
    """
    import json

    def run(spec, out, file=..., checkpoint_seconds=60, **settings):
        if file is ...:
            file = corpus_of(spec)
        monkeypatch.setattr("csebench.train.loop.CHECKPOINT_SECONDS", checkpoint_seconds)
        train_run(spec, out, file, smoke_data, **settings)
        return json.loads((out / "train.json").read_text())

    return run


@pytest.fixture
def kill_at(monkeypatch):
    """Let training die when it assembles the batch of a step: `kill_at(7)`; None: let it live."""
    from csebench.train import trainer

    batch_at = trainer.batch_at

    def kill_at_step(last_step):
        def batch_or_death(step, *args):
            if step == last_step:
                raise KeyboardInterrupt
            return batch_at(step, *args)

        monkeypatch.setattr(trainer, "batch_at", batch_or_death)

    return kill_at_step


@pytest.fixture(scope="session")
def finished(tmp_path_factory, make_spec, smoke_data):
    """Return the folder of a finished tiny run: `finished("ct")`, with arguments of `make_spec`.

    Each run is made once, for all tests that only read it.
    """
    folders = {}

    def run(*args, **kwargs):
        spec = make_spec(*args, **kwargs)
        if spec.run_id not in folders:
            folders[spec.run_id] = tmp_path_factory.mktemp("runs") / spec.run_id
            train_run(spec, folders[spec.run_id], corpus_of(spec), smoke_data)
        return folders[spec.run_id]

    yield run
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def controls_hold(monkeypatch):
    """Let scale mini judge methods, as a scale without failed controls does."""
    monkeypatch.setattr("csebench.report.numbers.controls.control_results", lambda scale: ())


# ---------------------------------------------------------------- order of tests, golden files


def pytest_collection_modifyitems(items):
    """Order tests so that no worker is left alone with a slow one at the end.

    With two workers, each begins with one half of the list. The first half has the slow tests of
    the workflow, which share a project that one of them makes, and then the other slow tests. The
    second half begins with the slow tests of the hub, which take longest.
    """
    workflow = []
    hub = []
    other_slow = []
    quick = []
    for item in items:
        if not item.get_closest_marker("slow"):
            quick.append(item)
        elif "workflow" in item.path.parts:
            workflow.append(item)
        elif "hub" in item.path.parts:
            hub.append(item)
        else:
            other_slow.append(item)
    others = other_slow + quick
    middle = max(0, len(items) // 2 - len(workflow))
    items[:] = workflow + others[:middle] + hub + others[middle:]

    gc.freeze()  # what was imported stays; garbage collection need not go through it any more
    gc.set_threshold(100_000, 20, 50)  # tests make many objects that are not freed by it


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files again; read the diff"
    )


@pytest.fixture
def golden(request):
    """Compare a text with a golden file: `golden(path, text)`. --update-golden writes the file."""

    def check(path, text):
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """`tiny("electra")`: the folder of a tiny model, made once."""
    made = {}

    def make(model_type):
        from tiny_encoders import save_tiny  # it imports torch

        if model_type not in made:
            made[model_type] = save_tiny(model_type, tmp_path_factory.mktemp("tiny") / model_type)
        return made[model_type]

    return make
