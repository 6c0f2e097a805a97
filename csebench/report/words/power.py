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
from csebench.report.words.claims import gain_name, versus_name

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
    f" 0.05 detects with {100 * POWER:.0f} % power; none: test items alone vary too much for any"
    " number of seeds."
)
SEEDS_HEAD = [f"seeds at {share * ITEM_ERROR:.2f}" for share in SHARES]
CLAIMS_HEAD = [
    "paper",
    "about",
    "claim",
    "row",
    "against",
    "column",
    "printed",
    "deviation",
    *SEEDS_HEAD,
]
CLAIMS_LEGEND = (
    "“seeds at …” says with how many seeds each row has to be run, so that a test on only these new"
    f" runs detects the printed difference with {100 * POWER:.0f} % power. The number after “seeds"
    " at” is the standard error of the difference over test items, in points. It is assumed,"
    " because the real one is not known; more seeds do not reduce it. “none”: no number of seeds is"
    " enough. “–”: others published no seeds of such scores. “deviation” is that of the difference"
    " between single runs. It follows from those of the rows: two rows with 0.84 give 1.19. A row's"
    " deviation is the one that its paper prints, or else that of others' runs. Differences are in"
    " points, and negative where the sentence says that the row is lower; a point is 0.01 of a"
    " score, so that 0.0312 in print is 3.12."
)
SHOWN_COMPARISON = (
    "Each sentence, or each of its parts, has one line. It shows the comparison that needs most"
    f" “seeds at {SHARES[0] * ITEM_ERROR:.2f}”. For claims of “up to”, it shows the largest"
    " difference. If the deviation is not known for some comparisons, it shows the smallest"
    " difference among these, with “–” for the seeds. Left out are comparisons that go the other"
    " way, claims that rows are alike, claims about deviations, and claims without printed numbers."
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


def claim_rows(with_unknown: bool) -> list[list]:
    """Write the seeds that would show each claim, with a cell for each of CLAIMS_HEAD.

    Two claims of a sentence may rest on the same comparison. It has one row.

    Args:
        with_unknown: also list claims for which no seeds are published.
    """
    powers = claim_powers()
    if not with_unknown:
        powers = [power for power in powers if power.seed_sd is not None]
    rows = []
    for power in powers:
        row = claim_row(power)
        if row not in rows:
            rows.append(row)
    return rows


def claim_row(power: ClaimPower) -> list:
    """Write the row of one claim."""
    claim = power.claim
    row = gain_name(claim, claim.row)
    versus = versus_name(claim, power.versus)
    if claim.gains_over:
        versus = gain_name(claim, power.versus)
    column = "mean of the columns" if claim.on_average else power.column
    stated = [power.paper, claim.place, claim.quote, row, versus, column]
    # a difference is positive if it agrees with the claim, also with one that says "below"
    difference = -power.difference if claim.lower else power.difference
    printed = f"{difference:+z.2f}"
    if power.seed_sd is None:
        return [*stated, printed, *["–"] * (1 + len(SHARES))]
    return [*stated, printed, f"{power.seed_sd:.2f}", *map(needed_seeds_text, power.needs)]


def needed_seeds_text(seeds: float) -> str:
    """Write a number of seeds: `13`, or `none` if test items alone vary too much."""
    if seeds == inf:
        return "none"
    return f"{seeds:.0f}"
