"""README.md and docs/*.md: links lead somewhere, and shown outputs are those of the commands."""

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
VERBS = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
FOLDERS = "csebench|tests|benchmarks|config|data|envs|profiles"
REPOSITORY_FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.\w+)(?::(\w+))?`")  # with a name in it


def without_blocks(path):
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """The anchors that GitHub, and the site, give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(path), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_and_named_files_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_blocks(page)))
    for link in (link for link in links if not link.startswith(("http://", "https://"))):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
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
    examples = runpy.run_path(str(ROOT / "docs" / "examples.py"))
    assert examples["main"](["--check"]) == 0, capsys.readouterr().err


def test_files_that_scripts_write_are_not_stale():
    """The schemas and their page, the reference of the command line, the picture of the rooms."""
    schemas, commands, rooms = (
        runpy.run_path(str(ROOT / "docs" / f"{name}.py"))
        for name in ("schemas", "command_line", "draw_rooms")
    )
    texts = {
        schemas["FOLDER"] / f"{name}.json": text for name, text in schemas["schemas"]().items()
    }
    texts[schemas["PAGE"]] = schemas["reference"]()
    texts[commands["PAGE"]] = commands["reference"]()
    texts[rooms["PICTURE"]] = rooms["draw"]()
    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path}: run docs/schemas.py, docs/command_line.py or docs/draw_rooms.py"
        )


class AsEditorsRead(yaml.SafeLoader):
    """YAML 1.2: `3e-5` is a number, a date is a text."""

    yaml_implicit_resolvers = {
        letter: [(tag, form) for tag, form in forms if not tag.endswith("timestamp")]
        for letter, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


AsEditorsRead.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)$"),
    list("-+.0123456789"),
)


@pytest.mark.parametrize("folder", ["papers", "config", "evidence"])
def test_a_file_fits_the_schema_that_it_names(folder):
    """As an editor checks it; templates, too."""
    for path in sorted((ROOT / folder).glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
        assert named, f"{path.name}: the first line names no schema"
        schema = json.loads((path.parent / named[1]).read_text(encoding="utf-8"))
        errors = [
            *jsonschema.Draft202012Validator(schema).iter_errors(yaml.load(text, AsEditorsRead))
        ]
        assert not errors, f"{path.name}: {errors[0].json_path}: {errors[0].message}"
