"""The little that the rehearsal reads of a stack's configuration: which cloud, and which region.

Everything else in the file is the program's business. Pulumi reads a copy in the state folder, because it adds an
encryption salt; `karpstack.rehearsal.session.pulumi_by_hand` says how the user's own file stays the one that counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from karpstack.rehearsal.engines import built_releases, releases
from karpstack.rehearsal.session.clouds import CLOUDS, Cloud, Name
from karpstack.rehearsal.session.waits import AS_ASKED, Waits
from karpstack.text import files
from karpstack.text.project_file import unread_settings
from karpstack.text.projects import section
from karpstack.text.yaml_file import YamlError, read

_SALT = "encryptionsalt"
_ENCRYPTION = (_SALT, "encryptedkey", "secretsprovider")
#: Of an earlier release.
_LATER = "built first, once"
_ALLOWED = "aws:allowedAccountIds"
_ACCOUNT = re.compile(r"[0-9]{12}")
_MINOR = re.compile(r"1\.[0-9]{1,3}")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


class StackFileError(Exception):
    """The stack cannot be rehearsed as it is configured; the text names the file, the key and the fix."""


@dataclass(frozen=True)
class StackFile:
    """One `Pulumi.<stack>.yaml`.

    Attributes:
        path: The file.
        cloud: The cloud that it is for.
        region: For example `us-east-1`, or `westus2`.
        subscription: Id of the subscription that the stack is for; empty where it names none.
        account: Id of the AWS account that alone is allowed; empty where any is.
        kubernetes: Minor version of the cluster, `1.36`; empty where it says none that could be one.
        karpenter: Version of Karpenter's charts, `1.14.3`; empty where it says none that could be one.
        cilium: The same of Cilium's chart.
        waits: How the waits of its NodePools are changed in Pulumi's copy.
        other_program: Whether it belongs to a program that is not karpstack's: it has no setting of karpstack.
    """

    path: Path
    cloud: Name
    region: str
    subscription: str = ""
    account: str = ""
    kubernetes: str = ""
    karpenter: str = ""
    cilium: str = ""
    waits: Waits = AS_ASKED
    other_program: bool = False

    @property
    def network(self) -> Path:
        """Where networks are described that the simulated account has already; mostly there is no such file."""
        return self.path.with_name(f"{self.path.stem}.network.json")

    @property
    def cluster(self) -> Path:
        """Where a cluster is described that the simulated account has already; mostly there is no such file."""
        return _description(self.path)

    @classmethod
    def load(cls, path: Path, *, described: bool = True, any_program: bool = False) -> StackFile:
        """Read and check a stack's configuration.

        Args:
            described: Whether the network and the cluster that it names as existing must be described beside it.
            any_program: Whether the stack may belong to a program that is not karpstack's.

        Raises:
            StackFileError: There is no such file, it is no stack's configuration, or it is for a cloud without a
                rehearsal.
        """
        if not path.is_file():
            known = sorted(file.name.split(".")[1] for file in path.parent.glob("Pulumi.*.yaml"))
            raise StackFileError(f"there is no stack file {path}; the stacks here are: {', '.join(known) or 'none'}")
        content = _read(path)
        config = content.get("config") or {}
        if not isinstance(config, dict):
            raise StackFileError(
                f"{path}: config = {reprlib.repr(config)} is no mapping, so that no setting could be read; write "
                "`config:` and below it, indented, one `key: value` a line"
            )
        if encrypted := sorted(_encrypted(config)):
            raise StackFileError(
                f"{path} holds secrets that only the environment's own key can open ({', '.join(encrypted)}); a "
                "rehearsal never gets that key. Give it a copy with test values: --config-file FILE"
            )
        other = any_program and not any(str(key).startswith("karpstack:") for key in config)
        if not other and (unread := unread_settings(path, content)):
            raise StackFileError(unread)
        cloud = _cloud_of_region(path, config) if other else _cloud(path, config)
        cluster = _section(config, "cluster")
        exists = cluster.get("existing") is not None
        version = _described_version(_description(path)) if exists else cluster.get("version")
        karpenter, cilium = (_section(config, name).get("chartVersion") for name in ("karpenter", "cilium"))
        loaded = cls(
            path,
            cloud.name,
            _region(path, config, cloud),
            _subscription(path, config, cloud),
            _account(path, config) if cloud.name == "aws" else "",
            _matching(_MINOR, version),
            _matching(_RELEASE, karpenter),
            _matching(_RELEASE, cilium),
            other_program=other,
        )
        if described:
            loaded._check_described(config)
        return loaded

    def _check_described(self, config: Mapping[str, Any]) -> None:
        """Refuse a cluster or a network that exists already, if no file describes it."""
        is_aws = self.cloud == "aws"
        existing = _section(config, "cluster").get("existing")
        if existing is not None and not self.cluster.is_file():
            raise StackFileError(
                f"{self.path}: karpstack:cluster.existing = {reprlib.repr(existing)}: the simulated account has that "
                f"cluster only if {self.cluster} describes it, and there is no such file, so that there would be "
                f"nothing to put Karpenter on; docs/how-to/{'eks' if is_aws else 'aks'}/existing-cluster.md "
                "says how to write it"
            )
        key, page = ("vpcId", "eks/existing-vpc") if is_aws else ("subnetId", "aks/existing-vnet")
        given = _section(config, "network").get(key)
        if given is not None and not self.network.is_file():
            raise StackFileError(
                f"{self.path}: karpstack:network.{key} = {reprlib.repr(given)}: the simulated account has that network "
                f"only if {self.network} describes it, and there is no such file, so that the cluster would have none; "
                f"docs/how-to/{page}.md says how to write it, and `karpstack network` makes one"
            )

    def asking(self, *, kubernetes: object, karpenter: object, cilium: object) -> StackFile:
        """Return a copy with the versions that a program asks for; a value that is no version is left out."""
        return replace(
            self,
            kubernetes=_matching(_MINOR, kubernetes),
            karpenter=_matching(_RELEASE, karpenter),
            cilium=_matching(_RELEASE, cilium),
        )

    @property
    def described(self) -> str:
        """Digest of the files that describe what the account has already; empty without any."""
        files = [file.read_bytes() for file in (self.network, self.cluster) if file.is_file()]
        return hashlib.sha256(b"\0".join(files)).hexdigest() if files else ""

    @property
    def releases(self) -> tuple[str, ...]:
        """The versions that it asks for, of Kubernetes and of charts, for the engines."""
        return self.kubernetes, self.karpenter, self.cilium

    @property
    def releases_of_preview(self) -> tuple[str, ...]:
        """Those that a preview needs: of Kubernetes' only that of a cluster that is there, which the program asks."""
        return (self.kubernetes if self.cluster.is_file() else "", self.karpenter, self.cilium)

    def named_in_addons(self, key: str) -> list[str]:
        """IDs that a setting of karpstack:addons lists; none where the program would refuse it.

        Raises:
            StackFileError: It cannot be read any more.
        """
        given = _section(self.configuration(), "addons").get(key)
        return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []

    def ranges(self) -> dict[str, IPv4Network]:
        """The ranges of karpstack:network that are the cluster's own, by key, where they are some.

        Raises:
            StackFileError: It cannot be read any more.
        """
        found = {}
        for key in ("podCidr", "serviceCidr"):
            with suppress(ValueError):
                found[key] = IPv4Network(_section(self.configuration(), "network").get(key) or "")
        return found

    def check_versions(self) -> None:
        """See that the versions that it asks for are some that the engines have, before anything is made of others.

        Raises:
            StackFileError: One is not. What is no version at all is the program's to refuse.
        """
        for key, what, version, part in (
            ("cluster.version", "Kubernetes", self.kubernetes, "kubernetes"),
            ("karpenter.chartVersion", "Karpenter", self.karpenter, f"karpenter-{self.cloud}"),
            ("cilium.chartVersion", "Cilium", self.cilium, "charts"),
        ):
            known = [*releases(part)]
            if version not in ("", *known):
                built = built_releases(part)
                named = " and ".join(one if one in built else f"{one} ({_LATER})" for one in known)
                if self.other_program:
                    raise StackFileError(
                        f"the program asks for {what} {version}: the rehearsal has {named} alone, so nothing was "
                        f"created; let it ask for {known[0]}, for example by a setting of your program"
                    )
                described = part == "kubernetes" and self.cluster.is_file()
                where = f"{self.cluster}: the cluster's version" if described else f"{self.path}: karpstack:{key}"
                raise StackFileError(
                    f'{where} = "{version}": the rehearsal has {what} {named} '
                    f'alone, so something else would be rehearsed; nothing was started. Write "{known[0]}", or '
                    "rehearse a copy that does: --config-file FILE; `review` takes any version of Kubernetes"
                )

    def configuration(self) -> dict[str, Any]:
        """What it says below `config`, as it is.

        Raises:
            StackFileError: It cannot be read any more.
        """
        return dict(_read(self.path).get("config") or {})

    def node_pools(self) -> dict[str, Any]:
        """Name -> `spec` of each NodePool, as somebody wrote it.

        Raises:
            StackFileError: It cannot be read any more.
        """
        return _section(self.configuration(), "nodePools")

    def has_node_overlays(self) -> bool:
        """Whether there are NodeOverlays.

        Raises:
            StackFileError: It cannot be read any more.
        """
        return bool(_section(self.configuration(), "nodeOverlays"))

    def copy_to(self, target: Path) -> None:
        """Write Pulumi's own copy, keeping the encryption salt that an earlier copy was given.

        The salt or key of a stack that is deployed somewhere stays out: the rehearsal could not open it.
        """
        content = {key: value for key, value in _read(self.path).items() if key not in _ENCRYPTION}
        if target.is_file() and (salt := _read(target).get(_SALT)):
            content[_SALT] = salt
        if isinstance(config := content.get("config"), dict):
            content["config"] = self.waits.applied(config)
        files.write(target, yaml.safe_dump(content, sort_keys=False), private=True)


def _cloud(path: Path, config: Mapping[str, Any]) -> Cloud:
    name = config.get("karpstack:cloud")
    cloud = CLOUDS.get(name) if isinstance(name, str) else None
    if cloud is None:
        raise StackFileError(
            f"{path}: karpstack:cloud is {reprlib.repr(name)}; the rehearsal plays: {', '.join(CLOUDS)}"
            + ("; for a program that is not karpstack's: --program FOLDER" if name is None else "")
        )
    return cloud


def _cloud_of_region(path: Path, config: Mapping[str, Any]) -> Cloud:
    for cloud in CLOUDS.values():
        if cloud.region[0] in config:
            return cloud
    examples = " or ".join(f"`{cloud.region[0]}: {cloud.region[1]}`" for cloud in CLOUDS.values())
    raise StackFileError(
        f"{path}: the region is missing, and it says which cloud to simulate; add for example {examples}"
    )


def _region(path: Path, config: Mapping[str, Any], cloud: Cloud) -> str:
    key, example, pattern = cloud.region
    region = config.get(key)
    if region is None:
        raise StackFileError(f"{path}: {key} is missing; add for example `{key}: {example}`")
    if not isinstance(region, str) or not re.fullmatch(pattern, region):
        raise StackFileError(
            f"{path}: {key} = {reprlib.repr(region)} is the name of no region, so that nothing could be created "
            f"there; write for example `{key}: {example}`"
        )
    return region.replace(" ", "").lower()


def _subscription(path: Path, config: Mapping[str, Any], cloud: Cloud) -> str:
    """Return the subscription that the stack names: the rehearsal plays it, so that ids in the settings are good."""
    subscription = config.get(cloud.subscription) or ""
    if not isinstance(subscription, str):
        raise StackFileError(
            f"{path}: {cloud.subscription} = {reprlib.repr(subscription)} is no id, so that the rehearsal "
            "would play another subscription; write it in quotes, or leave it out"
        )
    return subscription.lower()


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of the program's settings; empty where it is none."""
    return section(config, name) or {}


def _matching(pattern: re.Pattern[str], version: object) -> str:
    """Return a version of that form; empty for what is none: the program refuses it."""
    return version if isinstance(version, str) and pattern.fullmatch(version) else ""


def _description(path: Path) -> Path:
    return path.with_name(f"{path.stem}.cluster.json")


def _described_version(path: Path) -> Any:
    """Version of Kubernetes of a cluster that is described; whoever makes it says what is wrong with its file."""
    try:
        cluster = json.loads(path.read_text(encoding="utf-8"))["cluster"]
        # EKS tells the minor version, Azure often the patch too; ARM's own JSON has it one step further inside.
        said = cluster.get("version") or {**cluster, **cluster.get("properties", {})}["kubernetesVersion"]
        return ".".join(said.split(".")[:2])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _account(path: Path, config: Mapping[str, Any]) -> str:
    """The account that aws:allowedAccountIds names, which the rehearsal then plays."""
    given = config.get(_ALLOWED)
    if given is None:
        return ""
    try:
        allowed = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        allowed = None
    if not isinstance(allowed, list) or len(allowed) != 1 or not _ACCOUNT.fullmatch(str(allowed[0])):
        raise StackFileError(
            f"{path}: {_ALLOWED} = {reprlib.repr(given)} is not one account: the rehearsal plays one, and none of "
            'several is more so than another; write one id of 12 digits, in quotes (["123456789012"]), or rehearse a '
            "copy that does: --config-file FILE"
        )
    return str(allowed[0])


def _read(path: Path) -> dict[str, Any]:
    """A file's mapping, of a size that can be handled."""
    try:
        content = read(path)
    except YamlError as error:
        raise StackFileError(f"{path}: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StackFileError(
            f"{path} = {reprlib.repr(content)} is no mapping, so that no setting could be read; "
            "it begins with `config:`"
        )
    return content


def _encrypted(value: Any, path: str = "") -> list[str]:
    """Paths of the values that Pulumi has encrypted, which look like `{"secure": ...}`."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return [path]
        return [
            place for key, item in value.items() for place in _encrypted(item, f"{path}.{key}" if path else str(key))
        ]
    if isinstance(value, list):
        return [place for index, item in enumerate(value) for place in _encrypted(item, f"{path}[{index}]")]
    return []
