"""The evaluators, one file per protocol family. The contract of a file: evaluators/_template.py."""
