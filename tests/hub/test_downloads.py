"""Models and data from the hub: from the cache first, checked, gone on with, and refused in one line."""

import hashlib
import shutil

import pytest

from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch, needs
from csebench.data import hub as hub_files
from csebench.plan import catalog
from csebench.plan.schema import Download, EncoderRef

BERT, ROBERTA = "google-bert/bert-base-uncased", "FacebookAI/roberta-base"


@pytest.fixture(autouse=True)
def cache(hub, tmp_path, monkeypatch):
    """An empty cache, and huggingface_hub pointed at the loopback hub without its pauses between attempts."""
    from huggingface_hub import constants
    from huggingface_hub.utils import _http

    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    url = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(_http.time, "sleep", lambda _: None)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "cache"


def ref(name: str) -> EncoderRef:
    return next(ref for ref in catalog.scale("paper").encoders.values() if ref.name == name)


def weights(name: str):
    return hub_files.cached_model(ref(name)) / "model.safetensors"


# ---------------------------------------------------------------- models


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
    hub.__exit__()
    with pytest.raises(RunFailed, match=f"{BERT} at 86b5e0934494: not in the cache .*`csebench fetch") as error:
        hub_files.fetch_model(ref(BERT))
    assert "\n" not in str(error.value)


def test_weights_with_wrong_bytes_are_fetched_anew(hub, capsys):
    hub.fail("wrong", BERT, "model.safetensors", times=1)
    folder = hub_files.fetch_model(ref(BERT))
    assert "downloading it again" in capsys.readouterr().err
    content = hub.find("models", BERT).files["model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == content


def test_a_hub_that_always_sends_wrong_bytes_is_a_failed_run_and_leaves_nothing(hub):
    hub.fail("wrong", BERT, "model.safetensors")
    with pytest.raises(RunFailed, match="two downloads differ from the sha256"):
        hub_files.fetch_model(ref(BERT))
    assert hub_files.cached_model(ref(BERT)) is None


def test_damaged_weights_in_the_cache_are_fetched_anew(hub):
    path = hub_files.fetch_model(ref(BERT)) / "model.safetensors"
    content = path.read_bytes()
    path.resolve().write_bytes(content[:-4] + b"abcd")
    assert (hub_files.fetch_model(ref(BERT)) / "model.safetensors").read_bytes() == content


def test_a_download_that_breaks_off_is_gone_on_with(hub):
    hub.fail("breaks", BERT, "model.safetensors", times=2)
    folder = hub_files.fetch_model(ref(BERT))
    assert (folder / "model.safetensors").read_bytes() == hub.find("models", BERT).files["model.safetensors"]


def test_a_download_that_always_breaks_off_ends_in_one_line_and_exit_code_1(hub, capsys, tmp_path):
    from csebench.cli import main

    hub.fail("breaks", fetch.REPOSITORY, "wiki1m*")
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
    fetch.fetch_file("wiki1m-simcse", tmp_path / "one")
    hub.requests.clear()
    fetch.fetch_file("wiki1m-simcse", tmp_path / "two")
    assert not hub.requests
    assert (tmp_path / "two" / registered["wiki1m-simcse"].path).exists()


def test_a_corpus_with_wrong_bytes_is_fetched_anew(hub, registered, tmp_path):
    hub.fail("wrong", fetch.REPOSITORY, "wiki1m*", times=1)
    fetch.fetch_file("wiki1m-simcse", tmp_path)
    assert (tmp_path / registered["wiki1m-simcse"].path).exists()


def test_sts_b_dev_is_checked_when_it_is_fetched(registered, smoke_data, tmp_path):
    shutil.copyfile(smoke_data / "counts.yaml", tmp_path / "counts.yaml")
    fetch.fetch_senteval(tmp_path)
    registered["stsb-dev"] = registered["stsb-dev"].model_copy(update={"sha256": "0" * 64})
    with pytest.raises(RunFailed, match=r"sts-dev\.csv: sha256"):
        fetch.fetch_senteval(tmp_path)
    assert not (tmp_path / "downstream").exists()


@pytest.fixture
def archive(hub):
    content = hub.archives["beir/scifact.zip"]
    return Download(url=f"{hub.endpoint}/beir/scifact.zip", md5=hashlib.md5(content).hexdigest()), content


def test_an_archive_that_broke_off_is_gone_on_with(hub, archive, tmp_path):
    wanted, content = archive
    hub.fail("breaks", "beir/scifact.zip", times=1)
    with pytest.raises(RunFailed, match="Run the command again to resume"):
        fetch.fetch_url(wanted, tmp_path / "part", "bring it")
    assert 0 < (tmp_path / "part").stat().st_size < len(content)
    fetch.fetch_url(wanted, tmp_path / "part", "bring it")
    assert (tmp_path / "part").read_bytes() == content


def test_the_beginning_of_another_archive_is_thrown_away(archive, tmp_path):
    wanted, content = archive
    (tmp_path / "part").write_bytes(b"something else")
    fetch.fetch_url(wanted, tmp_path / "part", "bring it")
    assert (tmp_path / "part").read_bytes() == content


def test_an_archive_with_wrong_bytes_is_a_failed_run(hub, archive, tmp_path):
    hub.fail("wrong", "beir/scifact.zip")
    with pytest.raises(RunFailed, match=r"md5 is .* fetch it again"):
        fetch.fetch_url(archive[0], tmp_path / "part", "bring it")
    assert not (tmp_path / "part").exists()


def test_imdb_is_read_from_its_authors_archive(hub, monkeypatch, smoke_data, tmp_path):
    import hub_data

    from evaluators import clusters

    stated = {name: Download(**entry) for name, entry in hub_data.downloads(hub).items()}
    monkeypatch.setattr(fetch, "downloads", lambda: stated)
    fetch.fetch_imdb(tmp_path)
    assert sorted(clusters.imdb(tmp_path)) == sorted(clusters.imdb(smoke_data))


# ---------------------------------------------------------------- what is needed


def test_needs_of_pages_are_their_models_and_data(monkeypatch):
    """DiffCSE's generator and MSSE's translators as well as the encoders, each once."""
    from csebench.plan import targets

    monkeypatch.delenv("CSEBENCH_DATA", raising=False)
    pages = [page for name in ("msse/table7", "infocse/table3") for page in targets.parse_target(name, "paper")]
    found = needs.needs(pages)
    kinds = {need.name: need.kind for need in found}
    assert len(found) == len(kinds)
    assert kinds[BERT] == "encoder" and kinds["distilbert/distilbert-base-uncased"] == "generator"
    assert kinds["Helsinki-NLP/opus-mt-en-de"] == kinds["Helsinki-NLP/opus-mt-de-en"] == "translator"
    assert {"wiki", "senteval", "beir:scifact"} <= {*kinds}


def test_a_model_is_reachable_with_its_size_then_here(hub):
    need = needs.Need("encoder", BERT, ref(BERT))
    state = needs.state_of(need, "paper")
    read = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "model.safetensors")
    files = hub.find("models", BERT).files
    assert (state.state, state.size) == (needs.REACHABLE, sum(len(files[name]) for name in read))
    hub_files.fetch_model(ref(BERT))
    assert needs.state_of(need, "paper").state == needs.HERE


def test_a_gated_model_is_missing_before_anything_starts(hub):
    hub.fail("gated", BERT)
    state = needs.state_of(needs.Need("encoder", BERT, ref(BERT)), "paper")
    assert state.state == needs.MISSING and "hf auth login" in state.why
