"""What docs/security.md promises: data is never run, and its texts reach pages as texts."""

import ast
import json
import re

import pytest
from made_up import clear, made_up, table

from csebench import cli
from csebench.base.project import ROOT
from csebench.report.pages import PAGES

FOLDERS = ("csebench", "methods", "evaluators", "benchmarks", "encoders")
CODE = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
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
CLAIM = {"quote": HOSTILE, "section": HOSTILE, "table": "2", "row": HOSTILE, "columns": [HOSTILE]}
CLAIM |= {"versus": ["x # y"]}
PAPER = {
    "name": "evil",
    **dict.fromkeys(("label", "title", "reference"), HOSTILE),
    "tables": {"2": TABLE},
}
PAPER |= {
    "url": "https://example.org/paper",
    "claims": [CLAIM],
    "errata": [{"where": "table2", "text": HOSTILE}],
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a paper and a source of evidence that hold HTML, scripts and Markdown."""
    made_up(tmp_path, monkeypatch, PAPER)
    (tmp_path / "evidence").mkdir()
    for name in ("evidence/methods.yaml", "evidence/Echo.yaml"):
        text = re.sub(
            "^who: .*$", f"who: {json.dumps(HOSTILE)}", (ROOT / name).read_text(), flags=re.M
        )
        (tmp_path / name).write_text(text)
    yield
    clear()


@pytest.mark.parametrize("target", ["evil/table2", *PAGES])
def test_hostile_texts_stay_texts_in_markdown(target, project, capsys):
    assert cli.main(["render", target]) == 0
    page = capsys.readouterr().out
    assert "script>alert(1)" in page  # it is shown
    assert set(re.findall(r"<[A-Za-z/!?][^>]*>", page)) <= {
        "<details>",
        "<summary>",
        "</summary>",
        "</details>",
    }
    assert page.count("</details>") == page.count("<details><summary>") == page.count("</summary>")
    assert {
        image for image in re.findall(r"!\[.*?\]\S*", page) if "http" in image or "][" in image
    } == set()
    assert not re.search(r"\]\(\s*(javascript|data|vbscript):", page, re.I)
    for rows in re.findall(r"(?:^\|.*\n)+", page, flags=re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1, rows
        assert not any(len(re.findall(r"(?<!\\)`", row)) % 2 for row in rows.splitlines()), rows


# and pickle, and yaml.load but with our loader
FORBIDDEN = {"eval", "exec", "compile_command", "system", "popen"}
LOADERS = {
    "from_pretrained",
    "from_config",
    "SentenceTransformer",
    "Transformer",
    "CrossEncoder",
    "SparseEncoder",
}
# of transformers, sentence-transformers, mteb and datasets
LOADERS |= {"pipeline", "get_model", "load_dataset"}


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_that_is_read_can_run_code(path):
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    assert not imported & {"pickle", "marshal", "shelve", "joblib", "dill"}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in calls:
        receiver, _, name = ast.unparse(call.func).rpartition(".")
        where = f"line {call.lineno}"
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        loads = name in LOADERS and "modules" not in keywords  # which are loaded already
        assert keywords.get("trust_remote_code") == ("False" if loads else None), where
        assert (
            keywords.get("shell", "False") == "False"
            and keywords.get("allow_pickle", "False") == "False"
        ), where
        assert name not in FORBIDDEN or receiver not in ("", "os"), where
        if receiver == "torch" and name == "load":
            assert keywords.get("weights_only") == "True", where
        if receiver == "yaml" and name in ("load", "compose"):
            assert ast.unparse(call.args[1]) == "Loader", where
    called = {id(call.func) for call in calls}  # so that no call hides behind another name
    named = [node for node in nodes if getattr(node, "attr", getattr(node, "id", "")) in LOADERS]
    assert not [f"line {node.lineno}" for node in named if id(node) not in called]
