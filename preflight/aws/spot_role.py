"""The service-linked role without which an account's first spot request fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpenter.instance_types import CAPACITY_TYPE
from karpenter.requirements import allows, requirements

from ..finding import Finding
from .subject import StackSubject

_PATH: Final = "/aws-service-role/spot.amazonaws.com/"


def spot_role(subject: StackSubject) -> Iterator[Finding]:
    """An account that has never used spot, and NodePools that will."""
    pools = [
        name for name, spec in subject.settings.node_pools.items() if allows(requirements(spec), CAPACITY_TYPE, "spot")
    ]
    if pools and not subject.aws.all("iam", "ListRoles", "Roles", PathPrefix=_PATH):
        yield Finding(
            "note",
            f"the account has no AWSServiceRoleForEC2Spot yet, and {', '.join(pools)} may launch spot instances",
            "it is made for the first of them; where the organization forbids that, requests fail with "
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted and the pods wait",
            "to be sure: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
            "iam:ListRoles",
        )
