"""Whether an existing VPC is one in which the cluster can work."""

from __future__ import annotations

from collections.abc import Iterator

from components.settings.eks import needed_endpoints
from components.settings.existing_network import problems

from ..finding import Finding
from .subject import Subject


def existing(subject: Subject) -> Iterator[Finding]:
    """What is wrong with the network that the stack does not make; nothing where it makes its own."""
    settings = subject.settings
    if settings.network.vpc_id is None:
        return
    found = subject.existing_network()
    needed = needed_endpoints(settings.karpenter, settings.addons)
    for problem in problems(settings.network, settings.name, settings.system_nodes.desired_size, found, needed):
        what, _, consequence = problem.consequence.partition(": ")
        yield Finding(
            "warning" if problem.warning else "error",
            f"{problem.key} = {problem.value} {what}",
            consequence,
            problem.fix,
            "ec2:DescribeSecurityGroups"
            if "nodeSecurityGroupIds" in problem.key
            else "ec2:DescribeVpcs"
            if problem.key.endswith(("vpcId", "Cidr"))
            else "ec2:DescribeSubnets",
        )
