"""Cilium as the cluster's only network: an overlay that also replaces kube-proxy.

It does not wait for its pods, because there is no node for them yet: nodes turn Ready only once Cilium runs
on them, so whoever creates nodes comes after this component and does the waiting. Hubble's relay, ingress and
encryption are left to those who want them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from .. import versions
from ..documents import charts


@dataclass(frozen=True, kw_only=True)
class CiliumArgs:
    """Arguments of `Cilium`.

    Attributes:
        api_server: URL of the API server.
        pod_cidr: Range of the overlay network.
        pod_cidr_mask_size: Prefix length of each node's share of it.
        operator_replicas: At most the number of nodes that are there first.
    """

    api_server: pulumi.Input[str]
    pod_cidr: str
    pod_cidr_mask_size: int
    operator_replicas: int


class Cilium(pulumi.ComponentResource):
    """The Cilium release."""

    version: pulumi.Output[str]

    def __init__(self, name: str, args: CiliumArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:Cilium", name, {}, opts)
        address = pulumi.Output.from_input(args.api_server).apply(charts.api_server_address)
        Release(
            f"{name}-release",
            name="cilium",
            namespace="kube-system",
            chart=versions.CILIUM_CHART,
            version=versions.CILIUM,
            repository_opts=RepositoryOptsArgs(repo=versions.CILIUM_REPOSITORY),
            # Each output is a value of its own, so that policies see the others before there is a cluster.
            values=charts.cilium(
                host=address[0],
                port=address[1],
                pod_cidr=args.pod_cidr,
                pod_cidr_mask_size=args.pod_cidr_mask_size,
                operator_replicas=args.operator_replicas,
            ),
            skip_await=True,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.version = pulumi.Output.from_input(versions.CILIUM)
        self.register_outputs({"version": self.version})
