"""README.md and docs/*.md: links lead somewhere, and shown outputs are those of the commands."""

import contextlib
import io
import re
import runpy
import shlex

import pytest

from csebench import ROOT, cli

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CHEAP = {"audit", "evaluators", "papers", "show"}  # verbs
examples = runpy.run_path(str(ROOT / "docs" / "examples.py"))
REPOSITORY_FILE = re.compile(r"`((?:csebench|tests|benchmarks|config|data|envs|profiles)/[\w./-]+\.\w+)`")


def without_code(text):
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """The anchors that GitHub, and the site, give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    for name in REPOSITORY_FILE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name


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


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
