"""`karpstack`: see `karpstack.rehearsal.cli`."""

from __future__ import annotations

import sys

try:
    from karpstack.rehearsal.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "karpstack":
        raise
    sys.exit(
        f"error: {sys.executable} lacks the module {error.name}, so nothing can be rehearsed with it; "
        "run `make environment`, and then .venv/bin/karpstack"
    )

if __name__ == "__main__":
    sys.exit(main())
