"""A terminal shows verdicts in colour and commands that can be copied. Other output stays plain."""

import contextlib
import io
import re
import shlex

import pytest

from csebench.base import terminal
from csebench.report.numbers.audit import Severity
from csebench.report.numbers.claims import ClaimVerdict
from csebench.report.numbers.verdict_words import PrintedWord, VerdictWord

ESCAPES = re.compile(r"\x1b\[\d+m")
GREEN = "32"  # codes of ANSI terminals
GREY = "90"


class Screen(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def print_examples(stream):
    """Print a table with two verdicts, and a sentence with one, and return what they show."""
    details = "supported, of another size than the sentence states"
    rows = [["higher is better", details, 1.0], ["no", "cannot tell", 20.0]]
    with contextlib.redirect_stdout(stream):
        terminal.print_table(["claim", "verdict", "p"], rows)
        terminal.print_text("Scale mini. higher: +0.67 (95 % +0.26 to +1.07). Both are the same.")
    return stream.getvalue()


def test_verdicts_have_a_colour_and_nothing_else_has():
    in_colour = re.findall(r"\x1b\[(\d+)m(.*?)\x1b\[0m", print_examples(Screen()))
    words_by_colour = {}
    for colour, text in in_colour:
        words_by_colour[colour] = f"{words_by_colour.get(colour, '')} {text}".strip()
    assert words_by_colour == {
        GREEN: "supported, of another size than the sentence states higher",
        GREY: "cannot tell",
    }


@pytest.mark.parametrize("words", [VerdictWord, PrintedWord, ClaimVerdict, Severity])
def test_every_word_of_a_verdict_has_a_colour(words):
    for word in words:
        assert terminal.colour_of(word)


def test_a_pipe_gets_the_same_text_without_colours():
    plain = print_examples(io.StringIO())
    assert "\x1b" not in plain
    assert ESCAPES.sub("", print_examples(Screen())) == plain


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_refused(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    assert "\x1b" not in print_examples(Screen())


def test_what_comes_from_outside_gets_no_colour_of_its_own():
    screen = Screen()
    with contextlib.redirect_stdout(screen):
        terminal.print_text("\x1b[31mhigher\x1b[0m")
        terminal.print_table(["verdict"], [["\x1b[31mhigher\x1b[0m"]])
    assert "\x1b" not in screen.getvalue()


def test_texts_of_users_are_no_markup(capsys):
    terminal.print_text("[bold]a[/bold] :warning:")
    terminal.print_table(["x"], [["[red]b[/red] :warning:"]])
    printed = capsys.readouterr().out
    assert "[bold]a[/bold] :warning:" in printed
    assert "[red]b[/red] :warning:" in printed


def test_an_address_is_never_broken_in_a_text(capsys):
    address = f"https://example.org/{'a' * 60}"
    terminal.print_text(f"see {address}")
    assert capsys.readouterr().out == f"see\n{address}\n"


def test_numbers_are_aligned_at_the_right():
    table = terminal.table_text(["run", "p"], [["a", 10.5], ["b", None], ["c", "3.7e-21"]])
    assert table.splitlines() == [
        "run        p",
        "---  -------",
        "a       10.5",
        "b          –",
        "c    3.7e-21",
    ]


def test_a_narrow_table_keeps_words_whole_and_loses_no_text():
    words = "comparable in the full-shot scenario"
    long_word = "x" * 50
    table = terminal.table_text(["claim", "verdict", "run"], [[words, "same", long_word]])
    assert {*words.split()} <= {*table.split()}
    assert table.count("x") == len(long_word)
    assert all(len(line) <= 40 for line in table.splitlines())


def test_a_table_without_room_for_its_columns_has_a_line_for_each_value():
    columns = [f"column{i}" for i in range(6)]
    lines = terminal.table_text(columns, [range(6), range(6)]).splitlines()
    assert lines[:2] == ["column0  0", "column1  1"]
    assert lines[6:8] == ["", "column0  0"]


def test_a_long_command_is_broken_where_a_shell_goes_on(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    command = "snakemake -j4 --config scale=mini -- results/mini/micse/table2.md"
    lines = terminal.command_text(command).split("\n")
    assert len(lines) > 1
    assert all(len(line) <= 40 for line in lines)
    assert shlex.split(" ".join(lines).replace("\\ ", "")) == shlex.split(command)


def test_the_summary_of_a_list_counts_all_verdicts_by_their_first_words():
    verdicts = {"Verdict": ["open", "supported, of another size", "supported (+2.60)"]}
    assert terminal.summary_line(3, 3, "claim", verdicts) == (
        "3 claims. Verdict: 2 supported, 1 open."
    )
    assert terminal.summary_line(1, 3, "claim", verdicts) == (
        "The first of 3 claims. Verdict: 2 supported, 1 open."
    )
