"""README.md and docs/*.md: links lead somewhere, and shown outputs are those of the commands."""

import argparse
import contextlib
import io
import re
import runpy
import shlex

import pytest

from csebench import cli
from csebench.base.project import ROOT
from csebench.cli.verbs import parser

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
VERBS = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
CHEAP = {"audit", "evaluators", "papers", "show"}  # verbs
examples = runpy.run_path(str(ROOT / "docs" / "examples.py"))
FOLDERS = "csebench|tests|benchmarks|config|data|envs|profiles"
REPOSITORY_FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.\w+)(?::(\w+))?`")  # with a name in it


def without_blocks(path):
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """The anchors that GitHub, and the site, give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_blocks(page)))
    for link in (link for link in links if not link.startswith(("http://", "https://"))):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    for file, name in REPOSITORY_FILE.findall(page.read_text(encoding="utf-8")):
        assert name in (ROOT / file).read_text(encoding="utf-8"), f"{file}: no {name}"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_commands_have_the_options_that_they_use(page):
    """In blocks and in sentences, but those that leave something out."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^\s*(?:\$ )?csebench (\S+ .+?)(?:\s{2,}#.*)?$", text, re.MULTILINE)
    for command in [*blocks, *re.findall(r"`csebench (\S+\s[^`]+)`", text)]:
        if command.split()[0] in VERBS and not re.search(r"[…<\[$]", command):
            parser().parse_args(shlex.split(command))


@pytest.mark.slow
def test_outputs_are_those_of_a_clean_clone(capsys):
    assert examples["main"](["--check"]) == 0, capsys.readouterr().err


def test_outputs_are_not_stale():
    """Of the commands that take no time, and whose output no run and no data changes."""
    shown = []

    def run(arguments):
        if shlex.split(arguments)[0] not in CHEAP:
            return None
        shown.append(arguments)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert cli.main(shlex.split(arguments)) == 0
        return output.getvalue()

    for path in examples["texts"]():
        text = path.read_text(encoding="utf-8")
        assert examples["rewrite"](text, run) == text, f"{path.name}: run `python docs/examples.py`"
    assert shown


def test_the_picture_of_the_rooms_is_not_stale():
    drawing = runpy.run_path(str(ROOT / "docs" / "draw_rooms.py"))
    assert drawing["PICTURE"].read_text() == drawing["draw"](), "run `python docs/draw_rooms.py`"


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
