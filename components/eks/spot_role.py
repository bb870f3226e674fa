"""The service-linked role for EC2 Spot, without which an account's first spot request fails.

It belongs to the account, not to the stack: there is at most one, others may use it, and so it stays when the
stack goes. Whether it exists already is said by the configuration; looking it up would find it at the second
`up` and then want to delete it.
"""

from __future__ import annotations

import pulumi
from pulumi_aws import iam


class SpotServiceLinkedRole(pulumi.ComponentResource):
    """Creates the role; not used where the account has it."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:SpotServiceLinkedRole", name, {}, opts)
        iam.ServiceLinkedRole(
            f"{name}-role",
            aws_service_name="spot.amazonaws.com",
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )
        self.register_outputs({})
