"""`csebench`: every step of the harness as a verb, usable without Snakemake.

The parser and the printing; what a verb does is in the rooms of csebench/.

Exit codes: 0 done; 1 a run failed; 2 bad input, with one clear message and nothing written; 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tabulate import tabulate

from csebench import __version__, worker
from csebench.base import gpus
from csebench.base.errors import BadInput, RunFailed, Stopped, shortened, unknown
from csebench.base.files import check_output, read_text, write_text
from csebench.base.provenance import code_state
from csebench.base.run_dir import lock_run
from csebench.data.corpus import read_corpus
from csebench.plan import by_hand, catalog, checkpoints, grids, targets, variance
from csebench.plan.page_files import write_page
from csebench.plan.registry import (
    COMPONENTS,
    EVALUATORS,
    METHODS,
    any_declaration,
    declaration,
    evaluator_declaration,
    names,
)
from csebench.plan.schema import POOLERS, Evaluation


def main(argv: list[str] | None = None) -> int:
    gc.set_threshold(1_000_000)  # importing torch makes 640,000 objects and frees none; collecting them is wasted time
    try:
        args = parser().parse_args(argv)
        catalog.require_checkout()
        args.run(args)
    except BadInput as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 2
    except RunFailed as e:
        print(f"csebench: {e}", file=sys.stderr)
        return 130 if isinstance(e, Stopped) and e.interrupted else 1
    except KeyboardInterrupt:
        print("csebench: interrupted.", file=sys.stderr)
        return 130
    except OSError as e:  # a full or read-only disk, a folder of another user: nothing that code can mend
        if e.strerror is None:
            raise
        notes = " ".join(getattr(e, "__notes__", ()))  # the run, and whether it can be resumed
        print(f"csebench: {e.filename or 'a file'}: {e.strerror}. {notes}".rstrip(), file=sys.stderr)
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


def whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """The type of an option that is a whole number within bounds."""

    def number(text: str) -> int:
        if not low <= (value := int(text)) <= high:
            raise argparse.ArgumentTypeError(f"must be from {low} to {high} (got {shortened(text, 40)})")
        return value

    number.__name__ = "whole number"  # of argparse's message about other text
    return number


positive, not_negative = whole(1), whole(0)
SEED, THREADS, BATCH_SIZE = whole(0, 2**32 - 1), whole(1, 1024), whole(1, 2**20)


def above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number above 0 (got {text})")
    return number


def probability(text: str) -> float:
    number = float(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1 (got {text})")
    return number


def count(text: str) -> int:
    """A large whole number, also as 1e9."""
    number = float(text)
    if not (1 <= number <= 1e15 and number.is_integer()):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 (got {shortened(text, 40)})")
    return int(number)


def output_file(text: str) -> Path:
    return _output(text, is_folder=False)


def output_folder(text: str) -> Path:
    return _output(text, is_folder=True)


def _output(text: str, is_folder: bool) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    try:
        check_output(Path(text), is_folder)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def parser() -> Parser:
    top = Parser(prog="csebench", description=__doc__.splitlines()[0])
    top.add_argument("--version", action=ShowVersion, help="show the version and the commit")
    verbs = top.add_subparsers(required=True, metavar="VERB")

    def verb(name, run, help):
        added = verbs.add_parser(name, help=help, description=help)
        added.set_defaults(run=run)
        return added

    def add_scale(to):
        known = "name of a file in config/ (default: %(default)s)"
        to.add_argument("--scale", default=catalog.DEFAULT_SCALE, help=known)

    def add_evaluators(to):
        example = "comma-separated, as in sts,transfer:fasttest,beir:scifact (default: %(default)s)"
        to.add_argument("--evaluators", default="sts", help=example)

    def add_data(to, use="benchmark data"):
        to.add_argument("--data", type=Path, help=f"folder of {use} (default: CSEBENCH_DATA, else the fetched data)")

    def add_chunk_size(to):
        text = "sentences that an encoder in training has in memory at a time; 0: the batch (default: %(default)s)"
        to.add_argument("--chunk-size", type=not_negative, default=0, help=text)

    verb("methods", list_methods, "list methods and components")
    verb("evaluators", list_evaluators, "list evaluators, with their protocols and tasks")
    verb("papers", list_papers, "list papers, with their tables and figures")
    v = verb("show", show_name, "show everything about a method, component, evaluator or paper")
    v.add_argument("name", help="a name that the verbs methods, evaluators or papers list")
    v = verb("plan", show_plan, "show what targets need in runs, hours and disk, and what of it fits into some hours")
    v.add_argument("target", nargs="+", help="table2, micse/table2, results/mini/table2.md or all")
    add_scale(v)
    v.add_argument(
        "--hours", type=above_zero, help="choose what gives the most complete cells, verdicts and claims in HOURS"
    )
    v.add_argument("--seeds", type=positive, help="choose the first SEEDS seeds of every cell (default: all)")
    v.add_argument("--device", help="name in data/step_times.yaml (default: the fastest)")
    v.add_argument("--runs", action="store_true", help="list the runs too")
    chosen = "file of what --hours and --seeds choose, for Snakemake (default: %(default)s)"
    v.add_argument("--out", type=output_file, default=Path("chosen.yaml"), help=chosen)

    v = verb("status", show_status, "show the state of the runs of targets, and the hours spent and left")
    v.add_argument("target", nargs="*", default=["all"], help="as for the verb plan (default: all)")
    add_scale(v)
    again = "show it again every SECONDS (default: 2) until all runs are done"
    v.add_argument("--watch", nargs="?", type=whole(1, 86_400), const=2, metavar="SECONDS", help=again)

    v = verb("prune", prune, "delete the models of runs whose scores are all published")
    v.add_argument("target", nargs="*", default=["all"], help="as for the verb plan (default: all)")
    add_scale(v)

    v = verb("power", show_power, "list what the tests of tables can show before any training, and the seeds needed")
    v.add_argument("target", nargs="+", help="as for the verb plan")
    v.add_argument("--scale", default="paper", help="name of a file in config/ (default: %(default)s)")
    points = "difference between two rows, in points, whose power is computed (default: %(default)s)"
    v.add_argument("--difference", type=above_zero, default=0.5, metavar="POINTS", help=points)

    v = verb("claims", list_claims, "list claims of the papers, judged on the printed numbers and on ours")
    add_scale(v)
    verb("audit", list_findings, "list inconsistencies in the published tables")

    v = verb("train", train, "train one run, from a spec or from options")
    v.add_argument("spec", nargs="?", help="JSON file or JSON text; without it, --method and the options below")
    v.add_argument("--method", help="name of a method")
    v.add_argument("--variant", help="variant of the method (default: its declared settings)")
    plug_in = "component to plug in; may be repeated"
    v.add_argument("--with", dest="components", action="append", default=[], metavar="COMPONENT", help=plug_in)
    hyper_parameter = "hyper-parameter of the method (learning_rate=3e-5) or of a component (ami.weight=0.01)"
    v.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=hyper_parameter)
    v.add_argument("--encoder", help="hub id with commit (ID@COMMIT), folder of a model, or a name in config/")
    v.add_argument("--corpus", type=Path, help="one sentence per line; for a supervised method a CSV file of triplets")
    v.add_argument("--positives", type=Path, help="back-translated corpus, for a method that needs one")
    v.add_argument("--size", type=whole(2, 10**12), help="sentences to draw from the corpus (default: all)")
    v.add_argument("--seed", type=SEED, default=42, help="seed of sampling and training (default: %(default)s)")
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of training (default: %(default)s)")
    v.add_argument("--threads", type=THREADS, default=1, help="CPU threads (default: %(default)s)")
    add_chunk_size(v)
    add_data(v, "benchmark data, for STS-B dev")
    v.add_argument("--out", type=output_folder, required=True, help="folder of the run; the model is in OUT/model")

    v = verb("evaluate", evaluate, "score an encoder of any origin")
    model = "folder of a model, hub id, or .npz file of embeddings (see the verb sentences)"
    v.add_argument("--model", required=True, help=model)
    v.add_argument("--pooler", choices=POOLERS, help="how token vectors become one (default: that of the model)")
    add_evaluators(v)
    v.add_argument(
        "--max-length", type=whole(4, 2**20), help="tokens per sentence (default: the maximum of the encoder)"
    )
    add_data(v)
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of embedding (default: %(default)s)")
    v.add_argument("--batch-size", type=BATCH_SIZE, default=128, help="sentences per batch (default: %(default)s)")
    v.add_argument(
        "--out", type=output_file, required=True, help="JSON file of scores, next to which .items.npz is written"
    )

    v = verb(
        "sentences", list_sentences, "write the sentences that evaluators embed: those that an .npz file must hold"
    )
    add_evaluators(v)
    add_data(v)
    v.add_argument("--out", type=output_file, required=True, help="file with one JSON string per line")

    v = verb("plot", plot_scores, "draw the figures of one model from its scores, as SVG, PNG and CSV")
    v.add_argument("scores", type=Path, help="JSON file of the verb evaluate")
    v.add_argument("--out", type=output_folder, required=True, help="folder of the figures")

    v = verb("work", work, "train and score a planned run, as a job of the workflow does")
    v.add_argument("run_id", help="id of a run, as `csebench plan --runs` lists it")
    add_scale(v)
    v.add_argument(
        "--processes", type=whole(0, 64), default=1, help="processes that share each batch, one per GPU (default: 1)"
    )
    v.add_argument("--runs-per-gpu", type=positive, default=1, help="runs that may share a GPU (default: 1)")
    add_chunk_size(v)
    v.add_argument("--evaluators", help="comma-separated: score with these only (default: with all that pages show)")
    v = verb("publish", publish, "copy the scores of a finished run into results/, as a job of the workflow does")
    v.add_argument("run_id", help="id of a run, as `csebench plan --runs` lists it")
    v.add_argument("evaluator", help="an evaluator with its settings, as in beir:scifact")
    add_scale(v)
    v = verb("compare", compare_rows, "test which rows of a table differ, from per-item values")
    v.add_argument("target", help="table2, micse/table2, micse/figure3")
    add_scale(v)
    v = verb("render", render, "render a page from the scores that exist; a figure is drawn into results/")
    v.add_argument("target", help="table2, micse/table2, micse/figure3, index, claims, audit, evidence, …")
    add_scale(v)
    v.add_argument("--out", type=output_file, help="file of the page (default: print it)")

    v = verb("csv", write_csv, "write all scores of a scale, and all cells of its tables and figures, as CSV files")
    add_scale(v)

    v = verb("html", write_html, "write all results of a scale as a folder of web pages")
    add_scale(v)

    v = verb("check", check, "list the models and data that targets need, whether they can be had, disk and memory")
    v.add_argument("target", nargs="*", default=["all"], help="as for the verb plan (default: all)")
    v.add_argument("--scale", default="paper", help="name of a file in config/ (default: %(default)s)")

    v = verb("fetch", fetch, "download official data and check it, or all models and data that a target needs")
    v.add_argument("source", help="wiki, nli, senteval, imdb, stackoverflow, beir:scifact …, or a target")
    v.add_argument("--scale", default="paper", help="of a target (default: %(default)s)")
    v.add_argument(
        "--out", type=output_folder, default=Path(catalog.FETCHED), help="folder of a source (default: %(default)s)"
    )

    verb("lock-checkpoints", lock_checkpoints, "look up the hub's commits of released checkpoints, once")

    v = verb("back-translate", back_translate, "translate every sentence of a corpus to another language and back")
    v.add_argument("corpus", type=Path, help="one sentence per line")
    models = "two MarianMT models (ID@COMMIT or folders) in one argument, separated by a space"
    v.add_argument("--translators", required=True, help=models)
    v.add_argument("--out", type=output_file, required=True, help="file of the translated sentences")
    v.add_argument("--batch-size", type=BATCH_SIZE, default=64, help="sentences per batch (default: %(default)s)")

    v = verb("pretrain", pretrain, "train a WordPiece vocabulary and a small BERT by masked language modelling")
    v.add_argument("corpus", type=Path, help="one sentence per line")
    v.add_argument("--out", type=output_folder, required=True, help="folder of the encoder")
    v.add_argument("--tokens", type=count, required=True, help="tokens to train on, repetitions included: 1e9")
    for name, kind, default, text in (
        ("layers", whole(1, 1000), 4, "transformer layers"),
        ("hidden", whole(1, 2**16), 256, "size of hidden states"),
        ("heads", whole(1, 2**12), 4, "attention heads"),
        ("vocab-size", whole(100, 2**24), 8192, "word pieces"),
        ("max-length", whole(4, 2**16), 128, "tokens per sentence"),
        ("batch-tokens", whole(64, 2**28), 4096, "tokens per step, padding included"),
    ):
        v.add_argument(f"--{name}", type=kind, default=default, help=f"{text} (default: %(default)s)")
    v.add_argument("--learning-rate", type=above_zero, default=1e-3, help="peak learning rate (default: %(default)s)")
    masked = "fraction of the tokens to mask (default: %(default)s)"
    v.add_argument("--mask-probability", type=probability, default=0.2, help=masked)
    v.add_argument("--whole-word", action="store_true", help="mask all pieces of a word or none")
    snapshots = "token counts after which a copy of the encoder is written"
    v.add_argument("--snapshots", type=count, nargs="+", default=[], help=snapshots)
    v.add_argument("--seed", type=SEED, default=42, help="seed of weights and masking (default: %(default)s)")
    v.add_argument("--threads", type=THREADS, default=2, help="CPU threads (default: %(default)s)")
    return top


# ---------------------------------------------------------------- lists


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
    for d in (evaluator_declaration(n) for n in names(EVALUATORS)):
        name = f"{d.name}:{d.takes.upper()}" if d.takes else d.name
        rows.append([name, d.version, d.protocol, ", ".join(d.variants), ", ".join(d.tasks), d.needs])
    print(tabulate(rows, ["name", "version", "protocol", "variants", "tasks", "needs"]))


def list_papers(args):
    papers = {name: catalog.paper(name) for name in catalog.paper_names()}
    rows = [[n, p.reference, ", ".join(p.tables), ", ".join(p.figures), len(p.claims)] for n, p in papers.items()]
    print(tabulate(rows, ["name", "paper", "tables", "figures", "claims"]))


def show_name(args):
    """Print everything with a name: miCSE is a method and a paper."""
    folders = [folder for folder in (METHODS, COMPONENTS, EVALUATORS) if args.name in names(folder)]
    for folder in folders:
        _show_declaration(any_declaration(args.name, folder))
    if args.name in catalog.paper_names():
        _show_paper(catalog.paper(args.name))
    elif not folders:
        known = [n for folder in (METHODS, COMPONENTS, EVALUATORS) for n in names(folder)]
        raise unknown("name", args.name, known + catalog.paper_names())


def _show_paper(paper):
    by_name = {name: grids.find_grid(paper.name, name) for name in targets.grid_names(paper.name)}
    rows = [[name, grid.title, len(grid.rows), rows_with_run(grid)] for name, grid in by_name.items()]
    print(f"\n{paper.title}\n{paper.reference}  {paper.url or ''}\n")
    print(tabulate(rows, ["", "title", "rows", "with a run"]))


def rows_with_run(grid) -> int:
    return sum(getattr(row, "run", None) is not None for row in grid.rows)


def _show_declaration(d):
    print(f"{d.name} (version {d.version}): {d.title}")
    if hasattr(d, "hyperparameters"):
        print(f"{d.paper}\n")
        typed = dict(d.hyperparameters())
        rows = [[k, v, d.params[k][1] if k in d.params else "the trainer's default"] for k, v in typed.items()]
        print(tabulate(rows, ["parameter", "value", "source"]))
    else:
        print(f"protocol {d.protocol}; tasks {', '.join(d.tasks)}; {d.source}")
        if d.params:
            print(f"settings: {d.params}")
    for name, params in d.variants.items():
        print(f"\nvariant {name}: {params}")
    for name, (reading, text) in getattr(d, "differences", {}).items():
        print(f"\n{reading} ({name}): {text}")
    print("".join(f"\ndeviation: {text}" for text in d.deviations))


def show_plan(args):
    from csebench.data import needs
    from csebench.plan import plan_report
    from csebench.plan.budget import Work
    from csebench.score.store import stale_runs

    work = Work(parse_targets(args), args.seeds, args.device)
    print(plan_report.summary(work, len(stale_runs(work.pages))))
    absent = needs.absent(work.pages)
    models = [need.name for need in absent if need.ref is not None]
    print("\n" + plan_report.downloads_line(models, len(absent) - len(models)))
    if args.hours is None and args.seeds is None:
        if args.runs:
            print("\n" + plan_report.runs_table(work))
        return
    hours = math.inf if args.hours is None else args.hours
    choice = work.choose(hours)
    print("\n" + plan_report.choice_text(work, choice, hours, args.out))
    if args.runs:
        print("\n" + plan_report.chosen_table(work, choice))
    given = {"--hours": args.hours and f"{args.hours:g}", "--seeds": args.seeds, "--device": args.device}
    options = [str(part) for option, value in given.items() if value is not None for part in (option, value)]
    command = shlex.join(["csebench", "plan", *args.target, "--scale", args.scale, *options])
    plan_report.choice_file(work, choice, command, args.out)


def show_status(args):
    from csebench.report.status import show_status

    show_status(parse_targets(args), args.watch)


def show_power(args):
    from csebench.report.planned_power import report
    from csebench.report.view import grid_view

    names = dict.fromkeys(grid for page in parse_targets(args) for grid in page.grids())
    print(report([grid_view(paper, name, args.scale) for paper, name in names], args.difference))


def parse_targets(args) -> list[targets.Page]:
    """The distinct pages of all targets."""
    catalog.scale(args.scale)
    return list({str(p.path): p for t in args.target for p in targets.parse_target(t, args.scale)}.values())


def list_claims(args):
    from csebench.report.claims import judge_all

    catalog.scale(args.scale)
    judged = judge_all(args.scale)
    rows = [[s.paper, ", ".join(s.places), s.quote, s.published.verdict, s.ours.verdict] for s in judged]
    head = ["paper", "place", "claim", "on the printed numbers", f"on ours, scale {args.scale}"]
    print(tabulate(rows, head, maxcolwidths=[None, None, 60, None, None]))


def list_findings(args):
    from csebench.report.audit import findings

    rows = [[f.severity, f.kind, "; ".join(map(" ".join, f.places)), f.text] for f in findings()]
    print(tabulate(rows, ["severity", "kind", "place", "finding"], maxcolwidths=[None, None, 30, 80]))


# ---------------------------------------------------------------- work


def train(args):
    if (args.spec is None) == (args.method is None):
        raise BadInput("train: give a spec (JSON file or text) or --method, not both.")
    spec = by_hand.read_spec(args.spec) if args.spec else by_hand.spec_from(make_request(args))
    if args.corpus is not None and spec.corpus is not None:
        read_corpus(args.corpus, spec.corpus.sha256, declaration(spec.method).corpus)  # before torch is imported
    with lock_run(args.out), gpus.acquire_gpus():  # in the order of csebench/worker.py
        from csebench.train.run import train as run

        data_root, chunk_size = by_hand.data_root_or_default(args.data), args.chunk_size or None
        run(spec, args.out, args.corpus, data_root, positives=args.positives, chunk_size=chunk_size)
    print(f"{spec.run_id}: {args.out / 'model'}")


def make_request(args) -> by_hand.Request:
    names = ("method", "encoder", "variant", "components", "corpus", "seed", "precision", "threads", "data")
    method = declaration(args.method)
    reads_corpus = args.corpus is not None and method.kind in ("trained", "fitted")
    size = args.size or (len(read_corpus(args.corpus, kind=method.corpus)) if reads_corpus else 0)
    return by_hand.Request(**{name: getattr(args, name) for name in names}, settings=args.set, size=size)


def evaluate(args):
    from csebench.score.evaluate import evaluate as run

    settings = Evaluation(precision=args.precision, batch_size=args.batch_size, max_length=args.max_length)
    with gpus.acquire_gpus():
        result = run(
            args.model,
            distinct_evaluators(args.evaluators),
            by_hand.data_root_or_default(args.data),
            args.out,
            args.pooler,
            settings,
        )
    shown = [s for s in result["scores"] if s["subset"] in ("all", "printed")]
    rows = [[s["evaluator"], s["task"], s["subset"], s["metric"], s["value"], s["protocol"]] for s in shown]
    print(tabulate(rows, ["evaluator", "task", "subset", "metric", "value", "protocol"], floatfmt=".4f"))
    timings = [[name, *timing.values()] for name, timing in result["timings"].items()]
    print("\n" + tabulate(timings, ["evaluator", "embedding, s", "scoring, s", "sentences embedded"], floatfmt=".1f"))


def distinct_evaluators(text: str) -> list[str]:
    """The evaluators of an option, each once, as one that is named twice would give every row twice."""
    return list(dict.fromkeys(text.split(",")))


def list_sentences(args):
    from csebench.score.evaluate import sentences

    distinct = sentences(distinct_evaluators(args.evaluators), by_hand.data_root_or_default(args.data))
    write_text(args.out, "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in distinct))
    print(f"{len(distinct)} sentences, one JSON string per line: {args.out}")


def plot_scores(args):
    from csebench.report.panels import plot

    for path in plot(args.scores, args.out):
        print(path)


def work(args):
    only = None if args.evaluators is None else [name for name in args.evaluators.split(",") if name]
    worker.work(args.run_id, args.scale, args.processes, args.runs_per_gpu, only, args.chunk_size or None)


def publish(args):
    worker.publish(args.run_id, args.evaluator, args.scale)


def prune(args):
    from csebench.score.prune import prune_all

    freed, kept = prune_all(parse_targets(args))
    for reason, count in Counter(kept.values()).most_common():
        print(f"kept {count}: {reason}")
    print(f"deleted {len(freed)} models, {sum(freed.values()) / 1e9:.2f} GB")


def compare_rows(args):
    from csebench.report.compare import compare

    (page,) = targets.parse_target(args.target, args.scale)
    for paper, name in page.grids():
        print(compare(paper, name, page.scale))


def render(args):
    """Print a page or write it to --out; a figure's files go to their place in results/."""
    from csebench.report.overview import REPORTS

    catalog.scale(args.scale)
    if args.target == "evidence":
        return render_evidence(args.out)
    if args.target in REPORTS:
        return show_or_write(REPORTS[args.target](args.scale), args.out)
    scale = checkpoints.SCALE if args.target == checkpoints.NAME else args.scale  # it is a page of one scale
    pages = targets.parse_target(args.target, scale)
    if args.out is not None and len(pages) > 1:
        raise BadInput(
            f"render: {args.target} means {len(pages)} pages, but --out is one file; use snakemake for all."
        )
    for page in pages:
        if page.path.suffix == ".svg":
            if args.out is not None:
                raise BadInput(f"render: {args.target} is a figure, drawn into {page.path.parent}/; leave out --out.")
            from csebench.report.figures import draw

            print(*draw(*page.grids()[0], page.scale), sep="\n")
        elif page.name == checkpoints.NAME:
            from csebench.report.checkpoints_page import page as checkpoints_page

            show_or_write(checkpoints_page(), args.out)
        elif page.name == variance.NAME:
            from csebench.report.variance_page import page as variance_page

            show_or_write(variance_page(page.scale), args.out)
        else:
            from csebench.report.markdown import render_page as page_text

            show_or_write(page_text(page), args.out)
    return None


def render_evidence(out: Path | None):
    """The page on others' runs; with --out also its figures, into the same folder. No scale matters."""
    from csebench.report import evidence_figures, evidence_page

    show_or_write(evidence_page.page(), out)
    if out is not None:
        evidence_figures.draw(out.parent)


def show_or_write(text: str, out: Path | None):
    """Print a page, or write it to a file; in neither is HTML that it did not write itself."""
    from csebench.report.markdown import escape_html

    text = escape_html(text)
    if out is None:
        print(text)
    else:
        write_page(out, text)


def write_csv(args):
    from csebench.report import csv_tables

    catalog.scale(args.scale)
    print(csv_tables.write_scores(args.scale))
    print(csv_tables.write_cells(args.scale))


def write_html(args):
    from csebench.report.html import write_site

    catalog.scale(args.scale)
    print(write_site(args.scale))


def check(args):
    from csebench.data.needs import show

    text, complete = show(parse_targets(args))
    print(text)
    if not complete:
        raise RunFailed("some of it cannot be had; the lines above say what to do.")


def fetch(args):
    from csebench.data.fetch import sources

    if args.source in sources():
        return sources()[args.source](args.out)
    try:
        args.target = [args.source]
        pages = parse_targets(args)
    except BadInput:
        raise unknown("source or target", args.source, [*sources(), "all", "table2", "micse/table2"]) from None
    from csebench.data.needs import fetch_all

    if failed := fetch_all(pages, lambda line: print(line, flush=True)):
        raise RunFailed(f"{len(failed)} of what {args.source} needs cannot be fetched; the lines above say why.")
    return None


def lock_checkpoints(args):
    from csebench.data.fetch import model_commit

    known = len(checkpoints.locked())
    new = checkpoints.lock(model_commit, datetime.now(UTC).date().isoformat())
    print(f"evidence/{checkpoints.LOCK}: {len(new)} checkpoints looked up, {known} were there")


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
