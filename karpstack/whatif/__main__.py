"""`karpstack whatif`."""

import sys

from karpstack.text.output import run

from .cli import main

if __name__ == "__main__":
    sys.exit(run(main))
