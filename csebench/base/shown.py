"""How a text that comes from outside may be shown.

Such a text can be in a score JSON, a log, a file of the user, or the name of a device. Terminal,
pages, CSV and JSON call the functions of this module for each such text, and do the layout
themselves.
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
MARKUP = re.compile(r"[\\`*\[\]<>|]|!(?=\[)")  # begins markup of Markdown or HTML
FORMULA = ("=", "+", "-", "@")  # spreadsheets compute a text that begins with one of these
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

    The text cannot begin an image, a table cell, code, HTML, or a link that hides its address. An
    address that stands in the text stays a link.
    """
    return MARKUP.sub(lambda match: f"\\{match[0]}", visible(text))


def as_csv_cell(value):
    """Turn a value into a cell of a CSV file.

    A spreadsheet would compute a text that looks like a formula. An apostrophe before it prevents
    this. Numbers stay as they are.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    if text.lstrip().startswith(FORMULA) and not SIGNED_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def as_json_escapes(text: str) -> str:
    """Replace characters of a JSON text that nobody sees by escapes. Its content is the same."""
    return HIDDEN.sub(lambda match: escaped(match[0]), text)


def escaped(character: str) -> str:
    """Write a character as an escape of JSON, such as `\\u202e`.

    A character beyond 16 bits is written as the escapes of its two halves.
    """
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
