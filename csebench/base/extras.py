"""Packages that only some verbs need: those of the extra `run` in pyproject.toml.

Without them, csebench judges claims, plans, compares and renders.
"""

from importlib.util import find_spec

from csebench.base.errors import BadInput

# Modules that the jobs of the workflow import to train, score and download. The Python environment
# of a job (envs/) has all of them. It lacks what only starts jobs, such as snakemake.
RUN_MODULES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "sentence_transformers",
    "accelerate",
    "sklearn",
    "threadpoolctl",
    "huggingface_hub",
    "datasets",
    "mteb",
    "beir",
)


def check_run_modules(verb: str) -> None:
    """Check that the packages to train, score and download are installed, and import none.

    Raises:
        BadInput: a package is missing.
    """
    missing = [module for module in RUN_MODULES if find_spec(module) is None]
    if missing:
        raise BadInput(
            f"{verb}: needs packages that are not installed ({', '.join(missing)}); this installs"
            " them: pip install 'csebench[run]'"
        )
