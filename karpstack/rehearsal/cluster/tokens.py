"""Service account tokens: made and reviewed by the API server itself, as a cloud and a kubelet have them made."""

from __future__ import annotations

from karpstack.rehearsal.cluster.objects import Objects

#: Seconds that a token is valid. No kubelet renews it here, so it lives as long as the cluster's certificates.
_LIFETIME = 30 * 24 * 3600


def create_token(objects: Objects, namespace: str, service_account: str, audience: str = "") -> str:
    """TokenRequest.

    Args:
        audience: Audience of the token; the API server itself when empty.

    Raises:
        ApiError: There is no such service account (404), or the API server refused.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [audience] if audience else [], "expirationSeconds": _LIFETIME},
    }
    answer = objects.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token", body)
    return str(answer["status"]["token"])


def review_token(objects: Objects, token: str, audience: str) -> str | None:
    """TokenReview.

    Returns:
        `system:serviceaccount:<namespace>:<name>`, or None when signature, issuer, audience or lifetime is wrong
        or the service account is gone.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    }
    status = objects.create("/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]
    if not status.get("authenticated") or audience not in status.get("audiences", []):
        return None
    return str(status["user"]["username"])
