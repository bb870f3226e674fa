"""`python -m preflight`."""

import sys

from scale_test.text.output import run

from .cli import main

if __name__ == "__main__":
    sys.exit(run(main))
