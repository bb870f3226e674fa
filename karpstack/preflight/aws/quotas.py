"""The account's quotas, against what is in use and what the stack will add.

Of vCPUs, those of the standard families (A, C, D, H, I, M, R, T, Z) are looked at; others, such as G and P, have
quotas of their own. A new account has 5 on demand, of which two m5.large take 4.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from karpstack.karpenter.instance_types import CAPACITY_TYPE
from karpstack.karpenter.quantities import quantity
from karpstack.karpenter.requirements import allows, requirements

from ..finding import Finding, finding
from .subject import StackSubject, Subject

_CALL: Final = "servicequotas:GetServiceQuota"
_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
#: What stands before the number in names of the standard families; also Karpenter's label of the category.
_STANDARD: Final = frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"})


@dataclass(frozen=True)
class Quota:
    """A quota of AWS's: its service, its code, and what it counts."""

    service: str
    code: str
    counts: str


ON_DEMAND: Final = Quota("ec2", "L-1216C47A", "vCPUs of on-demand instances")
SPOT: Final = Quota("ec2", "L-34B43A08", "vCPUs of spot instances")
VPCS: Final = Quota("vpc", "L-F678F1CE", "VPCs")
ADDRESSES: Final = Quota("ec2", "L-0263D0A3", "elastic IP addresses")
GATEWAYS: Final = Quota("vpc", "L-FE5A380F", "NAT gateways in a zone")
ENDPOINTS: Final = Quota("vpc", "L-1B52E74A", "gateway VPC endpoints")
CLUSTERS: Final = Quota("eks", "L-1194D53C", "EKS clusters")
_QUOTAS: Final = {"on-demand": ON_DEMAND, "spot": SPOT}
_ENDLESS: Final = float("inf")


def system_nodes(subject: Subject) -> Iterator[Finding]:
    """Too few vCPUs on demand for the system nodes."""
    yield from _judged(subject, ON_DEMAND, _used_vcpus(subject, "on-demand"), _system_vcpus(subject))


def node_pools(subject: StackSubject) -> Iterator[Finding]:
    """NodePools whose limits promise more vCPUs than the account may have.

    A pool that may launch both kinds can use what is left of either.
    """
    left = {
        "on-demand": _value(subject, ON_DEMAND) - _used_vcpus(subject, "on-demand") - _system_vcpus(subject),
        "spot": _value(subject, SPOT) - _used_vcpus(subject, "spot"),
    }
    limits: dict[tuple[str, ...], float] = defaultdict(float)
    for spec in subject.settings.node_pools.values():
        wanted = requirements(spec)
        if any(allows(wanted, _CATEGORY, category) for category in _STANDARD):
            limits[tuple(kind for kind in left if allows(wanted, CAPACITY_TYPE, kind))] += _limit(spec)
    for kinds, limit in limits.items():
        room = max(0, sum(left[kind] for kind in kinds))
        if kinds and limit > room:
            yield finding(
                "node-pool-limits-over-aws-quota",
                _CALL,
                kinds=" and ".join(kinds),
                limit="any number of" if limit == _ENDLESS else f"{limit:g}",
                room=room,
                quotas=" and ".join(_QUOTAS[kind].code for kind in kinds),
                raise_it=_raise(subject, _QUOTAS[kinds[0]], limit),
            )


def vpcs(subject: Subject) -> Iterator[Finding]:
    """No room for a VPC."""
    if subject.settings.network.vpc_id is not None:
        return
    used = len(subject.aws.all("ec2", "DescribeVpcs", "Vpcs"))
    yield from _judged(subject, VPCS, used, 1 - subject.state.count("aws:ec2/vpc:Vpc"))


def addresses(subject: Subject) -> Iterator[Finding]:
    """No room for the NAT gateways' addresses."""
    used = len(subject.aws.all("ec2", "DescribeAddresses", "Addresses"))
    yield from _judged(subject, ADDRESSES, used, len(_gateway_zones(subject)) - subject.state.count("aws:ec2/eip:Eip"))


def gateways(subject: Subject) -> Iterator[Finding]:
    """No room for a NAT gateway in a zone."""
    if subject.state.count("aws:ec2/natGateway:NatGateway"):
        return
    zones = {one["SubnetId"]: one["AvailabilityZone"] for one in subject.aws.all("ec2", "DescribeSubnets", "Subnets")}
    used = Counter(
        zones.get(gateway["SubnetId"], "")
        for gateway in subject.aws.all("ec2", "DescribeNatGateways", "NatGateways")
        if gateway["State"] in ("pending", "available")
    )
    for zone in _gateway_zones(subject):
        yield from _judged(subject, GATEWAYS, used[zone], 1, f" ({zone})")


def endpoints(subject: Subject) -> Iterator[Finding]:
    """No room for an endpoint of S3, which is counted over all VPCs; those with addresses are counted in each."""
    if "s3" not in subject.settings.endpoints or subject.state.count("aws:ec2/vpcEndpoint:VpcEndpoint"):
        return
    wanted = [{"Name": "vpc-endpoint-type", "Values": ["Gateway"]}]
    there = subject.aws.all("ec2", "DescribeVpcEndpoints", "VpcEndpoints", Filters=wanted)
    used = sum(one["State"].lower() not in ("deleting", "deleted") for one in there)
    yield from _judged(subject, ENDPOINTS, used, 1)


def clusters(subject: Subject) -> Iterator[Finding]:
    """No room for a cluster."""
    used = len(subject.aws.all("eks", "ListClusters", "clusters"))
    yield from _judged(subject, CLUSTERS, used, 1 - subject.state.count("aws:eks/cluster:Cluster"))


def _judged(subject: Subject, quota: Quota, used: float, added: float, where: str = "") -> Iterator[Finding]:
    most = _value(subject, quota)
    if added > 0 and used + added > most:
        yield finding(
            "aws-quota-exceeded",
            _CALL,
            counts=quota.counts,
            where=where,
            used=used,
            most=most,
            added=added,
            raise_it=_raise(subject, quota, used + added),
        )


def _raise(subject: StackSubject, quota: Quota, wanted: float) -> str:
    value = "<number>" if wanted == _ENDLESS else f"{wanted:g}"
    return (
        f"aws service-quotas request-service-quota-increase --region {subject.aws.region} --service-code "
        f"{quota.service} --quota-code {quota.code} --desired-value {value}"
    )


def _value(subject: StackSubject, quota: Quota) -> float:
    asked = {"ServiceCode": quota.service, "QuotaCode": quota.code}
    # An account has no quota of its own before AWS has ever changed it for this account.
    answer = subject.aws.find("service-quotas", "GetServiceQuota", ("NoSuchResourceException",), **asked)
    answer = answer or subject.aws.ask("service-quotas", "GetAWSDefaultServiceQuota", **asked)
    return float(answer["Quota"]["Value"])


def _used_vcpus(subject: StackSubject, kind: str) -> int:
    """What other instances of the standard families hold than the stack's own."""
    found = subject.aws.all(
        "ec2",
        "DescribeInstances",
        "Reservations",
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}],
    )
    used = Counter(
        instance["InstanceType"]
        for reservation in found
        for instance in reservation["Instances"]
        if _is_standard(instance["InstanceType"])
        and (instance.get("InstanceLifecycle") == "spot") == (kind == "spot")
        and not subject.owns({tag["Key"] for tag in instance.get("Tags", ())})
    )
    return sum(_vcpus(subject, name) * number for name, number in used.items())


def _system_vcpus(subject: StackSubject) -> int:
    if not isinstance(subject, Subject):  # others' nodes are in use already
        return 0
    nodes = subject.settings.system_nodes
    return nodes.desired_size * _vcpus(subject, nodes.instance_type) if _is_standard(nodes.instance_type) else 0


def _is_standard(instance_type: str) -> bool:
    letters = re.match("[a-z]+", instance_type)
    return letters is not None and letters[0] in _STANDARD


def _vcpus(subject: StackSubject, instance_type: str) -> int:
    answer = subject.aws.find("ec2", "DescribeInstanceTypes", ("InvalidInstanceType",), InstanceTypes=[instance_type])
    return sum(int(one["VCpuInfo"]["DefaultVCpus"]) for one in (answer or {}).get("InstanceTypes", ()))


def _limit(spec: Mapping[str, Any]) -> float:
    cpu = (spec.get("limits") or {}).get("cpu")
    return _ENDLESS if cpu is None else quantity(cpu)


def _gateway_zones(subject: Subject) -> list[str]:
    if subject.settings.network.vpc_id is not None or subject.settings.network.isolated:
        return []
    zones = subject.zones()
    return zones if subject.settings.network.nat_gateways == "per-zone" else zones[:1]
