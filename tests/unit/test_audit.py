"""What the printed tables contradict: the known findings of the papers, and mistakes put into a clean paper."""

import copy

import pytest
from test_compare import STS, clear, columns, made_up, table

from csebench.report import audit

# Rows whose columns have another mean than is printed, found by hand before there was this code.
AVERAGES = {
    ("micse", "table1", "Mirror-BERT", "75.41", "75.40"),
    ("infocse", "table2", "Mirror-BERTbase", "75.41", "75.40"),
    ("micse", "table1", "MoCoSE", "77.29", "77.27"),
    ("infocse", "table10", "Avg. BERT embeddings", "84.95", "84.94"),
    ("informin_cl", "table4", "Avg. BERT embeddings", "84.95", "84.94"),
    ("informin_cl", "table4", "SCD-BERT_base", "85.48", "85.52"),
    ("msse", "table1", "MSSE-BERT_large", "81.37", "81.36"),
    ("msse", "table3", "PromCSE", "81.66", "81.81"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("no-runs"))
        clear()
        yield audit.findings()
    clear()


def test_every_wrong_average_is_found_and_no_other(found):
    own = [f for f in found if f.kind == "average"]
    assert len(own) == len(AVERAGES) and not [f for f in found if f.kind == "difference"]
    for paper, place, row, mean, printed in AVERAGES:
        (text,) = [f.text for f in own if (f.paper, f.place) == (paper, place) and f.text.startswith(row)]
        words = text.split()
        assert f"{float(words[words.index('average') + 1].strip(',')):.2f}" == mean and words[-1] == printed


@pytest.mark.parametrize(
    ("paper", "place", "kind", "parts"),
    [
        ("micse", "table1", "rows alike", ["DiffCSE", "msse table1", "SICK-R (100%) 71.29 against 71.23"]),
        ("infocse", "table2", "rows alike", ["DiffCSE", "micse table1", "SICK-R (100%) 71.23 against 71.29"]),
        ("micse", "table2", "one setting, two values", ["SimCSE", "0.1%: 67.94±1.16", "table4", "66.69±1.03"]),
        ("micse", "table2", "one setting, two values", ["SimCSE", "1%: 74.96±0.65", "table4", "74.08±0.81"]),
        ("micse", "table2", "one setting, two values", ["SimCSE", "10%: 75.76±0.24", "table4", "75.01±0.23"]),
        ("micse", "table2", "rows alike", ["AMI+SimCSE is miCSE (with negatives)", "(100%) 76.88 against 78.13"]),
        ("micse", "sec. 3.2 on table1", "text", ["(+3.94)", "is +1.98"]),
        ("infocse", "table2", "one setting, two values", ["InfoCSE", "Avg.: 78.85", "table12", "78.49"]),
        ("infocse", "Table 12, Avg.", "read", ["78.27", "ESimCSE"]),
        ("infocse", "Section 4.2 and Table 8", "read", ["0.005", "1e-5"]),
        ("msse", "Table 5, caption", "read", ["DEMI"]),
    ],
)
def test_what_is_known_is_found(found, paper, place, kind, parts):
    texts = [f.text for f in found if (f.paper, f.place, f.kind) == (paper, place, kind)]
    assert [text for text in texts if all(part in text for part in parts)], texts


def test_recalls_that_are_counts_are_no_finding(found):
    """InfoCSE Table 11: 72, 92, 93 and so on of 97 queries."""
    assert not [f for f in found if f.paper == "infocse" and f.place == "table11"]


# ---------------------------------------------------------------- a clean paper


# Their means are 76.297 and 74.543.
OURS = ["70.11", "80.22", "71.33", "81.44", "79.55", "78.66", "72.77", "76.30"]
THEIRS = ["68.10", "78.20", "70.30", "80.40", "77.50", "76.60", "70.70", "74.54"]
FEW_SHOT = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
CLEAN = {
    "name": "clean",
    "tables": {
        "1": table({"Ours": ("simcse", OURS), "Theirs": ("ct", THEIRS)}, columns(*STS, "Avg.")),
        "2": table(
            {
                "Ours": ("simcse", ["70.00±0.30", "75.00±0.40", None]),
                "Theirs": ("ct", ["69.00±0.50", "74.00±0.40", "-1.00"]),
            },
            [*FEW_SHOT, {"label": "Δ", "delta": "10%"}],
            seeds=5,
            baseline="Ours",
        ),
        "3": table({"Ours": ("simcse", ["89.80", "74.43"])}, columns("TREC", "MRPC"), evaluator="transfer"),
        "4": table(
            {"Ours": ("simcse", ["80.41", "100.00"])},
            [{"label": f"R@{k}", "task": "STS-B", "metric": f"recall@{k}"} for k in (1, 5)],
            evaluator="stsb_retrieval",
        ),
        "5": table({"again": ("simcse", ["78.66"])}, columns("STS-B")),
    },
    "claims": [{"quote": "better", "section": "9", "table": "1", "row": "Ours", "columns": ["Avg."], "by": "1.76"}],
}


@pytest.fixture
def findings_of(tmp_path, monkeypatch):
    def audited(*cells, **claim):
        """Of the clean paper, but for cells (table, row, column, text) and what its claim says."""
        paper = copy.deepcopy(CLEAN)
        for number, row, column, text in cells:
            paper["tables"][number]["rows"][row]["values"][column] = text
        paper["claims"][0] |= claim
        made_up(tmp_path, monkeypatch, paper)
        return audit.findings()

    yield audited
    monkeypatch.undo()
    clear()


def test_a_clean_paper_has_no_finding(findings_of):
    assert findings_of() == []


def test_a_last_digit_is_left_to_rounding(findings_of):
    """An average and a difference may be off by one unit each."""
    assert findings_of(("1", 0, 7, "76.29"), ("2", 1, 2, "-0.99")) == []


def test_a_value_with_another_number_of_digits_is_no_other_value(findings_of):
    assert findings_of(("5", 0, 0, "78.660")) == []


@pytest.mark.parametrize(
    ("cell", "kind", "text"),
    [
        (("1", 1, 0, "70.10"), "average", "Theirs: the columns average 74.829, printed is 74.54"),
        (("2", 1, 2, "-1.02"), "difference", "Theirs: 74.00±0.40 - 75.00±0.40 is not the printed -1.02"),
        (("3", 0, 0, "89.90"), "impossible share", "Ours, TREC: 89.90 is no share of 500 items (89.80 or 90.00 is)"),
        (("4", 0, 0, "80.00"), "impossible share", "Ours, R@1: 80.00 is no share of 97 items (79.38 or 80.41 is)"),
    ],
)
def test_a_wrong_number_is_found_where_it_is(findings_of, cell, kind, text):
    (found,) = findings_of(cell)
    assert found[:3] == ("clean", f"table{cell[0]}", kind) and found.text.startswith(text)


def test_a_setting_with_two_values_is_found(findings_of):
    text = "Ours, STS-B: 78.66, but table5, again, STS-B: 78.70"
    assert findings_of(("5", 0, 0, "78.70")) == [("clean", "table1", "one setting, two values", text)]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({"by": "2.00"}, "“better”: +1.76 than Theirs, Avg.; says 2.00, is +1.76"),
        ({"row": "Theirs", "by": None}, "“better”: -1.76 than Ours"),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, text):
    (found,) = findings_of(**claim)
    assert found[:3] == ("clean", "sec. 9 on table1", "text") and found.text.startswith(text)
