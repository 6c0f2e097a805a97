"""The site: what it holds, what it refuses, and that a failed build leaves the old one."""

import importlib.util
import re
from pathlib import Path

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import REPOSITORY
from csebench.report import site

PAGE = """# miCSE · Table 2
[The scale](../../../docs/mini.md#who), [README](../../../README.md), [data](../../../papers/a.yaml)

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
]
SHOWN += ["<details>", "55.32\u00a0±\u00a00.16", "{download}"]  # a page gives Sphinx no directives
FILES = {
    **dict.fromkeys(
        ["docs/README.md", "docs/rerun.md", "docs/methods.md", "results/mini/claims.md"],
        "# Title\n",
    ),
    "README.md": "# csebench\nOne screen.\n\n## More\n",
    "docs/mini.md": "# Mini\n\n## Who\n",
    "papers/a.yaml": "",
    "results/mini/scores.csv": "a,b\n",
    "results/mini/micse/table2.md": PAGE,
    "results/mini/micse/table2.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "secret": "",
}
BROKEN = {
    "[x](table9.md) [x](../../../docs/mini.md#when) ![x](figure9.svg)": [
        r"results/mini/micse/table2\.md:2: WARNING: .* not found: 'table9.md'",
        "local id not found in doc 'docs/mini': 'when'",
        r"image file not readable: results/mini/micse/figure9\.svg",
    ],
    "[x](../../../../../../../secret)": ["outside the project: .*secret"],
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    for module in ("sphinx", "furo", "myst_parser"):  # pip install -e '.[docs]'
        pytest.importorskip(module)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    return tmp_path / "results/mini"


def test_pages_search_and_links(results):
    home = site.write_site("mini").read_text()
    files = {
        str(path.relative_to(results / "html")): path for path in (results / "html").rglob("*.*")
    }
    page = files["results/mini/micse/table2.html"].read_text()
    assert all(
        part in home for part in ("One screen.", "results/mini/claims.html", "docs/methods.html")
    )
    assert all(part in page for part in SHOWN) and "_images/table2.svg" in files
    assert "micse/table2" in files["searchindex.js"].read_text()
    for name in (name for name in files if name.endswith(".html")):
        assert not re.search(
            r'<(script|link|img)[^>]+(src|href)="(https?:)?//', files[name].read_text()
        ), name
    before = {path: path.read_bytes() for path in files.values()}
    site.write_site("mini")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("text", "messages"), BROKEN.items())
def test_broken_links_are_refused_and_the_old_site_stays(text, messages, results):
    (results / "html").mkdir()
    (results / "micse/table2.md").write_text(f"# Table 2\n{text}\n")
    with pytest.raises(BadInput) as refused:
        site.write_site("mini")
    assert all(re.search(message, str(refused.value)) for message in messages), refused.value
    assert not list(results.glob(".html.*")) and (results / "html").exists()


def test_without_sphinx_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install -e '\.\[docs\]'"):
        site.write_site("mini")


def test_outside_the_checkout_pages_of_ones_own_join_the_published_ones(
    results, tmp_path_factory, monkeypatch
):
    own = tmp_path_factory.mktemp("own")
    monkeypatch.chdir(own)
    (own / "README.md").write_text("# Of another project\n")
    assert "One screen." in site.write_site("mini").read_text()
    assert (own / "results/mini/html/results/mini/micse/table2.html").exists() and not (
        results / "html"
    ).exists()
    page = own / "results/mini/micse/table2.md"
    page.parent.mkdir()
    page.write_text("# My own page\n")
    site.write_site("mini")
    assert "My own page" in (own / "results/mini/html/results/mini/micse/table2.html").read_text()


def test_what_is_refused_leaves_no_folder(results, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("own"))
    (results / "claims.md").write_text("[x](table9.md)\n")
    with pytest.raises(BadInput, match="has mistakes"):
        site.write_site("mini")
    assert not list(Path.cwd().iterdir())
