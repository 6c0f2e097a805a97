"""The judged claims as a data set."""

import json

import pandas
import pytest
from huggingface_hub import DatasetCard

from csebench import cli
from csebench.plan.catalog.files import paper, paper_names
from csebench.report import claims_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Export the claims of the papers once."""
    pytest.importorskip("pyarrow")
    out = tmp_path_factory.mktemp("claims")
    assert cli.main(["export", "claims", "--out", str(out)]) == 0
    return out


def records(folder):
    return json.loads((folder / "claims.json").read_text())


def test_every_claim_of_every_paper_has_a_row(folder):
    claims = [claim for name in paper_names() for claim in paper(name).claims]
    found = records(folder)
    assert sorted(row["quote"] for row in found) == sorted(claim.quote for claim in claims)
    assert len({row["id"] for row in found}) == len(claims)


def test_a_claim_comes_with_its_printed_numbers_and_its_verdict(folder):
    (claim,) = [row for row in records(folder) if row["id"] == "infocse-1.1"]
    assert claim["stated"] == "+2.60"
    assert claim["cells"] == [
        {"row": "InfoCSE-BERTbase", "column": "Avg.", "printed": "78.85"},
        {"row": "SimCSE-BERTbase", "column": "Avg.", "printed": "76.25"},
    ]
    (difference,) = claim["differences"]
    assert difference["difference"] == 2.6
    assert claim["verdict"] == "supported"


def test_parquet_and_json_have_the_same_rows(folder):
    table = pandas.read_parquet(folder / "claims.parquet")
    assert list(table.columns) == list(claims_data.CLAIM_COLUMNS)
    for row, record in zip(
        json.loads(table.to_json(orient="records")), records(folder), strict=True
    ):
        assert row["id"] == record["id"]
        assert row["verdict"] == record["verdict"]
        assert row["cells"] == record["cells"]


def test_the_card_has_front_matter_that_the_hub_reads_and_names_every_column(folder):
    card = DatasetCard((folder / "README.md").read_text())
    assert card.data.license == "mit"
    (config,) = card.data.to_dict()["configs"]
    assert (folder / config["data_files"]).exists()
    for name in claims_data.CLAIM_COLUMNS:
        assert f"- `{name}`: " in card.text


def test_without_pyarrow_the_message_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(claims_data, "find_spec", lambda name: None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "claims.parquet").write_text("rows of an earlier export")
    assert cli.main(["export", "claims", "--out", str(tmp_path / "out")]) == 0
    assert "data_files: claims.json" in (tmp_path / "out" / "README.md").read_text()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md",
        "claims.json",
    ]
    assert "claims.parquet: not written" in capsys.readouterr().err
