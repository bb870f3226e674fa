"""The service-linked role without which an account's first spot request fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpstack.karpenter.instance_types import CAPACITY_TYPE
from karpstack.karpenter.requirements import allows, requirements

from ..finding import Finding, finding
from .subject import StackSubject

_PATH: Final = "/aws-service-role/spot.amazonaws.com/"


def spot_role(subject: StackSubject) -> Iterator[Finding]:
    """An account that has never used spot, and NodePools that will."""
    pools = [
        name for name, spec in subject.settings.node_pools.items() if allows(requirements(spec), CAPACITY_TYPE, "spot")
    ]
    if pools and not subject.aws.all("iam", "ListRoles", "Roles", PathPrefix=_PATH):
        yield finding("spot-role-missing", "iam:ListRoles", pools=pools)
