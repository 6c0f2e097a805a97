"""csebench: the reproduction harness for unsupervised sentence embeddings.

From Python: `csebench.scores`, `csebench.table`, `csebench.evaluate` (csebench/api.py) and
`csebench.try_method` (csebench/study/attempt.py), loaded when they are used.
"""

from importlib import import_module

MODULES = {"__version__": "base.project", "scores": "api", "table": "api", "evaluate": "api"}
MODULES |= {"try_method": "study.attempt"}
__all__ = ["__version__", "evaluate", "scores", "table", "try_method"]  # pyright: ignore


def __dir__() -> list[str]:
    """What there is, also before it is loaded: for completion in a notebook."""
    return sorted({*MODULES, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str):
    if name in MODULES:
        value = getattr(import_module(f"csebench.{MODULES[name]}"), name)
        return import_module("csebench.api").for_notebooks(value) if callable(value) else value
    raise AttributeError(f"module 'csebench' has no attribute {name!r}")
