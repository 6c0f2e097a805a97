"""How the scores on a page were made: encoder, data, seeds, settings, commits, hardware;
deviations from papers."""

from collections import Counter

from csebench.base.project import REPOSITORY, ROOT, folders, snakemake
from csebench.base.shown import as_markdown
from csebench.plan.catalog.files import dataset
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    any_declaration,
    declaration,
    protocol,
)
from csebench.plan.grids import find_grid, substitute, substitute_sweep
from csebench.plan.recipe import corpus_of
from csebench.plan.schema.paper import Grid
from csebench.plan.targets import Page
from csebench.plan.tuning import searches_before, settings_text, tuned_settings
from csebench.report.numbers.cells import scored_text
from csebench.score.data_of_scores import SHOWN_DIGITS, EvaluationData, Scored
from csebench.score.store import stored_score

CHANGES = "+changes"  # after a commit: files had changes that were not committed


def scale_line(page: Page) -> str:
    """`Scale mini: BERT of 4 layers, 6,000 sentences a run (what this can say).`"""
    scale, doc = read_scale(page.scale), ROOT / "docs" / f"{page.scale}.md"
    place = f"{REPOSITORY}/blob/main/" if folders()[1:] else "../" * len(page.path.parent.parts)
    more = f" ([what this can say]({place}docs/{doc.name}))" if doc.exists() else ""
    return f"Scale {page.scale}: {scale.purpose.rstrip('.')}{more}."


def page_conditions(page: Page) -> list[list[str]]:
    """Encoder, data, seeds and settings behind all numbers of a page, as (label, text)."""
    scale, runs = read_scale(page.scale), page.runs().values()
    kinds = {declaration(spec.method).corpus: spec.method for spec in runs if spec.corpus}
    corpora = {
        f"Training {kind}": corpus_of(declaration(method), scale)
        for kind, method in sorted(kinds.items())
    }
    dev = dataset(scale.dev) if any(spec.dev_sha256 for spec in runs) else None
    before = {search for spec in runs for search in searches_before(spec.method)}
    trained = [{spec.method, *spec.components} for spec in runs]
    tuned = tuned_settings(page.scale).items()
    tuned = {
        n: s for n, s in tuned if n in before or any({*n.split("+")} <= parts for parts in trained)
    }
    chosen = "; ".join(f"{name}: {settings_text(settings)}" for name, settings in tuned.items())
    grids: list[Grid] = [
        grid for names in page.grids() if isinstance(grid := find_grid(*names), Grid)
    ]
    named = {column.size for grid in grids for column in grid.columns if column.task}
    sizes = ", ".join(f"{label} = {n:,}" for label, n in scale.sizes.items() if label in named)
    encoders = "; ".join(
        f"{role}: `{e.name}` @ {e.revision[:12]}" for role, e in sorted(scale.encoders.items())
    )
    rows = [
        ["Encoder", encoders],
        ["Checkpoints chosen on", dev and f"`{dev.path}`: {dev.note}"],
        *(
            [kind, f"`{c.path}` (sha256 {c.sha256[:12]}…); {c.note}"]
            for kind, c in corpora.items()
            if c
        ),
        ["Sentences of a column", sizes],  # `1% = 10,000, 10% = 100,000`
        ["Seeds", seeds_text(page)],
        ["Settings of the scale", changed_settings(page) or "none: the papers' own settings"],
        [
            "Precision, threads",
            f"{scale.precision}, {scale.threads}; evaluation {scale.evaluation.precision}",
        ],
        [
            "Chosen on STS-B dev",
            chosen and f"{chosen}; not where a row, variant or sweep sets the same parameter",
        ],
        ["Substituted at this scale", "; ".join(substitutions(page, grids))],
    ]
    return [[label, text] for label, text in rows if text]


def seeds_text(page: Page) -> str:
    """`1, 2, 3 (1%: 1)`: the seeds of a page, and the sizes, or the tables of several, with
    others."""
    scale, tables = read_scale(page.scale), ["/".join(grid) for grid in page.grids()]
    by_table = {table: seeds for table, seeds in scale.seeds_by_table.items() if table in tables}
    seeds = by_table.pop(tables[0], scale.seeds) if len(tables) == 1 else scale.seeds
    few = "; ".join(
        f"{name}: {', '.join(map(str, of))}"
        for name, of in (scale.seeds_by_size | by_table).items()
    )
    return ", ".join(map(str, seeds)) + (f" ({few})" if few else "")


def changed_settings(page: Page) -> str:
    """What a scale sets for all runs, for the kinds of methods that are used, and what some of
    these keep."""
    scale, methods = (
        read_scale(page.scale),
        [declaration(m) for m in sorted({s.method for s in page.runs().values()})],
    )
    texts = [f"{scale.steps_factor:g} of the steps"] if scale.steps_factor < 1 else []
    for kind, values in {"": scale.override, **scale.kinds}.items():
        if values and (not kind or any(method.kind == kind for method in methods)):
            settings = ", ".join(f"{key} {value}" for key, value in sorted(values.items()))
            texts.append(f"{kind}: {settings}" if kind else settings)
    named = {*scale.override, *(key for settings in scale.kinds.values() for key in settings)}
    kept = {method.name: [key for key in method.keeps if key in named] for method in methods}
    return "; ".join(
        texts + [f"{name} keeps its {' and '.join(keys)}" for name, keys in kept.items() if keys]
    )


def substitutions(page: Page, grids: list[Grid]) -> list[str]:
    """`evaluator transfer by transfer:fasttest`: what the page's scale replaces: evaluators,
    values, swept values."""
    scale, replaced = read_scale(page.scale), {}
    for spec in page.runs().values():
        keeps = declaration(spec.method).keeps
        used = {
            (k.rpartition(".")[2], v)
            for k, v in spec.settings.items()
            if k in keeps or k not in scale.override
        }
        for key, values in scale.substitutes.items():
            replaced |= {
                f"{key} {old}": (old, new) for old, new in values.items() if (key, new) in used
            }
    for table in grids:
        for evaluator in {
            table.column_evaluator(column) for column in table.columns if column.task
        }:
            replaced[f"evaluator {evaluator}"] = (evaluator, substitute(evaluator, scale))
        for sweep in [row.run.sweep for row in table.rows if row.run] + [
            column.sweep for column in table.columns
        ]:
            for key, value in sweep.items():
                replaced[f"{key} {value}"] = (value, substitute_sweep({key: value}, scale).get(key))
    return [
        f"{what} by {new}"
        for what, (old, new) in sorted(replaced.items())
        if new not in (old, None)
    ]


def provenance_lines(page: Page) -> str:
    """How the scores on a page were made, as a list: runs, protocols, commits, hardware."""
    wanted = page.scores()
    shown = [
        stored_score(spec, evaluator, page.scale) for (_, evaluator), spec in sorted(wanted.items())
    ]
    contents, outdated = [content for content, _ in shown if content], sum(old for _, old in shown)
    declared = {e: protocol(e).declaration for e in sorted({evaluator for _, evaluator in wanted})}
    lines = [
        (
            f"- {scored_text(len(contents), len(wanted), outdated)}; corpus subsets are drawn by"
            " the run's seed."
        ),
        *(
            f"- Evaluator {e} version {d.version}, protocol {d.protocol} ({d.source})."
            for e, d in declared.items()
        ),
        *data_lines(page),
        *unversioned_lines(contents),
    ]
    if contents:
        trainings = [content["training"]["provenance"] for content in contents]
        labels = {
            as_markdown(str(t["commit"])[:10]) + (CHANGES if t["dirty_diff_sha256"] else "")
            for t in trainings
        }
        commits = ", ".join(sorted(labels))  # `0123456789+changes`
        if CHANGES in commits:
            commits += (
                f" ({CHANGES}: the code had changes that were not committed; score files hold their"
                " sha256)"
            )
        versions = ", ".join(
            sorted({f"torch {content['provenance']['packages']['torch']}" for content in contents})
        )
        versions = as_markdown(versions)
        hardware = as_markdown(
            ", ".join(sorted({training["gpu"] or training["processor"] for training in trainings}))
        )
        lines.append(f"- Commit: {commits}; {versions}; hardware: {hardware}.")
    return "\n".join([*lines, f"- Regenerate: `{snakemake(page.path)}`."])


def data_lines(page: Page) -> list[str]:
    """The test data of evaluators whose scores on the page are of several, as lines of a list."""
    counts: dict[str, Counter[EvaluationData]] = {}
    for (_, evaluator), spec in sorted(page.scores().items()):
        content, is_outdated = stored_score(spec, evaluator, page.scale)
        if content is not None:
            counts.setdefault(evaluator, Counter())[Scored(content, is_outdated).data] += 1
    lines = []
    for evaluator, scores in counts.items():
        first = scores.most_common(1)[0][0]
        if all(data.is_same_as(first) for data in scores):
            continue
        hashes = [
            f"data {data.files[:SHOWN_DIGITS] or 'of unknown hash'}, items"
            f" {data.items[:SHOWN_DIGITS] or 'unknown'} ({count} scores)"
            for data, count in scores.most_common()
        ]
        lines.append(f"- **Test data of {evaluator} differs**: {'; '.join(hashes)}.")
    return lines


def deviation_lines(page: Page) -> list[str]:
    """Where the methods, components and evaluators of a page deviate from papers, as lines of a
    list."""
    specs, evaluators = (
        page.scores().values(),
        {protocol(name).declaration.name for _, name in page.scores()},
    )
    declared = [any_declaration(name, METHODS) for name in sorted({spec.method for spec in specs})]
    declared += [
        any_declaration(name, COMPONENTS)
        for name in sorted({name for s in specs for name in s.components})
    ]
    declared += [any_declaration(name, EVALUATORS) for name in sorted(evaluators)]
    return [
        f"- `{declaration.name}`: {text}"
        for declaration in declared
        for text in declaration.deviations
    ]


def unversioned_lines(contents: list[dict]) -> list[str]:
    """Which scores were made with code that had changed without a new version, as lines of a
    list."""
    scores: Counter[str] = Counter()
    for content in contents:
        provenances = (content["provenance"], content["training"]["provenance"])
        scores.update(
            {unit for provenance in provenances for unit in provenance.get("unversioned_code", [])}
        )
    lines = []
    for unit, count in sorted(scores.items()):
        changed = f"Code of {as_markdown(unit)} changed without a new version"
        made = (
            f"{count} of {len(contents)} scores were made with it, and may differ from those of the"
            " version."
        )
        lines.append(f"- **{changed}**: {made}")
    return lines
