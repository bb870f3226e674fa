"""A stack file with the NodePools and node classes of a snapshot: the base of a what-if of a cluster made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from scale_test.text.yaml_file import YamlError, read

from .model import NodeClass, Snapshot
from .reading import SnapshotError

_REGIONS: Final = {"aws": "aws:region", "azure": "azure-native:location"}
_HEADER: Final = """\
# The NodePools and node classes of a snapshot, for a what-if; everything else is as in {like}.
# Of a node class it has what says how large nodes are; the rest, and the image, is that of the class {model} there.
"""
# Images are of the cluster's Kubernetes version, or of its account: a rehearsal has neither.
_OF_THE_CLUSTER: Final = ("amiSelectorTerms", "imageFamily", "imageVersion")


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: who edits the one must not change the other."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def stack_file(snapshot: Snapshot, like: Path) -> str:
    """The text of a stack file.

    Args:
        snapshot: Whose NodePools and node classes it has, its region and, on AWS, its zones.
        like: The stack file from which all else is taken; of the same cloud.

    Raises:
        SnapshotError: The snapshot has no NodePools, or the other file is none of its cloud.
    """
    try:
        content = read(like)
    except YamlError as error:
        raise SnapshotError(f"{like}: {error}: nothing could be taken from it; name a stack file") from error
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise SnapshotError(f"{like}: has no config, so it is no stack file; name one such as Pulumi.eks.yaml")
    cloud, region = snapshot.cluster.cloud, snapshot.cluster.region
    if not snapshot.node_pools:
        raise SnapshotError(
            "nodePools: the snapshot has none, so nothing would provision its pods' nodes; take one of a cluster "
            "with Karpenter, or write the NodePools into a stack file yourself"
        )
    if cloud not in _REGIONS or config.get("karpstack:cloud") != cloud:
        raise SnapshotError(
            f"cloud: the snapshot's is {cloud!r} and that of {like} is {config.get('karpstack:cloud')!r}, so its "
            "NodePools would be refused there; name a stack file of the same cloud"
        )
    models = config.get("karpstack:nodeClasses")
    model = next(iter(models), "") if isinstance(models, dict) else ""
    base = models[model] if isinstance(models, dict) and model else {}
    changed = {
        **config,
        **({_REGIONS[cloud]: region} if region else {}),
        "karpstack:nodeClasses": {one.name: _node_class(one, base) for one in snapshot.node_classes} or models,
        "karpstack:nodePools": {one.name: one.spec for one in snapshot.node_pools},
    }
    network = config.get("karpstack:network")
    if cloud == "aws" and isinstance(network, dict) and (zones := _zones(snapshot)):
        changed["karpstack:network"] = {**network, "zones": zones}
    text = yaml.dump({**content, "config": changed}, Dumper=_Plain, sort_keys=False, width=120)
    return _HEADER.format(like=like.name, model=model) + text


def _node_class(of: NodeClass, base: Mapping[str, Any]) -> dict[str, Any]:
    return {**base, **{key: value for key, value in of.spec.items() if value and key not in _OF_THE_CLUSTER}}


def _zones(snapshot: Snapshot) -> list[str]:
    """The zones of all node classes' subnets; none where one does not tell."""
    if not all(one.zones for one in snapshot.node_classes):
        return []
    return sorted({zone for one in snapshot.node_classes for zone in one.zones})
