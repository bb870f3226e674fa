"""`karpstack doctor`: what a rehearsal lacks on this machine, and how to get it. Standard library only."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.request import getproxies

from karpstack.rehearsal.engines import CONTROLLERS, EngineSet, cache_folder, required_parts
from karpstack.rehearsal.engines.builder import BuildError, Go
from karpstack.rehearsal.engines.reference import VARIABLE
from karpstack.rehearsal.state.ancestors import ExposedError
from karpstack.text.codes import Code

_PYTHON: Final = (3, 11)
#: A module of each extra of dependencies.
_MODULES: Final = ("pulumi", "kubernetes", "moto", "psutil", "ansible", "boto3", "pulumi_policy")
_MACHINES: Final = ("x86_64", "amd64", "aarch64", "arm64")
_CORES: Final = 2
_MEMORY: Final = 2 * 2**30
_ROOM: Final = 2 * 2**30
_ROOM_TO_BUILD: Final = 7 * 2**30
Severity = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Check:
    """What was found about one thing.

    Attributes:
        name: The thing.
        severity: `bad` if nothing can be rehearsed as it is; `note` if it is worth knowing.
        found: What was found.
        fix: What to do; empty if nothing.
    """

    name: str
    severity: Severity
    found: str
    fix: str = ""


def doctor(*, form: Literal["text", "json"] = "text") -> int:
    """Print all checks; `Code.NO` if something is missing."""
    checks = [check for of in _CHECKS for check in of()]
    if form == "json":
        print(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            mark = {"good": "ok", "note": "note", "bad": "MISSING"}[check.severity]
            print(f"{mark:8}{check.name:{width}}  {check.found}")
            if check.fix:
                print(f"{'':8}{'':{width}}  fix: {check.fix}")
    return Code.NO if any(check.severity == "bad" for check in checks) else Code.GOOD


def _system() -> Iterator[Check]:
    found = f"{platform.system()} {platform.machine()}"
    if sys.platform != "linux" or platform.machine().lower() not in _MACHINES:
        yield Check("system", "bad", found, "use Linux on amd64 or arm64, for example a virtual machine or WSL 2")
    else:
        yield Check("system", "good", found)


def _python() -> Iterator[Check]:
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < _PYTHON:
        yield Check("Python", "bad", found, "install Python 3.11 or newer, and use it for a new Python environment")
    else:
        yield Check("Python", "good", found)
    if missing := [name for name in _MODULES if importlib.util.find_spec(name) is None]:
        fix = f"run: {sys.executable} -m pip install 'karpstack[aws,rehearsal]'; in a checkout: make environment"
        yield Check("Python modules", "bad", f"{', '.join(missing)} not installed", fix)
    else:
        yield Check("Python modules", "good", "installed")


def _engines() -> Iterator[Check]:
    try:
        engines = EngineSet.current()
    except ExposedError as error:
        yield Check("cache folder", "bad", str(error))
        return
    yield from _cache(cache_folder())
    missing = [part for part in required_parts(list(CONTROLLERS)) if not engines.complete(part)]
    built = _built(missing, engines.root)
    yield built
    yield from _go(needed=built.severity == "bad")
    least = _ROOM_TO_BUILD if built.severity == "bad" else _ROOM
    for name, folder in (("disk of the cache", cache_folder()), ("disk of this folder", Path.cwd())):
        existing = next(place for place in (folder, *folder.parents) if place.exists())
        free = shutil.disk_usage(existing).free
        few = free < least
        fix = f"make room for {least / 2**30:.0f} GiB in {existing}" if few else ""
        yield Check(name, "bad" if few else "good", f"{free / 2**30:.1f} GiB free", fix)


def _built(missing: list[str], folder: Path) -> Check:
    if not missing:
        return Check("engines", "good", f"built, {folder}")
    ready = [cloud for cloud in CONTROLLERS if not {*required_parts([cloud])} & {*missing}]
    found = f"not built: {', '.join(missing)}" + (f"; complete for {', '.join(ready)}" if ready else "")
    if os.environ.get(VARIABLE):
        return Check("engines", "note", f"{found}; a rehearsal pulls them from {VARIABLE}")
    fix = "karpstack engines build (all clouds, about 15 minutes), or karpstack engines build Pulumi.eks.yaml"
    return Check("engines", "note" if ready else "bad", found, fix)


def _cache(folder: Path) -> Iterator[Check]:
    if folder.exists() and folder.stat().st_uid != os.getuid():
        fix = f"name a folder of your own: KARPSTACK_CACHE=FOLDER; or: sudo chown -R $(id -u) {folder}"
        yield Check("cache folder", "bad", f"{folder} belongs to user {folder.stat().st_uid}", fix)
    else:
        yield Check("cache folder", "good", str(folder))


def _go(*, needed: bool) -> Iterator[Check]:
    try:
        go = Go.find()
    except BuildError as error:
        if needed:
            yield Check("Go", "bad", str(error))
        else:
            yield Check("Go", "note", "not found; it is needed only to build engines")
        return
    yield Check("Go", "good", f"{go.version}, {go.program}")


def _machine() -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < _CORES:
        yield Check("cores", "note", f"{cores}: stories may be late", f"give the machine {_CORES} cores or more")
    else:
        yield Check("cores", "good", str(cores))
    free = _free_memory()
    if free is not None:
        few = free < _MEMORY
        fix = f"end other programs until {_MEMORY / 2**30:.0f} GiB are free" if few else ""
        yield Check("memory", "bad" if few else "good", f"{free / 2**30:.1f} GiB free", fix)
    yield Check("Docker", "good", "not needed")


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    known = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return (known["MemAvailable"] + known.get("SwapFree", 0)) * 1024


def _proxy() -> Iterator[Check]:
    proxies = {name: url for name, url in getproxies().items() if name in ("http", "https", "all")}
    if not proxies:
        yield Check("proxy", "good", "none named in the environment")
        return
    # A URL may hold a password.
    named = ", ".join(f"{name}: {url.rpartition('@')[2]}" for name, url in sorted(proxies.items()))
    fix = "docs/how-to/proxy.md says what goes through it; simulated accounts are reached without it"
    yield Check("proxy", "note", named, fix)


_CHECKS: Final[tuple[Callable[[], Iterator[Check]], ...]] = (_system, _python, _engines, _machine, _proxy)
