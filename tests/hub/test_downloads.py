"""Models and data from the hub: taken from the cache if it has them, checked, and refused in one
line."""

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import hub_data
import pytest
import torch
from controls import random_model
from hub_server import Repository
from safetensors.torch import load, save
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from word_vectors import word_vectors

from csebench.base import caches
from csebench.base import hub as hub_files
from csebench.base.errors import BadInput, RunFailed
from csebench.base.models import model_sha256
from csebench.base.project import ROOT
from csebench.cli import main
from csebench.data import fetch, preflight
from csebench.model.encoder import Encoder
from csebench.plan import targets
from csebench.plan.catalog import data_sources
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import COMPONENTS, declaration, protocol
from csebench.plan.schema.declarations import EncoderRef
from csebench.report.numbers.standard_sets import is_standard_data
from csebench.score.data_of_scores import EvaluationData
from csebench.score.evaluate import data_sha256
from csebench.score.models import open_model
from evaluators.mteb import evaluate as evaluate_mteb

BERT = catalog.scale("paper").encoders["bert-base"]
MINI = catalog.scale("small").encoders["bert-mini"]
OTHER = EncoderRef(name="somebody/encoder", revision="1" * 40)  # a model that a test publishes
OTHER_PINNED = f"{OTHER.name}@{OTHER.revision}"
FILES = ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@pytest.fixture(autouse=True)
def cache(hub, tmp_path, monkeypatch):
    """An empty cache, and huggingface_hub pointed at the loopback hub, without a token."""
    constants = {
        "ENDPOINT": hub.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": False,
        "HF_TOKEN_PATH": str(tmp_path / "no-token"),
    }
    for name, value in constants.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    monkeypatch.setattr("datasets.config.HF_ENDPOINT", hub.endpoint)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    for name in ("CSEBENCH_DATA", "HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "cache"
    caches.clear()  # what was planned without data must not stay for other tests


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Seconds that would have been waited between attempts."""
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def disconnect(hub) -> None:
    """Stop the hub, as if the network were gone."""
    from huggingface_hub import close_session

    hub.__exit__()
    close_session()  # it keeps connections open


def publish(hub, files: dict[str, bytes]) -> None:
    """Publish files as the model OTHER."""
    hub.repositories.append(Repository("models", OTHER.name, OTHER.revision, files))


def files_of_bert(hub) -> dict[str, bytes]:
    return hub.find("models", BERT.name).files


def files_in(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder, by their path in it."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def is_whole(folder: Path, hub) -> bool:
    """Whether a folder has every file that BERT is read from, as the hub has it."""
    files = files_of_bert(hub)
    return all((folder / file).read_bytes() == files[file] for file in hub_files.model_files(files))


def test_a_model_is_fetched_once_and_then_needs_no_connection(hub, monkeypatch):
    """A model that the cache lacks is bad input if the hub must not be asked."""
    hub_files.fetch_model(BERT)
    folder = hub_files.cached_model(BERT)
    assert {path.name for path in folder.iterdir()} == {*FILES}  # and no weights of another format

    hub.requests.clear()
    assert is_whole(hub_files.fetch_model(BERT), hub)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert is_whole(hub_files.fetch_model(BERT), hub)
    with pytest.raises(BadInput, match=r"not in the cache .*offline mode is enabled"):
        hub_files.fetch_model(MINI)
    assert not hub.requests


def test_weights_are_those_of_the_checkpoint_also_in_shards(hub):
    """Weights called gamma and beta get their new names, and no weight is left as it was drawn."""
    files = dict(files_of_bert(hub))
    weights = load(files.pop("model.safetensors"))
    del files["pytorch_model.bin"]
    names = list(weights)
    shards = {
        "model-00001-of-00002.safetensors": names[::2],
        "model-00002-of-00002.safetensors": names[1::2],
    }
    index = {"metadata": {}, "weight_map": {}}
    for shard, names_in_shard in shards.items():
        files[shard] = save({name: weights[name] for name in names_in_shard})
        index["weight_map"] |= dict.fromkeys(names_in_shard, shard)
    files["model.safetensors.index.json"] = hub_data.to_json(index)
    publish(hub, files)

    stored = {new_name(name): weight for name, weight in weights.items()}
    for ref in (BERT, OTHER):
        for name, value in Encoder.load(ref).model.state_dict().items():
            if name in stored:
                assert value.equal(stored[name]), name
            else:
                assert name.endswith(("position_ids", "token_type_ids")), name

    (hub_files.cached_model(OTHER) / "model-00002-of-00002.safetensors").unlink()
    assert hub_files.cached_model(OTHER) is None


def new_name(name: str) -> str:
    """Return the name of a stored weight in transformers' model."""
    name = name.removeprefix("bert.")
    return name.replace(".gamma", ".weight").replace(".beta", ".bias")


def test_distilbert_has_a_masked_lm_head():
    name = declaration("rtd", COMPONENTS).params["generator"][0]
    generator = Encoder.load(EncoderRef.parse(name))
    states = torch.randn(2, 3, generator.size)

    model = generator.masked_lm()
    transformed = model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    expected = model.vocab_projector(transformed)
    assert torch.allclose(generator.lm_head()(states), expected)


@dataclass(frozen=True)
class Refusal:
    """A fault that does not pass, and the error of a user who fetches BERT."""

    fault: str
    name: str  # the files that it is about: `list`, a small one, one in LFS, or `*`
    error: type[Exception]
    message: str
    has_token: bool = False
    is_tried_again: bool = False


NO_TOKEN = r"no token was sent.*HF_TOKEN.*`hf auth login`"
UNAVAILABLE = r"not in the cache .*503.*`csebench fetch"
BUSY = r"not in the cache .*429.* Try again"
WRONG = "{}: two downloads differ from the hash"
REFUSED = [
    Refusal("gated", "*", BadInput, "access is restricted .*no token was sent"),
    Refusal("gone", "list", BadInput, "no such"),
    Refusal("denied", "*", BadInput, "; a token was sent", has_token=True),
    Refusal("denied", "list", BadInput, NO_TOKEN),
    Refusal("denied", "config.json", BadInput, NO_TOKEN),
    Refusal("unavailable", "list", RunFailed, UNAVAILABLE, is_tried_again=True),
    Refusal("unavailable", "config.json", RunFailed, UNAVAILABLE),
    Refusal("busy", "list", RunFailed, BUSY, is_tried_again=True),
    Refusal("busy", "config.json", RunFailed, BUSY, is_tried_again=True),
    Refusal("breaks", "model.safetensors", RunFailed, "cannot be fetched", is_tried_again=True),
    Refusal("wrong", "config.json", RunFailed, WRONG.format("config.json")),
    Refusal("wrong", "model.safetensors", RunFailed, WRONG.format("model.safetensors")),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.fault} {case.name}")
def test_a_refusal_is_one_line_with_its_reason(hub, case, pauses, monkeypatch):
    """A fault that may pass is tried again, with pauses."""
    if case.has_token:
        monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    hub.fail(case.fault, BERT.name, case.name)

    with pytest.raises(case.error, match=f"^.*{BERT.name}.*{case.message}") as refusal:
        hub_files.fetch_model(BERT)

    assert "\n" not in str(refusal.value)
    assert "hf_0123456789" not in str(refusal.value)
    assert bool(pauses) == case.is_tried_again
    assert hub_files.cached_model(BERT) is None


@dataclass(frozen=True)
class PassingFault:
    """A fault that ends while BERT is fetched, and what the user sees of it."""

    fault: str
    name: str  # the file that it is about
    times: int  # requests that meet it
    printed: str = ""
    least_pause: int = 0  # seconds that are waited at least


AGAIN = "{}: differs from the hash that the hub lists; downloading it again"
PASSES = [
    PassingFault("wrong", "config.json", 1, AGAIN.format("config.json")),
    PassingFault("wrong", "model.safetensors", 1, AGAIN.format("model.safetensors")),
    PassingFault("breaks", "model.safetensors", 2),
    PassingFault("busy", "list", 2, "Rate limited. Waiting 8.0s", least_pause=14),
    PassingFault("busy", "config.json", 2, "Rate limited. Waiting 8.0s", least_pause=14),
    PassingFault("unavailable", "list", 3, "Retrying in 4s", least_pause=3),
]


@pytest.mark.parametrize("case", PASSES, ids=lambda case: f"{case.fault} {case.name}")
def test_a_fault_that_passes_is_waited_for(hub, case, pauses, capsys, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    hub.fail(case.fault, BERT.name, case.name, case.times)

    assert is_whole(hub_files.fetch_model(BERT), hub)

    assert hub.faults[0].left == 0
    assert case.printed in capsys.readouterr().err + caplog.text
    assert "No files matched" not in caplog.text
    assert sum(pauses) >= case.least_pause
    assert pauses == sorted(pauses)  # no pause is shorter than the one before


NO_MODEL = {
    "no/such/name": "no such folder, and not a name of the hub",
    f"{OTHER.name}@{'2' * 40}": "no such repository or commit",
    OTHER_PINNED: "the hub has no weights of it",
}


@pytest.mark.parametrize(("name", "message"), NO_MODEL.items())
def test_a_name_that_cannot_be_a_model_is_bad_input(hub, name, message):
    publish(hub, {"config.json": b"{}"})
    with pytest.raises(BadInput, match=message):
        hub_files.fetch_model(EncoderRef.parse(name))

    with pytest.raises(BadInput, match=r"the hub has no such file \(vocab.txt\)"):
        hub_files.fetch_files(OTHER.name, OTHER.revision, "model", "a vocabulary", ["vocab.txt"])


def change(path: Path, in_place: bool = True) -> None:
    """Change a file's last bytes, and neither its size nor its time.

    Args:
        in_place: write through the link into the cache; else replace the link, as `sed -i` does.
    """
    content = path.read_bytes()
    times = path.stat()
    if not in_place:
        path.unlink()
    path.write_bytes(content[:-4] + b"abcd")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    ("name", "in_place"), [("model.safetensors", True), ("config.json", False)]
)
def test_a_file_that_was_changed_in_the_cache_is_fetched_anew_and_never_used(
    hub, name, in_place, capsys
):
    hub_files.fetch_model(BERT)
    folder = hub_files.cached_model(BERT)

    change(folder / name, in_place)
    assert is_whole(hub_files.fetch_model(BERT), hub)

    change(folder / name, in_place)
    disconnect(hub)
    with pytest.raises(RunFailed, match="cannot be fetched"):
        hub_files.fetch_model(BERT)
    assert capsys.readouterr().err.count(AGAIN.format(name)) == 2


def test_a_cache_without_a_list_of_its_files_is_checked_and_hides_no_refusal(
    hub, cache, monkeypatch
):
    """Other programs, and older versions of huggingface_hub, fill it so.

    The files in it are not fetched again.
    """

    def remove_list():
        shutil.rmtree(next(cache.glob("*/trees")))
        monkeypatch.setattr("huggingface_hub._tree_cache._IN_MEMORY_TREE_CACHE", {})

    hub_files.fetch_model(BERT)
    remove_list()
    hub.requests.clear()
    assert hub_files.cached_model(BERT) is None

    hub.fail("denied", BERT.name)
    with pytest.raises(BadInput, match="no token was sent"):
        hub_files.fetch_model(BERT)

    hub.faults.clear()
    assert is_whole(hub_files.fetch_model(BERT), hub)
    assert all("/tree/" in request for request in hub.requests)

    remove_list()
    disconnect(hub)
    with pytest.raises(RunFailed, match="with the list of its files, and cannot"):
        hub_files.fetch_model(BERT)


# the files that a model is read from, and files that its repository has, too
SENTENCE_TRANSFORMER = """
config.json merges.txt spm.model model.safetensors modules.safetensors modules.json
1_Pooling/config.json 2_Dense/model.safetensors 3_Dense/pytorch_model.bin
"""
BESIDE_SENTENCE_TRANSFORMER = """
pytorch_model.bin 2_Dense/pytorch_model.bin onnx/config.json onnx/model.safetensors model.onnx
README.md checkpoint-500/model.safetensors adapter_config.json adapter_model.safetensors
training_args.bin
"""
ENCODER = "config.json pytorch_model.bin"
BESIDE_ENCODER = "flax_model.msgpack tf_model.h5 modeling.py"


@pytest.mark.parametrize(
    ("read", "other"),
    [(SENTENCE_TRANSFORMER, BESIDE_SENTENCE_TRANSFORMER), (ENCODER, BESIDE_ENCODER)],
    ids=["sentence-transformer", "encoder"],
)
def test_one_format_of_weights_is_read_with_configuration_and_tokenizer(read, other):
    assert sorted(hub_files.model_files([*other.split(), *read.split()])) == sorted(read.split())


def test_a_model_of_sentence_transformers_has_all_its_modules_and_each_is_checked(
    hub, tiny_bert, tmp_path
):
    saved = tmp_path / "st@home"
    transformer = modules.Transformer(str(tiny_bert))
    size = transformer.get_embedding_dimension()
    parts = [transformer, modules.Pooling(size), modules.Dense(size, 5)]
    SentenceTransformer(modules=parts, device="cpu").save(str(saved))
    publish(hub, files_in(saved))

    hub_files.fetch_model(OTHER)
    folder = hub_files.cached_model(OTHER)
    change(folder / "1_Pooling/config.json")
    change(folder / "2_Dense/model.safetensors")

    embedded = open_model(OTHER_PINNED).embed(["a sentence"])
    assert (embedded == open_model(str(saved)).embed(["a sentence"])).all()


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "model.safetensors"])
def test_a_run_of_a_released_model_opens_it_at_its_commit(hub, weights):
    """The folder of the run has only the name and the commit, in either format of the weights."""
    publish(hub, word_vectors(hub_data.SENTENCES, weights))
    options = ["--method", "released", "--encoder", OTHER_PINNED, "--out", "run"]

    assert main(["train", *options]) == 0

    texts = hub_data.SENTENCES[:3]
    library = SentenceTransformer(str(hub_files.fetch_model(OTHER)), device="cpu")
    assert (open_model("run/model").embed(texts) == library.encode(texts)).all()


def test_the_size_of_a_model_counts_the_files_of_its_modules(hub):
    files = word_vectors(hub_data.SENTENCES)
    publish(hub, files)
    need = preflight.Need("encoder", OTHER.name, OTHER)
    size = sum(len(file) for file in files.values())
    assert preflight.need_state(need, "paper") == preflight.State(need, "reachable", size)

    hub_files.fetch_model(OTHER)
    assert preflight.need_state(need, "paper") == preflight.State(need, "here", size)


OF_BERT = ("config.json", "vocab.txt", "tokenizer_config.json", "pytorch_model.bin")


def bert_without_tokenizer(hub) -> dict[str, bytes]:
    """Return the files of BERT that an old repository has: fewer than libraries know."""
    files = files_of_bert(hub)
    return {name: files[name] for name in OF_BERT}


def add_weights(folder: Path) -> None:
    """Add other weights, in the format that libraries prefer to pytorch_model.bin."""
    zeros = {}
    for name, weight in torch.load(folder / "pytorch_model.bin").items():
        zeros[name] = torch.zeros_like(weight)
    (folder / "model.safetensors").write_bytes(save(zeros, metadata={"format": "pt"}))


def add_shards(folder: Path) -> None:
    add_weights(folder)
    (folder / "model.safetensors").rename(folder / "all.safetensors")
    names = torch.load(folder / "pytorch_model.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "all.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def add_special_tokens(folder: Path) -> None:
    (folder / "special_tokens_map.json").write_text('{"cls_token": "[MASK]"}')


def add_tokens(folder: Path) -> None:
    (folder / "added_tokens.json").write_text('{"the": 5}')


def add_tokenizer(folder: Path) -> None:
    """Add another vocabulary, in the format that libraries prefer to vocab.txt."""
    shipped = ROOT / "encoders" / "bert-mini-wiki" / "tokenizer.json"
    tokenizer = json.loads(shipped.read_text())
    pieces = (folder / "vocab.txt").read_text().split("\n")[:-1]
    ids = {piece: number for number, piece in enumerate(reversed(pieces))}
    tokenizer["model"]["vocab"] = ids
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def add_modules(folder: Path) -> None:
    """Add the files that make an encoder a model of sentence-transformers."""
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode": "max"}
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    listed = []
    for path, kind in {"": "Transformer", "1_Pooling": "Pooling"}.items():
        module = {"idx": 0, "name": path, "path": path}
        listed.append(module | {"type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(listed))


def add_facts(folder: Path) -> None:
    """Add the file in which csebench states what it trained."""
    (folder / "csebench.json").write_text('{"control": "random", "pooler": "avg"}')


def add_modules_of_a_method(folder: Path) -> None:
    (folder / "modules.safetensors").write_bytes(save({"lm_head.bias": torch.ones(2)}))


def add_adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "a/b"}')


ADDED = [
    add_weights,
    add_shards,
    add_special_tokens,
    add_tokens,
    add_tokenizer,
    add_modules,
    add_facts,
    add_modules_of_a_method,
    add_adapter,
]


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("add", ADDED)
def test_what_the_revision_does_not_have_is_not_read(hub, add, offline, monkeypatch):
    """It stays in the cache, where a user or another program put it."""
    publish(hub, bert_without_tokenizer(hub))
    sentences = ["The lighthouse stands on a rock.", "the"]
    before = open_model(OTHER_PINNED, "avg").embed(sentences)
    snapshot = hub_files.cached_model(OTHER)
    add(snapshot)
    names_in_cache = {path.name for path in snapshot.iterdir()}
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)

    assert (open_model(OTHER_PINNED, "avg").embed(sentences) == before).all()
    assert {path.name for path in hub_files.fetch_model(OTHER).iterdir()} == {*OF_BERT}
    assert {path.name for path in snapshot.iterdir()} == names_in_cache
    with pytest.raises(BadInput, match="states no pooling"):
        open_model(OTHER_PINNED)


def test_other_modules_in_the_cache_are_not_those_of_the_revision(hub, tiny_bert, tmp_path):
    saved = tmp_path / "st"
    transformer = modules.Transformer(str(tiny_bert))
    pooling = modules.Pooling(transformer.get_embedding_dimension())
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(saved))
    publish(hub, files_in(saved))
    before = open_model(OTHER_PINNED).embed(["a sentence"])

    snapshot = hub_files.cached_model(OTHER)
    (snapshot / "1_Pooling/model.safetensors").write_bytes(b"x")
    (snapshot / "sentence_roberta_config.json").write_text('{"max_seq_length": 3}')
    (snapshot / "2_Normalize").mkdir()

    assert (open_model(OTHER_PINNED).embed(["a sentence"]) == before).all()
    read = {name for name in files_in(saved) if hub_files.READ.fullmatch(Path(name).name)}
    view = hub_files.fetch_model(OTHER)
    assert files_in(view).keys() == read


SHARD = "model-00001-of-00001.safetensors"


@pytest.mark.parametrize(
    "named", ["x.safetensors", ".x.safetensors", f"../x/{SHARD}", "{outside}/x.safetensors"]
)
def test_a_shard_outside_the_revision_is_not_read(hub, named, tmp_path):
    """A shard may be named by a path, or be a file that only the cache has."""
    files = bert_without_tokenizer(hub)
    weights = torch.load(io.BytesIO(files.pop("pytorch_model.bin")))
    own_weights = {name: weight.clone() for name, weight in weights.items()}
    shard = save(own_weights, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, named.format(outside=tmp_path))}
    publish(hub, files | {"model.safetensors.index.json": hub_data.to_json(index), SHARD: shard})

    hub_files.fetch_model(OTHER)
    snapshot = hub_files.cached_model(OTHER)
    (snapshot.parent / "x").mkdir()
    (snapshot.parent / "x" / SHARD).write_bytes(shard)
    (snapshot / "x.safetensors").write_bytes(shard)
    (snapshot / ".x.safetensors").write_bytes(shard)
    (tmp_path / "x.safetensors").write_bytes(shard)

    message = r"not among the files that the hash|cannot be read: .*x\.safetensors"
    with pytest.raises(BadInput, match=message):
        Encoder.load(OTHER)


def test_a_folder_of_the_name_of_a_pinned_model_is_not_read(
    hub, tiny_roberta, smoke_data, tmp_path
):
    """Its files are not read, nor what it states of its pooling, nor its hash for the commit."""
    publish(hub, bert_without_tokenizer(hub))
    before = evaluate_on_dev(OTHER_PINNED, "avg", smoke_data)

    for folder in (OTHER.name, OTHER_PINNED):
        shutil.copytree(tiny_roberta, tmp_path / folder)
        facts = '{"control": "random", "run": "simcse-0123456789"}'
        (tmp_path / folder / "csebench.json").write_text(facts)
    after = evaluate_on_dev(OTHER_PINNED, "avg", smoke_data)
    for key in ("model", "run", "scores"):
        assert after[key] == before[key]
    assert before["model"] == OTHER_PINNED
    assert after["evaluations"][0]["model_commit"] == OTHER.revision

    # a name without a commit is that of the folder
    (tmp_path / OTHER.name / "csebench.json").unlink()
    for name in (OTHER.name, f"./{OTHER.name}"):
        of_folder = evaluate_on_dev(name, "avg", smoke_data)
        assert of_folder["model"] == f"./{OTHER.name}"
        assert of_folder["scores"] != before["scores"]
        assert of_folder["evaluations"][0]["model_sha256"] == model_sha256(tiny_roberta)


def evaluate_on_dev(model: str, pooler: str, data: Path) -> dict:
    """Score a model on STS-B dev, and return its score JSON."""
    out = Path("out.json")
    model_options = ["--model", model, "--pooler", pooler]
    options = ["--evaluators", "stsb_dev", "--data", str(data), "--out", str(out)]
    assert main(["evaluate", *model_options, *options]) == 0
    return json.loads(out.read_text())


def test_a_view_is_removed_with_the_process_that_made_it_and_needs_no_writable_cache(
    hub, cache, tmp_path
):
    hub_files.fetch_model(BERT)
    script = f"""
import os
from csebench.base.hub import EncoderRef, fetch_model
folder = fetch_model(EncoderRef(name="{BERT.name}", revision="{BERT.revision}"))
if os.fork() == 0:
    raise SystemExit
os.wait()
assert (folder / "config.json").exists()
print(folder)
"""
    env = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", script]

    set_mode_of_folders(cache, 0o555)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    set_mode_of_folders(cache, 0o755)

    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
    assert not list(tmp_path.glob("csebench-*"))


def set_mode_of_folders(top: Path, mode: int) -> None:
    """Set the permissions of a folder and of all folders in it."""
    for path in (top, *top.rglob("*")):
        if path.is_dir():
            path.chmod(mode)


def test_a_released_checkpoint_is_scored_with_its_own_pooler(hub, smoke_data):
    """DiffCSE's authors saved it so: the class of their script, with a prefix, a head, a
    discriminator, and the old buffer `position_ids`, in pytorch_model.bin only."""
    weights = load(files_of_bert(hub)["model.safetensors"])
    for name in list(weights):
        weights[f"discriminator.{name}"] = weights[name] + 1
    weights["mlp.net.0.weight"] = torch.ones(32, 32)
    weights["bert.embeddings.position_ids"] = torch.arange(512)[None]

    files = {name: file for name, file in files_of_bert(hub).items() if "model." not in name}
    files["pytorch_model.bin"] = hub_data.pickled(weights)
    config = json.loads(files["config.json"]) | {"architectures": ["BertForCL"]}
    files["config.json"] = hub_data.to_json(config)
    publish(hub, files)

    values = set()
    for pooler in ("cls", "cls_before_pooler"):
        written = evaluate_on_dev(OTHER.name, pooler, smoke_data)
        assert written["evaluations"][0]["model_commit"] == OTHER.revision
        values.add(written["scores"][0]["value"])
    assert len(values) == 2


# ---------------------------------------------------------------- data


@pytest.fixture
def root(hub, smoke_data, tmp_path, monkeypatch):
    """The data root of fetched data, which has the counts of the small files.

    The small files have their sums in the registry. Sources that have servers of their own are on
    the hub.
    """
    datasets = dict(catalog.datasets())
    for name, value in hub_data.small_sums().items():
        datasets[name] = datasets[name].model_copy(update={"sha256": value})
    monkeypatch.setattr(catalog, "datasets", lambda: datasets)

    file = data_sources.sources_file()
    file = file.model_copy(update={"sources": file.sources | hub_data.served(hub)})
    monkeypatch.setattr(data_sources, "sources_file", lambda: file)

    root = tmp_path / catalog.FETCHED
    root.mkdir(parents=True)
    shutil.copy(smoke_data / "counts.yaml", root)
    return root


@pytest.mark.parametrize("reason", ["another sha256", "without their counts"])
def test_test_sets_are_checked_when_they_are_fetched(root, reason):
    """STS-B dev is checked by its hash. All sets are checked by their counts, which the project's
    own pairs need."""
    if reason == "another sha256":
        other = catalog.dataset("stsb-dev").model_copy(update={"sha256": "0" * 64})
        catalog.datasets()["stsb-dev"] = other
    else:
        (root / "counts.yaml").unlink()
    before = list(root.iterdir())

    with pytest.raises(RunFailed, match=r"sts-dev\.csv: sha256|another release"):
        fetch.fetch_source("senteval", root)

    assert list(root.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["senteval", "beir:scifact", "beir:cqadupstack", "imdb", "stackoverflow", "evalrank"]
)
def test_a_source_brings_the_files_of_the_data_root(smoke_data, root, name, monkeypatch):
    """They replace what an earlier version, or a killed download, left. The marker, which says that
    all files are there, comes last."""
    source = data_sources.sources()[name]
    part = root / f".{name}.part"
    left_overs = [part / source.folder / "left.txt", part / source.marker, root / source.marker]
    for left_over in left_overs:
        left_over.parent.mkdir(parents=True, exist_ok=True)
        left_over.write_text("half")
    moved = []
    replace = os.replace

    def note_and_replace(old, new):
        moved.append(new)
        replace(old, new)

    monkeypatch.setattr("os.replace", note_and_replace)

    fetch.fetch_source(name, root)

    smoke_folder = smoke_data / ("beir/smoke" if name == "beir:scifact" else source.folder)
    fetched = names_of_files(root / source.folder)
    assert names_of_files(smoke_folder) <= fetched
    assert Path("left.txt") not in fetched
    assert (root / source.marker).read_text(encoding="utf-8") != "half"
    assert not part.exists()
    assert moved[-1] == root / source.marker


def names_of_files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*.*")}


def test_what_was_fetched_is_a_standard_test_set(root, monkeypatch):
    """The download had the pinned sum, so printed values can be judged by scores on it."""
    fetch.fetch_source("senteval", root)
    monkeypatch.setenv("CSEBENCH_DATA", str(root))
    for name in ("sts", "stsb_dev", "transfer:fasttest"):
        data = EvaluationData(data_sha256(protocol(name), root))
        assert is_standard_data(name, data, "paper"), name


def test_imdb_is_read_from_its_authors_archive(smoke_data, root):
    """Its rows are in the order of label, number and rating."""
    fetch.fetch_source("imdb", root)
    for name in ("misc/imdb/train.tsv", "misc/imdb/test.tsv"):
        head, *rows = (smoke_data / name).read_text(encoding="utf-8").splitlines()
        rows.sort(key=label_number_rating)
        assert (root / name).read_text(encoding="utf-8").splitlines() == [head, *rows]


def label_number_rating(row: str) -> list[int]:
    return [int(number) for number in row.split("\t")[:3]]


@pytest.mark.parametrize(
    ("fault", "message"), [("breaks", "bytes are missing"), ("wrong", "sha256 is")]
)
def test_an_archive_that_is_not_whole_leaves_nothing_and_can_be_fetched_again(
    hub, root, fault, message
):
    hub.fail(fault, "files/scifact.zip", times=1)
    with pytest.raises(RunFailed, match=message):
        fetch.fetch_source("beir:scifact", root)
    assert [path.name for path in root.iterdir()] == ["counts.yaml"]

    fetch.fetch_source("beir:scifact", root)


@pytest.mark.parametrize("name", ["../outside", "aclImdb/../../outside", "link"])
def test_an_archive_whose_files_leave_its_folder_is_refused(hub, root, name):
    member = tarfile.TarInfo(name)
    if name == "link":
        member.type = tarfile.SYMTYPE
        member.linkname = "/etc/passwd"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        tar.addfile(member)
    hub.archives["files/aclImdb_v1.tar.gz"] = content.getvalue()
    data_sources.sources()["imdb"] = hub_data.served(hub)["imdb"]

    with pytest.raises(RunFailed, match="imdb is not what was expected"):
        fetch.fetch_source("imdb", root)

    names = {path.name for path in root.parent.rglob("*")}
    assert not names & {"outside", "link"}


def test_a_data_set_of_mteb_with_wrong_bytes_is_refused_and_fetched_again(hub):
    task = preflight.Need("mteb", "Banking77Classification")
    assert task in preflight.needs(targets.parse_target("msse/figure5", "paper"))
    files = hub.find("datasets", "mteb/banking77").files
    state = preflight.need_state(task, "paper")
    assert state.state == "reachable"
    assert state.size == sum(len(content) for content in files.values())

    hub.fail("wrong", "mteb/banking77", "default/train.jsonl", times=1)
    with pytest.raises(RunFailed, match=r"train\.jsonl differs from the hash"):
        fetch.load_task(fetch.mteb_task(task.name))
    assert preflight.need_state(task, "paper").state == "reachable"

    fetch.load_task(fetch.mteb_task(task.name))
    assert preflight.need_state(task, "paper").state == "here"


@pytest.mark.parametrize("task", ["BIOSSES", "STS17", "STS22-v2", "NanoArguAnaRetrieval"])
def test_sts_of_mtebs_english_benchmark_and_nanobeir_are_scored_by_name(hub, smoke_data, task):
    """Only the English subset is read. NanoBEIR's only split is called train."""
    model = random_model(64)
    (main, *others), items = evaluate_mteb(model, smoke_data, task)

    assert (main.task, main.subset) == (task, "all")
    assert {row.subset for row in others} <= {"all"}
    if task.startswith("Nano"):
        assert main.metric == "ndcg_at_10"
        assert model.embedded == 70  # 60 documents and 10 queries
    else:
        assert main.metric == "cosine_spearman"
        assert items[f"{task}/all"].shape == (20,)


# ---------------------------------------------------------------- needs of pages

TRANSLATORS = ("Helsinki-NLP/opus-mt-de-en", "Helsinki-NLP/opus-mt-en-de")
GLOVE = catalog.scale("paper").encoders["glove"]
TEACHERS = (
    "princeton-nlp/unsup-simcse-bert-base-uncased",
    "princeton-nlp/unsup-simcse-bert-large-uncased",
)
NEEDS = {
    "infocse/table10": [BERT.name, GLOVE.name, "senteval", "wiki"],
    "msse/table1": [
        BERT.name,
        "google-bert/bert-large-uncased",
        "distilbert/distilbert-base-uncased",
        *TEACHERS,
        *TRANSLATORS,
        "senteval",
        "wiki",
    ],
    "msse/figure5": [
        BERT.name,
        "princeton-nlp/unsup-simcse-bert-base-uncased",  # teaches RankEncoder
        *TRANSLATORS,
        "senteval",
        "wiki",
    ],
    "infocse/table11": [BERT.name, "distilbert/distilbert-base-uncased", "senteval", "wiki"],
    "informin_cl/figure3": [BERT.name, "nli", "senteval", "wiki"],
}


@pytest.mark.parametrize(("target", "names"), NEEDS.items())
def test_needs_of_a_page_are_looked_up_without_a_connection(hub, target, names):
    """They are models and data. Tasks of mteb are left out, because their lookup takes seconds."""
    pages = targets.parse_target(target, "paper")
    looked_up = {}
    for state in preflight.check_needs(pages, ask=False):
        looked_up[state.need.name] = (state.state, state.size)
    assert looked_up == dict.fromkeys(names, ("reachable", None))
    assert not hub.requests


def test_check_lists_what_fetch_brings(hub, root, capsys):
    """The pages need a source of two files, and translators. They also show cells that need a file
    that nobody publishes: it is not listed, because these cells are planned as missing."""
    pages = ["msse/figure4", "table8"]
    bert = files_of_bert(hub)
    simcse = hub.find("datasets", "princeton-nlp/datasets-for-simcse").files
    stackoverflow = [file for name, file in hub.archives.items() if "StackOverflow" in name]

    at_first = check(pages, capsys)
    assert at_first[BERT.name] == ("reachable", sum(len(bert[name]) for name in FILES))
    assert at_first["wiki"] == ("reachable", len(simcse["wiki1m_for_simcse.txt"]))
    assert at_first["stackoverflow"] == ("reachable", sum(len(file) for file in stackoverflow))
    total = sum(size for _, size in at_first.values())
    assert main(["check", *pages]) == 0
    disk = rf"\ndisk: {total / 10**6:.1f} MB to fetch; .* free: enough$"
    assert re.search(disk, capsys.readouterr().out)

    for page in pages:
        assert main(["fetch", page]) == 0
    capsys.readouterr()
    assert {state for state, _ in check(pages, capsys).values()} == {"here"}

    (hub_files.cached_model(BERT) / "vocab.txt").resolve().unlink()
    (Path(catalog.FETCHED) / "misc/stackoverflow/label_StackOverflow.txt").unlink()
    after_loss = check(pages, capsys)
    assert after_loss[BERT.name] == ("reachable", len(bert["vocab.txt"]))
    assert after_loss["stackoverflow"] == at_first["stackoverflow"]


def check(pages: list[str], capsys) -> dict[str, tuple[str, int]]:
    """Call `csebench check`, and return state and bytes by need."""
    assert main(["check", *pages, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    return {entry["name"]: (entry["state"], entry["bytes"]) for entry in entries}


def test_what_is_restricted_is_missing_before_anything_starts(hub, root, capsys):
    hub.fail("gated", BERT.name)
    assert main(["check", "msse/figure4"]) == 1
    assert "hf auth login" in capsys.readouterr().out

    assert main(["fetch", "msse/figure4"]) == 1  # and the rest is fetched
    assert (Path(catalog.FETCHED) / "misc/stackoverflow").exists()
