"""Words for power: the tables of `csebench power` and of the claims page, with their legends."""

from math import inf

from csebench.report.numbers.cells import GridView
from csebench.report.numbers.power import (
    ITEM_ERROR,
    POWER,
    SHARES,
    ClaimPower,
    ComparisonPower,
    claim_powers,
    table_power,
)
from csebench.report.words.claims import gain_name

POWER_COLUMNS = [
    "table",
    "row",
    "against",
    "column",
    "difference",
    "sd",
    "known from",
    "seeds",
    "detects",
    "seeds needed",
]
LEGEND = (
    "In points (0.01 of a score). detects: the smallest true difference that a two-sided test at"
    f" 0.05 detects with {100 * POWER:.0f} % power; no number: test items alone vary too much for"
    " any number of seeds."
)
CLAIMS_HEAD = ["paper", "about", "claim", "row", "against", "column", "printed", "sd"]
CLAIMS_HEAD += [f"seeds at {share * ITEM_ERROR:.2f}" for share in SHARES]
CLAIMS_LEGEND = (
    "How many seeds each row needs, so that a test detects the printed difference with"
    f" {100 * POWER:.0f} % power. Differences are in points, 0.01 of a score. sd: deviation over"
    " seeds of the difference between two runs. The difference also has an error over test items,"
    " which is not known for the papers' encoders: “seeds at” names the assumed one. no number:"
    " with this error, no number of seeds is enough."
)
UNKNOWN = "no seeds are published"


def table_rows(view: GridView, difference: float | None = None) -> list[list]:
    """Write what each comparison of a table can show, with a cell for each of POWER_COLUMNS."""
    return [power_row(power) for power in table_power(view, difference)]


def power_row(power: ComparisonPower) -> list:
    """Write the row of one comparison."""
    difference = "–"
    if power.difference is not None:
        difference = f"{power.difference:.2f}"
    comparison = [power.table, power.row, power.against, power.columns, difference]
    if power.design is None:
        return [*comparison, "–", UNKNOWN, power.seeds, "–", "–"]
    source = "these scores" if power.is_scored else "print, or others' seeds"
    sd = f"{power.design.seed_sd:.2f}"
    smallest = power.detects
    detects = "–" if smallest == inf else f"{smallest:.2f}"
    needs = "–"
    if power.needs is not None:
        needs = needed_seeds_text(power.needs)
    return [*comparison, sd, source, power.seeds, detects, needs]


def claim_rows() -> list[list]:
    """Write the seeds that would show each claim, with a cell for each of CLAIMS_HEAD."""
    return [claim_row(power) for power in claim_powers()]


def claim_row(power: ClaimPower) -> list:
    """Write the row of one claim."""
    claim = power.claim
    row = gain_name(claim, claim.row)
    versus = gain_name(claim, power.versus)
    stated = [power.paper, claim.place, claim.quote, row, versus, power.column]
    # a difference is positive if it agrees with the claim, also with one that says "below"
    difference = -power.difference if claim.lower else power.difference
    printed = f"{difference:+z.2f}"
    if power.seed_sd is None:
        return [*stated, printed, "–", *[UNKNOWN] * len(SHARES)]
    return [*stated, printed, f"{power.seed_sd:.2f}", *map(needed_seeds_text, power.needs)]


def needed_seeds_text(seeds: float) -> str:
    """Write a number of seeds: `13`, or `no number` if test items alone vary too much."""
    if seeds == inf:
        return "no number"
    return f"{seeds:.0f}"
