"""Write the environment of every rule family from lock.txt.

Run this script by hand after a change of the lock or of a family.
"""

import re
from pathlib import Path
from typing import NamedTuple

ENVS = Path(__file__).parent
PYTHON = "3.11"
# The dependencies of pyproject.toml that the jobs of each family import.
REPORT = {
    "matplotlib",
    "numpy",
    "pydantic",
    "pyyaml",
    "rich",
    "scipy",
    "tqdm",
    "furo",
    "myst-parser",
    "sphinx",
}
EVALUATE = {
    "accelerate",
    "beir",
    "datasets",
    "huggingface-hub",
    "mteb",
    "numpy",
    "pydantic",
    "pyyaml",
    "rich",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sentence-transformers",
    "threadpoolctl",
    "tokenizers",
    "torch",
    "tqdm",
    "transformers",
}
FAMILIES = {
    "train": EVALUATE | {"sentencepiece"},  # a training job also scores its run
    "evaluate": EVALUATE,
    "report": REPORT,
}
HEAD = f"""\
# Written by envs/make.py from envs/lock.txt, all pins inline, since Snakemake copies this file: edit those instead.
channels: [conda-forge]
dependencies:
  - python={PYTHON}
  - pip
  - pip:
"""  # noqa: E501


class LockedPackage(NamedTuple):
    """A package of lock.txt."""

    version: str
    required_by: set[str]


def environment(family: str) -> str:
    """Write the environment of a family: its packages, and all that they require."""
    locked = lock()
    lines = []
    for name in sorted(with_requirements(FAMILIES[family], locked)):
        lines.append(f"      - {name}=={locked[name].version}\n")
    return HEAD + "".join(lines)


def with_requirements(names: set[str], locked: dict[str, LockedPackage]) -> set[str]:
    """Add the packages that packages require, directly or through others."""
    required = set(names)
    while True:
        added = {name for name, package in locked.items() if package.required_by & required}
        if added <= required:
            return required
        required |= added


def lock() -> dict[str, LockedPackage]:
    """Read lock.txt, where uv notes after each package which packages require it."""
    text = (ENVS / "lock.txt").read_text()
    packages = {}
    for name, version, via in re.findall(r"^([\w.-]+)==(\S+)\s+# via (.+)$", text, flags=re.M):
        packages[name] = LockedPackage(version, set(via.split(", ")))
    return packages


if __name__ == "__main__":
    for family in FAMILIES:
        (ENVS / f"{family}.yaml").write_text(environment(family))
