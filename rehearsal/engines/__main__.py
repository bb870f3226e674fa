"""`python -m rehearsal.engines`: build the engines that are missing."""

from __future__ import annotations

import argparse
import sys

from rehearsal.engines.builder import BuildError, ensure, lint
from rehearsal.state.ancestors import ExposedError


def main() -> int:
    """Build and report; 1 when the engines cannot be built."""
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal.engines",
        description="Build the engines of the rehearsal (Kubernetes, etcd, Helm, kwok, Karpenter, Pulumi) from pinned "
        "Go modules into the cache folder. Nothing happens when they are built already.",
    )
    parser.add_argument("--lint", action="store_true", help="run gofmt and go vet on our own Go programs instead")
    options = parser.parse_args()
    try:
        if options.lint:
            lint()
            return 0
        engines = ensure()
    except (BuildError, ExposedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next build goes on from here.", file=sys.stderr)
        return 130
    print(f"Engines ready: {engines.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
