"""A copy of the project that runs scale paper against the hub on this machine.

Its recipes, encoders and their commits are the project's. Its config is cut: steps, sizes, seeds,
batches, and parameters that must be filled within so few steps. Its data files have the sums, URLs
and counts of the small files. As a program, this module makes pages inside the copy.
"""

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
CUT = {  # keys of config/paper.yaml
    "sizes": {
        "0.0064%": 24,
        "0.01%": 24,
        "0.05%": 24,
        "0.1%": 24,
        "0.5%": 24,
        "1%": 24,
        "10%": 400,
        "100%": 400,
    },
    "seeds": [48],
    "seeds_by_table": {"congen/table1": [48, 49, 50]},
    "sweeps": {"batch_size": {"32": 4, "64": 6, "128": 8, "256": 10, "512": 12}},
    "override": {"steps": 2, "batch_size": 8, "evaluate_every": 1, "warmup_steps": 0},
    "substitutes": {
        "batch_size": {"16": 8},
        "buffer": {"1024": 12},
        "document_lines": {"100": 2},
        "groups": {"128": 16},
        "max_length": {"131": 64, "512": 64},
        "max_span": {"512": 12},
        "min_span": {"32": 3},
        "neighbours": {"16": 3},
        "projector": {"4096": 64},
        "queue": {"160": 12, "384": 12},
    },
}


class Rehearsal(Project):
    """The copy, with the cache of a machine that has fetched nothing yet."""

    def __init__(self, folder: Path, hub: Hub):
        super().__init__(copy_of_project(folder, "results", "official", "back-translation").folder)
        self.hub = hub

        self.change("config/paper.yaml", CUT)
        registry = {name: {"sha256": value} for name, value in hub_data.small_sums().items()}
        self.change("data/registry.yaml", registry)
        sources = {}
        for name, source in hub_data.served(hub).items():
            sources[name] = source.model_dump(exclude_defaults=True)
        self.change("data/sources.yaml", {"sources": sources})
        (folder / "data" / "official").mkdir()
        shutil.copy(hub_data.SMOKE / "counts.yaml", folder / "data" / "official")

        self.env |= {
            "HF_ENDPOINT": hub.endpoint,
            "HF_HOME": f"{folder}.hf",
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "OMP_NUM_THREADS": "1",
            "TQDM_DISABLE": "1",
        }

    def change(self, name: str, changes: dict) -> None:
        """Change keys of a YAML file. If a value is a mapping, change only the given keys of it."""
        path = self.folder / name
        content = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            if isinstance(value, dict):
                content.setdefault(key, {}).update(value)
            else:
                content[key] = value
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def snakemake(self, *arguments: str, **env):
        return super().snakemake(*arguments, "--config", f"scale={SCALE}", **env)

    def rehearse(self, *pages: str) -> list[str]:
        """Make pages in one process of the copy, and return those that are not complete."""
        tests = Path(__file__).parents[1]
        folders = [self.folder, tests, tests / "hub"]
        self.env["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in folders)
        done = self.run(*pages, module="hub_project")
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------- inside the copy


def main(names: list[str]) -> None:
    """Make all that pages need by the commands that the rules call, and print incomplete pages.

    One process is enough for all commands, so torch is imported only once.
    """
    pages = []
    for name in names:
        pages += targets.parse_target(name, SCALE)

    for command in commands_for(names, pages):
        if cli.main(command) != 0:
            sys.exit(f"failed: {command}")
    print(json.dumps([str(page.path) for page in pages if not is_complete(page)]))


def commands_for(names: list[str], pages: list[targets.Page]) -> list[list[str]]:
    """List the commands that make pages, in an order in which each finds what it needs."""
    at_scale = ["--scale", SCALE]
    runs = {}
    scores = set()
    for page in pages:
        runs |= page.available_runs()
        scores |= page.available().keys()
    evaluators: dict[str, list[str]] = {run_id: [] for run_id in runs}
    for run_id, evaluator in sorted(scores):
        evaluators[run_id].append(evaluator)

    commands = [["fetch", name, *at_scale] for name in names]
    for key in sorted(back_translated_corpora(runs.values())):
        corpus, translators = targets.back_translation(key, SCALE)
        out = str(catalog.POSITIVES / f"{key}.txt")
        options = ["--translators", translators, "--out", out]
        commands.append(["back-translate", str(corpus), *options])

    first_runs = [run_id for run_id, spec in runs.items() if spec.run_before is None]
    later_runs = [run_id for run_id, spec in runs.items() if spec.run_before is not None]
    for run_id in first_runs + later_runs:
        only = ",".join(evaluators[run_id])
        commands.append(["work", run_id, *at_scale, f"--evaluators={only}"])

    for run_id, evaluator in sorted(scores):
        commands.append(["publish", run_id, evaluator, *at_scale])
    for page in pages:
        command = ["render", str(page.path)]
        if page.path.suffix != ".svg":
            command += ["--out", str(page.path)]
        commands.append(command)
    return commands


def back_translated_corpora(specs) -> set[str]:
    """Return the keys of the back-translated corpora that runs train on."""
    keys = set()
    for spec in specs:
        path = recipe.positives_path(spec)
        if path is not None:
            keys.add(path.stem)
    return keys


def is_complete(page: targets.Page) -> bool:
    """Whether a page was written and shows every score that it can."""
    views = [grid_view(paper, name, SCALE) for paper, name in page.grids()]
    for view in views:
        if state(view) not in ("complete", "settings", "texts"):
            return False
        if any(reasons_of_cell(cell) for cell in view.cells):
            return False
    return page.path.exists()


if __name__ == "__main__":
    main(sys.argv[1:])
