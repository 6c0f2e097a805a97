"""Everything that pages of scale paper need, as the rules of the workflow make it, in one process: a process for each
job would import torch hundreds of times. Run in a copy of the project; prints a JSON with the state of every page."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from csebench import cli, run, workflow
from csebench.base.errors import BadInput, RunFailed
from csebench.plan import catalog, made_from, recipe, targets
from csebench.report.cells import grid_view

SCALE = "paper"


def main(wanted: list[str]) -> None:
    started, failed = time.monotonic(), {}
    pages = [page for target in wanted for page in targets.parse_target(target, SCALE)]
    runs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    scores = sorted({pair for page in pages for pair in page.available()})

    def attempt(name: str, function, *arguments) -> None:
        try:
            if function(*arguments) in (1, 2):  # of the command line
                failed[name] = "see the lines above"
        except (BadInput, RunFailed) as error:
            failed[name] = str(error)

    files = {path for run_id in runs for path in workflow.run_data(run_id, SCALE)}
    files |= {path for _, evaluator in scores for path in workflow.evaluator_data(evaluator, SCALE)}
    for path in sorted(files):
        if path.is_relative_to(catalog.FETCHED) and not path.exists():
            source = workflow.source_of(str(path.relative_to(catalog.FETCHED)))
            attempt(f"fetch {source}", cli.main, ["fetch", source, "--out", catalog.FETCHED])
    for key in sorted({recipe.positives_path(spec).stem for spec in runs.values() if spec.back_translated}):
        corpus, translators = targets.back_translation(key, SCALE)
        out = str(catalog.POSITIVES / f"{key}.txt")
        command = ["back-translate", str(corpus), "--translators", translators, "--out", out]
        attempt(f"translate {key}", cli.main, command)
    for run_id in sorted(runs, key=lambda run_id: bool(runs[run_id].encoder.name.startswith(f"{catalog.RUNS}/"))):
        only = [name for name in workflow.wanted_evaluators(run_id, SCALE, wanted).split(",") if name]
        (catalog.RUNS / run_id).mkdir(parents=True, exist_ok=True)  # as Snakemake does for the log
        attempt(f"train {run_id}", run.work, run_id, SCALE, 1, 1, only)
    for run_id, evaluator in scores:
        if (catalog.RUNS / run_id / "train.json").exists():
            attempt(f"publish {run_id} {evaluator}", run.publish, run_id, evaluator, SCALE)
    for page in pages:
        if all(path.exists() for path in made_from.scores_of_pages([page])):
            for grid in page.grids():
                path = targets.grid_path(*grid, SCALE, "items.json")
                attempt(f"compare {path}", cli.main, ["compare", str(path.with_name(path.name.split(".")[0]))])
            out = [] if page.path.suffix == ".svg" else ["--out", str(page.path)]
        else:
            if page.path.suffix == ".svg":
                continue
            out = ["--out", str(Path("results/partial") / page.path.relative_to("results"))]
        attempt(f"render {page.path}", cli.main, ["render", str(page.path), *out])
    states = {}
    for page in pages:
        views = [grid_view(*grid, SCALE) for grid in page.grids()]
        reasons = sorted({reason for v in views for row in v.rows for cell in row for reason in cell.reasons})
        states[str(page.path)] = {
            "states": [v.state for v in views],
            "written": page.path.exists(),
            "reasons": reasons,
        }
    print(
        json.dumps(
            {
                "runs": len(runs),
                "scores": len(scores),
                "pages": states,
                "failed": failed,
                "seconds": round(time.monotonic() - started),
            }
        )
    )


if __name__ == "__main__":
    os.environ.setdefault("TQDM_DISABLE", "1")
    main(sys.argv[1:])
