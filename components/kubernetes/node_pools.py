"""Node classes and NodePools, applied as they are given.

Deleting them is what empties a cluster: Pulumi deletes in the foreground, a NodePool's NodeClaims block its
deletion, and each NodeClaim waits until its node is drained and its instance is gone. So the timeouts are
long, the order is explicit, and `deleted_with` must never be used here: it would leave instances behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource


@dataclass(frozen=True, kw_only=True)
class NodePoolsArgs:
    """Arguments of `NodePools`.

    Attributes:
        node_classes: Complete manifests of the cloud's node classes.
        node_pools: Complete manifests of NodePools that refer to them.
    """

    node_classes: Sequence[Mapping[str, Any]]
    node_pools: Sequence[Mapping[str, Any]]


class NodePools(pulumi.ComponentResource):
    """One custom resource a manifest; names of the objects as outputs."""

    node_classes: pulumi.Output[list[str]]
    node_pools: pulumi.Output[list[str]]

    def __init__(self, name: str, args: NodePoolsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:NodePools", name, {}, opts)
        node_classes = [
            # Its finalizer holds until no NodeClaim uses it and the controller has removed what it made for it.
            _apply(
                f"{name}-class",
                manifest,
                pulumi.ResourceOptions(parent=self, custom_timeouts=pulumi.CustomTimeouts(delete="30m")),
            )
            for manifest in args.node_classes
        ]
        for manifest in args.node_pools:
            _apply(
                f"{name}-pool",
                manifest,
                pulumi.ResourceOptions(
                    parent=self, depends_on=node_classes, custom_timeouts=pulumi.CustomTimeouts(delete="45m")
                ),
            )
        self.node_classes = pulumi.Output.from_input(_names(args.node_classes))
        self.node_pools = pulumi.Output.from_input(_names(args.node_pools))
        self.register_outputs({"nodeClasses": self.node_classes, "nodePools": self.node_pools})


def _names(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(manifest["metadata"]["name"]) for manifest in manifests]


def _apply(prefix: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions) -> CustomResource:
    return CustomResource(
        f"{prefix}-{manifest['metadata']['name']}",
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        metadata=manifest["metadata"],
        spec=_with_secrets(manifest["spec"]),
        opts=opts,
    )


def _with_secrets(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec, with user data as a secret: scripts that start nodes often carry credentials."""
    return {**spec, "userData": pulumi.Output.secret(spec["userData"])} if "userData" in spec else spec
