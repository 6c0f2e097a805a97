"""The verbs that fetch data, train and score.

Each turns the options of a command into calls of other packages, and prints what they return. Code
that needs torch is imported only after bad input is refused.
"""

import sys
from collections import Counter
from pathlib import Path

from csebench.base.errors import BadInput, RunFailed, problem_of, unknown
from csebench.base.extras import check_tracker
from csebench.base.files import read_json
from csebench.base.gpus import acquire_gpus
from csebench.base.outputs import check_output, is_standard_output, is_stream, is_taken, not_ours
from csebench.base.runs import check_run_folder
from csebench.base.shown import visible
from csebench.base.terminal import counted, json_text, print_table, print_text
from csebench.cli import train_options
from csebench.cli.options import parse_targets
from csebench.data.corpus import Corpus, read_corpus
from csebench.plan.catalog.data_sources import sources
from csebench.plan.catalog.files import FETCHED
from csebench.plan.catalog.registry import declaration, distinct_names, evaluator_declaration
from csebench.plan.recipe import back_translation_facts
from csebench.plan.schema.declarations import FRACTION, Evaluation
from csebench.plan.schema.spec import Spec
from csebench.study import attempt, attempt_results, search
from csebench.study import work as single_run
from csebench.train.inputs import read_corpus_of, read_inputs


def check(args):
    """Print which models and data are missing, their sizes, and where they come from."""
    from csebench.data import preflight

    pages = parse_targets(args.target, args.scale)
    states = preflight.check_needs(pages)
    if args.json:
        rows = [[s.need.kind, s.need.name, s.state, s.size, s.why] for s in states]
        print_table(["kind", "name", "state", "bytes", "why"], rows, as_json=True)
    else:
        print_text(f"Scale {pages[0].scale}.\n{preflight.show(states)}")
    if any(s.state == preflight.MISSING for s in states):
        raise RunFailed(
            "some models or data are unavailable; the lines above give the reason and what to do."
        )


def fetch(args):
    """Fetch one source of data, or everything that targets need."""
    from csebench.data.fetch import fetch_source

    if args.source in sources():
        return fetch_source(args.source, args.out or Path(FETCHED))
    # sources have no slash in their names, so `micse/tabel2` is a mistyped target
    may_be_source = "/" not in args.source
    if may_be_source and problem_of(parse_targets, [args.source], args.scale) is not None:
        known = [*sources(), "all", "table2", "micse/table2"]
        raise unknown("source or target", args.source, known)
    if args.out is not None:
        raise BadInput("fetch --out: is for one source; leave it out for targets.")
    pages = parse_targets([args.source], args.scale)
    from csebench.data.preflight import fetch_all

    print(f"Scale {pages[0].scale}.")
    failures = 0
    for line, failed in fetch_all(pages):
        print(visible(line), flush=True)
        failures += failed
    if failures:
        raise RunFailed(
            f"{args.source}: {counted(failures, 'source')} not fetched; the lines above give the"
            " reasons."
        )


# ---------------------------------------------------------------- back-translate


def back_translate(args):
    """Translate a corpus to another language and back."""
    read_corpus(args.corpus, least=1)
    check_translation_output(args.out, args.corpus)
    acquire_gpus()
    from csebench.data import translate

    translate.back_translate(args.corpus, args.out, args.translators, args.batch_size)


def check_translation_output(out: Path, corpus: Path) -> None:
    """Check that a translation and the file of facts about it can be written.

    Raises:
        BadInput: one of the two would replace the corpus, or a file that csebench did not write.
    """
    if is_stream(out):
        raise BadInput(
            f"{out}: a translation needs a file, because csebench writes facts about it to a second"
            " file beside it."
        )
    if out.exists() and out.samefile(corpus):
        raise BadInput(f"--out {out}: is the corpus; choose another name.")
    facts = out.with_name(f"{out.name}.json")
    check_output(facts)
    if is_taken(facts) and not is_translation(facts):
        raise not_ours(facts, "the description of a translation")
    if is_taken(out) and not facts.exists():
        raise not_ours(out, f"a translation that {facts.name} describes")


def is_translation(facts: Path) -> bool:
    """Whether a file holds the facts about a translation."""
    try:
        content = read_json(facts)
    except BadInput:
        return False
    return isinstance(content, dict) and content.keys() == back_translation_facts("", "").keys()


# ---------------------------------------------------------------- train


def train(args):
    """Train one run that no table needs, and print the folder of its model."""
    check_run_folder(args.out)
    if args.log_to is not None:
        check_tracker(args.log_to)
    # Read everything first: bad input is refused before torch is imported and a GPU is awaited.
    if args.spec:
        train_options.refuse_options_of_method(args)
        spec = train_options.read_spec(args.spec)
        refuse_unread_files(args, spec)
        corpus = read_corpus_of(spec, args.corpus)
    else:
        corpus = read_corpus_option(args)
        spec = train_options.spec_from(args, corpus, number_to_draw(args, corpus))
        refuse_unread_files(args, spec)
    data_root = train_options.data_root_or_default(args.data)
    inputs = read_inputs(spec, corpus, data_root, args.positives)
    single_run.train_spec(spec, args.out, inputs, args.chunk_size or None, args.log_to)
    print(f"{spec.run_id}: {args.out / 'model'}")


def refuse_unread_files(args, spec: Spec) -> None:
    """Raise BadInput if --corpus, --size or --positives is given and the run reads no such file."""
    if args.corpus is not None and spec.corpus is None:
        raise unread_file("--corpus", args.corpus, spec.method)
    if args.size is not None and spec.corpus is None:
        raise BadInput(f"--size {args.size:,}: {spec.method} reads no corpus; leave --size out.")
    if args.positives is not None and not spec.back_translated:
        raise unread_file("--positives", args.positives, spec.method)


def unread_file(option: str, file: Path, method: str) -> BadInput:
    """Make the error for an option whose file the run would not read."""
    return BadInput(
        f"{option} {file}: {method} reads none with these settings; leave {option} out."
    )


def read_corpus_option(args) -> Corpus | None:
    """Read the file of --corpus. None for a method that reads no corpus."""
    method = declaration(args.method)
    if args.corpus is None or not method.needs_corpus:
        return None
    return read_corpus(args.corpus, kind=method.corpus)


def number_to_draw(args, corpus: Corpus | None) -> int:
    """Choose how many sentences to draw from the corpus: --size, or all.

    Returns:
        0 for a method that reads no corpus.
    """
    if corpus is None:
        return 0
    available = len(corpus.sentences)
    if args.size is None:
        return available
    if args.size > available:
        kind = declaration(args.method).corpus
        raise BadInput(f"--size {args.size:,}: {args.corpus} holds {available:,} {kind}.")
    return args.size


# ---------------------------------------------------------------- evaluate


def evaluate(args):
    """Score an encoder, write the scores, and print them."""
    from csebench.score.store import check_scores_output

    settings = Evaluation(
        precision=args.precision, batch_size=args.batch_size, max_length=args.max_length
    )
    check_scores_output(args.out)
    # keep each evaluator once, because a repeated evaluator would repeat all its rows
    evaluators = distinct_names(args.evaluators)
    data_root = train_options.data_root_or_default(args.data)
    model = train_options.find_model(args.model)
    acquire_gpus()
    from csebench.score import evaluate as scoring

    if is_stream(args.out):
        note = f"{args.out}: is no file, so per-item values are not kept."
        print(note, file=sys.stderr, flush=True)
    result = scoring.evaluate_model(model, evaluators, data_root, args.out, args.pooler, settings)
    if is_standard_output(args.out):  # the scores are already there, as JSON
        return
    if args.json:
        print(json_text(result["scores"]))
    else:
        show_scores(result["scores"])


def show_scores(rows: list[dict]) -> None:
    """Print scores: fractions in percent, as papers do, and other units as they are."""
    table = []
    for row in rows:
        if row["subset"] not in ("all", "printed"):  # parts of a task, such as one year of STS
            continue
        unit = evaluator_declaration(row["evaluator"]).unit_of(row["metric"])
        value = f"{row['value']:.4f}"
        if unit == FRACTION:
            unit = "%"
            value = f"{100 * row['value']:.2f}"
        names = [row["evaluator"], row["task"], row["subset"], row["metric"]]
        table.append([*names, value, unit, row["protocol"]])
    print_table(["evaluator", "task", "subset", "metric", "value", "unit", "protocol"], table)


# ---------------------------------------------------------------- planned runs


def work(args):
    """Train and score a planned run."""
    only = None
    if args.evaluators is not None:
        only = [name for name in args.evaluators.split(",") if name]
    single_run.work(
        args.run_id,
        args.scale,
        only,
        args.processes,
        args.runs_per_gpu,
        args.chunk_size or None,
        args.attempt,
    )


def tune(args):
    """Search for the settings of methods, with a line per trial."""

    def log(line: str) -> None:
        print(visible(line), flush=True)

    print(f"Scale {args.scale}.", flush=True)
    search.tune(args.method, args.scale, args.trials, log)


def try_method(args):
    """Compare one's own method with others, and print the comparisons in words."""
    scale = args.scale or attempt.answering_scale()
    records = attempt.try_method(
        args.file,
        args.against,
        scale,
        args.settings,
        args.seeds,
        args.trials,
        args.evaluators,
        args.component,
        plan=args.plan,
    )
    if args.json:
        return print(json_text(records))
    for record in records:
        print_text(f"Scale {scale}. {record['question']} {record['sentence']}")
        print_text("\n".join(f"  {line}" for line in attempt_results.comparison_lines(record)))


def publish(args):
    """Put the scores of a finished run into results/."""
    single_run.publish_planned(args.run_id, args.evaluator, args.scale)


def prune(args):
    """Delete the models of runs that are scored, and say why others are kept."""
    from csebench.score.prune import prune_all

    pages = parse_targets(args.target, args.scale)
    print(f"Scale {pages[0].scale}.")
    deleted, kept = prune_all(pages)
    for reason, count in Counter(kept.values()).most_common():
        print(f"kept {count}: {visible(reason)}")
    print(f"deleted {counted(len(deleted), 'model')}")
