"""Rules between sections of an environment on an AKS cluster that is there; `aks_checks` has those for one of its own.

What depends on the cluster itself, its network and its NodePools among it, is judged by `existing_aks_cluster` when it
was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from karpstack.karpenter.findings import Finding

from ..problems import Judge
from .aks import is_subnet_id
from .aks_checks import check_controller_settings, check_image_mirrors, linux_alone, node_class, reference
from .chart_checks import controller_values
from .node_pool_checks import endless_drain, negative_limits, overlays_without_gate
from .region_checks import region_checks
from .requirement_checks import requirement_checks
from .rules import check_sections
from .version_checks import newer_charts

if TYPE_CHECKING:
    from .aks_existing import ExistingNetworkSettings


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `ExistingAksSettings`' fields.
        today: Of no matter here: the cluster has a version already.
    """
    classes = valid.get("node_classes")
    return check_sections(
        "azure",
        valid,
        today,
        rules=(
            region_checks,
            controller_values,
            newer_charts,
            overlays_without_gate,
            check_controller_settings,
            check_image_mirrors,
            _no_subnet,
        ),
        of_node_classes=(node_class, _subnet_id),
        of_node_pools=(linux_alone, reference, endless_drain, negative_limits, requirement_checks),
        # In mode nap the cluster may have node classes of AKS's, which are known when it was asked.
        classes={*classes} if classes is not None and valid.get("mode") == "self-hosted" else None,
    )


def _no_subnet(say: Judge, mode: str, network: ExistingNetworkSettings) -> Iterator[Finding]:
    if mode == "nap" and network.subnet_id is not None:
        yield say("subnet-id-in-nap", "network.subnetId")


def _subnet_id(say: Judge, name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    if "vnetSubnetID" in spec and not is_subnet_id(str(spec["vnetSubnetID"])):
        yield say("node-class-subnet-id-invalid", ("nodeClasses", name, "vnetSubnetID"))
