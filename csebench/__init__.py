"""csebench: the reproduction harness for unsupervised sentence embeddings."""

from pathlib import Path

__version__ = "0.1.0"
REPOSITORY = "https://github.com/csebench/csebench"

ROOT = Path(__file__).resolve().parent.parent  # the project: methods/, papers/, config/ ... lie here
