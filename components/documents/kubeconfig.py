"""kubeconfig of an EKS cluster. It holds no credentials: `aws eks get-token` makes them at each use."""

from __future__ import annotations

import json


def eks(*, cluster_name: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """The kubeconfig as JSON, which every reader of YAML takes.

    Args:
        cluster_name: Name of the EKS cluster; also that of context and user.
        region: Region of the cluster.
        endpoint: The API server's URL.
        certificate_authority: PEM certificate in base64, as EKS gives it.
    """
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": cluster_name,
            "clusters": [
                {
                    "name": cluster_name,
                    "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority},
                }
            ],
            "contexts": [{"name": cluster_name, "context": {"cluster": cluster_name, "user": cluster_name}}],
            "users": [
                {
                    "name": cluster_name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": [
                                "eks",
                                "get-token",
                                "--region",
                                region,
                                "--cluster-name",
                                cluster_name,
                                "--output",
                                "json",
                            ],
                            "interactiveMode": "Never",
                        }
                    },
                }
            ],
        },
        indent=2,
    )
