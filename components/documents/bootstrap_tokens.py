"""Bootstrap tokens: what a Secret must hold so that new machines join with it, for a time.

The API server takes such a token for the user `system:bootstrap:<id>` in the group `system:bootstrappers` and in
those of `auth-extra-groups`, until `expiration`. What the groups may do is for bindings to say: Kubernetes makes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

#: The type of its Secret.
KIND: Final = "bootstrap.kubernetes.io/token"
#: Of the stack's own tokens. A name must match system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]; with another one the
#: token is not taken at all.
GROUP: Final = "system:bootstrappers:karpstack"
#: ClusterRoles of Kubernetes that a machine needs until it has its certificate: to ask for it, and to be given it.
#: Not `system:node`, which would let whoever has a token act as every node.
ROLES: Final[Mapping[str, str]] = {
    "requests": "system:node-bootstrapper",
    "approval": "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
}
#: How long before a token expires whoever deploys is told so.
NOTICE: Final = timedelta(days=30)

_FIX: Final = "raise karpstack:karpenter.bootstrapTokenGeneration by one"


def token(*, token_id: str, secret: str, now: datetime, days: int) -> dict[str, str]:
    """Data of a token's Secret.

    Args:
        token_id: Six lower-case letters and digits; the Secret is called `bootstrap-token-<token_id>`.
        secret: Sixteen of them.
        now: When it is drawn.
        days: For how many days it is good, from the midnight before.
    """
    expiration = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
    return {
        "description": "Machines that Karpenter makes join with this token.",
        "token-id": token_id,
        "token-secret": secret,
        "expiration": expiration.isoformat().replace("+00:00", "Z"),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": GROUP,
    }


def token_problem(expiration: str, now: datetime) -> str:
    """Return what to do about the token in use; empty if nothing.

    Args:
        expiration: As in its Secret; empty where that has none, as tokens had in earlier versions.
        now: The time.
    """
    if not expiration:
        return f"the bootstrap token never expires and has no rights of the stack's own; {_FIX}"
    until = datetime.fromisoformat(expiration)
    if until <= now:
        return (
            f"the bootstrap token expired at {expiration}: no machine that Karpenter makes joins the cluster any "
            f"more, and nodes that expire are not replaced; {_FIX} now"
        )
    if until - now <= NOTICE:
        return f"the bootstrap token expires at {expiration}, and then no new machine joins the cluster; {_FIX}"
    return ""
