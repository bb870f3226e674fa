"""Values of the charts that the program installs. Defaults of the charts are not repeated.

Helm ignores a value that a chart does not know, so a key here that is spelt wrong would be silence: the
rehearsal refuses unknown values by name, and `KARPENTER_SETTINGS` lists what a stack may pass through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

Values = dict[str, Any]

#: Keys under `settings` of the Karpenter chart 1.14 that a stack may set itself; the other ones follow from
#: the environment. Source: charts/karpenter/values.yaml.
KARPENTER_SETTINGS: Final = frozenset(
    {
        "amiRefreshInterval",
        "batchIdleDuration",
        "batchMaxDuration",
        "clusterCABundle",
        "disableClusterStateObservability",
        "disableDryRun",
        "enableZonalShift",
        "ignoreDRARequests",
        "isolatedVPC",
        "minValuesPolicy",
        "preferencePolicy",
        "reservedENIs",
        "subnetRefreshInterval",
        "vmMemoryOverheadPercent",
    }
)

#: Taint of the system nodes; what must run before there is any other node tolerates it.
SYSTEM_TAINT_KEY: Final = "CriticalAddonsOnly"


def api_server_address(endpoint: str) -> tuple[str, int]:
    """Host and port of an API server's URL; the port is 443 unless the URL says otherwise.

    Raises:
        ValueError: The URL is not https or names no host.
    """
    url = urlsplit(endpoint)
    if url.scheme != "https" or not url.hostname:
        raise ValueError(f"the API server's endpoint {endpoint!r} is not an https URL")
    return url.hostname, url.port or 443


def cilium(*, endpoint: str, pod_cidr: str, pod_cidr_mask_size: int, operator_replicas: int) -> Values:
    """Values of the Cilium chart 1.20 for an overlay in place of the cloud's CNI and of kube-proxy.

    Args:
        endpoint: The API server's URL. Agents need it: they come before any service address works.
        pod_cidr: Range of the overlay; the chart's default, 10.0.0.0/8, overlaps most VPCs.
        pod_cidr_mask_size: Prefix length of each node's share of it.
        operator_replicas: At most the number of nodes: two replicas never share one.

    `egressMasqueradeInterfaces` and `bpf.masquerade` stay unset: both break the link-local address at which
    Pod Identity's agent answers.
    """
    host, port = api_server_address(endpoint)
    return {
        "k8sServiceHost": host,
        "k8sServicePort": port,
        "kubeProxyReplacement": True,
        "routingMode": "tunnel",
        "tunnelProtocol": "vxlan",
        "ipam": {
            "mode": "cluster-pool",
            "operator": {
                "clusterPoolIPv4PodCIDRList": [pod_cidr],
                "clusterPoolIPv4MaskSize": pod_cidr_mask_size,
            },
        },
        # A changed value changes a ConfigMap only; without these the agents keep the old one.
        "rollOutCiliumPods": True,
        "operator": {
            "replicas": operator_replicas,
            "rollOutPods": True,
            # A list replaces the chart's: its two tolerations for nodes that are not ready yet are repeated,
            # those for control plane nodes are not, because a managed cluster shows none.
            "tolerations": [
                {"key": SYSTEM_TAINT_KEY, "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                {"key": "node.cloudprovider.kubernetes.io/uninitialized", "operator": "Exists"},
            ],
        },
    }


def karpenter_aws(
    *,
    cluster_name: str,
    region: str,
    endpoint: str,
    interruption_queue: str,
    service_account: str,
    replicas: int,
    feature_gates: Mapping[str, bool],
    settings: Mapping[str, Any],
    resources: Mapping[str, Any],
    role_arn: str = "",
) -> Values:
    """Values of the Karpenter chart for AWS.

    Args:
        cluster_name: Name of the EKS cluster.
        region: Region of the cluster.
        endpoint: The API server's URL.
        interruption_queue: Name of the queue; empty switches interruption handling off.
        service_account: Name of the service account that the chart makes.
        replicas: One a node at most; one of them leads.
        feature_gates: The chart's `settings.featureGates`.
        settings: Further keys of the chart's `settings`, out of `KARPENTER_SETTINGS`.
        resources: Requests and limits of the controller.
        role_arn: IAM role for the service account's annotation (IRSA); empty with Pod Identity.
    """
    annotations = {"eks.amazonaws.com/role-arn": role_arn} if role_arn else {}
    return {
        "replicas": replicas,
        "serviceAccount": {"name": service_account, "annotations": annotations},
        "controller": {
            # The controller would ask the instance metadata service, which pods cannot reach (hop limit 1).
            "env": [{"name": "AWS_REGION", "value": region}],
            "resources": dict(resources),
        },
        "settings": {
            **settings,
            "clusterName": cluster_name,
            "clusterEndpoint": endpoint,
            "interruptionQueue": interruption_queue,
            "featureGates": dict(feature_gates),
        },
    }
