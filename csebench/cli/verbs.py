"""The parser: every verb with its arguments, their texts and defaults, and an example."""

from __future__ import annotations

import argparse
import os
import textwrap
from pathlib import Path

from csebench import __version__
from csebench.base.errors import BadInput, unknown
from csebench.base.provenance import code_state
from csebench.cli import data, inspect, options, plan, report, run, show
from csebench.plan import catalog, registry, tuning
from csebench.plan.declarations import POOLERS

DESCRIPTION = """\
Re-run the experiments behind the tables of four papers on unsupervised sentence embeddings, and compare the results.
Each verb also works without Snakemake; `csebench VERB --help` lists its options."""
COMPLETION = """\
Completion of verbs, options and names in bash or zsh: eval "$(register-python-argcomplete csebench)"
"""


class Help(argparse.RawDescriptionHelpFormatter):
    """Adds the default to the text of an option, and lists verbs in groups, each with its example."""

    def _get_help_string(self, action):
        text = action.help or ""
        if not action.option_strings or action.required or "(default: " in text or action.dest in ("help", "version"):
            return text
        if action.nargs == 0:
            return f"{text} (default: no)"
        return f"{text} (default: {'none' if action.default in (None, []) else '%(default)s'})"

    def _format_action(self, action):
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines, group = [], ""
        for name, verb in action.choices.items():
            if verb.get_default("group") != group:
                group = verb.get_default("group")
                lines.append(f"\n{group}:")
            lines += textwrap.wrap(verb.description, 96, initial_indent=f"  {name:<17}", subsequent_indent=" " * 19)
            lines += [f"{' ' * 19}$ {verb.get_default('examples')[0]}"]
        return "\n".join(lines).lstrip("\n") + "\n"


class Parser(argparse.ArgumentParser):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, formatter_class=Help, **kwargs)

    def error(self, message):
        raise BadInput(f"{message} ({self.prog} --help)")

    def _check_value(self, action, value):
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise unknown("verb", value, action.choices, hint=f"`{self.prog} --help` lists all.")
        super()._check_value(action, value)


class ShowVersion(argparse.Action):
    """Prints the version, and the commit of a checkout, which git is asked for only then."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, nargs=0, **kwargs)

    def __call__(self, parser, *_):
        print(version_text())
        parser.exit()


def version_text() -> str:
    """`csebench 0.2.0 (commit 0123456789, with changes)`; without a commit outside of a checkout."""
    code = code_state() if catalog.is_checkout() else {"commit": None}
    if code["commit"] is None:
        return f"csebench {__version__}"
    changes = ", with changes" if code["dirty_diff_sha256"] else ""
    return f"csebench {__version__} (commit {code['commit'][:10]}{changes})"


def parser() -> Parser:
    top = Parser(prog="csebench", description=DESCRIPTION, epilog=COMPLETION)
    top.add_argument("--version", action=ShowVersion, help="show the version and the commit")
    verbs = top.add_subparsers(required=True, metavar="VERB", title="verbs")

    for group, add in (("look", add_look), ("run", add_run), ("report", add_report), ("data", add_data)):

        def verb(name, function, help, *examples, group=group):
            epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
            added = verbs.add_parser(name, help=help, description=help, epilog=epilog)
            added.set_defaults(run=function, group=group, examples=examples)
            return added

        add(verb)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        import argcomplete

        argcomplete.autocomplete(top)
    return top


def add_look(verb):
    v = verb("methods", inspect.list_methods, "list methods and components", "csebench methods")
    options.add_json(v)

    about = "list evaluators, with their tasks and what they need"
    options.add_json(verb("evaluators", inspect.list_evaluators, about, "csebench evaluators --json"))

    about = "list papers, with their tables and figures"
    options.add_json(verb("papers", inspect.list_papers, about, "csebench papers"))

    about = "show everything about a method, component, evaluator, paper, table or run"
    examples = ["micse", "micse/table2", "beir:scifact"]
    v = verb("show", show.show_name, about, *(f"csebench show {name}" for name in examples))
    name = v.add_argument("name", help="a name that methods, evaluators, papers or plan --runs list")
    name.completer = lambda **_: options.described_names()
    options.add_scale(v)
    options.add_json(v)

    about = "forecast runs and hours of targets"
    examples = ["csebench plan micse/table2", "csebench plan all --scale paper"]
    v = verb("plan", plan.show_plan, about, *examples)
    options.add_targets(v, "+")
    options.add_scale(v)
    v.add_argument("--device", help="name in data/step_times.yaml (default: the fastest)")
    v.add_argument("--runs", action="store_true", help="list the runs too")
    options.add_json(v)

    about = "show the state of the runs of targets, and the hours spent and left"
    v = verb("status", inspect.show_status, about, "csebench status", "csebench status micse --watch")
    options.add_targets(v, "*")
    options.add_scale(v)
    again = "update it every SECONDS (2 if left out) until all runs are done (default: show it once)"
    v.add_argument("--watch", nargs="?", type=options.whole(1, 86_400), const=2, metavar="SECONDS", help=again)
    options.add_json(v)

    about = "list what the tests of tables can show before any training, and the seeds needed"
    v = verb("power", inspect.show_power, about, "csebench power micse/table2 --difference 0.5")
    options.add_targets(v, "+")
    options.add_scale(v, "paper")
    points = "difference between two rows, in points, whose power is computed"
    v.add_argument("--difference", type=options.above_zero, default=0.5, metavar="POINTS", help=points)
    options.add_json(v)

    about = "list claims of the papers, judged on the printed numbers and on our runs"
    v = verb("claims", inspect.list_claims, about, "csebench claims micse/table2 --scale mini")
    options.add_targets(v, "*")
    options.add_scale(v)
    options.add_json(v)

    about = "list inconsistencies in the published tables"
    v = verb("audit", inspect.list_findings, about, "csebench audit micse")
    options.add_targets(v, "*")
    v.set_defaults(scale=catalog.DEFAULT_SCALE)  # of no meaning to printed numbers; parse_targets reads it
    options.add_json(v)


def add_run(verb):
    v = verb(
        "train",
        run.train,
        "train one run, from a spec or from options",
        "csebench train --method simcse --encoder bert-mini-wiki --corpus sentences.txt --out runs/mine",
        "csebench train --method simcse --with ami --set steps=20 ami.weight=1e-3 --encoder bert-mini-wiki"
        " --corpus data/smoke/wiki/smoke.txt --data data/smoke --out runs/mine",
    )
    v.add_argument("spec", nargs="?", help="JSON file or JSON text; without it, --method and the options below")
    method = v.add_argument("--method", help="name of a method")
    method.completer = lambda **_: registry.names(registry.METHODS)
    v.add_argument("--variant", help="variant of the method (default: its declared settings)")
    plug_in = "component to plug in; may be repeated"
    v.add_argument("--with", dest="components", action="append", default=[], metavar="COMPONENT", help=plug_in)
    hyper_parameter = "hyper-parameter of the method (learning_rate=3e-5) or of a component (ami.weight=0.01)"
    v.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=hyper_parameter)
    v.add_argument("--encoder", help="hub id with commit (ID@COMMIT), folder of a model, or a name in config/")
    v.add_argument("--corpus", type=Path, help="one sentence per line; for a supervised method a CSV file of triplets")
    v.add_argument("--positives", type=Path, help="back-translated corpus, for a method that needs one")
    v.add_argument("--size", type=options.whole(2, 10**12), help="sentences to draw from the corpus (default: all)")
    v.add_argument("--seed", type=options.SEED, default=42, help="seed of sampling and training")
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of training")
    v.add_argument("--threads", type=options.THREADS, default=1, help="CPU threads")
    options.add_chunk_size(v)
    options.add_data(v, "benchmark data, for STS-B dev")
    v.add_argument(
        "--out", type=options.output_folder, required=True, help="folder of the run; the model is in OUT/model"
    )

    v = verb(
        "evaluate",
        run.evaluate,
        "score an encoder of any origin",
        "csebench evaluate --model encoders/bert-mini-wiki --pooler avg --data data/smoke --out scores.json",
    )
    model = "folder, run id, encoder of config/, hub id, or .npz file of embeddings (see the verb sentences)"
    v.add_argument("--model", required=True, help=model)
    v.add_argument("--pooler", choices=POOLERS, help="how token vectors become one (default: that of the model)")
    options.add_evaluators(v)
    v.add_argument(
        "--max-length", type=options.whole(4, 2**20), help="tokens per sentence (default: the maximum of the encoder)"
    )
    options.add_data(v)
    v.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of embedding")
    v.add_argument("--batch-size", type=options.BATCH_SIZE, default=128, help="sentences per batch")
    v.add_argument(
        "--out",
        type=options.output_file,
        required=True,
        help="JSON file of scores, next to which .items.npz is written",
    )
    options.add_json(v)

    v = verb(
        "sentences",
        run.list_sentences,
        "write the sentences that evaluators embed: those that an .npz file must hold",
        "csebench sentences --evaluators sts --data data/smoke --out sentences.jsonl",
    )
    options.add_evaluators(v)
    options.add_data(v)
    v.add_argument("--out", type=options.output_file, required=True, help="file with one JSON string per line")

    v = verb(
        "work",
        run.work,
        "train and score a planned run, as a job of the workflow does",
        "csebench work RUN --scale mini",
    )
    v.add_argument("run_id", help="id of a run, as `csebench plan --runs` lists it")
    options.add_scale(v)
    v.add_argument(
        "--processes",
        type=options.whole(0, 64),
        default=1,
        help="processes that share each batch, one per GPU",
    )
    v.add_argument("--runs-per-gpu", type=options.positive, default=1, help="runs that may share a GPU")
    options.add_chunk_size(v)
    v.add_argument("--evaluators", help="comma-separated: score with these only (default: with all that pages show)")

    about = "search for the settings of methods on STS-B dev, with as many trials for each"
    v = verb("tune", run.tune, about, "csebench tune simcse ct+ami --scale mini --trials 6")
    searched = "method with a search space (`csebench methods`: column search), also with components: ct+ami"
    v.add_argument("method", nargs="+", help=searched).completer = lambda **_: tuning.tunable()
    options.add_scale(v)
    trials = "for each method; the first trial has the settings of the scale"
    v.add_argument("--trials", type=options.positive, required=True, help=trials)

    v = verb(
        "publish",
        run.publish,
        "copy the scores of a finished run into results/, as a job of the workflow does",
        "csebench publish RUN beir:scifact --scale mini",
    )
    v.add_argument("run_id", help="id of a run, as `csebench plan --runs` lists it")
    v.add_argument("evaluator", help="an evaluator with its settings, as in beir:scifact")
    options.add_scale(v)

    v = verb(
        "prune",
        run.prune,
        "delete the models of runs whose scores are all published",
        "csebench prune micse --scale mini",
    )
    options.add_targets(v, "*")
    options.add_scale(v)


def add_report(verb):
    v = verb(
        "compare",
        report.compare_rows,
        "test which rows of a table differ, over seeds and test items, and write it into results/",
        "csebench compare micse/table2 --scale mini",
    )
    options.add_targets(v)
    options.add_scale(v)
    options.add_json(v)

    v = verb(
        "render",
        report.render,
        "render a page from the scores that exist; a figure is drawn into results/",
        "csebench render micse/table2 --scale mini",
        "csebench render claims --out claims.md",
    )
    target = v.add_argument("target", help="table2, micse/table2, micse/figure3, index, claims, audit, evidence, …")
    target.completer = lambda **_: options.target_names()
    options.add_scale(v)
    v.add_argument("--out", type=options.output_file, help="file of the page (default: print it)")

    v = verb(
        "plot",
        report.plot_scores,
        "draw the figures of one model from its scores, as SVG, PNG and CSV",
        "csebench plot scores.json --out figures",
    )
    v.add_argument("scores", type=Path, help="JSON file of the verb evaluate")
    v.add_argument("--out", type=options.output_folder, required=True, help="folder of the figures")

    v = verb(
        "csv",
        report.write_csv,
        "write all scores of a scale, and all cells of its tables and figures, as CSV files",
        "csebench csv --scale mini",
    )
    options.add_scale(v)

    v = verb(
        "html",
        report.write_html,
        "write all results of a scale as a folder of web pages",
        "csebench html --scale mini",
    )
    options.add_scale(v)


def add_data(verb):
    v = verb(
        "check",
        data.check,
        "list the models and data that targets need, whether they can be had, disk and memory",
        "csebench check micse/table2 --scale paper",
    )
    options.add_targets(v, "*")
    options.add_scale(v, "paper")
    options.add_json(v)

    v = verb(
        "fetch",
        data.fetch,
        "download official data and check it, or all models and data that a target needs",
        "csebench fetch senteval",
        "csebench fetch micse/table2 --scale paper",
    )
    v.add_argument("source", help="wiki, nli, senteval, imdb, stackoverflow, beir:scifact …, or a target")
    options.add_scale(v, "paper")
    v.add_argument("--out", type=options.output_folder, default=Path(catalog.FETCHED), help="folder of a source")

    v = verb(
        "back-translate",
        data.back_translate,
        "translate every sentence of a corpus to another language and back",
        "csebench back-translate corpus.txt --translators 'models/en-de models/de-en' --out translated.txt",
    )
    v.add_argument("corpus", type=Path, help="one sentence per line")
    models = "two MarianMT models (ID@COMMIT or folders) in one argument, separated by a space"
    v.add_argument("--translators", required=True, help=models)
    v.add_argument("--out", type=options.output_file, required=True, help="file of the translated sentences")
    v.add_argument("--batch-size", type=options.BATCH_SIZE, default=64, help="sentences per batch")
