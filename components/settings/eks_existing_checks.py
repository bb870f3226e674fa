"""Rules between sections of an environment on an EKS cluster that is there; `eks_checks` has those for one of its own.

What depends on the cluster itself, its version and network among it, is judged by `existing_cluster` when it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from karpenter.findings import Finding
from karpenter.offers import Offers

from ..problems import finding, key_of
from .block_device_checks import block_devices
from .chart_checks import chart_values, resource_values
from .egress_checks import egress_checks
from .eks_checks import bottlerocket_on_arm, node_class, node_pool, windows_alone
from .node_pool_checks import endless_drain, negative_limits
from .region_checks import region_checks
from .requirement_checks import requirement_checks
from .version_checks import karpenter_support

if TYPE_CHECKING:
    from .eks import KarpenterSettings
    from .eks_existing import ExistingCiliumSettings, ExistingNetworkSettings


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `ExistingEksSettings`' fields.
        today: The day for which certificates must be good; the cluster has a version already.
    """
    region: str | None = valid.get("region")
    network: ExistingNetworkSettings | None = valid.get("network")
    cilium: ExistingCiliumSettings | None = valid.get("cilium")
    karpenter: KarpenterSettings | None = valid.get("karpenter")
    node_classes: dict[str, dict[str, Any]] | None = valid.get("node_classes")
    overlay = cilium is not None and cilium.install
    if region is not None:
        yield from region_checks("aws", "aws:region", region)
        if Offers.load("aws").region(region) == "wrong":
            region = None
    if network is not None:
        yield from _which_subnets(network)
        if cilium is not None:
            yield from _whose_network(network, cilium)
    if karpenter is not None:
        yield from karpenter_support(karpenter.chart_version, today)
        yield from chart_values(karpenter.settings)
        yield from resource_values(karpenter.resources.requests, karpenter.resources.limits)
    yield from egress_checks(valid, today)
    for name, spec in (node_classes or {}).items():
        yield from node_class(name, spec, network.pod_cidr_mask_size if overlay and network else None)
        yield from block_devices(name, spec)
    for name, spec in (valid.get("node_pools") or {}).items():
        if overlay:
            yield from windows_alone(name, spec)
            yield from bottlerocket_on_arm(name, spec, node_classes)
        yield from node_pool(name, spec, node_classes, karpenter)
        yield from endless_drain(name, spec)
        yield from negative_limits(name, spec)
        if region is not None:
            chart_settings = karpenter.settings if karpenter is not None else {}
            yield from requirement_checks("aws", region, name, spec, chart_settings)


def _which_subnets(network: ExistingNetworkSettings) -> Iterator[Finding]:
    if network.subnet_ids and network.subnet_tags:
        yield finding("existing-subnets-ambiguous", ("network", "subnetIds"), network.subnet_ids)


def _whose_network(network: ExistingNetworkSettings, cilium: ExistingCiliumSettings) -> Iterator[Finding]:
    """What belongs to a Cilium of the stack's own."""
    if cilium.install and network.pod_cidr is None:
        yield finding("pod-cidr-missing", ("network", "podCidr"), None)
    for field, key in (("pod_cidr", "podCidr"), ("pod_cidr_mask_size", "podCidrMaskSize")):
        if not cilium.install and field in network.model_fields_set:
            yield _without_cilium(key_of("network", key), getattr(network, field))
    for field in sorted(cilium.model_fields_set - {"install"}):
        if not cilium.install:
            yield _without_cilium(key_of("cilium", to_camel(field)), getattr(cilium, field))


def _without_cilium(key: str, value: object) -> Finding:
    return finding("cilium-not-installed", key, value)
