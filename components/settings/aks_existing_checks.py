"""Rules between sections of an environment on an AKS cluster that is there; `aks_checks` has those for one of its own.

What depends on the cluster itself, its network and its NodePools among it, is judged by `existing_aks_cluster` when it
was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from karpenter.findings import Finding
from karpenter.offers import Offers

from ..documents import manifests
from ..problems import finding
from .aks import is_subnet_id
from .aks_checks import linux_alone, node_class, who_runs_karpenter, whose_images
from .chart_checks import chart_values, resource_values
from .node_pool_checks import endless_drain, negative_limits, node_class_reference
from .region_checks import region_checks
from .requirement_checks import requirement_checks

if TYPE_CHECKING:
    from .aks import ImagesSettings, KarpenterSettings
    from .aks_existing import ExistingNetworkSettings


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `ExistingAksSettings`' fields.
        today: Of no matter here: the cluster has a version already.
    """
    mode: str | None = valid.get("mode")
    location: str | None = valid.get("region")
    network: ExistingNetworkSettings | None = valid.get("network")
    karpenter: KarpenterSettings | None = valid.get("karpenter")
    images: ImagesSettings | None = valid.get("images")
    node_classes: dict[str, dict[str, Any]] | None = valid.get("node_classes")
    if location is not None:
        yield from region_checks("azure", "azure-native:location", location)
        if Offers.load("azure").region(location) == "wrong":
            location = None
    if karpenter is not None:
        yield from chart_values(karpenter.settings)
        yield from resource_values(karpenter.resources.requests, karpenter.resources.limits)
    if mode is not None and "karpenter" in valid:
        yield from who_runs_karpenter(mode, karpenter)
    if mode is not None and images is not None:
        yield from whose_images(mode, images)
    if mode == "nap" and network is not None and network.subnet_id is not None:
        yield finding("subnet-id-in-nap", ("network", "subnetId"), network.subnet_id)
    for name, spec in (node_classes or {}).items():
        yield from node_class(name, spec, mode)
        if "vnetSubnetID" in spec and not is_subnet_id(str(spec["vnetSubnetID"])):
            yield finding("node-class-subnet-id-invalid", ("nodeClasses", name, "vnetSubnetID"), spec["vnetSubnetID"])
    # In mode nap the cluster may have node classes of AKS's, which are known when it was asked.
    known = None if node_classes is None or mode != "self-hosted" else {*node_classes}
    for name, spec in (valid.get("node_pools") or {}).items():
        yield from linux_alone(name, spec)
        yield from node_class_reference(name, spec, manifests.AKS_NODE_CLASS, known)
        yield from endless_drain(name, spec)
        yield from negative_limits(name, spec)
        if location is not None:
            chart_settings = karpenter.settings if karpenter is not None else {}
            yield from requirement_checks("azure", location, name, spec, chart_settings)
