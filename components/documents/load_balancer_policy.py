"""IAM policies of the AWS Load Balancer Controller, as plain documents; policies.json has their statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from .iam import Document, policy


@dataclass(frozen=True, kw_only=True)
class LoadBalancerScope:
    """What the permissions are limited to.

    Attributes:
        partition: `aws`, `aws-cn` or `aws-us-gov`.
        region: For example `us-east-1`.
        account_id: Twelve digits.
        cluster_name: Resources are the cluster's by their tags.
    """

    partition: str
    region: str
    account_id: str
    cluster_name: str


#: Short name of each of the controller's policies to the function that makes it.
LOAD_BALANCER_POLICIES: Final[Mapping[str, Callable[[LoadBalancerScope], Document]]] = {
    subject: partial(policy, "load-balancers", subject) for subject in ("reading", "security-groups", "balancing")
}
