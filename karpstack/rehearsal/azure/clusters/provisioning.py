"""Node auto provisioning: AKS's own Karpenter, which the cluster resource brings along.

AKS keeps the controller outside the cluster, so the cluster has its resource definitions, its node pools and its nodes,
and no pod and no service account of it. It works with the cluster's identity.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.cloud import AzureCloud
from karpstack.rehearsal.cluster.control_plane import Cluster
from karpstack.rehearsal.cluster.objects import ApiError

NAMESPACE: Final = "kube-system"
_ALPHABET: Final = string.ascii_lowercase + string.digits
# What its pod would declare; AKS shows none of it.
_SETTINGS: Final = {
    "SYSTEM_NAMESPACE": NAMESPACE,
    "LOG_LEVEL": "info",
    "ENABLE_AZURE_SDK_LOGGING": "false",
    "DISABLE_WEBHOOK": "true",
    "CPU_REQUESTS": "1000",
    "MEMORY_LIMIT": "1073741824",
}

_FAILED = "node auto provisioning of the cluster {name} does not start: {reason}"


def settle(cluster: Cluster, cloud: AzureCloud, properties: Mapping[str, Any], definitions: Path) -> None:
    """Make node auto provisioning what the cluster's properties say; what is so already stays.

    Args:
        cluster: The running control plane.
        cloud: The cloud around it.
        properties: The cluster's in ARM.
        definitions: Folder with Karpenter's resource definitions.

    Raises:
        RefusedError: The controller did not start.
    """
    if at(properties, "nodeProvisioningProfile.mode") != "Auto":
        cluster.controller.end_hosted()
        return
    try:
        cluster.define(_manifests(definitions))
        brings = at(properties, "nodeProvisioningProfile.defaultNodePools") != "None"
        if brings:
            cluster.apply(default_manifests())
        elif cloud.brings_node_pools:
            # Only what AKS has brought goes: others may have objects of the same names since.
            cluster.delete(default_manifests())
        cloud.brings_node_pools = brings
        if cluster.controller.hosted:
            return
        token = _bootstrap_token(cluster)
    except (ApiError, TimeoutError) as error:
        raise RefusedError(_FAILED.format(name=cluster.name, reason=error)) from error
    keys = at(properties, "linuxProfile.ssh.publicKeys") or []
    key = str(keys[0]["keyData"]) if keys else _public_key()
    environment = {**cloud.provisioning_environment(token, key), **_SETTINGS}
    problem = cluster.controller.host(NAMESPACE, environment, cluster.token)
    if problem:
        raise RefusedError(_FAILED.format(name=cluster.name, reason=problem))


def default_manifests() -> list[dict[str, Any]]:
    """The AKSNodeClasses and NodePools `default` and `system-surge`, which AKS brings."""
    text = Path(__file__).with_name("manifests").joinpath("default-pools.yaml").read_text()
    manifests: list[dict[str, Any]] = yaml.load(text, yaml.CSafeLoader)
    return manifests


def _manifests(folder: Path) -> list[dict[str, Any]]:
    return [
        manifest
        for file in sorted(folder.glob("*.yaml"))
        for manifest in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if manifest
    ]


def _bootstrap_token(cluster: Cluster) -> str:
    """A token with which the kubelets of provisioned nodes join."""
    id, secret = (_random(length) for length in (6, 16))
    cluster.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "bootstrap.kubernetes.io/token",
                "metadata": {"name": f"bootstrap-token-{id}", "namespace": NAMESPACE},
                "stringData": {
                    "token-id": id,
                    "token-secret": secret,
                    "usage-bootstrap-authentication": "true",
                    "auth-extra-groups": "system:bootstrappers:aks",
                },
            }
        ]
    )
    return f"{id}.{secret}"


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _public_key() -> str:
    """AKS makes a key where the cluster gives none; nobody keeps its other half here."""
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
