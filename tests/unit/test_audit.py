"""What the printed tables contradict: the known findings of the papers, and mistakes put into a clean paper."""

import copy

import pytest
from made_up import clear, made_up, table
from test_compare import STS, columns

from csebench.report import audit

# Rows whose columns have another mean than is printed, by hand; what two papers copied is one.
AVERAGES = {
    ("msse table3",): ("PromCSE", "81.66", "81.81"),
    ("infocse table2", "micse table1"): ("Mirror-BERTbase", "75.41", "75.40"),
    ("micse table1",): ("MoCoSE", "77.29", "77.27"),
    ("infocse table10", "informin_cl table4"): ("Avg. BERT embeddings", "84.95", "84.94"),
    ("informin_cl table4",): ("SCD-BERT_base", "85.48", "85.52"),
    ("msse table1",): ("MSSE-BERT_large", "81.37", "81.36"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("no-runs"))
        clear()
        yield audit.findings()
    clear()


def places(finding):
    return tuple(f"{place.paper} {place.where}" for place in finding.places)


def test_every_wrong_average_is_found_and_no_other(found):
    sums = {places(f): f.text for f in found if f.kind == audit.WRONG_SUM}
    assert sums.keys() == AVERAGES.keys()
    for where, (row, mean, printed) in AVERAGES.items():
        words = sums[where].split()
        assert sums[where].startswith(row)
        assert f"{float(words[words.index('average') + 1].strip(',')):.2f}" == mean and words[-1] == printed


@pytest.mark.parametrize(
    ("where", "kind", "parts"),
    [
        (
            ("infocse table2", "micse table1", "msse table1"),
            audit.NEAR_DUPLICATE,
            ["DiffCSE", "SICK-R: 71.23 in InfoCSE Table 2, MSSE Table 1; 71.29 in miCSE Table 1"],
        ),
        (
            ("micse table2", "micse table3", "micse table4"),
            audit.INCONSISTENT,
            ["67.94±1.16 in Table 2", "66.69±1.03 in Table 4", "1%: 74.96±0.65", "10%: 75.76±0.24", "75.01±0.23"],
        ),
        (("micse table4",), audit.INCONSISTENT, ["miCSE (with negatives)", "78.13", "76.88"]),
        (("micse sec. 3.2 on table1",), audit.SENTENCE, ["+1.98 over SimCSE", "(claimed: +3.94)"]),
        (("micse sec. 3.3 on table2",), audit.SENTENCE, ["most significant boost", "5.99 with CT"]),
        (("informin_cl sec. 4.2 on table2",), audit.SENTENCE, ["0.40 below", "(claimed: less than 0.4)"]),
        (("informin_cl table4", "msse table7"), audit.READING, ["99.56", "99.58"]),
        (("unsup-SimCSE App. A",), audit.READING, ["5e-5", "250", "3e-5", "125"]),
        (("infocse table12", "infocse table2"), audit.INCONSISTENT, ["78.85", "78.27", "ESimCSE"]),
        (("infocse Section 4.2 and Table 8",), audit.READING, ["0.005", "1e-5"]),
        (("msse Table 5, caption",), audit.READING, ["DEMI"]),
    ],
)
def test_what_is_known_is_found_once(found, where, kind, parts):
    texts = [f.text for f in found if (places(f), f.kind) == (where, kind)]
    assert len([text for text in texts if all(part in text for part in parts)]) == 1, texts


def test_a_copied_value_does_not_contradict_a_re_run(found):
    """PCL's 78.42 in MSSE's Table 1, which it copied, and 78.21 in Table 2, which it ran."""
    assert not [f for f in found if "78.42" in f.text and "78.21" in f.text]


def test_findings_are_sorted_by_severity(found):
    order = [list(audit.SEVERITIES).index(f.severity) for f in found]
    assert order == sorted(order) and {f.kind for f in found} == set(audit.KINDS)


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
    def audited(*cells, copy_of_table=None, source="measured", first="measured", errata=(), **claim):
        """Of the clean paper, but for cells (table, row, column, text) and what its claim says.

        Args:
            copy_of_table: a table that a second paper prints, too.
            source, first: of the row of Table 5, and of the first row of Table 1.
        """
        paper = copy.deepcopy(CLEAN) | {"errata": list(errata)}
        for number, row, column, text in cells:
            paper["tables"][number]["rows"][row]["values"][column] = text
        for number, text in (("5", source), ("1", first)):
            paper["tables"][number]["rows"][0]["source"] = text
        paper["claims"][0] |= claim
        papers = [paper]
        if copy_of_table:
            papers.append({"name": "other", "tables": {"1": copy.deepcopy(paper["tables"][copy_of_table])}})
        made_up(tmp_path, monkeypatch, *papers)
        return audit.findings()

    yield audited
    monkeypatch.undo()
    clear()


def test_a_clean_paper_has_no_finding(findings_of):
    assert findings_of() == []


def test_a_last_digit_is_left_to_rounding(findings_of):
    """An average and a difference may be off by one unit each."""
    assert findings_of(("1", 0, 7, "76.29"), ("2", 1, 2, "-0.99")) == []


@pytest.mark.parametrize(
    ("cell", "kind", "severity", "text"),
    [
        (("1", 1, 0, "70.10"), audit.WRONG_SUM, audit.NOTABLE, "Theirs: the columns average 74.829, printed is 74.54"),
        (
            ("2", 1, 2, "-1.02"),
            audit.WRONG_SUM,
            audit.MINOR,
            "Theirs: 74.00±0.40 - 75.00±0.40 is not the printed -1.02",
        ),
        (
            ("3", 0, 0, "89.90"),
            audit.IMPOSSIBLE,
            audit.MINOR,
            "Ours, TREC: 89.90 % is impossible with 500 items; nearest: 89.80, 90.00",
        ),
        (
            ("4", 0, 0, "80.00"),
            audit.IMPOSSIBLE,
            audit.MINOR,
            "Ours, R@1: 80.00 % is impossible with 97 items; nearest: 79.38, 80.41",
        ),
    ],
)
def test_a_wrong_number_is_found_where_it_is(findings_of, cell, kind, severity, text):
    assert findings_of(cell) == [(kind, severity, (("clean", f"table{cell[0]}"),), text)]


def test_a_setting_with_two_values_is_found(findings_of):
    text = "STS-B: 78.66 in Table 1 (Ours), 78.70 in Table 5 (again)"
    where = (("clean", "table1"), ("clean", "table5"))
    assert findings_of(("5", 0, 0, "78.70")) == [(audit.INCONSISTENT, audit.MINOR, where, text)]


@pytest.mark.parametrize("source", ["copied", "rerun"])
def test_a_measured_value_contradicts_any_other(findings_of, source):
    assert len(findings_of(("5", 0, 0, "79.70"), source=source)) == 1


def test_a_copied_value_and_a_re_run_may_differ(findings_of):
    """The rows of Tables 1 and 5 are of one setting."""
    assert findings_of(("5", 0, 0, "79.70"), source="rerun", first="copied") == []


def test_an_erratum_replaces_what_a_check_finds_of_its_row(findings_of):
    erratum = {"where": "table5", "row": "again", "kind": audit.INCONSISTENT, "text": "a slip."}
    (finding,) = findings_of(("5", 0, 0, "78.70"), errata=[erratum])
    assert finding.text == "again: a slip."


@pytest.mark.parametrize(
    ("cell", "row"),
    [(("1", 1, 0, "70.10"), "Theirs"), (("3", 0, 0, "89.90"), "Ours, TREC")],
)
def test_a_mistake_that_another_paper_copied_is_one_finding(findings_of, cell, row):
    (finding,) = findings_of(cell, copy_of_table=cell[0])
    assert finding.places == (("clean", f"table{cell[0]}"), ("other", "table1")) and finding.text.startswith(row)


@pytest.mark.parametrize(
    ("claim", "severity", "text"),
    [
        ({"by": "2.00"}, audit.SERIOUS, "“better”: +1.76 over Theirs in Avg. (claimed: +2.00)"),
        ({"row": "Theirs", "by": None}, audit.NOTABLE, "“better”: 1.76 below Ours in Avg."),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, severity, text):
    (found,) = findings_of(**claim)
    assert found[:3] == (audit.SENTENCE, severity, (("clean", "sec. 9 on table1"),))
    assert found.text.startswith(text)
