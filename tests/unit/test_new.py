"""`csebench new`: what it writes works at once, and what it reads of a pasted table is what is
printed there."""

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
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path
    monkeypatch.undo()
    caches.clear()  # later tests do not see these files


def paper_from(project, text):
    (project / "table.tsv").write_text(text, encoding="utf-8")
    assert cli.main(["new", "paper", "pasted", "--from", "table.tsv"]) == 0
    return read_yaml(project / "papers" / "pasted.yaml", Paper)


@pytest.mark.parametrize("kind", new.FILE_TEMPLATES)
def test_a_new_file_is_valid_under_its_name(kind, project, capsys):
    assert cli.main(["new", kind, "mine_2"]) == 0 and cli.main(["show", "mine_2"]) == 0
    path = project / capsys.readouterr().out.splitlines()[0]
    text = path.read_text()
    assert "Mine 2" in text and "emplate" not in text
    for schema in re.findall(r"\$schema=(\S+)", text):
        assert (path.parent / schema).samefile(ROOT / "docs/schemas/paper.json")


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


def test_a_cell_is_read_without_its_marks(project, capsys):
    rows = (
        paper_from(project, "\n".join(["Model\tSTS12", *(f"SimCSE\t{cell}" for cell in CELLS)]))
        .tables["1"]
        .rows
    )
    read = [row.values[0] and row.values[0].text.replace(" ", "") for row in rows]
    assert read == [text and text.replace(" ", "") for text in CELLS.values()]
    assert capsys.readouterr().out.count(" is no number") == 2


def test_labels_give_tasks_and_recipes_and_what_is_unknown_or_could_mean_two_things_is_listed(
    project, capsys
):
    text = (
        "Model\tMR\tCR\tspeed\tCR\nSimCSE-BERT_large\t1\t2\t3\t4\t5\nNobody's (us,"
        " 2026)\t6\t7\t8\t9\n"
    )
    table = paper_from(project, f"# table A1\n{text}").tables["A1"]
    assert (table.evaluator, [c.task for c in table.columns]) == ("transfer", ["MR", "CR"])
    known, unknown = table.rows
    assert (known.run.method, known.run.encoder, unknown.run) == ("simcse", "bert-large", None)
    assert [value.text for value in known.values] == ["1", "4"]
    out = capsys.readouterr().out
    assert (
        "column 'speed': no known task" in out
        and 'row "Nobody\'s (us, 2026)": no known method' in out
    )
    assert (
        "'CR': occurs twice, the last is taken" in out and "'5' is right of the last column" in out
    )


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
    assert [line for line in lines if "is not read" in line] == [
        f"table 2: {mark} is not read: {places}" for mark, places in LISTED.items()
    ]


def test_a_source_is_unknown_until_it_is_stated(project, capsys):
    """Of a pasted table, and of a row that somebody wrote without it."""
    rows = paper_from(project, MARKED + "Nobody\t–\t–\n").tables["2"].rows
    assert {row.source for row in rows} == {"unknown"}
    # a row without values needs none
    assert "source: unknown in 5 rows. " in capsys.readouterr().out
    path = project / "papers" / "pasted.yaml"
    assert path.read_text().count("source: unknown") == 5
    path.write_text(path.read_text().replace("      source: unknown\n", "", 2))
    assert cli.main(["render", "pasted/table2"]) == 0
    page = capsys.readouterr().out
    assert (
        "SimCSE; CT; ESimCSE; DiffCSE; InfoCSE: source not stated." in page
        and "measured by" not in page
    )
    assert cli.main(["show", "pasted/table2", "--row", "SimCSE", "--column", "Avg."]) == 0
    assert "76.25, 1 seed, source not stated" in " ".join(capsys.readouterr().out.split())


def test_rows_of_tasks_become_columns(project):
    table = paper_from(
        project, "Data\tSimCSE\tESimCSE\nSTS12\t70.1\t\nAverage\t71.1\t72.1\n"
    ).tables["1"]
    assert [c.task for c in table.columns] == ["STS12", "Avg."]
    values = [[value and value.value for value in row.values] for row in table.rows]
    assert ([row.run.method for row in table.rows], values) == (
        ["simcse", "esimcse"],
        [[70.1, 71.1], [None, 72.1]],
    )


def test_a_published_paper_is_read_as_it_was_transcribed_by_hand(project):
    ours = paper_from(
        project, (ROOT / "tests/protocol/published/micse.tsv").read_text(encoding="utf-8")
    )
    for name, theirs in catalog.paper("micse").tables.items():
        if isinstance(theirs, SettingsTable):
            continue
        table = ours.tables[name]
        # others are derived
        printed = [index for index, column in enumerate(theirs.columns) if column.task]
        columns = [theirs.columns[index] for index in printed]
        assert [(c.task, c.size) for c in table.columns] == [(c.task, c.size) for c in columns]
        for row, other in zip(table.rows, theirs.rows, strict=True):
            values = [other.values[index] for index in printed]
            assert [v and (v.value, v.std) for v in row.values] == [
                v and (v.value, v.std) for v in values
            ]
            assert row.run is None or other.run is None or row.run.method == other.run.method, (
                row.label
            )
