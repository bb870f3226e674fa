"""Warnings about a cluster without a public endpoint, which the deployer may not reach."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

import pulumi


def no_access_warning(name: str, *, fix: str) -> pulumi.ResourceHook:
    """Return a hook that warns before such a cluster is created: at the first preview and `up` only.

    Args:
        name: Of the hook; unique in the program.
        fix: What to do, in this cloud.
    """

    def warn(created: pulumi.ResourceHookArgs) -> None:
        pulumi.log.warn(
            "karpstack:cluster.publicAccessCidrs = []\n"
            f"    {created.name} will have no public endpoint, and its network is made with it: from outside nobody "
            "reaches the API server, so `up` fails after network and control plane, before Cilium and Karpenter\n"
            f"    fix: {fix}"
        )

    return pulumi.ResourceHook(name, warn, pulumi.ResourceHookOptions(on_dry_run=True))


def private_access_warning(
    name: str, *, networks: Sequence[IPv4Network], destination: IPv4Address
) -> pulumi.ResourceHook:
    """Return a hook that warns before such a cluster is created in an existing network, which this machine may reach.

    Args:
        name: Of the hook; unique in the program.
        networks: Ranges that are admitted to the API server.
        destination: An address of the cluster's network.
    """

    def warn(created: pulumi.ResourceHookArgs) -> None:
        source = _source(destination)
        if source is None or not any(source in network for network in networks):
            pulumi.log.warn(
                f"karpstack:cluster.privateAccessCidrs = {', '.join(map(str, networks))}\n"
                f"    {created.name} will have no public endpoint, and this machine would go to its network "
                + (f"from {source}, which is not admitted" if source else "by no route at all")
                + ": unless that address is translated on the way, `up` fails after the control plane, before Cilium "
                "and Karpenter\n"
                "    fix: run it where the VPC is reached from one of these ranges, or add the range that you come from"
            )

    return pulumi.ResourceHook(name, warn, pulumi.ResourceHookOptions(on_dry_run=True))


def _source(destination: IPv4Address) -> IPv4Address | None:
    """The address from which this machine would send to another one; None without a route. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((str(destination), 443))
        except OSError:
            return None
        return IPv4Address(asked.getsockname()[0])
