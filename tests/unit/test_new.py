"""`csebench new`: what it writes works at once, and what it reads of a pasted table is what is printed there."""

import pytest

from csebench import cli
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.cli import new
from csebench.plan import catalog, grids, registry, targets
from csebench.plan.declarations import Declaration, EvaluatorDeclaration
from csebench.plan.papers import Paper, SettingsTable

PUBLISHED = ROOT / "tests" / "protocol" / "published"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder that new files are written to."""
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paper_from(project, name, text):
    (project / "table.tsv").write_text(text, encoding="utf-8")
    assert cli.main(["new", "paper", name, "--from", str(project / "table.tsv")]) == 0
    return read_yaml(project / "papers" / f"{name}.yaml", Paper)


@pytest.mark.parametrize("kind", new.KINDS)
def test_a_new_file_is_valid_under_its_name(kind, project, capsys):
    assert cli.main(["new", kind, "mine_2"]) == 0
    path = project / capsys.readouterr().out.splitlines()[0]
    if kind == "paper":
        assert read_yaml(path, Paper).name == "mine_2"
        schema = path.read_text().splitlines()[0].partition("$schema=")[2]
        assert (path.parent / schema).samefile(ROOT / "docs/schemas/paper.json")
    else:
        model = EvaluatorDeclaration if kind == "evaluator" else Declaration
        declared = model.model_validate(registry.read_literal(path, "DECLARATION"))
        assert (declared.name, declared.title) == ("mine_2", "Mine 2")
    assert "emplate" not in path.read_text()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("method simcse", "methods/simcse.py: exists"),
        ("method components", "methods/components.py: exists, or a folder"),
        ("paper micse", "papers/micse.yaml: exists"),
        ("method My-Method", "'My-Method'"),
        ("method a_name_that_no_listing_shows", "at most 20"),
        ("paper table3", "papers/table3.yaml: 'table3' is reserved"),
        ("paper mini", "config/ has this name"),
        ("method mine --from table.tsv", "--from: only a paper"),
        ("paper mine --from nowhere.tsv", "nowhere.tsv: no such file"),
        ("paper mine --from empty.tsv", "empty.tsv: needs a line with the labels of columns"),
        ("paper mine --from strange.tsv", "strange.tsv: no column is a task"),
    ],
)
def test_what_cannot_be_written_is_refused(words, part, project, capsys, monkeypatch):
    monkeypatch.chdir(project)
    (project / "empty.tsv").write_text("\n")
    (project / "strange.tsv").write_text("Model\tfoo\nOurs\t1.0\n")
    assert cli.main(["new", *words.split()]) == 2
    assert part in capsys.readouterr().err
    assert not [path for path in project.rglob("*") if path.suffix in (".py", ".yaml")]


CELLS = {
    " 78.13 ± 0.4 ": "78.13 ± 0.4",
    "**78.13**†": "78.13",
    r"\textbf{78.13}$_{\pm .40}$": "78.13±0.40",
    "78.13+/-0.4": "78.13±0.4",
    "−1.43": "-1.43",
    "84.5%": "84.5",
    "–": None,
    "7x.1": None,
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_read_without_its_marks(cell, project, capsys):
    (row,) = paper_from(project, "pasted", f"Model\tSTS12\tAvg.\nSimCSE\t{cell}\t70.00\n").tables["1"].rows
    assert [value and value.text for value in row.values] == [CELLS[cell], "70.00"]
    assert ("'7x.1' is no number" in capsys.readouterr().out) == (cell == "7x.1")


def test_labels_give_tasks_and_recipes_and_the_rest_is_listed(project, capsys):
    text = "Model\tMR\tCR\tspeed\tAverage\nSimCSE-BERT_large\t1\t2\t3\t4\nNobody's (us, 2026)\t5\t6\t7\t8\n"
    table = paper_from(project, "pasted", f"# table A1\n{text}").tables["A1"]
    assert (table.evaluator, [c.task for c in table.columns]) == ("transfer", ["MR", "CR", "Avg."])
    known, unknown = table.rows
    assert (known.run.method, known.run.encoder, unknown.run) == ("simcse", "bert-large", None)
    out = capsys.readouterr().out
    assert "table A1: column 'speed': no known task" in out and 'row "Nobody\'s (us, 2026)": no known method' in out


def test_what_could_mean_two_things_is_not_guessed(project, capsys):
    """Papers print rows of one label for several methods, and tables have columns of one label."""
    text = "Model\tSTS12\tSTS12\nSimCSE-BERT_base\t1.0\t2.0\t3.0\n"
    (row,) = paper_from(project, "pasted", text).tables["1"].rows
    assert (row.run.method, [value.text for value in row.values]) == ("simcse", ["2.0"])
    out = capsys.readouterr().out
    assert "'STS12': occurs twice, the last is taken" in out and "'3.0' is behind the last column" in out


def test_rows_of_tasks_become_columns(project):
    table = paper_from(project, "pasted", "Data\tSimCSE\tESimCSE\nSTS12\t70.1\t\nSTS13\t71.1\t72.1\n").tables["1"]
    assert [c.task for c in table.columns] == ["STS12", "STS13"]
    values = [[value and value.value for value in row.values] for row in table.rows]
    assert ([row.run.method for row in table.rows], values) == (["simcse", "esimcse"], [[70.1, 71.1], [None, 72.1]])


def test_a_published_paper_is_read_as_it_was_transcribed_by_hand(project):
    """Every number of miCSE's tables, its columns, and the method of every row that has one by its label."""
    ours = paper_from(project, "pasted", (PUBLISHED / "micse.tsv").read_text(encoding="utf-8"))
    for name in targets.grid_names("micse"):
        if name.startswith("figure") or isinstance(grids.find_grid("micse", name), SettingsTable):
            continue
        theirs, table = grids.find_grid("micse", name), ours.tables[name.removeprefix("table")]
        printed = [index for index, column in enumerate(theirs.columns) if column.task]  # others are derived
        columns = [theirs.columns[index] for index in printed]
        assert [(c.task, c.size) for c in table.columns] == [(c.task, c.size) for c in columns]
        for row, other in zip(table.rows, theirs.rows, strict=True):
            values = [other.values[index] for index in printed]
            assert [v and (v.value, v.std) for v in row.values] == [v and (v.value, v.std) for v in values]
            assert row.run is None or other.run is None or row.run.method == other.run.method, row.label


def test_the_templates_are_no_files_of_the_project():
    assert "_template" not in (*catalog.paper_files(), *registry.names(registry.COMPONENTS))
