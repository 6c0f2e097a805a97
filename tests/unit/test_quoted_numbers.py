"""Numbers that README.md and docs/*.md quote must be those of results/mini and
results/evidence.csv."""

import runpy

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import ROOT

quoted = runpy.run_path(str(ROOT / "docs" / "quoted_numbers.py"))


def test_texts_are_not_stale(capsys):
    assert quoted["main"](["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("encoder", ["BERT-large", "RoBERTa-base", "RoBERTa-large"])
def test_no_seed_of_the_encoders_that_readme_names_reaches_the_printed_value(encoder):
    assert quoted["reached"]("unsup-SimCSE", encoder) == 0


def test_a_stale_number_fails_the_check(tmp_path, monkeypatch, capsys):
    text = tmp_path / "README.md"
    text.write_text("a <!-- n: 1 + 1 -->3<!-- /n -->")
    monkeypatch.setitem(quoted["main"].__globals__, "ROOT", tmp_path)
    assert quoted["main"](["--check"]) == 1
    assert "README.md" in capsys.readouterr().err
    assert quoted["main"]([]) == 0
    assert text.read_text() == "a <!-- n: 1 + 1 -->2<!-- /n -->"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('text("micse/table3", "SimCSE", "1%")', "README.md: line 2: .*unknown row 'SimCSE'"),
        ("1 -->1\n<!-- n: 2", "<!-- /n -->"),
        ("1 -->1<!-- /n -->\n<!-- n: 2", "a word before it"),
    ],
)
def test_an_invalid_expression_is_named_with_its_line(expression, message):
    with pytest.raises(BadInput, match=message):
        quoted["fill"](f"a\nb <!-- n: {expression} -->old<!-- /n -->", "README.md")
