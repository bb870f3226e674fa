"""Rules between sections of an environment on an EKS cluster that is there; `eks_checks` has those for one of its own.

What depends on the cluster itself, its version and network among it, is judged by `existing_cluster` when it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from karpstack.karpenter.findings import Finding

from ..problems import Judge
from .block_device_checks import block_devices
from .chart_checks import controller_values
from .egress_checks import egress_checks
from .eks_checks import OF_NODE_POOLS, bottlerocket_on_arm, node_class, windows_alone
from .node_pool_checks import overlays_without_gate
from .region_checks import region_checks
from .requirement_checks import requirement_checks
from .rules import check_sections
from .version_checks import karpenter_support, newer_charts

if TYPE_CHECKING:
    from .eks import KarpenterSettings
    from .eks_existing import ExistingCiliumSettings, ExistingNetworkSettings


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `ExistingEksSettings`' fields.
        today: The day for which certificates must be good; the cluster has a version already.
    """
    network: ExistingNetworkSettings | None = valid.get("network")
    cilium: ExistingCiliumSettings | None = valid.get("cilium")
    overlay = cilium is not None and cilium.install
    return check_sections(
        "aws",
        valid,
        today,
        rules=(
            region_checks,
            _which_subnets,
            _whose_network,
            _support,
            controller_values,
            newer_charts,
            overlays_without_gate,
            egress_checks,
        ),
        of_node_classes=(node_class, block_devices),
        of_node_pools=(
            *((windows_alone, bottlerocket_on_arm) if overlay else ()),
            *OF_NODE_POOLS,
            requirement_checks,
        ),
        mask=network.pod_cidr_mask_size if overlay and network else None,
    )


def _support(karpenter: KarpenterSettings, today: date) -> Iterator[Finding]:
    yield from karpenter_support(karpenter.chart_version, today)


def _which_subnets(say: Judge, network: ExistingNetworkSettings) -> Iterator[Finding]:
    if network.subnet_ids and network.subnet_tags:
        yield say("existing-subnets-ambiguous", "network.subnetIds")


def _whose_network(say: Judge, network: ExistingNetworkSettings, cilium: ExistingCiliumSettings) -> Iterator[Finding]:
    """What belongs to a Cilium of the stack's own."""
    if cilium.install:
        if network.pod_cidr is None:
            yield say("pod-cidr-missing", "network.podCidr", None)
        return
    for field in ("pod_cidr", "pod_cidr_mask_size"):
        if field in network.model_fields_set:
            yield say("cilium-not-installed", f"network.{to_camel(field)}")
    for field in sorted(cilium.model_fields_set - {"install"}):
        yield say("cilium-not-installed", f"cilium.{to_camel(field)}")
