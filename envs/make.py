"""Write the environment of every rule family from lock.txt: run by hand, after a change of the
lock or of a family."""

import re
from pathlib import Path

ENVS = Path(__file__).parent
PYTHON = "3.11"
# What the jobs of a family import, of pyproject.toml's dependencies. Training scores its run in the
# same job.
REPORT = {
    "matplotlib",
    "numpy",
    "pydantic",
    "pyyaml",
    "scipy",
    "tabulate",
    "tqdm",
    "furo",
    "myst-parser",
    "sphinx",
}
EVALUATE = {
    "beir",
    "datasets",
    "huggingface-hub",
    "mteb",
    "numpy",
    "pydantic",
    "pyyaml",
    "safetensors",
    "scikit-learn",
    "scipy",
}
EVALUATE |= {
    "sentence-transformers",
    "tabulate",
    "threadpoolctl",
    "tokenizers",
    "torch",
    "tqdm",
    "transformers",
}
FAMILIES = {
    "train": EVALUATE | {"accelerate", "sentencepiece"},
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


def lock() -> dict[str, tuple[str, set[str]]]:
    """Version of every package, and the packages that require it, which uv notes behind it."""
    lines = re.findall(
        r"^([\w.-]+)==(\S+)\s+# via (.+)$", (ENVS / "lock.txt").read_text(), flags=re.M
    )
    return {name: (version, set(via.split(", "))) for name, version, via in lines}


def environment(family: str) -> str:
    """What a family imports, and what that requires in turn."""
    locked, wanted = lock(), set(FAMILIES[family])
    while more := {name for name, (_, via) in locked.items() if via & wanted} - wanted:
        wanted |= more
    return HEAD + "".join(f"      - {name}=={locked[name][0]}\n" for name in sorted(wanted))


if __name__ == "__main__":
    for family in FAMILIES:
        (ENVS / f"{family}.yaml").write_text(environment(family))
