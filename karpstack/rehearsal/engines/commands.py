"""What `karpstack engines build|publish|status|verify` do: each function is one command, and returns its exit code.

Standard library only: the engines are built while the Python environment is being installed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from karpstack.rehearsal.engines import (
    CONTROLLERS,
    EARLIER,
    PLATFORMS,
    EngineSet,
    manifest,
    native_platform,
    reference,
    required_parts,
)
from karpstack.rehearsal.engines import cache_key as key_of_cache
from karpstack.rehearsal.engines.builder import BuildError, Go, ensure
from karpstack.rehearsal.engines.builder import lint as check_go
from karpstack.rehearsal.engines.registry import TransferError
from karpstack.rehearsal.state.ancestors import ExposedError
from karpstack.text.codes import Code, reported
from karpstack.text.files import OutputError


class NoStackFileError(Exception):
    """A stack file does not exist, or cannot be read."""


class PlatformError(ValueError):
    """Engines are not built for a platform."""


# Of charts, and of the cluster; in blocks, in braces, or as the JSON that Pulumi writes.
_VERSION = re.compile(r"""\b(?:chartVersion|version)\\?["']?\s*:\s*\\?["']?([\d.]+)""")
_CODES: Final[Mapping[type[BaseException], Code]] = {
    BuildError: Code.UNKNOWN,
    ExposedError: Code.UNKNOWN,
    TransferError: Code.UNKNOWN,
    NoStackFileError: Code.WRONG,
    OutputError: Code.WRONG,
    PlatformError: Code.WRONG,
    reference.PlaceError: Code.WRONG,
}


@reported(_CODES)
def build(stack_files: Sequence[Path] = (), *, platform: str = "") -> int:
    """Pull or build the engines that are missing; of stacks with these files, or of all clouds."""
    _check(stack_files)
    _check_platforms([platform] if platform else ())
    try:
        engines = ensure(_clouds(stack_files), _versions(stack_files), platform=platform)
    except KeyboardInterrupt:
        print("\nStopped. The next build goes on from here.", file=sys.stderr)
        return Code.INTERRUPTED
    print(f"Engines ready: {engines.root}")
    return Code.GOOD


@reported(_CODES)
def publish(place: str, stack_files: Sequence[Path] = (), *, platforms: Sequence[str] = ()) -> int:
    """Publish engines that were built here, by default of this machine's platform, and print their place."""
    from karpstack.rehearsal.engines.publishing import publish as publish_engines

    _check(stack_files)
    _check_platforms(platforms)
    chosen = platforms or [native_platform()]
    target = reference.parse(place)
    if target.digest:
        raise reference.PlaceError(f"{place} names a digest, which publishing computes; leave it out")
    parts = required_parts(_clouds(stack_files), _versions(stack_files))
    if not stack_files:
        sets = [EngineSet.current(platform) for platform in chosen]
        earlier = [part for parts in EARLIER.values() for part in parts]
        parts += [part for part in earlier if all(engines.complete(part) for engines in sets)]
    digest = publish_engines(target, parts, chosen, Go.find())
    print(f"{target.place}@{digest}")
    return Code.GOOD


@reported(_CODES)
def cache_key(stack_files: Sequence[Path] = ()) -> int:
    """Print a name for what would be built, by which a cache can keep the cache folder's `engines`."""
    _check(stack_files)
    print(key_of_cache(_clouds(stack_files), _versions(stack_files)))
    return Code.GOOD


@reported(_CODES)
def lint() -> int:
    """Run gofmt on our own Go programs; go vet has passed what is built."""
    check_go()
    return Code.GOOD


@reported(_CODES)
def status(stack_files: Sequence[Path] = (), *, form: str = "text") -> int:
    """Print which engines are built; `Code.NO` if one is missing."""
    return _show(stack_files, form, lambda engines, part: [] if engines.complete(part) else ["not built"])


def _origin(engines: EngineSet, part: str) -> str:
    """Where a part comes from; empty if it was built here, or cannot be read."""
    try:
        return manifest.origin(engines.part(part))
    except (OSError, ValueError, AttributeError):
        return ""


@reported(_CODES)
def verify(stack_files: Sequence[Path] = (), *, form: str = "text") -> int:
    """Compare the files of the engines with their manifests; `Code.NO` if one is missing or differs."""
    return _show(
        stack_files,
        form,
        lambda engines, part: manifest.faults(engines.part(part)) if engines.complete(part) else ["not built"],
    )


def _show(stack_files: Sequence[Path], form: str, faults: Callable[[EngineSet, str], list[str]]) -> int:
    _check(stack_files)
    engines = EngineSet.current()
    found = {part: faults(engines, part) for part in required_parts(_clouds(stack_files), _versions(stack_files))}
    if form == "json":
        parts = [
            {
                "name": part,
                "folder": str(engines.part(part)),
                "faults": wrong,
                "pulledFrom": _origin(engines, part) or None,
            }
            for part, wrong in found.items()
        ]
        print(json.dumps({"parts": parts}, indent=2))
    else:
        for part, wrong in found.items():
            origin = _origin(engines, part)
            came = f"pulled from {origin}" if origin else "built here"
            print(f"{part}: {'; '.join(wrong) or f'ready, {came}'}")
        if any(found.values()):
            print("Build what is missing or differs with: karpstack engines build")
    return Code.NO if any(found.values()) else Code.GOOD


def _check(stack_files: Sequence[Path]) -> None:
    """Refuse a stack file that does not exist, or cannot be read."""
    for file in stack_files:
        if not _is_file(file):
            raise NoStackFileError(f"there is no stack file {file}, so nothing is built; name one that is")
        try:
            _text(file)
        except OSError as error:
            raise NoStackFileError(
                f"the stack file {file} cannot be read ({error.strerror}), so nothing is built; make it readable, or "
                "name another one"
            ) from error


def _check_platforms(platforms: Sequence[str]) -> None:
    for platform in platforms:
        if platform not in (*PLATFORMS, native_platform()):
            raise PlatformError(
                f"--platform {platform}: engines are not built for it, so nothing was done; choose "
                f"{' or '.join(PLATFORMS)}"
            )


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
