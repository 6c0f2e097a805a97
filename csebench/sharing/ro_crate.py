"""Pack a page and its scores as an RO-Crate, a folder that archives understand.

The folder has the page without pictures, its cells as CSV and the score JSONs.
`ro-crate-metadata.json` describes them in JSON-LD: who made what from what, with hashes, licence
and citations (https://w3id.org/ro/crate/1.1). Equal scores give equal bytes.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from csebench.base.errors import BadInput
from csebench.base.files import read_text, write_bytes, write_json
from csebench.base.models import refuse_model_folder
from csebench.base.outputs import check_output
from csebench.base.project import REPOSITORY, ROOT, __version__
from csebench.base.terminal import csv_text
from csebench.plan.catalog.files import GENERATED, paper
from csebench.plan.targets import Page, score_path
from csebench.report.csv_tables import CELLS, cell_rows
from csebench.report.numbers.cells import grid_view
from csebench.report.pages.page import Fold, PageContent, Part, Picture
from csebench.report.pages.table import table_page

METADATA = "ro-crate-metadata.json"
CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://schema.org/sha256"},  # which the context of version 1.1 lacks
]
CONFORMS_TO = {"@id": "https://w3id.org/ro/crate/1.1"}
SOFTWARE_ID = f"{REPOSITORY}#{__version__}"
AUTHORS_ID = "#authors"
RENDERING_ID = "#rendering"
Entity = dict[str, Any]  # an object of JSON-LD


@dataclass(frozen=True)
class PackedFile:
    """A file of the crate."""

    name: str  # relative to the crate
    content: bytes
    title: str
    media_type: str


def write_ro_crate(page: Page, folder: Path) -> list[Path]:
    """Write a page, its cells, its scores and their description.

    Args:
        folder: of the crate; it is made, and must be empty.

    Returns:
        The files. The description is the last one.

    Raises:
        BadInput: the folder holds something, the page has no score, or a score JSON is damaged.
            Nothing is written.
    """
    check_crate_folder(folder)
    score_files = existing_score_files(page)
    if not score_files:
        raise BadInput(
            f"{page.path}: none of its runs is scored, so there is nothing to pack; `csebench"
            f" status {page.path}` says what is missing."
        )
    content = without_pictures(table_page(page))
    made_files = [page_file(page, content), cells_file(page)]
    packed_scores = [packed_score(path) for path in score_files]
    metadata = crate_metadata(page, content, made_files, packed_scores)

    paths = []
    for file in (*made_files, *packed_scores):
        write_bytes(folder / file.name, file.content)
        paths.append(folder / file.name)
    write_json(folder / METADATA, metadata)
    return [*paths, folder / METADATA]


def check_crate_folder(folder: Path) -> None:
    """Refuse a folder that holds something, cannot be written to, or is in a model's folder."""
    check_output(folder, is_folder=True)
    refuse_model_folder(folder.absolute())
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: is not empty; choose another --out.")


# ---------------------------------------------------------------- the files


def existing_score_files(page: Page) -> list[Path]:
    """List the score JSONs of a page that exist, sorted by name."""
    paths: set[Path] = set()
    for run_id, evaluator in page.scores():
        path = score_path(run_id, evaluator, page.scale)
        if path.exists():
            paths.add(path)
    return sorted(paths)


def page_file(page: Page, content: PageContent) -> PackedFile:
    """Make the page itself."""
    text = content.to_markdown()
    return PackedFile(f"{page.path.stem}.md", text.encode(), content.title, "text/markdown")


def without_pictures(content: PageContent) -> PageContent:
    """Leave out the pictures of a page, which are files of their own."""
    return content._replace(parts=parts_without_pictures(content.parts))


def parts_without_pictures(parts: Sequence[Part]) -> list[Part]:
    left: list[Part] = []
    for part in parts:
        match part:
            case Picture():
                continue
            case Fold():
                left.append(Fold(part.summary, parts_without_pictures(part.parts)))
            case _:
                left.append(part)
    return left


def cells_file(page: Page) -> PackedFile:
    """Tabulate the cells of a page, with the columns of `cells.csv`."""
    rows = []
    for paper_name, name in page.grids():
        rows += cell_rows(grid_view(paper_name, name, page.scale))
    text = csv_text(CELLS, rows)
    return PackedFile(f"{page.path.stem}.csv", text.encode(), "Cells of the page", "text/csv")


def packed_score(path: Path) -> PackedFile:
    """Take a score JSON as it is."""
    return PackedFile(
        f"scores/{path.name}", path.read_bytes(), f"Scores {path.stem}", "application/json"
    )


# ---------------------------------------------------------------- the description


def crate_metadata(
    page: Page,
    content: PageContent,
    made_files: list[PackedFile],
    packed_scores: list[PackedFile],
) -> Entity:
    """Describe the crate in JSON-LD.

    Args:
        made_files: files that csebench made from the scores; the page comes first.
        packed_scores: at least one.
    """
    software = software_entities()
    papers = [paper_entity(name) for name in page.papers if name not in GENERATED]
    files = [*made_files, *packed_scores]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": content.title,
        "description": f"{content.scale_line} Made from {len(packed_scores)} score files.",
        "datePublished": date_of_newest(packed_scores),
        "license": license_reference(),
        "author": {"@id": AUTHORS_ID},
        "publisher": {"@id": AUTHORS_ID},
        "hasPart": [reference(file) for file in files],
        "mainEntity": reference(made_files[0]),
        "citation": [{"@id": entity["@id"]} for entity in [*papers, software[0]]],
        "mentions": {"@id": RENDERING_ID},
    }
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": CONFORMS_TO,
        "about": {"@id": "./"},
    }
    rendering = {
        "@id": RENDERING_ID,
        "@type": "CreateAction",
        "name": f"csebench render {page.path}",
        "instrument": {"@id": SOFTWARE_ID},
        "object": [reference(file) for file in packed_scores],
        "result": [reference(file) for file in made_files],
    }
    entities = [file_entity(file) for file in files]
    return {
        "@context": CONTEXT,
        "@graph": [descriptor, root, *entities, rendering, *software, *papers],
    }


def reference(file: PackedFile) -> Entity:
    return {"@id": file.name}


def file_entity(file: PackedFile) -> Entity:
    """Describe a file by its size and hash."""
    return {
        "@id": file.name,
        "@type": "File",
        "name": file.title,
        "encodingFormat": file.media_type,
        "contentSize": str(len(file.content)),
        "sha256": hashlib.sha256(file.content).hexdigest(),
    }


def date_of_newest(packed_scores: list[PackedFile]) -> str:
    """Return the date on which the newest score was made, which does not change by itself."""
    times = []
    for file in packed_scores:
        times.append(json.loads(file.content)["provenance"]["started"])
    return max(times)[:10]


def citation_file() -> dict[str, Any]:
    """Read how csebench itself is to be cited."""
    return yaml.safe_load(read_text(ROOT / "CITATION.cff"))


def license_reference() -> Entity:
    return {"@id": f"https://spdx.org/licenses/{citation_file()['license']}"}


def software_entities() -> list[Entity]:
    """Describe csebench, its authors and its licence. csebench comes first."""
    citation = citation_file()
    software = {
        "@id": SOFTWARE_ID,
        "@type": "SoftwareApplication",
        "name": citation["title"],
        "softwareVersion": __version__,
        "version": __version__,
        "url": REPOSITORY,
        "license": license_reference(),
        "author": {"@id": AUTHORS_ID},
    }
    names = [author["name"] for author in citation["authors"]]
    authors = {
        "@id": AUTHORS_ID,
        "@type": "Organization",
        "name": ", ".join(names),
        "url": REPOSITORY,
    }
    license_entity = {
        **license_reference(),
        "@type": "CreativeWork",
        "name": f"{citation['license']} license",
        "description": "The licence of csebench, and of the scores that it publishes.",
    }
    return [software, authors, license_entity]


def paper_entity(paper_name: str) -> Entity:
    """Describe the paper whose table or figure is on the page."""
    source = paper(paper_name)
    entity = {
        "@id": str(source.url or f"#{source.name}"),
        "@type": "ScholarlyArticle",
        "name": source.title,
        "description": source.reference,
    }
    if source.url is not None:
        entity["url"] = str(source.url)
    return entity
