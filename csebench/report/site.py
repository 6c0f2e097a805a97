"""The site of a scale: documentation and results as one folder of HTML, built by Sphinx (theme furo, parser MyST) from the
Markdown that is there. It needs no server and no network, and JavaScript only for the search. Same pages, same bytes."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
from pathlib import Path

from csebench.base.display import loading
from csebench.base.errors import BadInput, by_number
from csebench.base.files import read_text, write_text
from csebench.base.locks import locked
from csebench.base.project import REPOSITORY, ROOT
from csebench.plan import catalog

TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
SUFFIXES = {".md", ".svg", ".png", ".csv"}  # of pages, and of what they show or link
IMPORTED = ("torch", "transformers", "tokenizers", "safetensors", "sentence_transformers", "huggingface_hub")
DOORS = """```{container} doors
- **[Check a claim](CLAIMS)** What the papers say, against their own numbers and against runs.
- **[Rerun a table](docs/rerun.md)** One command trains, scores and compares.
- **[Try a method](docs/methods.md)** One file is listed, tested, trained, and a row of any table.
```"""
CONFIG = {
    "project": "csebench",
    "html_title": "csebench",
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "csebench.report.site"],
    "html_theme": "furo",
    "html_static_path": ["site.css"],
    "html_css_files": ["site.css"],
    "html_copy_source": False,
    "html_show_copyright": False,
    "myst_heading_anchors": 4,
    "autodoc_member_order": "bysource",
    "suppress_warnings": [],
}


def write_site(scale: str) -> Path:
    """Write the folder `html/` among the pages of a scale, from the pages that are there; returns its index.

    The new folder is complete before two renames put it into the place of the old one, by one process at a time. A
    process killed between the renames leaves the old folder as `.html.old` until the next call.

    Raises:
        BadInput: Sphinx is not installed, or warns, as of a link that leads nowhere; the old folder stays.
    """
    if not all(map(importlib.util.find_spec, ("sphinx", "furo", "myst_parser"))):
        raise BadInput("csebench html: Sphinx, furo and MyST build the site: pip install -e '.[docs]'")
    out = catalog.results_folder(scale) / "html"
    if out.is_symlink():  # the folder that it leads to is replaced, and the link stays
        out = out.resolve()
    new, old = (out.with_name(f".html.{name}") for name in ("new", "old"))
    with locked(out), loading("Sphinx"):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            copy_sources(scale, new / "source")
            write_navigation(scale, new / "source")
            build(new / "source", new / "html")
            if out.exists():
                out.rename(old)
            (new / "html").rename(out)
        finally:  # Ctrl-C, too
            for leftover in (new, old):
                shutil.rmtree(leftover, ignore_errors=True)
    return out / "index.html"


def copy_sources(scale: str, folder: Path) -> None:
    """Copy the Markdown, with what it shows and links, so that each file keeps its path in the project."""
    results = catalog.results_folder(scale)
    paths = [*map(Path, TOP), *(path.relative_to(ROOT) for path in (ROOT / "docs").iterdir())]
    paths += [*results.iterdir(), *(path for paper in catalog.paper_names() for path in (results / paper).glob("*"))]
    for path in {*paths, *catalog.RESULTS.glob("evidence*")}:
        source = path if path.is_relative_to(catalog.RESULTS) else ROOT / path
        if path.suffix in SUFFIXES and source.is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / path)
    shutil.copyfile(Path(__file__).with_suffix(".css"), folder / "site.css")


def write_navigation(scale: str, folder: Path) -> None:
    """Write the home page, which is README with doors below its first screen, and a list of the tables of each paper."""
    results = catalog.results_folder(scale)

    def pages(pattern: str) -> list[str]:
        found = (str(path.relative_to(folder).with_suffix("")) for path in folder.glob(f"{pattern}.md"))
        return sorted(found, key=lambda page: (not page.endswith("/index"), by_number(page)))

    of_all = pages(f"{results}/table*")
    listed = [page for page in [*pages(f"{results}/*"), *pages(f"{catalog.RESULTS}/evidence")] if page not in of_all]
    lists = {f"{results}/{paper}/index": (catalog.paper(paper).label, pages(f"{results}/{paper}/*")) for paper in catalog.paper_names()}
    lists[f"{results}/tables"] = ("Tables of all papers", of_all)
    for page, (title, tables) in lists.items():
        if tables:
            write_text(folder / f"{page}.md", f"# {title}\n\n{toctree(tables)}")
            listed.append(page)
    ordered = re.findall(r"\]\((\w+)\.md\)", read_text(folder / "docs/README.md"))  # as its table does
    guides = dict.fromkeys(["docs/README", *(f"docs/{name}" for name in ordered), *pages("docs/*"), "CONTRIBUTING", "CHANGELOG"])
    start, heading, rest = read_text(folder / "README.md").partition("\n## ")
    claims = results / "claims.md" if (folder / results / "claims.md").exists() else "results/mini/claims.md"
    doors = DOORS.replace("CLAIMS", str(claims))
    navigation = toctree(dict.fromkeys(listed), f"Results, scale {scale}") + toctree(guides, "Documentation")
    (folder / "README.md").unlink()
    write_text(folder / "index.md", f"{start}\n{doors}\n\n{navigation}{heading}{rest}")


def toctree(pages, caption: str = "") -> str:
    """The navigation to pages; with a caption in the side bar alone."""
    options = [":hidden:", f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", *options, "", *(f"/{page}" for page in pages), "```\n\n"])


def build(source: Path, out: Path) -> None:
    """Run Sphinx. Raises BadInput with its warnings."""
    from sphinx.application import Sphinx
    from sphinx.util.console import strip_escape_sequences

    missing = [name for name in IMPORTED if importlib.util.find_spec(name) is None]  # as in envs/report.yaml
    warnings = io.StringIO()
    config = CONFIG | {"autodoc_mock_imports": missing}
    app = Sphinx(source, None, out, source.with_name("doctrees"), "html", config, status=None, warning=warnings)
    app.build()
    if found := strip_escape_sequences(warnings.getvalue()).replace(f"{source.resolve()}/", "").strip():
        raise BadInput(f"csebench html: the site is not written:\n{found}")
    (out / ".buildinfo").unlink()


def setup(app) -> None:
    """Called by Sphinx, of which this module is an extension."""
    app.connect("doctree-read", resolve_links)


def resolve_links(app, doctree) -> None:
    """Links to README lead to the home page, links to other files of the project to the repository."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    for node in list(doctree.findall(pending_xref)):
        target, _, anchor = node["reftarget"].partition("#")
        if node["reftype"] != "myst" or node.get("refdomain") or not target:
            continue
        path = os.path.normpath(Path(node["refdoc"]).parent / target)
        if path == "README.md":
            node.attributes |= {"refdomain": "doc", "reftarget": "index", "reftargetid": anchor or None}
        elif (ROOT / path).exists():
            uri = f"{REPOSITORY}/blob/main/{path}" + (f"#{anchor}" if anchor else "")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri))
