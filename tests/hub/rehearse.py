"""Everything that pages of a scale need, by the verbs that the rules of the workflow call, in one process: one for
each job would import torch hundreds of times. Run in a copy of the project; prints a JSON with what failed, and with
the state of every page."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from csebench import cli
from csebench.plan import catalog, recipe, targets
from csebench.report.cells import grid_view


def main(scale: str, wanted: list[str]) -> None:
    pages = [page for target in wanted for page in targets.parse_target(target, scale)]
    runs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    scores = sorted({pair for page in pages for pair in page.available()})
    failed = {}

    def do(*command: str) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            if cli.main([*command]):
                failed[" ".join(command)] = said.getvalue()

    for target in wanted:
        do("fetch", target, "--scale", scale)
    for key in sorted({recipe.positives_path(spec).stem for spec in runs.values() if spec.back_translated}):
        corpus, translators = targets.back_translation(key, scale)
        out = str(catalog.POSITIVES / f"{key}.txt")
        do("back-translate", str(corpus), "--translators", translators, "--out", out)
    for run_id in sorted(runs, key=lambda run_id: runs[run_id].run_before is not None):
        (catalog.RUNS / run_id).mkdir(parents=True, exist_ok=True)  # as Snakemake does for the log
        only = ",".join(evaluator for run, evaluator in scores if run == run_id)
        do("work", run_id, "--scale", scale, f"--evaluators={only}")
    for run_id, evaluator in scores:
        if (catalog.RUNS / run_id / "train.json").exists():
            do("publish", run_id, evaluator, "--scale", scale)
    states = {}
    for page in pages:
        path = str(page.path)
        if all(targets.score_path(run_id, evaluator, scale).exists() for run_id, evaluator in page.available()):
            do("render", path, *(() if path.endswith(".svg") else ("--out", path)))
        elif not path.endswith(".svg"):
            do("render", path, "--out", path.replace("results/", "results/partial/", 1))
        views = [grid_view(*grid, scale) for grid in page.grids()]
        states[path] = {
            "states": [view.state for view in views],
            "written": page.path.exists(),
            "reasons": sorted({reason for v in views for row in v.rows for cell in row for reason in cell.reasons}),
        }
    print(json.dumps({"pages": states, "failed": failed}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
