"""The verbs that check, download and make data."""

from csebench.base.errors import BadInput, RunFailed, unknown
from csebench.base.processes import acquire_gpus
from csebench.base.terminal import counted, json_text, print_text
from csebench.cli.options import parse_targets
from csebench.data.corpus import read_corpus
from csebench.plan.where_data_is import sources


def check(args):
    from csebench.data import preflight

    pages = parse_targets(args)
    states = preflight.check(pages)
    if args.json:
        print(json_text(preflight.content(states)))
    else:
        print_text(f"Scale {args.scale}.\n{preflight.show(states)}")
    if preflight.lost(pages, states):
        raise RunFailed("some models or data are unavailable; the lines above give the reason and what to do.")


def fetch(args):
    from csebench.data.fetch import fetch_source

    if args.source in sources():
        return fetch_source(args.source, args.out)
    try:
        args.target = [args.source]
        pages = parse_targets(args)
    except BadInput:
        if "/" in args.source:  # no source has one
            raise
        raise unknown("source or target", args.source, [*sources(), "all", "table2", "micse/table2"]) from None
    from csebench.data.preflight import fetch_all

    print(f"Scale {args.scale}.")
    failures = 0
    for line, failed in fetch_all(pages):
        print(line, flush=True)
        failures += failed
    if failures:
        failed = f"{counted(failures, 'source')} of {args.source}"
        raise RunFailed(f"{failed} cannot be fetched; the lines above give the reasons.")
    return None


def back_translate(args):
    read_corpus(args.corpus, least=1)
    acquire_gpus()
    from csebench.data.translate import back_translate as run

    run(args.corpus, args.out, args.translators, args.batch_size)
