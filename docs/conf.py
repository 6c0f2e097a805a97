"""Sphinx's configuration of the site that csebench/report/site.py builds: theme furo, parser
MyST."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref

from csebench.base.project import IS_INSTALLED, REPOSITORY
from csebench.report import site

HEAVY = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "sentence_transformers",
    "huggingface_hub",
)

project = html_title = "csebench"
source_suffix = {".md": "markdown"}
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
# GitHub has none of it
myst_disable_syntax = ["myst_role", "myst_line_comment", "myst_target", "myst_block"]
autodoc_member_order = "bysource"
# envs/report.yaml
autodoc_mock_imports = [name for name in HEAVY if importlib.util.find_spec(name) is None]
autodoc_typehints_format = "fully-qualified"
default_role = "literal"  # `code` in docstrings
suppress_warnings = ["toc.not_included"]  # a page of former times
html_theme = "furo"
html_static_path = html_css_files = ["site.css"]
html_copy_source = html_show_copyright = html_use_index = html_domain_indices = False


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect(
        "source-read",
        lambda app, page, text: text.append(text.pop().replace(" ± ", "\u00a0±\u00a0")),
    )
    app.connect("doctree-read", resolve_links)


def resolve_links(app, doctree) -> None:
    """Point links to README at the home page, and links to the project's other files at the
    repository."""
    links = [node for node in doctree.findall(pending_xref) if node["reftype"] == "myst"]
    for node in [node for node in links if not node["refdomain"]]:
        target, _, anchor = node["reftarget"].partition("#")
        path = os.path.normpath(Path(node["refdoc"]).parent / target)
        if path == "README.md":
            node.attributes |= {
                "refdomain": "doc",
                "reftarget": "index",
                "reftargetid": anchor or None,
            }
        elif target and not path.startswith("..") and ((site.ROOT / path).exists() or IS_INSTALLED):
            uri = f"{REPOSITORY}/blob/main/{path}" + (f"#{anchor}" if anchor else "")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri))
