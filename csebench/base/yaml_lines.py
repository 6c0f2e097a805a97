"""YAML files with the lines of their keys, so that messages can name them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from csebench.base.errors import BadInput, validated
from csebench.base.files import M, read_text, unprintable
from csebench.base.project import name_of


@dataclass(frozen=True)
class Lines:
    """Where the keys and items of a YAML file, or of a literal in Python, are."""

    file: str
    # by keys and positions: ("experiments", 0, "runs", 3)
    numbers: dict[tuple, int] = field(default_factory=dict)

    def locate(self, place: tuple) -> tuple[str, tuple]:
        """`evidence/x.yaml: line 12`, and the keys of a place that are in the file: a schema
        adds its own, such as the kind of a table. Of a place inside an alias, those of the
        alias."""
        keys = ()
        for key in place:
            keys = (*keys, key) if (*keys, key) in self.numbers else keys
        return (
            f"{self.file}: line {self.numbers[keys]}" if keys in self.numbers else self.file
        ), keys


# that of libyaml is four times as fast
FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FastLoader):
    """YAML's safe loader, which also notes lines, and refuses a key that occurs twice."""

    def __init__(self, text: str, file: str, as_written: bool):
        super().__init__(text)
        self.lines, self.as_written = Lines(file), as_written
        # by node: an alias is its anchor's, and not walked again
        self.containers: dict[int, dict | list] = {}

    def value(self, node: yaml.Node, place: tuple = ()) -> Any:
        """A node as dicts, lists and scalars; keys are text."""
        self.lines.numbers[place] = self.lines.numbers.get(place, node.start_mark.line + 1)
        if id(node) in self.containers:
            return self.containers[id(node)]
        if node.tag == "tag:yaml.org,2002:seq":
            items = self.containers[id(node)] = []
            items.extend(self.value(item, (*place, i)) for i, item in enumerate(node.value))
            return items
        if node.tag == "tag:yaml.org,2002:map":
            content = self.containers[id(node)] = {}
            for key, inner in node.value:
                is_word = isinstance(key, yaml.ScalarNode)
                if is_word and (problem := unprintable(key.value)) is not None:
                    raise BadInput(f"{self.lines.file}: line {key.start_mark.line + 1}: {problem}")
                if not is_word or key.value in content:
                    problem = (
                        f"key {key.value!r} occurs twice; keep one"
                        if is_word
                        else "a key must be a word"
                    )
                    raise yaml.constructor.ConstructorError(
                        problem=problem, problem_mark=key.start_mark
                    )
                self.lines.numbers[*place, key.value] = key.start_mark.line + 1
                content[key.value] = self.value(inner, (*place, key.value))
            return content
        is_text = isinstance(node, yaml.ScalarNode)
        if is_text and (problem := unprintable(node.value)) is not None:
            raise BadInput(f"{self.lines.locate(place)[0]}: {problem}")
        if is_text and self.as_written and node.tag != "tag:yaml.org,2002:null":
            return node.value
        return self.construct_object(node, deep=True)


def read_yaml(path: Path, model: type[M]) -> M:
    """The content of a YAML file as a pydantic model. Raises BadInput as `read_with_lines` does."""
    return read_with_lines(path, model)[0]


def read_with_lines(path: Path, model: type[M], as_written: bool = False) -> tuple[M, Lines]:
    """The content of a YAML file as a model, and its lines; `as_written` takes scalars as text, so
    that 81.10 keeps its digits. Raises BadInput where it is missing, is no YAML, holds what no page
    can print, or does not fit.
    """
    file = name_of(path)
    try:
        loader = Loader(read_text(path), file, as_written)
        top = loader.get_single_node()
        content = None if top is None else loader.value(top)
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
    ) as e:
        # of PyYAML, which does not catch a date of month 13
        mark = getattr(e, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        reason = (
            "nested too deeply"
            if isinstance(e, RecursionError)
            else getattr(e, "problem", None) or e
        )
        raise BadInput(f"{file}: {line}not valid YAML: {reason}.") from None
    return validated(model, content, file, loader.lines.locate), loader.lines
