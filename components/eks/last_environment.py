"""What an EKS stack has, read from its last state for the rules of `settings.eks_identity`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..last_state import LastState
from ..settings.eks_identity import EksBefore


def before(last: LastState, stem: str) -> EksBefore:
    """Return what the environment of a name has; nothing before it is there.

    Args:
        last: The last state of the stack.
        stem: The environment's name in the program.
    """
    cluster = _outputs(last, "aws:eks/cluster:Cluster", f"{stem}-cluster-control-plane")
    role = _outputs(last, "aws:iam/role:Role", f"{stem}-node-role")
    vpc_config = cluster.get("vpcConfig") or {}
    return EksBefore(
        account=_part(role, 4),
        region=_part(cluster, 3) or _outputs(last, "karpstack:eks:Environment", stem).get("region", ""),
        node_role=role.get("name", ""),
        cluster=cluster.get("name", ""),
        version=cluster.get("version", ""),
        protected=bool(cluster.get("deletionProtection")),
        existing=_outputs(last, "karpstack:eks:ExistingCluster", f"{stem}-cluster").get("name", ""),
        vpc_id=vpc_config.get("vpcId", ""),
        vpc_cidr=_outputs(last, "aws:ec2/vpc:Vpc", f"{stem}-network-vpc").get("cidrBlock", ""),
        zones=_zones(last, f"{stem}-network-private"),
        service_cidr=(cluster.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr", ""),
        control_plane_subnet_ids=sorted(vpc_config.get("subnetIds") or ()),
        nat_gateways=_nat_gateways(last, f"{stem}-network"),
        flow_log_days=int(
            _outputs(last, "aws:cloudwatch/logGroup:LogGroup", f"{stem}-flow-logs-group").get("retentionInDays") or 0
        ),
        association=_outputs(
            last, "aws:eks/podIdentityAssociation:PodIdentityAssociation", f"{stem}-controller-association"
        ).get("associationId", ""),
        cilium=last.find("kubernetes:helm.sh/v3:Release", f"{stem}-cilium-release") is not None,
    )


def _outputs(last: LastState, type_: str, name: str) -> Mapping[str, Any]:
    found = last.find(type_, name)
    return found.outputs if found else {}


def _part(outputs: Mapping[str, Any], index: int) -> str:
    """A part of a resource's ARN; empty without one."""
    parts = str(outputs.get("arn", "")).split(":")
    return parts[index] if len(parts) > index else ""


def _nat_gateways(last: LastState, stem: str) -> str:
    first, second = (last.find("aws:ec2/natGateway:NatGateway", f"{stem}-{index}-nat") for index in (0, 1))
    return "per-zone" if second else "single" if first else "none"


def _zones(last: LastState, stem: str) -> list[str]:
    found: list[str] = []
    while subnet := last.find("aws:ec2/subnet:Subnet", f"{stem}-{len(found)}"):
        found.append(str(subnet.outputs.get("availabilityZone", "")))
    return found
