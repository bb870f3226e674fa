"""The engines: pinned Go programs, charts and the price table that a rehearsal runs with.

This package, and what it imports, needs the standard library only, so that the engines can be built while the Python
environment is being installed. `python -m karpstack.rehearsal.engines` builds what is missing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from karpstack.rehearsal.engines import manifest
from karpstack.rehearsal.host import user_environment
from karpstack.rehearsal.state import ancestors

HERE = Path(__file__).resolve().parent
#: In the cache folder: one command builds at a time.
LOCK = "engines.lock"
#: A Pulumi on PATH is used when it is at least this one; the same version is built otherwise.
PULUMI_VERSION = "3.259.0"
#: Written beside Pulumi, which looks for the language host there first. The environment says which interpreter, and so
#: which checkout, serves: all checkouts share the cache.
LANGUAGE_HOST = """#!/bin/sh
exec "${KARPSTACK_PYTHON:?set by karpstack env}" -m karpstack.rehearsal.attachment.language_host "$@"
"""
#: A platform, as Go and registries name it -> how Python names a machine of it. Engines are built for these.
PLATFORMS = {"linux/amd64": "Linux x86_64", "linux/arm64": "Linux aarch64"}
# Raised whenever the builder makes something else of the same pins; the second for each Karpenter, the third for
# Cilium's charts.
_RECIPE = 6
_KARPENTER_RECIPE = 8
_CILIUM_RECIPE = 7
#: The module of each cloud's Karpenter: the controller, its charts and a price table.
CONTROLLERS = {
    "aws": "github.com/aws/karpenter-provider-aws",
    "azure": "github.com/Azure/karpenter-provider-azure",
}
#: Parts of which there are earlier releases too, with those, the newest first. Each is built where a stack asks for it.
EARLIER = {
    "karpenter-aws": ("karpenter-aws-1.14", "karpenter-aws-1.13"),
    "karpenter-azure": ("karpenter-azure-1.10",),
    "kubernetes": ("kubernetes-1.35",),
    "charts": ("charts-1.19",),
}


def named_cache_folder() -> Path:
    """Return the cache folder as the environment names it, which may be a link."""
    chosen = os.environ.get("KARPSTACK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen).expanduser() if chosen else Path(base) / "karpstack"


def cache_folder() -> Path:
    """The one folder outside the checkout that is written to: `KARPSTACK_CACHE`, or `karpstack` in the user's cache.

    Returns:
        Its path without links; it may not exist yet.

    Raises:
        ancestors.ExposedError: Others could exchange it, and so the programs in it.
    """
    return ancestors.resolve(
        named_cache_folder(),
        "the engines, and so what your commands run",
        "name a folder of your own in KARPSTACK_CACHE",
    )


@dataclass(frozen=True)
class EngineSet:
    """The engines in the cache. Each part of the set has a folder of its own, `<part>/<key>`.

    Attributes:
        root: The folder of all parts.
        keys: Part -> its key, as this checkout's pins say.
    """

    root: Path
    keys: Mapping[str, str] = field(default_factory=lambda: {part: part_key(part) for part in _parts()})

    @classmethod
    def current(cls, platform: str = "") -> EngineSet:
        """The set that this checkout's pins name; parts of it may not be built yet (see `complete`).

        Args:
            platform: One of `PLATFORMS`, if not this machine's.

        Raises:
            ancestors.ExposedError: See `cache_folder`.
        """
        return cls(cache_folder() / "engines", {part: part_key(part, platform) for part in _parts()})

    def part(self, name: str) -> Path:
        """Folder of a part."""
        return self.root / name / self.keys[name]

    def complete(self, part: str) -> bool:
        """Whether a part is built: its folder appears under its name only when it is whole."""
        return self.part(part).is_dir()

    def fault(self, part: str) -> str:
        """Why an earlier release cannot be used, and what to do; empty if it can."""
        if not self.complete(part):
            why = "can be rehearsed, and is not built yet"
        elif manifest.faults(self.part(part)):
            why = "is not as it was built"
        else:
            return ""
        return (
            f"{why}; run `karpstack engines build FILE` with a stack file that names it (karpenter.chartVersion, "
            "cilium.chartVersion, cluster.version), then this command again"
        )

    def program(self, name: str) -> Path:
        """Path of a program.

        Args:
            name: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, helm, pulumi, or the
                part of a Karpenter (see `releases`). Pulumi is the user's own where a suitable one is on PATH.
        """
        if name == "pulumi" and (own := pulumi_on_path()):
            return own
        return self.part(name if name in self.keys else "kubernetes") / "bin" / name

    def controller(self, newest: str, release: str) -> Path:
        """Path of a Karpenter of one release.

        Args:
            newest: `karpenter-aws`, or `karpenter-azure`: what is taken where there is no such release.
            release: Its version, for example `1.14.3`.
        """
        return self.program(releases(newest).get(release, newest))

    def server(self, name: str, version: str) -> Path:
        """Path of a server of the control plane: kube-apiserver, kube-controller-manager or kube-scheduler.

        Args:
            version: Minor version of Kubernetes, one of `releases`.
        """
        return self.part(releases("kubernetes")[version]) / "bin" / name

    def chart(self, part: str, name: str) -> Path:
        """Path of an unpacked chart: cilium of `charts`, two of a Karpenter, those of `addons`."""
        return self.part(part) / "charts" / name

    def cilium_definition(self, plural: str) -> Path:
        """Path of the resource definition of a kind of Cilium's, for example `ciliumclusterwidenetworkpolicies`."""
        return self.part("charts") / "crds" / f"{plural}.yaml"

    def prices(self, cloud: str) -> Path:
        """On-demand prices that Karpenter's provider for a cloud carries, in dollars per hour.

        JSON: {"us-east-1": {"m5.large": 0.096, ...}}.
        """
        return self.part(f"karpenter-{cloud}") / "prices.json"

    def kubelet(self) -> Path:
        """The Go source of the kubelet's configuration, as Karpenter for AWS knows it.

        The folder above it is named by the version of k8s.io/kubelet.
        """
        return next((self.part("karpenter-aws") / "kubelet").glob("*/types.go"))


def required_parts(clouds: Collection[str], earlier: Collection[str] = ()) -> list[str]:
    """The parts that rehearsals of some clouds need, in the order in which they are built.

    Args:
        clouds: `aws`, `azure`, or both. What is known of a cloud comes from its newest Karpenter, so that one is there.
        earlier: Versions of Karpenter, Kubernetes and Cilium (as `releases` has them) that are needed too, if they are
            earlier ones; of what is none, the program and Helm tell.
    """
    karpenters = [f"karpenter-{cloud}" for cloud in ("azure", "aws") if cloud in clouds]
    parts = ["kubernetes", *karpenters, "pulumi", "charts", *(["addons"] if "aws" in clouds else [])]
    asked = [
        part
        for newest in ("kubernetes", *karpenters, "charts")
        for one, part in releases(newest).items()
        if one in earlier
    ]
    return [*parts, *(part for part in asked if part not in parts)]


def _parts() -> list[str]:
    return [*required_parts(CONTROLLERS), *(part for parts in EARLIER.values() for part in parts)]


def native_platform() -> str:
    """This machine's platform, as Go and registries name it: `linux/amd64`."""
    named = {python: name for name, python in PLATFORMS.items()}
    return named.get(_machine(), _machine().lower().replace(" ", "/"))


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}"


def part_key(part: str, built_for: str = "") -> str:
    """Key of a part: changes with its pins, what is ours in it, the recipe and the platform.

    Args:
        part: Its name.
        built_for: One of `PLATFORMS`, if not this machine's.
    """
    version = PULUMI_VERSION + LANGUAGE_HOST if part == "pulumi" else ""
    karpenter = part.startswith("karpenter-")
    recipe = _KARPENTER_RECIPE if karpenter else _CILIUM_RECIPE if part.startswith("charts") else _RECIPE
    machine = PLATFORMS.get(built_for) or _machine()
    digest = hashlib.sha256(f"{recipe} {version} {machine}".encode())
    for source in part_sources(part):
        digest.update(source.relative_to(HERE).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def part_sources(part: str) -> list[Path]:
    """The files of this repository that a part is built from: its pins, and what is ours in it."""
    karpenter = part.startswith("karpenter-")
    # The main of each Karpenter is the same, and what makes programs keep the cluster's time.
    clock = ("clock",) if karpenter or part.startswith("kubernetes") else ()
    folders = (part, *clock, *(("guard", f"karpenter-{_cloud(part)}/controller") if karpenter else ()))
    sources = {path for folder in folders for path in (HERE / folder).rglob("*")}
    return sorted(path for path in sources if path.suffix in (".mod", ".sum", ".go", ".s"))


def _cloud(part: str) -> str:
    """The cloud of a Karpenter, whichever its release."""
    return part.split("-")[1]


def cache_key(clouds: Collection[str], earlier: Collection[str] = ()) -> str:
    """A name for what rehearsals of some clouds need of the engines, for a cache of others: another name, other parts.

    Args:
        clouds, earlier: As of `wanted`.

    Returns:
        `engines-linux-x86_64-` and the digest of all parts' keys.
    """
    parts = " ".join(f"{part}/{part_key(part)}" for part in required_parts(clouds, earlier))
    digest = hashlib.sha256(parts.encode()).hexdigest()[:16]
    return f"engines-{platform.system().lower()}-{platform.machine()}-{digest}"


def pinned(part: str, module: str) -> str:
    """Version of a module in a part's go.mod, as `v1.36.3`.

    Raises:
        LookupError: It is not required there.
    """
    pins = (HERE / part / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", pins, re.MULTILINE)
    if not found:
        raise LookupError(f"{part}/go.mod does not require {module}; add it there")
    return found[1]


def release(cloud: str) -> str:
    """Version of the pinned Karpenter for a cloud, without its `v`: the number of its release.

    Raises:
        LookupError: There is none for that cloud.
    """
    if cloud not in CONTROLLERS:
        known = ", ".join(CONTROLLERS)
        raise LookupError(f"there is no Karpenter for {cloud} among the engines; there is one for {known}")
    return _version(f"karpenter-{cloud}")


def releases(newest: str) -> dict[str, str]:
    """Version of each release that can be rehearsed -> the part that has it, the newest first.

    Args:
        newest: A part of which there are several: `karpenter-aws`, `karpenter-azure`; `charts`, by Cilium's version; or
            `kubernetes`, whose versions are minor ones, `1.36`.
    """
    return {_version(part): part for part in (newest, *EARLIER[newest])}


def built_releases(newest: str) -> list[str]:
    """The versions of `releases` whose engines are there; the newest always, for without it nothing is rehearsed."""
    return [
        version for version, part in releases(newest).items() if part == newest or EngineSet.current().complete(part)
    ]


def _version(part: str) -> str:
    if part.startswith("kubernetes"):
        return pinned(part, "k8s.io/kubernetes").removeprefix("v").rpartition(".")[0]
    module = "github.com/cilium/cilium" if part.startswith("charts") else CONTROLLERS[_cloud(part)]
    return pinned(part, module).removeprefix("v")


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
