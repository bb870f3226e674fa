"""Checks of the network: an existing VPC, the way to the API server, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpstack.components.settings.api_access_checks import check_api_access
from karpstack.components.settings.existing_network import problems
from karpstack.karpenter import findings

from ..finding import Finding, Severity, finding
from ..settings_findings import convert_findings
from .subject import StackSubject, Subject

_OPTIONS: Final = "ec2:DescribeVpcBlockPublicAccessOptions"
_CLUSTER: Final = "aws:eks/cluster:Cluster"


def existing(subject: Subject) -> Iterator[Finding]:
    """What is wrong with the network that the stack does not make; nothing where it makes its own."""
    settings = subject.settings
    if settings.network.vpc_id is None:
        return
    yield from convert_findings(problems(settings, subject.existing_network()), source_call)


def check_new_vpc_access(subject: Subject) -> Iterator[Finding]:
    """A first `up` that makes network and control plane and then does not reach the API server."""
    settings = subject.settings
    if not subject.state.has(_CLUSTER, subject.names.cluster):
        yield from convert_findings(check_api_access(settings.network, settings.cluster), source_call)


def public_access(subject: StackSubject) -> Iterator[Finding]:
    """Find VPC Block Public Access: it stops NAT gateways, too, but for VPCs and subnets that are excluded.

    https://docs.aws.amazon.com/vpc/latest/userguide/security-vpc-bpa-basics.html
    """
    options = subject.aws.ask("ec2", "DescribeVpcBlockPublicAccessOptions").get("VpcBlockPublicAccessOptions") or {}
    network = subject.settings.network if isinstance(subject, Subject) else None
    if options.get("InternetGatewayBlockMode") != "block-bidirectional" or (network and network.isolated):
        return
    is_new = not subject.state.has(_CLUSTER, subject.names.cluster)
    severity: Severity = "error" if network and network.vpc_id is None and is_new else "warning"
    yield finding("public-access-blocked", _OPTIONS, severity=severity, region=subject.settings.region)


def source_call(problem: findings.Finding) -> str:
    """The call that tells what a problem of a network is about."""
    if ":network." not in problem.key:
        return ""  # the settings do, against which the account has nothing
    if "nodeSecurityGroupIds" in problem.key:
        return "ec2:DescribeSecurityGroups"
    return "ec2:DescribeVpcs" if problem.key.endswith(("vpcId", "Cidr")) else "ec2:DescribeSubnets"
