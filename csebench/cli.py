"""`csebench`: every step of the harness as a verb, usable without Snakemake.

Exit codes: 0 done; 1 a run failed; 2 bad input, with one clear message and nothing written.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from pathlib import Path

from tabulate import tabulate

from csebench import gpus, kept_plan
from csebench import plan as plans
from csebench.data import read_corpus, sha256
from csebench.errors import BadInput, RunFailed, explain, read_text, unknown
from csebench.papers import Recipe
from csebench.registry import COMPONENTS, EVALUATORS, METHODS, declaration, names
from csebench.run_folder import REPORT, finish, is_done
from csebench.schema import POOLERS, EncoderRef, Evaluation, Scale
from csebench.spec import TRAINER_VERSION, Spec


def main(argv: list[str] | None = None) -> int:
    gc.set_threshold(1_000_000)  # importing torch makes 640,000 objects and drops none, nor does any step of training
    try:
        args = parser().parse_args(argv)
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


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {text})")
    return number


def parser() -> Parser:
    top = Parser(prog="csebench", description=__doc__.splitlines()[0])
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
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)

    v = verb(
        "status", show_status, "how far the runs that targets need are: done, running, failed, hours spent and left"
    )
    v.add_argument("target", nargs="*", default=["all"], help="as of plan; all without it")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
    v.add_argument("--watch", nargs="?", type=positive, const=2, metavar="SECONDS", help="again every 2 seconds")

    v = verb("claims", list_claims, "what the papers say of their tables, on the printed numbers and on ours")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
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
    v.add_argument("--data", type=Path, help="the data root that was scored, for the figure of cosine against gold")
    v.add_argument("--out", type=Path, required=True, help="folder")

    v = verb("work", work, "train a planned run and score it, as the workflow does")
    v.add_argument("run_id")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
    v.add_argument("--processes", type=int, default=1, help="that share every batch, each on a GPU of its own")
    v.add_argument("--runs-per-gpu", type=positive, default=1, help="several seeds may share a GPU")
    v = verb("publish", publish, "scores of a finished run into results/, as the workflow does")
    v.add_argument("run_id")
    v.add_argument("evaluator")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
    v = verb("compare", compare, "which rows of a table differ, from the scores' per-item values")
    v.add_argument("target")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
    v = verb("render", render, "the page of a target from the scores there are; a figure's files to results/")
    v.add_argument("target", help="table2, micse/table2, micse/figure3, index, claims, audit")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)
    v.add_argument("--out", type=Path, help="print to the terminal without it")

    v = verb("html", site, "all results of a scale as a folder to be read in a browser")
    v.add_argument("--scale", default=plans.DEFAULT_SCALE)

    v = verb("fetch", fetch, "official data from their hub, checked")
    v.add_argument("source", help="wiki, nli, senteval, or a dataset of BEIR: beir:scifact")
    v.add_argument("--out", type=Path, required=True, help="data root")

    v = verb("back-translate", back_translate, "rewrite every sentence of a corpus by translating it there and back")
    v.add_argument("corpus", type=Path)
    v.add_argument("--translators", required=True, help="two MarianMT models, ID@COMMIT or folders, in one argument")
    v.add_argument("--out", type=Path, required=True)
    v.add_argument("--batch-size", type=positive, default=64)

    v = verb("pretrain", pretrain, "make a WordPiece vocabulary and a small BERT by masked LM")
    v.add_argument("corpus", type=Path)
    v.add_argument("--out", type=Path, required=True)
    v.add_argument("--steps", type=positive, required=True)
    for name, default in (("layers", 4), ("hidden", 256), ("heads", 4), ("vocab-size", 8192), ("batch-size", 96)):
        v.add_argument(f"--{name}", type=positive, default=default)
    v.add_argument("--learning-rate", type=float, default=1e-3)
    v.add_argument("--seed", type=int, default=42)
    v.add_argument("--threads", type=positive, default=2)
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
    papers = {name: plans.paper(name) for name in plans.paper_names()}
    rows = [[n, p.reference, ", ".join(p.tables), ", ".join(p.figures), len(p.claims)] for n, p in papers.items()]
    print(tabulate(rows, ["name", "paper", "tables", "figures", "claims"]))


def show(args):
    """All that goes by a name: miCSE is a method and a paper."""
    folders = [folder for folder in (METHODS, COMPONENTS, EVALUATORS) if args.name in names(folder)]
    for folder in folders:
        _show_declaration(declaration(args.name, folder))
    if args.name in plans.paper_names():
        _show_paper(plans.paper(args.name))
    elif not folders:
        known = [n for folder in (METHODS, COMPONENTS, EVALUATORS) for n in names(folder)]
        raise unknown("name", args.name, known + plans.paper_names())


def _show_paper(paper):
    found = {name: plans.find_grid(paper.name, name) for name in plans.grids(paper.name)}
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
    from csebench.forecast import show

    print(show(pages_of(args)))


def show_status(args):
    from csebench.status import show

    show(pages_of(args), args.watch)


def pages_of(args) -> list[plans.Page]:
    plans.scale(args.scale)
    return list({str(p.path): p for t in args.target for p in plans.parse_target(t, args.scale)}.values())


def list_claims(args):
    from csebench.claims import judge_all

    plans.scale(args.scale)
    rows = [[j.paper, j.place, j.claim.says, j.published.verdict, j.ours.verdict] for j in judge_all(args.scale)]
    head = ["paper", "place", "claim", "on the printed numbers", f"on ours, scale {args.scale}"]
    print(tabulate(rows, head, maxcolwidths=[None, None, 60, None, None]))


def list_findings(args):
    from csebench.audit import findings

    print(tabulate(findings(), ["paper", "place", "kind", "finding"], maxcolwidths=[None, None, None, 90]))


# ---------------------------------------------------------------- work


def train(args):
    if (args.spec is None) == (args.method is None):
        raise BadInput("train: give a spec (JSON file or text) or --method, not both.")
    spec = read_spec(args.spec) if args.spec else spec_from(args)
    if args.corpus is not None and spec.corpus is not None:
        read_corpus(args.corpus, spec.corpus.sha256, declaration(spec.method).corpus)  # before torch is imported
    with gpus.claimed():
        from csebench.trainer import train as run

        run(spec, args.out, args.corpus, root(args), positives=args.positives)
    print(f"{spec.run_id}: {args.out / 'model'}")


def read_spec(text: str) -> Spec:
    from pydantic import ValidationError

    where = "spec" if text.lstrip().startswith("{") else text
    content = text if where == "spec" else read_text(Path(text))
    try:
        spec = Spec.model_validate_json(content)
    except ValidationError as e:
        raise explain(e, where, Spec.model_fields) from None
    method, components = declaration(spec.method), {n: declaration(n, COMPONENTS) for n in spec.components}
    if (spec.corpus is None) == (method.kind in ("trained", "fitted")):
        raise BadInput(
            f"{where}: corpus: a method that is {method.kind} has {'one' if spec.corpus is None else 'none'}."
        )
    if (spec.dev_sha256 is None) == (method.kind == "trained"):
        raise BadInput(f"{where}: dev_sha256: what is trained has one, and nothing else has.")
    stated = {"method_version": (spec.method_version, method.version)}
    stated |= {"trainer_version": (spec.trainer_version, TRAINER_VERSION)}
    stated |= {f"components.{n}.version": (spec.components[n].version, c.version) for n, c in components.items()}
    for key, (given, there) in stated.items():
        if given != there:
            raise BadInput(f"{where}: {key}: is {given}, but this code has version {there}; check out the other one.")
    content = spec.model_dump()
    content["params"] = plans.typed(method, spec.params, f"{where}: params")
    for name, component in components.items():
        given = spec.components[name].params
        content["components"][name]["params"] = plans.typed(component, given, f"{where}: components")
    return Spec.model_validate(content)


def spec_from(args) -> Spec:
    from csebench.schema import Dataset

    if args.encoder is None:
        raise BadInput("train: --method needs --encoder.")
    params, components = {}, {name: {} for name in args.components}
    for setting in args.set:
        key, equals, given = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting}: write KEY=VALUE.")
        component, dot, inner = key.partition(".")
        target, key = (components.setdefault(component, {}), inner) if dot else (params, key)
        target[key] = given
    found = declaration(args.method)
    corpus = dev = None
    if found.kind in ("trained", "fitted"):
        if args.corpus is None:
            raise BadInput(f"train: method {args.method} needs --corpus FILE.")
        corpus = Dataset(path=args.corpus.name, sha256=sha256(args.corpus))
    if found.kind == "trained":
        dev = sha256(root(args) / "downstream/STS/STSBenchmark/sts-dev.csv")
    at = Scale(
        scale="command line",
        purpose="",
        corpus="",
        dev="",
        sizes={},
        seeds=[args.seed],
        encoders={},
        precision=args.precision,
        threads=args.threads,
    )
    if found.stages and params.get("pretraining") != "none":
        stage = found.stages[0]
        raise BadInput(
            f"train: {args.method} starts from a run of {stage}: `csebench train --method {stage} … --out DIR`"
            f" first, then --encoder DIR/model --set pretraining=none; without it, --set pretraining=none alone."
        )
    recipe = Recipe(method=args.method, variant=args.variant, params=params, components=components)
    size = args.size or (len(read_corpus(args.corpus, kind=found.corpus)) if corpus else 0)
    return plans.make_spec(recipe, at, encoder(args.encoder), size, args.seed, "--set", corpus, dev)


def encoder(name: str) -> EncoderRef:
    from csebench import ROOT

    known = [ref for p in (ROOT / "config").glob("*.yaml") for ref in plans.scale(p.stem).encoders.values()]
    for ref in known:
        if name in (ref.name, Path(ref.name).name):
            return ref
    if (Path(name) / "config.json").exists():
        return EncoderRef(name=name, revision=sha256(Path(name) / "model.safetensors"))
    if "@" in name:
        return EncoderRef.parse(name)
    raise unknown("encoder", name, {ref.name for ref in known} | {"ID@COMMIT of the hub", "a model folder"})


def root(args) -> Path:
    return args.data or plans.data_root(plans.scale("paper"))


def evaluate(args):
    from csebench.evaluate import evaluate as run

    if args.max_length is not None and args.max_length < 4:
        raise BadInput(f"--max-length {args.max_length}: must be at least 4.")
    settings = Evaluation(precision=args.precision, batch_size=args.batch_size, max_length=args.max_length)
    with gpus.claimed():
        result = run(args.model, args.evaluators.split(","), root(args), args.out, args.pooler, settings)
    shown = [s for s in result["scores"] if s["subset"] in ("all", "printed")]
    rows = [[s["evaluator"], s["task"], s["subset"], s["metric"], s["value"], s["protocol"]] for s in shown]
    print(tabulate(rows, ["evaluator", "task", "subset", "metric", "value", "protocol"], floatfmt=".4f"))
    timings = [[name, *own.values()] for name, own in result["timings"].items()]
    print("\n" + tabulate(timings, ["evaluator", "embedding, s", "scoring, s", "sentences embedded"], floatfmt=".1f"))


def list_sentences(args):
    from csebench.evaluate import sentences

    found = sentences(args.evaluators.split(","), root(args))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("".join(json.dumps(s, ensure_ascii=False) + "\n" for s in found), encoding="utf-8")
    print(f"{len(found)} sentences, a JSON string a line: {args.out}")


def plot(args):
    from csebench.plots import plot as run

    for path in run(args.scores, args.out, args.data):
        print(path)


def work(args):
    planned = kept_plan.find(args.run_id, args.scale)  # refuses before anything is waited for
    alone = "WORLD_SIZE" not in os.environ
    if (plans.RUNS / args.run_id / "model" / REPORT).exists():
        return _work(args, *planned)  # where only a score that is missing waits for a GPU
    with gpus.claimed(max(1, args.processes), args.runs_per_gpu):
        if args.processes > 1 and alone:
            torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={args.processes}", "-m"]
            command = [sys.executable, "-m", *torchrun, "csebench", "work", args.run_id, "--scale", args.scale]
            os.execv(sys.executable, command)
        _work(args, *planned)


def _work(args, spec: Spec, at: Scale, evaluators: list[str]):
    from csebench.progress import Progress

    folder, data = plans.RUNS / args.run_id, plans.data_root(at)
    with Progress(folder, args.run_id):
        from csebench.evaluate import evaluate_run, has_data

        if is_done(folder, spec):  # then torch need not be imported
            finish(folder)
        else:
            from csebench.trainer import train as run

            run(spec, folder, plans.corpus_path(spec, at), data, positives=plans.positives_path(spec))
        if os.environ.get("RANK", "0") != "0":  # of several processes the first scores
            return
        wanted = [e for e in evaluators if has_data(e, data)]
        evaluate_run(folder, wanted, data, at.evaluation, args.runs_per_gpu)


def publish(args):
    from csebench.evaluate import publish as run

    _, at, _ = kept_plan.find(args.run_id, args.scale)
    out = plans.score_path(args.run_id, args.evaluator, at.scale)
    run(plans.RUNS / args.run_id, args.evaluator, plans.data_root(at), at.evaluation, out)


def compare(args):
    from csebench.compare import compare as run

    (page,) = plans.parse_target(args.target, args.scale)
    for paper, name in page.grids():
        print(run(paper, name, page.scale))


def render(args):
    """Pages to the terminal or to --out; a figure's files to their place in results/."""
    from csebench.reports import REPORTS
    from csebench.store import write_csv

    plans.scale(args.scale)
    if args.target in REPORTS:
        return show_or_write(REPORTS[args.target](args.scale), args.out)
    pages = plans.parse_target(args.target, args.scale)
    if args.out is not None and len(pages) > 1:
        raise BadInput(f"render: {args.target} is {len(pages)} pages, --out is one file; use snakemake for all.")
    for page in pages:
        if page.path.suffix == ".svg":
            if args.out is not None:
                raise BadInput(
                    f"render: {args.target} is a figure, whose files go to {page.path.parent}/; leave --out."
                )
            from csebench.figures import draw

            print(*draw(*page.grids()[0], page.scale), sep="\n")
        else:
            from csebench.render import render as page_text

            show_or_write(page_text(page), args.out)
            if args.out is not None:
                write_csv(page.scale)
    return None


def show_or_write(text: str, out: Path | None):
    if out is None:
        print(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(out)


def site(args):
    from csebench.html import site as write

    plans.scale(args.scale)
    print(write(args.scale))


def fetch(args):
    from csebench.fetch import sources

    if args.source not in sources():
        raise unknown("source", args.source, sources())
    sources()[args.source](args.out)


def back_translate(args):
    read_text(args.corpus)
    with gpus.claimed():
        from csebench.translate import back_translate as run

        run(args.corpus, args.out, args.translators, args.batch_size)


def pretrain(args):
    read_text(args.corpus)
    settings = {k: v for k, v in vars(args).items() if k not in ("run", "corpus", "out")}
    with gpus.claimed():
        from csebench.pretrain import pretrain as run

        run(args.corpus, args.out, name=args.out.name, **settings)


if __name__ == "__main__":
    sys.exit(main())
