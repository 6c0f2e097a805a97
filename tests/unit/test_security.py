"""The promises of docs/security.md: data is never run, and its texts reach pages as texts."""

import ast
import json
import re

import pytest
from made_up import clear, made_up, table

from csebench import cli
from csebench.base.project import ROOT
from csebench.report.pages import PAGES

FOLDERS = ("csebench", "methods", "evaluators", "benchmarks", "encoders")
CODE = []
for folder in FOLDERS:
    CODE += sorted((ROOT / folder).rglob("*.py"))
HOSTILE = "<script>alert(1)</script> | <img src=x onerror=alert(1)> [x](javascript:alert(1)) `"
HOSTILE += " [x]( JavaScript:alert(1)) [x](data:text/html,x) [x](vbscript:x)"
HOSTILE += " </details> <summary> ![x](https://example.org/x.png) ![x][y] <http://example.org>"
COLUMNS = [
    {"label": HOSTILE, "task": "Avg.", "size": "1%"},
    {"label": "b", "task": "STS12", "size": "1%"},
]
ROWS = {HOSTILE: ("bert", ["31.40", None]), "x # y": (None, ["1.0", None])}
TABLE = table(ROWS, COLUMNS, caption=HOSTILE, notes=[HOSTILE]) | {"title": HOSTILE}
TABLE["rows"][1] |= {"missing": HOSTILE, "source": "copied", "from": HOSTILE}
CLAIM = {
    "quote": HOSTILE,
    "section": HOSTILE,
    "table": "2",
    "row": HOSTILE,
    "columns": [HOSTILE],
    "versus": ["x # y"],
}
PAPER = {
    "name": "evil",
    "label": HOSTILE,
    "title": HOSTILE,
    "reference": HOSTILE,
    "url": "https://example.org/paper",
    "tables": {"2": TABLE},
    "claims": [CLAIM],
    "errata": [{"where": "table2", "text": HOSTILE}],
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project whose paper and source of evidence hold HTML, scripts and Markdown."""
    made_up(tmp_path, monkeypatch, PAPER)
    (tmp_path / "evidence").mkdir()
    hostile_source = f"who: {json.dumps(HOSTILE)}"
    for name in ("evidence/methods.yaml", "evidence/Echo.yaml"):
        text = (ROOT / name).read_text()
        text = re.sub("^who: .*$", hostile_source, text, flags=re.M)
        (tmp_path / name).write_text(text)
    yield
    clear()


FOLDS = {"<details>", "<summary>", "</summary>", "</details>"}
UNESCAPED_PIPE = r"(?<!\\)\|"
UNESCAPED_BACKTICK = r"(?<!\\)`"


WITH_PAPERS = [name for name in PAGES if name != "settings"]  # which shows declarations alone


@pytest.mark.parametrize("target", ["evil/table2", *WITH_PAPERS])
def test_hostile_texts_stay_texts_in_markdown(target, project, capsys):
    assert cli.main(["render", target]) == 0
    page = capsys.readouterr().out
    assert "script>alert(1)" in page, "the text is shown"
    assert set(re.findall(r"<[A-Za-z/!?][^>]*>", page)) <= FOLDS
    folds = page.count("<details><summary>")
    assert page.count("</summary>") == folds
    assert page.count("</details>") == folds
    for image in re.findall(r"!\[.*?\]\S*", page):
        assert "http" not in image
        assert "][" not in image
    assert not re.search(r"\]\(\s*(javascript|data|vbscript):", page, re.I)

    for rows in re.findall(r"(?:^\|.*\n)+", page, flags=re.M):
        cells_in_rows = set()
        for row in rows.splitlines():
            cells_in_rows.add(len(re.findall(UNESCAPED_PIPE, row)))
            assert len(re.findall(UNESCAPED_BACKTICK, row)) % 2 == 0, row
        assert len(cells_in_rows) == 1, rows


# ---------------------------------------------------------------- files that are read run no code

RUN_ANYTHING = {"pickle", "marshal", "shelve", "joblib", "dill"}  # modules that run what they read
FORBIDDEN = {"eval", "exec", "compile_command", "system", "popen"}
# of transformers, sentence-transformers, mteb and datasets: they can run code of a model's author
LOADERS = {
    "from_pretrained",
    "from_config",
    "SentenceTransformer",
    "Transformer",
    "CrossEncoder",
    "SparseEncoder",
    "pipeline",
    "get_model",
    "load_dataset",
}


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_that_is_read_can_run_code(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    assert_imports_are_safe(nodes)
    for call in calls:
        assert_call_is_safe(call)
    assert_all_loaders_are_called(nodes, calls)


def assert_imports_are_safe(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            imported = {alias.name for alias in node.names}
            assert not imported & RUN_ANYTHING, f"line {node.lineno}"


def assert_call_is_safe(call):
    """Check that a call runs no text or file, and refuses the code of a model's author."""
    receiver, _, name = ast.unparse(call.func).rpartition(".")
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    where = f"line {call.lineno}"

    trust = None
    if name in LOADERS and "modules" not in keywords:  # `modules` are loaded already
        trust = "False"
    assert keywords.get("trust_remote_code") == trust, where
    assert keywords.get("shell", "False") == "False", where
    assert keywords.get("allow_pickle", "False") == "False", where
    if receiver in ("", "os"):
        assert name not in FORBIDDEN, where
    if receiver == "torch" and name == "load":
        assert keywords.get("weights_only") == "True", where
    if receiver == "yaml" and name in ("load", "compose"):
        assert ast.unparse(call.args[1]) == "Loader", where


def assert_all_loaders_are_called(nodes, calls):
    """Check that no call of a loader hides behind another name."""
    called = {id(call.func) for call in calls}
    for node in nodes:
        if name_of(node) in LOADERS:
            assert id(node) in called, f"line {node.lineno}"


def name_of(node):
    """Return the name that an expression ends with, as `a` and `x.a` do, or an empty text."""
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
    return ""
