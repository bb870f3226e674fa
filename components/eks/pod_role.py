"""A role for the pods of one service account, handed to them by EKS Pod Identity.

It must exist before the pods: credentials are injected when a pod is admitted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi
from pulumi_aws import eks, iam

from karpstack.karpenter import clock

from ..documents.iam import Document, pod_identity_trust
from .scope import Scope

#: Seconds.
_KNOWN_AFTER: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class PodRoleArgs:
    """Arguments of `PodRole`.

    Attributes:
        scope: Whose it is.
        role_name: Physical name.
        description: Whose it is.
        cluster_name: The cluster.
        cluster_arn: Its ARN, put together from what is known before it is there.
        namespace, service_account: Whose pods get the role; these need not exist yet.
        managed_policies: Names of AWS's own policies.
        policies: Further policies, by their physical names.
    """

    scope: Scope
    role_name: str
    description: str
    cluster_name: pulumi.Input[str]
    cluster_arn: pulumi.Input[str]
    namespace: str
    service_account: str
    managed_policies: Sequence[str] = ()
    policies: Mapping[str, pulumi.Input[Document]] = field(default_factory=dict)


def settled(name: str) -> pulumi.ResourceHook:
    """Return a hook after the creation of an association, which waits until EKS's admission knows it.

    A pod that is admitted before gets no credentials, and no restart of its containers repairs that: EKS says that
    associations are eventually consistent, by several seconds (aws/eks-pod-identity-agent#52,
    hashicorp/terraform-provider-aws#40852).

    Args:
        name: Of the hook; unique in the program.
    """

    async def wait(created: pulumi.ResourceHookArgs) -> None:
        await clock.sleeping(_KNOWN_AFTER)

    return pulumi.ResourceHook(name, wait)


class PodRole(pulumi.ComponentResource):
    """Role, policies and association."""

    def __init__(self, name: str, args: PodRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:PodRole", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        trust = pulumi.Output.all(account_id=args.scope.account_id, cluster_arn=args.cluster_arn).apply(
            lambda known: json.dumps(
                pod_identity_trust(namespace=args.namespace, service_account=args.service_account, **known)
            )
        )
        role = iam.Role(
            f"{name}-role",
            name=args.role_name,
            description=args.description,
            assume_role_policy=trust,
            tags=args.scope.tags,
            opts=child,
        )
        attached = {
            policy: pulumi.Output.concat("arn:", args.scope.partition, ":iam::aws:policy/", policy)
            for policy in args.managed_policies
        }
        for policy, document in args.policies.items():
            label = policy.removeprefix(f"{args.role_name}-")
            attached[label] = iam.Policy(
                f"{name}-{label}",
                name=policy,
                description=args.description,
                policy=pulumi.Output.from_input(document).apply(json.dumps),
                tags=args.scope.tags,
                opts=child,
            ).arn
        attachments = [
            iam.RolePolicyAttachment(f"{name}-{label}", role=role.name, policy_arn=arn, opts=child)
            for label, arn in attached.items()
        ]
        eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            tags=args.scope.tags,
            # Whoever gets the role may do with it what it is for.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=attachments,
                hooks=pulumi.ResourceHookBinding(after_create=[settled(f"{name}-settled")]),
            ),
        )
        self.register_outputs({})
