"""What may be shown of a text that comes from outside: a score JSON, a log, a file of the user,
the name of a device. Every place that shows one calls a function of this module: terminal,
pages, CSV and JSON."""

import re

# Characters that change how others are shown, or that nobody sees: control characters, marks of
# direction, spaces without a width, halves of surrogate pairs, tags. U+200C and U+200D are no such:
# they spell words and emoji.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
REPLACEMENT = "\ufffd"  # Unicode's own for what cannot be shown
MARKUP = re.compile(r"[\\`*\[\]<>|]|!(?=\[)")  # of Markdown and HTML
FORMULA = ("=", "+", "-", "@")  # with which a formula begins in a spreadsheet
# `-0.5 ± 0.1`, `-0.2 to +0.3`; no call, no reference
NUMBER_PATTERN = r"[-+]?\d[\d.,]*(e[-+]?\d+)?%?"
SIGNED_NUMBER = re.compile(
    rf"{NUMBER_PATTERN}( ± {NUMBER_PATTERN})?[†‡]*"
    rf"( to {NUMBER_PATTERN})?( \[\d+ missing\])?[†‡]*|[-+]"
)


def visible(text: str) -> str:
    """A text in one line, in which every character can be seen. Ends of lines and tabs become
    spaces."""
    one_line = " ".join(text.splitlines()).replace("\t", " ")
    return HIDDEN.sub(REPLACEMENT, one_line)


def visible_lines(text: str) -> str:
    """The same of a text whose lines are meant, such as a message: only line feeds end a line."""
    return "\n".join(visible(line) for line in text.split("\n"))


def as_markdown(text: str) -> str:
    """A visible text that Markdown shows as it is: no image, table cell, code, HTML or link with a
    text of its own begins in it. A bare address stays one."""
    return MARKUP.sub(lambda match: f"\\{match[0]}", visible(text))


def as_csv_cell(value):
    """A value as a cell of a CSV file. A text that a spreadsheet would compute gets an
    apostrophe, which makes it a text there; numbers stay."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    if text.lstrip().startswith(FORMULA) and not SIGNED_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def as_json_escapes(text: str) -> str:
    """A JSON text with an escape for every character that cannot be seen; it has the same
    content."""
    return HIDDEN.sub(lambda match: escaped(match[0]), text)


def escaped(character: str) -> str:
    """`\\u202e`; of a character beyond 16 bits, the escapes of its two halves."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
