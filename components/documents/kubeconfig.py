"""kubeconfigs. But for that of an administrator, they hold no credentials: an exec plugin makes them at each use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

#: How kubelogin finds who asks: the Azure CLI's login, a managed identity, a federated token (CI), or a service
#: principal whose AZURE_CLIENT_ID and AZURE_CLIENT_SECRET are in the environment.
KubeloginMode = Literal["azurecli", "msi", "workloadidentity", "spn"]

#: The application that stands for every AKS API server in Entra; the same in all tenants of the public cloud.
AKS_SERVER_APPLICATION: Final = "6dae42f8-4368-4678-94ff-500e3e86be80"


def eks(
    *,
    cluster_name: str,
    region: str,
    endpoint: str,
    certificate_authority: str,
    profile: str = "",
    role_arn: str = "",
) -> str:
    """The kubeconfig of an EKS cluster as JSON, which every reader of YAML takes.

    Args:
        cluster_name: Name of the EKS cluster; also that of context and user.
        region: Region of the cluster.
        endpoint: The API server's URL.
        certificate_authority: PEM certificate in base64, as EKS gives it.
        profile: Profile of the AWS CLI whose credentials are meant; empty: those that the CLI finds by itself. It is
            an option and no variable, because credentials in the environment go before a profile that is named there.
        role_arn: Role that is taken with them; empty for none.
    """
    identity = [*(["--profile", profile] if profile else []), *(["--role-arn", role_arn] if role_arn else [])]
    return _kubeconfig(
        cluster_name,
        endpoint,
        certificate_authority,
        _plugin(
            *("aws", "eks", "get-token", "--region", region, "--cluster-name", cluster_name),
            *("--output", "json", *identity),
        ),
    )


def aks(*, cluster_name: str, credentials: str, login: KubeloginMode, tenant_id: str) -> str:
    """The kubeconfig of an AKS cluster with Entra, as JSON.

    Args:
        cluster_name: Name of the AKS cluster; also that of context and user.
        credentials: The kubeconfig that AKS hands to users (listClusterUserCredential). Only its address and
            certificate are taken: its plugin would ask a person for a code.
        login: How kubelogin finds who asks.
        tenant_id: Tenant whose token the cluster takes. Without it kubelogin asks the deployer's home tenant, and the
            cluster answers a guest, or somebody with several tenants, with 401.

    Raises:
        ValueError: `credentials` lacks the address or the certificate.
    """
    return _kubeconfig(
        cluster_name,
        _scalar(credentials, "server"),
        _scalar(credentials, "certificate-authority-data"),
        _plugin(
            *("kubelogin", "get-token", "--login", login, "--server-id", AKS_SERVER_APPLICATION),
            *("--tenant-id", tenant_id),
        ),
    )


def aks_administrator(*, cluster_name: str, credentials: str) -> str:
    """The kubeconfig of an AKS cluster's own administrator, as JSON.

    Args:
        cluster_name: Name of the AKS cluster; also that of context and user.
        credentials: The kubeconfig that AKS hands out (listClusterAdminCredential). Only its address and certificates
            are taken, and nothing that a client would run, or read from this machine.

    Raises:
        ValueError: `credentials` lacks one of them.
    """
    return _kubeconfig(
        cluster_name,
        _scalar(credentials, "server"),
        _scalar(credentials, "certificate-authority-data"),
        {key: _scalar(credentials, key) for key in ("client-certificate-data", "client-key-data")},
    )


def _plugin(command: str, *arguments: str) -> Mapping[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": command,
            "args": list(arguments),
            "interactiveMode": "Never",
        }
    }


def _kubeconfig(name: str, server: str, certificate_authority: str, user: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": server, "certificate-authority-data": certificate_authority},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [{"name": name, "user": user}],
        },
        indent=2,
    )


def _scalar(text: str, key: str) -> str:
    """The first value of a key in YAML or JSON made by a machine: one line, no escapes."""
    match = re.search(rf'\b{re.escape(key)}"?:\s*"?([^\s",}}]+)', text)
    if match is None:
        raise ValueError(f"the credentials that AKS gave name no {key}")
    return match[1]
