"""`python policies/review`: a folder that is run, like the pack itself; `rules` and `review` lie beside each other."""

import sys
from pathlib import Path

pack = Path(__file__).resolve().parents[1]
# What the pack imports, and the checkout's root with `karpenter`.
sys.path[:1] = [str(pack), str(pack.parent)]

from review.command import main  # noqa: E402  the line above makes it importable

if __name__ == "__main__":
    sys.exit(main())
