"""The parser: every verb with its arguments, their texts and defaults, and an example."""

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field

from csebench.base.errors import BadInput, unknown
from csebench.base.project import ROOT, __version__
from csebench.cli import inspect, new, plan, report, run, show, status
from csebench.cli.options import (
    described_names,
    number_type,
    output_file,
    output_folder,
    paper_and_grid_names,
    pooler,
    whole,
)
from csebench.plan import tuning
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import EVALUATORS, METHODS, adapter_names
from csebench.plan.schema.declarations import POOLERS, BatchSize, Precision, Seed, Threads

DESCRIPTION = """\
Re-run the experiments behind the tables of four papers on unsupervised sentence embeddings, and compare the results.
Each verb also works without Snakemake; `csebench VERB --help` lists its options."""  # noqa: E501
NEXT = """), for example
  csebench claims micse           is what a paper says supported?
  csebench show micse/table2      a table, method, evaluator or run
  csebench compare micse/table2   do its rows differ?
  csebench plan micse/table2      runs and hours that it takes
(more: docs/tutorial.md"""
COMPLETION = (
    'Completion of verbs, options and names in bash or zsh: eval "$(register-python-argcomplete'
    ' csebench)"'
)
SCALE = catalog.DEFAULT_SCALE  # of verbs that plan or run
AS_WRITTEN = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
    def add_argument(self, *flags, **options):
        """Adds the default to the text of an option that has one and does not state it."""
        added = super().add_argument(*flags, **options)
        has_one = (
            added.option_strings
            and not added.required
            and added.default not in (None, [], argparse.SUPPRESS)
        )
        if has_one and "(default: " not in (added.help or ""):
            added.help = f"{added.help} (default: %(default)s)"
        return added

    def error(self, message):
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)$", message)
        if choice:
            argument, given, known = choice.groups()
            known = re.findall(r"[^\s,']+", known)
            kind = argument.lower()  # `VERB`, as the help has it
            message = str(unknown(kind, given, known, hint=f"Known: {', '.join(known)}."))
        example = NEXT if message.endswith(" VERB") else ""
        raise BadInput(f"{message} ({self.prog} --help{example})")


def study() -> str:
    """The scale of verbs that read results: that with published ones, where there is one."""
    return "mini" if "mini" in catalog.scale_names() else SCALE


def parser() -> Parser:
    top = Parser(
        prog="csebench", description=DESCRIPTION, epilog=COMPLETION, formatter_class=AS_WRITTEN
    )
    top.add_argument(
        "--version", action="version", version=f"csebench {__version__}", help="show the version"
    )
    verbs = top.add_subparsers(required=True, metavar="VERB", title="verbs")

    def verb(
        name, function, about, *examples, targets=None, scale=None, json=False, device=False
    ) -> Parser:
        """Add a verb with `examples` of what follows it, the `nargs` of its targets, the default
        of its `--scale`."""
        examples = [f"csebench {name} {words}".rstrip() for words in examples]
        epilog = "\n  ".join(["examples:", *examples])
        added = verbs.add_parser(
            name, help=about, description=about, epilog=epilog, formatter_class=AS_WRITTEN
        )
        added.set_defaults(run=function, examples=examples)
        text = (
            "folder with methods, papers, scales … of your own, which takes runs and results; may"
            " be repeated"
        )
        # read before the others (cli/__init__.py)
        added.add_argument("--project", metavar="DIR", help=text)
        if targets:
            text = (
                "all, a paper (micse), a table or figure (table2, micse/table2), or the path of a"
                " page"
            )
            add_completed(added, target_names, "target", nargs=targets, default=["all"], help=text)
        if scale:
            add_completed(
                added,
                catalog.scale_names,
                "--scale",
                default=scale,
                help="name of a file in config/",
            )
        if json:
            added.add_argument("--json", action="store_true", help="print JSON in place of tables")
        if device:
            added.add_argument(
                "--device",
                choices=["cpu"],
                help="use no GPU (default: wait for one, if there is any)",
            )
        return added

    add_look(verb)
    add_run(verb)
    add_report(verb)
    add_data(verb)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        with contextlib.suppress(ImportError):
            import argcomplete  # pyright: ignore[reportMissingImports]

            argcomplete.autocomplete(top)
    return top


def add_completed(to: Parser, known: Callable[[], Iterable[str]], *flags, **more):
    """Add an argument whose values the shell completes."""
    added: Any = to.add_argument(*flags, **more)
    added.completer = lambda **_: known()


def target_names() -> list[str]:
    return ["all", *catalog.GENERATED, *paper_and_grid_names()]


def add_look(verb):
    verb("methods", inspect.list_methods, "list methods and components", "", json=True)
    verb(
        "evaluators",
        inspect.list_evaluators,
        "list evaluators, with their tasks and needs",
        "--json",
        json=True,
    )
    verb("papers", inspect.list_papers, "list papers, with their tables and figures", "", json=True)

    about = "show everything about a method, component, evaluator, paper, table or run"
    cell = "micse/table2 --row miCSE --column 1%"
    v = verb(
        "show",
        show.show_name,
        about,
        "micse",
        "micse/table2",
        "beir:scifact",
        cell,
        scale=study(),
        json=True,
    )
    add_completed(
        v,
        described_names,
        "name",
        help="a name that methods, evaluators, papers or plan --runs list",
    )
    v.add_argument(
        "--row",
        metavar="LABEL",
        help="with a table or figure: show what is behind the cells of a row",
    )
    v.add_argument("--column", metavar="LABEL", help="only the cell in this column")

    about, examples = "forecast runs and hours of targets", ("micse/table2", "all --scale paper")
    v = verb("plan", plan.show_plan, about, *examples, targets="+", scale=SCALE, json=True)
    v.add_argument("--device", help="name in data/step_times.yaml (default: the fastest)")
    v.add_argument("--runs", action="store_true", help="list the runs too")

    about = "show the state of the runs of targets, and the hours spent"
    verb("status", status.show_status, about, "", "micse", targets="*", scale=SCALE, json=True)

    about = (
        "list the seeds that comparisons of tables need; `claims`: whether each claim can be tested"
        " at all"
    )
    example = "micse/table2 --difference 0.5"
    v = verb("power", inspect.show_power, about, example, targets="+", scale="paper", json=True)
    points = "difference between two rows, in points (default: the printed one)"
    above_zero = number_type(Annotated[float, Field(gt=0, allow_inf_nan=False)])
    v.add_argument("--difference", type=above_zero, metavar="POINTS", help=points)

    about = "list claims of the papers, judged on the printed numbers and on our runs"
    verb(
        "claims", inspect.list_claims, about, "micse/table2", targets="*", scale=study(), json=True
    )

    about = "list inconsistencies in the published tables"
    v = verb("audit", inspect.list_findings, about, "micse", targets="*", json=True)
    v.set_defaults(scale=SCALE)  # of no meaning to printed numbers


def add_run(verb):
    v = verb(
        "init",
        new.init,
        "make a folder for methods, papers, scales … and results of your own",
        "work",
    )
    v.add_argument(
        "folder", type=output_folder, metavar="DIR", help="the folder; what is there stays"
    )
    verb(
        "snakefile",
        lambda _: print(ROOT / "Snakefile"),
        "print the path of the workflow, for snakemake -s",
        "",
    )

    about = "write a file of your own that works at once: a method, component, evaluator or paper"
    v = verb("new", new.new, about, "method mine", "paper mine --from table.tsv")
    v.add_argument("kind", choices=new.FILE_TEMPLATES, help="what the file is")
    v.add_argument("name", type=new.file_name, help="its name: small letters, digits and _")
    v.add_argument(
        "--from", dest="table", type=Path, metavar="TABLE.tsv", help="table of a paper, as pasted"
    )

    about = "train one run, from a spec or from options"
    short = "--method simcse --encoder bert-mini-wiki --corpus sentences.txt --out runs/mine"
    long = "--method simcse --with ami --set steps=20 ami.weight=1e-3 --encoder bert-mini-wiki"
    long += " --corpus data/smoke/wiki/smoke.txt --data data/smoke --out runs/mine"
    v = verb("train", run.train, about, short, long, device=True)
    described: Any = v.add_mutually_exclusive_group(required=True)
    described.add_argument(
        "spec", nargs="?", help="JSON file or JSON text, without the options below"
    )
    add_completed(described, lambda: adapter_names(METHODS), "--method", help="name of a method")
    v.add_argument("--variant", help="variant of the method (default: its declared settings)")
    v.add_argument(
        "--with",
        dest="components",
        action="append",
        default=[],
        help="a component; may be repeated",
    )
    hyper_parameter = (
        "hyper-parameter of the method (learning_rate=3e-5) or of a component (ami.weight=0.01)"
    )
    v.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=hyper_parameter
    )
    v.add_argument(
        "--encoder", help="name in config/, model of the hub as ID@COMMIT, or folder (./NAME)"
    )
    v.add_argument(
        "--corpus",
        type=Path,
        help="one sentence per line; for a supervised method a CSV file of triplets",
    )
    v.add_argument(
        "--positives", type=Path, help="back-translated corpus, for a method that needs one"
    )
    v.add_argument(
        "--size", type=whole(2, 10**12), help="sentences to draw from the corpus (default: all)"
    )
    v.add_argument(
        "--seed", type=number_type(Seed), default=42, help="seed of sampling and training"
    )
    v.add_argument("--precision", choices=get_args(Precision), default="fp32", help="of training")
    v.add_argument("--threads", type=number_type(Threads), default=1, help="CPU threads")
    add_chunk_size(v)
    add_benchmarks(v)
    add_out(v, "folder of the run; the model is in OUT/model", output_folder)

    example = "--model encoders/bert-mini-wiki --pooler avg --data data/smoke --out scores.json"
    v = verb(
        "evaluate", run.evaluate, "score an encoder of any origin", example, json=True, device=True
    )
    v.add_argument(
        "--model",
        required=True,
        help="folder (./NAME), run id, encoder of config/, or hub id (ID@COMMIT)",
    )
    v.add_argument(
        "--pooler",
        type=pooler,
        choices=POOLERS,
        help="pooling of token vectors (default: the model's)",
    )
    add_completed(
        v,
        lambda: adapter_names(EVALUATORS),
        "--evaluators",
        default="sts",
        help="as in sts,transfer,beir:scifact",
    )
    v.add_argument(
        "--max-length",
        type=whole(4, 2**20),
        help="tokens per sentence (default: the encoder's maximum)",
    )
    add_benchmarks(v)
    v.add_argument("--precision", choices=get_args(Precision), default="fp32", help="of embedding")
    v.add_argument(
        "--batch-size", type=number_type(BatchSize), default=128, help="sentences per batch"
    )
    add_out(v, "JSON file of scores; per-item values go into FILE.items.npz beside it")

    v = verb(
        "work",
        run.work,
        "train and score a planned run",
        "RUN --scale mini",
        scale=SCALE,
        device=True,
    )
    v.add_argument("run_id", help="id of a run (list them: csebench plan --runs)")
    v.add_argument(
        "--processes",
        type=whole(0, 64),
        default=0,
        help="GPUs that share each batch; 0: one, or the CPU",
    )
    v.add_argument("--runs-per-gpu", type=whole(1), default=1, help="runs that may share a GPU")
    v.add_argument(
        "--attempt",
        type=whole(1),
        default=1,
        help="later ones repeat no run that its own settings ended",
    )
    add_chunk_size(v)
    v.add_argument(
        "--evaluators",
        help="comma-separated: score with these only (default: with all that pages show)",
    )

    about = "search for the settings of methods on STS-B dev"
    v = verb("tune", run.tune, about, "simcse ct+ami --scale mini", scale=SCALE, device=True)
    add_completed(
        v, tuning.tunable, "method", nargs="+", help="a method, also with components, as in ct+ami"
    )
    v.add_argument(
        "--trials",
        type=whole(1),
        help="at most; the first has the scale's settings (default: all values)",
    )

    about = (
        "compare a method or component of your own with others: search, train, score, and say what"
        " it shows"
    )
    v = verb(
        "try",
        run.try_method,
        about,
        "methods/mine.py --plan",
        "methods/mine.py",
        scale=study(),
        json=True,
    )
    v.add_argument(
        "file", type=Path, help="in a folder methods/, or methods/components/ with --component"
    )
    hosts = "methods to compare with; with --component those that it is plugged into"
    add_completed(
        v,
        lambda: adapter_names(METHODS),
        "--against",
        default="simcse",
        metavar="NAMES",
        help=hosts,
    )
    v.add_argument("--component", action="store_true", help="the file is a component")
    v.add_argument("--seeds", type=whole(1, 100), default=5, help="runs of each row")
    v.add_argument(
        "--trials", type=whole(1), help="of its search (default: as many as the others had)"
    )
    v.add_argument("--evaluators", default="sts", help="comma-separated; a table for each")
    v.add_argument("--plan", action="store_true", help="say what it costs, and stop")

    about = "copy the scores of a finished run into results/, as a job of the workflow does"
    v = verb(
        "publish", run.publish, about, "RUN beir:scifact --scale mini", scale=SCALE, device=True
    )
    v.add_argument("run_id", help="id of a run (list them: csebench plan --runs)")
    v.add_argument("evaluator", help="an evaluator with its settings, as in beir:scifact")

    about = "delete the models of runs whose scores are all published"
    verb("prune", run.prune, about, "micse --scale mini", targets="*", scale=SCALE)


def add_report(verb):
    about = "compare rows of a table, over seeds and test items"
    examples = ("micse/table2", "micse/table2 miCSE AMI+SimCSE")
    v = verb("compare", report.compare_rows, about, *examples, targets=1, scale=study(), json=True)
    v.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help="two rows (default: the comparisons that are declared)",
    )

    about = "render a page from the scores that exist; a figure is drawn into results/"
    v = verb(
        "render",
        report.render,
        about,
        "micse/table2 --scale mini",
        "claims --out claims.md",
        scale=SCALE,
    )
    add_completed(
        v,
        target_names,
        "target",
        help="table2, micse/table2, micse/figure3, index, claims, audit, …",
    )
    v.add_argument("--out", type=output_file, help="file of the page (default: print it)")
    v.add_argument(
        "--format",
        choices=("markdown", "latex", "csv", "json"),
        default="markdown",
        help="of the tables",
    )
    v.add_argument(
        "--check",
        action="store_true",
        help="with all: compare with what is there, and write nothing",
    )

    verb(
        "csv",
        report.write_csv,
        "write scores, cells and comparisons as CSV files",
        "--scale mini",
        scale=SCALE,
    )
    verb(
        "html",
        report.write_html,
        "write documentation and results as a site",
        "--scale mini",
        scale=SCALE,
    )


def add_data(verb):
    about = (
        "list the models and data that targets need, with their sizes, and whether they can be had"
    )
    verb(
        "check",
        run.check,
        about,
        "micse/table2 --scale paper",
        targets="*",
        scale="paper",
        json=True,
    )

    about = "download official data and check it, or all models and data that a target needs"
    v = verb("fetch", run.fetch, about, "senteval", "micse/table2 --scale paper", scale="paper")
    v.add_argument(
        "source", help="wiki, nli, senteval, imdb, stackoverflow, beir:scifact …, or a target"
    )
    v.add_argument(
        "--out", type=output_folder, default=Path(catalog.FETCHED), help="folder of a source"
    )

    about = "translate every sentence of a corpus to another language and back"
    example = "corpus.txt --translators 'models/en-de models/de-en' --out translated.txt"
    v = verb("back-translate", run.back_translate, about, example, device=True)
    v.add_argument("corpus", type=Path, help="one sentence per line")
    v.add_argument(
        "--translators",
        required=True,
        help="two MarianMT models, ID@COMMIT or folders, in one argument",
    )
    add_out(v, "file of the translated sentences")
    v.add_argument(
        "--batch-size", type=number_type(BatchSize), default=64, help="sentences per batch"
    )


# ---------------------------------------------------------------- options of several verbs


def add_out(to, text, kind=output_file):
    to.add_argument("--out", type=kind, required=True, help=text)


def add_benchmarks(to):
    to.add_argument(
        "--data",
        type=Path,
        help="folder of benchmark data (default: CSEBENCH_DATA, else fetched data)",
    )


def add_chunk_size(to):
    to.add_argument(
        "--chunk-size", type=whole(0), default=0, help="sentences in memory at a time; 0: the batch"
    )
