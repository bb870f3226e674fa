"""What is known of EC2's instance types, as karpenter/facts/aws.json states it: from moto and the price table.

Labels are those that the AWS provider's `computeRequirements` derives from the same descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rehearsal.aws.ec2 import prices

_GROUP = "karpenter.k8s.aws/"
_SCHEME = re.compile(r"^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.")
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}

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
        architecture = _architecture(described)
        if priced and architecture:
            found.append(
                {
                    "name": name,
                    "vcpus": described["VCpuInfo"]["DefaultVCpus"],
                    "memory_mib": described["MemoryInfo"]["SizeInMiB"],
                    "max_pods": _pods(described["NetworkInfo"]),
                    "capacity_types": [
                        kind for kind in ("on-demand", "spot") if kind in described.get("SupportedUsageClasses", ())
                    ],
                    "zones": {region: sorted(zones) for region, zones in offered.get(name, {}).items()},
                    "on_demand": priced,
                    "labels": _labels(name, described, architecture),
                }
            )
    return found


def _architecture(described: Mapping[str, Any]) -> str | None:
    supported = described["ProcessorInfo"]["SupportedArchitectures"]
    return next((_ARCHITECTURES[name] for name in supported if name in _ARCHITECTURES), None)


def _pods(network: Mapping[str, Any]) -> int:
    """By EKS's formula for pods with addresses of the VPC."""
    cards = network["NetworkCards"]
    interfaces = cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"]
    return int(interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def _labels(name: str, described: Mapping[str, Any], architecture: str) -> dict[str, str]:
    family, _, size = name.partition(".")
    labels = {
        "kubernetes.io/arch": architecture,
        f"{_GROUP}instance-cpu": described["VCpuInfo"]["DefaultVCpus"],
        f"{_GROUP}instance-memory": described["MemoryInfo"]["SizeInMiB"],
        f"{_GROUP}instance-hypervisor": described.get("Hypervisor", ""),
        f"{_GROUP}instance-family": family,
        f"{_GROUP}instance-size": size,
        f"{_GROUP}instance-cpu-manufacturer": described["ProcessorInfo"].get("Manufacturer", "").lower(),
        f"{_GROUP}instance-capability-flex": str("-flex" in family).lower(),
    }
    if parts := _SCHEME.match(name):
        labels |= {f"{_GROUP}instance-category": parts[1], f"{_GROUP}instance-generation": parts[2]}
    graphics = described.get("GpuInfo", {}).get("Gpus", ())
    if len(graphics) == 1:
        labels |= {
            f"{_GROUP}instance-gpu-name": re.sub("[ _]", "-", graphics[0]["Name"].lower()),
            f"{_GROUP}instance-gpu-manufacturer": graphics[0]["Manufacturer"].lower(),
            f"{_GROUP}instance-gpu-count": graphics[0]["Count"],
        }
    storage = described.get("InstanceStorageInfo", {})
    if storage.get("NvmeSupport", "unsupported") != "unsupported" and "TotalSizeInGB" in storage:
        labels[f"{_GROUP}instance-local-nvme"] = storage["TotalSizeInGB"]
    return {key: str(value) for key, value in labels.items()}
