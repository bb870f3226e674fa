"""The network interface of a NAT gateway, as EC2 describes it: what looks for interfaces of others tells it by that.

Change in moto: the interface has the type `nat_gateway`, and a description that names the gateway.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkInterface.html
"""

from __future__ import annotations

from typing import Any

from karpstack.rehearsal.aws.patching import Patches


def patch(patches: Patches) -> None:
    """Install it."""
    from moto.ec2.models.nat_gateways import NatGatewayBackend

    def described(original: Any) -> Any:
        def create(self: Any, *arguments: Any, **named: Any) -> Any:
            gateway = original(self, *arguments, **named)
            gateway._eni.interface_type = "nat_gateway"
            gateway._eni.description = f"Interface for NAT Gateway {gateway.id}"
            return gateway

        return create

    patches.wrap(NatGatewayBackend, "create_nat_gateway", described)
