"""Registers `count` resources of the packages that the EKS environment uses, one beside the other."""

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

CONFIG = pulumi.Config()
KUBERNETES_SHARE = 8  # releases, node classes, NodePools and the provider, of about 90

provider = kubernetes.Provider("kubernetes", kubeconfig=CONFIG.require("kubeconfig"))
# The stack itself and the default provider count too.
for number in range(CONFIG.require_int("count") - KUBERNETES_SHARE - 2):
    aws.sqs.Queue(f"queue-{number}")
for number in range(KUBERNETES_SHARE - 1):
    kubernetes.core.v1.ConfigMap(
        f"map-{number}", metadata={"namespace": "default"}, opts=pulumi.ResourceOptions(provider=provider)
    )
