"""The AWS identity of Karpenter's controller: a role, its scoped policies, and its tie to the service account.

The tie is EKS Pod Identity, or IAM roles for service accounts (IRSA) where a platform has settled on it. It must
exist before the controller's pods: credentials are injected when a pod is admitted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pulumi
from pulumi_aws import eks, iam

from ..documents.iam import CONTROLLER_POLICIES, ControllerScope, Document, irsa_trust, pod_identity_trust
from ..naming import KARPENTER_AWS_SERVICE_ACCOUNT, KARPENTER_NAMESPACE
from ..settings.eks import Identity
from .pod_role import settled
from .scope import Scope


@dataclass(frozen=True, kw_only=True)
class ControllerIdentityArgs:
    """Arguments of `ControllerIdentity`.

    Attributes:
        scope: Whose it is.
        kind: How the service account gets the role.
        cluster_name: The cluster.
        issuer: The cluster's OIDC issuer URL; used with IRSA only.
        at_once: Whether the controller follows at once; in a new cluster it comes minutes later, when nodes are up.
        makes_provider: Whether IAM's OIDC provider of that issuer is made, or there already.
        node_role_arn: What the policies are limited to.
        interruption_queue_arn: The queue to read; an output, so emptiness cannot be seen in it.
        has_interruption_queue: Whether there is a queue, and so a policy for it.
    """

    scope: Scope
    kind: Identity
    cluster_name: pulumi.Input[str]
    issuer: pulumi.Input[str]
    at_once: bool = False
    makes_provider: bool = True
    node_role_arn: pulumi.Input[str]
    interruption_queue_arn: pulumi.Input[str]
    has_interruption_queue: bool


class ControllerIdentity(pulumi.ComponentResource):
    """Role, policies and association; `annotated_role_arn` is empty with Pod Identity."""

    role_arn: pulumi.Output[str]
    annotated_role_arn: pulumi.Output[str]

    def __init__(self, name: str, args: ControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:ControllerIdentity", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        scope = pulumi.Output.all(
            partition=args.scope.partition,
            account_id=args.scope.account_id,
            node_role_arn=args.node_role_arn,
            interruption_queue_arn=args.interruption_queue_arn,
        ).apply(lambda known: ControllerScope(region=args.scope.region, cluster_name=args.scope.names.cluster, **known))
        role = iam.Role(
            f"{name}-role",
            name=args.scope.names.controller_role,
            description=f"Karpenter's controller in the EKS cluster {args.scope.names.cluster}",
            assume_role_policy=self._trust(name, args, scope),
            tags=args.scope.tags,
            opts=child,
        )
        for subject, document in CONTROLLER_POLICIES.items():
            if subject == "interruption" and not args.has_interruption_queue:
                continue
            policy = iam.Policy(
                f"{name}-{subject}",
                name=args.scope.names.controller_policy(subject),
                description=f"Karpenter in the EKS cluster {args.scope.names.cluster}: {subject}",
                policy=scope.apply(partial(_policy, document)),
                tags=args.scope.tags,
                opts=child,
            )
            iam.RolePolicyAttachment(f"{name}-{subject}", role=role.name, policy_arn=policy.arn, opts=child)
        if args.kind == "pod-identity":
            eks.PodIdentityAssociation(
                f"{name}-association",
                cluster_name=args.cluster_name,
                namespace=KARPENTER_NAMESPACE,
                service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
                role_arn=role.arn,
                tags=args.scope.tags,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    hooks=pulumi.ResourceHookBinding(after_create=[settled(f"{name}-settled")] if args.at_once else []),
                ),
            )
        self.role_arn = role.arn
        self.annotated_role_arn = role.arn if args.kind == "irsa" else pulumi.Output.from_input("")
        self.register_outputs({"roleArn": self.role_arn, "annotatedRoleArn": self.annotated_role_arn})

    def _trust(
        self, name: str, args: ControllerIdentityArgs, scope: pulumi.Output[ControllerScope]
    ) -> pulumi.Input[str]:
        if args.kind == "pod-identity":
            return scope.apply(_pod_identity_trust)
        return pulumi.Output.all(self._provider_arn(name, args), args.issuer).apply(
            lambda known: json.dumps(
                irsa_trust(
                    provider_arn=known[0],
                    issuer=known[1],
                    namespace=KARPENTER_NAMESPACE,
                    service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
                )
            )
        )

    def _provider_arn(self, name: str, args: ControllerIdentityArgs) -> pulumi.Output[str]:
        if not args.makes_provider:
            host = pulumi.Output.from_input(args.issuer).apply(lambda issuer: issuer.removeprefix("https://"))
            return pulumi.Output.format(
                "arn:{0}:iam::{1}:oidc-provider/{2}", args.scope.partition, args.scope.account_id, host
            )
        return iam.OpenIdConnectProvider(
            f"{name}-oidc",
            url=args.issuer,
            client_id_lists=["sts.amazonaws.com"],
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(parent=self),
        ).arn


def _pod_identity_trust(scope: ControllerScope) -> str:
    return json.dumps(
        pod_identity_trust(
            account_id=scope.account_id,
            cluster_arn=scope.cluster_arn,
            namespace=KARPENTER_NAMESPACE,
            service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
        )
    )


def _policy(document: Callable[[ControllerScope], Document], scope: ControllerScope) -> str:
    return json.dumps(document(scope))
