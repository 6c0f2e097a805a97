"""How the scores on a page were made: encoder, data, seeds, settings, commits and hardware.

The functions word parts for the end of a page. They only read scales, specs and score files.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

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
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.paper import Grid
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import Page
from csebench.plan.tuning import searches_before, settings_text, tuned_settings
from csebench.report.words.cells import scored_text
from csebench.score.data_of_scores import SHOWN_DIGITS, EvaluationData, Scored
from csebench.score.score_file import unversioned_code_of
from csebench.score.store import stored_score

CHANGES = "+changes"  # follows a commit if the code had changes that were not committed


def scale_line(page: Page) -> str:
    """Name the scale: `Scale mini: BERT of 4 layers, 6,000 sentences a run (what this can say).`"""
    line = f"Scale {page.scale}: {read_scale(page.scale).purpose.rstrip('.')}"
    doc = ROOT / "docs" / f"{page.scale}.md"
    if doc.exists():
        root = "../" * len(page.path.parent.parts)
        if len(folders()) > 1:  # the page is written to a folder of the user, which has no docs/
            root = f"{REPOSITORY}/blob/main/"
        line += f" ([what this can say]({root}docs/{doc.name}))"
    return f"{line}."


# ---------------------------------------------------------------- conditions of all runs


def page_conditions(page: Page) -> list[list[str]]:
    """List encoder, data, seeds and settings of all runs of a page, as [label, text]."""
    scale = read_scale(page.scale)
    grids = grids_of_scores(page)
    substituted = "; ".join(substitutions(page, grids))
    precision = f"{scale.precision}, {scale.threads}; evaluation {scale.evaluation.precision}"
    rows = [
        ["Encoder", encoders_text(scale)],
        ["Checkpoints chosen on", dev_text(page)],
        *corpus_rows(page),
        ["Corpus size by column", sizes_text(scale, grids)],
        ["Seeds", seeds_text(page)],
        ["Settings of the scale", changed_settings(page) or "none: the papers' own settings"],
        ["Precision, threads", precision],
        ["Chosen on STS-B dev", tuned_text(page)],
        ["Substituted at this scale", substituted],
    ]
    return [[label, text] for label, text in rows if text]


def grids_of_scores(page: Page) -> list[Grid]:
    """List the tables and figures of a page, without tables of settings."""
    grids = [find_grid(paper, name) for paper, name in page.grids()]
    return [grid for grid in grids if isinstance(grid, Grid)]


def encoders_text(scale: Scale) -> str:
    """Name the encoder of each role, with its revision.

    ``for bert-base: `google-bert/bert-base-uncased` @ 86b5e0934494``
    """
    texts = []
    for role, encoder in sorted(scale.encoders.items()):
        texts.append(f"for {role}: `{encoder.name}` @ {encoder.revision[:12]}")
    return "; ".join(texts)


def dev_text(page: Page) -> str:
    """Name the data on which runs chose their checkpoint; empty if no run chose one."""
    if not any(spec.dev_sha256 for spec in page.runs().values()):
        return ""
    dev = dataset(read_scale(page.scale).dev)
    return f"`{dev.path}`: {dev.note}"


def corpus_rows(page: Page) -> list[list[str]]:
    """List the training data of a page, a [label, text] for each kind."""
    method_of_kind = {}
    for spec in page.runs().values():
        if spec.corpus:
            method = declaration(spec.method)
            method_of_kind[method.corpus] = method
    rows = []
    for kind, method in sorted(method_of_kind.items()):
        corpus = corpus_of(method, read_scale(page.scale))
        if corpus:
            text = f"`{corpus.path}` (sha256 {corpus.sha256[:12]}…); {corpus.note}"
            rows.append([f"Training {kind}", text])
    return rows


def sizes_text(scale: Scale, grids: Sequence[Grid]) -> str:
    """Word the sizes that columns name: `1% = 10,000, 10% = 100,000`."""
    named = set()
    for grid in grids:
        named.update(column.size for column in grid.columns if column.task)
    sizes = [f"{label} = {size:,}" for label, size in scale.sizes.items() if label in named]
    return ", ".join(sizes)


def seeds_text(page: Page) -> str:
    """List the seeds of a page, then sizes or tables with other seeds: `1, 2, 3 (1%: 1)`."""
    scale = read_scale(page.scale)
    tables = [f"{paper}/{name}" for paper, name in page.grids()]
    by_table = {table: seeds for table, seeds in scale.seeds_by_table.items() if table in tables}
    seeds = scale.seeds
    if len(tables) == 1:  # the seeds of the only table are no exception
        seeds = by_table.pop(tables[0], scale.seeds)
    exceptions = []
    for name, other_seeds in (scale.seeds_by_size | by_table).items():
        exceptions.append(f"{name}: {', '.join(map(str, other_seeds))}")
    text = ", ".join(map(str, seeds))
    if exceptions:
        text += f" ({'; '.join(exceptions)})"
    return text


def changed_settings(page: Page) -> str:
    """Word the settings of a scale for all runs and for kinds of methods, with exceptions.

    The exceptions are settings that a method keeps, although the scale changes them for others.
    """
    scale = read_scale(page.scale)
    names = sorted({spec.method for spec in page.runs().values()})
    methods = [declaration(name) for name in names]
    kinds = {method.kind for method in methods}
    texts = []
    if scale.steps_factor < 1:
        texts.append(f"{scale.steps_factor:g} of the steps")
    if scale.override:
        texts.append(sorted_settings_text(scale.override))
    for kind, settings in scale.kinds.items():
        if settings and kind in kinds:
            texts.append(f"{kind}: {sorted_settings_text(settings)}")

    named = set(scale.override)
    for settings in scale.kinds.values():
        named.update(settings)
    for method in methods:
        kept = [key for key in method.keeps if key in named]
        if kept:
            texts.append(f"{method.name} keeps its {' and '.join(kept)}")
    return "; ".join(texts)


def sorted_settings_text(settings: Mapping[str, Any]) -> str:
    return settings_text(dict(sorted(settings.items())))


def tuned_text(page: Page) -> str:
    """Word the settings that searches chose for runs of a page; empty if no run is tuned."""
    specs = page.runs().values()
    texts = []
    for search, settings in tuned_settings(page.scale).items():
        if any(is_tuned_by(spec, search) for spec in specs):
            texts.append(f"{search}: {settings_text(settings)}")
    if not texts:
        return ""
    return f"{'; '.join(texts)}. A row that states its own value keeps it."


def is_tuned_by(spec: Spec, search: str) -> bool:
    """Whether a run has settings that a search chose, directly or as the start of another one."""
    if search in searches_before(spec.method):
        return True
    searched_units = set(search.split("+"))  # a method, and components that were added to it
    return searched_units <= {spec.method, *spec.components}


# ---------------------------------------------------------------- substitutions


class Replacement(NamedTuple):
    """An evaluator or value of a paper, and what a scale uses instead."""

    old: Any
    new: Any  # None if the scale leaves it out


Replacements = dict[tuple[str, str], Replacement]  # by parameter (or `evaluator`) and old value


def substitutions(page: Page, grids: Sequence[Grid]) -> list[str]:
    """List what the page's scale replaces: `evaluator transfer:fasttest instead of transfer`.

    A scale can replace settings of runs, evaluators and swept values.
    """
    scale = read_scale(page.scale)
    replacements = setting_replacements(page, scale)
    for grid in grids:
        replacements |= evaluator_replacements(grid, scale)
        replacements |= sweep_replacements(grid, scale)
    texts = []
    for (key, _), replacement in sorted(replacements.items()):
        if replacement.new is not None and replacement.new != replacement.old:
            new = replacement.new
            if new == "self":  # as RTD and the methods with a teacher name it
                new = "the run's own encoder"
            texts.append(f"{key} {new} instead of {replacement.old}")
    return texts


def setting_replacements(page: Page, scale: Scale) -> Replacements:
    """Find settings that runs of a page use in place of others."""
    replacements = {}
    for spec in page.runs().values():
        used = settings_not_overridden(spec, scale)
        for key, values in scale.substitutes.items():
            for old, new in values.items():
                if (key, new) in used:
                    replacements[key, str(old)] = Replacement(old, new)
    return replacements


def settings_not_overridden(spec: Spec, scale: Scale) -> set[tuple[str, Any]]:
    """Collect the settings of a run that its scale does not set for all runs.

    A setting of a component is listed without the component's name.
    """
    keeps = declaration(spec.method).keeps
    settings = set()
    for key, value in spec.settings.items():
        if key in keeps or key not in scale.override:
            settings.add((key.rpartition(".")[2], value))
    return settings


def evaluator_replacements(grid: Grid, scale: Scale) -> Replacements:
    """Find the evaluators of a table, with what the scale uses for them."""
    replacements = {}
    for column in grid.columns:
        if column.task:
            evaluator = grid.column_evaluator(column)
            new = substitute(evaluator, scale)
            replacements["evaluator", evaluator] = Replacement(evaluator, new)
    return replacements


def sweep_replacements(grid: Grid, scale: Scale) -> Replacements:
    """Find the swept values of a table, with what the scale uses for them."""
    sweeps = [row.run.sweep for row in grid.rows if row.run]
    sweeps += [column.sweep for column in grid.columns]
    replacements = {}
    for sweep in sweeps:
        for key, value in sweep.items():
            new = substitute_sweep({key: value}, scale).get(key)
            replacements[key, str(value)] = Replacement(value, new)
    return replacements


# ---------------------------------------------------------------- how scores were made


def provenance_lines(page: Page) -> str:
    """List how the scores on a page were made: runs, protocols, data, commits, hardware."""
    scores = page.scores()
    contents = []
    outdated = 0
    for (_, evaluator), spec in sorted(scores.items()):
        content, is_outdated = stored_score(spec, evaluator, page.scale)
        outdated += is_outdated
        if content is not None:
            contents.append(content)

    scored = scored_text(len(contents), len(scores), outdated)
    lines = [f"- {scored}; corpus subsets are drawn by the run's seed."]
    for evaluator in sorted({evaluator for _, evaluator in scores}):
        lines.append(protocol_line(evaluator))
    lines += data_lines(page)
    lines += unversioned_lines(contents)
    if contents:
        lines.append(machine_line(contents))
    lines.append(f"- Regenerate: `{snakemake(page.path)}`.")
    return "\n".join(lines)


def protocol_line(evaluator: str) -> str:
    declared = protocol(evaluator).declaration
    version = f"Evaluator {evaluator} version {declared.version}"
    return f"- {version}, protocol {declared.protocol} ({declared.source})."


def machine_line(contents: Sequence[dict]) -> str:
    """Name commits, versions and hardware of scores and of their trainings."""
    trainings = [content["training"]["provenance"] for content in contents]
    commits = distinct_text(commit_label(training) for training in trainings)
    if CHANGES in commits:
        commits += (
            f" ({CHANGES}: the code had changes that were not committed; score files hold their"
            " sha256)"
        )
    packages = [content["provenance"]["packages"] for content in contents]
    versions = as_markdown(distinct_text(f"torch {installed['torch']}" for installed in packages))
    hardware = as_markdown(distinct_text(made["gpu"] or made["processor"] for made in trainings))
    return f"- Commit: {commits}; {versions}; hardware: {hardware}."


def distinct_text(texts: Iterable[str]) -> str:
    """Join texts, sorted and without repetitions."""
    return ", ".join(sorted({*texts}))


def commit_label(training: dict) -> str:
    """Name the commit: `0123456789`, or `0123456789+changes` if the code had changes."""
    label = as_markdown(str(training["commit"])[:10])
    if training["dirty_diff_sha256"]:
        label += CHANGES
    return label


def data_lines(page: Page) -> list[str]:
    """List test data for the evaluators whose scores on the page are on different data."""
    counts: dict[str, Counter[EvaluationData]] = {}
    for (_, evaluator), spec in sorted(page.scores().items()):
        content, is_outdated = stored_score(spec, evaluator, page.scale)
        if content is not None:
            data = Scored(content, is_outdated).data
            counts.setdefault(evaluator, Counter())[data] += 1
    lines = []
    for evaluator, scores in counts.items():
        most_used, _ = scores.most_common(1)[0]
        if all(data.is_same_as(most_used) for data in scores):
            continue
        hashes = [data_text(data, count) for data, count in scores.most_common()]
        lines.append(f"- **Test data of {evaluator} differs**: {'; '.join(hashes)}.")
    return lines


def data_text(data: EvaluationData, count: int) -> str:
    """Name test data by its hashes: `data 0123456789ab, items unknown (8 scores)`."""
    files = data.files[:SHOWN_DIGITS] or "of unknown hash"
    items = data.items[:SHOWN_DIGITS] or "unknown"
    return f"data {files}, items {items} ({count} scores)"


def deviation_lines(page: Page) -> list[str]:
    """List where the methods, components and evaluators of a page deviate from papers."""
    specs = page.scores().values()
    methods = {spec.method for spec in specs}
    components = set()
    for spec in specs:
        components.update(spec.components)
    evaluators = {protocol(name).declaration.name for _, name in page.scores()}

    lines = []
    for folder, names in ((METHODS, methods), (COMPONENTS, components), (EVALUATORS, evaluators)):
        for name in sorted(names):
            declared = any_declaration(name, folder)
            lines += [f"- `{declared.name}`: {text}" for text in declared.deviations]
    return lines


def unversioned_lines(contents: Sequence[dict]) -> list[str]:
    """Warn of scores that were made with changed code under an old version."""
    counts: Counter[str] = Counter()
    for content in contents:
        counts.update({*chain.from_iterable(unversioned_code_of(content).values())})
    lines = []
    for unit, count in sorted(counts.items()):
        lines.append(
            f"- **Code of {as_markdown(unit)} changed without a new version**: {count} of"
            f" {len(contents)} scores were made with it, and may differ from those of the version."
        )
    return lines
