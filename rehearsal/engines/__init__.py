"""The engines: pinned Go programs, charts and the price table that a rehearsal runs with.

This package, and what it imports, needs the standard library only, so that the engines can be built while the Python
environment is being installed. `python -m rehearsal.engines` builds what is missing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rehearsal.host import user_environment
from rehearsal.state import ancestors

HERE = Path(__file__).resolve().parent
#: A Pulumi on PATH is used when it is at least this one; the same version is built otherwise.
PULUMI_VERSION = "3.259.0"
# Raised whenever the builder makes something else of the same pins.
_RECIPE = 5
#: The module of each cloud's Karpenter: the controller, its charts and a price table.
CONTROLLERS = {
    "aws": "github.com/aws/karpenter-provider-aws",
    "azure": "github.com/Azure/karpenter-provider-azure",
}


def cache_folder() -> Path:
    """The one folder outside the checkout that is written to: `KARPSTACK_CACHE`, or `karpstack` in the user's cache.

    Returns:
        Its path without links; it may not exist yet.

    Raises:
        ancestors.ExposedError: Others could exchange it, and so the programs in it.
    """
    chosen = os.environ.get("KARPSTACK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen).expanduser() if chosen else Path(base) / "karpstack"
    return ancestors.resolve(
        folder, "the engines, and so what your commands run", "name a folder of your own in KARPSTACK_CACHE"
    )


@dataclass(frozen=True)
class EngineSet:
    """A complete set of built engines in the cache.

    Attributes:
        root: Its folder.
    """

    root: Path

    @classmethod
    def current(cls) -> EngineSet:
        """The set that this checkout's pins name; it may not be built yet (see `complete`).

        Raises:
            ancestors.ExposedError: See `cache_folder`.
        """
        return cls(cache_folder() / "engines" / recipe_key())

    @property
    def complete(self) -> bool:
        """Whether it is built: a set appears under its name only when it is whole."""
        return self.root.is_dir()

    def program(self, name: str) -> Path:
        """Path of a program.

        Args:
            name: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, helm, karpenter-aws,
                karpenter-azure or pulumi. The last is the user's own where a suitable one is on PATH.
        """
        if name == "pulumi" and (own := pulumi_on_path()):
            return own
        return self.root / "bin" / name

    def chart(self, name: str) -> Path:
        """Path of an unpacked chart: karpenter-aws, karpenter-crd-aws, the same for azure, or cilium."""
        return self.root / "charts" / name

    def prices(self, cloud: str) -> Path:
        """On-demand prices that Karpenter's provider for a cloud carries, in dollars per hour.

        JSON: {"us-east-1": {"m5.large": 0.096, ...}}.
        """
        return self.root / f"prices-{cloud}.json"


def recipe_key() -> str:
    """Key of the engine set: changes with the pins, the recipe and the platform."""
    digest = hashlib.sha256(f"{_RECIPE} {PULUMI_VERSION} {platform.system()} {platform.machine()}".encode())
    sources = sorted([*HERE.glob("*/go.mod"), *HERE.glob("*/go.sum"), *HERE.glob("*/**/*.go")])
    for source in sources:
        digest.update(source.relative_to(HERE).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def release(cloud: str) -> str:
    """Version of the pinned Karpenter for a cloud, without its `v`: the number of its release.

    Args:
        cloud: `aws` or `azure`.

    Raises:
        LookupError: There is none for that cloud.
    """
    module = CONTROLLERS.get(cloud)
    if module is None:
        known = ", ".join(CONTROLLERS)
        raise LookupError(f"there is no Karpenter for {cloud} among the engines; there is one for {known}")
    pins = (HERE / f"karpenter-{cloud}" / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)$", pins, re.MULTILINE)
    if not found:
        raise LookupError(f"karpenter-{cloud}/go.mod does not require karpenter-provider-{cloud}; add it there")
    return found[1]


def kubernetes() -> str:
    """Minor version of the pinned control plane, `1.36`: the only one that can be rehearsed.

    Raises:
        LookupError: The pins do not say.
    """
    pins = (HERE / "kubernetes" / "go.mod").read_text()
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes v(\d+\.\d+)\.", pins, re.MULTILINE)
    if not found:
        raise LookupError("kubernetes/go.mod does not require k8s.io/kubernetes; add it there")
    return found[1]


def pulumi_on_path() -> Path | None:
    """The user's Pulumi, when it is not older than ours and its Python language host is beside it.

    What PATH names is run as it is: it is the user's own choice, and no part of what the cache's manifest covers.
    """
    found = shutil.which("pulumi")
    if not found or not shutil.which("pulumi-language-python", path=str(Path(found).resolve().parent)):
        return None
    try:
        text = subprocess.run(
            [found, "version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env={**user_environment.allowed(os.environ), "PULUMI_SKIP_UPDATE_CHECK": "1"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text.strip())
    wanted = tuple(int(part) for part in PULUMI_VERSION.split("."))
    return Path(found) if match and tuple(int(part) for part in match.groups()) >= wanted else None
