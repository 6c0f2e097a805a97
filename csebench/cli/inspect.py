"""The verbs that list and forecast, and change nothing."""

from itertools import chain

from csebench.base.terminal import json_text, print_table, print_text
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
from csebench.plan.targets import grid_defect, grid_names, target_name

BROKEN = "BROKEN"  # a file that is not valid; the reason stands beside it
MORE = "\n`csebench show NAME` has everything about one; --json has all fields of all."


def list_methods(args):
    """Methods and components: all fields as JSON, the first for people."""
    rows = []
    for folder in (METHODS, COMPONENTS):
        for name in adapter_names(folder):
            if broken := (
                recipe_defect(name, [])
                if folder == METHODS
                else registry.adapter_defect(name, folder)
            ):
                rows.append([name, BROKEN, broken])
                continue
            d = declaration(name, folder)
            encoders = {"untrained": "any", "fitted": "any", "control": "-"}.get(
                d.kind, "BERT, RoBERTa"
            )
            search = ", ".join(tuning.search_space(name) if folder == METHODS else d.search)
            rows.append(
                [
                    name,
                    d.kind,
                    d.paper,
                    search,
                    ", ".join(d.variant_params),
                    encoders,
                    d.needs,
                    d.trains,
                ]
            )
    columns = ["name", "kind", "paper", "search", "variants", "encoders", "needs", "trains"]
    print_table(columns, rows, args.json, columns[:4])
    if not args.json:
        print_text(MORE)


def list_evaluators(args):
    """All fields as JSON, some for people."""
    rows = []
    for name in adapter_names(EVALUATORS):
        if broken := registry.adapter_defect(name, EVALUATORS):
            rows.append([name, None, None, BROKEN, broken])
            continue
        d = registry.evaluator_declaration(name)
        name = f"{d.name}:{d.takes.upper()}" if d.takes else d.name
        rows.append(
            [name, d.version, d.protocol, ", ".join(d.variants), ", ".join(d.tasks), d.needs]
        )
    columns = ["name", "version", "protocol", "variants", "tasks", "needs"]
    print_table(columns, rows, args.json, ["name", *columns[3:]])
    if not args.json:
        print_text(MORE)


def list_papers(args):
    rows, broken = [], dict(catalog.broken_papers())
    for name in catalog.paper_names():
        paper = catalog.paper(name)
        parts = [", ".join(paper.tables), ", ".join(paper.figures), len(paper.claims_by_quote())]
        rows.append([name, paper.reference, *parts])
        broken |= {
            target_name(name, grid): grid_defect(name, grid, catalog.DEFAULT_SCALE)
            for grid in grid_names(name)
        }
    rows += [[name, f"{BROKEN}: {why}"] for name, why in broken.items() if why]
    print_table(["name", "paper", "tables", "figures", "claims"], rows, args.json)


def show_power(args):
    from csebench.report.numbers.cells import grid_view
    from csebench.report.words import power

    if args.target == ["claims"]:
        head, legend, hidden, tables = (
            power.CLAIMS_HEAD,
            power.CLAIMS_LEGEND,
            ("paper", "row", "column", "sd"),
            {},
        )
        for row in power.claim_rows():
            if args.json or power.UNKNOWN not in row:
                tables.setdefault(row[0], []).append(row)
    else:
        head, legend, hidden = power.POWER_COLUMNS, power.LEGEND, ("table", "known from")
        grids = dict.fromkeys(grid for page in parse_targets(args) for grid in page.grids())
        tables = {
            "/".join(grid): power.table_rows(grid_view(*grid, args.scale), args.difference)
            for grid in grids
        }
    if args.json:
        return print_table(head, chain(*tables.values()), as_json=True)
    print_text(
        f"Scale {args.scale}. {legend} --json has more columns, and claims without published seeds."
    )
    for table, rows in tables.items():
        if rows:
            print(f"\n{table}")
            print_table(head, rows, shown=[name for name in head if name not in hidden])


def list_claims(args):
    from csebench.report.csv_tables import claim_record
    from csebench.report.numbers.claims import judge_all

    wanted = {grid for page in parse_targets(args) for grid in page.grids()}
    judged = [
        s
        for s in judge_all(args.scale, catalog.paper_names())
        if wanted & {(s.paper, p) for p in s.places}
    ]
    stated = [claim_record(s) for s in judged]
    if args.json:
        return print(json_text(stated))
    print_text(f"Scale {args.scale}. `csebench show 'words of a claim'` has the numbers behind it.")
    columns = ["paper", "place", "claim", "printed numbers", "our runs"]
    return print_table(columns, [[of[column] for column in columns] for of in stated])


def list_findings(args):
    from csebench.report.numbers.audit import findings, place_label

    papers = {paper for page in parse_targets(args) for paper, _ in page.grids()}
    about = [f for f in findings() if "all" in args.target or papers & {*f.papers}]
    rows = [[f.severity, f.kind, "; ".join(map(place_label, f.places)), f.text] for f in about]
    print_table(
        ["severity", "kind", "place", "finding"], rows, args.json, ["severity", "place", "finding"]
    )
