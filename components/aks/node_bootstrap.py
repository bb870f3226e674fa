"""What self-hosted Karpenter hands to new machines: a bootstrap token of the stack's own, and an SSH key.

AKS has tokens too, but they expire after days or change with a node image upgrade, and then machines come up and
never join (karpenter-provider-azure issues 247, 649, 695). This one has no expiry. It is drawn when its Secret is
created and kept from then on: the engine ignores what later runs draw. Raising `generation` makes a new one beside
the old, moves the controller to it and then deletes the old.
"""

from __future__ import annotations

import base64
import secrets
import string
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

_ALPHABET: Final = string.ascii_lowercase + string.digits


@dataclass(frozen=True, kw_only=True)
class NodeBootstrapArgs:
    """Arguments of `NodeBootstrap`.

    Attributes:
        cluster_name: So that two clusters have two tokens.
        namespace: Of the SSH key; tokens are always in kube-system.
        generation: Raise it to have a new token.
        ssh_public_key: For the administrator's account on every machine.
    """

    cluster_name: str
    namespace: str
    generation: int
    ssh_public_key: str


class NodeBootstrap(pulumi.ComponentResource):
    """The two Secrets, by their names."""

    token_secret: pulumi.Output[str]
    ssh_key_secret: pulumi.Output[str]

    def __init__(self, name: str, args: NodeBootstrapArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:NodeBootstrap", name, {}, opts)
        # The public half of the token: it is in the Secret's name, so it must not be drawn anew.
        token_id = _digest(f"{args.cluster_name}/{args.generation}")[:6]
        token = Secret(
            f"{name}-token-{args.generation}",
            metadata=ObjectMetaArgs(name=f"bootstrap-token-{token_id}", namespace="kube-system"),
            type="bootstrap.kubernetes.io/token",
            data=_encoded(
                {
                    "description": "Machines that Karpenter makes join with this token.",
                    "token-id": token_id,
                    "token-secret": "".join(secrets.choice(_ALPHABET) for _ in range(16)),
                    "usage-bootstrap-authentication": "true",
                    "usage-bootstrap-signing": "true",
                }
            ),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["data"]),
        )
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


def _encoded(data: dict[str, str]) -> pulumi.Output[dict[str, str]]:
    return pulumi.Output.secret({key: base64.b64encode(value.encode()).decode() for key, value in data.items()})


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
