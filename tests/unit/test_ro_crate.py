"""A page as an RO-Crate, read by the library of the format, and by its validator where there is
one."""

import hashlib
import json
import shutil
import subprocess

import pytest

from csebench import cli
from csebench.base.project import ROOT, __version__
from csebench.plan import targets

PAGE = "results/mini/micse/table3.md"


@pytest.fixture(scope="module")
def crate_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crates") / "crate"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert export_crate(PAGE, folder) == 0
    return folder


@pytest.fixture(scope="module")
def crate(crate_folder):
    rocrate = pytest.importorskip("rocrate.rocrate", reason="needs rocrate")
    return rocrate.ROCrate(crate_folder)


def export_crate(page, folder):
    return cli.main(["export", "ro-crate", page, "--out", str(folder)])


def files_in(folder):
    """List the files below a folder by their relative names."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_described_with_its_hash_and_size(crate, crate_folder):
    described = {entity.id: entity for entity in crate.data_entities}
    files = files_in(crate_folder)
    del files["ro-crate-metadata.json"]
    assert described.keys() == files.keys()
    for name, path in files.items():
        content = path.read_bytes()
        assert described[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert described[name]["contentSize"] == str(len(content))


def test_the_crate_holds_the_page_its_cells_and_the_scores_of_its_runs(crate, crate_folder):
    assert crate.mainEntity.id == "table3.md"
    page = (crate_folder / "table3.md").read_text()
    assert page.startswith(f"# {crate.name}\n")
    assert "![" not in page
    cells = (crate_folder / "table3.csv").read_text()
    assert cells.startswith("paper,table,")

    (planned,) = targets.parse_target(PAGE, "mini")
    names = {f"scores/{targets.score_path(*score, 'mini').name}" for score in planned.scores()}
    packed = {name for name in files_in(crate_folder) if name.startswith("scores/")}
    assert packed == names
    for name in packed:
        assert (crate_folder / name).read_bytes() == (ROOT / "results/mini" / name).read_bytes()


def test_the_crate_states_licence_paper_and_software(crate):
    assert crate.license.id == "https://spdx.org/licenses/MIT"
    paper, software = crate.root_dataset["citation"]
    assert paper.id == "https://aclanthology.org/2023.acl-long.339"
    assert software["softwareVersion"] == __version__
    rendering = crate.dereference("#rendering")
    assert rendering["instrument"] == software
    assert {result.id for result in rendering["result"]} == {"table3.md", "table3.csv"}


@pytest.mark.skipif(shutil.which("rocrate-validator") is None, reason="needs roc-validator")
def test_the_validator_of_the_format_accepts_the_crate(crate_folder, tmp_path):
    report = tmp_path / "report.json"
    options = ["--offline", "--no-paging", "-p", "ro-crate-1.1", "-f", "json", "-o", str(report)]
    subprocess.run(["rocrate-validator", "validate", *options, str(crate_folder)], check=False)
    issues = [issue["message"] for issue in json.loads(report.read_text())["issues"]]
    if any("Unable to retrieve the JSON-LD context" in issue for issue in issues):
        pytest.skip("needs `rocrate-validator cache warm`, which downloads the JSON-LD context")
    assert issues == []


def test_the_same_scores_give_the_same_crate(crate_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    export_crate(PAGE, tmp_path)
    again = {name: path.read_bytes() for name, path in files_in(tmp_path).items()}
    assert again == {name: path.read_bytes() for name, path in files_in(crate_folder).items()}


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("results/mini/congen/table1.md", "none of its runs is scored"),
        ("results/mini/micse.md", "give the path of one page"),
        ("micse/table3", "give the path of one page"),
        ("results/mini/micse/table99.md", "unknown table of micse"),
    ],
)
def test_what_is_no_page_with_scores_is_refused(page, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert export_crate(page, tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_not_filled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (tmp_path / "mine").touch()
    assert export_crate(PAGE, tmp_path) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
