"""The files that `csebench new` writes work at once, and a pasted table is read as it is
printed."""

import re

import pytest

from csebench import cli
from csebench.base import caches
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_yaml
from csebench.cli import new
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.paper import Paper, SettingsTable


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder of one's own, which is the current one."""
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path
    monkeypatch.undo()
    caches.clear()  # later tests do not see these files


def paper_from(project, text):
    """Make a paper from a pasted text, and read it."""
    (project / "table.tsv").write_text(text, encoding="utf-8")
    assert cli.main(["new", "paper", "pasted", "--from", "table.tsv"]) == 0
    return read_yaml(project / "papers" / "pasted.yaml", Paper)


@pytest.mark.parametrize("kind", new.FILE_TEMPLATES)
def test_a_new_file_is_valid_under_its_name(kind, project, capsys):
    assert cli.main(["new", kind, "mine_2"]) == 0
    assert cli.main(["show", "mine_2"]) == 0

    first_line = capsys.readouterr().out.splitlines()[0]
    path = project / first_line
    text = path.read_text()
    assert "Mine 2" in text
    assert "emplate" not in text
    for schema in re.findall(r"\$schema=(\S+)", text):
        assert (path.parent / schema).samefile(ROOT / "docs/schemas/paper.json")


def test_a_name_may_contain_the_word_template(project):
    assert cli.main(["new", "method", "myTemplate"]) == 0
    assert cli.main(["show", "myTemplate"]) == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("method simcse", "methods/simcse.py: exists"),
        ("method components", "methods/components.py: exists, or a folder"),
        ("method My-Method", "letters, digits and _, at most 20 characters, such as 'my_method'"),
        ("component 2nd.try", "such as 'nd_try'"),
        (
            "evaluator a_name_of_more_than_20_letters",
            "at most 20 characters, such as 'a_name_of_more_than'",
        ),
        ("paper ::", "'::' cannot be the name of a file here"),
        ("paper table3", "papers/table3.yaml: 'table3' is reserved"),
        ("method mine --from table.tsv", "--from: only a paper"),
        ("paper mine --from nowhere.tsv", "nowhere.tsv: no such file"),
        ("paper mine --from empty.tsv", "empty.tsv: needs a line with the labels of columns"),
        ("paper mine --from strange.tsv", "strange.tsv: no column is a task"),
        ("paper mine --from twice.tsv", "twice.tsv: two tables have the number 1"),
    ],
)
def test_what_cannot_be_written_is_refused(words, part, project, capsys):
    (project / "empty.tsv").write_text("\n")
    table = "Model\tfoo\nOurs\t1.0\n"
    (project / "strange.tsv").write_text(table)
    (project / "twice.tsv").write_text(f"{table}# table 1\n{table}")
    assert cli.main(["new", *words.split()]) == 2
    assert part in capsys.readouterr().err
    assert not [path for path in project.rglob("*") if path.suffix in (".py", ".yaml")]


CELLS = {  # as pasted, and as it is read
    " 78.13 ± 0.4 ": "78.13 ± 0.4",
    "**78.13**†": "78.13",
    r"\textbf{78.13}$_{\pm .40}$": "78.13 ± 0.40",
    "78.13+/-0.4": "78.13 ± 0.4",
    "−1.43": "-1.43",
    "84.5%": "84.5",
    "–": None,
    "7x.1": None,
    "78.13^1": "78.13",  # a footnote
    "78.13$^{2}$": "78.13",
    "78.13²": "78.13",
    r"78.13$^{\pm .4}$": "78.13±0.4",
    "78.13_4": None,
}


def without_blanks(text):
    """Remove the blanks of a text; None stays."""
    return None if text is None else text.replace(" ", "")


def test_a_cell_is_read_without_its_marks(project, capsys):
    lines = ["Model\tSTS12"]
    for cell in CELLS:
        lines.append(f"SimCSE\t{cell}")

    paper = paper_from(project, "\n".join(lines))

    for row, expected in zip(paper.tables["1"].rows, CELLS.values(), strict=True):
        (value,) = row.values
        text = None if value is None else value.text
        assert without_blanks(text) == without_blanks(expected)
    assert capsys.readouterr().out.count(" is no number") == 2


PASTED = """\
# table A1
Model\tMR\tCR\tspeed\tCR
SimCSE-BERT_large\t1\t2\t3\t4\t5
Nobody's (us, 2026)\t6\t7\t8\t9
"""


def test_labels_give_tasks_and_recipes_and_what_is_unknown_or_could_mean_two_things_is_listed(
    project, capsys
):
    table = paper_from(project, PASTED).tables["A1"]

    assert table.evaluator == "transfer"
    assert [column.task for column in table.columns] == ["MR", "CR"]
    known, unknown = table.rows
    assert known.run.method == "simcse"
    assert known.run.encoder == "bert-large"
    assert unknown.run is None
    assert [value.text for value in known.values] == ["1", "4"]
    out = capsys.readouterr().out
    assert "column 'speed': no known task" in out
    assert 'row "Nobody\'s (us, 2026)": no known method' in out
    assert "'CR': occurs twice, the last is taken" in out
    assert "'5' is right of the last column" in out


MARKED = r"""# table 2
Model	STS12 ↑	Avg.
SimCSE♣	**68.40**	76.25†
CT \citep{carl2021}	61.63	\textbf{72.05}$^\dagger$
ESimCSE*	\underline{73.40}	78.27^a
DiffCSE	**72.28**	**78.49**
InfoCSE	**70.53**	78.85
"""
LISTED = {
    "↑": "column 'STS12'",
    "♣": "row 'SimCSE'",
    "bold": (
        "row 'SimCSE', column 'STS12'; row 'CT', column 'Avg.'; row 'DiffCSE', column 'STS12';"
        " row 'DiffCSE', column 'Avg.'; 1 more"
    ),
    "†": "row 'SimCSE', column 'Avg.'",
    r"\citep{carl2021}": "row 'CT'",
    r"^\dagger": "row 'CT', column 'Avg.'",
    "*": "row 'ESimCSE'",
    "underlined": "row 'ESimCSE', column 'STS12'",
    "^a": "row 'ESimCSE', column 'Avg.'",
}


def test_marks_are_listed_as_they_may_say_where_a_value_is_from(project, capsys):
    rows = paper_from(project, MARKED).tables["2"].rows
    assert [row.label for row in rows] == ["SimCSE", "CT", "ESimCSE", "DiffCSE", "InfoCSE"]

    lines = capsys.readouterr().out.splitlines()
    expected = [f"table 2: {mark} is not read: {places}" for mark, places in LISTED.items()]
    assert [line for line in lines if "is not read" in line] == expected


def test_a_source_is_unknown_until_it_is_stated(project, capsys):
    """This holds for a pasted table, and for a row that somebody wrote without it."""
    rows = paper_from(project, MARKED + "Nobody\t–\t–\n").tables["2"].rows
    assert {row.source for row in rows} == {"unknown"}
    # A row without values needs none.
    assert "source: unknown in 5 rows. " in capsys.readouterr().out
    path = project / "papers" / "pasted.yaml"
    text = path.read_text()
    assert text.count("source: unknown") == 5

    path.write_text(text.replace("      source: unknown\n", "", 2))
    assert cli.main(["render", "pasted/table2"]) == 0
    page = capsys.readouterr().out
    assert "SimCSE; CT; ESimCSE; DiffCSE; InfoCSE: source not stated." in page
    assert "measured by" not in page

    assert cli.main(["show", "pasted/table2", "--row", "SimCSE", "--column", "Avg."]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "76.25, 1 seed, source not stated" in printed


def test_rows_of_tasks_become_columns(project):
    text = "Data\tSimCSE\tESimCSE\nSTS12\t70.1\t\nAverage\t71.1\t72.1\n"
    table = paper_from(project, text).tables["1"]

    assert [column.task for column in table.columns] == ["STS12", "Avg."]
    simcse, esimcse = table.rows
    assert simcse.run.method == "simcse"
    assert [value.value for value in simcse.values] == [70.1, 71.1]
    assert esimcse.run.method == "esimcse"
    missing, average = esimcse.values
    assert missing is None
    assert average.value == 72.1


def numbers(value):
    """Return the value and deviation that a cell prints, or None for an empty cell."""
    return None if value is None else (value.value, value.std)


def test_a_published_paper_is_read_as_it_was_transcribed_by_hand(project):
    text = (ROOT / "tests/protocol/published/micse.tsv").read_text(encoding="utf-8")
    pasted = paper_from(project, text)

    for name, by_hand in catalog.paper("micse").tables.items():
        if not isinstance(by_hand, SettingsTable):
            assert_same_table(pasted.tables[name], by_hand)


def assert_same_table(pasted, by_hand):
    """Assert that a pasted table has the printed columns and rows of one that was transcribed."""
    # The other columns are derived.
    printed = [index for index, column in enumerate(by_hand.columns) if column.task]
    for column, index in zip(pasted.columns, printed, strict=True):
        assert column.task == by_hand.columns[index].task
        assert column.size == by_hand.columns[index].size
    for row, expected in zip(pasted.rows, by_hand.rows, strict=True):
        printed_values = [expected.values[index] for index in printed]
        assert list(map(numbers, row.values)) == list(map(numbers, printed_values))
        if row.run is not None and expected.run is not None:
            assert row.run.method == expected.run.method, row.label
