"""`python -m review`, from the root of the checkout."""

import sys
from pathlib import Path

# The pack's folder is the root of its imports, as the engine runs it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "policies"))

from review.command import main

if __name__ == "__main__":
    sys.exit(main())
