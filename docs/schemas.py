"""Writes docs/schemas/*.json, by which editors check and complete the project's YAML and JSON
files.

    python docs/schemas.py

The models of csebench/plan/ are their source. A file of papers/, config/ or evidence/ names its
schema in its first line; `spec` is of the JSON files that `csebench train` takes.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from csebench.base.files import write_text
from csebench.base.project import ROOT
from csebench.plan.catalog.evidence import EvidenceSource, Names
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.paper import Paper
from csebench.plan.schema.spec import Spec

FOLDER = ROOT / "docs" / "schemas"
MODELS: dict[str, type[BaseModel]] = {"paper": Paper, "scale": Scale, "spec": Spec}
EVIDENCE: dict[str, type[BaseModel]] = {"source": EvidenceSource, "methods": Names}


def schemas() -> dict[str, str]:
    """The JSON schemas as texts, by name."""
    contents = {name: model.model_json_schema() for name, model in MODELS.items()}
    contents |= {name: as_written(model.model_json_schema()) for name, model in EVIDENCE.items()}
    return {
        name: json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        for name, content in contents.items()
    }


def as_written(schema: Any) -> Any:
    """A schema in which a text may be a number, as `81.10` and `3e-5` are where nothing says
    that they are texts: evidence/ is read as it is written."""
    if isinstance(schema, list):
        return [as_written(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: as_written(value) for key, value in schema.items()}
    return parts | {"type": ["string", "number"]} if parts.get("type") == "string" else parts


def main() -> None:
    for name, text in schemas().items():
        write_text(FOLDER / f"{name}.json", text)


if __name__ == "__main__":
    main()
