# Functions that the rules share; what they compute comes from modules that never import torch.
import os
import sys
from pathlib import Path

from csebench import forecast, gpus, plan
from csebench.errors import BadInput
from csebench.registry import protocol
from csebench.evaluate import evaluation_key


envvars:
    "PATH",


# jobs use the python that runs snakemake
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
# A shell around a job would end at SIGTERM, and what waits for it would kill the job while it writes its checkpoint.
shell.prefix("set -euo pipefail; exec ")
SCALE = config.get("scale", plan.DEFAULT_SCALE)
GPU = int(bool(gpus.cards()))  # GPUs a run asks for


def refuse(error):
    """Snakemake would bury the message in a traceback and exit with 1."""
    print(f"csebench: {error}", file=sys.stderr, flush=True)
    os._exit(2)


try:
    plan.runs(SCALE)
except BadInput as error:
    refuse(error)


def target(text):
    """The page a path names; its folder says the scale, which `--config scale=` must not contradict."""
    try:
        (page,) = plan.parse_target(text, plan.DEFAULT_SCALE)
        page.runs()
    except BadInput as error:
        refuse(error)
    if "scale" in config and page.scale != SCALE:
        refuse(
            f"{page.path} is no page of scale {SCALE}: its pages are in {plan.results_folder(SCALE)}/."
        )
    return page


def scores_of(page):
    return [
        plan.score_path(run, evaluator, page.scale) for run, evaluator in page.scores()
    ]


def page_scores(wildcards):
    return scores_of(target(wildcards.page))


def grid_scores(wildcards):
    return scores_of(target(wildcards.grid))


def page_items(wildcards):
    """What every table of a page shows of per-item values."""
    page = target(wildcards.page)
    return [
        plan.grid_path(paper, name, page.scale, "items.json")
        for paper, name in page.grids()
    ]


def scores_of_scale(scale):
    pairs = {pair for page in plan.pages(scale) for pair in page.scores()}
    return [plan.score_path(run, evaluator, scale) for run, evaluator in sorted(pairs)]


def every_score(wildcards):
    return scores_of_scale(SCALE)


def every_score_there_is(wildcards):
    return [
        path for path in scores_of_scale(scale_of_folder(wildcards)) if path.exists()
    ]


def page_scores_there_are(wildcards):
    return [path for path in page_scores(wildcards) if path.exists()]


# What pages are written from, besides scores: an edited label or a better test renders again, and trains nothing.
VIEW = [f"csebench/{name}.py" for name in ("view", "stats", "store")]


def written_from(page, *modules):
    papers = [name for name in page.papers if name != plan.SIDE_BY_SIDE]
    code = [f"csebench/{name}.py" for name in modules]
    return [
        f"config/{page.scale}.yaml",
        *(f"papers/{p}.yaml" for p in papers),
        *VIEW,
        *code,
    ]


def page_text(wildcards):
    return written_from(target(wildcards.page), "render")


def grid_text(wildcards):
    page = target(wildcards.grid)
    drawn = page.path.suffix == ".svg"
    return written_from(page, *(("figures", "plots") if drawn else ("compare",)))


def category(wildcards):
    """Where Snakemake's report lists a page."""
    page = target(wildcards.get("page") or wildcards.grid)
    return page.papers[0] if len(page.papers) == 1 else "all papers"


def every_page(wildcards):
    return [page.path for page in plan.pages(scale_of_folder(wildcards))]


def every_text(wildcards):
    """Of pages over all papers, and of what they show of each."""
    papers = [f"papers/{name}.yaml" for name in plan.paper_names()]
    code = ("render", "claims", "audit", "reports", "html")
    templates = sorted(Path("csebench/templates").glob("*"))
    return [*papers, *VIEW, *(f"csebench/{name}.py" for name in code), *templates]


def scale_of_run(wildcards):
    return plan.scale_of_run(wildcards.run, SCALE)


def scale_of_folder(wildcards):
    return wildcards.folder.rstrip("/") or plan.DEFAULT_SCALE


def run_data(wildcards):
    """Corpus and dev set of a run, what is made of its corpus, and the run before it: files that rules make."""
    at, spec = plan.scale(scale_of_run(wildcards)), plan.run(
        wildcards.run, scale_of_run(wildcards)
    )
    root = plan.data_root(at)
    files = [plan.corpus_path(spec, at)] if spec.corpus else []
    if spec.back_translated:
        files.append(plan.positives_path(spec))
    if spec.encoder.name.startswith(f"{plan.RUNS}/"):
        files.append(Path(spec.encoder.name).with_name("train.json"))
    return files + ([root / plan.dataset(at.dev).path] if spec.dev_sha256 else [])


def back_translation(wildcards):
    return plan.back_translation(wildcards.key, SCALE)


def evaluator_of(wildcards):
    return wildcards.evaluator.replace(".", ":")


def evaluator_data(wildcards):
    """Fetched where there is no data root: files by name, and what the archive of a corpus leaves."""
    root = plan.data_root(plan.scale(scale_of_folder(wildcards)))
    wanted = protocol(evaluator_of(wildcards))
    files = [root / file for file in wanted.files if "*" not in file]
    if wanted.declaration.name == "beir" and root == Path(plan.FETCHED):
        files.append(root / "beir" / wanted.params["dataset"] / "source.json")
    return files


def identity(wildcards):
    return evaluation_key(
        evaluator_of(wildcards), plan.scale(scale_of_folder(wildcards)).evaluation
    )


def run_threads(wildcards):
    return plan.scale(scale_of_run(wildcards)).threads


def training_minutes(wildcards, attempt):
    scale = scale_of_run(wildcards)
    return forecast.minutes(
        forecast.fastest(plan.run(wildcards.run, scale), scale), attempt
    )


def evaluation_minutes(wildcards, attempt):
    return forecast.minutes(0, attempt)
