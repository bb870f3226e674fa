"""Cilium as the cluster's only network: an overlay that also replaces kube-proxy.

The release does not wait for its pods, because there is no node for them yet: nodes turn Ready only once Cilium runs
on them, so whoever creates nodes comes after it and does the waiting. When it is changed later, nobody would: so
`CiliumRollOut` comes after the first nodes. Ingress is left to those who want it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource, CustomResourcePatch
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from .. import versions
from ..documents import charts, images, manifests

#: What of the pool of pods' addresses Cilium never changes (its guide to IPAM, "Expanding the cluster pool"), by the
#: settings that it comes from.
_FIXED: Final[Mapping[str, str]] = {
    "clusterPoolIPv4PodCIDRList": "podCidr",
    "clusterPoolIPv4MaskSize": "podCidrMaskSize",
}


@dataclass(frozen=True, kw_only=True)
class CiliumArgs:
    """Arguments of `Cilium`.

    Attributes:
        version: Version of the chart.
        api_server: URL of the API server.
        pod_cidr: Range of the overlay network.
        pod_cidr_mask_size: Prefix length of each node's share of it.
        operator_replicas: At most the number of nodes that are there first.
        labels: Labels of everything that the chart makes.
        hubble, encryption: See `documents.charts.cilium`.
        mirrors: What stands in place of registries: `{"quay.io": "registry.example.com/quay"}`.
    """

    version: str
    api_server: pulumi.Input[str]
    pod_cidr: str
    pod_cidr_mask_size: int
    operator_replicas: int
    labels: Mapping[str, str] = field(default_factory=dict)
    hubble: bool = False
    encryption: Literal["none", "wireguard"] = "none"
    mirrors: Mapping[str, str] = field(default_factory=dict)


class Cilium(pulumi.ComponentResource):
    """The Cilium release; `fingerprint` is another one whenever the release changes."""

    version: pulumi.Output[str]
    fingerprint: pulumi.Output[str]

    def __init__(self, name: str, args: CiliumArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:Cilium", name, {}, opts)
        address = pulumi.Output.from_input(args.api_server).apply(charts.api_server_address)
        # Each output is a value of its own, so that policies see the others before there is a cluster.
        values = charts.cilium(
            host=address[0],
            port=address[1],
            pod_cidr=args.pod_cidr,
            pod_cidr_mask_size=args.pod_cidr_mask_size,
            operator_replicas=args.operator_replicas,
            labels=args.labels,
            hubble=args.hubble,
            encryption=args.encryption,
        )
        values = images.mirrored(values, images.CILIUM, args.mirrors)
        Release(
            f"{name}-release",
            name="cilium",
            namespace="kube-system",
            chart=versions.CILIUM_CHART,
            version=args.version,
            repository_opts=RepositoryOptsArgs(repo=versions.CILIUM_REPOSITORY),
            values=values,
            skip_await=True,
            opts=pulumi.ResourceOptions(
                parent=self, hooks=pulumi.ResourceHookBinding(before_update=[_guard(f"{name}-pods")])
            ),
        )
        self.version = pulumi.Output.from_input(args.version)
        self.fingerprint = pulumi.Output.from_input(values).apply(partial(_fingerprint, args.version))
        self.register_outputs({"version": self.version, "fingerprint": self.fingerprint})


class CiliumRollOut(pulumi.ComponentResource):
    """Waits until Cilium's pods are those of the release: a change of it that fails would pass as a success.

    Pulumi's Kubernetes provider waits for a workload of which it has set a field. The field is an annotation that
    changes with the release, and that Helm leaves alone; the pods' template has no part in it.
    """

    def __init__(self, name: str, fingerprint: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None) -> None:
        """`fingerprint` is the release's."""
        super().__init__("karpstack:kubernetes:CiliumRollOut", name, {}, opts)
        annotations = {"pulumi.com/patchForce": "true", "karpstack.io/release": fingerprint}
        # A node that is being drained may hold up its agent.
        waiting = pulumi.ResourceOptions(parent=self, custom_timeouts=pulumi.CustomTimeouts(create="20m", update="20m"))
        # To Pulumi, what DaemonSetPatch and DeploymentPatch are. The SDK would load all of core/v1 for the outputs of
        # those, which takes a second.
        for label, workload, kind in (
            ("agent", "cilium", "DaemonSet"),
            ("operator", "cilium-operator", "Deployment"),
        ):
            CustomResourcePatch(
                f"{name}-{label}",
                api_version="apps/v1",
                kind=kind,
                metadata={"name": workload, "namespace": "kube-system", "annotations": annotations},
                opts=waiting,
            )
        self.register_outputs({})


class DefaultDeny(pulumi.ComponentResource):
    """Pods outside kube-system send and get nothing but DNS unless another policy allows it.

    Cilium's operator makes the resource definition, so this comes when it runs.
    """

    def __init__(self, name: str, *, local_dns: bool = False, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:DefaultDeny", name, {}, opts)
        policy = manifests.default_deny(local_dns=local_dns)
        CustomResource(f"{name}-policy", **policy, opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def refuse_other_addresses(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of the release.

    Raises:
        RunError: The update changes what Cilium takes once: nodes have their shares of it, and upstream says that a
            change has unexpected consequences.
    """
    before, after = _pool(args.old_inputs), _pool(args.new_inputs)
    changes = [
        f"karpstack:network.{setting} {_shown(before[key])} -> {_shown(after[key])}"
        for key, setting in _FIXED.items()
        if key in before and key in after and _shown(before[key]) != _shown(after[key])
    ]
    if changes:
        raise pulumi.RunError(
            f"the Cilium release {args.name} stays as it is; Cilium takes no other pool of addresses once nodes have "
            "their shares of it, and what would become of running pods nobody says: "
            f"{', '.join(changes)}. Take it back, or make another stack and move over"
        )


def _guard(name: str) -> pulumi.ResourceHook:
    return pulumi.ResourceHook(name, refuse_other_addresses, pulumi.ResourceHookOptions(on_dry_run=True))


def _pool(inputs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found: Any = inputs or {}
    for key in ("values", "ipam", "operator"):
        # At a preview something may not be known yet.
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _shown(value: Any) -> str:
    # The engine has no whole numbers.
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _fingerprint(version: str, values: charts.Values) -> str:
    content = json.dumps([version, values], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
