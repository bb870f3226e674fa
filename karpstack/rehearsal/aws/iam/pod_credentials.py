"""Credentials for pods: EKS Pod Identity and IAM roles for service accounts (IRSA).

Both hand out temporary credentials for a service account's token, and only when the cluster vouches for the token
(TokenReview), the stack has associated the service account with a role, and the role's trust policy really lets
that caller assume it. Answers and error texts are those of the Pod Identity agent and of STS.

Changes in moto: `AssumeRoleWithWebIdentity`, which believes any token and any role.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from datetime import UTC
from typing import Any, Protocol

from karpstack.rehearsal.aws.eks.api import Eks
from karpstack.rehearsal.aws.errors import answer
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.patching import Patches

POD_IDENTITY_AUDIENCE = "pods.eks.amazonaws.com"

_NOT_VALID = "InvalidTokenException: The token is not valid for this cluster, or its audience is not {audience}"
_NO_ASSOCIATION = (
    "ResourceNotFoundException: No pod identity association for the service account {namespace}/{name} "
    "in the cluster {cluster}"
)
_UNAUTHORIZED = (
    "AccessDeniedException: Unauthorized Exception! EKS does not have permissions to assume the "
    "associated role {role}: {reason}"
)
_NO_ROLE = "it does not exist"
_NO_PROVIDER = "No OpenIDConnect provider found in your account for {issuer}"
_BAD_AUDIENCE = "Incorrect token audience"
_BAD_IDENTITY = "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"
_NOT_VERIFIED = (
    "Couldn't retrieve verification key from your identity provider, please reference "
    "AssumeRoleWithWebIdentity documentation for requirements"
)
_NOT_AUTHORIZED = "Not authorized to perform sts:AssumeRoleWithWebIdentity: {reason}"


class TokenReviewer(Protocol):
    """What this module needs of a running cluster."""

    def review_token(self, token: str, audience: str) -> str | None:
        """`system:serviceaccount:<namespace>:<name>`, or None when the token is not good."""
        ...


class CredentialError(Exception):
    """No credentials for this token; the text is the agent's answer and `status` its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class PodIdentity:
    """Both ways from a service account's token to a role's credentials."""

    def __init__(self, eks: Eks, roles: Roles, region: str, reviewer: Callable[[str], TokenReviewer | None]) -> None:
        """`reviewer` gives the running cluster of a name, or None."""
        self._eks = eks
        self._roles = roles
        self._region = region
        self._reviewer = reviewer

    def credentials(self, cluster: str, token: str) -> dict[str, str]:
        """What the Pod Identity agent of a cluster answers to a token.

        Returns:
            AccessKeyId, SecretAccessKey, Token, Expiration (RFC 3339) and AccountId.

        Raises:
            CredentialError: With the agent's error text.
        """
        reviewer = self._reviewer(cluster)
        subject = reviewer.review_token(token, POD_IDENTITY_AUDIENCE) if reviewer else None
        if subject is None:
            raise CredentialError(400, _NOT_VALID.format(audience=POD_IDENTITY_AUDIENCE))
        namespace, name = subject.removeprefix("system:serviceaccount:").split(":", 1)
        association = self._eks.association(cluster, namespace, name)
        if association is None:
            raise CredentialError(404, _NO_ASSOCIATION.format(namespace=namespace, name=name, cluster=cluster))
        arn = association["roleArn"]
        role = self._roles.by_arn(arn)
        reason = _NO_ROLE if role is None else self._eks.pod_trust_refusal(cluster, namespace, name, role)
        if role is None or reason:
            raise CredentialError(403, _UNAUTHORIZED.format(role=arn, reason=reason))
        issued = self._roles.assume(role, f"eks-{cluster[:20]}-{name[:20]}", self._region)
        return {
            "AccessKeyId": issued.access_key_id,
            "SecretAccessKey": issued.secret_access_key,
            "Token": issued.session_token,
            "AccountId": role.account_id,
            "Expiration": issued.expiration.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def web_identity_refusal(self, token: str, role_arn: str) -> tuple[str, str] | None:
        """Why STS does not accept a token for a role: AWS's error code and text; None when it does."""
        issuer, audience = _claims(token)
        if not issuer:
            return "InvalidIdentityToken", _BAD_IDENTITY
        provider = self._roles.provider_for(issuer)
        if provider is None:
            return "InvalidIdentityToken", _NO_PROVIDER.format(issuer=issuer)
        if audience not in provider.client_id_list:
            return "InvalidIdentityToken", _BAD_AUDIENCE
        cluster = self._eks.cluster_of(issuer)
        reviewer = self._reviewer(cluster) if cluster else None
        subject = reviewer.review_token(token, audience) if reviewer else None
        if subject is None:
            return "InvalidIdentityToken", _NOT_VERIFIED
        reason = self._eks.web_trust_refusal(issuer, subject, audience, role_arn)
        return ("AccessDenied", _NOT_AUTHORIZED.format(reason=reason)) if reason else None

    def patch(self, patches: Patches) -> None:
        """Make moto's STS ask."""
        from moto.sts.responses import TokenResponse

        def assume(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def handle(response: Any) -> Any:
                refusal = self.web_identity_refusal(
                    response._get_param("WebIdentityToken") or "", response._get_param("RoleArn") or ""
                )
                if refusal:
                    raise answer(*refusal)
                return original(response)

            return handle

        patches.wrap(TokenResponse, "assume_role_with_web_identity", assume)


def _claims(token: str) -> tuple[str, str]:
    """Issuer and first audience that a token claims; empty when it is no token."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        audience = claims.get("aud")
        return str(claims["iss"]), str(audience[0] if isinstance(audience, list) else audience)
    except (IndexError, KeyError, ValueError, binascii.Error):
        return "", ""
