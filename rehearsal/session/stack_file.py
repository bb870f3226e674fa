"""The little that the rehearsal reads of a stack's configuration: which cloud, and which region.

Everything else in the file is the program's business. Pulumi reads a copy in the state folder, because it adds an
encryption salt; `rehearsal.session.pulumi_by_hand` says how the user's own file stays the one that counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from rehearsal.engines import EngineSet, releases
from rehearsal.session.clouds import CLOUDS, Name
from rehearsal.session.waits import AS_ASKED, Waits
from scale_test.text import files
from scale_test.text.yaml_file import tab_at

_SALT = "encryptionsalt"
_ENCRYPTION = (_SALT, "encryptedkey", "secretsprovider")
#: Of an earlier release.
_LATER = "built before, once, in a quarter of an hour"
_ALLOWED = "aws:allowedAccountIds"
_ACCOUNT = re.compile(r"[0-9]{12}")
_MINOR = re.compile(r"1\.[0-9]{1,3}")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# Far more than a stack has to say. Aliases make a file of a few lines say a thousand times as much.
_MAX_BYTES = 1_000_000
_MAX_VALUES = 100_000
_MAX_DEPTH = 50
# Of a number; Python takes long for longer ones, and refuses to write them.
_MAX_DIGITS = 40
# libyaml's is ten times as fast. It must not be given what is nested without end: it would crash.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"


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

    @property
    def network(self) -> Path:
        """Where networks are described that the rehearsed account has already; mostly there is no such file."""
        return self.path.with_name(f"{self.path.stem}.network.json")

    @property
    def cluster(self) -> Path:
        """Where a cluster is described that the rehearsed account has already; mostly there is no such file."""
        return _description(self.path)

    @classmethod
    def load(cls, path: Path, *, described: bool = True) -> StackFile:
        """Read and check a stack's configuration.

        Args:
            path: The file.
            described: Whether the network and the cluster that it names as existing must be described beside it.

        Raises:
            StackFileError: There is no such file, it is no stack's configuration, or it is for a cloud without a
                rehearsal.
        """
        if not path.is_file():
            known = sorted(file.name.split(".")[1] for file in path.parent.glob("Pulumi.*.yaml"))
            raise StackFileError(f"there is no stack file {path}; the stacks here are: {', '.join(known) or 'none'}")
        config = _read(path).get("config") or {}
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
        name = config.get("karpstack:cloud")
        cloud = CLOUDS.get(name) if isinstance(name, str) else None
        if cloud is None:
            raise StackFileError(
                f"{path}: karpstack:cloud is {reprlib.repr(name)}; the rehearsal plays: {', '.join(CLOUDS)}"
            )
        key, example, pattern = cloud.region
        region = config.get(key)
        if region is None:
            raise StackFileError(f"{path}: {key} is missing; add for example `{key}: {example}`")
        if not isinstance(region, str) or not re.fullmatch(pattern, region):
            raise StackFileError(
                f"{path}: {key} = {reprlib.repr(region)} is the name of no region, so that nothing could be created "
                f"there; write for example `{key}: {example}`"
            )
        # The rehearsal plays the very subscription that the stack names: ids in its configuration mean something.
        subscription = config.get(cloud.subscription) or ""
        if not isinstance(subscription, str):
            raise StackFileError(
                f"{path}: {cloud.subscription} = {reprlib.repr(subscription)} is no id, so that the rehearsal "
                "would play another subscription; write it in quotes, or leave it out"
            )
        account = _account(path, config) if cloud.name == "aws" else ""
        existing = _section(config, "cluster").get("existing")
        cluster = _description(path)
        if described and existing is not None and not cluster.is_file():
            raise StackFileError(
                f"{path}: karpstack:cluster.existing = {reprlib.repr(existing)}: the rehearsed account has that "
                f"cluster only if {cluster} describes it, and there is no such file, so that there would be nothing "
                f"to put Karpenter on; docs/existing-{'' if cloud.name == 'aws' else 'aks-'}cluster.md says how to "
                "write it"
            )
        version = _section(config, "cluster").get("version") if existing is None else _described_version(cluster)
        kubernetes = version if isinstance(version, str) and _MINOR.fullmatch(version) else ""
        karpenter, cilium = (_section(config, name).get("chartVersion") for name in ("karpenter", "cilium"))
        loaded = cls(
            path,
            cloud.name,
            region.replace(" ", "").lower(),
            subscription.lower(),
            account,
            kubernetes,
            karpenter if isinstance(karpenter, str) and _RELEASE.fullmatch(karpenter) else "",
            cilium if isinstance(cilium, str) and _RELEASE.fullmatch(cilium) else "",
        )
        key, page = ("vpcId", "vpc") if cloud.name == "aws" else ("subnetId", "vnet")
        given = _section(config, "network").get(key)
        if described and given is not None and not loaded.network.is_file():
            raise StackFileError(
                f"{path}: karpstack:network.{key} = {reprlib.repr(given)}: the rehearsed account has that network only "
                f"if {loaded.network} describes it, and there is no such file, so that the cluster would have none; "
                f"docs/existing-{page}.md says how to write it, and `python -m rehearsal network` makes one"
            )
        return loaded

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
                described = part == "kubernetes" and self.cluster.is_file()
                where = f"{self.cluster}: the cluster's version" if described else f"{self.path}: karpstack:{key}"
                named = " and ".join(one if _is_built(one, part) else f"{one} ({_LATER})" for one in known)
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


def _section(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A section of the program's settings, whether Pulumi wrote it (as JSON) or a person; empty where it is none."""
    found = config.get(f"karpstack:{name}")
    try:
        found = json.loads(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_built(version: str, part: str) -> bool:
    """Whether a release is there already, or is the newest, without which nothing is rehearsed."""
    parts = releases(part)
    return version == next(iter(parts)) or EngineSet.current().complete(parts[version])


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


def _account(path: Path, config: dict[str, Any]) -> str:
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
        if path.stat().st_size > _MAX_BYTES:
            raise StackFileError(
                f"{path} has more than {_MAX_BYTES} bytes, which no stack needs; remove what is not its"
            )
        text = path.read_text(encoding="utf-8")
        _measure(path, yaml.parse(text, _LOADER))
        _refuse_doubles(path, yaml.compose(text, _LOADER))
        content = yaml.load(text, _LOADER)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError) as error:  # the latter for a date that there is not
        if isinstance(error, yaml.MarkedYAMLError) and (why := tab_at(text.encode(), error)):
            raise StackFileError(f"{path} is not valid YAML: {why}") from error
        raise StackFileError(f"{path} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StackFileError(
            f"{path} = {reprlib.repr(content)} is no mapping, so that no setting could be read; "
            "it begins with `config:`"
        )
    return content


def _measure(path: Path, events: Iterator[Any]) -> None:
    """Refuse what is nested too deeply or says too much, aliases written out, before anything is made of it."""
    numbers: Any = yaml.resolver.Resolver()
    count = 0
    counts: dict[str | None, int] = {}  # of the values that an anchor stands for
    opened: list[tuple[str | None, int]] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            # An alias within what it stands for has no count yet.
            count += counts.get(event.anchor, _MAX_VALUES + 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor:
                counts[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                counts[event.anchor] = 1
            if event.implicit[0] and len(event.value) > _MAX_DIGITS:
                tag = numbers.resolve(yaml.ScalarNode, event.value, (True, False))
                if tag.endswith((":int", ":float")):
                    raise StackFileError(
                        f"{path}, line {_line(event)}: {reprlib.repr(event.value)} is no number to reckon "
                        "with; write another, or put it in quotes"
                    )
        if len(opened) > _MAX_DEPTH:
            raise StackFileError(f"{path} is nested too deeply to be read; a stack's settings have some ten levels")
        if count > _MAX_VALUES:
            raise StackFileError(
                f"{path} has more than {_MAX_VALUES} values, which no stack needs, or refers to itself; "
                "write what its aliases (*name) stand for once"
            )


def _refuse_doubles(path: Path, root: yaml.Node | None) -> None:
    """Refuse keys that are told twice: the last would count here, and Pulumi would refuse both."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        inner: list[yaml.Node] = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            told: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                    if key.value in told:
                        raise StackFileError(
                            f"{path}, line {_line(key)}: {reprlib.repr(key.value)} is there twice, so "
                            "that one of them would be lost; remove one"
                        )
                    told.add(key.value)
                inner.append(value)
        waiting += [node for node in inner if id(node) not in seen]
        seen.update(map(id, inner))


def _line(place: Any) -> int:
    """The line of an event or a node, from 1."""
    return int(place.start_mark.line) + 1


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
