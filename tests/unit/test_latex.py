"""Pages as LaTeX: it compiles, shows every character, and names the runs behind a table."""

import shutil
import subprocess

import pytest

from csebench.plan import targets
from csebench.report.pages import PAGES
from csebench.report.pages.latex import LATEX_PACKAGES, latex_cell, latex_table
from csebench.report.pages.page import PageContent, TextTable, without_commands
from csebench.report.pages.table import table_page

SCALE = "mini"
HOSTILE = '100 % of a_b & c # $d$ ~e^f {g} \\h <i> | "j" λ ≈ −0.5 ✓ 2 * 3 * 4 \\input{/etc/passwd}'
ROWS = [
    ["[a link](x.md)", "**1.0** ± 0.2", "`a_b`"],
    ["*emphasis*", HOSTILE, "\\*no emphasis\\*"],
    ["[brackets]", "* a star", HOSTILE],
]


@pytest.fixture(scope="module")
def pages():
    """A page with runs, pages with links and marks, and one with hostile texts."""
    (page,) = targets.parse_target("micse/table2", SCALE)
    hostile = PageContent(HOSTILE, "", [TextTable(["a", "b", HOSTILE], ROWS, HOSTILE)])
    return [table_page(page), PAGES["audit"](SCALE), PAGES["index"](SCALE), hostile]


def compiler():
    """Return the command of a LaTeX compiler, or None if none is installed."""
    if shutil.which("pdflatex"):
        return ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode"]
    if shutil.which("tectonic"):
        return ["tectonic"]
    return None


@pytest.mark.skipif(compiler() is None, reason="needs pdflatex or tectonic")
def test_the_tables_of_a_page_compile(pages, tmp_path):
    inputs = []
    for number, page in enumerate(pages):
        (tmp_path / f"page{number}.tex").write_text(page.write("latex"), encoding="utf-8")
        inputs.append(rf"\input{{page{number}}}")
    document = [
        r"\documentclass{article}",
        rf"\usepackage{{{LATEX_PACKAGES}}}",
        r"\begin{document}",
        *inputs,
        r"\end{document}",
    ]
    (tmp_path / "all.tex").write_text("\n\n".join(document))
    done = subprocess.run(
        [*compiler(), "all.tex"], cwd=tmp_path, capture_output=True, text=True, errors="replace"
    )
    assert done.returncode == 0, done.stdout[-3000:]


def parsed_nodes(text):
    """Parse LaTeX strictly, so that an unclosed brace or environment is an error."""
    latexwalker = pytest.importorskip("pylatexenc.latexwalker", reason="needs pylatexenc")
    walker = latexwalker.LatexWalker(text, tolerant_parsing=False)
    nodes, _, _ = walker.get_latex_nodes()
    return nodes


def test_every_row_has_the_columns_of_its_table(pages):
    for page in pages:
        shown = [without_commands(part) for part in page.parts if isinstance(part, TextTable)]
        sizes = [len(table.head) for table in shown]
        tables = []
        for node in parsed_nodes(page.write("latex")):
            if getattr(node, "environmentname", None) == "tabular":
                tables.append(node)
        assert [columns_of_table(table) for table in tables] == [{size} for size in sizes]


def columns_of_table(table):
    """List the numbers of columns that the specification and the rows of a parsed table have."""
    specification = table.nodeargd.argnlist[-1].latex_verbatim()
    counts = {len(specification.strip("{}"))}
    separators = 0
    for node in table.nodelist:
        if getattr(node, "specials_chars", None) == "&":
            separators += 1
        elif getattr(node, "macroname", None) == "\\":
            counts.add(separators + 1)
            separators = 0
    assert separators == 0, "a row without an end"
    return counts


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("5 % of a_b & #1", r"5 \% of a\_b \& \#1"),
        ("{$x^2$} ~ \\y", r"\{\$x\textasciicircum{}2\$\} \textasciitilde{} \textbackslash{}y"),
        ("λ = −0.5", r"$\lambda$ = $-$0.5"),
        ("**55.32** ± 0.16", r"\textbf{55.32} ± 0.16"),
        ("*open*: `a_b`", r"\emph{open}: \texttt{a\_b}"),
        ("[Table 2](micse/table2.md)", "Table 2"),
        ("**[a_b](x)**", r"\textbf{a\_b}"),
        ("2 * 3 * 4", "2 {*} 3 {*} 4"),
        ("\\*x\\*", "{*}x{*}"),
    ],
)
def test_a_cell_shows_its_text_and_marks(text, latex):
    assert latex_cell(text) == latex


def test_no_row_begins_with_an_argument_of_the_row_before():
    r"""`\\` would read `[…]` or `*` behind it as an argument, also on the next line."""
    for row in latex_table(["a"], [["[x"], ["* x"]]).split("\\\\\n"):
        assert not row.startswith(("[", "*"))


def test_comments_name_the_page_its_scale_and_the_runs_of_each_row(pages):
    (page,) = targets.parse_target("micse/table2", SCALE)
    comments = []
    for line in pages[0].write("latex").splitlines():
        if line.startswith("%"):
            comments.append(line)
    assert "miCSE · Table 2" in comments[0]
    assert "Scale mini" in comments[1]
    named = "\n".join(comments)
    assert "% AMI+SimCSE: simcse-" in named
    for run_id in page.runs():
        assert run_id in named
