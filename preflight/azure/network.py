"""Address ranges, against the networks that are there; and an existing subnet, if the stack is to use one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from components.settings.aks import AZURE_ADDRESSES

from ..finding import Finding
from .subject import NETWORK, Subject

_NETWORKS: Final = "Microsoft.Network/virtualNetworks/read"
_NAMED: Final = 5


def ranges(subject: Subject) -> Iterator[Finding]:
    """Networks of the subscription that the stack's own could never be peered with."""
    if subject.settings.network.subnet_id is not None:
        return
    own = subject.settings.network.vnet_cidr
    found = subject.azure.all(_NETWORKS, f"{subject.azure.scope}/providers/Microsoft.Network/virtualNetworks", NETWORK)
    names = [
        one["name"] for one in found if not subject.made(one["id"]) and any(own.overlaps(cidr) for cidr in _space(one))
    ]
    if names:
        listed = ", ".join(sorted(names)[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
        yield Finding(
            "note",
            f"karpstack:network.vnetCidr {own} overlaps {len(names)} networks of the subscription: {listed}"
            if len(names) > 1
            else f"karpstack:network.vnetCidr {own} overlaps the network {listed}",
            "the stack's network can never be peered with it; a range cannot be changed later",
            "choose another range, if there is to be a way between them",
            _NETWORKS,
        )


def subnet(subject: Subject) -> Iterator[Finding]:
    """An existing subnet that is not there, is elsewhere, is too small, or lies in ranges of the cluster."""
    identifier = subject.settings.network.subnet_id
    if identifier is None:
        return
    network_id, _, name = identifier.rpartition("/subnets/")
    found = subject.azure.find(_NETWORKS, network_id, NETWORK)
    subnets = ((found or {}).get("properties") or {}).get("subnets", ())
    own = next((one for one in subnets if one["name"].lower() == name.lower()), None)
    if found is None or own is None:
        yield Finding(
            "error",
            f"there is no {'network' if found is None else 'subnet'} {network_id if found is None else identifier}",
            "pulumi up stops at the cluster's identity, whose role is given on that subnet",
            "set karpstack:network.subnetId to the resource ID of a subnet that is there",
            _NETWORKS,
        )
        return
    location = str(found.get("location", "")).replace(" ", "").lower()
    if location != subject.region:
        yield Finding(
            "error",
            f"the network of {identifier} is in {location}, and the stack in {subject.region}",
            "AKS refuses the cluster: nodes and their network must be in one location",
            "choose a subnet there, or another azure-native:location",
            _NETWORKS,
        )
    yield from _room(subject, own)
    yield from _conflicts(subject, found)


def _room(subject: Subject, own: Mapping[str, Any]) -> Iterator[Finding]:
    properties, nodes = own["properties"], subject.settings.system_nodes.count
    if delegations := [one.get("name") for one in properties.get("delegations") or ()]:
        yield Finding(
            "error",
            f"the subnet {own['name']} is delegated to {', '.join(map(str, delegations))}",
            "AKS refuses the cluster: only the service to which it is delegated may use it",
            "choose a subnet without delegations",
            _NETWORKS,
        )
    if subject.is_up:
        return
    addresses = sum(cidr.num_addresses - AZURE_ADDRESSES for cidr in _prefixes(properties))
    free = addresses - len(properties.get("ipConfigurations") or ())
    if free < nodes + 1:
        yield Finding(
            "error" if free < nodes else "warning",
            f"the subnet {own['name']} has {max(free, 0)} free addresses, and the {nodes} system nodes take one each, "
            "and one while they are upgraded",
            "AKS refuses the cluster: InsufficientSubnetSize" if free < nodes else "each upgrade of them fails",
            "choose a larger subnet: each node of Karpenter's takes an address of it too",
            _NETWORKS,
        )


def _conflicts(subject: Subject, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Ranges of the cluster that are addresses of machines too, in the network or in one that it is peered with."""
    network = subject.settings.network
    properties = found["properties"]
    peered = [
        (str(peering.get("name")), cidr)
        for peering in properties.get("virtualNetworkPeerings") or ()
        for cidr in _cidrs(((peering.get("properties") or {}).get("remoteAddressSpace") or {}).get("addressPrefixes"))
    ]
    for key, own in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
        taken = [cidr for one in properties.get("subnets", ()) for cidr in _prefixes(one["properties"])]
        if overlapping := next((cidr for cidr in (*_space(found), *taken) if own.overlaps(cidr)), None):
            yield Finding(
                "error",
                f"karpstack:network.{key} {own} overlaps {overlapping} of the network {found['name']}",
                "AKS refuses the cluster, or pods reach each other's addresses where a machine is meant",
                f"choose another {key}; it cannot be changed later",
                _NETWORKS,
            )
        for peering, cidr in peered:
            if own.overlaps(cidr):
                yield Finding(
                    "warning",
                    f"karpstack:network.{key} {own} overlaps {cidr}, with which {found['name']} is peered ({peering})",
                    "pods do not reach the machines there: the addresses are the cluster's own",
                    f"choose another {key}; it cannot be changed later",
                    _NETWORKS,
                )
    if not any(network.vnet_cidr == cidr for cidr in _space(found)):
        yield Finding(
            "warning",
            f"karpstack:network.vnetCidr is {network.vnet_cidr}, and the network {found['name']} has "
            f"{', '.join(map(str, _space(found)))}",
            "other ranges were checked against the wrong one",
            "write what the network has",
            _NETWORKS,
        )


def _space(network: Mapping[str, Any]) -> list[IPv4Network]:
    return _cidrs((network["properties"].get("addressSpace") or {}).get("addressPrefixes"))


def _prefixes(subnet: Mapping[str, Any]) -> list[IPv4Network]:
    """A subnet's ranges; Azure has one of them under a name of its own."""
    return _cidrs(subnet.get("addressPrefixes") or [subnet.get("addressPrefix")])


def _cidrs(texts: Any) -> list[IPv4Network]:
    parsed = [ip_network(text, strict=False) for text in texts or () if text]
    return [cidr for cidr in parsed if isinstance(cidr, IPv4Network)]
