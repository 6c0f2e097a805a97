"""Models and data from the hub: from the cache first, checked, and refused in one line."""

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from csebench.base import hub as hub_files
from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch, preflight
from csebench.plan import catalog
from csebench.plan.declarations import EncoderRef

BERT, ROBERTA = "google-bert/bert-base-uncased", "FacebookAI/roberta-base"
SIMCSE = "princeton-nlp/datasets-for-simcse"
OTHER = "somebody/encoder"  # which a test makes


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
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


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


def ref(name: str) -> EncoderRef:
    return next(ref for ref in catalog.scale("paper").encoders.values() if ref.name == name)


def weights(name: str):
    return hub_files.cached_model(ref(name)) / "model.safetensors"


# ---------------------------------------------------------------- models

each_kind_of_file = pytest.mark.parametrize(
    "name", ["config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"]
)


def is_whole(folder: Path, hub, name: str) -> bool:
    """Whether every file of a model is what the hub has."""
    files = hub.find("models", name).files
    return all((folder / file).read_bytes() == files[file] for file in hub_files.model_files(files))


def test_a_model_is_fetched_once_and_then_needs_no_connection(hub):
    folder = hub_files.fetch_model(ref(BERT))
    assert {"config.json", "vocab.txt", "model.safetensors"} <= {path.name for path in folder.iterdir()}
    hub.requests.clear()
    assert hub_files.fetch_model(ref(BERT)) == folder
    assert not hub.requests


def test_only_what_is_read_is_fetched(hub):
    folder = hub_files.fetch_model(ref(ROBERTA))
    assert not {"tf_model.h5", "pytorch_model.bin", "README.md"} & {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", [BERT, "google-bert/bert-large-uncased", ROBERTA])
def test_weights_are_those_of_the_checkpoint(name):
    """gamma and beta take their places, and every weight of the encoder is the file's."""
    from safetensors.torch import load_file

    from csebench.model.encoder import Encoder

    encoder = Encoder.load(ref(name))
    kind = "roberta" if "roberta" in name else "bert"
    stored = {
        key.removeprefix(f"{kind}.").replace(".gamma", ".weight").replace(".beta", ".bias"): value
        for key, value in load_file(weights(name)).items()
    }
    assert all(stored[key].equal(value) for key, value in encoder.model.state_dict().items() if key in stored)
    missing = {key for key in encoder.model.state_dict() if key not in stored}
    assert all(key.endswith(("position_ids", "token_type_ids")) for key in missing)


def test_distilbert_has_a_masked_lm_head_and_no_module_file():
    from csebench.model.encoder import Encoder

    generator = Encoder.load(EncoderRef.parse(needs_generator()))
    head = generator.lm_head()
    assert [name for name, _ in head.named_children()][-1] == "vocab_projector"
    import torch

    states = torch.randn(2, 3, generator.size)
    model = generator.masked_lm()
    expected = model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(states))))
    assert torch.allclose(head(states), expected)


def needs_generator() -> str:
    from csebench.plan.registry import COMPONENTS, declaration

    return declaration("rtd", COMPONENTS).params["generator"][0]


def test_a_gated_model_says_so_in_one_line(hub):
    hub.fail("gated", BERT)
    with pytest.raises(BadInput, match="access is restricted") as error:
        hub_files.fetch_model(ref(BERT))
    assert "\n" not in str(error.value)


def test_a_model_that_is_gone(hub):
    hub.fail("gone", BERT)
    with pytest.raises(BadInput, match="no such repository or commit"):
        hub_files.fetch_model(ref(BERT))


def test_an_unreachable_hub_says_which_model_and_what_to_do(hub):
    disconnect(hub)
    with pytest.raises(RunFailed, match=f"{BERT} at 86b5e0934494: not in the cache .*`csebench fetch") as error:
        hub_files.fetch_model(ref(BERT))
    assert "\n" not in str(error.value)


def test_what_the_cache_lacks_is_bad_input_where_the_hub_is_not_to_be_asked(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match=r"not in the cache .*offline mode is enabled"):
        hub_files.fetch_model(ref(BERT))
    assert not hub.requests


@each_kind_of_file
def test_a_file_with_wrong_bytes_is_fetched_anew(hub, name, capsys):
    hub.fail("wrong", BERT, name, times=1)
    folder = hub_files.fetch_model(ref(BERT))
    assert f"{name}: differs from the hash that the hub lists; downloading it again" in capsys.readouterr().err
    assert is_whole(folder, hub, BERT)


@each_kind_of_file
def test_a_hub_that_always_sends_wrong_bytes_is_a_failed_run_and_leaves_nothing(hub, name):
    hub.fail("wrong", BERT, name)
    with pytest.raises(RunFailed, match=f"{name}: two downloads differ from the hash"):
        hub_files.fetch_model(ref(BERT))
    assert hub_files.cached_model(ref(BERT)) is None


def same_length(path: Path) -> None:
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content[:-4] + b"abcd")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def in_place_of_the_link(path: Path) -> None:
    """As `sed -i` does."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-4] + b"abcd")


def both(path: Path) -> None:
    same_length(path)
    in_place_of_the_link(path)


def without_its_content(path: Path) -> None:
    path.resolve().unlink()


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@each_kind_of_file
@pytest.mark.parametrize("edit", [same_length, in_place_of_the_link, both, cut_off, without_its_content])
def test_a_file_that_was_changed_in_the_cache_is_fetched_anew(hub, name, edit):
    edit(hub_files.fetch_model(ref(BERT)) / name)
    assert is_whole(hub_files.fetch_model(ref(BERT)), hub, BERT)


def test_a_changed_file_is_never_used_without_a_connection(hub, capsys):
    same_length(hub_files.fetch_model(ref(BERT)) / "config.json")
    disconnect(hub)
    with pytest.raises(RunFailed, match="cannot be fetched"):
        hub_files.fetch_model(ref(BERT))
    assert "config.json: differs from the hash" in capsys.readouterr().err


@each_kind_of_file
def test_a_download_that_breaks_off_is_gone_on_with(hub, name):
    hub.fail("breaks", BERT, name, times=2)
    assert is_whole(hub_files.fetch_model(ref(BERT)), hub, BERT)
    assert sum("GET" in request and request.endswith(f"/{name}") for request in hub.requests) >= 3


# ---------------------------------------------------------------- whole or completed


@pytest.mark.parametrize(
    ("model", "name"),
    [(BERT, name) for name in ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json")]
    + [(ROBERTA, name) for name in ("vocab.json", "merges.txt", "model.safetensors")]
    + [(OTHER, name) for name in ("special_tokens_map.json", "spm.model", "bpe.codes", "2_Dense/config.json")],
)
def test_what_the_cache_lacks_of_a_commit_is_fetched(hub, model, name):
    hub.repositories.append(with_files_of_other_tokenizers(hub))
    wanted = EncoderRef(name=model, revision=hub.find("models", model).commit)
    folder = hub_files.fetch_model(wanted)
    (folder / name).unlink()
    assert hub_files.cached_model(wanted) is None
    assert (hub_files.fetch_model(wanted) / name).exists() and is_whole(folder, hub, model)
    (folder / name).unlink()
    disconnect(hub)
    with pytest.raises(RunFailed, match="cannot be fetched"):
        hub_files.fetch_model(wanted)


def with_files_of_other_tokenizers(hub):
    from hub_server import Repository

    names = ("special_tokens_map.json", "spm.model", "bpe.codes", "2_Dense/config.json", "2_Dense/pytorch_model.bin")
    return Repository("models", OTHER, "1" * 40, hub.find("models", BERT).files | {name: b"{} " for name in names})


@pytest.fixture
def cache_without_a_list(hub, cache, monkeypatch):
    """As other programs, or older versions of huggingface_hub, fill it."""
    from huggingface_hub import _tree_cache

    hub_files.fetch_model(ref(BERT))
    shutil.rmtree(next(cache.glob("*/trees")))
    monkeypatch.setattr(_tree_cache, "_IN_MEMORY_TREE_CACHE", {})
    hub.requests.clear()


def test_a_cache_without_a_list_of_its_files_is_checked_and_not_fetched_again(hub, cache_without_a_list):
    assert hub_files.cached_model(ref(BERT)) is None
    assert is_whole(hub_files.fetch_model(ref(BERT)), hub, BERT)
    assert [request for request in hub.requests if "/tree/" not in request] == []


def test_a_cache_without_a_list_of_its_files_is_refused_without_a_connection(hub, cache_without_a_list):
    disconnect(hub)
    with pytest.raises(RunFailed, match=r"with the list of its files, and cannot.*`csebench fetch") as error:
        hub_files.fetch_model(ref(BERT))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("fault", "reason"), [("gone", "no such repository"), ("denied", "no token was sent")])
def test_a_cache_without_a_list_of_its_files_hides_no_refusal_of_the_hub(hub, cache_without_a_list, fault, reason):
    hub.fail(fault, BERT)
    with pytest.raises(BadInput, match=reason):
        hub_files.fetch_model(ref(BERT))


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_weights_in_shards(hub, kind):
    import torch
    from hub_models import sharded
    from hub_server import Repository
    from safetensors.torch import load

    from csebench.model.encoder import Encoder

    whole = hub.find("models", BERT).files
    files = {name: content for name, content in whole.items() if not name.startswith(("model.", "pytorch_model."))}
    files |= sharded(load(whole["model.safetensors"]), kind)
    hub.repositories.append(Repository("models", OTHER, "1" * 40, files))
    shards = EncoderRef(name=OTHER, revision="1" * 40)
    weights = Encoder.load(shards).model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in Encoder.load(ref(BERT)).model.state_dict().items())
    (hub_files.cached_model(shards) / next(name for name in files if "-00002-of-" in name)).unlink()
    assert hub_files.cached_model(shards) is None


@pytest.mark.parametrize(
    ("listed", "read"),
    [
        (
            "config.json model.safetensors pytorch_model.bin tf_model.h5 model.onnx README.md",
            "config.json model.safetensors",
        ),
        ("config.json pytorch_model.bin flax_model.msgpack modeling.py", "config.json pytorch_model.bin"),
        (
            "model.safetensors onnx/config.json onnx/model.safetensors checkpoint-500/model.safetensors",
            "model.safetensors",
        ),
        (
            "model.safetensors modules.json 1_Pooling/config.json 2_Dense/pytorch_model.bin 2_Dense/model.safetensors"
            " 3_Dense/pytorch_model.bin",
            "model.safetensors modules.json 1_Pooling/config.json 2_Dense/model.safetensors 3_Dense/pytorch_model.bin",
        ),
        ("model.safetensors adapter_config.json adapter_model.safetensors training_args.bin", "model.safetensors"),
    ],
)
def test_one_format_of_weights_is_read_with_configuration_and_tokenizer(listed, read):
    assert hub_files.model_files(listed.split()) == read.split()


def test_a_model_of_sentence_transformers_has_all_its_modules_and_each_is_checked(hub, tiny_bert, tmp_path):
    from hub_server import Repository
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from csebench.score.models import open_model

    word = modules.Transformer(str(tiny_bert))
    dense = modules.Dense(size := word.get_embedding_dimension(), 5)
    saved = tmp_path / "st"
    SentenceTransformer(modules=[word, modules.Pooling(size), dense], device="cpu").save(str(saved))
    files = {str(path.relative_to(saved)): path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    hub.repositories.append(Repository("models", OTHER, "1" * 40, files))
    wanted = open_model(str(saved)).embed(["a sentence"])
    assert (open_model(f"{OTHER}@{'1' * 40}").embed(["a sentence"]) == wanted).all()
    folder = hub_files.cached_model(EncoderRef(name=OTHER, revision="1" * 40))
    same_length(folder / "1_Pooling/config.json")
    same_length(folder / "2_Dense/model.safetensors")
    assert (open_model(f"{OTHER}@{'1' * 40}").embed(["a sentence"]) == wanted).all()
    disconnect(hub)
    assert (open_model(f"{OTHER}@{'1' * 40}").embed(["a sentence"]) == wanted).all()


# ---------------------------------------------------------------- a hub that is busy, or refuses

each_request = pytest.mark.parametrize("name", ["list", "config.json", "vocab.txt", "model.safetensors"])


@each_request
def test_a_busy_hub_is_waited_for_as_long_as_it_asks(hub, name, pauses, capsys):
    hub.fail("busy", BERT, name, times=2)
    assert is_whole(hub_files.fetch_model(ref(BERT)), hub, BERT)
    assert sum(pauses) >= 14
    assert "the hub asks to wait for 7 seconds (HTTP 429)" in capsys.readouterr().err


@each_request
def test_a_wait_that_is_too_long_is_a_failed_run(hub, name, pauses):
    hub.fail("busy", BERT, name)
    hub.retry_after = "3600"
    with pytest.raises(RunFailed, match="asks to wait for 3600 seconds, more than 300"):
        hub_files.fetch_model(ref(BERT))
    assert not pauses


@each_request
def test_a_hub_that_is_not_available_is_tried_again_with_growing_pauses(hub, name, pauses):
    hub.fail("unavailable", BERT, name, times=3)
    assert is_whole(hub_files.fetch_model(ref(BERT)), hub, BERT)
    assert pauses and pauses == sorted(pauses)


@each_request
def test_a_hub_that_stays_away_is_a_failed_run_in_one_line(hub, name):
    hub.fail("unavailable", BERT, name)
    with pytest.raises(RunFailed, match=r"cannot be fetched.*503") as error:
        hub_files.fetch_model(ref(BERT))
    assert "\n" not in str(error.value)


@each_request
@pytest.mark.parametrize("token", [None, "hf_0123456789"])
def test_a_refusal_says_whether_a_token_was_sent_and_how_to_set_one(hub, name, token, monkeypatch):
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.fail("denied", BERT, name)
    with pytest.raises(BadInput, match=r"HF_TOKEN.*`hf auth login`") as error:
        hub_files.fetch_model(ref(BERT))
    assert ("; a token was sent" if token else "no token was sent") in str(error.value)
    assert "hf_0123456789" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("fault", ["unavailable", "wrong", "breaks", "busy"])
def test_a_hub_that_fails_ends_a_scoring_with_exit_code_1(hub, fault, smoke_data, tmp_path):
    from csebench.cli import main

    hub.fail(fault, BERT, "config.json")
    hub.retry_after = "3600"
    model = f"{BERT}@{ref(BERT).revision}"
    command = ["evaluate", "--model", model, "--pooler", "avg", "--evaluators", "stsb_dev"]
    assert main([*command, "--data", str(smoke_data), "--out", str(tmp_path / "out.json")]) == 1
    assert not (tmp_path / "out.json").exists()


def test_a_download_that_always_breaks_off_ends_in_one_line_and_exit_code_1(hub, capsys, tmp_path):
    from csebench.cli import main

    hub.fail("breaks", SIMCSE, "wiki1m*")
    assert main(["fetch", "wiki", "--out", str(tmp_path / "root")]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "cannot be fetched" in err
    assert not list((tmp_path / "root").rglob("*.txt"))


# ---------------------------------------------------------------- data


@pytest.fixture
def registered(monkeypatch, smoke_data):
    """The registry with the sums of the small files, and counts beside them."""
    sums = {"wiki1m-simcse": "wiki/smoke.txt", "stsb-dev": "downstream/STS/STSBenchmark/sts-dev.csv"}
    known = {
        name: catalog.dataset(name).model_copy(
            update={"sha256": hashlib.sha256((smoke_data / path).read_bytes()).hexdigest()}
        )
        for name, path in sums.items()
    }
    monkeypatch.setattr(fetch, "dataset", lambda name: known.get(name) or catalog.dataset(name))
    return known


def test_a_pinned_corpus_in_the_cache_needs_no_connection(hub, registered, tmp_path):
    fetch.fetch_source("wiki", tmp_path / "one")
    hub.requests.clear()
    fetch.fetch_source("wiki", tmp_path / "two")
    assert not hub.requests
    assert (tmp_path / "two" / registered["wiki1m-simcse"].path).exists()


def test_a_corpus_with_wrong_bytes_is_fetched_anew(hub, registered, tmp_path):
    hub.fail("wrong", SIMCSE, "wiki1m*", times=1)
    fetch.fetch_source("wiki", tmp_path)
    assert (tmp_path / registered["wiki1m-simcse"].path).exists()


def test_sts_b_dev_is_checked_when_it_is_fetched(registered, smoke_data, tmp_path):
    shutil.copyfile(smoke_data / "counts.yaml", tmp_path / "counts.yaml")
    registered["stsb-dev"] = registered["stsb-dev"].model_copy(update={"sha256": "0" * 64})
    with pytest.raises(RunFailed, match=r"sts-dev\.csv: sha256"):
        fetch.fetch_source("senteval", tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["counts.yaml"]


def test_test_sets_are_counted_when_they_are_fetched(registered, tmp_path):
    with pytest.raises(RunFailed, match="another release"):
        fetch.fetch_source("senteval", tmp_path)  # the project's own pairs, without their counts
    assert not (tmp_path / "downstream").exists()


@pytest.fixture
def served(hub, registered, smoke_data, monkeypatch, tmp_path):
    """Sources on servers of their own, which is the loopback hub."""
    import hub_data

    shutil.copyfile(smoke_data / "counts.yaml", tmp_path / "counts.yaml")
    known = fetch.sources() | hub_data.served(hub)
    monkeypatch.setattr(fetch, "sources", lambda: known)
    return known


@pytest.mark.parametrize("name", ["senteval", "beir:scifact", "beir:cqadupstack", "imdb", "stackoverflow"])
def test_a_source_brings_the_files_of_the_data_root(served, smoke_data, tmp_path, name):
    """Twice: what an earlier version brought is replaced."""
    source = served[name]
    for _ in range(2):
        fetch.fetch_source(name, tmp_path)
    assert (tmp_path / source.marker).exists() and not list(tmp_path.glob("*.part"))
    folder = {"beir:scifact": "beir/smoke"}.get(name, source.folder)
    brought = {path.relative_to(tmp_path / source.folder) for path in (tmp_path / source.folder).rglob("*.*")}
    assert {path.relative_to(smoke_data / folder) for path in (smoke_data / folder).rglob("*.*")} <= brought


def test_an_archive_that_broke_off_is_fetched_again(hub, served, tmp_path):
    hub.fail("breaks", "beir/scifact.zip", times=1)
    with pytest.raises(RunFailed, match="Run the command again"):
        fetch.fetch_source("beir:scifact", tmp_path)
    assert not list(tmp_path.glob("*.part")) and not (tmp_path / "beir").exists()
    fetch.fetch_source("beir:scifact", tmp_path)


def test_what_a_killed_download_left_is_overwritten(served, tmp_path):
    left = tmp_path / ".beir:scifact.part" / "beir" / "scifact"
    left.mkdir(parents=True)
    (left / "corpus.jsonl").write_text("half")
    (left / "more.jsonl").write_text("{}")
    fetch.fetch_source("beir:scifact", tmp_path)
    assert not (tmp_path / "beir/scifact/more.jsonl").exists()


def test_an_archive_with_wrong_bytes_is_a_failed_run(hub, served, tmp_path):
    hub.fail("wrong", "beir/scifact.zip")
    with pytest.raises(RunFailed, match=r"sha256 is .* fetch it again"):
        fetch.fetch_source("beir:scifact", tmp_path)
    assert not (tmp_path / "beir").exists()


def archive_with(name: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    return content.getvalue()


@pytest.mark.parametrize("name", ["../outside", "aclImdb/../../outside", "link"])
def test_an_archive_whose_files_leave_its_folder_is_refused(hub, served, tmp_path, name):
    hub.archives["files/aclImdb_v1.tar.gz"] = content = archive_with(name)
    stated = f"sha256:{hashlib.sha256(content).hexdigest()}"
    wanted = served["imdb"].downloads[0].model_copy(update={"sum": stated})
    served["imdb"] = served["imdb"].model_copy(update={"downloads": [wanted]})
    with pytest.raises(RunFailed, match="imdb is not what was expected"):
        fetch.fetch_source("imdb", tmp_path)
    assert not list(tmp_path.rglob("outside")) and not list(tmp_path.rglob("link"))


def test_imdb_is_read_from_its_authors_archive(served, smoke_data, tmp_path):
    from evaluators import clusters

    fetch.fetch_source("imdb", tmp_path)
    assert sorted(clusters.imdb(tmp_path)) == sorted(clusters.imdb(smoke_data))


# ---------------------------------------------------------------- what is needed


def test_needs_of_pages_are_their_models_and_data(monkeypatch):
    """DiffCSE's generator and MSSE's translators as well as the encoders, each once."""
    from csebench.plan import targets

    monkeypatch.delenv("CSEBENCH_DATA", raising=False)
    pages = [page for name in ("msse/table7", "infocse/table3") for page in targets.parse_target(name, "paper")]
    found = preflight.needs(pages)
    kinds = {need.name: need.kind for need in found}
    assert len(found) == len(kinds)
    assert kinds[BERT] == "encoder" and kinds["distilbert/distilbert-base-uncased"] == "generator"
    assert kinds["Helsinki-NLP/opus-mt-en-de"] == kinds["Helsinki-NLP/opus-mt-de-en"] == "translator"
    assert {"wiki", "senteval", "beir:scifact"} <= {*kinds}


def test_a_model_is_reachable_with_its_size_then_here(hub):
    need = preflight.Need("encoder", BERT, ref(BERT))
    state = preflight.state_of(need, "paper")
    read = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "model.safetensors")
    files = hub.find("models", BERT).files
    assert (state.state, state.size) == (preflight.REACHABLE, sum(len(files[name]) for name in read))
    hub_files.fetch_model(ref(BERT))
    assert preflight.state_of(need, "paper").state == preflight.HERE


def test_a_gated_model_is_missing_before_anything_starts(hub):
    hub.fail("gated", BERT)
    state = preflight.state_of(preflight.Need("encoder", BERT, ref(BERT)), "paper")
    assert state.state == preflight.MISSING and "hf auth login" in state.why
