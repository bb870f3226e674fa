"""The Pulumi package karpstack: `pulumi package add` of this folder runs it."""

import sys
from pathlib import Path

# Python puts this folder first. Its `kubernetes` and others would hide packages of these names.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]

from karpstack.components.package import serve  # noqa: E402

if __name__ == "__main__":
    serve()
