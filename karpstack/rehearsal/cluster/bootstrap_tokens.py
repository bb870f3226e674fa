"""Whether a kubelet gets into the cluster with a bootstrap token, as the API server itself decides it.

Asked are the three things on which a kubelet's first certificate hangs: that the token is taken (it is not once it has
expired), that its groups may ask for a certificate, and that the controller that approves such requests may do so. No
certificate is made: the nodes of a rehearsal have no kubelet that would use one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.cluster.objects import Objects

_GROUP = "certificates.k8s.io"
_REQUESTS = "certificatesigningrequests"
# The words of the API server's own refusals, which a kubelet writes to its log.
_FORBIDDEN = (
    '{resource}.{group} is forbidden: User "{user}" cannot create resource "{resource}" in API group "{group}" at the '
    "cluster scope; bind the ClusterRole system:node-bootstrapper to one of its groups: {groups}"
)
_PENDING = (
    "its certificate signing request stays Pending, because nothing lets it be approved; bind the ClusterRole "
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient to one of the groups of {user}: {groups}"
)
_UNAUTHORIZED = (
    "Unauthorized: the API server does not take the token; see that the Secret kube-system/bootstrap-token-{id} exists "
    "with this token, is of the type bootstrap.kubernetes.io/token, says usage-bootstrap-authentication: true, has "
    "not expired, and that each of its auth-extra-groups begins with system:bootstrappers:"
)


def refusal(objects: Objects, token: str) -> str:
    """Why a kubelet that presents a token gets no certificate; empty when it gets one.

    Args:
        token: `<id>.<secret>`; the secret half is in no answer.

    Raises:
        ApiError: The API server refused to tell.
    """
    status = _ask(objects, "authentication.k8s.io/v1", "TokenReview", {"token": token})
    if not status.get("authenticated"):
        return _UNAUTHORIZED.format(id=token.partition(".")[0])
    user, groups = status["user"]["username"], status["user"].get("groups") or []
    names = {"user": user, "groups": ", ".join(groups)}
    if not _may_create(objects, user, groups, ""):
        return _FORBIDDEN.format(resource=_REQUESTS, group=_GROUP, **names)
    if not _may_create(objects, user, groups, "nodeclient"):
        return _PENDING.format(**names)
    return ""


def _may_create(objects: Objects, user: str, groups: list[str], subresource: str) -> bool:
    attributes = {"verb": "create", "group": _GROUP, "resource": _REQUESTS, "subresource": subresource}
    spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
    return bool(_ask(objects, "authorization.k8s.io/v1", "SubjectAccessReview", spec).get("allowed"))


def _ask(objects: Objects, api_version: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    body = {"apiVersion": api_version, "kind": kind, "spec": spec}
    status: Mapping[str, Any] = objects.create(f"/apis/{api_version}/{kind.lower()}s", body)["status"]
    return status
