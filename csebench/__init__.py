"""csebench: the reproduction harness for unsupervised sentence embeddings.

From Python: `csebench.scores`, `csebench.table` and `csebench.evaluate` (csebench/api.py), loaded when they are used.
"""

from importlib import import_module

__version__ = "0.2.0"


def __getattr__(name: str):
    if name in ("scores", "table", "evaluate"):
        return getattr(import_module("csebench.api"), name)
    raise AttributeError(f"module 'csebench' has no attribute {name!r}")
