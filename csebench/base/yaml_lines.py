"""YAML files with the lines of their keys, so that a message can name the line.

base/files.py reads other files. The caller passes a pydantic model, which states what the YAML file
must hold.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from csebench.base.errors import BadInput, validated
from csebench.base.files import M, read_text, unprintable
from csebench.base.project import name_of

NULL = "tag:yaml.org,2002:null"
SEQUENCE = "tag:yaml.org,2002:seq"
MAPPING = "tag:yaml.org,2002:map"
NOT_YAML = (
    yaml.YAMLError,
    # PyYAML does not catch what Python raises for some values, such as a date of month 13
    ValueError,
    OverflowError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)


def read_yaml(path: Path, model: type[M]) -> M:
    """Read a YAML file as a pydantic model.

    Raises:
        BadInput: the file cannot be read or does not fit the model (`read_with_lines`).
    """
    return read_with_lines(path, model)[0]


def read_with_lines(path: Path, model: type[M], as_written: bool = False) -> tuple[M, "Lines"]:
    """Read a YAML file as a pydantic model, and note the lines of its keys.

    Args:
        as_written: take scalars as text, so that 81.10 keeps its digits.

    Raises:
        BadInput: the file is missing, is not YAML, holds a character that no page can print, or
            does not fit the model.
    """
    file = name_of(path)
    try:
        loader = Loader(read_text(path), file, as_written)
        top = loader.get_single_node()
        content = None if top is None else loader.value(top)
    except NOT_YAML as e:
        mark = getattr(e, "problem_mark", None)
        where = file if mark is None else f"{file}: line {mark.line + 1}"
        reason = getattr(e, "problem", None) or e
        if isinstance(e, RecursionError):
            reason = "nested too deeply"
        raise BadInput(f"{where}: not valid YAML: {reason}.") from None
    return validated(model, content, file, loader.lines.locate), loader.lines


@dataclass(frozen=True)
class Lines:
    """The lines of the keys and items of a YAML file, or of a literal in Python."""

    file: str
    # line by the path of keys and positions, such as ("experiments", 0, "runs", 3)
    numbers: dict[tuple, int] = field(default_factory=dict)

    def locate(self, place: tuple) -> tuple[str, tuple]:
        """Find the line of a path of keys that pydantic reports.

        Pydantic adds keys that the file does not have, such as the kind of a table. They are
        skipped. For a key inside an alias, the line is that on which the alias stands.

        Returns:
            `evidence/x.yaml: line 12`, or the file alone if no line is known. Then those of the
            keys that the file has.
        """
        keys = ()
        for key in place:
            if (*keys, key) in self.numbers:
                keys = (*keys, key)
        if keys not in self.numbers:
            return self.file, keys
        return f"{self.file}: line {self.numbers[keys]}", keys


# the loader of libyaml is four times as fast
FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FastLoader):
    """YAML's safe loader, which also notes lines, and refuses a key that occurs twice."""

    def __init__(self, text: str, file: str, as_written: bool):
        super().__init__(text)
        self.lines = Lines(file)
        self.as_written = as_written
        # What each node gave, by the id of the node. An alias has the same node as its anchor, so
        # it gets the same object, and the node is read once.
        self.containers: dict[int, dict | list] = {}

    def value(self, node: yaml.Node, place: tuple = ()) -> Any:
        """Turn a node into dicts with text as keys, lists and scalars.

        Args:
            place: keys and positions that lead to the node.
        """
        self.lines.numbers.setdefault(place, node.start_mark.line + 1)
        if id(node) in self.containers:
            return self.containers[id(node)]
        if node.tag == SEQUENCE:
            return self._list(node, place)
        if node.tag == MAPPING:
            return self._dict(node, place)
        return self._scalar(node, place)

    def _list(self, node: yaml.Node, place: tuple) -> list:
        items: list = []
        self.containers[id(node)] = items  # first, because an item may be an alias of the list
        for index, item in enumerate(node.value):
            items.append(self.value(item, (*place, index)))
        return items

    def _dict(self, node: yaml.Node, place: tuple) -> dict:
        content: dict = {}
        self.containers[id(node)] = content  # first, because a value may be an alias of it
        for key, inner in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _error_at(key, "a key must be a word")
            problem = unprintable(key.value)
            if problem is not None:
                raise BadInput(f"{self.lines.file}: line {line}: {problem}")
            if key.value in content:
                raise _error_at(key, f"key {key.value!r} occurs twice; keep one")
            self.lines.numbers[*place, key.value] = line
            content[key.value] = self.value(inner, (*place, key.value))
        return content

    def _scalar(self, node: yaml.Node, place: tuple) -> Any:
        """Turn a node that is no plain list or dict into a value."""
        if isinstance(node, yaml.ScalarNode):
            problem = unprintable(node.value)
            if problem is not None:
                where, _ = self.lines.locate(place)
                raise BadInput(f"{where}: {problem}")
            if self.as_written and node.tag != NULL:
                return node.value
        return self.construct_object(node, deep=True)


def _error_at(node: yaml.Node, problem: str) -> yaml.YAMLError:
    """Make an error of YAML, which `read_with_lines` reports with its line."""
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
