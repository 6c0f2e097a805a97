"""csebench: the reproduction harness for unsupervised sentence embeddings.

The public functions are `csebench.scores`, `csebench.table`, `csebench.evaluate`, `csebench.judge`
(csebench/api.py) and `csebench.try_method` (csebench/study/attempt.py). Each is loaded when it is
used.
"""

from importlib import import_module

MODULES = {  # where each public name is defined
    "__version__": "base.project",
    "scores": "api",
    "table": "api",
    "evaluate": "api",
    "judge": "api",
    "try_method": "study.attempt",
}
__all__ = ["__version__", "evaluate", "judge", "scores", "table", "try_method"]  # pyright: ignore


def __dir__() -> list[str]:
    """List the public names, so that a notebook completes them before they are loaded."""
    special = [name for name in globals() if name.startswith("__")]
    return sorted({*MODULES, *special})


def __getattr__(name: str):
    """Load a public name when it is used."""
    if name not in MODULES:
        raise AttributeError(f"module 'csebench' has no attribute {name!r}")
    value = getattr(import_module(f"csebench.{MODULES[name]}"), name)
    if not callable(value):
        return value
    return import_module("csebench.api").for_notebooks(value)
