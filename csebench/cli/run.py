"""The verbs that get data ready, train and score."""

import sys
from collections import Counter
from pathlib import Path

from csebench.base.errors import BadInput, RunFailed, problem_of, unknown
from csebench.base.files import read_json
from csebench.base.gpus import acquire_gpus
from csebench.base.outputs import check_output, is_standard_output, is_stream, is_taken, not_ours
from csebench.base.runs import check_run_folder
from csebench.base.shown import visible
from csebench.base.terminal import counted, json_text, print_table, print_text
from csebench.cli import train_options
from csebench.cli.options import parse_targets
from csebench.data.corpus import read_corpus
from csebench.plan.catalog.data_sources import sources
from csebench.plan.catalog.registry import declaration, evaluator_declaration
from csebench.plan.recipe import back_translation_facts
from csebench.plan.schema.declarations import FRACTION, Evaluation
from csebench.study import attempt, attempt_results, search
from csebench.study import work as planned_run


def check(args):
    from csebench.data import preflight

    states = preflight.check_needs(parse_targets(args))
    if args.json:
        rows = [[s.need.kind, s.need.name, s.state, s.size, s.why] for s in states]
        print_table(["kind", "name", "state", "bytes", "why"], rows, as_json=True)
    else:
        print_text(f"Scale {args.scale}.\n{preflight.show(states)}")
    if any(s.state == preflight.MISSING for s in states):
        raise RunFailed(
            "some models or data are unavailable; the lines above give the reason and what to do."
        )


def fetch(args):
    from csebench.data.fetch import fetch_source

    if args.source in sources():
        return fetch_source(args.source, args.out)
    args.target = [args.source]
    if "/" not in args.source and problem_of(parse_targets, args):  # no source has one
        raise unknown(
            "source or target", args.source, [*sources(), "all", "table2", "micse/table2"]
        )
    pages = parse_targets(args)
    from csebench.data.preflight import fetch_all

    print(f"Scale {args.scale}.")
    failures = 0
    for line, failed in fetch_all(pages):
        print(visible(line), flush=True)
        failures += failed
    if failures:
        raise RunFailed(
            f"{args.source}: {counted(failures, 'source')} not fetched; the lines above give the"
            " reasons."
        )


def back_translate(args):
    read_corpus(args.corpus, least=1)
    check_translation_output(args.out, args.corpus)
    acquire_gpus()
    from csebench.data import translate

    translate.back_translate(args.corpus, args.out, args.translators, args.batch_size)


def check_translation_output(out: Path, corpus: Path) -> None:
    """Raise BadInput where a translation cannot be written. Beside it goes a file that states
    what was translated, and neither may take the place of the corpus or of another file."""
    if is_stream(out):
        raise BadInput(
            f"{out}: a translation needs a file, beside which csebench notes what was translated."
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
    """Whether a file is what a translation states about its corpus."""
    try:
        content = read_json(facts)
    except BadInput:
        return False
    return isinstance(content, dict) and content.keys() == back_translation_facts("", "").keys()


def train(args):
    check_run_folder(args.out)
    spec = (
        train_options.read_spec(args.spec)
        if args.spec
        else train_options.spec_from(args, corpus_size(args))
    )
    for option, is_read in {
        "corpus": spec.corpus is not None,
        "positives": spec.back_translated,
    }.items():
        if (file := getattr(args, option)) is not None and not is_read:
            raise BadInput(
                f"--{option} {file}: {spec.method} reads none with these settings; leave it out."
            )
    if args.corpus is not None and spec.corpus is not None:  # refuses it before torch is imported
        read_corpus(
            args.corpus, spec.corpus.sha256, declaration(spec.method).corpus, size=spec.corpus.size
        )
    data_root, chunk_size = train_options.data_root_or_default(args.data), args.chunk_size or None
    planned_run.train_spec(spec, args.out, args.corpus, data_root, args.positives, chunk_size)
    print(f"{spec.run_id}: {args.out / 'model'}")


def corpus_size(args) -> int:
    """Sentences to draw from the corpus that the options name: --size, or all; 0 for a method
    that reads none."""
    method = declaration(args.method)
    if args.corpus is None or not method.needs_corpus:
        return args.size or 0
    holds = len(read_corpus(args.corpus, kind=method.corpus))
    if (args.size or 0) > holds:
        raise BadInput(f"--size {args.size:,}: {args.corpus} holds {holds:,} {method.corpus}.")
    return args.size or holds


def evaluate(args):
    from csebench.score.store import check_scores_output

    settings = Evaluation(
        precision=args.precision, batch_size=args.batch_size, max_length=args.max_length
    )
    check_scores_output(args.out)
    # each once: named twice, one would give every row twice
    evaluators = [*dict.fromkeys(args.evaluators.split(","))]
    data_root = train_options.data_root_or_default(args.data)
    model = train_options.find_model(args.model)
    acquire_gpus()
    from csebench.score import evaluate as scoring

    if is_stream(args.out):
        print(
            f"{args.out}: is no file, so per-item values are not kept.", file=sys.stderr, flush=True
        )
    result = scoring.evaluate_model(model, evaluators, data_root, args.out, args.pooler, settings)
    if is_standard_output(args.out):  # the scores are printed already, for a program
        return
    if args.json:
        print(json_text(result["scores"]))
    else:
        show_scores(result["scores"])


def show_scores(rows: list[dict]) -> None:
    """Print scores in percent, as papers do; those with another unit as they are."""
    table = []
    for row in (row for row in rows if row["subset"] in ("all", "printed")):
        name = evaluator_declaration(row["evaluator"]).unit_of(row["metric"])
        score = (
            [f"{100 * row['value']:.2f}", "%"]
            if name == FRACTION
            else [f"{row['value']:.4f}", name]
        )
        table.append(
            [row["evaluator"], row["task"], row["subset"], row["metric"], *score, row["protocol"]]
        )
    print_table(["evaluator", "task", "subset", "metric", "value", "unit", "protocol"], table)


def work(args):
    only = (
        None if args.evaluators is None else [name for name in args.evaluators.split(",") if name]
    )
    planned_run.work(
        args.run_id,
        args.scale,
        only,
        args.processes,
        args.runs_per_gpu,
        args.chunk_size or None,
        args.attempt,
    )


def tune(args):
    print(f"Scale {args.scale}.", flush=True)
    search.tune(args.method, args.scale, args.trials, lambda line: print(visible(line), flush=True))


def try_method(args):
    """Print the comparisons of one's own method in words, with interval, cost and what to do
    next."""
    records = attempt.try_method(
        args.file,
        args.against,
        args.scale,
        args.seeds,
        args.trials,
        args.evaluators,
        args.component,
        plan=args.plan,
    )
    if args.json:
        return print(json_text(records))
    for record in records:
        print_text(f"Scale {args.scale}. {record['question']} {record['sentence']}")
        print_text("\n".join(f"  {line}" for line in attempt_results.comparison_lines(record)))


def publish(args):
    planned_run.publish_planned(args.run_id, args.evaluator, args.scale)


def prune(args):
    from csebench.score.prune import prune_all

    print(f"Scale {args.scale}.")
    deleted, kept = prune_all(parse_targets(args))
    for reason, count in Counter(kept.values()).most_common():
        print(f"kept {count}: {visible(reason)}")
    print(f"deleted {counted(len(deleted), 'model')}")
