"""`python -m scale_test`."""

import sys

from .cli import main
from .text.output import run

if __name__ == "__main__":
    sys.exit(run(main))
