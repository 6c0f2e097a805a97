"""Write docs/schemas/*.json, which let editors check and complete the project's YAML and JSON.

    python docs/schemas.py

The schemas follow from the models of csebench/plan/. A file of papers/, config/ or evidence/ names
its schema in its first line. The schema `spec` is for the JSON files that `csebench train` takes.
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


def main() -> None:
    """Write all schemas."""
    for name, text in schemas().items():
        write_text(FOLDER / f"{name}.json", text)


def schemas() -> dict[str, str]:
    """Make the JSON schemas as texts, by name."""
    texts = {}
    for name, model in MODELS.items():
        texts[name] = schema_text(model.model_json_schema())
    for name, model in EVIDENCE.items():
        texts[name] = schema_text(with_numbers_as_texts(model.model_json_schema()))
    return texts


def schema_text(schema: Any) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def with_numbers_as_texts(schema: Any) -> Any:
    """Let every text be a number, too.

    Files of evidence/ have `81.10` and `3e-5` without quotes. csebench reads them as texts, but an
    editor takes them for numbers.
    """
    if isinstance(schema, list):
        return [with_numbers_as_texts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: with_numbers_as_texts(value) for key, value in schema.items()}
    if parts.get("type") == "string":
        parts["type"] = ["string", "number"]
    return parts


if __name__ == "__main__":
    main()
