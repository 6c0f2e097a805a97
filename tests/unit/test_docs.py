"""README.md and docs/*.md: links lead somewhere, commands exist, and outputs are what the commands
print."""

import argparse
import json
import re
import runpy
import shlex

import jsonschema
import pytest
import yaml

from csebench.base.project import ROOT
from csebench.cli.verbs import parser

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "csebench|tests|benchmarks|config|data|envs|profiles"
REPOSITORY_FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.\w+)(?::(\w+))?`")  # with a name in it


def verbs():
    """List the commands of csebench."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    raise AssertionError("csebench has no commands")


def without_blocks(path):
    """Read a page and leave out its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def links_in(path):
    """List the links of a page to files and headings, without addresses on the web."""
    text = re.sub(r"`[^`\n]*`", "", without_blocks(path))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in links if not link.startswith(("http://", "https://"))]


def anchors(path):
    """List the anchors that GitHub, and the site, give to the headings of a page."""
    names = []
    for heading in re.findall(r"^#+ (.+)$", without_blocks(path), re.M):
        letters = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        names.append(letters.replace(" ", "-"))
    return names


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in links_in(page):
        file, _, anchor = link.partition("#")
        target = page
        if file:
            target = (page.parent / file).resolve()
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_files_that_a_page_names_have_what_it_names_in_them(page):
    for file, name in REPOSITORY_FILE.findall(page.read_text(encoding="utf-8")):
        assert name in (ROOT / file).read_text(encoding="utf-8"), f"{file}: no {name}"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_commands_have_the_options_that_they_use(page):
    """In blocks and in sentences. A command that leaves something out is not checked."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    in_blocks = re.findall(r"^\s*(?:\$ )?csebench (\S+ .+?)(?:\s{2,}#.*)?$", text, re.MULTILINE)
    in_sentences = re.findall(r"`csebench (\S+\s[^`]+)`", text)
    known_verbs = verbs()
    for command in in_blocks + in_sentences:
        leaves_something_out = re.search(r"[…<\[$]", command)
        if command.split()[0] in known_verbs and not leaves_something_out:
            parser().parse_args(shlex.split(command))


@pytest.mark.slow
def test_outputs_are_those_of_a_clean_clone(capsys):
    examples = runpy.run_path(str(ROOT / "docs" / "examples.py"))
    assert examples["main"](["--check"]) == 0, capsys.readouterr().err


def test_files_that_scripts_write_are_not_stale():
    """The schemas and their page, the reference of the command line, the picture of the rooms."""
    schemas = runpy.run_path(str(ROOT / "docs" / "schemas.py"))
    commands = runpy.run_path(str(ROOT / "docs" / "command_line.py"))
    rooms = runpy.run_path(str(ROOT / "docs" / "draw_rooms.py"))
    texts = {
        schemas["PAGE"]: schemas["reference"](),
        commands["PAGE"]: commands["reference"](),
        rooms["PICTURE"]: rooms["draw"](),
    }
    for name, text in schemas["schemas"]().items():
        texts[schemas["FOLDER"] / f"{name}.json"] = text

    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path}: run docs/schemas.py, docs/command_line.py or docs/draw_rooms.py"
        )


def resolvers_without_dates():
    """List how PyYAML tells types from texts, without dates."""
    resolvers = {}
    for letter, forms in yaml.SafeLoader.yaml_implicit_resolvers.items():
        resolvers[letter] = [form for form in forms if form[0] != "tag:yaml.org,2002:timestamp"]
    return resolvers


class AsEditorsRead(yaml.SafeLoader):
    """A reader of YAML 1.2, in which `3e-5` is a number and a date is a text."""

    yaml_implicit_resolvers = resolvers_without_dates()


AsEditorsRead.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)$"),
    list("-+.0123456789"),
)


@pytest.mark.parametrize("folder", ["papers", "config", "evidence"])
def test_a_file_fits_the_schema_that_it_names(folder):
    """As an editor checks it. Templates fit, too."""
    for path in sorted((ROOT / folder).glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        first_line = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
        assert first_line, f"{path.name}: the first line names no schema"
        schema = json.loads((path.parent / first_line[1]).read_text(encoding="utf-8"))
        validator = jsonschema.Draft202012Validator(schema)
        errors = list(validator.iter_errors(yaml.load(text, AsEditorsRead)))
        assert not errors, f"{path.name}: {errors[0].json_path}: {errors[0].message}"
