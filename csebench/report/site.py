"""The site of a scale: documentation and results as a folder of HTML, built by Sphinx
(docs/conf.py). It needs no server and no network, and JavaScript only for the search. Same
Markdown, same bytes."""

import importlib.util
import io
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from csebench.base.errors import BadInput, by_number
from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT
from csebench.plan.catalog import files as catalog

CONFIGURATION = ROOT / "docs"  # conf.py
DOORS = """
```{container} doors
- **[Check a claim](CLAIMS)** What four papers say, against their own numbers and against runs.
- **[Rerun a table](docs/rerun.md)** One command trains, scores and compares.
- **[Try a method](docs/methods.md)** Write one file; csebench tests it, trains it and compares it.
```
"""


def write_site(scale: str) -> Path:
    """Write the folder `html/` among the pages of a scale, from the pages that are there;
    returns its index. The new folder is complete before it takes the place of the old one, which
    stays where this raises BadInput: Sphinx is not installed, or warns, as of a link that leads
    nowhere."""
    if not all(map(importlib.util.find_spec, ("sphinx", "furo", "myst_parser"))):
        raise BadInput("html: the site needs Sphinx, furo and MyST: pip install -e '.[docs]'")
    out = catalog.results_folder(scale) / "html"
    # the folder that it leads to is replaced, and the link stays
    out = out.resolve() if out.is_symlink() else out
    new_folders = [path for path in out.parents if not path.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        build_site(scale, out)
    except BadInput:
        for path in new_folders:
            path.rmdir()
        raise
    return out / "index.html"


def build_site(scale: str, out: Path) -> None:
    """Build the site beside its folder, and put it into its place when it is complete."""
    with TemporaryDirectory(prefix=".html.", dir=out.parent) as name:
        folder = Path(name)
        copy_sources(scale, folder / "source")
        write_navigation(scale, folder / "source")
        run_sphinx(folder / "source", folder / "html")
        if out.exists():
            out.rename(folder / "old")
        (folder / "html").rename(out)


def copy_sources(scale: str, folder: Path) -> None:
    """Copy the Markdown, and what it shows and links, to the paths that it has in the project."""
    for name, path in sorted(site_files(scale).items()):
        if path.suffix not in (".md", ".svg", ".png", ".csv"):
            continue
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        is_result = Path(name).is_relative_to(catalog.RESULTS)
        if path.suffix == ".md" and is_result:  # its texts give Sphinx no directives
            write_text(copy, re.sub(r"([`~]{3,})\s*\{", r"\1text {", read_text(path)))


def site_files(scale: str) -> dict[str, Path]:
    """The files that a site may have, by their names in the project.

    Outside the checkout, pages of the current folder take the place of published ones.
    """
    results = catalog.results_folder(scale)
    papers = [results / paper for paper in catalog.paper_names()]
    files: dict[str, Path] = {}
    for place in (Path(), Path("docs")):
        for path in (ROOT / place).glob("*.*"):
            files[str(place / path.name)] = path
    for base in (ROOT, Path()):
        for place in (results, *papers):
            for path in (base / place).glob("*.*"):
                files[str(place / path.name)] = path
        for path in (base / catalog.RESULTS).glob("evidence*"):
            files[str(catalog.RESULTS / path.name)] = path
    return files


def write_navigation(scale: str, folder: Path) -> None:
    """Write the home page, README with doors below its first screen, and lists of tables and
    figures."""
    results = catalog.results_folder(scale)
    lists = {
        results / paper / "index.md": catalog.paper(paper).label for paper in catalog.paper_names()
    }
    for page, title in {results / "tables.md": "Tables of all papers", **lists}.items():
        if listed := toctree((folder / page).parent, "", "table[0-9A-Z]*", "figure*"):
            write_text(folder / page, f"# {title}\n\n{listed}")
    readme = (folder / "README.md").rename(folder / "index.md")
    start, heading, rest = read_text(readme).partition("\n## ")
    claims = results / "claims.md"
    first, last = (
        ("index", "claims", "methods", "variants", "audit"),
        ("[!t]*", "tables", "*/index"),
    )
    pages = ["results/evidence", *(f"{results}/{name}" for name in (*first, *last))]
    guides = [
        f"docs/{name}"
        for name in ("README", "tutorial", "rerun", "methods", "evaluators", "statistics", "*")
    ]
    navigation = toctree(folder, f"Results, scale {scale}", *pages) + toctree(
        folder, "Documentation", *guides, "C*"
    )
    doors = DOORS.replace(
        "CLAIMS", str(claims if (folder / claims).exists() else "docs/statistics.md")
    )
    write_text(readme, f"{start}\n{doors}\n{navigation}{heading}{rest}")


def toctree(folder: Path, caption: str, *patterns: str) -> str:
    """Navigation to the pages in a folder, for the side bar; without a caption on its page, too."""
    paths = [
        path
        for name in patterns
        for path in sorted(folder.glob(f"{name}.md"), key=lambda p: by_number(str(p)))
    ]
    pages = [str(path.relative_to(folder).with_suffix("")) for path in dict.fromkeys(paths)]
    options = [":hidden:", f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", *options, "", *pages, "```\n\n"]) if pages else ""


def run_sphinx(source: Path, out: Path) -> None:
    """Build the site. Raises BadInput with what Sphinx warns about."""
    from sphinx.application import Sphinx
    from sphinx.util.console import strip_escape_sequences  # pyright: ignore
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            source,
            CONFIGURATION,
            out,
            source.with_name("read"),
            "html",
            status=None,
            warning=warnings,
        )
        app.build()
    if outside := [
        name for name in map(str, (*app.env.dlfiles, *app.env.images)) if name.startswith("..")
    ]:
        raise BadInput(f"html: pages show or link files outside the project: {', '.join(outside)}")
    if (
        mistakes := strip_escape_sequences(warnings.getvalue())
        .replace(f"{source.resolve()}/", "")
        .strip()
    ):
        raise BadInput(f"html: the site is not written, as it has mistakes:\n{mistakes}")
    (out / ".buildinfo").unlink()  # names the folder
