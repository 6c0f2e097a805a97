"""The parser of the command line: every verb with its arguments, their help and an example.

What a verb does is in the module of its group, such as run.py. GROUPS has the order in which
`csebench --help` lists the verbs.
"""

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
from csebench.base.trackers import TRACKERS
from csebench.cli import (
    exchange,
    export,
    inspect,
    judge,
    new,
    plan,
    report,
    run,
    show,
    status,
    train_options,
)
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
from csebench.study.attempt import SEEDS_OF_A_ROW, SETTINGS
from csebench.study.attempt_results import MOST_SEEDS

DESCRIPTION = """\
Re-run the experiments behind the tables of four papers on unsupervised
sentence embeddings, and compare the results. Each verb also works without
Snakemake; `csebench VERB --help` lists its options."""
GROUPS = {  # the verbs as `csebench --help` lists them
    "What the papers print": ("claims", "audit"),
    "Rerun": ("plan", "power", "check", "fetch", "status"),
    "Your own method": ("init", "new", "try"),
    "Judge results": ("compare", "judge"),
    "Exchange results": ("report", "import", "export", "push"),
    "One run or model": ("train", "evaluate", "back-translate"),
    "Steps of the workflow": (
        "tune",
        "work",
        "publish",
        "render",
        "csv",
        "html",
        "prune",
        "snakefile",
    ),
    "Reference": ("show", "papers", "methods", "evaluators"),
}
# the end of a message without a verb; `Parser.error` puts it between the parentheses
NEXT = """), for example
  csebench claims micse           is what a paper says supported?
  csebench show micse/table2      a table, method, evaluator or run
  csebench compare micse/table2   do its rows differ?
  csebench plan micse/table2      runs and hours that it takes
(more: docs/tutorial.md"""
COMPLETION = """\
Completion of verbs, options and names in bash or zsh:
  eval "$(register-python-argcomplete csebench)\""""
PROJECT = "folder with your own methods, papers, scales …; it gets the results; may be repeated"
TARGET = "all, a paper (micse), a table or figure (table2, micse/table2), or the path of a page"
SCALE = catalog.DEFAULT_SCALE  # default of verbs that plan or run


class Parser(argparse.ArgumentParser):
    """A parser that shows defaults, and raises BadInput instead of ending the process."""

    def add_argument(self, *flags, **options):
        """Add an argument. The help of an option with a value ends with its default, if any."""
        added = super().add_argument(*flags, **options)
        is_switch = added.nargs == 0  # its default goes without saying
        is_option = bool(added.option_strings) and not added.required and not is_switch
        has_default = added.default not in (None, [], argparse.SUPPRESS)
        if is_option and has_default and "(default: " not in (added.help or ""):
            added.help = f"{added.help} (default: %(default)s)"
        return added

    def error(self, message):
        """Raise BadInput, with the nearest name for a choice that does not exist."""
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)$", message)
        if choice is not None:
            argument, given, choices = choice.groups()
            known = re.findall(r"[^\s,']+", choices)
            kind = argument.lower()  # the help has `VERB`
            message = str(unknown(kind, given, known, hint=f"Known: {', '.join(known)}."))
        remedy = f"{self.prog} --help"
        if message.endswith(" VERB"):  # no verb was given
            remedy += NEXT
        raise BadInput(f"{message} ({remedy})")


def parser() -> Parser:
    """Make the parser of `csebench`.

    It offers the methods, papers … of the folders that are joined at the time of the call.
    """
    top = Parser(
        prog="csebench",
        usage="csebench [-h] [--version] VERB ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--version", action="version", version=f"csebench {__version__}", help="show the version"
    )
    # no help here: the description lists the verbs, because argparse cannot list them in groups
    verbs = top.add_subparsers(
        required=True, metavar="VERB", prog="csebench", help=argparse.SUPPRESS
    )
    add_listing_verbs(verbs)
    add_verbs_of_own_files(verbs)
    add_train(verbs)
    add_evaluate(verbs)
    add_work(verbs)
    add_tune(verbs)
    add_try(verbs)
    add_publish_and_prune(verbs)
    add_report_verbs(verbs)
    add_exchange_verbs(verbs)
    add_export(verbs)
    add_push(verbs)
    add_data_verbs(verbs)
    top.description = f"{DESCRIPTION}\n\n{grouped_verbs(verbs)}"
    top.epilog = COMPLETION
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        with contextlib.suppress(ImportError):
            import argcomplete  # pyright: ignore[reportMissingImports]

            argcomplete.autocomplete(top)
    return top


def grouped_verbs(verbs) -> str:
    """List the verbs by group, with a line about each of them."""
    abouts = {choice.dest: choice.help for choice in verbs._choices_actions}
    width = max(map(len, abouts))
    parts = []
    for title, names in GROUPS.items():
        lines = [f"{title}:"]
        for name in names:
            lines.append(f"  {name:{width}}  {abouts[name]}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def add_verb(
    verbs,
    name: str,
    function: Callable,
    about: str,
    *examples: str,
    targets: int | str | None = None,
    scale: str | None = None,
    json: bool = False,
    device: bool = False,
    runs_models: bool = False,
) -> Parser:
    """Add a verb, with the options that several verbs have.

    Args:
        function: called with the parsed arguments.
        about: help of the verb.
        examples: words that may follow the verb on a command line.
        targets: `nargs` of the targets. None means that the verb takes none.
        scale: default of --scale. None means that the verb has no such option.
        json: whether the verb has --json.
        device: whether the verb has --device.
        runs_models: whether the verb needs the extra `run`, because it trains or scores.
    """
    commands = [f"csebench {name} {words}".rstrip() for words in examples]
    added = verbs.add_parser(
        name,
        help=about,
        description=about,
        epilog="\n  ".join(["examples:", *commands]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.set_defaults(run=function, verb=name, runs_models=runs_models, examples=commands)
    # only for the help: `join_folders` in cli/__init__.py has taken it from the command line
    added.add_argument("--project", metavar="DIR", help=PROJECT)
    if targets is not None:
        add_completed(added, target_names, "target", nargs=targets, default=["all"], help=TARGET)
    if scale is not None:
        add_completed(
            added,
            catalog.scale_names,
            "--scale",
            default=scale,
            help="name of a file in config/",
        )
    if json:
        added.add_argument("--json", action="store_true", help="print JSON instead of tables")
    if device:
        added.add_argument(
            "--device",
            choices=["cpu"],
            help="use no GPU (default: wait for one, if there is any)",
        )
    return added


def add_completed(to: Parser, known: Callable[[], Iterable[str]], *flags, **options) -> None:
    """Add an argument whose values the shell completes."""
    added: Any = to.add_argument(*flags, **options)
    added.completer = lambda **_: known()


def target_names() -> list[str]:
    """List the targets that a shell offers."""
    return ["all", *catalog.GENERATED, *paper_and_grid_names()]


def method_names() -> list[str]:
    return adapter_names(METHODS)


def evaluator_names() -> list[str]:
    return adapter_names(EVALUATORS)


# ---------------------------------------------------------------- verbs that list


def add_listing_verbs(verbs):
    about = "list methods and components"
    v = add_verb(verbs, "methods", inspect.list_methods, about, "", json=True)
    add_limit(v)
    about = "list evaluators, with their tasks and needs"
    add_verb(verbs, "evaluators", inspect.list_evaluators, about, "--json", json=True)
    about = "list papers, with their tables and figures"
    add_verb(verbs, "papers", inspect.list_papers, about, "", json=True)

    about = "describe a method, component, evaluator, paper, table or run"
    examples = ("micse", "micse/table2", "beir:scifact", "micse/table2 --row miCSE --column 1%")
    v = add_verb(
        verbs,
        "show",
        show.show_name,
        about,
        *examples,
        scale=catalog.scale_with_results(),
        json=True,
    )
    text = "a name that methods, evaluators, papers or plan --runs list"
    add_completed(v, described_names, "name", help=text)
    text = "show the values and runs behind the cells of this row of a table or figure"
    v.add_argument("--row", metavar="LABEL", help=text)
    v.add_argument("--column", metavar="LABEL", help="show only the cells in this column")

    about = "forecast runs and hours of targets"
    examples = ("micse/table2", "all --scale paper")
    v = add_verb(
        verbs, "plan", plan.show_plan, about, *examples, targets="+", scale=SCALE, json=True
    )
    text = "name of a device in data/step_times.yaml (default: the fastest)"
    v.add_argument("--device", help=text)
    v.add_argument("--runs", action="store_true", help="list the runs, too")
    add_limit(v, "with --runs or --json: ")

    about = "show the state of the runs of targets, and the hours spent"
    examples = ("", "micse")
    v = add_verb(
        verbs, "status", status.show_status, about, *examples, targets="*", scale=SCALE, json=True
    )
    add_limit(v)

    about = "show how many seeds comparisons of tables, or claims, need"
    examples = ("micse/table2 --difference 0.5", "claims")
    v = add_verb(
        verbs, "power", inspect.show_power, about, *examples, targets="+", scale="paper", json=True
    )
    text = "difference between two rows, in points (default: the printed one)"
    above_zero = number_type(Annotated[float, Field(gt=0, allow_inf_nan=False)])
    v.add_argument("--difference", type=above_zero, metavar="POINTS", help=text)
    add_limit(v)

    about = "judge the papers' claims by printed numbers and by our runs"
    v = add_verb(
        verbs,
        "claims",
        inspect.list_claims,
        about,
        "micse/table2",
        targets="*",
        scale=catalog.scale_with_results(),
        json=True,
    )
    add_limit(v)

    about = "list inconsistencies in the papers"
    v = add_verb(verbs, "audit", inspect.list_findings, about, "micse", targets="*", json=True)
    add_limit(v)
    v.set_defaults(scale=SCALE)  # targets are read at a scale, but printed numbers have none


# ---------------------------------------------------------------- folders and files of one's own


def add_verbs_of_own_files(verbs):
    about = "make a folder for your own methods, papers … and results"
    v = add_verb(verbs, "init", new.init, about, "work")
    text = "the folder; files that are there stay"
    v.add_argument("folder", type=output_folder, metavar="DIR", help=text)

    about = "print the path of the workflow, for snakemake -s"
    add_verb(verbs, "snakefile", lambda _: print(ROOT / "Snakefile"), about, "")

    about = "write a method, component, evaluator or paper to start from"
    v = add_verb(verbs, "new", new.new, about, "method mine", "paper mine --from table.tsv")
    v.add_argument("kind", choices=new.FILE_TEMPLATES, help="what the file is")
    v.add_argument("name", type=new.file_name, help="its name: small letters, digits and _")
    text = "file with the tables of a paper, as pasted"
    v.add_argument("--from", dest="table", type=Path, metavar="TABLE.tsv", help=text)


# ---------------------------------------------------------------- single runs and encoders


def add_train(verbs):
    about = "train one run, from a spec or from options"
    short = "--method simcse --encoder bert-mini-wiki --corpus sentences.txt --out runs/mine"
    long = (
        "--method simcse --with ami --set steps=20 ami.weight=1e-3 --encoder bert-mini-wiki"
        " --corpus data/smoke/wiki/smoke.txt --data data/smoke --out runs/mine"
    )
    v = add_verb(verbs, "train", run.train, about, short, long, device=True, runs_models=True)
    described: Any = v.add_mutually_exclusive_group(required=True)
    text = "JSON file or JSON text that describes the run, instead of --method and its options"
    described.add_argument("spec", nargs="?", help=text)
    add_completed(described, method_names, "--method", help="name of a method")
    text = "variant of the method (default: its declared settings)"
    v.add_argument("--variant", help=text)
    text = "add a component; may be repeated"
    v.add_argument("--with", dest="components", action="append", default=[], help=text)
    text = (
        "set hyper-parameters of the method (learning_rate=3e-5) or of a component"
        " (ami.weight=0.01)"
    )
    v.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=text)
    text = "name in config/, model of the hub as ID@COMMIT, or folder (./NAME)"
    v.add_argument("--encoder", help=text)
    text = "one sentence per line; for a supervised method a CSV file of triplets"
    v.add_argument("--corpus", type=Path, help=text)
    text = "back-translated corpus, for a method that needs one"
    v.add_argument("--positives", type=Path, help=text)
    text = "sentences to draw from the corpus (default: all)"
    v.add_argument("--size", type=whole(2, 10**12), help=text)
    text = f"seed of sampling and training (default: {train_options.SEED})"
    v.add_argument("--seed", type=number_type(Seed), help=text)
    text = "number format of training (default: fp32)"
    v.add_argument("--precision", choices=get_args(Precision), help=text)
    v.add_argument("--threads", type=number_type(Threads), help="CPU threads (default: 1)")
    add_chunk_size(v)
    text = "show the run in a tracker while it trains, too; OUT/log.jsonl has the same numbers"
    v.add_argument("--log-to", choices=TRACKERS, help=text)
    add_data_folder(v)
    add_out(v, "folder of the run; the model goes to OUT/model", output_folder)


def add_evaluate(verbs):
    about = "score an encoder of any origin"
    example = "--model encoders/bert-mini-wiki --pooler avg --data data/smoke --out scores.json"
    v = add_verb(
        verbs,
        "evaluate",
        run.evaluate,
        about,
        example,
        json=True,
        device=True,
        runs_models=True,
    )
    text = "folder (./NAME), run id, encoder of config/, or hub id (ID@COMMIT)"
    v.add_argument("--model", required=True, help=text)
    text = "pooling of token vectors (default: the model's)"
    v.add_argument("--pooler", type=pooler, choices=POOLERS, help=text)
    text = "comma-separated, as in sts,transfer,beir:scifact"
    add_completed(v, evaluator_names, "--evaluators", default="sts", help=text)
    text = "tokens per sentence, with the template of last_eol (default: the encoder's maximum)"
    v.add_argument("--max-length", type=whole(4, 2**20), help=text)
    add_data_folder(v)
    add_precision(v, "number format of embedding")
    add_batch_size(v, 128)
    add_out(v, "JSON file of scores; values of single items go to FILE.items.npz beside it")


# ---------------------------------------------------------------- planned runs


def add_work(verbs):
    about = "train and score a planned run"
    v = add_verb(
        verbs,
        "work",
        run.work,
        about,
        "RUN --scale mini",
        scale=SCALE,
        device=True,
        runs_models=True,
    )
    add_run_id(v)
    text = "number of GPUs that share each batch; 0: one GPU, or the CPU"
    v.add_argument("--processes", type=whole(0, 64), default=0, help=text)
    text = "number of runs that may share a GPU"
    v.add_argument("--runs-per-gpu", type=whole(1), default=1, help=text)
    text = "retry number; retries skip runs that failed because of their own settings"
    v.add_argument("--attempt", type=whole(1), default=1, help=text)
    add_chunk_size(v)
    text = "comma-separated; score with these only (default: with all that pages show)"
    v.add_argument("--evaluators", help=text)


def add_tune(verbs):
    about = "search for the settings of methods on STS-B dev"
    v = add_verb(
        verbs,
        "tune",
        run.tune,
        about,
        "simcse ct+ami --scale mini",
        scale=SCALE,
        device=True,
        runs_models=True,
    )
    text = "a method, also with components, as in ct+ami"
    add_completed(v, tuning.tunable, "method", nargs="+", help=text)
    text = "largest number of trials; the first has the scale's settings (default: all values)"
    v.add_argument("--trials", type=whole(1), help=text)


def add_try(verbs):
    about = "search, train and score your own method, and compare it"
    examples = ("methods/mine.py --plan", "methods/mine.py")
    v = add_verb(verbs, "try", run.try_method, about, *examples, json=True, runs_models=True)
    text = "name of a file in config/ (default: small if the hub can be reached, else mini)"
    add_completed(v, catalog.scale_names, "--scale", help=text)
    text = "file in a folder methods/, or in methods/components/ with --component"
    v.add_argument("file", type=Path, help=text)
    text = "methods to compare with; a component is plugged into each of them"
    add_completed(v, method_names, "--against", default="simcse", metavar="NAMES", help=text)
    v.add_argument("--component", action="store_true", help="the file is a component")
    text = "random settings that both rows are run at; 1: the settings of one search"
    v.add_argument("--settings", type=whole(1, MOST_SEEDS), default=SETTINGS, help=text)
    text = f"with --settings 1: runs of each row (default: {SEEDS_OF_A_ROW})"
    v.add_argument("--seeds", type=whole(1, MOST_SEEDS), help=text)
    text = "with --settings 1: trials of its search (default: as many as the others had)"
    v.add_argument("--trials", type=whole(1), help=text)
    text = "comma-separated; each has a table of its own"
    v.add_argument("--evaluators", default="sts", help=text)
    v.add_argument("--plan", action="store_true", help="say how long it takes, and stop")


def add_publish_and_prune(verbs):
    about = "copy the scores of a finished run into results/"
    example = "RUN beir:scifact --scale mini"
    v = add_verb(
        verbs, "publish", run.publish, about, example, scale=SCALE, device=True, runs_models=True
    )
    add_run_id(v)
    v.add_argument("evaluator", help="an evaluator with its settings, as in beir:scifact")

    about = "delete the models of runs whose scores are all published"
    add_verb(verbs, "prune", run.prune, about, "micse --scale mini", targets="*", scale=SCALE)


# ---------------------------------------------------------------- comparisons, pages, files


def add_report_verbs(verbs):
    about = "compare rows of a table, over seeds and test items"
    examples = (
        "micse/table2",
        "micse/table2 miCSE AMI+SimCSE",
        "micse/table2 --over settings",
    )
    v = add_verb(
        verbs,
        "compare",
        report.compare_rows,
        about,
        *examples,
        targets=1,
        scale=catalog.scale_with_results(),
        json=True,
    )
    text = "two rows (default: the comparisons that the table declares)"
    v.add_argument("rows", nargs="*", metavar="ROW", help=text)
    text = "settings: compare at random settings that the rows share, in a table of their own"
    v.add_argument("--over", choices=["seeds", "settings"], default="seeds", help=text)
    text = f"with --over settings: how many (default: {SETTINGS})"
    v.add_argument("--settings", type=whole(2, MOST_SEEDS), help=text)

    add_judge(verbs)

    about = "render a page, or draw a figure, from the scores that exist"
    examples = ("micse/table2 --scale mini", "claims --out claims.md")
    v = add_verb(verbs, "render", report.render, about, *examples, scale=SCALE)
    text = (
        "table2, micse/table2, micse/figure3, index, claims, audit, settings, …;"
        " micse/table2/simcse: the scores of one row, as CSV"
    )
    add_completed(v, target_names, "target", help=text)
    v.add_argument("--out", type=output_file, help="file of the page (default: print it)")
    forms = ("markdown", "latex", "csv", "json")
    v.add_argument("--format", choices=forms, default="markdown", help="format of the tables")
    text = "with all: compare the files with the scores, and write nothing"
    v.add_argument("--check", action="store_true", help=text)

    about = "write scores, cells and comparisons as CSV files"
    add_verb(verbs, "csv", report.write_csv, about, "--scale mini", scale=SCALE)
    about = "write documentation and results as a site"
    add_verb(verbs, "html", report.write_html, about, "--scale mini", scale=SCALE)


def add_judge(verbs):
    about = "compare any systems, from models or anyone's score files"
    examples = ("mine.json base.json", "mine=runs/mine-*.json base=a.json,b.json --fail-if lower")
    v = add_verb(verbs, "judge", judge.print_judgement, about, *examples, json=True)
    text = (
        "PATH, or NAME=PATH,PATH with the seeds of a system: score JSON, mteb results, lm-eval"
        " samples, CSV or npz of items, folder of a model, or hub id (ID@COMMIT)"
    )
    v.add_argument("systems", nargs="+", type=judge.system_argument, metavar="SYSTEM", help=text)
    text = "metric to judge, such as acc_norm (default: the main metric of each task)"
    v.add_argument("--metric", help=text)
    limit = number_type(Annotated[float, Field(gt=0, allow_inf_nan=False)])
    text = "points; a difference that is shown to be smaller counts as `same` (default: 0.02)"
    v.add_argument("--within", type=limit, metavar="POINTS", help=text)
    text = (
        "verdicts, comma-separated; exit code 1 if the first system has one of them against another"
        ' one: higher, lower, same, unclear, "not tested"'
    )
    v.add_argument("--fail-if", type=judge.verdict_words, metavar="WORDS", default=[], help=text)
    v.add_argument("--figure", type=judge.svg_file, metavar="FILE.svg", help="draw a forest plot")
    text = "for models: comma-separated evaluators, as in sts,beir:scifact"
    add_completed(v, evaluator_names, "--evaluators", default="sts", help=text)
    add_data_folder(v)


# ---------------------------------------------------------------- results that travel


def add_exchange_verbs(verbs):
    about = "write your runs as a source of evidence, to be sent"
    example = (
        '--scale small --who "A. Reader" --out evidence/areader.yaml'
        " --url https://github.com/areader/runs/tree/0123456789abcdef/scores"
    )
    v = add_verb(verbs, "report", exchange.report_runs, about, example, targets="*", scale="small")
    v.add_argument("--who", required=True, metavar="NAME", help="your name, as readers see it")
    text = (
        "link to GitHub where others find the runs: a folder with the score files at a commit, or"
        " an issue"
    )
    v.add_argument("--url", required=True, help=text)
    text = "licence of that repository (default: not stated)"
    v.add_argument("--licence", metavar="NAME", help=text)
    add_out(v, "file of the source, evidence/NAME.yaml", exchange.source_file)

    about = "take the scores of another checkout, after checks"
    v = add_verb(verbs, "import", exchange.import_scores, about, "their-checkout --scale small")
    text = "folder with score JSONs, or a checkout that has them in results/"
    v.add_argument("folder", type=Path, metavar="DIR", help=text)
    text = "scale of the runs, a file in config/"
    add_completed(v, catalog.scale_names, "--scale", required=True, help=text)
    v.add_argument("--dry-run", action="store_true", help="only check the files, copy none")


def add_push(verbs):
    about = "send a run's model to the Hugging Face hub, with its scores"
    examples = ("RUN --scale small --to OWNER/NAME", "RUN --scale small --to OWNER/NAME --yes")
    v = add_verb(verbs, "push", exchange.push_run, about, *examples)
    add_run_id(v)
    text = "scale of the run, a file in config/"
    add_completed(v, catalog.scale_names, "--scale", required=True, help=text)
    text = "repository of the hub; it is made if there is none"
    v.add_argument("--to", required=True, metavar="OWNER/NAME", help=text)
    text = "let everybody see a new repository (default: only you)"
    v.add_argument("--public", action="store_true", help=text)
    text = "send it; without this option, the files are only listed"
    v.add_argument("--yes", action="store_true", help=text)


def add_export(verbs):
    about = "write claims, scores or pages in the formats of other tools"
    examples = (
        "claims --out claims",
        "mteb results/mini/scores/msse-78b6db175a.mteb.*.json --out mteb-results",
        "model-index results/mini/scores/msse-78b6db175a.*.json --out upload/README.md",
        "eval-results results/mini/scores/msse-78b6db175a.mteb.*.json --out upload",
        "ro-crate results/mini/micse/table2.md --out crate",
    )
    v = add_verb(verbs, "export", export.export, about, *examples)
    text = (
        "claims: the judged claims of papers, as a data set; mteb: scores, as results that mteb"
        " reads; model-index: scores, in the front matter of a model card; eval-results: scores, as"
        " the .eval_results/ of a repository of the hub; ro-crate: a page with its cells and scores"
    )
    kinds = ("claims", "mteb", "model-index", "eval-results", "ro-crate")
    v.add_argument("what", choices=kinds, help=text)
    text = (
        "with mteb and eval-results: scores of mteb:TASK; with model-index and eval-results: scores"
        " of one model; with ro-crate: the path of one page"
    )
    v.add_argument("scores", nargs="*", type=Path, metavar="FILE", help=text)
    add_out(v, "folder of the files; with model-index: the model card", export.output_path)


# ---------------------------------------------------------------- data


def add_data_verbs(verbs):
    about = "list models and data that targets need, and what is missing"
    example = "micse/table2 --scale paper"
    add_verb(verbs, "check", run.check, about, example, targets="*", scale="paper", json=True)

    about = "download and check official data, or all that a target needs"
    examples = ("senteval", "micse/table2 --scale paper")
    v = add_verb(verbs, "fetch", run.fetch, about, *examples, scale="paper")
    text = "wiki, nli, senteval, imdb, stackoverflow, beir:scifact …, or a target"
    v.add_argument("source", help=text)
    text = f"folder of a source (default: {catalog.FETCHED})"
    v.add_argument("--out", type=output_folder, help=text)

    about = "translate every sentence to another language and back"
    example = "corpus.txt --translators 'models/en-de models/de-en' --out translated.txt"
    v = add_verb(
        verbs,
        "back-translate",
        run.back_translate,
        about,
        example,
        device=True,
        runs_models=True,
    )
    v.add_argument("corpus", type=Path, help="one sentence per line")
    text = "two MarianMT models, ID@COMMIT or folders, in one argument"
    v.add_argument("--translators", required=True, help=text)
    add_out(v, "file of the translated sentences")
    add_batch_size(v, 64)


# ---------------------------------------------------------------- options of several verbs


def add_run_id(to: Parser) -> None:
    to.add_argument("run_id", help="id of a run (list them: csebench plan --runs)")


def add_out(to: Parser, text: str, kind: Callable = output_file) -> None:
    to.add_argument("--out", type=kind, required=True, help=text)


def add_limit(to: Parser, condition: str = "") -> None:
    text = f"{condition}list only the first N (default: all)"
    to.add_argument("--limit", type=whole(1), metavar="N", help=text)


def add_data_folder(to: Parser) -> None:
    text = "folder of benchmark data (default: CSEBENCH_DATA, else fetched data)"
    to.add_argument("--data", type=Path, help=text)


def add_precision(to: Parser, text: str) -> None:
    to.add_argument("--precision", choices=get_args(Precision), default="fp32", help=text)


def add_batch_size(to: Parser, default: int) -> None:
    text = "sentences per batch"
    to.add_argument("--batch-size", type=number_type(BatchSize), default=default, help=text)


def add_chunk_size(to: Parser) -> None:
    text = "sentences in memory at a time; 0: the whole batch"
    to.add_argument("--chunk-size", type=whole(0), default=0, help=text)
