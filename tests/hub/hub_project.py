"""A copy of the project that runs a scale against the hub on this machine.

Recipes (papers/, methods/, evaluators/), encoders and their commits are what they are. In the copy's config and data
files, and nowhere else, these are cut or pointed elsewhere:

- config/SCALE.yaml: steps, sizes, seeds, batches, and parameters that must be filled within so few steps (CUT);
- data/registry.yaml, data/sources.yaml: sums of the small files, and the URLs;
- data/official/counts.yaml: how many items the small files have.
"""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import hub_data
import yaml
from hub_server import Hub
from project import Project, copied

CUT = {
    "sizes": {"0.0064%": 24, "0.01%": 24, "0.05%": 24, "0.1%": 24, "0.5%": 24, "1%": 24, "10%": 400, "100%": 400},
    "seeds": [48],
    "sweeps": {"batch_size": {"32": 4, "64": 6, "128": 8, "256": 10, "512": 12}},
    "override": {"steps": 2, "batch_size": 8, "evaluate_every": 1, "warmup_steps": 0},
    "substitutes": {
        "batch_size": {"16": 8},
        "buffer": {"1024": 12},
        "neighbours": {"16": 3},
        "projector": {"4096": 64},
        "queue": {"160": 12, "384": 12},
    },
}


def small_sums() -> dict[str, str]:
    """The sums of registered files that the smoke data take the place of."""
    return {name: sha256((hub_data.SMOKE / p).read_bytes()).hexdigest() for name, p in hub_data.REGISTERED.items()}


class Rehearsal(Project):
    """The copy, with the cache of a machine that has fetched nothing yet."""

    def __init__(self, folder: Path, hub: Hub, scale: str = "paper", seeds: list[int] = CUT["seeds"]):
        super().__init__(copied(folder, "results", "official", "back-translation").folder)
        self.hub, self.scale = hub, scale
        self.change(f"config/{scale}.yaml", CUT | {"seeds": seeds})
        self.change("data/registry.yaml", {name: {"sha256": value} for name, value in small_sums().items()})
        served = {name: source.model_dump(exclude_defaults=True) for name, source in hub_data.served(hub).items()}
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

    def csebench(self, *command: str):
        return self.run(*command, "--scale", self.scale, module="csebench")

    def snakemake(self, *arguments: str, **env):
        return super().snakemake(*arguments, "--config", f"scale={self.scale}", **env)

    def rehearse(self, *targets: str, **env) -> dict:
        """What rehearse.py prints, after a run that ended well."""
        self.env["PYTHONPATH"] = os.pathsep.join([str(self.folder), str(Path(__file__).parent)])
        done = self.run(self.scale, *targets, module="rehearse", **env)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])
