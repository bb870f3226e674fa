"""An instance type's entry in the facts, made of its cloud's own description.

Labels are those that Karpenter's providers derive from the same descriptions (`computeRequirements`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_AWS: Final = "karpenter.k8s.aws/"
_AZURE: Final = "karpenter.azure.com/"
_SCHEME: Final = re.compile(r"^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.")
_SIZE: Final = re.compile(r"Standard_([A-Z])([A-Z]*)[0-9]+([a-z]*)(?:_([A-Z]+[0-9]+))?(?:_v([0-9]+))?")
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64", "x64": "amd64", "Arm64": "arm64"}
#: Names of VM sizes; price lists have dedicated hosts and reservations too.
VM_SIZE: Final = re.compile(r"Standard_[A-Z]+[0-9][A-Za-z0-9_-]*")

#: Region -> zones, and region -> USD an hour.
Zones = Mapping[str, list[str]]
Prices = Mapping[str, float]


def ec2_type(described: Mapping[str, Any], zones: Zones, prices: Prices) -> dict[str, Any] | None:
    """Return the entry of one item of `DescribeInstanceTypes`; None without a price or a known architecture."""
    name, architecture = described["InstanceType"], _architecture(described)
    if not prices or not architecture:
        return None
    return {
        "name": name,
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "memory_mib": described["MemoryInfo"]["SizeInMiB"],
        "max_pods": _pods(described["NetworkInfo"]),
        "capacity_types": [
            kind for kind in ("on-demand", "spot") if kind in described.get("SupportedUsageClasses", ())
        ],
        "zones": {region: sorted(names) for region, names in zones.items()},
        "on_demand": dict(prices),
        "labels": _ec2_labels(name, described, architecture),
    }


def _architecture(described: Mapping[str, Any]) -> str | None:
    supported = described["ProcessorInfo"]["SupportedArchitectures"]
    return next((_ARCHITECTURES[name] for name in supported if name in _ARCHITECTURES), None)


def _pods(network: Mapping[str, Any]) -> int:
    """By EKS's formula for pods with addresses of the VPC."""
    cards = network["NetworkCards"]
    interfaces = cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"]
    return int(interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def _ec2_labels(name: str, described: Mapping[str, Any], architecture: str) -> dict[str, str]:
    family, _, size = name.partition(".")
    labels = {
        "kubernetes.io/arch": architecture,
        f"{_AWS}instance-cpu": described["VCpuInfo"]["DefaultVCpus"],
        f"{_AWS}instance-memory": described["MemoryInfo"]["SizeInMiB"],
        f"{_AWS}instance-hypervisor": described.get("Hypervisor", ""),
        f"{_AWS}instance-family": family,
        f"{_AWS}instance-size": size,
        f"{_AWS}instance-cpu-manufacturer": described["ProcessorInfo"].get("Manufacturer", "").lower(),
        f"{_AWS}instance-capability-flex": str("-flex" in family).lower(),
    }
    if parts := _SCHEME.match(name):
        labels |= {f"{_AWS}instance-category": parts[1], f"{_AWS}instance-generation": parts[2]}
    graphics = described.get("GpuInfo", {}).get("Gpus", ())
    if len(graphics) == 1:
        labels |= {
            f"{_AWS}instance-gpu-name": re.sub("[ _]", "-", graphics[0]["Name"].lower()),
            f"{_AWS}instance-gpu-manufacturer": graphics[0]["Manufacturer"].lower(),
            f"{_AWS}instance-gpu-count": graphics[0]["Count"],
        }
    storage = described.get("InstanceStorageInfo", {})
    if storage.get("NvmeSupport", "unsupported") != "unsupported" and "TotalSizeInGB" in storage:
        labels[f"{_AWS}instance-local-nvme"] = storage["TotalSizeInGB"]
    return {key: str(value) for key, value in labels.items()}


def vm_size(sku: Mapping[str, Any], zones: Zones, prices: Prices) -> dict[str, Any] | None:
    """Return the entry of one item of `Microsoft.Compute/skus`; None without a price or a name of Azure's scheme."""
    parts = _SIZE.fullmatch(sku["name"])
    given = {one["name"]: str(one["value"]) for one in sku.get("capabilities", ())}
    architecture = _ARCHITECTURES.get(given.get("CpuArchitectureType", ""))
    if not prices or not parts or not architecture:
        return None
    family, subfamily, features, accelerator, version = parts.groups()
    vcpus, memory, gpus = given["vCPUs"], int(float(given["MemoryGB"]) * 1024), given.get("GPUs", "0")
    gpu = {f"{_AZURE}sku-gpu-manufacturer": "nvidia", f"{_AZURE}sku-gpu-name": accelerator} if accelerator else {}
    return {
        "name": sku["name"],
        "vcpus": int(vcpus),
        "memory_mib": memory,
        "max_pods": None,
        "capacity_types": ["on-demand", "spot"] if _holds(given, "LowPriorityCapable") else ["on-demand"],
        "zones": {region: list(names) for region, names in zones.items()},
        "on_demand": dict(prices),
        "labels": {
            "kubernetes.io/arch": architecture,
            f"{_AZURE}sku-name": sku["name"],
            f"{_AZURE}sku-family": family,
            f"{_AZURE}sku-series": f"{family}{subfamily}{features}" + (f"_v{version}" if version else ""),
            f"{_AZURE}sku-version": version or "1",
            f"{_AZURE}sku-cpu": vcpus,
            f"{_AZURE}sku-memory": str(memory),
            f"{_AZURE}sku-gpu-count": gpus,
            **gpu,
            f"{_AZURE}sku-storage-premium-capable": str(_holds(given, "PremiumIO")).lower(),
            f"{_AZURE}sku-networking-accelerated": str(_holds(given, "AcceleratedNetworkingEnabled")).lower(),
            "kubernetes.azure.com/sku-cpu": vcpus,
            "kubernetes.azure.com/sku-memory": str(memory),
        },
    }


def _holds(capabilities: Mapping[str, str], name: str) -> bool:
    return capabilities.get(name, "").lower() == "true"
