"""Values of the charts that the program installs. Defaults of the charts are not repeated.

Helm ignores a value that a chart does not know, so a key here that is spelt wrong would be silence: the
rehearsal refuses unknown values by name, and the two lists below hold what a stack may pass through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from .proxy import NO_EGRESS, Egress, entries

Values = dict[str, Any]

#: A value, or what stands for one that comes later (a Pulumi output): it is put in its place, and never looked at. So
#: what is known of a chart's values is known before the rest is.
Leaf = Any

#: Keys under `settings` of the Karpenter chart for AWS that a stack may set itself, since 1.13.0. The rest
#: follows from the environment. Source: charts/karpenter/values.yaml.
_KARPENTER_AWS_SETTINGS: Final = frozenset(
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
#: What came later, by the minor release that brought it.
_KARPENTER_AWS_LATER_SETTINGS: Final[Mapping[tuple[int, int], frozenset[str]]] = {
    (1, 15): frozenset({"legacyNodeRepair", "securityGroupRefreshInterval"}),
}
_KARPENTER_AWS_LATER_GATES: Final[Mapping[tuple[int, int], frozenset[str]]] = {
    (1, 14): frozenset({"capacityBuffer"}),
    (1, 15): frozenset({"podDeletionCostManagement", "terminateFirstDrift", "terminateFirstRepair"}),
}

#: The same for Azure, since 1.10.0. `ignoreDRARequests` must stay as it is there.
_KARPENTER_AZURE_SETTINGS: Final = frozenset(
    {"batchIdleDuration", "batchMaxDuration", "clusterCABundle", "vmMemoryOverheadPercent"}
)
#: What came with 1.12.0.
_KARPENTER_AZURE_LATER: Final = (1, 12)
_KARPENTER_AZURE_LATER_SETTINGS: Final = frozenset(
    {"disableClusterStateObservability", "minValuesPolicy", "preferencePolicy"}
)
_KARPENTER_AZURE_LATER_GATES: Final = frozenset({"reservedCapacity"})

#: Taint of the system nodes; what must run before there is any other node tolerates it.
SYSTEM_TAINT_KEY: Final = "CriticalAddonsOnly"

_RELAY: Final[Values] = {
    "enabled": True,
    "rollOutPods": True,
    "tolerations": [{"key": SYSTEM_TAINT_KEY, "operator": "Exists"}],
}


def karpenter_aws_settings(version: str) -> frozenset[str]:
    """Keys under `settings` of the chart for AWS that a stack may set itself, by the chart's version from 1.13.0."""
    later = (keys for since, keys in _KARPENTER_AWS_LATER_SETTINGS.items() if release(version) >= since)
    return _KARPENTER_AWS_SETTINGS.union(*later)


def karpenter_aws_lacks_gates(version: str) -> frozenset[str]:
    """Keys under `settings.featureGates` that a version of the chart for AWS, from 1.13.0, does not have yet."""
    later = (gates for since, gates in _KARPENTER_AWS_LATER_GATES.items() if release(version) < since)
    return frozenset().union(*later)


def karpenter_azure_settings(version: str) -> frozenset[str]:
    """Keys under `settings` of the chart for Azure that a stack may set itself, by the chart's version from 1.10.0."""
    later = _KARPENTER_AZURE_LATER_SETTINGS if release(version) >= _KARPENTER_AZURE_LATER else frozenset()
    return _KARPENTER_AZURE_SETTINGS | later


def karpenter_azure_lacks_gates(version: str) -> frozenset[str]:
    """Keys under `settings.featureGates` that a version of the chart for Azure, from 1.10.0, does not have yet."""
    return frozenset() if release(version) >= _KARPENTER_AZURE_LATER else _KARPENTER_AZURE_LATER_GATES


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version like `1.14.0` or `1.14.0-rc.1`, which compare as versions do."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def api_server_address(endpoint: str) -> tuple[str, int]:
    """Host and port of an API server's URL; the port is 443 unless the URL says otherwise.

    Raises:
        ValueError: The URL is not https or names no host.
    """
    url = urlsplit(endpoint)
    if url.scheme != "https" or not url.hostname:
        raise ValueError(f"the API server's endpoint {endpoint!r} is not an https URL")
    return url.hostname, url.port or 443


def cilium(
    *,
    host: Leaf,
    port: Leaf,
    pod_cidr: str,
    pod_cidr_mask_size: int,
    operator_replicas: int,
    labels: Mapping[str, str] | None = None,
    hubble: bool = False,
    encryption: Literal["none", "wireguard"] = "none",
) -> Values:
    """Values of the Cilium chart, since 1.19, for an overlay in place of the cloud's CNI and of kube-proxy.

    Args:
        host, port: The API server's address. Agents need it: they come before any service address works.
        pod_cidr: Range of the overlay; the chart's default, 10.0.0.0/8, overlaps most VPCs.
        pod_cidr_mask_size: Prefix length of each node's share of it.
        operator_replicas: At most the number of nodes: two replicas never share one.
        labels: Labels of everything that the chart makes.
        hubble: Whether Hubble's relay runs, beside the part of Hubble that each agent has.
        encryption: What encrypts the traffic of pods between nodes, inside which the overlay's packets then go.

    `egressMasqueradeInterfaces` stays unset and `bpf.masquerade` is off, even if a later chart has it on by default:
    both break the link-local address at which Pod Identity's agent answers.
    """
    return {
        **({"commonLabels": dict(labels)} if labels else {}),
        "k8sServiceHost": host,
        "k8sServicePort": port,
        "kubeProxyReplacement": True,
        "routingMode": "tunnel",
        "tunnelProtocol": "vxlan",
        "bpf": {"masquerade": False},
        "ipam": {
            "mode": "cluster-pool",
            "operator": {
                "clusterPoolIPv4PodCIDRList": [pod_cidr],
                "clusterPoolIPv4MaskSize": pod_cidr_mask_size,
            },
        },
        # A changed value changes a ConfigMap only; without these the agents keep the old one.
        "rollOutCiliumPods": True,
        # As many batches in a cluster of any size; the chart's two agents at a time outlast what `up` waits.
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
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
        **({"hubble": {"relay": _RELAY}} if hubble else {}),
        **({"encryption": {"enabled": True, "type": encryption}} if encryption != "none" else {}),
    }


def karpenter_aws(
    *,
    cluster_name: Leaf,
    region: str,
    endpoint: Leaf,
    interruption_queue: Leaf,
    service_account: str,
    replicas: int,
    feature_gates: Mapping[str, bool],
    settings: Mapping[str, Any],
    resources: Mapping[str, Any],
    role_arn: Leaf | None = None,
    labels: Mapping[str, str] | None = None,
    egress: Egress = NO_EGRESS,
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
        settings: Further keys of the chart's `settings`, out of `karpenter_aws_settings`.
        resources: Requests and limits of the controller.
        role_arn: IAM role for the service account's annotation (IRSA); None with Pod Identity.
        labels: Labels of everything that the chart makes.
        egress: How the controller gets out.
    """
    annotations = {} if role_arn is None else {"eks.amazonaws.com/role-arn": role_arn}
    return {
        **({"additionalLabels": dict(labels)} if labels else {}),
        "replicas": replicas,
        "serviceAccount": {"name": service_account, "annotations": annotations},
        "controller": {
            # The controller would ask the instance metadata service, which pods cannot reach (hop limit 1).
            "env": [{"name": "AWS_REGION", "value": region}, *entries(egress.pod_variables)],
            "resources": dict(resources),
            **({"extraVolumeMounts": egress.volume_mounts} if egress.volume_mounts else {}),
        },
        **({"extraVolumes": egress.volumes} if egress.volumes else {}),
        # Credentials are injected when a pod is admitted, so pods with the other kind must not stay.
        **({} if role_arn is None else {"podAnnotations": {"karpstack.io/identity": "irsa"}}),
        "settings": {
            **settings,
            "clusterName": cluster_name,
            "clusterEndpoint": endpoint,
            "interruptionQueue": interruption_queue,
            "featureGates": dict(feature_gates),
        },
    }


_AZURE_OVERLAY: Final = {
    "NETWORK_PLUGIN": "azure",
    "NETWORK_PLUGIN_MODE": "overlay",
    "NETWORK_POLICY": "cilium",
    "NETWORK_DATAPLANE": "cilium",
}
_READS_MAINTENANCE_WINDOW: Final = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["upcoming-maintenance-window"],
    "verbs": ["get"],
}


def karpenter_azure(
    *,
    cluster_name: Leaf,
    endpoint: Leaf,
    subscription_id: str,
    location: str,
    resource_group: Leaf,
    node_resource_group: Leaf,
    subnet_id: Leaf,
    vnet_guid: Leaf,
    node_identity_ids: Leaf,
    kubelet_identity_client_id: Leaf,
    controller_client_id: Leaf,
    service_account: str,
    bootstrap_token_secret: Leaf,
    ssh_key_secret: Leaf,
    replicas: int,
    feature_gates: Mapping[str, bool],
    settings: Mapping[str, Any],
    resources: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
) -> Values:
    """Values of the Karpenter chart for Azure, self-hosted.

    The chart has values for two of the controller's settings; it takes all others from the environment, and stops
    where one of them is missing (karpenter-provider-azure, pkg/operator/options/options_validation.go and
    pkg/auth/config.go). No secret is among the values: they name Secrets.

    Args:
        cluster_name: Name of the AKS cluster.
        endpoint: The API server's URL, for new nodes.
        subscription_id: Subscription of the cluster, its network included.
        location: Region of the cluster, as Azure writes it in names: `westus2`.
        resource_group: The cluster's resource group.
        node_resource_group: The resource group that AKS made for nodes.
        subnet_id: Resource ID of the nodes' subnet.
        vnet_guid: `resourceGuid` of its virtual network. Without it the controller would have to read the network.
        node_identity_ids: Resource IDs of the identities that new nodes carry, separated by commas: the kubelet's, and
            those of AKS's add-ons (karpenter-provider-azure#355).
        kubelet_identity_client_id: Its client ID.
        controller_client_id: Client ID of the controller's own identity.
        service_account: Name of the service account that the chart makes.
        bootstrap_token_secret: Secret of type bootstrap.kubernetes.io/token with which new nodes join.
        ssh_key_secret: Secret whose key `ssh-public-key` every new node gets.
        replicas: One a node at most; one of them leads.
        feature_gates: The chart's `settings.featureGates`.
        settings: Further keys of the chart's `settings`, out of `KARPENTER_AZURE_SETTINGS`.
        resources: Requests and limits of the controller.
        labels: Labels of everything that the chart makes.
    """
    identity = {"azure.workload.identity/client-id": controller_client_id}
    environment = {
        "ARM_SUBSCRIPTION_ID": subscription_id,
        "AZURE_SUBSCRIPTION_ID": subscription_id,  # newer versions read this one
        "LOCATION": location,
        "ARM_RESOURCE_GROUP": resource_group,
        "AZURE_NODE_RESOURCE_GROUP": node_resource_group,
        "VNET_SUBNET_ID": subnet_id,
        "VNET_GUID": vnet_guid,
        **_AZURE_OVERLAY,
        "NODE_IDENTITIES": node_identity_ids,
        "KUBELET_IDENTITY_CLIENT_ID": kubelet_identity_client_id,
    }
    return {
        **({"additionalLabels": dict(labels)} if labels else {}),
        "replicas": replicas,
        "serviceAccount": {"name": service_account, "annotations": identity},
        "podLabels": {"azure.workload.identity/use": "true"},
        # Karpenter has had no webhook since 1.0; switched on, the chart still lets it read every Secret here.
        "webhook": {"enabled": False},
        # With the webhook goes the right to read this one, without which node images are never updated.
        "additionalClusterRoleRules": [_READS_MAINTENANCE_WINDOW],
        "controller": {
            "env": [
                *({"name": name, "value": value} for name, value in environment.items()),
                *_bootstrap_token(bootstrap_token_secret),
                _from_secret("SSH_PUBLIC_KEY", ssh_key_secret, "ssh-public-key"),
            ],
            "resources": dict(resources),
        },
        "settings": {
            **settings,
            "clusterName": cluster_name,
            "clusterEndpoint": endpoint,
            "featureGates": dict(feature_gates),
        },
    }


def _bootstrap_token(secret: Leaf) -> list[Values]:
    return [
        _from_secret("BOOTSTRAP_TOKEN_ID", secret, "token-id"),
        _from_secret("BOOTSTRAP_TOKEN_SECRET", secret, "token-secret"),
        # Put together by the kubelet, from the two above.
        {"name": "KUBELET_BOOTSTRAP_TOKEN", "value": "$(BOOTSTRAP_TOKEN_ID).$(BOOTSTRAP_TOKEN_SECRET)"},
    ]


def _from_secret(variable: str, secret: Leaf, key: str) -> Values:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
