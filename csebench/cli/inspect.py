"""The verbs that list: methods, evaluators, papers, claims, findings, and the power of comparisons.

They read declarations, papers and scores, and change nothing.
"""

from collections.abc import Iterable
from itertools import chain, groupby
from operator import itemgetter

from csebench.base.terminal import json_text, print_table, print_text, summary_line
from csebench.cli.options import parse_targets
from csebench.plan import tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog import registry
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    adapter_names,
    declaration,
)
from csebench.plan.recipe import recipe_defect
from csebench.plan.schema.declarations import Declaration
from csebench.plan.targets import Page, grid_defect, grid_names, target_name

BROKEN = "BROKEN"  # an invalid file; the next column has the reason
PAPER_GROUP = "The papers' methods"
BASELINE_GROUP = "Baselines"
CONTROL_GROUP = "Controls"
COMPONENT_GROUP = "Components"
BROKEN_GROUP = "Broken files"
GROUPS = [PAPER_GROUP, BASELINE_GROUP, CONTROL_GROUP, COMPONENT_GROUP, BROKEN_GROUP]
TABLE_COLUMNS = ["name", "kind", "paper", "search"]
METHOD_COLUMNS = ["group", *TABLE_COLUMNS, "variants", "encoders", "needs", "trains"]
LISTED_COLUMNS = [
    "paper",
    "place",
    "claim",
    "printed numbers",
    "printed gain",
    "if seeds vary less",
    "our runs",
]
MORE = "`csebench show NAME` describes one of them fully; --json has all fields of all of them."


def list_methods(args):
    """Print methods and components by group. JSON has all columns, the tables the first ones."""
    rows = method_rows()
    listed = rows[: args.limit]
    if args.json:
        return print_table(METHOD_COLUMNS, listed, as_json=True)
    for group, group_rows in groupby(listed, key=itemgetter(0)):
        print_text(f"{group}:")
        print_table(METHOD_COLUMNS, group_rows, shown=TABLE_COLUMNS)
        print()
    print_text(f"{summary_line(len(listed), len(rows), 'name')}\n{MORE}")


def method_rows() -> list[list]:
    """Lay out all methods and components under METHOD_COLUMNS, sorted by group."""
    rows = []
    for name in adapter_names(METHODS):
        defect = recipe_defect(name, [])
        if defect is not None:
            rows.append([BROKEN_GROUP, name, BROKEN, defect])
            continue
        declared = declaration(name, METHODS)
        rows.append([method_group(declared), *method_row(declared, tuning.search_space(name))])
    for name in adapter_names(COMPONENTS):
        defect = registry.adapter_defect(name, COMPONENTS)
        if defect is not None:
            rows.append([BROKEN_GROUP, name, BROKEN, defect])
            continue
        declared = declaration(name, COMPONENTS)
        rows.append([COMPONENT_GROUP, *method_row(declared, declared.search)])
    return sorted(rows, key=lambda row: GROUPS.index(row[0]))


def method_group(declared: Declaration) -> str:
    """Name the group of a method.

    A method with the name of a file of papers/, with or without labels (msse_sup), is the paper's.
    """
    if declared.kind == "control":
        return CONTROL_GROUP
    if declared.name.removesuffix("_sup") in catalog.paper_names():
        return PAPER_GROUP
    return BASELINE_GROUP


def method_row(declared: Declaration, search: Iterable[str]) -> list:
    """Lay out a method or component under METHOD_COLUMNS, without its group.

    Args:
        search: parameters that `csebench tune` tries.
    """
    match declared.kind:
        case "untrained" | "fitted":
            encoders = "any"
        case "released":
            encoders = "sentence-transformers"
        case "control":
            encoders = "-"
        case _:
            encoders = "BERT, RoBERTa"
    return [
        declared.name,
        declared.kind,
        declared.paper,
        ", ".join(search),
        ", ".join(declared.variant_params),
        encoders,
        declared.needs,
        declared.trains,
    ]


def list_evaluators(args):
    """Print evaluators. JSON has all columns, the table a few."""
    rows = []
    for name in adapter_names(EVALUATORS):
        defect = registry.adapter_defect(name, EVALUATORS)
        if defect is not None:
            # the table for people has no version and no protocol
            rows.append([name, None, None, BROKEN, defect])
            continue
        declared = registry.evaluator_declaration(name)
        label = declared.name
        if declared.takes:
            label += f":{declared.takes.upper()}"
        variants = ", ".join(declared.variants)
        tasks = ", ".join(declared.tasks)
        rows.append([label, declared.version, declared.protocol, variants, tasks, declared.needs])
    columns = ["name", "version", "protocol", "variants", "tasks", "needs"]
    print_table(columns, rows, args.json, ["name", "variants", "tasks", "needs"])
    if not args.json:
        print_text(f"\n{MORE}")


def list_papers(args):
    """Print papers, then the files, tables and figures that are broken."""
    rows = []
    defects: dict[str, str | None] = dict(catalog.broken_papers())
    for name in catalog.paper_names():
        paper = catalog.paper(name)
        tables = ", ".join(paper.tables)
        figures = ", ".join(paper.figures)
        rows.append([name, paper.reference, tables, figures, len(paper.claims_by_quote())])
        for grid in grid_names(name):
            defects[target_name(name, grid)] = grid_defect(name, grid, catalog.DEFAULT_SCALE)
    for name, defect in defects.items():
        if defect:
            rows.append([name, f"{BROKEN}: {defect}"])
    print_table(["name", "paper", "tables", "figures", "claims"], rows, args.json)


def show_power(args):
    """Print how many seeds comparisons need. For `claims`, print whether each can be tested."""
    from csebench.report.words import power

    if args.target == ["claims"]:
        columns = power.CLAIMS_HEAD
        legend = f"{power.CLAIMS_LEGEND} {power.SHOWN_COMPARISON}"
        hidden = ("paper", "row", "column", "deviation")
        more = "--json has more columns, and claims without published seeds."
        tables = power_of_claims(with_unknown=args.json)
    else:
        columns = power.POWER_COLUMNS
        legend = power.LEGEND
        hidden = ("table", "known from")
        more = "--json has more columns."
        pages = parse_targets(args.target, args.scale)
        tables = power_of_tables(pages, args.scale, args.difference)
    rows = list(chain.from_iterable(tables.values()))
    if args.json:
        return print_table(columns, rows[: args.limit], as_json=True)
    print_text(f"Scale {args.scale}. {legend} {more}")
    visible_columns = [column for column in columns if column not in hidden]
    listed = 0
    for table, table_rows in tables.items():
        if args.limit is not None:
            table_rows = table_rows[: args.limit - listed]
        listed += len(table_rows)
        if table_rows:
            print(f"\n{table}")
            print_table(columns, table_rows, shown=visible_columns)
    print_text(f"\n{summary_line(listed, len(rows), 'row')}")


def power_of_claims(with_unknown: bool) -> dict[str, list]:
    """List by paper how many seeds it takes to test each claim.

    Args:
        with_unknown: also list claims for which no seeds are published.
    """
    from csebench.report.words import power

    rows_by_paper: dict[str, list] = {}
    for row in power.claim_rows(with_unknown):
        rows_by_paper.setdefault(row[0], []).append(row)
    return rows_by_paper


def power_of_tables(pages: list[Page], scale: str, difference: float | None) -> dict[str, list]:
    """List by table or figure the seeds that its comparisons need.

    Args:
        difference: between two rows, in points. None means the printed one.
    """
    from csebench.report.numbers.cells import grid_view
    from csebench.report.words import power

    grids: dict[tuple[str, str], None] = {}  # a dict keeps each grid once, in order
    for page in pages:
        grids |= dict.fromkeys(page.grids())
    rows_by_table = {}
    for paper, name in grids:
        view = grid_view(paper, name, scale)
        rows_by_table[f"{paper}/{name}"] = power.table_rows(view, difference)
    return rows_by_table


def list_claims(args):
    """Print the claims about tables, with the verdicts on printed numbers and on our runs."""
    from csebench.report.csv_tables import claim_record
    from csebench.report.numbers.claims import judge_all

    requested = set()
    for page in parse_targets(args.target, args.scale):
        requested |= set(page.grids())
    claims = []
    for judged in judge_all(args.scale, catalog.paper_names()):
        if any((judged.paper, place) in requested for place in judged.places):
            claims.append(claim_record(judged))
    listed = claims[: args.limit]
    if args.json:
        return print(json_text(listed))
    print_text(f"Scale {args.scale}. `csebench show 'words of a claim'` has the numbers behind it.")
    rows = []
    for claim in listed:
        rows.append([claim[column] for column in LISTED_COLUMNS])
    print_table(LISTED_COLUMNS, rows)
    ours = []
    for claim in claims:
        has_one_verdict = "," not in claim["our runs"]
        ours.append(claim["our runs"] if has_one_verdict else "with several verdicts")
    verdicts = {
        "Printed numbers": [claim["printed numbers"] for claim in claims],
        "Our runs": ours,
    }
    return print_text(f"\n{summary_line(len(listed), len(claims), 'claim', verdicts)}")


def list_findings(args):
    """Print the inconsistencies in papers."""
    from csebench.report.numbers.audit import findings
    from csebench.report.words.audit import finding_text, in_reading_order, place_label

    requested = set()
    for page in parse_targets(args.target, args.scale):
        requested |= {paper for paper, _ in page.grids()}
    chosen = findings()
    if "all" not in args.target:
        chosen = [finding for finding in chosen if requested & {*finding.papers}]
    rows = []
    for finding in in_reading_order(chosen):
        places = "; ".join(map(place_label, finding.places))
        rows.append([finding.severity, finding.kind, places, finding_text(finding)])
    columns = ["severity", "kind", "place", "finding"]
    listed = rows[: args.limit]
    print_table(columns, listed, args.json, ["severity", "place", "finding"])
    if not args.json:
        severities = {"Severity": [finding.severity for finding in chosen]}
        print_text(f"\n{summary_line(len(listed), len(rows), 'finding', severities)}")
