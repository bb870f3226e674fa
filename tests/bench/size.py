"""`python -m tests.bench.size [REVISION ...]`: count the lines of the repository at each revision.

Product: Python outside tests/. Tests: Python in tests/, and the YAML tables of cases there. Recorded answers, golden
files and data in JSON do not count.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from karpstack.text.packaged import IMPORT_ROOT

_TABLES = (".yml", ".yaml")


def main() -> int:
    """Print product and test lines of each revision, HEAD without one."""
    print(f"{'revision':<12} {'product':>9} {'tests':>9}")
    for revision in sys.argv[1:] or ["HEAD"]:
        product = tests = 0
        for path, lines in _sizes(revision):
            if path.startswith("tests/"):
                tests += lines if path.endswith((".py", *_TABLES)) else 0
            else:
                product += lines if path.endswith(".py") else 0
        print(f"{revision:<12} {product:>9,} {tests:>9,}")
    return 0


def _sizes(revision: str) -> Iterator[tuple[str, int]]:
    """Yield each text file of a revision with its number of lines; git's empty tree is what all is added to."""
    empty = _git("hash-object", "-t", "tree", "/dev/null").strip()
    for line in _git("diff", "--numstat", "--no-renames", empty, revision).splitlines():
        added, _, path = line.split("\t")
        if added != "-":
            yield path, int(added)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=IMPORT_ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
