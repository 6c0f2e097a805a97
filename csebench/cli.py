"""`csebench`: every step of the harness as a verb, usable without Snakemake.

Exit codes: 0 done; 1 a run failed; 2 bad input, with one clear message and nothing written.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from pathlib import Path

from tabulate import tabulate

from csebench import __version__, worker
from csebench.base import gpus
from csebench.base.errors import BadInput, RunFailed, unknown
from csebench.base.files import read_text, write_text
from csebench.base.provenance import code_state
from csebench.data.corpus import read_corpus
from csebench.plan import by_hand, catalog, grids, targets
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, declaration, names
from csebench.plan.schema import POOLERS, Evaluation


def main(argv: list[str] | None = None) -> int:
    gc.set_threshold(1_000_000)  # importing torch makes 640,000 objects and drops none, nor does any step of training
    try:
        args = parser().parse_args(argv)
        catalog.require_checkout()
        args.run(args)
    except BadInput as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 2
    except RunFailed as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 1
    return 0


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message} ({self.prog} --help)")


class ShowVersion(argparse.Action):
    """Prints the version, and the commit of a checkout, which git is asked for only then."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, nargs=0, **kwargs)

    def __call__(self, parser, *_):
        print(version_text())
        parser.exit()


def version_text() -> str:
    """`csebench 0.1.0 (commit 0123456789, with changes)`; without a commit outside of a checkout."""
    code = code_state() if catalog.is_checkout() else {"commit": None}
    if code["commit"] is None:
        return f"csebench {__version__}"
    changes = ", with changes" if code["dirty_diff_sha256"] else ""
    return f"csebench {__version__} (commit {code['commit'][:10]}{changes})"


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {text})")
    return number


def count(text: str) -> int:
    """A large whole number, also as 1e9."""
    number = float(text)
    if not (number >= 1 and number.is_integer()):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 (got {text})")
    return int(number)


def parser() -> Parser:
    top = Parser(prog="csebench", description=__doc__.splitlines()[0])
    top.add_argument("--version", action=ShowVersion, help="show the version and the commit")
    verbs = top.add_subparsers(required=True, metavar="VERB")

    def verb(name, run, help):
        added = verbs.add_parser(name, help=help, description=help)
        added.set_defaults(run=run)
        return added

    verb("methods", list_methods, "the methods and components there are")
    verb("evaluators", list_evaluators, "the evaluators there are")
    verb("papers", list_papers, "the papers and their tables")
    v = verb("show", show, "a method, component, evaluator or paper in full")
    v.add_argument("name")
    v = verb("plan", show_plan, "the runs that targets need: shared, existing, missing, time")
    v.add_argument("target", nargs="+", help="table2, micse/table2, results/mini/table2.md, all")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)

    v = verb(
        "status", show_status, "how far the runs that targets need are: done, running, failed, hours spent and left"
    )
    v.add_argument("target", nargs="*", default=["all"], help="as of plan; all without it")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    v.add_argument("--watch", nargs="?", type=positive, const=2, metavar="SECONDS", help="again every 2 seconds")

    v = verb("claims", list_claims, "what the papers say of their tables, on the printed numbers and on ours")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    verb("audit", list_findings, "what the printed tables contradict, in themselves or one another")

    v = verb("train", train, "train one run")
    v.add_argument("spec", nargs="?", help="a spec as JSON file or JSON text; or give --method")
    v.add_argument("--method")
    v.add_argument("--variant")
    v.add_argument("--with", dest="components", action="append", default=[], metavar="COMPONENT")
    v.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="learning_rate=… or ami.weight=…"
    )
    v.add_argument("--encoder", help="hub id (ID@COMMIT), folder, or a name in config/")
    v.add_argument("--corpus", type=Path, help="one sentence a line; for a supervised method a CSV of triplets")
    v.add_argument("--positives", type=Path, help="the corpus back-translated, where the method wants it")
    v.add_argument("--size", type=positive, help="sentences drawn by seed; all without it")
    v.add_argument("--seed", type=int, default=42)
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    v.add_argument("--threads", type=positive, default=1)
    v.add_argument("--data", type=Path, help="data root, for STS-B dev")
    v.add_argument("--out", type=Path, required=True)

    v = verb("evaluate", evaluate, "score any encoder")
    v.add_argument("--model", required=True, help="folder of ours, of sentence-transformers, hub id, or .npz file")
    v.add_argument("--pooler", choices=POOLERS)
    v.add_argument("--evaluators", default="sts", help="comma-separated: sts,transfer:fasttest,beir:scifact")
    v.add_argument("--max-length", type=positive, help="tokens; what the encoder can read without it")
    v.add_argument("--data", type=Path)
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    v.add_argument("--batch-size", type=positive, default=128)
    v.add_argument("--out", type=Path, required=True)

    v = verb("sentences", list_sentences, "the sentences that evaluators embed: what a file of embeddings must hold")
    v.add_argument("--evaluators", default="sts", help="comma-separated")
    v.add_argument("--data", type=Path)
    v.add_argument("--out", type=Path, required=True)

    v = verb("plot", plot, "the figures that scores have the data for: SVG, PNG and CSV")
    v.add_argument("scores", type=Path, help="JSON of `csebench evaluate`")
    v.add_argument("--out", type=Path, required=True, help="folder")

    v = verb("work", work, "train a planned run and score it, as the workflow does")
    v.add_argument("run_id")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    v.add_argument("--processes", type=int, default=1, help="that share every batch, each on a GPU of its own")
    v.add_argument("--runs-per-gpu", type=positive, default=1, help="several seeds may share a GPU")
    v = verb("publish", publish, "scores of a finished run into results/, as the workflow does")
    v.add_argument("run_id")
    v.add_argument("evaluator")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    v = verb("compare", compare, "which rows of a table differ, from the scores' per-item values")
    v.add_argument("target")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    v = verb("render", render, "the page of a target from the scores there are; a figure's files to results/")
    v.add_argument("target", help="table2, micse/table2, micse/figure3, index, claims, audit")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)
    v.add_argument("--out", type=Path, help="print to the terminal without it")

    v = verb("html", site, "all results of a scale as a folder to be read in a browser")
    v.add_argument("--scale", default=catalog.DEFAULT_SCALE)

    v = verb("fetch", fetch, "official data from their hub, checked")
    v.add_argument("source", help="wiki, nli, senteval, or a dataset of BEIR: beir:scifact")
    v.add_argument("--out", type=Path, required=True, help="data root")

    v = verb("back-translate", back_translate, "rewrite every sentence of a corpus by translating it there and back")
    v.add_argument("corpus", type=Path)
    v.add_argument("--translators", required=True, help="two MarianMT models, ID@COMMIT or folders, in one argument")
    v.add_argument("--out", type=Path, required=True)
    v.add_argument("--batch-size", type=positive, default=64)

    v = verb("pretrain", pretrain, "make a WordPiece vocabulary and a small BERT by masked LM")
    v.add_argument("corpus", type=Path, help="one sentence per line")
    v.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    v.add_argument("--tokens", type=count, required=True, help="seen in all, with repetition: 1e9")
    for name, default in (("layers", 4), ("hidden", 256), ("heads", 4), ("vocab-size", 8192), ("max-length", 128)):
        v.add_argument(f"--{name}", type=positive, default=default, help="default: %(default)s")
    v.add_argument("--batch-tokens", type=positive, default=4096, help="of a step, with padding; default: %(default)s")
    v.add_argument("--learning-rate", type=float, default=1e-3, help="at its peak; default: %(default)s")
    v.add_argument("--mask-probability", type=float, default=0.2, help="default: %(default)s")
    v.add_argument("--whole-word", action="store_true", help="mask all pieces of a word or none")
    v.add_argument(
        "--snapshots", type=count, nargs="+", default=[], help="token counts after which the encoder is also kept"
    )
    v.add_argument("--seed", type=int, default=42, help="default: %(default)s")
    v.add_argument("--threads", type=positive, default=2, help="of the CPU; default: %(default)s")
    return top


# ---------------------------------------------------------------- what there is


def list_methods(args):
    rows = []
    for folder in (METHODS, COMPONENTS):
        for name in names(folder):
            try:
                d = declaration(name, folder)
                encoders = {"untrained": "any", "fitted": "any", "control": "-"}.get(d.kind, "BERT, RoBERTa")
                rows.append([name, d.kind, d.paper, ", ".join(d.variants), encoders, d.needs, d.trains])
            except BadInput as e:
                rows.append([name, "BROKEN", str(e)])
    print(tabulate(rows, ["name", "kind", "paper", "variants", "encoders", "needs", "trains"]))


def list_evaluators(args):
    rows = []
    for d in (declaration(n, EVALUATORS) for n in names(EVALUATORS)):
        name = f"{d.name}:{d.takes.upper()}" if d.takes else d.name
        rows.append([name, d.version, d.protocol, ", ".join(d.variants), ", ".join(d.tasks), d.needs])
    print(tabulate(rows, ["name", "version", "protocol", "variants", "tasks", "needs"]))


def list_papers(args):
    papers = {name: catalog.paper(name) for name in catalog.paper_names()}
    rows = [[n, p.reference, ", ".join(p.tables), ", ".join(p.figures), len(p.claims)] for n, p in papers.items()]
    print(tabulate(rows, ["name", "paper", "tables", "figures", "claims"]))


def show(args):
    """All that goes by a name: miCSE is a method and a paper."""
    folders = [folder for folder in (METHODS, COMPONENTS, EVALUATORS) if args.name in names(folder)]
    for folder in folders:
        _show_declaration(declaration(args.name, folder))
    if args.name in catalog.paper_names():
        _show_paper(catalog.paper(args.name))
    elif not folders:
        known = [n for folder in (METHODS, COMPONENTS, EVALUATORS) for n in names(folder)]
        raise unknown("name", args.name, known + catalog.paper_names())


def _show_paper(paper):
    found = {name: grids.find_grid(paper.name, name) for name in targets.grid_names(paper.name)}
    rows = [[name, grid.title, len(grid.rows), runnable(grid)] for name, grid in found.items()]
    print(f"\n{paper.title}\n{paper.reference}  {paper.url or ''}\n")
    print(tabulate(rows, ["", "title", "rows", "with a run"]))


def runnable(grid) -> int:
    return sum(getattr(row, "run", None) is not None for row in grid.rows)


def _show_declaration(d):
    print(f"{d.name} (version {d.version}): {d.title}")
    if hasattr(d, "hyperparameters"):
        print(f"{d.paper}\n")
        typed = d.hyperparameters().model_dump()
        rows = [[k, v, d.params[k][1] if k in d.params else "the trainer's default"] for k, v in typed.items()]
        print(tabulate(rows, ["parameter", "value", "source"]))
    else:
        print(f"protocol {d.protocol}; tasks {', '.join(d.tasks)}; {d.source}")
        if d.params:
            print(f"settings: {d.params}")
    for name, params in d.variants.items():
        print(f"\nvariant {name}: {params}")
    print("".join(f"\ndeviation: {text}" for text in d.deviations))


def show_plan(args):
    from csebench.plan.forecast import plan_report

    print(plan_report(pages_of(args)))


def show_status(args):
    from csebench.report.status import show_status

    show_status(pages_of(args), args.watch)


def pages_of(args) -> list[targets.Page]:
    catalog.scale(args.scale)
    return list({str(p.path): p for t in args.target for p in targets.parse_target(t, args.scale)}.values())


def list_claims(args):
    from csebench.report.claims import judge_all

    catalog.scale(args.scale)
    judged = judge_all(args.scale)
    rows = [[j.paper, j.claim.place, j.claim.quote, j.published.verdict, j.ours.verdict] for j in judged]
    head = ["paper", "place", "claim", "on the printed numbers", f"on ours, scale {args.scale}"]
    print(tabulate(rows, head, maxcolwidths=[None, None, 60, None, None]))


def list_findings(args):
    from csebench.report.audit import findings

    print(tabulate(findings(), ["paper", "place", "kind", "finding"], maxcolwidths=[None, None, None, 90]))


# ---------------------------------------------------------------- work


def train(args):
    if (args.spec is None) == (args.method is None):
        raise BadInput("train: give a spec (JSON file or text) or --method, not both.")
    spec = by_hand.read_spec(args.spec) if args.spec else by_hand.spec_from(request(args))
    if args.corpus is not None and spec.corpus is not None:
        read_corpus(args.corpus, spec.corpus.sha256, declaration(spec.method).corpus)  # before torch is imported
    with gpus.acquire_gpus():
        from csebench.train.run import train as run

        run(spec, args.out, args.corpus, by_hand.data_root_or_default(args.data), positives=args.positives)
    print(f"{spec.run_id}: {args.out / 'model'}")


def request(args) -> by_hand.Request:
    names = ("method", "encoder", "variant", "components", "corpus", "seed", "precision", "threads", "data")
    method = declaration(args.method)
    trains = args.corpus is not None and method.kind in ("trained", "fitted")
    size = args.size or (len(read_corpus(args.corpus, kind=method.corpus)) if trains else 0)
    return by_hand.Request(**{name: getattr(args, name) for name in names}, settings=args.set, size=size)


def evaluate(args):
    from csebench.score.evaluate import evaluate as run

    if args.max_length is not None and args.max_length < 4:
        raise BadInput(f"--max-length {args.max_length}: must be at least 4.")
    settings = Evaluation(precision=args.precision, batch_size=args.batch_size, max_length=args.max_length)
    with gpus.acquire_gpus():
        result = run(
            args.model,
            args.evaluators.split(","),
            by_hand.data_root_or_default(args.data),
            args.out,
            args.pooler,
            settings,
        )
    shown = [s for s in result["scores"] if s["subset"] in ("all", "printed")]
    rows = [[s["evaluator"], s["task"], s["subset"], s["metric"], s["value"], s["protocol"]] for s in shown]
    print(tabulate(rows, ["evaluator", "task", "subset", "metric", "value", "protocol"], floatfmt=".4f"))
    timings = [[name, *own.values()] for name, own in result["timings"].items()]
    print("\n" + tabulate(timings, ["evaluator", "embedding, s", "scoring, s", "sentences embedded"], floatfmt=".1f"))


def list_sentences(args):
    from csebench.score.evaluate import sentences

    found = sentences(args.evaluators.split(","), by_hand.data_root_or_default(args.data))
    write_text(args.out, "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in found))
    print(f"{len(found)} sentences, a JSON string a line: {args.out}")


def plot(args):
    from csebench.report.panels import plot as run

    for path in run(args.scores, args.out):
        print(path)


def work(args):
    worker.work(args.run_id, args.scale, args.processes, args.runs_per_gpu)


def publish(args):
    worker.publish(args.run_id, args.evaluator, args.scale)


def compare(args):
    from csebench.report.compare import compare as run

    (page,) = targets.parse_target(args.target, args.scale)
    for paper, name in page.grids():
        print(run(paper, name, page.scale))


def render(args):
    """Pages to the terminal or to --out; a figure's files to their place in results/."""
    from csebench.report.overview import REPORTS
    from csebench.score.store import write_csv

    catalog.scale(args.scale)
    if args.target in REPORTS:
        return show_or_write(REPORTS[args.target](args.scale), args.out)
    pages = targets.parse_target(args.target, args.scale)
    if args.out is not None and len(pages) > 1:
        raise BadInput(f"render: {args.target} is {len(pages)} pages, --out is one file; use snakemake for all.")
    for page in pages:
        if page.path.suffix == ".svg":
            if args.out is not None:
                raise BadInput(
                    f"render: {args.target} is a figure, whose files go to {page.path.parent}/; leave --out."
                )
            from csebench.report.figures import draw

            print(*draw(*page.grids()[0], page.scale), sep="\n")
        else:
            from csebench.report.markdown import render_page as page_text

            show_or_write(page_text(page), args.out)
            if args.out is not None:
                write_csv(page.scale)
    return None


def show_or_write(text: str, out: Path | None):
    if out is None:
        print(text)
    else:
        write_text(out, text)


def site(args):
    from csebench.report.html import write_site as write

    catalog.scale(args.scale)
    print(write(args.scale))


def fetch(args):
    from csebench.data.fetch import sources

    if args.source not in sources():
        raise unknown("source", args.source, sources())
    sources()[args.source](args.out)


def back_translate(args):
    read_text(args.corpus)
    with gpus.acquire_gpus():
        from csebench.data.translate import back_translate as run

        run(args.corpus, args.out, args.translators, args.batch_size)


def pretrain(args):
    read_text(args.corpus)
    with gpus.acquire_gpus():
        from csebench.train.pretrain import Settings
        from csebench.train.pretrain import pretrain as run

        values = {name: getattr(args, name) for name in Settings.__dataclass_fields__ if hasattr(args, name)}
        run(args.corpus, args.out, Settings(**values | {"snapshots": tuple(args.snapshots)}), args.threads)


if __name__ == "__main__":
    sys.exit(main())
