"""The subscription's quotas in the region, against what is in use and what the stack will add.

vCPUs on demand are counted twice, by the size's family and in all; those of spot machines once, whatever the family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter.instance_types import CAPACITY_TYPE
from karpstack.karpenter.quantities import quantity
from karpstack.karpenter.requirements import allows, requirements

from ..finding import Finding, NotAskedError, finding
from .api_versions import COMPUTE, NETWORK
from .sizes import admitted, capability
from .subject import StackSubject, Subject

_COMPUTE: Final = "Microsoft.Compute/locations/usages/read"
_NETWORK: Final = "Microsoft.Network/locations/usages/read"
_SKUS: Final = "Microsoft.Compute/skus/read"
_MACHINES: Final = "Microsoft.Compute/virtualMachines/read"
_ALL: Final = "cores"
_SPOT: Final = "lowPriorityCores"
_ENDLESS: Final = float("inf")
#: What the stack adds to a region, one of each, by the names that Azure counts it under.
_ADDED: Final[Mapping[str, str]] = {"NetworkSecurityGroups": "network security groups"}
_BALANCED: Final[Mapping[str, str]] = {
    "LoadBalancers": "load balancers",
    "StandardSkuLoadBalancers": "standard load balancers",
}
_ADDRESSED: Final[Mapping[str, str]] = {
    "PublicIPAddresses": "public IP addresses",
    "StandardSkuPublicIpAddresses": "standard public IP addresses",
    "IPv4StandardSkuPublicIpAddresses": "standard public IPv4 addresses",
}
_OWN_NETWORK: Final[Mapping[str, str]] = {"VirtualNetworks": "virtual networks"}


def system_nodes(subject: Subject) -> Iterator[Finding]:
    """Too few vCPUs for the system nodes, of their family or in all; one node more while they are upgraded."""
    nodes = subject.settings.system_nodes
    size = subject.sizes().get(nodes.vm_size)
    if size is None or subject.is_up:
        return
    each = int(capability(size, "vCPUs") or 0)
    room, names = _room(subject), (str(size["family"]), _ALL)
    if not each:
        raise NotAskedError(_SKUS, f"it has no vCPUs of {nodes.vm_size}", refused=False)
    for name in names:
        if (left := room.get(name.lower())) is None:
            continue
        if nodes.count * each > left:
            yield finding(
                "azure-quota-exceeded",
                _COMPUTE,
                name=name,
                room=left,
                count=nodes.count,
                taken=nodes.count * each,
                raise_it=_raise(subject, name, nodes.count * each - left),
            )
        elif (nodes.count + 1) * each > left:
            yield finding(
                "azure-quota-short-for-upgrades",
                _COMPUTE,
                name=name,
                left=left - nodes.count * each,
                each=each,
                raise_it=_raise(subject, name, (nodes.count + 1) * each - left),
            )
    if missing := [name for name in names if name.lower() not in room]:
        raise NotAskedError(_COMPUTE, f"it lists no quota {' or '.join(missing)}", refused=False)


def node_pools(subject: StackSubject) -> Iterator[Finding]:
    """NodePools whose limits promise more vCPUs than the subscription may have.

    A pool that admits several families, or both kinds of capacity, can use what is left of each.
    """
    room = _room(subject)
    for name, vcpus in _of_system_nodes(subject).items():
        if name in room:
            room[name] -= vcpus
    limits: dict[tuple[tuple[str, ...], bool], float] = defaultdict(float)
    for spec in subject.settings.node_pools.values():
        wanted = requirements(spec)
        regular, spot = (allows(wanted, CAPACITY_TYPE, kind) for kind in ("on-demand", "spot"))
        families = sorted({str(size["family"]).lower() for size in admitted(subject, spec).values()}) if regular else []
        limits[tuple(families), spot] += _limit(spec)
    for (names, spot), limit in limits.items():
        left = min(sum(max(0, room.get(name, 0)) for name in names), max(0, room.get(_ALL, _ENDLESS)))
        left += max(0, room.get(_SPOT.lower(), 0)) if spot else 0
        counted = [*([_ALL] if names else []), *([_SPOT] if spot else [])]
        if counted and limit > left:
            yield finding(
                "node-pool-limits-over-azure-quota",
                _COMPUTE,
                counted=" and ".join(counted),
                limit="any number of" if limit == _ENDLESS else f"{limit:g}",
                left=left,
                region=subject.region,
            )


def network(subject: Subject) -> Iterator[Finding]:
    """No room for the load balancer, its address, or the network."""
    if subject.is_up:
        return
    found = subject.azure.all(
        _NETWORK, f"{subject.azure.scope}/providers/Microsoft.Network/locations/{subject.region}/usages", NETWORK
    )
    own, way = subject.settings.network.subnet_id is None, subject.settings.network.outbound_type
    added = {
        **_ADDED,
        **(_OWN_NETWORK if own else {}),
        **(_BALANCED if way == "loadBalancer" else {}),
        **(_ADDRESSED if way == "loadBalancer" or (own and way == "userAssignedNATGateway") else {}),
    }
    named = {name.lower(): (name, what) for name, what in added.items()}
    if not named.keys() & {str(one["name"]["value"]).lower() for one in found}:
        raise NotAskedError(_NETWORK, f"it lists no quota of {', '.join(added.values())}", refused=False)
    for one in found:
        name, what = named.get(str(one["name"]["value"]).lower(), ("", ""))
        used, limit = float(one["currentValue"]), float(one["limit"])
        # Azure says -1 where there is no limit.
        if name and limit >= 0 and used + 1 > limit:
            yield finding(
                "azure-network-quota-exceeded",
                _NETWORK,
                resource=what,
                used=used,
                limit=limit,
                region=subject.region,
                name=name,
            )


def _room(subject: StackSubject) -> dict[str, float]:
    """vCPUs that are left, by the quota's name in lower case, those counted in that the stack's own machines hold.

    Azure does not write each family's name alike in both lists.
    """
    found = subject.azure.all(
        _COMPUTE, f"{subject.azure.scope}/providers/Microsoft.Compute/locations/{subject.region}/usages", COMPUTE
    )
    room = {str(one["name"]["value"]).lower(): float(one["limit"]) - float(one["currentValue"]) for one in found}
    for name, vcpus in _own(subject).items():
        if name in room:
            room[name] += vcpus
    return room


def _own(subject: StackSubject) -> dict[str, float]:
    """vCPUs that the stack's system nodes and Karpenter's machines hold now, by the quota's name in lower case."""
    if not subject.machines:
        return {}
    sizes, held = subject.sizes(), defaultdict[str, float](float)
    machines = subject.azure.all(
        _MACHINES,
        f"{subject.azure.group(subject.machines)}/providers/Microsoft.Compute/virtualMachines",
        COMPUTE,
    )
    for machine in machines:
        properties = machine["properties"]
        size = sizes.get(properties["hardwareProfile"]["vmSize"])
        if size is not None:
            names = (_SPOT,) if properties.get("priority") == "Spot" else (_ALL, str(size["family"]))
            for name in names:
                held[name.lower()] += float(capability(size, "vCPUs") or 0)
    for name, vcpus in _of_system_nodes(subject).items():
        held[name] += vcpus
    return held


def _of_system_nodes(subject: StackSubject) -> dict[str, float]:
    """vCPUs of the stack's system nodes, by the quota's name in lower case; none for an existing cluster."""
    if not isinstance(subject, Subject):
        return {}
    nodes = subject.settings.system_nodes
    size = subject.sizes().get(nodes.vm_size)
    vcpus = nodes.count * float(capability(size, "vCPUs") or 0) if size else 0
    return {_ALL: vcpus, **({str(size["family"]).lower(): vcpus} if size else {})}


def _limit(spec: Mapping[str, Any]) -> float:
    cpu = (spec.get("limits") or {}).get("cpu")
    return _ENDLESS if cpu is None else quantity(cpu)


def _raise(subject: Subject, name: str, more: float) -> str:
    return (
        f"have the quota {name} of Microsoft.Compute in {subject.region} raised by {more:g} (the portal, Quotas), or "
        "choose another karpstack:systemNodes.vmSize or a smaller count"
    )
