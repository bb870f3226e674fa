"""`python -m karpstack`: the command `karpstack`."""

import sys

from karpstack.cli import main

if __name__ == "__main__":
    sys.exit(main())
