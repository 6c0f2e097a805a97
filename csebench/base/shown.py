"""How a text that comes from outside may be shown.

Such a text can be in a score JSON, a log, a file of the user, or the name of a device. Each place
that shows one calls a function of this module: terminal, pages, CSV and JSON. Layout is done there.
"""

import re

# Characters that change how others are shown, or that nobody sees: control characters, marks of
# direction, spaces without a width, halves of surrogate pairs, tags. U+200C and U+200D are not
# among them, because they spell words and emoji.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
REPLACEMENT = "\ufffd"  # Unicode's own sign for a character that cannot be shown
MARKUP = re.compile(r"[\\`*\[\]<>|]|!(?=\[)")  # of Markdown and HTML
FORMULA = ("=", "+", "-", "@")  # a spreadsheet takes a text that begins so for a formula
# a number that begins with a sign is no formula: `-0.5 ± 0.1`, `-0.2 to +0.3`
NUMBER_PATTERN = r"[-+]?\d[\d.,]*(e[-+]?\d+)?%?"
SIGNED_NUMBER = re.compile(
    rf"{NUMBER_PATTERN}( ± {NUMBER_PATTERN})?[†‡]*"
    rf"( to {NUMBER_PATTERN})?( \[\d+ missing\])?[†‡]*|[-+]"
)


def visible(text: str) -> str:
    """Put a text into one line in which every character can be seen.

    Line ends and tabs become spaces.
    """
    one_line = " ".join(text.splitlines()).replace("\t", " ")
    return HIDDEN.sub(REPLACEMENT, one_line)


def visible_lines(text: str) -> str:
    """Make every character of a text visible, and keep its lines. Only line feeds end a line."""
    return "\n".join(visible(line) for line in text.split("\n"))


def as_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it as it is, with every character visible.

    No image, table cell, code, HTML, or link with a text of its own begins in it. A bare address
    stays a link.
    """
    return MARKUP.sub(lambda match: f"\\{match[0]}", visible(text))


def as_csv_cell(value):
    """Turn a value into a cell of a CSV file.

    A text that a spreadsheet would compute gets an apostrophe, which makes it a text there. Numbers
    stay as they are.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    if text.lstrip().startswith(FORMULA) and not SIGNED_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def as_json_escapes(text: str) -> str:
    """Write each character of a JSON text that cannot be seen as an escape. Its content stays."""
    return HIDDEN.sub(lambda match: escaped(match[0]), text)


def escaped(character: str) -> str:
    """Write a character as an escape of JSON, such as `\\u202e`.

    A character beyond 16 bits is written as the escapes of its two halves.
    """
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
