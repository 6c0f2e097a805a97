"""`python -m csebench`."""

import os
import sys

from csebench.cli import main

code = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # the system frees what a job holds; for Python to take torch and transformers apart takes a second
