"""Address ranges, against the networks that are there; and an existing network, if the stack is to use one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpstack.components.settings.existing_vnet import problems

from ..finding import Finding, finding
from ..settings_findings import convert_findings
from .api_versions import NETWORK
from .existing_cluster import READS_NETWORKS
from .existing_network import READS_ZONES, find, space
from .subject import Subject

_NAMED: Final = 5


def ranges(subject: Subject) -> Iterator[Finding]:
    """Networks of the subscription that the stack's own could never be peered with."""
    if subject.settings.network.subnet_id is not None:
        return
    own = subject.settings.network.vnet_cidr
    path = f"{subject.azure.scope}/providers/Microsoft.Network/virtualNetworks"
    names = [
        one["name"]
        for one in subject.azure.all(READS_NETWORKS, path, NETWORK)
        if not subject.made(one["id"]) and any(own.overlaps(cidr) for cidr in space(one["properties"]))
    ]
    if names:
        listed = ", ".join(sorted(names)[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
        yield finding(
            "network-overlaps-several" if len(names) > 1 else "network-overlaps-one",
            READS_NETWORKS,
            own=own,
            names=len(names),
            listed=listed,
        )


def subnet(subject: Subject) -> Iterator[Finding]:
    """What is wrong with the network that the stack does not make; nothing where it makes its own."""
    subnet_id = subject.settings.network.subnet_id
    if subnet_id is None:
        return
    yield from convert_findings(
        problems(subject.settings, find(subject, subnet_id)),
        lambda problem: READS_ZONES if problem.key.endswith("privateDnsZone") else READS_NETWORKS,
    )
