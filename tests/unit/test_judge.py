"""The judge is judged: sentences (true, false, borderline) and misprints are planted, as
benchmarks/judge.py draws them, and its verdicts are counted."""

import runpy
from typing import NamedTuple

import pytest

from csebench.base.project import ROOT


@pytest.fixture(scope="module")
def judge():
    return runpy.run_path(str(ROOT / "benchmarks" / "judge.py"))


class VerdictRates(NamedTuple):
    """The fractions of draws in which a planted sentence was judged in each way."""

    right: float | None  # None if the truth has no right verdict
    false_alarms: float
    misses: float | None


class FindingRates(NamedTuple):
    """The fractions of papers in which a planted misprint was found and missed."""

    found: float | None  # None if nothing is planted
    missed: float | None
    others: float  # other findings per paper


@pytest.fixture(scope="module")
def claims(judge):
    """Rates of 100 draws by (sentence, numbers that it is judged on)."""
    rates = {}
    for name, source, _, *values in judge["judge_claims"](100):
        rates[name, source] = VerdictRates(*values)
    return rates


@pytest.fixture(scope="module")
def findings(judge):
    """Rates of 15 papers by what is planted."""
    rates = {}
    for planted, _, _, *values in judge["judge_audit"](15):
        rates[planted] = FindingRates(*values)
    return rates


def test_a_borderline_sentence_is_seldom_significant(claims):
    alarms = []
    for (name, _), rates in claims.items():
        if "borderline" in name or name.startswith("comparable"):
            alarms.append(rates.false_alarms)
    assert len(alarms) > 40
    assert sum(alarms) / len(alarms) < 0.06
    assert max(alarms) < 0.15


def test_a_true_sentence_is_never_reversed_nor_a_false_one_held(claims):
    for (name, source), rates in claims.items():
        if "true" in name or "false" in name:
            assert rates.false_alarms <= 0.1, (name, source)


def test_a_sentence_far_from_borderline_is_never_judged_the_other_way(claims):
    alarms = []
    for (name, _), rates in claims.items():
        if name in ("above one: true", "above one: false"):
            alarms.append(rates.false_alarms)
    assert alarms == [0.0] * 10


FAR = [
    "above one: true",
    "above one: false",
    "above all four: true",
    "comparable: false",
    "less than 1.0: false",
]


@pytest.mark.parametrize("source", ["print, mean ± std of 5", "ours, 5 seeds", "ours, 10 seeds"])
@pytest.mark.parametrize("name", [*FAR, "on par or better: false"])
def test_what_is_far_from_borderline_gets_its_verdict(claims, name, source):
    assert claims[name, source].right >= 0.9


def test_a_stated_size_is_judged_up_to_rounding(claims):
    assert claims["size stated: right", "print, one run"].right == 1
    assert claims["size stated: off by 0.05", "print, one run"].right == 1


def test_clean_papers_have_no_finding_and_misprints_no_other(findings):
    clean = [planted for planted in findings if planted.startswith("clean") or "re-run" in planted]
    assert len(clean) == 5
    for planted, rates in findings.items():
        assert rates.others == 0, planted


MISSED = {  # the largest fraction that may be missed
    # a changed last digit moves an average by less than it is printed with
    "two digits exchanged": 0.2,
    "one digit of a score": 0.5,
    # some accuracies fit the number of items by chance
    "any two digits, TREC of 500 items": 0.2,
    "any two digits, MRPC of 1725 items": 1,
    "any two digits, SST of 1821 items": 1,
}


def test_planted_misprints_are_found(findings):
    for planted, rates in findings.items():
        if rates.missed is not None:
            assert rates.missed <= MISSED.get(planted, 0), planted
