"""Texts from outside, such as the name of a GPU in a score JSON or the message of a failed run.

On pages, in a terminal, in CSV and in JSON they are one line of visible characters, and nothing but
a text.
"""

import csv
import io
import json
import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csebench import cli
from csebench.base import caches, files, shown, terminal
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_yaml
from csebench.plan import targets
from csebench.plan.schema.paper import Paper
from csebench.report.pages.page import Fold, PageContent, Picture, TextTable

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\t"]
TAG = "\U000e0041"  # a tag character
HIDDEN = [
    "\0",
    "\x07",
    "\x08",
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x7f",
    "\x9b31m",
    "\u200b",
    "\u200e",
    "\u200f",
    "\u061c",
    "\u202a",
    "\u202e",
    "\u2066",
    "\u2069",
    "\u2060",
    "\ufeff",
    "\ufff9",
    TAG,
]
MARKUP = [
    "</details>",
    "<img src=x>",
    "![x](https://example.org/x.png)",
    "[x](https://example.org)",
    "`",
    "|",
    "**x**",
]
FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(A1)",
    " =1",
    "\t=1",
    "\r=1",
    "-A1",
]
HOSTILE = "gpu\n# heading\n" + "".join(BREAKS + HIDDEN) + " ".join(MARKUP)
SCALE = "mini"


def is_clean(text):
    """Tell whether a text is one line of visible characters."""
    return shown.HIDDEN.search(text) is None and len(text.splitlines()) <= 1


def assert_lines_are_clean(text):
    """Check every line of a text that is printed or written."""
    for line in text.split("\n"):
        assert is_clean(line), repr(line)


@pytest.mark.parametrize("part", BREAKS + HIDDEN, ids=ascii)
def test_a_text_is_one_line_of_visible_characters(part):
    text = shown.visible(f"a{part}b")
    assert is_clean(text)
    assert text[0] == "a"
    assert text[-1] == "b"
    assert len(text) > 2, "something shows that the part was there"


WORDS = ["déjà vu", "日本語", "שלום", "می\u200cخواهم", "👩\u200d🔬", "a\u00a0b", "–", "±"]


@pytest.mark.parametrize("text", WORDS, ids=ascii)
def test_words_of_any_language_stay(text):
    assert shown.visible(text) == text
    assert shown.as_csv_cell(text) == text
    assert shown.as_json_escapes(text) == text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*BREAKS, *HIDDEN, *"=+-@'ab1.,|", "\ud800"])).map("".join))
def test_whatever_a_text_holds(text):
    visible = shown.visible(text)
    assert is_clean(visible)
    assert shown.visible(visible) == visible
    assert_lines_are_clean(shown.visible_lines(text))

    cell = shown.as_csv_cell(text)
    assert is_clean(cell)
    assert not cell.startswith(("=", "@"))

    escaped = shown.as_json_escapes(json.dumps(text, ensure_ascii=False))
    assert is_clean(escaped)
    assert json.loads(escaped) == text


@pytest.mark.parametrize("text", FORMULAS)
def test_a_spreadsheet_computes_no_text(text):
    (row,) = csv.DictReader(io.StringIO(terminal.csv_text(["a"], [{"a": text}])))
    assert row["a"].startswith("'")


NUMBERS = [
    -0.5,
    3,
    "-0.5",
    "+0.30",
    "-1.58 ± 0.03",
    "-0.18 to +0.30",
    "-",
    "-1e-05",
    "-12.5%",
    "",
    None,
]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_stay_in_a_csv_file(value):
    assert shown.as_csv_cell(value) == value


def test_every_published_csv_file_stays_as_it_is():
    for path in (ROOT / "results").rglob("*.csv"):
        rows = csv.reader(io.StringIO(path.read_text(), newline=""))
        cells = list(chain.from_iterable(rows))
        assert cells, path
        assert [shown.as_csv_cell(cell) for cell in cells] == cells, path


def test_the_head_of_a_csv_file_is_no_formula():
    assert terminal.csv_text(["=1", "b"], [{"=1": 1, "b": "x\ny"}]) == "'=1,b\n1,x y\n"


@pytest.mark.parametrize("part", [part for part in HIDDEN if part != TAG], ids=ascii)
def test_a_terminal_gets_no_control_characters(part, capsys):
    terminal.print_text(f"a{part}b\nc")
    terminal.print_table(["x", f"y{part}"], [[f"a{part}\nb", 1.5]])
    terminal.print_table(["x"], [[f"a{part}"]], as_json=True)
    printed = capsys.readouterr().out
    assert_lines_are_clean(printed)
    last_table = printed[printed.rindex("\n[\n") :]
    assert json.loads(last_table)


# ---------------------------------------------------------------- pages


class Parsed(NamedTuple):
    """The parts of a page that a Markdown parser sees."""

    kinds: list[str]  # of its blocks
    links: list[str]  # targets of links and images
    html: list[str]  # pieces of HTML


def parsed(page):
    """Parse a page in Markdown."""
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    result = Parsed([], [], [])
    for token in parser.parse(page):
        result.kinds.append(token.type)
        if token.type == "html_block":
            result.html.append(token.content)
        for inner in token.children or []:
            if inner.type == "link_open":
                result.links.append(inner.attrs["href"])
            elif inner.type == "image":
                result.links.append(inner.attrs["src"])
            elif inner.type == "html_inline":
                result.html.append(inner.content)
    return result


def assert_only_folds_are_html(pieces):
    """Check that the HTML of a page opens and closes what is folded, and does nothing else."""
    for piece in pieces:
        for tag in re.findall(r"<[^>]*>", piece):
            assert re.fullmatch(r"</?(details|summary)>", tag)


def test_every_part_of_a_page_is_a_text():
    table = TextTable([HOSTILE, "b"], [[HOSTILE, "x"]], HOSTILE)
    page = PageContent(HOSTILE, HOSTILE, [Picture("x.svg", HOSTILE), table, Fold(HOSTILE, [table])])

    markdown = page.write("markdown")
    content = parsed(markdown)
    assert content.kinds.count("heading_open") == 1
    assert content.kinds.count("table_open") == 2
    assert not [link for link in content.links if link.endswith("x.png")]
    assert_only_folds_are_html(content.html)
    assert markdown.count("</details>") == 1
    assert_lines_are_clean(markdown)
    for form in ("latex", "csv", "json"):
        assert_lines_are_clean(page.write(form))


def edited_scores(name, folder, edit):
    """Copy the scores of a page to a folder and edit them. Their digests fit."""
    (page,) = targets.parse_target(name, SCALE)
    for run, evaluator in page.scores():
        path = targets.score_path(run, evaluator, SCALE)
        content = json.loads((ROOT / path).read_text())
        edit(content)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(files.with_digest(content)))


def leave_as_it_is(content):
    pass


def name_hardware(content):
    """Put hostile texts into everything that was noted about the machine and the code."""
    for provenance in (content["provenance"], content["training"]["provenance"]):
        provenance["commit"] = f"]{HOSTILE}"
        provenance["gpu"] = HOSTILE
        provenance["processor"] = HOSTILE
        provenance["unversioned_code"] = [HOSTILE]
        provenance["packages"]["torch"] = HOSTILE


def retrieve_hostile_texts(content):
    """Replace all queries and all texts that were retrieved."""
    texts = content["texts"]
    texts["queries"] = [HOSTILE] * len(texts["queries"])
    texts["retrieved"] = [[HOSTILE] * len(found) for found in texts["retrieved"]]


BLOCKS = (
    "heading_open",
    "table_open",
    "bullet_list_open",
    "list_item_open",
    "code_block",
    "fence",
)


@pytest.mark.parametrize("edit", [name_hardware, retrieve_hostile_texts])
def test_texts_of_score_files_change_nothing_but_themselves(edit, tmp_path, monkeypatch, capsys):
    """The page with hostile texts has the headings, tables, images and HTML of the page without.
    Its lines are clean."""

    def render(folder, change):
        edited_scores("msse/table8", folder, change)
        monkeypatch.chdir(folder)
        assert cli.main(["render", "msse/table8", "--scale", SCALE]) == 0
        return capsys.readouterr().out

    plain = parsed(render(tmp_path / "plain", leave_as_it_is))
    hostile_page = render(tmp_path / "hostile", edit)
    hostile = parsed(hostile_page)

    assert_lines_are_clean(hostile_page)
    assert "heading" in hostile_page
    for kind in BLOCKS:
        most_added = 0
        if kind == "list_item_open" and edit is name_hardware:
            most_added = 2  # code of a unit that changed
        added = hostile.kinds.count(kind) - plain.kinds.count(kind)
        assert 0 <= added <= most_added, kind
    assert hostile.html == plain.html
    pictures = [link for link in plain.links if link.endswith(".svg")]
    assert [link for link in hostile.links if ".svg" in link] == pictures
    assert not [link for link in hostile.links if link.endswith("x.png")]
    if edit is name_hardware:
        assert hostile.links == plain.links


def fail_in_training(folder, run, evaluator):
    """Leave the progress of a run whose training failed."""
    progress = {"run": run, "state": "failed", "message": HOSTILE, "gpu": HOSTILE, "host": HOSTILE}
    (folder / "progress.json").write_text(json.dumps(progress))


def fail_in_evaluation(folder, run, evaluator):
    """Leave the note of an evaluation that failed."""
    (folder / "scores").mkdir()
    (folder / "scores" / f"{evaluator}.failed.txt").write_text(HOSTILE)


@pytest.mark.parametrize("fail", [fail_in_training, fail_in_evaluation])
def test_the_reason_of_a_failed_run_is_one_line(fail, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    caches.clear()
    (page,) = targets.parse_target("micse/table2", "smoke")
    run, evaluator = next(iter(page.scores()))
    folder = tmp_path / "runs" / run
    folder.mkdir(parents=True)
    fail(folder, run, evaluator)

    assert cli.main(["render", "micse/table2"]) == 0
    text = capsys.readouterr().out
    assert "example.org" in text
    content = parsed(text)
    assert content.kinds.count("heading_open") == 1
    assert not [link for link in content.links if "example.org" in link]
    assert "img" not in "".join(content.html)
    assert text.count("</details>") == text.count("<details>")

    for command in (
        ["status", "micse/table2"],
        ["show", "micse/table2", "--row", "miCSE"],
        ["work", run, "--attempt", "2"],
    ):
        cli.main(command)
        printed = capsys.readouterr()
        assert_lines_are_clean(printed.out)
        assert_lines_are_clean(printed.err)


# ---------------------------------------------------------------- files of the user, and messages


@pytest.mark.parametrize("part", [*HIDDEN, "\x85", "\u2028"], ids=ascii)
@pytest.mark.parametrize("place", ["value", "key"])
def test_a_yaml_file_with_what_cannot_be_seen_is_refused(part, place, tmp_path):
    path = tmp_path / "mine.yaml"
    content = {"title": f"a{part}b"}
    if place == "key":
        content = {f"a{part}b": "x"}
    needs_no_escape = part[0] >= "\uffff"
    path.write_text(json.dumps(content, ensure_ascii=not needs_no_escape), encoding="utf-8")
    message = r"line 1: .*the character '\\[uxU].*' cannot be printed"
    with pytest.raises(BadInput, match=message) as error:
        read_yaml(path, Paper)
    assert is_clean(str(error.value))


@pytest.mark.parametrize("key", ["title", "reference"])
def test_a_title_is_one_line(key, tmp_path):
    content = {"name": "mine", "title": "t", "reference": "r", "tables": {}}
    content[key] = "x\n# y"
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=f"line 1: {key}: must be one line"):
        read_yaml(path, Paper)


ARGUMENTS = [
    ["show", HOSTILE.replace("\0", "")],
    ["plan", "table\x1b[31m"],
    ["train", '{"a\\u001b[31m": 1}', "--out", "x"],
    ["render", "audit", "--out", "no\x1b[31m/\u202e/x/"],
    ["evaluate", "--model", "\x9b31m", "--out", "x"],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=ascii)
def test_a_message_shows_no_control_characters(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("no\x1b[31m").write_text("a file")
    assert cli.main(arguments) == 2
    assert_lines_are_clean(capsys.readouterr().err)
