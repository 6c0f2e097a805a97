"""Where the project is: methods/, papers/, config/ … lie beside the package."""

from pathlib import Path

REPOSITORY = "https://github.com/csebench/csebench"
ROOT = Path(__file__).resolve().parents[2]
