"""Run a verb: `python -m csebench VERB`."""

import sys

from csebench.cli import main

if __name__ == "__main__":
    sys.exit(main())
