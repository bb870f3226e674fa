"""`python -m karpstack.rehearsal.engines`: build the engines that are missing."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from karpstack.rehearsal.engines import CONTROLLERS, cache_key
from karpstack.rehearsal.engines.builder import BuildError, ensure, lint
from karpstack.rehearsal.state.ancestors import ExposedError

# Of charts, and of the cluster; in blocks, in braces, or as the JSON that Pulumi writes.
_VERSION = re.compile(r"""\b(?:chartVersion|version)\\?["']?\s*:\s*\\?["']?([\d.]+)""")


def main() -> int:
    """Build and report; 1 when the engines cannot be built."""
    parser = argparse.ArgumentParser(
        prog="python -m karpstack.rehearsal.engines",
        description="Build the engines of the rehearsal (Kubernetes, etcd, Helm, kwok, Karpenter, Pulumi) from pinned "
        "Go modules into the cache folder. Nothing happens when they are built already.",
    )
    parser.add_argument(
        "stack_files",
        nargs="*",
        type=Path,
        help="stacks' configurations: leave other clouds' Karpenter out, and build earlier releases that they name",
    )
    parser.add_argument(
        "--cache-key",
        action="store_true",
        help="print instead a name for what would be built, by which a cache can keep the cache folder's `engines`",
    )
    parser.add_argument(
        "--lint", action="store_true", help="run gofmt on our own Go programs instead; go vet has passed what is built"
    )
    options = parser.parse_args()
    try:
        if options.lint:
            lint()
            return 0
        if missing := [file for file in options.stack_files if not _is_file(file)]:
            print(f"error: there is no stack file {missing[0]}, so nothing is built; name one that is", file=sys.stderr)
            return 1
        clouds, earlier = _clouds(options.stack_files), _versions(options.stack_files)
        if options.cache_key:
            print(cache_key(clouds, earlier))
            return 0
        engines = ensure(clouds, earlier)
    except (BuildError, ExposedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next build goes on from here.", file=sys.stderr)
        return 130
    print(f"Engines ready: {engines.root}")
    return 0


def _clouds(stack_files: Sequence[Path]) -> list[str]:
    """The clouds to build for: all without a file.

    There may be nothing yet to read YAML with. Where no cloud is found, the command that brings the stack up builds
    what is missing, or says what is wrong with the file.
    """
    if not stack_files:
        return list(CONTROLLERS)
    named = {_cloud(file) for file in stack_files}
    return [cloud for cloud in CONTROLLERS if cloud in named]


def _cloud(stack_file: Path) -> str:
    found = re.search(r"""(?m)^ +["']?karpstack:cloud["']?: *["']?(\w+)""", _text(stack_file))
    return found[1] if found else ""


def _versions(stack_files: Sequence[Path]) -> list[str]:
    """What stacks ask for; what is no release is the program's to refuse."""
    return [version for file in stack_files for version in _VERSION.findall(_text(file))]


def _text(stack_file: Path) -> str:
    return stack_file.read_text(encoding="utf-8", errors="replace") if _is_file(stack_file) else ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


if __name__ == "__main__":
    sys.exit(main())
