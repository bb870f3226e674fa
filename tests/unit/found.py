"""Existing clusters and networks in which the examples work, as account and cluster tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from karpstack.components.settings import existing_aks_cluster as aks
from karpstack.components.settings import existing_cluster as eks
from karpstack.components.settings import existing_network as aws
from karpstack.components.settings import existing_vnet as azure
from karpstack.components.settings.workloads import Workloads
from karpstack.components.workloads import running
from tests.unit.mock_engine import HUB

VPC = "vpc-00000001"
#: A cluster on EKS with the VPC CNI, the Pod Identity agent and three managed nodes; one on AKS.
EKS_WORKLOADS = Workloads(networks=["aws-node"], kube_proxy=True, agent=True, ready=3, places=3)
AKS_WORKLOADS = Workloads(places=2)


def let_run(patch: pytest.MonkeyPatch, runs: Workloads) -> None:
    """Let existing clusters run this: there is no API server to ask."""
    patch.setattr(running, "workloads_or_refusal", lambda *_: runs)


def found_network(letters: str, **changes: Any) -> aws.FoundNetwork:
    """A VPC with a subnet for each letter, and with changes."""
    subnets = {
        f"subnet-0000000{letter}": aws.FoundSubnet(
            id=f"subnet-0000000{letter}",
            vpc_id=VPC,
            zone=f"us-east-1{letter}",
            zone_id=f"use1-az{index}",
            free=4000,
            way_out="private",
            tags={},
        )
        for index, letter in enumerate(letters, 4)
    }
    known: dict[str, Any] = {
        "cidrs": ["10.0.0.0/16"],
        "dns_support": True,
        "dns_hostnames": True,
        "subnets": subnets,
        "selected": [],
        "groups": {"sg-00000001": VPC},
        "endpoints": (),
        "has_cluster": False,
    }
    return aws.FoundNetwork(**{**known, **changes})


def eks_cluster() -> eks.FoundCluster:
    return eks.FoundCluster(
        status="ACTIVE",
        version="1.36",
        authentication_mode="API_AND_CONFIG_MAP",
        auto_mode=False,
        service_cidr="172.20.0.0/16",
        vpc_id=VPC,
        security_group_id="sg-cluster",
        subnet_ids=["subnet-0000000a", "subnet-0000000b"],
        has_provider=True,
        cni_role=False,
        network=found_network("abc", has_cluster=True),
        workloads=EKS_WORKLOADS,
    )


def aks_cluster() -> aks.FoundCluster:
    subnet = f"{HUB}/Microsoft.Network/virtualNetworks/hub/subnets/one"
    system = aks.FoundPool(
        name="system", mode="System", windows=False, autoscaled=False, subnet_id=subnet, pod_subnet=False
    )
    return aks.FoundCluster(
        location="westus2",
        state="Succeeded",
        stopped=False,
        version="1.36",
        managed_identity=True,
        rbac=True,
        provisioning="Auto",
        default_pools=False,
        plugin="azure",
        overlay=True,
        dataplane="cilium",
        policy="cilium",
        ipv6=False,
        entra=True,
        local_accounts=False,
        issuer="https://issuer",
        workload_identity=True,
        node_group="MC_shop_Shop_1_westus2",
        group_locked=False,
        proxied="no",
        certified=False,
        subnets=["one", "batch"],
        pools=[system, replace(system, name="general", mode="User")],
        workloads=AKS_WORKLOADS,
    )


def vnet() -> azure.FoundNetwork:
    gateway, table = (f"{HUB}/microsoft.network/{name}".lower() for name in ("natGateways/nat", "routeTables/routes"))

    def subnet(cidr: str, *delegations: str) -> azure.FoundSubnet:
        prefixes = [IPv4Network(cidr)]
        return azure.FoundSubnet(
            prefixes=prefixes, delegations=delegations, taken=0, nat_gateway=gateway, route_table=table
        )

    return azure.FoundNetwork(
        location="westus2",
        guid="guid",
        space=[IPv4Network("10.224.0.0/16")],
        peered={},
        subnets={
            "one": subnet("10.224.1.0/24"),
            "batch": subnet("10.224.2.0/24"),
            "api-server": subnet("10.224.9.0/28", azure.API_SERVER_DELEGATION),
        },
        gateways={gateway: azure.FoundGateway(addresses=["20.0.0.1"], prefixes=0)},
        routes={table: {"0.0.0.0/0": "VirtualAppliance"}},
        has_zone=True,
        has_cluster=False,
    )


def changed(found: Any, changes: Mapping[str, Any]) -> Any:
    """The same with changes: dots lead to attributes, to entries by the ends of their keys, and to places in a list."""
    for path, value in changes.items():
        found = _changed(found, path.split("."), value)
    return found


def _changed(found: Any, steps: Sequence[str], value: Any) -> Any:
    if not steps:
        return value
    first, *rest = steps
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{first: _changed(getattr(found, first), rest, value)})
    entries = dict(found.items() if isinstance(found, Mapping) else enumerate(found))
    (key,) = (key for key in entries if str(key).endswith(first))
    if value is None:
        del entries[key]
    else:
        entries[key] = _changed(entries[key], rest, value)
    return entries if isinstance(found, Mapping) else list(entries.values())
