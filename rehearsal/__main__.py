"""`python -m rehearsal`: see `rehearsal.cli`."""

from __future__ import annotations

import sys

from rehearsal.cli import main

if __name__ == "__main__":
    sys.exit(main())
