"""`python policies/review`: a folder that is run, like the pack itself; `rules` and `review` lie beside each other."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from review.command import main  # noqa: E402  the line above makes it importable

if __name__ == "__main__":
    sys.exit(main())
