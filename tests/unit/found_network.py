"""A VPC that is there, as the account tells it."""

from __future__ import annotations

from typing import Any

from components.settings.existing_network import FoundNetwork, FoundSubnet

VPC = "vpc-00000001"


def found_network(letters: str, **changes: Any) -> FoundNetwork:
    """A network in which the examples work, with a subnet for each letter, and with changes."""
    subnets = {
        f"subnet-0000000{letter}": FoundSubnet(
            id=f"subnet-0000000{letter}",
            vpc_id=VPC,
            zone=f"us-east-1{letter}",
            zone_id=f"use1-az{index}",
            free=4000,
            way_out="private",
            tags={},
        )
        for index, letter in enumerate(letters, 4)
    }
    known: dict[str, Any] = {
        "cidrs": ["10.0.0.0/16"],
        "dns_support": True,
        "dns_hostnames": True,
        "subnets": subnets,
        "selected": [],
        "groups": {"sg-00000001": VPC},
        "endpoints": (),
        "has_cluster": False,
    }
    return FoundNetwork(**{**known, **changes})
