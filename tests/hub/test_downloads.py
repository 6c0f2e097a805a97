"""Models and data from the hub: from the cache first, checked, and refused in one line."""

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import hub_data
import pytest
import torch
from hub_server import Repository
from safetensors.torch import load, save
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

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

BERT = next(
    ref
    for ref in catalog.scale("paper").encoders.values()
    if ref.name == "google-bert/bert-base-uncased"
)
MINI = catalog.scale("small").encoders["bert-mini"]
OTHER = EncoderRef(name="somebody/encoder", revision="1" * 40)  # which a test makes
FILES = ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
REQUESTS = ("list", "config.json", "model.safetensors")  # for a small file and a large one


@pytest.fixture(autouse=True)
def cache(hub, tmp_path, monkeypatch):
    """An empty cache, and huggingface_hub pointed at the loopback hub, without a token."""
    url = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    changed = {
        "ENDPOINT": hub.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": url,
        "HF_HUB_CACHE": str(tmp_path / "cache"),
    }
    changed |= {"HF_HUB_OFFLINE": False, "HF_TOKEN_PATH": str(tmp_path / "no-token")}
    for name, value in changed.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    monkeypatch.setattr("datasets.config.HF_ENDPOINT", hub.endpoint)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    for name in ("CSEBENCH_DATA", "HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "cache"
    caches.clear()  # of what was planned without data


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Seconds that would have been waited between attempts."""
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def disconnect(hub) -> None:
    from huggingface_hub import close_session

    hub.__exit__()
    close_session()  # with the connections that it keeps open


def publish(hub, files: dict[str, bytes]) -> None:
    hub.repositories.append(Repository("models", OTHER.name, OTHER.revision, files))


def is_whole(folder: Path, hub) -> bool:
    """Whether every file of BERT is what the hub has."""
    files = hub.find("models", BERT.name).files
    return all((folder / file).read_bytes() == files[file] for file in hub_files.model_files(files))


def test_a_model_is_fetched_once_and_then_needs_no_connection(hub, monkeypatch):
    """What the cache lacks is bad input where the hub is not to be asked."""
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
    """gamma and beta take their places, and every weight of the encoder is the file's."""
    whole = hub.find("models", BERT.name).files
    weights = load(whole["model.safetensors"])
    halves = {
        f"model-0000{i + 1}-of-00002.safetensors": dict([*weights.items()][i::2]) for i in range(2)
    }
    index = {
        "metadata": {},
        "weight_map": {name: shard for shard, half in halves.items() for name in half},
    }
    files = {
        name: content
        for name, content in whole.items()
        if not name.startswith(("model.", "pytorch_model."))
    }
    files |= {shard: save(half) for shard, half in halves.items()}
    publish(hub, files | {"model.safetensors.index.json": hub_data.to_json(index)})
    new_names = [
        name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias")
        for name in weights
    ]
    stored = dict(zip(new_names, weights.values(), strict=True))
    for ref in (BERT, OTHER):
        loaded = Encoder.load(ref).model.state_dict()
        assert all(value.equal(stored[name]) for name, value in loaded.items() if name in stored)
        assert all(
            name.endswith(("position_ids", "token_type_ids")) for name in loaded.keys() - stored
        )
    (hub_files.cached_model(OTHER) / [*halves][1]).unlink()
    assert hub_files.cached_model(OTHER) is None


def test_distilbert_has_a_masked_lm_head():
    generator = Encoder.load(
        EncoderRef.parse(declaration("rtd", COMPONENTS).params["generator"][0])
    )
    head, model = generator.lm_head(), generator.masked_lm()
    states = torch.randn(2, 3, generator.size)
    expected = model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    )
    assert torch.allclose(head(states), expected)


REFUSED = [
    ("gated", "*", BadInput, "access is restricted .*no token was sent"),
    ("gone", "list", BadInput, "no such"),
]
REFUSED += [("denied", "*", BadInput, "; a token was sent")]
REFUSED += [
    ("denied", name, BadInput, r"no token was sent.*HF_TOKEN.*`hf auth login`")
    for name in REQUESTS[:2]
]
REFUSED += [
    ("unavailable", name, RunFailed, r"not in the cache .*503.*`csebench fetch")
    for name in REQUESTS[:2]
]
REFUSED += [
    ("busy", name, RunFailed, r"not in the cache .*429.* Try again") for name in REQUESTS[:2]
]
REFUSED += [("breaks", "model.safetensors", RunFailed, "cannot be fetched")]
WAITED = [
    ("unavailable", "list"),
    ("busy", "list"),
    ("busy", "config.json"),
    ("breaks", "model.safetensors"),
]
REFUSED += [
    ("wrong", name, RunFailed, f"{name}: two downloads differ from the hash")
    for name in REQUESTS[1:]
]


@pytest.mark.parametrize(("fault", "name", "error", "message"), REFUSED)
def test_a_refusal_is_one_line_with_its_reason(
    hub, fault, name, error, message, pauses, monkeypatch
):
    if "a token" in message:
        monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    hub.fail(fault, BERT.name, name)
    with pytest.raises(error, match=f"^.*{BERT.name}.*{message}") as refusal:
        hub_files.fetch_model(BERT)
    assert "\n" not in str(refusal.value) and "hf_0123456789" not in str(refusal.value)
    assert bool(pauses) == ((fault, name) in WAITED)  # what may pass is tried again, with pauses
    assert hub_files.cached_model(BERT) is None


AGAIN = "{}: differs from the hash that the hub lists; downloading it again"
PASSES = [("wrong", name, 1, AGAIN.format(name)) for name in REQUESTS[1:]]
PASSES += [("breaks", "model.safetensors", 2, "")]
PASSES += [("busy", name, 2, "Rate limited. Waiting 8.0s") for name in REQUESTS[:2]]
PASSES += [("unavailable", "list", 3, "Retrying in 4s")]


@pytest.mark.parametrize(("fault", "name", "times", "said"), PASSES)
def test_a_fault_that_passes_is_waited_for(
    hub, fault, name, times, said, pauses, capsys, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    hub.fail(fault, BERT.name, name, times)
    assert is_whole(hub_files.fetch_model(BERT), hub)
    assert not hub.faults[0].left and said in capsys.readouterr().err + caplog.text
    assert "No files matched" not in caplog.text
    assert sum(pauses) >= {"busy": 14, "unavailable": 3}.get(fault, 0) and pauses == sorted(pauses)


NO_MODEL = {
    "no/such/name": "no such folder, and not a name of the hub",
    f"{OTHER.name}@{'2' * 40}": "no such repository or commit",
    f"{OTHER.name}@{OTHER.revision}": "the hub has no weights of it",
}


@pytest.mark.parametrize(("name", "message"), NO_MODEL.items())
def test_a_name_that_cannot_be_a_model_is_bad_input(hub, name, message):
    publish(hub, {"config.json": b"{}"})
    with pytest.raises(BadInput, match=message):
        hub_files.fetch_model(EncoderRef.parse(name))
    with pytest.raises(BadInput, match=r"the hub has no such file \(vocab.txt\)"):
        hub_files.fetch_files(OTHER.name, OTHER.revision, "model", "a vocabulary", ["vocab.txt"])


def change(path: Path, in_place: bool = True) -> None:
    """To as many bytes with the same time; or in place of the link into the cache, as `sed -i`
    does."""
    content, times = path.read_bytes(), path.stat()
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
    """As other programs, or older versions of huggingface_hub, fill it: what is there is not
    fetched again."""

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


SAFE = "config.json merges.txt spm.model model.safetensors modules.json 1_Pooling/config.json"
SAFE += " 2_Dense/model.safetensors 3_Dense/pytorch_model.bin"
NOT_READ = (
    "pytorch_model.bin 2_Dense/pytorch_model.bin onnx/config.json onnx/model.safetensors model.onnx"
    " README.md"
)
NOT_READ += (
    " checkpoint-500/model.safetensors adapter_config.json adapter_model.safetensors"
    " training_args.bin"
)
BIN = "config.json pytorch_model.bin"


@pytest.mark.parametrize(
    ("read", "other"), [(SAFE, NOT_READ), (BIN, "flax_model.msgpack tf_model.h5 modeling.py")]
)
def test_one_format_of_weights_is_read_with_configuration_and_tokenizer(read, other):
    assert sorted(hub_files.model_files([*other.split(), *read.split()])) == sorted(read.split())


def test_a_model_of_sentence_transformers_has_all_its_modules_and_each_is_checked(
    hub, tiny_bert, tmp_path
):
    saved, word = tmp_path / "st@home", modules.Transformer(str(tiny_bert))
    dense = modules.Dense(size := word.get_embedding_dimension(), 5)
    SentenceTransformer(modules=[word, modules.Pooling(size), dense], device="cpu").save(str(saved))
    publish(
        hub, {str(p.relative_to(saved)): p.read_bytes() for p in saved.rglob("*") if p.is_file()}
    )
    hub_files.fetch_model(OTHER)
    folder = hub_files.cached_model(OTHER)
    change(folder / "1_Pooling/config.json")
    change(folder / "2_Dense/model.safetensors")
    embedded = open_model(f"{OTHER.name}@{OTHER.revision}").embed(["a sentence"])
    assert (embedded == open_model(str(saved)).embed(["a sentence"])).all()


OF_BERT = ("config.json", "vocab.txt", "tokenizer_config.json", "pytorch_model.bin")


def add_weights(folder: Path) -> None:
    """In the format that libraries prefer to that of the revision."""
    weights = {
        name: torch.zeros_like(weight) for name, weight in torch.load(folder / OF_BERT[-1]).items()
    }
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))


def add_shards(folder: Path) -> None:
    add_weights(folder)
    names = torch.load(folder / OF_BERT[-1])
    (folder / "model.safetensors").rename(folder / "all.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "all.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def add_tokenizer(folder: Path) -> None:
    """Another vocabulary, which libraries prefer to vocab.txt."""
    file = ROOT / "encoders" / "bert-mini-wiki" / "tokenizer.json"
    content = json.loads(file.read_text())
    pieces = (folder / "vocab.txt").read_text().split("\n")[:-1]
    content["model"]["vocab"] = {piece: i for i, piece in enumerate(reversed(pieces))}
    (folder / "tokenizer.json").write_text(json.dumps(content))


def add_modules(folder: Path) -> None:
    """Which make it a model of sentence-transformers."""
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(
        '{"word_embedding_dimension": 32, "pooling_mode": "max"}'
    )
    types = {"": "Transformer", "1_Pooling": "Pooling"}
    parts = [
        {"idx": 0, "name": p, "path": p, "type": f"sentence_transformers.models.{t}"}
        for p, t in types.items()
    ]
    (folder / "modules.json").write_text(json.dumps(parts))


EXTRA = {
    "weights": add_weights,
    "shards": add_shards,
    "special tokens": (
        lambda f: (f / "special_tokens_map.json").write_text('{"cls_token": "[MASK]"}')
    ),
    "tokens": lambda f: (f / "added_tokens.json").write_text('{"the": 5}'),
    "tokenizer": add_tokenizer,
    "modules": add_modules,
    "facts": lambda f: (f / "csebench.json").write_text('{"control": "random", "pooler": "avg"}'),
    "modules of a method": (
        lambda f: (f / "modules.safetensors").write_bytes(save({"lm_head.bias": torch.ones(2)}))
    ),
    "adapter": (
        lambda f: (f / "adapter_config.json").write_text('{"base_model_name_or_path": "a/b"}')
    ),
}


def bert_without_tokenizer(hub) -> dict[str, bytes]:
    """Of an older kind, with fewer files than libraries know."""
    files = hub.find("models", BERT.name).files
    return {name: files[name] for name in OF_BERT}


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("add", EXTRA.values(), ids=EXTRA)
def test_what_the_revision_does_not_have_is_not_read(hub, add, offline, monkeypatch):
    """It is left in the cache, where a user or another program put it."""
    publish(hub, bert_without_tokenizer(hub))
    name = f"{OTHER.name}@{OTHER.revision}"
    sentences = ["The lighthouse stands on a rock.", "the"]
    before = open_model(name, "avg").embed(sentences)
    snapshot = hub_files.cached_model(OTHER)
    add(snapshot)
    there = {path.name for path in snapshot.iterdir()}
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    assert (open_model(name, "avg").embed(sentences) == before).all()
    assert {path.name for path in hub_files.fetch_model(OTHER).iterdir()} == {*OF_BERT}
    assert {path.name for path in snapshot.iterdir()} == there
    with pytest.raises(BadInput, match="states no pooling"):
        open_model(name)


def test_other_modules_in_the_cache_are_not_those_of_the_revision(hub, tiny_bert, tmp_path):
    saved, word = tmp_path / "st", modules.Transformer(str(tiny_bert))
    pooling = modules.Pooling(word.get_embedding_dimension())
    SentenceTransformer(modules=[word, pooling], device="cpu").save(str(saved))
    publish(
        hub, {str(p.relative_to(saved)): p.read_bytes() for p in saved.rglob("*") if p.is_file()}
    )
    name = f"{OTHER.name}@{OTHER.revision}"
    before = open_model(name).embed(["a sentence"])
    snapshot = hub_files.cached_model(OTHER)
    (snapshot / "1_Pooling/model.safetensors").write_bytes(b"x")
    (snapshot / "sentence_roberta_config.json").write_text('{"max_seq_length": 3}')
    (snapshot / "2_Normalize").mkdir()
    assert (open_model(name).embed(["a sentence"]) == before).all()
    read = {
        path.relative_to(saved) for path in saved.rglob("*") if hub_files.READ.fullmatch(path.name)
    }
    view = hub_files.fetch_model(OTHER)
    assert {path.relative_to(view) for path in view.rglob("*.*") if path.is_file()} == read


SHARD = "model-00001-of-00001.safetensors"


@pytest.mark.parametrize(
    "named", ["x.safetensors", ".x.safetensors", f"../x/{SHARD}", "{outside}/x.safetensors"]
)
def test_a_shard_outside_the_revision_is_not_read(hub, named, tmp_path):
    """Neither by a path, nor a file that the cache has and the revision has not."""
    files = bert_without_tokenizer(hub)
    weights = torch.load(io.BytesIO(files.pop("pytorch_model.bin")))
    shard = save(
        {name: weight.clone() for name, weight in weights.items()}, metadata={"format": "pt"}
    )
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, named.format(outside=tmp_path))}
    publish(hub, files | {"model.safetensors.index.json": hub_data.to_json(index), SHARD: shard})
    hub_files.fetch_model(OTHER)
    snapshot = hub_files.cached_model(OTHER)
    (snapshot.parent / "x").mkdir()
    for file in (
        snapshot / "x.safetensors",
        snapshot / ".x.safetensors",
        snapshot.parent / "x" / SHARD,
    ):
        file.write_bytes(shard)
    (tmp_path / "x.safetensors").write_bytes(shard)
    with pytest.raises(
        BadInput, match=r"not among the files that the hash|cannot be read: .*x\.safetensors"
    ):
        Encoder.load(OTHER)


def test_a_folder_of_the_name_of_a_pinned_model_is_not_read(
    hub, tiny_roberta, smoke_data, tmp_path
):
    """Neither its files, nor what it states of its pooling, nor its hash in the place of the
    commit."""
    publish(hub, bert_without_tokenizer(hub))
    name, out = f"{OTHER.name}@{OTHER.revision}", tmp_path / "out.json"
    command = [
        "evaluate",
        "--pooler",
        "avg",
        "--evaluators",
        "stsb_dev",
        "--data",
        str(smoke_data),
        "--out",
        str(out),
    ]

    def scored(model: str) -> dict:
        assert main([*command, "--model", model]) == 0
        return json.loads(out.read_text())

    before = scored(name)
    for folder in (OTHER.name, name):
        shutil.copytree(tiny_roberta, tmp_path / folder)
        (tmp_path / folder / "csebench.json").write_text(
            '{"control": "random", "run": "simcse-0123456789"}'
        )
    after = scored(name)
    for key in ("model", "run", "scores"):
        assert after[key] == before[key]
    assert (before["model"], after["evaluations"][0]["model_commit"]) == (name, OTHER.revision)
    (tmp_path / OTHER.name / "csebench.json").unlink()
    for given in (OTHER.name, f"./{OTHER.name}"):
        folder = scored(given)
        assert folder["model"] == f"./{OTHER.name}" and folder["scores"] != before["scores"]
        assert folder["evaluations"][0]["model_sha256"] == model_sha256(tiny_roberta)


def test_a_view_is_removed_with_the_process_that_made_it_and_needs_no_writable_cache(
    hub, cache, tmp_path
):
    hub_files.fetch_model(BERT)
    script = """
import os
from csebench.base.hub import EncoderRef, fetch_model
folder = fetch_model(EncoderRef(name="{name}", revision="{revision}"))
if os.fork() == 0:
    raise SystemExit
os.wait()
assert (folder / "config.json").exists()
print(folder)
"""
    script = script.format(name=BERT.name, revision=BERT.revision)
    for folder in (cache, *cache.rglob("*")):
        if folder.is_dir():
            folder.chmod(0o555)
    env = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    for folder in (cache, *cache.rglob("*")):
        if folder.is_dir():
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path) and not [*tmp_path.glob("csebench-*")]


def test_a_released_checkpoint_is_scored_with_its_own_pooler(hub, smoke_data, tmp_path):
    """As DiffCSE's authors saved it: the class of their script, with a prefix, a head, a
    discriminator, and the buffer `position_ids` of its day, in pytorch_model.bin only."""
    files = {
        name: content
        for name, content in hub.find("models", BERT.name).files.items()
        if "model." not in name
    }
    weights = load(hub.find("models", BERT.name).files["model.safetensors"])
    weights |= {f"discriminator.{name}": weight + 1 for name, weight in weights.items()}
    weights |= {
        "mlp.net.0.weight": torch.ones(32, 32),
        "bert.embeddings.position_ids": torch.arange(512)[None],
    }
    config = json.loads(files["config.json"]) | {"architectures": ["BertForCL"]}
    publish(
        hub,
        files
        | {
            "config.json": hub_data.to_json(config),
            "pytorch_model.bin": hub_data.pickled(weights),
        },
    )
    values, out = set(), tmp_path / "out.json"
    for pooler in ("cls", "cls_before_pooler"):
        command = [
            "evaluate",
            "--model",
            OTHER.name,
            "--pooler",
            pooler,
            "--evaluators",
            "stsb_dev",
        ]
        assert main([*command, "--data", str(smoke_data), "--out", str(out)]) == 0
        written = json.loads(out.read_text())
        assert written["evaluations"][0]["model_commit"] == OTHER.revision
        values.add(written["scores"][0]["value"])
    assert len(values) == 2


@pytest.fixture
def root(hub, smoke_data, tmp_path, monkeypatch):
    """The data root of what is fetched, with counts of the small files, whose sums are in the
    registry; sources that have servers of their own are the loopback hub's."""
    known, file = dict(catalog.datasets()), data_sources.sources_file()
    for name, value in hub_data.small_sums().items():
        known[name] = known[name].model_copy(update={"sha256": value})
    file = file.model_copy(update={"sources": file.sources | hub_data.served(hub)})
    monkeypatch.setattr(catalog, "datasets", lambda: known)
    monkeypatch.setattr(data_sources, "sources_file", lambda: file)
    (root := tmp_path / catalog.FETCHED).mkdir(parents=True)
    shutil.copy(smoke_data / "counts.yaml", root)
    return root


@pytest.mark.parametrize("reason", ["another sha256", "without their counts"])
def test_test_sets_are_checked_when_they_are_fetched(root, reason):
    """STS-B dev by its hash, all by their counts, which the project's own pairs need."""
    if reason == "another sha256":
        catalog.datasets()["stsb-dev"] = catalog.dataset("stsb-dev").model_copy(
            update={"sha256": "0" * 64}
        )
    else:
        (root / "counts.yaml").unlink()
    before = [*root.iterdir()]
    with pytest.raises(RunFailed, match=r"sts-dev\.csv: sha256|another release"):
        fetch.fetch_source("senteval", root)
    assert [*root.iterdir()] == before


@pytest.mark.parametrize(
    "name", ["senteval", "beir:scifact", "beir:cqadupstack", "imdb", "stackoverflow"]
)
def test_a_source_brings_the_files_of_the_data_root(smoke_data, root, name, monkeypatch):
    """In place of what an earlier version, or a killed download, left; what says that all are
    there comes last."""
    source, moved, replace = data_sources.sources()[name], [], os.replace
    part = root / f".{name}.part"
    for old in (part / source.folder / "left.txt", part / source.marker, root / source.marker):
        old.parent.mkdir(parents=True, exist_ok=True)
        old.write_text("half")
    monkeypatch.setattr("os.replace", lambda old, new: (moved.append(new), replace(old, new)))
    fetch.fetch_source(name, root)
    wanted, made = (
        smoke_data / {"beir:scifact": "beir/smoke"}.get(name, source.folder),
        root / source.folder,
    )
    brought = {path.relative_to(made) for path in made.rglob("*.*")}
    assert {path.relative_to(wanted) for path in wanted.rglob("*.*")} <= brought and Path(
        "left.txt"
    ) not in brought
    assert (root / source.marker).read_text(encoding="utf-8") != "half" and not part.exists()
    assert moved[-1] == root / source.marker


def test_what_was_fetched_is_a_standard_test_set(root, monkeypatch):
    """Its download had the pinned sum, so that printed values are judged by scores on it."""
    fetch.fetch_source("senteval", root)
    monkeypatch.setenv("CSEBENCH_DATA", str(root))
    for name in ("sts", "stsb_dev", "transfer:fasttest"):
        assert is_standard_data(name, EvaluationData(data_sha256(protocol(name), root)), "paper"), (
            name
        )


def test_imdb_is_read_from_its_authors_archive(smoke_data, root):
    fetch.fetch_source("imdb", root)
    for name in ("misc/imdb/train.tsv", "misc/imdb/test.tsv"):
        head, *rows = (smoke_data / name).read_text(encoding="utf-8").splitlines()
        in_order = sorted(rows, key=lambda row: [int(number) for number in row.split("\t")[:3]])
        assert (root / name).read_text(encoding="utf-8").splitlines() == [head, *in_order]


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
    content, member = io.BytesIO(), tarfile.TarInfo(name)
    if name == "link":
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        tar.addfile(member)
    hub.archives["files/aclImdb_v1.tar.gz"] = content.getvalue()
    data_sources.sources()["imdb"] = hub_data.served(hub)["imdb"]
    with pytest.raises(RunFailed, match="imdb is not what was expected"):
        fetch.fetch_source("imdb", root)
    assert not [path for path in root.parent.rglob("*") if path.name in ("outside", "link")]


def test_a_data_set_of_mteb_with_wrong_bytes_is_refused_and_fetched_again(hub):
    need = preflight.Need("mteb", "Banking77Classification")
    assert need in preflight.needs(targets.parse_target("msse/figure5", "paper"))
    state, files = preflight.need_state(need, "paper"), hub.find("datasets", "mteb/banking77").files
    assert (state.state, state.size) == ("reachable", sum(map(len, files.values())))
    hub.fail("wrong", "mteb/banking77", "default/train.jsonl", times=1)
    with pytest.raises(RunFailed, match=r"train\.jsonl differs from the hash"):
        fetch.load_task(fetch.mteb_task(need.name))
    assert preflight.need_state(need, "paper").state == "reachable"
    fetch.load_task(fetch.mteb_task(need.name))
    assert preflight.need_state(need, "paper").state == "here"


NEEDS = {
    "msse/figure5": (
        f"{BERT.name} Helsinki-NLP/opus-mt-de-en Helsinki-NLP/opus-mt-en-de senteval wiki"
    ),
    "infocse/table11": f"{BERT.name} distilbert/distilbert-base-uncased senteval wiki",
    "informin_cl/figure3": f"{BERT.name} nli senteval wiki",
}


@pytest.mark.parametrize(("target", "needs"), NEEDS.items())
def test_needs_of_a_page_are_looked_up_without_a_connection(hub, target, needs):
    """Its models and data; but for tasks of mteb, whose lookup takes seconds."""
    pages = targets.parse_target(target, "paper")
    states = {
        state.need.name: (state.state, state.size)
        for state in preflight.check_needs(pages, ask=False)
    }
    assert states == dict.fromkeys(needs.split(), ("reachable", None)) and not hub.requests


def test_check_lists_what_fetch_brings(hub, root, capsys):
    """Of pages with a source of two files, with translators, and with a file that nobody
    publishes, which is not needed: its cells are planned as missing."""
    pages = ["msse/figure4", "table8"]

    def check() -> dict:
        assert main(["check", *pages, "--json"]) == 0
        return {
            entry["name"]: (entry["state"], entry["bytes"])
            for entry in json.loads(capsys.readouterr().out)
        }

    model, simcse = (
        hub.find("models", BERT.name),
        hub.find("datasets", "princeton-nlp/datasets-for-simcse"),
    )
    of_stackoverflow = [
        content for name, content in hub.archives.items() if "StackOverflow" in name
    ]
    listed = check()
    assert listed[BERT.name] == ("reachable", sum(len(model.files[name]) for name in FILES))
    assert listed["wiki"] == ("reachable", len(simcse.files["wiki1m_for_simcse.txt"]))
    assert listed["stackoverflow"] == ("reachable", sum(map(len, of_stackoverflow)))
    total = sum(size for _, size in listed.values())
    assert main(["check", *pages]) == 0
    assert re.search(
        rf"\ndisk: {total / 10**6:.1f} MB to fetch; .* free: enough$", capsys.readouterr().out
    )
    for page in pages:
        assert main(["fetch", page]) == 0
    capsys.readouterr()
    assert {state for state, _ in check().values()} == {"here"}
    (hub_files.cached_model(BERT) / "vocab.txt").resolve().unlink()
    (Path(catalog.FETCHED) / "misc/stackoverflow/label_StackOverflow.txt").unlink()
    again = check()
    assert again[BERT.name] == ("reachable", len(model.files["vocab.txt"]))
    assert again["stackoverflow"] == listed["stackoverflow"]


def test_what_is_restricted_is_missing_before_anything_starts(hub, root, capsys):
    hub.fail("gated", BERT.name)
    assert main(["check", "msse/figure4"]) == 1
    assert "hf auth login" in capsys.readouterr().out
    assert main(["fetch", "msse/figure4"]) == 1  # and the rest is fetched
    assert (Path(catalog.FETCHED) / "misc/stackoverflow").exists()
