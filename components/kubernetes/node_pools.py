"""Node classes, NodeOverlays and NodePools, applied as they are given.

Each is awaited until Karpenter says that it is ready, for the API server takes objects with which no node ever comes.

Deleting them is what empties a cluster: Pulumi deletes in the foreground, a NodePool's NodeClaims block its
deletion, and each NodeClaim waits until its node is drained and its instance is gone. A drain may take as long as the
NodePool's terminationGracePeriod: pods that wait for a place elsewhere hold up others by their disruption budgets. So
the timeouts are long, the order is explicit, and `deleted_with` must never be used here: it would leave instances
behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from karpstack.karpenter.quantities import duration

from ..documents.manifests import node_template
from .live import explanation

#: Karpenter needs seconds. Where IAM does not know a new role yet, it looks again after ten minutes only
#: (karpenter-provider-aws, pkg/controllers/nodeclass/validation.go).
_READY_WITHIN: Final = "15m"
#: How long the last instances take to go, once nothing holds up their nodes.
_LEAVING: Final = timedelta(minutes=20)
#: How long the drain of nodes is waited for that have no terminationGracePeriod: nothing bounds it then.
_UNBOUNDED: Final = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class NodePoolsArgs:
    """Arguments of `NodePools`.

    Attributes:
        node_classes: Complete manifests of the cloud's node classes.
        node_pools: Complete manifests of NodePools that refer to them.
        node_overlays: Complete manifests of NodeOverlays, which are there before the NodePools launch nodes.
        kubeconfig: The Kubernetes provider's, to ask why something does not get ready.
    """

    node_classes: Sequence[Mapping[str, Any]]
    node_pools: Sequence[Mapping[str, Any]]
    node_overlays: Sequence[Mapping[str, Any]]
    kubeconfig: pulumi.Input[str]


class NodePools(pulumi.ComponentResource):
    """One custom resource a manifest; names of the objects as outputs."""

    node_classes: pulumi.Output[list[str]]
    node_pools: pulumi.Output[list[str]]

    def __init__(self, name: str, args: NodePoolsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:NodePools", name, {}, opts)
        # Environments of two types may have one name; the engine takes each name of a hook once.
        environment = opts.parent.pulumi_resource_type if opts and opts.parent else ""
        explained = explanation(f"{environment}:{name}-explanation", args.kubeconfig)
        node_classes = [
            # Its finalizer holds until no NodeClaim uses it and the controller has removed what it made for it.
            self._apply(f"{name}-class", manifest, _timeouts(timedelta(minutes=30)), explained)
            for manifest in args.node_classes
        ]
        overlays = [
            self._apply(f"{name}-overlay", manifest, _timeouts(timedelta(minutes=5)), explained)
            for manifest in args.node_overlays
        ]
        first = [*node_classes, *overlays]
        for manifest in args.node_pools:
            self._apply(f"{name}-pool", manifest, _timeouts(_drained(manifest) + _LEAVING), explained, first)
        self.node_classes = pulumi.Output.from_input(_names(args.node_classes))
        self.node_pools = pulumi.Output.from_input(_names(args.node_pools))
        self.register_outputs({"nodeClasses": self.node_classes, "nodePools": self.node_pools})

    def _apply(
        self,
        prefix: str,
        manifest: Mapping[str, Any],
        timeouts: pulumi.CustomTimeouts,
        hooks: pulumi.ResourceHookBinding,
        after: Sequence[pulumi.Resource] = (),
    ) -> CustomResource:
        return CustomResource(
            f"{prefix}-{manifest['metadata']['name']}",
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            metadata={**manifest["metadata"], "annotations": {"pulumi.com/waitFor": "condition=Ready"}},
            spec=_with_secrets(manifest["spec"]),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after, custom_timeouts=timeouts, hooks=hooks),
        )


def _names(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(manifest["metadata"]["name"]) for manifest in manifests]


def _drained(node_pool: Mapping[str, Any]) -> timedelta:
    """How long the NodePool's nodes may take to get rid of their pods."""
    period = node_template(node_pool["spec"]).get("terminationGracePeriod")
    return duration(period) if period else _UNBOUNDED


def _timeouts(delete: timedelta) -> pulumi.CustomTimeouts:
    return pulumi.CustomTimeouts(
        create=_READY_WITHIN, update=_READY_WITHIN, delete=f"{delete.total_seconds() / 60:.0f}m"
    )


def _with_secrets(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec, with user data as a secret: scripts that start nodes often carry credentials."""
    return {**spec, "userData": pulumi.Output.secret(spec["userData"])} if "userData" in spec else spec
