"""Tables as LaTeX that compiles.

Cells are texts in Markdown, as pages have them. Bold, emphasis and code become commands, and a link
becomes its text. Every other character stands for itself, but TeX joins `--`. pdflatex knows the
letters of European languages, and the characters in MATHEMATICAL; others need lualatex or xelatex.
"""

import re
from collections.abc import Sequence

from csebench.base.shown import visible

LATEX_PACKAGES = "booktabs,amssymb"
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # babel gives the character a meaning in some languages
    # `\\` and the rules of booktabs would take these for an argument at the beginning of a row
    "[": "{[}",
    "*": "{*}",
    "−": "$-$",  # the sign of a negative number
}
MATHEMATICAL = {  # characters that pdflatex does not know, by their commands
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "varphi",
    "ω": "omega",
    "Δ": "Delta",
    "Σ": "Sigma",
    "≈": "approx",
    "≠": "neq",
    "≤": "leq",
    "≥": "geq",
    "∞": "infty",
    "‖": "Vert",
    "◇": "Diamond",
    "✓": "checkmark",
}
# Markdown inside of a cell. A mark is next to the text that it marks, so `2 * 3 * 4` has none.
MARKED = re.compile(
    r"\*\*(?P<bold>\S.*?)\*\*"
    r"|\*(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*"
    r"|`(?P<code>[^`]+)`"
    r"|(?<!\\)\[(?P<link>[^\]]+)\]\([^()]*\)"
    r"|\\(?P<escaped>[\\`*\[\]<>|!])"
)


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table with the rules of the package booktabs."""
    lines = [
        rf"\begin{{tabular}}{{{'l' * len(head)}}}",
        r"\toprule",
        latex_row(head),
        r"\midrule",
        *(latex_row(row) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex_cell(visible(cell)) for cell in cells) + r" \\"


def latex_comment(text: str) -> str:
    """Write a text as a comment of one line."""
    return f"% {visible(text)}".rstrip()


def latex_cell(text: str) -> str:
    """Turn a text in Markdown into LaTeX."""
    parts = []
    end = 0
    for match in MARKED.finditer(text):
        parts.append(escape_latex(text[end : match.start()]))
        parts.append(latex_mark(match))
        end = match.end()
    parts.append(escape_latex(text[end:]))
    return "".join(parts)


def latex_mark(match: re.Match) -> str:
    """Turn a marked part of a text into LaTeX. What is inside may be marked, too, but not code."""
    kind = match.lastgroup or ""
    inside = match[kind]
    match kind:
        case "bold":
            return rf"\textbf{{{latex_cell(inside)}}}"
        case "emphasis":
            return rf"\emph{{{latex_cell(inside)}}}"
        case "code":
            return rf"\texttt{{{escape_latex(inside)}}}"
        case "link":
            return latex_cell(inside)
        case _:  # escaped
            return escape_latex(inside)


def escape_latex(text: str) -> str:
    """Let every character of a text stand for itself."""
    return "".join(latex_character(character) for character in text)


def latex_character(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if character in MATHEMATICAL:
        return rf"$\{MATHEMATICAL[character]}$"
    return character
