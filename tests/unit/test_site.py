"""The site: its pages, the links that it refuses, and that a failed build leaves the old one."""

import importlib.util
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import REPOSITORY
from csebench.report import site

PAGE = """# miCSE · Table 2
[The scale](../../../docs/mini.md#who), [README](../../../README.md), [data](../../../papers/a.yaml)
and [how](https://github.com/csebench/csebench/blob/main/docs/mini.md#who)

![Differences](table2.svg)

| Model | 1% |
|---|---|
| miCSE | 55.32 ± 0.16 |

<details><summary>Notes</summary>

- A [score](../scores.csv).

</details>

```{include} ../../../papers/a.yaml
```
{download}`x`
"""
SHOWN = [
    "docs/mini.html#who",
    "../index.html",
    f"{REPOSITORY}/blob/main/papers/a.yaml",
    "scores.csv",
    "<details>",
    "55.32\u00a0<small>±\u00a00.16</small>",
    "{download}",  # a page gives Sphinx no directives
]
FILES = {
    "docs/README.md": "# Title\n",
    "docs/rerun.md": "# Title\n",
    "docs/methods.md": "# Title\n",
    "docs/judge.md": "# Title\n",
    "results/mini/claims.md": "# Title\n",
    "README.md": "# csebench\nOne screen.\n\n## More\n[Mini](docs/mini.md) [cite](CITATION.cff)\n",
    "CITATION.cff": "",
    "docs/mini.md": "# Mini\n\n## Who\n",
    "papers/a.yaml": "",
    "results/mini/scores.csv": "a,b\n",
    "results/mini/micse/table2.md": PAGE,
    "results/mini/micse/table2.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "secret": "",
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Make a project of a few pages, and return its folder of results."""
    for module in ("sphinx", "furo", "myst_parser"):  # pip install -e '.[docs]'
        pytest.importorskip(module)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    return tmp_path / "results/mini"


FROM_ELSEWHERE = r'<(script|link|img)[^>]+(src|href)="(https?:)?//'


def test_pages_search_and_links(results):
    home = site.write_site("mini").read_text()
    for part in ("One screen.", "results/mini/claims.html", "docs/methods.html"):
        assert part in home

    folder = results / "html"
    page = (folder / "results/mini/micse/table2.html").read_text()
    for part in SHOWN:
        assert part in page
    assert (folder / "_images/table2.svg").exists()
    assert "micse/table2" in (folder / "searchindex.js").read_text()
    for path in folder.rglob("*.html"):
        assert not re.search(FROM_ELSEWHERE, path.read_text()), path

    assert f"{REPOSITORY}/blob/main/docs" not in page  # a page of the site is not left
    for text in ("The scale", "README", "data", "how", "score"):  # every link has its text
        assert re.search(rf"<a [^>]+>(<[^/>]+>)*{text}</", page), text
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    site.write_site("mini")
    assert {path: path.read_bytes() for path in before} == before


def test_language_models_find_every_page_and_how_to_use_the_project(results):
    site.write_site("mini")
    llms = (results / "html" / "llms.txt").read_text()
    assert llms.startswith("# csebench")
    for target in re.findall(r"\]\((.+?)\)", llms):
        assert (results / "html" / target).exists(), target
    assert "- [Mini](docs/mini.html)" in llms

    skill = (results / "html" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: csebench\n")
    assert "One screen." in skill
    links = re.findall(r"\]\((.+?)\)", skill)
    assert f"{REPOSITORY}/blob/main/CITATION.cff" in links
    for target in links:
        assert target.startswith("https://") or (results / "html" / target).exists(), target


def search_index(html):
    """Read the pages of each word in the index of the site's search."""
    text = (html / "searchindex.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    pages_of = {}
    for word, numbers in index["terms"].items():
        if isinstance(numbers, int):
            numbers = [numbers]
        pages_of[word] = [index["docnames"][number] for number in numbers]
    return pages_of


def test_the_search_finds_numbers_with_a_point_or_an_exponent(results):
    (results / "micse/table2.md").write_text(f"{PAGE}\nA learning rate of 7e-6 (1.5e-05).\n")
    pages_of = search_index(site.write_site("mini").parent)
    for number in ("55.32", "0.16", "7e-6", "1.5e-05"):
        assert pages_of[number] == ["results/mini/micse/table2"]


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the site's JavaScript")
def test_the_browser_splits_a_query_as_the_index_was_split(results):
    text = "DiffCSE's 7e-6, 6.69e-05 and 76.25±0.3: run_diffcse.sh, v2.5, λ 10.1.2 e-6 1e5 86b5e09"
    script = site.write_site("mini").parent / "_static/language_data.js"
    split = f"console.log(JSON.stringify(splitQuery({json.dumps(text)})))"
    program = f"window = {{}};\n{script.read_text()}\n{split}"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)

    configuration = runpy.run_path(str(site.CONFIGURATION / "conf.py"))
    words = configuration["SearchWithNumbers"]({}).split(text)
    assert json.loads(done.stdout) == words
    assert {"7e-6", "6.69e-05", "76.25", "0.3", "run_diffcse"} <= {*words}


def captions_of_side_bar(home):
    return re.findall(r'class="caption-text">(.*?)<', home.read_text())


def test_the_side_bar_has_what_the_papers_print_first(results):
    home = site.write_site("mini")
    assert captions_of_side_bar(home) == [
        "What the papers print",
        "Rerun",
        "Your own method",
        "Judge results",
        "Study at scale mini",
        "Reference",
    ]
    assert "docs/judge.html" in home.read_text()


def test_a_caption_without_pages_is_left_out(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/judge.md").write_text("# Judge\n")
    side_bar = site.side_bar("mini", tmp_path)
    assert ":caption: Judge results" in side_bar
    assert ":caption: Rerun" not in side_bar


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "[x](table9.md) [x](../../../docs/mini.md#when) ![x](figure9.svg)",
            [
                r"results/mini/micse/table2\.md:2: WARNING: .* not found: 'table9.md'",
                "local id not found in doc 'docs/mini': 'when'",
                r"image file not readable: results/mini/micse/figure9\.svg",
            ],
        ),
        (
            "[x](../../../../../../../secret)",
            ["outside the project: .*secret"],
        ),
    ],
)
def test_broken_links_are_refused_and_the_old_site_stays(text, messages, results):
    (results / "html").mkdir()
    (results / "micse/table2.md").write_text(f"# Table 2\n{text}\n")
    with pytest.raises(BadInput) as refused:
        site.write_site("mini")
    for message in messages:
        assert re.search(message, str(refused.value)), refused.value
    assert not list(results.glob(".html.*"))
    assert (results / "html").exists()


def test_without_sphinx_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'csebench\[docs\]'"):
        site.write_site("mini")


def test_outside_the_checkout_pages_of_ones_own_join_the_published_ones(
    results, tmp_path_factory, monkeypatch
):
    own = tmp_path_factory.mktemp("own")
    monkeypatch.chdir(own)
    (own / "README.md").write_text("# Of another project\n")
    html = own / "results/mini/html/results/mini/micse/table2.html"

    assert "One screen." in site.write_site("mini").read_text()
    assert html.exists()
    assert not (results / "html").exists()

    own_page = own / "results/mini/micse/table2.md"
    own_page.parent.mkdir()
    own_page.write_text("# My own page\n")
    site.write_site("mini")
    assert "My own page" in html.read_text()


def test_what_is_refused_leaves_no_folder(results, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("own"))
    (results / "claims.md").write_text("[x](table9.md)\n")
    with pytest.raises(BadInput, match="has mistakes"):
        site.write_site("mini")
    assert not list(Path.cwd().iterdir())
