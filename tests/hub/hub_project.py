"""A copy of the project that runs scale paper against the hub on this machine. Its recipes,
encoders and their commits are the project's; its config (CUT: steps, sizes, seeds, batches,
parameters that must be filled within so few steps) and data files (sums, URLs and counts of the
small files) are not."""

import json
import os
import shutil
import sys
from pathlib import Path

import hub_data
import yaml
from hub_server import Hub
from project import Project, copy_of_project

from csebench import cli
from csebench.plan import recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.report.numbers.cells import grid_view
from csebench.report.pages.index import state
from csebench.report.words.cells import reasons_of_cell

SCALE = "paper"
SIZES = dict.fromkeys(("0.0064%", "0.01%", "0.05%", "0.1%", "0.5%", "1%"), 24) | {
    "10%": 400,
    "100%": 400,
}
CUT = {"sizes": SIZES, "seeds": [48], "seeds_by_table": {"congen/table1": [48, 49, 50]}}
CUT["sweeps"] = {"batch_size": {"32": 4, "64": 6, "128": 8, "256": 10, "512": 12}}
CUT["override"] = {"steps": 2, "batch_size": 8, "evaluate_every": 1, "warmup_steps": 0}
CUT["substitutes"] = {"batch_size": {"16": 8}, "buffer": {"1024": 12}, "neighbours": {"16": 3}}
CUT["substitutes"] |= {"projector": {"4096": 64}, "queue": {"160": 12, "384": 12}}


class Rehearsal(Project):
    """The copy, with the cache of a machine that has fetched nothing yet."""

    def __init__(self, folder: Path, hub: Hub):
        super().__init__(copy_of_project(folder, "results", "official", "back-translation").folder)
        self.hub = hub
        self.change("config/paper.yaml", CUT)
        self.change(
            "data/registry.yaml",
            {name: {"sha256": value} for name, value in hub_data.small_sums().items()},
        )
        served = {
            name: source.model_dump(exclude_defaults=True)
            for name, source in hub_data.served(hub).items()
        }
        self.change("data/sources.yaml", {"sources": served})
        (folder / "data" / "official").mkdir()
        shutil.copy(hub_data.SMOKE / "counts.yaml", folder / "data" / "official")
        self.env |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": f"{folder}.hf", "HF_HUB_OFFLINE": "0"}
        self.env |= {"OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TQDM_DISABLE": "1"}

    def change(self, name: str, changes: dict) -> None:
        """Change keys of a YAML file; of a mapping inside, the given keys only."""
        path = self.folder / name
        content = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            content[key] = {**content.get(key, {}), **value} if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def snakemake(self, *arguments: str, **env):
        return super().snakemake(*arguments, "--config", f"scale={SCALE}", **env)

    def rehearse(self, *pages: str) -> list[str]:
        """Make pages by `main`; returns those that are not complete."""
        tests = Path(__file__).parents[1]
        self.env["PYTHONPATH"] = os.pathsep.join(map(str, (self.folder, tests, tests / "hub")))
        done = self.run(*pages, module="hub_project")
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


def main(wanted: list[str]) -> None:
    """Make all that pages need by the verbs that rules call, in one process of the copy: torch
    is imported once."""
    pages = [page for target in wanted for page in targets.parse_target(target, SCALE)]
    runs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    scores = sorted({pair for page in pages for pair in page.available()})
    commands = [["fetch", target, "--scale", SCALE] for target in wanted]
    for key in sorted(
        {recipe.positives_path(spec).stem for spec in runs.values() if spec.back_translated}
    ):
        corpus, translators = targets.back_translation(key, SCALE)
        out = catalog.POSITIVES / f"{key}.txt"
        commands.append(
            ["back-translate", str(corpus), "--translators", translators, "--out", str(out)]
        )
    for run_id in sorted(runs, key=lambda run_id: runs[run_id].run_before is not None):
        only = ",".join(evaluator for run, evaluator in scores if run == run_id)
        commands.append(["work", run_id, "--scale", SCALE, f"--evaluators={only}"])
    commands += [["publish", run_id, evaluator, "--scale", SCALE] for run_id, evaluator in scores]
    for path in (str(page.path) for page in pages):
        commands.append(["render", path, *(() if path.endswith(".svg") else ("--out", path))])
    for command in commands:
        if cli.main(command):
            sys.exit(f"failed: {command}")
    print(json.dumps([str(page.path) for page in pages if not is_complete(page)]))


def is_complete(page: targets.Page) -> bool:
    views = [grid_view(*grid, SCALE) for grid in page.grids()]
    reasons = [reason for view in views for reason in map(reasons_of_cell, view.cells) if reason]
    return (
        page.path.exists()
        and not reasons
        and {state(view) for view in views} <= {"complete", "settings"}
    )


if __name__ == "__main__":
    main(sys.argv[1:])
