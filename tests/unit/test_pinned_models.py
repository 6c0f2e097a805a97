"""A name of a model means one folder or one commit, and its revision pins the files. This is
decided without torch."""

import json
import shutil
from pathlib import Path

import pytest

from csebench.base import hub
from csebench.base.errors import BadInput
from csebench.base.files import sha256
from csebench.base.hub import EncoderRef, folder_of, local_folder
from csebench.base.models import check_foreign, check_revision, model_sha256, pinned_folder
from csebench.base.project import ROOT, VARIABLE
from csebench.cli import parse, train_options
from csebench.data import preflight
from csebench.plan.catalog import files as catalog

SHIPPED = ROOT / "encoders" / "bert-mini-wiki"
PUBLISHED = catalog.scale("mini").encoders["bert-base"].revision
COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"
ID = "google-bert/bert-base-uncased"
PINNED = f"{ID}@{COMMIT}"
NESTED = ("**/*config.json", "**/modules.json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def encoder(here):
    """A copy of the shipped encoder, for a test to change; weights are left out."""
    without_weights = shutil.ignore_patterns("*.safetensors")
    folder = shutil.copytree(SHIPPED, here / "encoder", ignore=without_weights)
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def model_in(folder: Path) -> Path:
    """Make a folder that looks like a model, and return it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize("name", [ID, PINNED, f"encoders/{ID}"])
def test_a_name_with_a_commit_is_the_hubs_whatever_folders_there_are(name, here, monkeypatch):
    """A folder with this name changes nothing, nor does one of a project that joins."""
    model_in(here / name)
    monkeypatch.setenv(VARIABLE, str(here))
    ref = EncoderRef.parse(PINNED)
    assert ref.name == ID
    assert ref.revision == COMMIT
    assert local_folder(ref) is None
    assert folder_of(PINNED) is None
    assert train_options.find_encoder(PINNED) == ref
    assert train_options.find_model(PINNED) == PINNED

    monkeypatch.setattr(hub, "cached_model", lambda _: None)
    need = preflight.Need("encoder", ID, ref)
    assert not preflight.files_of(need, catalog.scale("paper"))

    monkeypatch.chdir(ROOT / "docs")
    project = ["--project", str(here)]
    evaluation = parse(["evaluate", "--out", "out.json", "--model", PINNED, *project])
    assert evaluation.model == PINNED
    monkeypatch.chdir(ROOT / "docs")
    training = parse(["train", "--method", "bert", "--out", "out", "--encoder", PINNED, *project])
    assert training.encoder == PINNED


def test_a_name_is_not_made_a_path_where_it_is_parsed_in_another_folder(here, monkeypatch):
    """`--project` changes the current folder."""
    start = here / "from"
    model_in(start / PINNED)
    model_in(start / ID)
    project = here / "project"
    project.mkdir()
    for name, expected in ((PINNED, PINNED), (ID, str(start / ID))):
        monkeypatch.chdir(start)
        options = ["--out", "out.json", "--project", str(project)]
        assert parse(["evaluate", "--model", name, *options]).model == expected


@pytest.mark.parametrize(
    "name", [ID, f"./{ID}", f"{{here}}/{ID}", f"./{PINNED}", "mine", "./mine", "a/b/c", "../x"]
)
def test_a_folder_is_given_by_its_path_or_by_its_name_and_recorded_as_one(name, here, monkeypatch):
    (here / "current").mkdir()
    monkeypatch.chdir(here / "current")
    name = name.format(here=here)
    folder = model_in(Path(name))

    found = folder_of(name)
    assert found is not None
    assert found.samefile(folder)
    recorded = train_options.find_model(name)
    assert folder_of(recorded) is not None
    assert not hub.ID.fullmatch(recorded)

    # config/ has this name, so that training takes the folder by its path only.
    path = f"./{name}" if name == ID else name
    ref = train_options.find_encoder(path)
    assert ref.revision == model_sha256(folder)
    assert local_folder(ref).samefile(folder)


def test_the_name_of_a_folder_of_the_project_stays(here):
    """Run ids are computed from it."""
    for name in ("encoders/bert-mini-wiki", str(SHIPPED)):
        assert train_options.find_model(name) == name
    assert local_folder(catalog.scale("mini").encoders["bert-base"]) == SHIPPED


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("owner/model", "owner/model@main"),
        ("owner/model@main", "owner/model@main"),
        ("owner/model@86b5e09", "owner/model@86b5e09"),
    ],
)
def test_a_branch_beside_a_folder_of_its_name_is_refused(name, stated, here):
    model_in(here / name)
    message = r"there is a folder .* Write \./owner/model.* or the whole commit"
    with pytest.raises(BadInput, match=message):
        EncoderRef.parse(stated)


@pytest.mark.parametrize("name", [ID, "bert-base-uncased"])
def test_a_folder_with_the_name_of_an_encoder_of_the_hub_is_refused_in_training(name, here):
    """`csebench evaluate` reads the folder, but `train` would take the hub's model."""
    assert train_options.find_encoder(name).revision == COMMIT
    (here / name).mkdir(parents=True)
    with pytest.raises(BadInput, match=f"Write ./{name} for the folder, or {ID}@{COMMIT}"):
        train_options.find_encoder(name)


@pytest.mark.parametrize("name", ["owner/model@main", "owner/model@v1.0"])
def test_a_run_starts_from_no_branch(name):
    with pytest.raises(BadInput, match=f"^{name}: a branch moves; name the commit"):
        train_options.find_encoder(name)


@pytest.mark.parametrize("name", ["./mine", "{here}/mine", "../here/mine"])
def test_a_path_has_no_commit(name, here):
    """A spec or a file of config/ could state one, which would pin nothing."""
    model_in(here / "mine")
    with pytest.raises(BadInput, match="a folder has no commit"):
        hub.fetch_model(EncoderRef(name=name.format(here=here), revision=COMMIT))


@pytest.mark.parametrize(
    ("name", "revision"), [("./none", "main"), ("/none", "0" * 64), ("owner/none", "0" * 64)]
)
def test_a_folder_that_is_missing_is_not_looked_for_on_the_hub(name, revision, here, monkeypatch):
    monkeypatch.setattr(hub, "fetch_files", None)
    with pytest.raises(BadInput, match=f"^encoder {name}: no such folder"):
        hub.fetch_model(EncoderRef(name=name, revision=revision))


def edit(file: Path, **changes) -> None:
    """Change keys of a JSON file."""
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | changes))


def link_folder(folder: Path) -> None:
    """Add a module as a link to a folder elsewhere."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.json").write_text('{"pooling_mode": "mean"}')
    (folder / "1_Pooling").symlink_to(elsewhere)


CHANGES = {
    "activation": lambda f: edit(f / "config.json", hidden_act="relu"),
    "tokenizer": lambda f: edit(f / "tokenizer.json", version="2"),
    "vocabulary": lambda f: (f / "vocab.txt").write_text("[PAD]"),
    "special tokens": lambda f: (f / "special_tokens_map.json").write_text("{}"),
    "sentencepiece": lambda f: (f / "spm.model").write_bytes(b"x"),
    "hidden sentencepiece": lambda f: (f / ".any.model").write_bytes(b"x"),
    "weights": lambda f: (f / "model.safetensors").write_bytes(b"others"),
    "removed": lambda f: (f / "tokenizer_config.json").unlink(),
    "modules": lambda f: (f / "modules.json").write_text("[]"),
    "a linked module": link_folder,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_revision_pins_every_file_that_is_read(change, encoder):
    """The sha256 of the folder does, and the published one of the weights, which stands for such a
    sha256."""
    revision = model_sha256(encoder)
    check_revision(encoder, revision)
    change(encoder)
    for stated in (revision, PUBLISHED):
        with pytest.raises(BadInput, match="another encoder was expected"):
            check_revision(encoder, stated)


def test_a_linked_module_is_hashed_with_its_content(encoder):
    link_folder(encoder)
    before = model_sha256(encoder)
    (encoder / "1_Pooling/config.json").write_text('{"pooling_mode": "cls"}')
    assert model_sha256(encoder) != before
    (encoder / "again").symlink_to(encoder)
    with pytest.raises(BadInput, match="again: is a link to a folder that holds it"):
        model_sha256(encoder)


def test_what_is_not_read_is_not_pinned(encoder):
    before = model_sha256(encoder)
    (encoder / "README.md").write_text("another card")
    (encoder / ".git").mkdir()
    for name in (".DS_Store", ".git/config", ".git/pack.model"):
        (encoder / name).touch()
    (encoder / ".cache").symlink_to(encoder)
    (encoder / "vocab.txt").symlink_to("nowhere")
    assert model_sha256(encoder) == before


def test_the_published_revision_stands_for_the_shipped_folder():
    assert sha256(SHIPPED / "model.safetensors") == PUBLISHED
    assert pinned_folder(PUBLISHED) == model_sha256(SHIPPED)
    check_revision(SHIPPED, PUBLISHED)


def test_an_own_project_learns_what_to_state_instead_of_the_sum_of_weights(
    encoder, here, monkeypatch
):
    weights_sum = sha256(encoder / "model.safetensors")
    folder_sum = model_sha256(encoder)
    line = f"{weights_sum}: {folder_sum}"
    message = rf"pins neither .* instead: {folder_sum}.* the line `{line}`"
    with pytest.raises(BadInput, match=message):
        check_revision(encoder, weights_sum)

    revisions = here / "encoders" / "revisions.yaml"
    revisions.parent.mkdir()
    revisions.write_text(f"{line}\n")
    monkeypatch.setenv(VARIABLE, str(here))
    check_revision(encoder, weights_sum)
    check_revision(SHIPPED, PUBLISHED)  # as the project's own file says

    edit(encoder / "config.json", hidden_act="relu")
    with pytest.raises(BadInput, match="another encoder was expected"):
        check_revision(encoder, weights_sum)

    revisions.write_text(f"{weights_sum}: {folder_sum[:12]}\n")
    with pytest.raises(BadInput, match=r"revisions\.yaml"):
        check_revision(encoder, weights_sum)


def test_an_encoder_that_was_changed_is_missing_before_anything_starts(encoder):
    need = preflight.Need("encoder", "encoder", EncoderRef(name=str(encoder), revision=PUBLISHED))
    state = preflight.need_state(need, "mini")
    assert state.state == preflight.MISSING
    assert "another encoder was expected" in state.why


def index(named: str, name: str = "model.safetensors.index.json"):
    """Return the index of a model's shards, one of which has this name."""
    shards = {"a.weight": "model.safetensors", "b.weight": named}
    return name, {"metadata": {}, "weight_map": shards}


def modules(path: str):
    """Return a list of modules with one in this folder."""
    module = {"idx": 0, "name": "0", "path": path, "type": "sentence_transformers.models.Pooling"}
    return "modules.json", [module]


SENTENCE = "sentence_bert_config.json"
OUTSIDE = {
    "parent": index("../outside.safetensors"),
    "parent within": index("1_Pooling/../../outside.safetensors"),
    "absolute": index("/etc/passwd"),
    "hidden": index(".hidden.safetensors"),
    "in a hidden folder": index(".cache/a.safetensors"),
    "dangling link": index("dangling.safetensors"),
    "card": index("README.md"),
    "report": index("training.json"),
    "pickled": index("../outside.bin", "pytorch_model.bin.index.json"),
    "variant": index("../outside.bin", "model.fp16.safetensors.index.json"),
    "below a module": index("../../outside.safetensors", "1_Pooling/model.safetensors.index.json"),
    "explicit weights": ("config.json", {"transformers_weights": ".hidden.safetensors"}),
    "versions of the configuration": (
        "config.json",
        {"configuration_files": ["../config.4.0.0.json"]},
    ),
    "versions of the tokenizer": (
        "tokenizer_config.json",
        {"fast_tokenizer_files": ["../tokenizer.4.0.json"]},
    ),
    "module in a hidden folder": modules(".cache"),
    "module elsewhere": modules("../elsewhere"),
    "route": (
        "router_config.json",
        {"types": {".cache": "sentence_transformers.models.Transformer"}},
    ),
    "vocabulary elsewhere": (SENTENCE, {"tokenizer_args": {"vocab_file": "vocab.txt"}}),
    "weights of another format": (SENTENCE, {"model_args": {"gguf_file": "/tmp/model.gguf"}}),
}


@pytest.mark.parametrize(("name", "content"), OUTSIDE.values(), ids=OUTSIDE)
def test_a_configuration_names_no_file_that_the_hash_does_not_cover(name, content, encoder):
    (encoder / "1_Pooling").mkdir()
    (encoder / ".cache").mkdir()
    for file in (
        ".hidden.safetensors",
        ".cache/a.safetensors",
        "training.json",
        "../outside.safetensors",
    ):
        (encoder / file).touch()
    (encoder / "dangling.safetensors").symlink_to("nowhere")
    check_foreign(encoder, NESTED)

    (encoder / name).write_text(json.dumps(content))

    message = rf"{name}: names .*, which is not among the files that the hash"
    with pytest.raises(BadInput, match=message):
        check_foreign(encoder, NESTED)


def test_a_hidden_file_is_not_read_as_one_of_a_distributed_checkpoint(encoder):
    """transformers takes every file in the folder of such a checkpoint."""
    (encoder / ".hidden.safetensors").touch()
    check_foreign(encoder)
    (encoder / "shard-00000-model-00001-of-00001.safetensors").touch()
    with pytest.raises(BadInput, match=r"\.hidden\.safetensors: would be read as weights"):
        check_foreign(encoder)


INSIDE = {
    "shards": index("b.safetensors"),
    "shards in a folder": index("1_Pooling/b.safetensors"),
    "linked file": index("link.safetensors"),
    "linked folder": index("linked/b.safetensors"),
    "not there": index("c.safetensors"),  # which the library says
    "module": modules("1_Pooling"),
    "itself": modules(""),
    "linked module": modules("linked"),
    "a note": ("config.json", {"_name_or_path": "/etc", "path": "../elsewhere"}),
}


@pytest.mark.parametrize(("name", "content"), INSIDE.values(), ids=INSIDE)
def test_a_configuration_names_files_of_the_folder(name, content, encoder):
    (encoder / "1_Pooling").mkdir()
    elsewhere = model_in(encoder.parent / "elsewhere")
    for file in (
        encoder / "b.safetensors",
        encoder / "1_Pooling/b.safetensors",
        elsewhere / "b.safetensors",
    ):
        file.touch()
    (encoder / "link.safetensors").symlink_to(elsewhere / "b.safetensors")
    (encoder / "linked").symlink_to(elsewhere)
    (encoder / name).write_text(json.dumps(content))
    check_foreign(encoder, NESTED)


def test_code_is_not_asked_for_in_a_linked_folder(encoder):
    elsewhere = model_in(encoder.parent / "elsewhere")
    (elsewhere / "config.json").write_text('{"activation_function": "evil.Tanh"}')
    (encoder / "2_Dense").symlink_to(elsewhere)
    with pytest.raises(BadInput, match=r"2_Dense/config\.json: activation_function: 'evil"):
        check_foreign(encoder, NESTED)
