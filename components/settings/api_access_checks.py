"""Check that the deployer can reach the API server of a new cluster in a new VPC."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from karpstack.karpenter.findings import Finding

from ..problems import Shown, finding

if TYPE_CHECKING:
    from .eks import ClusterSettings, NetworkSettings


def check_api_access(
    network: NetworkSettings, cluster: ClusterSettings, variables: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """Find a first `up` that fails after network and control plane: nothing leads into a VPC that is made with them.

    Args:
        network, cluster: The stack's settings.
        variables: The deployer's environment, which tells a simulated account: its clusters are on this machine.
    """
    if network.vpc_id is None and not cluster.public_access_cidrs and not _is_simulated(variables):
        yield finding("cluster-out-of-reach", ("cluster", "publicAccessCidrs"), Shown("[]"))


def _is_simulated(variables: Mapping[str, str]) -> bool:
    """Whether Pulumi has another AWS provider than its own attached, or AWS's API is on this machine."""
    attached = variables.get("PULUMI_DEBUG_PROVIDERS", "").split(",")
    host = urlsplit(variables.get("AWS_ENDPOINT_URL", "")).hostname or ""
    try:
        return any(one.startswith("aws:") for one in attached) or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
