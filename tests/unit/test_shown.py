"""Texts from outside, such as the name of a GPU in a score JSON or the message of a failed run:
on pages, in a terminal, in CSV and JSON they are one line of visible characters, and nothing but
a text."""

import csv
import io
import json
import re
from pathlib import Path

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
]
HIDDEN += ["\u202a", "\u202e", "\u2066", "\u2069", "\u2060", "\ufeff", "\ufff9", "\U000e0041"]
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
    return shown.HIDDEN.search(text) is None and len(text.splitlines()) <= 1


@pytest.mark.parametrize("part", BREAKS + HIDDEN, ids=ascii)
def test_a_text_is_one_line_of_visible_characters(part):
    text = shown.visible(f"a{part}b")
    # something shows that it was there
    assert is_clean(text) and text[0] == "a" and text[-1] == "b" and len(text) > 2


WORDS = ["déjà vu", "日本語", "שלום", "می\u200cخواهم", "👩\u200d🔬", "a\u00a0b", "–", "±"]


@pytest.mark.parametrize("text", WORDS, ids=ascii)
def test_words_of_any_language_stay(text):
    assert shown.visible(text) == shown.as_csv_cell(text) == shown.as_json_escapes(text) == text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*BREAKS, *HIDDEN, *"=+-@'ab1.,|", "\ud800"])).map("".join))
def test_whatever_a_text_holds(text):
    assert is_clean(shown.visible(text)) and shown.visible(shown.visible(text)) == shown.visible(
        text
    )
    assert all(is_clean(line) for line in shown.visible_lines(text).split("\n"))
    cell = shown.as_csv_cell(text)
    assert is_clean(cell) and (cell[:1] not in "=@" or not cell)
    content = json.dumps(text, ensure_ascii=False)
    assert json.loads(shown.as_json_escapes(content)) == text and is_clean(
        shown.as_json_escapes(content)
    )


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
        cells = [
            cell for row in csv.reader(io.StringIO(path.read_text(), newline="")) for cell in row
        ]
        assert cells and [shown.as_csv_cell(cell) for cell in cells] == cells, path


def test_the_head_of_a_csv_file_is_no_formula():
    assert terminal.csv_text(["=1", "b"], [{"=1": 1, "b": "x\ny"}]) == "'=1,b\n1,x y\n"


@pytest.mark.parametrize("part", [part for part in HIDDEN if part != "\U000e0041"], ids=ascii)
def test_a_terminal_gets_no_control_characters(part, capsys):
    terminal.print_text(f"a{part}b\nc")
    terminal.print_table(["x", f"y{part}"], [[f"a{part}\nb", 1.5]])
    terminal.print_table(["x"], [[f"a{part}"]], as_json=True)
    printed = capsys.readouterr().out
    assert all(is_clean(line) for line in printed.split("\n")) and json.loads(
        printed[printed.rindex("\n[\n") :]
    )


# ---------------------------------------------------------------- pages


def parsed(page):
    """The kinds of what a Markdown parser sees, with targets of links and images, and pieces of
    HTML."""
    markdown_it = pytest.importorskip("markdown_it")
    kinds, links, html = [], [], []
    for token in markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").parse(page):
        kinds.append(token.type)
        html += [token.content] if token.type == "html_block" else []
        for inner in token.children or []:
            links += (
                [str(inner.attrs.get("href", inner.attrs.get("src")))]
                if inner.type in ("link_open", "image")
                else []
            )
            html += [inner.content] if inner.type == "html_inline" else []
    return kinds, links, html


def test_every_part_of_a_page_is_a_text():
    table = TextTable([HOSTILE, "b"], [[HOSTILE, "x"]], HOSTILE)
    page = PageContent(HOSTILE, HOSTILE, [Picture("x.svg", HOSTILE), table, Fold(HOSTILE, [table])])
    text = page.write("markdown")
    kinds, links, html = parsed(text)
    assert kinds.count("heading_open") == 1 and kinds.count("table_open") == 2
    assert not [link for link in links if link.endswith("x.png")]
    assert all(
        re.fullmatch(r"</?(details|summary)>", tag)
        for piece in html
        for tag in re.findall(r"<[^>]*>", piece)
    )
    assert text.count("</details>") == 1 and all(is_clean(line) for line in text.split("\n"))
    for form in ("latex", "csv", "json"):
        assert all(is_clean(line) for line in page.write(form).split("\n"))


def edited_scores(name, folder, edit):
    """Copies the scores of a page to a folder, edited, with digests that fit."""
    (page,) = targets.parse_target(name, SCALE)
    for run, evaluator in page.scores():
        path = targets.score_path(run, evaluator, SCALE)
        content = json.loads((ROOT / path).read_text())
        edit(content)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(files.with_digest(content)))


def name_hardware(content):
    for made in (content["provenance"], content["training"]["provenance"]):
        made |= {
            "commit": f"]{HOSTILE}",
            "gpu": HOSTILE,
            "processor": HOSTILE,
            "unversioned_code": [HOSTILE],
        }
        made["packages"]["torch"] = HOSTILE


def retrieve_hostile_texts(content):
    content["texts"]["queries"] = [HOSTILE for _ in content["texts"]["queries"]]
    content["texts"]["retrieved"] = [
        [HOSTILE for _ in texts] for texts in content["texts"]["retrieved"]
    ]


@pytest.mark.parametrize("edit", [name_hardware, retrieve_hostile_texts])
def test_texts_of_score_files_change_nothing_but_themselves(edit, tmp_path, monkeypatch, capsys):
    """The page with them has the headings, tables, images and HTML of the page without; its
    lines are clean."""
    pages = []
    for folder, change in (("plain", lambda _: None), ("hostile", edit)):
        edited_scores("msse/table8", tmp_path / folder, change)
        monkeypatch.chdir(tmp_path / folder)
        assert cli.main(["render", "msse/table8", "--scale", SCALE]) == 0
        pages.append(capsys.readouterr().out)
    (kinds, links, html), (hostile_kinds, hostile_links, hostile_html) = map(parsed, pages)
    assert all(is_clean(line) for line in pages[1].split("\n")) and "heading" in pages[1]
    for kind in (
        "heading_open",
        "table_open",
        "bullet_list_open",
        "list_item_open",
        "code_block",
        "fence",
    ):
        # code of a unit that changed
        extra = 2 if kind == "list_item_open" and edit is name_hardware else 0
        assert 0 <= hostile_kinds.count(kind) - kinds.count(kind) <= extra, kind
    assert html == hostile_html
    assert [link for link in links if link.endswith(".svg")] == [
        link for link in hostile_links if ".svg" in link
    ]
    assert not [link for link in hostile_links if link.endswith("x.png")]
    assert edit is retrieve_hostile_texts or hostile_links == links


@pytest.mark.parametrize("where", ["progress", "note"])
def test_the_reason_of_a_failed_run_is_one_line(where, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    caches.clear()
    (page,) = targets.parse_target("micse/table2", "smoke")
    run, evaluator = next(iter(page.scores()))
    folder = tmp_path / "runs" / run
    folder.mkdir(parents=True)
    if where == "progress":
        progress = {
            "run": run,
            "state": "failed",
            "message": HOSTILE,
            "gpu": HOSTILE,
            "host": HOSTILE,
        }
        (folder / "progress.json").write_text(json.dumps(progress))
    else:
        (folder / "scores").mkdir()
        (folder / "scores" / f"{evaluator}.failed.txt").write_text(HOSTILE)
    assert cli.main(["render", "micse/table2"]) == 0
    text = capsys.readouterr().out
    kinds, links, html = parsed(text)
    assert "example.org" in text and kinds.count("heading_open") == 1
    assert not [link for link in links if "example.org" in link] and "img" not in "".join(html)
    assert text.count("</details>") == text.count("<details>")
    for command in (
        ["status", "micse/table2"],
        ["show", "micse/table2", "--row", "miCSE"],
        ["work", run, "--attempt", "2"],
    ):
        cli.main(command)
        printed = capsys.readouterr()
        assert all(is_clean(line) for line in (printed.out + printed.err).split("\n")), command


# ---------------------------------------------------------------- files of the user, and messages


@pytest.mark.parametrize("part", [*HIDDEN, "\x85", "\u2028"], ids=ascii)
@pytest.mark.parametrize("place", ["value", "key"])
def test_a_yaml_file_with_what_cannot_be_seen_is_refused(part, place, tmp_path):
    path = tmp_path / "mine.yaml"
    content = {"title": f"a{part}b"} if place == "value" else {f"a{part}b": "x"}
    path.write_text(json.dumps(content, ensure_ascii=part[0] < "\uffff"), encoding="utf-8")
    with pytest.raises(
        BadInput, match=r"line 1: .*the character '\\[uxU].*' cannot be printed"
    ) as error:
        read_yaml(path, Paper)
    assert is_clean(str(error.value))


@pytest.mark.parametrize("key", ["title", "reference"])
def test_a_title_is_one_line(key, tmp_path):
    content = {"name": "mine", "title": "t", "reference": "r", "tables": {}} | {key: "x\n# y"}
    (tmp_path / "mine.yaml").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=f"line 1: {key}: must be one line"):
        read_yaml(tmp_path / "mine.yaml", Paper)


ARGUMENTS = [
    ["show", HOSTILE.replace("\0", "")],
    ["plan", "table\x1b[31m"],
    ["train", '{"a\\u001b[31m": 1}', "--out", "x"],
]
ARGUMENTS += [
    ["render", "audit", "--out", "no\x1b[31m/\u202e/x/"],
    ["evaluate", "--model", "\x9b31m", "--out", "x"],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=ascii)
def test_a_message_shows_no_control_characters(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("no\x1b[31m").write_text("a file")
    assert cli.main(arguments) == 2
    assert all(is_clean(line) for line in capsys.readouterr().err.split("\n"))
