"""Models and data from the hub: from the cache first, checked, and refused in one line."""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import hub_data
import pytest
import torch
from hub_models import pickled, to_json
from hub_project import small_sums
from hub_server import Repository
from safetensors.torch import load, save

from csebench.base import caches
from csebench.base import hub as hub_files
from csebench.base.errors import BadInput, RunFailed
from csebench.cli import main
from csebench.data import fetch, preflight
from csebench.model.encoder import Encoder
from csebench.plan import catalog, targets, where_data_is
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import COMPONENTS, declaration

BERT = next(ref for ref in catalog.scale("paper").encoders.values() if ref.name == "google-bert/bert-base-uncased")
MINI = catalog.scale("small").encoders["bert-mini"]
OTHER = EncoderRef(name="somebody/encoder", revision="1" * 40)  # which a test makes
SIMCSE = "princeton-nlp/datasets-for-simcse"
FILES = ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
REQUESTS = ("list", "config.json", "model.safetensors")  # for a small file and a large one


@pytest.fixture(autouse=True)
def cache(hub, tmp_path, monkeypatch):
    """An empty cache, and huggingface_hub pointed at the loopback hub, without a token."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    url = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr("datasets.config.HF_ENDPOINT", hub.endpoint)
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


def is_whole(folder: Path, hub, ref: EncoderRef = BERT) -> bool:
    """Whether every file of a model is what the hub has."""
    files = hub.find("models", ref.name).files
    return all((folder / file).read_bytes() == files[file] for file in hub_files.model_files(files))


# ---------------------------------------------------------------- models


def test_a_model_is_fetched_once_and_then_needs_no_connection(hub):
    folder = hub_files.fetch_model(BERT)
    assert {path.name for path in folder.iterdir()} == {*FILES}  # and no weights of another format
    hub.requests.clear()
    assert hub_files.fetch_model(BERT) == folder and is_whole(folder, hub) and not hub.requests


def test_weights_are_those_of_the_checkpoint(hub):
    """gamma and beta take their places, and every weight of the encoder is the file's."""
    weights = Encoder.load(BERT).model.state_dict()
    stored = {
        key.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias"): value
        for key, value in load(hub.find("models", BERT.name).files["model.safetensors"]).items()
    }
    assert all(value.equal(stored[key]) for key, value in weights.items() if key in stored)
    assert all(key.endswith(("position_ids", "token_type_ids")) for key in weights.keys() - stored)


def test_fetched_weights_confirm_or_correct_the_stated_sum(hub, tmp_path, monkeypatch):
    need = preflight.Need("encoder", MINI.name, MINI)
    assert "not that of data/weights.yaml" in preflight.weights_note(need)
    content = hub.find("models", MINI.name).files["pytorch_model.bin"]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.yaml").write_text(f"{MINI.name}: {hashlib.sha256(content).hexdigest()}\n")
    monkeypatch.setattr(preflight, "ROOT", tmp_path)
    assert preflight.weights_note(need) == "; its weights are those of data/weights.yaml"


def test_distilbert_has_a_masked_lm_head_and_no_module_file():
    generator = Encoder.load(EncoderRef.parse(declaration("rtd", COMPONENTS).params["generator"][0]))
    head, model = generator.lm_head(), generator.masked_lm()
    assert [name for name, _ in head.named_children()][-1] == "vocab_projector"
    states = torch.randn(2, 3, generator.size)
    expected = model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(states))))
    assert torch.allclose(head(states), expected)


REFUSED = [("gated", "*", BadInput, "access is restricted .*no token was sent"), ("gone", "list", BadInput, "no such")]
REFUSED += [("denied", "*", BadInput, "; a token was sent")]
REFUSED += [("denied", name, BadInput, r"no token was sent.*HF_TOKEN.*`hf auth login`") for name in REQUESTS]
REFUSED += [("unavailable", name, RunFailed, r"not in the cache .*503.*`csebench fetch") for name in REQUESTS]
REFUSED += [("busy", name, RunFailed, r"asks to wait for 3600 seconds, more than 300") for name in REQUESTS]
REFUSED += [("wrong", name, RunFailed, f"{name}: two downloads differ from the hash") for name in REQUESTS[1:]]


@pytest.mark.parametrize(("fault", "name", "error", "message"), REFUSED)
def test_a_refusal_is_one_line_with_its_reason(hub, fault, name, error, message, pauses, monkeypatch):
    if "a token" in message and "no token" not in message:
        monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    hub.fail(fault, BERT.name, name)
    hub.retry_after = "3600"
    with pytest.raises(error, match=f"^.*{BERT.name}.*{message}") as refusal:
        hub_files.fetch_model(BERT)
    assert "\n" not in str(refusal.value) and "hf_0123456789" not in str(refusal.value)
    assert bool(pauses) == (fault == "unavailable")  # what may pass is tried again, with pauses
    assert hub_files.cached_model(BERT) is None


@pytest.mark.parametrize(
    ("fault", "times", "said"),
    [
        ("wrong", 1, "{name}: differs from the hash that the hub lists; downloading it again"),
        ("breaks", 2, ""),
        ("busy", 2, "the hub asks to wait for 7 seconds (HTTP 429)"),
        ("unavailable", 3, ""),
    ],
)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_fault_that_passes_is_waited_for(hub, fault, times, said, name, pauses, capsys):
    if name == "list" and fault in ("wrong", "breaks"):
        return
    hub.fail(fault, BERT.name, name, times)
    assert is_whole(hub_files.fetch_model(BERT), hub)
    assert not hub.faults[0].left and said.format(name=name) in capsys.readouterr().err
    assert sum(pauses) >= {"busy": 14, "unavailable": 3}.get(fault, 0) and pauses == sorted(pauses)


def test_what_the_cache_lacks_is_bad_input_where_the_hub_is_not_to_be_asked(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match=r"not in the cache .*offline mode is enabled"):
        hub_files.fetch_model(BERT)
    assert not hub.requests


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/name", "no such folder, and not a name of the hub"),
        (f"{OTHER.name}@{'2' * 40}", "no such repository or commit"),
        (f"{OTHER.name}@{OTHER.revision}", "the hub has no weights of it"),
    ],
)
def test_a_name_that_cannot_be_a_model_is_bad_input(hub, name, message):
    publish(hub, {"config.json": b"{}"})
    with pytest.raises(BadInput, match=message):
        hub_files.fetch_model(EncoderRef.parse(name))
    with pytest.raises(BadInput, match=r"the hub has no such file \(vocab.txt\)"):
        hub_files.fetch(OTHER.name, OTHER.revision, "model", "a vocabulary", ["vocab.txt"])


def test_a_name_without_a_commit_is_the_main_branch_and_a_folder_may_have_an_at(hub, tmp_path):
    publish(hub, {name: b"{}" for name in FILES})
    assert (hub_files.fetch_model(EncoderRef.parse(OTHER.name)) / "config.json").exists()
    assert EncoderRef.parse(OTHER.name).revision == "main"
    folder = tmp_path / "model@home"
    folder.mkdir()
    (folder / "config.json").touch()
    assert hub_files.fetch_model(EncoderRef.parse(str(folder))) == folder


def change(path: Path) -> None:
    """To as many bytes, with the same time."""
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content[:-4] + b"abcd")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(path: Path) -> None:
    """The link into the cache by a file, as `sed -i` does."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-4] + b"abcd")


@pytest.mark.parametrize(("edit", "name"), [(change, "model.safetensors"), (replace, "config.json")])
def test_a_file_that_was_changed_in_the_cache_is_fetched_anew(hub, name, edit):
    edit(hub_files.fetch_model(BERT) / name)
    assert is_whole(hub_files.fetch_model(BERT), hub)


def test_a_changed_file_is_never_used_without_a_connection(hub, capsys):
    change(hub_files.fetch_model(BERT) / "config.json")
    disconnect(hub)
    with pytest.raises(RunFailed, match="cannot be fetched"):
        hub_files.fetch_model(BERT)
    assert "config.json: differs from the hash" in capsys.readouterr().err


def test_what_the_cache_lacks_of_a_commit_is_fetched(hub):
    names = ("merges.txt", "spm.model", "2_Dense/config.json", "2_Dense/pytorch_model.bin")
    publish(hub, hub.find("models", BERT.name).files | {name: b"{} " for name in names})
    folder = hub_files.fetch_model(OTHER)
    for name in (*FILES, *names):
        (folder / name).unlink()
        assert hub_files.cached_model(OTHER) is None
        assert is_whole(hub_files.fetch_model(OTHER), hub, OTHER)


@pytest.fixture
def cache_without_a_list(hub, cache, monkeypatch):
    """As other programs, or older versions of huggingface_hub, fill it."""
    from huggingface_hub import _tree_cache

    hub_files.fetch_model(BERT)
    shutil.rmtree(next(cache.glob("*/trees")))
    monkeypatch.setattr(_tree_cache, "_IN_MEMORY_TREE_CACHE", {})
    hub.requests.clear()


def test_a_cache_without_a_list_of_its_files_is_checked_and_not_fetched_again(hub, cache_without_a_list):
    assert hub_files.cached_model(BERT) is None
    assert is_whole(hub_files.fetch_model(BERT), hub)
    assert all("/tree/" in request for request in hub.requests)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [("denied", BadInput, "no token was sent"), (None, RunFailed, "with the list of its files, and cannot")],
)
def test_a_cache_without_a_list_of_its_files_hides_no_refusal(hub, cache_without_a_list, fault, error, message):
    if fault is None:
        disconnect(hub)
    else:
        hub.fail(fault, BERT.name)
    with pytest.raises(error, match=message):
        hub_files.fetch_model(BERT)


def test_weights_in_shards(hub):
    whole = hub.find("models", BERT.name).files
    weights = load(whole["model.safetensors"])
    halves = {f"model-0000{i + 1}-of-00002.safetensors": sorted(weights)[i::2] for i in range(2)}
    index = {"metadata": {}, "weight_map": {name: shard for shard, half in halves.items() for name in half}}
    files = {name: content for name, content in whole.items() if not name.startswith(("model.", "pytorch_model."))}
    files |= {shard: save({name: weights[name] for name in half}) for shard, half in halves.items()}
    publish(hub, files | {"model.safetensors.index.json": to_json(index)})
    expected = Encoder.load(BERT).model.state_dict()
    assert all(value.equal(expected[name]) for name, value in Encoder.load(OTHER).model.state_dict().items())
    (hub_files.cached_model(OTHER) / [*halves][1]).unlink()
    assert hub_files.cached_model(OTHER) is None


@pytest.mark.parametrize(
    ("read", "other"),
    [
        ("config.json model.safetensors", "pytorch_model.bin tf_model.h5 model.onnx README.md"),
        ("config.json pytorch_model.bin", "flax_model.msgpack modeling.py training_args.bin"),
        ("model.safetensors", "onnx/config.json onnx/model.safetensors checkpoint-500/model.safetensors"),
        (
            "model.safetensors modules.json 1_Pooling/config.json 2_Dense/model.safetensors 3_Dense/pytorch_model.bin",
            "2_Dense/pytorch_model.bin",
        ),
        ("model.safetensors", "adapter_config.json adapter_model.safetensors"),
    ],
)
def test_one_format_of_weights_is_read_with_configuration_and_tokenizer(read, other):
    assert sorted(hub_files.model_files([*other.split(), *read.split()])) == sorted(read.split())


def test_a_model_of_sentence_transformers_has_all_its_modules_and_each_is_checked(hub, tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from csebench.score.models import open_model

    word = modules.Transformer(str(tiny_bert))
    dense = modules.Dense(size := word.get_embedding_dimension(), 5)
    saved = tmp_path / "st"
    SentenceTransformer(modules=[word, modules.Pooling(size), dense], device="cpu").save(str(saved))
    publish(hub, {str(p.relative_to(saved)): p.read_bytes() for p in saved.rglob("*") if p.is_file()})
    folder = hub_files.fetch_model(OTHER)
    change(folder / "1_Pooling/config.json")
    change(folder / "2_Dense/model.safetensors")
    embedded = open_model(f"{OTHER.name}@{OTHER.revision}").embed(["a sentence"])
    assert (embedded == open_model(str(saved)).embed(["a sentence"])).all()


# ---------------------------------------------------------------- scoring a model of the hub


def evaluate(model: str, smoke_data, out: Path, pooler="avg") -> int:
    command = ["evaluate", "--model", model, "--pooler", pooler, "--evaluators", "stsb_dev"]
    return main([*command, "--data", str(smoke_data), "--out", str(out)])


def test_a_released_checkpoint_is_scored_with_its_own_pooler(hub, smoke_data, tmp_path):
    """As DiffCSE's authors saved it: the class of their script, with a prefix, a head, a discriminator, and the buffer
    `position_ids` of its day, in pytorch_model.bin only."""
    files = {name: content for name, content in hub.find("models", BERT.name).files.items() if "model." not in name}
    weights = load(hub.find("models", BERT.name).files["model.safetensors"])
    weights |= {f"discriminator.{name}": weight + 1 for name, weight in weights.items()}
    weights |= {"mlp.net.0.weight": torch.ones(32, 32), "bert.embeddings.position_ids": torch.arange(512)[None]}
    config = json.loads(files["config.json"]) | {"architectures": ["BertForCL"]}
    publish(hub, files | {"config.json": to_json(config), "pytorch_model.bin": pickled(weights)})
    values = set()
    for pooler in ("cls", "cls_before_pooler"):
        assert evaluate(OTHER.name, smoke_data, tmp_path / "out.json", pooler) == 0
        written = json.loads((tmp_path / "out.json").read_text())
        assert written["evaluations"][0]["model_commit"] == OTHER.revision
        values.add(written["scores"][0]["value"])
    assert len(values) == 2


# ---------------------------------------------------------------- data


@pytest.fixture
def root(smoke_data, tmp_path):
    """The data root of what is fetched, with counts of the small files."""
    (root := tmp_path / catalog.FETCHED).mkdir(parents=True)
    shutil.copy(smoke_data / "counts.yaml", root)
    return root


@pytest.fixture
def registered(monkeypatch, root):
    """The registry with the sums of the small files."""
    known = catalog.datasets() | {
        name: catalog.dataset(name).model_copy(update={"sha256": value}) for name, value in small_sums().items()
    }
    monkeypatch.setattr(catalog, "datasets", lambda: known)
    return known


@pytest.fixture
def served(hub, registered, monkeypatch):
    """Sources on servers of their own, which is the loopback hub."""
    known = where_data_is.sources_file()
    known = known.model_copy(update={"sources": known.sources | hub_data.served(hub)})
    monkeypatch.setattr(where_data_is, "sources_file", lambda: known)
    return known.sources


def test_a_pinned_corpus_in_the_cache_needs_no_connection(hub, registered, tmp_path):
    hub.fail("wrong", SIMCSE, "wiki1m*", times=1)
    fetch.fetch_source("wiki", tmp_path / "one")
    hub.requests.clear()
    fetch.fetch_source("wiki", tmp_path / "two")
    assert not hub.requests and (tmp_path / "two" / registered["wiki1m-simcse"].path).exists()


def test_a_download_that_always_breaks_off_ends_in_one_line_and_exit_code_1(hub, capsys, tmp_path):
    hub.fail("breaks", SIMCSE, "wiki1m*")
    assert main(["fetch", "wiki", "--out", str(tmp_path / "root")]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "cannot be fetched" in err and not list((tmp_path / "root").rglob("*.*"))


@pytest.mark.parametrize("reason", ["another sha256", "without their counts"])
def test_test_sets_are_checked_when_they_are_fetched(registered, root, reason):
    """STS-B dev by its hash, all by their counts, which the project's own pairs need."""
    if reason == "another sha256":
        registered["stsb-dev"] = registered["stsb-dev"].model_copy(update={"sha256": "0" * 64})
    else:
        (root / "counts.yaml").unlink()
    before = [*root.iterdir()]
    with pytest.raises(RunFailed, match=r"sts-dev\.csv: sha256|another release"):
        fetch.fetch_source("senteval", root)
    assert [*root.iterdir()] == before


@pytest.mark.parametrize("name", ["senteval", "beir:scifact", "beir:cqadupstack", "imdb", "stackoverflow"])
def test_a_source_brings_the_files_of_the_data_root(served, smoke_data, root, name):
    """In place of what an earlier version, or a killed download, left."""
    source = served[name]
    part = root / f".{name}.part"
    for old in (part / source.folder / "left.txt", part / source.marker, root / source.marker):
        old.parent.mkdir(parents=True, exist_ok=True)
        old.write_text("half")
    fetch.fetch_source(name, root)
    wanted, made = smoke_data / {"beir:scifact": "beir/smoke"}.get(name, source.folder), root / source.folder
    brought = {path.relative_to(made) for path in made.rglob("*.*")}
    assert {path.relative_to(wanted) for path in wanted.rglob("*.*")} <= brought and Path("left.txt") not in brought
    assert (root / source.marker).read_text(encoding="utf-8") != "half" and not part.exists()


def test_imdb_is_read_from_its_authors_archive(served, smoke_data, root):
    fetch.fetch_source("imdb", root)
    for name in ("misc/imdb/train.tsv", "misc/imdb/test.tsv"):
        head, *rows = (smoke_data / name).read_text(encoding="utf-8").splitlines()
        in_order = sorted(rows, key=lambda row: [int(number) for number in row.split("\t")[:3]])
        assert (root / name).read_text(encoding="utf-8").splitlines() == [head, *in_order]


def test_what_says_that_a_source_is_whole_comes_last(served, root, monkeypatch):
    moved = []
    monkeypatch.setattr("os.replace", lambda old, new: (moved.append(new), shutil.move(old, new)))
    fetch.fetch_source("beir:scifact", root)
    assert moved[-1] == root / "beir/scifact/source.json"


@pytest.mark.parametrize(("fault", "message"), [("breaks", "bytes are missing"), ("wrong", "sha256 is")])
def test_an_archive_that_is_not_whole_leaves_nothing_and_can_be_fetched_again(hub, served, root, fault, message):
    hub.fail(fault, "files/scifact.zip", times=1)
    with pytest.raises(RunFailed, match=message):
        fetch.fetch_source("beir:scifact", root)
    assert [path.name for path in root.iterdir()] == ["counts.yaml"]
    fetch.fetch_source("beir:scifact", root)


@pytest.mark.parametrize("name", ["../outside", "aclImdb/../../outside", "link"])
def test_an_archive_whose_files_leave_its_folder_is_refused(hub, served, root, name):
    content, member = io.BytesIO(), tarfile.TarInfo(name)
    if name == "link":
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        tar.addfile(member)
    hub.archives["files/aclImdb_v1.tar.gz"] = content.getvalue()
    served["imdb"] = hub_data.served(hub)["imdb"]
    with pytest.raises(RunFailed, match="imdb is not what was expected"):
        fetch.fetch_source("imdb", root)
    assert not [path for path in root.parent.rglob("*") if path.name in ("outside", "link")]


def test_a_data_set_of_mteb_with_wrong_bytes_is_refused_and_fetched_again(hub):
    need = preflight.Need("mteb", "Banking77Classification")
    state, files = preflight.state_of(need, "paper"), hub.find("datasets", "mteb/banking77").files
    assert (state.state, state.size) == ("reachable", sum(map(len, files.values())))
    hub.fail("wrong", "mteb/banking77", "train.jsonl", times=1)
    with pytest.raises(RunFailed, match=r"train\.jsonl differs from the hash"):
        fetch.load_task(fetch.mteb_task(need.name))
    assert preflight.state_of(need, "paper").state == "reachable"
    fetch.load_task(fetch.mteb_task(need.name))
    assert preflight.state_of(need, "paper").state == "here"


# ---------------------------------------------------------------- what is needed


@pytest.mark.parametrize(
    ("target", "needs"),
    [
        ("msse/table6", f"{BERT.name} Helsinki-NLP/opus-mt-de-en Helsinki-NLP/opus-mt-en-de senteval wiki"),
        ("infocse/table11", f"{BERT.name} distilbert/distilbert-base-uncased senteval wiki"),
        ("msse/table8", "misc/flickr30k/captions.token"),
        ("informin_cl/figure3", f"{BERT.name} nli senteval wiki"),
    ],
)
def test_needs_of_a_page_are_its_models_and_data(target, needs):
    assert [need.name for need in preflight.needs(targets.parse_target(target, "paper"))] == needs.split()


def test_what_a_plan_needs_is_looked_up_without_a_connection(hub):
    pages = targets.parse_target("msse/figure5", "paper")
    states = preflight.check(pages, ask=False)
    assert {(state.state, state.size) for state in states} == {("reachable", None)}
    assert len([need for need in preflight.needs(pages) if need.kind == "mteb"]) == 5
    assert "mteb" not in {state.need.kind for state in states}
    of_mini = preflight.check(targets.parse_target("micse/table2", "mini"), ask=False)
    assert [state.state for state in of_mini if state.need.kind == "encoder"] == ["here"]  # a folder of the project
    assert not [request for request in hub.requests if "/tree/" in request or "resolve" in request]


def test_check_lists_what_fetch_brings(hub, served, capsys):
    """Of pages with a source of two files, with translators, and with a file that nobody publishes."""
    pages, captions = ["msse/figure4", "table8"], "misc/flickr30k/captions.token"

    def check() -> dict:
        assert main(["check", *pages, "--json"]) == 0  # what has no source is planned as missing
        return {entry["name"]: (entry["state"], entry["bytes"]) for entry in json.loads(capsys.readouterr().out)}

    def last_line() -> str:
        assert main(["check", *pages]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    size = lambda *contents: ("reachable", sum(map(len, contents)))  # noqa: E731
    model, simcse = hub.find("models", BERT.name).files, hub.find("datasets", SIMCSE).files
    listed = check()
    assert listed[BERT.name] == size(*(model[name] for name in FILES))
    assert listed["wiki"] == size(simcse["wiki1m_for_simcse.txt"])
    assert listed["stackoverflow"] == size(*(c for name, c in hub.archives.items() if "StackOverflow" in name))
    assert listed.pop(captions) == ("missing", None)
    total = sum(size for _, size in listed.values())
    assert re.fullmatch(rf"disk: {total / 10**6:.1f} MB to fetch; .* free: enough", last_line())
    for page in pages:
        assert main(["fetch", page]) == 0
    assert f"{captions}: " in capsys.readouterr().out
    assert all(state == "here" for name, (state, _) in check().items() if name != captions)
    assert "disk: 0.0 MB to fetch" in last_line()
    (hub_files.cached_model(BERT) / "vocab.txt").resolve().unlink()
    (Path(catalog.FETCHED) / "misc/stackoverflow/label_StackOverflow.txt").unlink()
    again = check()
    assert (again[BERT.name], again["stackoverflow"]) == (size(model["vocab.txt"]), listed["stackoverflow"])


def test_what_is_restricted_is_missing_before_anything_starts(hub, served, capsys):
    hub.fail("gated", BERT.name)
    assert main(["check", "msse/figure4"]) == 1
    assert "hf auth login" in capsys.readouterr().out
    assert main(["fetch", "msse/figure4"]) == 1  # and the rest is fetched
    assert (Path(catalog.FETCHED) / "misc/stackoverflow").exists()
