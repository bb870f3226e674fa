"""What Azure says of a network that is there, asked before anything is made; nothing of it is changed.

The questions are invokes that wait for their answers: everything about an existing network is known before the first
resource, so that what is wrong with it is refused while nothing has been created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import pulumi
from pulumi_azure_native import containerservice, network, privatedns

from ..naming import AksNames
from ..settings.aks import AksSettings, names_of_network
from ..settings.existing_vnet import FoundGateway, FoundNetwork, FoundSubnet, cidrs

_ABSENT: Final = ("ResourceNotFound", "ResourceGroupNotFound")
_Answer = TypeVar("_Answer")


def find(subnet_id: str, settings: AksSettings, ask: pulumi.InvokeOptions) -> FoundNetwork:
    """What Azure says of the network of a subnet.

    Args:
        subnet_id: Resource ID of the subnet.
        settings: Which others are meant, and what they are for.
        ask: Whose provider is asked.
    """
    _, group, name = names_of_network(subnet_id)
    vnet = get_if_exists(
        lambda: network.get_virtual_network(resource_group_name=group, virtual_network_name=name, opts=ask)
    )
    subnets = {str(one.name).lower(): _subnet(one) for one in (vnet.subnets if vnet else None) or []}
    names = (one.rpartition("/")[2].lower() for one in [subnet_id, *settings.further_subnet_ids])
    of_nodes = [subnets[name] for name in names if name in subnets]
    return FoundNetwork(
        location=str(vnet.location or "").replace(" ", "").lower() if vnet else "",
        guid=str(vnet.resource_guid or "") if vnet else "",
        space=cidrs(vnet.address_space.address_prefixes if vnet and vnet.address_space else ()),
        peered={
            str(one.name): cidrs(one.remote_address_space.address_prefixes if one.remote_address_space else ())
            for one in (vnet.virtual_network_peerings if vnet else None) or []
        },
        subnets=subnets,
        gateways={one: _gateway(one, ask) for one in _named(subnet.nat_gateway for subnet in of_nodes)},
        routes={one: _routes(one, ask) for one in _named(subnet.route_table for subnet in of_nodes)},
        has_zone=_has_zone(settings, ask),
        has_cluster=_has_cluster(AksNames(settings.name), ask),
        dns_servers=list((vnet.dhcp_options.dns_servers if vnet and vnet.dhcp_options else None) or ()),
        encrypted=vnet is not None and vnet.encryption is not None and vnet.encryption.enabled,
    )


def _subnet(subnet: Any) -> FoundSubnet:
    return FoundSubnet(
        prefixes=cidrs(subnet.address_prefixes or [subnet.address_prefix]),
        delegations=[str(one.service_name) for one in subnet.delegations or []],
        taken=len(subnet.ip_configurations or []),
        nat_gateway=_id(subnet.nat_gateway),
        route_table=_id(subnet.route_table),
    )


def _gateway(gateway_id: str, ask: pulumi.InvokeOptions) -> FoundGateway:
    group, name = _group_and_name(gateway_id)
    gateway = network.get_nat_gateway(resource_group_name=group, nat_gateway_name=name, opts=ask)
    addresses = [
        network.get_public_ip_address(resource_group_name=group, public_ip_address_name=name, opts=ask).ip_address
        for group, name in map(_group_and_name, _named(map(_id, gateway.public_ip_addresses or [])))
    ]
    return FoundGateway(
        addresses=[address for address in addresses if address], prefixes=len(gateway.public_ip_prefixes or [])
    )


def _routes(table_id: str, ask: pulumi.InvokeOptions) -> dict[str, str]:
    group, name = _group_and_name(table_id)
    table = network.get_route_table(resource_group_name=group, route_table_name=name, opts=ask)
    return {str(route.address_prefix): str(route.next_hop_type) for route in table.routes or []}


def _has_zone(settings: AksSettings, ask: pulumi.InvokeOptions) -> bool:
    """Whether the zone of the settings is there; one of another subscription this provider cannot ask for."""
    zone = settings.cluster.own_dns_zone
    if zone is None or zone.split("/")[2].lower() != settings.subscription_id:
        return True
    group, name = _group_and_name(zone)
    found = get_if_exists(
        lambda: privatedns.get_private_zone(resource_group_name=group, private_zone_name=name, opts=ask)
    )
    return found is not None


def _has_cluster(names: AksNames, ask: pulumi.InvokeOptions) -> bool:
    found = get_if_exists(
        lambda: containerservice.get_managed_cluster(
            resource_group_name=names.resource_group, resource_name=names.cluster, opts=ask
        )
    )
    return found is not None


def get_if_exists(ask: Callable[[], _Answer]) -> _Answer | None:
    """Return the answer; None if Azure says that the object does not exist."""
    try:
        return ask()
    except Exception as error:  # the SDK has no type of its own for what Azure answers
        if any(code in str(error) for code in _ABSENT):
            return None
        raise


def _group_and_name(resource_id: str) -> tuple[str, str]:
    parts = resource_id.split("/")
    return parts[4], parts[-1]


def _id(reference: Any) -> str:
    return str(reference.id or "").lower() if reference else ""


def _named(ids: Iterable[str]) -> Sequence[str]:
    return sorted({one for one in ids if one})
