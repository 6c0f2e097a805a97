"""Configuration of Sphinx for the site that csebench/report/site.py builds.

The theme is furo, and MyST reads the Markdown.
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import Any, Union

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.autodoc.mock import _MockObject
from sphinx.search.en import SearchEnglish

from csebench.base.extras import RUN_MODULES
from csebench.base.project import IS_INSTALLED, REPOSITORY
from csebench.report import site

project = html_title = "csebench"
source_suffix = {".md": "markdown"}
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
# GitHub shows the same files and does not know this syntax
myst_disable_syntax = ["myst_role", "myst_line_comment", "myst_target", "myst_block"]
autodoc_member_order = "bysource"
# without the extra `run`, the API lacks a few signatures
autodoc_mock_imports = [name for name in RUN_MODULES if importlib.util.find_spec(name) is None]
autodoc_typehints_format = "fully-qualified"
default_role = "literal"  # `code` in docstrings
suppress_warnings = ["toc.not_included"]  # pages of earlier versions are in no navigation
html_theme = "furo"
html_css_files = ["site.css"]
html_js_files = ["sort.js"]
html_static_path = [*html_css_files, *html_js_files]
html_copy_source = html_show_copyright = html_use_index = html_domain_indices = False


def either(mocked, other) -> Any:
    """Make the type `mocked | other`, as in `Tensor | None`, which Sphinx's mocks do not offer."""
    return Union[mocked, other]  # noqa: UP007


_MockObject.__or__ = _MockObject.__ror__ = either


# a number that Sphinx would split into words: `6.69e-05`, `7e-6`, `76.25`
SPLIT_NUMBER = r"[0-9]+(?:\.[0-9]+)?e-[0-9]+|[0-9]+\.[0-9]+"


class SearchWithNumbers(SearchEnglish):
    """The search in English that finds `76.25` and `7e-6`.

    Sphinx splits these numbers, and leaves words of digits out of the index.
    """

    # the browser splits what a reader looks for, with the same words as Sphinx otherwise has
    js_splitter_code = (
        "var splitQuery = (query) =>\n"
        f"  query.match(/{SPLIT_NUMBER}|[\\p{{Letter}}\\p{{Number}}_\\p{{Emoji_Presentation}}]+/gu)"
        " ?? [];"
    )

    def split(self, input: str) -> list[str]:
        """Split a text of a page into the words of the index."""
        return re.findall(rf"{SPLIT_NUMBER}|\w+", input)


def setup(app) -> None:
    """Register the search and the functions below with Sphinx, which calls `setup` by its name."""
    app.add_search_language(SearchWithNumbers)
    app.connect("source-read", keep_deviations_on_the_line)
    app.connect("doctree-read", resolve_links)


def keep_deviations_on_the_line(app, page: str, source: list[str]) -> None:
    """Put no line break into `78.41 ± 0.31`. Sphinx hands over the text in a list of one."""
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def resolve_links(app, doctree) -> None:
    """Keep links to pages within the site, and point links to other files at the repository.

    A link to README leads to the home page.
    """
    pages_in_repository = f"{REPOSITORY}/blob/main/"
    for node in list(doctree.findall(nodes.reference)):
        path, _, anchor = node.get("refuri", "").removeprefix(pages_in_repository).partition("#")
        page = page_of_site(app, path)
        if node.get("refuri", "").startswith(pages_in_repository) and page:
            link = pending_xref(
                "",
                nodes.inline("", "", *node.children),  # MyST shows what its first child has
                refdoc=app.env.docname,
                refdomain="doc",
                reftype="myst",
                reftarget=page,
                reftargetid=anchor or None,
                refexplicit=True,
            )
            node.replace_self(link)

    links = [node for node in doctree.findall(pending_xref) if node["reftype"] == "myst"]
    for node in links:
        if node["refdomain"]:
            continue
        target, _, anchor = node["reftarget"].partition("#")
        path = os.path.normpath(Path(node["refdoc"]).parent / target)
        if path == "README.md":
            node["refdomain"] = "doc"
            node["reftarget"] = "index"
            node["reftargetid"] = anchor or None
        elif target and is_in_project(path):
            uri = f"{REPOSITORY}/blob/main/{path}"
            if anchor:
                uri += f"#{anchor}"
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri))


def page_of_site(app, path: str) -> str | None:
    """Name the page that the site has for a Markdown file of the repository."""
    if path == "README.md":
        return "index"
    page = path.removesuffix(".md")
    return page if page != path and page in app.env.found_docs else None


def is_in_project(path: str) -> bool:
    """Whether the repository has a file. An installed package cannot look it up and says yes."""
    if path.startswith(".."):
        return False
    return IS_INSTALLED or (site.ROOT / path).exists()
