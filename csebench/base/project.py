"""Version and place of the project: methods/, papers/, config/ … lie beside the package."""

from pathlib import Path

__version__ = "0.2.0"
REPOSITORY = "https://github.com/csebench/csebench"
ROOT = Path(__file__).resolve().parents[2]
