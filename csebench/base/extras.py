"""Checks of packages that an installation may lack.

Without the packages of the extra `run` in pyproject.toml, csebench cannot train or score.
Everything else works without them: claims, plans, comparisons, and pages from stored scores. A
tracker needs a package of its own.
"""

import sys
from importlib.util import find_spec

from csebench.base.errors import BadInput

# Modules that training and scoring import. The environments of jobs (envs/) have all of them. They
# lack what only starts jobs, such as snakemake.
RUN_MODULES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "sentence_transformers",
    "accelerate",
    "sklearn",
    "threadpoolctl",
    "datasets",
    "mteb",
    "beir",
)


def check_run_modules(needed_by: str) -> None:
    """Check that the packages to train and score are installed, without importing them.

    Args:
        needed_by: the verb or the source of data that needs them, for the message.

    Raises:
        BadInput: a package is missing.
    """
    missing = []
    for module in RUN_MODULES:
        is_imported = module in sys.modules
        if not is_imported and find_spec(module) is None:
            missing.append(module)
    if missing:
        raise BadInput(
            f"{needed_by}: packages are missing ({', '.join(missing)}). Install them with"
            " pip install 'csebench[run]', or in a clone with pip install -e '.[run]'."
        )


def check_tracker(name: str) -> None:
    """Check that the package of a tracker (csebench/base/trackers.py) is installed.

    Raises:
        BadInput: the package is missing.
    """
    if find_spec(name) is None:
        raise BadInput(
            f"--log-to {name}: the package {name} is missing; install it with pip install {name}."
        )
