"""The figure of printed gains, and the pages that lead to its sentences, on a made-up paper."""

import csv
import re
import shutil

import pytest
from made_up import clear, made_up, table

from csebench.base.project import ROOT
from csebench.report.figures.printed_gains import draw_gains
from csebench.report.numbers import printed_gains as gains_module
from csebench.report.numbers import printed_spread
from csebench.report.numbers.others import Spread
from csebench.report.numbers.printed_gains import (
    NoiseVerdict,
    PrintedGain,
    PrintedGains,
    find_gain,
    printed_gains,
)
from csebench.report.pages.audit import audit_page
from csebench.report.pages.claims import claims_page
from csebench.report.words.printed_gains import support_text

# A seed moves a score by 0.80, so a difference of two runs has the standard error 0.80 √2 = 1.13.
SPREAD = Spread(std=0.80, n=10**6, method="simcse", source="made-up")
ROWS = {
    "Ours": ("simcse", ["70.00", None]),
    "far": ("ct", ["60.00", "60.00"]),
    "near": ("mirror_bert", ["69.90", "69.90"]),
    "between": ("scd", ["68.20", "68.20"]),
    "above": ("pcl", ["72.00", "72.00"]),
}
SIZES = [{"label": size, "task": "STS-B", "size": size} for size in ("100%", "1%")]


def claim(versus, quote="better", **settings):
    about = {"section": "1", "table": "1", "row": "Ours", "columns": ["100%"]}
    return about | {"quote": quote, "versus": [versus]} | settings


PAPER = {
    "name": "made_up",
    "tables": {"1": table(ROWS, SIZES), "2": table(ROWS, SIZES)},
    "claims": [
        claim("far"),
        claim("far", "better in another table", table="2"),
        claim("near", "a little better"),
        claim("between", "somewhat better"),
        claim("above", "best"),
        claim("near", "comparable", relation="comparable"),
        claim("far", "better with few sentences", row="near", columns=["1%"]),
    ],
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    made_up(tmp_path, monkeypatch, PAPER)
    (tmp_path / "evidence").mkdir()
    shutil.copy(ROOT / "evidence" / "methods.yaml", tmp_path / "evidence")
    for module, name in ((printed_spread, "seed_spread"), (gains_module, "spread")):
        monkeypatch.setattr(module, name, lambda *_: SPREAD)
    clear()
    yield tmp_path
    clear()


def gains_of_paper():
    return {gain.versus: gain for gain in printed_gains().of_paper("made_up")}


def test_a_comparison_that_two_tables_print_counts_once(project):
    (far,) = [gain for gain in printed_gains().of_paper("made_up") if gain.versus == "far"]
    assert far.quotes == {"better", "better in another table"}


def test_a_gain_stands_over_its_noise_at_every_deviation(project):
    verdicts = {versus: gain.verdict for versus, gain in gains_of_paper().items()}
    assert verdicts == {
        "far": NoiseVerdict.CLEAR,
        "near": NoiseVerdict.WITHIN,
        "between": NoiseVerdict.DEPENDS,
        "above": NoiseVerdict.REVERSED,
    }
    assert gains_of_paper()["far"].ratios[0] == pytest.approx(10 / (0.8 * 2**0.5))


@pytest.mark.parametrize(
    ("versus", "text"),
    [
        ("far", r"The paper's numbers support this \(p = .* points over seeds\)\."),
        ("near", r"The paper's numbers leave this open \(p = .* points over seeds\)\."),
        (
            "between",
            r"The paper's .* leave this open .*, and support it if it deviates by .* less\.",
        ),
        ("above", r"The paper claims the opposite\."),
    ],
)
def test_a_sentence_says_whether_print_supports_a_gain(versus, text, project):
    assert re.fullmatch(text, support_text(gains_of_paper()[versus]))


def gain_with(*p_values, gain=1.0, ratio=2.0):
    """Make a gain with these p-values, one for each deviation."""
    ratios = (ratio,) * len(p_values)
    return PrintedGain("m", "A", "B", "x", gain, 2, False, False, ratios, p_values)


@pytest.mark.parametrize(
    ("p_values", "gain", "verdict"),
    [
        ((0.049, 0.049), 1.0, NoiseVerdict.CLEAR),
        ((0.05, 0.049), 1.0, NoiseVerdict.DEPENDS),
        ((0.05, 0.05), 1.0, NoiseVerdict.WITHIN),
        ((0.001, 0.001), -1.0, NoiseVerdict.REVERSED),
        ((1.0, 1.0), 0.0, NoiseVerdict.WITHIN),
    ],
)
def test_a_gain_is_above_noise_below_5_percent(p_values, gain, verdict):
    assert gain_with(*p_values, gain=gain).verdict == verdict


def test_gains_are_counted_that_go_the_claims_way_below_5_percent():
    gains = [gain_with(0.049, 0.9), gain_with(0.05, 0.049), gain_with(0.001, 0.001, gain=-1.0)]
    found = PrintedGains(gains, without_error=0)
    assert [found.count_significant(index) for index in range(2)] == [1, 1]


def test_the_gain_that_is_smallest_for_its_noise_comes_first():
    gains = [gain_with(0.5, ratio=ratio) for ratio in (1.0, -3.0, 2.0)]
    ordered = PrintedGains(gains, without_error=0).of_paper("m")
    assert [gain.ratios[0] for gain in ordered] == [-3.0, 1.0, 2.0]


def test_a_gain_is_found_only_for_a_table_that_a_claim_is_about(project):
    assert find_gain("made_up", "table1", "Ours", "near", "100%") is not None
    assert find_gain("made_up", "table2", "Ours", "near", "100%") is None
    assert find_gain("made_up", "table2", "Ours", "far", "100%") is not None


def test_a_gain_without_known_noise_is_counted_and_not_drawn(project):
    assert "1%" not in {gain.column for gain in printed_gains().of_paper("made_up")}
    assert printed_gains().without_error >= 1


def test_the_picture_has_a_row_per_gain_and_its_finding_as_title(project, tmp_path):
    svg, numbers = draw_gains(tmp_path)
    gains = printed_gains()
    with numbers.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(gains.gains)
    counts = [gains.count_significant(index) for index in range(3)]
    assert f"{min(counts)} to {max(counts)} of {len(gains.gains)} printed gains" in svg.read_text()


@pytest.mark.parametrize("make_page", [claims_page, audit_page])
def test_every_count_of_a_page_links_to_a_heading(project, make_page):
    page = make_page("smoke").write("markdown")
    anchors = set()
    for heading in re.findall(r"^#+ (.+)$", page, re.M):
        anchors.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    links = re.findall(r"\]\(#(\S+?)\)", page)
    assert links
    assert set(links) <= anchors
