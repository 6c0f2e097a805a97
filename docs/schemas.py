"""Write the reference of the project's YAML and JSON files, from the models of csebench/plan/.

    python docs/schemas.py

Editors check and complete files by docs/schemas/*.json, and people read docs/schemas.md. A file of
papers/, config/ or evidence/ names its schema in its first line.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import tokenize
from typing import Any

from pydantic import BaseModel

from csebench.base.files import write_text
from csebench.base.project import ROOT
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import EvidenceSource, Names
from csebench.plan.schema import declarations, paper, spec
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.paper import Paper
from csebench.plan.schema.spec import Spec

FOLDER = ROOT / "docs" / "schemas"
PAGE = ROOT / "docs" / "schemas.md"
MODELS: dict[str, type[BaseModel]] = {"paper": Paper, "scale": Scale, "spec": Spec}
EVIDENCE: dict[str, type[BaseModel]] = {"source": EvidenceSource, "methods": Names}
MODULES = (paper, declarations, spec, evidence)  # that define the models
START = """\
# Files

All files that you can write, with every key. A missing key has its default; a key that is not
listed is refused with its line. Editors that read `# yaml-language-server: $schema=…` complete
and check a file while you type. (`docs/schemas.py` writes this page.)
"""
FILES = {  # for each schema: its files, and where to read on
    "paper": "A file of `papers/`: a paper's tables, figures and claims ([how](papers.md))",
    "scale": "A file of `config/`: a scale ([how](rerun.md#choose-a-scale))",
    "source": "A file of `evidence/`: runs that others published ([how](evidence.md))",
    "methods": "`evidence/methods.yaml`: names of methods and encoders ([how](evidence.md))",
    "spec": "A run as JSON: the first argument of `csebench train`",
}


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
    """Allow a number for every text.

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


def reference() -> str:
    """Return docs/schemas.md: a section per file, a table per object in it."""
    texts = schemas()
    models = MODELS | EVIDENCE
    parts = [START]
    for name, title in FILES.items():
        schema = json.loads(texts[name])
        parts.append(f"## {name}\n\n{title}.\n")
        parts.append(object_table(models[name], schema))
        for inner, content in schema.get("$defs", {}).items():
            if "properties" in content:
                parts.append(f"### {name}: {inner}\n")
                parts.append(object_table(model_named(inner), content))
    return "\n".join(parts)


def model_named(name: str) -> type[BaseModel]:
    """Return the model of an object of a schema."""
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(f"{name}: none of MODULES defines it")


def object_table(model: type[BaseModel], schema: dict[str, Any]) -> str:
    """Describe an object, and tabulate its keys with values, defaults and meanings."""
    meanings = key_comments(model)
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, value in schema["properties"].items():
        default = default_text(value, key in schema.get("required", []))
        lines.append(f"| `{key}` | {type_text(value)} | {default} | {meanings.get(key, '')} |")
    description = schema.get("description", "")
    if description:
        lines = [" ".join(description.split("\n\n")[0].split()), "", *lines]
    return "\n".join(lines) + "\n"


def key_comments(model: type[BaseModel]) -> dict[str, str]:
    """Return the comment at each key of a model, also of the models that it extends."""
    comments: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if issubclass(part, BaseModel) and part is not BaseModel:
            comments |= comments_in(inspect.getsource(part))
    names = {name: field.alias or name for name, field in model.model_fields.items()}
    return {names[name]: text for name, text in comments.items() if name in names}


def comments_in(source: str) -> dict[str, str]:
    """Return the comment at the end of each field's line, or in the lines above the field."""
    comments: dict[str, str] = {}
    above: list[str] = []
    last = None  # the field on the current line
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        field = re.match(r"    (\w+):", token.line)
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            above.append(token.string[1:].strip())
        elif token.type == tokenize.COMMENT and last is not None:
            comments[last] = token.string[1:].strip()
        elif token.type == tokenize.NAME and field and token.string == field[1]:
            last = field[1]
            if above:
                comments[last] = " ".join(above)
            above = []
        elif token.type == tokenize.NEWLINE:
            last = None
    return {name: text.replace("|", r"\|") for name, text in comments.items()}


def default_text(value: dict[str, Any], is_required: bool) -> str:
    """Return the default of a key."""
    if is_required:
        return "(required)"
    default = value.get("default")
    if default in (None, "", [], {}):
        return "none"
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def type_text(value: dict[str, Any]) -> str:
    """Return in words which values a key may have."""
    if "$ref" in value:
        return value["$ref"].rpartition("/")[2]
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    for key in ("anyOf", "oneOf"):
        if key in value:
            parts = [type_text(part) for part in value[key] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(parts))
    if value.get("type") == "array":
        return f"list of {type_text(value.get('items', {}))}"
    if value.get("type") == "object":
        return f"keys with {value_of_keys(value)}"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true/false",
    }
    kinds = value.get("type", "any value")
    if isinstance(kinds, str):
        kinds = [kinds]
    return " or ".join(names.get(kind, kind) for kind in kinds)


def value_of_keys(value: dict[str, Any]) -> str:
    """Return in words which values an object with free keys may have."""
    for content in value.get("patternProperties", {}).values():
        return type_text(content)
    content = value.get("additionalProperties")
    if isinstance(content, dict):
        return type_text(content)
    return "any value"


def main() -> None:
    for name, text in schemas().items():
        write_text(FOLDER / f"{name}.json", text)
    write_text(PAGE, reference())


if __name__ == "__main__":
    main()
