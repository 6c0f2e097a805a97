"""The site of a scale: documentation and results as a folder of HTML.

Sphinx builds it, as docs/conf.py says. The site needs no server and no network, and JavaScript only
for the search. The same Markdown always gives the same bytes.
"""

import importlib.util
import io
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from csebench.base.errors import BadInput, by_number
from csebench.base.files import read_text, write_text
from csebench.base.project import REPOSITORY, ROOT
from csebench.plan.catalog import files as catalog

CONFIGURATION = ROOT / "docs"  # folder of conf.py
COPIED = (".md", ".svg", ".png", ".csv")  # endings of files that the site has
DOORS = """
```{container} doors
- **[Check a claim](CLAIMS)** What four papers say, against their own numbers and against runs.
- **[Rerun a table](docs/rerun.md)** A few commands download, train, score and compare.
- **[Try a method](docs/methods.md)** Write one file; csebench tests it, trains it and compares it.
- **[Judge results](docs/judge.md)** Compare systems by the scores that you have.
```
"""
SKILL_HEAD = """\
---
name: csebench
description: >-
  Check what papers on unsupervised sentence embeddings claim, rerun their tables, and compare any
  two systems with tests that know seeds and test items.
---

"""
# The navigation: captions with patterns of pages, in the order of the side bar. A page is listed
# below the first caption that names it, and a caption without pages is left out. RESULTS is the
# folder of the scale; `[!t]*` keeps pages of tables out.
NAVIGATION = {
    "What the papers print": (
        "RESULTS/claims",
        "RESULTS/audit",
        "results/evidence",
        "docs/known_questions",
    ),
    "Rerun": (
        "docs/rerun",
        "docs/small",
        "docs/data",
        "docs/gpu",
        "docs/cluster",
        "docs/environments",
        "docs/encoders",
        "docs/determinism",
        "docs/troubleshooting",
    ),
    "Your own method": (
        "docs/tutorial",
        "docs/methods",
        "docs/evaluators",
        "docs/papers",
        "docs/evidence",
    ),
    "Judge results": ("docs/judge",),
    "Study at scale SCALE": (
        "RESULTS/index",
        "docs/SCALE",
        "RESULTS/methods",
        "RESULTS/variants",
        "RESULTS/[!t]*",
        "RESULTS/tables",
        "RESULTS/*/index",
    ),
    "Reference": (
        "docs/README",
        "docs/concepts",
        "docs/reading_a_page",
        "docs/statistics",
        "docs/glossary",
        "docs/cli",
        "docs/*",
        "C*",  # CHANGELOG, CONTRIBUTING, …
    ),
}


def write_site(scale: str) -> Path:
    """Write the folder `html/` next to the pages of a scale, from the pages that exist.

    The new folder is complete before it replaces the old one.

    Returns:
        The home page.

    Raises:
        BadInput: if Sphinx is missing, or warns, for example about a broken link. The old folder
            stays as it is.
    """
    modules = ("sphinx", "furo", "myst_parser")
    if not all(importlib.util.find_spec(module) for module in modules):
        raise BadInput("html: the site needs Sphinx, furo and MyST: pip install 'csebench[docs]'")
    out = catalog.results_folder(scale) / "html"
    if out.is_symlink():  # replace the folder that it leads to, and keep the link
        out = out.resolve()
    # removed again if the site cannot be built; the innermost folder comes first
    new_folders = [folder for folder in out.parents if not folder.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        build_site(scale, out)
    except BaseException:  # also an error of Sphinx, or Ctrl-C
        for folder in new_folders:
            folder.rmdir()
        raise
    return out / "index.html"


def build_site(scale: str, out: Path) -> None:
    """Build the site in a folder next to `out`, and move it to `out` when it is complete."""
    with TemporaryDirectory(prefix=".html.", dir=out.parent) as name:
        folder = Path(name)
        copy_sources(scale, folder / "source")
        write_navigation(scale, folder / "source")
        run_sphinx(folder / "source", folder / "html")
        write_text(folder / "html" / "llms.txt", llms_text(scale, folder / "source"))
        write_text(folder / "html" / "SKILL.md", skill_text(read_text(ROOT / "README.md")))
        if out.exists():
            out.rename(folder / "old")
        (folder / "html").rename(out)


# ---------------------------------------------------------------- sources


def copy_sources(scale: str, folder: Path) -> None:
    """Copy pages, and the files that they show and link, to their paths in the project."""
    for name, path in sorted(site_files(scale).items()):
        if path.suffix not in COPIED:
            continue
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        is_result = Path(name).is_relative_to(catalog.RESULTS)
        if is_result and path.suffix == ".md":
            # Pages of results hold texts of others. Sphinx must not run directives in them.
            harmless = re.sub(r"([`~]{3,})[ \t]*\{", r"\1text {", read_text(path))
            write_text(copy, with_small_deviations(harmless))


def with_small_deviations(page: str) -> str:
    """Write the deviations in the tables of a page smaller than the means before them."""
    lines = []
    for line in page.split("\n"):
        if line.startswith("| "):
            line = re.sub(r"(?<=\d) ± (\d+\.\d+)", "\u00a0<small>±\u00a0\\1</small>", line)
        lines.append(line)
    return "\n".join(lines)


def site_files(scale: str) -> dict[str, Path]:
    """Find the files that a site may have, by their names in the project.

    If the current folder is not the checkout, its pages replace the published ones.
    """
    files: dict[str, Path] = {}

    def add(base: Path, folder: Path, pattern: str) -> None:
        for path in (base / folder).glob(pattern):
            files[str(folder / path.name)] = path

    add(ROOT, Path(), "*.*")
    add(ROOT, Path("docs"), "*.*")
    results = catalog.results_folder(scale)
    for base in (ROOT, Path()):
        add(base, results, "*.*")
        for paper in catalog.paper_names():
            add(base, results / paper, "*.*")
        add(base, catalog.RESULTS, "evidence*")
        add(base, catalog.RESULTS, "printed_gains*")
    return files


# ---------------------------------------------------------------- navigation


def write_navigation(scale: str, folder: Path) -> None:
    """Write the home page and the lists of tables and figures.

    The home page is README, with doors and navigation below its first screen.

    Args:
        folder: folder with the sources of the site.
    """
    results = catalog.results_folder(scale)
    write_list(folder / results / "tables.md", "Tables of all papers")
    for paper in catalog.paper_names():
        write_list(folder / results / paper / "index.md", catalog.paper(paper).label)

    claims = results / "claims.md"
    if not (folder / claims).exists():
        claims = Path("docs/statistics.md")
    doors = DOORS.replace("CLAIMS", str(claims))

    home = (folder / "README.md").rename(folder / "index.md")
    navigation = side_bar(scale, folder)
    first_screen, heading, rest = read_text(home).partition("\n## ")
    write_text(home, f"{first_screen}\n{doors}\n{navigation}{heading}{rest}")


def side_bar(scale: str, folder: Path) -> str:
    """Write the navigation to all pages of the site, with a list per caption."""
    navigation = ""
    for caption, pages in pages_by_caption(scale, folder).items():
        navigation += toctree(pages, caption)
    return navigation


def pages_by_caption(scale: str, folder: Path) -> dict[str, list[str]]:
    """List the pages of the site below the captions of the side bar, as paths without ending."""
    results = str(catalog.results_folder(scale))
    pages_of: dict[str, list[str]] = {}
    listed: set[str] = set()
    for caption, patterns in NAVIGATION.items():
        filled = []
        for pattern in patterns:
            filled.append(pattern.replace("RESULTS", results).replace("SCALE", scale))
        pages = [page for page in matching_pages(folder, filled) if page not in listed]
        listed.update(pages)
        pages_of[caption.replace("SCALE", scale)] = pages
    return pages_of


def write_list(path: Path, title: str) -> None:
    """Write a page that lists the tables and figures in its folder, if there are any."""
    listed = toctree(matching_pages(path.parent, ["table[0-9A-Z]*", "figure*"]))
    if listed:
        write_text(path, f"# {title}\n\n{listed}")


def matching_pages(folder: Path, patterns: Iterable[str]) -> list[str]:
    """List pages in a folder, each once, as paths without ending.

    Args:
        patterns: patterns of names without ending, in the order of the list.
    """
    pages: list[str] = []
    for pattern in patterns:
        for path in sorted(folder.glob(f"{pattern}.md"), key=number_in_path):
            page = str(path.relative_to(folder).with_suffix(""))
            if page not in pages:
                pages.append(page)
    return pages


def toctree(pages: list[str], caption: str = "") -> str:
    """Write the navigation to pages.

    Args:
        caption: title in the side bar. Without a caption the navigation is on its page, too.

    Returns:
        A directive of Sphinx; empty if there are no pages.
    """
    if not pages:
        return ""
    options = []
    if caption:
        options = [":hidden:", f":caption: {caption}"]
    return "\n".join(["```{toctree}", *options, "", *pages, "```\n\n"])


def number_in_path(path: Path):
    """Sort `table2` before `table10`."""
    return by_number(str(path))


# ---------------------------------------------------------------- files for language models


def llms_text(scale: str, folder: Path) -> str:
    """Write `llms.txt` (https://llmstxt.org): what the project is, and where each page stands.

    Args:
        folder: folder with the sources of the site.
    """
    purpose = re.search(r"^\*\*(.+?)\*\*(.*?)$\n\n", read_text(folder / "index.md"), re.M | re.S)
    parts = ["# csebench"]
    if purpose is not None:
        parts.append(f"> {' '.join((purpose[1] + purpose[2]).split())}")
    for caption, pages in pages_by_caption(scale, folder).items():
        links = [f"- [{title_of(folder / f'{page}.md')}]({page}.html)" for page in pages]
        if links:
            parts.append("\n".join([f"## {caption}", "", *links]))
    return "\n\n".join(parts) + "\n"


def title_of(page: Path) -> str:
    """Read the title of a page: its first heading."""
    heading = re.search(r"^# (.+)$", read_text(page), re.M)
    return heading[1] if heading else page.stem


def skill_text(readme: str) -> str:
    """Write `SKILL.md`, which tells an agent when and how to use csebench, from README."""
    text = re.sub(r"<!--.*?-->\n?", "", readme)
    text = re.sub(r"\]\((?!https?:)([^)#]+)\.md", r"](\1.html", text)
    text = re.sub(r"\]\((?!https?:)([^)#]+)(?<!\.html)\)", rf"]({REPOSITORY}/blob/main/\1)", text)
    return SKILL_HEAD + text


# ---------------------------------------------------------------- Sphinx


def run_sphinx(source: Path, out: Path) -> None:
    """Build the site.

    Raises:
        BadInput: with the warnings of Sphinx, or the linked files outside the project.
    """
    from sphinx.application import Sphinx
    from sphinx.util.console import strip_escape_sequences  # pyright: ignore
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    warnings = io.StringIO()
    read_pages = source.with_name("read")
    with patch_docutils(), docutils_namespace():
        app = Sphinx(source, CONFIGURATION, out, read_pages, "html", status=None, warning=warnings)
        app.build()

    shown_files = [str(name) for name in (*app.env.dlfiles, *app.env.images)]
    outside = [name for name in shown_files if name.startswith("..")]
    if outside:
        raise BadInput(f"html: pages show or link files outside the project: {', '.join(outside)}")
    mistakes = strip_escape_sequences(warnings.getvalue())
    mistakes = mistakes.replace(f"{source.resolve()}/", "").strip()
    if mistakes:
        raise BadInput(f"html: the site is not written, as it has mistakes:\n{mistakes}")
    (out / ".buildinfo").unlink()  # it names the temporary folder
