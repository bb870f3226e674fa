"""Whether an existing VPC is one in which the cluster can work."""

from __future__ import annotations

from collections.abc import Iterator

from components.settings.existing_network import problems
from components.settings.reach_checks import out_of_reach
from karpenter import findings

from ..finding import Finding
from ..judged import judged
from .subject import Subject


def existing(subject: Subject) -> Iterator[Finding]:
    """What is wrong with the network that the stack does not make; nothing where it makes its own."""
    settings = subject.settings
    if settings.network.vpc_id is None:
        return
    yield from judged(problems(settings, subject.existing_network()), told_by)


def way_in(subject: Subject) -> Iterator[Finding]:
    """A first `up` that makes network and control plane and then does not reach the API server."""
    settings = subject.settings
    if not subject.state.has("aws:eks/cluster:Cluster", subject.names.cluster):
        yield from judged(out_of_reach(settings.network, settings.cluster), told_by)


def told_by(problem: findings.Finding) -> str:
    """The call that tells what a problem of a network is about."""
    if ":network." not in problem.key:
        return ""  # the settings do, against which the account has nothing
    if "nodeSecurityGroupIds" in problem.key:
        return "ec2:DescribeSecurityGroups"
    return "ec2:DescribeVpcs" if problem.key.endswith(("vpcId", "Cidr")) else "ec2:DescribeSubnets"
