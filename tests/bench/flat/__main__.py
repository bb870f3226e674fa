"""Registers `count` resources of the packages that the EKS environment uses, one beside the other."""

from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

CONFIG = pulumi.Config()
TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "ec2.amazonaws.com"}}]}'
)
KUBERNETES_SHARE = 8  # releases, node classes, NodePools and the provider, of about 90

provider = kubernetes.Provider("kubernetes", kubeconfig=CONFIG.require("kubeconfig"))
# The stack itself and the default provider count too. The modules are those that the environment imports.
makers: list[Callable[[str], pulumi.Resource]] = [
    lambda name: aws.sqs.Queue(name),
    lambda name: aws.kms.Key(name),
    lambda name: aws.cloudwatch.EventRule(name, event_pattern='{"source": ["aws.ec2"]}'),
    lambda name: aws.iam.Role(name, assume_role_policy=TRUST),
    lambda name: aws.ec2.Vpc(name, cidr_block="10.0.0.0/16"),
]
for number in range(CONFIG.require_int("count") - KUBERNETES_SHARE - 2):
    makers[number % len(makers)](f"resource-{number}")
for number in range(KUBERNETES_SHARE - 1):
    kubernetes.core.v1.ConfigMap(
        f"map-{number}", metadata={"namespace": "default"}, opts=pulumi.ResourceOptions(provider=provider)
    )
