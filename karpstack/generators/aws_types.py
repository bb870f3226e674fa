"""What is known of EC2's instance types, as karpenter/facts/aws.json states it: from moto and the price table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from karpstack.karpenter.type_facts import ec2_type
from karpstack.rehearsal.aws.ec2 import prices

SOURCE = {"name": "moto", "version": version("moto")}
#: The rule by which the rehearsal makes spot prices up.
SPOT_RULE = {
    "simulated": True,
    "share_of": "{type}/{zone}",
    "lowest": prices.LOWEST,
    "spread": prices.SPREAD,
}


def instance_types(table: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """One entry an instance type that has a price in one of the regions, by name.

    Args:
        table: On-demand prices: region -> instance type -> dollars per hour.
    """
    from moto.utilities.utils import load_resource

    offered: dict[str, dict[str, list[str]]] = {}
    for region in table:
        for offering in load_resource(f"ec2/resources/instance_type_offerings/availability-zone/{region}.json"):
            zones = offered.setdefault(offering["InstanceType"], {}).setdefault(region, [])
            zones.append(offering["Location"])
    found = []
    for name, described in sorted(load_resource("ec2/resources/instance_types.json").items()):
        priced = {region: prices_there[name] for region, prices_there in table.items() if name in prices_there}
        if entry := ec2_type({**described, "InstanceType": name}, offered.get(name, {}), priced):
            found.append(entry)
    return found
