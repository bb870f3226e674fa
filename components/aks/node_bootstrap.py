"""What self-hosted Karpenter hands to new machines: a bootstrap token of the stack's own, and an SSH key.

AKS has tokens too, but they change after days or with a node image upgrade, and then machines come up and never join
(karpenter-provider-azure issues 247, 649, 695); nor does AKS promise what its bindings let another token do. This one
is drawn when its Secret is created and kept until it expires: the engine ignores what later runs draw. Raising
`generation` makes a new one and moves the controller to it. The one before stays until the next, because machines that
were launched a moment ago still come with it.
"""

from __future__ import annotations

import base64
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import ClusterRoleBinding, RoleRefArgs, SubjectArgs

from ..documents import bootstrap_tokens

_ALPHABET: Final = string.ascii_lowercase + string.digits
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class NodeBootstrapArgs:
    """Arguments of `NodeBootstrap`.

    Attributes:
        cluster_name: So that two clusters have two tokens.
        namespace: Of the SSH key; tokens are always in kube-system.
        generation: Raise it by one to have a new token; by two, and the old one is gone at once.
        days: How long a token is good that is drawn now.
        ssh_public_key: For the administrator's account on every machine.
    """

    cluster_name: str
    namespace: str
    generation: int
    days: int
    ssh_public_key: str


class NodeBootstrap(pulumi.ComponentResource):
    """The two Secrets, by their names, and what whoever has the token may do: ask for a node's certificate."""

    token_secret: pulumi.Output[str]
    ssh_key_secret: pulumi.Output[str]

    def __init__(self, name: str, args: NodeBootstrapArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:NodeBootstrap", name, {}, opts)
        for label, role in bootstrap_tokens.ROLES.items():
            ClusterRoleBinding(
                f"{name}-{label}",
                metadata=ObjectMetaArgs(name=f"karpstack-bootstrap-{label}"),
                role_ref=RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=role),
                subjects=[SubjectArgs(api_group=_RBAC, kind="Group", name=bootstrap_tokens.GROUP)],
                opts=pulumi.ResourceOptions(parent=self),
            )
        if args.generation > 1:
            self._token(name, args, args.generation - 1)
        token = self._token(name, args, args.generation)
        token.data.apply(_warn)
        # Named by its content: a changed key makes a changed Deployment, and so new controllers, which read it.
        key = Secret(
            f"{name}-ssh",
            metadata=ObjectMetaArgs(name=f"karpenter-ssh-{_digest(args.ssh_public_key)[:8]}", namespace=args.namespace),
            data=_encoded({"ssh-public-key": args.ssh_public_key}),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.token_secret = token.metadata.apply(lambda metadata: metadata.name or "")
        self.ssh_key_secret = key.metadata.apply(lambda metadata: metadata.name or "")
        self.register_outputs({"tokenSecret": self.token_secret, "sshKeySecret": self.ssh_key_secret})

    def _token(self, name: str, args: NodeBootstrapArgs, generation: int) -> Secret:
        # The public half of the token: it is in the Secret's name, so it must not be drawn again.
        token_id = _digest(f"{args.cluster_name}/{generation}")[:6]
        data = bootstrap_tokens.token(
            token_id=token_id,
            secret="".join(secrets.choice(_ALPHABET) for _ in range(16)),
            now=datetime.now(UTC),
            days=args.days,
        )
        return Secret(
            f"{name}-token-{generation}",
            metadata=ObjectMetaArgs(name=f"bootstrap-token-{token_id}", namespace="kube-system"),
            type=bootstrap_tokens.KIND,
            data=_encoded(data),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["data"]),
        )


def _warn(data: Mapping[str, str] | None) -> None:
    expiration = base64.b64decode((data or {}).get("expiration", "")).decode()
    if concern := bootstrap_tokens.token_problem(expiration, datetime.now(UTC)):
        pulumi.log.warn(concern)


def _encoded(data: dict[str, str]) -> pulumi.Output[dict[str, str]]:
    return pulumi.Output.secret({key: base64.b64encode(value.encode()).decode() for key, value in data.items()})


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
