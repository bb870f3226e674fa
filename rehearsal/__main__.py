"""`python -m rehearsal`: see `rehearsal.cli`."""

from __future__ import annotations

import sys

try:
    from rehearsal.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "rehearsal":
        raise
    sys.exit(
        f"error: {sys.executable} lacks the module {error.name}, so nothing can be rehearsed with it; "
        "run `make environment`, and then .venv/bin/python -m rehearsal"
    )

if __name__ == "__main__":
    sys.exit(main())
