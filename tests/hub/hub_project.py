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
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import hub_data
import yaml
from hub_server import Hub

from csebench.base.project import ROOT

IGNORED = ("runs", "results", "official", "back-translation", "__pycache__", "*.egg-info", ".*")
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


class Project:
    """The copy, with the cache of a machine that has fetched nothing yet."""

    def __init__(self, folder: Path, hub: Hub, scale: str = "paper"):
        self.folder, self.hub, self.scale = folder, hub, scale
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*IGNORED))
        self.edit(f"config/{scale}.yaml", CUT)
        self.edit("data/registry.yaml", {name: {"sha256": value} for name, value in small_sums().items()})
        served = {name: source.model_dump(exclude_defaults=True) for name, source in hub_data.served(hub).items()}
        self.edit("data/sources.yaml", {"sources": served})
        (folder / "data" / "official").mkdir()
        shutil.copy(hub_data.SMOKE / "counts.yaml", folder / "data" / "official")
        self.env = {k: v for k, v in os.environ.items() if k not in ("CSEBENCH_DATA", "HF_HUB_OFFLINE")}
        self.env |= {"PYTHONPATH": str(folder), "HF_ENDPOINT": hub.endpoint, "HF_HOME": f"{folder}.hf"}
        self.env |= {"OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def edit(self, name: str, changes: dict) -> None:
        """Change keys of a YAML file; of a mapping inside, the given keys only."""
        path = self.folder / name
        content = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            content[key] = {**content.get(key, {}), **value} if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def run(self, *command: str, env: dict | None = None) -> subprocess.CompletedProcess:
        """`python ARGUMENTS` in the copy."""
        env = {**self.env, **(env or {})}
        return subprocess.run([sys.executable, *command], cwd=self.folder, env=env, capture_output=True, text=True)

    def csebench(self, *command: str) -> subprocess.CompletedProcess:
        return self.run("-m", "csebench", *command, "--scale", self.scale)

    def snakemake(self, *arguments: str, env: dict | None = None) -> subprocess.CompletedProcess:
        return self.run("-m", "snakemake", *arguments, "-j2", "--config", f"scale={self.scale}", env=env)

    def rehearse(self, *targets: str) -> dict:
        """What rehearse.py prints, after a run that ended well."""
        done = self.run(str(Path(__file__).with_name("rehearse.py")), self.scale, *targets)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    def read(self, name: str) -> str:
        return (self.folder / "results" / name).read_text(encoding="utf-8")

    def logs(self) -> str:
        """The end of every log, for a test that fails."""
        files = [path for folder in ("runs", "data/official") for path in (self.folder / folder).glob("**/*.log")]
        return "\n".join(f"== {path.relative_to(self.folder)}\n{path.read_text()[-1500:]}" for path in sorted(files))
