"""Permissions for deploying an EKS stack: the rows of grants.yaml, shown in docs/reference/deployer-policy.md.

Each grant names the types of resources that need it, so that a test finds a type without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from karpstack.components.documents.iam import CONTROLLER_POLICIES, VERSION
from karpstack.components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES
from karpstack.components.documents.partitions import ec2_principal, suffixes
from karpstack.components.naming import EksNames

#: The type of resource that only a stack with `network.flowLogRetentionDays` has.
FLOW_LOG: Final = "aws:ec2/flowLog:FlowLog"
#: The types that only a stack with `cluster.privateAccessCidrs` has.
OF_PRIVATE_ACCESS: Final = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
#: The types that only a stack with `network.endpoints` has.
OF_ENDPOINTS: Final = ("aws:ec2/vpcEndpoint:VpcEndpoint",)
#: The type that only a stack has out of whose network, its own or an existing one, nothing leads.
INSTANCE_PROFILE: Final = "aws:iam/instanceProfile:InstanceProfile"
#: The types that only a stack without `network.vpcId` has.
OF_AN_OWN_NETWORK: Final = tuple(
    f"aws:ec2/{kind}"
    for kind in (
        "defaultSecurityGroup:DefaultSecurityGroup",
        "eip:Eip",
        "internetGateway:InternetGateway",
        "natGateway:NatGateway",
        "route:Route",
        "routeTable:RouteTable",
        "routeTableAssociation:RouteTableAssociation",
        "subnet:Subnet",
        "vpc:Vpc",
    )
)
_FILE: Final = Path(__file__).with_name("grants.yaml")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """Some actions on some resources.

    Attributes:
        sid: Name of the statement.
        needed_by: Types of resources, as `aws:ec2/vpc:Vpc`; `preflight` for what only the look before needs.
        actions: For example `ec2:CreateVpc`.
        resources: ARNs, or `*`.
        context: Condition keys and the value that the request has.
    """

    sid: str
    needed_by: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ("*",)
    context: Mapping[str, str] = field(default_factory=dict)

    def statement(self) -> dict[str, Any]:
        """As a policy has it."""
        made: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": sorted(self.actions),
            "Resource": list(self.resources),
        }
        return {**made, "Condition": {"StringEquals": dict(self.context)}} if self.context else made


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where a stack is made: partition, region, account id, and its names."""

    partition: str
    region: str
    account: str
    names: EksNames

    def arn(self, service: str, resource: str) -> str:
        """An ARN in account and region; IAM's are in none."""
        region = "" if service == "iam" else self.region
        return f"arn:{self.partition}:{service}:{region}:{self.account}:{resource}"


def policy(scope: Scope) -> dict[str, Any]:
    """The whole policy, the rights of preflight included."""
    return {
        "Version": VERSION,
        "Statement": [grant.statement() for grant in (*deploying(scope), *preflight_grants(scope))],
    }


def deploying(scope: Scope) -> Iterator[Grant]:
    """What `pulumi up` and `pulumi destroy` do; on an existing cluster where the scope's names have one."""
    return _grants(scope, "deploying")


def preflight_grants(scope: Scope) -> Iterator[Grant]:
    """What only preflight asks, beside the reads that deploying needs anyway."""
    return _grants(scope, "checking")


def _grants(scope: Scope, purpose: str) -> Iterator[Grant]:
    rows = _rows()
    new = {row["sid"]: row for listed in rows["new"].values() for row in listed}
    for each in rows["existing" if scope.names.existing else "new"][purpose]:
        row = new[each] if isinstance(each, str) else each
        yield Grant(
            sid=row["sid"],
            needed_by=tuple(row["needed_by"]),
            actions=tuple(f"{service}:{action}" for service, actions in row["actions"].items() for action in actions),
            resources=tuple(made for resource in row.get("resources", "*") for made in _resources(scope, resource)),
            context={key: _filled(scope, value) for key, value in row.get("context", {}).items()},
        )


@cache
def _rows() -> dict[str, dict[str, list[Any]]]:
    rows: dict[str, dict[str, list[Any]]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return rows


def _resources(scope: Scope, text: str) -> Iterator[str]:
    for name, policies, named in (
        ("{controller_policies}", CONTROLLER_POLICIES, scope.names.controller_policy),
        ("{load_balancer_policies}", LOAD_BALANCER_POLICIES, scope.names.load_balancer_policy),
    ):
        if name in text:
            yield from (made for each in policies for made in _resources(scope, text.replace(name, named(each))))
            return
    service, _, resource = _filled(scope, text).partition(":")
    yield scope.arn(service, resource) if resource and service != "arn" else _filled(scope, text)


def _filled(scope: Scope, text: str) -> str:
    dns, ec2 = suffixes(scope.region).dns, ec2_principal(scope.region)
    return text.format(partition=scope.partition, region=scope.region, names=scope.names, dns=dns, ec2=ec2)
